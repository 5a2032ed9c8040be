//! A folder like the one that the paper's authors published.

use std::path::Path;

use altbi::data::{benchmark_b, benchmark_c, benchmark_d};
use ndarray::Array2;

use super::mat::{mat_file, mat_matrix};

/// Files with the names, variables and orientation of the published ones.
pub fn published_folder(folder: &Path, a: &Array2<f64>, spectra: usize) {
    let write = |file: &str, name: &str, matrix: &Array2<f64>| {
        let bytes = mat_file(&[mat_matrix(name, matrix, 6)]);
        std::fs::write(folder.join(file), bytes).unwrap();
    };
    write("Benchmark_A.mat", "X", a);
    write("Benchmark_B.mat", "X", &benchmark_b(60, 12, 5, 1).x);
    let signals = benchmark_c(60, 12, 10, 4).w;
    write("AC10_art_spectr_noi.mat", "X", &signals.t().to_owned());
    let reflectances = benchmark_d(40, 6, spectra, 5).w;
    write("USGS_pruned_10_deg.mat", "B", &reflectances);
}
