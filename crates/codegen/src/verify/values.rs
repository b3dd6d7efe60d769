//! Checks on values where they are used: whether they are bound, whether they are uniform in a block, and the range of
//! integers.
//!
//! The fact of a node is cached for the innermost scope that the node depends on. It holds as long
//! as the innermost variable in the node keeps its value.

use ahash::AHashSet;
use smallvec::{SmallVec, smallvec};
use warploom_lang::affine::interval::{self, Interval, Operand};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Id, IdVec, Type};

use super::error::{Fault, Missing};
use crate::ir::{ArrayId, Kernel, Leaf, NodeId, NodeKind, Space, Stmt, VarId, WARP, every_stmt};

/// Between which threads of a block a value, or the control flow, can diverge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Varies {
    /// It is the same in all of them.
    Nowhere,
    /// Only threads of different warps.
    Warps,
    /// Any two threads.
    Threads,
}

/// Known facts about a node's value.
#[derive(Clone, Copy)]
pub(super) struct Fact {
    pub varies: Varies,
    pub range: Interval,
    /// The innermost scope that it depends on.
    scope: BindingScope,
}

/// A binding: its depth and its serial number among all bindings so far. Bindings end in the
/// reverse order of their creation, so the enclosing ones last longer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BindingScope {
    depth: usize,
    number: usize,
}

/// The scope of values that depend on no variable.
const EVERYWHERE: BindingScope = BindingScope { depth: 0, number: 0 };

/// A bound variable, or a list of statements that never runs.
struct Binding {
    var: Option<VarId>,
    scope: BindingScope,
}

/// The values of a kernel at the current statement.
pub(super) struct Values<'a> {
    kernel: &'a Kernel,
    around: &'a [u32],
    /// The arrays that any statement writes.
    written: AHashSet<ArrayId>,
    facts: Vec<Option<Fact>>,
    vars: IdVec<VarId, Option<(Type, Fact)>>,
    bindings: Vec<Binding>,
    ever: usize,
    /// The outermost enclosing list that never runs.
    dead: Option<BindingScope>,
}

impl<'a> Values<'a> {
    pub fn new(kernel: &'a Kernel, around: &'a [u32]) -> Values<'a> {
        Values {
            kernel,
            around,
            written: every_stmt(&kernel.body).filter_map(Stmt::written).collect(),
            facts: vec![None; kernel.exprs.nodes().len()],
            vars: kernel.vars.values().map(|_| None).collect(),
            bindings: Vec::new(),
            ever: 0,
            dead: None,
        }
    }

    /// Returns a mark for [`Values::leave`].
    pub fn enter(&self) -> usize {
        self.bindings.len()
    }

    /// Drops all bindings since a mark.
    pub fn leave(&mut self, mark: usize) {
        for Binding { var, scope } in self.bindings.drain(mark..) {
            match var {
                Some(var) => self.vars[var] = None,
                None if self.dead == Some(scope) => self.dead = None,
                None => {}
            }
        }
    }

    /// Binds a variable.
    pub fn bind(&mut self, var: VarId, ty: Type, varies: Varies, range: Interval) -> Result<(), Fault> {
        let old = self.vars.get(var).ok_or(Fault::Missing(Missing::Var(var)))?;
        if old.is_some() {
            return Err(Fault::BoundTwice { var: self.kernel.vars[var].clone() });
        }
        let scope = self.push(Some(var));
        self.vars[var] = Some((ty, Fact { varies, range, scope }));
        Ok(())
    }

    /// Marks the code that follows as dead: its accesses are not made, so they need not be in bounds.
    pub fn never_runs(&mut self) {
        let scope = self.push(None);
        self.dead.get_or_insert(scope);
    }

    fn push(&mut self, var: Option<VarId>) -> BindingScope {
        self.ever += 1;
        let scope = BindingScope { depth: self.bindings.len() + 1, number: self.ever };
        self.bindings.push(Binding { var, scope });
        scope
    }

    fn known(&self, id: NodeId) -> Option<Fact> {
        self.facts[id.index()].filter(|Fact { scope, .. }| {
            *scope == EVERYWHERE
                || self.bindings.get(scope.depth - 1).is_some_and(|binding| binding.scope == *scope)
        })
    }

    /// The fact of a node. Computes the facts of its operands first.
    pub fn fact(&mut self, root: NodeId) -> Result<Fact, Fault> {
        let kernel = self.kernel;
        let mut open: SmallVec<[NodeId; 16]> = smallvec![root];
        while let Some(&id) = open.last() {
            if self.known(id).is_some() {
                open.pop();
                continue;
            }
            let before = open.len();
            open.extend(kernel.exprs[id].args.iter().copied().filter(|arg| self.known(*arg).is_none()));
            if open.len() == before {
                self.facts[id.index()] = Some(self.find(id)?);
            }
        }
        self.known(root).ok_or(Fault::Missing(Missing::Node(root)))
    }

    /// The fact of a node whose operands have theirs.
    fn find(&self, id: NodeId) -> Result<Fact, Fault> {
        let node = &self.kernel.exprs[id];
        let args: SmallVec<[Fact; 3]> = node.args.iter().filter_map(|arg| self.known(*arg)).collect();
        let varies = args.iter().map(|arg| arg.varies).max().unwrap_or(Varies::Nowhere);
        let scope = args.iter().map(|arg| arg.scope).chain(self.dead).max().unwrap_or(EVERYWHERE);
        let fact = |varies, range| Ok(Fact { varies, range, scope });
        match node.kind {
            NodeKind::Leaf(leaf) => self.leaf(leaf, node.ty, scope),
            NodeKind::Op(op) => {
                let varies = if self.is_of_warp(id) { varies.min(Varies::Warps) } else { varies };
                let operands = self.operands(id);
                let compared = compared(op, &operands).map(|holds| Interval::new(holds.into(), holds.into()));
                fact(varies, compared.unwrap_or_else(|| interval::result(op, node.ty, &operands)))
            }
            NodeKind::Load(array) => {
                self.check_bounds(array, node.args[0])?;
                let decl = &self.kernel.arrays[array];
                if !matches!(decl.space, Space::Global(_)) && !self.written.contains(&array) {
                    return Err(Fault::NeverWritten { array: decl.name.clone() });
                }
                fact(Varies::Threads, Interval::of_type(node.ty))
            }
            NodeKind::Offset(strides) => {
                let strides = &self.kernel.exprs.strides()[strides];
                let terms = strides.strides.iter().zip(&args);
                let sum = terms
                    .fold(Interval::new(strides.constant, strides.constant), |sum, (stride, term)| {
                        sum.plus(term.range.times(*stride))
                    });
                fact(varies, sum)
            }
        }
    }

    fn leaf(&self, leaf: Leaf, ty: Type, scope: BindingScope) -> Result<Fact, Fault> {
        let range = match leaf {
            Leaf::Thread => Interval::below(self.kernel.threads),
            Leaf::Block(dimension) => Interval::below(self.kernel.grid[usize::from(dimension)]),
            Leaf::Iteration(level) => Interval::below(self.around[usize::from(level)]),
            Leaf::Param(_) => Interval::of_type(ty),
            Leaf::Size(position) => {
                let scalar = &self.kernel.scalars[position as usize];
                Interval::new(scalar.min, scalar.max)
            }
            Leaf::Var(var) => {
                let name = || self.kernel.vars[var].clone();
                return match self.vars[var] {
                    None => Err(Fault::Unbound { var: name() }),
                    Some((expected, _)) if expected != ty => {
                        Err(Fault::LeafType { leaf, expected, found: ty })
                    }
                    Some((_, bound)) => Ok(Fact { scope: bound.scope.max(scope), ..bound }),
                };
            }
        };
        let varies = if leaf == Leaf::Thread { Varies::Threads } else { Varies::Nowhere };
        Ok(Fact { varies, range, scope })
    }

    /// Whether a node is the thread's index divided by a multiple of the warp size.
    fn is_of_warp(&self, id: NodeId) -> bool {
        let nodes = &self.kernel.exprs;
        let (NodeKind::Op(Op::Binary(BinaryOp::Div)), [index, divisor]) =
            (nodes[id].kind, &nodes[id].args[..])
        else {
            return false;
        };
        let warps = self.known(*divisor).map(|fact| fact.range).filter(|range| range.min == range.max);
        nodes[*index].kind == NodeKind::Leaf(Leaf::Thread)
            && warps.is_some_and(|range| range.min > 0 && range.min % i64::from(WARP) == 0)
    }

    /// The known operands of a node.
    fn operands(&self, id: NodeId) -> SmallVec<[Operand; 3]> {
        let nodes = &self.kernel.exprs;
        let known = nodes[id].args.iter().filter_map(|arg| Some((nodes[*arg].ty, self.known(*arg)?.range)));
        known.collect()
    }

    /// Checks an access whose index has a fact: at least one possible index must be in bounds. An
    /// index that may overflow counts with the range that it would have without 32-bit limits.
    pub fn check_bounds(&self, array: ArrayId, index: NodeId) -> Result<(), Fault> {
        self.check_bounds_of_all(array, index, 1)
    }

    /// Checks an access of adjacent elements, of which the first has the index.
    pub fn check_bounds_of_all(&self, array: ArrayId, index: NodeId, count: u32) -> Result<(), Fault> {
        let decl = &self.kernel.arrays[array];
        let elements = i64::try_from(decl.elements).unwrap_or(i64::MAX);
        let unlimited = match self.kernel.exprs[index].kind {
            NodeKind::Op(op) => interval::unlimited(op, &self.operands(index)),
            _ => None,
        };
        let range = unlimited.or_else(|| Some(self.known(index)?.range));
        let Some(Interval { min, max }) = range else { return Ok(()) };
        let last = min.saturating_add(i64::from(count) - 1);
        if self.dead.is_some() || (last < elements && max >= 0) {
            return Ok(());
        }
        Err(Fault::OutOfBounds { array: decl.name.clone(), min, max, elements: decl.elements })
    }
}

/// Whether a comparison of indices holds, if their ranges decide it.
fn compared(op: Op, operands: &[Operand]) -> Option<bool> {
    let (Op::Binary(op), &[(Type::I32, a), (Type::I32, b)]) = (op, operands) else { return None };
    let (always, never) = match op {
        BinaryOp::Le => (a.max <= b.min, a.min > b.max),
        BinaryOp::Lt => (a.max < b.min, a.min >= b.max),
        _ => return None,
    };
    (always || never).then_some(always)
}
