//! Storage rules: everything fits into its memory, and threads read only what they may.

use warploom_lang::brief::shown;
use warploom_lang::{FuncId, ids_in};
use warploom_schedule::{Item, KernelNumbers, LoopKind, NestNumbers, Path, Rational, StageRef};

use crate::decisions::{DECISIONS, Line};
use crate::footprint::{Footprint, MAX_REGISTER_BYTES, NestFootprint, RegisterFootprint, ThreadLoop};
use crate::ids::{KernelId, NestId};
use crate::legality::Checker;
use crate::legality::rule::Rule;
use crate::plan::{KernelPlan, NestPlan};
use crate::reach::Reach;
use crate::reach::symbol::Symbol;
use crate::trace::{Tracer, read_of};

/// The maximum bytes of a private Func per thread. Private memory outside registers is reserved for
/// every thread that a device can hold at once, some 270 thousand on a large one.
pub const MAX_PRIVATE_BYTES: u64 = 8 * 1024;

/// An extent without a constant width may still be allocated up to this size, as for a lookup table.
pub const SMALL_EXTENT: i64 = 1024;

impl Checker<'_> {
    pub(super) fn storage(&mut self) {
        for id in self.plan.kernels.keys() {
            self.kernel_limits(id);
            self.allocations(id);
        }
        for (position, nest) in self.plan.nests.iter() {
            if nest.nest.storage.is_private() {
                self.private(position, nest);
            }
            if nest.nest.numbers != NestNumbers::default() {
                self.words(&self.plan.kernels[nest.kernel], Some(nest));
            }
            if let Some(footprint) = &nest.footprint {
                self.nest_threads(nest, footprint);
                self.register_sizes(nest, footprint);
            }
        }
    }

    fn kernel_limits(&mut self, id: KernelId) {
        let kernel = &self.plan.kernels[id];
        let stage = || self.stage_name(kernel.kernel.stage);
        let device = || self.problem.device().name.clone();
        let limits = self.problem.device().threads.grid_dims;
        let mut rules: Vec<Rule> = Vec::new();
        let ([blocks, ..], limit) = (kernel.grid(self.problem.device()), u64::from(limits[0]));
        if blocks > limit {
            rules.push(Rule::Grid { stage: stage(), blocks, limit, device: device() });
        }
        let (bytes, limit) =
            (kernel.shared_bytes(), u64::from(self.problem.device().shared.per_block_opt_in));
        if bytes > limit {
            let shared = kernel.allocations.iter().filter(|part| part.storage.is_shared());
            let parts: Vec<String> = shared
                .map(|part| {
                    let extents: Vec<String> = part.extents.iter().map(i64::to_string).collect();
                    format!("{} {}", self.item_name(part.item), extents.join(" x "))
                })
                .collect();
            let (stage, parts, device) = (stage(), shown(&parts, ", "), device());
            rules.push(Rule::SharedBytes { stage, bytes, parts, limit, device });
        }
        for rule in rules {
            self.report(&kernel.path, rule);
        }
        if kernel.kernel.numbers != KernelNumbers::default() {
            self.words(kernel, None);
        }
    }

    /// Checks the words of a kernel, or of one of its nests.
    fn words(&mut self, kernel: &KernelPlan, nest: Option<&NestPlan>) {
        let at = Line { problem: self.problem, plan: self.plan, kernel, nest };
        for (path, rule) in DECISIONS.iter().flat_map(|decision| decision.refusals(&at)) {
            self.report(&path, rule);
        }
    }

    /// The name of a Func, for any of its stages, or of a staged input.
    fn item_name(&self, item: Item) -> String {
        match item {
            Item::Stage(stage) => self.func_name(stage.func),
            Item::Input(_) => self.names.of_item(item),
        }
    }

    fn nest_threads(&mut self, nest: &NestPlan, footprint: &NestFootprint) {
        let limit = u64::from(self.problem.device().threads.per_block);
        if let Some(threads) = footprint.thread_count().filter(|threads| *threads > limit) {
            let (item, device) = (self.names.of_item(nest.nest.item), self.problem.device().name.clone());
            self.report(&nest.path, Rule::Threads { item, threads, limit, device });
        }
    }

    /// Checks that arrays in a block have constant extents, and that private arrays are not too large.
    fn allocations(&mut self, id: KernelId) {
        for allocation in &self.plan.kernels[id].allocations {
            let mut nests = self.plan.nests_of(id).iter();
            let first = nests.find(|nest| read_of(nest.nest.item) == read_of(allocation.item));
            let Some(path) = first.map(|nest| &nest.path) else { continue };
            self.bounded(path, allocation.item, &allocation.points);
            if allocation.storage.is_private() && allocation.bytes > MAX_PRIVATE_BYTES {
                let (func, bytes) = (self.item_name(allocation.item), allocation.bytes);
                self.report(path, Rule::ThreadBytes { func, bytes, limit: MAX_PRIVATE_BYTES });
            }
        }
    }

    fn register_sizes(&mut self, nest: &NestPlan, footprint: &NestFootprint) {
        for (i, &func) in nest.nest.registers.iter().enumerate() {
            let Some(RegisterFootprint { thread, .. }) = footprint.registers.get(&func) else { continue };
            let points = &thread.points;
            let path = nest.path.child(i);
            let item = Item::Stage(StageRef { func, stage: 0 });
            self.bounded(&path, item, points);
            let bytes = points.points().saturating_mul(self.names.func_decl(func).bytes_per_point() as u64);
            if bytes > MAX_REGISTER_BYTES {
                let func = self.func_name(func);
                self.report(&path, Rule::ThreadBytes { func, bytes, limit: MAX_REGISTER_BYTES });
            }
        }
    }

    fn bounded(&mut self, path: &Path, item: Item, points: &Footprint) {
        for (d, reach) in points.dims.iter().enumerate() {
            if !reach.bounded && reach.extent() > SMALL_EXTENT {
                let variable = self.names.of_loop(item, LoopKind::Pure(d));
                let (func, extent) = (self.item_name(item), reach.extent());
                return self.report(path, Rule::Unbounded { func, variable, extent });
            }
        }
    }

    /// Checks a private stage: every thread reads only what it wrote itself.
    fn private(&mut self, position: NestId, nest: &NestPlan) {
        let Some(stage) = nest.stage() else { return };
        if nest.nest.mapping.is_flat() {
            return self.report(&nest.path, Rule::PrivateFlat { stage: self.stage_name(stage) });
        }
        let stages = ids_in(&self.plan.kernels[nest.kernel].nests);
        let stages = stages.filter_map(|number| Some((number, self.plan.nests[number].stage()?)));
        let own = stages.clone().filter(|(_, own)| own.func == stage.func);
        if own.clone().any(|(_, own)| own.stage < stage.stage) {
            return;
        }
        // The first stage has all points, so all others must share them in the same way.
        let broken = |(number, consumer): (NestId, StageRef)| {
            let (func, consumer) = (self.func_name(stage.func), self.stage_name(consumer));
            (self.plan.nests[number].path.clone(), Rule::PrivateRead { func, consumer })
        };
        let mut unlike = own.filter(|(number, _)| !self.shared_alike(position, *number, Index::Loop));
        let found: Vec<(Path, Rule)> = match unlike.next() {
            Some(later) => vec![broken(later)],
            None => {
                let readers = stages.filter(|(number, _)| self.reads[*number].contains(&stage.func));
                let owned =
                    |(reader, at): &(NestId, StageRef)| self.reads_own(stage.func, position, *reader, *at);
                readers.filter(|reader| !owned(reader)).map(broken).collect()
            }
        };
        for (path, rule) in found {
            self.report(&path, rule);
        }
    }

    /// Whether each thread of a reader reads only what the same thread computes of a Func.
    fn reads_own(&self, func: FuncId, producer: NestId, reader: NestId, stage: StageRef) -> bool {
        let info = &self.plan.nests[reader];
        let Some(NestFootprint { points, .. }) = &info.footprint else { return true };
        let columns = Tracer::new(self.problem, self.plan).point_reads(info, stage, points, func);
        let index = |d: usize| match columns.get(d).map(Vec::as_slice) {
            Some([reach]) => Index::of(reach),
            _ => Index::Other,
        };
        self.shared_alike(producer, reader, index)
    }

    /// Whether threads share a producer and its reader in the same way, if dimension `d` of the producer is read at
    /// `index(d)`: each point that is read belongs to the same thread number in both.
    ///
    /// The thread number is a sum over the loops that threads share. Each loop contributes the tile number of the point,
    /// times the threads of the loops before it. The first tile of a loop contributes nothing, so small boxes are shared
    /// in the same way for any indices.
    fn shared_alike(&self, producer: NestId, reader: NestId, index: impl Fn(usize) -> Index) -> bool {
        let [made, read] = [producer, reader].map(|id| self.plan.nests[id].footprint.as_ref());
        let (Some(made), Some(read)) = (made, read) else { return true };
        let (Some(writers), Some(readers)) = (several(made), several(read)) else { return false };
        let mut left: Vec<(i64, &ThreadLoop)> =
            readers.into_iter().filter(|(_, dim)| dim.extent > dim.serial).collect();
        let shared = |(below, writer): &(i64, &ThreadLoop)| {
            if writer.extent <= writer.serial {
                return true;
            }
            let LoopKind::Pure(d) = writer.dim else { return false };
            if in_first_tile(writer, &made.points.dims[d], index(d), read) {
                return true;
            }
            let same = |(other, reader): &(i64, &ThreadLoop)| {
                let LoopKind::Pure(e) = reader.dim else { return false };
                other == below
                    && (writer.threads, writer.serial) == (reader.threads, reader.serial)
                    && index(d) == Index::Loop(e)
                    && made.points.dims[d].starts_like(&read.points.dims[e])
            };
            let found = left.iter().position(same);
            found.map(|position| left.remove(position)).is_some()
        };
        let all = writers.iter().all(shared);
        all && left.is_empty()
    }
}

/// The loops of a nest that several threads share, each with the number of threads between two of its
/// tiles; `None` if the nest is flat.
fn several(nest: &NestFootprint) -> Option<Vec<(i64, &ThreadLoop)>> {
    let mut below = 1_i64;
    let shared = nest.threads.as_ref()?.iter().filter(|dim| dim.threads > 1).map(|dim| {
        let before = below;
        below = below.saturating_mul(dim.threads);
        (before, dim)
    });
    Some(shared.collect())
}

/// Whether everything that a reader touches along a dimension is in the first tile of the loop that
/// wrote it.
fn in_first_tile(writer: &ThreadLoop, made: &Reach, index: Index, read: &NestFootprint) -> bool {
    match index {
        Index::Loop(e) => {
            // A scatter has no loop over the dimension along which it scatters.
            let looped = read.threads.iter().flatten().any(|own| own.dim == LoopKind::Pure(e));
            let points = &read.points.dims[e];
            looped && points.extent() <= writer.serial && made.starts_like(points)
        }
        Index::At(value) => made.terms.is_empty() && value - made.min < writer.serial,
        Index::Other => false,
    }
}

/// The form of an index along one dimension of a Func that is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Index {
    /// The point of this dimension of the reader.
    Loop(usize),
    /// Always this value.
    At(i64),
    /// Any other index.
    Other,
}

impl Index {
    fn of(reach: &Reach) -> Index {
        match reach.terms.as_slice() {
            [(Symbol::Thread(LoopKind::Pure(d)), Rational::ONE)]
                if reach.low.is_zero() && reach.high.is_zero() && reach.clamp.is_none() =>
            {
                Index::Loop(*d)
            }
            _ => reach.singleton().map_or(Index::Other, Index::At),
        }
    }
}
