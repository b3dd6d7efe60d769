//! Escaping of text for HTML.

use std::fmt;

use crate::chart::Drawing;

/// Text that is safe between tags and in quoted attributes of HTML and SVG.
#[derive(Clone, Copy)]
pub(crate) struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write;
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(character)?,
                // These would change the order or the look of the surrounding text.
                '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
                    f.write_char('\u{fffd}')?;
                }
                // Neither HTML nor XML can represent them.
                control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char('\u{fffd}')?;
                }
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// The style sheet of all pages.
const STYLE: &str = concat!(include_str!("style.css"), include_str!("chart.css"));

/// A self-contained HTML document.
pub(crate) struct Document<'a> {
    pub title: &'a str,
    /// Additional rules of the style sheet.
    pub style: &'a str,
    pub script: Option<&'a str>,
    /// The content, as HTML.
    pub body: &'a str,
}

impl Document<'_> {
    /// The document as text. Its content security policy forbids everything outside of it, and scripts if it has none.
    pub(crate) fn to_html(&self) -> String {
        let Document { title, style, script, body } = self;
        let title = Escaped(title);
        let scripts = script.map_or("", |_| "; script-src 'unsafe-inline'");
        let script = script.map(|script| format!("<script>\n{script}</script>\n")).unwrap_or_default();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'{scripts}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n{body}{script}</body>\n</html>\n"
        )
    }
}

/// A chart with a caption.
pub(crate) fn figure(chart: &Drawing, caption: &str) -> String {
    format!("<figure>\n{}\n<figcaption>{}</figcaption>\n</figure>\n", chart.in_page(), Escaped(caption))
}

/// `1 trial`, `2 trials`
pub(crate) fn count(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_means_something_is_left() {
        let escaped = Escaped("<b a=\"1\" c='2'>&amp;\u{0}\n").to_string();
        assert_eq!(escaped, "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;\u{fffd}\n");
        assert_eq!(Escaped("a\u{202e}b\u{200b}c\u{feff}").to_string(), "a\u{fffd}b\u{fffd}c\u{fffd}");
        assert_eq!(Escaped("größer, 12 µs").to_string(), "größer, 12 µs");
    }
}
