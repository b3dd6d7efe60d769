//! Where the checking build and the timing build of a kernel may round differently, and which
//! values those differences can reach.
//!
//! The checking build computes every operation as the reference evaluator does. The timing build
//! fuses products into sums (FMA) and uses the hardware's division, square root and elementary
//! functions. Nothing else differs: compilers do not reorder sums, and conversions, comparisons,
//! min, max and moves are exact in both.
//!
//! A rewrite may also combine the terms of a reduction in another order. Every step of the reduction
//! then rounds differently.

use ahash::AHashSet;

use crate::ids::{ExprId, FuncId, IdVec};
use crate::ir::{Exprs, FuncDecl, NodeKind};
use crate::op::{BinaryOp, Class, Op, Rounds, UnaryOp};
use crate::pipeline::Pipeline;
use crate::types::{Type, Value};

/// The builds and orders whose rounding may differ from the reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// The timing build.
    Timing,
    /// The timing build of a pipeline whose reductions combine their terms in another order.
    Reordered,
}

/// How the timing build's result of an operation may differ from the reference result for the same
/// operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deviation {
    /// A sum or difference that may be fused with an operand that is a product, which is then not
    /// rounded.
    Fused {
        /// The left operand, if it is a product that can be fused.
        left: Option<Product>,
        /// The right operand, if it is a product that can be fused.
        right: Option<Product>,
    },
    /// The correctly rounded result, with an error of up to this many units in the last place; for
    /// `f64`, the reference's result.
    Ulps(u32),
    /// The hardware's exponential: an error of 2 units in the last place, plus 1.173 per unit of
    /// the operand's magnitude.
    FastExp,
    /// `a - b * floor(a / b)`, computed from an inexact quotient and a product that may be fused.
    Remainder,
}

/// A product that is an operand of a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Product {
    /// This multiplication node; its negation if the flag is set.
    Here(ExprId, bool),
    /// A value of another Func, which a schedule may inline.
    Inlined,
}

/// The errors of the timing build's functions of `f64`, at most 2, and of the reference's own, at most 4.
const DOUBLE: Deviation = Deviation::Ulps(6);

/// How the timing build may round a node differently; `None` if both builds give the same bits for
/// the same operands.
pub fn deviation(pipeline: &Pipeline, id: ExprId) -> Option<Deviation> {
    let exprs = pipeline.exprs();
    let node = &exprs[id];
    let NodeKind::Op(op) = node.kind else { return None };
    // Compilers fold operations on constants, with correct rounding.
    if !node.ty.is_float() || node.args.iter().all(|arg| exprs.constant(*arg).is_some()) {
        return None;
    }
    match op.rounds() {
        Rounds::Alike => None,
        // A product of 16 bits is rounded before it can be fused.
        Rounds::Fused if node.ty.is_half() => None,
        Rounds::Fused => fused(pipeline, id),
        Rounds::Remainder => Some(Deviation::Remainder),
        // Division and square root of `f64` are correctly rounded in both builds.
        _ if node.ty == Type::F64 => {
            (op.class(node.ty, node.ty) == Some(Class::FloatSpecial)).then_some(DOUBLE)
        }
        Rounds::Quotient(_) if exprs.constant(node.args[1]).is_some_and(is_power_of_two) => None,
        Rounds::Quotient(most) | Rounds::Ulps(most) => Some(Deviation::Ulps(most)),
        Rounds::FastExp => Some(Deviation::FastExp),
    }
}

fn fused(pipeline: &Pipeline, id: ExprId) -> Option<Deviation> {
    let args = &pipeline.exprs()[id].args;
    let [left, right] = [0, 1].map(|arg| product(pipeline, args[arg]));
    (left.is_some() || right.is_some()).then_some(Deviation::Fused { left, right })
}

/// The product that a node is, if it is one that rounds; `Inlined` if the node reads a Func whose
/// value is one.
fn product(pipeline: &Pipeline, id: ExprId) -> Option<Product> {
    let exprs = pipeline.exprs();
    let node = &exprs[id];
    let is_scale = |arg: usize| exprs.constant(node.args[arg]).is_some_and(is_power_of_two);
    match node.kind {
        // Exact, so skipping the rounding changes nothing.
        NodeKind::Op(Op::Binary(BinaryOp::Mul)) if is_scale(0) || is_scale(1) => None,
        NodeKind::Op(Op::Binary(BinaryOp::Mul)) => Some(Product::Here(id, false)),
        NodeKind::Op(Op::Unary(UnaryOp::Neg)) => match product(pipeline, node.args[0])? {
            Product::Here(id, negated) => Some(Product::Here(id, !negated)),
            Product::Inlined => Some(Product::Inlined),
        },
        NodeKind::Call(func, value) => match pipeline.funcs()[func].stages.as_slice() {
            [only] => only.values.get(value as usize).and_then(|value| product(pipeline, *value)),
            _ => None,
        }
        .map(|_| Product::Inlined),
        _ => None,
    }
}

/// Whether multiplying or dividing by this float is exact.
fn is_power_of_two(value: Value) -> bool {
    let value = value.as_f64() as f32;
    let fraction = value.to_bits() & 0x007f_ffff;
    fraction == 0 && value.is_normal() && (1.0 / value).is_normal()
}

/// The float sums, differences and products in a Func's updates that depend on its own value, if any order of the terms
/// is allowed: the steps of its reductions, which round differently in another order.
pub fn steps(pipeline: &Pipeline, func: FuncId) -> AHashSet<ExprId> {
    let exprs = pipeline.exprs();
    let updates = pipeline.funcs()[func].stages.iter().skip(1).filter(|stage| stage.reassociate);
    let mut own = AHashSet::new();
    for id in exprs.reachable(updates.flat_map(|stage| stage.roots())) {
        let node = &exprs[id];
        let is_own = matches!(node.kind, NodeKind::Call(callee, _) if callee == func);
        if is_own || node.args.iter().any(|arg| own.contains(arg)) {
            own.insert(id);
        }
    }
    own.retain(|id| {
        let rounds = matches!(
            exprs[*id].kind,
            NodeKind::Op(Op::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul))
        );
        rounds && exprs[*id].ty.is_float()
    });
    own
}

/// For each value of each Func, whether a rounding difference can reach it: through arithmetic, a
/// cast, a comparison, a select, an index or a filter. All other values are bit-identical.
///
/// ```
/// use warploom_lang::*;
/// let x = vars!(x);
/// let input = Input::f32("input", 1);
/// let largest = func("largest", x, max(input.at(x), input.at(x + 1)));
/// let level = func("level", x, (largest.at(x) * 0.3 + 0.5).cast(Type::I32));
/// let pipeline = Pipeline::new("levels", [largest, level])?;
/// let reached = rounding::reached(&pipeline, rounding::Rounding::Timing);
/// assert_eq!(reached.values().cloned().collect::<Vec<_>>(), [[false], [true]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn reached(pipeline: &Pipeline, rounding: Rounding) -> IdVec<FuncId, Vec<bool>> {
    let exprs = pipeline.exprs();
    let nodes = exprs.nodes().values().map(|_| false).collect();
    let mut walk = Walk { pipeline, exprs, nodes, funcs: IdVec::new(), steps: AHashSet::new() };
    for func in pipeline.funcs().values() {
        let id = walk.funcs.push(vec![false; func.types.len()]);
        if rounding == Rounding::Reordered {
            walk.steps = steps(pipeline, id);
        }
        let order = exprs.reachable(func.stages.iter().flat_map(|stage| stage.roots()));
        // An update may read its own results. Each round but the last marks a value.
        while walk.marks_more(id, func, &order) {}
    }
    walk.funcs
}

struct Walk<'a> {
    pipeline: &'a Pipeline,
    exprs: &'a Exprs,
    nodes: IdVec<ExprId, bool>,
    /// The marks of the Funcs visited so far.
    funcs: IdVec<FuncId, Vec<bool>>,
    /// The steps of the Func's reductions, if their order may differ.
    steps: AHashSet<ExprId>,
}

impl Walk<'_> {
    /// Marks nodes, then the values of a Func. Returns `false` if no value changed.
    fn marks_more(&mut self, id: FuncId, func: &FuncDecl, order: &[ExprId]) -> bool {
        for node_id in order {
            let node = &self.exprs[*node_id];
            let called = match node.kind {
                NodeKind::Call(callee, value) => self.funcs[callee][value as usize],
                _ => false,
            };
            self.nodes[*node_id] = called
                || node.args.iter().any(|arg| self.nodes[*arg])
                || self.steps.contains(node_id)
                || deviation(self.pipeline, *node_id).is_some();
        }
        let values = &mut self.funcs[id];
        let before = values.clone();
        for stage in &func.stages {
            // A mark on an index or on the filter marks every value of the stage.
            let placed = stage.indices.iter().chain(&stage.predicate).any(|id| self.nodes[*id]);
            for (number, marked) in values.iter_mut().enumerate() {
                *marked |= placed || stage.values.get(number).is_some_and(|id| self.nodes[*id]);
            }
        }
        *values != before
    }
}

#[cfg(test)]
mod tests {
    use super::Rounding;
    use crate::*;

    #[test]
    fn the_order_of_a_reduction_reaches_floats_only() {
        let r = rdom([(0, 100)]);
        let reaches_if = |marked: bool, ty: Type, start: Expr, next: fn(Expr, Expr) -> Expr| {
            let input = Input::new("input", ty, 1);
            let total = func("total", (), start).over(&r, |f| f.set((), next(f.at(()), input.at(r.x))));
            let total = if marked { total.reassociate() } else { total };
            let pipeline = Pipeline::new("test", [total]).unwrap_or_else(|error| panic!("{error}"));
            let reached = |rounding| rounding::reached(&pipeline, rounding)[pipeline.outputs()[0]][0];
            (reached(Rounding::Timing), reached(Rounding::Reordered))
        };
        let reaches = |ty, start, next| reaches_if(true, ty, start, next);
        assert_eq!(reaches(Type::F32, 0.0.into(), |own, term| own + term), (false, true));
        assert_eq!(reaches_if(false, Type::F32, 0.0.into(), |own, term| own + term), (false, false));
        assert_eq!(reaches(Type::F32, 1.0.into(), |own, term| own * term), (false, true));
        assert_eq!(reaches(Type::F32, 0.0.into(), max), (false, false));
        assert_eq!(reaches(Type::F32, 0.0.into(), |own, term| max(own, term + 1.0)), (false, false));
        assert_eq!(reaches(Type::I32, 0.into(), |own, term| own + term), (false, false));
    }

    /// Whether a rounding difference reaches an output built from a Func that rounds and one that
    /// does not.
    fn is_reached(make: impl Fn(&Func, &Func) -> Func) -> Vec<bool> {
        let x = vars!(x);
        let input = Input::f32("input", 1);
        let rounded = func("rounded", x, input.at(x) * 0.3 + 1.0);
        let exact = func("exact", x, max(input.at(x) + input.at(x + 1), 0.0) * 4.0);
        let pipeline =
            Pipeline::new("test", [make(&rounded, &exact)]).unwrap_or_else(|error| panic!("{error}"));
        rounding::reached(&pipeline, Rounding::Timing)[pipeline.outputs()[0]].clone()
    }

    #[test]
    fn roundings_pass_through_everything_but_what_ignores_them() {
        let x = vars!(x);
        let image = |rounded: &Func| clamp(rounded.at(x).cast(Type::I32), 0, 7);
        let out = |of: fn(Expr, Expr) -> Expr| {
            is_reached(move |rounded, exact| func("out", x, of(rounded.at(x), exact.at(x))))
        };
        assert_eq!(out(|_, exact| exact), [false]);
        assert_eq!(out(|_, exact| exact.cast(Type::I32).cast(Type::U8)), [false]);
        assert_eq!(out(|rounded, _| rounded.cast(Type::U8)), [true]);
        assert_eq!(out(|rounded, exact| select(rounded.lt(0.5), exact, 1.0)), [true]);
        assert_eq!(out(|rounded, exact| min(exact, rounded)), [true]);
        assert_eq!(out(|_, exact| exact * 0.3), [false], "a product alone is rounded in both builds");
        assert_eq!(out(|_, exact| exact / 3.0), [true]);
        assert_eq!(out(|_, exact| exact / 8.0), [false]);
        assert_eq!(out(|_, exact| exact * 8.0 + 1.0), [false]);
        assert_eq!(out(|_, exact| sqrt(exact)), [true]);
        assert_eq!(is_reached(|rounded, exact| func("out", x, exact.at(image(rounded)))), [true]);
        let pair = is_reached(|rounded, exact| func("out", x, (exact.at(x), rounded.at(x))));
        assert_eq!(pair, [false, true]);
    }

    #[test]
    fn updates_pass_roundings_on() {
        let x = vars!(x);
        let r = rdom!(r: (0, 4));
        let place = |rounded: &Func| clamp(rounded.at(r.x).cast(Type::I32), 0, 7);
        let counts = |place: &dyn Fn(&Func, &Func) -> Expr| {
            is_reached(|rounded, exact| {
                let place = place(rounded, exact);
                func("counts", x, 0).over(&r, |f| f.set(place.clone(), f.at(place.clone()) + 1))
            })
        };
        assert_eq!(counts(&|rounded, _| place(rounded)), [true]);
        assert_eq!(counts(&|_, exact| place(exact)), [false]);
        // Reached only through a self-reference.
        let swapped = is_reached(|rounded, exact| {
            func("out", x, (exact.at(x), rounded.at(x))).update(|f| f.set(x, (f.get(1, x), f.get(0, x))))
        });
        assert_eq!(swapped, [true, true]);
    }

    #[test]
    fn products_are_found_behind_inlined_funcs_and_signs() {
        let x = vars!(x);
        let product = |rounded: &Func| func("product", x, rounded.at(x) * 0.3);
        assert_eq!(is_reached(|_, exact| func("out", x, product(exact).at(x) + 1.0)), [true]);
        assert_eq!(is_reached(|_, exact| func("out", x, 1.0 - -(exact.at(x) * 0.3))), [true]);
        assert_eq!(is_reached(|_, exact| func("out", x, product(exact).at(x))), [false]);
    }
}
