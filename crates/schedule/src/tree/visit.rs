//! Traversals of a tree: kernels and nests in execution order.

use std::slice::{Iter, IterMut, from_mut, from_ref};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::tree::{BlockItem, Kernel, Nest, ReductionTile, RootItem, Schedule};

impl Schedule {
    /// All kernels, in execution order.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        Leaves::new(self.root.iter(), kernel)
    }

    /// All kernels in execution order, for modification.
    pub fn kernels_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        Leaves::new(self.root.iter_mut(), kernel_mut)
    }

    /// The nests of all kernels, in execution order.
    pub fn nests(&self) -> impl Iterator<Item = &Nest> {
        self.root.iter().flat_map(RootItem::nests)
    }
}

impl RootItem {
    /// The kernel itself, or the kernels inside the loops, in execution order.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        Leaves::new(from_ref(self).iter(), kernel)
    }

    /// The kernel itself, or the kernels inside the loops, for modification.
    pub fn kernels_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        Leaves::new(from_mut(self).iter_mut(), kernel_mut)
    }

    /// The nests of the item's kernels, in execution order.
    pub fn nests(&self) -> impl Iterator<Item = &Nest> {
        self.kernels().flat_map(Kernel::nests)
    }

    /// The nests of the item's kernels in execution order, for modification.
    pub fn nests_mut(&mut self) -> impl Iterator<Item = &mut Nest> {
        self.kernels_mut().flat_map(Kernel::nests_mut)
    }
}

impl Kernel {
    /// The nests of a block, in execution order.
    pub fn nests(&self) -> impl Iterator<Item = &Nest> {
        Leaves::new(self.body.iter(), nest)
    }

    /// The nests of a block in execution order, for modification.
    pub fn nests_mut(&mut self) -> impl Iterator<Item = &mut Nest> {
        Leaves::new(self.body.iter_mut(), nest_mut)
    }

    /// The loops over the block around the nest with this number, outermost first.
    pub fn loops_over(&self, number: usize) -> impl Iterator<Item = &ReductionTile> {
        let mut nests = Leaves::new(self.body.iter(), nest);
        nests.nth(number);
        nests.bodies.into_iter().flat_map(|(loops, _)| loops)
    }
}

impl BlockItem {
    /// The nest itself, or the nests inside the loops, in execution order.
    pub fn nests(&self) -> impl Iterator<Item = &Nest> {
        Leaves::new(from_ref(self).iter(), nest)
    }
}

/// Iterates over the kernels or nests of a list of items, including those inside loops.
struct Leaves<'a, I: Iterator, L> {
    open: Open<'a, I, L>,
    /// The lists on the way to the last leaf, outermost first: the loops around each, and the rest of
    /// the list.
    bodies: SmallVec<[(&'a [ReductionTile], I); 3]>,
}

/// Classifies an item as a leaf or a list.
type Open<'a, I, L> = fn(<I as Iterator>::Item) -> Opened<'a, I, L>;

enum Opened<'a, I, L> {
    Leaf(L),
    Loops(&'a [ReductionTile], I),
}

impl<'a, I: Iterator, L> Leaves<'a, I, L> {
    fn new(items: I, open: Open<'a, I, L>) -> Leaves<'a, I, L> {
        Leaves { open, bodies: smallvec![(&[][..], items)] }
    }
}

impl<I: Iterator, L> Iterator for Leaves<'_, I, L> {
    type Item = L;

    fn next(&mut self) -> Option<L> {
        loop {
            match self.bodies.last_mut()?.1.next().map(self.open) {
                None => drop(self.bodies.pop()),
                Some(Opened::Loops(loops, body)) => self.bodies.push((loops, body)),
                Some(Opened::Leaf(leaf)) => return Some(leaf),
            }
        }
    }
}

fn kernel(item: &RootItem) -> Opened<'_, Iter<'_, RootItem>, &Kernel> {
    match item {
        RootItem::Kernel(kernel) => Opened::Leaf(kernel),
        RootItem::Around(around) => Opened::Loops(&around.loops, around.body.iter()),
    }
}

fn kernel_mut(item: &mut RootItem) -> Opened<'_, IterMut<'_, RootItem>, &mut Kernel> {
    match item {
        RootItem::Kernel(kernel) => Opened::Leaf(Arc::make_mut(kernel)),
        RootItem::Around(around) => Opened::Loops(&around.loops, around.body.iter_mut()),
    }
}

fn nest(item: &BlockItem) -> Opened<'_, Iter<'_, BlockItem>, &Nest> {
    match item {
        BlockItem::Nest(nest) => Opened::Leaf(nest),
        BlockItem::Over(over) => Opened::Loops(&over.loops, over.body.iter()),
    }
}

fn nest_mut(item: &mut BlockItem) -> Opened<'_, IterMut<'_, BlockItem>, &mut Nest> {
    match item {
        BlockItem::Nest(nest) => Opened::Leaf(Arc::make_mut(nest)),
        BlockItem::Over(over) => Opened::Loops(&over.loops, over.body.iter_mut()),
    }
}
