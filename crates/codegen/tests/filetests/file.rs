//! The format of the files: cases with their expectations, and how a changed expectation is written back.

use std::ops::Range;

use thiserror::Error;

/// Begins the line of a case. No line of an input or expectation starts like this or like [`SECTION`].
const CASE: &str = "===";

/// Begins the line of an expectation.
const SECTION: &str = "---";

/// An input and what it must give.
#[derive(PartialEq, Debug)]
pub struct Case {
    /// Its line in the file, from 1.
    pub line: usize,
    /// The pipeline or program in the registry.
    pub subject: String,
    pub title: String,
    /// The schedule, as users write it.
    pub input: String,
    pub sections: Vec<Section>,
}

/// One expectation of a case.
#[derive(PartialEq, Debug)]
pub struct Section {
    pub kind: Kind,
    pub text: String,
    /// Where the text stands in the file, by lines from 0.
    lines: Range<usize>,
}

/// What is expected.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    ParseErrors,
    Violations,
    Plan,
    /// What the cost model is told of each kernel.
    Features,
    /// The schedules that differ from this one by a small change, which the search tries.
    Neighbours,
    /// The text of the kernels in both builds.
    Cuda,
    CudaTiming,
    CudaChecking,
    /// The functions that the kernels of the checking build call.
    Helpers,
    /// What a runtime is told of the program, without its code.
    Description,
}

impl Kind {
    const ALL: [(&'static str, Kind); 10] = [
        ("parse errors", Kind::ParseErrors),
        ("violations", Kind::Violations),
        ("plan", Kind::Plan),
        ("features", Kind::Features),
        ("neighbours", Kind::Neighbours),
        ("cuda", Kind::Cuda),
        ("cuda timing", Kind::CudaTiming),
        ("cuda checking", Kind::CudaChecking),
        ("helpers", Kind::Helpers),
        ("description", Kind::Description),
    ];

    pub fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// Why a file cannot be used.
#[derive(Debug, PartialEq, Error)]
pub enum FileError {
    #[error("the file has no case; begin one with `==== PIPELINE: TITLE`")]
    Empty,
    #[error("line {0}: a case begins with `==== PIPELINE: TITLE`")]
    Header(usize),
    #[error("line {line}: `{name}` is not an expectation; write `---- ` and one of: {}", names())]
    Section { line: usize, name: String },
    #[error(
        "line {0}: an expectation must follow the input of a case; begin the case with `==== PIPELINE: TITLE`"
    )]
    Stray(usize),
    #[error("line {line}: the case has `{name}` already; keep one of them")]
    Twice { line: usize, name: &'static str },
    #[error("line {0}: the case expects nothing; add a line such as `---- plan` and bless it")]
    ExpectsNothing(usize),
    #[error("the text to write has a line like those between cases: {0}")]
    Separator(String),
}

fn names() -> String {
    Kind::ALL.map(|(name, _)| format!("`{name}`")).join(", ")
}

fn is_separator(line: &str) -> bool {
    line.starts_with(CASE) || line.starts_with(SECTION)
}

/// The cases of a file. What stands before the first one is a comment.
pub fn parse(text: &str) -> Result<Vec<Case>, FileError> {
    let lines: Vec<&str> = text.lines().collect();
    let separators: Vec<usize> = (0..lines.len()).filter(|at| is_separator(lines[*at])).collect();
    let mut cases: Vec<Case> = Vec::new();
    for (number, &at) in separators.iter().enumerate() {
        let mut block = at + 1..separators.get(number + 1).copied().unwrap_or(lines.len());
        while !block.is_empty() && lines[block.end - 1].trim().is_empty() {
            block.end -= 1;
        }
        let text = lines[block.clone()].join("\n");
        if lines[at].starts_with(CASE) {
            let header = lines[at].strip_prefix("==== ").and_then(|header| header.split_once(": "));
            let (subject, title) = header.ok_or(FileError::Header(at + 1))?;
            let (subject, title) = (subject.to_owned(), title.to_owned());
            cases.push(Case { line: at + 1, subject, title, input: text, sections: Vec::new() });
        } else {
            let case = cases.last_mut().ok_or(FileError::Stray(at + 1))?;
            case.sections.push(section(case, at + 1, lines[at], text, block)?);
        }
    }
    match cases.iter().find(|case| case.sections.is_empty()) {
        Some(case) => Err(FileError::ExpectsNothing(case.line)),
        None if cases.is_empty() => Err(FileError::Empty),
        None => Ok(cases),
    }
}

fn section(
    case: &Case,
    line: usize,
    header: &str,
    text: String,
    lines: Range<usize>,
) -> Result<Section, FileError> {
    let name = header.strip_prefix("---- ").unwrap_or(header);
    let known = Kind::ALL.iter().find(|(known, _)| *known == name);
    let &(name, kind) = known.ok_or_else(|| FileError::Section { line, name: name.to_owned() })?;
    match case.sections.iter().any(|other| other.kind == kind) {
        true => Err(FileError::Twice { line, name }),
        false => Ok(Section { kind, text, lines }),
    }
}

/// A file in which some sections have other texts; all else in it stays.
pub fn replaced(text: &str, changes: &[(&Section, String)]) -> Result<String, FileError> {
    let mut lines: Vec<&str> = text.lines().collect();
    let mut changes: Vec<_> = changes.iter().collect();
    changes.sort_by_key(|(section, _)| section.lines.start);
    for (section, text) in changes.into_iter().rev() {
        if let Some(line) = text.lines().find(|line| is_separator(line)) {
            return Err(FileError::Separator(line.to_owned()));
        }
        lines.splice(section.lines.clone(), text.lines());
    }
    Ok(lines.join("\n") + "\n")
}
