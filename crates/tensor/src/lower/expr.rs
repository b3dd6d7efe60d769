//! Expressions.

use std::collections::HashMap;

use warploom_lang::{Expr, Operand, Type, Value, clamp, max, min, select};

use super::Lowering;
use crate::ast::{self, Binary, ExprKind, Name, Reduction, Statement, Unary};
use crate::builtins;
use crate::error::Mistake;
use crate::names::{Lets, Meaning};
use crate::ranges::Clamped;
use crate::types::meet;

/// What the names of a statement stand for.
pub(super) struct Scope<'a> {
    pub lets: &'a Lets<'a>,
    /// The values of the lets so far.
    pub known: Vec<Expr>,
    pub indices: HashMap<&'a str, Expr>,
    pub clamped: &'a Clamped,
    pub statement: &'a Statement,
    /// In a reduction, the same statement over plain variables, of which its gathers are Funcs.
    pub plain: Option<&'a Scope<'a>>,
}

impl Lowering<'_> {
    /// An expression. Its names, ranks and types have been checked.
    pub(super) fn expr(&mut self, expr: &ast::Expr, scope: &Scope<'_>) -> Result<Expr, Mistake> {
        Ok(match &expr.kind {
            ExprKind::Int(number) => Expr::from(i32::try_from(*number).unwrap_or(i32::MAX)),
            ExprKind::Float(number) => Expr::from(*number as f32),
            ExprKind::Name(name) => self.name(name, scope),
            ExprKind::Size(name, dimension) => {
                let shape = self.inferred.shapes.get(&name.text).and_then(|shape| shape.get(*dimension));
                match shape.map(|interval| interval.extent()) {
                    Some(extent) => self.formula(&extent, scope.statement)?,
                    None => Expr::from(0),
                }
            }
            ExprKind::Call(name, operands) => self.call(name, operands, expr, scope)?,
            ExprKind::Cast(scalar, operand) => {
                let operand = self.expr(operand, scope)?;
                let ty = scalar.lang().unwrap_or(Type::F32);
                convert(operand, ty)
            }
            ExprKind::Unary(Unary::Neg, operand) => negative(self.expr(operand, scope)?),
            ExprKind::Unary(Unary::Not, operand) => !self.expr(operand, scope)?,
            ExprKind::Binary(op, operands) => {
                let left = self.expr(&operands[0], scope)?;
                let right = self.expr(&operands[1], scope)?;
                let (left, right) = met(left, right);
                binary(*op, left, right)
            }
            ExprKind::Select(operands) => {
                let condition = self.expr(&operands[0], scope)?;
                let one = self.expr(&operands[1], scope)?;
                let other = self.expr(&operands[2], scope)?;
                let (one, other) = met(one, other);
                select(condition, one, other)
            }
        })
    }

    fn name(&mut self, name: &Name, scope: &Scope<'_>) -> Expr {
        match self.checked.names.meaning(scope.lets, &name.text) {
            Meaning::Let(number) => scope.known.get(number).cloned().unwrap_or(Expr::from(0)),
            Meaning::Size => self.symbol(&name.text),
            Meaning::Tensor => self.read(&name.text, Vec::new()),
            Meaning::Index | Meaning::Builtin => {
                scope.indices.get(name.text.as_str()).cloned().unwrap_or(Expr::from(0))
            }
        }
    }

    fn call(
        &mut self,
        name: &Name,
        operands: &[ast::Expr],
        call: &ast::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr, Mistake> {
        if self.checked.names.meaning(scope.lets, &name.text) == Meaning::Builtin {
            let mut floats = Vec::new();
            for operand in operands {
                floats.push(convert(self.expr(operand, scope)?, Type::F32));
            }
            return Ok(builtins::apply(&name.text, &floats));
        }
        match self.gather(name, operands, call, scope)? {
            Some(gathered) => Ok(gathered),
            None => self.element(name, operands, call, scope),
        }
    }

    /// The element of a tensor at these indices.
    pub(super) fn element(
        &mut self,
        name: &Name,
        operands: &[ast::Expr],
        call: &ast::Expr,
        scope: &Scope<'_>,
    ) -> Result<Expr, Mistake> {
        let mut indices = Vec::new();
        for (dimension, operand) in operands.iter().enumerate() {
            let index = self.expr(operand, scope)?;
            let guarded = scope.clamped.contains(&(call.span.ends(), dimension));
            indices.push(match guarded || self.checked.names.loads(scope.lets, operand) {
                true => self.clamped(&index, &name.text, dimension, scope)?,
                false => convert(index, Type::I32),
            });
        }
        Ok(self.read(&name.text, indices))
    }

    /// An index within the bounds of a dimension.
    fn clamped(
        &self,
        index: &Expr,
        tensor: &str,
        dimension: usize,
        scope: &Scope<'_>,
    ) -> Result<Expr, Mistake> {
        let shape = self.inferred.shapes.get(tensor).and_then(|shape| shape.get(dimension));
        let Some(interval) = shape else { return Ok(convert(index.clone(), Type::I32)) };
        let low = self.formula(&interval.low, scope.statement)?;
        let high = self.formula(&interval.high, scope.statement)?;
        if index.ty() == Some(Type::U32) {
            // A large one would be negative as an i32.
            return Ok(min(index, convert(high, Type::U32)).cast(Type::I32));
        }
        Ok(clamp(convert(index.clone(), Type::I32), low, high))
    }
}

/// An expression in another type. A constant is converted at once.
pub(super) fn convert(expr: Expr, ty: Type) -> Expr {
    let constant = expr.constant().filter(|_| ty != Type::Bool);
    match constant.and_then(|value| Value::from_number(ty, value.as_f64())) {
        Some(value) if expr.ty() != Some(ty) => Expr::from(value),
        _ => expr.cast(ty),
    }
}

fn negative(operand: Expr) -> Expr {
    let constant = operand.constant().and_then(|value| Value::from_number(value.ty(), -value.as_f64()));
    constant.map_or_else(|| -operand, Expr::from)
}

/// Two operands in the type where they meet.
fn met(left: Expr, right: Expr) -> (Expr, Expr) {
    let ty = left.ty().zip(right.ty()).and_then(|(left, right)| meet(left, right));
    match ty {
        Some(ty) => (convert(left, ty), convert(right, ty)),
        None => (left, right),
    }
}

fn binary(op: Binary, left: Expr, right: Expr) -> Expr {
    match op {
        Binary::Or => left | right,
        Binary::And => left & right,
        Binary::Lt => left.lt(right),
        Binary::Gt => left.gt(right),
        Binary::Le => left.le(right),
        Binary::Ge => left.ge(right),
        Binary::Eq => left.eq(right),
        Binary::Ne => left.ne(right),
        Binary::Add => left + right,
        Binary::Sub => left - right,
        Binary::Mul => left * right,
        Binary::Div => quotient(left, right),
        Binary::Mod => remainder(left, right),
        Binary::Min => min(left, right),
        Binary::Max => max(left, right),
    }
}

/// Whether a divisor can be negative. The language's remainder is then positive all the same, and
/// the notation rounds down.
fn may_be_negative(divisor: &Expr) -> bool {
    let signed = divisor.ty().is_some_and(|ty| ty.is_int() && ty.is_signed());
    signed && divisor.constant().and_then(Value::as_int).is_none_or(|constant| constant < 0)
}

fn quotient(left: Expr, right: Expr) -> Expr {
    if !may_be_negative(&right) {
        return left / right;
    }
    let (plain, rest) = (&left / &right, &left % &right);
    let inexact = right.lt(0) & rest.ne(0);
    select(inexact, &plain - 1, &plain)
}

fn remainder(left: Expr, right: Expr) -> Expr {
    if !may_be_negative(&right) {
        return left % right;
    }
    let rest = &left % &right;
    let inexact = right.lt(0) & rest.ne(0);
    select(inexact, &rest + &right, &rest)
}

/// An old value updated once.
pub(super) fn reduce(op: Reduction, old: Expr, value: Expr) -> Expr {
    match op {
        Reduction::Sum => old + value,
        Reduction::Product => old * value,
        Reduction::Min => min(old, value),
        Reduction::Max => max(old, value),
    }
}
