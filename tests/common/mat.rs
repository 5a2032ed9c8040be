//! .mat files made by hand, level 5.

use ndarray::Array2;

/// An element of a .mat file: type, length, contents, padding to eight bytes.
pub fn element(kind: u32, contents: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend((contents.len() as u32).to_le_bytes());
    bytes.extend(contents);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// A matrix element; class 6 is double, class 4 text.
pub fn mat_matrix(name: &str, matrix: &Array2<f64>, class: u32) -> Vec<u8> {
    let flags = [class.to_le_bytes(), 0u32.to_le_bytes()].concat();
    let dimensions = [matrix.nrows() as i32, matrix.ncols() as i32];
    let dimensions: Vec<u8> = dimensions.iter().flat_map(|d| d.to_le_bytes()).collect();
    let column_major = matrix.t();
    let (kind, values): (u32, Vec<u8>) = if class == 4 {
        let letters = column_major.iter().flat_map(|v| (*v as u16).to_le_bytes());
        (4, letters.collect())
    } else {
        (
            9,
            column_major.iter().flat_map(|v| v.to_le_bytes()).collect(),
        )
    };
    let parts = [
        element(6, &flags),
        element(5, &dimensions),
        element(1, name.as_bytes()),
        element(kind, &values),
    ];
    element(14, &parts.concat())
}

/// A whole file of these elements.
pub fn mat_file(elements: &[Vec<u8>]) -> Vec<u8> {
    let mut header = b"MATLAB 5.0 MAT-file, made by hand".to_vec();
    header.resize(124, b' ');
    header.extend([0x00, 0x01]);
    header.extend(b"IM");
    [header, elements.concat()].concat()
}
