//! Writes results as text or as one JSON object.

use std::io::{self, Write};

use serde::Serialize;
use warploom::lang::{is_invisible, visible_lines};

use crate::error::Error;
use crate::fold::fold;

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

/// Writes one JSON object. `schema` is the name and version of its format.
pub(crate) fn json(out: &mut dyn Write, schema: &str, content: &impl Serialize) -> Result<(), Error> {
    let object = Object { schema, content };
    let text = serde_json::to_string_pretty(&object).map_err(io::Error::from)?;
    writeln!(out, "{}", visible_json(&text))?;
    Ok(out.flush()?)
}

/// Writes one JSON object on one line.
pub(crate) fn json_line(out: &mut dyn Write, schema: &str, content: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(&Object { schema, content })?;
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

/// Writes results as one JSON object, or else as text or Markdown, which functions make in this order.
pub(crate) fn in_form<T: Serialize>(
    out: &mut dyn Write,
    (format, markdown): (Format, bool),
    schema: &str,
    content: &T,
    [plain, marked]: [fn(&T) -> String; 2],
) -> Result<(), Error> {
    match (format.json, markdown) {
        (true, _) => json(out, schema, content),
        (false, true) => verbatim(out, &marked(content)),
        (false, false) => text(out, &plain(content)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_what_it_is_and_shows_everything() {
        let name = "a\u{1b}\u{9b}\u{202e}\u{e0041}ö\n\"";
        let mut out = Vec::new();
        json(&mut out, "test/1", &serde_json::json!({ "name": name })).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.chars().all(|c| c == '\n' || !is_invisible(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["name"], name);
    }
}
