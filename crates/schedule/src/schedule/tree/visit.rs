//! Walks over a tree: its kernels and nests in the order they run.

use std::slice::{Iter, IterMut, from_mut, from_ref};

use smallvec::{SmallVec, smallvec};

use crate::schedule::tree::{BlockItem, Kernel, Nest, ReductionTile, RootItem, Schedule};

impl Schedule {
    /// All kernels, in the order they run.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        Leaves::new(self.root.iter(), kernel)
    }

    /// All kernels, in the order they run, to be changed.
    pub fn kernels_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        Leaves::new(self.root.iter_mut(), kernel_mut)
    }

    /// The nests of all kernels, in the order they run.
    pub fn nests(&self) -> impl Iterator<Item = &Nest> {
        self.root.iter().flat_map(RootItem::nests)
    }
}

impl RootItem {
    /// The kernel itself, or those inside the loops, in the order they run.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        Leaves::new(from_ref(self).iter(), kernel)
    }

    /// The kernel itself, or those inside the loops, to be changed.
    pub fn kernels_mut(&mut self) -> impl Iterator<Item = &mut Kernel> {
        Leaves::new(from_mut(self).iter_mut(), kernel_mut)
    }

    /// The nests of its kernels, in the order they run.
    pub fn nests(&self) -> impl Iterator<Item = &Nest> {
        self.kernels().flat_map(Kernel::nests)
    }

    /// The nests of its kernels, in the order they run, to be changed.
    pub fn nests_mut(&mut self) -> impl Iterator<Item = &mut Nest> {
        self.kernels_mut().flat_map(Kernel::nests_mut)
    }
}

impl Kernel {
    /// What a block computes, in the order it runs.
    pub fn nests(&self) -> impl Iterator<Item = &Nest> {
        Leaves::new(self.body.iter(), nest)
    }

    /// What a block computes, in the order it runs, to be changed.
    pub fn nests_mut(&mut self) -> impl Iterator<Item = &mut Nest> {
        Leaves::new(self.body.iter_mut(), nest_mut)
    }

    /// The loops over the block that the nest of a number stands in, the outermost first.
    pub fn loops_over(&self, number: usize) -> impl Iterator<Item = &ReductionTile> {
        let mut nests = Leaves::new(self.body.iter(), nest);
        nests.nth(number);
        nests.bodies.into_iter().flat_map(|(loops, _)| loops)
    }
}

impl BlockItem {
    /// The nest itself, or those inside the loops, in the order they run.
    pub fn nests(&self) -> impl Iterator<Item = &Nest> {
        Leaves::new(from_ref(self).iter(), nest)
    }
}

/// The kernels or nests of a list of items, and of the loops in it.
struct Leaves<'a, I: Iterator, L> {
    open: Open<'a, I, L>,
    /// The lists on the way to the last leaf, the outermost first: the loops that hold each, and what is left of it.
    bodies: SmallVec<[(&'a [ReductionTile], I); 3]>,
}

/// Says what an item is.
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
        RootItem::Kernel(kernel) => Opened::Leaf(kernel),
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
        BlockItem::Nest(nest) => Opened::Leaf(nest),
        BlockItem::Over(over) => Opened::Loops(&over.loops, over.body.iter_mut()),
    }
}
