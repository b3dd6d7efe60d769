//! Writes results as text or as one JSON object.

#[cfg(test)]
pub(crate) mod tests;

use std::io::{self, Write};

use serde::Serialize;
use warploom::lang::{is_invisible, visible_lines};
pub(crate) use warploom_results::report::{Declared, object, with_schema};

use crate::error::Error;
use crate::fold::fold;

/// The flag that every command has.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Format {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes a report as one JSON object, or else as text.
pub(crate) fn print<T: Declared>(
    out: &mut dyn Write,
    format: Format,
    report: &T,
    words: impl FnOnce() -> String,
) -> Result<(), Error> {
    if format.json { json(out, T::NAME, report) } else { text(out, &words()) }
}

/// Writes one JSON object. `schema` is the name and version of its format.
pub(crate) fn json(out: &mut dyn Write, schema: &str, content: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(&with_schema(schema, content)).map_err(io::Error::from)?;
    writeln!(out, "{}", visible_json(&text))?;
    Ok(out.flush()?)
}

/// Writes one JSON object on one line.
pub(crate) fn json_line(out: &mut dyn Write, schema: &str, content: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(&with_schema(schema, content))?;
    writeln!(out, "{}", visible_json(&text))?;
    out.flush()
}

/// Writes text for people, which ends with a newline, in lines that fit a page.
pub(crate) fn text(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    verbatim(out, &fold(&visible_lines(text)))
}

/// Writes text that programs read, too.
pub(crate) fn verbatim(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    out.write_all(visible_lines(text).as_bytes())?;
    Ok(out.flush()?)
}

/// Replaces characters that a terminal would not show by JSON escapes. They can occur only inside
/// strings.
fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match c != '\n' && is_invisible(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown += &format!("\\u{unit:04x}")),
            false => shown.push(c),
        }
    }
    shown
}
