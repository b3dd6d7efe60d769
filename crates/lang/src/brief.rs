//! Keeps messages short, however many mistakes there are.

use std::borrow::Cow;
use std::fmt::Display;

/// The maximum number of items that one message lists.
pub const MAX_SHOWN: usize = 20;

/// The maximum number of characters that a message quotes from user text.
pub const MAX_QUOTED: usize = 200;

/// Joins items with a separator. Of a long list, shows the first `MAX_SHOWN` and the number of
/// the rest.
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

/// A text, padded with spaces to `width` characters. Formats with a width of their own, such as `{text:width$}`, panic
/// beyond 65,535 characters.
///
/// ```
/// use warploom_lang::brief::padded;
/// assert_eq!(padded("blur", 6), "blur  ");
/// assert_eq!(padded("blur", 2), "blur");
/// ```
pub fn padded(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(text.chars().count());
    format!("{text}{}", " ".repeat(missing))
}

/// Quotes a text; truncates a long one.
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
