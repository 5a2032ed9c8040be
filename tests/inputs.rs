//! Whatever a caller has: arrays, views, slices, tensors, sparse parts, a device of his own.

use altbi::{
    AltBiConfig, Beta, Error, L1, Outcome, Precision, Problem, SparseMatrix, ToMatrix, Zeros,
};
use burn::tensor::{DType, Tensor, TensorData};
use ndarray::{Array2, ArrayView2, CowArray, s};

const ROWS: usize = 9;
const COLUMNS: usize = 6;

/// Small whole numbers, so that every type holds them exactly.
fn x() -> Array2<f64> {
    Array2::from_shape_fn((ROWS, COLUMNS), |(i, j)| ((i * 7 + j * 5) % 11) as f64)
}

fn fit(x: &(impl ToMatrix + ?Sized)) -> Outcome {
    let config = AltBiConfig::new(2).with_max_iterations(15);
    config.solver(Beta::KL, L1).fit(x).unwrap()
}

#[track_caller]
fn assert_same(expected: &Outcome, x: &(impl ToMatrix + ?Sized)) {
    let found = fit(x);
    assert_eq!(found.w, expected.w);
    assert_eq!(found.lambda, expected.lambda);
}

#[test]
fn every_kind_of_array_gives_the_same_run() {
    let x = x();
    let expected = fit(&x);
    assert_same(&expected, &x.view());
    assert_same(&expected, &CowArray::from(x.view()));
    assert_same(&expected, &x.to_shared());
    // Other memory orders: by columns, a part of something larger, backwards.
    assert_same(&expected, &x.t().to_owned().t());
    let mut larger = Array2::from_elem((2 * ROWS, COLUMNS + 3), f64::NAN);
    larger.slice_mut(s![..;2, 2..COLUMNS + 2]).assign(&x);
    assert_same(&expected, &larger.slice(s![..;2, 2..COLUMNS + 2]));
    let backwards = x.slice(s![..;-1, ..]).to_owned();
    assert_same(&expected, &backwards.slice(s![..;-1, ..]));
    // Other numbers.
    assert_same(&expected, &x.mapv(|value| value as f32));
    assert_same(&expected, &x.mapv(|value| value as u8));
    let counts: Vec<u32> = x.iter().map(|value| *value as u32).collect();
    let counts = &counts[..];
    assert_same(&expected, &(counts, [ROWS, COLUMNS]));
    assert_same(
        &expected,
        &ArrayView2::from_shape((ROWS, COLUMNS), counts).unwrap(),
    );
    let short = (counts, [ROWS, COLUMNS + 1]).to_matrix();
    assert!(matches!(short, Err(Error::SliceLength { length: 54, .. })));
}

#[test]
fn a_callers_device_is_taken_and_tensors_come_back_on_it() {
    let x = x();
    let expected = fit(&x);
    let own: burn::tensor::Device = Problem::new(&x, Precision::F64)
        .unwrap()
        .device()
        .clone()
        .into();
    // The caller's own work records a tape.
    for device in [own.clone(), own.clone().autodiff()] {
        let values: Vec<f64> = x.iter().copied().collect();
        let data = TensorData::new(values, [ROWS, COLUMNS]);
        let tensor = Tensor::<2>::from_data(data, (&device, DType::F64));
        assert_same(&expected, &tensor);
        let config = AltBiConfig::new(2).with_max_iterations(15);
        let mut solver = config.solver(Beta::KL, L1).on(device.clone());
        let outcome = solver.fit(&tensor).unwrap();
        assert_eq!(outcome.w, expected.w);
        assert_eq!(outcome.engine.name(), "fused");
        let w = outcome.w_tensor();
        assert_eq!(w.device(), own);
        assert!(!w.is_autodiff());
        let problem = Problem::new(&tensor, Precision::F64).unwrap().on(device);
        let back = problem.tensor("x", &x, [ROWS, COLUMNS]).unwrap();
        assert_eq!(back.device(), own);
    }
}

#[test]
fn sparse_parts_are_checked_and_give_the_dense_run() {
    let x = x();
    let triplets = x.indexed_iter().filter(|(_, value)| **value > 0.0);
    let triplets = triplets.map(|((i, j), value)| (i as u32, j as u32, *value));
    let by_triplets = SparseMatrix::from_triplets([ROWS, COLUMNS], triplets.collect()).unwrap();
    let by_parts = SparseMatrix::from_parts(
        by_triplets.shape(),
        by_triplets.starts().to_vec(),
        by_triplets.columns().to_vec(),
        by_triplets.values().to_vec(),
    )
    .unwrap();
    let expected = fit(&x);
    for matrix in [by_triplets, by_parts] {
        let problem = Problem::sparse(matrix, Zeros::Data, None, Precision::F64).unwrap();
        let config = AltBiConfig::new(2).with_max_iterations(15);
        let outcome = config.solver(Beta::KL, L1).run(&problem).unwrap();
        let distance = (&outcome.w - &expected.w).mapv(f64::abs).sum();
        assert!(distance < 1e-8, "{distance:e}");
    }
    let outside = SparseMatrix::from_triplets([2, 2], vec![(0, 2, 1.0)]);
    assert!(matches!(outside, Err(Error::SparseIndex { column: 2, .. })));
    let twice = SparseMatrix::from_triplets([2, 2], vec![(0, 1, 1.0), (0, 1, 2.0)]);
    assert!(matches!(twice, Err(Error::DuplicateEntry { .. })));
    let torn = SparseMatrix::from_parts([2, 2], vec![0, 1], vec![0], vec![1.0]);
    assert!(matches!(torn, Err(Error::SparseParts { .. })));
}
