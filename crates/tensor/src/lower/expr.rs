//! Lowers expressions.

use std::collections::HashMap;

use warploom_lang::{Expr, Operand, Type, Value, clamp, max, min, select};

use super::Lowering;
use super::value::{Lowered, combined, compared, convert, float_met, in_type};
use crate::ast::{self, Binary, ExprKind, Name, Reduction, Statement, Unary};
use crate::builtins;
use crate::error::Mistake;
use crate::names::{Lets, Meaning};
use crate::ranges::Clamped;

/// The meaning of names in a statement.
pub(super) struct StatementScope<'a> {
    pub lets: &'a Lets<'a>,
    /// The values of the lets so far.
    pub known: Vec<Lowered>,
    pub indices: HashMap<&'a str, Expr>,
    pub clamped: &'a Clamped,
    pub statement: &'a Statement,
    /// Whether floats of 16 bits are computed in `f32`.
    pub widened: bool,
    /// In a reduction, the same statement over plain variables, for the Funcs of its gathers.
    pub plain: Option<&'a StatementScope<'a>>,
}

impl Lowering<'_> {
    /// An expression. Its names, ranks and types have been checked.
    pub(super) fn expr(&mut self, expr: &ast::Expr, scope: &StatementScope<'_>) -> Result<Lowered, Mistake> {
        Ok(match &expr.kind {
            ExprKind::Int(number) => Expr::from(i32::try_from(*number).unwrap_or(i32::MAX)).into(),
            ExprKind::Float(number) => Lowered::literal(*number),
            ExprKind::Name(name) => self.name(name, scope),
            ExprKind::Size(name, dimension) => {
                let shape = self.inferred.shapes.get(&name.text).and_then(|shape| shape.get(*dimension));
                match shape.map(|interval| interval.extent()) {
                    Some(extent) => self.formula(&extent, scope.statement)?.into(),
                    None => Expr::from(0).into(),
                }
            }
            ExprKind::Call(name, operands) => self.call(name, operands, expr, scope)?,
            ExprKind::Cast(scalar, operand) => scope.read(self.expr(operand, scope)?.at(scalar.lang())),
            ExprKind::Unary(Unary::Neg, operand) => self.expr(operand, scope)?.map(negative),
            ExprKind::Unary(Unary::Not, operand) => self.expr(operand, scope)?.map(|operand| !operand),
            ExprKind::Binary(op, operands) => {
                let left = self.expr(&operands[0], scope)?;
                let right = self.expr(&operands[1], scope)?;
                let apply = |left, right| binary(*op, left, right);
                match op.is_comparison() {
                    true => compared(&left, &right, apply),
                    false => combined(&left, &right, apply),
                }
            }
            ExprKind::Select(operands) => {
                let condition = self.expr(&operands[0], scope)?.alone();
                let one = self.expr(&operands[1], scope)?;
                let other = self.expr(&operands[2], scope)?;
                combined(&one, &other, |one, other| select(&condition, one, other))
            }
        })
    }

    fn name(&mut self, name: &Name, scope: &StatementScope<'_>) -> Lowered {
        match self.checked.names.meaning(scope.lets, &name.text) {
            Meaning::Let(number) => scope.known.get(number).cloned().unwrap_or(Expr::from(0).into()),
            Meaning::Size => self.symbol(&name.text).into(),
            Meaning::Tensor => scope.read(self.read(&name.text, Vec::new())),
            Meaning::Index | Meaning::Builtin => {
                scope.indices.get(name.text.as_str()).cloned().unwrap_or(Expr::from(0)).into()
            }
        }
    }

    fn call(
        &mut self,
        name: &Name,
        operands: &[ast::Expr],
        call: &ast::Expr,
        scope: &StatementScope<'_>,
    ) -> Result<Lowered, Mistake> {
        if self.checked.names.meaning(scope.lets, &name.text) == Meaning::Builtin {
            let mut values = Vec::new();
            for operand in operands {
                values.push(self.expr(operand, scope)?);
            }
            return Ok(in_type(float_met(&values), |ty| {
                let floats: Vec<Expr> = values.iter().map(|value| value.at(ty)).collect();
                builtins::apply(&name.text, &floats, ty)
            }));
        }
        let value = match self.gather(name, operands, call, scope)? {
            Some(gathered) => gathered,
            None => self.element(name, operands, call, scope)?,
        };
        Ok(scope.read(value))
    }

    /// The element of a tensor at these indices.
    pub(super) fn element(
        &mut self,
        name: &Name,
        operands: &[ast::Expr],
        call: &ast::Expr,
        scope: &StatementScope<'_>,
    ) -> Result<Expr, Mistake> {
        let mut indices = Vec::new();
        for (dimension, operand) in operands.iter().enumerate() {
            let index = self.expr(operand, scope)?.alone();
            let guarded = scope.clamped.contains(&(call.span.ends(), dimension));
            indices.push(match guarded || self.checked.names.loads(scope.lets, operand) {
                true => self.clamped(&index, &name.text, dimension, scope)?,
                false => narrow(&index),
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
        scope: &StatementScope<'_>,
    ) -> Result<Expr, Mistake> {
        let shape = self.inferred.shapes.get(tensor).and_then(|shape| shape.get(dimension));
        let Some(interval) = shape else { return Ok(narrow(index)) };
        let low = self.formula(&interval.low, scope.statement)?;
        let high = self.formula(&interval.high, scope.statement)?;
        if index.ty() == Some(Type::U32) {
            // A large index would be negative as an `i32`.
            return Ok(min(index, convert(high, Type::U32)).cast(Type::I32));
        }
        Ok(clamp(narrow(index), low, high))
    }
}

impl StatementScope<'_> {
    /// A value of a tensor or of a conversion, as the statement computes with it.
    fn read(&self, value: Expr) -> Lowered {
        let value = Lowered::Typed(value);
        if self.widened { value.widened() } else { value }
    }
}

/// An index of 32 bits. A 64-bit index saturates, so that an index outside stays outside.
fn narrow(index: &Expr) -> Expr {
    match index.ty().is_some_and(Type::is_wide) {
        true => index.saturating_cast(Type::I32),
        false => convert(index.clone(), Type::I32),
    }
}

fn negative(operand: Expr) -> Expr {
    let constant = operand.constant().and_then(|value| Value::from_number(value.ty(), -value.as_f64()));
    constant.map_or_else(|| -operand, Expr::from)
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

/// Whether a divisor can be negative. The language's remainder is positive even then, while the notation rounds down.
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
