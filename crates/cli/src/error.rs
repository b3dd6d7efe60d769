//! What can go wrong, one sentence each, and the exit code that belongs to it.

use std::io::{self, Write};

use thiserror::Error;
use warploom::codegen::build::BuildError;
use warploom::cost::WeightsError;
use warploom::fuzz::CaseError;
use warploom::interp::EvalError;
use warploom::interp::buffer::BufferError;
use warploom::interp::files::FileError;
use warploom::lang::files::ReadError;
use warploom::lang::{BoundsError, Fault, PipelineError, Type, visible_lines};
use warploom::search::FixedError;
use warploom::sim::SimError;
use warploom::tune::cache::CacheError;
use warploom::tune::records::RecordsError;
use warploom::tune::sample::ShardError;

use crate::golden::GoldenError;
use crate::pipeline::is_usage;
use crate::settings::{MAX_SIZE, MAX_STRUCTURE};
use crate::show;

/// The exit codes besides 0.
pub(crate) mod exit {
    /// A fault of the program itself.
    pub(crate) const INTERNAL: u8 = 1;
    /// A wrong argument or file.
    pub(crate) const USAGE: u8 = 2;
    /// A pipeline that cannot be run as asked.
    pub(crate) const PIPELINE: u8 = 3;
    /// No GPU, or one that fails.
    pub(crate) const DEVICE: u8 = 4;
    /// Nothing could be measured or checked.
    pub(crate) const NOTHING: u8 = 5;
    /// Outputs that differ from the reference.
    pub(crate) const VERIFICATION: u8 = 6;
    /// Nobody reads the results any more: what a shell says of a process that a closed pipe has ended.
    pub(crate) const CLOSED: u8 = 141;
}

/// Why a command failed.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// Arguments that the command line does not allow, or a request for help.
    #[error(transparent)]
    Arguments(#[from] clap::Error),
    /// An app that is not in the table.
    #[error("there is no app `{name}`{hint}; the apps are {known}")]
    UnknownApp { name: String, hint: String, known: String },
    /// A size, parameter, input or output that an app does not have.
    #[error("`{app}` has no {kind} `{name}`{hint}; {known}")]
    UnknownName { app: &'static str, kind: &'static str, name: String, hint: String, known: String },
    /// A name without a value.
    #[error("`{flag} {text}` gives no value; write {flag} NAME=VALUE")]
    NoValue { flag: &'static str, text: String },
    /// The same thing given twice.
    #[error("{kind} `{name}` is given twice; give it once")]
    Repeated { kind: &'static str, name: String },
    /// More files than an app has inputs or outputs.
    #[error("`{file}` is one too many: `{app}` has {count}; leave it out")]
    TooManyFiles { app: &'static str, file: String, count: String },
    /// A size that is no size.
    #[error("size {name} of `{app}` cannot be `{text}`; give a whole number from 1 to {MAX_SIZE}")]
    Size { app: &'static str, name: &'static str, text: String },
    /// Sizes without names, too many or too few.
    #[error("the size `{text}` does not fit `{app}`; write it as {form}, for example --size {example}")]
    SizeForm { app: &'static str, text: String, form: String, example: String },
    /// A structure parameter's value that makes no sense.
    #[error(
        "structure parameter {name} of `{app}` cannot be `{text}`; give a number above 0, at most {MAX_STRUCTURE}"
    )]
    Structure { app: &'static str, name: &'static str, text: String },
    /// A structure parameter's fraction that would be lost.
    #[error("structure parameter {name} of `{app}` cannot be `{text}`; give a whole number")]
    Fraction { app: &'static str, name: &'static str, text: String },
    /// A Param's value that is no number.
    #[error("Param {name} of `{app}` cannot be `{text}`; give a number")]
    NoNumber { app: &'static str, name: &'static str, text: String },
    /// A Param's value that its type does not have.
    #[error("Param {name} of `{app}` is {ty}, so it cannot be {}; give {}", show::exact(*.value), show::values_of(*.ty))]
    ParamType { app: &'static str, name: String, ty: Type, value: f64 },
    /// An app that forgot a default.
    #[error("`{app}` has no value for its Param {name}; give one with --param {name}=VALUE")]
    NoDefault { app: &'static str, name: String },
    /// A file that is not there.
    #[error("there is no file {file}; check its path")]
    NoFile { file: String },
    /// A folder that is not there.
    #[error("there is no folder {folder}; check its path")]
    NoFolder { folder: String },
    /// A file that cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A folder that cannot be read, or a text file.
    #[error("cannot read {path}: {error}; check who may read it")]
    Read { path: String, error: io::Error },
    /// A file that is too large, or none that ends.
    #[error(transparent)]
    Refused(ReadError),
    /// Standard output that cannot be written.
    #[error("cannot write to standard output: {0}")]
    Output(#[from] io::Error),
    /// An output file in a folder that is not there.
    #[error("cannot write {file}: there is no folder {folder}; make it first")]
    NoOutputFolder { file: String, folder: String },
    /// An input file of another type.
    #[error("{file} holds {found}, but input `{input}` of `{app}` holds {expected}; {}", advice(file))]
    InputType { app: &'static str, file: String, input: &'static str, found: Type, expected: Type },
    /// An input file of other extents.
    #[error(
        "{file} has extents {found}, but input `{input}` of `{app}` has {expected}; give a file that fits"
    )]
    InputShape { app: &'static str, file: String, input: &'static str, found: String, expected: String },
    /// Sizes at which nothing is left of an output.
    #[error("`{app}` has an empty output `{output}`{sizes}; use larger sizes")]
    Empty { app: &'static str, output: &'static str, sizes: String },
    /// Sizes that fill more memory than there is.
    #[error(
        "the inputs and outputs of `{app}`{sizes} take {}, but only {} are free; use smaller sizes",
        show::bytes(*.needed), show::bytes(*.free)
    )]
    Memory { app: &'static str, sizes: String, needed: u64, free: u64 },
    /// A pipeline that is not well formed.
    #[error("`{app}` cannot be built: {error}")]
    Pipeline { app: &'static str, error: PipelineError },
    /// A pipeline that cannot be evaluated as asked.
    #[error("`{app}` cannot be run{sizes}: {error}")]
    Evaluation { app: &'static str, sizes: String, error: Box<EvalError> },
    /// A `params.json` that describes no reference data.
    #[error("{file} does not describe reference data: {problem}")]
    Golden { file: String, problem: GoldenError },
    /// Something wrong with what a file says.
    #[error("{file}: {error}")]
    In { file: String, error: Box<Error> },
    /// A buffer that cannot be made.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// An array that is not as described.
    #[error("{file} holds {found}, but params.json says {expected}; make them agree")]
    GoldenArray { file: String, found: String, expected: String },
    /// A folder without reference data.
    #[error(
        "{folder} holds no reference data: neither it nor a folder in it has a params.json; give another"
    )]
    NoGolden { folder: String },
    /// A folder without reference data of an app that was asked for.
    #[error("{folder} holds no reference data of `{app}`; it has {known}")]
    NoGoldenOf { folder: String, app: String, known: String },
    /// A file that holds no pipeline.
    #[error("{file} holds no pipeline: {error}")]
    PipelineFile { file: String, error: PipelineError },
    /// Structure parameters of a pipeline that has its structure.
    #[error("{file} is a pipeline, not an app, and has no structure parameters; leave --set out")]
    SetInFile { file: String },
    /// Sizes that are no boxes.
    #[error(
        "`{text}` is no size; give one for all, as in --size 640x480, or one for each, as in --size {example}"
    )]
    Box { text: String, example: String },
    /// A size with too few extents for something.
    #[error(
        "{file}: `{name}` has {expected} dimensions, but `{text}` has {given}; give one for each, as in --size {example}"
    )]
    FewExtents { file: String, name: String, expected: usize, text: String, given: usize, example: String },
    /// An input or output without a size.
    #[error(
        "{file}: no size was given for `{name}`; give one for all, as in --size 640x480, or one for each, as in --size {example}"
    )]
    NoSize { file: String, name: String, example: String },
    /// A Param without a value.
    #[error("{file}: no value was given for the Param `{name}`; give one with --param {name}=VALUE")]
    NoParamValue { file: String, name: String },
    /// The pipeline of a file where only apps are known.
    #[error(
        "this command runs apps, and {file} is a file; `compile`, `explain` and `tune` take files with pipelines"
    )]
    FileForApp { file: String },
    /// A Param that the pipeline of a file does not have.
    #[error("the pipeline `{pipeline}` has no Param `{name}`; leave it out")]
    NoParam { pipeline: String, name: String },
    /// A Param's value that its type does not have.
    #[error("Param {name} is {ty}, so it cannot be `{text}`; give {}", show::values_of(*.ty))]
    FileParam { name: String, ty: Type, text: String },
    /// Sizes and Params that don't fit the pipeline of a file.
    #[error("{file}: {error}")]
    Request { file: String, error: Box<BoundsError> },
    /// Decisions that a search cannot keep.
    #[error("{file}: {error}")]
    Fixed { file: String, error: Box<FixedError> },
    /// A pipeline that no schedule was found for.
    #[error("`{app}` cannot be scheduled: {error}")]
    Search { app: String, error: String },
    /// Kernels without a schedule.
    #[error(
        "running on {on} needs a schedule; give one with --schedule FILE, or let one be found with --schedule search"
    )]
    NoSchedule { on: &'static str },
    /// A folder of schedules that has none for the apps in question.
    #[error("there is no schedule for any of these apps in {folder}; give another file or folder")]
    NothingScheduled { folder: String },
    /// Weights that cannot be used.
    #[error("{file}: {error}")]
    Weights { file: String, error: WeightsError },
    /// A file that cannot be written.
    #[error("cannot write {path}: {error}; check the path and the free space")]
    Write { path: String, error: io::Error },
    /// Samples that cannot be read.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Data(#[from] warploom_training::data::DataError),
    /// Weights that could not be trained.
    #[cfg(feature = "train")]
    #[error(transparent)]
    Train(#[from] warploom_training::train::TrainError),
    /// A schedule that cannot be read.
    #[error("{file} is no schedule of this pipeline:\n{errors}")]
    Schedule { file: String, errors: String },
    /// A schedule that cannot be made into kernels.
    #[error("`{app}` cannot be built: {error}")]
    Build { app: String, error: Box<BuildError> },
    /// Kernels that the simulator refuses.
    #[error("the simulator stopped: {0}")]
    Simulation(Box<SimError>),
    /// A device that is not known.
    #[error("{0}")]
    Device(String),
    /// No GPU to run on.
    #[error("{0}")]
    NoGpu(String),
    /// A GPU that was named twice.
    #[error("--gpu names GPU {gpu} twice; name each once")]
    RepeatedGpu { gpu: usize },
    /// A file that describes no device.
    #[error("{file}: {problem}; `warploom devices --describe h200` prints how one is written")]
    DeviceFile { file: String, problem: String },
    /// No GPU to make kernels for.
    #[error("this machine has no GPU to make kernels for ({why}); name one, for example --device h200")]
    NoDevice { why: String },
    /// A GPU or compiler that failed.
    #[error("{0}")]
    Cuda(String),
    /// Records that cannot be used.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// Something that went wrong in the midst of tuning, and its exit code.
    #[error("{0}")]
    Tune(String, u8),
    /// A pipeline that was never tuned.
    #[error("the records hold nothing of `{name}`; they have {known}")]
    NotTuned { name: String, known: String },
    /// A trial that is not there.
    #[error("there is no trial number {number}; `warploom records list PIPELINE` has their numbers")]
    NoTrial { number: i64 },
    /// A file that no page can be made of.
    #[error("{file} is neither a database of records nor results of `warploom suite`; give one of those")]
    NotReported { file: String },
    /// Results that cannot be read.
    #[error("{file} holds results of the form `{schema}` that cannot be read: {error}")]
    Results { file: String, schema: String, error: String },
    /// A file without results.
    #[error("{file} holds nothing to report; measure something first, or leave it out")]
    NothingToReport { file: String },
    /// A page that would take the place of what it is made of.
    #[error("the page would replace {file}, which it is made of; name another file with -o")]
    OverSource { file: String },
    /// A worker that does not know what to do.
    #[error("{0}; `warploom worker` is for other processes to call")]
    Assignment(String),
    /// What is to be logged is not understood.
    #[error(
        "{variable} is `{given}`, which says nothing of what to log ({error}); write it as debug or warploom_search=trace"
    )]
    LogFilter { variable: &'static str, given: String, error: String },
    /// No place for a cache.
    #[error("there is no cache: WARPLOOM_CACHE_DIR is empty, or nothing says where your home folder is")]
    NoCache,
    /// A cache that cannot be read or cleared.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Anchors that cannot be read.
    #[error("{file} holds no anchors: {error}")]
    Anchors { file: String, error: serde_json::Error },
    /// Apps of a suite that failed.
    #[error("{failed} of {count} apps have no valid schedule: {names}")]
    Suite { failed: usize, count: usize, names: String },
    /// A file of samples that cannot be written.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// Kernels whose results are not the reference's.
    #[error("`{app}` is not computed exactly: {difference}")]
    Inexact { app: &'static str, difference: String },
    /// Nothing was measured.
    #[error("nothing could be measured: {0}")]
    NothingMeasured(String),
    /// Threads that cannot be started.
    #[error("cannot start threads: {0}; use fewer with --threads N")]
    Threads(String),
    /// A case that cannot be read or written.
    #[error(transparent)]
    Case(#[from] CaseError),
    /// A folder without cases.
    #[error("{folder} holds no cases, which are .json files; give another")]
    NoCases { folder: String },
    /// Cases that are no longer, or never were, what was found.
    #[error(
        "{refused} of {count} cases have a schedule that breaks the rules, or a pipeline that reads what nothing defines; \
         correct or remove them"
    )]
    RefusedCases { refused: usize, count: usize },
    /// Mistakes of the compiler.
    #[error("{failed} of {count} {what} failed; please report them with their files")]
    Fuzz { failed: u64, count: u64, what: &'static str },
    /// Outputs that differ.
    #[error("{failed} of {count} apps failed verification: {names}")]
    Verification { failed: usize, count: usize, names: String },
}

/// Why a pipeline did not run.
#[derive(Debug, Error)]
pub(crate) enum RunError {
    /// The reference evaluator refused it.
    #[error(transparent)]
    Evaluation(Box<EvalError>),
    /// It could not be made into kernels, or they did not run.
    #[error(transparent)]
    Kernels(#[from] Error),
}

/// How to get a file of the right type.
fn advice(file: &str) -> &'static str {
    if file.to_lowercase().ends_with(".npy") { "convert it with astype" } else { "give a .npy file" }
}

impl Error {
    /// The exit code of the program.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Error::Arguments(error) => u8::try_from(error.exit_code()).unwrap_or(exit::USAGE),
            Error::Pipeline { .. } | Error::NoDefault { .. } => exit::PIPELINE,
            Error::Evaluation { error, .. } => evaluation_code(error),
            Error::Verification { .. } | Error::Inexact { .. } => exit::VERIFICATION,
            Error::Schedule { .. } | Error::Build { .. } | Error::Search { .. } | Error::Fixed { .. } => {
                exit::PIPELINE
            }
            Error::RefusedCases { .. } => exit::PIPELINE,
            Error::PipelineFile { error, .. } if !is_malformed(error) => exit::PIPELINE,
            Error::Request { error, .. } if !is_usage(error) => exit::PIPELINE,
            Error::Simulation(error) if matches!(**error, SimError::TooLarge { .. }) => exit::USAGE,
            Error::Simulation(_) | Error::Fuzz { .. } => exit::INTERNAL,
            Error::NoGpu(_) | Error::NoDevice { .. } | Error::Cuda(_) => exit::DEVICE,
            Error::NothingMeasured(_) => exit::NOTHING,
            Error::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => exit::CLOSED,
            Error::Tune(_, code) => *code,
            Error::Suite { .. } => exit::VERIFICATION,
            Error::In { error, .. } => error.exit_code(),
            _ => exit::USAGE,
        }
    }

    /// Says it on standard error; help that was asked for goes to standard output.
    pub(crate) fn print(&self) {
        match self {
            // Nobody is left to read either.
            Error::Arguments(error) => error.print().unwrap_or_default(),
            Error::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            error => print(&error.to_string()),
        }
    }
}

/// Whether a file is none that Warploom wrote, rather than a pipeline with a mistake in it.
fn is_malformed(error: &PipelineError) -> bool {
    error.diagnostics.iter().any(|diagnostic| matches!(diagnostic.fault, Fault::Malformed { .. }))
}

/// A value or size that was asked for is the user's to change, all else the pipeline's.
fn evaluation_code(error: &EvalError) -> u8 {
    use BoundsError::{Extent, ParamRange, TooLarge};
    match error {
        EvalError::Bounds(Extent { .. } | ParamRange { .. } | TooLarge { .. }) => exit::USAGE,
        EvalError::Memory { .. } => exit::USAGE,
        EvalError::Outside { .. } => exit::INTERNAL,
        _ => exit::PIPELINE,
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

/// Writes one error to standard error.
pub(crate) fn print(message: &str) {
    // If standard error is closed, there is nowhere left to say so.
    writeln!(io::stderr(), "error: {}", visible_lines(message)).unwrap_or_default();
}
