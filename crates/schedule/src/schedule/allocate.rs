//! Allocates the arrays that live in a kernel's blocks and threads.

use smallvec::SmallVec;
use warploom_lang::Type;

use crate::dag::LoopKind;
use crate::ids::KernelId;
use crate::node_set::NodeSet;
use crate::schedule::footprint::{Allocation, Footprint, NestFootprint, ThreadLoop, array_bytes, strides};
use crate::schedule::reach::blocks;
use crate::schedule::trace::{Required, Tracer, read_of};
use crate::schedule::tree::{Item, Storage};

impl Tracer<'_> {
    /// The arrays of a kernel. A Func that is exchanged `in_warps` is one register per thread.
    pub(super) fn allocations(
        &mut self,
        kernel: KernelId,
        nests: &[Option<NestFootprint>],
        required: &Required,
        in_warps: &NodeSet,
    ) -> Vec<Allocation> {
        let plan = self.plan;
        let mut allocations: Vec<Allocation> = Vec::new();
        for (info, nest) in plan.nests_of(kernel).iter().zip(nests) {
            let read = read_of(info.nest.item);
            let known = allocations.iter().any(|allocation| read_of(allocation.item) == read);
            let (Some(nest), Some(accesses), false) = (nest, required.get(read), known) else { continue };
            if plan.is_own(info) {
                continue;
            }
            let dims = self.union(accesses, self.problem.root(read), &plan.foreign_loops(info));
            let points = Footprint { dims };
            if in_warps.contains(self.problem.node(read)) {
                allocations.push(register(info.nest.item, points, self.problem.types(info.nest.item)));
                continue;
            }
            let storage = info.nest.storage;
            let private = nest.threads.as_deref().filter(|_| storage.is_private());
            let shares: Vec<Option<(i64, i64)>> =
                (0..points.dims.len()).map(|d| thread_share(private?, d)).collect();
            let extents = points.dims.iter().zip(&shares).map(|(reach, share)| match share {
                Some((threads, serial)) => serial * blocks(reach.extent(), threads * serial),
                None => reach.extent(),
            });
            let extents: Vec<i64> = extents.collect();
            let mut rows = extents.clone();
            if let (Some(row), Some(pitch)) = (rows.first_mut(), info.nest.numbers.pitch) {
                *row = i64::from(pitch.get()).max(*row);
            }
            let strides = strides(&rows, 0..rows.len());
            let elements = rows.iter().fold(1, |elements: i64, extent| elements.saturating_mul(*extent));
            let bytes = array_bytes(self.problem.types(info.nest.item), elements);
            let item = info.nest.item;
            allocations.push(Allocation {
                item,
                storage,
                in_warps: false,
                points,
                extents,
                shares,
                strides,
                elements,
                bytes,
            });
        }
        allocations
    }
}

/// One register per value in each thread.
fn register(item: Item, points: Footprint, types: &[Type]) -> Allocation {
    let dims = points.dims.len();
    Allocation {
        item,
        storage: Storage::Private,
        in_warps: true,
        points,
        extents: vec![1; dims],
        shares: vec![None; dims],
        strides: SmallVec::from_elem(0, dims),
        elements: 1,
        bytes: types.iter().map(|ty| ty.bytes() as u64).sum(),
    }
}

/// The number of threads that share a dimension, and the points of each; `None` if one thread has all
/// points.
fn thread_share(loops: &[ThreadLoop], dimension: usize) -> Option<(i64, i64)> {
    let dim = loops.iter().find(|dim| dim.dim == LoopKind::Pure(dimension) && dim.threads > 1)?;
    Some((dim.threads, dim.serial))
}
