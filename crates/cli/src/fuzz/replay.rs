//! `warploom fuzz --replay`: checks saved cases again.

use std::io::Write;
use std::path::PathBuf;

use warploom::fuzz::Checker;
use warploom::target::Device;
use warploom_results::fuzzing::replay::{Replayed, Report};

use crate::error::Error;
use crate::folder::files_of;
use crate::report::{Declared as _, Format, json, text};
use crate::show;

pub(super) fn replay(
    paths: &[PathBuf],
    device: &Device,
    check: &Checker<'_>,
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut cases = Vec::new();
    for file in files_of(paths, &["json"])? {
        let replayed = Replayed::new(file, device, check)?;
        if !format.json {
            text(out, &replayed.text())?;
        }
        cases.push(replayed);
    }
    let count = cases.len();
    let failed = cases.iter().filter(|case| !case.is_fine()).count();
    let refused = cases.iter().filter(|case| case.is_refused()).count();
    if format.json {
        json(out, Report::NAME, &Report { passed: failed == 0, cases })?;
    } else if failed == 0 {
        text(out, &format!("all {} passed\n", show::count(count, "case")))?;
    }
    match failed - refused {
        0 if refused == 0 => Ok(()),
        0 => Err(Error::RefusedCases { refused, count }),
        failed => Err(Error::Fuzz { failed: failed as u64, count: count as u64, what: "cases" }),
    }
}
