//! Where the threads of a block have to wait for each other: before a nest that touches memory which another
//! thread wrote, or writes memory which another thread touched, since the last barrier.

use crate::node_set::NodeSet;
use crate::schedule::footprint::{Footprints, KernelFootprint};
use crate::schedule::tree::{BlockItem, Kernel};

/// The barriers of a block.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Barriers {
    /// Whether one stands before each nest of the kernel, in the order of the text.
    pub nests: Vec<bool>,
    /// Those of each loop over the block, in the order of the text.
    pub loops: Vec<LoopBarriers>,
    /// How many of them a block passes.
    pub passed: f64,
}

/// The barriers of a loop over the block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoopBarriers {
    /// Before its first iteration.
    pub before: bool,
    /// At the end of each iteration.
    pub at_end: bool,
}

impl Footprints {
    /// The barriers of a kernel, which these are the footprints of.
    pub fn barriers(&self, kernel: &Kernel, footprint: &KernelFootprint) -> Barriers {
        let mut barriers = Barriers {
            nests: vec![false; footprint.nests.len()],
            loops: vec![LoopBarriers::default(); footprint.loops.len()],
            passed: 0.0,
        };
        let mut walk =
            Walk { footprints: self, kernel: footprint, nest: 0, counted: 0, barriers: &mut barriers };
        let part = walk.between(&kernel.body, &mut Touched::default());
        barriers.passed = part.passed;
        barriers
    }
}

/// What threads touch of the memory through which they exchange values.
#[derive(Clone, Default)]
struct Touched {
    read: NodeSet,
    written: NodeSet,
}

impl Touched {
    fn conflicts(&self, later: &Touched) -> bool {
        later.read.intersects(&self.written)
            || later.written.intersects(&self.read)
            || later.written.intersects(&self.written)
    }

    fn extend(&mut self, later: &Touched) {
        self.read.extend(&later.read);
        self.written.extend(&later.written);
    }
}

/// A part of a block.
#[derive(Default)]
struct Part {
    /// The barriers that a block passes in it.
    passed: f64,
    /// What it touches before the first of them.
    first: Touched,
}

struct Walk<'a> {
    footprints: &'a Footprints,
    kernel: &'a KernelFootprint,
    /// The next nest and the next loop of the kernel.
    nest: usize,
    counted: usize,
    barriers: &'a mut Barriers,
}

impl Walk<'_> {
    /// Items one after the other; `since` is what was touched since the last barrier.
    fn between(&mut self, items: &[BlockItem], since: &mut Touched) -> Part {
        let mut all = Part::default();
        for item in items {
            let crossed = all.passed > 0.0;
            match item {
                BlockItem::Nest(_) => {
                    let own = self.touched();
                    let wait = since.conflicts(&own);
                    if wait {
                        *since = Touched::default();
                    }
                    since.extend(&own);
                    self.barriers.nests[self.nest] = wait;
                    self.nest += 1;
                    all.passed += f64::from(u8::from(wait));
                    if !crossed && !wait {
                        all.first.extend(&own);
                    }
                }
                BlockItem::Over(over) => {
                    let part = self.over(over.loops.len(), &over.body, since);
                    all.passed += part.passed;
                    if !crossed {
                        all.first.extend(&part.first);
                    }
                }
            }
        }
        all
    }

    /// What the next nest touches.
    fn touched(&self) -> Touched {
        let mut touched = Touched::default();
        if let Some(nest) = &self.footprints.nests[self.kernel.nests.start + self.nest] {
            touched.read = nest.reads.clone();
            nest.exchanged.into_iter().for_each(|node| touched.written.insert(node));
        }
        touched
    }

    /// The next `depth` loops, each inside the one before it, around some items.
    fn over(&mut self, depth: usize, body: &[BlockItem], since: &mut Touched) -> Part {
        if depth == 0 {
            return self.between(body, since);
        }
        let number = self.counted;
        self.counted += 1;
        let count = self.footprints.loops[self.kernel.loops.start + number].count;
        if count <= 1 {
            return self.over(depth - 1, body, since);
        }
        let mut last = Touched::default();
        let Part { mut passed, first } = self.over(depth - 1, body, &mut last);
        // The next iteration begins with what the first one began with.
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
        self.barriers.loops[number] = LoopBarriers { before, at_end };
        Part { passed: passed * count as f64 + f64::from(u8::from(before)), first }
    }
}

#[cfg(test)]
mod tests {
    use warploom_lang::{Input, Pipeline, Realisation, Region, func, infer, rdom, vars};

    use super::*;
    use crate::schedule::tree::{RootItem, Schedule};

    /// The barriers of the last kernel of a schedule for the sum of 64 neighbours, each through `tile`.
    fn barriers(body: &str) -> Barriers {
        let x = vars!(x);
        let r = rdom!(r: (0, 64));
        let input = Input::f32("input", 1);
        let tile = func("tile", x, input.at(x) * 2.0);
        let sum = func("sum", x, 0.0).over(&r, |it| it.add(x, tile.at(x + r.x)));
        let pipeline = Pipeline::new("p", [sum]).unwrap();
        let request = Realisation::new(&pipeline)
            .input("input", Region::of_extents(&[1000]))
            .output("sum", Region::of_extents(&[900]));
        let regions = infer(&pipeline, &request).unwrap();
        let text = format!("p\n  kernel sum.0 flat\n  kernel sum.1 block x 32\n{body}");
        let schedule = Schedule::parse(&text, &pipeline).unwrap();
        let footprints = Footprints::new(&schedule, &pipeline, &regions);
        let Some(RootItem::Kernel(kernel)) = schedule.root.last() else {
            panic!("the last item is a kernel")
        };
        footprints.barriers(kernel, &footprints.kernels[1])
    }

    #[test]
    fn a_tile_is_filled_before_it_is_read() {
        let found = barriers("    tile flat shared\n    sum.1 flat\n");
        assert_eq!((found.nests, found.passed), (vec![false, true], 1.0));
    }

    #[test]
    fn a_tile_that_is_filled_in_every_iteration_takes_two() {
        let found = barriers("    over sum.1.r 8\n      tile flat shared\n      sum.1 flat\n");
        assert_eq!(found.nests, [false, true]);
        assert_eq!(found.loops, [LoopBarriers { before: false, at_end: true }]);
        assert_eq!(found.passed, 16.0);
    }

    #[test]
    fn a_loop_that_runs_once_is_none() {
        let found = barriers("    over sum.1.r 64\n      tile flat shared\n      sum.1 flat\n");
        assert_eq!((found.loops, found.passed), (vec![LoopBarriers::default()], 1.0));
    }

    #[test]
    fn what_each_thread_has_for_itself_takes_none() {
        let found = barriers("    sum.1 threads x 32\n      tile registers\n");
        assert_eq!((found.nests, found.passed), (vec![false], 0.0));
    }
}
