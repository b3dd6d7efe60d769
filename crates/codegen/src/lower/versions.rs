//! Versions of a block: blocks away from the edges of the image get one without guards and clamps.

use ahash::AHashMap;
use warploom_lang::Type;
use warploom_lang::affine::Interval;
use warploom_lang::op::{BinaryOp, Op};

use crate::builder::Assumptions;
use crate::ir::{Leaf, NodeId, NodeKind, ScalarValue, Stmt, every_stmt};
use crate::lower::error::LowerError;
use crate::lower::state::{GridAxis, KernelLowering};

impl GridAxis {
    /// The range of blocks at least `margin` away from both ends; all full blocks if that range is
    /// empty.
    fn inside(&self, margin: i64) -> Interval {
        let last = self.full.min(self.count - margin) - 1;
        if margin <= last { Interval::new(margin, last) } else { Interval::new(0, self.full - 1) }
    }
}

/// The largest margin to try, in blocks. It covers the reach of stencils and their clamps.
const MAX_MARGIN: i64 = 2;

impl KernelLowering<'_> {
    /// The body of a block. If it removes guards or clamps, blocks away from the edges get their
    /// own version, in which the ranges of the block indices decide them.
    pub fn versions(&mut self) -> Result<Vec<Stmt>, LowerError> {
        let _pass = tracing::debug_span!("versions").entered();
        let axes = self.axes.clone();
        let everywhere = self.block()?;
        let mut least = self.decisions(&everywhere);
        let mut best = None;
        if least == 0 || axes.is_empty() || axes.iter().any(|axis| axis.full == 0) {
            return Ok(everywhere);
        }
        for margin in 0..=MAX_MARGIN {
            let mut attempt = self.clone();
            let inside: Vec<Interval> = axes.iter().map(|axis| axis.inside(margin)).collect();
            for (axis, range) in axes.iter().zip(&inside) {
                attempt.builder.narrow(axis.index, *range);
            }
            let body = attempt.block()?;
            let decisions = attempt.decisions(&body);
            if decisions < least {
                least = decisions;
                best = Some((attempt, body, inside));
            }
        }
        let Some((attempt, inner, inside)) = best else { return Ok(everywhere) };
        *self = attempt;
        for axis in &axes {
            self.builder.narrow(axis.index, Interval::new(0, axis.count - 1));
        }
        let is_inside = self.is_inside(&inside);
        // A single `if` with an `else`: with two `if`s on opposite conditions, the CUDA compiler
        // carries the contents of a thread's arrays from the first to the second, and has been seen
        // to mix them up.
        Ok(vec![Stmt::If { condition: is_inside, body: inner, otherwise: everywhere }])
    }

    /// The body of a block whose sizes are given at launch. Blocks get a second version under the conditions that remove
    /// guards and clamps from a block in the middle, at typical sizes.
    pub fn assumed_versions(&mut self) -> Result<Vec<Stmt>, LowerError> {
        let _pass = tracing::debug_span!("versions").entered();
        let everywhere = self.block()?;
        let decisions = self.decisions(&everywhere);
        if decisions == 0 {
            return Ok(everywhere);
        }
        let mut attempt = self.clone();
        attempt.assume_typical();
        let inner = attempt.block()?;
        if attempt.decisions(&inner) >= decisions {
            return Ok(everywhere);
        }
        *self = attempt;
        let condition = self.builder.take_assumptions();
        match self.builder.known(condition) {
            Some(_) => Ok(inner),
            None => Ok(vec![Stmt::If { condition, body: inner, otherwise: everywhere }]),
        }
    }

    /// Allows assumptions that hold in a block in the middle, at typical sizes.
    fn assume_typical(&mut self) {
        let mut typical: AHashMap<NodeId, i64> =
            self.axes.iter().map(|axis| (axis.index, axis.middle)).collect();
        for (position, scalar) in (0..).zip(self.scalars.0.clone()) {
            if let ScalarValue::Formula(formula) = &scalar.value {
                let range = Interval::new(scalar.min, scalar.max);
                let leaf = self.builder.leaf(Leaf::Size(position), Type::I32, Some(range));
                typical.insert(leaf, self.context.typical(formula));
            }
        }
        self.builder.assumptions = Some(Assumptions { typical, made: Vec::new() });
    }

    /// The condition that a block's indices lie in some ranges.
    fn is_inside(&mut self, ranges: &[Interval]) -> NodeId {
        let mut conditions = Vec::new();
        for (axis, range) in self.axes.clone().iter().zip(ranges) {
            let (first, last) = (self.builder.int(range.min), self.builder.int(range.max));
            conditions.push(self.builder.binary(BinaryOp::Le, first, axis.index));
            conditions.push(self.builder.binary(BinaryOp::Le, axis.index, last));
        }
        self.builder.all(conditions)
    }

    /// The number of guards and index clamps that are evaluated at run time.
    fn decisions(&self, body: &[Stmt]) -> usize {
        let exprs = &self.builder.exprs;
        let guards = every_stmt(body).filter(|stmt| matches!(stmt, Stmt::If { .. })).count();
        let limits = exprs.reachable(every_stmt(body).flat_map(Stmt::operands)).into_iter().filter(|id| {
            let limit = matches!(exprs[*id].kind, NodeKind::Op(Op::Binary(BinaryOp::Min | BinaryOp::Max)));
            limit && exprs[*id].ty == Type::I32
        });
        guards + limits.count()
    }
}
