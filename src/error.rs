//! Errors, each with its numbers.

use std::path::{Path, PathBuf};

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// All errors of altbi.
///
/// Each variant names the violated condition and carries the numbers. Rows and columns are counted
/// from 0. Bad data or settings of a caller give an `Error`; a broken invariant inside the crate
/// panics.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A matrix without rows or without columns.
    #[error("{what} is empty: {rows} rows, {columns} columns")]
    EmptyMatrix {
        /// Name of the matrix.
        what: &'static str,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
    },
    /// The fused engine cannot do something that a run asks for.
    #[error(
        "the fused engine cannot do this: {reason}; --engine autodiff can (library: EngineChoice::Autodiff)"
    )]
    EngineUnsupported {
        /// The unsupported request.
        reason: String,
    },
    /// A part that only a build with a feature has.
    #[error("{what} is not part of this build: build with --features {feature}")]
    NotBuilt {
        /// Name of the missing part.
        what: &'static str,
        /// The feature that has it.
        feature: &'static str,
    },
    /// The engines differ in the first iteration.
    #[error(
        "the fused engine and autodiff disagree about {quantity}: largest relative difference {difference:e}, allowed {tolerance:e}; --engine autodiff (library: EngineChoice::Autodiff) runs without the fused engine; please report this run"
    )]
    EnginesDisagree {
        /// Name of the matrix.
        quantity: &'static str,
        /// The largest difference, relative to the largest entry.
        difference: f64,
        /// The largest difference that is allowed.
        tolerance: f64,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// Their number.
        threads: usize,
        /// Error of the system.
        reason: String,
    },
    /// A negative entry where all must be nonnegative.
    #[error(
        "{what} must be nonnegative: entry at row {row}, column {column} is {value} (counted from 0)"
    )]
    NegativeEntry {
        /// Name of the matrix.
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
        "{what} must be finite in the run's floating-point type: entry at row {row}, column {column} is {value} (counted from 0)"
    )]
    NotFiniteEntry {
        /// Name of the matrix.
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
        /// Entries at or below this count as zero.
        floor: f64,
    },
    /// An entry that the chosen divergence cannot measure.
    #[error(
        "{divergence} needs {condition}: the entry of X at row {row}, column {column} is {} (counted from 0)", plain(*value)
    )]
    OutsideDomain {
        /// The divergence.
        divergence: String,
        /// Its condition on each entry.
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
        /// Name of the matrix.
        what: &'static str,
        /// The shape that fits.
        expected: [usize; 2],
        /// The shape found.
        found: [usize; 2],
    },
    /// A tensor of another floating-point type.
    #[error("{what} must be of type {expected}, not {found}")]
    Precision {
        /// Name of the tensor.
        what: &'static str,
        /// The type of the problem's tensors.
        expected: String,
        /// The type found.
        found: String,
    },
    /// Data in units that the floating-point type cannot work with.
    #[error(
        "the largest entry of X is {largest:e}; in {precision} it must lie between {least:e} and {most:e}: scale X{}",
        if *precision == "f32" { ", or use f64" } else { "" }
    )]
    Scale {
        /// The largest entry.
        largest: f64,
        /// The floating-point type.
        precision: &'static str,
        /// The smallest allowed value.
        least: f64,
        /// The largest allowed value.
        most: f64,
    },
    /// A factor of zeros, which no multiplicative update can leave.
    #[error("{what} at the start must have a positive entry: multiplicative updates never leave 0")]
    ZeroFactor {
        /// Name of the factor.
        what: &'static str,
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
    /// Parts of a sparse matrix that do not fit together.
    #[error("these are not the parts of a sparse matrix: {reason}")]
    SparseParts {
        /// Description of the fault.
        reason: String,
    },
    /// An entry outside its sparse matrix.
    #[error(
        "an entry at row {row}, column {column} lies outside a {rows}×{columns} matrix (counted from 0)"
    )]
    SparseIndex {
        /// Row of the first such entry.
        row: usize,
        /// Its column.
        column: usize,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
    },
    /// An entry of a sparse matrix that is stored twice.
    #[error(
        "the entry at row {row}, column {column} is stored more than once (counted from 0): add such entries up first (SciPy: sum_duplicates())"
    )]
    DuplicateEntry {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
    },
    /// A request that needs every entry of X to be stored.
    #[error("a sparse X cannot do this: {reason}")]
    SparseUnsupported {
        /// The unsupported request, and an alternative.
        reason: String,
    },
    /// A rank outside 1 … min(n, m).
    #[error(
        "rank must lie between 1 and min(n, m) = {}, not {rank}{}",
        rows.min(columns),
        if *rank == 0 { String::new() } else { format!(": X ({rows}×{columns}) cannot determine more components than it has rows or columns") }
    )]
    Rank {
        /// The rank asked for.
        rank: usize,
        /// Rows of X.
        rows: usize,
        /// Columns of X.
        columns: usize,
    },
    /// The rank is not given.
    #[error("the number of components is not given: use --rank R")]
    RankMissing,
    /// A single number has no structure.
    #[error("X is 1×1: there is nothing to factorise in a single number")]
    TooSmall,
    /// Fewer rows than several processes can share.
    #[error(
        "{rows} rows cannot be split over {processes} processes: each needs two; start fewer processes"
    )]
    FewRows {
        /// Rows of X.
        rows: usize,
        /// Number of processes.
        processes: usize,
    },
    /// A request that needs all rows in one process.
    #[error("{what} cannot be split over {processes} processes: {reason}")]
    NotSplit {
        /// The request.
        what: String,
        /// Number of processes.
        processes: usize,
        /// The reason, and an alternative.
        reason: &'static str,
    },
    /// Another process of the run has failed and reports the reason.
    #[error("process {process} has failed")]
    OtherProcess {
        /// Its number.
        process: usize,
    },
    /// A setting outside its range.
    #[error("{setting} must be {range}, not {}", plain(*value))]
    Setting {
        /// The setting's name.
        setting: &'static str,
        /// The value it had.
        value: f64,
        /// The values it may have.
        range: &'static str,
    },
    /// An unknown name.
    #[error("there is no {kind} '{name}'; known: {known}")]
    UnknownName {
        /// Kind of the named thing.
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
        /// The reason.
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
    /// A request that a hypergradient mode does not support.
    #[error("{mode} mode cannot do this: {reason}")]
    ModeUnsupported {
        /// The mode.
        mode: &'static str,
        /// The unsupported request.
        reason: String,
    },
    /// A scope of λ that the penalty does not support.
    #[error("λ cannot have the scope {scope}: {reason}")]
    ScopeUnsupported {
        /// The scope.
        scope: String,
        /// The reason.
        reason: String,
    },
    /// New rows or columns under a penalty that couples them.
    #[error(
        "the penalty {penalty} compares {what} with their neighbours, and new {what} have none: encode them without penalties (--plain; library: Model::without_penalties)"
    )]
    CoupledPenalty {
        /// The penalty.
        penalty: String,
        /// Rows or columns.
        what: &'static str,
    },
    /// Data whose features are not those of a run.
    #[error("the {what} of the data differ from those of the run: {reason}")]
    Features {
        /// Rows or columns.
        what: &'static str,
        /// The names in which they differ.
        reason: String,
    },
    /// Data that has changed since a run.
    #[error("{data} has changed since the run {}: its fingerprint differs from the one in summary.json", run.display())]
    DataChanged {
        /// The data.
        data: String,
        /// The run folder.
        run: PathBuf,
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
        /// The tolerance.
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
    #[error(
        "{quantity} {}",
        if *iteration == 0 { "is not finite at the start".into() } else { format!("became non-finite in iteration {iteration}") }
    )]
    NotFinite {
        /// The iteration in which it happened; 0 is the start.
        iteration: usize,
        /// Divergence, W, H, λ or hypergradient.
        quantity: &'static str,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the system.
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
    /// A matrix that does not fit in memory.
    #[error(
        "{}: the matrix is {rows}×{columns}, {gigabytes:.1} GB as 64-bit floats; X may take at most a quarter of the {free:.1} GB of free memory, because a fit needs several copies of it",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// Its size in memory, in gigabytes.
        gigabytes: f64,
        /// Memory that is free, in gigabytes.
        free: f64,
    },
    /// A .npy file that is not an array of floats with one or two dimensions.
    #[error("{}: not a usable .npy file: {reason}", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A .mat file without a usable matrix.
    #[error("{}: not a usable .mat file: {reason}", path.display())]
    Mat {
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A .mat or .npz file with several matrices, or none of that name.
    #[error(
        "{}: {}; it holds the matrices {known} (use {}:NAME)",
        path.display(),
        variable.as_ref().map_or("the name of the matrix is needed".into(), |name| format!("there is no matrix '{name}'")),
        path.display()
    )]
    MatVariable {
        /// The file.
        path: PathBuf,
        /// The name asked for.
        variable: Option<String>,
        /// The names there are.
        known: String,
    },
    /// A table whose rows differ in length.
    #[error("{name}: line {line} has {found} fields where {expected} were expected")]
    RaggedTable {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// Fields of the first row.
        expected: usize,
        /// Fields of this row.
        found: usize,
    },
    /// A field of a table that is not a number.
    #[error(
        "{name}: line {line}, field {field}: '{text}' is not a number with a decimal {decimal} (words are allowed only as names in the first row or column; --header, --labels, --separator and --decimal change how the table is read)"
    )]
    NotANumber {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// The field, counted from 1.
        field: usize,
        /// The decimal sign of this table.
        decimal: String,
        /// Text of the field.
        text: String,
    },
    /// A word for a missing entry where none may be missing.
    #[error(
        "{name}: line {line}, field {field}: '{text}' is not a number; if it means a missing entry, --missing mask leaves it out of the fit"
    )]
    MissingField {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// The field, counted from 1.
        field: usize,
        /// Text of the field.
        text: String,
    },
    /// Bytes that are not text in the encoding of a table.
    #[error(
        "{name}: line {line} is not {encoding} text; use --encoding to name the encoding (utf-8, utf-16, latin-1)"
    )]
    NotText {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// The encoding it was read in.
        encoding: String,
    },
    /// A truncated or inconsistent Matrix Market file.
    #[error("{}: not a usable Matrix Market file: line {line}: {reason}", path.display())]
    MatrixMarket {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// Description of the fault.
        reason: String,
    },
    /// A .npz file without a usable matrix.
    #[error("{}: not a usable .npz file: {reason}", path.display())]
    Npz {
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A .parquet file without a usable table.
    #[error("{}: not a usable .parquet file: {reason}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A sparse matrix with more rows and columns than fit in memory.
    #[error(
        "{}: the matrix is {rows}×{columns}; its rows and columns alone take {gigabytes:.1} GB, even without entries; X may take at most a quarter of the {free:.1} GB of free memory",
        path.display()
    )]
    TooManyLines {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// Their size in memory, in gigabytes.
        gigabytes: f64,
        /// Memory that is free, in gigabytes.
        free: f64,
    },
    /// A file whose contents (after decompression) do not fit in memory.
    #[error(
        "{}: its contents take more than {gigabytes:.1} GB, a quarter of the {free:.1} GB of free memory; reading stops here",
        path.display()
    )]
    ContentsTooLarge {
        /// The file.
        path: PathBuf,
        /// The largest allowed size of its contents, in gigabytes.
        gigabytes: f64,
        /// Memory that is free, in gigabytes.
        free: f64,
    },
    /// Missing entries without `--missing mask`.
    #[error(
        "{} missing, the first at row {row}, column {column} (counted from 0); --missing mask leaves them out of the fit",
        if *count == 1 { "1 entry of X is".into() } else { format!("{count} entries of X are") }
    )]
    Missing {
        /// Their number.
        count: usize,
        /// Row of the first.
        row: usize,
        /// Column of the first.
        column: usize,
    },
    /// A bad configuration file.
    #[error("{}: {reason}", path.display())]
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// A run folder without a checkpoint has nothing to resume.
    #[error("{}: there is no checkpoint to resume from ({reason})", path.display())]
    NoCheckpoint {
        /// The run folder.
        path: PathBuf,
        /// The reason.
        reason: &'static str,
    },
    /// An unfinished run.
    #[error("{}: the run is not finished; altbi resume goes on with it", path.display())]
    Unfinished {
        /// The run folder.
        path: PathBuf,
    },
    /// A run folder that another run is writing into.
    #[error("{}: another run is writing into this folder", path.display())]
    Busy {
        /// The run folder.
        path: PathBuf,
    },
    /// A command that would overwrite its input.
    #[error(
        "this command reads {}, and would write {}; choose another place for the results",
        input.display(),
        output.display()
    )]
    InputOverwritten {
        /// The file that is read.
        input: PathBuf,
        /// The file or folder that would be written.
        output: PathBuf,
    },
    /// A file is never overwritten unless asked.
    #[error("{} exists already; choose another file or pass --force", path.display())]
    FileExists {
        /// The file.
        path: PathBuf,
    },
    /// A checkpoint that cannot be used.
    #[error("the checkpoint cannot be used: {0}")]
    Checkpoint(#[from] CheckpointFault),
    /// An existing file or folder that is not a run folder.
    #[error("{} is not a run folder ({stranger}), so --force does not replace it", path.display())]
    NotARunFolder {
        /// The folder or file.
        path: PathBuf,
        /// The reason for this conclusion.
        stranger: String,
    },
    /// A folder without a run.
    #[error("{} is not a run folder: it holds no summary.json and no config.toml", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// More entries to hold out than rows and columns can spare.
    #[error(
        "cannot hold out {wanted} entries of X ({rows}×{columns}): with more than {possible}, a row or a column would have no entry left to fit"
    )]
    HoldOut {
        /// Entries to hold out.
        wanted: usize,
        /// Entries that can be held out.
        possible: usize,
        /// Rows of X.
        rows: usize,
        /// Columns of X.
        columns: usize,
    },
    /// An edge of a graph with a bad vertex or strength.
    #[error(
        "bad edge between {from} and {to} of strength {strength}: there are {vertices} vertices, counted from 0, and a strength must be finite and not negative"
    )]
    Edge {
        /// One end.
        from: usize,
        /// The other.
        to: usize,
        /// Its strength.
        strength: f64,
        /// Number of vertices.
        vertices: usize,
    },
    /// A line of a graph file that is not an edge.
    #[error("{name}: line {line}: {reason}")]
    EdgeLine {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// Description of the fault.
        reason: String,
    },
    /// A penalty for factors with another number of rows.
    #[error(
        "the penalty '{penalty}' on {factor} needs {expected} {lines}, but {factor} has {found}"
    )]
    PenaltyRows {
        /// The penalty.
        penalty: String,
        /// W or H.
        factor: &'static str,
        /// The lines that the penalty compares: rows of W, or columns of H.
        lines: &'static str,
        /// Number of lines that it needs.
        expected: usize,
        /// Number of lines of the factor.
        found: usize,
    },
    /// Pictures of another size than the data.
    #[error(
        "pictures of {height}×{width} need {} {lines} of X, and there are {found}",
        height.saturating_mul(*width)
    )]
    PictureShape {
        /// Height of a picture.
        height: usize,
        /// Its width.
        width: usize,
        /// The lines that are pixels: rows or columns.
        lines: &'static str,
        /// Number of these lines.
        found: usize,
    },
    /// An entry that cannot be thinned.
    #[error(
        "X has {value} at row {row}, column {column}, which is not a count (counted from 0): thinning needs whole numbers; for other data use --criterion held-out:<fraction>"
    )]
    NotCounts {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// The entry.
        value: f64,
    },
    /// A file with too few signals.
    #[error("{}: {wanted} signals are needed, but only {found} are suitable", path.display())]
    TooFewSignals {
        /// The file.
        path: PathBuf,
        /// Number of suitable signals.
        found: usize,
        /// Number of signals needed.
        wanted: usize,
    },
    /// An existing file or folder that is not the folder of an experiment.
    #[error("{} is not the folder of an experiment ({reason}); choose another", path.display())]
    NotAnExperiment {
        /// The folder or file.
        path: PathBuf,
        /// The reason for this conclusion.
        reason: &'static str,
    },
    /// A folder with an experiment that differs from the one asked for.
    #[error("{} holds another experiment: {what} {found} there and {expected} here; choose another folder", path.display())]
    OtherExperiment {
        /// The folder.
        path: PathBuf,
        /// The setting that differs.
        what: String,
        /// Its value in the folder.
        found: String,
        /// The requested value.
        expected: String,
    },
    /// A folder with a comparison of other data or with other settings.
    #[error("{} holds a comparison with other data or settings; choose another folder", path.display())]
    OtherComparison {
        /// The folder.
        path: PathBuf,
    },
    /// An unfinished experiment.
    #[error("{}: {done} of {wanted} fits are done; altbi reproduce with the same --out does the rest", path.display())]
    UnfinishedExperiment {
        /// The folder.
        path: PathBuf,
        /// Fits done.
        done: usize,
        /// Fits in all.
        wanted: usize,
    },
    /// One of many fits failed.
    #[error("{contender} on benchmark {dataset}, start {start}: {source}")]
    Trial {
        /// The benchmark.
        dataset: String,
        /// The method.
        contender: String,
        /// The start.
        start: u64,
        /// Its error.
        source: Box<Error>,
    },
    /// A folder of results is never overwritten.
    #[error("{} exists already; choose another folder", path.display())]
    FolderExists {
        /// The folder.
        path: PathBuf,
    },
    /// A run folder is never overwritten unless asked.
    #[error("{} exists already; choose another folder or pass --force", path.display())]
    RunFolderExists {
        /// The folder.
        path: PathBuf,
    },
}

impl Error {
    /// The error of a file that cannot be read, for `map_err`.
    pub(crate) fn reading(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Read {
            path: path.into(),
            source,
        }
    }

    /// The error of a file that cannot be written, for `map_err`.
    pub(crate) fn writing(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Write {
            path: path.into(),
            source,
        }
    }

    /// Refuses a setting that is outside its range.
    pub(crate) fn require(
        ok: bool,
        setting: &'static str,
        value: f64,
        range: &'static str,
    ) -> Result<()> {
        let wrong = Self::Setting {
            setting,
            value,
            range,
        };
        if ok { Ok(()) } else { Err(wrong) }
    }

    /// Refuses a matrix of another shape.
    pub(crate) fn require_shape(
        what: &'static str,
        found: impl Into<[usize; 2]>,
        expected: [usize; 2],
    ) -> Result<()> {
        let found = found.into();
        let wrong = Self::Shape {
            what,
            expected,
            found,
        };
        (found == expected).then_some(()).ok_or(wrong)
    }

    /// The same error about the transpose: rows and columns are exchanged.
    #[must_use]
    pub(crate) fn transposed(mut self) -> Self {
        match &mut self {
            Self::Shape {
                expected, found, ..
            } => {
                expected.reverse();
                found.reverse();
            }
            Self::EmptyMatrix { rows, columns, .. } => std::mem::swap(rows, columns),
            Self::NegativeEntry { row, column, .. }
            | Self::NotFiniteEntry { row, column, .. }
            | Self::OutsideDomain { row, column, .. }
            | Self::DuplicateEntry { row, column } => std::mem::swap(row, column),
            Self::SparseIndex {
                row,
                column,
                rows,
                columns,
            } => {
                std::mem::swap(row, column);
                std::mem::swap(rows, columns);
            }
            Self::UnobservedRow { row } => return Self::UnobservedColumn { column: *row },
            Self::UnobservedColumn { column } => return Self::UnobservedRow { row: *column },
            _ => {}
        }
        self
    }

    /// The same error with its row counted over all processes; `first` is the first row of this
    /// process.
    #[must_use]
    pub(crate) fn in_rows_from(mut self, first: usize) -> Self {
        match &mut self {
            Self::NegativeEntry { row, .. }
            | Self::NotFiniteEntry { row, .. }
            | Self::OutsideDomain { row, .. }
            | Self::UnobservedRow { row }
            | Self::Missing { row, .. }
            | Self::NotCounts { row, .. } => *row += first,
            _ => {}
        }
        self
    }
}

/// A number in few characters. (Without an exponent 1e300 would have 301 digits.)
fn plain(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() || (1e-4..1e9).contains(&size) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// Fault of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointFault {
    /// Not made by altbi.
    #[error("it is not an altbi checkpoint")]
    Foreign,
    /// Incomplete or damaged.
    #[error("it is damaged: its contents do not match its checksum")]
    Torn,
    /// Made by another version.
    #[error("its format has version {found}, which this version of altbi cannot read")]
    Version {
        /// The version it has.
        found: u32,
    },
    /// Made with other data.
    #[error("the data are not those of the run")]
    OtherData,
    /// Made with other settings.
    #[error("the settings are not those of the run")]
    OtherSettings,
}
