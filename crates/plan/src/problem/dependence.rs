//! Decides whether the values of a reduction variable may run in any order.
//!
//! A variable is *parallel* if no two of its values access the same element of the Func with at least one
//! write, for any values of the variables that are not fixed. Two accesses are disjoint if in some dimension
//! their difference is never 0: its interval excludes 0, or a common divisor of its coefficients does not
//! divide its constant. An unknown part of an index can be anything in its range.

use ahash::AHashSet;
use warploom_lang::affine::{Linear, gcd};
use warploom_lang::bounds::{Analysis, IntSpan};
use warploom_lang::ir::NodeKind;
use warploom_lang::{ExprId, Pipeline, Range, Regions};
use warploom_schedule::StageRef;

use crate::problem::flow::Spans;

/// Which values of a reduction variable run together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Together {
    /// A single value: an outer loop runs the values one after the other.
    Fixed,
    /// At most this many adjacent values.
    Within(i64),
    /// All values.
    Any,
}

/// The self-dependences of one stage.
pub(crate) struct Dependence<'a> {
    pipeline: &'a Pipeline,
    stage: StageRef,
    domain: Vec<Range>,
    analysis: Analysis<'a, Spans<'a>>,
    /// The write first, then the reads.
    accesses: Vec<&'a [ExprId]>,
}

impl<'a> Dependence<'a> {
    /// Analyses a stage and calls `ask` with the result.
    pub fn of<T>(
        pipeline: &'a Pipeline,
        regions: &'a Regions,
        stage: StageRef,
        ask: impl FnOnce(&Dependence<'_>) -> T,
    ) -> T {
        let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
        let at = &regions.funcs[stage.func].stages[stage.stage];
        let span = |range: &Range| IntSpan::fixed(range.min, range.last().max(range.min));
        let spans = Spans {
            facts: &regions.facts,
            vars: at.needed.0.iter().map(span).collect(),
            rvars: at.domain.iter().map(span).collect(),
        };
        let exprs = pipeline.exprs();
        let mut accesses = vec![decl.indices.as_slice()];
        for id in exprs.reachable(decl.roots()) {
            if matches!(exprs[id].kind, NodeKind::Call(func, _) if func == stage.func) {
                accesses.push(&exprs[id].args);
            }
        }
        let analysis = Analysis::new(exprs, &spans, decl.roots());
        ask(&Dependence { pipeline, stage, domain: at.domain.clone(), analysis, accesses })
    }

    /// Whether the values of variable `var` may run in any order, given which values of all variables
    /// run `together`.
    pub fn is_parallel(&self, var: usize, together: &[Together]) -> bool {
        let reach = self.domain[var].extent - 1;
        let write = self.accesses[0];
        // One of the two accesses is the write. The other one is at a later or an earlier value of the
        // variable.
        reach < 1
            || self.accesses.iter().all(|other| {
                [(1, reach), (-reach, -1)]
                    .iter()
                    .all(|distance| self.never_meet(write, other, var, *distance, together))
            })
    }

    /// The reads of what a scan wrote at the previous value of its only reduction variable. There are none if that variable does
    /// not move the writes, or if some values may write nothing.
    pub fn previous(&self) -> Vec<ExprId> {
        let exprs = self.pipeline.exprs();
        let decl = &self.pipeline.funcs()[self.stage.func].stages[self.stage.stage];
        let steps: Option<Vec<i64>> = decl.indices.iter().map(|index| self.step_of(*index)).collect();
        let Some(steps) = steps.filter(|steps| steps.iter().any(|step| *step != 0)) else {
            return Vec::new();
        };
        if self.domain.len() != 1 || decl.predicate.is_some() {
            return Vec::new();
        }
        let is_previous = |((written, read), step): ((&ExprId, &ExprId), &i64)| {
            let (written, read) = (self.analysis.linear(*written), self.analysis.linear(*read));
            written.terms == read.terms && written.constant.checked_sub(*step) == Some(read.constant)
        };
        let reads = exprs.reachable(decl.values.iter().copied()).into_iter().filter(|id| {
            let node = &exprs[*id];
            matches!(node.kind, NodeKind::Call(func, _) if func == self.stage.func)
                && decl.indices.iter().zip(&node.args).zip(&steps).all(is_previous)
        });
        reads.collect()
    }

    /// How far an index moves when the only reduction variable grows by 1; `None` if this differs between values.
    fn step_of(&self, index: ExprId) -> Option<i64> {
        let exprs = self.pipeline.exprs();
        let is_variable = |atom: ExprId| matches!(exprs[atom].kind, NodeKind::RVar(_));
        let mut step = 0;
        for (atom, factor) in &self.analysis.linear(index).terms {
            if is_variable(*atom) {
                step += factor;
            } else if exprs.reachable([*atom]).into_iter().any(is_variable) {
                return None;
            }
        }
        Some(step)
    }

    /// Whether two accesses never touch the same element, if the second is `distance` further along
    /// `var`.
    fn never_meet(
        &self,
        first: &[ExprId],
        second: &[ExprId],
        var: usize,
        distance: (i64, i64),
        together: &[Together],
    ) -> bool {
        let dimensions = first.iter().zip(second);
        dimensions.into_iter().any(|(a, b)| {
            let difference = self.difference(*a, *b, var, distance, together);
            difference.is_some_and(|difference| !difference.can_be_zero())
        })
    }

    /// The index of the second access minus the index of the first.
    fn difference(
        &self,
        first: ExprId,
        second: ExprId,
        var: usize,
        distance: (i64, i64),
        together: &[Together],
    ) -> Option<Difference> {
        let (first, second) = (self.analysis.linear(first), self.analysis.linear(second));
        let mut difference =
            Difference { constant: second.constant.checked_sub(first.constant)?, ..Default::default() };
        let atoms: AHashSet<ExprId> =
            first.terms.iter().chain(&second.terms).map(|(atom, _)| *atom).collect();
        for atom in atoms {
            let (a, b) = (factor(first, atom), factor(second, atom));
            let span = self.analysis.int(atom);
            // b * (value + step) - a * value, where `step` is the distance from the first access to the
            // second.
            let step = match self.pipeline.exprs()[atom].kind {
                NodeKind::RVar(r) if r as usize == var => Some(distance),
                NodeKind::RVar(r) => self.step(r as usize, together),
                _ if self.is_same(atom, var, together) => Some((0, 0)),
                _ => None,
            };
            match step {
                Some((low, high)) => {
                    difference.add(b.checked_sub(a)?, span.min, span.max)?;
                    difference.add(b, low, high)?;
                }
                None => {
                    difference.add(b, span.min, span.max)?;
                    difference.add(a.checked_neg()?, span.min, span.max)?;
                }
            }
        }
        Some(difference)
    }

    /// The distance between two values of another variable; `None` if they are unrelated.
    fn step(&self, var: usize, together: &[Together]) -> Option<(i64, i64)> {
        match together[var] {
            Together::Fixed => Some((0, 0)),
            Together::Within(size) => Some((1 - size, size - 1)),
            Together::Any => None,
        }
    }

    /// Whether a value is the same in both accesses because nothing it depends on differs between them.
    ///
    /// Pure variables are the same, because points that differ in one are different elements.
    fn is_same(&self, atom: ExprId, var: usize, together: &[Together]) -> bool {
        let exprs = self.pipeline.exprs();
        exprs.reachable([atom]).into_iter().all(|id| match exprs[id].kind {
            NodeKind::RVar(r) => r as usize != var && together[r as usize] == Together::Fixed,
            // Values that the stage itself writes may have changed.
            NodeKind::Call(func, _) => func != self.stage.func,
            _ => true,
        })
    }
}

fn factor(linear: &Linear, atom: ExprId) -> i64 {
    linear.terms.iter().find(|(known, _)| *known == atom).map_or(0, |(_, factor)| *factor)
}

/// `constant + Σ factor · value`, where each value has its own range.
#[derive(Default)]
struct Difference {
    constant: i64,
    low: i64,
    high: i64,
    divisor: i64,
}

impl Difference {
    /// Adds `factor` times a value from `min` to `max`.
    fn add(&mut self, factor: i64, min: i64, max: i64) -> Option<()> {
        let (a, b) = (factor.checked_mul(min)?, factor.checked_mul(max)?);
        self.low = self.low.checked_add(a.min(b))?;
        self.high = self.high.checked_add(a.max(b))?;
        self.divisor = gcd(self.divisor, factor);
        Some(())
    }

    fn can_be_zero(&self) -> bool {
        let inside = self.low <= -self.constant && -self.constant <= self.high;
        let divides = match self.divisor {
            0 => self.constant == 0,
            divisor => self.constant % divisor == 0,
        };
        inside && divides
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;
    use warploom_lang::{
        Expr, Input, Operand, RVar, Realisation, Region, Value, clamp, func, infer, max, rdom, vars,
    };

    use super::*;
    use Together::*;

    /// Whether variable `var` is parallel in the only update of a Func over `(r, s)` in 0..8 x 0..8.
    fn parallel(
        write: impl Fn(RVar, RVar) -> Expr,
        read: impl Fn(RVar, RVar) -> Expr,
        var: usize,
        together: [Together; 2],
    ) -> bool {
        let (x, y) = vars!(x, y);
        let r = rdom!(r: (0, 8), s: (0, 8));
        let [a, b] = r.vars();
        let f = func("f", (x, y), 0).over(&r, |f| f.set((write(a, b), y), f.at((read(a, b), y)) + 1));
        let pipeline = Pipeline::new("p", [func("out", (x, y), f.at((x, y)))]).unwrap();
        let request = Realisation::new(&pipeline).output("out", Region::of_extents(&[64, 4]));
        let regions = infer(&pipeline, &request).unwrap();
        let stage = StageRef { func: pipeline.func_named("f").unwrap(), stage: 1 };
        Dependence::of(&pipeline, &regions, stage, |dependence| dependence.is_parallel(var, &together))
    }

    #[test]
    fn scans_are_not_parallel() {
        assert!(!parallel(|r, _| r + 1, |r, _| r.expr(), 0, [Any, Fixed]));
        assert!(parallel(|r, _| r.expr(), |r, _| r.expr(), 0, [Any, Fixed]));
        // Other values of `s` write the same elements.
        assert!(parallel(|r, _| r.expr(), |r, _| r.expr(), 0, [Any, Any]));
        assert!(!parallel(|r, s| r + s, |r, s| r + s, 0, [Any, Any]));
    }

    #[test]
    fn scans_read_what_they_wrote_before() {
        let previous = |write: &dyn Fn(RVar) -> Expr, read: &dyn Fn(RVar) -> Expr| {
            let (x, y) = vars!(x, y);
            let r = rdom!(r: (0, 8));
            let f = func("f", (x, y), 0)
                .over(&r, |f| f.set((write(r.x), y), f.at((read(r.x), y)) + f.at((9, y))));
            let pipeline = Pipeline::new("p", [func("out", (x, y), f.at((x, y)))]).unwrap();
            let request = Realisation::new(&pipeline).output("out", Region::of_extents(&[64, 4]));
            let regions = infer(&pipeline, &request).unwrap();
            let stage = StageRef { func: pipeline.func_named("f").unwrap(), stage: 1 };
            Dependence::of(&pipeline, &regions, stage, |dependence| dependence.previous().len())
        };
        assert_eq!(previous(&|r| r + 1, &|r| r.expr()), 1);
        assert_eq!(previous(&|r| 20 - r, &|r| 21 - r), 1);
        assert_eq!(previous(&|r| r * 2, &|r| r * 2 - 2), 1);
        // The value itself, one further back, one that is written later.
        assert_eq!(previous(&|r| r.expr(), &|r| r.expr()), 0);
        assert_eq!(previous(&|r| r + 2, &|r| r.expr()), 0);
        assert_eq!(previous(&|r| r.expr(), &|r| r + 1), 0);
        // Nothing moves, or not by the same step.
        assert_eq!(previous(&|_| 3.into(), &|_| 3.into()), 0);
        assert_eq!(previous(&|r| clamp(r, 0, 4) + 1, &|r| clamp(r, 0, 4)), 0);
    }

    #[test]
    fn intervals_keep_far_accesses_apart() {
        assert!(parallel(|r, _| r.expr(), |r, _| r + 8, 0, [Any, Fixed]));
        assert!(!parallel(|r, _| r.expr(), |r, _| r + 7, 0, [Any, Fixed]));
        assert!(parallel(|r, s| r * 8 + s, |r, s| r * 8 + s, 0, [Any, Any]));
        assert!(!parallel(|r, s| r * 7 + s, |r, s| r * 7 + s, 0, [Any, Any]));
        assert!(parallel(|r, s| r * 7 + s, |r, s| r * 7 + s, 0, [Any, Within(4)]));
        assert!(!parallel(|_, s| s.expr(), |_, s| s.expr(), 0, [Any, Any]));
    }

    #[test]
    fn divisors_keep_odd_and_even_apart() {
        assert!(parallel(|r, _| r * 2, |r, _| r * 2 + 1, 0, [Any, Fixed]));
        assert!(parallel(|r, s| r * 2 + s * 0, |_, s| s * 2 + 1, 0, [Any, Any]));
        assert!(!parallel(|r, _| r * 2, |r, _| r * 2 + 2, 0, [Any, Fixed]));
    }

    #[test]
    fn what_only_fixed_variables_move_is_the_same() {
        let power = |s: RVar| clamp(1 << s, 0, 16);
        assert!(parallel(|r, s| r + power(s), |r, s| r + power(s), 0, [Any, Fixed]));
        assert!(!parallel(|r, s| r + power(s), |r, s| r + power(s), 0, [Any, Any]));
        assert!(!parallel(|r, s| r + power(s), |r, _| r.expr(), 0, [Any, Fixed]));
    }

    #[test]
    fn unknown_indices_depend() {
        let x = vars!(x);
        let map = Input::u8("map", 1);
        let r = rdom!(r: (0, 8));
        let f = func("f", x, 0).over(&r, |f| f.add(map.at(r.x).i32(), 1));
        let pipeline = Pipeline::new("p", [f]).unwrap();
        let request = Realisation::new(&pipeline)
            .input("map", Region::of_extents(&[8]))
            .output("f", Region::of_extents(&[256]));
        let regions = infer(&pipeline, &request).unwrap();
        let stage = StageRef { func: pipeline.func_named("f").unwrap(), stage: 1 };
        Dependence::of(&pipeline, &regions, stage, |dependence| {
            assert!(!dependence.is_parallel(0, &[Any]));
        });
    }

    /// The value of an index at one iteration.
    fn value(pipeline: &Pipeline, id: ExprId, at: [i64; 2]) -> Value {
        let node = &pipeline.exprs()[id];
        match node.kind {
            NodeKind::RVar(r) => Value::from(at[r as usize] as i32),
            NodeKind::Op(op) => {
                let args: Vec<Value> = node.args.iter().map(|arg| value(pipeline, *arg, at)).collect();
                op.eval(&args)
            }
            _ => panic!("indices are made of reduction variables"),
        }
    }

    /// Whether two iterations that differ in `var` and run `together` touch the same element with a
    /// write.
    fn conflict(pipeline: &Pipeline, stage: StageRef, var: usize, together: [Together; 2]) -> bool {
        let exprs = pipeline.exprs();
        let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
        let nodes = exprs.reachable(decl.roots()).into_iter().map(|id| &exprs[id]);
        let reads = nodes.filter(|node| matches!(node.kind, NodeKind::Call(func, _) if func == stage.func));
        let accesses: Vec<ExprId> = reads.map(|node| node.args[0]).chain([decl.indices[0]]).collect();
        let at = |id: ExprId, at| value(pipeline, id, at).as_int();
        let points = || (0..8).flat_map(|s| (0..8).map(move |r| [r, s]));
        let near = |a: [i64; 2], b: [i64; 2]| {
            (0..2).all(|v| match together[v] {
                Fixed => v == var || a[v] == b[v],
                Within(size) => v == var || (a[v] - b[v]).abs() < size,
                Any => true,
            })
        };
        points().any(|a| {
            let written = at(decl.indices[0], a);
            let others = points().filter(|b| a[var] != b[var] && near(a, *b));
            others.into_iter().any(|b| accesses.iter().any(|access| at(*access, b) == written))
        })
    }

    fn index() -> impl Strategy<Value = (i32, i32, i32, Option<i32>)> {
        (-3..9, -3..9, -9..9, proptest::option::weighted(0.2, 0..20))
    }

    proptest! {
        #[test]
        fn parallel_variables_never_conflict(
            indices in [index(), index()],
            var in 0usize..2,
            other in select(vec![Fixed, Within(2), Within(5), Any]),
        ) {
            let x = vars!(x);
            let r = rdom!(r: (0, 8), s: (0, 8));
            let [a, b] = r.vars();
            let expr = |(p, q, c, limit): (i32, i32, i32, Option<i32>)| {
                let sum = a * p + b * q + c;
                limit.map_or(sum.clone(), |limit| max(sum, limit))
            };
            let [write, read] = indices.map(expr);
            let f = func("f", x, 0).over(&r, |f| f.set(write, f.at(read) + 1));
            let pipeline = Pipeline::new("p", [f]).unwrap();
            let request = Realisation::new(&pipeline).output("f", Region::of_extents(&[64]));
            let regions = infer(&pipeline, &request).unwrap();
            let stage = StageRef { func: pipeline.func_named("f").unwrap(), stage: 1 };
            let mut together = [Any; 2];
            together[1 - var] = other;
            let parallel = Dependence::of(&pipeline, &regions, stage, |d| d.is_parallel(var, &together));
            prop_assert!(!(parallel && conflict(&pipeline, stage, var, together)));
        }
    }
}
