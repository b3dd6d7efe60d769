//! Accesses that the points of a thread share: equal ones are merged, loop-invariant ones hoisted.

use smallvec::SmallVec;
use warploom_plan::body::{AxisKind, Flat, InlinedWork, Moves, Walk};

/// The most values per group of accesses that are kept for the next points. With more, some are
/// loaded again.
const MAX_WINDOW: f64 = 48.0;

/// What remains of a group's accesses after equal ones of unrolled points are merged and
/// loop-invariant ones are hoisted.
pub(crate) struct Merged {
    /// Distinct accesses of the unrolled points.
    pub unique: f64,
    /// The remaining fraction of the accesses.
    pub share: f64,
}

pub(crate) fn merged(moves: &Moves<'_>, keep: impl Fn(AxisKind) -> bool) -> Merged {
    let walk = moves.walk;
    let axes = || walk.around.axes.iter().enumerate().skip(walk.own_axes).filter(|(_, axis)| keep(axis.kind));
    let unrolled: f64 =
        axes().filter(|(_, axis)| axis.kind.is_unrolled()).map(|(_, axis)| axis.count as f64).product();
    let issued = moves.group.count * unrolled;
    let distinct: f64 =
        (0..moves.group.rows.len()).map(|row| moves.extent(row, AxisKind::is_unrolled)).product();
    // Loads behind different guards are not merged.
    let unique = if moves.is_scattered() || walk.guarded { issued } else { distinct.min(issued) };
    // Values that neighbouring points share stay live from one point to the next.
    let is_point = |kind: AxisKind| kind.is_unrolled() && !kind.reduces();
    let window: f64 = (0..moves.group.rows.len()).map(|row| moves.extent(row, is_point)).product();
    let unique = unique + (issued - unique) * (1.0 - MAX_WINDOW / window).max(0.0);
    let mut lifted = 1.0;
    for (number, axis) in walk.around.axes.iter().enumerate().skip(walk.own_axes).rev() {
        let runs = !axis.kind.is_unrolled() && axis.kind != AxisKind::Lane && keep(axis.kind);
        if runs && axis.count > 1 {
            if moves.moves(number) {
                break;
            }
            lifted *= axis.count as f64;
        }
    }
    Merged { unique, share: unique / issued / lifted }
}

/// For each inlined Func, the fraction of its work that remains after unrolled points share common
/// values. Also returns the number of live values that this needs: half of the shared ones at a
/// time.
pub(crate) fn shared_by_points(flat: &Flat, walk: &Walk) -> (SmallVec<[f64; 8]>, f64) {
    let mut held = 0.0;
    let share = |inlined: &InlinedWork| {
        let mut left = 0.0;
        for place in &inlined.places {
            let merged = merged(&Moves::new(walk, place), |_| true);
            left += place.count * merged.share;
            held += if merged.share < 1.0 { merged.unique / 2.0 } else { 0.0 };
        }
        left / inlined.times().max(1.0)
    };
    (flat.inlined.iter().map(share).collect(), held)
}
