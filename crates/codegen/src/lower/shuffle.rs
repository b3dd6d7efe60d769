//! Shuffles: reads of Funcs that the threads of a warp hold in registers.
//!
//! All threads of a warp must execute a shuffle, so the shuffles of a nest come before its guards, with lanes computed
//! from the thread's index. Threads without a point execute them too, and may read anything.

use warploom_lang::op::BinaryOp;
use warploom_lang::{FuncId, Value};
use warploom_plan::{AxisKind, NestFootprint, NestPlan};
use warploom_schedule::{Item, LoopKind, NodeSet, StageRef};

use crate::ir::{Leaf, NodeId, Stmt, WARP};
use crate::lower::state::{KernelLowering, Read};

/// The shuffles of the nest that is being lowered.
#[derive(Clone, Default)]
pub(crate) struct Shuffles {
    /// The Funcs that the nest reads from other threads.
    of: NodeSet,
    /// The thread's index, as the sum of the nest's thread variables.
    thread: Option<NodeId>,
    stmts: Vec<Stmt>,
}

impl KernelLowering<'_> {
    /// Begins a nest.
    pub fn begin_shuffles(&mut self, footprint: &NestFootprint) {
        let thread = Some(self.builder.int(0));
        self.shuffles = Shuffles { of: footprint.shuffled.clone(), thread, stmts: Vec::new() };
    }

    /// Adds a thread variable of the nest, and the distance between the threads along it.
    pub fn add_lane(&mut self, variable: NodeId, distance: i64) {
        let along = self.builder.scale(variable, distance);
        self.shuffles.thread = self.shuffles.thread.map(|thread| self.builder.add(thread, along));
    }

    /// A value of a Func at a point, given the value that the thread holds itself.
    pub fn exchanged(&mut self, read: Read, at: &[NodeId], own: NodeId) -> NodeId {
        let Read::Func(func) = read else { return own };
        if !self.shuffles.of.contains(self.context.problem.dag().func_node(func)) {
            return own;
        }
        let Some(thread) = self.holder(func, at).filter(|thread| Some(*thread) != self.shuffles.thread)
        else {
            return own;
        };
        let lanes = self.builder.int(WARP.into());
        let lane = self.builder.binary(BinaryOp::Mod, thread, lanes);
        let same = |stmt: &Stmt| {
            let Stmt::Shuffle { var, value, lane: known } = *stmt else { return None };
            ((value, known) == (own, lane)).then_some(var)
        };
        let var = self.shuffles.stmts.iter().find_map(same).unwrap_or_else(|| {
            let var = self.builder.var(format!("{}_lane", self.context.pipeline().funcs()[func].name));
            self.shuffles.stmts.push(Stmt::Shuffle { var, value: own, lane });
            var
        });
        let ty = self.builder.ty(own);
        self.builder.leaf(Leaf::Var(var), ty, None)
    }

    /// The thread that holds a point of a Func.
    fn holder(&mut self, func: FuncId, at: &[NodeId]) -> Option<NodeId> {
        let context = self.context;
        let computes = |nest: &&NestPlan| nest.stage().is_some_and(|stage| stage.func == func);
        let nests = context.plan.nests.slice(self.plan.nests.clone());
        let footprint = nests.iter().find(computes)?.footprint.as_ref()?;
        let (start, mut thread, mut distance) = (self.placed(&footprint.points), self.builder.int(0), 1);
        for axis in footprint.axes_of(AxisKind::Lane) {
            let LoopKind::Pure(d) = axis.dim else { return None };
            let along = self.builder.sub(at[d], start.lower[d]);
            let along = self.builder.scale(along, distance);
            thread = self.builder.add(thread, along);
            distance *= axis.count;
        }
        Some(thread)
    }

    /// Ends the nest, and returns its shuffles.
    pub fn take_shuffles(&mut self) -> Vec<Stmt> {
        std::mem::take(&mut self.shuffles).stmts
    }

    /// Initialises the registers of an exchanged Func that `stmts` leave unset: lanes without a point are read too.
    pub fn start_registers(&mut self, item: Item, stmts: &[Stmt]) -> Vec<Stmt> {
        let Some(StageRef { func, stage: 0 }) = item.stage().filter(|stage| self.is_in_warps(stage.func))
        else {
            return Vec::new();
        };
        let mut starts = Vec::new();
        for value in 0..self.context.pipeline().funcs()[func].types.len() {
            let Some(array) = self.local.get(&(Read::Func(func), value)).map(|stored| stored.array) else {
                continue;
            };
            if !stmts.iter().any(|stmt| stmt.written() == Some(array)) {
                let zero = self.builder.constant(Value::zero(self.arrays[array].ty));
                starts.push(Stmt::Store { array, index: self.builder.int(0), value: zero });
            }
        }
        starts
    }

    /// Whether the threads of a warp exchange a Func in registers.
    fn is_in_warps(&self, func: FuncId) -> bool {
        let is_of = |item: Item| item.stage().is_some_and(|stage| stage.func == func);
        self.plan.allocations.iter().any(|own| own.in_warps && is_of(own.item))
    }
}
