//! Numbers, sizes and times for people, as short text.

use std::path::Path;

use warploom_cost::TimeRange;
use warploom_lang::{Region, Type, visible};

/// A path on one line, whatever it contains.
pub fn path(path: impl AsRef<Path>) -> String {
    visible(&path.as_ref().to_string_lossy()).into_owned()
}

/// Paths, each on a line.
pub fn paths(paths: &[String]) -> String {
    paths.iter().map(|one| path(one) + "\n").collect()
}

/// The extents of a box, as in `640x480x3`; a box without dimensions is one point.
pub fn extents(region: &Region) -> String {
    if region.dimensions() == 0 {
        return "1 point".to_owned();
    }
    region.extents().iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}

/// The blocks of a launch, as in `40x16x1`.
pub fn grid([x, y, z]: [u32; 3]) -> String {
    format!("{x}x{y}x{z}")
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// What to say below a table of times [with a range](with_range).
pub const BRACKETS: &str = "\nIn brackets: where the measured time lies for nine of ten pipelines.\n";

/// The range of a predicted time in words, as in `16 to 31 for nine of ten pipelines`.
pub fn range(range: Option<TimeRange>) -> String {
    match range {
        Some(range) => format!("{} for nine of ten pipelines", from_to(range)),
        None => "range unknown".to_owned(),
    }
}

/// A predicted time for a cell of a table, as in `19.2 (16 to 31)`.
pub fn with_range(predicted_us: f64, range: Option<TimeRange>) -> String {
    match range {
        Some(range) => format!("{predicted_us:.1} ({})", from_to(range)),
        None => format!("{predicted_us:.1}"),
    }
}

/// The ends of a range, as in `16 to 31`: it is too uncertain for more digits.
fn from_to(TimeRange { low_us, high_us }: TimeRange) -> String {
    let rough = |us: f64| if us < 10.0 { format!("{us:.1}") } else { format!("{us:.0}") };
    format!("{} to {}", rough(low_us), rough(high_us))
}

/// A number with a few significant digits; short numbers are exact.
pub fn number(value: f64) -> String {
    let short = format!("{value}");
    match value.abs() {
        _ if short.len() <= 8 => short,
        magnitude if (1e-3..1e6).contains(&magnitude) => format!("{value:.4}"),
        _ => format!("{value:.3e}"),
    }
}

/// The exact number, in as few characters as possible.
pub fn exact(value: f64) -> String {
    let (plain, powers) = (format!("{value}"), format!("{value:e}"));
    if plain.len() <= 16 { plain } else { powers }
}

/// A number of bytes, with a unit.
pub fn bytes(bytes: u64) -> String {
    let units = ["KB", "MB", "GB", "TB", "PB", "EB"];
    let scale = (1..units.len() as i32).rev().find(|&power| bytes as f64 >= 1000_f64.powi(power + 1));
    let power = scale.unwrap_or(0);
    format!("{:.1} {}", bytes as f64 / 1000_f64.powi(power + 1), units[power as usize])
}

/// `1 input`, `2 inputs`, `no inputs`.
pub fn count(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// The range of values that a type can represent.
pub fn values_of(ty: Type) -> String {
    match ty.int_range() {
        Some((low, high)) => format!("a whole number from {low} to {high}"),
        None => "a number that it can represent".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 1.5, -3.0, 0.123456789, 1234.56789, 1e-9 / 3.0, 2e12 / 3.0, f64::NAN].map(number);
        assert_eq!(shown, ["0", "1.5", "-3", "0.1235", "1234.5679", "3.333e-10", "6.667e11", "NaN"]);
    }

    #[test]
    fn exact_numbers_keep_all_digits() {
        let shown = [3e9, 2.5, 1e300, -0.123456789012345].map(exact);
        assert_eq!(shown, ["3000000000", "2.5", "1e300", "-1.23456789012345e-1"]);
    }

    #[test]
    fn a_path_takes_one_line() {
        assert_eq!(paths(&["a\nb".to_owned(), "c/d".to_owned()]), "a<U+000A>b\nc/d\n");
        assert_eq!(paths(&[]), "");
    }

    #[test]
    fn ranges_are_rough() {
        let known = Some(TimeRange { low_us: 9.64, high_us: 31.4 });
        assert_eq!(range(known), "9.6 to 31 for nine of ten pipelines");
        assert_eq!([with_range(19.23, known), with_range(19.23, None)], ["19.2 (9.6 to 31)", "19.2"]);
        assert_eq!(range(None), "range unknown");
    }

    #[test]
    fn bytes_have_a_unit() {
        let shown = [0, 999, 1500, 12_000_000_000_000, u64::MAX].map(bytes);
        assert_eq!(shown, ["0.0 KB", "1.0 KB", "1.5 KB", "12.0 TB", "18.4 EB"]);
    }
}
