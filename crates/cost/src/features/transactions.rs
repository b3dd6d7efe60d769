//! Memory transactions of simultaneous accesses.

use smallvec::SmallVec;
use warploom_plan::body::{Memory, Run, WARP, quotient};
use warploom_target::Device;

/// The most phases: elements of the smallest type per sector.
pub(crate) const MAX_PHASES: usize = 32;

/// The most banks of shared memory.
const MAX_BANKS: usize = 64;

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

fn remainder(value: i64, by: i64) -> i64 {
    if by & (by - 1) == 0 { value & (by - 1) } else { value.rem_euclid(by) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use warploom_plan::body::{Digit, Lanes};

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
