//! Makes untrusted text safe to display.
//!
//! Names and messages may come from untrusted files. Characters that move the cursor, hide others
//! or change the reading order could make a terminal, or a comment in generated code, show
//! something other than the text itself. Such characters are shown by code point: `<U+202E>`.

use std::borrow::Cow;

/// Whether a character is visible only through its effect on others: control characters (including
/// line ends), bidirectional controls and zero-width characters.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// A single-line text with every invisible character replaced by its code point.
///
/// ```
/// assert_eq!(warploom_lang::visible("größe"), "größe");
/// assert_eq!(warploom_lang::visible("a\u{1b}[31m\u{202e}b\n"), "a<U+001B>[31m<U+202E>b<U+000A>");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, is_invisible)
}

/// The same for a text of several lines. Line ends and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c| c != '\n' && c != '\t' && is_invisible(c))
}

fn replaced(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match hidden(c) {
            true => shown += &format!("<U+{:04X}>", u32::from(c)),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_invisible_is_left() {
        let all: String = (0..=u32::from(char::MAX)).filter_map(char::from_u32).collect();
        assert!(!visible(&all).contains(is_invisible));
        let lines = visible_lines(&all);
        assert!(lines.chars().filter(|c| is_invisible(*c)).eq(['\t', '\n']));
        for c in
            ['\u{7}', '\u{7f}', '\u{9b}', '\r', '\u{200f}', '\u{2066}', '\u{2069}', '\u{202a}', '\u{e0041}']
        {
            assert!(is_invisible(c), "{:x}", u32::from(c));
        }
    }

    #[test]
    fn what_can_be_seen_stays() {
        for text in ["", "blur.sum0", "größe", "ぼかし", "a b", "<U+202E>"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
        }
    }
}
