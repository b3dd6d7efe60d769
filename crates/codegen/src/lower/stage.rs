//! The stores of one point of a stage.

use warploom_lang::InputId;
use warploom_plan::AtomicUpdate;
use warploom_schedule::{Item, LoopKind, StageRef};

use crate::ir::{AtomicOp, Leaf, NodeId, NodeKind, Stmt};
use crate::lower::error::LowerError;
use crate::lower::nesting::Nesting;
use crate::lower::state::{KernelLowering, Read};
use crate::lower::value::Point;
use crate::points::Key;

/// The Func or input that a nest computes or copies, and the names of its loops.
pub(crate) struct Subject {
    pub item: Item,
    /// Whether the nest updates its points by atomics.
    pub atomic: bool,
    /// Names of the dimensions.
    names: Vec<String>,
    /// Names of the reduction variables.
    variables: Vec<String>,
}

impl Subject {
    pub fn name(&self, kind: LoopKind) -> &str {
        match kind {
            LoopKind::Pure(d) => &self.names[d],
            LoopKind::Reduction(r) => &self.variables[r],
        }
    }
}

impl KernelLowering<'_> {
    pub fn subject(&self, item: Item) -> Subject {
        let pipeline = self.context.pipeline();
        let (names, variables) = match item {
            Item::Stage(StageRef { func, stage }) => {
                let decl = &pipeline.funcs()[func];
                let variables = decl.stages[stage].domain.iter().map(|range| range.name.clone());
                (decl.dims.clone(), variables.collect())
            }
            Item::Input(input) => {
                ((0..pipeline.inputs()[input].dimensions).map(|d| format!("d{d}")).collect(), Vec::new())
            }
        };
        Subject { item, atomic: false, names, variables }
    }

    /// Emits the stores of one point and wraps them in the nesting.
    pub fn stores(
        &mut self,
        mut nesting: Nesting,
        subject: &Subject,
        vars: Vec<NodeId>,
        rvars: Vec<NodeId>,
    ) -> Result<Vec<Stmt>, LowerError> {
        let _pass = tracing::debug_span!("values").entered();
        let stores = match subject.item {
            Item::Stage(stage) => {
                let update = self.context.problem.atomic_update(stage).filter(|_| subject.atomic);
                self.stage_stores(stage, update, Point { vars, rvars }, &mut nesting)?
            }
            Item::Input(input) => vec![self.input_store(input, &vars)?],
        };
        Ok(nesting.around(&mut self.builder, stores))
    }

    fn input_store(&mut self, input: InputId, vars: &[NodeId]) -> Result<Stmt, LowerError> {
        let global = self.global(self.context.input_buffers[input]);
        let index = self.loaded(&global, vars);
        let ty = self.context.pipeline().inputs()[input].ty;
        let value = self.builder.load(global.array, ty, index);
        self.store(Read::Input(input), 0, 0, vars, value)
    }

    fn stage_stores(
        &mut self,
        stage: StageRef,
        update: Option<AtomicUpdate>,
        point: Point,
        nesting: &mut Nesting,
    ) -> Result<Vec<Stmt>, LowerError> {
        let pipeline = self.context.pipeline();
        let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
        if let Some(predicate) = decl.predicate {
            // The operands of the predicate exist only at points that are computed.
            nesting.enter(&mut self.builder);
            let condition = self.value(predicate, point.clone())?;
            nesting.require(self.builder.guarded(condition));
        }
        let at: Vec<NodeId> =
            decl.indices.iter().map(|index| self.value(*index, point.clone())).collect::<Result<_, _>>()?;
        if let Some(AtomicUpdate { op, term }) = update
            && let Some(op) = AtomicOp::ALL.into_iter().find(|known| known.operation() == op)
        {
            let stored = self.stored(Read::Func(stage.func), 0)?;
            let (index, value) = (stored.index(&mut self.builder, &at), self.value(term, point)?);
            self.touch(Key { array: stored.array, index, value: Some(value) }, &at, stage.stage);
            return Ok(vec![Stmt::Atomic { op, array: stored.array, index, value }]);
        }
        let values: Vec<NodeId> =
            decl.values.iter().map(|value| self.value(*value, point.clone())).collect::<Result<_, _>>()?;
        if let ([value], None) = (&values[..], &self.carried) {
            let value = *value;
            return Ok(vec![self.store(Read::Func(stage.func), stage.stage, 0, &at, value)?]);
        }
        // A tuple reads all old values before it writes any. A value that a scan keeps is computed once.
        let mut stmts = Vec::new();
        let at: Vec<NodeId> = at.into_iter().map(|index| self.read_now(&mut stmts, "at", index)).collect();
        let values: Vec<NodeId> =
            values.into_iter().map(|value| self.read_now(&mut stmts, "value", value)).collect();
        for (number, value) in values.into_iter().enumerate() {
            stmts.push(self.store(Read::Func(stage.func), stage.stage, number, &at, value)?);
            stmts.extend(self.carried_store(number, value));
        }
        Ok(stmts)
    }

    /// Binds a value that contains loads to a variable, so that the loads precede the statements that follow.
    fn read_now(&mut self, stmts: &mut Vec<Stmt>, name: &str, value: NodeId) -> NodeId {
        let exprs = &self.builder.exprs;
        let mut nodes = exprs.reachable([value]).into_iter();
        if !nodes.any(|id| matches!(exprs[id].kind, NodeKind::Load(_))) {
            return value;
        }
        let var = self.builder.var(format!("{name}{}", stmts.len()));
        stmts.push(Stmt::Let(var, value));
        let ty = self.builder.ty(value);
        self.builder.leaf(Leaf::Var(var), ty, None)
    }

    fn store(
        &mut self,
        read: Read,
        stage: usize,
        value: usize,
        at: &[NodeId],
        bits: NodeId,
    ) -> Result<Stmt, LowerError> {
        let stored = self.stored(read, value)?;
        Ok(self.written(&stored, at, bits, stage))
    }
}
