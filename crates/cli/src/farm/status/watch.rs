//! `warploom farm status --watch`: looks again and again, until it is told to stop.
//!
//! A thread of its own reads, so that keys are heard while a server does not answer.

use std::io::{IsTerminal, Write, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use warploom::farm::status::{self, Status};
use warploom::farm::store::Postgres;
use warploom::tune::records::RecordsError;

use super::screen::{View, draw};
use super::{SCHEMA, text};
use crate::error::Error;
use crate::report;
use crate::tune::stop_watching;

/// How often keys and signals are listened to.
const LISTEN: Duration = Duration::from_millis(100);

/// How many lines a page key scrolls.
const PAGE: usize = 10;

/// What was read, or why not.
type Read = Result<Status, RecordsError>;

pub(super) fn watch(
    store: Postgres,
    place: &str,
    every: Duration,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let stop = stop_watching();
    let (looks, _alive) = look(store, every);
    let attended = stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    match json {
        true => each(&looks, stop, |now| Ok(report::json_line(out, SCHEMA, &now)?)),
        false if attended => on_terminal(&looks, stop, place),
        false => {
            let mut before = None;
            each(&looks, stop, |now| {
                let lines = text::changes(before.as_ref(), &now);
                lines.iter().try_for_each(|line| report::text(out, &format!("{line}\n")))?;
                before = Some(now);
                Ok(())
            })
        }
    }
}

/// Reads now and at every interval, until the sender is dropped.
fn look(store: Postgres, every: Duration) -> (Receiver<Read>, Sender<()>) {
    let (sender, looks) = mpsc::channel();
    let (alive, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        loop {
            let read = status::read(&store);
            let failed = read.is_err();
            if sender.send(read).is_err() || failed {
                break;
            }
            if ended.recv_timeout(every) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
    });
    (looks, alive)
}

/// Hands over everything that is read, until a signal comes or reading fails.
fn each(
    looks: &Receiver<Read>,
    stop: &AtomicBool,
    mut show: impl FnMut(Status) -> Result<(), Error>,
) -> Result<(), Error> {
    while !stop.load(Ordering::Relaxed) {
        match looks.recv_timeout(LISTEN) {
            Ok(read) => show(read?)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

/// The terminal, which is as it was before once this is dropped. If the program panics, the library
/// sees to it.
struct Screen(DefaultTerminal);

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn on_terminal(looks: &Receiver<Read>, stop: &AtomicBool, place: &str) -> Result<(), Error> {
    let mut screen = Screen(ratatui::try_init()?);
    let (mut status, mut scroll, mut furthest) = (None, 0, 0);
    let mut changed = true;
    while !stop.load(Ordering::Relaxed) {
        if let Ok(read) = looks.try_recv() {
            status = Some(read?);
            changed = true;
        }
        if changed {
            let view = View { place, status: status.as_ref(), scroll };
            screen.0.draw(|frame| furthest = draw(frame, &view))?;
            scroll = scroll.min(furthest);
        }
        changed = event::poll(LISTEN)?;
        if !changed {
            continue;
        }
        match event::read()? {
            Event::Key(key) if quits(key) => break,
            Event::Key(key) => scroll = scrolled(key, scroll).min(furthest),
            // The size of the terminal, for example.
            _ => {}
        }
    }
    Ok(())
}

/// Whether a key ends the view. The interrupt key is a key like others there.
fn quits(key: KeyEvent) -> bool {
    let interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    key.kind != KeyEventKind::Release && (interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

/// Where a key scrolls to.
fn scrolled(key: KeyEvent, scroll: usize) -> usize {
    match key.code {
        _ if key.kind == KeyEventKind::Release => scroll,
        KeyCode::Up => scroll.saturating_sub(1),
        KeyCode::Down => scroll + 1,
        KeyCode::PageUp => scroll.saturating_sub(PAGE),
        KeyCode::PageDown => scroll + PAGE,
        KeyCode::Home => 0,
        KeyCode::End => usize::MAX,
        _ => scroll,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_quit_and_scroll() {
        let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
        assert!(
            quits(key(KeyCode::Char('q'))) && quits(key(KeyCode::Esc)) && !quits(key(KeyCode::Char('c')))
        );
        assert!(quits(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        let released = KeyEvent { kind: KeyEventKind::Release, ..key(KeyCode::Char('q')) };
        assert!(!quits(released) && scrolled(released, 5) == 5);
        let to = |code| scrolled(key(code), 5);
        let places = [KeyCode::Up, KeyCode::Down, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home].map(to);
        assert_eq!(places, [4, 6, 0, 15, 0]);
        assert_eq!((to(KeyCode::End), to(KeyCode::Char('x'))), (usize::MAX, 5));
    }

    #[test]
    fn what_cannot_be_read_ends_the_view() {
        let (sender, looks) = mpsc::channel();
        let stop = AtomicBool::new(false);
        sender.send(Ok(Status::default())).unwrap();
        let place = warploom::tune::records::RecordsPlace::Server("postgres://host".to_owned());
        sender.send(Err(RecordsError::Locked { place })).unwrap();
        let mut seen = 0;
        let ended = each(&looks, &stop, |_| {
            seen += 1;
            Ok(())
        });
        assert!(seen == 1 && matches!(ended, Err(Error::Records(RecordsError::Locked { .. }))));
        stop.store(true, Ordering::Relaxed);
        assert!(each(&looks, &stop, |_| panic!("it was stopped")).is_ok());
    }
}
