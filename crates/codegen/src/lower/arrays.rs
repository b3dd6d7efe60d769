//! Allocates the arrays of blocks and threads, and finds them for accesses.

use warploom_lang::dynamic::Formula;
use warploom_lang::ir::copy_name;
use warploom_lang::{FuncId, Type};
use warploom_plan::{Allocation, LaunchExtent, NestPlan, StagedFootprint, strides};
use warploom_schedule::StageRef;

use crate::ir::{Array, BufferId, LaunchLength, NodeId, SHARED_UNIT, Space};
use crate::lower::error::LowerError;
use crate::lower::layout::{Axis, Layout};
use crate::lower::state::{Kept, KernelLowering, Read, Stored, read_of};

/// The number of elements of an array.
#[derive(Clone, Copy)]
struct Length<'a> {
    /// The largest number.
    elements: i64,
    /// The number at any sizes, if it follows from them.
    at_launch: Option<&'a Formula>,
}

impl Length<'_> {
    fn fixed(elements: i64) -> Length<'static> {
        Length { elements, at_launch: None }
    }
}

/// The position of an array's elements.
struct Placement {
    layout: Layout,
    /// The slice, if there are several.
    slice: Option<NodeId>,
}

impl From<Layout> for Placement {
    fn from(layout: Layout) -> Placement {
        Placement { layout, slice: None }
    }
}

impl KernelLowering<'_> {
    /// Allocates the arrays of a nest that lives in the block.
    pub fn allocate(&mut self, nest: &NestPlan) {
        let read = read_of(nest.nest.item);
        let mut allocations = self.plan.allocations.iter();
        let Some(allocation) = allocations.find(|allocation| read_of(allocation.item) == read) else {
            return;
        };
        let points = self.placed(&allocation.points);
        let space = if allocation.storage.is_private() { Space::Thread } else { Space::Shared };
        let Allocation { extents, strides, shares, elements, slices, at_launch, .. } = allocation;
        let slice = self.slice(nest, *slices);
        let mut axes = self.axes(&points.lower, extents, strides, shares);
        if slice.is_some() {
            let (lower, stride) = (self.builder.int(0), elements / slices);
            axes.push(Axis { lower, extent: *slices, stride, scalar: None, share: None });
        }
        let mut layout = Layout::new(axes, self.context.narrow_elements);
        let at_launch = match (at_launch, &mut layout) {
            (Some(at_launch), Layout::Narrow(axes)) => {
                self.stride_at_launch(axes, at_launch);
                Some(&at_launch.elements)
            }
            _ => None,
        };
        let length = Length { elements: *elements, at_launch };
        self.declare_whole(read, space, length, &Placement { layout, slice });
    }

    /// Sets the strides beyond the dimension whose extent follows from the sizes.
    fn stride_at_launch(&mut self, axes: &mut [Axis], at_launch: &LaunchExtent) {
        let LaunchExtent { dim, extent, .. } = at_launch;
        let longest = axes[*dim].extent;
        for axis in axes.iter_mut().skip(dim + 1).filter(|axis| axis.extent > 1) {
            let stride = extent.scale(axis.stride / longest);
            axis.scalar = stride.map(|stride| self.scalars.whole(self.context, &mut self.builder, &stride));
        }
    }

    /// Allocates the arrays of a Func in registers.
    pub fn allocate_registers(&mut self, func: FuncId, footprint: &StagedFootprint) {
        let own = self.placed(&footprint.points);
        let (elements, layout) = self.dense(&own.lower, &own.extent);
        self.declare_whole(Read::Func(func), Space::Thread, Length::fixed(elements), &layout.into());
    }

    /// Allocates registers for a tile of a stage's points.
    pub fn tile_registers(&mut self, stage: StageRef, lower: &[NodeId], extents: &[i64]) -> Vec<Stored> {
        let (elements, layout) = self.dense(lower, extents);
        self.declare(Kept::Tile(stage), Space::Thread, Length::fixed(elements), &layout.into())
    }

    /// The number of elements and the layout of a dense array over a box.
    fn dense(&self, lower: &[NodeId], extents: &[i64]) -> (i64, Layout) {
        let strides = strides(extents, 0..extents.len());
        let elements = extents.iter().fold(1, |elements: i64, extent| elements.saturating_mul(*extent));
        let axes = self.axes(lower, extents, &strides, &[]);
        (elements, Layout::new(axes, self.context.narrow_elements))
    }

    fn axes(
        &self,
        lower: &[NodeId],
        extents: &[i64],
        strides: &[i64],
        shares: &[Option<(i64, i64)>],
    ) -> Vec<Axis> {
        let axis = |d: usize| Axis {
            lower: lower[d],
            extent: extents[d],
            stride: strides[d],
            scalar: None,
            share: shares.get(d).copied().flatten(),
        };
        (0..extents.len()).map(axis).collect()
    }

    /// Allocates the arrays of a whole Func or input. Later accesses use them.
    fn declare_whole(&mut self, read: Read, space: Space, length: Length<'_>, place: &Placement) {
        let arrays = self.declare(Kept::Whole(read), space, length, place);
        for (value, stored) in arrays.into_iter().enumerate() {
            self.local.insert((read, value), stored);
        }
    }

    /// Allocates one array per value. The stages of a Func and the versions of a block share them.
    fn declare(&mut self, key: Kept, space: Space, length: Length<'_>, place: &Placement) -> Vec<Stored> {
        let elements = self.builder.count(length.elements) as usize;
        let (name, types) = match key {
            Kept::Whole(read) => self.name_and_types(read),
            Kept::Tile(stage) => {
                let (name, types) = self.name_and_types(Read::Func(stage.func));
                (format!("{name}.tile"), types)
            }
        };
        let mut arrays = Vec::new();
        for (value, &ty) in types.iter().enumerate() {
            let name = if types.len() > 1 { format!("{name}.{value}") } else { name.clone() };
            let array = match self.kept.get(&(key, value)) {
                Some(array) => *array,
                None => {
                    let at_launch = length.at_launch.cloned();
                    let at_launch = at_launch.map(|elements| LaunchLength { elements, before: None });
                    self.arrays.push(Array { at_launch, ..Array::new(name, ty, space, elements) })
                }
            };
            self.kept.insert((key, value), array);
            arrays.push(Stored { array, layout: place.layout.clone(), slice: place.slice });
        }
        arrays
    }

    /// Places the arrays whose length depends on the sizes one after the other. Returns the bytes of all shared arrays
    /// at any sizes; `None` if there is no such array, or if a length does not fit, so that all have their largest
    /// length.
    pub fn place_shared(&mut self) -> Option<Formula> {
        let placed = self.lengths_before();
        if placed.is_none() {
            self.arrays.values_mut().for_each(|array| array.at_launch = None);
        }
        let (before, units) = placed?;
        let of_launch = self.arrays.values_mut().filter_map(|array| array.at_launch.as_mut());
        for (length, before) in of_launch.zip(&before) {
            length.before = (!before.is_constant()).then(|| self.scalars.position(self.context, before));
        }
        let fixed =
            self.arrays.values().filter(|array| array.space == Space::Shared && array.at_launch.is_none());
        let fixed: usize = fixed.map(Array::shared_bytes).sum();
        units.scale(SHARED_UNIT as i64)?.add_scaled(&Formula::constant(fixed as i64), 1)
    }

    /// The units of shared memory before each array whose length follows from the sizes, and of all of them.
    fn lengths_before(&self) -> Option<(Vec<Formula>, Formula)> {
        let (mut before, mut units) = (Vec::new(), Formula::constant(0));
        let unit = SHARED_UNIT as i64;
        for array in self.arrays.values() {
            let Some(length) = &array.at_launch else { continue };
            before.push(units.clone());
            let bytes = length.elements.scale(array.ty.bytes() as i64)?;
            let rounded = bytes.add_scaled(&Formula::constant(unit - 1), 1)?;
            units = units.add_scaled(&self.context.formulas.borrow_mut().quotient(&rounded, unit)?, 1)?;
        }
        (!before.is_empty()).then_some((before, units))
    }

    fn name_and_types(&self, read: Read) -> (String, Vec<Type>) {
        let pipeline = self.context.pipeline();
        match read {
            Read::Func(func) => (pipeline.funcs()[func].name.clone(), pipeline.funcs()[func].types.clone()),
            Read::Input(input) => {
                let input = &pipeline.inputs()[input];
                (copy_name(&input.name), vec![input.ty])
            }
        }
    }

    /// The array from which this kernel reads a value.
    pub fn stored(&mut self, read: Read, value: usize) -> Result<Stored, LowerError> {
        if let Some(stored) = self.local.get(&(read, value)) {
            return Ok(stored.clone());
        }
        let buffer = match read {
            Read::Func(func) => self.context.func_buffers[func].get(value).copied(),
            Read::Input(input) => Some(self.context.input_buffers[input]),
        };
        let unplaced = || LowerError::Unplaced { func: self.name_and_types(read).0, kernel: self.name() };
        Ok(self.global(buffer.ok_or_else(unplaced)?))
    }

    /// The kernel's array for a buffer.
    pub fn global(&mut self, buffer: BufferId) -> Stored {
        if let Some(stored) = self.globals.get(&buffer) {
            return stored.clone();
        }
        let decl = &self.context.buffers[buffer];
        let space = Space::Global(buffer);
        let array = Array::new(decl.name.clone(), decl.ty, space, decl.elements());
        let array = self.arrays.push(array);
        let layout = Layout::of_buffer(&mut self.builder, &mut self.scalars, self.context, buffer);
        let stored = Stored { array, layout, slice: None };
        self.globals.insert(buffer, stored.clone());
        stored
    }
}
