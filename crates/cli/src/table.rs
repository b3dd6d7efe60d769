//! Plain-text tables that can be printed line by line.

use warploom_report::{Column, Filling};
pub(crate) use warploom_report::{Table, dash};

use crate::fold::{self, WIDTH, longest_word, width};

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// Spaces between columns.
const GAP: usize = 2;

/// Where the lines start that continue a row.
const INDENT: usize = 4;

/// Text in a column is not made narrower than this.
const NARROWEST: usize = 20;

/// The columns of a table, with their titles and current widths.
///
/// In a table that is too wide for a page, titles and text fold between words. If it is too wide all the same, its rows continue
/// on further lines.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    columns: Vec<Measured>,
}

#[derive(Clone, Debug)]
struct Measured {
    title: String,
    align: Align,
    /// The width in which nothing folds.
    width: usize,
    /// The widest word of a title or text, or the widest number.
    word: usize,
}

impl Columns {
    /// Columns that are as wide as their titles.
    pub(crate) fn new(titles: &[(impl AsRef<str>, Align)]) -> Columns {
        let columns = titles.iter().map(|(title, align)| Measured {
            title: title.as_ref().to_owned(),
            align: *align,
            width: width(title.as_ref()),
            word: longest_word(title.as_ref()),
        });
        Columns { columns: columns.collect() }
    }

    /// Widens the columns to fit a line.
    pub(crate) fn fit(&mut self, cells: &[String]) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            let widest = cell.lines().map(width).max().unwrap_or(0);
            column.width = column.width.max(widest);
            column.word = column.word.max(match column.align {
                Align::Left => longest_word(cell),
                Align::Right => widest,
            });
        }
    }

    pub(crate) fn header(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        self.line(&titles)
    }

    /// Formats a row, without a newline at its end. It has several lines if a cell has, or if it is too wide for one.
    pub(crate) fn line(&self, cells: &[String]) -> String {
        let slots = self.slots();
        let cells: Vec<(Slot, Vec<String>)> =
            slots.into_iter().zip(cells).map(|(slot, text)| (slot, fold::cell(text, slot.width))).collect();
        let bands = cells.chunk_by(|(left, _), (right, _)| left.line == right.line);
        let lines = bands.flat_map(|band| {
            let height = band.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
            (0..height).map(|number| place(band, number))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Where the columns are on a page.
    fn slots(&self) -> Vec<Slot> {
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.width).collect();
        let least: Vec<usize> = self.columns.iter().map(Measured::least).collect();
        while total(&widths) > WIDTH && narrow(&mut widths, &least) {}
        let fits = total(&widths) <= WIDTH;
        let (mut start, mut line) = (0, 0);
        let slots = self.columns.iter().zip(widths).map(|(column, width)| {
            let width = if fits { width } else { column.width.min(WIDTH - INDENT) };
            if start > 0 && start + width > WIDTH {
                start = INDENT;
                line += 1;
            }
            let slot = Slot { line, start, width, align: column.align };
            start += width + GAP;
            slot
        });
        slots.collect()
    }
}

/// The place of a column on a page.
#[derive(Clone, Copy)]
struct Slot {
    /// The line of a row.
    line: usize,
    start: usize,
    width: usize,
    align: Align,
}

impl Measured {
    /// The least width: titles and text fold between words, numbers never.
    fn least(&self) -> usize {
        match self.align {
            Align::Left => self.word.max(self.width.min(NARROWEST)),
            Align::Right => self.word,
        }
    }
}

/// One line of the cells of a row.
fn place(cells: &[(Slot, Vec<String>)], number: usize) -> String {
    let mut text = String::new();
    let mut end = 0;
    for (slot, lines) in cells {
        let Some(cell) = lines.get(number).filter(|cell| !cell.is_empty()) else { continue };
        let from = match slot.align {
            Align::Left => slot.start,
            Align::Right => slot.start + slot.width.saturating_sub(width(cell)),
        };
        // A word that is wider than its column moves what follows.
        let from = if end > 0 { from.max(end + GAP) } else { from };
        text += &" ".repeat(from - end);
        text += cell;
        end = from + width(cell);
    }
    text
}

/// The width of a line.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// Makes the widest column that may be narrower so. Returns whether there was one.
fn narrow(widths: &mut [usize], least: &[usize]) -> bool {
    let able = widths.iter_mut().zip(least).filter(|(width, least)| **width > **least);
    match able.max_by_key(|(width, _)| **width) {
        Some((width, _)) => {
            *width -= 1;
            true
        }
        None => false,
    }
}

/// A table, or one that is being filled, as plain text.
pub(crate) trait PlainText {
    /// The lines of the table, each with a newline.
    fn text(self) -> String;
}

impl PlainText for &Table {
    fn text(self) -> String {
        let align = |column: &Column| if column.numbers { Align::Right } else { Align::Left };
        let titles = self.columns.iter().map(|column| (column.title.as_str(), align(column)));
        let mut columns = Columns::new(&titles.collect::<Vec<_>>());
        self.rows.iter().for_each(|row| columns.fit(row));
        let rows = std::iter::once(columns.header()).chain(self.rows.iter().map(|row| columns.line(row)));
        rows.map(|row| row + "\n").collect()
    }
}

impl<T> PlainText for Filling<'_, T> {
    fn text(self) -> String {
        self.done().text()
    }
}

/// Joins items into lines of at most `limit` characters; a longer item has a line of its own.
pub(crate) fn wrap(items: impl IntoIterator<Item = String>, limit: usize) -> String {
    let mut text = String::new();
    let mut column = 0;
    for item in items {
        let separator = match column {
            0 => "",
            column if column + 1 + width(&item) <= limit => " ",
            _ => "\n",
        };
        column = if separator == " " { column + 1 } else { 0 } + width(&item);
        text += separator;
        text += &item;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(titles: &[(&str, Align)], rows: &[Vec<String>]) -> String {
        let column = |(title, align): &(&str, Align)| match align {
            Align::Left => Column::text(title),
            Align::Right => Column::numbers(title),
        };
        Table { columns: titles.iter().map(column).collect(), rows: rows.to_vec() }.text()
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "1", "x"], ["longer", "100", ""]].map(|row| row.map(str::to_owned).to_vec());
        let titles = [("name", Align::Left), ("n", Align::Right), ("rest", Align::Left)];
        assert_eq!(whole(&titles, &rows), "name      n  rest\na         1  x\nlonger  100\n");
    }

    #[test]
    fn wide_tables_fold() {
        let titles = [("name", Align::Left), ("spilled bytes", Align::Right), ("why", Align::Left)];
        let words = "a reason of many words ".repeat(4);
        let rows = |name: &str| vec![vec![name.to_owned(), "12".to_owned(), words.clone()]];
        assert_eq!(
            whole(&titles, &rows("short")),
            "name   spilled bytes  why\n\
             short             12  a reason of many words a reason of many words a reason of\n\
             \x20                     many words a reason of many words\n"
        );
        // Titles fold where that is enough.
        let name = "n".repeat(48);
        let text = whole(&titles, &rows(&name));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("name{}spilled  why", " ".repeat(47)), "{text}");
        assert_eq!(lines[1], format!("{}bytes", " ".repeat(53)), "{text}");
        assert!(lines[2].starts_with(&format!("{name}        12  a reason")), "{text}");
        assert!(lines.iter().all(|line| width(line) <= WIDTH), "{text}");
        // Otherwise rows continue on further lines.
        let name = "n".repeat(60);
        let text = whole(&titles, &rows(&name));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            [format!("name{}spilled bytes", " ".repeat(58)).as_str(), "    why"],
            "{text}"
        );
        assert_eq!(lines[2], format!("{name}             12"), "{text}");
        assert!(lines[3].starts_with("    a reason of many words a"), "{text}");
        assert!(lines.iter().all(|line| width(line) <= WIDTH), "{text}");
    }

    #[test]
    fn long_cells_are_wrapped() {
        let items = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(wrap(items("a bb ccc dddd"), 4), "a bb\nccc\ndddd");
        assert_eq!(wrap(items("aaaaaa b c"), 4), "aaaaaa\nb c");
        assert_eq!(wrap([], 4), "");

        let rows = [["x", "1\n2"], ["y", "3"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(whole(&[("a", Align::Left), ("b", Align::Right)], &rows), "a  b\nx  1\n   2\ny  3\n");
    }
}
