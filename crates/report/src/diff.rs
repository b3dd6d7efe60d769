//! The difference of two texts, line by line.

use crate::html::Escaped;

/// Above this many pairs of lines, the lines between the common start and end are not matched.
const MOST_PAIRS: usize = 4_000_000;

/// A line of either text, or of both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line<'a> {
    Both(&'a str),
    Removed(&'a str),
    Added(&'a str),
}

/// Renders the lines of both texts, and marks those that only one of them has.
pub(crate) fn to_html(from: &str, to: &str) -> String {
    let line = |line: &Line<'_>| match line {
        Line::Both(text) => format!("  {}\n", Escaped(text)),
        Line::Removed(text) => format!("<del>- {}</del>\n", Escaped(text)),
        Line::Added(text) => format!("<ins>+ {}</ins>\n", Escaped(text)),
    };
    let (from, to): (Vec<&str>, Vec<&str>) = (from.lines().collect(), to.lines().collect());
    let lines: String = lines(&from, &to).iter().map(line).collect();
    format!("<pre class=\"diff\" tabindex=\"0\">{lines}</pre>\n")
}

fn lines<'a>(from: &[&'a str], to: &[&'a str]) -> Vec<Line<'a>> {
    let start = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let (from_rest, to_rest) = (&from[start..], &to[start..]);
    let end = from_rest.iter().rev().zip(to_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (from_rest, to_rest) = (&from_rest[..from_rest.len() - end], &to_rest[..to_rest.len() - end]);
    let mut lines: Vec<Line<'a>> = from[..start].iter().copied().map(Line::Both).collect();
    lines.extend(middle(from_rest, to_rest));
    lines.extend(from[from.len() - end..].iter().copied().map(Line::Both));
    lines
}

/// The lines of two texts with as many as possible in common.
fn middle<'a>(from: &[&'a str], to: &[&'a str]) -> Vec<Line<'a>> {
    if from.len().saturating_mul(to.len()) > MOST_PAIRS {
        let removed = from.iter().copied().map(Line::Removed);
        return removed.chain(to.iter().copied().map(Line::Added)).collect();
    }
    // The length of the longest common subsequence of the rests from here on.
    let width = to.len() + 1;
    let mut common = vec![0u32; (from.len() + 1) * width];
    for at in (0..from.len()).rev() {
        for other in (0..to.len()).rev() {
            let (below, right) = (common[(at + 1) * width + other], common[at * width + other + 1]);
            let both = common[(at + 1) * width + other + 1] + 1;
            common[at * width + other] = if from[at] == to[other] { both } else { below.max(right) };
        }
    }
    let (mut at, mut other) = (0, 0);
    let mut lines = Vec::new();
    while at < from.len() || other < to.len() {
        let rest = |at: usize, other: usize| common[at * width + other];
        if at < from.len() && other < to.len() && from[at] == to[other] {
            lines.push(Line::Both(from[at]));
            (at, other) = (at + 1, other + 1);
        } else if other == to.len() || (at < from.len() && rest(at + 1, other) >= rest(at, other + 1)) {
            lines.push(Line::Removed(from[at]));
            at += 1;
        } else {
            lines.push(Line::Added(to[other]));
            other += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_lines_are_kept() {
        let html = to_html("a\nb\n<c>\nd\n", "a\n<c>\nx\nd\n");
        let expected = "  a\n<del>- b</del>\n  &lt;c&gt;\n<ins>+ x</ins>\n  d\n";
        assert_eq!(html, format!("<pre class=\"diff\" tabindex=\"0\">{expected}</pre>\n"));
    }

    #[test]
    fn any_two_texts_are_told_apart() {
        let texts = ["", "a", "b", "a\nb", "b\na", "a\na\nb", "c\na\nb\nc", "b\nb\na\nc"];
        for (from, to) in texts.iter().flat_map(|from| texts.iter().map(move |to| (from, to))) {
            let (old, new): (Vec<&str>, Vec<&str>) = (from.lines().collect(), to.lines().collect());
            let lines = lines(&old, &new);
            let side = |left_out: fn(&Line<'_>) -> bool| -> Vec<&str> {
                let kept = lines.iter().filter(|line| !left_out(line));
                kept.map(|line| match line {
                    Line::Both(text) | Line::Removed(text) | Line::Added(text) => *text,
                })
                .collect()
            };
            assert_eq!(side(|line| matches!(line, Line::Added(_))), old, "{lines:?}");
            assert_eq!(side(|line| matches!(line, Line::Removed(_))), new, "{lines:?}");
        }
    }

    #[test]
    fn long_texts_take_no_time() {
        let long = |letter: &str| vec![letter.to_owned(); 5_000].join("\n");
        let (from, to) = (format!("same\n{}", long("a")), format!("same\n{}", long("b")));
        let html = to_html(&from, &to);
        assert_eq!((html.matches("<del>").count(), html.matches("<ins>").count()), (5_000, 5_000));
        assert!(html.contains(">  same\n"));
    }
}
