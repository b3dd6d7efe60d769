//! Tables of text.

use crate::html::Escaped;

/// A table of text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows: one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The heading of the column.
    pub title: String,
    /// Whether the column holds numbers, which are right-aligned.
    pub numbers: bool,
}

impl Column {
    /// A left-aligned column of text.
    pub fn text(title: &str) -> Column {
        Column { title: title.to_owned(), numbers: false }
    }

    /// A right-aligned column of numbers.
    pub fn numbers(title: &str) -> Column {
        Column { title: title.to_owned(), numbers: true }
    }
}

impl Table {
    /// A table that gets a row for each thing.
    pub fn of<'t, T>(things: impl IntoIterator<Item = &'t T>) -> Filling<'t, T> {
        let things: Vec<&T> = things.into_iter().collect();
        Filling { table: Table { columns: Vec::new(), rows: vec![Vec::new(); things.len()] }, things }
    }

    /// The same without columns in which no row has anything.
    #[must_use]
    pub fn without_empty(self) -> Table {
        let used: Vec<bool> =
            (0..self.columns.len()).map(|at| self.rows.iter().any(|row| !row[at].is_empty())).collect();
        fn kept<T>(all: Vec<T>, used: &[bool]) -> Vec<T> {
            all.into_iter().zip(used).filter_map(|(one, used)| used.then_some(one)).collect()
        }
        let rows = self.rows.into_iter().map(|row| kept(row, &used)).collect();
        Table { columns: kept(self.columns, &used), rows }
    }

    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
        let head = line(self.columns.iter().map(|column| column.title.as_str()).collect());
        let rule = line(vec!["---"; self.columns.len()]);
        let rows: String =
            self.rows.iter().map(|row| line(row.iter().map(String::as_str).collect())).collect();
        head + &rule + &rows
    }

    /// The table as HTML; empty if there are no rows.
    pub(crate) fn to_html(&self) -> String {
        self.render(|_| String::new())
    }

    /// Like `to_html`, with an id for each row, made from the text of its first cell.
    pub(crate) fn to_html_with_ids(&self, id: impl Fn(&str) -> String) -> String {
        let of = |row: &[String]| row.first().map(|first| id(first));
        self.render(|row| of(row).map(|id| format!(" id=\"{}\"", Escaped(&id))).unwrap_or_default())
    }

    /// `attributes` returns the attributes of a row, with a leading space.
    fn render(&self, attributes: impl Fn(&[String]) -> String) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let class = |column: &Column| if column.numbers { " class=\"number\"" } else { "" };
        let titles = self
            .columns
            .iter()
            .map(|column| format!("<th scope=\"col\"{}>{}</th>", class(column), Escaped(&column.title)));
        let row = |row: &Vec<String>| {
            let cells = self.columns.iter().zip(row);
            let cells = cells.map(|(column, cell)| format!("<td{}>{}</td>", class(column), Escaped(cell)));
            format!("<tr{}>{}</tr>\n", attributes(row), cells.collect::<String>())
        };
        let (titles, rows) = (titles.collect::<String>(), self.rows.iter().map(row).collect::<String>());
        // A wide table scrolls on its own, so that the page does not. The tab index makes it
        // reachable by keyboard.
        format!(
            "<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
             </table></div>\n"
        )
    }
}

/// A table to which columns are added: their titles, and the cell of each thing.
pub struct Filling<'t, T> {
    things: Vec<&'t T>,
    table: Table,
}

impl<T> Filling<'_, T> {
    /// Adds a column of text.
    #[must_use]
    pub fn left(self, title: &str, cell: impl Fn(&T) -> String) -> Self {
        self.column(Column::text(title), cell)
    }

    /// Adds a column of numbers.
    #[must_use]
    pub fn right(self, title: &str, cell: impl Fn(&T) -> String) -> Self {
        self.column(Column::numbers(title), cell)
    }

    fn column(mut self, column: Column, cell: impl Fn(&T) -> String) -> Self {
        self.table.columns.push(column);
        self.table.rows.iter_mut().zip(&self.things).for_each(|(row, thing)| row.push(cell(thing)));
        self
    }

    /// The table.
    pub fn done(self) -> Table {
        self.table
    }
}

/// The cell of something that may be missing.
pub fn dash(cell: Option<impl ToString>) -> String {
    cell.map_or_else(|| "-".to_owned(), |cell| cell.to_string())
}
