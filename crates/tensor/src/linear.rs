//! Index expressions as linear forms over indices, with formulas of sizes as coefficients.

use std::collections::BTreeMap;

use crate::ast::{Binary, Expr, ExprKind, Unary};
use crate::formula::{Formula, Numbers};
use crate::names::{Lets, Meaning, Names};
use crate::types::Scalar;

/// Longer formulas are given up, so that no text makes them grow without limit.
pub(crate) const MAX_LENGTH: usize = 64;

/// A linear form over indices.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Linear {
    pub constant: Formula,
    pub terms: BTreeMap<String, Formula>,
}

/// The form of an index expression in range inference.
#[derive(Clone, Debug)]
pub(crate) enum IndexForm {
    Linear(Linear),
    /// A linear form divided by a positive number and rounded down.
    Floor(Linear, i64),
    /// Anything else.
    Opaque,
}

impl Linear {
    pub fn of(constant: Formula) -> Linear {
        Linear { constant, terms: BTreeMap::new() }
    }

    pub fn index(name: &str) -> Linear {
        Linear { constant: Formula::default(), terms: [(name.to_string(), Formula::number(1))].into() }
    }

    pub fn plus(&self, other: &Linear) -> Linear {
        let mut sum = Linear { constant: self.constant.plus(&other.constant), terms: self.terms.clone() };
        for (name, factor) in &other.terms {
            let entry = sum.terms.entry(name.clone()).or_default();
            *entry = entry.plus(factor);
            if entry.constant() == Some(0) {
                sum.terms.remove(name);
            }
        }
        sum
    }

    pub fn times(&self, factor: &Formula) -> Linear {
        let terms = self.terms.iter().map(|(name, own)| (name.clone(), own.times(factor)));
        let terms = terms.filter(|(_, own)| own.constant() != Some(0)).collect();
        Linear { constant: self.constant.times(factor), terms }
    }

    pub fn scaled(&self, factor: i64) -> Linear {
        self.times(&Formula::number(factor))
    }

    pub fn minus(&self, other: &Linear) -> Linear {
        self.plus(&other.scaled(-1))
    }

    pub fn add(&self, number: i64) -> Linear {
        Linear { constant: self.constant.add(number), terms: self.terms.clone() }
    }

    fn length(&self) -> usize {
        self.constant.length() + self.terms.values().map(Formula::length).sum::<usize>()
    }

    fn short(self) -> IndexForm {
        if self.length() > MAX_LENGTH { IndexForm::Opaque } else { IndexForm::Linear(self) }
    }
}

/// Finds the forms of the expressions of one statement.
pub(crate) struct Forms<'a> {
    pub names: &'a Names,
    pub lets: &'a Lets<'a>,
    /// Whether a name is a scalar of type `int32` or `int64`. Narrower scalars would wrap on their own.
    pub is_integer: &'a dyn Fn(&str) -> bool,
    /// The size of a dimension of a tensor that has a value.
    pub size: &'a dyn Fn(&str, usize) -> Option<Formula>,
    /// The forms of the lets.
    known: Vec<IndexForm>,
}

impl<'a> Forms<'a> {
    pub fn new(
        names: &'a Names,
        lets: &'a Lets<'a>,
        is_integer: &'a dyn Fn(&str) -> bool,
        size: &'a dyn Fn(&str, usize) -> Option<Formula>,
    ) -> Forms<'a> {
        let mut forms = Forms { names, lets, is_integer, size, known: Vec::new() };
        for value in &lets.values {
            let form = forms.of(value);
            forms.known.push(form);
        }
        forms
    }

    /// The form of an expression.
    pub fn of(&self, expr: &Expr) -> IndexForm {
        match &expr.kind {
            ExprKind::Int(number) => IndexForm::Linear(Linear::of(Formula::number(*number))),
            ExprKind::Name(name) => match self.names.meaning(self.lets, &name.text) {
                Meaning::Let(number) => self.known.get(number).cloned().unwrap_or(IndexForm::Opaque),
                Meaning::Index => IndexForm::Linear(Linear::index(&name.text)),
                Meaning::Size => IndexForm::Linear(Linear::of(Formula::symbol(&name.text))),
                Meaning::Tensor if (self.is_integer)(&name.text) => {
                    IndexForm::Linear(Linear::of(Formula::symbol(&name.text)))
                }
                _ => IndexForm::Opaque,
            },
            ExprKind::Size(name, dimension) => match (self.size)(&name.text, *dimension) {
                Some(size) => IndexForm::Linear(Linear::of(size)),
                None => IndexForm::Opaque,
            },
            ExprKind::Unary(Unary::Neg, operand) => match self.of(operand) {
                IndexForm::Linear(form) => IndexForm::Linear(form.scaled(-1)),
                _ => IndexForm::Opaque,
            },
            ExprKind::Cast(Scalar::I32 | Scalar::I64, operand) => self.of(operand),
            ExprKind::Binary(op, operands) => match (self.of(&operands[0]), self.of(&operands[1])) {
                (IndexForm::Linear(left), IndexForm::Linear(right)) => combined(*op, &left, &right),
                _ => IndexForm::Opaque,
            },
            _ => IndexForm::Opaque,
        }
    }

    /// The formula of an expression without indices.
    pub fn formula(&self, expr: &Expr) -> Option<Formula> {
        match self.of(expr) {
            IndexForm::Linear(form) if form.terms.is_empty() => Some(form.constant),
            _ => None,
        }
    }

    /// The linear form of a comparison's operand.
    pub fn linear(&self, expr: &Expr) -> Option<Linear> {
        match self.of(expr) {
            IndexForm::Linear(form) => Some(form),
            _ => None,
        }
    }
}

/// An operator applied to two linear forms.
fn combined(op: Binary, left: &Linear, right: &Linear) -> IndexForm {
    let fixed = left.terms.is_empty() && right.terms.is_empty();
    let divisor = right.constant.constant().filter(|divisor| right.terms.is_empty() && *divisor > 0);
    let divisor = divisor.and_then(|divisor| i64::try_from(divisor).ok());
    let quotient = |divisor| left.constant.floor_div(&Formula::number(divisor));
    match (op, divisor) {
        (Binary::Add, _) => left.plus(right).short(),
        (Binary::Sub, _) => left.minus(right).short(),
        (Binary::Mul, _) if left.length() * right.length() > MAX_LENGTH => IndexForm::Opaque,
        (Binary::Mul, _) if right.terms.is_empty() => left.times(&right.constant).short(),
        (Binary::Mul, _) if left.terms.is_empty() => right.times(&left.constant).short(),
        (Binary::Div, Some(divisor)) if fixed => Linear::of(quotient(divisor)).short(),
        (Binary::Div, Some(divisor)) => IndexForm::Floor(left.clone(), divisor),
        (Binary::Mod, Some(divisor)) if fixed => {
            Linear::of(left.constant.minus(&quotient(divisor).scaled(divisor))).short()
        }
        (Binary::Min, _) if fixed => Linear::of(left.constant.smaller(&right.constant)).short(),
        (Binary::Max, _) if fixed => Linear::of(left.constant.larger(&right.constant)).short(),
        _ => IndexForm::Opaque,
    }
}

/// Whether an expression is known to be true or false in some place.
pub(crate) type Guarded<'a> = (&'a Expr, bool);

impl<'a> Forms<'a> {
    /// Adds the forms that are at least 0 where a condition has a known value.
    pub fn facts(&self, (condition, holds): Guarded<'a>, facts: &mut Vec<Linear>) {
        let mut open = vec![(condition, holds)];
        while let Some((condition, holds)) = open.pop() {
            match &condition.kind {
                ExprKind::Unary(Unary::Not, operand) => open.push((operand, !holds)),
                ExprKind::Binary(Binary::And, operands) if holds => {
                    open.extend(operands.iter().map(|operand| (operand, true)));
                }
                ExprKind::Binary(Binary::Or, operands) if !holds => {
                    open.extend(operands.iter().map(|operand| (operand, false)));
                }
                ExprKind::Binary(op, operands) if op.is_comparison() => {
                    if let (Some(left), Some(right)) = (self.linear(&operands[0]), self.linear(&operands[1]))
                    {
                        compare(*op, holds, &left, &right, facts);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Adds the forms that a comparison makes at least 0.
fn compare(op: Binary, holds: bool, left: &Linear, right: &Linear, facts: &mut Vec<Linear>) {
    let below = || right.minus(left);
    let above = || left.minus(right);
    match (op, holds) {
        (Binary::Lt, true) | (Binary::Ge, false) => facts.push(below().add(-1)),
        (Binary::Le, true) | (Binary::Gt, false) => facts.push(below()),
        (Binary::Gt, true) | (Binary::Le, false) => facts.push(above().add(-1)),
        (Binary::Ge, true) | (Binary::Lt, false) => facts.push(above()),
        (Binary::Eq, true) | (Binary::Ne, false) => facts.extend([below(), above()]),
        _ => {}
    }
}

/// The smallest and the largest value of an expression without reads, by interval arithmetic.
pub(crate) fn interval(
    forms: &Forms<'_>,
    expr: &Expr,
    numbers: &Numbers,
    indices: &BTreeMap<String, (i64, i64)>,
    lets: &[Option<(i64, i64)>],
) -> Option<(i64, i64)> {
    let of = |expr: &Expr| interval(forms, expr, numbers, indices, lets);
    let within = |(low, high): (i64, i64)| (low > -(1 << 40) && high < 1 << 40).then_some((low, high));
    match &expr.kind {
        ExprKind::Int(number) => Some((*number, *number)),
        ExprKind::Name(name) => match forms.names.meaning(forms.lets, &name.text) {
            Meaning::Let(number) => lets.get(number).copied().flatten(),
            Meaning::Index => indices.get(&name.text).copied(),
            _ => forms.formula(expr)?.at(numbers).map(|value| (value, value)),
        },
        ExprKind::Size(..) => forms.formula(expr)?.at(numbers).map(|value| (value, value)),
        ExprKind::Unary(Unary::Neg, operand) => of(operand).map(|(low, high)| (-high, -low)),
        ExprKind::Cast(Scalar::I32, operand) => of(operand),
        ExprKind::Select(operands) => {
            let (a, b) = (of(&operands[1])?, of(&operands[2])?);
            Some((a.0.min(b.0), a.1.max(b.1)))
        }
        ExprKind::Binary(op, operands) => {
            let (a, b) = (of(&operands[0])?, of(&operands[1])?);
            match op {
                Binary::Add => within((a.0 + b.0, a.1 + b.1)),
                Binary::Sub => within((a.0 - b.1, a.1 - b.0)),
                Binary::Mul => {
                    let corner = |x: i64, y: i64| x.checked_mul(y);
                    let all = [corner(a.0, b.0)?, corner(a.0, b.1)?, corner(a.1, b.0)?, corner(a.1, b.1)?];
                    within((all.into_iter().min()?, all.into_iter().max()?))
                }
                Binary::Min => Some((a.0.min(b.0), a.1.min(b.1))),
                Binary::Max => Some((a.0.max(b.0), a.1.max(b.1))),
                Binary::Div if b.0 == b.1 && b.0 > 0 => Some((a.0.div_euclid(b.0), a.1.div_euclid(b.0))),
                Binary::Mod if b.0 > 0 && a.0 >= 0 && a.1 < b.0 => Some(a),
                Binary::Mod if b.0 > 0 => Some((0, b.1 - 1)),
                _ => None,
            }
        }
        _ => None,
    }
}
