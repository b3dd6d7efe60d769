//! Finds the axes of a kernel.

use warploom_lang::InputId;
use warploom_lang::ir::{copy_name, stage_name};
use warploom_plan::decisions::{Values, atomic_shares, open};
use warploom_schedule::{
    Item, Kernel, LoopKind, Mapping, Nest, NodeSet, ReductionTile, Source, StageRef, ThreadTiles, Tile,
};
use warploom_strategy::Axis;

use crate::cooperative::cooperative_tilings;
use crate::points::Open;
use crate::points::factors::product;
use crate::points::kernel::{Context, KernelTemplate, PrivateNest};
use crate::points::knob::{InputCopy, Knob, List, Reduction, SharedMapping, Word, wanted};
use crate::points::sizes::Sizes;
use crate::points::skeleton::without_copies;
use crate::propagate::reader_of_private;
use crate::space::{SearchSpace, Span};

/// Looks for knobs in a kernel.
pub(super) struct Finder<'a> {
    pub space: &'a SearchSpace<'a>,
    pub context: Context<'a>,
    pub inlined: &'a NodeSet,
    pub open: Open,
}

/// A kernel and the loops around it.
struct Found<'a> {
    finder: &'a Finder<'a>,
    around: &'a [ReductionTile],
    kernel: &'a Kernel,
    sizes: Sizes,
    knobs: Vec<Knob>,
    axes: Vec<Axis>,
}

impl Finder<'_> {
    /// The template of a kernel inside some loops.
    pub fn template(&self, around: &[ReductionTile], kernel: &Kernel) -> KernelTemplate {
        let sizes = Sizes::new(self.context.problem, self.context.inlined, around, kernel);
        let mut found = Found { finder: self, around, kernel, sizes, knobs: Vec::new(), axes: Vec::new() };
        found.tiles();
        found.reductions();
        found.orders();
        found.unrolls();
        found.words(false);
        found.copies();
        found.shared_mappings();
        found.words(true);
        let mut template = KernelTemplate {
            around: around.to_vec(),
            origin: kernel.clone(),
            usual: kernel.clone(),
            knobs: Vec::new(),
            axes: Vec::new(),
            start: Vec::new(),
            private_nests: self.private_nests(kernel),
        };
        for (knob, axis) in found.knobs.into_iter().zip(found.axes) {
            // A knob on which the kernel itself has no position would have no start.
            if let Some(at) = knob.read(kernel, &found.sizes) {
                template.start.push(at);
                template.knobs.push(knob);
                template.axes.push(axis);
            }
        }
        template.usual = template.built(self.context, &template.start);
        template
    }

    fn private_nests(&self, kernel: &Kernel) -> Vec<PrivateNest> {
        let private_nest = |(number, nest): (usize, &Nest)| {
            let (reader, reader_loops) = reader_of_private(self.space, kernel, number, self.inlined)?;
            let facts = self.space.stage(nest.item.stage()?).clone();
            let of_reader = self.context.problem.loops(reader.item);
            let is_left = |tile: &&Tile| match tile.dim {
                LoopKind::Pure(d) => {
                    reader_loops.get(d).copied().flatten().is_some_and(|dim| !of_reader.contains(&dim))
                }
                LoopKind::Reduction(_) => false,
            };
            let serial = nest.mapping.tiles().map_or(&[][..], |tiles| &tiles.serial);
            let own_tiles = serial.iter().filter(is_left).copied().collect();
            Some(PrivateNest { item: nest.item, reader: reader.item, reader_loops, own_tiles, facts })
        };
        let mut private_nests: Vec<PrivateNest> =
            kernel.nests().enumerate().filter_map(private_nest).collect();
        private_nests.reverse();
        private_nests
    }

    /// `blur`, `blur.1` or `input.stage`.
    fn name(&self, item: Item) -> String {
        let pipeline = self.context.problem.pipeline();
        match item {
            Item::Stage(stage) => stage_name(&pipeline.funcs()[stage.func], stage.stage),
            Item::Input(input) => copy_name(&pipeline.inputs()[input].name),
        }
    }

    /// `blur.x`
    fn loop_name(&self, stage: StageRef, dim: LoopKind) -> String {
        let func = &self.context.problem.pipeline().funcs()[stage.func];
        let name = match dim {
            LoopKind::Pure(d) => func.dims.get(d),
            LoopKind::Reduction(r) => func.stages[stage.stage].domain.get(r).map(|var| &var.name),
        };
        format!("{}.{}", self.name(stage.into()), name.map_or("?", String::as_str))
    }
}

impl Found<'_> {
    /// The item whose stage the kernel stores.
    fn own(&self) -> Item {
        self.kernel.stage.into()
    }

    fn is_flat(&self) -> bool {
        self.kernel.nests().last().is_some_and(|own| own.mapping.is_flat())
    }

    fn add(&mut self, knob: Knob, axis: Axis) {
        self.knobs.push(knob);
        self.axes.push(axis);
    }

    /// Whether blocks or threads share a loop of the kernel's own stage.
    fn named(&self, dim: LoopKind) -> bool {
        [List::Block, List::Threads]
            .iter()
            .any(|list| list.of(self.kernel).iter().any(|tile| tile.dim == dim))
    }

    /// Whether a loop over the block takes parts of a variable.
    fn looped(&self, number: usize, stage: StageRef, var: usize) -> bool {
        self.kernel.loops_over(number).any(|tile| tile.variable() == (stage, var))
    }

    fn is_around(&self, stage: StageRef, var: usize) -> bool {
        self.around.iter().any(|tile| tile.variable() == (stage, var))
    }

    /// The loops of the kernel's own stage that blocks and threads share.
    fn tiles(&mut self) {
        let (stage, last) = (self.kernel.stage, self.kernel.nests().count().saturating_sub(1));
        let facts = self.finder.space.stage(stage);
        let shared = facts.reductions.iter().filter(|span| match span.dim {
            LoopKind::Reduction(var) => {
                self.named(span.dim) && !self.looped(last, stage, var) && !self.is_around(stage, var)
            }
            LoopKind::Pure(_) => false,
        });
        let spans: Vec<Span> =
            facts.pure.iter().chain(shared).filter(|span| span.extent > 1).copied().collect();
        for span in spans {
            let Open { rounds, padding, .. } = self.finder.open;
            let wanted = wanted(self.kernel, span, rounds);
            let product = product(span.extent.unsigned_abs(), &wanted, padding);
            let name = self.finder.loop_name(stage, span.dim);
            let slots = wanted.len() + 1;
            self.add(Knob::Tile { span, product, rounds }, Axis::Factors { name, product, slots });
        }
    }

    /// The reduction variables that nests run in loops over the block, or in threads.
    fn reductions(&mut self) {
        let kernel = self.kernel;
        for (number, nest) in kernel.nests().enumerate() {
            let Item::Stage(stage) = nest.item else { continue };
            for span in self.finder.space.stage(stage).reductions.iter().rev() {
                let LoopKind::Reduction(var) = span.dim else { continue };
                let tiles = nest.mapping.tiles();
                let is_shared = nest.item == self.own() && self.named(span.dim)
                    || tiles.is_some_and(|tiles| tiles.threads.iter().any(|tile| tile.dim == span.dim));
                let over = self.looped(number, stage, var);
                let written = tiles.is_some() && !nest.storage.is_shared() && !is_shared;
                let is_open = (over || written) && !self.is_around(stage, var);
                if span.extent > 1 && is_open {
                    self.reduction(stage, var, span.extent.unsigned_abs(), (over, written));
                }
            }
        }
    }

    fn reduction(&mut self, stage: StageRef, var: usize, extent: u64, (over, written): (bool, bool)) {
        let whole = over && written && !self.finder.open.parts;
        let mut reduction = Reduction { stage, var, product: extent, over, written, whole };
        let wanted = reduction.wanted(self.kernel);
        reduction.product = product(extent, &wanted, self.finder.open.padding);
        let name = self.finder.loop_name(stage, LoopKind::Reduction(var));
        let axis = Axis::Factors { name, product: reduction.product, slots: wanted.len() + 1 };
        self.add(Knob::Reduction(reduction), axis);
    }

    /// The orders of the lists of the kernel's own stage. First come the loops in the list, then the others: the fastest in
    /// memory first for blocks and threads, last in a thread.
    fn orders(&mut self) {
        let stage = self.kernel.stage;
        let tiled: Vec<LoopKind> = self.knobs.iter().filter_map(tile_dim).collect();
        let own = |knob: &Knob| match knob {
            Knob::Reduction(of) if of.stage == stage && of.written => Some(of.dim()),
            _ => None,
        };
        let reduced = self.knobs.iter().filter_map(own);
        let serial: Vec<LoopKind> = reduced.chain(tiled.iter().rev().copied()).collect();
        let name = self.finder.name(stage.into());
        let threads = if self.is_flat() { Vec::new() } else { tiled.clone() };
        let serial = if self.is_flat() { Vec::new() } else { serial };
        for (list, word, dims) in [
            (List::Block, "block", tiled),
            (List::Threads, "threads", threads),
            (List::Serial, "serial", serial),
        ] {
            let listed = list.of(self.kernel).iter().map(|tile| tile.dim).filter(|dim| dims.contains(dim));
            let mut members: Vec<LoopKind> = listed.collect();
            let others: Vec<LoopKind> = dims.iter().filter(|dim| !members.contains(dim)).copied().collect();
            members.extend(others);
            let axis = Axis::Order { name: format!("{name} {word}"), len: members.len() };
            self.add(Knob::Order { list, members }, axis);
        }
    }

    /// The nests whose threads run several points or values: the kernel's own, and private ones that reduce.
    fn unrolls(&mut self) {
        let is_reduced = |item: Item| {
            self.knobs.iter().any(
                |knob| matches!(knob, Knob::Reduction(of) if of.written && Item::Stage(of.stage) == item),
            )
        };
        let is_open =
            |nest: &&Nest| !nest.mapping.is_flat() && (nest.item == self.own() || is_reduced(nest.item));
        let items: Vec<Item> = self.kernel.nests().filter(is_open).map(|nest| nest.item).collect();
        for item in items {
            let name = format!("{} unroll", self.finder.name(item));
            self.add(Knob::Unroll(item), Axis::Choice { name, len: 2 });
        }
    }

    /// The words that follow the sizes of arrays, or those that do not.
    fn words(&mut self, follow_sizes: bool) {
        for open in open().filter(|open| open.follows_sizes() == follow_sizes) {
            let row = |item: Item| self.sizes.row(item);
            for Values { of, items, values } in open.values(self.kernel, &row) {
                let name = format!("{} {}", self.finder.name(of), open.name());
                let axis = match values[..] {
                    [0, 1] => Axis::Choice { name, len: 2 },
                    _ => Axis::Numbers { name, values: values.clone() },
                };
                self.add(Knob::Word(Word { open, items, values }), axis);
            }
        }
    }

    /// The inputs that the kernel reads.
    fn copies(&mut self) {
        let space = self.finder.space;
        let reads: Vec<(Item, NodeSet)> = self
            .kernel
            .nests()
            .filter(|nest| nest.item.stage().is_some())
            .map(|nest| (nest.item, space.reads(nest, self.finder.inlined).0))
            .collect();
        let mut all = space.no_nodes();
        reads.iter().for_each(|(_, read)| all.extend(read));
        for node in all.iter() {
            let Source::Input(input) = space.dag.nodes()[node].source else { continue };
            let readers = reads.iter().filter(|(_, read)| read.contains(node)).map(|(item, _)| *item);
            let mut copy = InputCopy { input, readers: readers.collect(), depths: Vec::new() };
            copy.depths = self.depths(&copy, input);
            if copy.place(self.kernel).is_none() {
                continue;
            }
            let name =
                format!("{} {}", self.finder.name(self.kernel.stage.into()), self.finder.name(input.into()));
            let axis = Axis::Choice { name, len: copy.depths.len() + 1 };
            self.add(Knob::InputCopy(copy), axis);
        }
    }

    /// The loops over the block around each place of a copy.
    fn depths(&self, copy: &InputCopy, input: InputId) -> Vec<usize> {
        let mut bare = self.kernel.clone();
        without_copies(&mut bare, |_| true);
        let holds: Vec<bool> = bare.nests().map(|nest| copy.readers.contains(&nest.item)).collect();
        let depth = |place: usize| {
            let mut kernel = bare.clone();
            copy.insert(&mut kernel, place);
            let number = kernel.nests().position(|nest| nest.item == Item::Input(input))?;
            Some(kernel.loops_over(number).count())
        };
        (1..=bare.sites(&holds).len()).filter_map(depth).collect()
    }

    /// How threads may share nests in shared memory.
    fn shared_mappings(&mut self) {
        let nests = self.kernel.nests().filter(|nest| nest.storage.is_shared());
        for nest in nests.collect::<Vec<&Nest>>() {
            let shared = self.shared_mapping(nest);
            let name = format!("{} threads", self.finder.name(nest.item));
            let axis = Axis::Choice { name, len: shared.entries.len() + 1 };
            self.add(Knob::SharedMapping(shared), axis);
        }
    }

    fn shared_mapping(&self, nest: &Nest) -> SharedMapping {
        let (space, extents) = (self.finder.space, self.sizes.extents(nest.item));
        let mut shared = SharedMapping { item: nest.item, facts: None, entries: Vec::new() };
        if let Item::Stage(stage) = nest.item {
            shared.entries = match nest.numbers.atomic {
                true => atomic_shares(space.problem, stage, extents).into_iter().filter_map(tiles).collect(),
                false => cooperative_tilings(space, &vec![(stage, extents.to_vec())])
                    .into_iter()
                    .flatten()
                    .collect(),
            };
            shared.facts = Some(space.stage(stage).clone()).filter(|_| !nest.numbers.atomic);
        }
        let Mapping::Threads(found) = &nest.mapping else { return shared };
        if shared.position(&nest.mapping, extents).is_none() {
            shared.entries.insert(0, found.clone());
        }
        // Tiles that cannot be adapted, even to their own place, stay as they are, and others are not offered.
        if shared.position(&nest.mapping, extents).is_none() {
            (shared.facts, shared.entries) = (None, vec![found.clone()]);
        }
        shared
    }
}

fn tile_dim(knob: &Knob) -> Option<LoopKind> {
    match knob {
        Knob::Tile { span, .. } => Some(span.dim),
        _ => None,
    }
}

fn tiles(nest: Nest) -> Option<ThreadTiles> {
    match nest.mapping {
        Mapping::Flat => None,
        Mapping::Threads(tiles) => Some(tiles),
    }
}
