//! The arrays of a kernel, and their places in shared memory.

use serde::{Deserialize, Serialize};
use warploom_lang::Type;
use warploom_lang::dynamic::Formula;
use warploom_plan::SHARED_ALIGNMENT;

use super::{ArrayId, BufferId, Kernel};

/// An array of a kernel: a buffer, or memory of the block or thread.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Array {
    /// Its name, derived from that of the Func or input.
    pub name: String,
    /// Type of its elements.
    pub ty: Type,
    /// The memory that holds it.
    pub space: Space,
    /// Number of elements.
    pub elements: usize,
    /// The length at any sizes, if the array is in shared memory and its length depends on the sizes of a launch;
    /// `elements` is the largest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_launch: Option<LaunchLength>,
}

/// The length of an array in shared memory that follows from the sizes of a launch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LaunchLength {
    /// The number of elements.
    pub elements: Formula,
    /// The scalar with the total length of such arrays before it, in units of [`SHARED_UNIT`]; `None` for the first.
    pub before: Option<u32>,
}

impl Array {
    /// An array whose length is the same at all sizes.
    pub fn new(name: String, ty: Type, space: Space, elements: usize) -> Array {
        Array { name, ty, space, elements, at_launch: None }
    }

    /// The bytes that it takes in shared memory.
    pub(crate) fn shared_bytes(&self) -> usize {
        (self.elements * self.ty.bytes()).next_multiple_of(SHARED_UNIT)
    }
}

/// The memory that holds an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Space {
    /// Global memory: one of the program's buffers.
    Global(BufferId),
    /// One copy per block.
    Shared,
    /// One copy per thread: in registers if all indices are constant after unrolling.
    Thread,
}

/// The place of an array in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedPlace {
    /// Bytes before it, other than those of arrays whose length depends on the sizes of a launch.
    pub offset: usize,
    /// The scalar with the bytes of those arrays before it, in units of [`SHARED_UNIT`].
    pub units: Option<u32>,
}

/// Arrays in shared memory start at multiples of these bytes.
pub const SHARED_UNIT: usize = SHARED_ALIGNMENT as usize;

impl Kernel {
    /// Bytes of shared memory per block; the maximum, if they depend on the sizes of a launch.
    pub fn shared_bytes(&self) -> usize {
        self.shared_arrays().map(|(_, array)| array.shared_bytes()).sum()
    }

    /// The arrays in shared memory and their places: those of fixed length come first.
    pub fn shared_places(&self) -> Vec<(ArrayId, SharedPlace)> {
        let (mut offset, mut places) = (0, Vec::new());
        let fixed = self.shared_arrays().filter(|(_, array)| array.at_launch.is_none());
        for (id, array) in fixed {
            places.push((id, SharedPlace { offset, units: None }));
            offset += array.shared_bytes();
        }
        let of_launch = |(id, array): (ArrayId, &Array)| {
            let units = array.at_launch.as_ref()?.before;
            Some((id, SharedPlace { offset, units }))
        };
        places.extend(self.shared_arrays().filter_map(of_launch));
        places
    }

    fn shared_arrays(&self) -> impl Iterator<Item = (ArrayId, &Array)> {
        self.arrays.iter().filter(|(_, array)| array.space == Space::Shared)
    }
}
