//! Derives [access maps](AccessMap) from index expressions.
//!
//! | expression | slope |
//! | --- | --- |
//! | a loop variable | 1 for that loop, 0 for the others |
//! | constants, Params, sizes | 0 |
//! | `a + b`, `a - b`, `-a` | sum, difference, negation |
//! | `a * k`, `k * a`, `a << k` for a constant `k` | multiplied |
//! | `a / k`, `a >> k` for a constant `k` | divided |
//! | `min`, `max` (`clamp`) with a value that no loop moves | slope of the moving side, clamped |
//! | `min`, `max` of two moving sides | known where both sides agree, clamped |
//! | `select` | known where both sides agree and the condition is known; clamped if the condition steps |
//! | `a < b`, `a <= b` | 0 where both are known, clamped: the value steps once |
//! | conversion between integers | unchanged; clamped if it may saturate or wrap |
//! | anything else: `%`, products, floats, loads | 0 where no operand moves, otherwise unknown |
//!
//! Values that a stage reads from its own Func can change between iterations, so an index computed from them
//! is unknown for every loop.

use ahash::AHashMap;
use smallvec::SmallVec;
use warploom_lang::affine::lcm;
use warploom_lang::ir::{Exprs, Node, NodeKind, Stage};
use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{ExprId, FuncId, Range, Type, Value};

use crate::dag::access::{AccessMap, Index, Slope, is_zero, product, rounded_period, settled, sum};
use crate::dag::{Loop, LoopKind};
use crate::rational::Rational;

/// How every expression of one stage moves with the stage's loops.
pub struct Derivatives<'a> {
    exprs: &'a Exprs,
    func: FuncId,
    loops: &'a [Loop],
    known: AHashMap<ExprId, ExprMotion>,
}

#[derive(Clone, Debug)]
struct ExprMotion {
    motion: Motion,
    /// No loop affects the value.
    still: bool,
    /// The value where every loop variable is 0, or `None` if it depends on a size, Param or load.
    origin: Option<Value>,
}

/// The part of an [`Index`] that is computed from the operands.
#[derive(Clone, Debug)]
struct Motion {
    slopes: SmallVec<[Slope; 4]>,
    period: i64,
    clamped: bool,
}

impl<'a> Derivatives<'a> {
    /// Computes the forms of all expressions of a stage of `func`.
    pub fn new(exprs: &'a Exprs, func: FuncId, stage: &Stage, loops: &'a [Loop]) -> Derivatives<'a> {
        let mut derivatives = Derivatives { exprs, func, loops, known: AHashMap::new() };
        for id in exprs.reachable(stage.roots()) {
            let form = derivatives.form(&exprs[id]);
            derivatives.known.insert(id, form);
        }
        derivatives
    }

    /// How an expression of the stage moves; unknown if it does not belong to the stage.
    pub fn index(&self, id: ExprId) -> Index {
        let Some(ExprMotion { motion, origin, .. }) = self.known.get(&id) else {
            return Index::unknown(self.loops.len());
        };
        let Motion { slopes, period, clamped } = motion.clone();
        let origin = origin.and_then(Value::as_int).map(|origin| Range::inclusive(origin, origin));
        Index { slopes, period, origin, clamped }
    }

    /// The map of an access with these indices.
    pub fn map(&self, indices: &[ExprId]) -> AccessMap {
        AccessMap::of_rows(self.loops.len(), indices.iter().map(|id| self.index(*id)).collect())
    }

    fn form(&self, node: &Node) -> ExprMotion {
        let args: SmallVec<[&ExprMotion; 4]> =
            node.args.iter().filter_map(|arg| self.known.get(arg)).collect();
        let fixed = || Motion::fixed(self.loops.len());
        let variable = |kind: LoopKind| ExprMotion {
            motion: self.variable(kind),
            still: false,
            origin: Some(Value::from(0i32)),
        };
        match node.kind {
            NodeKind::Var(d) => variable(LoopKind::Pure(d as usize)),
            NodeKind::RVar(r) => variable(LoopKind::Reduction(r as usize)),
            NodeKind::Param(_) | NodeKind::InputMin(..) | NodeKind::InputExtent(..) => {
                ExprMotion { motion: fixed(), still: true, origin: None }
            }
            NodeKind::Call(func, _) if func == self.func => {
                ExprMotion { motion: Motion::unknown(self.loops.len()), still: false, origin: None }
            }
            NodeKind::Load(_) | NodeKind::Table(_) | NodeKind::Call(..) => {
                let still = args.iter().all(|arg| arg.still);
                ExprMotion { motion: self.opaque(&args), still, origin: None }
            }
            NodeKind::Op(op) => {
                let still = args.iter().all(|arg| arg.still);
                let motion = if still { fixed() } else { self.operation(op, node, &args) };
                let values: Option<SmallVec<[Value; 3]>> = args.iter().map(|arg| arg.origin).collect();
                ExprMotion { motion, still, origin: values.map(|values| op.eval(&values)) }
            }
        }
    }

    fn variable(&self, kind: LoopKind) -> Motion {
        match self.loops.iter().position(|l| l.kind == kind) {
            Some(position) => {
                let Index { slopes, period, clamped, .. } = Index::variable(self.loops.len(), position);
                Motion { slopes, period, clamped }
            }
            None => Motion::unknown(self.loops.len()),
        }
    }

    /// The motion of a function of which only the operands are known.
    fn opaque(&self, args: &[&ExprMotion]) -> Motion {
        let slope = |column: usize| {
            let still = args.iter().all(|arg| is_zero(arg.motion.slopes[column]));
            still.then_some(Rational::ZERO)
        };
        let clamped = args.iter().any(|arg| arg.motion.clamped);
        Motion { slopes: (0..self.loops.len()).map(slope).collect(), period: 1, clamped }
    }

    fn operation(&self, op: Op, node: &Node, args: &[&ExprMotion]) -> Motion {
        let types: SmallVec<[Type; 3]> = node.args.iter().map(|arg| self.exprs[*arg].ty).collect();
        let floats = node.ty.is_float() || types.iter().any(|ty| ty.is_float());
        let moved = match (op, args) {
            _ if floats => None,
            (Op::Unary(UnaryOp::Neg), [a]) => a.motion.scaled(-1),
            (Op::Cast(to) | Op::SaturatingCast(to), [a]) if to.is_int() => {
                Some(if fits(types[0], to) { a.motion.clone() } else { a.motion.clone().held() })
            }
            (Op::Binary(op), [a, b]) => binary(op, node.ty, a, b),
            (Op::Select, [_, a, _]) if node.args[1] == node.args[2] => Some(a.motion.clone()),
            (Op::Select, [condition, a, b]) => a.motion.agreed(&b.motion).map(|sides| Motion {
                slopes: sides.slopes.iter().zip(&condition.motion.slopes).map(|(s, c)| c.and(*s)).collect(),
                clamped: sides.clamped || condition.motion.clamped,
                ..sides
            }),
            _ => None,
        };
        moved.unwrap_or_else(|| self.opaque(args))
    }
}

/// Whether type `to` can represent every value of type `from`.
fn fits(from: Type, to: Type) -> bool {
    match (from.int_range(), to.int_range()) {
        (Some((min, max)), Some((low, high))) => low <= min && max <= high,
        _ => false,
    }
}

/// The motion of an integer operation, or `None` if the operation does not preserve slopes.
fn binary(op: BinaryOp, ty: Type, a: &ExprMotion, b: &ExprMotion) -> Option<Motion> {
    let shift = |amount: i64| 1i64 << amount.rem_euclid(8 * ty.bytes() as i64);
    match op {
        BinaryOp::Add => a.motion.plus(&b.motion),
        BinaryOp::Sub => a.motion.plus(&b.motion.scaled(-1)?),
        BinaryOp::Mul => match (a.constant(), b.constant()) {
            (_, Some(factor)) => a.motion.scaled(factor),
            (Some(factor), _) => b.motion.scaled(factor),
            _ => None,
        },
        BinaryOp::Shl => a.motion.scaled(shift(b.constant()?)),
        BinaryOp::Div => a.motion.divided(b.constant()?),
        BinaryOp::Shr => a.motion.divided(shift(b.constant()?)),
        BinaryOp::Min | BinaryOp::Max => {
            let moving = if a.still {
                b.motion.clone()
            } else if b.still {
                a.motion.clone()
            } else {
                a.motion.agreed(&b.motion)?
            };
            Some(moving.held())
        }
        BinaryOp::Lt | BinaryOp::Le => {
            let slopes = a.motion.slopes.iter().zip(&b.motion.slopes);
            let slopes = slopes.map(|(a, b)| a.and(*b).and(Some(Rational::ZERO))).collect();
            let steps = [a, b].iter().any(|side| side.motion.clone().held().clamped);
            Some(Motion { slopes, period: 1, clamped: steps })
        }
        _ => None,
    }
}

impl ExprMotion {
    /// The value, if it is the same for all loop variables and sizes.
    fn constant(&self) -> Option<i64> {
        self.origin.filter(|_| self.still).and_then(Value::as_int)
    }
}

/// All operations return `None` if a number does not fit.
impl Motion {
    fn new(slopes: SmallVec<[Slope; 4]>, period: i64, clamped: bool) -> Motion {
        Motion { period: settled(period, &slopes), slopes, clamped }
    }

    fn fixed(loops: usize) -> Motion {
        Motion { slopes: SmallVec::from_elem(Some(Rational::ZERO), loops), period: 1, clamped: false }
    }

    fn unknown(loops: usize) -> Motion {
        Motion { slopes: SmallVec::from_elem(None, loops), ..Motion::fixed(0) }
    }

    /// Clamped by bounds. This only matters if some known slope is nonzero.
    fn held(self) -> Motion {
        let moves = self.slopes.iter().flatten().any(|slope| !slope.is_zero());
        Motion { clamped: self.clamped || moves, ..self }
    }

    fn plus(&self, other: &Motion) -> Option<Motion> {
        let period = lcm(self.period, other.period)?;
        let slopes = self.slopes.iter().zip(&other.slopes).map(|(a, b)| sum([*a, *b], period));
        Some(Motion::new(slopes.collect(), period, self.clamped || other.clamped))
    }

    fn scaled(&self, factor: i64) -> Option<Motion> {
        if factor == 0 {
            return Some(Motion::fixed(self.slopes.len()));
        }
        let slopes = self.slopes.iter().map(|slope| product(*slope, Some(Rational::integer(factor))));
        Some(Motion { slopes: slopes.collect(), ..self.clone() })
    }

    /// The Euclidean quotient, which is 0 if the divisor is zero.
    fn divided(&self, divisor: i64) -> Option<Motion> {
        if divisor <= 0 {
            return if divisor == 0 {
                self.scaled(0)
            } else {
                self.divided(divisor.checked_neg()?)?.scaled(-1)
            };
        }
        let factor = Some(Rational::new(1, divisor)?);
        let slopes = self.slopes.iter().map(|slope| product(*slope, factor));
        let period = rounded_period(self.period, self.slopes.iter().flatten(), divisor)?;
        Some(Motion::new(slopes.collect(), period, self.clamped))
    }

    /// The motion of either of two values: the slopes on which both agree.
    fn agreed(&self, other: &Motion) -> Option<Motion> {
        let slopes = self.slopes.iter().zip(&other.slopes).map(|(a, b)| if a == b { *a } else { None });
        let period = lcm(self.period, other.period)?;
        Some(Motion::new(slopes.collect(), period, self.clamped || other.clamped))
    }
}
