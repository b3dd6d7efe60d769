//! The tiles of threads whose lanes share Funcs in registers, and the points of them that a block needs.

use std::ops::Range;

use smallvec::{SmallVec, smallvec};
use warploom_schedule::LoopKind;

use crate::body::walk::{AxisId, Case, Cases, Linear, RegisterStage, Shared, Walk};
use crate::reach::Reach;

/// The tiles of threads along a dimension of a nest: numbered by thread, then by round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tiles {
    lane: Option<AxisId>,
    round: Option<AxisId>,
    threads: i64,
    /// The number of tiles that have points.
    count: i64,
}

/// Points along an axis, and the number of tiles in which the block needs them. No axis stands for a single point.
type Need = (Option<AxisId>, Range<i64>, i64);

/// Axes with a restricted range: number, first value, number of values.
type Limits = SmallVec<[(AxisId, i64, i64); 2]>;

/// What a block needs of the tiles along a dimension.
pub(super) struct Needs {
    /// The dimension's number.
    tiles: usize,
    parts: SmallVec<[Need; 3]>,
}

impl Tiles {
    pub fn of(shared: &Shared) -> Option<Tiles> {
        let &Shared { kind, lane, round, extent, threads, points, .. } = shared;
        let count = (extent + points - 1) / points;
        // Reductions that threads do not share come after what is in registers.
        (matches!(kind, LoopKind::Pure(_)) || lane.is_some()).then_some(Tiles { lane, round, threads, count })
    }

    /// The points by which a variable moves from tile to tile.
    fn step(&self, variable: &Linear) -> i64 {
        let along = |axis: Option<AxisId>| axis.map_or(0, |axis| variable.step(axis));
        if self.lane.is_some() { along(self.lane) } else { along(self.round) / self.threads }
    }

    fn is_along(&self, axis: AxisId) -> bool {
        [self.lane, self.round].contains(&Some(axis))
    }

    /// The limits of the first `count` of `most` tiles: all rounds but the last, and the last.
    fn limits(&self, count: i64, most: i64) -> SmallVec<[Limits; 2]> {
        if count == most {
            return smallvec![SmallVec::new()];
        }
        let (whole, rest) = (count / self.threads, count % self.threads);
        let limit = |threads: i64, first: i64, rounds: i64| {
            let lane = self.lane.map(|axis| (axis, 0, threads));
            lane.into_iter().chain(self.round.map(|axis| (axis, first, rounds))).collect()
        };
        let parts =
            [(whole > 0).then(|| limit(self.threads, 0, whole)), (rest > 0).then(|| limit(rest, whole, 1))];
        parts.into_iter().flatten().collect()
    }
}

impl Walk {
    /// Makes the cases: all tiles that have points, of those with `needs` only some.
    pub(super) fn take_tiles(&mut self, needs: &[Needs]) {
        let mut cases: Cases = smallvec![Case { limits: SmallVec::new(), active: 0.0, warps: 0.0 }];
        for (number, tiles) in self.tiles.iter().enumerate() {
            let whole: SmallVec<[Need; 3]> = smallvec![(None, 0..1, tiles.count)];
            let parts = needs.iter().find(|needs| needs.tiles == number).map_or(&whole, |needs| &needs.parts);
            let mut next = SmallVec::new();
            for (axis, points, count) in parts {
                let points = axis.map(|axis| (axis, points.start, points.end - points.start));
                for limits in tiles.limits(*count, self.most(tiles)) {
                    next.extend(cases.iter().map(|case| {
                        let mut case = case.clone();
                        case.limits.extend(limits.iter().copied().chain(points));
                        case
                    }));
                }
            }
            cases = next;
        }
        self.cases = cases;
        self.count_active();
    }

    /// The number of tiles of all threads and rounds, also of those without points.
    fn most(&self, tiles: &Tiles) -> i64 {
        tiles.threads * tiles.round.map_or(1, |axis| self.around.axes[axis as usize].count)
    }

    /// The part of a walk in which the block needs the points of a stage: of the last tiles it needs fewer, or none. `None` if
    /// it needs all points of all tiles, so that no guard remains.
    pub fn needed(&self, stage: &RegisterStage<'_>, lowest: &[Vec<Reach>]) -> Option<Walk> {
        let (mut walk, mut needs) = (self.clone(), Vec::new());
        for (d, reach) in stage.needed().dims.iter().enumerate() {
            let moves = |(_, tiles): &(usize, &Tiles)| tiles.step(&self.vars[d]) != 0;
            let mut moving = self.tiles.iter().enumerate().filter(moves);
            let Some((number, tiles)) = moving.next() else { continue };
            let first = self.around.lowest(reach, lowest);
            let points = self.points_from(d, tiles, &first);
            let known = needs.iter().any(|own: &Needs| own.tiles == number);
            match points.filter(|_| moving.next().is_none() && !known) {
                Some(points) => needs.push(self.needs(number, d, points, reach.extent())),
                None => walk.exact = false,
            }
        }
        let is_whole =
            |own: &Needs| own.parts.iter().all(|(.., count)| *count == self.most(&self.tiles[own.tiles]));
        if walk.exact && needs.iter().all(is_whole) {
            return None;
        }
        walk.take_tiles(&needs);
        Some(walk)
    }

    /// The axis over a tile's own points along a dimension, if the first tile starts where the block does, and only tiles and
    /// that axis move the points inside the block. `None` for the axis if there is one point.
    fn points_from(&self, d: usize, tiles: &Tiles, first: &Linear) -> Option<Option<AxisId>> {
        let own = &self.vars[d];
        let outside = |axis: AxisId| (axis as usize) < self.own_axes;
        let numbers = 0..self.around.axes.len() as AxisId;
        let alike =
            numbers.clone().filter(|axis| outside(*axis)).all(|axis| own.step(axis) == first.step(axis));
        let starts = (own.den, first.den) == (1, 1) && own.constant == first.constant && alike;
        let mut inside =
            numbers.filter(|axis| !outside(*axis) && !tiles.is_along(*axis) && own.step(*axis) != 0);
        let points = inside.next();
        let single = points.is_none_or(|axis| own.step(axis) == 1) && inside.next().is_none();
        (starts && single && tiles.step(own) > 0).then_some(points)
    }

    /// The number of tiles in which a block with so many points needs each point of a tile, in runs of equal numbers.
    fn needs(&self, number: usize, d: usize, points: Option<AxisId>, extent: i64) -> Needs {
        let (tiles, step) = (&self.tiles[number], self.tiles[number].step(&self.vars[d]));
        let last = points.map_or(1, |axis| self.around.axes[axis as usize].count);
        let needed = |point: i64| ((extent - point + step - 1) / step).clamp(0, tiles.count);
        let (mut parts, mut start) = (SmallVec::new(), 0);
        while start < last {
            let count = needed(start);
            let end = (start..last).find(|point| needed(*point) != count).unwrap_or(last);
            parts.push((points, start..end, count));
            start = end;
        }
        Needs { tiles: number, parts }
    }
}
