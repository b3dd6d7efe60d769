//! A table of the time that each compiler pass takes. The libraries mark each pass with a `tracing`
//! span.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::table::{PlainText as _, Table};
use crate::voice;

/// A pass inside its parent pass, with its total time over all threads.
struct Pass {
    name: &'static str,
    parent: Option<usize>,
    times: u64,
    total: Duration,
}

static PASSES: Mutex<Vec<Pass>> = Mutex::new(Vec::new());

fn passes() -> MutexGuard<'static, Vec<Pass>> {
    PASSES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pass with its name, indented, and the time that is not that of passes in it.
type Line<'p> = (String, &'p Pass, Duration);

/// Adds up the time of all enabled spans.
pub(crate) struct Passes;

/// The data of a span: its pass, and when it was entered.
struct Running {
    pass: usize,
    since: Option<Instant>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Passes {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let name = attributes.metadata().name();
        let parent = span.parent().and_then(|span| Some(span.extensions().get::<Running>()?.pass));
        let mut passes = passes();
        let known = passes.iter().position(|pass| (pass.name, pass.parent) == (name, parent));
        let pass = known.unwrap_or(passes.len());
        if pass == passes.len() {
            passes.push(Pass { name, parent, times: 0, total: Duration::ZERO });
        }
        span.extensions_mut().insert(Running { pass, since: None });
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(running) = span.extensions_mut().get_mut::<Running>()
        {
            running.since = Some(Instant::now());
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(Running { pass, since: Some(since) }) = span.extensions().get::<Running>()
        {
            let pass = &mut passes()[*pass];
            pass.times += 1;
            pass.total += since.elapsed();
        }
    }
}

/// Prints the time of each pass, with nested passes below their parents.
pub(crate) fn show() {
    let passes = passes();
    let mut lines = Vec::new();
    rows(&passes, None, 0, &mut lines);
    if !lines.is_empty() {
        let milliseconds = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
        let table = Table::of(&lines)
            .left("pass", |(name, ..)| name.clone())
            .right("times", |(_, pass, _)| pass.times.to_string())
            .right("ms", |(_, pass, _)| milliseconds(pass.total))
            .right("own ms", |(.., own)| milliseconds(*own));
        voice::line(table.text().trim_end_matches('\n'));
    }
}

/// The passes with their names and own times, in the order in which they are printed.
fn rows<'p>(passes: &'p [Pass], parent: Option<usize>, depth: usize, lines: &mut Vec<Line<'p>>) {
    for (number, pass) in passes.iter().enumerate().filter(|(_, pass)| pass.parent == parent) {
        let parts = passes.iter().filter(|part| part.parent == Some(number));
        let own = pass.total.saturating_sub(parts.map(|part| part.total).sum());
        lines.push((format!("{}{}", "  ".repeat(depth), pass.name), pass, own));
        rows(passes, Some(number), depth + 1, lines);
    }
}
