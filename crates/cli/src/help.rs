//! Pages of `--help` that have the width of all other text.

use clap::Command;
use clap::builder::StyledStr;

use crate::fold::{WIDTH, fold_line, indent_of, width};

/// The heading of a list of commands.
const EXAMPLES: &str = "Examples:";

/// Where the lines start that continue an entry of a list.
const DEEPER: usize = 6;

/// The command line with pages that fit. Options wrap by themselves; examples and lists below them are folded here.
pub(crate) fn fitted(command: Command) -> Command {
    let refold = |text: Option<&StyledStr>| text.map(|text| refolded(&text.to_string(), WIDTH));
    let (short, long) = (refold(command.get_after_help()), refold(command.get_after_long_help()));
    let command = match short {
        Some(text) => command.after_help(text),
        None => command,
    };
    let command = match long {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    command.term_width(WIDTH).mut_subcommands(fitted)
}

/// The paragraphs and lists of a text at this width, whatever the width was in which they were written.
pub(crate) fn refolded(text: &str, limit: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let words = line.trim_start();
        let indent = indent_of(line);
        let last = lines.last_mut().filter(|last| !last.is_empty() && !words.is_empty());
        let last = last.filter(|last| continues(last, indent));
        match last {
            // The second column of a list that starts on a line of its own.
            Some(last) if indent > 0 && !last.trim_start().contains("  ") => *last += &format!("   {words}"),
            Some(last) => *last += &format!(" {words}"),
            None => lines.push(line.to_owned()),
        }
    }
    let mut examples = false;
    let folded = lines.iter().map(|line| {
        examples = line == EXAMPLES || (examples && !line.is_empty());
        match (line.starts_with(' '), examples) {
            (true, true) => example(line, limit),
            (true, false) => fold_line(line, DEEPER, limit),
            (false, _) => fold_line(line, 0, limit),
        }
    });
    folded.collect::<Vec<_>>().join("\n")
}

/// A command and what it does. A command of several lines can be pasted into a shell.
fn example(line: &str, limit: usize) -> String {
    let indent = indent_of(line);
    let (command, comment) = line[indent..].split_once("  ").unwrap_or((&line[indent..], ""));
    let command = format!("{}{command}", " ".repeat(indent));
    match (width(line) <= limit, comment.trim()) {
        (true, _) => line.to_owned(),
        (false, "") => fold_line(&command, DEEPER, limit - 2).replace('\n', " \\\n"),
        (false, comment) => {
            format!("{}\n{}", example(&command, limit), fold_line(&format!("      {comment}"), DEEPER, limit))
        }
    }
}

/// Whether a line with this indent continues the one before it.
fn continues(before: &str, indent: usize) -> bool {
    match indent_of(before) {
        0 => indent == 0 && !before.ends_with(':'),
        start => indent >= start + DEEPER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fold_as_what_they_are() {
        let comment = "what the first example does, which is more than fits beside it";
        let text = format!(
            "Examples:\n  program run   {comment}\n  program list                      short\n\nA paragraph that was\nwritten in two lines.\n\
             \n  NAME     of the\n           first\n  A, LONG, LIST\n           of names"
        );
        let expected = format!(
            "Examples:\n  program run   {comment}\n  program list                      short\n\nA paragraph that was written in two lines.\n\
             \n  NAME     of the first\n  A, LONG, LIST   of names"
        );
        assert_eq!(refolded(&text, WIDTH), expected);
        let comment = "what the second example does, which is also more than fits";
        let long = format!("Examples:\n  program --with=many --arguments=of-all-kinds   {comment}");
        assert_eq!(
            refolded(&long, WIDTH),
            format!("Examples:\n  program --with=many --arguments=of-all-kinds\n      {comment}")
        );
        let wide = format!("Examples:\n  program{}", " --argument=value".repeat(5));
        assert_eq!(
            refolded(&wide, WIDTH),
            format!("Examples:\n  program{} \\\n      --argument=value", " --argument=value".repeat(4))
        );
    }
}
