//! What can go wrong, each case with its numbers.

use std::path::PathBuf;

use crate::solver::Outcome;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that altbi refuses or cannot do.
///
/// Each variant names the condition that was violated and carries the numbers:
/// rows and columns count from 0. What is wrong with a caller's data or settings
/// is an `Error`; a broken invariant inside the crate is a panic.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A matrix without rows or without columns.
    #[error("{what} is empty: {rows} rows, {columns} columns")]
    EmptyMatrix {
        /// Which matrix.
        what: &'static str,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// A negative entry where all must be nonnegative.
    #[error(
        "{what} must be nonnegative: entry at row {row}, column {column} is {value} (counted from 0)"
    )]
    NegativeEntry {
        /// Which matrix.
        what: &'static str,
        /// Row of the first such entry.
        row: usize,
        /// Column of the first such entry.
        column: usize,
        /// Its value.
        value: f64,
    },
    /// A NaN or an infinity where all must be finite.
    #[error(
        "{what} must be finite: entry at row {row}, column {column} is {value} (counted from 0)"
    )]
    NotFiniteEntry {
        /// Which matrix.
        what: &'static str,
        /// Row of the first such entry.
        row: usize,
        /// Column of the first such entry.
        column: usize,
        /// Its value.
        value: f64,
    },
    /// A matrix of zeros has nothing to factorise.
    #[error(
        "X ({rows}×{columns}) has no observed entry above {floor:e}; there is nothing to factorise"
    )]
    AllZero {
        /// Rows of X.
        rows: usize,
        /// Columns of X.
        columns: usize,
        /// What counts as zero.
        floor: f64,
    },
    /// An entry that the chosen divergence cannot measure.
    #[error(
        "{divergence} needs {condition}: the entry of X at row {row}, column {column} is {value} (counted from 0)"
    )]
    OutsideDomain {
        /// The divergence.
        divergence: String,
        /// What it asks of each entry.
        condition: String,
        /// Row of the first such entry.
        row: usize,
        /// Column of the first such entry.
        column: usize,
        /// Its value.
        value: f64,
    },
    /// A row of X whose weights are all zero.
    #[error("row {row} of X has no observed entry: every weight of its mask is 0 (counted from 0)")]
    UnobservedRow {
        /// The first such row.
        row: usize,
    },
    /// A column of X whose weights are all zero.
    #[error(
        "column {column} of X has no observed entry: every weight of its mask is 0 (counted from 0)"
    )]
    UnobservedColumn {
        /// The first such column.
        column: usize,
    },
    /// A matrix of the wrong shape.
    #[error("{what} must be {}×{}, not {}×{}", expected[0], expected[1], found[0], found[1])]
    Shape {
        /// Which matrix.
        what: &'static str,
        /// The shape that fits.
        expected: [usize; 2],
        /// The shape that came.
        found: [usize; 2],
    },
    /// A slice whose length is not rows times columns.
    #[error("a {rows}×{columns} matrix has {} entries; the slice has {length}", rows * columns)]
    SliceLength {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        columns: usize,
        /// Entries given.
        length: usize,
    },
    /// A rank outside 1 … min(n, m).
    #[error(
        "rank must lie between 1 and min(n, m) = {}, not {rank}: more components than rows or columns of X ({rows}×{columns}) are not determined by it",
        rows.min(columns)
    )]
    Rank {
        /// The rank asked for.
        rank: usize,
        /// Rows of X.
        rows: usize,
        /// Columns of X.
        columns: usize,
    },
    /// A rank is needed, and nothing tells it.
    #[error("say how many components to look for: --rank R")]
    RankMissing,
    /// A setting outside its range.
    #[error("{setting} must be {range}, not {value}")]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// The value it had.
        value: f64,
        /// The values it may have.
        range: &'static str,
    },
    /// A name that stands for nothing.
    #[error("there is no {kind} '{name}'; known: {known}")]
    UnknownName {
        /// What kind of thing was named.
        kind: &'static str,
        /// The name.
        name: String,
        /// Names that exist.
        known: &'static str,
    },
    /// Two settings that exclude each other.
    #[error("{first} and {second} exclude each other: {reason}")]
    Conflict {
        /// One of them.
        first: &'static str,
        /// The other.
        second: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// No exponent is known that makes the update monotone.
    #[error(
        "no exponent is known that keeps the multiplicative update monotone with {part}; use the exponent 'one'"
    )]
    NoMonotoneExponent {
        /// The divergence or penalty without one.
        part: String,
    },
    /// A hypergradient mode that cannot do what was asked of it.
    #[error("{mode} mode cannot do this: {reason}")]
    ModeUnsupported {
        /// The mode.
        mode: &'static str,
        /// What it lacks.
        reason: String,
    },
    /// The implicit mode is exact only at a fixed point of the update.
    #[error(
        "implicit mode needs a fixed point of the update: after {updates} updates an entry of the factor still moves by {residual:.2e} of the largest one (tolerance {tolerance:e})"
    )]
    NoFixedPoint {
        /// Updates done.
        updates: usize,
        /// Largest movement of an entry in the last update, relative to the
        /// largest entry of its row.
        residual: f64,
        /// What was asked for.
        tolerance: f64,
    },
    /// At a degenerate fixed point the derivative does not exist.
    #[error(
        "implicit mode needs I − A to be invertible: for row {row} its smallest singular value is {ratio:.2e} of the largest (counted from 0)"
    )]
    SingularFixedPoint {
        /// The first such row.
        row: usize,
        /// Smallest over largest singular value of I − A.
        ratio: f64,
    },
    /// The run blew up.
    #[error("{quantity} became non-finite in iteration {iteration}; the state before it is kept")]
    NotFinite {
        /// The iteration in which it happened; 0 is the start.
        iteration: usize,
        /// Divergence, W, H, λ or hypergradient.
        quantity: &'static str,
        /// The last finite state, with its history, unless the start itself was
        /// not finite.
        last: Option<Box<Outcome>>,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file name whose ending altbi does not know.
    #[error("{}: the ending must be one of {known}", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
        /// Endings that exist.
        known: &'static str,
    },
    /// A .npy file that is not an array of floats with one or two dimensions.
    #[error("{}: not a usable .npy file: {reason}", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A .csv file whose rows differ in length.
    #[error("{}: line {line} has {found} fields where {expected} were expected", path.display())]
    RaggedCsv {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// Fields of the first row.
        expected: u64,
        /// Fields of this row.
        found: u64,
    },
    /// A field of a .csv file that is not a number.
    #[error("{}: line {line}, field {field}: '{text}' is not a number", path.display())]
    CsvNumber {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// The field, counted from 1.
        field: usize,
        /// What stands there.
        text: String,
    },
    /// A run folder is never overwritten unless asked.
    #[error("{} exists already; choose another folder or pass --force", path.display())]
    RunFolderExists {
        /// The folder.
        path: PathBuf,
    },
}
