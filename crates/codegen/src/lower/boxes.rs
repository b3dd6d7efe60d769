//! Footprints as boxes: where they start, as expressions of the kernel.

use warploom_lang::op::BinaryOp;
use warploom_schedule::Rational;
use warploom_schedule::schedule::{Footprint, Reach, Symbol};

use crate::ir::NodeId;
use crate::lower::kernel::KernelLowering;

/// A box that moves with the block, the iteration or the thread.
#[derive(Clone, Debug)]
pub(crate) struct Box {
    pub lower: Vec<NodeId>,
    pub extent: Vec<i64>,
}

impl KernelLowering<'_> {
    /// A footprint as a box at the place that is being lowered.
    pub fn placed(&mut self, footprint: &Footprint) -> Box {
        self.placed_dims(&footprint.dims)
    }

    /// Reaches as a box at the place that is being lowered.
    pub fn placed_dims(&mut self, dims: &[Reach]) -> Box {
        let lower = dims.iter().map(|reach| self.lowest(reach)).collect();
        Box { lower, extent: dims.iter().map(Reach::extent).collect() }
    }

    /// The smallest value of a reach: the sum of its terms, rounded up and clamped.
    fn lowest(&mut self, reach: &Reach) -> NodeId {
        if reach.terms.is_empty() {
            return self.builder.int(reach.min);
        }
        let steps = reach.terms.iter().map(|(_, step)| *step);
        let denominator = steps.chain([reach.low]).fold(1, |all, part| lcm(all, part.denominator()));
        let scaled = |part: Rational| part.numerator() * (denominator / part.denominator());
        let mut sum = self.builder.int(scaled(reach.low) + denominator - 1);
        for (symbol, step) in &reach.terms {
            let value = self.symbol(*symbol);
            let term = self.builder.scale(value, scaled(*step));
            sum = self.builder.add(sum, term);
        }
        let divisor = self.builder.int(denominator);
        let lowest = self.builder.binary(BinaryOp::Div, sum, divisor);
        let (low, high) = reach.clamp.unwrap_or((i64::MIN, i64::MAX));
        self.clamped(lowest, low, high)
    }

    /// The value of a symbol at the place that is being lowered.
    fn symbol(&mut self, symbol: Symbol) -> NodeId {
        let Symbol::Lowest(number) = symbol else {
            // Loops that run once have no variable.
            return self.symbols.get(&symbol).copied().unwrap_or_else(|| self.builder.int(0));
        };
        let context = self.context;
        let mut least = None;
        for reach in &context.footprints.lowest[number] {
            let lowest = self.lowest(reach);
            let lowest = self.clamped(lowest, reach.min, reach.max);
            least = Some(least.map_or(lowest, |least| self.builder.binary(BinaryOp::Min, least, lowest)));
        }
        least.unwrap_or_else(|| self.builder.int(0))
    }

    /// A value between two limits, where the smallest and largest numbers stand for none.
    fn clamped(&mut self, mut value: NodeId, low: i64, high: i64) -> NodeId {
        for (op, limit) in [(BinaryOp::Max, low), (BinaryOp::Min, high)] {
            if let Ok(limit) = i32::try_from(limit) {
                let limit = self.builder.int(limit.into());
                value = self.builder.binary(op, value, limit);
            }
        }
        value
    }
}

fn lcm(a: i64, b: i64) -> i64 {
    a / warploom_lang::bounds::congruence::gcd(a, b) * b
}
