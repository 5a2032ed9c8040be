//! Reference problems, and distances.

use altbi::{Error, Precision, Problem, ToMatrix};
use burn::tensor::Tensor;
use ndarray::Array2;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A matrix or vector as the reference files hold it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    Matrix(Vec<Vec<f64>>),
    Vector(Vec<f64>),
}

impl ToMatrix for Numbers {
    /// A vector is a column.
    fn to_matrix(&self) -> Result<Array2<f64>, Error> {
        let (rows, columns, values) = match self {
            Self::Matrix(rows) => (rows.len(), rows[0].len(), rows.concat()),
            Self::Vector(values) => (values.len(), 1, values.clone()),
        };
        (&values[..], [rows, columns]).to_matrix()
    }
}

impl Numbers {
    pub fn array(&self) -> Array2<f64> {
        self.to_matrix().unwrap()
    }

    pub fn tensor(&self, problem: &Problem) -> Tensor<2> {
        let array = self.array();
        let shape = [array.nrows(), array.ncols()];
        problem.tensor("reference", &array, shape).unwrap()
    }
}

/// Reads a file of reference numbers (see tests/data/README.md).
pub fn reference<T: DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// `max |a − b| / max |b|` (absolute where b is all zero), and infinite for other shapes.
pub fn distance(a: &impl ToMatrix, b: &impl ToMatrix) -> f64 {
    let (a, b) = (a.to_matrix().unwrap(), b.to_matrix().unwrap());
    if a.dim() != b.dim() {
        return f64::INFINITY;
    }
    let largest = b.iter().fold(0.0f64, |most, b| most.max(b.abs()));
    let scale = if largest > 0.0 { largest } else { 1.0 };
    // A NaN must not vanish in a maximum: it counts as infinite.
    let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs());
    let apart = apart.map(|apart| if apart.is_nan() { f64::INFINITY } else { apart });
    apart.fold(0.0, f64::max) / scale
}

#[track_caller]
pub fn assert_close(what: &str, a: &impl ToMatrix, b: &impl ToMatrix, tolerance: f64) {
    let distance = distance(a, b);
    assert!(
        distance <= tolerance,
        "{what}: relative difference {distance:e}"
    );
}

/// A reproducible positive matrix without a generator: an irrational rotation.
pub fn matrix(rows: usize, columns: usize, seed: f64) -> Array2<f64> {
    Array2::from_shape_fn((rows, columns), |(i, j)| {
        let angle = seed + 0.618_033_988_75 * (i * columns + j + 1) as f64;
        0.05 + (angle * 7.3).fract()
    })
}

pub fn problem(x: &Array2<f64>) -> Problem {
    Problem::new(x, Precision::F64).unwrap()
}
