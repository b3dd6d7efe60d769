//! Loads and stores of rows of typed samples.

use warploom_lang::{Region, Scalar, bf16, f16};

use crate::buffer::Data;
use crate::lanes::{Lane, Lanes, Row};

/// The memory layout of a box of samples.
#[derive(Clone, Debug)]
pub struct Layout {
    pub mins: Vec<i64>,
    pub extents: Vec<i64>,
    pub strides: Vec<i64>,
}

impl Layout {
    /// A dense layout. `order` lists the dimensions by increasing stride.
    pub fn new(region: &Region, order: &[usize]) -> Layout {
        let mut strides = vec![0; region.dimensions()];
        let mut stride = 1;
        for &d in order {
            strides[d] = stride;
            stride *= region[d].extent;
        }
        Layout { mins: region.0.iter().map(|range| range.min).collect(), extents: region.extents(), strides }
    }

    /// The offset of one coordinate; `None` outside the box.
    #[inline]
    pub fn along(&self, dimension: usize, at: i64) -> Option<i64> {
        let from_min = at - self.mins[dimension];
        ((from_min as u64) < self.extents[dimension] as u64).then(|| from_min * self.strides[dimension])
    }
}

macro_rules! samples {
    ($($variant:ident $t:ident;)*) => {
        /// The part of a Func's samples that one thread may write.
        #[derive(Debug)]
        pub enum SamplesMut<'a> {
            $(
                #[doc = concat!("Samples of type `", stringify!($t), "`.")]
                $variant(&'a mut [$t]),
            )*
        }

        impl SamplesMut<'_> {
            /// Stores the lanes selected by `mask` at `offsets`.
            pub fn scatter(&mut self, offsets: &[i64], values: Lanes<'_>, mask: impl Fn(usize) -> bool) {
                match self {
                    $(SamplesMut::$variant(samples) => {
                        for (lane, offset) in offsets.iter().enumerate() {
                            if mask(lane) {
                                samples[*offset as usize] = <$t as Scalar>::from_word(values.get(lane));
                            }
                        }
                    })*
                }
            }

            /// Stores a row of contiguous samples.
            pub fn store_row(&mut self, start: usize, values: Lanes<'_>) {
                match self {
                    $(SamplesMut::$variant(samples) => {
                        let row = <$t as Scalar>::Bits::varying(values).unwrap_or_default();
                        for (to, bits) in samples[start..start + row.len()].iter_mut().zip(row) {
                            *to = <$t as Scalar>::from_bits(*bits);
                        }
                    })*
                }
            }

            /// Stores one value into a row of contiguous samples.
            pub fn fill_row(&mut self, start: usize, len: usize, bits: u64) {
                match self {
                    $(SamplesMut::$variant(samples) => {
                        samples[start..start + len].fill(<$t as Scalar>::from_word(bits));
                    })*
                }
            }

            /// A read-only view of the samples.
            pub fn view(&self) -> Samples<'_> {
                match self {
                    $(SamplesMut::$variant(samples) => Samples::$variant(samples),)*
                }
            }
        }

        /// A read-only view of samples.
        #[derive(Clone, Copy, Debug)]
        pub enum Samples<'a> {
            $(
                #[doc = concat!("Samples of type `", stringify!($t), "`.")]
                $variant(&'a [$t]),
            )*
        }

        impl<'a> Samples<'a> {
            /// All samples of a buffer.
            pub fn of(data: &'a Data) -> Samples<'a> {
                match data {
                    $(Data::$variant(samples) => Samples::$variant(samples),)*
                }
            }

            pub fn len(self) -> usize {
                match self {
                    $(Samples::$variant(samples) => samples.len(),)*
                }
            }

            pub fn get(self, offset: usize) -> u64 {
                match self {
                    $(Samples::$variant(samples) => samples[offset].to_word(),)*
                }
            }

            /// Loads samples at a constant stride; contiguous samples for `step` 1.
            pub fn load_row(self, start: i64, step: i64, row: Row<'_>) {
                match self {
                    $(Samples::$variant(samples) => {
                        let row = <$t as Scalar>::Bits::row(row);
                        if step == 1 {
                            let neighbours = &samples[start as usize..][..row.len()];
                            for (to, sample) in row.iter_mut().zip(neighbours) {
                                *to = Scalar::to_bits(*sample);
                            }
                        } else {
                            for (lane, to) in row.iter_mut().enumerate() {
                                *to = Scalar::to_bits(samples[(start + lane as i64 * step) as usize]);
                            }
                        }
                    })*
                }
            }

            /// Loads samples at the given offsets.
            pub fn gather(self, offsets: &[i64], row: Row<'_>) {
                match self {
                    $(Samples::$variant(samples) => {
                        let row = <$t as Scalar>::Bits::row(row);
                        for (to, offset) in row.iter_mut().zip(offsets) {
                            *to = Scalar::to_bits(samples[*offset as usize]);
                        }
                    })*
                }
            }
        }

        /// Splits samples into consecutive parts of `len`; the last one may be shorter.
        pub fn split(data: &mut Data, len: usize) -> Vec<SamplesMut<'_>> {
            match data {
                $(Data::$variant(samples) => samples.chunks_mut(len).map(SamplesMut::$variant).collect(),)*
            }
        }
    };
}

samples! {
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
