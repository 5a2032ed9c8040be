//! The update rule against a plain scalar loop, over random shapes and values.

mod common;

use std::sync::Arc;

use altbi::update::Rule;
use altbi::{Beta, Divergence, PenaltyTerm, Precision, Problem, ToMatrix, penalty};
use common::assert_close;
use ndarray::Array2;
use proptest::prelude::*;

/// One multiplicative update, written as the formula is read.
struct ScalarLoop<'a> {
    beta: f64,
    penalty: &'a str,
    exponent: f64,
    x: &'a Array2<f64>,
    mask: &'a Array2<f64>,
    w: &'a Array2<f64>,
    h: &'a Array2<f64>,
    lambda: &'a Array2<f64>,
}

impl ScalarLoop<'_> {
    /// (p⁺, p⁻) of entry (i, k), weighted.
    fn penalty(&self, i: usize, k: usize) -> (f64, f64) {
        let (n, w, lambda) = (self.w.nrows(), self.w, self.lambda[[i, 0]]);
        let sum: f64 = w.row(i).sum();
        let norm = w.row(i).iter().map(|w| w * w).sum::<f64>().sqrt();
        match self.penalty {
            "none" => (0.0, 0.0),
            "l1" => (lambda, 0.0),
            "l2" => (lambda * w[[i, k]], 0.0),
            "l21" => (lambda * 2.0 * sum, 0.0),
            "group" if norm == 0.0 => (0.0, 0.0),
            "group" => (lambda * w[[i, k]] / norm, 0.0),
            "hoyer" if norm == 0.0 => (0.0, 0.0),
            "hoyer" => (lambda / norm, lambda * sum * w[[i, k]] / norm.powi(3)),
            "smooth" => {
                let (mut plus, mut minus) = (0.0, 0.0);
                let neighbours = [i.checked_sub(1), Some(i + 1).filter(|j| *j < n)];
                for j in neighbours.into_iter().flatten() {
                    let edge = (lambda + self.lambda[[j, 0]]) / 2.0;
                    plus += edge * w[[i, k]];
                    minus += edge * w[[j, k]];
                }
                (plus, minus)
            }
            "steps" => {
                let (mut plus, mut minus) = (0.0, 0.0);
                let neighbours = [i.checked_sub(1), Some(i + 1).filter(|j| *j < n)];
                for j in neighbours.into_iter().flatten() {
                    let edge = (lambda + self.lambda[[j, 0]]) / 2.0;
                    let (a, b) = (w[[i, k]], w[[j, k]]);
                    let root = ((a - b).powi(2) + 0.01 * (a + b).powi(2)).sqrt();
                    // Two zeros pull at nothing.
                    if root > 0.0 {
                        plus += edge * 1.01 * a / root;
                        minus += edge * (0.99 * b / root + 0.1);
                    }
                }
                (plus, minus)
            }
            other => panic!("{other}"),
        }
    }

    fn update(&self) -> Array2<f64> {
        let (n, m, rank) = (self.x.nrows(), self.x.ncols(), self.w.ncols());
        Array2::from_shape_fn((n, rank), |(i, k)| {
            let (mut numerator, mut denominator) = (0.0, 0.0);
            for j in 0..m {
                let y: f64 = (0..rank).map(|l| self.w[[i, l]] * self.h[[l, j]]).sum();
                let y = y.max(Beta(self.beta).floor(Precision::F64));
                let weight = self.mask[[i, j]] * self.h[[k, j]];
                numerator += weight * self.x[[i, j]] * y.powf(self.beta - 2.0);
                denominator += weight * y.powf(self.beta - 1.0);
            }
            let (plus, minus) = self.penalty(i, k);
            let ratio = (numerator + minus) / (denominator + plus).max(1e-150);
            // 0^γ = 0, and what is below the floor counts as 0.
            let gain = if ratio < 1e-150 && self.exponent != 1.0 {
                0.0
            } else {
                ratio.powf(self.exponent)
            };
            self.w[[i, k]] * gain
        })
    }
}

fn entries(zeros: bool) -> impl Strategy<Value = f64> {
    let least = if zeros { 0.0 } else { 0.01 };
    prop_oneof![1 => Just(least), 9 => 0.01f64..3.0]
}

fn array(rows: usize, columns: usize, zeros: bool) -> impl Strategy<Value = Array2<f64>> {
    proptest::collection::vec(entries(zeros), rows * columns)
        .prop_map(move |values| Array2::from_shape_vec((rows, columns), values).unwrap())
}

/// Weights with zeros among them, but none in a whole row or column.
fn observed_everywhere(mut mask: Array2<f64>) -> Array2<f64> {
    let (n, m) = mask.dim();
    for i in 0..n.max(m) {
        mask[[i % n, i % m]] = 0.5;
    }
    mask
}

#[derive(Debug)]
struct Drawn {
    beta: f64,
    penalty: &'static str,
    exponent: f64,
    masked: bool,
    x: Array2<f64>,
    mask: Array2<f64>,
    w: Array2<f64>,
    h: Array2<f64>,
    lambda: Array2<f64>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let names: Vec<&str> = penalty::NAMES.split(", ").collect();
    let betas = prop_oneof![Just(2.0), Just(1.0), Just(0.0), Just(-0.5), -1.0f64..3.5];
    (
        (1usize..7, 1usize..7, 1usize..5),
        betas,
        proptest::sample::select(names),
        prop_oneof![Just(1.0), 0.2f64..1.0],
        any::<bool>(),
    )
        .prop_flat_map(|((n, m, rank), beta, penalty, exponent, masked)| {
            let zeros = beta > 0.0;
            (
                array(n, m, zeros),
                array(n, m, true).prop_map(observed_everywhere),
                array(n, rank, zeros),
                array(rank, m, zeros),
                array(n, 1, true),
            )
                .prop_map(move |(x, mask, w, h, lambda)| Drawn {
                    beta,
                    penalty,
                    exponent,
                    masked,
                    mask: if masked { mask } else { Array2::ones(x.dim()) },
                    x,
                    w,
                    h,
                    lambda,
                })
        })
        .prop_filter("X must not be all zero where it is observed", |drawn| {
            (&drawn.x * &drawn.mask).sum() > 0.0
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_update_of_w_is_the_scalar_loop(drawn in drawn()) {
        let Drawn { beta, penalty, exponent, masked, x, mask, w, h, lambda } = &drawn;
        let problem = if *masked {
            Problem::masked(x, mask, Precision::F64).unwrap()
        } else {
            Problem::new(x, Precision::F64).unwrap()
        };
        let term = PenaltyTerm::tuned(penalty::by_name(penalty).unwrap());
        let mut rule = Rule::new(Arc::new(Beta(*beta)), vec![term]);
        rule.exponent = *exponent;
        let tensor = |a: &Array2<f64>| problem.tensor("test", a, [a.nrows(), a.ncols()]).unwrap();
        let updated = rule
            .bind(&[tensor(lambda)])
            .update(problem.rows(), &tensor(w), &tensor(h))
            .to_matrix()
            .unwrap();
        let expected = ScalarLoop {
            beta: *beta, penalty, exponent: *exponent, x, mask, w, h, lambda,
        }
        .update();
        prop_assert!(updated.iter().all(|w| *w >= 0.0), "{updated}");
        assert_close("update", &updated, &expected, 1e-11);
    }

    #[test]
    fn the_update_of_h_is_the_scalar_loop_transposed(drawn in drawn()) {
        let Drawn { beta, exponent, masked, x, mask, w, h, .. } = &drawn;
        // W may have a row of zeros here, and then a column of y is at the floor.
        let problem = if *masked {
            Problem::masked(x, mask, Precision::F64).unwrap()
        } else {
            Problem::new(x, Precision::F64).unwrap()
        };
        let mut rule = Rule::new(Arc::new(Beta(*beta)), Vec::new());
        rule.exponent = *exponent;
        let tensor = |a: &Array2<f64>| problem.tensor("test", a, [a.nrows(), a.ncols()]).unwrap();
        let updated = rule
            .update(problem.columns(), &tensor(h).transpose(), &tensor(w).transpose())
            .to_matrix()
            .unwrap();
        let expected = ScalarLoop {
            beta: *beta,
            penalty: "none",
            exponent: *exponent,
            x: &x.t().to_owned(),
            mask: &mask.t().to_owned(),
            w: &h.t().to_owned(),
            h: &w.t().to_owned(),
            lambda: &Array2::zeros((x.ncols(), 1)),
        }
        .update();
        assert_close("update", &updated, &expected, 1e-11);
    }
}
