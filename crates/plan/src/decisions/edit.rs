//! Edits of kernels that decisions offer to the search.

use warploom_lang::FuncId;
use warploom_schedule::{Item, Kernel, Nest, Node, NodeSet, RootItem};

use crate::decisions::DECISIONS;
use crate::problem::Problem;

/// A kernel that could be edited.
#[derive(Clone, Copy, Debug)]
pub struct Tree<'a> {
    /// What is scheduled.
    pub problem: &'a Problem,
    /// The kernel, with the loops around it.
    pub item: &'a RootItem,
    /// The extents of the points of each nest, in execution order.
    pub extents: &'a [Vec<i64>],
    /// The Funcs that are inlined.
    pub inlined: &'a NodeSet,
}

/// A way to change one decision in a kernel: all other settings of a word, in the whole kernel or at one nest.
#[derive(Clone, Copy, Debug)]
pub enum Edit {
    /// Of a nest, tried where its threads get other points.
    Sharing(fn(&Tree<'_>, usize) -> Vec<RootItem>),
    /// Of all nests of a kernel that it concerns, tried once its points are shared.
    Kernel(fn(&Tree<'_>) -> Vec<RootItem>),
    /// Of a nest, tried once its kernel has settled.
    Nest(fn(&Tree<'_>, usize) -> Vec<RootItem>),
    /// Of a nest, for neighbours alone: whether the result is legal depends on sizes, so a search does not try it.
    Neighbour(fn(&Tree<'_>, usize) -> Vec<RootItem>),
}

/// The edits of all decisions, in their order.
pub fn edits() -> impl Iterator<Item = &'static Edit> {
    DECISIONS.iter().flat_map(|decision| decision.facts().edits)
}

impl<'a> Tree<'a> {
    pub(super) fn nest(&self, number: usize) -> Option<&'a Nest> {
        self.item.nests().nth(number)
    }

    /// A nest in shared memory.
    pub(super) fn shared(&self, number: usize) -> Option<&'a Nest> {
        self.nest(number).filter(|nest| nest.storage.is_shared())
    }

    /// The kernel with one nest changed.
    pub(super) fn with(&self, number: usize, change: impl FnOnce(&mut Nest)) -> RootItem {
        self.item.with(|kernel| {
            if let Some(nest) = kernel.nests_mut().nth(number) {
                change(nest);
            }
        })
    }

    /// The kernel with one of several values in place of another; none that is the same.
    pub(super) fn with_others<T: Copy + PartialEq>(
        &self,
        all: impl Iterator<Item = T>,
        own: T,
        set: impl Fn(&mut Kernel, T),
    ) -> Vec<RootItem> {
        all.filter(|value| *value != own).map(|value| self.item.with(|kernel| set(kernel, value))).collect()
    }

    /// Whether a nest only copies, so that the device could do so asynchronously.
    pub(super) fn is_copy(&self, nest: &Nest) -> bool {
        let dag = self.problem.dag();
        let is_inlined = |func: FuncId| self.inlined.contains(dag.func_node(func));
        nest.storage.is_shared() && self.problem.is_copy(nest.item, is_inlined)
    }

    /// What a nest computes or copies.
    pub(super) fn node(&self, number: usize) -> Option<&'a Node> {
        let dag = self.problem.dag();
        let node = match self.nest(number)?.item {
            Item::Stage(stage) => dag.func_node(stage.func),
            Item::Input(input) => dag.input_node(input),
        };
        Some(&dag.nodes()[node])
    }
}
