//! What can go wrong, each case with its numbers.

use std::path::PathBuf;

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
    /// The fused engine cannot do something that a run asks for.
    #[error(
        "the fused engine cannot do this: {reason}; --engine autodiff can (library: EngineChoice::Autodiff)"
    )]
    EngineUnsupported {
        /// What it cannot do.
        reason: String,
    },
    /// Something that only a build with a feature has.
    #[error("{what} is not part of this build: build with --features {feature}")]
    NotBuilt {
        /// What is missing.
        what: &'static str,
        /// The feature that has it.
        feature: &'static str,
    },
    /// The engines differ in the first iteration.
    #[error(
        "the fused engine and autodiff disagree about {quantity}: largest relative difference {difference:e}, allowed {tolerance:e}; --engine autodiff (library: EngineChoice::Autodiff) goes on without the fused engine, and we would like to know about this run"
    )]
    EnginesDisagree {
        /// Which matrix.
        quantity: &'static str,
        /// The largest difference, relative to the largest entry.
        difference: f64,
        /// What is allowed.
        tolerance: f64,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many.
        threads: usize,
        /// What the system said.
        reason: String,
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
        "{what} must be finite in the run's floating-point type: entry at row {row}, column {column} is {value} (counted from 0)"
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
        "{divergence} needs {condition}: the entry of X at row {row}, column {column} is {} (counted from 0)", plain(*value)
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
    /// A tensor of another floating-point type.
    #[error("{what} must be of type {expected}, not {found}")]
    Precision {
        /// Which tensor.
        what: &'static str,
        /// The type of the problem's tensors.
        expected: String,
        /// The type that came.
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
        /// The least that works.
        least: f64,
        /// The most that works.
        most: f64,
    },
    /// A factor of zeros, which no multiplicative update can leave.
    #[error("{what} at the start must have a positive entry: multiplicative updates never leave 0")]
    ZeroFactor {
        /// Which factor.
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
        /// What does not fit.
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
    /// Something that cannot be done without storing every entry of X.
    #[error("a sparse X cannot do this: {reason}")]
    SparseUnsupported {
        /// What cannot be done, and what can.
        reason: String,
    },
    /// A rank outside 1 … min(n, m).
    #[error(
        "rank must lie between 1 and min(n, m) = {}, not {rank}{}",
        rows.min(columns),
        if *rank == 0 { String::new() } else { format!(": more components than rows or columns of X ({rows}×{columns}) are not determined by it") }
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
    /// A single number has no structure.
    #[error("X is 1×1: there is nothing to factorise in a single number")]
    TooSmall,
    /// Fewer rows than several processes can share.
    #[error("{rows} rows cannot be split over {processes} processes: each needs two; run fewer")]
    FewRows {
        /// Rows of X.
        rows: usize,
        /// How many processes there are.
        processes: usize,
    },
    /// Something that needs all rows in one process.
    #[error("{what} cannot be split over {processes} processes: {reason}")]
    NotSplit {
        /// What it is.
        what: String,
        /// How many processes there are.
        processes: usize,
        /// Why, and what can be done instead.
        reason: &'static str,
    },
    /// Another process of the run has failed, and says why.
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
    /// Weights that belong to what a penalty cannot tell apart.
    #[error("λ cannot have the scope {scope}: {reason}")]
    ScopeUnsupported {
        /// The scope.
        scope: String,
        /// What is in its way.
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
    #[error("the {what} of the data are not those of the run: {reason}")]
    Features {
        /// Rows or columns.
        what: &'static str,
        /// The names in which they differ.
        reason: String,
    },
    /// Data that has changed since a run.
    #[error("{data} has changed since the run {}: its fingerprint is another one than that in summary.json", run.display())]
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
    /// A matrix that the machine has no room for.
    #[error(
        "{}: the matrix is {rows}×{columns}, {gigabytes:.1} GB as 64-bit floats; of {free:.1} GB of free memory X may take a quarter, because a fit needs several copies of it",
        path.display()
    )]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// What it would take.
        gigabytes: f64,
        /// Memory that is free, in gigabytes.
        free: f64,
    },
    /// A .npy file that is not an array of floats with one or two dimensions.
    #[error("{}: not a usable .npy file: {reason}", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A .mat file without a usable matrix.
    #[error("{}: not a usable .mat file: {reason}", path.display())]
    Mat {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A .mat or .npz file with several matrices, or none of that name.
    #[error(
        "{}: {}; it holds the matrices {known} (say {}:NAME)",
        path.display(),
        variable.as_ref().map_or("say which matrix is meant".into(), |name| format!("there is no matrix '{name}'")),
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
        "{name}: line {line}, field {field}: '{text}' is not a number with a decimal {decimal} (words are names only in a whole first row or column; --header, --labels, --separator and --decimal say how the table is read)"
    )]
    NotANumber {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// The field, counted from 1.
        field: usize,
        /// What stands before the decimals of this table's numbers.
        decimal: String,
        /// What stands there.
        text: String,
    },
    /// A word for a missing entry where none may be missing.
    #[error(
        "{name}: line {line}, field {field}: '{text}' is not a number; if it stands for a missing entry, --missing mask leaves it out of the fit"
    )]
    MissingField {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// The field, counted from 1.
        field: usize,
        /// What stands there.
        text: String,
    },
    /// Bytes that are no text in the encoding of a table.
    #[error(
        "{name}: line {line} is not {encoding} text; --encoding says how it is stored (utf-8, utf-16, latin-1)"
    )]
    NotText {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// The encoding it was read in.
        encoding: String,
    },
    /// A Matrix Market file that breaks off or contradicts itself.
    #[error("{}: not a usable Matrix Market file: line {line}: {reason}", path.display())]
    MatrixMarket {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A .npz file without a usable matrix.
    #[error("{}: not a usable .npz file: {reason}", path.display())]
    Npz {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A sparse matrix with more rows and columns than the machine has room for.
    #[error(
        "{}: the matrix is {rows}×{columns}; so many rows and columns take {gigabytes:.1} GB, however few entries they have, and of {free:.1} GB of free memory X may take a quarter",
        path.display()
    )]
    TooManyLines {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: usize,
        /// Its columns.
        columns: usize,
        /// What they would take.
        gigabytes: f64,
        /// Memory that is free, in gigabytes.
        free: f64,
    },
    /// A file whose contents, unpacked where they are packed, the machine has no room for.
    #[error(
        "{}: what it holds takes more than {gigabytes:.1} GB, a quarter of the {free:.1} GB of free memory; it is not read any further",
        path.display()
    )]
    ContentsTooLarge {
        /// The file.
        path: PathBuf,
        /// What its contents may take.
        gigabytes: f64,
        /// Memory that is free, in gigabytes.
        free: f64,
    },
    /// Missing entries that nobody said could be missing.
    #[error(
        "{} missing, the first at row {row}, column {column} (counted from 0); --missing mask leaves them out of the fit",
        if *count == 1 { "1 entry of X is".into() } else { format!("{count} entries of X are") }
    )]
    Missing {
        /// How many.
        count: usize,
        /// Row of the first.
        row: usize,
        /// Column of the first.
        column: usize,
    },
    /// A configuration file that cannot be understood.
    #[error("{}: {reason}", path.display())]
    ConfigFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A run folder without a checkpoint has nothing to resume.
    #[error("{}: there is no checkpoint to resume from ({reason})", path.display())]
    NoCheckpoint {
        /// The run folder.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// A run that is still to be finished.
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
    /// A command that would write onto what it reads.
    #[error(
        "{} is read, and {} would be written; choose another place for the results",
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
    /// Something in the way that is not a run folder.
    #[error("{} is not a run folder ({stranger}), so --force does not replace it", path.display())]
    NotARunFolder {
        /// The folder or file.
        path: PathBuf,
        /// How that is known.
        stranger: String,
    },
    /// A folder to be read that no run has written.
    #[error("{} is not a run folder: it holds no summary.json and no config.toml", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// More entries to hold out than rows and columns can spare.
    #[error(
        "cannot hold out {wanted} entries of X ({rows}×{columns}): after {possible} of them every other would leave a row or a column without an entry to fit"
    )]
    HoldOut {
        /// Entries to hold out.
        wanted: usize,
        /// How many can be.
        possible: usize,
        /// Rows of X.
        rows: usize,
        /// Columns of X.
        columns: usize,
    },
    /// An edge of a graph that is none.
    #[error(
        "an edge between {from} and {to} of strength {strength}: vertices count from 0 and there are {vertices}; strengths are finite and not negative"
    )]
    Edge {
        /// One end.
        from: usize,
        /// The other.
        to: usize,
        /// Its strength.
        strength: f64,
        /// How many vertices there are.
        vertices: usize,
    },
    /// A line of a graph file that is no edge.
    #[error("{name}: line {line}: {reason}")]
    EdgeLine {
        /// The file.
        name: String,
        /// The line, counted from 1.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A penalty that is made for factors with another number of rows.
    #[error(
        "the penalty '{penalty}' on {factor} is made for {expected} {lines}, and {factor} has {found}"
    )]
    PenaltyRows {
        /// The penalty.
        penalty: String,
        /// W or H.
        factor: &'static str,
        /// What it has one of for each vertex: rows of W, or columns of H.
        lines: &'static str,
        /// What it is made for.
        expected: usize,
        /// What there is.
        found: usize,
    },
    /// An entry that cannot be thinned.
    #[error(
        "X has {value} at row {row}, column {column}, which is no count: thinning splits whole numbers; for other data use held-out:<fraction>"
    )]
    NotCounts {
        /// Its row.
        row: usize,
        /// Its column.
        column: usize,
        /// The entry.
        value: f64,
    },
    /// A file of signals that holds too few of them.
    #[error("{}: {wanted} signals are needed, and {found} of them fit", path.display())]
    TooFewSignals {
        /// The file.
        path: PathBuf,
        /// How many there are.
        found: usize,
        /// How many are needed.
        wanted: usize,
    },
    /// Something in the way that is not an experiment's folder.
    #[error("{} is not the folder of an experiment ({reason}); choose another", path.display())]
    NotAnExperiment {
        /// The folder or file.
        path: PathBuf,
        /// How that is known.
        reason: &'static str,
    },
    /// A folder with an experiment that differs from the one asked for.
    #[error("{} holds another experiment: {what} {found} there and {expected} here; choose another folder", path.display())]
    OtherExperiment {
        /// The folder.
        path: PathBuf,
        /// What differs.
        what: String,
        /// As it is in the folder.
        found: String,
        /// As it is asked for.
        expected: String,
    },
    /// A folder with a comparison of other data or with other settings.
    #[error("{} holds a comparison with other data or settings; choose another folder", path.display())]
    OtherComparison {
        /// The folder.
        path: PathBuf,
    },
    /// An experiment that is still to be finished.
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
        /// What happened.
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
    /// The same error of a process whose first row is this one, counted over all processes.
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

/// A number in few characters: 1e300 has 301 digits.
fn plain(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() || (1e-4..1e9).contains(&size) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

/// What is wrong with a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointFault {
    /// Not made by altbi.
    #[error("it is not an altbi checkpoint")]
    Foreign,
    /// Incomplete or damaged.
    #[error("it is torn: its contents do not match its checksum")]
    Torn,
    /// Made by another version.
    #[error("its layout has version {found}, which this altbi does not read")]
    Version {
        /// The version it has.
        found: u32,
    },
    /// The data changed since.
    #[error("the data file is not the one the run began with")]
    OtherData,
    /// The settings changed since.
    #[error("the settings are not the ones the run began with")]
    OtherSettings,
}
