//! Random places: where Funcs are computed, and where inputs are staged.

use warploom_lang::{FuncId, InputId};
use warploom_schedule::{
    BlockItem, Item, Kernel, LoopKind, Loops, Nest, Site, Source, StageRef, ThreadTiles, Tile,
};

use crate::random::Generator;

/// The weight factor of a place that a schedule should have but does not have yet.
const WISHED: f64 = 10.0;

/// Where a Func can be computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Placement {
    Inlined,
    Root,
    Shared,
    Private,
    Registers,
}

impl Generator<'_> {
    /// Decides where and how a Func is computed. All its readers are already decided.
    pub(super) fn place(&mut self, func: FuncId) {
        for place in self.places(func) {
            let placed = match place {
                Placement::Inlined => self.inline(func),
                Placement::Registers => self.registers(func),
                Placement::Shared => self.shared(func),
                Placement::Private => self.private(func),
                Placement::Root => {
                    self.tile_kernels(func);
                    true
                }
            };
            if placed {
                self.wishes.block &= !matches!(place, Placement::Shared | Placement::Private);
                self.wishes.thread &= place != Placement::Registers;
                return;
            }
        }
    }

    /// The places to try, in order; root is always among them.
    fn places(&mut self, func: FuncId) -> Vec<Placement> {
        if self.facts.problem.is_output(func) {
            return vec![Placement::Root];
        }
        let readers = self.readers(Source::Func(func));
        let one_kernel = readers.len() == 1;
        let one_nest = one_kernel && readers[0].1 == 1;
        let weight = |eligible: bool, weight: f64| if eligible { weight } else { 0.0 };
        let registers = one_nest && self.facts.fits_registers(func);
        let pure = self.facts.problem.pipeline().funcs()[func].stages.len() == 1;
        let wished = |wish: bool| if wish { WISHED } else { 1.0 };
        let (block, thread) = (wished(self.wishes.block), wished(self.wishes.thread));
        self.draw.by_weight(&[
            (Placement::Inlined, weight(pure, 1.0)),
            (Placement::Root, 1.0),
            (Placement::Shared, weight(one_kernel, block)),
            (Placement::Private, weight(one_kernel, 1.5 * block)),
            (Placement::Registers, weight(registers, thread)),
        ])
    }

    /// The kernels that read something, by their stages, and how many of their nests do.
    fn readers(&self, what: Source) -> Vec<(StageRef, usize)> {
        let reads = |nest: &&Nest| self.facts.reads(&self.schedule, nest, what);
        let count = |kernel: &Kernel| kernel.nests().filter(reads).count();
        let all = self.schedule.kernels().map(|kernel| (kernel.stage, count(kernel)));
        all.filter(|(_, count)| *count > 0).collect()
    }

    /// The places that contain all readers of something in a kernel, for each kernel, by its stage.
    pub(crate) fn sites(&self, what: Source) -> Vec<(StageRef, Vec<Site>)> {
        let of = |kernel: &Kernel| {
            let reads = kernel.nests().map(|nest| self.facts.reads(&self.schedule, nest, what));
            let mut sites = kernel.sites(&reads.collect::<Vec<bool>>());
            sites.retain(|site| !site.divides);
            (kernel.stage, sites)
        };
        self.schedule.kernels().map(of).filter(|(_, sites)| !sites.is_empty()).collect()
    }

    fn inline(&mut self, func: FuncId) -> bool {
        let mut next = self.schedule.clone();
        next.remove_kernels(func);
        next.inlined.insert(func);
        self.keep(next)
    }

    fn registers(&mut self, func: FuncId) -> bool {
        let Some((kernel, reader)) = self.first_reader(func) else { return false };
        let item = reader.item;
        let mut next = self.schedule.clone();
        next.remove_kernels(func);
        // Its readers are already there, so it comes before them.
        if let Some(nest) = next.kernel_mut(kernel).and_then(|kernel| kernel.nest_mut(item)) {
            nest.registers.insert(0, func);
        }
        self.keep(next)
    }

    /// The first nest that reads a Func, and the stage of its kernel.
    fn first_reader(&self, func: FuncId) -> Option<(StageRef, &Nest)> {
        self.schedule.kernels().find_map(|kernel| {
            let first =
                kernel.nests().find(|nest| self.facts.reads(&self.schedule, nest, Source::Func(func)));
            Some((kernel.stage, first?))
        })
    }

    fn shared(&mut self, func: FuncId) -> bool {
        let Some((kernel, sites)) = self.sites(Source::Func(func)).pop() else { return false };
        let mut items = Vec::new();
        for stage in self.facts.problem.defined_stages(func) {
            let loops = if self.draw.chance(0.4) { self.loops(stage, &[]) } else { Vec::new() };
            items.push(Loops::holding(loops, Nest::shared(stage)));
        }
        let site = &sites[self.draw.position(sites.len())];
        let placed = self.put(Some(func), kernel, site, items);
        if placed {
            for stage in self.facts.problem.defined_stages(func) {
                if self.draw.chance(0.55) {
                    self.spread(kernel, Item::Stage(stage));
                }
            }
        }
        placed
    }

    /// Inserts items at a place of a kernel, before all their readers there.
    fn put(&mut self, func: Option<FuncId>, kernel: StageRef, site: &Site, items: Vec<BlockItem>) -> bool {
        let mut next = self.schedule.clone();
        if let Some(func) = func {
            next.remove_kernels(func);
        }
        let directly = self.draw.chance(0.7);
        let mut site = site.clone();
        if !directly {
            site.before = self.draw.position(site.before + 1);
        }
        if let Some(kernel) = next.kernel_mut(kernel) {
            site.insert(kernel, items);
        }
        self.keep(next)
    }

    /// Computes a Func in private memory, with the threads that read it.
    fn private(&mut self, func: FuncId) -> bool {
        let Some((kernel, sites)) = self.sites(Source::Func(func)).pop() else { return false };
        let Some((_, reader)) = self.first_reader(func) else { return false };
        let Some(tiles) = reader.mapping.tiles().cloned() else { return false };
        let Some(consumer) = reader.item.stage() else { return false };
        let along = self.read_along(func, consumer);
        let site = sites[self.draw.position(sites.len())].clone();
        let mut items = Vec::new();
        for stage in self.facts.problem.defined_stages(func) {
            let loops = if self.draw.chance(0.4) { self.loops(stage, &[]) } else { Vec::new() };
            let known = self.facts.problem.loops(Item::Stage(stage));
            let follow = |tile: &Tile| {
                let (d, _) = along.iter().find(|(_, of)| *of == tile.dim)?;
                let dim = Some(LoopKind::Pure(*d)).filter(|dim| known.contains(dim))?;
                Some(Tile { dim, ..*tile })
            };
            let threads = tiles.threads.iter().filter_map(follow).collect();
            let mut serial = self.serial_reductions(stage, &loops);
            serial.extend(tiles.serial.iter().filter_map(follow));
            let own = ThreadTiles { threads, serial, unroll: self.draw.chance(0.5) };
            items.push(Loops::holding(loops, Nest::private(stage).mapped(own)));
        }
        self.put(Some(func), kernel, &site, items)
    }

    /// The dimensions of a Func that are read at the point of a reader's loop, with that loop. If the
    /// reader does not read the Func directly, each dimension is paired with its own number.
    fn read_along(&self, func: FuncId, reader: StageRef) -> Vec<(usize, LoopKind)> {
        let dag = self.facts.problem.dag();
        let consumer = self.facts.problem.stage_id(reader);
        let loops = &dag.stages()[consumer].loops;
        let dimensions = self.facts.problem.pipeline().funcs()[func].dims.len();
        match dag.edge_between(dag.func_node(func), consumer) {
            None => (0..dimensions).map(|d| (d, LoopKind::Pure(d))).collect(),
            Some(edge) => {
                let rows = dag.edges()[edge].loads[0].map.rows().iter().enumerate();
                rows.filter_map(|(d, row)| Some((d, loops[row.unit_loop()?].kind))).collect()
            }
        }
    }

    /// Decides for every kernel that reads an input whether and where its blocks stage it.
    pub(super) fn stage_input(&mut self, input: InputId) {
        for (kernel, sites) in self.sites(Source::Input(input)) {
            if !self.draw.chance(0.35) {
                continue;
            }
            let site = &sites[self.draw.position(sites.len())];
            let copy = vec![Nest::shared(input).into()];
            if self.put(None, kernel, site, copy) && self.draw.chance(0.6) {
                self.spread(kernel, Item::Input(input));
            }
        }
    }
}
