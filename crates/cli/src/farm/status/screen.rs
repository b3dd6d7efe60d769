//! What a farm does, as a frame that fills a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use warploom::farm::status::{Life, Run, Status};

use super::text::{head, listed, note, runs, totals, workers};
use crate::fold::width;
use crate::table::Table;

/// Spaces between columns.
const GAP: usize = 2;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// What is shown.
pub(super) struct View<'a> {
    /// Where the farm is.
    pub place: &'a str,
    /// What it does; `None` until it is known.
    pub status: Option<&'a Status>,
    /// How many lines are above the upper edge.
    pub scroll: usize,
}

/// Draws a frame. Returns how far it can be scrolled.
pub(super) fn draw(frame: &mut Frame<'_>, view: &View<'_>) -> usize {
    let areas: [Rect; 3] =
        Layout::vertical([Constraint::Length(3), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    let [top, middle, bottom] = areas;
    let Some(status) = view.status else {
        frame.render_widget(Line::from(format!("asking {}", warploom::lang::visible(view.place))), top);
        return 0;
    };
    let [first, second] = totals(status);
    let header = vec![Line::styled(head(status, view.place), BOLD), Line::from(first), Line::from(second)];
    frame.render_widget(Paragraph::new(header), top);
    let lines = body(status);
    let height = usize::from(middle.height);
    let furthest = lines.len().saturating_sub(height);
    let from = view.scroll.min(furthest);
    let footer = match furthest {
        0 => "q quits".to_owned(),
        _ => format!("q quits   arrows scroll   lines {} to {} of {}", from + 1, from + height, lines.len()),
    };
    let shown: Vec<Line<'static>> = lines.into_iter().skip(from).take(height).collect();
    frame.render_widget(Paragraph::new(shown), middle);
    frame.render_widget(Line::styled(footer, DIM), bottom);
    furthest
}

/// What can be scrolled: runs, workers and notes.
fn body(status: &Status) -> Vec<Line<'static>> {
    let (listed, others) = listed(status);
    let of_run = |number: usize| run_style(listed[number]);
    let mut lines = grid(&runs(&listed), &of_run);
    lines.extend(others.map(|others| Line::styled(others, DIM)));
    let shown: Vec<Life> =
        status.workers.iter().map(|worker| worker.life).filter(|life| *life != Life::Left).collect();
    let of_worker = |number: usize| match shown[number] {
        Life::Lost => Style::new().fg(Color::Red),
        Life::Alive | Life::Left => Style::new(),
    };
    lines.extend(grid(&workers(status), &of_worker));
    if !status.notes.is_empty() {
        lines.extend([Line::default(), Line::styled("notes", BOLD)]);
    }
    // The last is what people look for.
    lines.extend(status.notes.iter().rev().map(|one| Line::from(note(one))));
    lines
}

fn run_style(run: &Run) -> Style {
    match run.state.as_str() {
        "active" if run.proposed => Style::new().fg(Color::Green),
        "active" | "failed" => Style::new().fg(Color::Red),
        "waiting" => Style::new(),
        _ => DIM,
    }
}

/// A table below an empty line; nothing if it has no rows. Each row has the style of its number.
fn grid(cells: &Table, style: &dyn Fn(usize) -> Style) -> Vec<Line<'static>> {
    if cells.rows.is_empty() {
        return Vec::new();
    }
    let titles: Vec<String> = cells.columns.iter().map(|column| column.title.clone()).collect();
    let widest = |column: usize| {
        let all = cells.rows.iter().chain([&titles]);
        all.map(|row| width(&row[column])).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..titles.len()).map(widest).collect();
    let line = |row: &[String]| {
        let columns = row.iter().zip(&cells.columns).zip(&widths);
        let padded = columns.map(|((cell, column), width)| match column.numbers {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
        padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    let mut lines = vec![Line::default(), Line::styled(line(&titles), BOLD)];
    lines.extend(cells.rows.iter().enumerate().map(|(number, row)| Line::styled(line(row), style(number))));
    lines
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::farm::status::text::tests::status;

    /// The frame, and how far it can be scrolled.
    fn drawn(
        status: Option<&Status>,
        (width, height): (u16, u16),
        scroll: usize,
    ) -> (Terminal<TestBackend>, usize) {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let view = View { place: "farm/farm.json", status, scroll };
        let mut furthest = 0;
        terminal.draw(|frame| furthest = draw(frame, &view)).unwrap();
        (terminal, furthest)
    }

    fn text(terminal: &Terminal<TestBackend>) -> String {
        terminal.backend().to_string()
    }

    #[test]
    fn a_farm_fills_a_screen() {
        let (terminal, furthest) = drawn(Some(&status()), (100, 18), 0);
        insta::assert_snapshot!(terminal.backend());
        assert_eq!(furthest, 0);
        let buffer = terminal.backend().buffer();
        assert_eq!(buffer[(0, 5)].fg, Color::Green, "a run that goes on");
        assert_eq!(buffer[(0, 7)].fg, Color::Red, "a run that failed");
        assert_eq!(buffer[(0, 12)].fg, Color::Red, "a lost worker");
    }

    #[test]
    fn what_does_not_fit_is_scrolled_to() {
        let status = status();
        let (top, furthest) = drawn(Some(&status), (60, 10), 0);
        assert!(
            furthest > 0 && text(&top).contains("harris") && !text(&top).contains("slower"),
            "{}",
            text(&top)
        );
        assert!(text(&top).contains("q quits   arrows scroll   lines 1 to 6 of "), "{}", text(&top));
        let (bottom, _) = drawn(Some(&status), (60, 10), furthest);
        assert!(
            text(&bottom).contains("7 % slower") && !text(&bottom).contains("harris"),
            "{}",
            text(&bottom)
        );
        assert_eq!(text(&drawn(Some(&status), (60, 10), 10_000).0), text(&bottom), "the end is the end");
    }

    #[test]
    fn every_size_will_do() {
        for size in [(1, 1), (3, 2), (10, 4), (200, 60)] {
            drawn(Some(&status()), size, 3);
            drawn(Some(&Status::default()), size, 3);
            drawn(None, size, 0);
        }
        assert!(text(&drawn(None, (30, 4), 0).0).contains("asking farm/farm.json"));
    }
}
