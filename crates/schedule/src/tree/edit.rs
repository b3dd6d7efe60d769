//! Edits of a tree: finding places, finding and replacing kernels, and changing every node.

use std::mem::take;
use std::sync::Arc;

use smallvec::SmallVec;
use warploom_lang::FuncId;

use crate::tree::{BlockItem, Item, Kernel, Loops, Nest, ReductionTile, RootItem, Schedule, StageRef};

impl Schedule {
    /// The kernel of a stage, for modification.
    pub fn kernel_mut(&mut self, stage: StageRef) -> Option<&mut Kernel> {
        self.kernels_mut().find(|kernel| kernel.stage == stage)
    }

    /// Removes the kernels of a Func, with the loops around them.
    pub fn remove_kernels(&mut self, func: FuncId) {
        self.root.retain(|item| !item.kernels().any(|kernel| kernel.stage.func == func));
    }

    /// Replaces the kernel of a stage, with the loops around it.
    pub fn replace_kernel(&mut self, stage: StageRef, with: RootItem) {
        let of_stage = |item: &&mut RootItem| item.kernels().any(|kernel| kernel.stage == stage);
        if let Some(item) = self.root.iter_mut().find(of_stage) {
            *item = with;
        }
    }

    /// Edits every node of the tree in text order. `edit` gets each node before its children, with the loops around the
    /// node, outermost first.
    ///
    /// It returns whether to keep the node. Otherwise, kernels and nests are removed, and loops are replaced by their body.
    /// Loops with an empty body are removed at the end.
    pub fn edit(&mut self, mut edit: impl FnMut(NodeMut<'_>, &[ReductionTile]) -> bool) {
        Editor { outer: Vec::new(), edit: &mut edit }.root(&mut self.root);
    }
}

impl RootItem {
    /// The item with its first kernel changed.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut Kernel)) -> RootItem {
        let mut item = self.clone();
        if let Some(kernel) = item.kernels_mut().next() {
            change(kernel);
        }
        item
    }
}

impl Kernel {
    /// The nest of a stage or staged input, for modification.
    pub fn nest_mut(&mut self, item: Item) -> Option<&mut Nest> {
        self.nests_mut().find(|nest| nest.item == item)
    }

    /// Puts loops over the block around the nest of a stage or staged input that is in no loop yet.
    pub fn wrap(&mut self, item: Item, loops: Vec<ReductionTile>) {
        let is_nest = |inner: &&mut BlockItem| inner.nest().is_some_and(|nest| nest.item == item);
        if let Some(inner) = self.body.iter_mut().find(is_nest) {
            *inner = Loops::holding(loops, inner.clone());
        }
    }

    /// Edits every node of the block, like [`Schedule::edit`], but without the loops around the kernel.
    pub fn edit(&mut self, mut edit: impl FnMut(NodeMut<'_>, &[ReductionTile]) -> bool) {
        Editor { outer: Vec::new(), edit: &mut edit }.body(&mut self.body);
    }

    /// The places in a block whose scope contains all the given nests, outermost first. `holds` says for each nest
    /// whether it must be inside.
    ///
    /// # Panics
    /// If `holds` has fewer elements than there are nests.
    pub fn sites(&self, holds: &[bool]) -> Vec<Site> {
        let mut found = Vec::new();
        let (mut steps, mut body, mut holds) = (SmallVec::new(), &self.body, holds);
        loop {
            let mut rest = holds;
            let mut holders = body.iter().enumerate().filter_map(|(position, item)| {
                let (own, behind) = rest.split_at(item.nests().count());
                rest = behind;
                own.contains(&true).then_some((position, item, own))
            });
            let Some((position, item, own)) = holders.next() else { return found };
            found.push(Site { steps: steps.clone(), before: position, divides: false });
            let (None, Some(over)) = (holders.next(), item.over()) else { return found };
            for outside in 1..over.loops.len() {
                let mut steps = steps.clone();
                steps.push((position, outside));
                found.push(Site { steps, before: 0, divides: true });
            }
            steps.push((position, over.loops.len()));
            (body, holds) = (&over.body, own);
        }
    }
}

/// A place in a kernel's block, inside some of its loops; see [`Kernel::sites`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The loops on the way in: the position in the body, and how many of the loops are outside the
    /// place.
    steps: SmallVec<[(usize, usize); 2]>,
    /// Items are inserted before this position of the body, which is the first item that contains one
    /// of the nests.
    pub before: usize,
    /// Whether the place is between loops of one list, which is then split.
    pub divides: bool,
}

impl Site {
    /// Inserts items at this place of the kernel.
    pub fn insert(&self, kernel: &mut Kernel, items: Vec<BlockItem>) {
        let mut body = &mut kernel.body;
        for (position, outside) in &self.steps {
            let Some(BlockItem::Over(over)) = body.get_mut(*position) else { return };
            if *outside < over.loops.len() {
                let inner = Loops { loops: over.loops.split_off(*outside), body: take(&mut over.body) };
                over.body.push(inner.into());
            }
            body = &mut over.body;
        }
        body.splice(self.before..self.before, items);
    }
}

/// A node of the tree that is being edited.
#[derive(Debug)]
pub enum NodeMut<'a> {
    /// Loops around kernels.
    Around(&'a mut Loops<RootItem>),
    /// A kernel, before its body is edited.
    Kernel(&'a mut Kernel),
    /// Loops over the block.
    Over(&'a mut Loops<BlockItem>),
    /// A stage or staged input.
    Nest(&'a mut Nest),
}

struct Editor<'e> {
    /// The loops around the next node.
    outer: Vec<ReductionTile>,
    edit: &'e mut dyn FnMut(NodeMut<'_>, &[ReductionTile]) -> bool,
}

impl Editor<'_> {
    fn stays(&mut self, node: NodeMut<'_>) -> bool {
        (self.edit)(node, &self.outer)
    }

    fn root(&mut self, items: &mut Vec<RootItem>) {
        each(items, |item| match item {
            RootItem::Kernel(kernel) => {
                let kernel = Arc::make_mut(kernel);
                let stays = self.stays(NodeMut::Kernel(kernel));
                if stays {
                    self.body(&mut kernel.body);
                }
                (!stays).then(Vec::new)
            }
            RootItem::Around(around) => {
                let stays = self.stays(NodeMut::Around(around));
                self.inside(around, stays, Editor::root)
            }
        });
    }

    fn body(&mut self, items: &mut Vec<BlockItem>) {
        each(items, |item| match item {
            BlockItem::Nest(nest) => (!self.stays(NodeMut::Nest(Arc::make_mut(nest)))).then(Vec::new),
            BlockItem::Over(over) => {
                let stays = self.stays(NodeMut::Over(over));
                self.inside(over, stays, Editor::body)
            }
        });
    }

    /// Edits the body of loops. Returns the body if it replaces the loops.
    fn inside<T>(
        &mut self,
        loops: &mut Loops<T>,
        stay: bool,
        edit: fn(&mut Self, &mut Vec<T>),
    ) -> Option<Vec<T>> {
        let depth = self.outer.len();
        if stay {
            self.outer.extend_from_slice(&loops.loops);
        }
        edit(self, &mut loops.body);
        self.outer.truncate(depth);
        let goes = !stay || loops.loops.is_empty() || loops.body.is_empty();
        goes.then(|| take(&mut loops.body))
    }
}

/// Visits each item of a list and replaces it by other items, if there are any.
fn each<T>(items: &mut Vec<T>, mut others: impl FnMut(&mut T) -> Option<Vec<T>>) {
    let mut position = 0;
    while let Some(item) = items.get_mut(position) {
        let Some(others) = others(item) else {
            position += 1;
            continue;
        };
        let end = position + others.len();
        items.splice(position..=position, others);
        position = end;
    }
}
