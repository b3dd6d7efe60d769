//! Plain-text tables that can be printed line by line.

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// The columns of a table, with their titles and current widths.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    title: String,
    align: Align,
    width: usize,
}

impl Columns {
    /// Columns that are as wide as their titles.
    pub(crate) fn new(titles: &[(&str, Align)]) -> Columns {
        let columns = titles.iter();
        let columns =
            columns.map(|&(title, align)| Column { title: title.to_owned(), align, width: width(title) });
        Columns { columns: columns.collect() }
    }

    /// Widens the columns to fit a line.
    pub(crate) fn fit(&mut self, cells: &[String]) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.width = column.width.max(width(cell));
        }
    }

    pub(crate) fn header(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        self.line(&titles)
    }

    /// Formats a line, without a newline.
    pub(crate) fn line(&self, cells: &[String]) -> String {
        let cells = self.columns.iter().zip(cells).map(|(column, cell)| {
            let blank = " ".repeat(column.width.saturating_sub(width(cell)));
            match column.align {
                Align::Left => format!("{cell}{blank}"),
                Align::Right => format!("{blank}{cell}"),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Formats a table whose rows are all known. A cell may have several lines.
pub(crate) fn whole(titles: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let mut columns = Columns::new(titles);
    let lines: Vec<Vec<String>> = rows.iter().flat_map(|row| split(row)).collect();
    lines.iter().for_each(|line| columns.fit(line));
    let lines = std::iter::once(columns.header()).chain(lines.iter().map(|line| columns.line(line)));
    lines.map(|line| line + "\n").collect()
}

/// Formats a table as Markdown.
pub(crate) fn markdown(titles: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let head = line(titles.iter().map(|(title, _)| *title).collect());
    let rule = line(vec!["---"; titles.len()]);
    let rows: String = rows.iter().map(|row| line(row.iter().map(String::as_str).collect())).collect();
    head + &rule + &rows
}

/// Splits a row into its lines.
fn split(row: &[String]) -> Vec<Vec<String>> {
    let height = row.iter().map(|cell| cell.lines().count()).max().unwrap_or(0);
    let line = |number: usize| {
        let cells = row.iter().map(|cell| cell.lines().nth(number).unwrap_or_default().to_owned());
        cells.collect()
    };
    (0..height).map(line).collect()
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

    #[test]
    fn columns_are_aligned() {
        let rows = [["a", "1", "x"], ["longer", "100", ""]].map(|row| row.map(str::to_owned).to_vec());
        let titles = [("name", Align::Left), ("n", Align::Right), ("rest", Align::Left)];
        assert_eq!(whole(&titles, &rows), "name      n  rest\na         1  x\nlonger  100\n");
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
