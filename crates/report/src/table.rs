//! Tables.

use crate::html::Escaped;

/// A table of text.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Table {
    /// Its columns.
    pub columns: Vec<Column>,
    /// The cells of each row, one a column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// What stands above it.
    pub title: String,
    /// Whether it holds numbers, which stand at the right.
    pub numbers: bool,
}

impl Column {
    /// A column of text.
    pub fn text(title: &str) -> Column {
        Column { title: title.to_owned(), numbers: false }
    }

    /// A column of numbers.
    pub fn numbers(title: &str) -> Column {
        Column { title: title.to_owned(), numbers: true }
    }
}

impl Table {
    /// As HTML; nothing for a table without rows.
    pub(crate) fn to_html(&self) -> String {
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
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let (titles, rows) = (titles.collect::<String>(), self.rows.iter().map(row).collect::<String>());
        // A wide table scrolls by itself, so that the page never does; whoever has only a keyboard must reach it.
        format!(
            "<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
             </table></div>\n"
        )
    }
}
