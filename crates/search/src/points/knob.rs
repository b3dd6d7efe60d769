//! The knobs of a kernel: what each axis of a template sets in it, and the position of a given kernel on it.

use warploom_lang::InputId;
use warploom_plan::decisions::Open;
use warploom_schedule::{
    Item, Kernel, LoopKind, Mapping, Nest, ReductionTile, Size, StageRef, ThreadTiles, Tile,
};
use warploom_strategy::Coordinate;

use crate::cooperative::refitted;
use crate::options::Limits;
use crate::points::factors::{fitted, tiles};
use crate::points::sizes::Sizes;
use crate::space::{Span, StageFacts};

/// One thing that the points of a template choose in a kernel.
#[derive(Debug)]
pub(super) enum Knob {
    /// The tiles of a loop of the kernel's own stage.
    Tile { span: Span, product: u64, rounds: bool },
    /// The order of a list of tiles of the kernel's own stage.
    Order { list: List, members: Vec<LoopKind> },
    /// The parts of a reduction variable.
    Reduction(Reduction),
    /// Whether the serial loops of a nest are unrolled.
    Unroll(Item),
    /// A word of some nests or of the kernel.
    Word(Word),
    /// Where an input is copied to shared memory.
    InputCopy(InputCopy),
    /// How threads share a nest in shared memory.
    SharedMapping(SharedMapping),
}

/// A word of some nests, or of the kernel.
#[derive(Debug)]
pub(super) struct Word {
    pub open: &'static dyn Open,
    pub items: Vec<Item>,
    pub values: Vec<i64>,
}

impl Word {
    pub fn set(&self, kernel: &mut Kernel, position: usize, sizes: &Sizes) {
        let value = self.values.get(position).copied().unwrap_or(0);
        self.open.write(kernel, &self.items, value, &|item| sizes.row(item));
    }
}

/// A list of tiles of a kernel's own stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    Block,
    Threads,
    Serial,
}

impl List {
    /// The tiles of a kernel in this list.
    pub fn of(self, kernel: &Kernel) -> &[Tile] {
        let tiles = || kernel.nests().last().and_then(|own| own.mapping.tiles());
        match self {
            List::Block => &kernel.block,
            List::Threads => tiles().map_or(&[], |tiles| &tiles.threads),
            List::Serial => tiles().map_or(&[], |tiles| &tiles.serial),
        }
    }
}

/// A reduction variable that is not shared among blocks or threads.
#[derive(Debug)]
pub(super) struct Reduction {
    pub stage: StageRef,
    pub var: usize,
    pub product: u64,
    /// Whether a loop over the block takes parts of it.
    pub over: bool,
    /// Whether threads can write out parts of it.
    pub written: bool,
    /// Whether threads unroll all values that the loop over the block leaves.
    pub whole: bool,
}

impl Reduction {
    pub fn dim(&self) -> LoopKind {
        LoopKind::Reduction(self.var)
    }

    pub fn is_of(&self, tile: &ReductionTile) -> bool {
        tile.variable() == (self.stage, self.var)
    }

    /// The sizes of tiles, outermost first, as a kernel has them.
    pub fn wanted(&self, kernel: &Kernel) -> Vec<Option<u64>> {
        let number = kernel.nests().position(|nest| nest.item == Item::Stage(self.stage));
        let loops = number.into_iter().flat_map(|number| kernel.loops_over(number));
        let over = loops.into_iter().find(|tile| self.is_of(tile)).and_then(|tile| given(tile.size));
        let nest = number.and_then(|number| kernel.nests().nth(number));
        let serial = nest.and_then(|nest| nest.mapping.tiles()).map_or(&[][..], |tiles| &tiles.serial);
        let tile = serial.iter().find(|tile| tile.dim == self.dim());
        let written = tile.map_or(Some(1), |tile| given(tile.size));
        match (self.over, self.written && !self.whole) {
            (true, true) => vec![over, written],
            (true, false) => vec![over],
            (false, _) => vec![written],
        }
    }

    /// The values per iteration over the block, and the values that threads unroll; `None` if there are none.
    pub fn sizes(&self, slots: &[u64]) -> (Option<Size>, Option<Size>) {
        let sizes = tiles(slots);
        let (first, last) = (sizes.first().copied().unwrap_or(1), sizes.last().copied().unwrap_or(1));
        let left = if self.over { first } else { self.product };
        let written = if last == left { Size::All } else { size(last) };
        (self.over.then(|| size(first)), (self.written && last > 1).then_some(written))
    }

    /// Sets the unrolled values in a list of serial loops: at their old place, or inside the variables further out.
    pub fn write_out(&self, serial: &mut Vec<Tile>, written: Option<Size>) {
        let outer = |tile: &&Tile| matches!(tile.dim, LoopKind::Reduction(var) if var > self.var);
        let end = serial.iter().take_while(outer).count();
        let position = serial.iter().position(|tile| tile.dim == self.dim());
        let place = position.map_or(end..end, |position| position..position + 1);
        serial.splice(place, written.map(|size| Tile { dim: self.dim(), size }));
    }
}

/// An input that a kernel reads.
#[derive(Debug)]
pub(super) struct InputCopy {
    pub input: InputId,
    /// The nests that read it.
    pub readers: Vec<Item>,
    /// The number of loops over the block around each place of a copy.
    pub depths: Vec<usize>,
}

impl InputCopy {
    /// The position of the place of its copy in a kernel, 0 for no copy. `None` if it is elsewhere.
    pub fn place(&self, kernel: &Kernel) -> Option<usize> {
        let Some(number) = kernel.nests().position(|nest| nest.item == Item::Input(self.input)) else {
            return Some(0);
        };
        let depth = kernel.loops_over(number).count();
        self.depths.iter().position(|other| *other == depth).map(|position| position + 1)
    }

    /// Adds a copy at a place.
    pub fn insert(&self, kernel: &mut Kernel, place: usize) {
        let holds: Vec<bool> = kernel.nests().map(|nest| self.readers.contains(&nest.item)).collect();
        let sites = kernel.sites(&holds);
        if let Some(site) = place.checked_sub(1).and_then(|position| sites.get(position)) {
            site.insert(kernel, vec![Nest::shared(self.input).into()]);
        }
    }
}

/// A nest in shared memory.
#[derive(Debug)]
pub(super) struct SharedMapping {
    pub item: Item,
    /// For nests whose tiles are adapted to the extents at their place.
    pub facts: Option<StageFacts>,
    /// The tiles that can be chosen, after a flat loop.
    pub entries: Vec<ThreadTiles>,
}

impl SharedMapping {
    /// The mapping at a position, at a place with these extents. Flat if each thread would get too many points.
    pub fn mapping(&self, position: usize, extents: &[i64]) -> Mapping {
        let entry = position.checked_sub(1).and_then(|position| self.entries.get(position));
        match (entry, &self.facts) {
            (None, _) => Mapping::Flat,
            (Some(tiles), None) => tiles.clone().into(),
            (Some(tiles), Some(facts)) => adapted(facts, tiles, extents).into(),
        }
    }

    /// The position of a mapping.
    pub fn position(&self, mapping: &Mapping, extents: &[i64]) -> Option<usize> {
        (0..=self.entries.len()).find(|position| self.mapping(*position, extents) == *mapping)
    }
}

/// Tiles with the same threads for other extents. They are unrolled unless the original tiles were explicitly not.
fn adapted(facts: &StageFacts, tiles: &ThreadTiles, extents: &[i64]) -> Option<ThreadTiles> {
    let unroll = tiles.unroll || tiles.serial.is_empty();
    let fitted = refitted(facts, &Limits::default(), tiles, extents)?;
    Some(ThreadTiles { unroll: fitted.unroll && unroll, ..fitted })
}

/// The number of a size, if it has one.
pub(super) fn given(size: Size) -> Option<u64> {
    match size {
        Size::Of(size) => Some(u64::from(size.max(1))),
        Size::All => None,
    }
}

pub(super) fn size(size: u64) -> Size {
    u32::try_from(size).map_or(Size::All, Size::Of)
}

impl Knob {
    /// The position of a kernel on the axis, or the nearest one for factors. `None` if it has none.
    pub fn read(&self, kernel: &Kernel, sizes: &Sizes) -> Option<Coordinate> {
        let found = match self {
            Knob::Tile { span, product, rounds } => {
                return Some(Coordinate::Factors(fitted(*product, &wanted(kernel, *span, *rounds)).slots));
            }
            Knob::Reduction(reduction) => {
                let wanted = reduction.wanted(kernel);
                return Some(Coordinate::Factors(fitted(reduction.product, &wanted).slots));
            }
            Knob::Order { list, members } => return Some(order(list.of(kernel), members)),
            Knob::Unroll(item) => {
                let tiles = kernel.nests().find(|nest| nest.item == *item)?.mapping.tiles()?;
                Some(usize::from(tiles.unroll || tiles.serial.is_empty()))
            }
            Knob::Word(Word { open, items, values }) => {
                let value = open.read(kernel, items, &|item| sizes.row(item))?;
                values.iter().position(|other| *other == value)
            }
            Knob::InputCopy(copy) => copy.place(kernel),
            Knob::SharedMapping(shared) => match kernel.nests().find(|nest| nest.item == shared.item) {
                Some(nest) => shared.position(&nest.mapping, sizes.extents(shared.item)),
                None => Some(0),
            },
        };
        found.and_then(|position| u16::try_from(position).ok()).map(Coordinate::Index)
    }
}

/// The tiles of a loop of a kernel's own stage, outermost first: of a block, of one round of all threads (if several
/// rounds are allowed), of a thread.
pub(super) fn wanted(kernel: &Kernel, span: Span, rounds: bool) -> Vec<Option<u64>> {
    let of = |list: List| list.of(kernel).iter().find(|tile| tile.dim == span.dim).map(|tile| tile.size);
    let block = of(List::Block).and_then(given);
    if kernel.nests().last().is_some_and(|own| own.mapping.is_flat()) {
        return vec![block];
    }
    let extent = span.extent.unsigned_abs();
    let inside = block.map_or(extent, |block| block.min(extent));
    let serial = of(List::Serial);
    let threads = match of(List::Threads) {
        None => 1,
        Some(Size::Of(threads)) => u64::from(threads.max(1)),
        Some(Size::All) => inside,
    };
    let (all, thread) = match serial {
        None => (Some(threads), Some(1)),
        Some(Size::Of(serial)) => {
            let serial = u64::from(serial.max(1));
            (Some(threads * serial), Some(serial))
        }
        Some(Size::All) if threads == 1 => (None, None),
        Some(Size::All) => {
            let serial = inside.div_ceil(threads);
            (Some(threads * serial), Some(serial))
        }
    };
    if rounds { vec![block, all, thread] } else { vec![block, thread] }
}

/// The order of members in a list. Those that are not in it come last, in their usual order.
fn order(list: &[Tile], members: &[LoopKind]) -> Coordinate {
    let listed = list.iter().filter_map(|tile| members.iter().position(|member| *member == tile.dim));
    let mut order: Vec<usize> = listed.collect();
    let others = (0..members.len()).filter(|member| !order.contains(member));
    order.extend(others.collect::<Vec<usize>>());
    Coordinate::Order(order.into_iter().filter_map(|member| u8::try_from(member).ok()).collect())
}
