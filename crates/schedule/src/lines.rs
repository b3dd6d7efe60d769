//! Parses the text of a schedule into a tree of lines by indentation.

use warploom_lang::brief::quoted;

use crate::error::{ScheduleError, ScheduleFault, Spot};

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Word<'t> {
    pub text: &'t str,
    /// 0-based.
    line: usize,
    /// The byte offset in the line, 0-based.
    start: usize,
    /// The character column in the line, 1-based.
    column: usize,
}

impl Word<'_> {
    /// The word, quoted for a message.
    pub fn quoted(&self) -> String {
        quoted(self.text).into_owned()
    }
}

/// The maximum nesting depth, so that recursion over a tree never exhausts the stack.
const MAX_LEVELS: usize = 100;

/// A line with its children.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'t> {
    indent: usize,
    /// Never empty.
    pub words: Vec<Word<'t>>,
    pub children: Vec<Entry<'t>>,
}

/// A text and the errors found in it.
pub(crate) struct SourceText<'t> {
    lines: Vec<&'t str>,
    pub errors: Vec<ScheduleError>,
}

impl<'t> SourceText<'t> {
    pub fn new(text: &'t str) -> SourceText<'t> {
        SourceText { lines: text.lines().map(str::trim_end).collect(), errors: Vec::new() }
    }

    /// The spot of an entry: all of its first line.
    pub fn spot_of(&self, entry: &Entry<'_>) -> Spot {
        let (first, line) = (entry.words[0], entry.words[0].line);
        let in_line = entry.words.iter().take_while(|word| word.line == line).last();
        let end = in_line.map_or(first.start, |last| last.start + last.text.len());
        let length = self.lines[line][first.start..end].chars().count();
        Spot::new(line + 1, self.lines[line], first.start, first.column, length)
    }

    /// Records a fault at a word.
    pub fn fault(&mut self, word: Word<'_>, fault: ScheduleFault) {
        let length = word.text.chars().count();
        let spot = Spot::new(word.line + 1, self.lines[word.line], word.start, word.column, length);
        self.errors.push(ScheduleError { fault, spot: Some(spot) });
    }

    /// The first line as the root. Each other line is a child of the last line before it that is
    /// indented less.
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

    /// Skips all lines below the deepest allowed level.
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

    /// The nonempty lines; a line after a trailing comma is joined to the previous one.
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

/// The words of a line without its comment; commas are separate words.
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
