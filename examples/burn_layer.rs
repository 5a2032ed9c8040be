//! altbi as a layer in a Burn training loop.
//!
//! A linear encoder guesses W from X in one step. The layer improves the guess by four
//! multiplicative updates and returns the error of the result. Everything is on the caller's tape:
//! one `backward` goes through the error, the updates (with the dictionary H and the weights λ) and
//! the encoder. So the encoder learns a good start for the updates.
//!
//! ```text
//! cargo run --release --example burn_layer
//! ```

use std::sync::Arc;

use altbi::update::Rule;
use altbi::{Beta, Bunch, L1, Pair, PenaltyTerm, Precision, Problem, Result, Side, Span, Training};
use burn::tensor::activation::softplus;
use burn::tensor::{DType, Tensor, TensorData};

/// All learned parameters.
#[derive(Clone)]
struct Parameters {
    /// m×r: the guess is `softplus(X encoder)`.
    encoder: Tensor<2>,
    /// m×r: Hᵀ is its exponential.
    dictionary: Tensor<2>,
    /// n×1: λ is its exponential.
    weights: Tensor<2>,
}

impl Parameters {
    fn each(&self, f: impl Fn(&Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            encoder: f(&self.encoder),
            dictionary: f(&self.dictionary),
            weights: f(&self.weights),
        }
    }

    /// The loss of the layer on the encoder's guess.
    fn loss(&self, layer: &Bunch, x: &Tensor<2>) -> Tensor<1> {
        let guess = softplus(x.clone().matmul(self.encoder.clone()), 1.0);
        let pair = Pair {
            w: guess,
            h: self.dictionary.clone().exp(),
        };
        let improved = layer.run(&pair, &[self.weights.clone().exp()]);
        layer.outer_errors(&improved).sum()
    }

    /// The loss, and its gradients by Burn's tape.
    fn slopes(&self, layer: &Bunch, x: &Tensor<2>) -> (f64, Self) {
        let leaves = self.each(|tensor| tensor.clone().autodiff().require_grad());
        let loss = leaves.loss(layer, &x.clone().autodiff());
        let slopes = loss.backward();
        let slopes = leaves.each(|leaf| {
            leaf.grad(&slopes)
                .expect("it is on the way")
                .without_autodiff()
        });
        (loss.into_scalar::<f64>(), slopes)
    }
}

fn main() -> Result<()> {
    let (rows, columns, rank) = (60, 20, 3);
    let data = altbi::data::benchmark_a(rows, columns, rank, 7).x + 0.01;
    let problem = Problem::new(&data, Precision::F64)?;
    let x = problem.tensor("X", &data, [rows, columns])?;

    let rule = Rule::new(Arc::new(Beta::KL), vec![PenaltyTerm::tuned(L1)]);
    let (of_h, span) = (
        Rule::new(Arc::new(Beta::KL), Vec::new()),
        Span::One(Side::W),
    );
    let layer = Bunch::fused(&problem, rule, of_h, Arc::new(Training), span, 4)?;

    // The caller's own tensors, on the device of the problem.
    let device: burn::tensor::Device = problem.device().clone().into();
    let draw = |[rows, columns]: [usize; 2], scale: f64| {
        let entry = |place: usize| scale * ((place * 7 % 11) as f64 / 11.0 - 0.5);
        let entries: Vec<f64> = (0..rows * columns).map(entry).collect();
        Tensor::<2>::from_data(
            TensorData::new(entries, [rows, columns]),
            (&device, DType::F64),
        )
    };
    let mut parameters = Parameters {
        encoder: draw([columns, rank], 0.1),
        dictionary: draw([columns, rank], 1.0),
        weights: draw([rows, 1], 0.1) - 3.0,
    };

    // Compares the gradient with a central difference in one number of the dictionary.
    let (first, slopes) = parameters.slopes(&layer, &x);
    let moved = |by: f64| {
        let mut one = vec![0.0; columns * rank];
        one[4 * rank + 1] = by;
        let one =
            Tensor::<2>::from_data(TensorData::new(one, [columns, rank]), (&device, DType::F64));
        let dictionary = parameters.dictionary.clone() + one;
        let moved = Parameters {
            dictionary,
            ..parameters.clone()
        };
        moved.loss(&layer, &x).into_scalar::<f64>()
    };
    let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
    let slope = slopes.dictionary.slice([4..5, 1..2]).into_scalar::<f64>();
    println!("slope {slope:.8}, by differences {difference:.8}");
    assert!((slope - difference).abs() < 1e-6 * difference.abs().max(1.0));

    // Gradient descent, with a step of the same length for each tensor.
    let mut last = first;
    for step in 0..300 {
        let (loss, slopes) = parameters.slopes(&layer, &x);
        let rate = 0.1 / (1.0 + 0.02 * step as f64);
        let descended = |tensor: &Tensor<2>, slope: Tensor<2>| {
            let steepest = slope.clone().abs().max().into_scalar::<f64>().max(1e-12);
            tensor.clone() - slope * (rate / steepest)
        };
        parameters = Parameters {
            encoder: descended(&parameters.encoder, slopes.encoder),
            dictionary: descended(&parameters.dictionary, slopes.dictionary),
            weights: descended(&parameters.weights, slopes.weights),
        };
        last = loss;
        if step % 60 == 0 {
            println!("step {step:>3}: loss {loss:.4}");
        }
    }
    println!("loss from {first:.4} to {last:.4}");
    assert!(last < 0.1 * first);
    Ok(())
}

#[test]
fn verifies_itself() {
    main().unwrap();
}
