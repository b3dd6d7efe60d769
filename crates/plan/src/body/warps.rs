//! Simultaneous accesses of the threads of a warp, as runs of elements.

use smallvec::SmallVec;

/// Threads per warp.
pub const WARP: i64 = warploom_target::WARP as i64;

/// The most warps per block that are analysed if all differ. Beyond that, a sample stands for all.
const MAX_WARPS: i64 = 96;

/// `count` elements from `first` on, at distance `step`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The first element.
    pub first: i64,
    /// The distance between two elements.
    pub step: i64,
    /// The number of elements.
    pub count: i64,
}

impl Run {
    /// The last element.
    pub fn last(self) -> i64 {
        self.first + (self.count - 1) * self.step
    }
}

/// A digit of a thread's index. Only threads with a digit below `limit` are active. Each unit adds
/// `step` to the element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Digit {
    /// The number of values of the digit.
    pub radix: i64,
    /// The number of those with which threads are active.
    pub limit: i64,
    /// Elements per unit.
    pub step: i64,
}

/// Warps with the same access pattern, shifted.
#[derive(Debug)]
pub struct Alike<'r> {
    /// The accesses of the first warp.
    pub runs: &'r [Run],
    /// The other warps: distance and number of warps along each direction.
    pub repeats: &'r [(i64, i64)],
    /// The number of real warps that each one stands for.
    pub weight: f64,
}

/// The threads of a block and the elements that they access.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lanes {
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

/// The quotient by a positive number, rounded down. Fast for powers of two, which are by far the
/// most common.
pub fn quotient(value: i64, by: i64) -> i64 {
    if by & (by - 1) == 0 { value >> by.trailing_zeros() } else { value.div_euclid(by) }
}
