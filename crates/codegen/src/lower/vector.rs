//! Vector loads and stores: unrolled loops access buffers several elements at a time.
//!
//! If the iterations of a loop access adjacent elements of a buffer, aligned to 2, 4, 8 or 16 elements, the loads
//! become vector loads to registers before the loop, and the stores become vector stores from registers after it. This
//! requires that all iterations run, and that no other access in the loop touches the stored elements. Asynchronous
//! copies become vectors if both sides are adjacent and aligned.

mod copies;

use std::mem::take;

use ahash::{AHashMap, AHashSet};
use warploom_lang::Type;
use warploom_lang::affine::gcd;

use crate::ir::{Array, ArrayId, KernelNode, Leaf, NodeId, NodeKind, Role, Space, Stmt, VECTOR_BYTES, VarId};
use crate::lower::nesting::Nesting;
use crate::lower::state::{KernelLowering, VectorKey};
use crate::points::Key;

/// An unrolled loop without any control flow inside.
struct Unrolled {
    var: VarId,
    /// The value of its variable.
    step: NodeId,
    count: u32,
    /// Variables with a different value in each iteration.
    varying: AHashSet<VarId>,
    /// The memory that it writes; once for each statement.
    written: Vec<Space>,
    /// Its loads, each once.
    loads: Vec<NodeId>,
}

/// Accesses of a loop that become vectors.
struct Vectors {
    /// The buffer.
    array: ArrayId,
    /// The index in the first iteration.
    first: NodeId,
    /// Elements of a vector.
    width: u32,
    /// The per-thread array that holds the elements of all iterations.
    registers: ArrayId,
}

impl KernelLowering<'_> {
    /// Turns the accesses of unrolled loops into vectors where possible.
    pub fn vectors(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let mut made = Vec::with_capacity(stmts.len());
        for mut stmt in stmts {
            if let Stmt::For { var, count, limit: None, unrolled: true, body } = &mut stmt {
                if body.iter().all(is_plain) {
                    made.extend(self.vector_loop(*var, *count, take(body)));
                    continue;
                }
                if let Some(inside) = self.guarded(*var, body) {
                    *inside = self.vector_loop(*var, *count, take(inside));
                    made.append(body);
                    continue;
                }
            }
            for list in stmt.lists_mut().into_iter().flatten() {
                *list = self.vectors(take(list));
            }
            made.push(stmt);
        }
        made
    }

    /// The body of the guard around a whole loop body, if the guard holds for all iterations or for none.
    fn guarded<'b>(&self, var: VarId, body: &'b mut [Stmt]) -> Option<&'b mut Vec<Stmt>> {
        let [Stmt::If { condition, body, otherwise }] = body else { return None };
        let exprs = &self.builder.exprs;
        let varies = |id: NodeId| match exprs[id].kind {
            NodeKind::Leaf(Leaf::Var(other)) => other == var,
            NodeKind::Load(_) => true,
            _ => false,
        };
        let mut nodes = exprs.reachable([*condition]).into_iter();
        (otherwise.is_empty() && body.iter().all(is_plain) && !nodes.any(varies)).then_some(body)
    }

    fn vector_loop(&mut self, var: VarId, count: u32, body: Vec<Stmt>) -> Vec<Stmt> {
        let around = self.unrolled(var, count, &body);
        if body.iter().any(|stmt| matches!(stmt, Stmt::Copy { .. })) {
            return self.copy_loop(&around, body);
        }
        let (mut before, mut after, mut in_registers) = (Vec::new(), Vec::new(), AHashMap::new());
        let mut used: AHashMap<ArrayId, usize> = AHashMap::new();
        for &load in &around.loads {
            if let Some(vectors) = self.loaded_vectors(&around, load, &mut used) {
                let value = self.builder.load(vectors.registers, self.builder.ty(load), around.step);
                in_registers.insert(load, value);
                let moved = |at: NodeId, index: NodeId| Stmt::Vector {
                    to: vectors.registers,
                    at,
                    from: vectors.array,
                    index,
                    width: vectors.width,
                };
                before.extend(self.each_vector(&around, &vectors, moved));
            }
        }
        let mut inner = Vec::with_capacity(body.len());
        for stmt in &body {
            let mut stmt = self.replaced(stmt, &mut in_registers);
            if let Stmt::Store { array, index, value } = stmt
                && let Some(vectors) = self.stored_vectors(&around, array, index, &mut used)
            {
                let to = Key { array: vectors.registers, index: around.step, value: Some(value) };
                self.touch_alike(Key { array, index, value: Some(value) }, to);
                stmt = Stmt::Store { array: vectors.registers, index: around.step, value };
                let moved = |from: NodeId, at: NodeId| Stmt::Vector {
                    to: vectors.array,
                    at,
                    from: vectors.registers,
                    index: from,
                    width: vectors.width,
                };
                after.extend(self.each_vector(&around, &vectors, moved));
            }
            inner.push(stmt);
        }
        before.push(Stmt::For { var, count, limit: None, unrolled: true, body: inner });
        before.extend(after);
        before
    }

    fn unrolled(&mut self, var: VarId, count: u32, body: &[Stmt]) -> Unrolled {
        let bound = body.iter().filter_map(|stmt| stmt.effects().binds).map(|(var, _)| var);
        let varying = bound.chain([var]).collect();
        let space = |array: ArrayId| self.arrays[array].space;
        let written = body.iter().filter_map(Stmt::written).map(space).collect();
        let exprs = &self.builder.exprs;
        let is_load = |id: &NodeId| matches!(exprs[*id].kind, NodeKind::Load(_));
        let loads =
            exprs.reachable(body.iter().flat_map(Stmt::operands)).into_iter().filter(is_load).collect();
        let step = self.builder.leaf(Leaf::Var(var), Type::I32, None);
        Unrolled { var, step, count, varying, written, loads }
    }

    /// The vectors of a load, if nothing in the loop writes its elements.
    fn loaded_vectors(
        &mut self,
        around: &Unrolled,
        load: NodeId,
        used: &mut AHashMap<ArrayId, usize>,
    ) -> Option<Vectors> {
        let KernelNode { kind: NodeKind::Load(array), ref args, .. } = self.builder.exprs[load] else {
            return None;
        };
        let index = args[0];
        (!around.written.contains(&self.arrays[array].space)).then_some(())?;
        self.adjacent(around, array, index, used)
    }

    /// The vectors of a store, if nothing else in the loop accesses its elements.
    fn stored_vectors(
        &mut self,
        around: &Unrolled,
        array: ArrayId,
        index: NodeId,
        used: &mut AHashMap<ArrayId, usize>,
    ) -> Option<Vectors> {
        let space = self.arrays[array].space;
        let reads = |load: &NodeId| match self.builder.exprs[*load].kind {
            NodeKind::Load(from) => self.arrays[from].space == space,
            _ => false,
        };
        let writes = around.written.iter().filter(|written| **written == space).count();
        (writes == 1 && !around.loads.iter().any(reads)).then_some(())?;
        self.adjacent(around, array, index, used)
    }

    /// The vectors of an access whose iterations are adjacent and aligned to some width.
    fn adjacent(
        &mut self,
        around: &Unrolled,
        array: ArrayId,
        index: NodeId,
        used: &mut AHashMap<ArrayId, usize>,
    ) -> Option<Vectors> {
        let Array { ref name, ty, space: Space::Global(_), .. } = self.arrays[array] else {
            return None;
        };
        let width = self.width(around, array, index)?;
        let name = format!("{name}.vector");
        let number = used.entry(array).or_default();
        let key = VectorKey { array, elements: around.count, number: *number };
        *number += 1;
        let declare = || self.arrays.push(Array::new(name, ty, Space::Thread, around.count as usize));
        let registers = *self.vectors.entry(key).or_insert_with(declare);
        let first = self.builder.sub(index, around.step);
        Some(Vectors { array, first, width, registers })
    }

    /// The number of elements in a vector of an access with adjacent, aligned iterations.
    fn width(&self, around: &Unrolled, array: ArrayId, index: NodeId) -> Option<u32> {
        let Array { ty, space, .. } = self.arrays[array];
        if let Space::Global(buffer) = space {
            // The caller may choose the alignment of such a buffer and of its rows.
            let is_free = self.context.layouts.get(buffer).is_some();
            let is_table = matches!(self.context.buffers[buffer].role, Role::Table(_));
            (!is_free && !is_table).then_some(())?;
        }
        if self.builder.exprs.is_offset(index) {
            return None;
        }
        let linear = self.builder.linear(index);
        let (own, others): (Vec<_>, Vec<_>) = linear.terms.iter().partition(|(atom, _)| *atom == around.step);
        let is_fixed = others.iter().all(|(atom, _)| self.is_fixed(around, *atom));
        let [(_, 1)] = own[..] else { return None };
        let numbers = others.iter().map(|(_, factor)| *factor).chain([linear.constant, around.count.into()]);
        let widest = (VECTOR_BYTES / ty.bytes()) as i64;
        // The widest vector is a power of two, and so is every divisor of it.
        let width = numbers.fold(widest, gcd);
        u32::try_from(width).ok().filter(|width| is_fixed && *width > 1)
    }

    /// Whether a value is loop-invariant and known before the loop.
    fn is_fixed(&self, around: &Unrolled, value: NodeId) -> bool {
        let exprs = &self.builder.exprs;
        exprs.reachable([value]).into_iter().all(|id| match exprs[id].kind {
            NodeKind::Leaf(Leaf::Var(var)) => !around.varying.contains(&var),
            NodeKind::Load(array) => !around.written.contains(&self.arrays[array].space),
            _ => true,
        })
    }

    /// One statement per vector of a loop, from its first element in registers and in the buffer.
    fn each_vector(
        &mut self,
        around: &Unrolled,
        vectors: &Vectors,
        moved: impl Fn(NodeId, NodeId) -> Stmt,
    ) -> Vec<Stmt> {
        let mut nesting = Nesting::default();
        let start = self.starts(&mut nesting, around, vectors.width);
        let place = self.builder.add(vectors.first, start);
        nesting.around(&mut self.builder, vec![moved(start, place)])
    }

    /// The first iteration of each vector of a loop.
    fn starts(&mut self, nesting: &mut Nesting, around: &Unrolled, width: u32) -> NodeId {
        let count = i64::from(around.count / width);
        let name = self.builder.vars[around.var].clone();
        let number = nesting.repeat(&mut self.builder, name, count, true);
        self.builder.scale(number, width.into())
    }
}

/// Whether a statement may be in a loop that becomes vectors.
fn is_plain(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Let(..) | Stmt::Store { .. } | Stmt::Copy { .. } | Stmt::Atomic { .. })
}
