//! Inputs and scalar parameters: the values that a caller supplies for a run.

use std::panic::Location;
use std::sync::Arc;

use crate::error::{Diagnostic, Fault};
use crate::expr::{Expr, TermKind};
use crate::func::{Indices, access};
use crate::types::{Type, Value};

/// An input image (or array) of any rank and type.
///
/// Its extents are symbolic: [`Input::extent`] is an expression that becomes a number when the
/// pipeline is realised. Out-of-bounds reads are rejected at that point, so a stencil that reads
/// past the edge needs a boundary condition such as [`Input::repeat_edge`].
#[derive(Clone, Debug)]
pub struct Input(Arc<InputData>);

#[derive(Debug)]
pub(crate) struct InputData {
    pub name: String,
    pub ty: Type,
    pub dimensions: usize,
    pub storage_order: Option<Vec<usize>>,
    pub place: &'static Location<'static>,
}

impl Input {
    /// An input of `dimensions` dimensions, stored with the first index fastest.
    #[track_caller]
    pub fn new(name: impl Into<String>, ty: Type, dimensions: usize) -> Input {
        let place = Location::caller();
        Input(Arc::new(InputData { name: name.into(), ty, dimensions, storage_order: None, place }))
    }

    /// An `f32` input of this many dimensions.
    #[track_caller]
    pub fn f32(name: impl Into<String>, dimensions: usize) -> Input {
        Input::new(name, Type::F32, dimensions)
    }

    /// A `u8` input of this many dimensions.
    #[track_caller]
    pub fn u8(name: impl Into<String>, dimensions: usize) -> Input {
        Input::new(name, Type::U8, dimensions)
    }

    /// A `u16` input of this many dimensions.
    #[track_caller]
    pub fn u16(name: impl Into<String>, dimensions: usize) -> Input {
        Input::new(name, Type::U16, dimensions)
    }

    /// The same input with a different memory layout. `order` lists the dimensions from the fastest
    /// to the slowest: `[2, 0, 1]` is an image with interleaved channels.
    #[must_use]
    pub fn stored(self, order: impl Into<Vec<usize>>) -> Input {
        let InputData { name, ty, dimensions, place, .. } = &*self.0;
        Input(Arc::new(InputData {
            name: name.clone(),
            ty: *ty,
            dimensions: *dimensions,
            storage_order: Some(order.into()),
            place,
        }))
    }

    /// The name under which a caller supplies the input.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The type of its elements.
    pub fn ty(&self) -> Type {
        self.0.ty
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.0.dimensions
    }

    pub(crate) fn data(&self) -> &InputData {
        &self.0
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The value at a point. The point must be inside the input's box.
    #[track_caller]
    pub fn at(&self, indices: impl Indices) -> Expr {
        let variables = || (0..self.0.dimensions).map(|d| format!("d{d}")).collect();
        access(self.name(), self.0.dimensions, variables, TermKind::Load(self.clone()), self.ty(), indices)
    }

    /// The smallest index of a dimension, as an expression.
    #[track_caller]
    pub fn min(&self, dimension: usize) -> Expr {
        self.bound(dimension, TermKind::InputMin(self.clone(), dimension))
    }

    /// The number of indices of a dimension, as an expression.
    #[track_caller]
    pub fn extent(&self, dimension: usize) -> Expr {
        self.bound(dimension, TermKind::InputExtent(self.clone(), dimension))
    }

    #[track_caller]
    fn bound(&self, dimension: usize, kind: TermKind) -> Expr {
        if dimension < self.0.dimensions {
            return Expr::node(kind, Type::I32, []);
        }
        let variables = (0..self.0.dimensions).map(|d| format!("d{d}")).collect();
        let fault = Fault::Arity { callee: self.name().to_string(), got: dimension + 1, variables };
        Expr::faulty(Diagnostic::at(fault, Location::caller()))
    }
}

/// A scalar that a caller supplies when the pipeline runs.
///
/// A Param that a reduction domain's bound or an index depends on is *specialised*: its value is
/// fixed together with the sizes. All other Params may change between runs.
#[derive(Clone, Debug)]
pub struct Param(Arc<ParamData>);

#[derive(Clone, Debug)]
pub(crate) struct ParamData {
    pub name: String,
    pub ty: Type,
    pub range: Option<(Value, Value)>,
    pub default: Option<Value>,
    pub place: &'static Location<'static>,
}

impl Param {
    /// A scalar of any type.
    #[track_caller]
    pub fn new(name: impl Into<String>, ty: Type) -> Param {
        let place = Location::caller();
        Param(Arc::new(ParamData { name: name.into(), ty, range: None, default: None, place }))
    }

    /// An `f32` scalar.
    #[track_caller]
    pub fn f32(name: impl Into<String>) -> Param {
        Param::new(name, Type::F32)
    }

    /// An `i32` scalar.
    #[track_caller]
    pub fn i32(name: impl Into<String>) -> Param {
        Param::new(name, Type::I32)
    }

    /// Promises that the value lies between `low` and `high`, both included. Values outside are
    /// rejected. Without a default, a caller who gives no value gets the middle.
    #[must_use]
    pub fn range<T: Into<Value>>(self, low: T, high: T) -> Param {
        let range = Some((low.into().fitted(self.ty()), high.into().fitted(self.ty())));
        Param(Arc::new(ParamData { range, ..self.0.as_ref().clone() }))
    }

    /// The value unless a caller gives another.
    ///
    /// ```
    /// use warploom_lang::{Input, Param, Pipeline, Realisation, Value, func, vars};
    ///
    /// let x = vars!(x);
    /// let gain = Param::f32("gain").range(0.0, 4.0f32).default(1.5f32);
    /// let brighter = func("brighter", x, Input::f32("input", 1).at(x) * &gain);
    /// let pipeline = Pipeline::new("brighter", [brighter])?;
    /// assert_eq!(Realisation::new(&pipeline).params.values().next(), Some(&Some(Value::from(1.5f32))));
    /// # Ok::<(), warploom_lang::PipelineError>(())
    /// ```
    #[must_use]
    pub fn default(self, value: impl Into<Value>) -> Param {
        let default = Some(value.into().fitted(self.ty()));
        Param(Arc::new(ParamData { default, ..self.0.as_ref().clone() }))
    }

    /// The name under which a caller supplies the value.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The type of its value.
    pub fn ty(&self) -> Type {
        self.0.ty
    }

    pub(crate) fn data(&self) -> &ParamData {
        &self.0
    }

    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }
}
