//! Writes results as text or as one JSON object, and declares the objects.

#[cfg(test)]
pub(crate) mod tests;

use std::io::{self, Write};

use serde::Serialize;
use warploom::lang::{is_invisible, visible_lines};

use crate::error::Error;
use crate::fold::fold;

/// The flag that every command has.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Format {
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// An object of JSON output that [`report!`] declares.
pub(crate) trait Declared: Serialize {
    /// The name and version of its format, as in `warploom.apps/1`; for a part of a report, its title on the page.
    const NAME: &'static str;
}

/// Declares objects of JSON output: structs whose fields have the text that `docs/json.md` says of them.
///
/// The name is that of a schema, or the title of a part. An empty one stands for fields of the object that the part is in.
/// A field may have another type in JSON than its own says (`as`), and a unit (`[...]`) that its name does not say.
///
/// ```ignore
/// report! {
///     /// An output.
///     struct Output = "run output" {
///         name: String, "its name";
///         max: f64 as "number or null", "the largest sample";
///         spread: f64 ["share"], "what is left";
///     }
/// }
/// ```
macro_rules! report {
    ($($(#[$outer:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? = $title:literal {
        $($(#[$inner:meta])* $of:vis $field:ident: $ty:ty $(as $shape:literal)? $([$unit:literal])?
            $(, $meaning:literal)?;)*
    })*) => {$(
        #[derive(serde::Serialize)]
        $(#[$outer])*
        $vis struct $name $(<$life>)? {
            $($(#[$inner])* $(#[doc = $meaning])? $of $field: $ty,)*
        }

        impl $(<$life>)? $crate::report::Declared for $name $(<$life>)? {
            const NAME: &'static str = $title;
        }

        #[cfg(test)]
        impl $(<$life>)? $crate::report::tests::Described for $name $(<$life>)? {
            fn shape() -> String {
                $title.to_owned()
            }

            fn rows() -> Vec<$crate::report::tests::Row> {
                let mut rows = $crate::report::tests::Rows::default();
                $(rows.add::<$ty>(
                    stringify!($field),
                    &[$(stringify!($inner)),*],
                    [None $(.or(Some($shape)))?, None $(.or(Some($unit)))?, None $(.or(Some($meaning)))?],
                );)*
                rows.0
            }
        }

        #[cfg(test)]
        #[test]
        #[allow(
            non_snake_case,
            clippy::extra_unused_lifetimes,
            reason = "the test is named after the object, and names its type as that is written"
        )]
        fn $name $(<$life>)? () {
            $crate::report::tests::is_on_the_page::<$name $(<$life>)?>();
        }
    )*};
}

#[derive(Serialize)]
struct Object<'a, T> {
    schema: &'a str,
    #[serde(flatten)]
    content: &'a T,
}

/// A report with its schema.
pub(crate) fn object<T: Declared>(content: &T) -> impl Serialize {
    Object { schema: T::NAME, content }
}

/// Writes a report as one JSON object, or else as text.
pub(crate) fn print<T: Declared>(
    out: &mut dyn Write,
    format: Format,
    report: &T,
    words: impl FnOnce() -> String,
) -> Result<(), Error> {
    if format.json { json(out, T::NAME, report) } else { text(out, &words()) }
}

/// Writes one JSON object. `schema` is the name and version of its format.
pub(crate) fn json(out: &mut dyn Write, schema: &str, content: &impl Serialize) -> Result<(), Error> {
    let object = Object { schema, content };
    let text = serde_json::to_string_pretty(&object).map_err(io::Error::from)?;
    writeln!(out, "{}", visible_json(&text))?;
    Ok(out.flush()?)
}

/// Writes one JSON object on one line.
pub(crate) fn json_line(out: &mut dyn Write, schema: &str, content: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string(&Object { schema, content })?;
    writeln!(out, "{}", visible_json(&text))?;
    out.flush()
}

/// Writes text for people, which ends with a newline, in lines that fit a page.
pub(crate) fn text(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    verbatim(out, &fold(&visible_lines(text)))
}

/// Writes text that programs read, too.
pub(crate) fn verbatim(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    out.write_all(visible_lines(text).as_bytes())?;
    Ok(out.flush()?)
}

/// Writes results as one JSON object, or else as text or Markdown, which functions make in this order.
pub(crate) fn in_form<T: Declared>(
    out: &mut dyn Write,
    (format, markdown): (Format, bool),
    report: &T,
    [plain, marked]: [fn(&T) -> String; 2],
) -> Result<(), Error> {
    match markdown {
        true => verbatim(out, &marked(report)),
        false => print(out, format, report, || plain(report)),
    }
}

/// Replaces characters that a terminal would not show by JSON escapes. They can occur only inside
/// strings.
fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        match c != '\n' && is_invisible(c) {
            true => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| shown += &format!("\\u{unit:04x}")),
            false => shown.push(c),
        }
    }
    shown
}
