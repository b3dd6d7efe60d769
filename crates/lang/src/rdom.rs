//! Reduction domains: the boxes that updates iterate over.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::expr::Expr;
use crate::names::kept;

/// A variable of a reduction domain.
#[derive(Clone, Copy, Debug)]
pub struct RVar {
    pub(crate) domain: DomainId,
    pub(crate) index: usize,
    name: &'static str,
}

impl RVar {
    /// The name, as messages and schedules show it.
    pub fn name(self) -> &'static str {
        self.name
    }
}

/// Identifies a domain while a pipeline is being written. It does not appear in the pipeline
/// itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DomainId(u64);

/// One dimension of a reduction domain: `extent` integers starting at `min`.
#[derive(Clone, Debug)]
pub struct RRange {
    pub(crate) name: &'static str,
    pub(crate) min: Expr,
    pub(crate) extent: Expr,
}

impl RRange {
    /// A named dimension. Bounds contain only constants, Params and input sizes; use
    /// [`RDom::filter`] for varying bounds.
    pub fn new(name: impl AsRef<str>, min: impl Into<Expr>, extent: impl Into<Expr>) -> RRange {
        RRange { name: kept(name.as_ref()), min: min.into(), extent: extent.into() }
    }
}

/// A box of integers that an update visits in order, with the first variable fastest.
///
/// ```
/// use warploom_lang::{RDom, Operand, rdom};
/// let r = rdom([(0, 8), (-1, 3)]);           // r.x in 0..8, r.y in -1..2
/// let upper = rdom!(i: (0, 8), j: (0, 8));   // named variables
/// let upper = upper.clone().filter(upper.x.le(upper.y));
/// # let _ = (r, upper);
/// ```
#[derive(Clone, Debug)]
pub struct RDom {
    id: DomainId,
    pub(crate) ranges: Vec<RRange>,
    pub(crate) predicate: Option<Expr>,
    /// The first variable; it varies fastest.
    pub x: RVar,
    /// The second variable. Using it in a smaller domain is reported with the pipeline.
    pub y: RVar,
    /// The third variable. Using it in a smaller domain is reported with the pipeline.
    pub z: RVar,
    /// The fourth variable. Using it in a smaller domain is reported with the pipeline.
    pub w: RVar,
}

impl RDom {
    /// A domain with these dimensions, the first fastest. The macro [`rdom!`](crate::rdom!) and the
    /// function [`rdom`] are shorter ways to make one.
    pub fn new(ranges: Vec<RRange>) -> RDom {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = DomainId(NEXT.fetch_add(1, Ordering::Relaxed));
        let [x, y, z, w] = std::array::from_fn(|index| variable(id, &ranges, index));
        RDom { id, ranges, predicate: None, x, y, z, w }
    }

    /// Variable number `index`. Using a variable that the domain does not have is reported with the
    /// pipeline.
    pub fn var(&self, index: usize) -> RVar {
        variable(self.id, &self.ranges, index)
    }

    /// The first `N` variables.
    pub fn vars<const N: usize>(&self) -> [RVar; N] {
        std::array::from_fn(|index| self.var(index))
    }

    /// Skips the points where `condition` is false. This is how a range varies from point to point;
    /// its bounds cannot.
    ///
    /// ```
    /// use warploom_lang::*;
    /// let x = vars!(x);
    /// let input = Input::f32("input", 1);
    /// let r = rdom([(0, 100)]);
    /// let before = r.clone().filter(r.x.lt(x));
    /// let running = func("running", x, sum(&before, input.at(r.x)));
    /// assert!(Pipeline::new("p", [running]).is_ok());
    /// ```
    #[track_caller]
    #[must_use]
    pub fn filter(mut self, condition: impl Into<Expr>) -> RDom {
        self.predicate = Some(match self.predicate.take() {
            Some(earlier) => earlier & condition.into(),
            None => condition.into(),
        });
        self
    }

    pub(crate) fn id(&self) -> DomainId {
        self.id
    }
}

fn variable(domain: DomainId, ranges: &[RRange], index: usize) -> RVar {
    RVar { domain, index, name: ranges.get(index).map_or("?", |range| range.name) }
}

/// A domain from `(min, extent)` pairs, with variables named `rx`, `ry`, `rz`, `rw`, `r4`, ...
pub fn rdom<M: Into<Expr>, E: Into<Expr>, const N: usize>(ranges: [(M, E); N]) -> RDom {
    let name =
        |i: usize| "xyzw".chars().nth(i).map_or_else(|| format!("r{i}"), |letter| format!("r{letter}"));
    let named = ranges.into_iter().enumerate();
    RDom::new(named.map(|(i, (min, extent))| RRange::new(name(i), min, extent)).collect())
}

/// A domain with named variables: `rdom!(dx: (-1, 3), dy: (-1, 3))`, each `name: (min, extent)`.
#[macro_export]
macro_rules! rdom {
    ($($name:ident: ($min:expr, $extent:expr)),+ $(,)?) => {
        $crate::RDom::new(vec![$($crate::RRange::new(stringify!($name), $min, $extent)),+])
    };
}
