//! Access maps: how the indices of an access move with the loops of a stage.

use smallvec::SmallVec;
use thiserror::Error;
use warploom_lang::affine::{gcd, lcm};
use warploom_lang::{ExprId, FuncId, InputId, Range};

use crate::rational::Rational;

/// How far an index moves when a loop variable moves by one; `None` is unknown.
///
/// Unknown absorbs in sums; in products, zero times unknown is zero.
pub type Slope = Option<Rational>;

/// How one index of an access moves with the loops of its stage.
///
/// Moving one loop variable by `n` times [`period`](Index::period) moves the index by exactly `n · period ·
/// slope`, wherever it starts; in between, a division rounds. So `x / 2` has slope 1/2 and period 2, and
/// `x / 2 * 2` has slope 1 and period 2, which tells it from `x`. A slope of 0 means that the loop does not
/// move the index at all: sums that cancel but for the rounding, as in `x - x / 2 * 2`, are unknown like
/// the remainder that they are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Index {
    /// One for each loop.
    pub slopes: SmallVec<[Slope; 4]>,
    /// After how many steps of a loop rounding has no part; 1 for affine indices.
    pub period: i64,
    /// The index where every loop variable is 0, if no size, Param or loaded value has a part in it. It is
    /// one number for one access, and covers all of them for accesses that were [`merged`].
    pub origin: Option<Range>,
    /// Whether known slopes hold only between bounds: a `clamp`, `min`, `max`, a condition or a conversion
    /// that may wrap acts on what they describe.
    pub clamped: bool,
}

/// Origins beyond this are dropped, so that arithmetic on them never overflows.
const MAX_ORIGIN: i64 = 1 << 40;

impl Index {
    /// An index of which nothing is known.
    pub fn unknown(loops: usize) -> Index {
        Index { slopes: SmallVec::from_elem(None, loops), period: 1, origin: None, clamped: false }
    }

    /// The variable of one loop.
    pub fn variable(loops: usize, position: usize) -> Index {
        let slope = |loop_| Some(if loop_ == position { Rational::ONE } else { Rational::ZERO });
        let origin = Some(Range::inclusive(0, 0));
        Index { slopes: (0..loops).map(slope).collect(), period: 1, origin, clamped: false }
    }

    /// Whether it is `Σ integer · loop + fixed`, with nothing rounded or clamped.
    pub fn is_affine(&self) -> bool {
        self.period == 1 && !self.clamped && self.slopes.iter().all(Option::is_some)
    }

    /// The constant of an affine index that holds no sizes and Params.
    pub fn constant(&self) -> Option<i64> {
        let origin = self.origin.filter(|origin| origin.extent == 1)?;
        self.is_affine().then_some(origin.min)
    }

    /// Whether no loop moves it. A clamped index may still step.
    pub fn is_fixed(&self) -> bool {
        self.slopes.iter().all(|slope| is_zero(*slope))
    }

    /// The loop that alone moves it, by one for one.
    pub fn unit_loop(&self) -> Option<usize> {
        let mut moving = self.slopes.iter().enumerate().filter(|(_, slope)| !is_zero(**slope));
        match (moving.next(), moving.next()) {
            (Some((position, Some(Rational::ONE))), None) if self.period == 1 => Some(position),
            _ => None,
        }
    }

    /// Whether it moves as another one does; the origins may differ.
    pub fn moves_like(&self, other: &Index) -> bool {
        self.slopes == other.slopes && self.period == other.period && self.clamped == other.clamped
    }

    /// With columns multiplied, as where a loop takes steps of `factors`.
    fn scaled(&self, factors: &[i64]) -> Index {
        let scale = |(slope, factor): (&Slope, &i64)| product(*slope, Some(Rational::integer(*factor)));
        let slopes: SmallVec<[Slope; 4]> = self.slopes.iter().zip(factors).map(scale).collect();
        let known =
            self.slopes.iter().zip(factors).filter(|(slope, _)| matches!(slope, Some(s) if !s.is_zero()));
        let common = known.fold(0, |common, (_, factor)| gcd(common, factor.saturating_abs()));
        // Where no loop is left that moves the index, nothing is rounded either.
        let period = if common == 0 { 1 } else { self.period / gcd(self.period, common) };
        Index { slopes, period, ..self.clone() }
    }

    /// This index of a Func's producer, where the Func itself is read at `inner`.
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
            // Away from 0, a known slope holds only in whole periods.
            let whole = self.period == 1 || (start.extent == 1 && start.min % self.period == 0);
            let slope = slope.filter(|_| whole && !self.clamped)?;
            let at = |end: i64| slope.mul(Rational::integer(end))?.as_integer();
            let (a, b) = (at(start.min)?, at(start.last())?);
            origin = range(origin.min.checked_add(a.min(b))?, origin.last().checked_add(a.max(b))?)?;
        }
        Some(origin)
    }
}

/// The integers from `first` to `last`, unless they are absurdly large.
fn range(first: i64, last: i64) -> Option<Range> {
    (-MAX_ORIGIN <= first && last <= MAX_ORIGIN).then(|| Range::inclusive(first, last))
}

/// Whether a slope is known to be 0.
pub(crate) fn is_zero(slope: Slope) -> bool {
    slope.is_some_and(Rational::is_zero)
}

/// The product of two slopes.
pub(crate) fn product(a: Slope, b: Slope) -> Slope {
    if is_zero(a) || is_zero(b) { Some(Rational::ZERO) } else { a?.mul(b?) }
}

/// The sum of slopes of terms that are rounded in steps of `period`.
pub(crate) fn sum(terms: impl IntoIterator<Item = Slope>, period: i64) -> Slope {
    let (mut total, mut moves) = (Some(Rational::ZERO), false);
    for term in terms {
        moves |= !is_zero(term);
        total = total.and_then(|total| total.add(term?));
    }
    // What cancels but for rounding is a remainder.
    total.filter(|total| !(total.is_zero() && moves && period > 1))
}

/// The period of a value whose own is `step`, moving by `slopes`, after a division that rounds in steps of
/// `divisor`; `None` if it does not fit.
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

/// The period, or 1 where no known slope needs one.
pub(crate) fn settled(period: i64, slopes: &[Slope]) -> i64 {
    if slopes.iter().flatten().any(|slope| !slope.is_zero()) { period } else { 1 }
}

/// Why two maps do not fit together.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum MapError {
    /// An index has slopes for another number of loops.
    #[error("an index has {got} slopes, but there are {loops} loops; give one slope for each loop")]
    Loops {
        /// Slopes given.
        got: usize,
        /// Loops there are.
        loops: usize,
    },
    /// A factor for each loop was needed.
    #[error("{got} factors were given for {loops} loops; give one for each loop")]
    Factors {
        /// Factors given.
        got: usize,
        /// Loops there are.
        loops: usize,
    },
    /// The loops of one map are not the dimensions of the other.
    #[error("a map over {loops} loops cannot be read at {dimensions} indices; look through a pure Func only")]
    Compose {
        /// Loops of the producer's map.
        loops: usize,
        /// Dimensions of the consumer's map.
        dimensions: usize,
    },
}

/// The indices of an access over the loops of its stage: a row for each dimension of what is accessed, a
/// column for each loop.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AccessMap {
    loops: usize,
    rows: Vec<Index>,
}

impl AccessMap {
    /// The map with these rows.
    pub fn new(loops: usize, rows: Vec<Index>) -> Result<AccessMap, MapError> {
        match rows.iter().find(|row| row.slopes.len() != loops) {
            Some(row) => Err(MapError::Loops { got: row.slopes.len(), loops }),
            None => Ok(AccessMap { loops, rows }),
        }
    }

    /// The map whose rows the caller made for these loops.
    pub(crate) fn of_rows(loops: usize, rows: Vec<Index>) -> AccessMap {
        debug_assert!(rows.iter().all(|row| row.slopes.len() == loops));
        AccessMap { loops, rows }
    }

    /// Every loop at its own position.
    pub fn identity(loops: usize) -> AccessMap {
        AccessMap { loops, rows: (0..loops).map(|position| Index::variable(loops, position)).collect() }
    }

    /// Number of loops.
    pub fn loops(&self) -> usize {
        self.loops
    }

    /// The indices, first dimension first.
    pub fn rows(&self) -> &[Index] {
        &self.rows
    }

    /// How far index `row` moves with loop `column`; outside the map, nothing moves.
    pub fn slope(&self, row: usize, column: usize) -> Slope {
        let slopes = self.rows.get(row).map(|index| &index.slopes);
        slopes.and_then(|slopes| slopes.get(column)).copied().unwrap_or(Some(Rational::ZERO))
    }

    /// Whether any index is clamped.
    pub fn clamped(&self) -> bool {
        self.rows.iter().any(|row| row.clamped)
    }

    /// Whether every index moves as in another map; the origins may differ.
    pub fn moves_like(&self, other: &AccessMap) -> bool {
        self.loops == other.loops
            && self.rows.len() == other.rows.len()
            && self.rows.iter().zip(&other.rows).all(|(a, b)| a.moves_like(b))
    }

    /// The map where a step of each loop is `factors` steps of before, as for the loops over tiles.
    pub fn scale(&self, factors: &[i64]) -> Result<AccessMap, MapError> {
        if factors.len() != self.loops {
            return Err(MapError::Factors { got: factors.len(), loops: self.loops });
        }
        Ok(AccessMap { loops: self.loops, rows: self.rows.iter().map(|row| row.scaled(factors)).collect() })
    }

    /// This map of what a pure Func reads, over the loops of a consumer that reads the Func at `inner`:
    /// what the consumer reads once the Func is inlined.
    pub fn compose(&self, inner: &AccessMap) -> Result<AccessMap, MapError> {
        if self.loops != inner.rows.len() {
            return Err(MapError::Compose { loops: self.loops, dimensions: inner.rows.len() });
        }
        Ok(AccessMap { loops: inner.loops, rows: self.rows.iter().map(|row| row.through(inner)).collect() })
    }

    /// What kind of access this is.
    ///
    /// The classes exclude each other, and constants do not matter, so that every tap of a stencil is in
    /// the class of its centre. Nor do clamps: they are about the edge.
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

/// Kinds of access, by their slopes alone. See [`AccessMap::class`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AccessClass {
    /// Index `i` is loop `i`, and there are no other loops: `f(x, y)` over x, y.
    Pointwise,
    /// Every index is a loop of its own and every loop is used, but in another order: `f(y, x)`.
    Transpose,
    /// Every index is a loop of its own, but some loop moves none: `f(x)` over x, y.
    Broadcast,
    /// No loop moves some index; every other index is a loop of its own: `f(x, 3)`.
    Slice,
    /// All else: strides (`f(2 * x)`), diagonals (`f(x, x)`), sums (`f(x + r)`), unknown indices.
    Other,
}

impl AccessClass {
    /// All classes, in order.
    pub const ALL: [AccessClass; 5] = [
        AccessClass::Pointwise,
        AccessClass::Transpose,
        AccessClass::Broadcast,
        AccessClass::Slice,
        AccessClass::Other,
    ];
}

/// What an access reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Target {
    /// An input.
    Input(InputId),
    /// Another Func.
    Func(FuncId),
    /// The Func that the stage belongs to, as earlier stages and steps left it.
    Itself,
}

/// One access in a stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The node of the expression.
    pub expr: ExprId,
    /// What is read.
    pub target: Target,
    /// Which value of a Func of several values; 0 for inputs.
    pub value: usize,
    /// Where.
    pub map: AccessMap,
}

/// Accesses that move alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Load {
    /// How they move; the origins cover those of all of them.
    pub map: AccessMap,
    /// How many they are.
    pub count: u64,
}

impl Load {
    /// What a consumer reads through an inlined Func: `self` is what the Func reads, `inner` where the
    /// consumer reads the Func.
    pub fn compose(&self, inner: &Load) -> Result<Load, MapError> {
        Ok(Load { map: self.map.compose(&inner.map)?, count: self.count.saturating_mul(inner.count) })
    }
}

/// Joins maps that move alike, in order of their first appearance.
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
