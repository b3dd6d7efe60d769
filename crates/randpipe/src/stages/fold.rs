//! Associative operators, and reductions with them.

use warploom_lang::{
    Expr, Func, Operand, RDom, Type, Value, clamp, max, maximum, min, minimum, product, select, sum,
};

use crate::dice::Dice;
use crate::grow::Grower;
use crate::image::{Extent, Image, variables};
use crate::stages::reduce::SumForm;
use crate::term::{Term, float, type_reach};

/// An associative operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    Add,
    Mul,
    Min,
    Max,
    And,
    Or,
    Xor,
}

impl Fold {
    /// A random operator of a type; sums are the most common.
    pub fn any(dice: &mut Dice, ty: Type) -> Fold {
        use Fold::*;
        match ty {
            Type::Bool => dice.pick(&[And, Or, Xor]),
            _ if ty.is_float() => dice.pick(&[Add, Add, Mul, Min, Max]),
            _ => dice.pick(&[Add, Add, Mul, Min, Max, And, Or, Xor]),
        }
    }

    /// The result of one step.
    pub fn step(self, before: Expr, next: Expr) -> Expr {
        match self {
            Fold::Add => before + next,
            Fold::Mul => before * next,
            Fold::Min => min(before, next),
            Fold::Max => max(before, next),
            Fold::And => before & next,
            Fold::Or => before | next,
            Fold::Xor => before ^ next,
        }
    }

    /// Whether the bits of the result depend on the order of the steps.
    pub fn is_ordered(self, ty: Type) -> bool {
        ty.is_float() && matches!(self, Fold::Add | Fold::Mul)
    }

    /// The value that leaves every other one unchanged.
    fn identity(self, ty: Type) -> Value {
        match self {
            Fold::Min => Value::largest(ty),
            Fold::Max => Value::smallest(ty),
            Fold::And => Value::from_int(ty, -1).unwrap_or(Value::largest(ty)),
            Fold::Mul => Value::one(ty),
            Fold::Add | Fold::Or | Fold::Xor => Value::zero(ty),
        }
    }

    /// The reduction as an expression, if the language has one.
    fn inline(self, domain: &RDom, term: &Expr) -> Option<Expr> {
        match self {
            Fold::Add => Some(sum(domain, term)),
            Fold::Mul => Some(product(domain, term)),
            Fold::Min => Some(minimum(domain, term)),
            Fold::Max => Some(maximum(domain, term)),
            Fold::And | Fold::Or | Fold::Xor => None,
        }
    }

    /// The term in a form whose reduction over `count` points neither overflows nor ignores most of
    /// them. `place` distinguishes the points. The magnitude returned is that of the result.
    pub fn conditioned(self, dice: &mut Dice, term: Term, count: i64, place: &Expr) -> Term {
        let Term { expr, ty, reach } = term;
        let share = 1.0 / count.max(1) as f32;
        match self {
            Fold::Add if ty.is_float() => Term::new(expr * float(ty, share), ty, reach),
            Fold::Add => Term::new(expr, ty, reach * count as f32),
            // The product of 1 + v / count is at most e.
            Fold::Mul if ty.is_float() => {
                let reach = reach.max(if ty.is_half() { 1e-2 } else { 1e-6 });
                let inside = clamp(expr, float(ty, -reach), float(ty, reach));
                Term::new(inside * float(ty, share / reach) + 1.0, ty, 3.0)
            }
            // Even factors would soon make 0.
            Fold::Mul => Term::new(expr | 1, ty, type_reach(ty)),
            // A few points have an effect; all of them would set or clear every bit.
            Fold::And | Fold::Or => {
                let apart = (count / 3).max(1);
                let decides = (place % apart as i32).eq(dice.between(0..=apart - 1) as i32);
                Term::new(select(decides, expr, self.identity(ty)), ty, reach)
            }
            Fold::Min | Fold::Max | Fold::Xor => Term::new(expr, ty, reach),
        }
    }
}

/// A reduction: its term, and its place.
pub struct Reduction<'a> {
    pub form: SumForm,
    pub fold: Fold,
    pub domain: &'a RDom,
    /// The term, with the magnitude of the result.
    pub term: Term,
    /// Whether it may start from any value, and its result may be converted to another type.
    pub is_varied: bool,
}

impl Grower {
    /// Defines an image, or an intermediate one, by a reduction at every point.
    pub fn folded(&mut self, part: &str, extents: Vec<Extent>, reduction: Reduction<'_>) -> Image {
        let Reduction { form, fold, domain, term, is_varied } = reduction;
        let is_ordered = fold.is_ordered(term.ty);
        if form == SumForm::Inline
            && let Some(result) = fold.inline(domain, &term.expr)
        {
            let result = if is_ordered && !self.dice.chance(0.5) { result.in_order() } else { result };
            let result = Term::new(result, term.ty, term.reach);
            let value = if is_varied { self.settled(result) } else { result };
            return self.define_part(part, extents, value);
        }
        let start = match is_varied && self.dice.chance(0.2) {
            true => self.scalar(term.ty),
            false => Term::new(fold.identity(term.ty).into(), term.ty, 0.0),
        };
        let args = variables(extents.len());
        let func = self.start(part, extents.len(), start.expr).over(domain, |own| {
            let next = fold.step(own.at(args.clone()), term.expr);
            own.set(args, next)
        });
        let func = self.marked(func, is_ordered);
        self.image(func, extents, vec![(term.reach + start.reach).min(type_reach(term.ty))])
    }

    /// The Func; if the order of its last update matters, half of them are marked as free of it.
    pub fn marked(&mut self, func: Func, is_ordered: bool) -> Func {
        if is_ordered && self.dice.chance(0.5) { func.reassociate() } else { func }
    }
}
