//! The expressions that users write.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::{Diagnostic, Fault};
use crate::func::Func;
use crate::input::{Input, Param};
use crate::names::kept;
use crate::op::{BinaryOp, Op, TypeFault, UnaryOp};
use crate::rdom::RVar;
use crate::scalar::{Scalar, bf16, f16};
use crate::table::Table;
use crate::types::{Type, Value};

/// The maximum nesting depth of an expression, so that no recursive walk exhausts the stack.
pub const MAX_DEPTH: u32 = 1000;

/// A dimension of a Func. Two `Var`s with the same name are the same variable.
///
/// ```
/// use warploom_lang::Var;
/// let axes: Vec<Var> = (0..3).map(|i| Var::new(format!("x{i}"))).collect();
/// assert_eq!(axes[2].name(), Var::new("x2").name());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Var(&'static str);

impl Var {
    /// The variable with this name. The program keeps one copy of each name until it ends.
    pub fn new(name: impl AsRef<str>) -> Var {
        Var(kept(name.as_ref()))
    }

    /// The variable with this name, for `const` items.
    pub const fn literal(name: &'static str) -> Var {
        Var(name)
    }

    /// The name, as listings and schedules show it.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// Makes variables with the names of the identifiers given.
///
/// ```
/// use warploom_lang::{Var, vars};
/// let (x, y) = vars!(x, y);
/// assert_eq!((x.name(), y.name()), ("x", "y"));
/// ```
#[macro_export]
macro_rules! vars {
    ($name:ident) => { $crate::Var::literal(stringify!($name)) };
    ($($name:ident),+ $(,)?) => { ($($crate::Var::literal(stringify!($name)),)+) };
}

/// A scalar expression over variables, parameters and accesses. Cheap to clone.
///
/// Operators cannot fail in Rust, so a mistake makes the expression *faulty*. Everything built from
/// it is faulty too, and [`Pipeline::new`](crate::Pipeline::new) reports the mistake with its
/// source location.
#[derive(Clone)]
pub struct Expr(Arc<Result<Term, Diagnostic>>);

/// Shows the node without its operands: a fully expanded expression can be too long to print.
impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.term() {
            Ok(term) => write!(f, "Expr({:?}: {})", term.kind, term.ty),
            Err(diagnostic) => write!(f, "Expr({diagnostic:?})"),
        }
    }
}

/// One node of a well-typed expression.
#[derive(Debug)]
pub(crate) struct Term {
    pub kind: TermKind,
    pub ty: Type,
    pub args: SmallVec<[Expr; 3]>,
    depth: u32,
}

impl Term {
    /// Moves all expressions that only this term owns into `others`, including those of the Func it
    /// calls.
    fn give_up(&mut self, others: &mut Vec<Expr>) {
        others.extend(self.args.drain(..));
        if let TermKind::Call(func, _) = std::mem::replace(&mut self.kind, TermKind::Itself(0)) {
            func.give_up(others);
        }
    }
}

/// Drops operands iteratively: recursion could exhaust the stack on a long pipeline.
impl Drop for Term {
    fn drop(&mut self) {
        if self.args.is_empty() && !matches!(self.kind, TermKind::Call(..)) {
            return;
        }
        let mut open = Vec::new();
        self.give_up(&mut open);
        while let Some(expr) = open.pop() {
            if let Some(Ok(mut term)) = Arc::into_inner(expr.0) {
                term.give_up(&mut open);
            }
        }
    }
}

/// The operation or access that a [`Term`] performs.
#[derive(Clone, Debug)]
pub(crate) enum TermKind {
    Var(Var),
    RVar(RVar),
    Param(Param),
    InputMin(Input, usize),
    InputExtent(Input, usize),
    Load(Input),
    Table(Table),
    Call(Func, usize),
    /// A self-reference in an update: the value with this number.
    Itself(usize),
    Op(Op),
}

impl Expr {
    pub(crate) fn faulty(diagnostic: Diagnostic) -> Expr {
        Expr(Arc::new(Err(diagnostic)))
    }

    /// A node, or the first fault among its arguments.
    #[track_caller]
    pub(crate) fn node(kind: TermKind, ty: Type, args: impl IntoIterator<Item = Expr>) -> Expr {
        let args: SmallVec<[Expr; 3]> = args.into_iter().collect();
        let mut depth = 0;
        for arg in &args {
            match arg.term() {
                Ok(term) => depth = depth.max(term.depth + 1),
                Err(_) => return arg.clone(),
            }
        }
        if depth > MAX_DEPTH {
            return Expr::faulty(Diagnostic::at(Fault::TooDeep { limit: MAX_DEPTH }, Location::caller()));
        }
        Expr(Arc::new(Ok(Term { kind, ty, args, depth })))
    }

    pub(crate) fn term(&self) -> Result<&Term, &Diagnostic> {
        self.0.as_ref().as_ref()
    }

    /// The identity of the shared node.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The type; `None` if the expression is faulty.
    pub fn ty(&self) -> Option<Type> {
        self.term().ok().map(|term| term.ty)
    }

    /// The value if this is a constant, otherwise `None`.
    pub fn constant(&self) -> Option<Value> {
        match self.term() {
            Ok(Term { kind: TermKind::Op(Op::Const(value)), .. }) => Some(*value),
            _ => None,
        }
    }

    /// Applies an operation. An `i32` constant, or an `f32` constant that is exact in the other
    /// operand's type, takes that type.
    #[track_caller]
    pub(crate) fn apply(op: Op, mut operands: Vec<Expr>) -> Expr {
        if let Some(first) = operands.iter().find(|operand| operand.term().is_err()) {
            return first.clone();
        }
        let matched = match op {
            Op::Binary(_) => 0,
            Op::Select => 1,
            _ => operands.len(),
        };
        if let Err(fault) = match_types(&mut operands[matched..]) {
            return Expr::faulty(Diagnostic::at(fault, Location::caller()));
        }
        let types: Vec<Type> = operands.iter().filter_map(Expr::ty).collect();
        match op.result_type(&types) {
            Ok(ty) => Expr::node(TermKind::Op(op), ty, operands),
            Err(type_fault) => {
                let constant = float_constant(op, &operands[matched..]);
                let fault = constant.unwrap_or_else(|| explain(op, type_fault));
                Expr::faulty(Diagnostic::at(fault, Location::caller()))
            }
        }
    }

    #[track_caller]
    pub(crate) fn unary(op: UnaryOp, a: impl Into<Expr>) -> Expr {
        Expr::apply(Op::Unary(op), vec![a.into()])
    }

    #[track_caller]
    pub(crate) fn binary(op: BinaryOp, a: impl Into<Expr>, b: impl Into<Expr>) -> Expr {
        Expr::apply(Op::Binary(op), vec![a.into(), b.into()])
    }
}

/// Converts a constant to the type of the other operand, as [`adapt`] does.
fn match_types(operands: &mut [Expr]) -> Result<(), Fault> {
    let [a, b] = operands else { return Ok(()) };
    match (a.ty(), b.ty()) {
        (Some(left), Some(right)) if left != right => {
            if let Some(adapted) = adapt(b, left)? {
                *b = adapted;
            } else if let Some(adapted) = adapt(a, right)? {
                *a = adapted;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Converts an `i32` constant to a constant of type `ty`, or an `f32` constant that another float type
/// has too; `None` for any other expression.
pub(crate) fn adapt(expr: &Expr, ty: Type) -> Result<Option<Expr>, Fault> {
    if let Some(constant) = expr.constant().and_then(Value::get::<f32>) {
        return Ok(Value::exact_float(ty, constant.into()).map(Expr::from));
    }
    match expr.constant().and_then(Value::get::<i32>) {
        Some(_) if ty == Type::Bool => Ok(None),
        Some(constant) => {
            let constant = i64::from(constant);
            Value::from_int(ty, constant)
                .map(|value| Some(Expr::from(value)))
                .ok_or(Fault::Constant { constant, ty })
        }
        None => Ok(None),
    }
}

/// The fault for a float constant beside an operand of another float type.
fn float_constant(op: Op, operands: &[Expr]) -> Option<Fault> {
    let [a, b] = operands else { return None };
    let is_float = |expr: &Expr| expr.ty().is_some_and(Type::is_float);
    let fault = |constant: &Expr, other: &Expr| {
        let (constant, ty) = (constant.constant()?, other.ty()?);
        (constant.ty() != ty).then_some(Fault::FloatConstant { operation: op.name(), constant, ty })
    };
    if is_float(a) && is_float(b) { fault(b, a).or_else(|| fault(a, b)) } else { None }
}

/// The fault for an operation whose operands do not fit.
pub(crate) fn explain(op: Op, fault: TypeFault) -> Fault {
    match fault {
        TypeFault::Differ(left, right) => Fault::Types { operation: op.name(), left, right },
        TypeFault::Unsupported(ty) if op == Op::Select => Fault::Condition { ty },
        TypeFault::Unsupported(ty) => Fault::Unsupported { operation: op.name(), ty },
        TypeFault::Count(got) => {
            Fault::Malformed { what: format!("`{}` takes {} operands, not {got}", op.name(), op.operands()) }
        }
    }
}

impl From<Value> for Expr {
    fn from(value: Value) -> Expr {
        Expr::node(TermKind::Op(Op::Const(value)), value.ty(), [])
    }
}

macro_rules! constants {
    ($($t:ty)*) => {$(
        impl From<$t> for Expr {
            fn from(value: $t) -> Expr {
                Expr::from(Value::from(value))
            }
        }
    )*};
}
// Not for `f64`: a literal such as 0.5 would then no longer be an `f32`.
constants! { bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f16 bf16 }

/// A constant of any type. Without a suffix, a literal with a decimal point is an `f64` here.
///
/// ```
/// use warploom_lang::{Input, Type, constant, vars};
/// let x = vars!(x);
/// let input = Input::new("input", Type::F64, 1);
/// assert_eq!((input.at(x) * constant(0.1)).ty(), Some(Type::F64));
/// ```
pub fn constant<T: Scalar>(value: T) -> Expr {
    Expr::from(Value::from(value))
}

impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Expr {
        expr.clone()
    }
}

impl From<Var> for Expr {
    fn from(var: Var) -> Expr {
        Expr::node(TermKind::Var(var), Type::I32, [])
    }
}

impl From<RVar> for Expr {
    fn from(var: RVar) -> Expr {
        Expr::node(TermKind::RVar(var), Type::I32, [])
    }
}

impl From<&Param> for Expr {
    fn from(param: &Param) -> Expr {
        Expr::node(TermKind::Param(param.clone()), param.ty(), [])
    }
}

/// Comparisons and conversions shared by expressions, variables and parameters.
///
/// ```
/// use warploom_lang::{Operand, Type, vars};
/// let x = vars!(x);
/// assert_eq!(x.lt(3).ty(), Some(Type::Bool));
/// assert_eq!((x.f32() * 0.5).ty(), Some(Type::F32));
/// ```
pub trait Operand {
    /// The operand as an expression.
    fn expr(&self) -> Expr;

    /// `self < other`
    #[track_caller]
    fn lt(&self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Lt, self.expr(), other)
    }
    /// `self <= other`
    #[track_caller]
    fn le(&self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Le, self.expr(), other)
    }
    /// `self > other`
    #[track_caller]
    fn gt(&self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Lt, other, self.expr())
    }
    /// `self >= other`
    #[track_caller]
    fn ge(&self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Le, other, self.expr())
    }
    /// `self == other`
    #[track_caller]
    fn eq(&self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Eq, self.expr(), other)
    }
    /// `self != other`
    #[track_caller]
    fn ne(&self, other: impl Into<Expr>) -> Expr {
        Expr::binary(BinaryOp::Ne, self.expr(), other)
    }

    /// Converts to `ty`: integers wrap, floats truncate toward zero and saturate, NaN becomes 0.
    #[track_caller]
    fn cast(&self, ty: Type) -> Expr {
        let expr = self.expr();
        if expr.ty() == Some(ty) { expr } else { Expr::apply(Op::Cast(ty), vec![expr]) }
    }
    /// Converts to `ty`, clamping to its range.
    #[track_caller]
    fn saturating_cast(&self, ty: Type) -> Expr {
        let expr = self.expr();
        if expr.ty() == Some(ty) { expr } else { Expr::apply(Op::SaturatingCast(ty), vec![expr]) }
    }
    /// Reinterprets the bits as `ty`, which must have the same width.
    #[track_caller]
    fn reinterpret(&self, ty: Type) -> Expr {
        Expr::apply(Op::Reinterpret(ty), vec![self.expr()])
    }
    /// Converts to `f32`.
    #[track_caller]
    fn f32(&self) -> Expr {
        self.cast(Type::F32)
    }
    /// Converts to `f16`.
    #[track_caller]
    fn f16(&self) -> Expr {
        self.cast(Type::F16)
    }
    /// Converts to `bf16`.
    #[track_caller]
    fn bf16(&self) -> Expr {
        self.cast(Type::BF16)
    }
    /// Converts to `f64`.
    #[track_caller]
    fn f64(&self) -> Expr {
        self.cast(Type::F64)
    }
    /// Converts to `i64`.
    #[track_caller]
    fn i64(&self) -> Expr {
        self.cast(Type::I64)
    }
    /// Converts to `u64`.
    #[track_caller]
    fn u64(&self) -> Expr {
        self.cast(Type::U64)
    }
    /// Converts to `i32`.
    #[track_caller]
    fn i32(&self) -> Expr {
        self.cast(Type::I32)
    }
    /// Converts to `i16`.
    #[track_caller]
    fn i16(&self) -> Expr {
        self.cast(Type::I16)
    }
    /// Converts to `u8`.
    #[track_caller]
    fn u8(&self) -> Expr {
        self.cast(Type::U8)
    }
    /// Converts to `u16`.
    #[track_caller]
    fn u16(&self) -> Expr {
        self.cast(Type::U16)
    }
    /// Converts to `u32`.
    #[track_caller]
    fn u32(&self) -> Expr {
        self.cast(Type::U32)
    }
}

impl Operand for Expr {
    fn expr(&self) -> Expr {
        self.clone()
    }
}

macro_rules! operands {
    ($($t:ty)*) => {$(
        impl Operand for $t {
            fn expr(&self) -> Expr {
                Expr::from(*self)
            }
        }
    )*};
}
operands! { Var RVar }

impl Operand for Param {
    fn expr(&self) -> Expr {
        Expr::from(self)
    }
}
