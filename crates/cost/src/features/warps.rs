//! Simultaneous accesses of the threads of a warp: runs of elements, and their memory transactions.

use smallvec::SmallVec;
use warploom_target::Device;

use crate::kernel::Memory;

/// Threads per warp.
pub(crate) const WARP: i64 = warploom_target::WARP as i64;

/// The most phases: elements of the smallest type per sector.
pub(crate) const MAX_PHASES: usize = 32;

/// The most banks of shared memory.
const MAX_BANKS: usize = 64;

/// The most warps per block that are analysed if all differ. Beyond that, a sample stands for all.
const MAX_WARPS: i64 = 96;

/// `count` elements from `first` on, at distance `step`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub first: i64,
    pub step: i64,
    pub count: i64,
}

impl Run {
    fn last(self) -> i64 {
        self.first + (self.count - 1) * self.step
    }
}

/// A digit of a thread's index. Only threads with a digit below `limit` are active. Each unit adds
/// `step` to the element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Digit {
    pub radix: i64,
    pub limit: i64,
    pub step: i64,
}

/// Warps with the same access pattern, shifted.
#[derive(Debug)]
pub(crate) struct Alike<'r> {
    /// The accesses of the first warp.
    pub runs: &'r [Run],
    /// The other warps: distance and number of warps along each direction.
    pub repeats: &'r [(i64, i64)],
    /// The number of real warps that each one stands for.
    pub weight: f64,
}

/// The threads of a block and the elements that they access.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Lanes {
    /// The fastest first.
    digits: SmallVec<[Digit; 4]>,
    /// The number of digit combinations. If it exceeds the number of threads, the threads make
    /// several rounds.
    total: i64,
    /// Threads per block.
    threads: i64,
}

impl Lanes {
    /// Merges consecutive digits if the second continues the steps of the first.
    pub fn new(digits: impl Iterator<Item = Digit>, threads: i64) -> Lanes {
        let mut merged: SmallVec<[Digit; 4]> = SmallVec::new();
        for digit in digits {
            match merged.last_mut() {
                Some(last) if last.limit == last.radix && digit.step == last.step * last.radix => {
                    last.limit = digit.limit * last.radix;
                    last.radix *= digit.radix;
                }
                _ => merged.push(digit),
            }
        }
        if merged.is_empty() {
            merged.push(Digit { radix: 1, limit: 1, step: 0 });
        }
        let total = merged.iter().map(|digit| digit.radix).product();
        Lanes { digits: merged, total, threads }
    }

    /// Calls `visit` with every warp that has active threads. Returns whether all were analysed.
    pub fn for_each_warp(&self, mut visit: impl FnMut(Alike<'_>)) -> bool {
        let first = self.digits[0];
        let unbroken = self.threads % WARP == 0 || self.total <= self.threads;
        let repeats_of = |digits: &[Digit]| -> SmallVec<[(i64, i64); 4]> {
            digits.iter().map(|digit| (digit.step, digit.limit)).collect()
        };
        if unbroken && (first.radix % WARP == 0 || self.digits.len() == 1) {
            let (whole, rest) = (first.limit / WARP, first.limit % WARP);
            let mut repeats = repeats_of(&self.digits[1..]);
            if rest > 0 {
                let run = Run { first: whole * WARP * first.step, step: first.step, count: rest };
                visit(Alike { runs: &[run], repeats: &repeats, weight: 1.0 });
            }
            if whole > 0 {
                repeats.push((WARP * first.step, whole));
                let run = Run { first: 0, step: first.step, count: WARP };
                visit(Alike { runs: &[run], repeats: &repeats, weight: 1.0 });
            }
            return true;
        }
        let mut period = 1;
        for (number, digit) in self.digits.iter().enumerate() {
            period *= digit.radix;
            if unbroken && period % WARP == 0 {
                return self.one_by_one(period, &repeats_of(&self.digits[number + 1..]), visit);
            }
        }
        self.one_by_one(self.total, &[], visit)
    }

    /// Visits the warps of the first `end` threads, or a sample of them.
    fn one_by_one(&self, end: i64, repeats: &[(i64, i64)], mut visit: impl FnMut(Alike<'_>)) -> bool {
        let in_round = self.threads.min(end);
        let warps_of = |threads: i64| (threads + WARP - 1) / WARP;
        let warps = end / in_round * warps_of(in_round) + warps_of(end % in_round);
        let looked_at = warps.min(MAX_WARPS);
        let weight = warps as f64 / looked_at as f64;
        let mut runs: SmallVec<[Run; 16]> = SmallVec::new();
        for number in 0..looked_at {
            let warp = number * warps / looked_at;
            let (round, within) = (warp / warps_of(in_round), warp % warps_of(in_round));
            let (start, stop) = (round * in_round, ((round + 1) * in_round).min(end));
            let thread = start + within * WARP;
            self.runs(thread, (stop - thread).min(WARP), &mut runs);
            if !runs.is_empty() {
                visit(Alike { runs: &runs, repeats, weight });
            }
        }
        looked_at == warps
    }

    /// The elements of the active threads in a range of threads.
    fn runs(&self, thread: i64, mut number: i64, runs: &mut SmallVec<[Run; 16]>) {
        runs.clear();
        let first = self.digits[0];
        let (mut row, mut at) = (thread / first.radix, thread % first.radix);
        while number > 0 {
            let taken = number.min(first.radix - at);
            let active = (first.limit - at).min(taken);
            if active > 0
                && let Some(offset) = self.row(row)
            {
                runs.push(Run { first: offset + at * first.step, step: first.step, count: active });
            }
            number -= taken;
            (row, at) = (row + 1, 0);
        }
    }

    /// The offset of a row of the first digit, if its threads are active.
    fn row(&self, mut row: i64) -> Option<i64> {
        let mut offset = 0;
        for digit in &self.digits[1..] {
            let at = row % digit.radix;
            if at >= digit.limit {
                return None;
            }
            offset += at * digit.step;
            row /= digit.radix;
        }
        Some(offset)
    }
}

/// The units in which memory is accessed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Units {
    pub sector: i64,
    pub word: i64,
    pub banks: i64,
}

impl Units {
    pub fn of(device: &Device) -> Units {
        Units {
            sector: i64::from(device.memory.sector_bytes.max(4)),
            word: i64::from(device.shared.bank_bytes.max(1)),
            banks: i64::from(device.shared.banks).clamp(1, MAX_BANKS as i64),
        }
    }
}

/// A number of sectors or words (`units`) between `least` and `most`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    least: i64,
    most: i64,
    units: i64,
}

impl Stretch {
    fn is_filled(self) -> bool {
        self.units == self.most - self.least + 1
    }
}

/// Counts the sectors of global memory, or the wavefronts of shared memory, that accesses to one
/// array need.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Transactions {
    is_shared: bool,
    /// The number of elements after which counts repeat.
    pub phases: i64,
    bytes: i64,
    unit: i64,
    banks: i64,
}

impl Transactions {
    pub fn new(memory: Memory, bytes: usize, units: Units) -> Transactions {
        let (bytes, is_shared) = (bytes as i64, memory == Memory::Shared);
        let unit = if is_shared { units.word } else { units.sector };
        let phases = (unit / bytes).clamp(1, MAX_PHASES as i64);
        Transactions { is_shared, phases, bytes, unit, banks: units.banks }
    }

    /// The sector or word of an element.
    fn unit_of(self, element: i64) -> i64 {
        quotient(element * self.bytes, self.unit)
    }

    /// The units between the first and the last element of a run. A dense run skips no unit;
    /// otherwise no unit is touched twice.
    pub fn stretch(self, first: i64, last: i64, count: i64, is_dense: bool) -> Stretch {
        let (a, b) = (self.unit_of(first), self.unit_of(last));
        let units = if is_dense { (b - a).abs() + 1 } else { count };
        Stretch { least: a.min(b), most: a.max(b), units }
    }

    /// Whether steps of at most `step` elements skip no unit.
    pub fn is_dense(self, step: i64) -> bool {
        step.abs() * self.bytes <= self.unit
    }

    /// The cost of some runs, shifted by `phase` elements.
    pub fn of_runs(self, runs: &[Run], phase: i64) -> f64 {
        let mut stretches: SmallVec<[Stretch; 16]> = SmallVec::new();
        for run in runs {
            let own = self.stretch(run.first + phase, run.last() + phase, run.count, self.is_dense(run.step));
            stretches.push(own);
        }
        self.of_stretches(&mut stretches).unwrap_or_else(|| {
            self.of_elements(
                runs.iter().flat_map(|run| (0..run.count).map(|k| run.first + phase + k * run.step)),
            )
        })
    }

    /// The cost of some stretches, if it can be told without visiting each element.
    pub fn of_stretches(self, stretches: &mut SmallVec<[Stretch; 16]>) -> Option<f64> {
        stretches.dedup_by(|next, last| next == last && next.is_filled());
        let least = stretches.iter().map(|own| own.least).min().unwrap_or(0);
        let most = stretches.iter().map(|own| own.most).max().unwrap_or(0);
        if self.is_shared {
            return (most - least < self.banks).then_some(1.0);
        }
        let ascends = stretches.windows(2).all(|pair| pair[0].most <= pair[1].least);
        if !ascends && !stretches.windows(2).all(|pair| pair[1].most <= pair[0].least) {
            return None;
        }
        let meet = |pair: &&[Stretch]| pair[0].most == pair[1].least || pair[1].most == pair[0].least;
        let met = stretches.windows(2).filter(meet).count();
        Some((stretches.iter().map(|own| own.units).sum::<i64>() - met as i64) as f64)
    }

    /// The cost of arbitrary elements.
    pub fn of_elements(self, elements: impl Iterator<Item = i64>) -> f64 {
        let mut units: SmallVec<[i64; WARP as usize]> =
            elements.map(|element| self.unit_of(element)).collect();
        if !units.is_sorted() {
            units.sort_unstable();
        }
        units.dedup();
        if !self.is_shared {
            return units.len() as f64;
        }
        let mut words = [0_u8; MAX_BANKS];
        for unit in &units {
            words[remainder(*unit, self.banks) as usize] += 1;
        }
        f64::from(words.into_iter().max().unwrap_or(1))
    }
}

/// The quotient by a positive number, rounded down. Fast for powers of two, which are by far the
/// most common.
pub(crate) fn quotient(value: i64, by: i64) -> i64 {
    if by & (by - 1) == 0 { value >> by.trailing_zeros() } else { value.div_euclid(by) }
}

fn remainder(value: i64, by: i64) -> i64 {
    if by & (by - 1) == 0 { value & (by - 1) } else { value.rem_euclid(by) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const UNITS: Units = Units { sector: 32, word: 4, banks: 32 };

    /// The elements of each warp, thread by thread.
    fn warps(digits: &[Digit], threads: i64) -> Vec<Vec<i64>> {
        let total: i64 = digits.iter().map(|digit| digit.radix).product();
        let mut warps: Vec<Vec<i64>> = Vec::new();
        for number in 0..total {
            if number % threads % WARP == 0 {
                warps.push(Vec::new());
            }
            let (mut rest, mut element, mut active) = (number, 0, true);
            for digit in digits {
                let at = rest % digit.radix;
                active &= at < digit.limit;
                element += at * digit.step;
                rest /= digit.radix;
            }
            if active {
                warps.last_mut().unwrap().push(element);
            }
        }
        warps.retain(|warp| !warp.is_empty());
        warps
    }

    fn by_hand(memory: Memory, bytes: i64, warp: &[i64], phase: i64) -> f64 {
        let unit = if memory == Memory::Shared { 4 } else { 32 };
        let units: BTreeSet<i64> =
            warp.iter().map(|element| ((element + phase) * bytes).div_euclid(unit)).collect();
        if memory == Memory::Global {
            return units.len() as f64;
        }
        (0..32).map(|bank| units.iter().filter(|word| word.rem_euclid(32) == bank).count()).max().unwrap()
            as f64
    }

    #[test]
    fn warps_by_structure_are_those_thread_by_thread() {
        let digit = |(radix, limit, step): (i64, i64, i64)| Digit { radix, limit, step };
        type Digits = &'static [(i64, i64, i64)];
        let shapes: [(Digits, i64); 12] = [
            (&[(32, 32, 1), (8, 8, 100)], 256),
            (&[(66, 66, 1), (17, 17, 66)], 256),
            (&[(34, 34, 1), (9, 9, 70)], 256),
            (&[(34, 34, 1), (9, 9, 70)], 100),
            (&[(8, 7, 2), (8, 8, -33), (4, 3, 5)], 256),
            (&[(64, 50, 1), (4, 3, 64)], 256),
            (&[(16, 16, 33), (16, 16, 1)], 256),
            (&[(5, 5, 0), (9, 7, 1), (6, 6, 9)], 270),
            (&[(128, 128, -3)], 128),
            (&[(7, 7, 1), (3, 3, 40)], 32),
            (&[(2, 2, 1), (96, 95, 2)], 192),
            (&[], 32),
        ];
        for (digits, threads) in shapes {
            let digits: Vec<Digit> = digits.iter().copied().map(digit).collect();
            let lanes = Lanes::new(digits.iter().copied(), threads);
            for (memory, bytes) in
                [(Memory::Global, 4), (Memory::Global, 1), (Memory::Shared, 4), (Memory::Shared, 2)]
            {
                let transactions = Transactions::new(memory, bytes as usize, UNITS);
                for phase in 0..transactions.phases {
                    let (mut found, mut number) = (0.0, 0.0);
                    let all = lanes.for_each_warp(|alike| {
                        let mut starts = vec![0];
                        for (step, count) in alike.repeats {
                            starts = starts
                                .iter()
                                .flat_map(|at| (0..*count).map(move |k| at + k * step))
                                .collect();
                        }
                        for start in starts {
                            found += transactions.of_runs(alike.runs, phase + start);
                            number += 1.0;
                        }
                    });
                    let expected = warps(&digits, threads);
                    let sum: f64 = expected.iter().map(|warp| by_hand(memory, bytes, warp, phase)).sum();
                    assert!(all);
                    assert_eq!(
                        (found, number),
                        (sum, expected.len() as f64),
                        "{digits:?} {memory:?} {bytes}"
                    );
                }
            }
        }
    }
}
