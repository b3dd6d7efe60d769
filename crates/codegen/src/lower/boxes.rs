//! Turns footprints into boxes whose lower bounds are kernel expressions.

use std::collections::BTreeMap;

use warploom_lang::affine::Interval;
use warploom_lang::dynamic::Formula;
use warploom_lang::op::BinaryOp;
use warploom_plan::{Footprint, Limit, Reach, Symbol};
use warploom_schedule::{Rational, common_denominator};

use crate::ir::NodeId;
use crate::lower::state::KernelLowering;

/// The values of [`Symbol::Lowest`] at one place, filled on demand.
type Lowest = BTreeMap<usize, NodeId>;

/// A box whose position depends on the block, the iteration or the thread.
#[derive(Clone, Debug)]
pub(crate) struct Box {
    /// The first point along each dimension.
    pub lower: Vec<NodeId>,
    /// The largest extent that occurs at any position.
    pub extent: Vec<i64>,
    /// The last point along each dimension where the extent varies: the bounds of a box with fractions are rounded
    /// differently at different positions.
    pub upper: Vec<Option<NodeId>>,
    /// The first and the last point along each dimension over all positions. Only these points of the box's operands
    /// are stored.
    pub range: Vec<Interval>,
}

impl KernelLowering<'_> {
    /// A footprint as a box at the position that is being lowered.
    pub fn placed(&mut self, footprint: &Footprint) -> Box {
        self.placed_dims(&footprint.dims)
    }

    /// Reaches as a box at the position that is being lowered.
    pub fn placed_dims(&mut self, dims: &[Reach]) -> Box {
        let _pass = tracing::debug_span!("boxes").entered();
        Box {
            lower: dims.iter().map(|reach| self.lowest(reach, &mut Lowest::new())).collect(),
            extent: dims.iter().map(Reach::extent).collect(),
            upper: dims.iter().map(|reach| self.highest(reach)).collect(),
            range: dims.iter().map(|reach| Interval::new(reach.min, reach.max)).collect(),
        }
    }

    /// The smallest value of a reach: the sum of its terms, rounded up and clamped.
    fn lowest(&mut self, reach: &Reach, known: &mut Lowest) -> NodeId {
        if reach.terms.is_empty() {
            return self.builder.int(reach.min);
        }
        let lowest = self.end(reach, reach.low, |denominator| denominator - 1, known);
        match reach.clamp.is_some() || reach.has_fractions() {
            true => self.clamped(lowest, Limit::Value(reach.min), Limit::None),
            false => lowest,
        }
    }

    /// The largest value of a reach with fractions: the sum of its terms, rounded down and clamped.
    /// `None` without fractions.
    fn highest(&mut self, reach: &Reach) -> Option<NodeId> {
        reach.has_fractions().then(|| self.end(reach, reach.high, |_| 0, &mut Lowest::new()))
    }

    /// The sum of a reach's terms and an offset, rounded down after `rounding` is added to the
    /// numerator.
    fn end(
        &mut self,
        reach: &Reach,
        offset: Rational,
        rounding: impl Fn(i64) -> i64,
        known: &mut Lowest,
    ) -> NodeId {
        let steps = reach.terms.iter().map(|(_, step)| *step);
        let denominator = common_denominator(steps.chain([offset]));
        let scaled = |part: Rational| part.numerator() * (denominator / part.denominator());
        if denominator > 1 {
            // The sum is `denominator` times as large as the coordinate.
            for value in [reach.min, reach.max] {
                self.builder.fitted(value.saturating_mul(denominator));
            }
        }
        let mut sum = self.builder.int(scaled(offset) + rounding(denominator));
        for (symbol, step) in &reach.terms {
            let value = self.symbol(*symbol, known);
            let term = self.builder.scale(value, scaled(*step));
            sum = self.builder.add(sum, term);
        }
        let divisor = self.builder.int(denominator);
        let end = self.builder.binary(BinaryOp::Div, sum, divisor);
        let (low, high) = reach.clamp.unwrap_or((Limit::None, Limit::None));
        self.clamped(end, low, high)
    }

    /// The value of a symbol at the position that is being lowered.
    fn symbol(&mut self, symbol: Symbol, known: &mut Lowest) -> NodeId {
        if let Symbol::Size(atom) = symbol {
            return self.formula(&Formula::atom(atom));
        }
        let Symbol::Lowest(number) = symbol else {
            // Loops that run once have no variable.
            return self.symbols.get(&symbol).copied().unwrap_or_else(|| self.builder.int(0));
        };
        if let Some(value) = known.get(&number) {
            return *value;
        }
        let context = self.context;
        let mut least = None;
        let reaches = &context.plan.lowest[number];
        for reach in reaches {
            let mut lowest = self.lowest(reach, known);
            if reaches.len() > 1 {
                // Clamp each of them to its own range: the ranges determine their distance.
                lowest = self.clamped(lowest, Limit::Value(reach.min), Limit::Value(reach.max));
            }
            least = Some(least.map_or(lowest, |least| self.builder.binary(BinaryOp::Min, least, lowest)));
        }
        let least = least.unwrap_or_else(|| self.builder.int(0));
        known.insert(number, least);
        least
    }

    /// Clamps a value to two limits.
    fn clamped(&mut self, mut value: NodeId, low: Limit, high: Limit) -> NodeId {
        for (op, limit) in [(BinaryOp::Max, low), (BinaryOp::Min, high)] {
            if let Some(limit) = self.limit(limit) {
                value = self.builder.binary(op, value, limit);
            }
        }
        value
    }
}
