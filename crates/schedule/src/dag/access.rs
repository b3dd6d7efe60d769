//! Access maps: how the indices of an access move with the loops of a stage.

use smallvec::SmallVec;
use thiserror::Error;
use warploom_lang::affine::{gcd, lcm};
use warploom_lang::{ExprId, FuncId, InputId, Range};

use crate::rational::Rational;

/// How far an index moves when a loop variable moves by one; `None` if unknown.
///
/// A sum with an unknown term is unknown. In a product, zero times unknown is zero.
pub type Slope = Option<Rational>;

/// How one index of an access moves with the loops of its stage.
///
/// Moving one loop variable by `n` times [`period`](Index::period) moves the index by exactly `n · period ·
/// slope`, from any start; in between, divisions round. For example, `x / 2` has slope 1/2 and period 2, and
/// `x / 2 * 2` has slope 1 and period 2, while `x` has slope 1 and period 1. A slope of 0 means that the loop
/// does not move the index at all. A sum that cancels except for rounding, such as `x - x / 2 * 2`, is a
/// remainder, and its slope is unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Index {
    /// One slope per loop.
    pub slopes: SmallVec<[Slope; 4]>,
    /// The number of steps of a loop over which rounding has no effect; 1 for affine indices.
    pub period: i64,
    /// The index where every loop variable is 0, or `None` if it depends on a size, Param or loaded
    /// value. A single number for one access; a range that covers all accesses if they were [`merged`].
    pub origin: Option<Range>,
    /// Whether the known slopes hold only between bounds, because a `clamp`, `min`, `max`, condition or
    /// possibly wrapping conversion is applied to the value that they describe.
    pub clamped: bool,
}

/// Origins beyond this are dropped, so that arithmetic on origins never overflows.
const MAX_ORIGIN: i64 = 1 << 40;

impl Index {
    /// An index with unknown slopes and an unknown origin.
    pub fn unknown(loops: usize) -> Index {
        Index { slopes: SmallVec::from_elem(None, loops), period: 1, origin: None, clamped: false }
    }

    /// The index that is the variable of one loop.
    pub fn variable(loops: usize, position: usize) -> Index {
        let slope = |loop_| Some(if loop_ == position { Rational::ONE } else { Rational::ZERO });
        let origin = Some(Range::inclusive(0, 0));
        Index { slopes: (0..loops).map(slope).collect(), period: 1, origin, clamped: false }
    }

    /// Whether the index is `Σ integer · loop + fixed`, without rounding or clamping.
    pub fn is_affine(&self) -> bool {
        self.period == 1 && !self.clamped && self.slopes.iter().all(Option::is_some)
    }

    /// The constant term of an affine index, if it does not depend on sizes or Params.
    pub fn constant(&self) -> Option<i64> {
        let origin = self.origin.filter(|origin| origin.extent == 1)?;
        self.is_affine().then_some(origin.min)
    }

    /// Whether all slopes are 0. A clamped index may still step.
    pub fn is_fixed(&self) -> bool {
        self.slopes.iter().all(|slope| is_zero(*slope))
    }

    /// The loop that moves the index with slope 1, if no other loop moves it.
    pub fn unit_loop(&self) -> Option<usize> {
        let mut moving = self.slopes.iter().enumerate().filter(|(_, slope)| !is_zero(**slope));
        match (moving.next(), moving.next()) {
            (Some((position, Some(Rational::ONE))), None) if self.period == 1 => Some(position),
            _ => None,
        }
    }

    /// Whether the index moves like another one; the origins may differ.
    pub fn moves_like(&self, other: &Index) -> bool {
        self.slopes == other.slopes && self.period == other.period && self.clamped == other.clamped
    }

    /// The index with its columns multiplied by `factors`, as if each loop took steps of that size.
    fn scaled(&self, factors: &[i64]) -> Index {
        let scale = |(slope, factor): (&Slope, &i64)| product(*slope, Some(Rational::integer(*factor)));
        let slopes: SmallVec<[Slope; 4]> = self.slopes.iter().zip(factors).map(scale).collect();
        let known =
            self.slopes.iter().zip(factors).filter(|(slope, _)| matches!(slope, Some(s) if !s.is_zero()));
        let common = known.fold(0, |common, (_, factor)| gcd(common, factor.saturating_abs()));
        // If no loop moves the index any more, nothing is rounded either.
        let period = if common == 0 { 1 } else { self.period / gcd(self.period, common) };
        Index { slopes, period, ..self.clone() }
    }

    /// The composed index: a Func reads its producer at `self`, and is itself read at `inner`.
    fn through(&self, inner: &AccessMap) -> Index {
        let loops = inner.loops;
        let used = || self.slopes.iter().zip(&inner.rows).filter(|(slope, _)| !is_zero(**slope));
        let Some(period) = self.period_through(inner) else { return Index::unknown(loops) };
        let slope = |column: usize| {
            let terms = used().map(|(slope, row)| product(*slope, row.slopes[column]));
            sum(terms, period)
        };
        let slopes: SmallVec<[Slope; 4]> = (0..loops).map(slope).collect();
        Index {
            period: settled(period, &slopes),
            slopes,
            origin: self.origin_through(inner),
            clamped: self.clamped || used().any(|(_, row)| row.clamped),
        }
    }

    fn period_through(&self, inner: &AccessMap) -> Option<i64> {
        let rows = || self.slopes.iter().zip(&inner.rows).filter(|(s, _)| !is_zero(**s)).map(|(_, row)| row);
        let step = rows().try_fold(1, |step, row| lcm(step, row.period))?;
        let steps = rows().flat_map(|row| &row.slopes).flatten();
        rounded_period(step, steps, self.period)
    }

    fn origin_through(&self, inner: &AccessMap) -> Option<Range> {
        let mut origin = self.origin?;
        for (slope, row) in self.slopes.iter().zip(&inner.rows) {
            if is_zero(*slope) && !self.clamped {
                continue;
            }
            let start = row.origin?;
            if (start.min, start.last()) == (0, 0) {
                continue;
            }
            // Away from 0, a known slope holds only for whole periods.
            let whole = self.period == 1 || (start.extent == 1 && start.min % self.period == 0);
            let slope = slope.filter(|_| whole && !self.clamped)?;
            let at = |end: i64| slope.mul(Rational::integer(end))?.as_integer();
            let (a, b) = (at(start.min)?, at(start.last())?);
            origin = range(origin.min.checked_add(a.min(b))?, origin.last().checked_add(a.max(b))?)?;
        }
        Some(origin)
    }
}

/// The integers from `first` to `last`, or `None` if they exceed `MAX_ORIGIN`.
fn range(first: i64, last: i64) -> Option<Range> {
    (-MAX_ORIGIN <= first && last <= MAX_ORIGIN).then(|| Range::inclusive(first, last))
}

pub(crate) fn is_zero(slope: Slope) -> bool {
    slope.is_some_and(Rational::is_zero)
}

/// The product of two slopes; a known zero times unknown is zero.
pub(crate) fn product(a: Slope, b: Slope) -> Slope {
    if is_zero(a) || is_zero(b) { Some(Rational::ZERO) } else { a?.mul(b?) }
}

/// The sum of the slopes of terms that are rounded in steps of `period`.
pub(crate) fn sum(terms: impl IntoIterator<Item = Slope>, period: i64) -> Slope {
    let (mut total, mut moves) = (Some(Rational::ZERO), false);
    for term in terms {
        moves |= !is_zero(term);
        total = total.and_then(|total| total.add(term?));
    }
    // A sum that cancels except for rounding is a remainder.
    total.filter(|total| !(total.is_zero() && moves && period > 1))
}

/// The period after a division that rounds in steps of `divisor`, for a value with period `step` that
/// moves by `slopes`; `None` if it does not fit.
pub(crate) fn rounded_period<'a>(
    step: i64,
    slopes: impl IntoIterator<Item = &'a Rational>,
    divisor: i64,
) -> Option<i64> {
    let mut common = divisor;
    for slope in slopes {
        let moved = slope.mul(Rational::integer(step))?.as_integer()?;
        common = gcd(common, moved);
    }
    step.checked_mul(divisor / common)
}

/// The period, or 1 if all known slopes are 0.
pub(crate) fn settled(period: i64, slopes: &[Slope]) -> i64 {
    if slopes.iter().flatten().any(|slope| !slope.is_zero()) { period } else { 1 }
}

/// Why maps cannot be built or combined.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// An index has the wrong number of slopes.
    #[error("an index has {got} slopes, but there are {loops} loops; give one slope per loop")]
    Loops {
        /// The number of slopes of the index.
        got: usize,
        /// The number of loops of the map.
        loops: usize,
    },
    /// `AccessMap::scale` got the wrong number of factors.
    #[error("{got} factors were given for {loops} loops; give one for each loop")]
    Factors {
        /// The number of factors given.
        got: usize,
        /// The number of loops of the map.
        loops: usize,
    },
    /// The loops of the producer's map do not match the dimensions of the consumer's map.
    #[error(
        "a map over {loops} loops cannot be read at {dimensions} indices; compose it only with a pure Func"
    )]
    Compose {
        /// The number of loops of the producer's map.
        loops: usize,
        /// The number of dimensions of the consumer's map.
        dimensions: usize,
    },
}

/// The indices of an access as a matrix over the loops of its stage: one row per dimension of the
/// accessed node, one column per loop.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AccessMap {
    loops: usize,
    rows: Vec<Index>,
}

impl AccessMap {
    /// The map with these rows. Fails unless each row has one slope per loop.
    pub fn new(loops: usize, rows: Vec<Index>) -> Result<AccessMap, MapError> {
        match rows.iter().find(|row| row.slopes.len() != loops) {
            Some(row) => Err(MapError::Loops { got: row.slopes.len(), loops }),
            None => Ok(AccessMap { loops, rows }),
        }
    }

    /// The map with these rows, which must have one slope per loop.
    pub(crate) fn of_rows(loops: usize, rows: Vec<Index>) -> AccessMap {
        debug_assert!(rows.iter().all(|row| row.slopes.len() == loops));
        AccessMap { loops, rows }
    }

    /// The map with one index per loop, each the variable of that loop.
    pub fn identity(loops: usize) -> AccessMap {
        AccessMap { loops, rows: (0..loops).map(|position| Index::variable(loops, position)).collect() }
    }

    /// The number of loops, that is, of columns.
    pub fn loops(&self) -> usize {
        self.loops
    }

    /// The indices, in dimension order.
    pub fn rows(&self) -> &[Index] {
        &self.rows
    }

    /// How far index `row` moves with loop `column`; 0 outside the map.
    pub fn slope(&self, row: usize, column: usize) -> Slope {
        let slopes = self.rows.get(row).map(|index| &index.slopes);
        slopes.and_then(|slopes| slopes.get(column)).copied().unwrap_or(Some(Rational::ZERO))
    }

    /// Whether any index is clamped.
    pub fn clamped(&self) -> bool {
        self.rows.iter().any(|row| row.clamped)
    }

    /// Whether every index moves like the same index of another map; the origins may differ.
    pub fn moves_like(&self, other: &AccessMap) -> bool {
        self.loops == other.loops
            && self.rows.len() == other.rows.len()
            && self.rows.iter().zip(&other.rows).all(|(a, b)| a.moves_like(b))
    }

    /// The map where each step of a loop is `factors` of the original steps, as for loops over tiles.
    pub fn scale(&self, factors: &[i64]) -> Result<AccessMap, MapError> {
        if factors.len() != self.loops {
            return Err(MapError::Factors { got: factors.len(), loops: self.loops });
        }
        Ok(AccessMap { loops: self.loops, rows: self.rows.iter().map(|row| row.scaled(factors)).collect() })
    }

    /// Composes two maps for inlining: `self` is an access of a pure Func, and `inner` is an access of a consumer to
    /// that Func. The result is the consumer's access once the Func is inlined, over the consumer's loops.
    pub fn compose(&self, inner: &AccessMap) -> Result<AccessMap, MapError> {
        if self.loops != inner.rows.len() {
            return Err(MapError::Compose { loops: self.loops, dimensions: inner.rows.len() });
        }
        Ok(AccessMap { loops: inner.loops, rows: self.rows.iter().map(|row| row.through(inner)).collect() })
    }

    /// The class of the access.
    ///
    /// The classes are mutually exclusive. Constants do not matter, so every tap of a stencil has the class of
    /// its centre. Clamps do not matter either, because they only act near the border.
    pub fn class(&self) -> AccessClass {
        let mut used = SmallVec::<[usize; 8]>::new();
        for row in &self.rows {
            match row.unit_loop() {
                Some(position) if used.contains(&position) => return AccessClass::Other,
                Some(position) => used.push(position),
                None if row.is_fixed() => {}
                None => return AccessClass::Other,
            }
        }
        match used.len() {
            units if units < self.rows.len() => AccessClass::Slice,
            units if units < self.loops => AccessClass::Broadcast,
            _ if used.is_sorted() => AccessClass::Pointwise,
            _ => AccessClass::Transpose,
        }
    }
}

/// The class of an access, determined by its slopes alone. See [`AccessMap::class`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AccessClass {
    /// Index `i` is loop `i`, and there are no other loops: `f(x, y)` over x, y.
    Pointwise,
    /// Each index is a different loop and every loop is used, but in another order: `f(y, x)`.
    Transpose,
    /// Each index is a different loop, but some loop moves no index: `f(x)` over x, y.
    Broadcast,
    /// Some index is moved by no loop, and each other index is a different loop: `f(x, 3)`.
    Slice,
    /// Anything else: strides (`f(2 * x)`), diagonals (`f(x, x)`), sums (`f(x + r)`), unknown indices.
    Other,
}

impl AccessClass {
    /// All classes, in declaration order.
    pub const ALL: [AccessClass; 5] = [
        AccessClass::Pointwise,
        AccessClass::Transpose,
        AccessClass::Broadcast,
        AccessClass::Slice,
        AccessClass::Other,
    ];
}

/// The input or Func that an access reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Target {
    /// An input of the pipeline.
    Input(InputId),
    /// A Func other than the one that the stage defines.
    Func(FuncId),
    /// The Func that the stage defines, with the values written by earlier stages and iterations.
    Itself,
}

/// One read in a stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The load or call in the stage's expressions.
    pub expr: ExprId,
    /// The input or Func that is read.
    pub target: Target,
    /// The number of the value that is read, for a Func with several values; 0 for inputs.
    pub value: usize,
    /// How the indices move with the loops of the stage.
    pub map: AccessMap,
}

/// A group of accesses that move alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// How the accesses move; its origins cover the origins of all of them.
    pub map: AccessMap,
    /// The number of accesses in the group.
    pub count: u64,
}

impl Load {
    /// The load of a consumer through an inlined Func: the Func reads at `self`, and the consumer reads the Func at
    /// `inner`.
    pub fn compose(&self, inner: &Load) -> Result<Load, MapError> {
        Ok(Load { map: self.map.compose(&inner.map)?, count: self.count.saturating_mul(inner.count) })
    }
}

/// Groups maps that move alike, in order of first appearance.
pub fn merged<'a>(maps: impl IntoIterator<Item = &'a AccessMap>) -> Vec<Load> {
    let mut loads: Vec<Load> = Vec::new();
    for map in maps {
        match loads.iter_mut().find(|load| load.map.moves_like(map)) {
            Some(load) => {
                load.count += 1;
                for (row, more) in load.map.rows.iter_mut().zip(&map.rows) {
                    row.origin = row.origin.zip(more.origin).map(|(a, b)| a.union(b));
                }
            }
            None => loads.push(Load { map: map.clone(), count: 1 }),
        }
    }
    loads
}
