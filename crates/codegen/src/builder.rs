//! Builds kernel expressions and simplifies them on the fly.
//!
//! Every node has a value range and, for `i32`, a linear form over atoms. Sums have one normal
//! form, so equal indices are equal nodes. Divisions, remainders, comparisons, `min` and `max` fold
//! away where the ranges decide them. Floating-point operations fold only if all operands are
//! constants.
//!
//! Indices are 32 bits wide. The builder records the first number that does not fit
//! ([`Builder::misfit`]), so that the caller can reject the kernel; indices never wrap.

#![deny(clippy::cast_possible_truncation)]

mod assume;
mod compare;

use ahash::AHashMap;
use smallvec::SmallVec;
use warploom_lang::affine::{Interval, Linear, interval};
use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{IdVec, Type, Value};

use crate::ir::{ArrayId, KernelExprs, KernelNode, Leaf, NodeId, NodeKind, Strides, VarId};

/// The expressions of a kernel under construction.
#[derive(Clone, Default)]
pub struct Builder {
    /// The nodes built so far, hash-consed.
    pub exprs: KernelExprs,
    /// The variables declared so far, by name.
    pub vars: IdVec<VarId, String>,
    bounds: AHashMap<NodeId, Interval>,
    linear_forms: AHashMap<NodeId, Linear<NodeId>>,
    misfit: Option<i64>,
    /// The loops whose trip count is a scalar: the variable, and the scalar's position.
    limited: AHashMap<NodeId, u32>,
    /// The conditions under which the current version of the block runs.
    pub assumptions: Option<Assumptions>,
}

pub use assume::Assumptions;

/// The range of an index of an array whose strides are not known yet.
const SOME_INDEX: Interval = Interval { min: -(1 << 30), max: 1 << 30 };

impl Builder {
    /// The first requested number that does not fit in a 32-bit index, if any.
    pub fn misfit(&self) -> Option<i64> {
        self.misfit
    }

    /// Converts a number to an index. Records a number that does not fit and returns 0 for it.
    pub fn fitted(&mut self, value: i64) -> i32 {
        i32::try_from(value).unwrap_or_else(|_| {
            self.misfit.get_or_insert(value);
            0
        })
    }

    /// Converts a trip count to `u32`. Records a count that does not fit in a 32-bit index.
    pub fn count(&mut self, value: i64) -> u32 {
        self.fitted(value).unsigned_abs()
    }

    fn raw(&mut self, kind: NodeKind, ty: Type, args: impl IntoIterator<Item = NodeId>) -> NodeId {
        let args: SmallVec<[NodeId; 3]> = args.into_iter().collect();
        self.exprs.intern(KernelNode { kind, ty, args })
    }

    /// A constant of any type.
    pub fn constant(&mut self, value: Value) -> NodeId {
        let id = self.raw(NodeKind::Op(Op::Const(value)), value.ty(), []);
        if let Some(int) = value.as_int() {
            self.bounds.insert(id, Interval::new(int, int));
            self.linear_forms.insert(id, Linear::constant(int));
        }
        id
    }

    /// An `i32` constant for index arithmetic.
    pub fn int(&mut self, value: i64) -> NodeId {
        let value = self.fitted(value);
        self.constant(Value::from(value))
    }

    /// A leaf with its value range. Folds to a constant if an `i32` range holds a single value.
    pub fn leaf(&mut self, leaf: Leaf, ty: Type, bounds: Option<Interval>) -> NodeId {
        if let Some(Interval { min, max }) = bounds
            && min == max
            && ty == Type::I32
        {
            return self.int(min);
        }
        let id = self.raw(NodeKind::Leaf(leaf), ty, []);
        if let Some(bounds) = bounds {
            self.bounds.insert(id, bounds);
        }
        id
    }

    /// Restricts a leaf to a narrower range from now on. Existing nodes stay valid; nodes built
    /// from now on are valid only where the leaf lies in that range.
    pub fn narrow(&mut self, leaf: NodeId, bounds: Interval) {
        self.bounds.insert(leaf, bounds);
    }

    /// Declares a new variable of the kernel.
    pub fn var(&mut self, name: impl Into<String>) -> VarId {
        self.vars.push(name.into())
    }

    /// A 64-bit element index: the sum of terms times strides. The constant parts of the terms are combined, so that
    /// the indices of adjacent elements share their terms.
    pub fn wide_index(&mut self, terms: &[(NodeId, i64)]) -> NodeId {
        let (mut args, mut strides, mut constant) = (SmallVec::new(), SmallVec::new(), 0_i64);
        for &(term, stride) in terms {
            let linear = self.linear(term);
            let rest = Linear { constant: 0, ..linear.clone() };
            let shift = linear.constant.checked_mul(stride).and_then(|shift| constant.checked_add(shift));
            let mut varying = Some(term);
            if let Some(sum) = shift
                && self.is_index(&rest)
            {
                constant = sum;
                varying = (!rest.is_constant()).then(|| self.sum_node(&rest));
            }
            if let Some(varying) = varying {
                args.push(varying);
                strides.push(stride);
            }
        }
        self.exprs.intern_offset(args, Strides { strides, constant })
    }

    /// The linear form of `along * stride`, where the stride is a scalar. The constant part of `along` is kept apart, so that
    /// the indices of neighbouring elements share their terms.
    pub fn strided(&mut self, along: NodeId, stride: NodeId) -> Linear<NodeId> {
        let linear = self.linear(along);
        let rest = Linear { constant: 0, ..linear.clone() };
        let mut terms: SmallVec<[(NodeId, i64); 4]> = SmallVec::new();
        if linear.constant != 0 {
            terms.push((stride, linear.constant));
        }
        if !rest.is_constant() {
            let rest = self.sum_node(&rest);
            let product = self.raw(NodeKind::Op(Op::Binary(BinaryOp::Mul)), Type::I32, [rest, stride]);
            self.bounds.insert(product, SOME_INDEX);
            terms.push((product, 1));
        }
        terms.sort_unstable_by_key(|(atom, _)| *atom);
        Linear { constant: 0, terms }
    }

    /// The index of an element: a sum that is known to fit.
    pub fn element(&mut self, sum: &Linear<NodeId>) -> NodeId {
        let index = self.sum_node(sum);
        if !sum.is_constant() {
            self.bounds.insert(index, SOME_INDEX);
        }
        index
    }

    /// A load of the element at `index`.
    pub fn load(&mut self, array: ArrayId, ty: Type, index: NodeId) -> NodeId {
        self.raw(NodeKind::Load(array), ty, [index])
    }

    /// The type that a node evaluates to.
    pub fn ty(&self, id: NodeId) -> Type {
        self.exprs[id].ty
    }

    /// The known range of an integer; the whole range of its type if nothing is known.
    pub fn bounds(&self, id: NodeId) -> Interval {
        self.bounds.get(&id).copied().unwrap_or_else(|| Interval::of_type(self.ty(id)))
    }

    /// The value of a node that is a constant.
    pub fn known(&self, id: NodeId) -> Option<Value> {
        match self.exprs[id].kind {
            NodeKind::Op(Op::Const(value)) => Some(value),
            _ => None,
        }
    }

    /// The value of an integer that is always the same.
    pub fn known_int(&self, id: NodeId) -> Option<i64> {
        self.known(id).and_then(Value::as_int)
    }

    /// The linear form of an index. A node without one is an atom.
    pub fn linear(&self, id: NodeId) -> Linear<NodeId> {
        self.linear_forms.get(&id).cloned().unwrap_or_else(|| Linear::atom(id))
    }

    /// The value range of a linear form.
    fn linear_bounds(&self, linear: &Linear<NodeId>) -> Interval {
        linear.terms.iter().fold(Interval::new(linear.constant, linear.constant), |sum, (atom, factor)| {
            let Interval { min, max } = self.bounds(*atom);
            let (a, b) = (min.saturating_mul(*factor), max.saturating_mul(*factor));
            Interval::new(sum.min.saturating_add(a.min(b)), sum.max.saturating_add(a.max(b)))
        })
    }

    /// Whether a linear form, its coefficients and its constant all fit in 32-bit indices.
    fn is_index(&self, linear: &Linear<NodeId>) -> bool {
        let mut numbers = linear.terms.iter().map(|(_, factor)| *factor).chain([linear.constant]);
        let small = |number: i64| number.unsigned_abs() <= i32::MAX.unsigned_abs().into();
        Interval::of_type(Type::I32).covers(self.linear_bounds(linear)) && numbers.all(small)
    }

    /// The range of `a - b` after equal terms cancel.
    pub fn difference(&self, a: NodeId, b: NodeId) -> Interval {
        match self.linear(a).add_scaled(&self.linear(b), -1) {
            Some(linear) => self.linear_bounds(&linear),
            None => Interval::new(i64::MIN / 2, i64::MAX / 2),
        }
    }

    /// The index `a + b`.
    pub fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Add, a, b)
    }

    /// The index `a - b`.
    pub fn sub(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// The index `a * factor`.
    pub fn scale(&mut self, a: NodeId, factor: i64) -> NodeId {
        let factor = self.int(factor);
        self.binary(BinaryOp::Mul, a, factor)
    }

    /// The index `a + constant`.
    pub fn offset(&mut self, a: NodeId, constant: i64) -> NodeId {
        let constant = self.int(constant);
        self.add(a, constant)
    }

    /// A binary operation, simplified.
    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.op(Op::Binary(op), &[a, b])
    }

    /// The conjunction of conditions, without duplicates.
    pub fn all(&mut self, conditions: impl IntoIterator<Item = NodeId>) -> NodeId {
        let mut distinct: Vec<NodeId> = Vec::new();
        for condition in conditions {
            if !distinct.contains(&condition) {
                distinct.push(condition);
            }
        }
        let truth = self.constant(Value::from(true));
        distinct.into_iter().fold(truth, |all, condition| self.binary(BinaryOp::And, all, condition))
    }

    /// Any operation of the language, simplified and folded where possible.
    pub fn op(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        let known: Option<SmallVec<[Value; 3]>> = args.iter().map(|arg| self.known(*arg)).collect();
        if let Some(values) = known {
            return self.constant(op.eval(&values));
        }
        let types: SmallVec<[Type; 3]> = args.iter().map(|arg| self.ty(*arg)).collect();
        // Operands come from a checked pipeline or from this crate's own index arithmetic.
        let ty = op.result_type(&types).unwrap_or(Type::I32);
        if let Some(simpler) = self.simplified(op, args) {
            return simpler;
        }
        if ty == Type::I32
            && let Some(linear) = self.sum(op, args).map(|linear| self.rejoined(linear))
            && self.is_index(&linear)
        {
            return self.sum_node(&linear);
        }
        if let Some(parts) = self.quotient_parts(op, args) {
            return parts;
        }
        let id = self.raw(NodeKind::Op(op), ty, args.iter().copied());
        if !ty.is_float() {
            let operands: SmallVec<[interval::Operand; 3]> =
                args.iter().map(|arg| (self.ty(*arg), self.bounds(*arg))).collect();
            self.bounds.insert(id, interval::result(op, ty, &operands));
        }
        id
    }

    /// The linear form of a sum, multiple, quotient or remainder, if it has one.
    fn sum(&self, op: Op, args: &[NodeId]) -> Option<Linear<NodeId>> {
        let linear = |i: usize| self.linear(args[i]);
        match op {
            Op::Unary(UnaryOp::Neg) => linear(0).scale(-1),
            Op::Binary(BinaryOp::Add) => linear(0).add_scaled(&linear(1), 1),
            Op::Binary(BinaryOp::Sub) => linear(0).add_scaled(&linear(1), -1),
            Op::Binary(BinaryOp::Mul) => match (self.known_int(args[0]), self.known_int(args[1])) {
                (_, Some(factor)) => linear(0).scale(factor),
                (Some(factor), _) => linear(1).scale(factor),
                _ => None,
            },
            Op::Binary(BinaryOp::Shl) => match self.known_int(args[1]) {
                Some(amount @ 0..=30) => linear(0).scale(1 << amount),
                _ => None,
            },
            Op::Binary(BinaryOp::Div) => {
                let divisor = self.known_int(args[1]).filter(|d| *d > 1)?;
                let (whole, rest) = self.divided(&linear(0), divisor);
                let Interval { min, max } = self.linear_bounds(&rest);
                let quotient = min.div_euclid(divisor);
                // The remainder stays within one multiple of the divisor, so it contributes a
                // constant.
                (max.div_euclid(divisor) == quotient && !linear(0).is_constant())
                    .then(|| Linear { constant: whole.constant + quotient, ..whole })
            }
            Op::Binary(BinaryOp::Mod) => {
                let divisor = self.known_int(args[1]).filter(|d| *d > 1)?;
                let (_, rest) = self.divided(&linear(0), divisor);
                let Interval { min, max } = self.linear_bounds(&rest);
                (min >= 0 && max < divisor).then_some(rest)
            }
            _ => None,
        }
    }

    /// Rejoins an index that was split into quotient and remainder: `a % 4 + a / 4 * 4` is `a`.
    fn rejoined(&self, linear: Linear<NodeId>) -> Linear<NodeId> {
        let operands = |atom: NodeId, op: BinaryOp| {
            let node = &self.exprs[atom];
            (node.kind == NodeKind::Op(Op::Binary(op))).then_some(node.args.as_slice())
        };
        let split = linear.terms.iter().find_map(|(rest, factor)| {
            let whole = operands(*rest, BinaryOp::Mod)?;
            let multiple = self.known_int(whole[1])?.checked_mul(*factor)?;
            let matches = |(atom, other): &&(NodeId, i64)| {
                *other == multiple && operands(*atom, BinaryOp::Div) == Some(whole)
            };
            let (quotient, _) = linear.terms.iter().find(matches)?;
            Some((*rest, *quotient, whole[0], *factor))
        });
        let Some((rest, quotient, whole, factor)) = split else { return linear };
        let mut others = linear.clone();
        others.terms.retain(|(atom, _)| *atom != rest && *atom != quotient);
        others.add_scaled(&self.linear(whole), factor).unwrap_or(linear)
    }

    /// Moves multiples of a constant divisor out of a quotient or remainder: `(8 * a + b) / 4` is
    /// `2 * a + b / 4`.
    fn quotient_parts(&mut self, op: Op, args: &[NodeId]) -> Option<NodeId> {
        let Op::Binary(op @ (BinaryOp::Div | BinaryOp::Mod)) = op else { return None };
        if self.ty(args[0]) != Type::I32 {
            return None;
        }
        let divisor = self.known_int(args[1]).filter(|divisor| *divisor > 1)?;
        let (whole, rest) = self.divided(&self.linear(args[0]), divisor);
        if (whole.terms.is_empty() && whole.constant == 0) || !self.is_index(&whole) || !self.is_index(&rest)
        {
            return None;
        }
        let rest = self.sum_node(&rest);
        let rest = self.binary(op, rest, args[1]);
        if op == BinaryOp::Mod {
            return Some(rest);
        }
        let whole = self.sum_node(&whole);
        Some(self.add(whole, rest))
    }

    /// Splits `linear` into `divisor * whole + rest`, where the constant of the rest lies in
    /// `0..divisor`.
    fn divided(&self, linear: &Linear<NodeId>, divisor: i64) -> (Linear<NodeId>, Linear<NodeId>) {
        let mut whole = Linear::constant(linear.constant.div_euclid(divisor));
        let mut rest = Linear::constant(linear.constant.rem_euclid(divisor));
        for (atom, factor) in &linear.terms {
            if factor % divisor == 0 {
                whole.terms.push((*atom, factor / divisor));
            } else {
                rest.terms.push((*atom, *factor));
            }
        }
        (whole, rest)
    }

    /// The normal form of a sum: multiples of atoms in order, the constant last.
    fn sum_node(&mut self, linear: &Linear<NodeId>) -> NodeId {
        let bounds = self.linear_bounds(linear);
        let mut sum: Option<NodeId> = None;
        let positive_first =
            linear.terms.iter().filter(|(_, f)| *f > 0).chain(linear.terms.iter().filter(|(_, f)| *f < 0));
        for (atom, factor) in positive_first {
            let magnitude = factor.abs();
            let term = if magnitude == 1 {
                *atom
            } else {
                let factor = self.int(magnitude);
                self.raw(NodeKind::Op(Op::Binary(BinaryOp::Mul)), Type::I32, [*atom, factor])
            };
            sum = Some(match (sum, *factor > 0) {
                (None, true) => term,
                (None, false) => self.raw(NodeKind::Op(Op::Unary(UnaryOp::Neg)), Type::I32, [term]),
                (Some(sum), true) => {
                    self.raw(NodeKind::Op(Op::Binary(BinaryOp::Add)), Type::I32, [sum, term])
                }
                (Some(sum), false) => {
                    self.raw(NodeKind::Op(Op::Binary(BinaryOp::Sub)), Type::I32, [sum, term])
                }
            });
        }
        let Some(sum) = sum else { return self.int(linear.constant) };
        let id = match linear.constant {
            0 => sum,
            constant => {
                let op = if constant > 0 { BinaryOp::Add } else { BinaryOp::Sub };
                let magnitude = self.int(constant.abs());
                self.raw(NodeKind::Op(Op::Binary(op)), Type::I32, [sum, magnitude])
            }
        };
        // A single atom keeps its own range.
        if linear.terms.len() > 1 || linear.constant != 0 || linear.terms[0].1 != 1 {
            self.bounds.insert(id, bounds);
            self.linear_forms.insert(id, linear.clone());
        }
        id
    }

    /// Simplifies operations whose result the ranges decide.
    fn simplified(&mut self, op: Op, args: &[NodeId]) -> Option<NodeId> {
        match op {
            Op::Select => match self.known(args[0]) {
                Some(condition) => Some(if condition.bits() != 0 { args[1] } else { args[2] }),
                None => (args[1] == args[2]).then_some(args[1]),
            },
            // Comparisons of indices have one normal form, so that equal ones are equal nodes.
            Op::Binary(BinaryOp::Lt)
                if self.ty(args[0]) == Type::I32 && self.bounds(args[1]).min > i32::MIN.into() =>
            {
                let last = self.offset(args[1], -1);
                Some(self.binary(BinaryOp::Le, args[0], last))
            }
            Op::Cast(ty) if self.ty(args[0]) == ty => Some(args[0]),
            Op::Binary(BinaryOp::And) if self.ty(args[0]) == Type::Bool => {
                match (self.known_int(args[0]), self.known_int(args[1])) {
                    (Some(1), _) => Some(args[1]),
                    (_, Some(1)) => Some(args[0]),
                    (Some(_), _) => Some(args[0]),
                    (_, Some(_)) => Some(args[1]),
                    _ => (args[0] == args[1]).then_some(args[0]),
                }
            }
            Op::Binary(op) if self.ty(args[0]) == Type::I32 => {
                let Interval { min, max } = self.difference(args[0], args[1]);
                let truth = |truth: bool| Some(Value::from(truth));
                let decided = match op {
                    BinaryOp::Le if max <= 0 => truth(true),
                    BinaryOp::Le if min > 0 => truth(false),
                    BinaryOp::Eq if max < 0 || min > 0 => truth(false),
                    BinaryOp::Ne if max < 0 || min > 0 => truth(true),
                    BinaryOp::Le => return self.coarse_le(args[0], args[1]),
                    BinaryOp::Min if max <= 0 => return Some(args[0]),
                    BinaryOp::Min if min >= 0 => return Some(args[1]),
                    BinaryOp::Max if min >= 0 => return Some(args[0]),
                    BinaryOp::Max if max <= 0 => return Some(args[1]),
                    BinaryOp::Min if self.assume_le(args[0], args[1]) => return Some(args[0]),
                    BinaryOp::Min if self.assume_le(args[1], args[0]) => return Some(args[1]),
                    BinaryOp::Max if self.assume_le(args[1], args[0]) => return Some(args[0]),
                    BinaryOp::Max if self.assume_le(args[0], args[1]) => return Some(args[1]),
                    BinaryOp::Div if self.known_int(args[1]) == Some(1) => return Some(args[0]),
                    BinaryOp::Mod if self.known_int(args[1]) == Some(1) => Some(Value::from(0)),
                    BinaryOp::Mod if self.known_int(args[1]).is_none() => {
                        return self.assumed_remainder(args[0], args[1]);
                    }
                    _ => None,
                };
                decided.map(|value| self.constant(value))
            }
            _ => None,
        }
    }
}
