//! Inline reductions. Each one creates a helper Func, named after the Func that uses it
//! (`blur.sum0`).

use std::panic::Location;

use crate::error::{Diagnostic, Fault};
use crate::expr::{Expr, Operand, Term, TermKind, Var};
use crate::func::{Func, FuncName, Itself, Start, Update};
use crate::functions::select;
use crate::op::{BinaryOp, Op};
use crate::rdom::RDom;
use crate::types::{Type, Value};

/// The sum of `term` over a domain; 0 over an empty domain.
///
/// A sum of floats says what is added, not in which order: a schedule may split it over threads, as
/// [`Func::reassociate`] describes. The reference evaluator adds the terms to 0 one at a time, with
/// the first variable fastest; [`Expr::in_order`] asks every schedule for that order. Integers wrap,
/// so that every order gives the same bits.
///
/// Terms of 16 bits are added in `f32`, and the sum is rounded once. If the term is a product of
/// them, its factors are widened to `f32` before they are multiplied.
///
/// ```
/// use warploom_lang::*;
/// let x = vars!(x);
/// let input = Input::f32("input", 1);
/// let r = rdom([(-1, 3)]);
/// let blur = func("blur", x, sum(&r, input.at(x + r.x)) / 3.0);
/// # assert!(Pipeline::new("p", [blur]).is_ok());
/// ```
#[track_caller]
pub fn sum(domain: &RDom, term: impl Into<Expr>) -> Expr {
    in_any_order(reduce("sum", domain, term.into(), Value::zero, widened, |f, at, term| f.add(at, term)))
}

/// The product of `term` over a domain; 1 over an empty domain. Like a [`sum`], a product of floats
/// may be computed in any order.
#[track_caller]
pub fn product(domain: &RDom, term: impl Into<Expr>) -> Expr {
    in_any_order(reduce("product", domain, term.into(), Value::one, wide, |f, at, term| f.mul(at, term)))
}

/// The smallest value of `term` over a domain; the largest value of the type over an empty domain.
#[track_caller]
pub fn minimum(domain: &RDom, term: impl Into<Expr>) -> Expr {
    reduce("minimum", domain, term.into(), Value::largest, wide, |f, at, term| f.min(at, term))
}

/// The largest value of `term` over a domain; the smallest value of the type over an empty domain.
#[track_caller]
pub fn maximum(domain: &RDom, term: impl Into<Expr>) -> Expr {
    reduce("maximum", domain, term.into(), Value::smallest, wide, |f, at, term| f.max(at, term))
}

/// The position and value of an extremum.
pub struct Extreme {
    /// The point of the domain: one coordinate per reduction variable.
    pub at: Vec<Expr>,
    /// The value of the term at that point.
    pub value: Expr,
}

/// The point of a domain where `term` is smallest. Ties go to the first point in reduction order.
///
/// Over an empty domain, the point is the domain's first corner and the value is the largest of its
/// type.
#[track_caller]
pub fn argmin(domain: &RDom, term: impl Into<Expr>) -> Extreme {
    extreme("argmin", domain, term.into(), Value::largest, |new, old| new.lt(old))
}

/// The point of a domain where `term` is largest. Ties go to the first point in reduction order.
///
/// Over an empty domain, the point is the domain's first corner and the value is the smallest of
/// its type.
#[track_caller]
pub fn argmax(domain: &RDom, term: impl Into<Expr>) -> Extreme {
    extreme("argmax", domain, term.into(), Value::smallest, |new, old| new.gt(old))
}

impl Expr {
    /// Asks every schedule to compute this [`sum`] or [`product`] in the order of the domain, with the first
    /// variable fastest, so that all of them give the same bits. It is then one step after the other.
    ///
    /// ```
    /// use warploom_lang::*;
    /// let image = Input::f32("image", 2);
    /// let r = rdom([(0, image.extent(0)), (0, image.extent(1))]);
    /// let mean = func("mean", (), sum(&r, image.at((r.x, r.y))).in_order() / 1e6);
    /// assert!(Pipeline::new("mean", [mean]).is_ok());
    /// ```
    #[track_caller]
    #[must_use]
    pub fn in_order(&self) -> Expr {
        let fault = Diagnostic::at(Fault::NotAReduction, Location::caller());
        match self.term() {
            Ok(_) => with_order(self, false).unwrap_or_else(|| Expr::faulty(fault)),
            Err(_) => self.clone(),
        }
    }
}

/// An inline reduction whose float terms may be combined in any order.
fn in_any_order(reduction: Expr) -> Expr {
    match reduction.ty().is_some_and(Type::is_float) {
        true => with_order(&reduction, true).unwrap_or(reduction),
        false => reduction,
    }
}

/// An inline reduction whose terms may be combined in any order, or in that of the domain; `None` if it is something else.
fn with_order(reduction: &Expr, any: bool) -> Option<Expr> {
    let Term { kind, ty, args, .. } = reduction.term().ok()?;
    match kind {
        TermKind::Call(func, value) if func.is_inline_reduction() => {
            let kind = TermKind::Call(func.clone().with_order(any), *value);
            Some(Expr::node(kind, *ty, args.iter().cloned()))
        }
        // A reduction of floats of 16 bits, which is rounded once it is complete.
        TermKind::Op(Op::Cast(ty)) if ty.is_half() => Some(with_order(&args[0], any)?.cast(*ty)),
        _ => None,
    }
}

/// A term in the type in which it is accumulated.
fn wide(term: &Expr) -> Expr {
    term.ty().map_or_else(|| term.clone(), |ty| term.cast(ty.accumulator()))
}

/// The same, with the factors of a product of 16-bit floats widened before they are multiplied.
fn widened(term: &Expr) -> Expr {
    match term.term() {
        Ok(Term { kind: TermKind::Op(Op::Binary(BinaryOp::Mul)), ty, args, .. }) if ty.is_half() => {
            widened(&args[0]) * widened(&args[1])
        }
        _ => wide(term),
    }
}

#[track_caller]
fn reduce(
    what: &'static str,
    domain: &RDom,
    term: Expr,
    start: fn(Type) -> Value,
    wide: fn(&Expr) -> Expr,
    step: impl FnOnce(&Itself, Vec<Var>, Expr) -> Update,
) -> Expr {
    let Some(ty) = term.ty() else { return term };
    let args = free_vars(&term, domain);
    let start = Start::Values(vec![start(ty.accumulator()).into()]);
    let helper = Func::define(FuncName::Inside(what), args.clone(), start, Location::caller());
    helper.over(domain, |f| step(f, args.clone(), wide(&term))).at(args).cast(ty)
}

#[track_caller]
fn extreme(
    what: &'static str,
    domain: &RDom,
    term: Expr,
    start: fn(Type) -> Value,
    better: impl Fn(&Expr, &Expr) -> Expr,
) -> Extreme {
    let count = domain.ranges.len();
    let Some(ty) = term.ty() else { return Extreme { at: vec![term.clone(); count], value: term } };
    let args = free_vars(&term, domain);
    let corner = domain.ranges.iter().map(|range| range.min.clone());
    let start = corner.chain([start(ty).into()]).collect();
    let helper = Func::define(FuncName::Inside(what), args.clone(), Start::Values(start), Location::caller());
    let helper = helper.over(domain, |f| {
        let wins = better(&term, &f.get(count, args.clone()));
        let keep_or = |value: usize, new: Expr| select(&wins, new, f.get(value, args.clone()));
        let mut values: Vec<Expr> = (0..count).map(|i| keep_or(i, domain.var(i).into())).collect();
        values.push(keep_or(count, term));
        f.set(args.clone(), values)
    });
    Extreme {
        at: (0..count).map(|i| helper.get(i, args.clone())).collect(),
        value: helper.get(count, args.clone()),
    }
}

/// The variables of `term` and of the domain's filter, in order of first appearance.
fn free_vars(term: &Expr, domain: &RDom) -> Vec<Var> {
    let mut found: Vec<Var> = Vec::new();
    let mut seen = ahash::AHashSet::new();
    let mut stack: Vec<Expr> = domain.predicate.iter().cloned().chain([term.clone()]).collect();
    while let Some(expr) = stack.pop() {
        let Ok(node) = expr.term() else { continue };
        if !seen.insert(expr.address()) {
            continue;
        }
        if let TermKind::Var(var) = node.kind
            && !found.iter().any(|other| other.name() == var.name())
        {
            found.push(var);
        }
        stack.extend(node.args.iter().rev().cloned());
    }
    found
}
