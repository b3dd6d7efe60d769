//! The tables of `docs/json.md`, which follow from the declarations of reports. `WARPLOOM_BLESS=1` writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use warploom::app::{Size, Sizes};
use warploom::codegen::export::{Compiled, Target};
use warploom::cost::Basis;
use warploom::lang::{Region, Type};
use warploom::runtime::Timing;
use warploom::tune::compare::Comparison;
use warploom::tune::explain::Idle;
use warploom::tune::tuning::{Progress, Tally};

use super::Declared;

const HEAD: &str = "| field | type | unit | meaning |\n| --- | --- | --- | --- |\n";

/// A type of a field.
pub(crate) trait Described {
    /// What the page calls it, as in `array of string or null`.
    fn shape() -> String;

    /// The rows of its table, if it is declared here.
    fn rows() -> Vec<Row> {
        Vec::new()
    }
}

/// A row of a table.
pub(crate) struct Row {
    field: String,
    shape: String,
    unit: String,
    meaning: String,
}

#[derive(Default)]
pub(crate) struct Rows(pub(crate) Vec<Row>);

impl Rows {
    /// Adds a field with its attributes, its type in JSON if its own says another, its unit and what it means.
    pub(crate) fn add<T: Described + ?Sized>(
        &mut self,
        field: &str,
        attributes: &[&str],
        [shape, unit, meaning]: [Option<&str>; 3],
    ) {
        let serde =
            |word: &str| attributes.iter().find(|text| text.starts_with("serde(") && text.contains(word));
        if serde("skip").is_some() {
            return;
        }
        let shape = shape.map_or_else(T::shape, str::to_owned);
        let meaning = meaning.unwrap_or_default().to_owned();
        if serde("flatten").is_some() {
            return match shape.is_empty() {
                true => self.0.extend(T::rows()),
                false => self.0.push(Row { field: String::new(), shape, unit: "-".to_owned(), meaning }),
            };
        }
        assert!(!meaning.is_empty(), "`{field}` says nothing of what it means");
        let renamed = serde("rename").and_then(|text| text.split('"').nth(1));
        let field = renamed.unwrap_or(field).to_owned();
        let unit = unit.unwrap_or_else(|| unit_of(&field)).to_owned();
        self.0.push(Row { field, shape, unit, meaning });
    }
}

/// The unit that a field's name says.
fn unit_of(field: &str) -> &'static str {
    let ends = |word: &str| field == word || field.ends_with(&format!("_{word}"));
    match () {
        () if ends("us") || field.contains("_us_") => "us",
        () if ends("ms") => "ms",
        () if ends("seconds") => "s",
        () if ends("bytes") => "bytes",
        () => "-",
    }
}

impl Row {
    fn line(&self) -> String {
        let Row { field, shape, unit, meaning } = self;
        let field = if field.is_empty() { "all fields of".to_owned() } else { format!("`{field}`") };
        format!("| {field} | {} | {unit} | {meaning} |\n", linked(shape))
    }
}

/// A type whose parts are links, as in `array of [region](#region)`.
fn linked(shape: &str) -> String {
    const KNOWN: [&str; 7] = ["string", "integer", "number", "boolean", "null", "report", ""];
    let link = |one: &str| {
        let of =
            ["array of ", "map of "].iter().find(|of| one.starts_with(**of)).copied().unwrap_or_default();
        match &one[of.len()..] {
            name if KNOWN.contains(&name) => format!("{of}{name}"),
            name => format!("{of}[{name}](#{})", name.replace(' ', "-")),
        }
    };
    shape.split(" or ").map(link).collect::<Vec<_>>().join(" or ")
}

/// Fails unless the page has the table of a declaration, or writes it there.
pub(crate) fn is_on_the_page<T: Declared + Described>() {
    static PAGE: Mutex<()> = Mutex::new(());
    if T::NAME.is_empty() {
        return;
    }
    let _alone = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = page();
    let text = fs::read_to_string(&path).unwrap();
    let table = T::rows().iter().fold(HEAD.to_owned(), |table, row| table + &row.line());
    let heading = format!("# `{}`\n", T::NAME);
    let Some(start) = text.find(&heading) else {
        panic!("docs/json.md has no section `{}`; add one", T::NAME)
    };
    let section = &text[start + heading.len()..];
    let section = &section[..section.find("\n#").map_or(section.len(), |end| end + 1)];
    let is_row = |line: &&str| line.starts_with('|');
    let old: String =
        section.split_inclusive('\n').skip_while(|line| !is_row(line)).take_while(is_row).collect();
    if old == table {
        return;
    }
    let message = "is not what the program declares; WARPLOOM_BLESS=1 writes it";
    assert!(std::env::var_os("WARPLOOM_BLESS").is_some(), "the table of `{}` {message}:\n{table}", T::NAME);
    let section = match old.is_empty() {
        true => format!("\n{table}{section}"),
        false => section.replacen(&old, &table, 1),
    };
    let rest = &text[start + heading.len()..];
    let rest = &rest[rest.find("\n#").map_or(rest.len(), |end| end + 1)..];
    fs::write(path, format!("{}{section}{rest}", &text[..start + heading.len()])).unwrap();
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md")
}

/// What the page calls types that are declared elsewhere.
macro_rules! called {
    ($($name:literal: $($ty:ty),*;)*) => {$($(
        impl Described for $ty {
            fn shape() -> String {
                $name.to_owned()
            }
        }
    )*)*};
}

called! {
    "string": String, str, PathBuf, Type;
    "integer": u8, u32, u64, usize, i64;
    "number": f64;
    "boolean": bool;
    "array of integer": (usize, usize);
    "not in JSON": Duration;
    "region": Region;
    "emitted": serde_json::Value;
    "timing": Timing;
    "tally": Tally;
    "progress": Progress;
    "other device": Target;
    "idle": Idle;
    "compiled code": Compiled;
    "basis": Basis;
    "size": Size;
    "map of size": Sizes;
    "comparison": Comparison;
}

impl<T: Described + ?Sized> Described for &T {
    fn shape() -> String {
        T::shape()
    }
}

impl<T: Described> Described for Option<T> {
    fn shape() -> String {
        format!("{} or null", T::shape())
    }
}

impl<T: Described> Described for Vec<T> {
    fn shape() -> String {
        <[T]>::shape()
    }
}

impl<T: Described, const N: usize> Described for [T; N] {
    fn shape() -> String {
        <[T]>::shape()
    }
}

impl<T: Described> Described for [T] {
    fn shape() -> String {
        format!("array of {}", T::shape())
    }
}

impl<K, T: Described> Described for BTreeMap<K, T> {
    fn shape() -> String {
        format!("map of {}", T::shape())
    }
}

#[test]
fn types_are_links() {
    assert_eq!(linked("array of string or null"), "array of string or null");
    assert_eq!(linked("integer or array of run input"), "integer or array of [run input](#run-input)");
}
