//! Messages that stay short, however much is wrong.

use std::borrow::Cow;
use std::fmt::Display;

/// How many of many things one message shows.
pub const MAX_SHOWN: usize = 20;

/// How many characters of a user's text a message quotes in one piece.
pub const MAX_QUOTED: usize = 200;

/// Some things, one after the other; of many, the first and how many more there are.
///
/// ```
/// use warploom_lang::brief::shown;
/// assert_eq!(shown(&["a", "b"], ", "), "a, b");
/// let many: Vec<usize> = (0..1000).collect();
/// assert!(shown(&many, ", ").ends_with("18, 19, and 980 more"));
/// ```
pub fn shown<T: Display>(things: &[T], separator: &str) -> String {
    let mut texts: Vec<String> = things.iter().take(MAX_SHOWN).map(T::to_string).collect();
    if things.len() > MAX_SHOWN {
        texts.push(format!("and {} more", things.len() - MAX_SHOWN));
    }
    texts.join(separator)
}

/// A text to quote: the start of a long one.
///
/// ```
/// use warploom_lang::brief::quoted;
/// assert_eq!(quoted("blur"), "blur");
/// assert_eq!(quoted(&"x".repeat(1_000_000)).len(), 203);
/// ```
pub fn quoted(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_QUOTED) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}
