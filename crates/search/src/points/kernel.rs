//! A kernel whose numbers are open.

use std::collections::BTreeSet;

use warploom_lang::FuncId;
use warploom_plan::Problem;
use warploom_plan::decisions::open;
use warploom_schedule::{Item, Kernel, LoopKind, Nest, NodeMut, ReductionTile, Size, ThreadTiles, Tile};
use warploom_strategy::{Axis, Coordinate};

use crate::points::factors::tiles;
use crate::points::knob::{Knob, List, size};
use crate::points::sizes::Sizes;
use crate::points::skeleton::without_copies;
use crate::propagate::{ReaderLoops, propagated};
use crate::space::{Span, StageFacts};

/// The surroundings of a kernel.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub problem: &'a Problem,
    pub inlined: &'a BTreeSet<FuncId>,
}

/// A kernel without its numbers.
#[derive(Debug)]
pub(super) struct KernelTemplate {
    /// The loops around the kernel, outermost first.
    pub around: Vec<ReductionTile>,
    /// The kernel that the template was made from.
    pub origin: Kernel,
    /// The kernel that is built at the origin. Its private nests may follow their readers in another way than in
    /// `origin`, for example with serial loops in another order.
    pub usual: Kernel,
    pub knobs: Vec<Knob>,
    /// The axis of each knob.
    pub axes: Vec<Axis>,
    /// The position of the kernel itself.
    pub start: Vec<Coordinate>,
    /// Its private nests, the last one first.
    pub private_nests: Vec<PrivateNest>,
}

/// A private nest, whose tiles follow those of the nest that reads it.
#[derive(Debug)]
pub(super) struct PrivateNest {
    pub item: Item,
    pub reader: Item,
    pub reader_loops: ReaderLoops,
    /// Tiles of dimensions along which the reader has no loop.
    pub own_tiles: Vec<Tile>,
    pub facts: StageFacts,
}

impl KernelTemplate {
    /// The kernel at a place on all axes. A kernel that is built like the original one is replaced by the original.
    pub fn kernel(&self, context: Context<'_>, at: &[Coordinate]) -> Kernel {
        if at == self.start {
            return self.origin.clone();
        }
        let built = self.built(context, at);
        if built == self.usual { self.origin.clone() } else { built }
    }

    /// The place of a kernel with the same skeleton, or the nearest place. `None` if it has none.
    pub fn read(&self, context: Context<'_>, kernel: &Kernel) -> Option<Vec<Coordinate>> {
        let follows = |word: &str| open().any(|open| open.follows_sizes() && open.facts().word == word);
        let needs = |nest: &Nest| {
            nest.storage.is_shared() && !nest.mapping.is_flat()
                || nest.numbers.given().any(|(word, _)| follows(word))
        };
        let sizes = match kernel.nests().any(needs) {
            true => Sizes::new(context.problem, context.inlined, &self.around, kernel),
            false => Sizes::default(),
        };
        self.knobs.iter().map(|knob| knob.read(kernel, &sizes)).collect()
    }

    /// Builds the kernel from its knobs.
    pub fn built(&self, context: Context<'_>, at: &[Coordinate]) -> Kernel {
        let values = Values { knobs: &self.knobs, at, start: &self.start, origin: &self.origin };
        let mut kernel = self.origin.clone();
        values.tile(&mut kernel);
        values.reduce(&mut kernel);
        for private_nest in &self.private_nests {
            private_nest.propagate(&mut kernel, &values);
        }
        values.words(&mut kernel, None);
        values.copy(&mut kernel);
        if values.flatten_shared(&mut kernel) {
            let sizes = Sizes::new(context.problem, context.inlined, &self.around, &kernel);
            values.map_shared(&mut kernel, &sizes);
            values.words(&mut kernel, Some(&sizes));
        }
        kernel
    }
}

impl PrivateNest {
    fn propagate(&self, kernel: &mut Kernel, values: &Values<'_>) {
        let tiles =
            |item: Item| kernel.nests().find(|nest| nest.item == item).and_then(|nest| nest.mapping.tiles());
        let (Some(reader), Some(own)) = (tiles(self.reader), tiles(self.item)) else { return };
        let reductions = own.serial.iter().filter(|tile| is_reduction(tile)).copied();
        let mut tiles =
            propagated(&self.facts, reader, &self.reader_loops, &reductions.collect::<Vec<Tile>>());
        tiles.serial.extend(&self.own_tiles);
        // A dimension that the reader reduces is listed twice: first in steps, then whole.
        let all = tiles.serial.clone();
        let is_last = |number: usize| all[number + 1..].iter().all(|later| later.dim != all[number].dim);
        tiles.serial = (0..all.len()).filter(|number| is_last(*number)).map(|number| all[number]).collect();
        let unroll = values.unrolls(self.item, own) && !tiles.serial.is_empty();
        if let Some(nest) = kernel.nest_mut(self.item) {
            nest.mapping = ThreadTiles { unroll, ..tiles }.into();
        }
    }
}

/// The knobs of a kernel at a place. Factors equal to those of the original kernel stand for its own sizes, in its own
/// notation, even if these are not factors.
struct Values<'a> {
    knobs: &'a [Knob],
    at: &'a [Coordinate],
    start: &'a [Coordinate],
    origin: &'a Kernel,
}

/// The tiles of a loop of a kernel's own stage.
struct Tiles {
    extent: u64,
    block: u64,
    threads: u64,
    /// All of the block in a flat loop.
    serial: u64,
}

impl Tiles {
    fn new(span: Span, slots: &[u64]) -> Tiles {
        let sizes = tiles(slots);
        let block = sizes.first().copied().unwrap_or(1);
        let (threads, serial) = match sizes[..] {
            [_, all, serial] | [all, serial] => (all / serial, serial),
            _ => (1, block),
        };
        Tiles { extent: span.extent.unsigned_abs(), block, threads, serial }
    }

    /// The size in a list, for which the original kernel had `found`. `None` if it is not listed.
    fn size(&self, list: List, found: Option<Size>) -> Option<Size> {
        // One thread, or a flat loop, covers the whole loop.
        let is_whole = self.serial == self.block && self.block >= self.extent;
        match list {
            List::Block if self.block >= self.extent && found.is_none_or(|size| size == Size::All) => found,
            List::Threads => (self.threads > 1).then(|| size(self.threads)),
            List::Serial if self.serial == 1 => None,
            _ if is_whole => Some(Size::All),
            List::Block => Some(size(self.block)),
            List::Serial => Some(size(self.serial)),
        }
    }
}

impl<'a> Values<'a> {
    fn all(&self) -> impl Iterator<Item = (&'a Knob, &'a Coordinate)> {
        self.knobs.iter().zip(self.at)
    }

    /// The positions on the axes that have some.
    fn positions(&self) -> impl Iterator<Item = (&'a Knob, usize)> {
        self.all().filter_map(|(knob, at)| match at {
            Coordinate::Index(position) => Some((knob, usize::from(*position))),
            _ => None,
        })
    }

    /// Factors that are not those of the original kernel.
    fn changed(&self) -> impl Iterator<Item = (&'a Knob, &'a [u64])> {
        self.all().zip(self.start).filter_map(|((knob, at), start)| match at {
            Coordinate::Factors(slots) if at != start => Some((knob, slots.as_slice())),
            _ => None,
        })
    }

    /// The size of a loop of the kernel's own stage in a list; `None` if it is not listed.
    fn size(&self, list: List, dim: LoopKind) -> Option<Size> {
        let found = list.of(self.origin).iter().find(|tile| tile.dim == dim).map(|tile| tile.size);
        let change = self.changed().find_map(|(knob, slots)| match knob {
            Knob::Tile { span, .. } if span.dim == dim => Some(Tiles::new(*span, slots).size(list, found)),
            Knob::Reduction(of)
                if of.stage == self.origin.stage && of.dim() == dim && list == List::Serial =>
            {
                Some(of.sizes(slots).1)
            }
            _ => None,
        });
        change.unwrap_or(found)
    }

    /// Whether a nest is unrolled, if it has serial loops. Nests without a knob stay as they were.
    fn unrolls(&self, item: Item, tiles: &ThreadTiles) -> bool {
        let own = |knob: &Knob| matches!(knob, Knob::Unroll(other) if *other == item);
        let found = self.positions().find(|(knob, _)| own(knob)).map(|(_, position)| position == 1);
        found.unwrap_or(tiles.unroll || tiles.serial.is_empty())
    }

    /// Sets the tiles of the kernel's own stage.
    fn tile(&self, kernel: &mut Kernel) {
        kernel.block = self.arranged(List::Block);
        let Some(own) = kernel.nests_mut().last() else { return };
        let Some(found) = own.mapping.tiles() else { return };
        let (threads, serial) = (self.arranged(List::Threads), self.arranged(List::Serial));
        let unroll = self.unrolls(own.item, found) && !serial.is_empty();
        own.mapping = ThreadTiles { threads, serial, unroll }.into();
    }

    /// A list of tiles in the chosen order. Tiles that are not open stay where they were.
    fn arranged(&self, list: List) -> Vec<Tile> {
        let order = self.order(list);
        let mut next = order.iter().filter_map(|dim| Some(Tile { dim: *dim, size: self.size(list, *dim)? }));
        let mut arranged = Vec::new();
        for tile in list.of(self.origin) {
            match order.contains(&tile.dim) {
                true => arranged.extend(next.next()),
                false => arranged.push(*tile),
            }
        }
        arranged.extend(next);
        arranged
    }

    /// The loops of a list in the chosen order.
    fn order(&self, list: List) -> Vec<LoopKind> {
        let found = self.all().find_map(|(knob, at)| match (knob, at) {
            (Knob::Order { list: other, members }, Coordinate::Order(order)) if *other == list => {
                Some(order.iter().filter_map(|member| members.get(usize::from(*member)).copied()).collect())
            }
            _ => None,
        });
        found.unwrap_or_default()
    }

    /// Sets the parts of reduction variables: the sizes of loops over the block, and the values that threads of private
    /// nests unroll.
    fn reduce(&self, kernel: &mut Kernel) {
        for (knob, slots) in self.changed() {
            let Knob::Reduction(reduction) = knob else { continue };
            let (over, written) = reduction.sizes(slots);
            kernel.edit(|node, _| {
                if let (NodeMut::Over(loops), Some(size)) = (node, over) {
                    let own = loops.loops.iter_mut().filter(|tile| reduction.is_of(tile));
                    own.for_each(|tile| tile.size = size);
                }
                true
            });
            let nest = kernel.nest_mut(reduction.stage.into()).filter(|nest| nest.storage.is_private());
            if let Some(tiles) = nest.and_then(|nest| nest.mapping.tiles_mut()) {
                reduction.write_out(&mut tiles.serial, written);
            }
        }
    }

    /// Sets words: those that follow the sizes of arrays where these are given, otherwise all others.
    fn words(&self, kernel: &mut Kernel, sizes: Option<&Sizes>) {
        let none = Sizes::default();
        for (knob, position) in self.positions() {
            if let Knob::Word(word) = knob
                && word.open.follows_sizes() == sizes.is_some()
            {
                word.set(kernel, position, sizes.unwrap_or(&none));
            }
        }
    }

    /// Moves, adds and removes copies of inputs.
    fn copy(&self, kernel: &mut Kernel) {
        for (knob, place) in self.positions() {
            let Knob::InputCopy(copy) = knob else { continue };
            let now = copy.place(kernel);
            if now == Some(place) {
                continue;
            }
            if now != Some(0) {
                without_copies(kernel, |input| input == copy.input);
            }
            copy.insert(kernel, place);
        }
    }

    /// Makes all shared nests flat and dense. Returns whether some mappings depend on the sizes at their place.
    fn flatten_shared(&self, kernel: &mut Kernel) -> bool {
        let mut some = false;
        for (knob, position) in self.positions() {
            match knob {
                Knob::SharedMapping(shared) => {
                    kernel.nest_mut(shared.item).into_iter().for_each(|nest| nest.mapping = None.into());
                }
                Knob::Word(word) if word.open.follows_sizes() => {
                    word.open.write(kernel, &word.items, 0, &|_| None)
                }
                _ => continue,
            }
            some |= position > 0;
        }
        some
    }

    /// Sets how threads share nests in shared memory.
    fn map_shared(&self, kernel: &mut Kernel, sizes: &Sizes) {
        for (knob, position) in self.positions() {
            if let Knob::SharedMapping(shared) = knob
                && let Some(nest) = kernel.nest_mut(shared.item)
            {
                nest.mapping = shared.mapping(position, sizes.extents(shared.item));
            }
        }
    }
}

fn is_reduction(tile: &Tile) -> bool {
    matches!(tile.dim, LoopKind::Reduction(_))
}
