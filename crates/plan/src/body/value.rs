//! Evaluates expressions to linear forms that hold away from the edges of images.

use smallvec::SmallVec;
use warploom_lang::affine::interval::{self, Interval};
use warploom_lang::bounds::Span;
use warploom_lang::ir::{Node, NodeKind};
use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{Range, Regions, Type};

use crate::body::form::{Form, tag_of};

/// The number of points at which choices are evaluated. They lie inside the box of a stage's
/// variables, away from its ends.
const PROBES: usize = 4;

/// What is known about an expression as a function of a stage's variables.
#[derive(Clone, Debug)]
pub struct Known {
    pub form: Form,
    /// Its value at the probe points, unless it depends on image data.
    probes: Option<[i64; PROBES]>,
    /// Between which values it always lies, unless it depends on image data.
    range: Option<Interval>,
    /// Whether a choice in it, other than a clamp, is assumed to have the same outcome everywhere
    /// as at the probe points.
    pub supposed: bool,
}

impl Known {
    pub fn constant(vars: usize, value: i64) -> Known {
        Known {
            form: Form::constant(vars, value),
            probes: Some([value; PROBES]),
            range: Some(Interval::new(value, value)),
            supposed: false,
        }
    }

    /// The variable of a loop over a range; a constant if the range has one value.
    pub fn variable(vars: usize, number: usize, range: Range) -> Known {
        if range.extent == 1 {
            return Known::constant(vars, range.min);
        }
        let at = |quarters: i64| range.min + (range.extent - 1).max(0) * quarters / 4;
        let probes = [at(1), at(2), at(3), (at(2) + 1).min(range.last())];
        let all = Interval::new(range.min, range.last());
        Known { form: Form::variable(vars, number), probes: Some(probes), range: Some(all), supposed: false }
    }

    /// A value that depends on image data.
    pub fn loaded(vars: usize, moved_by: u64, tag: u64) -> Known {
        Known { form: Form::opaque(vars, moved_by, tag), probes: None, range: None, supposed: false }
    }

    /// The outcome of a condition, if it is the same at all probe points and depends on no other choice.
    pub fn usual_outcome(&self) -> Option<bool> {
        let [first, others @ ..] = self.probes.filter(|_| !self.supposed)?.map(|value| value != 0);
        others.iter().all(|other| *other == first).then_some(first)
    }

    /// The value of a node that is not an access, given its operands.
    pub fn of_node(node: &Node, args: &[&Known], vars: usize, regions: &Regions) -> Known {
        let number = |value: Option<i64>| match value {
            Some(value) => Known::constant(vars, value),
            None => Known::loaded(vars, 0, tag_of(node)),
        };
        match node.kind {
            NodeKind::InputMin(input, d) => number(Some(regions.facts.inputs[input][d as usize].min)),
            NodeKind::InputExtent(input, d) => number(Some(regions.facts.inputs[input][d as usize].extent)),
            NodeKind::Param(param) => match &regions.facts.params[param] {
                Span::Int(span) => number(span.singleton()),
                Span::Float(_) => number(None),
            },
            NodeKind::Op(Op::Const(value)) => number(value.as_int()),
            NodeKind::Op(op) => Known::operation(op, node, args, vars),
            _ => number(None),
        }
    }

    fn operation(op: Op, node: &Node, args: &[&Known], vars: usize) -> Known {
        if let Some(outcome) = decided(op, args) {
            return Known::constant(vars, i64::from(outcome));
        }
        let probes = probes_of(op, node, args);
        let fixed = args.iter().all(|arg| arg.form.as_constant().is_some());
        let form = match probes {
            Some([value, ..]) if fixed => Some(Form::constant(vars, value)),
            _ if node.ty.is_float() => None,
            _ => form_of(op, args),
        };
        let form = form.unwrap_or_else(|| {
            let forms: SmallVec<[&Form; 3]> = args.iter().map(|arg| &arg.form).collect();
            let moved_by = forms.iter().fold(0, |mask, form| mask | form.moved_by());
            Form::opaque(vars, moved_by, tag_of((op, node.ty, forms)))
        });
        let supposed = args.iter().any(|arg| arg.supposed) || !fixed && is_choice(op, args, &form);
        let range = range_of(op, args).filter(|_| !node.ty.is_float());
        Known { form, probes, range, supposed }
    }
}

/// The outcome of a comparison that is the same everywhere. No kernel contains it.
fn decided(op: Op, args: &[&Known]) -> Option<bool> {
    let (Op::Binary(op), [a, b]) = (op, args) else { return None };
    let (a, b) = (a.range?, b.range?);
    match op {
        BinaryOp::Lt if a.max < b.min => Some(true),
        BinaryOp::Lt if a.min >= b.max => Some(false),
        BinaryOp::Le if a.max <= b.min => Some(true),
        BinaryOp::Le if a.min > b.max => Some(false),
        _ => None,
    }
}

/// The range of an integer operation, if all operands have one.
fn range_of(op: Op, args: &[&Known]) -> Option<Interval> {
    let operands: Option<SmallVec<[(Type, Interval); 3]>> =
        args.iter().map(|arg| Some((Type::I32, arg.range?))).collect();
    let operands = operands?;
    match op {
        Op::Binary(BinaryOp::Min | BinaryOp::Max) => Some(interval::result(op, Type::I32, &operands)),
        _ => interval::unlimited(op, &operands),
    }
}

/// Whether an operation is a choice other than a clamp that takes effect only at the edges.
fn is_choice(op: Op, args: &[&Known], form: &Form) -> bool {
    match op {
        Op::Select | Op::Binary(BinaryOp::Mod) => true,
        Op::Binary(BinaryOp::Min | BinaryOp::Max) => {
            let bounded = args.iter().any(|arg| arg.form.as_constant().is_some());
            !bounded || form.as_constant().is_some()
        }
        _ => false,
    }
}

/// The values of an integer operation at the probe points, if all operands have values there.
fn probes_of(op: Op, node: &Node, args: &[&Known]) -> Option<[i64; PROBES]> {
    let lists: Option<SmallVec<[&[i64; PROBES]; 3]>> = args.iter().map(|arg| arg.probes.as_ref()).collect();
    let lists = lists.filter(|_| !node.ty.is_float())?;
    let mut values = [0; PROBES];
    for (position, value) in values.iter_mut().enumerate() {
        let at: SmallVec<[i64; 3]> = lists.iter().map(|list| list[position]).collect();
        *value = evaluated(op, &at)?;
    }
    Some(values)
}

fn evaluated(op: Op, args: &[i64]) -> Option<i64> {
    let truth = i64::from;
    Some(match (op, args) {
        (Op::Cast(_) | Op::SaturatingCast(_) | Op::Reinterpret(_), [a]) => *a,
        (Op::Select, [condition, a, b]) => *if *condition != 0 { a } else { b },
        (Op::Unary(UnaryOp::Neg), [a]) => -a,
        (Op::Unary(UnaryOp::Abs), [a]) => a.abs(),
        (Op::Unary(UnaryOp::Not), [a]) => truth(*a == 0),
        (Op::Binary(op), [a, b]) => match op {
            BinaryOp::Add => a.checked_add(*b)?,
            BinaryOp::Sub => a.checked_sub(*b)?,
            BinaryOp::Mul => a.checked_mul(*b)?,
            BinaryOp::Div => a.checked_div_euclid(*b).unwrap_or(0),
            BinaryOp::Mod => a.checked_rem_euclid(*b).unwrap_or(0),
            BinaryOp::Min => *a.min(b),
            BinaryOp::Max => *a.max(b),
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Shl => a.checked_shl(u32::try_from(*b).ok()?)?,
            BinaryOp::Shr => a.checked_shr(u32::try_from(*b).ok()?)?,
            BinaryOp::Eq => truth(a == b),
            BinaryOp::Ne => truth(a != b),
            BinaryOp::Lt => truth(a < b),
            BinaryOp::Le => truth(a <= b),
            BinaryOp::Absd => (a - b).abs(),
            _ => return None,
        },
        _ => return None,
    })
}

/// The form of an integer operation, if it has one. A choice with the same outcome at all probe
/// points is assumed to have it everywhere, so that clamps matter only at the edges.
fn form_of(op: Op, args: &[&Known]) -> Option<Form> {
    let choice = |first: fn(i64, i64) -> bool, a: &Known, b: &Known| {
        let (x, y) = (a.probes?, b.probes?);
        let mut falls = x.iter().zip(&y).map(|(x, y)| first(*x, *y));
        let fall = falls.next()?;
        falls.all(|other| other == fall).then(|| if fall { a.form.clone() } else { b.form.clone() })
    };
    match (op, args) {
        (Op::Cast(_) | Op::SaturatingCast(_) | Op::Reinterpret(_), [a]) if a.probes.is_some() => {
            Some(a.form.clone())
        }
        (Op::Unary(UnaryOp::Neg), [a]) => Some(a.form.scale(-1)),
        (Op::Select, [condition, a, b]) => {
            let conditions = condition.probes?;
            let holds = conditions[0] != 0;
            let alike = conditions.iter().all(|other| (*other != 0) == holds);
            alike.then(|| if holds { a.form.clone() } else { b.form.clone() })
        }
        (Op::Binary(op), [a, b]) => match op {
            BinaryOp::Add => Some(a.form.add(&b.form)),
            BinaryOp::Sub => Some(a.form.add(&b.form.scale(-1))),
            BinaryOp::Mul => match (a.form.as_constant(), b.form.as_constant()) {
                (_, Some(factor)) => Some(a.form.scale(factor)),
                (Some(factor), _) => Some(b.form.scale(factor)),
                _ => None,
            },
            BinaryOp::Div => {
                let divisor = b.form.as_constant().filter(|divisor| *divisor > 0)?;
                Some(a.form.floor_div(divisor))
            }
            BinaryOp::Shr => {
                let amount = b.form.as_constant().filter(|amount| (0..31).contains(amount))?;
                Some(a.form.floor_div(1 << amount))
            }
            BinaryOp::Shl => {
                let amount = b.form.as_constant().filter(|amount| (0..31).contains(amount))?;
                Some(a.form.scale(1 << amount))
            }
            BinaryOp::Mod => remainder(a, b.form.as_constant().filter(|divisor| *divisor > 0)?),
            BinaryOp::Min => choice(|a, b| a <= b, a, b),
            BinaryOp::Max => choice(|a, b| a >= b, a, b),
            _ => None,
        },
        _ => None,
    }
}

/// The remainder of a value that stays within one period.
fn remainder(a: &Known, divisor: i64) -> Option<Form> {
    if let Some(value) = a.form.as_constant() {
        return Some(Form::constant(a.form.coefs.len(), value.rem_euclid(divisor)));
    }
    let periods = a.probes?.map(|value| value.div_euclid(divisor));
    let alike = periods.iter().all(|period| *period == periods[0]);
    let before = Form::constant(a.form.coefs.len(), -periods[0] * divisor);
    alike.then(|| a.form.add(&before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_that_always_have_one_outcome_are_decided() {
        let outcome = |extent: i64, bound: i64| {
            let (outer, inner) =
                (Known::variable(2, 0, Range::new(0, 8)), Known::variable(2, 1, Range::new(0, extent)));
            let times = Known { range: outer.range.map(|range| range.times(128)), ..outer };
            let add = Op::Binary(BinaryOp::Add);
            let sum = Known { range: range_of(add, &[&times, &inner]), ..inner.clone() };
            decided(Op::Binary(BinaryOp::Lt), &[&sum, &Known::constant(2, bound)])
        };
        assert_eq!(outcome(128, 1024), Some(true), "the parts fill the domain");
        assert_eq!(outcome(128, 1000), None, "the last part has a tail");
        assert_eq!(outcome(128, 0), Some(false));
        let loaded = Known::loaded(2, 1, 7);
        assert_eq!(decided(Op::Binary(BinaryOp::Lt), &[&loaded, &Known::constant(2, 5)]), None);
    }
}
