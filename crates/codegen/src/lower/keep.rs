//! Hoists loop-invariant loads from shared memory into registers.
//!
//! Loop-invariant loads from shared memory would be repeated in every iteration, because NVRTC does not hoist loads out
//! of loops with shuffles.

use ahash::AHashMap;
use warploom_lang::Type;
use warploom_plan::{MOST_KEPT, NestId, Sequence};

use crate::ir::{Array, ArrayId, KernelNode, Leaf, NodeId, NodeKind, Space, Stmt, VarId};
use crate::lower::nesting::Nesting;
use crate::lower::state::{KernelLowering, Read, VectorKey, read_of};
use crate::points::{AccessPoint, Key};

/// The loads that are hoisted out of the loops that are being lowered.
#[derive(Clone, Default)]
pub(crate) struct Keeping {
    /// The shared arrays that no statement in the loops writes.
    arrays: Vec<ArrayId>,
    /// The number of hoisted loads.
    loads: usize,
    elements: u32,
    /// The statements before the loops.
    before: Vec<Stmt>,
}

impl KernelLowering<'_> {
    /// Begins hoisting at the outermost loop of a block, if a barrier stands before it. Returns whether it began.
    pub fn begin_keeping(&mut self, body: Sequence<'_, NestId>, waits: bool) -> bool {
        if self.keeping.is_some() || !waits {
            return false;
        }
        let inside: Vec<Read> = self.context.plan.items_in(body).into_iter().map(read_of).collect();
        let outside = self.local.iter().filter(|((read, _), stored)| {
            let is_shared = self.arrays[stored.array].space == Space::Shared && stored.slice.is_none();
            is_shared && !inside.contains(read)
        });
        let arrays = outside.map(|(_, stored)| stored.array).collect();
        self.keeping = Some(Keeping { arrays, ..Keeping::default() });
        true
    }

    /// Ends hoisting, and returns the statements before the loop.
    pub fn end_keeping(&mut self, began: bool) -> Vec<Stmt> {
        if began { self.keeping.take().map_or_else(Vec::new, |keeping| keeping.before) } else { Vec::new() }
    }

    /// Hoists the loop-invariant loads of a stage in registers out of the loops of the block. All loops of the stage
    /// must be unrolled.
    pub fn keep_loads(&mut self, nesting: &Nesting, stmts: Vec<Stmt>) -> Vec<Stmt> {
        let Some(loops) = nesting.unrolled_loops().filter(|_| self.keeping.is_some()) else { return stmts };
        let exprs = &self.builder.exprs;
        let loads = exprs.reachable(stmts.iter().flat_map(Stmt::operands)).into_iter();
        let loads: Vec<NodeId> = loads.filter(|id| matches!(exprs[*id].kind, NodeKind::Load(_))).collect();
        let mut kept = AHashMap::new();
        for load in loads {
            if let Some(value) = self.kept_load(&loops, load) {
                kept.insert(load, value);
            }
        }
        if kept.is_empty() {
            return stmts;
        }
        self.all_replaced(&stmts, &mut kept)
    }

    /// Hoists a load out of the loops of the block. Returns the load from registers that replaces it.
    fn kept_load(&mut self, loops: &[(VarId, u32)], load: NodeId) -> Option<NodeId> {
        let KernelNode { kind: NodeKind::Load(array), ty, ref args } = self.builder.exprs[load] else {
            return None;
        };
        let index = args[0];
        let keeping = self.keeping.as_ref()?;
        let used: Vec<(VarId, u32)> =
            loops.iter().copied().filter(|(var, _)| self.uses(index, *var)).collect();
        let elements = used.iter().map(|(_, count)| count).product::<u32>();
        let fits = keeping.elements.checked_add(elements).is_some_and(|all| all <= MOST_KEPT);
        if !keeping.arrays.contains(&array) || !fits || self.builder.exprs.is_offset(index) {
            return None;
        }
        let (mut around, mut moved) = (Nesting::default(), self.digits.clone());
        let (mut here, mut there, mut stride) = (self.builder.int(0), self.builder.int(0), 1);
        for (var, count) in used {
            let name = self.builder.vars[var].clone();
            let new = around.repeat(&mut self.builder, name, count.into(), true);
            let old = self.builder.leaf(Leaf::Var(var), Type::I32, None);
            for (sum, step) in [(&mut here, old), (&mut there, new)] {
                let along = self.builder.scale(step, stride);
                *sum = self.builder.add(*sum, along);
            }
            moved.insert(old, new);
            stride *= i64::from(count);
        }
        let from = self.moved(index, &moved)?;
        let key = VectorKey { array, elements, number: self.keeping.as_ref()?.loads };
        let name = format!("{}.kept", self.arrays[array].name);
        let declare = || self.arrays.push(Array::new(name, ty, Space::Thread, elements as usize));
        let registers = *self.vectors.entry(key).or_insert_with(declare);
        let loaded = self.builder.load(array, ty, from);
        let value = self.builder.load(registers, ty, here);
        let old = Key { array, index, value: None };
        self.touch_moved(old, Key { array, index: from, value: None }, &moved);
        self.touch_moved(old, Key { array: registers, index: there, value: Some(loaded) }, &moved);
        self.touch_alike(old, Key { array: registers, index: here, value: None });
        let store = Stmt::Store { array: registers, index: there, value: loaded };
        let stmts = around.around(&mut self.builder, vec![store]);
        if let Some(keeping) = &mut self.keeping {
            keeping.loads += 1;
            keeping.elements += elements;
            keeping.before.extend(stmts);
        }
        Some(value)
    }

    fn uses(&self, value: NodeId, var: VarId) -> bool {
        let exprs = &self.builder.exprs;
        exprs.reachable([value]).into_iter().any(|id| exprs[id].kind == NodeKind::Leaf(Leaf::Var(var)))
    }

    /// An index with variables substituted; `None` unless it is a sum of these variables and of values known before the
    /// loops.
    fn moved(&mut self, index: NodeId, moved: &AHashMap<NodeId, NodeId>) -> Option<NodeId> {
        let linear = self.builder.linear(index);
        let mut sum = self.builder.int(linear.constant);
        for (atom, factor) in linear.terms {
            let atom = match moved.get(&atom) {
                Some(new) => *new,
                None => self.is_known_before(atom).then_some(atom)?,
            };
            let term = self.builder.scale(atom, factor);
            sum = self.builder.add(sum, term);
        }
        Some(sum)
    }

    /// Whether a value depends on no variable and no memory.
    fn is_known_before(&self, value: NodeId) -> bool {
        let exprs = &self.builder.exprs;
        let varies = |kind: &NodeKind| matches!(kind, NodeKind::Leaf(Leaf::Var(_)) | NodeKind::Load(_));
        !exprs.reachable([value]).into_iter().any(|id| varies(&exprs[id].kind))
    }

    /// Records the points of an access for the access that replaces it under substituted variables.
    fn touch_moved(&mut self, from: Key, to: Key, moved: &AHashMap<NodeId, NodeId>) {
        for AccessPoint { at, stage } in self.touched(from) {
            let at: Option<Vec<NodeId>> = at.iter().map(|at| self.moved(*at, moved)).collect();
            if let Some(at) = at {
                self.touch(to, &at, stage);
            }
        }
    }
}
