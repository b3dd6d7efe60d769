//! The lines of a schedule's text as a tree of words, by indentation.

use warploom_lang::brief::quoted;

use crate::schedule::error::{ScheduleError, ScheduleFault, Spot};

/// A word or comma.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Word<'t> {
    pub text: &'t str,
    /// The line, from 0.
    line: usize,
    /// The byte in the line, from 0.
    start: usize,
    /// The character in the line, from 1.
    column: usize,
}

impl Word<'_> {
    /// The word for a message.
    pub fn quoted(&self) -> String {
        quoted(self.text).into_owned()
    }
}

/// How deep lines may stand below each other, so that no walk over a tree exhausts the stack.
const MAX_LEVELS: usize = 100;

/// A line with all that stands below it.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'t> {
    indent: usize,
    /// At least one.
    pub words: Vec<Word<'t>>,
    pub children: Vec<Entry<'t>>,
}

/// A text and what was found to be wrong with it.
pub(crate) struct Source<'t> {
    lines: Vec<&'t str>,
    pub errors: Vec<ScheduleError>,
}

impl<'t> Source<'t> {
    pub fn new(text: &'t str) -> Source<'t> {
        Source { lines: text.lines().map(str::trim_end).collect(), errors: Vec::new() }
    }

    /// Notes a mistake at a word.
    pub fn fault(&mut self, word: Word<'_>, fault: ScheduleFault) {
        let length = word.text.chars().count();
        let spot = Spot::new(word.line + 1, self.lines[word.line], word.start, word.column, length);
        self.errors.push(ScheduleError { fault, spot: Some(spot) });
    }

    /// The first line, with the others below it, each below the last one that is indented less.
    pub fn tree(&mut self) -> Option<Entry<'t>> {
        let mut lines = self.entries().into_iter().peekable();
        let mut header = lines.next()?;
        header.children = self.children(&mut lines, header.indent, 1);
        while let Some(mut entry) = lines.next() {
            let fault = ScheduleFault::Indentation { found: entry.indent, expected: "2 spaces".to_string() };
            self.fault(entry.words[0], fault);
            entry.children = self.children(&mut lines, entry.indent, 2);
            header.children.push(entry);
        }
        Some(header)
    }

    fn children(
        &mut self,
        lines: &mut std::iter::Peekable<std::vec::IntoIter<Entry<'t>>>,
        outer: usize,
        level: usize,
    ) -> Vec<Entry<'t>> {
        if level > MAX_LEVELS {
            return self.too_deep(lines, outer);
        }
        let mut children: Vec<Entry<'t>> = Vec::new();
        while let Some(mut entry) = lines.next_if(|entry| entry.indent > outer) {
            let indent = children.first().map_or(entry.indent, |first| first.indent);
            if entry.indent != indent {
                let fault =
                    ScheduleFault::Indentation { found: entry.indent, expected: format!("{indent} spaces") };
                self.fault(entry.words[0], fault);
            }
            entry.children = self.children(lines, entry.indent, level + 1);
            children.push(entry);
        }
        children
    }

    /// Leaves out all that stands below the deepest line there may be.
    fn too_deep(
        &mut self,
        lines: &mut std::iter::Peekable<std::vec::IntoIter<Entry<'t>>>,
        outer: usize,
    ) -> Vec<Entry<'t>> {
        if let Some(entry) = lines.next_if(|entry| entry.indent > outer) {
            self.fault(entry.words[0], ScheduleFault::TooDeep { limit: MAX_LEVELS });
        }
        while lines.next_if(|entry| entry.indent > outer).is_some() {}
        Vec::new()
    }

    /// The lines that hold anything, those after a comma joined to it.
    fn entries(&mut self) -> Vec<Entry<'t>> {
        let mut entries: Vec<Entry<'t>> = Vec::new();
        for number in 0..self.lines.len() {
            let words = words(self.lines[number], number);
            let Some(first) = words.first() else { continue };
            let margin = &self.lines[number][..first.start];
            if margin.contains('\t') {
                self.fault(*first, ScheduleFault::Tab);
            }
            let indent = margin.chars().count();
            match entries.last_mut() {
                Some(last)
                    if last.words.last().is_some_and(|word| word.text == ",") && indent > last.indent =>
                {
                    last.words.extend(words);
                }
                _ => entries.push(Entry { indent, words, children: Vec::new() }),
            }
        }
        entries
    }
}

/// The words of a line, commas for themselves, without the comment.
fn words(line: &str, number: usize) -> Vec<Word<'_>> {
    let code = line.split('#').next().unwrap_or_default();
    let mut words = Vec::new();
    let mut start = None;
    let breaks = |c: char| c.is_whitespace() || c == ',';
    for (column, (at, c)) in (1..).zip(code.char_indices().chain([(code.len(), ' ')])) {
        match start {
            Some((from, column)) if breaks(c) => {
                words.push(Word { text: &code[from..at], line: number, start: from, column });
                start = None;
            }
            None if !breaks(c) => start = Some((at, column)),
            _ => {}
        }
        if c == ',' {
            words.push(Word { text: &code[at..=at], line: number, start: at, column });
        }
    }
    words
}
