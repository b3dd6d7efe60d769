//! Where each printed line of a kernel comes from.

use std::slice;

use crate::ir::{ArrayId, Kernel, KernelId, PlanPart, Stmt, every_stmt};
use crate::printer::LineOrigin;

/// Follows the statements of a kernel as they are printed.
pub(super) struct Tracker<'a> {
    kernel: &'a Kernel,
    /// The places of the statements that follow, one entry per statement.
    places: Box<dyn Iterator<Item = PlanPart> + 'a>,
    current: Current,
    lines: Vec<Current>,
}

/// Where the printer is.
#[derive(Clone, Copy, Default)]
pub(super) struct Current {
    place: Option<PlanPart>,
    array: Option<ArrayId>,
}

impl<'a> Tracker<'a> {
    pub(super) fn new(kernel: &'a Kernel) -> Tracker<'a> {
        let noted: usize = kernel.origins.iter().map(|origin| origin.statements).sum();
        // A kernel whose statements were changed after lowering no longer fits its origins.
        let origins = if noted == every_stmt(&kernel.body).count() { &kernel.origins[..] } else { &[] };
        let places = origins.iter().flat_map(|origin| std::iter::repeat_n(origin.place, origin.statements));
        Tracker { kernel, places: Box::new(places), current: Current::default(), lines: Vec::new() }
    }

    /// Begins a statement. Returns the state to [`leave`](Tracker::leave) with.
    pub(super) fn enter(&mut self, stmt: &Stmt) -> Current {
        let outside = self.current;
        self.current.place = self.places.next();
        if matches!(self.current.place, Some(PlanPart::Nest(_))) && self.current.array.is_none() {
            self.current.array = only_written(stmt);
        }
        outside
    }

    /// Ends a statement.
    pub(super) fn leave(&mut self, outside: Current) {
        self.current = outside;
    }

    /// Takes note of a printed line.
    pub(super) fn line(&mut self) {
        self.lines.push(self.current);
    }

    /// The origins of all lines so far.
    pub(super) fn finish(self, id: KernelId) -> Vec<LineOrigin> {
        let origin = |line: &Current| LineOrigin {
            kernel: Some(id),
            place: line.place,
            array: line.array.map(|array| self.kernel.arrays[array].name.clone()),
        };
        self.lines.iter().map(origin).collect()
    }
}

/// The array that a statement writes, if it writes exactly one.
fn only_written(stmt: &Stmt) -> Option<ArrayId> {
    let mut written = every_stmt(slice::from_ref(stmt)).filter_map(Stmt::written);
    let first = written.next()?;
    written.all(|array| array == first).then_some(first)
}
