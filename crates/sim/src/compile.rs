//! Compiles a kernel to [`Code`].

use ahash::AHashMap;
use smallvec::SmallVec;
use warploom_codegen::ir::{
    Array, ArrayId, AtomicOp, Kernel, Leaf, NodeId, NodeKind, Program, Space, Stmt, VarId,
};
use warploom_codegen::points::KernelPoints;
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Id, IdVec, Type, Value};
use warploom_target::Device;

use crate::code::{
    Apply, ArrayCode, Code, Cost, Home, Instruction, Moves, Offset, Shuffle, Slot, THREAD_ROW, Touch, Vector,
};
use crate::counters::Operations;
use crate::error::{AccessKind, Fault, SimError, Statement};
use crate::observe::nodes_of;
use crate::tables::{arrays, check_nodes};

/// Checks and compiles a kernel.
///
/// With `points`, the code reports its accesses.
pub fn compile(
    program: &Program,
    kernel: &Kernel,
    device: &Device,
    points: Option<&KernelPoints>,
) -> Result<Code, SimError> {
    let of = || format!("kernel `{}`", kernel.name);
    let whole = |fault| SimError::Malformed { of: of(), statement: None, fault };
    let known = check_nodes(program, kernel).map_err(whole)?;
    let arrays = arrays(program, kernel, device).map_err(whole)?;
    let mut compiler = Compiler { points, ..Compiler::new(kernel, known, arrays) };
    match compiler.list(&kernel.body) {
        Ok(()) => Ok(compiler.code),
        Err(fault) => {
            let statement = Some(Box::new(compiler.statement()));
            Err(SimError::Malformed { of: of(), statement, fault })
        }
    }
}

/// A value computed for the current statement.
pub(crate) struct Temporary {
    pub(crate) slot: Slot,
    /// The number of operations that still need the value.
    uses: usize,
    /// Whether its row can be freed.
    owned: bool,
}

/// A variable binding, which is undone at the end of its scope.
struct Bound {
    var: VarId,
    before: Option<(Slot, Type)>,
    /// The row to free then.
    row: Option<Slot>,
}

pub(crate) struct Compiler<'a> {
    pub(crate) kernel: &'a Kernel,
    /// The points that accesses touch, if the code is to report them.
    pub(crate) points: Option<&'a KernelPoints>,
    known: IdVec<NodeId, Option<Value>>,
    pub(crate) code: Code,
    /// The registers and types of the bound variables.
    pub(crate) vars: IdVec<VarId, Option<(Slot, Type)>>,
    constants: AHashMap<u64, usize>,
    /// Rows of either width that are free.
    free_rows: Vec<Slot>,
    pub(crate) temporaries: AHashMap<NodeId, Temporary>,
    open_masks: usize,
    path: Vec<usize>,
    around: Vec<String>,
    what: String,
}

impl<'a> Compiler<'a> {
    fn new(kernel: &'a Kernel, known: IdVec<NodeId, Option<Value>>, arrays: Vec<ArrayCode>) -> Compiler<'a> {
        let code = Code {
            name: kernel.name.clone(),
            grid: kernel.grid,
            threads: kernel.threads as usize,
            instructions: Vec::new(),
            scalars: vec![0; 3],
            block: [0, 1, 2],
            params: Vec::new(),
            iterations: Vec::new(),
            rows: THREAD_ROW + 1,
            wide_rows: 0,
            masks: 1,
            arrays,
            costs: Vec::new(),
            sites: Vec::new(),
        };
        Compiler {
            kernel,
            points: None,
            known,
            code,
            vars: kernel.vars.values().map(|_| None).collect(),
            constants: AHashMap::new(),
            free_rows: Vec::new(),
            temporaries: AHashMap::new(),
            open_masks: 1,
            path: Vec::new(),
            around: Vec::new(),
            what: String::new(),
        }
    }

    fn statement(&self) -> Statement {
        Statement { path: self.path.clone(), around: self.around.clone(), what: self.what.clone() }
    }

    fn list(&mut self, body: &[Stmt]) -> Result<(), Fault> {
        let mut bound = Vec::new();
        for (position, stmt) in body.iter().enumerate() {
            self.path.push(position);
            self.what = self.describe(stmt);
            match stmt {
                Stmt::Let(var, value) => bound.push(self.bind(*var, *value)?),
                Stmt::Shuffle { var, value, lane } => bound.push(self.shuffle(*var, *value, *lane)?),
                Stmt::Store { array, index, value } => self.store(*array, *index, *value)?,
                Stmt::Copy { array, index, value } => self.copy(*array, *index, *value)?,
                Stmt::Vector { to, at, from, index, width } => {
                    self.vector((*to, *at), (*from, *index), *width)?;
                }
                Stmt::Commit => {
                    let site = self.site();
                    self.code.instructions.push(Instruction::Commit { site });
                }
                Stmt::Wait(groups) => {
                    let site = self.site();
                    self.code.instructions.push(Instruction::Wait { groups: *groups, site });
                }
                Stmt::Atomic { op, array, index, value } => self.atomic(*op, *array, *index, *value)?,
                Stmt::For { var, count, body, .. } => self.repeat(*var, *count, body)?,
                Stmt::If { condition, body, otherwise } => self.guard(*condition, body, otherwise)?,
                Stmt::Barrier => {
                    let site = self.site();
                    self.code.instructions.push(Instruction::Barrier { site });
                }
            }
            self.path.pop();
        }
        for Bound { var, before, row } in bound.into_iter().rev() {
            self.vars[var] = before;
            self.free_rows.extend(row);
        }
        Ok(())
    }

    fn describe(&self, stmt: &Stmt) -> String {
        let var = |var: &VarId| self.kernel.vars.get(*var).cloned().unwrap_or_default();
        let array = |array: &ArrayId| self.kernel.arrays.get(*array).map_or("?", |array| array.name.as_str());
        match stmt {
            Stmt::Let(name, _) => format!("let {}", var(name)),
            Stmt::Shuffle { var: name, .. } => format!("shuffle {}", var(name)),
            Stmt::Store { array: name, .. } => format!("store {}", array(name)),
            Stmt::Copy { array: name, .. } => format!("copy {}", array(name)),
            Stmt::Vector { to, .. } => format!("vector {}", array(to)),
            Stmt::Commit => "commit".to_string(),
            Stmt::Wait(groups) => format!("wait {groups}"),
            Stmt::Atomic { array: name, .. } => format!("atomic {}", array(name)),
            Stmt::For { var: name, .. } => format!("for {}", var(name)),
            Stmt::If { .. } => "if".to_string(),
            Stmt::Barrier => "barrier".to_string(),
        }
    }

    fn bind(&mut self, var: VarId, value: NodeId) -> Result<Bound, Fault> {
        self.evaluate(&[value], &[], 0)?;
        self.expect_value(value)?;
        let Temporary { slot, owned, .. } =
            self.temporaries.remove(&value).ok_or(Fault::Order { node: value.index() })?;
        self.temporaries.clear();
        let row = (slot.varies() && owned).then_some(slot);
        let before = self.set_var(var, Some((slot, self.kernel.exprs[value].ty)))?;
        Ok(Bound { var, before, row })
    }

    fn shuffle(&mut self, var: VarId, value: NodeId, lane: NodeId) -> Result<Bound, Fault> {
        let slots = self.evaluate(&[value, lane], &[], 1)?;
        self.expect("lane", lane, Type::I32)?;
        self.expect_value(value)?;
        self.expect_value(lane)?;
        let ty = self.kernel.exprs[value].ty;
        let to = self.row(ty);
        self.give_back(&[value, lane]);
        let shuffle = Shuffle { value: slots[0], lane: slots[1], to, site: self.site() };
        self.code.instructions.push(Instruction::Shuffle(shuffle));
        let before = self.set_var(var, Some((to, ty)))?;
        Ok(Bound { var, before, row: Some(to) })
    }

    fn set_var(&mut self, var: VarId, to: Option<(Slot, Type)>) -> Result<Option<(Slot, Type)>, Fault> {
        if self.vars.get(var).is_none() {
            return Err(Fault::Missing { what: "variable", number: var.index() });
        }
        Ok(std::mem::replace(&mut self.vars[var], to))
    }

    fn store(&mut self, array: ArrayId, index: NodeId, value: NodeId) -> Result<(), Fault> {
        self.write(array, index, value, AccessKind::Write, |to, value| Instruction::Store { to, value })
    }

    fn copy(&mut self, array: ArrayId, index: NodeId, value: NodeId) -> Result<(), Fault> {
        let Array { name, ty, space, .. } = &self.kernel.arrays[array];
        let from_buffer = match self.kernel.exprs.nodes().get(value).map(|node| node.kind) {
            Some(NodeKind::Load(from)) => matches!(self.kernel.arrays[from].space, Space::Global(_)),
            _ => false,
        };
        if *space != Space::Shared || ty.bytes() < 4 || !from_buffer {
            return Err(Fault::Copy { array: name.clone() });
        }
        self.write(array, index, value, AccessKind::Write, |to, value| Instruction::Copy { to, value })
    }

    fn vector(
        &mut self,
        (to, at): (ArrayId, NodeId),
        (from, index): (ArrayId, NodeId),
        width: u32,
    ) -> Result<(), Fault> {
        let arrays = &self.kernel.arrays;
        let missing = |array: ArrayId| Fault::Missing { what: "array", number: array.index() };
        let read = arrays.get(from).ok_or_else(|| missing(from))?;
        let written = arrays.get(to).ok_or_else(|| missing(to))?;
        let moves = match (read.space, written.space) {
            (Space::Global(_), Space::Thread) => Moves::Loads,
            (Space::Thread, Space::Global(_)) => Moves::Stores,
            (Space::Global(_), Space::Shared) => Moves::Copies,
            _ => return Err(Fault::Vector { array: written.name.clone() }),
        };
        if read.ty != written.ty || width == 0 {
            return Err(Fault::Vector { array: written.name.clone() });
        }
        let observed = self.observed_vector((to, at), (from, index));
        let coordinates = nodes_of(observed.iter().flat_map(|(_, places)| places));
        let slots = self.evaluate(&[at, index], &coordinates, width.into())?;
        self.expect("index", at, Type::I32)?;
        self.expect("index", index, Type::I32)?;
        let site = self.site();
        let touch = |array: ArrayId, index: Slot| Touch { array: array.index(), index, site };
        let vector = Vector { to: touch(to, slots[0]), from: touch(from, slots[1]), width, moves };
        self.code.instructions.push(Instruction::Vector(vector));
        self.watch_vector(&observed, slots[0]);
        self.give_back(&coordinates);
        self.give_back(&[at, index]);
        Ok(())
    }

    fn atomic(&mut self, op: AtomicOp, array: ArrayId, index: NodeId, value: NodeId) -> Result<(), Fault> {
        let Array { name, ty, space, .. } = &self.kernel.arrays[array];
        if *space == Space::Thread || ty.bytes() != 4 {
            return Err(Fault::Atomic { array: name.clone() });
        }
        let atomic = |to, value| Instruction::Atomic { op, to, value };
        self.write(array, index, value, AccessKind::Atomic, atomic)
    }

    /// Evaluates the index and the value of a write, and emits the write.
    fn write(
        &mut self,
        array: ArrayId,
        index: NodeId,
        value: NodeId,
        kind: AccessKind,
        instruction: impl Fn(Touch, Slot) -> Instruction,
    ) -> Result<(), Fault> {
        let place = self.place(array, index, Some(value));
        let coordinates = nodes_of(&place);
        let slots = self.evaluate(&[index, value], &coordinates, 1)?;
        self.expect("index", index, Type::I32)?;
        self.expect("value", value, self.kernel.arrays[array].ty)?;
        self.expect_value(value)?;
        let to = Touch { array: array.index(), index: slots[0], site: self.site() };
        self.code.instructions.push(instruction(to, slots[1]));
        if let Some(place) = &place {
            self.watch(array, kind, Some((slots[0], 0)), place);
        }
        self.give_back(&coordinates);
        self.give_back(&[index, value]);
        Ok(())
    }

    fn repeat(&mut self, var: VarId, count: u32, body: &[Stmt]) -> Result<(), Fault> {
        let counter = self.scalar(0);
        let old = self.set_var(var, Some((Slot::Scalar(counter), Type::I32)))?;
        self.around.push(self.what.clone());
        let start = self.code.instructions.len();
        self.code.instructions.push(Instruction::Loop { counter, count, end: 0 });
        self.list(body)?;
        self.code.instructions.push(Instruction::Next { counter, count, body: start + 1 });
        let end = self.code.instructions.len();
        self.code.instructions[start] = Instruction::Loop { counter, count, end };
        self.around.pop();
        self.vars[var] = old;
        Ok(())
    }

    fn guard(&mut self, condition: NodeId, body: &[Stmt], otherwise: &[Stmt]) -> Result<(), Fault> {
        let slot = self.evaluate(&[condition], &[], 0)?[0];
        self.expect("condition", condition, Type::Bool)?;
        self.give_back(&[condition]);
        self.around.push(self.what.clone());
        let start = self.code.instructions.len();
        // The row of the condition is read before the body runs, so the body can reuse it.
        match slot {
            Slot::Scalar(condition) => {
                let end = self.skippable(body, |end| Instruction::Unless { condition, end })?;
                if !otherwise.is_empty() {
                    self.code.instructions[start] = Instruction::Unless { condition, end: end + 1 };
                    self.otherwise(otherwise, |end| Instruction::Jump { to: end })?;
                }
            }
            Slot::Row(condition) => {
                self.open_masks += 1;
                self.code.masks = self.code.masks.max(self.open_masks);
                self.skippable(body, |end| Instruction::Narrow { condition, end })?;
                if !otherwise.is_empty() {
                    self.otherwise(otherwise, |end| Instruction::Otherwise { end })?;
                }
                self.code.instructions.push(Instruction::Widen);
                self.open_masks -= 1;
            }
            Slot::Wide(_) => unreachable!("conditions are Boolean"),
        }
        self.around.pop();
        Ok(())
    }

    /// Compiles the statements of an `else` branch, with `else` in their location.
    fn otherwise(&mut self, body: &[Stmt], skip: impl Fn(usize) -> Instruction) -> Result<(), Fault> {
        self.around.pop();
        self.around.push("else".to_string());
        self.skippable(body, skip)?;
        Ok(())
    }

    /// Compiles statements after an instruction that can skip them. Returns the position of their end.
    fn skippable(&mut self, body: &[Stmt], skip: impl Fn(usize) -> Instruction) -> Result<usize, Fault> {
        let start = self.code.instructions.len();
        self.code.instructions.push(skip(start));
        self.list(body)?;
        let end = self.code.instructions.len();
        self.code.instructions[start] = skip(end);
        Ok(end)
    }

    fn expect(&self, role: &'static str, node: NodeId, expected: Type) -> Result<(), Fault> {
        let found = self.kernel.exprs[node].ty;
        if found == expected { Ok(()) } else { Err(Fault::Operand { role, expected, found }) }
    }

    fn expect_value(&self, node: NodeId) -> Result<(), Fault> {
        if self.kernel.exprs.is_offset(node) { Err(Fault::Offset { node: node.index() }) } else { Ok(()) }
    }

    fn site(&mut self) -> usize {
        let statement = self.statement();
        self.code.sites.push(statement);
        self.code.sites.len() - 1
    }

    /// Emits the instructions that compute `roots`; `writes` is the number of writes of the statement. Also computes
    /// the nodes of `besides`, which an observer needs and which do not count.
    fn evaluate(
        &mut self,
        roots: &[NodeId],
        besides: &[NodeId],
        writes: u64,
    ) -> Result<SmallVec<[Slot; 2]>, Fault> {
        let nodes = self.kernel.exprs.nodes();
        if let Some(missing) = roots.iter().find(|root| nodes.get(**root).is_none()) {
            return Err(Fault::Missing { what: "node", number: missing.index() });
        }
        let loads = self.observed_loads(roots);
        let of_loads = nodes_of(loads.iter().map(|(_, place)| place));
        let mut uses: AHashMap<NodeId, usize> = AHashMap::new();
        self.count_uses(roots, &mut uses);
        let counted = (!loads.is_empty() || !besides.is_empty()).then(|| uses.clone());
        self.count_uses(besides, &mut uses);
        self.count_uses(&of_loads, &mut uses);
        let mut order: Vec<NodeId> = uses.keys().copied().collect();
        order.sort_unstable();
        let at = self.code.instructions.len();
        self.code.instructions.push(Instruction::Count(self.code.costs.len()));
        let mut cost = Cost { lane_operations: writes, ..Cost::default() };
        let mut uncounted = Cost::default();
        for id in order {
            let counts = counted.as_ref().is_none_or(|counted| counted.contains_key(&id));
            let (slot, owned) = self.node(id, if counts { &mut cost } else { &mut uncounted })?;
            self.temporaries.insert(id, Temporary { slot, uses: uses[&id], owned });
            if self.known[id].is_none() {
                self.give_back(&nodes[id].args);
            }
        }
        if cost.lane_operations > 0 {
            self.code.costs.push(cost);
        } else {
            self.code.instructions.remove(at);
        }
        self.watch_loads(&loads);
        self.give_back(&of_loads);
        Ok(roots.iter().map(|root| self.temporaries[root].slot).collect())
    }

    /// Counts how often nodes and their operands are used.
    fn count_uses(&self, roots: &[NodeId], uses: &mut AHashMap<NodeId, usize>) {
        let mut open: Vec<NodeId> = roots.to_vec();
        while let Some(id) = open.pop() {
            let count = uses.entry(id).or_insert(0);
            *count += 1;
            if *count == 1 && self.known[id].is_none() {
                open.extend(&self.kernel.exprs[id].args);
            }
        }
    }

    /// Decrements the uses of each node and frees the rows that are no longer needed.
    fn give_back(&mut self, nodes: &[NodeId]) {
        for id in nodes {
            let Some(temporary) = self.temporaries.get_mut(id) else { continue };
            temporary.uses -= 1;
            if temporary.uses == 0 {
                if temporary.slot.varies() && temporary.owned {
                    self.free_rows.push(temporary.slot);
                }
                self.temporaries.remove(id);
            }
        }
    }

    /// The register of a node's value, and whether it belongs to this statement only.
    fn node(&mut self, id: NodeId, cost: &mut Cost) -> Result<(Slot, bool), Fault> {
        if let Some(value) = self.known[id] {
            return Ok((self.constant(value.bits()), false));
        }
        let node = &self.kernel.exprs[id];
        match node.kind {
            NodeKind::Leaf(leaf) => Ok((self.leaf(leaf, node.ty)?, false)),
            NodeKind::Op(op) => {
                let args: SmallVec<[Slot; 3]> =
                    node.args.iter().map(|arg| self.temporaries[arg].slot).collect();
                let operand = node.args.last().map_or(node.ty, |arg| self.kernel.exprs[*arg].ty);
                let (op, args) = self.cheaper(op, &node.args, args);
                cost.operations += Operations::of(op, operand, node.ty);
                cost.lane_operations += 1;
                let to = self.result(args.iter().any(|arg| arg.varies()), node.ty);
                let apply = Apply { op, operand, result: node.ty, to, args };
                self.code.instructions.push(Instruction::Apply(apply));
                Ok((to, true))
            }
            NodeKind::Offset(strides) => {
                let strides = self.kernel.exprs.strides()[strides].clone();
                let terms: SmallVec<[Slot; 3]> =
                    node.args.iter().map(|arg| self.temporaries[arg].slot).collect();
                let sum = Operations { int_add: 1, int_mul: 1, ..Operations::default() };
                cost.operations += sum.times(terms.len() as u64);
                cost.lane_operations += 1;
                let to = self.result(terms.iter().any(|term| term.varies()), Type::I32);
                self.code.instructions.push(Instruction::Offset(Offset { strides, to, terms }));
                Ok((to, true))
            }
            NodeKind::Load(array) => {
                let index = self.temporaries[&node.args[0]].slot;
                cost.lane_operations += 1;
                let per_thread = matches!(self.code.arrays[array.index()].home, Home::Thread(_));
                let to = self.result(per_thread || index.varies(), node.ty);
                let from = Touch { array: array.index(), index, site: self.site() };
                self.code.instructions.push(Instruction::Load { from, to });
                Ok((to, true))
            }
        }
    }

    /// Replaces integer division and remainder by powers of two with shifts and masks. Division is
    /// Euclidean, so this is also valid for negative numbers.
    fn cheaper(&mut self, op: Op, nodes: &[NodeId], args: SmallVec<[Slot; 3]>) -> (Op, SmallVec<[Slot; 3]>) {
        let (Op::Binary(binary @ (BinaryOp::Div | BinaryOp::Mod)), [_, divisor]) = (op, nodes) else {
            return (op, args);
        };
        let power = self.known[*divisor].and_then(Value::as_int);
        let Some(power) = power.filter(|power| *power > 0 && power.count_ones() == 1) else {
            return (op, args);
        };
        let (op, operand) = match binary {
            BinaryOp::Div => (BinaryOp::Shr, power.trailing_zeros().into()),
            _ => (BinaryOp::And, power as u64 - 1),
        };
        let operand = self.constant(operand);
        (Op::Binary(op), [args[0], operand].into_iter().collect())
    }

    fn leaf(&mut self, leaf: Leaf, ty: Type) -> Result<Slot, Fault> {
        match leaf {
            Leaf::Thread => Ok(Slot::Row(THREAD_ROW)),
            Leaf::Block(dimension) => Ok(Slot::Scalar(self.code.block[usize::from(dimension)])),
            Leaf::Param(position) => {
                Ok(given(&mut self.code.params, &mut self.code.scalars, position as usize))
            }
            Leaf::Iteration(depth) => {
                Ok(given(&mut self.code.iterations, &mut self.code.scalars, usize::from(depth)))
            }
            Leaf::Size(position) => Err(Fault::Missing { what: "size", number: position as usize }),
            Leaf::Var(var) => match self.vars[var] {
                Some((slot, bound)) if bound == ty => Ok(slot),
                Some((_, bound)) => Err(Fault::Operand { role: "variable", expected: bound, found: ty }),
                None => Err(Fault::Unbound { var: self.kernel.vars[var].clone() }),
            },
        }
    }

    fn result(&mut self, varies: bool, ty: Type) -> Slot {
        if varies { self.row(ty) } else { Slot::Scalar(self.scalar(0)) }
    }

    fn row(&mut self, ty: Type) -> Slot {
        let fits = |slot: &Slot| matches!(slot, Slot::Wide(_)) == ty.is_wide();
        if let Some(position) = self.free_rows.iter().rposition(fits) {
            return self.free_rows.remove(position);
        }
        let (rows, slot): (&mut usize, fn(usize) -> Slot) = match ty.is_wide() {
            true => (&mut self.code.wide_rows, Slot::Wide),
            false => (&mut self.code.rows, Slot::Row),
        };
        *rows += 1;
        slot(*rows - 1)
    }

    fn scalar(&mut self, bits: u64) -> usize {
        self.code.scalars.push(bits);
        self.code.scalars.len() - 1
    }

    fn constant(&mut self, bits: u64) -> Slot {
        if let Some(scalar) = self.constants.get(&bits) {
            return Slot::Scalar(*scalar);
        }
        let scalar = self.scalar(bits);
        self.constants.insert(bits, scalar);
        Slot::Scalar(scalar)
    }
}

/// The scalar of a value that is set at each launch.
fn given(all: &mut Vec<(usize, usize)>, scalars: &mut Vec<u64>, number: usize) -> Slot {
    if let Some((_, scalar)) = all.iter().find(|(given, _)| *given == number) {
        return Slot::Scalar(*scalar);
    }
    scalars.push(0);
    all.push((number, scalars.len() - 1));
    Slot::Scalar(scalars.len() - 1)
}
