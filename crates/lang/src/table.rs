//! Constant tables: small arrays whose values are part of the pipeline.

use std::panic::Location;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::bounds::{FloatSpan, IntSpan, Span};
use crate::error::{Diagnostic, Fault};
use crate::expr::{Expr, TermKind};
use crate::func::{Indices, access};
use crate::region::Region;
use crate::scalar::Scalar;
use crate::types::{Type, Value};

/// A constant array that is part of a pipeline; see [`table`].
#[derive(Clone, Debug)]
pub struct Table(Arc<TableDecl>, &'static Location<'static>);

/// A constant array, for use in pipelines: a gamma curve, the weights of a filter, offsets.
///
/// The values come from a Rust array, slice or `Vec` of any scalar type, or from rows: `[[T; N]; M]`
/// has extent `N` in its first dimension and `M` in its second. All tables of a pipeline together
/// may have 64 KiB ([`files::TABLES`](crate::files::TABLES)); larger data are an
/// [`Input`](crate::Input).
///
/// ```
/// use warploom_lang::*;
/// let (x, y) = vars!(x, y);
/// let input = Input::u8("input", 2);
/// let gamma = table("gamma", std::array::from_fn::<f32, 256, _>(|i| (i as f32 / 255.0).powf(2.2)));
/// let linear = func("linear", (x, y), gamma.at(input.at((x, y)).i32()));
/// assert!(Pipeline::new("linear", [linear]).is_ok());
/// ```
///
/// An index must be inside the table, as with inputs: one that is not bounded is clamped with
/// [`clamp`](crate::clamp). The values of a table of integers bound the indices made from them.
#[track_caller]
pub fn table(name: impl Into<String>, elements: impl Elements) -> Table {
    let (ty, extents, values) = elements.into_parts();
    Table(Arc::new(TableDecl::new(name.into(), ty, extents, values)), Location::caller())
}

impl Table {
    /// The name, as listings show it.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The type of its elements.
    pub fn ty(&self) -> Type {
        self.0.ty
    }

    /// The number of dimensions.
    pub fn dimensions(&self) -> usize {
        self.0.extents.len()
    }

    /// The element at a point, which must be inside the table.
    #[track_caller]
    pub fn at(&self, indices: impl Indices) -> Expr {
        let kind = TermKind::Table(self.clone());
        access(self.name(), self.dimensions(), || self.variables(), kind, self.ty(), indices)
    }

    /// The number of indices of a dimension, as an expression.
    #[track_caller]
    pub fn extent(&self, dimension: usize) -> Expr {
        match self.0.extents.get(dimension) {
            Some(extent) => Expr::from(i32::try_from(*extent).unwrap_or(i32::MAX)),
            None => {
                let (callee, variables) = (self.name().to_string(), self.variables());
                let fault = Fault::Arity { callee, got: dimension + 1, variables };
                Expr::faulty(Diagnostic::at(fault, Location::caller()))
            }
        }
    }

    fn variables(&self) -> Vec<String> {
        (0..self.dimensions()).map(|d| format!("d{d}")).collect()
    }

    pub(crate) fn decl(&self) -> &TableDecl {
        &self.0
    }

    /// Where it was made.
    pub(crate) fn place(&self) -> &'static Location<'static> {
        self.1
    }
}

/// The source of a [`table`]: an array, slice or `Vec` of scalars, or of rows of scalars.
pub trait Elements {
    /// The type, the extents and the values, with the first index fastest.
    fn into_parts(self) -> (Type, Vec<usize>, Vec<Value>);
}

fn list<T: Scalar>(values: &[T]) -> (Type, Vec<usize>, Vec<Value>) {
    (T::TYPE, vec![values.len()], values.iter().copied().map(Value::from).collect())
}

fn rows<T: Scalar, const N: usize>(rows: &[[T; N]]) -> (Type, Vec<usize>, Vec<Value>) {
    (T::TYPE, vec![N, rows.len()], rows.iter().flatten().copied().map(Value::from).collect())
}

macro_rules! elements {
    ($($of:ident: [$($generics:tt)*] $t:ty;)*) => {$(
        impl<T: Scalar, $($generics)*> Elements for $t {
            fn into_parts(self) -> (Type, Vec<usize>, Vec<Value>) {
                $of(&self[..])
            }
        }
    )*};
}
elements! {
    list: [] &[T];
    list: [] Vec<T>;
    list: [const N: usize] [T; N];
    list: [const N: usize] &[T; N];
    rows: [const N: usize] &[[T; N]];
    rows: [const N: usize] Vec<[T; N]>;
    rows: [const N: usize, const M: usize] [[T; N]; M];
    rows: [const N: usize, const M: usize] &[[T; N]; M];
}

/// The declaration of a constant table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "TableText", try_from = "TableText")]
pub struct TableDecl {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// The type of its elements.
    pub ty: Type,
    /// The number of indices of each dimension. The first one is the fastest.
    pub extents: Vec<usize>,
    values: Arc<[Value]>,
    span: Span,
}

impl TableDecl {
    /// A table of values with the first index fastest.
    pub(crate) fn new(name: String, ty: Type, extents: Vec<usize>, values: Vec<Value>) -> TableDecl {
        let spans = values.iter().map(|value| Span::constant(*value));
        let span = match spans.reduce(|all, one| all.union(&one)) {
            Some(Span::Int(IntSpan { min, max, .. })) => Span::Int(IntSpan::fixed(min, max)),
            Some(Span::Float(FloatSpan { min, max, nan, .. })) => {
                Span::Float(FloatSpan::fixed(min, max, nan))
            }
            None => Span::of_type(ty),
        };
        TableDecl { name, ty, extents, values: values.into(), span }
    }

    /// The values, with the first index fastest.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The range of all values.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The indices that it has.
    pub fn region(&self) -> Region {
        let extents: Vec<i64> =
            self.extents.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect();
        Region::of_extents(&extents)
    }

    /// The value at a point; `None` outside.
    pub fn value(&self, at: impl IntoIterator<Item = i64>) -> Option<Value> {
        let (mut offset, mut stride) = (0, 1);
        for (index, extent) in at.into_iter().zip(&self.extents) {
            let index = usize::try_from(index).ok().filter(|index| index < extent)?;
            offset += index * stride;
            stride *= extent;
        }
        self.values.get(offset).copied()
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.values.len() * self.ty.bytes()
    }

    /// Whether the number of values matches the extents.
    pub(crate) fn is_complete(&self) -> bool {
        let points = self.extents.iter().try_fold(1_usize, |points, extent| points.checked_mul(*extent));
        points == Some(self.values.len())
    }
}

/// The file format: values as bit patterns, so that every one is exact.
#[derive(Serialize, Deserialize)]
struct TableText {
    name: String,
    #[serde(rename = "type")]
    ty: Type,
    extents: Vec<usize>,
    bits: Vec<u64>,
}

impl From<TableDecl> for TableText {
    fn from(table: TableDecl) -> TableText {
        let bits = table.values.iter().map(|value| value.bits()).collect();
        TableText { name: table.name, ty: table.ty, extents: table.extents, bits }
    }
}

impl TryFrom<TableText> for TableDecl {
    type Error = String;

    fn try_from(text: TableText) -> Result<TableDecl, String> {
        let TableText { name, ty, extents, bits } = text;
        let value = |bits: &u64| {
            let value = Value::from_bits(ty, *bits);
            (value.bits() == *bits).then_some(value)
        };
        let no_value = |bits: &u64| format!("{bits} is not the bit pattern of a value of type {ty}");
        let values = bits.iter().map(|bits| value(bits).ok_or_else(|| no_value(bits)));
        let values = values.collect::<Result<_, _>>()?;
        Ok(TableDecl::new(name, ty, extents, values))
    }
}
