//! The text of a file, and places in it.

use std::fmt;
use std::sync::Arc;

use warploom_lang::visible;

/// A part of a text, in bytes. All spans compare equal, so that two trees are equal if they mean the same, wherever
/// they stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Span {
    /// The smallest part that holds both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The two ends, which do compare.
    pub(crate) fn ends(self) -> (u32, u32) {
        (self.start, self.end)
    }
}

/// A file's name and text.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    pub file: Arc<str>,
    pub text: Arc<str>,
}

/// The most characters of a source line that a message shows on either side of the place.
const CONTEXT: usize = 60;

impl SourceFile {
    /// The text of a place.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Line and column of a place, both from 1; columns count characters.
    pub fn position(&self, span: Span) -> (usize, usize) {
        let before = self.text.get(..span.start as usize).unwrap_or(&self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// Writes the source line of a place and a caret below it.
    pub fn excerpt(&self, span: Span, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = (span.start as usize).min(self.text.len());
        let start = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |length| at + length);
        let stop = (span.end as usize).clamp(at, end);
        let before = last_characters(&self.text[start..at]);
        let marked = first_characters(&self.text[at..stop]);
        let after = first_characters(self.text[stop..end].trim_end());
        let [before, marked, after] =
            [before, marked, after].map(|part| visible(&part.replace('\t', " ")).into_owned());
        let (line, _) = self.position(span);
        let margin = " ".repeat(line.to_string().len());
        let caret = "^".repeat(marked.chars().count().max(1));
        writeln!(f, "  {line} | {before}{marked}{after}")?;
        write!(f, "  {margin} | {}{caret}", " ".repeat(before.chars().count()))
    }
}

fn first_characters(text: &str) -> &str {
    text.char_indices().nth(CONTEXT).map_or(text, |(end, _)| &text[..end])
}

fn last_characters(text: &str) -> &str {
    text.char_indices().rev().nth(CONTEXT).map_or(text, |(start, c)| &text[start + c.len_utf8()..])
}
