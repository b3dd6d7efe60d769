//! Classifies stages.

use warploom_lang::ExprId;
use warploom_lang::ir::NodeKind;
use warploom_schedule::{Access, AccessClass, Item, LoopKind, Rational, Slope, Stage, StageRef, Target};

use crate::coverage::StageKind;
use crate::random::facts::Facts;

impl StageKind {
    /// The kind of a stage or staged input: the first that fits.
    pub(super) fn of(facts: &Facts<'_>, item: Item) -> StageKind {
        match item {
            Item::Input(_) => StageKind::InputCopy,
            Item::Stage(at) => ClassifiedStage::new(facts, at).kind(),
        }
    }
}

/// A stage with what is needed to classify it.
struct ClassifiedStage<'a> {
    facts: &'a Facts<'a>,
    stage: &'a Stage,
    /// The indices that the stage writes.
    indices: &'a [ExprId],
}

impl<'a> ClassifiedStage<'a> {
    fn new(facts: &'a Facts<'a>, at: StageRef) -> ClassifiedStage<'a> {
        let stage = &facts.problem.dag().stages()[facts.problem.stage_id(at)];
        let indices = &facts.problem.pipeline().funcs()[at.func].stages[at.stage].indices;
        ClassifiedStage { facts, stage, indices }
    }

    fn kind(&self) -> StageKind {
        let node = &self.facts.problem.dag().nodes()[self.stage.node];
        let has_reduction = self.stage.loops.iter().any(|of| matches!(of.kind, LoopKind::Reduction(_)));
        let tests = [
            (StageKind::Scan, self.accesses().any(|access| self.is_own_elsewhere(access))),
            (StageKind::Scatter, self.writes_elsewhere()),
            (StageKind::Tuple, node.types.len() > 1),
            (StageKind::Reduction, has_reduction),
            (StageKind::Boundary, node.is_boundary_condition),
            (StageKind::Gather, self.accesses().any(|access| self.is_data_dependent(access))),
            (StageKind::Transposing, self.accesses().any(|a| a.map.class() == AccessClass::Transpose)),
            (StageKind::Downsampling, self.slopes().any(|slope| slope.is_some_and(is_beyond_one))),
            (StageKind::Upsampling, self.slopes().any(|slope| slope.is_some_and(is_fraction))),
            (StageKind::Stencil, self.reads_twice()),
        ];
        tests.into_iter().find(|(_, fits)| *fits).map_or(StageKind::Pointwise, |(kind, _)| kind)
    }

    fn accesses(&self) -> impl Iterator<Item = &'a Access> {
        self.stage.accesses.iter()
    }

    fn indices_of(&self, access: &Access) -> &'a [ExprId] {
        &self.facts.problem.pipeline().exprs()[access.expr].args
    }

    /// Whether an access reads the stage's own Func at a point other than the one written.
    fn is_own_elsewhere(&self, access: &Access) -> bool {
        access.target == Target::Itself && self.indices_of(access) != self.indices
    }

    fn writes_elsewhere(&self) -> bool {
        let pure = self.stage.loops.iter().filter(|of| matches!(of.kind, LoopKind::Pure(_))).count();
        pure < self.indices.len()
    }

    fn is_data_dependent(&self, access: &Access) -> bool {
        let exprs = self.facts.problem.pipeline().exprs();
        let nodes = exprs.reachable(self.indices_of(access).iter().copied());
        nodes.into_iter().any(|id| matches!(exprs[id].kind, NodeKind::Load(_) | NodeKind::Call(..)))
    }

    fn slopes(&self) -> impl Iterator<Item = Slope> {
        self.accesses().flat_map(|access| access.map.rows()).flat_map(|row| row.slopes.iter().copied())
    }

    /// Whether something is read at two points.
    fn reads_twice(&self) -> bool {
        let mut accesses = self.accesses().enumerate();
        accesses.any(|(i, access)| {
            let others = self.stage.accesses[..i].iter();
            let mut same = others.filter(|other| other.target == access.target);
            same.any(|other| self.indices_of(other) != self.indices_of(access))
        })
    }
}

fn is_beyond_one(slope: Rational) -> bool {
    slope.numerator().abs() > slope.denominator()
}

fn is_fraction(slope: Rational) -> bool {
    !slope.is_zero() && slope.numerator().abs() < slope.denominator()
}
