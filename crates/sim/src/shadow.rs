//! Who touched an element last: how conflicts and reads of nothing are found.
//!
//! Time is counted in *stamps*: every launch, block and barrier starts a new one, so that a stamp says which
//! block of which launch an access belongs to, and between which two of its barriers. Blocks run one after
//! another. Each element keeps one mark of a write and one of a read, and that is enough:
//!
//! - what the same block did before its last barrier is ordered before everything that follows, so a newer
//!   mark of the block may replace an older one;
//! - what an earlier block of the launch did is in conflict with all that follows, except for two reads or
//!   two atomics, which change nothing: its mark stays to the end of the launch.
//!
//! Nothing is ever cleared: marks with too small a stamp mean nothing.

use crate::error::AccessKind;

/// The most threads a block may have, so that a thread fits into a [`Mark`].
pub const MAX_THREADS: u32 = 1 << THREAD_BITS;

const THREAD_BITS: u32 = 12;
const THREAD: u64 = (1 << THREAD_BITS) - 1;
/// Several threads since the last barrier.
const MANY: u64 = 1 << 12;
/// The access was atomic.
const ATOMIC: u64 = 1 << 13;
/// The block also wrote the element plainly, before its last barrier.
const PLAIN: u64 = 1 << 14;
const SITE_SHIFT: u32 = 16;
const STAMP_SHIFT: u32 = 32;

/// The stamp of what was there before the first launch.
pub const GIVEN: u32 = 1;

/// An access: when, where in the code, by which thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark(u64);

impl Mark {
    /// Places in the code beyond 65534 share one number.
    pub fn new(stamp: u32, site: usize, thread: u16) -> Mark {
        let site = site.min(usize::from(u16::MAX)) as u64;
        Mark(u64::from(stamp) << STAMP_SHIFT | site << SITE_SHIFT | u64::from(thread))
    }

    #[inline]
    pub fn stamp(self) -> u32 {
        (self.0 >> STAMP_SHIFT) as u32
    }

    /// Where in the code, unless the number is too large.
    pub fn site(self) -> Option<usize> {
        let site = (self.0 >> SITE_SHIFT) as u16;
        (site != u16::MAX).then_some(usize::from(site))
    }

    /// The thread, unless all that is known is that it is another one than `me`.
    pub fn other_than(self, me: u16) -> Option<u16> {
        let known = self.site().is_some() && !(self.has(MANY) && self.thread() == me);
        known.then_some(self.thread())
    }

    /// The same moment, with the place unknown.
    fn somewhere(self) -> Mark {
        Mark(self.0 | u64::from(u16::MAX) << SITE_SHIFT)
    }

    #[inline]
    pub fn thread(self) -> u16 {
        (self.0 & THREAD) as u16
    }

    #[inline]
    pub fn by(self, thread: u16) -> Mark {
        Mark(self.0 | u64::from(thread))
    }

    #[inline]
    fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    fn with(self, flags: u64) -> Mark {
        Mark(self.0 | flags)
    }
}

/// What an access is held against.
#[derive(Clone, Copy, Debug)]
pub struct Era {
    /// Elements written before this stamp hold nothing.
    pub written: u32,
    /// Accesses before this stamp are over.
    pub since: u32,
    /// When the running block started.
    pub block: u32,
    /// The stamp since the last barrier.
    pub now: u32,
}

impl Era {
    /// Whether a marked access is neither over, nor `thread`'s own, nor behind a barrier.
    #[inline]
    fn is_open(&self, mark: Mark, thread: u16) -> bool {
        let stamp = mark.stamp();
        let mine = mark.thread() == thread && !mark.has(MANY);
        stamp >= self.since && (stamp < self.block || (stamp == self.now && !mine))
    }

    /// Whether a marked access is of an earlier block.
    #[inline]
    fn is_foreign(&self, mark: Mark) -> bool {
        (self.since..self.block).contains(&mark.stamp())
    }
}

/// Why an access is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Nothing was written there.
    Uninitialised,
    /// Another thread's access.
    Conflict(AccessKind, Mark),
}

/// The marks of one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    write: Mark,
    read: Mark,
}

impl Cell {
    /// Whether the element was ever written.
    #[inline]
    pub fn is_written(self) -> bool {
        self.write != Mark::default()
    }

    /// A read marked `me`.
    #[inline]
    pub fn read(&mut self, era: &Era, me: Mark) -> Result<(), Refusal> {
        let thread = me.thread();
        if self.write.stamp() < era.written {
            return Err(Refusal::Uninitialised);
        }
        if era.is_open(self.write, thread) {
            return Err(written(self.write));
        }
        if self.read.stamp() == era.now {
            if self.read.thread() != thread {
                self.read = me.with(MANY);
            }
        } else if !era.is_foreign(self.read) {
            self.read = me;
        }
        Ok(())
    }

    /// A write marked `me`.
    #[inline]
    pub fn write(&mut self, era: &Era, me: Mark) -> Result<(), Refusal> {
        let thread = me.thread();
        if era.is_open(self.write, thread) {
            return Err(written(self.write));
        }
        if era.is_open(self.read, thread) {
            return Err(Refusal::Conflict(AccessKind::Read, self.read));
        }
        self.write = me;
        Ok(())
    }

    /// An atomic marked `me`.
    pub fn atomic(&mut self, era: &Era, me: Mark) -> Result<(), Refusal> {
        let (old, thread) = (self.write, me.thread());
        let stamp = old.stamp();
        if stamp < era.written {
            return Err(Refusal::Uninitialised);
        }
        let plain = !old.has(ATOMIC);
        if plain && era.is_open(old, thread) {
            return Err(written(old));
        }
        if old.has(PLAIN) && era.is_foreign(old) {
            return Err(Refusal::Conflict(AccessKind::Write, old.somewhere()));
        }
        if era.is_open(self.read, thread) {
            return Err(Refusal::Conflict(AccessKind::Read, self.read));
        }
        if stamp == era.now {
            // A plain write of this thread says more than an atomic.
            if !plain && old.thread() != thread {
                self.write = me.with(ATOMIC | MANY | (old.0 & PLAIN));
            }
        } else if stamp >= era.block {
            self.write = me.with(ATOMIC | if plain { PLAIN } else { old.0 & PLAIN });
        } else if !era.is_foreign(old) {
            self.write = me.with(ATOMIC);
        }
        Ok(())
    }
}

fn kind(write: Mark) -> AccessKind {
    if write.has(ATOMIC) { AccessKind::Atomic } else { AccessKind::Write }
}

fn written(write: Mark) -> Refusal {
    Refusal::Conflict(kind(write), write)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An access of the made-up histories below.
    #[derive(Clone, Copy, Debug)]
    struct Event {
        launch: u32,
        block: u32,
        stamp: u32,
        thread: u16,
        kind: AccessKind,
    }

    /// The rule itself: every pair of accesses is held against each other.
    fn conflicts(a: Event, b: Event, shared: bool) -> bool {
        let excused = a.kind == b.kind && a.kind != AccessKind::Write;
        let ordered = a.launch != b.launch || (a.block == b.block && a.stamp != b.stamp);
        let apart = shared && a.block != b.block;
        let one_thread = (a.block, a.thread) == (b.block, b.thread);
        !(excused || ordered || apart || one_thread)
    }

    fn expected(history: &[Event], event: Event, shared: bool) -> &'static str {
        let same_place = |e: &&Event| !shared || (e.launch, e.block) == (event.launch, event.block);
        let was_written = history.iter().filter(same_place).any(|e| e.kind != AccessKind::Read);
        if !was_written && event.kind != AccessKind::Write {
            return "uninitialised";
        }
        let clash = history.iter().any(|&earlier| conflicts(earlier, event, shared));
        if clash { "conflict" } else { "fine" }
    }

    /// One element's life, compared with the rule; a refused access changes nothing, and the element lives
    /// on. Gives how many accesses were fine, and how many in conflict.
    fn live(seed: u64, shared: bool) -> (usize, usize) {
        let mut clashes = 0;
        let mut random = crate::order::Random::new(seed);
        let mut cell = Cell::default();
        let mut history: Vec<Event> = Vec::new();
        let (mut launch, mut block, mut now) = (2, 2, 2);
        for _ in 0..40 {
            match random.below(12) {
                0 => (launch, block, now) = (now + 1, now + 1, now + 1),
                1 | 2 => (block, now) = (now + 1, now + 1),
                3..6 => now += 1,
                _ => {}
            }
            let thread = random.below(3) as u16;
            let kind = match random.below(8) {
                0 | 1 => AccessKind::Write,
                2 | 3 => AccessKind::Atomic,
                _ => AccessKind::Read,
            };
            let era = match shared {
                true => Era { written: block, since: block, block, now },
                false => Era { written: 1, since: launch, block, now },
            };
            let event = Event { launch, block, stamp: now, thread, kind };
            let wanted = expected(&history, event, shared);
            let me = Mark::new(now, 7, thread);
            let found = match kind {
                AccessKind::Read => cell.read(&era, me),
                AccessKind::Write => cell.write(&era, me),
                AccessKind::Atomic => cell.atomic(&era, me),
            };
            let name = match found {
                Ok(()) => "fine",
                Err(Refusal::Uninitialised) => "uninitialised",
                Err(Refusal::Conflict(..)) => "conflict",
            };
            assert_eq!(name, wanted, "seed {seed}: {event:?} after {history:#?}");
            match found {
                Ok(()) => history.push(event),
                Err(Refusal::Uninitialised) => {}
                Err(Refusal::Conflict(kind, mark)) => {
                    clashes += 1;
                    let mut others = history.iter().filter(|e| conflicts(**e, event, shared));
                    let named = others.any(|e| e.kind == kind && e.stamp <= mark.stamp());
                    assert!(named, "seed {seed}: {event:?} {history:#?}");
                }
            }
        }
        (history.len(), clashes)
    }

    #[test]
    fn two_marks_find_what_the_whole_history_finds() {
        for shared in [false, true] {
            let lives = (0..20_000).map(|seed| live(seed, shared));
            let (fine, clashes) = lives.fold((0, 0), |sum, life| (sum.0 + life.0, sum.1 + life.1));
            assert!(fine > 100_000 && clashes > 100_000, "{fine} fine, {clashes} in conflict");
        }
    }

    #[test]
    fn marks_hold_what_they_are_given() {
        let mark = Mark::new(u32::MAX, 65_534, 4095).with(MANY | ATOMIC | PLAIN);
        assert_eq!((mark.stamp(), mark.site(), mark.thread()), (u32::MAX, Some(65_534), 4095));
        assert_eq!(Mark::new(1, 70_000, 0).site(), None);
        assert_eq!(Mark::new(3, 4, 0).by(9), Mark::new(3, 4, 9));
    }
}
