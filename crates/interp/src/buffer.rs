//! Dense arrays of samples over a box of grid points.

use thiserror::Error;
use warploom_lang::scalar::CastFrom;
use warploom_lang::{Range, Region, Scalar, Type, Value, bf16, dispatch, f16};

use crate::compare::{Tolerance, compare};
use crate::lanes::Lane;

/// Why a buffer could not be created or a sample could not be stored.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum BufferError {
    /// The samples do not fit in memory; nothing was allocated.
    #[error("a buffer of {ty} with extents {extents:?} does not fit in memory; use smaller extents")]
    TooLarge {
        /// The type of the samples.
        ty: Type,
        /// The requested extents, first dimension first.
        extents: Vec<i64>,
    },
    /// A range with a negative extent or with coordinates that overflow.
    #[error(
        "dimension {dimension} of a buffer cannot hold {extent} samples starting at {min}; use an extent that is \
         not negative and ends below 2^63"
    )]
    BadRange {
        /// The number of the dimension, from 0.
        dimension: usize,
        /// The first coordinate.
        min: i64,
        /// The invalid extent.
        extent: i64,
    },
    /// The number of samples does not match the region.
    #[error("a buffer with extents {extents:?} holds {expected} samples, but {found} were given")]
    WrongLength {
        /// The extents of the region.
        extents: Vec<i64>,
        /// The number of samples in the region.
        expected: usize,
        /// The number of samples given.
        found: usize,
    },
    /// A storage order that is not a permutation of the dimensions.
    #[error(
        "{order:?} is not a storage order of {dimensions} dimensions; name each of them once, the fastest first"
    )]
    BadOrder {
        /// The order given.
        order: Vec<usize>,
        /// The number of dimensions of the buffer.
        dimensions: usize,
    },
    /// The number of coordinates does not match the number of dimensions.
    #[error("{found} coordinates were given for a buffer of {expected} dimensions")]
    WrongDimensions {
        /// The number of dimensions of the buffer.
        expected: usize,
        /// The number of coordinates given.
        found: usize,
    },
    /// A point outside the buffer.
    #[error("the point {at:?} lies outside the buffer's region {region}")]
    Outside {
        /// The coordinates of the point.
        at: Vec<i64>,
        /// The region of the buffer.
        region: Region,
    },
    /// A value whose type is not that of the samples.
    #[error("a value of type {found} cannot be stored in a buffer of {expected}; cast it first")]
    WrongType {
        /// The type of the samples.
        expected: Type,
        /// The type of the value.
        found: Type,
    },
}

/// A Rust type that a [`Buffer`] can hold.
pub trait Element: Scalar<Bits: Lane> {
    /// Wraps samples of this type as [`Data`].
    fn wrap(samples: Vec<Self>) -> Data;
    /// The samples; `None` if they have another type.
    fn slice(data: &Data) -> Option<&[Self]>;
    /// The samples, mutable; `None` if they have another type.
    fn slice_mut(data: &mut Data) -> Option<&mut [Self]>;
}

macro_rules! elements {
    ($($variant:ident $t:ident;)*) => {
        /// The samples of a [`Buffer`], in storage order.
        #[derive(Clone, PartialEq, Debug)]
        pub enum Data {
            $(
                #[doc = concat!("Samples of type `", stringify!($t), "`.")]
                $variant(Vec<$t>),
            )*
        }

        impl Data {
            /// The type of the samples.
            pub fn ty(&self) -> Type {
                match self {
                    $(Data::$variant(_) => Type::$variant,)*
                }
            }

            /// The number of samples.
            pub fn len(&self) -> usize {
                match self {
                    $(Data::$variant(samples) => samples.len(),)*
                }
            }

            /// Whether there are no samples.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }

        $(impl Element for $t {
            fn wrap(samples: Vec<$t>) -> Data {
                Data::$variant(samples)
            }

            fn slice(data: &Data) -> Option<&[$t]> {
                match data {
                    Data::$variant(samples) => Some(samples),
                    _ => None,
                }
            }

            fn slice_mut(data: &mut Data) -> Option<&mut [$t]> {
                match data {
                    Data::$variant(samples) => Some(samples),
                    _ => None,
                }
            }
        })*
    };
}

elements! {
    Bool bool;
    U8 u8;
    U16 u16;
    U32 u32;
    I8 i8;
    I16 i16;
    I32 i32;
    F32 f32;
    F16 f16;
    BF16 bf16;
    F64 f64;
    I64 i64;
    U64 u64;
}

/// A dense array of samples of one [`Type`] over a [`Region`].
///
/// The storage order lists the dimensions by increasing stride: `[0, 1, 2]`, the default, stores an
/// image `(x, y, c)` in planes, `[2, 0, 1]` interleaves the channels. A region without dimensions
/// holds one sample. Buffers are equal if they have the same region and bit-identical samples (NaN
/// equals NaN), regardless of storage order; [`compare`](crate::compare::compare()) measures how
/// far they differ.
///
/// ```
/// use warploom_interp::buffer::Buffer;
/// use warploom_lang::{Region, Value};
///
/// let ramp = Buffer::from_fn(Region::of_extents(&[4, 3]), |at| (10 * at[1] + at[0]) as u16)?;
/// assert_eq!(ramp.get(&[3, 2]), Some(Value::from(23_u16)));
/// assert_eq!(ramp.get(&[4, 2]), None);
/// assert_eq!(ramp.strides(), [1, 4]);
/// assert_eq!(ramp.reordered(&[1, 0])?.strides(), [3, 1]);
/// # Ok::<(), warploom_interp::buffer::BufferError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Buffer {
    region: Region,
    order: Vec<usize>,
    strides: Vec<usize>,
    data: Data,
}

impl Buffer {
    /// A buffer of zeros (or `false`), first dimension fastest.
    pub fn zeros(ty: Type, region: Region) -> Result<Buffer, BufferError> {
        let order = index_order(&region);
        Buffer::zeros_in_order(ty, region, &order)
    }

    /// A buffer of zeros (or `false`); `order[k]` is the dimension with the k-th smallest stride.
    pub fn zeros_in_order(ty: Type, region: Region, order: &[usize]) -> Result<Buffer, BufferError> {
        let (strides, samples) = layout(ty, &region, order)?;
        let data = dispatch!(ty, T => zeros::<T>(samples).map(T::wrap));
        let data = data.ok_or_else(|| BufferError::TooLarge { ty, extents: region.extents() })?;
        Ok(Buffer { region, order: order.to_vec(), strides, data })
    }

    /// A buffer that holds `samples`, stored with the first dimension fastest.
    pub fn from_vec<T: Element>(region: Region, samples: Vec<T>) -> Result<Buffer, BufferError> {
        let order = index_order(&region);
        Buffer::from_vec_in_order(region, &order, samples)
    }

    /// A buffer that holds `samples`, stored in `order`.
    pub fn from_vec_in_order<T: Element>(
        region: Region,
        order: &[usize],
        samples: Vec<T>,
    ) -> Result<Buffer, BufferError> {
        let (strides, expected) = layout(T::TYPE, &region, order)?;
        if samples.len() != expected {
            let extents = region.extents();
            return Err(BufferError::WrongLength { extents, expected, found: samples.len() });
        }
        Ok(Buffer { region, order: order.to_vec(), strides, data: T::wrap(samples) })
    }

    /// A buffer whose sample at each point is `sample_at(point)`. Points are visited first
    /// dimension fastest.
    pub fn from_fn<T: Element>(
        region: Region,
        mut sample_at: impl FnMut(&[i64]) -> T,
    ) -> Result<Buffer, BufferError> {
        let mut buffer = Buffer::zeros(T::TYPE, region)?;
        let mut point: Vec<i64> = buffer.region.0.iter().map(|range| range.min).collect();
        for sample in T::slice_mut(&mut buffer.data).unwrap_or_default() {
            *sample = sample_at(&point);
            advance(&mut point, &buffer.region);
        }
        Ok(buffer)
    }

    /// The type of the samples.
    pub fn ty(&self) -> Type {
        self.data.ty()
    }

    /// The box of points that the buffer holds.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The distance in samples between neighbours along each dimension.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// The dimensions by increasing stride.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// The number of samples.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether the buffer holds no samples.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// The size of the samples in bytes.
    pub fn bytes(&self) -> usize {
        self.len() * self.ty().bytes()
    }

    /// The samples in storage order.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// The samples in storage order, mutable. Do not change their number or type.
    pub fn data_mut(&mut self) -> &mut Data {
        &mut self.data
    }

    /// The samples in storage order; `None` if `T` is not their type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        T::slice(&self.data)
    }

    /// The samples in storage order, mutable; `None` if `T` is not their type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        T::slice_mut(&mut self.data)
    }

    /// The storage position of a point's sample; `None` outside the region.
    pub fn offset(&self, at: &[i64]) -> Option<usize> {
        if at.len() != self.region.dimensions() {
            return None;
        }
        let dimensions = at.iter().zip(&self.region.0).zip(&self.strides);
        dimensions.into_iter().try_fold(0, |offset, ((&at, range), &stride)| {
            range.contains(at).then(|| offset + (at - range.min) as usize * stride)
        })
    }

    /// The storage positions of all samples, visited first dimension fastest regardless of storage
    /// order.
    pub fn offsets(&self) -> Offsets {
        self.offsets_in(&index_order(&self.region))
    }

    /// [`offsets`](Buffer::offsets) without the first `start`.
    pub(crate) fn offsets_from(&self, start: usize) -> Offsets {
        let mut offsets = self.offsets();
        let mut rest = start;
        for d in 0..offsets.position.len() {
            let extent = offsets.extents[d].max(1);
            offsets.position[d] = rest % extent;
            offsets.next += offsets.position[d] * offsets.strides[d];
            rest /= extent;
        }
        offsets.left = offsets.left.saturating_sub(start);
        offsets
    }

    fn offsets_in(&self, order: &[usize]) -> Offsets {
        Offsets {
            extents: order.iter().map(|&d| self.region[d].extent as usize).collect(),
            strides: order.iter().map(|&d| self.strides[d]).collect(),
            position: vec![0; order.len()],
            next: 0,
            left: self.len(),
        }
    }

    /// The sample at a point; `None` outside the region.
    pub fn get(&self, at: &[i64]) -> Option<Value> {
        let offset = self.offset(at)?;
        dispatch!(self.ty(), T => self.as_slice::<T>()?.get(offset).copied().map(Value::from))
    }

    /// Stores the sample at a point.
    pub fn set(&mut self, at: &[i64], value: Value) -> Result<(), BufferError> {
        let (expected, found) = (self.ty(), value.ty());
        if expected != found {
            return Err(BufferError::WrongType { expected, found });
        }
        let outside = || BufferError::Outside { at: at.to_vec(), region: self.region.clone() };
        let offset = self.offset(at).ok_or_else(outside)?;
        dispatch!(expected, T => {
            let samples = self.as_mut_slice::<T>().unwrap_or_default();
            if let (Some(sample), Some(value)) = (samples.get_mut(offset), value.get::<T>()) {
                *sample = value;
            }
        });
        Ok(())
    }

    /// The same samples, with the region moved to start at `min`.
    pub fn translated(mut self, min: &[i64]) -> Result<Buffer, BufferError> {
        let expected = self.region.dimensions();
        if min.len() != expected {
            return Err(BufferError::WrongDimensions { expected, found: min.len() });
        }
        for (dimension, (range, &min)) in self.region.0.iter_mut().zip(min).enumerate() {
            *range = Range { min, extent: range.extent };
            check_range(dimension, *range)?;
        }
        Ok(self)
    }

    /// The same samples with the dimensions in another order: dimension `d` of the result is dimension
    /// `from[d]` of this buffer. No sample moves.
    pub fn transposed(self, from: &[usize]) -> Result<Buffer, BufferError> {
        layout(self.ty(), &self.region, from)?;
        let region = Region(from.iter().map(|&d| self.region[d]).collect());
        let strides = from.iter().map(|&d| self.strides[d]).collect();
        let order = self.order.iter().filter_map(|d| from.iter().position(|from| from == d)).collect();
        Ok(Buffer { region, order, strides, data: self.data })
    }

    /// A copy of the samples inside `region`, first dimension fastest.
    pub fn cropped(&self, region: &Region) -> Result<Buffer, BufferError> {
        let outside = || BufferError::Outside {
            at: region.0.iter().map(|range| range.min).collect(),
            region: self.region.clone(),
        };
        if region.dimensions() != self.region.dimensions() || !self.region.covers(region) {
            return Err(outside());
        }
        dispatch!(self.ty(), T => {
            let samples = self.as_slice::<T>().unwrap_or_default();
            Buffer::from_fn::<T>(region.clone(), |at| {
                self.offset(at).and_then(|offset| samples.get(offset)).copied().unwrap_or_default()
            })
        })
    }

    /// A copy with another storage order.
    pub fn reordered(&self, order: &[usize]) -> Result<Buffer, BufferError> {
        let mut copy = Buffer::zeros_in_order(self.ty(), self.region.clone(), order)?;
        dispatch!(self.ty(), T => {
            let from = self.as_slice::<T>().unwrap_or_default();
            let to = copy.as_mut_slice::<T>().unwrap_or_default();
            for (sample, offset) in to.iter_mut().zip(self.offsets_in(order)) {
                *sample = from[offset];
            }
        });
        Ok(copy)
    }
}

impl Buffer {
    /// The samples as another type, if each keeps its value; otherwise the first that does not.
    /// NaN stays NaN.
    pub fn exactly(&self, ty: Type) -> Result<Buffer, Value> {
        dispatch!(self.ty(), S => dispatch!(ty, T => {
            let samples = self.as_slice::<S>().unwrap_or_default();
            let exact = |sample: &S| {
                let to = T::cast_from(*sample);
                if is_same(Value::from(*sample), Value::from(to)) { Ok(to) } else { Err(Value::from(*sample)) }
            };
            let converted = samples.iter().map(exact).collect::<Result<Vec<T>, Value>>()?;
            Ok(Buffer { data: T::wrap(converted), ..self.clone() })
        }))
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        compare(self, other, &Tolerance::default()).is_ok_and(|found| found.identical)
    }
}

/// Whether two values of any types are the same number, or both NaN.
fn is_same(a: Value, b: Value) -> bool {
    let int = |value: Value| match value.ty() {
        Type::U64 => Some(i128::from(value.bits())),
        _ => value.as_int().map(i128::from),
    };
    // Every float is an `f64`, and every integer beyond its precision is far below 2^127.
    let is_whole = |float: f64, int: i128| float.fract() == 0.0 && float as i128 == int;
    match (int(a), int(b)) {
        (Some(a), Some(b)) => a == b,
        (Some(a), None) => is_whole(b.as_f64(), a),
        (None, Some(b)) => is_whole(a.as_f64(), b),
        (None, None) => a.as_f64() == b.as_f64() || (a.as_f64().is_nan() && b.as_f64().is_nan()),
    }
}

/// Iterator over the storage positions of a buffer's samples; see [`Buffer::offsets`].
#[derive(Clone, Debug)]
pub struct Offsets {
    extents: Vec<usize>,
    strides: Vec<usize>,
    position: Vec<usize>,
    next: usize,
    left: usize,
}

impl Iterator for Offsets {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let offset = self.next;
        for d in 0..self.position.len() {
            self.position[d] += 1;
            self.next += self.strides[d];
            if self.position[d] < self.extents[d] {
                break;
            }
            self.position[d] = 0;
            self.next -= self.strides[d] * self.extents[d];
        }
        Some(offset)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Offsets {}

/// Moves to the next point of a region, first dimension fastest. Wraps from the last point to the
/// first.
fn advance(point: &mut [i64], region: &Region) {
    for (at, range) in point.iter_mut().zip(&region.0) {
        *at += 1;
        if *at < range.end() {
            return;
        }
        *at = range.min;
    }
}

fn index_order(region: &Region) -> Vec<usize> {
    (0..region.dimensions()).collect()
}

fn check_range(dimension: usize, range: Range) -> Result<(), BufferError> {
    let Range { min, extent } = range;
    if extent < 0 || min.checked_add(extent).is_none() {
        return Err(BufferError::BadRange { dimension, min, extent });
    }
    Ok(())
}

/// The strides and the number of samples of a buffer.
fn layout(ty: Type, region: &Region, order: &[usize]) -> Result<(Vec<usize>, usize), BufferError> {
    let dimensions = region.dimensions();
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted != index_order(region) {
        return Err(BufferError::BadOrder { order: order.to_vec(), dimensions });
    }
    for (dimension, &range) in region.0.iter().enumerate() {
        check_range(dimension, range)?;
    }
    // Count empty dimensions as one, so that the strides of an empty buffer cannot overflow.
    let mut strides = vec![0; dimensions];
    let mut stride = 1_usize;
    for &dimension in order {
        strides[dimension] = stride;
        let extent = usize::try_from(region[dimension].extent.max(1)).ok();
        stride = extent
            .and_then(|extent| stride.checked_mul(extent))
            .ok_or_else(|| BufferError::TooLarge { ty, extents: region.extents() })?;
    }
    Ok((strides, if region.is_empty() { 0 } else { stride }))
}

fn zeros<T: Element>(samples: usize) -> Option<Vec<T>> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(samples).ok()?;
    zeros.resize(samples, T::default());
    Some(zeros)
}
