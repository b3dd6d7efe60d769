//! Accesses of several adjacent elements at a time, in the unrolled points of a nest.

use smallvec::SmallVec;

use crate::body::moves::{Elements, Moves, Place};
use crate::body::walk::AxisKind;

/// Bytes of the longest vector, and so the most elements of one.
pub const VECTOR_BYTES: i64 = warploom_target::VECTOR_BYTES as i64;

/// The innermost loop of a nest, and the elements of a vector along it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vector {
    /// The axis of the loop.
    pub axis: usize,
    /// The number of elements.
    pub width: i64,
}

impl Moves<'_> {
    /// The vectors of at most `most` elements of each access of the group; `None` for one that is made element by element.
    pub fn vectors(
        &self,
        elements: &Elements,
        place: &Place,
        keep: impl Fn(AxisKind) -> bool,
        most: i64,
    ) -> SmallVec<[Option<Vector>; 4]> {
        let axis = self.innermost(elements, keep);
        let vector = |origin: &SmallVec<[i64; 4]>| {
            let offset: i64 = origin.iter().zip(&place.strides).map(|(at, stride)| at * stride).sum();
            let width = self.width(elements, axis?, elements.constant + offset, most);
            (width > 1).then_some(Vector { axis: axis?, width })
        };
        self.group.origins.iter().map(vector).collect()
    }

    /// The innermost loop of a thread, if it is unrolled, runs over adjacent elements and always to its end.
    fn innermost(&self, elements: &Elements, keep: impl Fn(AxisKind) -> bool) -> Option<usize> {
        if self.is_scattered() || self.unknown_axes() != 0 {
            return None;
        }
        let axes = &self.walk.around.axes;
        let mut own = (self.walk.own_axes..axes.len()).rev();
        let last = own.find(|axis| axes[*axis].count > 1 && keep(axes[*axis].kind))?;
        let whole = (axes[last].start, axes[last].count);
        let is_whole = self.walk.cases.iter().all(|case| self.walk.span(case, last) == whole);
        (axes[last].kind.is_unrolled() && elements.steps[last] == 1 && is_whole).then_some(last)
    }

    /// The elements of a vector along an axis, at most `most`, for accesses that start at `start` where all axes do.
    fn width(&self, elements: &Elements, axis: usize, start: i64, most: i64) -> i64 {
        let steps = elements.steps.iter().enumerate().filter(|(other, _)| *other != axis);
        let fits = |width: &i64| {
            let is_multiple = |number: i64| number % width == 0;
            is_multiple(self.walk.around.axes[axis].count)
                && is_multiple(start)
                && steps.clone().all(|(_, step)| is_multiple(*step))
        };
        let widest = most.min(VECTOR_BYTES / self.group.bytes as i64);
        [16, 8, 4, 2].into_iter().filter(|width| *width <= widest).find(fits).unwrap_or(1)
    }
}
