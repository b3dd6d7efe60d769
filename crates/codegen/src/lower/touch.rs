//! Records the points that accesses touch, for tools that request them.

use warploom_lang::IdVec;
use warploom_schedule::Source;

use crate::ir::{Array, ArrayId, BufferId, Kernel, KernelId, NodeId, Role, Space, Stmt};
use crate::lower::context::Context;
use crate::lower::state::{Kept, KernelLowering, Read, Stored};
use crate::points::{AccessPoint, Held, KernelPoints, Key, Points};

/// The kernels lowered so far, with their points if requested.
#[derive(Default)]
pub(crate) struct Kernels {
    pub kernels: IdVec<KernelId, Kernel>,
    pub points: Option<Points>,
}

impl Kernels {
    pub fn with_points() -> Kernels {
        Kernels { points: Some(Points::default()), ..Kernels::default() }
    }

    /// The table for the points of the next kernel, if requested.
    pub fn new_points(&self) -> Option<KernelPoints> {
        self.points.as_ref().map(|_| KernelPoints::default())
    }

    pub fn push(&mut self, (kernel, own): (Kernel, Option<KernelPoints>)) -> KernelId {
        if let Some(points) = &mut self.points {
            points.kernels.push(own.unwrap_or_default());
        }
        self.kernels.push(kernel)
    }
}

impl KernelLowering<'_> {
    /// The index for a load of the element at a point.
    pub fn loaded(&mut self, stored: &Stored, at: &[NodeId]) -> NodeId {
        let index = stored.index(&mut self.builder, at);
        self.touch(Key { array: stored.array, index, value: None }, at, 0);
        index
    }

    /// Stores a value to the element at a point, for a stage.
    pub fn written(&mut self, stored: &Stored, at: &[NodeId], value: NodeId, stage: usize) -> Stmt {
        let (array, index) = (stored.array, stored.index(&mut self.builder, at));
        self.touch(Key { array, index, value: Some(value) }, at, stage);
        Stmt::Store { array, index, value }
    }

    /// Records the point that an access touches, if requested.
    pub fn touch(&mut self, key: Key, at: &[NodeId], stage: usize) {
        if let Some(points) = &mut self.points {
            points.add(key, AccessPoint { at: at.iter().copied().collect(), stage });
        }
    }

    /// The points that an access touches, as far as they are recorded.
    pub fn touched(&self, key: Key) -> Vec<AccessPoint> {
        self.points.as_ref().map_or_else(Vec::new, |points| points.places(key).to_vec())
    }

    /// Records the points of an access for the access that replaces it.
    pub fn touch_alike(&mut self, from: Key, to: Key) {
        for AccessPoint { at, stage } in self.touched(from) {
            self.touch(to, &at, stage);
        }
    }

    /// The points of the finished kernel.
    pub fn take_points(&mut self) -> Option<KernelPoints> {
        let mut points = self.points.take()?;
        let local = |array: ArrayId| {
            let copied = self.vectors.iter().find(|(_, registers)| **registers == array);
            let array = copied.map_or(array, |(key, _)| key.array);
            if let Space::Global(buffer) = self.arrays[array].space {
                return in_buffer(self.context, buffer);
            }
            let (&(kept, value), _) = self.kept.iter().find(|(_, kept)| **kept == array)?;
            let source = match kept {
                Kept::Whole(Read::Input(input)) => Source::Input(input),
                Kept::Whole(Read::Func(func)) => Source::Func(func),
                Kept::Tile(stage) => Source::Func(stage.func),
            };
            Some(Held { source, value })
        };
        points.arrays = held(self.context, &self.arrays, local);
        Some(points)
    }
}

/// The Func or input that each array holds; `local` lists the arrays that are not buffers.
pub(crate) fn held(
    context: &Context<'_>,
    arrays: &IdVec<ArrayId, Array>,
    local: impl Fn(ArrayId) -> Option<Held>,
) -> IdVec<ArrayId, Option<Held>> {
    let of = |(id, array): (ArrayId, &Array)| match array.space {
        Space::Global(buffer) => in_buffer(context, buffer),
        Space::Shared | Space::Thread => local(id),
    };
    arrays.iter().map(of).collect()
}

fn in_buffer(context: &Context<'_>, buffer: BufferId) -> Option<Held> {
    if let Role::Input(input) = context.buffers[buffer].role {
        return Some(Held { source: Source::Input(input), value: 0 });
    }
    let copied = context.copies.iter().find(|copy| copy.to == buffer);
    let buffer = copied.map_or(buffer, |copy| copy.from);
    context.func_buffers.iter().find_map(|(func, buffers)| {
        let value = buffers.iter().position(|own| *own == buffer)?;
        Some(Held { source: Source::Func(func), value })
    })
}
