//! Penalties of the rows of a factor, and their sums.
//!
//! | name | type | r(w_i) | use |
//! |---|---|---|---|
//! | `l1` | [`L1`] | Σ w | sparsity (the paper) |
//! | `l2` | [`SquaredL2`] | ½ Σ w² | small, even factors |
//! | `group` | [`Group`] | ‖w‖₂ | whole rows to zero |
//! | `l21` | [`SquaredL1`] | (Σ w)² | one component per row |
//! | `hoyer` | [`Hoyer`] | ‖w‖₁ / ‖w‖₂ | sparsity that ignores scale |
//! | `smooth` | [`Smooth`] | differences to the neighbouring rows | signals, spectra |
//! | `steps` | [`Steps`] | jumps to the neighbouring rows | piecewise constant signals |
//! | | [`Graph`] | differences along the edges of a graph | pictures, maps, networks |
//! | `none` | [`NoPenalty`] | 0 | baselines |
//!
//! # A penalty of your own
//! Implement [`Penalty`]: value and split gradient are enough for reverse mode;
//! [`Penalty::tangent`] adds forward and implicit mode,
//! [`Penalty::cotangent`] the adjoint mode.
//!
//! ```
//! use altbi::{Beta, Penalty, Precision, Problem, Split};
//! use burn::tensor::Tensor;
//!
//! /// r(w) = Σ log(1 + w / ε): sparser than ℓ1.
//! #[derive(Debug)]
//! struct Logarithm {
//!     epsilon: f64,
//! }
//!
//! impl Penalty for Logarithm {
//!     fn name(&self) -> String {
//!         "logarithm".into()
//!     }
//!     fn value(&self, w: &Tensor<2>) -> Tensor<2> {
//!         (w.clone() / self.epsilon).log1p().sum_dim(1)
//!     }
//!     fn split(&self, w: &Tensor<2>) -> Split {
//!         Split { positive: (w.clone() + self.epsilon).recip(), negative: w.zeros_like() }
//!     }
//! }
//!
//! let x = ndarray::array![[1.0, 0.5, 2.0], [0.2, 3.0, 1.0]];
//! let problem = Problem::new(&x, Precision::F64)?;
//! altbi::check(&problem, Beta::KL, Logarithm { epsilon: 0.1 })?.assert_consistent();
//! # Ok::<(), altbi::Error>(())
//! ```

mod across;
mod edges;
mod graph;
mod group;
mod host;
mod hoyer;
mod l1;
mod nearest;
mod none;
mod smooth;
mod squared_l1;
mod squared_l2;
mod steps;
mod term;

use std::fmt::Debug;
use std::sync::Arc;

use burn::tensor::Tensor;

pub use graph::Graph;
pub use group::Group;
pub use host::{HostPenalty, Rows, Spread};
pub use hoyer::Hoyer;
pub use l1::L1;
pub use none::NoPenalty;
pub use smooth::Smooth;
pub use squared_l1::SquaredL1;
pub use squared_l2::SquaredL2;
pub use steps::Steps;
pub use term::PenaltyTerm;
pub(crate) use term::Weight;

use crate::divergence::forward;
use crate::error::{Error, Result};
use crate::processes::Processes;
use crate::split::{MajoriserPowers, Split};

/// A penalty r of the rows of a factor. λ is its weight.
///
/// Implementations use differentiable tensor operations only. They should be
/// finite on rows of zeros (`0/0 = 0`).
///
/// # Shapes
/// `w` is n×r, and each row is penalised.
pub trait Penalty: Debug + Send + Sync {
    /// The name that summaries and errors use.
    fn name(&self) -> String;

    /// `r(w_i)` of each row: n×1.
    fn value(&self, w: &Tensor<2>) -> Tensor<2>;

    /// Returns true if r is a sum over entries (for a coupled penalty: each within its own column).
    /// Then components and entries can have their own weights. Such a penalty must implement
    /// [`entries`](Penalty::entries).
    fn is_sum_over_entries(&self) -> bool {
        false
    }

    /// The number of rows that a factor must have, or `None` for any number.
    fn rows(&self) -> Option<usize> {
        None
    }

    /// Returns true if it can be evaluated on some rows of the factor alone. A penalty for a fixed
    /// shape (a map, a graph) cannot; then the engines are compared on all rows.
    fn takes_any_rows(&self) -> bool {
        false
    }

    /// Returns true if it was made from the data that the updates see, as a graph of nearest
    /// neighbours is. Then λ is tuned on one split of the data: others would hold out data that the
    /// penalty has seen.
    fn reads_data(&self) -> bool {
        false
    }

    /// The share of each entry in `r(w_i)`, n×r, if r is a sum over entries.
    fn entries(&self, w: &Tensor<2>) -> Option<Tensor<2>> {
        let _ = w;
        None
    }

    /// `∂/∂w` of `Σ_i r(w_i)` as a difference of nonnegative parts, each n×r or
    /// broadcasting to it.
    fn split(&self, w: &Tensor<2>) -> Split;

    /// The hand-written derivative of [`split`](Penalty::split) in a direction (n×r). Without it
    /// forward and implicit mode refuse.
    fn tangent(&self, w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split> {
        let _ = (w, direction);
        None
    }

    /// The transpose of [`tangent`](Penalty::tangent): for cotangents of the two
    /// parts (n×r each), the cotangent of w,
    /// `(∂p⁺/∂w)ᵀ p̄⁺ + (∂p⁻/∂w)ᵀ p̄⁻`. Without it the adjoint mode refuses.
    fn cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        let _ = (w, parts);
        None
    }

    /// The weighted forms of a penalty that couples rows. `None` means that rows are independent.
    fn coupling(&self) -> Option<&dyn Coupling> {
        None
    }

    /// The same penalty for several processes, which have the neighbouring rows. It is called only
    /// if the penalty couples rows. `None` means that it needs all rows in one process.
    fn across(&self, processes: &Processes) -> Option<Arc<dyn Penalty>> {
        let _ = processes;
        None
    }

    /// The powers of its majoriser, or `None` if no monotone update is known.
    fn majoriser_powers(&self) -> Option<MajoriserPowers> {
        None
    }

    /// Its form in the loops of the paper's bunch. With `None`, bunches run on the data term.
    fn fused(&self) -> Option<FusedPenalty> {
        None
    }

    /// The same penalty on plain numbers, if it has such a form. With `None`, tensor operations are
    /// used everywhere.
    fn on_host(&self) -> Option<&dyn HostPenalty> {
        None
    }
}

/// The weighted forms of a penalty that couples rows.
///
/// If rows are coupled and each has its own λ_i, the gradient of `Σ_i λ_i r_i(W)` is not `λ_i`
/// times an unweighted gradient: the gradient of row i involves its neighbours' weights too. So
/// these forms include the weights. Each is linear in the weights.
///
/// # Shapes
/// `w` is n×r; `weight` broadcasts to it.
pub trait Coupling: Debug {
    /// The gradient of `Σ_i λ_i r_i(W)` in nonnegative parts, n×r each.
    fn weighted_split(&self, w: &Tensor<2>, weight: &Tensor<2>) -> Split;

    /// Its derivative in a direction of w.
    fn weighted_tangent(
        &self,
        w: &Tensor<2>,
        weight: &Tensor<2>,
        direction: &Tensor<2>,
    ) -> Option<Split> {
        let _ = (w, weight, direction);
        None
    }

    /// The transpose of [`weighted_tangent`](Coupling::weighted_tangent).
    fn weighted_cotangent(
        &self,
        w: &Tensor<2>,
        weight: &Tensor<2>,
        parts: &Split,
    ) -> Option<Tensor<2>> {
        let _ = (w, weight, parts);
        None
    }

    /// The cotangent of the weights, n×r: the transpose of `weight ↦
    /// weighted_split(w, weight)`.
    fn weight_cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>> {
        let _ = (w, parts);
        None
    }
}

/// Plug-ins are shared between a solver and its bunches.
impl<P: Penalty + ?Sized> Penalty for Arc<P> {
    forward! {
        fn name(&self) -> String;
        fn value(&self, w: &Tensor<2>) -> Tensor<2>;
        fn is_sum_over_entries(&self) -> bool;
        fn rows(&self) -> Option<usize>;
        fn takes_any_rows(&self) -> bool;
        fn reads_data(&self) -> bool;
        fn entries(&self, w: &Tensor<2>) -> Option<Tensor<2>>;
        fn split(&self, w: &Tensor<2>) -> Split;
        fn tangent(&self, w: &Tensor<2>, direction: &Tensor<2>) -> Option<Split>;
        fn cotangent(&self, w: &Tensor<2>, parts: &Split) -> Option<Tensor<2>>;
        fn coupling(&self) -> Option<&dyn Coupling>;
        fn across(&self, processes: &Processes) -> Option<Arc<dyn Penalty>>;
        fn majoriser_powers(&self) -> Option<MajoriserPowers>;
        fn fused(&self) -> Option<FusedPenalty>;
        fn on_host(&self) -> Option<&dyn HostPenalty>;
    }
}

/// A penalty that the paper's [fused bunch](mod@crate::engine) supports. [`Penalty::fused`] returns
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedPenalty {
    /// [`L1`].
    L1,
    /// [`SquaredL2`].
    SquaredL2,
    /// [`Group`].
    Group,
    /// [`SquaredL1`].
    SquaredL1,
    /// [`Hoyer`].
    Hoyer,
    /// [`NoPenalty`].
    None,
}

/// The names that [`by_name`] knows.
pub const NAMES: &str = "l1, l2, group, l21, hoyer, smooth, steps, none";

/// A built-in penalty by its name on the command line.
///
/// # Errors
/// [`Error::UnknownName`] for a name that is not in [`NAMES`].
pub fn by_name(name: &str) -> Result<Arc<dyn Penalty>> {
    Ok(match name {
        "l1" => Arc::new(L1),
        "l2" => Arc::new(SquaredL2),
        "group" => Arc::new(Group),
        "l21" => Arc::new(SquaredL1),
        "hoyer" => Arc::new(Hoyer),
        "smooth" => Arc::new(Smooth),
        "steps" => Arc::new(Steps::along_rows()),
        "none" => Arc::new(NoPenalty),
        _ => {
            return Err(Error::UnknownName {
                kind: "penalty",
                name: name.into(),
                known: NAMES,
            });
        }
    })
}

/// A 1×1 tensor on the device of `w`, for parts that are constant.
fn constant_like(w: &Tensor<2>, value: f64) -> Tensor<2> {
    Tensor::full([1, 1], value, (&w.device(), w.dtype()))
}

/// The powers of a majoriser.
const fn powers(growing: f64, decaying: f64) -> MajoriserPowers {
    MajoriserPowers { growing, decaying }
}

#[cfg(test)]
pub(crate) mod tests {
    //! The common tests of every penalty: its value against a plain loop, its split against the
    //! value's differences, its tangent against the split's, and its cotangent against the tangent.

    use super::*;
    use crate::device::Device;
    use crate::numerics::{Precision, to_host};

    const SHAPE: [usize; 2] = [4, 3];
    const W: [f64; 12] = [0.3, 1.2, 0.7, 0.0, 0.4, 2.0, 1.1, 0.9, 0.05, 0.6, 0.6, 0.2];
    const DIRECTION: [f64; 12] = [
        0.5, -1.0, 0.3, 0.2, -0.4, 0.1, -0.7, 0.9, 0.8, -0.2, 0.6, -0.3,
    ];
    const COTANGENT: [f64; 12] = [
        -0.1, 0.4, 0.9, -0.5, 0.3, 0.2, 0.8, -0.6, 0.1, 0.7, -0.9, 0.25,
    ];

    fn matrix(values: &[f64]) -> Tensor<2> {
        Device::default().tensor(values.to_vec(), SHAPE, Precision::F64)
    }

    fn full(tensor: Tensor<2>) -> Vec<f64> {
        to_host(&tensor.expand(SHAPE))
    }

    fn shifted(step: f64) -> Tensor<2> {
        let values: Vec<f64> = (0..12).map(|i| W[i] + step * DIRECTION[i]).collect();
        matrix(&values)
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    /// Runs the tests. `value` is the plain-loop value of one row of W, given all rows and the
    /// row's index.
    pub fn verify(penalty: &dyn Penalty, value: impl Fn(&[[f64; 3]; 4], usize) -> f64) {
        let rows: [[f64; 3]; 4] = std::array::from_fn(|i| std::array::from_fn(|k| W[3 * i + k]));
        let values = to_host(&penalty.value(&matrix(&W)));
        for (i, got) in values.iter().enumerate() {
            let want = value(&rows, i);
            assert!((got - want).abs() < 1e-14, "row {i}: {got} {want}");
        }
        if let Some(entries) = penalty.entries(&matrix(&W)) {
            let entries = full(entries);
            for (i, want) in values.iter().enumerate() {
                let got: f64 = entries[3 * i..3 * i + 3].iter().sum();
                assert!((got - want).abs() < 1e-14, "entries of row {i}");
            }
        }

        let parts = |w: &Tensor<2>| match penalty.coupling() {
            Some(coupling) => coupling.weighted_split(w, &constant_like(w, 1.0)),
            None => penalty.split(w),
        };
        let here = parts(&matrix(&W));
        let (positive, negative) = (full(here.positive), full(here.negative));
        assert!(positive.iter().chain(&negative).all(|part| *part >= 0.0));
        let gradient: Vec<f64> = (0..12).map(|i| positive[i] - negative[i]).collect();
        let step = 1e-6;
        let total = |step: f64| to_host(&penalty.value(&shifted(step))).iter().sum::<f64>();
        let numeric = (total(step) - total(-step)) / (2.0 * step);
        assert!((dot(&gradient, &DIRECTION) - numeric).abs() < 1e-8);

        let direction = matrix(&DIRECTION);
        let tangent = match penalty.coupling() {
            Some(c) => c.weighted_tangent(&matrix(&W), &constant_like(&direction, 1.0), &direction),
            None => penalty.tangent(&matrix(&W), &direction),
        }
        .expect("built-in penalties have tangents");
        let tangent = [full(tangent.positive), full(tangent.negative)];
        let (up, down) = (parts(&shifted(step)), parts(&shifted(-step)));
        let up = [full(up.positive), full(up.negative)];
        let down = [full(down.positive), full(down.negative)];
        for part in 0..2 {
            for i in 0..12 {
                let numeric = (up[part][i] - down[part][i]) / (2.0 * step);
                assert!((tangent[part][i] - numeric).abs() < 1e-7, "{part} {i}");
            }
        }

        let reversed: Vec<f64> = COTANGENT.iter().rev().copied().collect();
        let cotangents = Split {
            positive: matrix(&COTANGENT),
            negative: matrix(&reversed),
        };
        let pulled = match penalty.coupling() {
            Some(c) => {
                c.weighted_cotangent(&matrix(&W), &constant_like(&direction, 1.0), &cotangents)
            }
            None => penalty.cotangent(&matrix(&W), &cotangents),
        }
        .expect("built-in penalties have cotangents");
        let forward = dot(&tangent[0], &COTANGENT) + dot(&tangent[1], &reversed);
        let backward = dot(&full(pulled), &DIRECTION);
        assert!((forward - backward).abs() < 1e-13, "{forward} {backward}");

        // Rows that are not zero but below the floor give finite numbers, tangent included.
        let tiny = matrix(&W.map(|w| w * 1e-160));
        if penalty.coupling().is_none() {
            let split = penalty.split(&tiny);
            let tangent = penalty.tangent(&tiny, &matrix(&DIRECTION)).unwrap();
            let pulled = penalty.cotangent(&tiny, &tangent).unwrap();
            for part in [split.positive, split.negative, pulled] {
                assert!(full(part).iter().all(|part| part.is_finite()));
            }
        }

        let zeros = matrix(&[0.0; 12]);
        let at_zero = parts(&zeros);
        assert!(
            full(at_zero.positive)
                .iter()
                .all(|part| part.is_finite() && *part >= 0.0)
        );
        assert!(full(at_zero.negative).iter().all(|part| part.is_finite()));
        assert!(to_host(&penalty.value(&zeros)).iter().all(|r| *r == 0.0));
        if let Some(host) = penalty.on_host() {
            verify_on_host(penalty, host);
        }
    }

    /// The form on plain numbers against tensor operations, for weights of every shape.
    fn verify_on_host(penalty: &dyn Penalty, host: &dyn HostPenalty) {
        let [n, rank] = SHAPE;
        let w = Rows { values: &W, rank };
        let tensor = matrix(&W);
        let cotangents = [COTANGENT, DIRECTION];
        let [of_positive, of_negative] = &cotangents;
        for shape in [[1, 1], [1, rank], [n, 1], [n, rank]] {
            let values: Vec<f64> = (0..shape[0] * shape[1])
                .map(|at| 0.3 + ((at * 5) % 7) as f64)
                .collect();
            let weight = Device::default().tensor(values.clone(), shape, Precision::F64);
            let spread = Spread::new(values, shape);
            let close = |a: &[f64], b: &[f64]| {
                assert_eq!(a.len(), b.len());
                let near = a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-13);
                assert!(near, "{} {shape:?}: {a:?} {b:?}", penalty.name());
            };
            // (All rows in two tasks.)
            let parts = [0..1, 1..n];
            let entries = penalty.entries(&tensor).expect("a sum over entries");
            let value = to_host(&(entries * weight.clone())).iter().sum::<f64>();
            let found = parts
                .iter()
                .map(|rows| host.weighted_value(w, &spread, rows.clone()));
            close(&[found.sum()], &[value]);

            let split = match penalty.coupling() {
                Some(coupling) => coupling.weighted_split(&tensor, &weight),
                None => penalty.split(&tensor).scaled(&weight),
            };
            let bars = Split {
                positive: matrix(of_positive),
                negative: matrix(of_negative),
            };
            let (factor, weights) = match penalty.coupling() {
                Some(coupling) => (
                    coupling.weighted_cotangent(&tensor, &weight, &bars),
                    coupling.weight_cotangent(&tensor, &bars),
                ),
                None => {
                    let split = penalty.split(&tensor);
                    let of_weight = split.positive * bars.positive.clone()
                        + split.negative * bars.negative.clone();
                    let bars = bars.scaled(&weight);
                    (penalty.cotangent(&tensor, &bars), Some(of_weight))
                }
            };
            let mut sums = [[0.0; 12], [0.0; 12], [0.0; 12], [f64::NAN; 12]];
            for rows in parts {
                let [positive, negative, factor, weights] = &mut sums;
                let slots = rows.start * rank..rows.end * rank;
                let (positive, negative) =
                    (&mut positive[slots.clone()], &mut negative[slots.clone()]);
                host.add_split(w, &spread, rows.clone(), positive, negative);
                let bars = [of_positive, of_negative].map(|values| Rows { values, rank });
                let (factor, weights) = (&mut factor[slots.clone()], &mut weights[slots]);
                host.add_cotangent(w, &spread, bars, rows, factor, weights);
            }
            let expected = [
                split.positive,
                split.negative,
                factor.unwrap(),
                weights.unwrap(),
            ];
            for (found, expected) in sums.iter().zip(expected) {
                close(found, &full(expected));
            }
        }
    }

    #[test]
    fn every_name_leads_to_the_penalty_of_that_name() {
        for name in NAMES.split(", ") {
            assert_eq!(by_name(name).unwrap().name(), name);
        }
        assert!(matches!(by_name("L1"), Err(Error::UnknownName { .. })));
    }
}
