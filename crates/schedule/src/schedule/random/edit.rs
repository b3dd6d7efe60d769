//! Edits of a schedule's tree: nests in bodies, kernels at root.

use warploom_lang::FuncId;

use crate::schedule::tree::{
    BlockItem, Item, Kernel, Loops, Mapping, Nest, ReductionTile, RootItem, Schedule, StageRef, Storage,
};

/// A body that holds all readers of something: a kernel's own, or that of loops over the block.
#[derive(Clone, Debug)]
pub(super) struct Site {
    /// The stage of the kernel.
    pub kernel: StageRef,
    /// The position of the loops in each body on the way.
    path: Vec<usize>,
    /// The position of the first reader in the body.
    first: usize,
}

impl Site {
    /// How many items of the body come before the first reader.
    pub fn first(&self) -> usize {
        self.first
    }

    /// Puts items into the body, before what stands at a position now.
    pub fn insert(&self, schedule: &mut Schedule, position: usize, items: Vec<BlockItem>) {
        let Some(kernel) = kernel_mut(schedule, self.kernel) else { return };
        let mut body = &mut kernel.body;
        for step in &self.path {
            let Some(BlockItem::Over(over)) = body.get_mut(*step) else { return };
            body = &mut over.body;
        }
        body.splice(position..position, items);
    }
}

/// The places of a kernel that hold all nests which read something, the outermost first.
pub(super) fn sites(kernel: &Kernel, reads: impl Fn(&Nest) -> bool) -> Vec<Site> {
    let (mut found, mut path, mut body) = (Vec::new(), Vec::new(), &kernel.body);
    loop {
        let holds = |item: &BlockItem| nests(std::slice::from_ref(item)).into_iter().any(&reads);
        let holders: Vec<usize> = (0..body.len()).filter(|i| holds(&body[*i])).collect();
        let Some(&first) = holders.first() else { return found };
        found.push(Site { kernel: kernel.stage, path: path.clone(), first });
        match (holders.as_slice(), &body[first]) {
            ([_], BlockItem::Over(over)) => {
                path.push(first);
                body = &over.body;
            }
            _ => return found,
        }
    }
}

/// The nests of a body, in order.
pub(super) fn nests(body: &[BlockItem]) -> Vec<&Nest> {
    fn inside(item: &BlockItem) -> Vec<&Nest> {
        match item {
            BlockItem::Nest(nest) => vec![nest],
            BlockItem::Over(over) => nests(&over.body),
        }
    }
    body.iter().flat_map(inside).collect()
}

/// A stage or copy alone, spread by a flat loop.
pub(super) fn flat(item: Item, storage: Storage) -> Nest {
    Nest { item, mapping: Mapping::Flat, storage, registers: Vec::new() }
}

/// A nest inside loops over the block, if there are any.
pub(super) fn over(loops: Vec<ReductionTile>, nest: Nest) -> BlockItem {
    match loops.is_empty() {
        true => BlockItem::Nest(nest),
        false => BlockItem::Over(Loops { loops, body: vec![BlockItem::Nest(nest)] }),
    }
}

/// A kernel inside loops around it, if there are any.
pub(super) fn around(loops: Vec<ReductionTile>, kernel: Kernel) -> RootItem {
    match loops.is_empty() {
        true => RootItem::Kernel(kernel),
        false => RootItem::Around(Loops { loops, body: vec![RootItem::Kernel(kernel)] }),
    }
}

/// One block that computes all of a stage.
pub(super) fn one_block(stage: StageRef) -> RootItem {
    let nest = flat(Item::Stage(stage), Storage::Global);
    RootItem::Kernel(Kernel { stage, block: Vec::new(), body: vec![BlockItem::Nest(nest)] })
}

/// All kernels, in order.
pub(super) fn kernels(schedule: &Schedule) -> Vec<&Kernel> {
    fn inside(item: &RootItem) -> Vec<&Kernel> {
        match item {
            RootItem::Kernel(kernel) => vec![kernel],
            RootItem::Around(around) => around.body.iter().flat_map(inside).collect(),
        }
    }
    schedule.root.iter().flat_map(inside).collect()
}

fn find_kernel(items: &mut [RootItem], stage: StageRef) -> Option<&mut Kernel> {
    items.iter_mut().find_map(|item| match item {
        RootItem::Kernel(kernel) => (kernel.stage == stage).then_some(kernel),
        RootItem::Around(around) => find_kernel(&mut around.body, stage),
    })
}

fn kernel_mut(schedule: &mut Schedule, stage: StageRef) -> Option<&mut Kernel> {
    find_kernel(&mut schedule.root, stage)
}

/// The nest that computes or copies something in a kernel.
pub(super) fn nest_mut(schedule: &mut Schedule, kernel: StageRef, item: Item) -> Option<&mut Nest> {
    fn find(body: &mut [BlockItem], item: Item) -> Option<&mut Nest> {
        body.iter_mut().find_map(|inner| match inner {
            BlockItem::Nest(nest) => (nest.item == item).then_some(nest),
            BlockItem::Over(over) => find(&mut over.body, item),
        })
    }
    find(&mut kernel_mut(schedule, kernel)?.body, item)
}

/// Whether an item of root is there for a stage.
fn is_of(item: &RootItem, of: impl Fn(StageRef) -> bool + Copy) -> bool {
    match item {
        RootItem::Kernel(kernel) => of(kernel.stage),
        RootItem::Around(around) => around.body.iter().any(|item| is_of(item, of)),
    }
}

/// Takes a Func's kernels away.
pub(super) fn remove_kernels(schedule: &mut Schedule, func: FuncId) {
    schedule.root.retain(|item| !is_of(item, |stage| stage.func == func));
}

/// Puts another kernel of a stage, and loops around it, in place of the one that is there.
pub(super) fn replace_kernel(schedule: &mut Schedule, stage: StageRef, with: RootItem) {
    if let Some(item) = schedule.root.iter_mut().find(|item| is_of(item, |known| known == stage)) {
        *item = with;
    }
}
