//! Folds text to the width of a page.
//!
//! All text has the same width, on a terminal or not: what a command prints can be compared with what it printed elsewhere.

use crate::table::wrap;

/// The characters of a line.
pub(crate) const WIDTH: usize = 80;

/// The indent of what continues a line, unless the line says where its text starts.
const INDENT: usize = 4;

/// What continues a line starts below the text after its first word, if that is no further right.
const FURTHEST: usize = 30;

/// The widest gap of a folded line, whose parts are in no columns any more.
const GAP: usize = 3;

/// Folds the lines of a text that are wider than a page: at gaps of several spaces, else between words. A wider word is whole.
pub(crate) fn fold(text: &str) -> String {
    let folded = text.split('\n').map(|line| fold_line(line, indent_of(line) + INDENT, WIDTH));
    folded.collect::<Vec<_>>().join("\n")
}

/// Folds one line. What continues it starts below the text after its first word, or with this indent.
pub(crate) fn fold_line(line: &str, indent: usize, limit: usize) -> String {
    if width(line) <= limit {
        return line.to_owned();
    }
    let indent = text_of(line).unwrap_or(indent.min(limit / 2));
    let mut folded = String::new();
    let mut column = 0;
    for (gap, part) in parts(line) {
        let gap = if column + gap > indent { gap.min(GAP) } else { gap };
        // What is not below the text of the line already gets a line of its own.
        if column + gap + width(part) > limit && column + gap > indent {
            folded += &format!("\n{}", " ".repeat(indent));
            column = indent;
        } else {
            folded += &" ".repeat(gap);
            column += gap;
        }
        for (number, word) in part.split(' ').enumerate() {
            let gap = usize::from(number > 0);
            if column + gap + width(word) > limit && column > indent {
                folded += &format!("\n{}{word}", " ".repeat(indent));
                column = indent + width(word);
            } else {
                folded += &format!("{}{word}", " ".repeat(gap));
                column += gap + width(word);
            }
        }
    }
    folded
}

/// The number of spaces that a line starts with.
pub(crate) fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Where the text after the first word of a line starts, unless that is far to the right.
fn text_of(line: &str) -> Option<usize> {
    let [(indent, first), (gap, _), ..] = parts(line)[..] else { return None };
    Some(indent + width(first) + gap).filter(|start| *start <= FURTHEST)
}

/// The parts of a line between gaps of two or more spaces, each with the width of the gap before it.
fn parts(line: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut rest = line.trim_end_matches(' ');
    while !rest.is_empty() {
        let text = rest.trim_start_matches(' ');
        let end = text.find("  ").unwrap_or(text.len());
        parts.push((rest.len() - text.len(), &text[..end]));
        rest = &text[end..];
    }
    parts
}

/// A cell as lines of at most `limit` characters; a wider word is whole.
pub(crate) fn cell(text: &str, limit: usize) -> Vec<String> {
    let fold = |line: &str| match width(line) <= limit {
        true => line.to_owned(),
        false => wrap(line.split_whitespace().map(str::to_owned), limit),
    };
    text.lines().flat_map(|line| fold(line).lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The number of characters.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// The widest word of a text.
pub(crate) fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(width).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_fold_at_gaps_and_then_between_words() {
        let words = "word ".repeat(12);
        let words = words.trim_end();
        assert_eq!(fold("short\n\nlines  \n"), "short\n\nlines  \n");
        let prose = fold(&format!("{words} {words}\nnext"));
        assert_eq!(prose.lines().map(width).collect::<Vec<_>>(), [79, 43, 4]);
        assert!(prose.lines().nth(1).unwrap().starts_with("    word"), "{prose}");
        // The second part starts in column 10, and so does what continues it.
        let listed = fold(&format!("  name    {words}   {words}"));
        assert_eq!(listed, format!("  name    {words}\n          {words}"));
        let row = fold(&format!("  name    a{}b   {words}", " ".repeat(20)));
        assert_eq!(row, format!("  name    a   b   {words}"));
        let long = "x".repeat(90);
        assert_eq!(fold(&format!("  {long} b")), format!("  {long}\n      b"));
    }

    #[test]
    fn cells_fold_between_words() {
        assert_eq!(cell("a bb ccc", 4), ["a bb", "ccc"]);
        assert_eq!(cell("a\nlonger b", 3), ["a", "longer", "b"]);
        assert!(cell("", 3).is_empty());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_wide(text in "[ab éx]{0,300}") {
            let folded = fold(&text);
            prop_assert!(folded.lines().all(|line| width(line) <= WIDTH || longest_word(line) + WIDTH / 2 > WIDTH));
            prop_assert_eq!(
                folded.split_whitespace().collect::<Vec<_>>(),
                text.split_whitespace().collect::<Vec<_>>()
            );
            prop_assert_eq!(fold(&folded), folded);
        }
    }
}
