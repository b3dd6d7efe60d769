//! `warploom cache`: the cache of compiled code.

use std::io::Write;

use clap::Subcommand;
use warploom::tune::cache::Cache;

use crate::error::Error;
use crate::report::{self, Format};
use crate::show;

/// Show or clear the cache of compiled kernels
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom cache info
  warploom cache clear

The cache is in the folder WARPLOOM_CACHE_DIR, or else in $XDG_CACHE_HOME/warploom or ~/.cache/warploom. If
WARPLOOM_CACHE_DIR is empty, nothing is cached. Above 512 MB, the least recently used entries are removed.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print the folder of the cache and its size
    Info {
        #[command(flatten)]
        format: Format,
    },
    /// Remove all entries of the cache
    Clear {
        #[command(flatten)]
        format: Format,
    },
}

pub(crate) fn cache(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let cache = Cache::of_user().ok_or(Error::NoCache)?;
    let (format, info, verb) = match &arguments.what {
        What::Info { format } => (format, cache.info()?, "holds"),
        What::Clear { format } => (format, cache.clear()?, "held"),
    };
    if format.json {
        return report::json(out, "warploom.cache/1", &info);
    }
    let programs = show::count(info.entries, "compiled program");
    let (bytes, limit) = (show::bytes(info.bytes), show::bytes(info.limit));
    report::text(
        out,
        &format!("{} {verb} {programs}, {bytes} of at most {limit}\n", show::path(&info.folder)),
    )
}
