//! The last accesses of each element, from which conflicts and uninitialised reads are detected.
//!
//! Time is counted in *stamps*: every launch, block and barrier starts a new one. A stamp therefore
//! identifies the launch and block of an access, and the barriers that it lies between. Blocks run one
//! after another. Each element keeps one mark of a write and one mark of a read, which is enough:
//!
//! - Accesses of the same block before its last barrier are ordered before all later ones, so a newer
//!   mark of the block can replace an older one.
//! - Accesses of an earlier block of the launch conflict with all later ones, except for two reads or
//!   two atomics, which need no new mark. So the earlier block's mark stays until the launch ends.
//!
//! An asynchronous copy is a write that lasts from its start to the wait of its thread: until then, its mark is *under
//! way* and refuses every access. It then gets the stamp of the wait.
//!
//! Marks are never cleared: marks with old stamps are ignored.

use crate::error::AccessKind;

/// The maximum number of threads per block, so that a thread fits into a [`Mark`].
pub const MAX_THREADS: u32 = 1 << THREAD_BITS;

const THREAD_BITS: u32 = 12;
const THREAD: u64 = (1 << THREAD_BITS) - 1;
/// Several threads have made the access since the last barrier.
const MANY: u64 = 1 << 12;
/// The access was atomic.
const ATOMIC: u64 = 1 << 13;
/// The block also wrote the element without an atomic, before its last barrier.
const PLAIN: u64 = 1 << 14;
/// The write is an asynchronous copy that no wait has ended.
const UNDER_WAY: u64 = 1 << 15;
const SITE_SHIFT: u32 = 16;
const STAMP_SHIFT: u32 = 32;

/// The stamp of data that exists before the first launch.
pub const GIVEN: u32 = 1;

/// An access: its stamp, its site in the code, and its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark(u64);

impl Mark {
    /// Sites from 65535 on share one number.
    pub fn new(stamp: u32, site: usize, thread: u16) -> Mark {
        let site = site.min(usize::from(u16::MAX)) as u64;
        Mark(u64::from(stamp) << STAMP_SHIFT | site << SITE_SHIFT | u64::from(thread))
    }

    #[inline]
    pub fn stamp(self) -> u32 {
        (self.0 >> STAMP_SHIFT) as u32
    }

    /// The site in the code; `None` if its number is too large.
    pub fn site(self) -> Option<usize> {
        let site = (self.0 >> SITE_SHIFT) as u16;
        (site != u16::MAX).then_some(usize::from(site))
    }

    /// The thread; `None` if it is only known to be a different one than `me`.
    pub fn other_than(self, me: u16) -> Option<u16> {
        let known = self.site().is_some() && !(self.has(MANY) && self.thread() == me);
        known.then_some(self.thread())
    }

    /// The same access with an unknown site.
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

/// The stamps that decide whether an access conflicts with a mark.
#[derive(Clone, Copy, Debug)]
pub struct Era {
    /// Elements last written before this stamp are uninitialised.
    pub written: u32,
    /// Accesses before this stamp belong to earlier launches and cannot conflict.
    pub since: u32,
    /// The stamp at which the running block started.
    pub block: u32,
    /// The current stamp, which started at the last barrier.
    pub now: u32,
}

impl Era {
    /// Whether a marked access is unordered: in this launch, by another thread, with no barrier in
    /// between.
    #[inline]
    fn is_open(&self, mark: Mark, thread: u16) -> bool {
        let stamp = mark.stamp();
        let mine = mark.thread() == thread && !mark.has(MANY);
        stamp >= self.since && (stamp < self.block || (stamp == self.now && !mine))
    }

    /// Whether a marked write is a copy of this block that has not arrived.
    #[inline]
    fn is_under_way(&self, mark: Mark) -> bool {
        mark.has(UNDER_WAY) && mark.stamp() >= self.block
    }

    /// Whether a marked access belongs to an earlier block of the launch.
    #[inline]
    fn is_foreign(&self, mark: Mark) -> bool {
        (self.since..self.block).contains(&mark.stamp())
    }
}

/// Why an access is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The element was not written.
    Uninitialised,
    /// A conflicting access of another thread.
    Conflict(AccessKind, Mark),
    /// A copy to the element has not arrived.
    UnderWay(Mark),
}

/// The marks of one element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cell {
    write: Mark,
    read: Mark,
}

impl Cell {
    /// An element that exists before the first launch.
    pub fn given() -> Cell {
        Cell { write: Mark::new(GIVEN, 0, 0), read: Mark::default() }
    }

    /// Whether the element was ever written.
    #[inline]
    pub fn is_written(self) -> bool {
        self.write != Mark::default()
    }

    /// Checks and records a read with the mark `me`.
    #[inline]
    pub fn read(&mut self, era: &Era, me: Mark) -> Result<(), Refusal> {
        let thread = me.thread();
        if self.write.stamp() < era.written {
            return Err(Refusal::Uninitialised);
        }
        if era.is_under_way(self.write) {
            return Err(Refusal::UnderWay(self.write));
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

    /// Checks and records a write with the mark `me`.
    #[inline]
    pub fn write(&mut self, era: &Era, me: Mark) -> Result<(), Refusal> {
        let thread = me.thread();
        if era.is_under_way(self.write) {
            return Err(Refusal::UnderWay(self.write));
        }
        if era.is_open(self.write, thread) {
            return Err(written(self.write));
        }
        if era.is_open(self.read, thread) {
            return Err(Refusal::Conflict(AccessKind::Read, self.read));
        }
        self.write = me;
        Ok(())
    }

    /// Marks the last write as a copy in flight.
    pub fn depart(&mut self) {
        self.write = self.write.with(UNDER_WAY);
    }

    /// Ends a copy: it counts as a write at this stamp.
    pub fn arrive(&mut self, now: u32) {
        let rest = self.write.0 & (u64::from(u32::MAX) ^ UNDER_WAY);
        self.write = Mark(u64::from(now) << STAMP_SHIFT | rest);
    }

    /// Checks and records an atomic with the mark `me`.
    pub fn atomic(&mut self, era: &Era, me: Mark) -> Result<(), Refusal> {
        let (old, thread) = (self.write, me.thread());
        let stamp = old.stamp();
        if stamp < era.written {
            return Err(Refusal::Uninitialised);
        }
        if era.is_under_way(old) {
            return Err(Refusal::UnderWay(old));
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
            // A plain write of this thread is stricter than an atomic, so its mark is kept.
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

    /// An access of the random histories below.
    #[derive(Clone, Copy, Debug)]
    struct Event {
        launch: u32,
        block: u32,
        stamp: u32,
        thread: u16,
        kind: AccessKind,
    }

    /// The specification: compares every pair of accesses.
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

    /// Compares a history of one element with the specification. A refused access changes nothing, and
    /// the history continues. Returns the numbers of valid and of conflicting accesses.
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
                Err(Refusal::Conflict(..) | Refusal::UnderWay(_)) => "conflict",
            };
            assert_eq!(name, wanted, "seed {seed}: {event:?} after {history:#?}");
            match found {
                Ok(()) => history.push(event),
                Err(Refusal::Uninitialised) => {}
                Err(Refusal::UnderWay(_)) => panic!("seed {seed}: no copies here"),
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
