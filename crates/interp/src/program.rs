//! Compiles a stage's expressions to a list of instructions over rows.
//!
//! Values that are constant along a row are scalars; all others occupy a row register. Constants,
//! Params and sizes are folded at compile time.

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;
use warploom_lang::ir::{NodeKind, Stage};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::rounding::{self, Deviation, Product};
use warploom_lang::{ExprId, FuncId, Id, IdVec, InputId, ParamId, Pipeline, Region, TableId, Type, Value};

use crate::perturb::{Noise, Perturbed};

/// The location of an operand or a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// A value that is constant along the row.
    Scalar(usize),
    /// A row register.
    Row(usize),
    /// A row register of 64-bit values.
    Wide(usize),
}

impl Slot {
    /// Whether the value differs along the row.
    fn varies(self) -> bool {
        !matches!(self, Slot::Scalar(_))
    }
}

/// The operation of an instruction.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// The coordinate of a dimension.
    Var(usize),
    /// A coordinate of the reduction domain.
    RVar(usize),
    /// A load from an input.
    Load(InputId),
    /// A read of a constant table.
    Table(TableId),
    /// A read of a Func's value.
    Call(FuncId, usize),
    /// An operation.
    Op(Op),
    /// An operation with perturbed rounding, by its position in `Program::perturbed`.
    Perturbed(usize),
}

/// One step of a program.
#[derive(Clone, Debug)]
pub struct Instruction {
    pub action: Action,
    /// The type of the last operand; the type of the result if there are no operands.
    pub operand: Type,
    pub result: Type,
    pub to: Slot,
    pub args: SmallVec<[Slot; 3]>,
    /// For accesses: the step of each index from lane to lane, where it is constant.
    pub steps: SmallVec<[Option<i64>; 3]>,
}

/// The instructions of one stage, and the locations of its results.
#[derive(Clone, Debug)]
pub struct Program {
    pub instructions: Vec<Instruction>,
    /// The operations with perturbed rounding.
    pub perturbed: Vec<Perturbed>,
    /// The initial values of the scalars; constants are already filled in.
    pub scalars: Vec<u64>,
    pub rows: usize,
    pub wide_rows: usize,
    pub indices: Vec<Slot>,
    pub values: Vec<Slot>,
    pub predicate: Option<Slot>,
}

/// The sizes and values that a program is specialised for.
pub struct Constants<'a> {
    pub inputs: &'a IdVec<InputId, Region>,
    pub params: &'a IdVec<ParamId, Value>,
    /// The perturbation of the rounding; `None` rounds as the reference does.
    pub noise: Option<Noise>,
}

impl Program {
    /// Compiles a stage for rows along dimension `row`; for single points if it is `None`.
    pub fn new(
        pipeline: &Pipeline,
        (func, stage): (FuncId, &Stage),
        row: Option<usize>,
        constants: &Constants<'_>,
    ) -> Program {
        let reorders = constants.noise.is_some_and(Noise::reorders);
        let order = pipeline.exprs().reachable(stage.roots());
        let mut last_use: AHashMap<ExprId, usize> = AHashMap::new();
        for (position, id) in order.iter().enumerate() {
            for arg in operands(pipeline, *id, constants) {
                last_use.insert(arg, position);
            }
        }
        // Results are read after the last instruction.
        last_use.extend(stage.roots().map(|root| (root, usize::MAX)));
        let mut compiler = Compiler {
            pipeline,
            row,
            constants,
            reordered: if reorders { rounding::steps(pipeline, func) } else { AHashSet::new() },
            slots: AHashMap::new(),
            known: AHashMap::new(),
            steps: AHashMap::new(),
            narrow: Registers::default(),
            wide: Registers::default(),
            scalars: Vec::new(),
            instructions: Vec::new(),
            perturbed: Vec::new(),
        };
        for (position, id) in order.into_iter().enumerate() {
            compiler.node(id);
            for arg in operands(pipeline, id, constants) {
                if last_use[&arg] == position {
                    compiler.release(arg);
                }
            }
        }
        let slot = |id: &ExprId| compiler.slots[id];
        Program {
            indices: stage.indices.iter().map(slot).collect(),
            values: stage.values.iter().map(slot).collect(),
            predicate: stage.predicate.as_ref().map(slot),
            instructions: compiler.instructions,
            perturbed: compiler.perturbed,
            scalars: compiler.scalars,
            rows: compiler.narrow.count,
            wide_rows: compiler.wide.count,
        }
    }
}

/// The operands of an instruction: those of the node and, with perturbed rounding, the factors of
/// the products that it may fuse.
fn operands(pipeline: &Pipeline, id: ExprId, constants: &Constants<'_>) -> SmallVec<[ExprId; 3]> {
    let mut operands = pipeline.exprs()[id].args.clone();
    if constants.noise.is_some()
        && let Some(Deviation::Fused { left, right }) = rounding::deviation(pipeline, id)
    {
        for product in [left, right].into_iter().flatten() {
            if let Product::Here(product, _) = product {
                operands.extend(pipeline.exprs()[product].args.iter().copied());
            }
        }
    }
    operands
}

struct Compiler<'a> {
    pipeline: &'a Pipeline,
    row: Option<usize>,
    constants: &'a Constants<'a>,
    /// The steps of reductions whose terms come in another order.
    reordered: AHashSet<ExprId>,
    slots: AHashMap<ExprId, Slot>,
    /// Nodes with constant values.
    known: AHashMap<ExprId, Value>,
    /// The step of a value from lane to lane, where it is constant.
    steps: AHashMap<ExprId, i64>,
    narrow: Registers,
    wide: Registers,
    scalars: Vec<u64>,
    instructions: Vec<Instruction>,
    perturbed: Vec<Perturbed>,
}

impl Compiler<'_> {
    fn node(&mut self, id: ExprId) {
        let node = &self.pipeline.exprs()[id];
        if let Some(value) = self.constant(id) {
            self.known.insert(id, value);
            self.steps.insert(id, 0);
            self.scalars.push(value.bits());
            self.slots.insert(id, Slot::Scalar(self.scalars.len() - 1));
            return;
        }
        let action = match node.kind {
            NodeKind::Var(d) => Action::Var(d as usize),
            NodeKind::RVar(r) => Action::RVar(r as usize),
            NodeKind::Load(input) => Action::Load(input),
            NodeKind::Table(table) => Action::Table(table),
            NodeKind::Call(func, value) => Action::Call(func, value as usize),
            NodeKind::Op(op) => match self.perturbed(id, op) {
                Some(perturbed) => {
                    self.perturbed.push(perturbed);
                    Action::Perturbed(self.perturbed.len() - 1)
                }
                None => Action::Op(op),
            },
            NodeKind::Param(_) | NodeKind::InputMin(..) | NodeKind::InputExtent(..) => {
                unreachable!("sizes and Params are constants")
            }
        };
        let args: SmallVec<[Slot; 3]> =
            operands(self.pipeline, id, self.constants).iter().map(|arg| self.slots[arg]).collect();
        let steps = node.args.iter().map(|arg| self.steps.get(arg).copied()).collect();
        let is_row_var = matches!(action, Action::Var(d) if Some(d) == self.row);
        let varies = is_row_var || args.iter().any(|arg| arg.varies());
        let to = match node.ty.is_wide() {
            _ if !varies => self.scalar(),
            true => Slot::Wide(self.wide.take()),
            false => Slot::Row(self.narrow.take()),
        };
        if let Some(step) = self.step(id, is_row_var, varies) {
            self.steps.insert(id, step);
        }
        let operand = node.args.last().map_or(node.ty, |arg| self.pipeline.exprs()[*arg].ty);
        self.slots.insert(id, to);
        self.instructions.push(Instruction { action, operand, result: node.ty, to, args, steps });
    }

    fn perturbed(&self, id: ExprId, op: Op) -> Option<Perturbed> {
        let noise = self.constants.noise?;
        let ty = self.pipeline.exprs()[id].ty;
        let perturbed = |deviation| Perturbed::new(op, ty, deviation, noise, id.index() as u64);
        let deviation = rounding::deviation(self.pipeline, id);
        if self.reordered.contains(&id) {
            return Some(perturbed(deviation.unwrap_or(Deviation::Ulps(0))).reordered());
        }
        deviation.map(perturbed)
    }

    fn constant(&self, id: ExprId) -> Option<Value> {
        let node = &self.pipeline.exprs()[id];
        match node.kind {
            NodeKind::Param(param) => Some(self.constants.params[param]),
            NodeKind::InputMin(input, d) => {
                Value::from_int(Type::I32, self.constants.inputs[input][d as usize].min)
            }
            NodeKind::InputExtent(input, d) => {
                Value::from_int(Type::I32, self.constants.inputs[input][d as usize].extent)
            }
            NodeKind::Op(op) if self.perturbed(id, op).is_none() => {
                let args: Option<SmallVec<[Value; 3]>> =
                    node.args.iter().map(|arg| self.known.get(arg).copied()).collect();
                Some(op.eval(&args?))
            }
            _ => None,
        }
    }

    fn step(&self, id: ExprId, is_row_var: bool, varies: bool) -> Option<i64> {
        let node = &self.pipeline.exprs()[id];
        let of = |i: usize| self.steps.get(&node.args[i]).copied();
        let constant = |i: usize| self.known.get(&node.args[i]).and_then(|value| value.as_int());
        match node.kind {
            _ if is_row_var => Some(1),
            _ if !varies => Some(0),
            _ if node.ty != Type::I32 => None,
            NodeKind::Op(Op::Binary(BinaryOp::Add)) => of(0)?.checked_add(of(1)?),
            NodeKind::Op(Op::Binary(BinaryOp::Sub)) => of(0)?.checked_sub(of(1)?),
            NodeKind::Op(Op::Binary(BinaryOp::Mul)) => match (constant(0), constant(1)) {
                (Some(factor), _) => of(1)?.checked_mul(factor),
                (_, Some(factor)) => of(0)?.checked_mul(factor),
                _ => None,
            },
            _ => None,
        }
    }

    fn scalar(&mut self) -> Slot {
        self.scalars.push(0);
        Slot::Scalar(self.scalars.len() - 1)
    }

    /// Frees the register of a value after its last use.
    fn release(&mut self, id: ExprId) {
        match self.slots.get(&id).copied() {
            Some(Slot::Row(register)) => self.narrow.release(register),
            Some(Slot::Wide(register)) => self.wide.release(register),
            _ => {}
        }
    }
}

/// Row registers of one width.
#[derive(Default)]
struct Registers {
    free: Vec<usize>,
    count: usize,
}

impl Registers {
    fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        })
    }

    fn release(&mut self, register: usize) {
        if !self.free.contains(&register) {
            self.free.push(register);
        }
    }
}
