//! How the accesses of a nest move through an array with the axes of a walk.

use smallvec::SmallVec;
use warploom_lang::Region;

use crate::body::flatten::Group;
use crate::body::form::bit;
use crate::body::vectors::Vector;
use crate::body::walk::{Axis, AxisKind, Linear, Walk};
use crate::footprint::strides;

/// The memory that an array is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Memory {
    /// Global memory, shared by all blocks.
    Global,
    /// Shared memory, with one copy per block.
    Shared,
    /// Registers or local memory, with one copy per thread.
    Thread,
}

/// The memory and layout of an array.
#[derive(Clone, Debug)]
pub struct Place {
    /// The memory that it is in.
    pub memory: Memory,
    /// The distance between neighbours in elements, one per dimension.
    pub strides: SmallVec<[i64; 4]>,
    /// The first index of each dimension.
    pub base: SmallVec<[Linear; 4]>,
    /// Extents of the array.
    pub extents: SmallVec<[i64; 4]>,
}

impl Place {
    /// A dense array in global memory whose dimensions are laid out in `order`, innermost first.
    pub(super) fn global(region: &Region, order: impl IntoIterator<Item = usize>) -> Place {
        let base = region.0.iter().map(|range| Linear::constant(range.min)).collect();
        let extents: SmallVec<[i64; 4]> = region.0.iter().map(|range| range.extent).collect();
        Place { memory: Memory::Global, strides: strides(&extents, order), base, extents }
    }

    /// The number of elements.
    pub fn elements(&self) -> f64 {
        self.extents.iter().map(|extent| *extent as f64).product()
    }
}

/// How the indices of a group change with the axes of a walk.
pub struct Moves<'a> {
    /// The axes.
    pub walk: &'a Walk,
    /// The accesses.
    pub group: &'a Group,
    /// For each index and axis the change per step, times the index's denominator.
    steps: SmallVec<[i64; 32]>,
    /// The distance between the first and the last access along each index.
    spreads: SmallVec<[i64; 4]>,
    /// Whether a variable is itself rounded, so that the steps are approximate.
    rounded: bool,
    /// A bit mask of axes that change an index in an unknown way.
    unknown: u64,
}

impl<'a> Moves<'a> {
    /// The accesses of a group in a walk.
    pub fn new(walk: &'a Walk, group: &'a Group) -> Moves<'a> {
        let axes = walk.around.axes.len();
        let mut steps: SmallVec<[i64; 32]> = SmallVec::from_elem(0, axes * group.rows.len());
        let (mut rounded, mut unknown) = (false, 0);
        for (row, steps) in group.rows.iter().zip(steps.chunks_mut(axes.max(1))) {
            for (number, var) in walk.vars.iter().enumerate() {
                if row.unknown & bit(number) != 0 {
                    unknown |= var.steps.iter().fold(0, |mask, (axis, _)| mask | bit(*axis as usize));
                }
                let coef = row.coefs.get(number).copied().unwrap_or(0);
                if coef == 0 {
                    continue;
                }
                rounded |= var.den > 1;
                for (axis, step) in &var.steps {
                    steps[*axis as usize] += coef * step / var.den;
                }
            }
        }
        let spreads = (0..group.rows.len()).map(|row| group.spread(row)).collect();
        Moves { walk, group, steps, spreads, rounded, unknown }
    }

    /// The change of an index per step of an axis, times the index's denominator.
    pub fn step(&self, row: usize, axis: usize) -> i64 {
        self.steps[row * self.walk.around.axes.len() + axis]
    }

    /// Whether an axis changes any index.
    pub fn moves(&self, axis: usize) -> bool {
        self.is_unknown(axis) || (0..self.group.rows.len()).any(|row| self.step(row, axis) != 0)
    }

    /// Whether an axis changes some index in an unknown way.
    pub fn is_unknown(&self, axis: usize) -> bool {
        self.unknown & bit(axis) != 0
    }

    /// Whether some index depends on the thread in an unknown way.
    pub fn is_scattered(&self) -> bool {
        let mut lanes = self.walk.digits.iter();
        lanes.any(|(axis, _)| self.is_unknown(*axis as usize))
    }

    /// Whether the accessed elements are known exactly.
    pub fn is_exact(&self) -> bool {
        let whole = self.group.rows.iter().all(|row| row.den == 1);
        self.group.is_exact() && whole && !self.rounded && self.unknown == 0
    }

    /// The number of values that an index takes over the selected axes, for all accesses of the
    /// group together.
    pub fn extent(&self, row: usize, keep: impl Fn(AxisKind) -> bool) -> f64 {
        let axes = || self.walk.around.axes.iter().enumerate().filter(|(_, axis)| keep(axis.kind));
        let (groups, others): (Vec<_>, Vec<_>) = axes().partition(|(_, axis)| axis.kind == AxisKind::Group);
        let steps = |(number, axis): &(usize, &Axis)| self.step(row, *number).abs() * (axis.count - 1);
        let moved: i64 = others.iter().map(steps).sum();
        // Groups lie apart from each other.
        let apart = groups.iter().filter(|group| steps(group) > 0).map(|(_, axis)| axis.count as f64);
        self.extent_of(row, moved) * apart.product::<f64>()
    }

    /// The number of values that an index takes if its first access moves by `moved` steps.
    #[inline]
    pub fn extent_of(&self, row: usize, moved: i64) -> f64 {
        (moved / self.group.rows[row].den + self.spreads[row] + 1) as f64
    }

    /// A bit mask of axes that change an index in an unknown way.
    pub fn unknown_axes(&self) -> u64 {
        self.unknown
    }

    /// The element of the first access as a sum over axes, if nothing is rounded.
    pub fn elements(&self, place: &Place) -> Option<Elements> {
        let whole =
            self.group.rows.iter().all(|row| row.den == 1) && place.base.iter().all(|base| base.den == 1);
        if !whole || self.rounded {
            return None;
        }
        let mut elements = Elements {
            constant: 0,
            steps: SmallVec::from_elem(0, self.walk.around.axes.len()),
            vector: None,
        };
        for (number, (row, stride)) in self.group.rows.iter().zip(&place.strides).enumerate() {
            let vars = self.walk.vars.iter().zip(&row.coefs);
            let start: i64 = vars.map(|(var, coef)| coef * var.constant.div_euclid(var.den)).sum();
            let base = &place.base[number];
            elements.constant += stride * (start - base.constant);
            for (axis, step) in elements.steps.iter_mut().enumerate() {
                *step += stride * self.step(number, axis);
            }
            for (axis, step) in &base.steps {
                elements.steps[*axis as usize] -= stride * step;
            }
        }
        Some(elements)
    }
}

/// An element as a sum over axes.
#[derive(Clone)]
pub struct Elements {
    /// The first element of the group's indices without their constants.
    pub constant: i64,
    /// The change per step of each axis; in vectors, if there are any.
    pub steps: SmallVec<[i64; 16]>,
    /// The vector of which the steps are.
    pub vector: Option<Vector>,
}

impl Elements {
    /// The same with steps in vectors. All steps but that of the vector's axis are multiples of its width.
    #[must_use]
    pub fn by(&self, vector: Option<Vector>) -> Elements {
        let mut elements = Elements { vector, ..self.clone() };
        if let Some(Vector { axis, width }) = vector {
            elements.steps.iter_mut().for_each(|step| *step /= width);
            elements.steps[axis] = 1;
        }
        elements
    }
}
