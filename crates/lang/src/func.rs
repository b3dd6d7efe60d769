//! Funcs as users define them.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::error::{Diagnostic, Fault};
use crate::expr::{Expr, Operand, TermKind, Var, adapt};
use crate::functions;
use crate::input::Param;
use crate::rdom::{RDom, RVar};
use crate::scalar::{bf16, f16};
use crate::types::{Type, Value};

/// A pure function over an infinite integer grid, with any number of updates.
///
/// A `Func` is immutable: [`Func::update`] and [`Func::over`] return a Func with one more stage.
/// See [`func`] for how to define one.
#[derive(Clone)]
pub struct Func(Arc<FuncData>);

impl fmt::Debug for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Func({})", self.label())
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FuncData {
    pub name: FuncName,
    pub args: Vec<Var>,
    pub types: Vec<Type>,
    pub stages: Vec<Definition>,
    /// Whether it is a boundary condition, which can be read at any point.
    pub is_boundary: bool,
    /// The dimensions from the fastest to the slowest in memory, if that is not their own order.
    pub stored: Option<Vec<usize>>,
}

/// A Func's name, or how to derive it from where the Func is used.
#[derive(Clone, Debug)]
pub(crate) enum FuncName {
    Given(String),
    /// A boundary condition of a named source: `input.repeat_edge`.
    Of(String, &'static str),
    /// A helper of the first Func that calls it: `blur.sum0`.
    Inside(&'static str),
}

/// One stage: a pure definition or an update.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    pub indices: Vec<Expr>,
    /// Empty for an undefined start.
    pub values: Vec<Expr>,
    pub domain: Option<RDom>,
    pub reassociate: bool,
    pub place: &'static Location<'static>,
}

/// Defines a Func by its value at a point.
///
/// ```
/// use warploom_lang::*;
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let blur = func("blur", (x, y), (input.at((x, y)) + input.at((x + 1, y))) / 2.0);
///
/// // A reduction: a start value, then an update over a domain.
/// let r = rdom([(0, 16)]);
/// let total = func("total", y, 0.0).over(&r, |f| f.add(y, blur.at((r.x, y))));
/// assert!(Pipeline::new("totals", [total]).is_ok());
/// ```
#[track_caller]
pub fn func(name: impl Into<String>, args: impl Arguments, values: impl Values) -> Func {
    Func::define(FuncName::Given(name.into()), args.into_vars(), values.into_start(), Location::caller())
}

/// A start without values: points have no value until an update writes one. Used to start a scan.
///
/// ```
/// use warploom_lang::*;
/// let x = vars!(x);
/// let r = rdom([(1, 9)]);
/// let steps = func("steps", x, undef(Type::I32))
///     .update(|f| f.set(0, 1))
///     .over(&r, |f| f.set(r.x, f.at(r.x - 1) * 2));
/// # assert!(Pipeline::new("p", [steps]).is_ok());
/// ```
pub fn undef(ty: Type) -> Undefined {
    Undefined(vec![ty])
}

/// The value types of a start without values. See [`undef`].
#[derive(Clone, Debug)]
pub struct Undefined(pub Vec<Type>);

impl Func {
    pub(crate) fn define(
        name: FuncName,
        args: Vec<Var>,
        start: Start,
        place: &'static Location<'static>,
    ) -> Func {
        let (types, values) = match start {
            // A faulty value has no type. The fault is reported before the type matters.
            Start::Values(values) => {
                (values.iter().map(|value| value.ty().unwrap_or(Type::I32)).collect(), values)
            }
            Start::Undefined(types) => (types, Vec::new()),
        };
        let indices = args.iter().map(|&arg| Expr::from(arg)).collect();
        let stages = vec![Definition { indices, values, domain: None, reassociate: false, place }];
        Func(Arc::new(FuncData { name, args, types, stages, is_boundary: false, stored: None }))
    }

    /// The same Func, marked as a boundary condition.
    pub(crate) fn into_boundary(self) -> Func {
        let mut data = Arc::unwrap_or_clone(self.0);
        data.is_boundary = true;
        Func(Arc::new(data))
    }

    /// The same Func under another name.
    #[must_use]
    pub fn named(&self, name: impl Into<String>) -> Func {
        let mut data = FuncData::clone(&self.0);
        data.name = FuncName::Given(name.into());
        Func(Arc::new(data))
    }

    /// Adds an update without a reduction domain. It runs once per point of the pure variables on
    /// its left-hand side.
    #[track_caller]
    #[must_use]
    pub fn update(self, update: impl FnOnce(&Itself) -> Update) -> Func {
        self.with_stage(None, update, Location::caller())
    }

    /// Adds an update that runs for every point of `domain`, in reduction order.
    #[track_caller]
    #[must_use]
    pub fn over(self, domain: &RDom, update: impl FnOnce(&Itself) -> Update) -> Func {
        self.with_stage(Some(domain.clone()), update, Location::caller())
    }

    /// Allows a schedule to compute the last update in another order, as if numbers were real: sums
    /// and products of floats are then split over threads, and linear recurrences over chunks.
    /// Inline reductions with [`sum`](crate::sum) and [`product`](crate::product) allow it from the start.
    ///
    /// The result still has the same bits on every run under one schedule, but not under every
    /// schedule. Integers, `min` and `max` give the same bits in any order and need no mark.
    ///
    /// ```
    /// use warploom_lang::*;
    /// let image = Input::f32("image", 2);
    /// let r = rdom([(0, image.extent(0)), (0, image.extent(1))]);
    /// let total = func("total", (), 0.0).over(&r, |f| f.add((), image.at((r.x, r.y)))).reassociate();
    /// assert!(Pipeline::new("total", [total]).is_ok());
    /// ```
    #[must_use]
    pub fn reassociate(self) -> Func {
        self.with_order(true)
    }

    /// The same Func, whose last update may be computed in any order or only in that of its domain.
    pub(crate) fn with_order(self, any: bool) -> Func {
        let mut data = Arc::unwrap_or_clone(self.0);
        if let Some(last) = data.stages.last_mut() {
            last.reassociate = any;
        }
        Func(Arc::new(data))
    }

    /// The same Func with a different memory layout, as for [`Input::stored`](crate::Input::stored): `order` lists the
    /// dimensions from the fastest to the slowest. It matters for outputs, whose memory the caller sees.
    ///
    /// ```
    /// use warploom_lang::*;
    /// let (x, y, c) = vars!(x, y, c);
    /// // Red, green and blue of a pixel side by side, in and out; indices stay in their usual order.
    /// let image = Input::u8("image", 3).stored([2, 0, 1]);
    /// let negative = func("negative", (x, y, c), 255 - image.at((x, y, c))).stored([2, 0, 1]);
    /// assert!(Pipeline::new("negative", [negative]).is_ok());
    /// ```
    #[must_use]
    pub fn stored(self, order: impl Into<Vec<usize>>) -> Func {
        let mut data = Arc::unwrap_or_clone(self.0);
        data.stored = Some(order.into());
        Func(Arc::new(data))
    }

    /// Whether it is the helper of an inline reduction such as `sum`.
    pub(crate) fn is_inline_reduction(&self) -> bool {
        matches!(self.0.name, FuncName::Inside(_)) && self.0.stages.len() == 2
    }

    fn with_stage(
        self,
        domain: Option<RDom>,
        update: impl FnOnce(&Itself) -> Update,
        place: &'static Location<'static>,
    ) -> Func {
        let Update { indices, mut values } = update(&Itself(self.clone()));
        for (value, &ty) in values.iter_mut().zip(&self.0.types) {
            match adapt(value, ty) {
                Ok(Some(adapted)) => *value = adapted,
                Ok(None) => {}
                Err(fault) => *value = Expr::faulty(Diagnostic::at(fault, place)),
            }
        }
        let mut data = Arc::unwrap_or_clone(self.0);
        data.stages.push(Definition { indices, values, domain, reassociate: false, place });
        data.is_boundary = false;
        Func(Arc::new(data))
    }

    /// The value at a point. For a Func with several values, use [`Func::get`].
    #[track_caller]
    pub fn at(&self, indices: impl Indices) -> Expr {
        self.call(None, indices, |value| TermKind::Call(self.clone(), value))
    }

    /// Value number `value` at a point.
    #[track_caller]
    pub fn get(&self, value: usize, indices: impl Indices) -> Expr {
        self.call(Some(value), indices, |value| TermKind::Call(self.clone(), value))
    }

    #[track_caller]
    fn call(&self, value: Option<usize>, indices: impl Indices, kind: impl Fn(usize) -> TermKind) -> Expr {
        // The types of a faulty definition are not known, so its fault is also a fault of its readers.
        if let Some(faulty) = self.faulty_start() {
            return faulty.clone();
        }
        let types = &self.0.types;
        let single = if types.len() == 1 { Some(0) } else { None };
        let Some((value, &ty)) = value.or(single).and_then(|v| Some((v, types.get(v)?))) else {
            let fault = Fault::ValueIndex { callee: self.label(), values: types.len() };
            return Expr::faulty(Diagnostic::at(fault, Location::caller()));
        };
        let variables = || self.0.args.iter().map(|arg| arg.name().to_string()).collect();
        access(&self.label(), self.0.args.len(), variables, kind(value), ty, indices)
    }

    /// The first faulty value of the pure definition.
    fn faulty_start(&self) -> Option<&Expr> {
        self.0.stages.first()?.values.iter().find(|value| value.term().is_err())
    }

    /// Moves its expressions into `others` if this is the last reference to the Func.
    pub(crate) fn give_up(self, others: &mut Vec<Expr>) {
        let Some(data) = Arc::into_inner(self.0) else { return };
        for Definition { indices, values, domain, .. } in data.stages {
            others.extend(indices.into_iter().chain(values));
            if let Some(RDom { ranges, predicate, .. }) = domain {
                others.extend(ranges.into_iter().flat_map(|range| [range.min, range.extent]));
                others.extend(predicate);
            }
        }
    }

    /// The name for messages. A helper that is named later shows its kind, for example `sum`.
    pub(crate) fn label(&self) -> String {
        match &self.0.name {
            FuncName::Given(name) => name.clone(),
            FuncName::Of(base, what) => format!("{base}.{what}"),
            FuncName::Inside(what) => (*what).to_string(),
        }
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.0.args.len()
    }

    /// The type of each value; one entry unless the Func has several values.
    pub fn types(&self) -> &[Type] {
        &self.0.types
    }

    pub(crate) fn data(&self) -> &FuncData {
        &self.0
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}

/// The Func inside its own update: reads its old values and builds the update.
pub struct Itself(Func);

/// The target and the values of an update. Built by the methods of [`Itself`].
pub struct Update {
    indices: Vec<Expr>,
    values: Vec<Expr>,
}

impl Itself {
    /// The value at a point before this step of the update.
    #[track_caller]
    pub fn at(&self, indices: impl Indices) -> Expr {
        self.0.call(None, indices, TermKind::Itself)
    }

    /// Value number `value` at a point before this step of the update.
    #[track_caller]
    pub fn get(&self, value: usize, indices: impl Indices) -> Expr {
        self.0.call(Some(value), indices, TermKind::Itself)
    }

    /// `f(indices) = values`
    pub fn set(&self, indices: impl Indices, values: impl Values) -> Update {
        match values.into_start() {
            Start::Values(values) => Update { indices: in_32_bits(indices), values },
            // An update without values is rejected when the pipeline is built.
            Start::Undefined(_) => Update { indices: in_32_bits(indices), values: Vec::new() },
        }
    }

    /// `f(indices) += value`
    #[track_caller]
    pub fn add(&self, indices: impl Indices, value: impl Into<Expr>) -> Update {
        self.combine(indices, |old| old + value)
    }

    /// `f(indices) -= value`
    #[track_caller]
    pub fn sub(&self, indices: impl Indices, value: impl Into<Expr>) -> Update {
        self.combine(indices, |old| old - value)
    }

    /// `f(indices) *= value`
    #[track_caller]
    pub fn mul(&self, indices: impl Indices, value: impl Into<Expr>) -> Update {
        self.combine(indices, |old| old * value)
    }

    /// `f(indices) = min(f(indices), value)`
    #[track_caller]
    pub fn min(&self, indices: impl Indices, value: impl Into<Expr>) -> Update {
        self.combine(indices, |old| functions::min(old, value))
    }

    /// `f(indices) = max(f(indices), value)`
    #[track_caller]
    pub fn max(&self, indices: impl Indices, value: impl Into<Expr>) -> Update {
        self.combine(indices, |old| functions::max(old, value))
    }

    #[track_caller]
    fn combine(&self, indices: impl Indices, combine: impl FnOnce(Expr) -> Expr) -> Update {
        let indices = in_32_bits(indices);
        let old = self.at(indices.clone());
        Update { indices, values: vec![combine(old)] }
    }
}

/// Indices, with integers of 64 bits as `i32`. They saturate, so that boundary conditions and clamps map all indices
/// outside correctly.
#[track_caller]
fn in_32_bits(indices: impl Indices) -> Vec<Expr> {
    let narrow = |index: Expr| match index.ty() {
        Some(Type::I64 | Type::U64) => index.saturating_cast(Type::I32),
        _ => index,
    };
    indices.into_exprs().into_iter().map(narrow).collect()
}

/// An access, or a faulty expression if the indices have the wrong count or type.
#[track_caller]
pub(crate) fn access(
    callee: &str,
    dimensions: usize,
    variables: impl Fn() -> Vec<String>,
    kind: TermKind,
    ty: Type,
    indices: impl Indices,
) -> Expr {
    let indices = in_32_bits(indices);
    let fault = if indices.len() != dimensions {
        Some(Fault::Arity { callee: callee.to_string(), got: indices.len(), variables: variables() })
    } else {
        let wrong = indices.iter().enumerate().find_map(|(d, index)| match index.ty() {
            Some(ty) if ty != Type::I32 => Some((d, ty)),
            _ => None,
        });
        wrong.map(|(dimension, ty)| Fault::IndexType { callee: callee.to_string(), dimension, ty })
    };
    match fault {
        Some(fault) => Expr::faulty(Diagnostic::at(fault, Location::caller())),
        None => Expr::node(kind, ty, indices),
    }
}

/// The variables that a Func is defined over: `x`, `(x, y)`, `[x, y]`, a `Vec`, or `()` for a
/// single value.
pub trait Arguments {
    /// The variables in order, one per dimension.
    fn into_vars(self) -> Vec<Var>;
}

/// Where a Func or input is read or written: one index, a tuple, array or `Vec` of indices, or
/// `()`.
pub trait Indices {
    /// The indices in order, one per dimension.
    fn into_exprs(self) -> Vec<Expr>;
}

/// The right-hand side of a definition: one expression, a tuple or `Vec` of them for a Func with
/// several values, or [`undef`].
pub trait Values {
    /// The values, or only their types for an undefined start.
    fn into_start(self) -> Start;
}

/// The values of a pure definition.
#[derive(Clone, Debug)]
pub enum Start {
    /// One expression per value.
    Values(Vec<Expr>),
    /// The types only; no point has a value yet.
    Undefined(Vec<Type>),
}

impl Arguments for Var {
    fn into_vars(self) -> Vec<Var> {
        vec![self]
    }
}

impl Arguments for () {
    fn into_vars(self) -> Vec<Var> {
        Vec::new()
    }
}

impl Arguments for Vec<Var> {
    fn into_vars(self) -> Vec<Var> {
        self
    }
}

impl<const N: usize> Arguments for [Var; N] {
    fn into_vars(self) -> Vec<Var> {
        self.to_vec()
    }
}

impl Indices for () {
    fn into_exprs(self) -> Vec<Expr> {
        Vec::new()
    }
}

impl<E: Into<Expr>> Indices for Vec<E> {
    fn into_exprs(self) -> Vec<Expr> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<E: Into<Expr>, const N: usize> Indices for [E; N] {
    fn into_exprs(self) -> Vec<Expr> {
        self.into_iter().map(Into::into).collect()
    }
}

impl Values for Vec<Expr> {
    fn into_start(self) -> Start {
        Start::Values(self)
    }
}

impl Values for Undefined {
    fn into_start(self) -> Start {
        Start::Undefined(self.0)
    }
}

macro_rules! single {
    ($($t:ty),*) => {$(
        impl Indices for $t {
            fn into_exprs(self) -> Vec<Expr> {
                vec![self.into()]
            }
        }
        impl Values for $t {
            fn into_start(self) -> Start {
                Start::Values(vec![self.into()])
            }
        }
    )*};
}
single! { Expr, &Expr, Var, RVar, &Param, Value, bool, u8, u16, u32, u64, i8, i16, i32, i64, f32, f16, bf16 }

macro_rules! tuples {
    ($(($($t:ident $v:ident),+))*) => {$(
        impl<$($t: Into<Expr>),+> Indices for ($($t,)+) {
            fn into_exprs(self) -> Vec<Expr> {
                let ($($v,)+) = self;
                vec![$($v.into()),+]
            }
        }
        impl<$($t: Into<Expr>),+> Values for ($($t,)+) {
            fn into_start(self) -> Start {
                Start::Values(self.into_exprs())
            }
        }
        impl Arguments for ($(tuples!(@var $t),)+) {
            fn into_vars(self) -> Vec<Var> {
                let ($($v,)+) = self;
                vec![$($v),+]
            }
        }
    )*};
    (@var $t:ident) => { Var };
}
tuples! {
    (A a)
    (A a, B b)
    (A a, B b, C c)
    (A a, B b, C c, D d)
    (A a, B b, C c, D d, E e)
    (A a, B b, C c, D d, E e, F f)
    (A a, B b, C c, D d, E e, F f, G g)
    (A a, B b, C c, D d, E e, F f, G g, H h)
}

impl Operand for Value {
    fn expr(&self) -> Expr {
        Expr::from(*self)
    }
}
