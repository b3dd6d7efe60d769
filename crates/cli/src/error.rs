//! All errors of the program, one sentence each, with their exit codes.

mod kind;

use std::io;
use std::panic::Location;

use thiserror::Error;
use warploom::app::AppError;
use warploom::cost::WeightsError;
use warploom::export::ExportError;
use warploom::fuzz::CaseError;
use warploom::inputs::InputError;
use warploom::interp::EvalError;
use warploom::interp::buffer::BufferError;
use warploom::interp::files::FileError;
use warploom::lang::files::ReadError;
use warploom::lang::{BoundsError, Fault, PipelineError, Type, brief};
use warploom::schedule_file::ScheduleFileError;
use warploom::search::FixedError;
use warploom::sim::SimError;
use warploom::tensor::{DefineError, Errors as TensorErrors};
use warploom::tune::cache::CacheError;
use warploom::tune::records::RecordsError;
use warploom::tune::sample::ShardError;
use warploom::tune::workload::GpuError;
use warploom_results::ResultsError;
use warploom_results::golden::FolderError;

use crate::pipeline::is_usage;
use crate::settings::{MAX_SIZE, MAX_STRUCTURE};
use crate::show;

pub(crate) use kind::{Kind, exit};

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// Wrong arguments, or a request for help, which clap also returns as an error.
    #[error(transparent)]
    Arguments(clap::Error),
    #[error(
        "{what} needs the feature `{feature}`, which this program was built without; install one that has it: \
         cargo install --git {} warploom-cli --features {feature}", env!("CARGO_PKG_REPOSITORY")
    )]
    LeftOut { what: String, feature: &'static str },
    #[error("two apps are named `{name}`; rename one\n  --> {first}\n  --> {second}")]
    TwoApps { name: String, first: &'static Location<'static>, second: &'static Location<'static> },
    /// Apps that could not be listed.
    #[error("{}", brief::shown(errors, "\n"))]
    BrokenApps { errors: Vec<String> },
    #[error("there is no app `{name}`{hint}; the apps are {known}")]
    UnknownApp { name: String, hint: String, known: String },
    #[error("`{app}` has no {kind} `{name}`{hint}; {known}")]
    UnknownName { app: String, kind: &'static str, name: String, hint: String, known: String },
    #[error("`{flag} {text}` gives no value; write {flag} NAME=VALUE")]
    NoValue { flag: &'static str, text: String },
    #[error("{kind} `{name}` is given twice; give it once")]
    Repeated { kind: &'static str, name: String },
    #[error("`{file}` is one file too many: `{app}` has {count}; remove it")]
    TooManyFiles { app: String, file: String, count: String },
    #[error("size {name} of `{app}` cannot be `{text}`; give a whole number from 1 to {MAX_SIZE}")]
    Size { app: String, name: String, text: String },
    #[error("the size `{text}` does not fit `{app}`; write it as {form}, for example --size {example}")]
    SizeForm { app: String, text: String, form: String, example: String },
    #[error(
        "structure parameter {name} of `{app}` cannot be `{text}`; give a number above 0, at most {MAX_STRUCTURE}"
    )]
    Structure { app: String, name: String, text: String },
    #[error("structure parameter {name} of `{app}` cannot be `{text}`; give a whole number")]
    Fraction { app: String, name: String, text: String },
    #[error("Param {name} of `{app}` cannot be `{text}`; give a number")]
    NoNumber { app: String, name: String, text: String },
    #[error("`{app}` has no value for its Param {name}; give one with --param {name}=VALUE")]
    NoDefault { app: String, name: String },
    #[error(transparent)]
    App(AppError),
    #[error(transparent)]
    Folder(Box<FolderError>),
    #[error(transparent)]
    Input(Box<InputError>),
    #[error(transparent)]
    Results(Box<ResultsError>),
    #[error(transparent)]
    ScheduleFile(ScheduleFileError),
    #[error("there is no file {file}; check its path")]
    NoFile { file: String },
    #[error("there is no folder {folder}; check its path")]
    NoFolder { folder: String },
    #[error("{folder} contains no files named *.{extensions}; give another file or folder")]
    NoFilesIn { folder: String, extensions: String },
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    #[error("cannot read {path}: {error}; check its permissions")]
    Read { path: String, error: io::Error },
    /// A file that is too large, or that is not a regular file.
    #[error(transparent)]
    Refused(ReadError),
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    #[error("cannot write {file}: there is no folder {folder}; create it first")]
    NoOutputFolder { file: String, folder: String },
    #[error(
        "cannot write to the folder {folder}: {file} is not a folder; give another folder, or remove the file"
    )]
    NotAFolder { folder: String, file: String },
    #[error("cannot write {file}: it is a folder; give the name of a file in it")]
    IsAFolder { file: String },
    #[error(
        "`{app}` lacks {inputs}: {names}; give files, as in --input {first}=FILE, or add --generate for made-up data"
    )]
    NoInput { app: String, inputs: String, names: String, first: String },
    #[error("--trace shows a run in the simulator, not on `{on}`; leave out --on, or give --on sim")]
    TraceOn { on: String },
    #[error(
        "the trace of {what} is too large for a page, which has room for about 1 MB of steps; give a smaller --size"
    )]
    TraceSize { what: String },
    #[error("`{app}` has an empty output `{output}`{sizes}; use larger sizes")]
    Empty { app: String, output: String, sizes: String },
    /// An error in the content of a file, with the file's name.
    #[error("{file}: {error}")]
    In { file: String, error: Box<Error> },
    #[error(transparent)]
    Buffer(#[from] BufferError),
    #[error("{folder} contains no reference data for `{app}`; it has data for {known}")]
    NoGoldenOf { folder: String, app: String, known: String },
    #[error("{file} does not contain a pipeline: {error}")]
    PipelineFile { file: String, error: PipelineError },
    #[error("{file} is a pipeline file, not an app, and has no structure parameters; remove --set")]
    SetInFile { file: String },
    /// Mistakes in a file of Tensor Comprehensions.
    #[error("{0}")]
    TensorFile(TensorErrors),
    /// Sizes or arrays at which a definition has no meaning.
    #[error("{0}")]
    Tensor(TensorErrors),
    #[error("{0}; --def NAME chooses one")]
    Define(#[from] DefineError),
    #[error(
        "`{text}` is not a size; give sizes by name, from 1 to {MAX_SIZE} (scalars from -{MAX_SIZE}), as in --size {example}"
    )]
    TensorSize { text: String, example: String },
    #[error(
        "{file}: no value was given for {name}; give sizes by name, as in --size {example}, or input files"
    )]
    NoTensorSize { file: String, name: String, example: String },
    #[error("{file} cannot hold a pipeline; end its name with .json, as in --export harris.json")]
    ExportName { file: String },
    #[error(
        "`{text}` is not a size; give one for all, as in --size 640x480, or one for each, as in --size {example}"
    )]
    Box { text: String, example: String },
    #[error(
        "{file}: `{name}` has {expected} dimensions, but `{text}` has {given}; give one for each, as in --size {example}"
    )]
    FewExtents { file: String, name: String, expected: usize, text: String, given: usize, example: String },
    #[error(
        "{file}: no size was given for `{name}`; give one for all, as in --size 640x480, or one for each, as in --size {example}"
    )]
    NoSize { file: String, name: String, example: String },
    #[error("{file}: no value was given for the Param `{name}`; give one with --param {name}=VALUE")]
    NoParamValue { file: String, name: String },
    #[error("the pipeline `{pipeline}` has no Param `{name}`; remove it")]
    NoParam { pipeline: String, name: String },
    #[error("Param {name} is {ty}, so it cannot be `{text}`; give {}", show::values_of(*.ty))]
    FileParam { name: String, ty: Type, text: String },
    /// Sizes or Params that don't fit the pipeline of a file.
    #[error("{file}: {error}")]
    Request { file: String, error: Box<BoundsError> },
    /// A partial schedule (`--fix`) that the search cannot keep.
    #[error("{file}: {error}")]
    Fixed { file: String, error: Box<FixedError> },
    #[error(
        "{what} runs the kernels of a schedule; give one with --schedule: a file, `default`, `random:SEED`, or `search`, which \
         searches for one"
    )]
    NoSchedule { what: String },
    #[error("--{flag} has no effect here: {why}")]
    Ignored { flag: String, why: &'static str },
    #[error("there is no schedule for any of these apps in {folder}; give another file or folder")]
    NothingScheduled { folder: String },
    #[error("{file}: {error}")]
    Weights { file: String, error: WeightsError },
    #[error("cannot write {path}: {error}; check the path and the free space")]
    Write { path: String, error: io::Error },
    #[cfg(feature = "train")]
    #[error(transparent)]
    Data(#[from] warploom_training::data::DataError),
    #[cfg(feature = "train")]
    #[error(transparent)]
    Train(#[from] warploom_training::train::TrainError),
    #[error("the simulator stopped: {0}")]
    Simulation(Box<SimError>),
    #[error("{0}")]
    Device(String),
    #[error("{0}")]
    NoGpu(String),
    #[error("--gpu lists GPU {gpu} twice; list each GPU once")]
    RepeatedGpu { gpu: usize },
    #[error(
        "`--device {devices}` lists several devices, which only the package of `compile -o` without --emit is made for; \
         give one"
    )]
    SeveralDevices { devices: String },
    #[error("`{text}` is not a range of a size; write NAME=SMALLEST..LARGEST, as in --dynamic W=64..8192")]
    SizeRange { text: String },
    #[error("--device lists {device} twice; list each device once")]
    RepeatedDevice { device: String },
    /// A package that could not be made.
    #[error(transparent)]
    Export(#[from] ExportError),
    #[error("{file}: {problem}; `warploom devices --describe h200` prints an example")]
    DeviceFile { file: String, problem: String },
    #[error(
        "{file} was made for `{name}`, which is neither a preset nor a GPU of this machine; give its description with \
         --device FILE.json, or another device"
    )]
    ManifestDevice { file: String, name: String },
    #[error("this machine has no GPU to describe ({why}); name a preset, for example --describe h200")]
    NoDevice { why: String },
    /// An error of the GPU, the driver or NVRTC.
    #[error("{0}")]
    Gpu(String),
    #[error(transparent)]
    Records(#[from] RecordsError),
    #[cfg(all(feature = "farm", unix))]
    #[error(transparent)]
    Farm(#[from] warploom::farm::database::DatabaseError),
    /// Workers of a farm that cannot be placed.
    #[cfg(all(feature = "farm", unix))]
    #[error(transparent)]
    Launch(#[from] warploom::farm::launch::LaunchError),
    /// A worker that cannot go on.
    #[cfg(all(feature = "farm", unix))]
    #[error(transparent)]
    Worked(warploom::farm::worker::WorkError),
    #[cfg(all(feature = "farm", unix))]
    #[error(
        "{place} is neither a farm file nor the URL of a server; give the file that `warploom farm start` has written"
    )]
    NoFarm { place: String },
    #[cfg(all(feature = "farm", unix))]
    #[error("no worker could be started: {why}")]
    NoWorkers { why: String },
    /// A device that cannot be passed on.
    #[cfg(all(feature = "farm", unix))]
    #[error("{0}")]
    Farmed(String),
    #[error("{0}")]
    Tune(String, Kind),
    #[error("the records contain no trials of `{name}`; they have trials of {known}")]
    NotTuned { name: String, known: String },
    #[error("there is no trial {number}; `warploom records list PIPELINE` lists the numbers")]
    NoTrial { number: i64 },
    #[error("the page would overwrite {file}, which is one of its inputs; name another file with -o")]
    OverSource { file: String },
    #[error("{0}; `warploom worker` is internal, for other processes to call")]
    Assignment(String),
    #[error(
        "{variable} is `{given}`, which is not a log filter ({error}); write it as debug or warploom_search=trace"
    )]
    LogFilter { variable: &'static str, given: String, error: String },
    #[error("there is no cache: WARPLOOM_CACHE_DIR is empty, or your home folder is unknown")]
    NoCache,
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error("{failed} of {count} {what} have no valid schedule: {names}")]
    Suite { failed: usize, count: usize, what: &'static str, names: String },
    #[error(transparent)]
    Shard(#[from] ShardError),
    #[error("the outputs of `{app}` are not exact: {difference}")]
    Inexact { app: String, difference: String },
    #[error("nothing could be measured: {0}")]
    NothingMeasured(String),
    #[error("cannot start threads: {0}; use fewer with --threads N")]
    Threads(String),
    #[error(transparent)]
    Case(#[from] CaseError),
    #[error(
        "{refused} of {count} cases have an illegal schedule, or a pipeline that reads undefined values; \
         correct or remove them"
    )]
    RefusedCases { refused: usize, count: usize },
    #[error("{failed} of {count} {what} failed; please report them with their files")]
    Fuzz { failed: u64, count: u64, what: &'static str },
    #[error(
        "{skipped} of {pairs} pairs ({share:.1} %) were skipped, more than the {most} % of --max-skipped; the report says why"
    )]
    Skipped { skipped: u64, pairs: u64, share: f64, most: f64 },
    #[error("{failed} pairs fail unchanged; run `fuzz` without --mutate to reduce them. The first: {first}")]
    Unmutated { failed: usize, first: String },
    #[error("{survived} mutants survived unexplained; please report their seeds")]
    Survivors { survived: usize },
    #[error("{failed} of {count} apps failed verification: {names}")]
    Verification { failed: usize, count: usize, names: String },
}

/// Why a pipeline did not run.
#[derive(Debug, Error)]
pub(crate) enum RunError {
    /// The reference evaluator reported an error.
    #[error(transparent)]
    Evaluation(Box<EvalError>),
    /// The kernels could not be built, or failed to run.
    #[error(transparent)]
    Kernels(#[from] Error),
}

impl Error {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Error::Arguments(error) => u8::try_from(error.exit_code()).unwrap_or(exit::USAGE),
            error => error.kind().code(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        use Error as E;
        match self {
            E::App(AppError::Pipeline { .. }) | E::NoDefault { .. } | E::ScheduleFile(_) => Kind::Pipeline,
            E::TwoApps { .. } | E::BrokenApps { .. } | E::Fixed { .. } => Kind::Pipeline,
            E::RefusedCases { .. } | E::Tensor(_) => Kind::Pipeline,
            E::PipelineFile { error, .. } if !is_malformed(error) => Kind::Pipeline,
            E::Request { error, .. } if !is_usage(error) => Kind::Pipeline,
            E::App(AppError::Evaluation { error, .. }) => evaluation_kind(error),
            E::Verification { .. } | E::Inexact { .. } | E::Suite { .. } => Kind::Verification,
            E::Simulation(error) if matches!(**error, SimError::TooLarge { .. }) => Kind::Usage,
            E::Simulation(_) => Kind::Internal,
            E::Fuzz { .. } | E::Skipped { .. } | E::Unmutated { .. } | E::Survivors { .. } => Kind::Fuzz,
            E::NoGpu(_) | E::NoDevice { .. } => Kind::NoGpu,
            E::Gpu(_) | E::Export(ExportError::Compile(_)) => Kind::Gpu,
            E::Export(ExportError::Unfit { .. } | ExportError::Differs { .. }) => Kind::Pipeline,
            E::NothingMeasured(_) => Kind::NothingMeasured,
            E::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Kind::Closed,
            E::Output(_) => Kind::Output,
            E::Tune(_, kind) => *kind,
            // What would be a wrong argument is in a file here.
            E::In { error, .. } if error.kind() == Kind::Usage => Kind::File,
            E::In { error, .. } => error.kind(),
            #[cfg(all(feature = "farm", unix))]
            E::Farm(_) | E::NoFarm { .. } | E::Launch(_) | E::NoWorkers { .. } | E::Farmed(_) => Kind::File,
            #[cfg(all(feature = "farm", unix))]
            E::Worked(error) => worked_kind(error),
            // A file or folder is missing, cannot be read or written, or has the wrong content.
            #[cfg(feature = "train")]
            E::Data(_) => Kind::File,
            E::NoFile { .. } | E::NoFolder { .. } | E::NoFilesIn { .. } | E::File(_) => Kind::File,
            E::Read { .. } | E::Refused(_) | E::Write { .. } | E::NoOutputFolder { .. } => Kind::File,
            E::NotAFolder { .. } | E::IsAFolder { .. } | E::Buffer(_) => Kind::File,
            E::Input(_) | E::Folder(_) | E::NoGoldenOf { .. } => Kind::File,
            E::PipelineFile { .. } | E::TensorFile(_) | E::NothingScheduled { .. } => Kind::File,
            E::Weights { .. } | E::Export(_) | E::DeviceFile { .. } | E::ManifestDevice { .. } => Kind::File,
            E::Results(error) if matches!(**error, ResultsError::NoRows { .. }) => Kind::Usage,
            E::Records(_) | E::Results(_) | E::Cache(_) | E::Shard(_) | E::Case(_) => Kind::File,
            _ => Kind::Usage,
        }
    }

    /// Whether the command has printed a report that says the same.
    pub(crate) fn is_in_the_report(&self) -> bool {
        matches!(
            self,
            Error::Verification { .. }
                | Error::Suite { .. }
                | Error::BrokenApps { .. }
                | Error::Fuzz { .. }
                | Error::Skipped { .. }
                | Error::RefusedCases { .. }
                | Error::Survivors { .. }
        )
    }
}

/// What kept a worker from going on.
#[cfg(all(feature = "farm", unix))]
fn worked_kind(error: &warploom::farm::worker::WorkError) -> Kind {
    use warploom::farm::worker::WorkError::{Join, Panicked, Records, Task};
    match error {
        Join(_) | Records(_) => Kind::File,
        Task { .. } => Kind::Pipeline,
        Panicked => Kind::Internal,
        _ => Kind::Gpu,
    }
}

/// Whether a file was not written by Warploom at all, as opposed to a pipeline with an error in it.
fn is_malformed(error: &PipelineError) -> bool {
    error.diagnostics.iter().any(|diagnostic| matches!(diagnostic.fault, Fault::Malformed { .. }))
}

/// Values and sizes are the user's mistake; everything else is the pipeline's.
fn evaluation_kind(error: &EvalError) -> Kind {
    use BoundsError::{Extent, ParamRange, Position, TooLarge};
    match error {
        EvalError::Bounds(Extent { .. } | ParamRange { .. } | Position { .. } | TooLarge { .. }) => {
            Kind::Usage
        }
        EvalError::Memory { .. } => Kind::Usage,
        EvalError::Outside { .. } => Kind::Internal,
        _ => Kind::Pipeline,
    }
}

impl From<AppError> for Error {
    fn from(error: AppError) -> Error {
        match error {
            AppError::NoValue { app, name } => Error::NoDefault { app, name },
            AppError::Buffer(error) => Error::Buffer(error),
            error => Error::App(error),
        }
    }
}

impl From<FolderError> for Error {
    fn from(error: FolderError) -> Error {
        match error {
            FolderError::Refused(error) => error.into(),
            error => Error::Folder(Box::new(error)),
        }
    }
}

impl From<InputError> for Error {
    fn from(error: InputError) -> Error {
        match error {
            InputError::NoFile { file } => Error::NoFile { file },
            InputError::File(error) => Error::File(error),
            InputError::Buffer(error) => Error::Buffer(error),
            error => Error::Input(Box::new(error)),
        }
    }
}

impl From<GpuError> for Error {
    fn from(error: GpuError) -> Error {
        Error::Gpu(error.to_string())
    }
}

impl From<ResultsError> for Error {
    fn from(error: ResultsError) -> Error {
        match error {
            ResultsError::App(error) => error.into(),
            ResultsError::ScheduleFile(error) => error.into(),
            ResultsError::Tune(error) => error.into(),
            ResultsError::Records(error) => error.into(),
            ResultsError::File(error) => error.into(),
            error => Error::Results(Box::new(error)),
        }
    }
}

impl From<ScheduleFileError> for Error {
    fn from(error: ScheduleFileError) -> Error {
        match error {
            ScheduleFileError::Read(error) => error.into(),
            error => Error::ScheduleFile(error),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Error {
        match error {
            ReadError::System { path, error } if error.kind() == io::ErrorKind::NotFound => {
                Error::NoFile { file: path.display().to_string() }
            }
            ReadError::System { path, error } => Error::Read { path: path.display().to_string(), error },
            refused => Error::Refused(refused),
        }
    }
}
