//! Results as text for people or as one JSON object for programs.

use std::io::Write;

use serde::Serialize;

use crate::error::Error;

/// The flag that every command has.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Format {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Object<'a, T> {
    schema: &'a str,
    #[serde(flatten)]
    content: &'a T,
}

/// Writes one JSON object; `schema` names its form and version.
pub(crate) fn json(out: &mut dyn Write, schema: &str, content: &impl Serialize) -> Result<(), Error> {
    let object = Object { schema, content };
    serde_json::to_writer_pretty(&mut *out, &object).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Writes text that ends its last line.
pub(crate) fn text(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}
