//! Versions of a block: blocks away from the edges of the image get one without guards and clamps.

use warploom_lang::Type;
use warploom_lang::affine::Interval;
use warploom_lang::op::{BinaryOp, Op};

use crate::builder::Assumptions;
use crate::ir::{Leaf, NodeId, NodeKind, Origin, Place, ScalarValue, Stmt, every_stmt};
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

/// Some blocks along an axis of the grid.
type Blocks = fn(&GridAxis) -> Interval;

/// The lowering of a version of a block, its statements, and the blocks along each axis that run it.
type Version<Lowering> = (Lowering, Vec<Stmt>, Vec<Interval>);

/// The largest margin to try, in blocks. It covers the reach of stencils and their clamps.
const MAX_MARGIN: i64 = 2;

/// More blocks run a version if it removes so many decisions for each one that this brings back: along an axis, about one block in
/// so many is at an edge.
const WORTH: usize = 12;

impl KernelLowering<'_> {
    /// The body of a block. If it removes guards or clamps, blocks away from the edges get their
    /// own version, in which the ranges of the block indices decide them.
    pub fn versions(&mut self) -> Result<Vec<Stmt>, LowerError> {
        let _pass = tracing::debug_span!("versions").entered();
        let axes = self.axes.clone();
        let everywhere = self.block()?;
        let origins = self.origins.clone();
        let most = self.decisions(&everywhere);
        let mut least = most;
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
        let Some(best) = best else { return Ok(everywhere) };
        let (attempt, inner, inside) = self.widened(&axes, (most, least), best)?;
        *self = attempt;
        self.choose_before(origins);
        for axis in &axes {
            self.builder.narrow(axis.index, Interval::new(0, axis.count - 1));
        }
        let is_inside = self.is_inside(&inside);
        // A single `if` with an `else`: with two `if`s on opposite conditions, the CUDA compiler
        // carries the contents of a thread's arrays from the first to the second, and has been seen
        // to mix them up.
        Ok(vec![Stmt::If { condition: is_inside, body: inner, otherwise: everywhere }])
    }

    /// The version for all full blocks along axes where that brings back next to nothing of what it decides: the first and the
    /// last of three channels are no edges, and a clamp of the column costs little where the rows have hundreds.
    fn widened(
        &self,
        axes: &[GridAxis],
        (most, mut least): (usize, usize),
        mut best: Version<Self>,
    ) -> Result<Version<Self>, LowerError> {
        for (number, axis) in axes.iter().enumerate() {
            let mut inside = best.2.clone();
            inside[number] = axis.inside(0);
            if inside[number] == best.2[number] {
                continue;
            }
            let mut attempt = self.clone();
            for (axis, range) in axes.iter().zip(&inside) {
                attempt.builder.narrow(axis.index, *range);
            }
            let body = attempt.block()?;
            let decisions = attempt.decisions(&body);
            if decisions.saturating_sub(least) * WORTH <= most.saturating_sub(decisions) && decisions < most {
                least = decisions;
                best = (attempt, body, inside);
            }
        }
        Ok(best)
    }

    /// The body of a block whose sizes are given at launch. Blocks get further versions under the conditions that remove
    /// guards and clamps at typical sizes: from all blocks; from a block in the middle; and from one in the middle whose loops
    /// over tiles end with a whole tile.
    pub fn assumed_versions(&mut self) -> Result<Vec<Stmt>, LowerError> {
        let _pass = tracing::debug_span!("versions").entered();
        let mut body = self.block()?;
        let mut least = self.decisions(&body);
        let all = |axis: &GridAxis| Interval::new(0, axis.typical_count - 1);
        let middle = |axis: &GridAxis| Interval::new(axis.typical_count / 2, axis.typical_count / 2);
        let kinds: [(Blocks, bool); 3] = [(all, true), (middle, false), (middle, true)];
        for (blocks, whole_tiles) in kinds {
            let mut attempt = self.clone();
            attempt.assume_typical(blocks, whole_tiles);
            let version = attempt.block()?;
            let decisions = attempt.decisions(&version);
            if decisions >= least {
                continue;
            }
            least = decisions;
            let others = std::mem::replace(self, attempt).origins;
            let condition = self.builder.take_assumptions();
            body = match self.builder.known(condition) {
                Some(_) => version,
                None => {
                    self.choose_before(others);
                    vec![Stmt::If { condition, body: version, otherwise: body }]
                }
            };
        }
        Ok(body)
    }

    /// Puts the choice between this version and another one before the statements of both.
    fn choose_before(&mut self, other: Vec<Origin>) {
        self.origins.insert(0, Origin { place: Place::Block, statements: 1 });
        self.origins.extend(other);
    }

    /// Allows assumptions that hold at typical sizes in some blocks; also on the last step of loops, if they have `whole_tiles`.
    fn assume_typical(&mut self, blocks: Blocks, whole_tiles: bool) {
        let typical = self.axes.iter().map(|axis| (axis.index, blocks(axis))).collect();
        let mut assumptions = Assumptions { typical, ..Assumptions::default() };
        for (position, scalar) in (0..).zip(self.scalars.0.clone()) {
            if let ScalarValue::Formula(formula) = &scalar.value {
                let range = Interval::new(scalar.min, scalar.max);
                let leaf = self.builder.leaf(Leaf::Size(position), Type::I32, Some(range));
                let value = self.context.typical(formula);
                assumptions.typical.insert(leaf, Interval::new(value, value));
                if whole_tiles {
                    assumptions.scalars.insert(position, leaf);
                }
            }
        }
        self.builder.assumptions = Some(assumptions);
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

    /// The number of guards, index clamps, remainders by a size and loop counts that are evaluated at run time.
    fn decisions(&self, body: &[Stmt]) -> usize {
        let exprs = &self.builder.exprs;
        let decides = |stmt: &&Stmt| matches!(stmt, Stmt::If { .. } | Stmt::For { limit: Some(_), .. });
        let guards = every_stmt(body).filter(decides).count();
        let limits = exprs.reachable(every_stmt(body).flat_map(Stmt::operands)).into_iter().filter(|id| {
            let node = &exprs[*id];
            let limit = match node.kind {
                NodeKind::Op(Op::Binary(BinaryOp::Min | BinaryOp::Max)) => true,
                NodeKind::Op(Op::Binary(BinaryOp::Mod)) => self.builder.known_int(node.args[1]).is_none(),
                _ => false,
            };
            limit && node.ty == Type::I32
        });
        guards + limits.count()
    }
}
