//! `--dynamic` and `--pitch`: kernels whose sizes or strides every run gives.

use warploom::app::Subject;
use warploom::lang::dynamic::SizeRange;
use warploom::plan::Problem;
use warploom::schedule_file::unbuilt;
use warploom::target::Device;

use crate::error::Error;

/// Which numbers are arguments of the kernels.
#[derive(Debug, clap::Args)]
pub(crate) struct AnySize {
    #[command(flatten)]
    pub(crate) dynamic: Dynamic,
    /// Take the strides of inputs and outputs as arguments of every run, for parts of larger pictures
    #[arg(long, help_heading = "Kernels")]
    pub(crate) pitch: bool,
}

/// Which sizes are arguments of the kernels.
#[derive(Debug, clap::Args)]
pub(crate) struct Dynamic {
    /// Sizes that every run gives, as W=64..8192,H=64..8192; the others stay fixed
    ///
    /// The schedule is searched for the sizes of --size, and must be legal at all sizes of the ranges.
    /// For a file, d0 is the first dimension of all inputs and outputs that are as long as the first input there, and so on.
    /// Rows of inputs and outputs may then have any distance.
    #[arg(
        long,
        value_name = "RANGES",
        value_delimiter = ',',
        help_heading = "Kernels",
        verbatim_doc_comment
    )]
    dynamic: Vec<String>,
}

impl Dynamic {
    /// The problem with sizes that every run gives; `None` if all are fixed.
    pub(crate) fn problem(&self, asked: &Subject, device: &Device) -> Result<Option<Problem>, Error> {
        if self.dynamic.is_empty() {
            return Ok(None);
        }
        let ranges = self.dynamic.iter().map(|text| range(text)).collect::<Result<_, _>>()?;
        let problem = Problem::dynamic(&asked.pipeline, &asked.dynamic(ranges)?, device);
        Ok(problem.map(Some).map_err(|error| unbuilt(&asked.pipeline, error.into()))?)
    }
}

/// Parses `W=64..8192`.
fn range(text: &str) -> Result<SizeRange, Error> {
    let parsed = || {
        let (name, range) = text.split_once('=')?;
        let (min, max) = range.split_once("..")?;
        let max = max.strip_prefix('=').unwrap_or(max);
        let number = |text: &str| text.trim().parse().ok();
        Some(SizeRange { name: name.trim().to_owned(), min: number(min)?, max: number(max)? })
    };
    parsed().ok_or_else(|| Error::SizeRange { text: text.to_owned() })
}
