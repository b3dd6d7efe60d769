//! Allocates the arrays that live in a kernel's blocks and threads.

use smallvec::SmallVec;
use warploom_lang::Type;
use warploom_lang::dynamic::{Formula, FormulaRange};
use warploom_schedule::{Item, LoopKind, NodeSet, Source, Storage};
use warploom_target::Device;

use crate::footprint::{
    Allocation, Footprint, LaunchExtent, NestFootprint, SHARED_ALIGNMENT, ThreadLoop, array_bytes,
    row_dimension, strides,
};
use crate::ids::KernelId;
use crate::plan::{resident_blocks, shared_bytes};
use crate::reach::{Reach, blocks};
use crate::trace::{Required, Tracer, read_of};

/// An array is as long as a launch asks only if that saves more than one part in so many of the kernel's shared memory.
const PARTS: u64 = 32;

impl Tracer<'_> {
    /// The arrays of a kernel. A Func that is exchanged `in_warps` is one register per thread.
    pub(super) fn allocations(
        &mut self,
        kernel: KernelId,
        nests: &[Option<NestFootprint>],
        required: &Required,
        in_warps: &NodeSet,
        threads: u64,
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
            let numbers = info.nest.numbers;
            let mut order: SmallVec<[usize; 4]> = (0..points.dims.len()).collect();
            if numbers.transpose {
                order.reverse();
            }
            let reaches: SmallVec<[i64; 4]> = points.dims.iter().map(Reach::extent).collect();
            let along = row_dimension(&reaches, numbers.transpose);
            let row = along.map_or(1, |d| reaches[d]);
            if in_warps.contains(self.problem.node(read)) {
                allocations.push(register(info.nest.item, points, row, self.problem.types(info.nest.item)));
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
            let mut padded = extents.clone();
            if let (Some(d), Some(pitch)) = (along, numbers.pitch) {
                padded[d] = i64::from(pitch.get()).max(padded[d]);
            }
            let strides = strides(&padded, order);
            let slices = self.slices_of(info);
            let item = info.nest.item;
            let slice = padded.iter().fold(1, |elements: i64, extent| elements.saturating_mul(*extent));
            let is_padded = numbers.vector && slices > 1;
            let elements = if is_padded { aligned(slice, self.problem.types(item)) } else { slice };
            let elements = elements.saturating_mul(slices);
            let bytes_of = |elements: i64| array_bytes(self.problem.types(item), elements);
            let bytes = bytes_of(elements);
            let is_dense = numbers.pitch.is_none() && !numbers.transpose && slices == 1;
            let at_launch = match storage.is_shared() && is_dense {
                true => self.extent_at_launch(read, &points, elements),
                false => None,
            };
            let typical = at_launch.as_ref().and_then(|at_launch| self.typical(&at_launch.elements));
            let typical_bytes = typical.map_or(bytes, bytes_of);
            allocations.push(Allocation {
                item,
                storage,
                in_warps: false,
                points,
                extents,
                shares,
                strides,
                row,
                elements,
                slices,
                bytes,
                at_launch,
                typical_bytes,
            });
        }
        if self.problem.sizes().is_some() {
            keep_fixed_lengths(&mut allocations, threads, self.problem.device());
        }
        allocations
    }

    /// The slowest dimension of a dense array that runs over a whole range that follows from the sizes.
    fn extent_at_launch(&mut self, read: Source, points: &Footprint, elements: i64) -> Option<LaunchExtent> {
        let region = self.problem.root_at_launch(read)?;
        let follows = |(reach, range): (&Reach, &FormulaRange)| {
            reach.extent() > 1 && reach.terms.is_empty() && !range.last.is_constant()
        };
        let dim = points.dims.iter().zip(region).rposition(follows)?;
        let (reach, last) = (&points.dims[dim], &region[dim].last);
        let formulas = &mut self.symbols.limits.formulas;
        let extent = last.add_scaled(&Formula::constant(reach.min - 1), -1)?;
        let extent = formulas.max(&extent, &Formula::constant(1))?;
        let extent = formulas.min(&extent, &Formula::constant(reach.extent()))?;
        let elements = extent.scale(elements / reach.extent())?;
        (!extent.is_constant()).then_some(LaunchExtent { dim, extent, elements })
    }

    /// The value of a formula at the sizes that the schedule is made for.
    fn typical(&self, formula: &Formula) -> Option<i64> {
        let sizes = &self.problem.sizes()?.request.typical_sizes;
        Some(self.symbols.limits.formulas.at(formula, sizes))
    }
}

/// Makes arrays as long as they can be, unless that leaves room for fewer blocks on an SM at the usual sizes: the kernel
/// compiler can tell arrays apart whose places are fixed.
fn keep_fixed_lengths(allocations: &mut [Allocation], threads: u64, device: &Device) {
    let (largest, typical) = (
        shared_bytes(allocations, |allocation| allocation.bytes),
        shared_bytes(allocations, |allocation| allocation.typical_bytes),
    );
    let blocks = |bytes: u64| resident_blocks(device, threads, bytes);
    let matters = blocks(largest) < blocks(typical);
    for allocation in allocations {
        let saved = allocation.bytes.saturating_sub(allocation.typical_bytes);
        if !matters || saved < largest / PARTS {
            (allocation.at_launch, allocation.typical_bytes) = (None, allocation.bytes);
        }
    }
}

/// The elements of a slice such that the next one starts where vectors can.
fn aligned(elements: i64, types: &[Type]) -> i64 {
    let bytes = types.iter().map(|ty| ty.bytes() as u64).min().unwrap_or(1);
    let unit = (SHARED_ALIGNMENT / bytes) as i64;
    elements.saturating_add(unit - 1) / unit * unit
}

/// One register per value in each thread.
fn register(item: Item, points: Footprint, row: i64, types: &[Type]) -> Allocation {
    let dims = points.dims.len();
    let bytes = types.iter().map(|ty| ty.bytes() as u64).sum();
    Allocation {
        item,
        storage: Storage::Private,
        in_warps: true,
        points,
        extents: vec![1; dims],
        shares: vec![None; dims],
        strides: SmallVec::from_elem(0, dims),
        row,
        elements: 1,
        slices: 1,
        bytes,
        at_launch: None,
        typical_bytes: bytes,
    }
}

/// The number of threads that share a dimension, and the points of each; `None` if one thread has all
/// points.
fn thread_share(loops: &[ThreadLoop], dimension: usize) -> Option<(i64, i64)> {
    let dim = loops.iter().find(|dim| dim.dim == LoopKind::Pure(dimension) && dim.threads > 1)?;
    Some((dim.threads, dim.serial))
}
