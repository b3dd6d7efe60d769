//! Transactions of accesses whose indices are rounded: requests are simulated, or a sample of them.

use smallvec::SmallVec;
use warploom_plan::body::{AxisId, AxisKind, Linear, Moves, Place, WARP, quotient};

use crate::features::traffic::Counter;
use crate::features::transactions::Transactions;

/// The most requests per group that are simulated if indices are rounded. Beyond that, a sample
/// stands for all.
const MAX_REQUESTS: usize = 16;

impl Counter<'_> {
    /// Sectors or wavefronts if indices are rounded. Simulates the requests, or a sample of them.
    pub(super) fn rounded(&self, keep: impl Fn(AxisKind) -> bool, requests: f64) -> f64 {
        let Moves { walk, group, .. } = *self.moves;
        let transactions = Transactions::new(self.place.memory, group.bytes, self.units);
        let case = &walk.cases[0];
        let axes: SmallVec<[(usize, i64, i64); 16]> = walk
            .around
            .axes
            .iter()
            .enumerate()
            .filter(|(number, axis)| {
                axis.kind != AxisKind::Lane && (keep(axis.kind) || *number < walk.own_axes)
            })
            .map(|(number, _)| (number, walk.span(case, number).0, walk.span(case, number).1))
            .collect();
        let turns: f64 = axes.iter().map(|(.., count)| *count as f64).product();
        let warps = (walk.total + WARP - 1) / WARP;
        let origins = group.origins.len() as i64;
        let all = turns * (warps * origins) as f64;
        let sampled = all.min(MAX_REQUESTS as f64) as usize;
        let mut at: SmallVec<[i64; 16]> = SmallVec::from_elem(0, walk.around.axes.len());
        let (mut cost, mut warp) = (0.0, RoundedWarp::new(self.moves, self.place));
        for sample in 0..sampled {
            let number = (sample as f64 * all / sampled as f64) as i64;
            let origin = &group.origins[(number % origins) as usize];
            let number = number / origins;
            let mut turn = number / warps;
            for (axis, start, count) in axes.iter().rev() {
                at[*axis] = start + turn % count;
                turn /= count;
            }
            warp.stand(origin, number % warps, &at);
            cost += warp.cost(transactions);
        }
        if sampled > 0 { cost / sampled as f64 * requests } else { requests }
    }
}

/// `coef · floor((start + steps · digits) / den)`, a term of the index of a row.
struct Term<'m> {
    row: usize,
    coef: i64,
    var: &'m Linear,
    /// The variable's sum in the thread whose digits are all 0.
    start: i64,
    den: i64,
    steps: SmallVec<[i64; 4]>,
}

/// The threads of a warp that access elements with rounded indices.
struct RoundedWarp<'m> {
    moves: &'m Moves<'m>,
    place: &'m Place,
    origin: &'m [i64],
    base: SmallVec<[i64; 4]>,
    terms: SmallVec<[Term<'m>; 4]>,
    /// Digits of the first thread.
    digits: SmallVec<[i64; 4]>,
    threads: i64,
}

impl<'m> RoundedWarp<'m> {
    fn new(moves: &'m Moves<'m>, place: &'m Place) -> RoundedWarp<'m> {
        let walk = moves.walk;
        let mut terms = SmallVec::new();
        for (row, motion) in moves.group.rows.iter().enumerate() {
            for (var, coef) in walk.vars.iter().zip(&motion.coefs).filter(|(_, coef)| **coef != 0) {
                let step_of = |axis: AxisId| -> i64 {
                    var.steps.iter().filter(|(own, _)| *own == axis).map(|(_, step)| step).sum()
                };
                let steps = walk.digits.iter().map(|(axis, _)| step_of(*axis)).collect();
                terms.push(Term { row, coef: *coef, var, start: 0, den: var.den, steps });
            }
        }
        let (base, digits) = (SmallVec::new(), SmallVec::new());
        RoundedWarp { moves, place, origin: &[], base, terms, digits, threads: 0 }
    }

    /// Moves to the warp with number `warp`, with the uniform axes at `at` and all lane axes there
    /// at 0.
    fn stand(&mut self, origin: &'m [i64], warp: i64, at: &[i64]) {
        let walk = self.moves.walk;
        self.origin = origin;
        self.base.clear();
        self.base.extend(self.place.base.iter().map(|base| base.at(at)));
        self.terms.iter_mut().for_each(|term| term.start = term.var.numerator(at));
        self.digits.clear();
        let mut rest = warp * WARP;
        for (_, radix) in &walk.digits {
            self.digits.push(rest % radix);
            rest /= radix;
        }
        self.threads = (walk.total - warp * WARP).min(WARP);
    }

    /// The element that a thread accesses.
    fn element(&self, digits: &[i64]) -> i64 {
        let mut indices: SmallVec<[i64; 4]> = SmallVec::from_slice(self.origin);
        for term in &self.terms {
            let moved: i64 = digits.iter().zip(&term.steps).map(|(digit, step)| digit * step).sum();
            indices[term.row] += term.coef * quotient(term.start + moved, term.den);
        }
        let rows = self.moves.group.rows.iter().zip(&indices).zip(&self.base).zip(&self.place.strides);
        rows.map(|(((row, index), base), stride)| (quotient(*index, row.den) - base) * stride).sum()
    }

    /// The largest possible distance to the next thread's element along the first digit.
    fn longest_step(&self) -> i64 {
        let mut rows: SmallVec<[i64; 4]> = SmallVec::from_elem(0, self.moves.group.rows.len());
        for term in &self.terms {
            let step = term.steps.first().copied().unwrap_or(0);
            rows[term.row] += (term.coef * (step.abs() + term.den - 1) / term.den).abs();
        }
        let rows = rows.iter().zip(&self.moves.group.rows).zip(&self.place.strides);
        rows.map(|((step, row), stride)| (step + row.den - 1) / row.den * stride).sum()
    }

    /// Calls `visit` with the first digits and the length of each run of threads along the first
    /// digit.
    fn for_each_run(&self, mut visit: impl FnMut(&mut [i64], i64)) {
        let radices = &self.moves.walk.digits;
        let (mut digits, mut left) = (self.digits.clone(), self.threads);
        while left > 0 {
            let taken = radices.first().map_or(left, |(_, radix)| left.min(radix - digits[0]));
            visit(&mut digits.clone(), taken);
            left -= taken;
            if let Some(first) = digits.first_mut() {
                *first = 0;
            }
            for (digit, (_, radix)) in digits.iter_mut().zip(radices).skip(1) {
                *digit += 1;
                if *digit < *radix {
                    break;
                }
                *digit = 0;
            }
        }
    }

    /// Sectors or wavefronts of the warp.
    fn cost(&self, transactions: Transactions) -> f64 {
        let one_way =
            self.terms.iter().filter(|term| term.steps.first().is_some_and(|step| *step != 0)).count() < 2;
        if one_way && transactions.is_dense(self.longest_step()) {
            let mut stretches = SmallVec::new();
            self.for_each_run(|digits, count| {
                let first = self.element(digits);
                digits.iter_mut().take(1).for_each(|digit| *digit += count - 1);
                stretches.push(transactions.stretch(first, self.element(digits), count, true));
            });
            if let Some(cost) = transactions.of_stretches(&mut stretches) {
                return cost;
            }
        }
        let mut elements: SmallVec<[i64; WARP as usize]> = SmallVec::new();
        self.for_each_run(|digits, count| {
            for _ in 0..count {
                elements.push(self.element(digits));
                digits.iter_mut().take(1).for_each(|digit| *digit += 1);
            }
        });
        transactions.of_elements(elements.into_iter())
    }
}
