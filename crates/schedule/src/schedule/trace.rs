//! Follows what the nests of a kernel read, from the last one to the first.

use std::collections::BTreeMap;

use ahash::AHashSet;
use warploom_lang::{FuncId, Pipeline, Range, Region, Regions, Type};

use crate::dag::LoopKind;
use crate::schedule::flow::{Read, Scope, Touched, touched};
use crate::schedule::footprint::{
    Allocation, FLAT_THREADS, Footprint, Footprints, KernelFootprint, LoopFootprint, NestFootprint,
    RegisterFootprint, StagedFootprint, ThreadLoop, array_bytes,
};
use crate::schedule::outline::{LoopInfo, NestInfo, Outline};
use crate::schedule::reach::{Reach, Symbol, Symbols, blocks};
use crate::schedule::tree::{Item, Mapping, Schedule, Size, StageRef, Storage, ThreadTiles, Tile};

/// Follows what nests read from the last to the first.
pub(crate) struct Tracer<'a> {
    pub pipeline: &'a Pipeline,
    pub regions: &'a Regions,
    pub outline: &'a Outline<'a>,
    schedule: &'a Schedule,
    symbols: Symbols,
}

/// What is read of something along each of its dimensions, one reach for each access.
type Columns = Vec<Vec<Reach>>;

/// What is read of each Func and input that lives in a kernel.
type Required = BTreeMap<Read, Columns>;

/// Adds an access along some dimensions.
fn add_access(columns: &mut Columns, access: Vec<Reach>, along: impl Fn(usize) -> bool) {
    columns.resize(access.len().max(columns.len()), Vec::new());
    for (d, reach) in access.into_iter().enumerate().filter(|(d, _)| along(*d)) {
        if !columns[d].contains(&reach) {
            columns[d].push(reach);
        }
    }
}

impl<'a> Tracer<'a> {
    pub fn new(
        schedule: &'a Schedule,
        pipeline: &'a Pipeline,
        regions: &'a Regions,
        outline: &'a Outline<'a>,
    ) -> Tracer<'a> {
        let mut symbols = Symbols::default();
        for (number, info) in outline.loops.iter().enumerate() {
            let extent = domain(regions, info.tile.stage, info.tile.var).extent;
            symbols.add(Symbol::Loop(number), blocks(extent, info.tile.size.of(extent)));
        }
        Tracer { pipeline, regions, outline, schedule, symbols }
    }

    pub fn footprints(mut self) -> Footprints {
        let mut nests = vec![None; self.outline.nests.len()];
        let kernels = (0..self.outline.kernels.len()).map(|kernel| self.kernel(kernel, &mut nests)).collect();
        let count = |(number, info): (usize, &LoopInfo<'_>)| LoopFootprint {
            path: info.path.clone(),
            count: self.symbols.count(Symbol::Loop(number)),
        };
        let loops = self.outline.loops.iter().enumerate().map(count).collect();
        Footprints { kernels, nests, loops, lowest: self.symbols.lowest }
    }

    fn kernel(&mut self, number: usize, nests: &mut [Option<NestFootprint>]) -> KernelFootprint {
        let info = &self.outline.kernels[number];
        let mut counts = Vec::new();
        for tile in &info.kernel.block {
            let extent = loop_range(self.regions, Item::Stage(info.kernel.stage), tile.dim).extent;
            let count = blocks(extent, tile.size.of(extent));
            self.symbols.add(Symbol::Block(tile.dim), count);
            counts.push(count);
        }
        let mut required = Required::new();
        for position in info.nests.clone().rev() {
            nests[position] = self.nest(position, &mut required);
        }
        let nests = &nests[info.nests.clone()];
        let threads = nests.iter().flatten().filter_map(NestFootprint::thread_count).max();
        KernelFootprint {
            path: info.path.clone(),
            blocks: counts,
            threads: threads.unwrap_or(FLAT_THREADS),
            allocations: self.allocations(number, nests, &required),
        }
    }

    /// One nest whose readers in the kernel are all done; adds what it reads itself.
    fn nest(&mut self, position: usize, required: &mut Required) -> Option<NestFootprint> {
        let outline = self.outline;
        let info = &outline.nests[position];
        let read = read_of(info.nest.item);
        let own = outline.is_own(info);
        let dims = if own {
            self.own_box(info)
        } else {
            self.union(required.get(&read)?, self.root(read), &info.loops)
        };
        let mut registers = BTreeMap::new();
        let mut domain = Vec::new();
        if let Item::Stage(stage) = info.nest.item {
            domain = self.domain(info, stage);
            let scope = Scope { vars: dims.clone(), rvars: domain.clone() };
            let (touched, at_block) = self.reads(info, stage, &scope);
            let lives = |read: Read| lives_before(outline, position, read);
            for (read, access) in touched.reads.into_iter().filter(|(read, _)| lives(*read)) {
                add_access(required.entry(read).or_default(), access, |_| true);
            }
            for access in touched.own.into_iter().filter(|_| !own) {
                let columns = required.entry(read).or_default();
                add_access(columns, access, |d| !self.is_pure(stage, d));
            }
            if !info.nest.registers.is_empty() {
                let scope = self.thread_scope(info, &scope);
                let (_, at_thread) = self.reads(info, stage, &scope);
                registers = register_footprints(&info.nest.registers, at_thread, at_block);
            }
        }
        let threads = match &info.nest.mapping {
            Mapping::Flat => None,
            Mapping::Threads(tiles) => Some(thread_loops(tiles, &dims, &domain)),
        };
        Some(NestFootprint {
            path: info.path.clone(),
            points: Footprint { dims },
            domain,
            threads,
            registers,
        })
    }

    /// The part of a kernel's own stage that one block computes.
    fn own_box(&self, info: &NestInfo<'_>) -> Vec<Reach> {
        let kernel = self.outline.kernels[info.kernel].kernel;
        let needed = &self.regions.funcs[kernel.stage.func].stages[kernel.stage.stage].needed;
        let reach = |(d, range): (usize, &Range)| {
            let tile = kernel.block.iter().find(|tile| tile.dim == LoopKind::Pure(d));
            let size = tile.map_or(Size::All, |tile| tile.size).of(range.extent);
            Reach::tile(Symbol::Block(LoopKind::Pure(d)), range.min, range.extent.max(1), size)
        };
        needed.0.iter().enumerate().map(reach).collect()
    }

    /// What the loops around a nest leave of its stage's reduction variables.
    fn domain(&self, info: &NestInfo<'_>, stage: StageRef) -> Vec<Reach> {
        let kernel = self.outline.kernels[info.kernel].kernel;
        let own = self.outline.is_own(info);
        let ranges = &self.regions.funcs[stage.func].stages[stage.stage].domain;
        let reach = |(var, range): (usize, &Range)| {
            let taken = info.loops.iter().find(|number| {
                let tile = self.outline.loops[**number].tile;
                (tile.stage, tile.var) == (stage, var)
            });
            let block = kernel.block.iter().find(|tile| own && tile.dim == LoopKind::Reduction(var));
            let (symbol, size) = match (taken, block) {
                (Some(&number), _) => (Symbol::Loop(number), self.outline.loops[number].tile.size),
                (None, Some(tile)) => (Symbol::Block(tile.dim), tile.size),
                (None, None) => return Reach::fixed(range.min, range.last()),
            };
            Reach::tile(symbol, range.min, range.extent.max(1), size.of(range.extent))
        };
        ranges.iter().enumerate().map(reach).collect()
    }

    /// Where the variables of a nest's stage are in one thread.
    fn thread_scope(&mut self, info: &NestInfo<'_>, scope: &Scope) -> Scope {
        let tiles = match &info.nest.mapping {
            Mapping::Flat => &ThreadTiles::default(),
            Mapping::Threads(tiles) => tiles,
        };
        let loops = thread_loops(tiles, &scope.vars, &scope.rvars);
        let symbols = &mut self.symbols;
        let mut cut = |kind: LoopKind, reach: &Reach| {
            let serial = loops.iter().find(|dim| dim.dim == kind).map_or(1, |dim| dim.serial);
            reach.cut(Symbol::Thread(kind), serial, symbols)
        };
        let vars = scope.vars.iter().enumerate();
        let vars = vars.map(|(d, reach)| cut(LoopKind::Pure(d), reach)).collect();
        let rvars = scope.rvars.iter().enumerate().map(|(r, reach)| {
            let kind = LoopKind::Reduction(r);
            // Only variables that threads share are cut: all others run whole in each thread.
            match loops.iter().any(|dim| dim.dim == kind && dim.threads > 1) {
                true => cut(kind, reach),
                false => reach.clone(),
            }
        });
        Scope { vars, rvars: rvars.collect() }
    }

    /// What a nest touches outside itself, its stage and all that is inlined or in registers there, and the
    /// boxes of these: all that is touched of each Func, and the points of each of its stages.
    fn reads(
        &mut self,
        info: &NestInfo<'_>,
        stage: StageRef,
        scope: &Scope,
    ) -> (Touched, BTreeMap<FuncId, StagedFootprint>) {
        let inside: AHashSet<FuncId> =
            self.schedule.inlined.iter().chain(&info.nest.registers).copied().collect();
        let mut pending: BTreeMap<FuncId, Columns> = BTreeMap::new();
        let mut boxes = BTreeMap::new();
        let mut outside = Touched { reads: Vec::new(), own: Vec::new() };
        let mut sort = |reads: Vec<(Read, Vec<Reach>)>, pending: &mut BTreeMap<FuncId, Columns>| {
            for (read, access) in reads {
                match read {
                    Read::Func(func) if inside.contains(&func) && func != stage.func => {
                        add_access(pending.entry(func).or_default(), access, |_| true);
                    }
                    read => outside.reads.push((read, access)),
                }
            }
        };
        let first = self.touched(stage, scope);
        outside.own = first.own;
        sort(first.reads, &mut pending);
        // Producers come before their consumers, so the last one has all its readers behind it.
        while let Some((func, mut columns)) = pending.pop_last() {
            let root = self.root(Read::Func(func));
            let mut dims = self.hull(&columns, root);
            let mut stages = Vec::new();
            for number in (0..self.pipeline.funcs()[func].stages.len()).rev() {
                let stage = StageRef { func, stage: number };
                let ranges = &self.regions.funcs[func].stages[number].domain;
                let rvars = ranges.iter().map(|range| Reach::fixed(range.min, range.last())).collect();
                let touched = self.touched(stage, &Scope { vars: dims.clone(), rvars });
                stages.push(Footprint { dims });
                sort(touched.reads, &mut pending);
                for access in touched.own {
                    add_access(&mut columns, access, |d| !self.is_pure(stage, d));
                }
                dims = self.hull(&columns, root);
            }
            stages.reverse();
            boxes.insert(func, StagedFootprint { points: Footprint { dims }, stages });
        }
        (outside, boxes)
    }

    /// What the stage of a nest touches, and all that is inlined or in registers there, if the stage is at a
    /// point that [`Symbol::Thread`] stands for.
    pub fn point_reads(&mut self, info: &NestInfo<'_>, stage: StageRef) -> Vec<(Read, Vec<Reach>)> {
        let needed = &self.regions.funcs[stage.func].stages[stage.stage].needed;
        let mut vars = Vec::new();
        for (d, range) in needed.0.iter().enumerate() {
            let (symbol, last) = (Symbol::Thread(LoopKind::Pure(d)), range.last().max(range.min));
            self.symbols.add_range(symbol, range.min, last);
            vars.push(Reach::point(symbol, range.min, last));
        }
        let rvars = self.domain(info, stage);
        let (touched, _) = self.reads(info, stage, &Scope { vars, rvars });
        touched.reads
    }

    fn touched(&mut self, stage: StageRef, scope: &Scope) -> Touched {
        touched(self.pipeline, self.regions, &mut self.symbols, stage, scope)
    }

    fn root(&self, read: Read) -> &'a Region {
        match read {
            Read::Func(func) => &self.regions.funcs[func].region,
            Read::Input(input) => &self.regions.inputs[input],
        }
    }

    /// Whether a stage touches its own Func only at its own point along a dimension.
    fn is_pure(&self, stage: StageRef, dimension: usize) -> bool {
        let decl = &self.pipeline.funcs()[stage.func].stages[stage.stage];
        decl.is_pure(self.pipeline.exprs(), dimension)
    }

    /// The smallest box that holds some accesses, seen from a place inside `loops`.
    fn union(&mut self, columns: &Columns, root: &Region, loops: &[usize]) -> Vec<Reach> {
        let symbols = &self.symbols;
        let seen = |column: &Vec<Reach>| column.iter().map(|reach| reach.seen_from(loops, symbols)).collect();
        let seen: Columns = columns.iter().map(seen).collect();
        self.hull(&seen, root)
    }

    /// The smallest box that holds some accesses of one place.
    fn hull(&mut self, columns: &Columns, root: &Region) -> Vec<Reach> {
        let along = |(column, range): (&Vec<Reach>, &Range)| {
            let whole = Reach::fixed(range.min, range.last());
            let hull = Reach::hull(column, &mut self.symbols).unwrap_or(whole);
            if range.is_empty() { hull } else { hull.within(range.min, range.last()) }
        };
        columns.iter().zip(&root.0).map(along).collect()
    }

    fn allocations(
        &mut self,
        kernel: usize,
        nests: &[Option<NestFootprint>],
        required: &Required,
    ) -> Vec<Allocation> {
        let outline = self.outline;
        let mut allocations: Vec<Allocation> = Vec::new();
        for (info, nest) in outline.nests_of(kernel).iter().zip(nests) {
            let read = read_of(info.nest.item);
            let known = allocations.iter().any(|allocation| read_of(allocation.item) == read);
            let (Some(nest), Some(accesses), false) = (nest, required.get(&read), known) else { continue };
            if outline.is_own(info) {
                continue;
            }
            let dims = self.union(accesses, self.root(read), &outline.foreign_loops(info));
            let points = Footprint { dims };
            let storage = info.nest.storage;
            let extents = match (storage, &nest.threads) {
                (Storage::Private, Some(threads)) => thread_share(&points, threads),
                _ => points.extents(),
            };
            let bytes = array_bytes(self.types(info.nest.item), &extents);
            allocations.push(Allocation { item: info.nest.item, storage, points, extents, bytes });
        }
        allocations
    }

    fn types(&self, item: Item) -> Vec<Type> {
        match item {
            Item::Stage(stage) => self.pipeline.funcs()[stage.func].types.clone(),
            Item::Input(input) => vec![self.pipeline.inputs()[input].ty],
        }
    }
}

/// The boxes of a nest's Funcs in registers.
fn register_footprints(
    funcs: &[FuncId],
    mut at_thread: BTreeMap<FuncId, StagedFootprint>,
    mut at_block: BTreeMap<FuncId, StagedFootprint>,
) -> BTreeMap<FuncId, RegisterFootprint> {
    let footprint = |func: &FuncId| {
        let (thread, block) = (at_thread.remove(func)?, at_block.remove(func)?);
        Some((*func, RegisterFootprint { thread, block }))
    };
    funcs.iter().filter_map(footprint).collect()
}

/// The part of an array that one thread has.
fn thread_share(points: &Footprint, threads: &[ThreadLoop]) -> Vec<i64> {
    let share = |(d, reach): (usize, &Reach)| {
        let dim = threads.iter().find(|dim| dim.dim == LoopKind::Pure(d) && dim.threads > 1);
        match dim {
            Some(dim) => dim.serial * blocks(reach.extent(), dim.threads * dim.serial),
            None => reach.extent(),
        }
    };
    points.dims.iter().enumerate().map(share).collect()
}

/// What reads of an item look like.
pub(crate) fn read_of(item: Item) -> Read {
    match item {
        Item::Stage(stage) => Read::Func(stage.func),
        Item::Input(input) => Read::Input(input),
    }
}

/// Whether what a nest reads lives in its kernel, and for an input whether the copy is there by then.
pub(crate) fn lives_before(outline: &Outline<'_>, position: usize, read: Read) -> bool {
    let nest = &outline.nests[position];
    let first = outline.kernels[nest.kernel].nests.start;
    outline.nests_of(nest.kernel).iter().enumerate().any(|(i, info)| match read {
        Read::Func(func) => info.computes(func) && !outline.is_own(info),
        Read::Input(input) => {
            info.nest.item == Item::Input(input)
                && first + i < position
                && info.path.parent().encloses(&nest.path)
        }
    })
}

/// The values of a reduction variable.
pub(crate) fn domain(regions: &Regions, stage: StageRef, var: usize) -> Range {
    let ranges = &regions.funcs[stage.func].stages[stage.stage].domain;
    ranges.get(var).copied().unwrap_or(Range::new(0, 1))
}

/// The values of a loop at root.
pub(crate) fn loop_range(regions: &Regions, item: Item, kind: LoopKind) -> Range {
    let range = match (item, kind) {
        (Item::Stage(stage), LoopKind::Reduction(var)) => return domain(regions, stage, var),
        (Item::Stage(stage), LoopKind::Pure(d)) => {
            regions.funcs[stage.func].stages[stage.stage].needed.0.get(d)
        }
        (Item::Input(input), LoopKind::Pure(d)) => regions.inputs[input].0.get(d),
        (Item::Input(_), LoopKind::Reduction(_)) => None,
    };
    range.copied().unwrap_or(Range::new(0, 1))
}

/// Each loop that threads share or that runs in a thread, those of several threads first, in their order.
fn thread_loops(tiles: &ThreadTiles, dims: &[Reach], domain: &[Reach]) -> Vec<ThreadLoop> {
    let extent = |kind: LoopKind| match kind {
        LoopKind::Pure(d) => dims.get(d).map_or(1, Reach::extent),
        LoopKind::Reduction(r) => domain.get(r).map_or(1, Reach::extent),
    };
    let size =
        |list: &[Tile], kind: LoopKind| list.iter().find(|tile| tile.dim == kind).map(|tile| tile.size);
    let mut kinds: Vec<LoopKind> = tiles.threads.iter().map(|tile| tile.dim).collect();
    for tile in &tiles.serial {
        if !kinds.contains(&tile.dim) {
            kinds.push(tile.dim);
        }
    }
    let thread_loop = |dim: LoopKind| {
        let extent = extent(dim);
        let threads = match size(&tiles.threads, dim) {
            Some(Size::Of(threads)) => i64::from(threads.max(1)),
            Some(Size::All) => extent,
            None => 1,
        };
        let serial = match size(&tiles.serial, dim) {
            Some(Size::Of(serial)) => i64::from(serial).clamp(1, extent.max(1)),
            Some(Size::All) => blocks(extent, threads),
            None => 1,
        };
        ThreadLoop { dim, threads, serial, extent }
    };
    kinds.into_iter().map(thread_loop).collect()
}
