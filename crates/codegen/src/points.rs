//! The points of Funcs and inputs that the accesses of a program touch.
//!
//! Kernel IR only has elements of arrays. [`Points`] keeps, beside a program, the coordinates from which lowering made
//! each index, as nodes of the kernel's expressions. Tools that show a program at work read it; kernels do not depend
//! on it.

use ahash::AHashMap;
use smallvec::SmallVec;
use warploom_lang::IdVec;
use warploom_schedule::Source;

use crate::ir::{ArrayId, KernelId, NodeId};

/// The contents of a program's arrays, and the points that its accesses touch.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// One per kernel.
    pub kernels: IdVec<KernelId, KernelPoints>,
}

/// The contents of a kernel's arrays, and the points that its accesses touch.
#[derive(Clone, Debug, Default)]
pub struct KernelPoints {
    /// The contents of each array; `None` if it is neither a Func nor an input.
    pub arrays: IdVec<ArrayId, Option<Held>>,
    accesses: AHashMap<Key, Vec<AccessPoint>>,
    vectors: AHashMap<Key, Vec<Vec<AccessPoint>>>,
}

/// One value of a Func, or an input, which an array holds in whole or in part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Held {
    /// The Func or input.
    pub source: Source,
    /// The number of the value in the Func's tuple.
    pub value: usize,
}

/// An access in the text of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The array that is accessed.
    pub array: ArrayId,
    /// The index of the element.
    pub index: NodeId,
    /// The value that is written; `None` for a load.
    pub value: Option<NodeId>,
}

/// A point that an access touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessPoint {
    /// The coordinates, as nodes of the kernel's expressions.
    pub at: SmallVec<[NodeId; 4]>,
    /// The stage of the Func that the access belongs to, if it is a write.
    pub stage: usize,
}

impl KernelPoints {
    /// The points of an access. Equal text can stand for different points under different variables: the
    /// first place whose variables are all bound is the right one.
    pub fn places(&self, key: Key) -> &[AccessPoint] {
        self.accesses.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The points of a copy of several elements, one per element, by its first index; `value` of a write is the index that
    /// it reads. As for other accesses, the first list whose variables are all bound is the right one.
    pub fn vectors(&self, key: Key) -> &[Vec<AccessPoint>] {
        self.vectors.get(&key).map_or(&[], Vec::as_slice)
    }

    /// Adds the places of a copy of several elements, unless they are known.
    pub(crate) fn add_vector(&mut self, key: Key, places: Vec<AccessPoint>) {
        let all = self.vectors.entry(key).or_default();
        if !all.contains(&places) {
            all.push(places);
        }
    }

    /// Adds a place of an access, unless it is known.
    pub(crate) fn add(&mut self, key: Key, place: AccessPoint) {
        let places = self.accesses.entry(key).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }
}
