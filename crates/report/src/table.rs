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
