//! Versions of a block: interior blocks get one without guards and clamps.

use warploom_lang::Type;
use warploom_lang::affine::Interval;
use warploom_lang::op::{BinaryOp, Op};
use warploom_plan::body::EDGE_BLOCKS;

use crate::builder::Assumptions;
use crate::ir::{Leaf, NodeId, NodeKind, Origin, PlanPart, ScalarValue, Stmt, every_stmt};
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

/// A version of a block: the assumptions when it was lowered, its statements, and the blocks along each axis that run
/// it.
struct Version<'a> {
    lowering: KernelLowering<'a>,
    body: Vec<Stmt>,
    blocks: Vec<Interval>,
    decisions: usize,
}

/// Statements, and their origins.
type Code = (Vec<Stmt>, Vec<Origin>);

/// A version is extended to all blocks of an axis if it still removes this many guards or clamps for each one it
/// reintroduces.
const WORTH: usize = 12;

/// The most rows of edge blocks that get versions of their own.
const MOST_EDGES: usize = 4;

/// Edge blocks get their own version if they evaluate this many more guards than interior blocks, or if a third of all
/// blocks touch an edge. Otherwise it would only lengthen the kernel and could raise register pressure.
const MANY_DECISIONS: usize = 48;

impl<'a> KernelLowering<'a> {
    /// The body of a block. If this removes guards or clamps, interior blocks get their own version, in which the
    /// ranges of the block indices decide them.
    pub fn versions(&mut self) -> Result<Vec<Stmt>, LowerError> {
        let _pass = tracing::debug_span!("versions").entered();
        let axes = self.axes.clone();
        let everywhere = self.block()?;
        let decisions = self.decisions(&everywhere);
        if decisions == 0 || axes.is_empty() || axes.iter().any(|axis| axis.full == 0) {
            return Ok(everywhere);
        }
        let Some(version) = self.away_from_edges(decisions)? else { return Ok(everywhere) };
        let version = self.widened(version, decisions)?;
        let Version { lowering, body, blocks, decisions: left } = self.extended(version)?;
        let removed = decisions.saturating_sub(left);
        let others = std::mem::replace(self, lowering).origins;
        let origins = std::mem::take(&mut self.origins);
        let (otherwise, others) = match self.at_edges(&blocks, removed)? {
            Some(edges) => edges,
            None => (everywhere, others),
        };
        self.restrict(&self.whole_grid());
        self.origins = origins;
        Ok(self.chosen(&blocks, body, otherwise, others))
    }

    /// The version of interior blocks with the fewest guards and clamps, if it has fewer than `decisions`.
    fn away_from_edges(&self, decisions: usize) -> Result<Option<Version<'a>>, LowerError> {
        let (mut least, mut best) = (decisions, None);
        for margin in 0..=EDGE_BLOCKS {
            let version = self.version(self.axes.iter().map(|axis| axis.inside(margin)).collect())?;
            if version.decisions < least {
                least = version.decisions;
                best = Some(version);
            }
        }
        Ok(best)
    }

    /// The version extended to all full blocks along axes where this reintroduces few guards: the first and the last of
    /// three channels are not edges, and a clamp per column is cheap next to hundreds per row.
    fn widened(&self, mut best: Version<'a>, most: usize) -> Result<Version<'a>, LowerError> {
        for (number, axis) in self.axes.iter().enumerate() {
            let mut blocks = best.blocks.clone();
            blocks[number] = axis.inside(0);
            if blocks[number] == best.blocks[number] {
                continue;
            }
            let version = self.version(blocks)?;
            let brought_back = version.decisions.saturating_sub(best.decisions);
            if brought_back * WORTH <= most.saturating_sub(version.decisions) && version.decisions < most {
                best = version;
            }
        }
        Ok(best)
    }

    /// The version extended to as many blocks as possible without more guards: stencils need not be symmetric, and the
    /// end of an image cuts only its last block.
    fn extended(&self, mut best: Version<'a>) -> Result<Version<'a>, LowerError> {
        for (number, axis) in self.axes.iter().enumerate() {
            let all = axis.inside(0);
            for (at_start, at_end) in [(1, 0), (0, 1)] {
                loop {
                    let mut blocks = best.blocks.clone();
                    let Interval { min, max } = blocks[number];
                    blocks[number] = Interval::new(min - at_start, max + at_end);
                    if !all.covers(blocks[number]) {
                        break;
                    }
                    let version = self.version(blocks)?;
                    if version.decisions > best.decisions {
                        break;
                    }
                    best = version;
                }
            }
        }
        Ok(best)
    }

    /// The code of the blocks outside `inside`, and its origins, if these are few rows of blocks that evaluate
    /// `removed` more guards than the others. Each row has a version with a constant block index, which folds all
    /// dependent guards in unrolled loops.
    fn at_edges(&mut self, inside: &[Interval], removed: usize) -> Result<Option<Code>, LowerError> {
        let all: i64 = self.axes.iter().map(|axis| axis.count).product();
        let outside = all - inside.iter().map(|range| range.max - range.min + 1).product::<i64>();
        if removed < MANY_DECISIONS && outside * 3 < all {
            return Ok(None);
        }
        let mut rows = Vec::new();
        let mut blocks = self.whole_grid();
        for (number, range) in inside.iter().enumerate() {
            let all = blocks[number];
            for block in (all.min..range.min).chain(range.max + 1..=all.max).take(MOST_EDGES + 1) {
                blocks[number] = Interval::new(block, block);
                rows.push(blocks.clone());
            }
            // The rows of the next axis may leave these out.
            blocks[number] = *range;
        }
        if rows.len() > MOST_EDGES {
            return Ok(None);
        }
        let mut versions = Vec::new();
        for blocks in rows {
            let Version { lowering, body, blocks, .. } = self.version(blocks)?;
            *self = lowering;
            versions.push((body, std::mem::take(&mut self.origins), blocks));
        }
        self.restrict(&self.whole_grid());
        // The last row also takes all blocks outside the other rows.
        let Some((mut code, mut origins, _)) = versions.pop() else { return Ok(None) };
        for (body, of_body, blocks) in versions.into_iter().rev() {
            self.origins = of_body;
            code = self.chosen(&blocks, body, code, origins);
            origins = std::mem::take(&mut self.origins);
        }
        Ok(Some((code, origins)))
    }

    /// Lowers the block for some blocks of the grid.
    fn version(&self, blocks: Vec<Interval>) -> Result<Version<'a>, LowerError> {
        let mut lowering = self.clone();
        lowering.restrict(&blocks);
        let body = lowering.block()?;
        let decisions = lowering.decisions(&body);
        Ok(Version { lowering, body, blocks, decisions })
    }

    /// Restricts the code that follows to these blocks along each axis. An index with one value becomes a constant.
    fn restrict(&mut self, blocks: &[Interval]) {
        for (axis, range) in self.axes.clone().iter().zip(blocks) {
            self.builder.narrow(axis.index, *range);
            let index = if range.min == range.max { self.builder.int(range.min) } else { axis.index };
            self.symbols.insert(axis.symbol, index);
        }
    }

    fn whole_grid(&self) -> Vec<Interval> {
        self.axes.iter().map(|axis| Interval::new(0, axis.count - 1)).collect()
    }

    /// Selects one of two versions by a single `if` with an `else`. With two `if`s on opposite conditions, the CUDA
    /// compiler carries the contents of a thread's arrays from the first to the second, and has been seen to mix them
    /// up.
    fn chosen(
        &mut self,
        blocks: &[Interval],
        body: Vec<Stmt>,
        otherwise: Vec<Stmt>,
        others: Vec<Origin>,
    ) -> Vec<Stmt> {
        let condition = self.is_inside(blocks);
        self.choose_before(others);
        vec![Stmt::If { condition, body, otherwise }]
    }

    /// The body of a block whose sizes are given at launch. Blocks get further versions, under the conditions that
    /// remove guards and clamps at typical sizes: for all blocks; for an interior block; and for an interior block
    /// whose loops over tiles end with a whole tile.
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

    /// Records that the choice between this version and another one precedes the statements of both.
    fn choose_before(&mut self, other: Vec<Origin>) {
        self.origins.insert(0, Origin { place: PlanPart::Block, statements: 1 });
        self.origins.extend(other);
    }

    /// Allows assumptions that hold at typical sizes in some blocks; with `whole_tiles`, also on the last step of
    /// loops.
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
            if first == last {
                conditions.push(self.builder.binary(BinaryOp::Eq, axis.index, first));
                continue;
            }
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
