//! Edits of a tree: places where something can be put, kernels found and replaced, and changes of everything in it.

use std::mem::take;

use smallvec::SmallVec;
use warploom_lang::FuncId;

use crate::schedule::tree::{
    BlockItem, Item, Kernel, Loops, Nest, ReductionTile, RootItem, Schedule, StageRef,
};

impl Schedule {
    /// The kernel of a stage.
    pub fn kernel_mut(&mut self, stage: StageRef) -> Option<&mut Kernel> {
        self.kernels_mut().find(|kernel| kernel.stage == stage)
    }

    /// Removes the kernels of a Func, together with the loops around them.
    pub fn remove_kernels(&mut self, func: FuncId) {
        self.root.retain(|item| !item.kernels().any(|kernel| kernel.stage.func == func));
    }

    /// Replaces the kernel of a stage, together with the loops around it.
    pub fn replace_kernel(&mut self, stage: StageRef, with: RootItem) {
        let of_stage = |item: &&mut RootItem| item.kernels().any(|kernel| kernel.stage == stage);
        if let Some(item) = self.root.iter_mut().find(of_stage) {
            *item = with;
        }
    }

    /// Changes everything in the tree, in the order of the text: `edit` gets each node before what it holds, and the
    /// loops that it stands in, the outermost first.
    ///
    /// It says whether the node stays. Kernels and nests are removed otherwise; loops are replaced by what they hold.
    /// Loops that hold nothing in the end are removed too.
    pub fn edit(&mut self, mut edit: impl FnMut(NodeMut<'_>, &[ReductionTile]) -> bool) {
        Editor { outer: Vec::new(), edit: &mut edit }.root(&mut self.root);
    }
}

impl RootItem {
    /// The item with a change of its first kernel.
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
    /// The nest of a stage or copy.
    pub fn nest_mut(&mut self, item: Item) -> Option<&mut Nest> {
        self.nests_mut().find(|nest| nest.item == item)
    }

    /// Puts loops over the block around the nest of a stage or copy that stands in none.
    pub fn wrap(&mut self, item: Item, loops: Vec<ReductionTile>) {
        let is_nest = |inner: &BlockItem| inner.nest().is_some_and(|nest| nest.item == item);
        if let Some(position) = self.body.iter().position(is_nest) {
            let inner = self.body.remove(position);
            self.body.insert(position, Loops::holding(loops, inner));
        }
    }

    /// Changes everything in the block, like [`Schedule::edit`]; the loops around the kernel are not known here.
    pub fn edit(&mut self, mut edit: impl FnMut(NodeMut<'_>, &[ReductionTile]) -> bool) {
        Editor { outer: Vec::new(), edit: &mut edit }.body(&mut self.body);
    }

    /// The places in a block that hold all of some nests, the outermost first. `holds` says for each nest whether it
    /// is one of them.
    ///
    /// # Panics
    /// If `holds` is shorter than there are nests.
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
    /// The loops on the way in: their position in the body, and how many of them are outside the place.
    steps: SmallVec<[(usize, usize); 2]>,
    /// In front of which item of the body things are put: the first one that holds a nest in question.
    pub before: usize,
    /// Whether the place is between loops that stand together, which are divided there.
    pub divides: bool,
}

impl Site {
    /// Puts items at the place in the kernel that it is a place of.
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

/// A node of the tree that is edited.
#[derive(Debug)]
pub enum NodeMut<'a> {
    /// Loops around kernels.
    Around(&'a mut Loops<RootItem>),
    /// A kernel, before its body.
    Kernel(&'a mut Kernel),
    /// Loops over the block.
    Over(&'a mut Loops<BlockItem>),
    /// A stage or copy.
    Nest(&'a mut Nest),
}

struct Editor<'e> {
    /// The loops that the next node stands in.
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
            BlockItem::Nest(nest) => (!self.stays(NodeMut::Nest(nest))).then(Vec::new),
            BlockItem::Over(over) => {
                let stays = self.stays(NodeMut::Over(over));
                self.inside(over, stays, Editor::body)
            }
        });
    }

    /// Edits what loops hold; gives that if it takes the place of the loops.
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

/// Visits each item of a list and puts others in its place, if there are any.
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

#[cfg(test)]
mod tests {
    use warploom_lang::Id;

    use super::*;
    use crate::schedule::tree::Size;

    fn stage(func: usize) -> StageRef {
        StageRef { func: FuncId::new(func), stage: 0 }
    }

    fn flat(func: usize) -> BlockItem {
        Nest::shared(stage(func)).into()
    }

    /// Loops over variables of a stage.
    fn tiles(func: usize, vars: &[usize]) -> Vec<ReductionTile> {
        let tile = |var: &usize| ReductionTile { stage: stage(func), var: *var, size: Size::Of(1) };
        vars.iter().map(tile).collect()
    }

    fn over(vars: &[usize], body: Vec<BlockItem>) -> BlockItem {
        Loops { loops: tiles(9, vars), body }.into()
    }

    fn kernel(body: Vec<BlockItem>) -> Kernel {
        Kernel { stage: stage(9), block: Vec::new(), body }
    }

    /// Kernels 1, 9 and 3; loops around the last two.
    fn schedule(body: Vec<BlockItem>) -> Schedule {
        let three = RootItem::lone(stage(3), tiles(3, &[0]), Vec::new(), Vec::new(), None);
        let around = Loops { loops: tiles(9, &[2]), body: vec![kernel(body).into(), three] };
        Schedule { root: vec![RootItem::single(stage(1)), around.into()], ..Schedule::default() }
    }

    #[test]
    fn places_are_before_readers_and_between_loops() {
        let inner = vec![flat(1), flat(9)];
        let kernel = kernel(vec![flat(0), over(&[1, 0], inner.clone())]);
        let put = |site: &Site| {
            let mut kernel = kernel.clone();
            site.insert(&mut kernel, vec![flat(5)]);
            kernel.body
        };
        // Read by the last nest only.
        let sites = kernel.sites(&[false, false, true]);
        assert_eq!(
            sites.iter().map(put).collect::<Vec<_>>(),
            [
                vec![flat(0), flat(5), over(&[1, 0], inner.clone())],
                vec![flat(0), over(&[1], vec![flat(5), over(&[0], inner.clone())])],
                vec![flat(0), over(&[1, 0], vec![flat(1), flat(5), flat(9)])],
            ]
        );
        assert_eq!(sites.iter().map(|site| site.divides).collect::<Vec<_>>(), [false, true, false]);
        // Readers inside and outside the loops have only the block in common.
        let common = kernel.sites(&[true, false, true]);
        let bodies: Vec<_> = common.iter().map(put).collect();
        assert_eq!(bodies, [vec![flat(5), flat(0), over(&[1, 0], inner)]]);
        assert!(kernel.sites(&[false; 3]).is_empty());
    }

    #[test]
    fn what_is_put_somewhere_can_be_removed_again() {
        let before = kernel(vec![flat(0), over(&[1], vec![flat(1), over(&[0], vec![flat(9)])])]);
        let sites = before.sites(&[false, false, true]);
        assert_eq!(sites.len(), 3);
        for site in sites {
            let mut after = before.clone();
            site.insert(&mut after, vec![Loops::holding(tiles(5, &[0]), Nest::shared(stage(5)))]);
            assert_eq!(after.nests().count(), 4);
            // Without the nest its loops hold nothing.
            after.edit(|node, _| !matches!(node, NodeMut::Nest(nest) if nest.item == stage(5).into()));
            assert_eq!(after, before);
        }
    }

    #[test]
    fn nodes_are_edited_in_order_with_the_loops_that_remain_outside() {
        let mut schedule = schedule(vec![flat(0), over(&[1], vec![flat(4), over(&[0], vec![flat(9)])])]);
        let mut seen = Vec::new();
        let vars = |tiles: &[ReductionTile]| tiles.iter().map(|tile| tile.var).collect::<Vec<_>>();
        schedule.edit(|node, outer| {
            let (name, stays) = match node {
                NodeMut::Around(around) => (format!("around {:?}", vars(&around.loops)), true),
                NodeMut::Kernel(kernel) => {
                    (format!("kernel {}", kernel.stage.func.index()), kernel.stage != stage(3))
                }
                NodeMut::Over(over) => {
                    over.loops[0].var += 5;
                    (format!("over {:?}", vars(&over.loops)), over.loops[0].var != 6)
                }
                NodeMut::Nest(nest) => {
                    let func = nest.item.stage().map_or(0, |stage| stage.func.index());
                    (format!("nest {func}"), true)
                }
            };
            seen.push(format!("{name} in {:?}", vars(outer)));
            stays
        });
        let expected = [
            "kernel 1 in []",
            "nest 1 in []",
            "around [2] in []",
            "kernel 9 in [2]",
            "nest 0 in [2]",
            "over [6] in [2]",
            "nest 4 in [2]",
            "over [5] in [2]",
            "nest 9 in [2, 5]",
            "around [0] in [2]",
            "kernel 3 in [2, 0]",
        ];
        assert_eq!(seen, expected);
        // The outer loops gave way to what they held; the loops around kernel 3 are gone with it.
        let body = vec![flat(0), flat(4), over(&[5], vec![flat(9)])];
        let around = Loops { loops: tiles(9, &[2]), body: vec![kernel(body).into()] };
        assert_eq!(schedule.root, [RootItem::single(stage(1)), around.into()]);
    }

    #[test]
    fn kernels_are_found_inside_loops() {
        let mut schedule = schedule(vec![over(&[1, 0], vec![flat(0)]), flat(9)]);
        let stages = |schedule: &Schedule| schedule.kernels().map(|kernel| kernel.stage).collect::<Vec<_>>();
        assert_eq!(stages(&schedule), [stage(1), stage(9), stage(3)]);
        assert_eq!(schedule.nests().count(), 4);
        let found = schedule.kernel_mut(stage(9)).unwrap();
        assert_eq!(found.loops_over(0).map(|tile| tile.var).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(found.loops_over(1).count(), 0);
        found.wrap(stage(9).into(), tiles(9, &[3]));
        assert_eq!(found.body, [over(&[1, 0], vec![flat(0)]), over(&[3], vec![flat(9)])]);
        assert_eq!(found.nest_mut(stage(0).into()).map(|nest| nest.item), Some(stage(0).into()));

        schedule.replace_kernel(stage(1), RootItem::single(stage(2)));
        assert_eq!(stages(&schedule), [stage(2), stage(9), stage(3)]);
        let changed = schedule.root[1].with(|kernel| kernel.stage = stage(8));
        assert_eq!(changed.kernels().map(|kernel| kernel.stage).collect::<Vec<_>>(), [stage(8), stage(3)]);
        schedule.remove_kernels(FuncId::new(3));
        assert_eq!(stages(&schedule), [stage(2)]);
    }
}
