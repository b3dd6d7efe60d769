//! Edits of kernels: where something can be put, and what a kernel is with it.

use std::ops::Range;

use warploom_schedule::schedule::{
    BlockItem, Item, Kernel, Loops, Mapping, Nest, ReductionTile, RootItem, StageRef, Storage, Tile,
};

/// A kernel that computes one stage and nothing else, in loops around it and over its blocks.
pub(crate) fn lone_kernel(
    stage: StageRef,
    around: Vec<ReductionTile>,
    block: Vec<Tile>,
    over: Vec<ReductionTile>,
    mapping: Mapping,
) -> RootItem {
    let own = nest(Item::Stage(stage), Storage::Global, mapping);
    let kernel = RootItem::Kernel(Kernel { stage, block, body: vec![over_block(over, own)] });
    match around.is_empty() {
        true => kernel,
        false => RootItem::Around(Loops { loops: around, body: vec![kernel] }),
    }
}

/// A stage or copy without Funcs in registers.
pub(crate) fn nest(item: Item, storage: Storage, mapping: Mapping) -> Nest {
    Nest { item, mapping, storage, registers: Vec::new() }
}

/// A nest inside loops over the block, if there are any.
pub(crate) fn over_block(loops: Vec<ReductionTile>, nest: Nest) -> BlockItem {
    match loops.is_empty() {
        true => BlockItem::Nest(nest),
        false => BlockItem::Over(Loops { loops, body: vec![BlockItem::Nest(nest)] }),
    }
}

/// The kernel of an item of root, which holds one.
pub(crate) fn kernel(item: &RootItem) -> Option<&Kernel> {
    match item {
        RootItem::Kernel(kernel) => Some(kernel),
        RootItem::Around(around) => around.body.first().and_then(kernel),
    }
}

/// An item of root with another kernel in it.
pub(crate) fn with_kernel(item: &RootItem, change: impl FnOnce(&mut Kernel)) -> RootItem {
    fn find(item: &mut RootItem) -> Option<&mut Kernel> {
        match item {
            RootItem::Kernel(kernel) => Some(kernel),
            RootItem::Around(around) => around.body.first_mut().and_then(find),
        }
    }
    let mut item = item.clone();
    if let Some(kernel) = find(&mut item) {
        change(kernel);
    }
    item
}

/// The nests of a body, in the order they run.
pub(crate) fn nests(body: &[BlockItem]) -> Vec<&Nest> {
    let mut found = Vec::new();
    collect(body, &mut found);
    found
}

fn collect<'a>(body: &'a [BlockItem], found: &mut Vec<&'a Nest>) {
    for item in body {
        match item {
            BlockItem::Nest(nest) => found.push(nest),
            BlockItem::Over(over) => collect(&over.body, found),
        }
    }
}

/// The nests of a body, in the order they run, to be changed.
pub(crate) fn nests_mut(body: &mut [BlockItem]) -> Vec<&mut Nest> {
    fn inside(item: &mut BlockItem) -> Vec<&mut Nest> {
        match item {
            BlockItem::Nest(nest) => vec![nest],
            BlockItem::Over(over) => nests_mut(&mut over.body),
        }
    }
    body.iter_mut().flat_map(inside).collect()
}

/// The loops over the block that a nest stands in, the outermost first.
pub(crate) fn loops_of(body: &[BlockItem], nest: usize) -> Vec<ReductionTile> {
    let mut first = 0;
    for item in body {
        let count = count(item);
        if nest < first + count {
            let BlockItem::Over(over) = item else { return Vec::new() };
            let mut loops = over.loops.clone();
            loops.extend(loops_of(&over.body, nest - first));
            return loops;
        }
        first += count;
    }
    Vec::new()
}

fn count(item: &BlockItem) -> usize {
    match item {
        BlockItem::Nest(_) => 1,
        BlockItem::Over(over) => over.body.iter().map(count).sum(),
    }
}

/// A place in a kernel's block, inside some of its loops.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Site {
    /// The loops on the way in: their position in the body, and how many of them are outside the place.
    steps: Vec<(usize, usize)>,
    /// In front of which item of the body.
    before: usize,
}

impl Site {
    /// Puts items at the place. Loops that are only partly outside of it are divided.
    pub fn insert(&self, kernel: &mut Kernel, items: Vec<BlockItem>) {
        let mut body = &mut kernel.body;
        for (position, outside) in &self.steps {
            let Some(BlockItem::Over(over)) = body.get_mut(*position) else { return };
            if *outside < over.loops.len() {
                let inner =
                    Loops { loops: over.loops.split_off(*outside), body: std::mem::take(&mut over.body) };
                over.body = vec![BlockItem::Over(inner)];
            }
            body = &mut over.body;
        }
        body.splice(self.before..self.before, items);
    }
}

/// The places in a block that hold all of some nests, the outermost first. Things put there come before them.
pub(crate) fn sites(kernel: &Kernel, holds: &[bool]) -> Vec<Site> {
    let (mut found, mut steps): (Vec<Site>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    let (mut body, mut first) = (&kernel.body, 0);
    loop {
        let ranges = ranges(body, first);
        let mut holders = (0..body.len()).filter(|i| holds[ranges[*i].clone()].contains(&true));
        let Some(position) = holders.next() else { return found };
        found.push(Site { steps: steps.clone(), before: position });
        let (None, BlockItem::Over(over)) = (holders.next(), &body[position]) else { return found };
        for outside in 1..over.loops.len() {
            let mut steps = steps.clone();
            steps.push((position, outside));
            found.push(Site { steps, before: 0 });
        }
        steps.push((position, over.loops.len()));
        first = ranges[position].start;
        body = &over.body;
    }
}

/// The numbers of the nests in each item of a body whose first nest is number `first`.
fn ranges(body: &[BlockItem], mut first: usize) -> Vec<Range<usize>> {
    let range = |item: &BlockItem| {
        let range = first..first + count(item);
        first = range.end;
        range
    };
    body.iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use warploom_lang::{FuncId, Id};
    use warploom_schedule::schedule::Size;

    use super::*;

    fn stage(func: usize) -> StageRef {
        StageRef { func: FuncId::new(func), stage: 0 }
    }

    fn flat(func: usize) -> BlockItem {
        BlockItem::Nest(nest(Item::Stage(stage(func)), Storage::Shared, Mapping::Flat))
    }

    fn over(vars: &[usize], body: Vec<BlockItem>) -> BlockItem {
        let tile = |var: &usize| ReductionTile { stage: stage(9), var: *var, size: Size::Of(1) };
        BlockItem::Over(Loops { loops: vars.iter().map(tile).collect(), body })
    }

    #[test]
    fn places_are_before_readers_and_between_loops() {
        let body = vec![flat(0), over(&[1, 0], vec![flat(1), flat(9)])];
        let kernel = Kernel { stage: stage(9), block: Vec::new(), body };
        let put = |site: &Site| {
            let mut kernel = kernel.clone();
            site.insert(&mut kernel, vec![flat(5)]);
            kernel.body
        };
        // Read by the last nest only.
        let bodies: Vec<_> = sites(&kernel, &[false, false, true]).iter().map(put).collect();
        let inner = vec![flat(1), flat(9)];
        assert_eq!(
            bodies,
            [
                vec![flat(0), flat(5), over(&[1, 0], inner.clone())],
                vec![flat(0), over(&[1], vec![flat(5), over(&[0], inner)])],
                vec![flat(0), over(&[1, 0], vec![flat(1), flat(5), flat(9)])],
            ]
        );
        // Readers inside and outside the loops have only the block in common.
        let common = sites(&kernel, &[true, false, true]);
        assert_eq!(
            common.iter().map(put).collect::<Vec<_>>(),
            [vec![flat(5), flat(0), over(&[1, 0], vec![flat(1), flat(9)])]]
        );
        assert_eq!(loops_of(&kernel.body, 2).len(), 2);
        assert!(loops_of(&kernel.body, 0).is_empty());
    }
}
