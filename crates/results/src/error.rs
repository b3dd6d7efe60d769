//! Why results cannot be measured, read or shown.

use std::io;

use thiserror::Error;
use warploom::app::AppError;
use warploom::lang::files::ReadError;
use warploom::schedule_file::ScheduleFileError;
use warploom::tune::records::RecordsError;
use warploom::tune::tuning::TuneError;

use crate::report::Declared as _;
use crate::suite::apps::Report;

/// Why results cannot be measured, read or shown.
#[derive(Debug, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields are the words of the sentences")]
pub enum ResultsError {
    /// An app that cannot be built or run.
    #[error(transparent)]
    App(#[from] AppError),
    /// A schedule in a file, or a pipeline without kernels under it.
    #[error(transparent)]
    ScheduleFile(#[from] ScheduleFileError),
    /// Tuning has failed.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// Records that cannot be read or written.
    #[error(transparent)]
    Records(#[from] RecordsError),
    /// A file that cannot be opened, or is none.
    #[error(transparent)]
    File(#[from] ReadError),
    /// A file that cannot be read.
    #[error("cannot read {path}: {error}; check its permissions")]
    Read { path: String, error: io::Error },
    /// A file without times to compare with.
    #[error("{file} does not contain anchors: {error}")]
    Anchors { file: String, error: serde_json::Error },
    /// A pattern that fits no operator.
    #[error(
        "no operator matches `{pattern}`; give a name, a name and shape, or one of the families {families}"
    )]
    NoRows { pattern: String, families: String },
    /// A file of an earlier run that cannot be continued.
    #[error(
        "{file} does not hold results that can be continued ({error}); remove it, or name another folder with -o"
    )]
    Continue { file: String, error: String },
    /// A file that holds no results.
    #[error("{file} is neither a database of records nor results of `warploom suite`; give one of those")]
    NotReported { file: String },
    /// Results of an older program.
    #[error(
        "{file} contains results in the format `{schema}` of an older program, but this one reads `{}`; run \
         `warploom suite` again, or use the program that wrote them",
        Report::NAME
    )]
    OldResults { file: String, schema: String },
    /// Results that are damaged.
    #[error("{file} contains results in the format `{schema}`, which cannot be read: {error}")]
    Results { file: String, schema: String, error: String },
    /// A file without any result.
    #[error("{file} contains nothing to report; measure something first, or remove it")]
    NothingToReport { file: String },
}
