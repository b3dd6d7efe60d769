//! Places the barriers of a block. A nest needs a barrier before it if, since the last barrier, another thread
//! wrote memory that the nest accesses, or accessed memory that the nest writes. Atomics of one nest need no barrier
//! between them, whichever iterations they belong to.
//!
//! A loop that copies ahead has a barrier at the start of each iteration. It makes the copies for this iteration visible,
//! and ends the reads of the slice that the next copies overwrite, so the copies themselves need no other barrier.

use smallvec::SmallVec;
use warploom_lang::Id;
use warploom_schedule::{NodeId, NodeSet};

use crate::ids::{KernelId, LoopId, NestId};
use crate::plan::{NestPlan, Plan, Sequence, Stepped};

/// The barriers in one block of a kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Barriers {
    first_nest: usize,
    nests: Vec<bool>,
    first_loop: usize,
    loops: Vec<LoopBarriers>,
    /// How many barriers a block executes, counting loop iterations.
    pub passed: f64,
}

/// The barriers of a loop over the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopBarriers {
    /// Whether there is a barrier before the first iteration.
    pub before: bool,
    /// Whether there is a barrier at the end of each iteration.
    pub at_end: bool,
}

impl Plan {
    /// Computes the barriers of a kernel.
    pub fn barriers(&self, kernel: KernelId) -> Barriers {
        let kernel = &self.kernels[kernel];
        let (nests, loops) = (kernel.nests.start.index(), kernel.over.start.index());
        let mut barriers = Barriers {
            first_nest: nests,
            nests: vec![false; kernel.nests.end.index() - nests],
            first_loop: loops,
            loops: vec![LoopBarriers::default(); kernel.over.end.index() - loops],
            passed: 0.0,
        };
        let exchanges =
            |nest: &NestPlan| nest.footprint.as_ref().is_some_and(|nest| nest.exchanged.is_some());
        if !self.nests.slice(kernel.nests.clone()).iter().any(exchanges) {
            return barriers;
        }
        let mut walk = Walk { plan: self, barriers: &mut barriers };
        let part = walk.between(kernel.body.body(), &mut Touched::default());
        barriers.passed = part.passed;
        barriers
    }
}

impl Barriers {
    /// Whether there is a barrier before a nest of the kernel.
    pub fn before(&self, nest: NestId) -> bool {
        self.nests[nest.index() - self.first_nest]
    }

    /// The barriers of a loop over the kernel's block.
    pub fn of_loop(&self, id: LoopId) -> LoopBarriers {
        self.loops[id.index() - self.first_loop]
    }
}

/// The memory accessed by threads, out of the memory through which they exchange values.
#[derive(Clone, Default)]
struct Touched {
    read: NodeSet,
    written: NodeSet,
    /// Nests with atomics, and what they update. These nodes are not among those written.
    updated: SmallVec<[(NestId, NodeId); 2]>,
}

impl Touched {
    fn conflicts(&self, later: &Touched) -> bool {
        later.read.intersects(&self.written)
            || later.written.intersects(&self.read)
            || later.written.intersects(&self.written)
            || self.updates_what(later)
            || later.updates_what(self)
    }

    /// Whether something that is updated by atomics here is accessed in another way, or by another nest. Two
    /// nests may have different operators, whose order matters.
    fn updates_what(&self, other: &Touched) -> bool {
        self.updated.iter().any(|(nest, node)| {
            let elsewhere = |(by, what): &(NestId, NodeId)| what == node && by != nest;
            other.read.contains(*node) || other.written.contains(*node) || other.updated.iter().any(elsewhere)
        })
    }

    fn extend(&mut self, later: &Touched) {
        self.read.extend(&later.read);
        self.written.extend(&later.written);
        self.updated.extend_from_slice(&later.updated);
    }
}

/// A part of a block.
#[derive(Default)]
struct BlockPart {
    /// How many barriers a block executes in this part.
    passed: f64,
    /// The memory accessed before the first of these barriers.
    first: Touched,
}

struct Walk<'a> {
    plan: &'a Plan,
    barriers: &'a mut Barriers,
}

impl Walk<'_> {
    /// Runs items in order; `since` is the memory accessed since the last barrier.
    fn between(&mut self, items: Sequence<'_, NestId>, since: &mut Touched) -> BlockPart {
        let mut all = BlockPart::default();
        for item in items {
            let part = match item {
                Stepped::Run(nest) => self.nest(nest, since),
                Stepped::Loop(id, body) => self.over(id, body, since),
            };
            if all.passed == 0.0 {
                all.first.extend(&part.first);
            }
            all.passed += part.passed;
        }
        all
    }

    fn nest(&mut self, id: NestId, since: &mut Touched) -> BlockPart {
        let mut own = Touched::default();
        let info @ NestPlan { nest, footprint, .. } = &self.plan.nests[id];
        if !self.plan.ahead_of(info).is_empty() {
            return BlockPart::default();
        }
        if let Some(footprint) = footprint {
            own.read = footprint.reads.clone();
            match footprint.exchanged {
                Some(node) if nest.numbers.atomic => own.updated.push((id, node)),
                exchanged => exchanged.into_iter().for_each(|node| own.written.insert(node)),
            }
        }
        let wait = since.conflicts(&own);
        if wait {
            *since = Touched::default();
        }
        since.extend(&own);
        self.barriers.nests[id.index() - self.barriers.first_nest] = wait;
        match wait {
            true => BlockPart { passed: 1.0, first: Touched::default() },
            false => BlockPart { passed: 0.0, first: own },
        }
    }

    fn over(&mut self, id: LoopId, body: Sequence<'_, NestId>, since: &mut Touched) -> BlockPart {
        let count = self.plan.loops[id].count;
        if count <= 1 {
            return self.between(body, since);
        }
        let ahead = self.plan.copied_ahead(id);
        if !ahead.is_empty() {
            return self.over_slices(id, &ahead, body, since);
        }
        let mut last = Touched::default();
        let BlockPart { mut passed, first } = self.between(body, &mut last);
        // The next iteration starts with the same accesses as the first one.
        let at_end = last.conflicts(&first);
        if at_end {
            passed += 1.0;
            last = Touched::default();
        }
        let before = since.conflicts(&first);
        if before || passed > 0.0 {
            *since = Touched::default();
        }
        since.extend(&last);
        self.barriers.loops[id.index() - self.barriers.first_loop] = LoopBarriers { before, at_end };
        BlockPart { passed: passed * count as f64 + f64::from(u8::from(before)), first }
    }

    /// Loops that copy ahead: the first copies precede all iterations.
    fn over_slices(
        &mut self,
        id: LoopId,
        ahead: &[NestId],
        body: Sequence<'_, NestId>,
        since: &mut Touched,
    ) -> BlockPart {
        let mut first = Touched::default();
        let copied = ahead.iter().filter_map(|nest| self.plan.nests[*nest].footprint.as_ref()?.exchanged);
        copied.for_each(|node| first.written.insert(node));
        let before = since.conflicts(&first);
        *since = Touched::default();
        let BlockPart { passed, .. } = self.between(self.plan.slice_body(id, body), since);
        self.barriers.loops[id.index() - self.barriers.first_loop] = LoopBarriers { before, at_end: false };
        let slices = self.plan.slice_count(ahead[0]) as f64;
        BlockPart { passed: (passed + 1.0) * slices + f64::from(u8::from(before)), first }
    }
}
