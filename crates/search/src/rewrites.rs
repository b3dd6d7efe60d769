//! Rewrites of updates with too little parallelism or too long a dependence chain, and of sums with too many products.
//!
//! A recipe proposes rewrites for every such update of the pipeline. Recipes are ranked by the cost of the schedule
//! from which a search of the rewritten pipeline would start. The search then runs on the best of them as on the
//! original pipeline.

mod constants;
mod separable;

use std::collections::BTreeSet;
use std::iter::once_with;
use std::num::NonZeroU32;

use warploom_lang::ir::{FuncDecl, NodeKind, Stage};
use warploom_lang::rewrite::{Rewrite, Side, StageName, VarName};
use warploom_lang::{ExprId, FuncId, Pipeline, StageRef};
use warploom_plan::Problem;
use warploom_schedule::LoopKind;

use crate::contractions::is_contraction;
use crate::tiles::points;

/// A pipeline with more such updates is not rewritten: every rewrite copies the whole pipeline.
const MOST_THIN: usize = 256;

/// Fewer steps in one thread are no reason to rewrite.
const LONG_CHAIN: i64 = 64;

/// An update with points for this share of the threads that the device can hold is parallel enough.
const BUSY: f64 = 0.25;

/// With more points than this, blocks need not share one.
const MANY_POINTS: i64 = 512;

/// With more points than this, neighbouring threads have points of their own and need not share one.
const LANES: i64 = 64;

/// Threads per SM that share a reduction to few points.
const SHARING: u32 = 1024;

/// The ratio of lanes of a block to parts of a histogram, if there are many histograms.
const SHARED_HISTOGRAMS: i64 = 16;

/// The parameters of a recipe.
struct Recipe {
    /// Threads that share a reduction, if its points are few.
    lanes: u32,
    /// Blocks per SM that make a histogram together, if its points are few.
    blocks: u32,
    /// Values per chunk of a scan; 0 if scans stay whole. A scan along rows has a chunk for each of the lanes.
    chunk: u32,
}

const RECIPES: [Recipe; 8] = [
    Recipe { lanes: 256, blocks: 2, chunk: 0 },
    Recipe { lanes: 128, blocks: 4, chunk: 0 },
    Recipe { lanes: 64, blocks: 2, chunk: 0 },
    Recipe { lanes: 32, blocks: 8, chunk: 0 },
    Recipe { lanes: 256, blocks: 2, chunk: 32 },
    Recipe { lanes: 128, blocks: 4, chunk: 16 },
    Recipe { lanes: 128, blocks: 2, chunk: 64 },
    Recipe { lanes: 64, blocks: 2, chunk: 64 },
];

/// Which updates with little parallelism a recipe rewrites.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThinUpdates {
    All,
    /// Those with so few points that the device holds all threads that share them. Next to a matrix product, which has
    /// enough points and would only lose reuse, a reduction of each row is rewritten.
    Resident,
}

/// With more chunks than this, the scan of their carries is divided again.
const MANY_CHUNKS: i64 = 32;

/// Values per chunk of carries.
const CARRIES: u32 = 16;

/// A pipeline is hopeless if its search starts from a time this much longer than that of another one. It is not
/// searched; the original pipeline gets one pass.
const HOPELESS: f64 = 1.5;

/// A pipeline that computes the same values with less work is searched only if it starts from at most this fraction of
/// the original pipeline's time.
const LEANER: f64 = 0.9;

/// Contractions with more points than this are tiled instead: threads that shared a point would load the same values
/// again.
const TILED: i64 = 8192;

/// A contraction is divided only if each part keeps at least this many steps.
const PART_STEPS: i64 = 32;

/// Partial results per SM of a divided contraction: at least, usually, at most.
const PART_POINTS: (i64, i64, i64) = (1024, 12288, 49152);

/// The most ways to divide a contraction.
const DIVISIONS: usize = 3;

/// The rewritten problems that are worth a search.
#[derive(Default)]
pub(crate) struct Promising {
    /// The most promising first.
    pub rewritten: Vec<Problem>,
    /// Whether the original problem is hopeless beside one that computes the same values with less work.
    pub outdone: bool,
    /// Whether time ran out before all of them were considered.
    pub cut_short: bool,
}

/// A rewritten problem.
struct RewrittenProblem {
    problem: Problem,
    /// Whether it computes the same values with less work, rather than with more parallelism.
    leaner: bool,
    /// The time from which its search starts.
    cost: f64,
}

/// The rewritten problems that are worth a search, at most `most`. `cost` is the time from which a search starts.
/// Returns none once `is_over`.
pub(crate) fn promising(
    problem: &Problem,
    most: usize,
    cost: impl Fn(&Problem) -> f64,
    is_over: impl Fn() -> bool,
) -> Promising {
    if most == 0 {
        return Promising::default();
    }
    let mut found: Vec<RewrittenProblem> = Vec::new();
    let recipes =
        RECIPES.iter().flat_map(|recipe| [(recipe, ThinUpdates::All), (recipe, ThinUpdates::Resident)]);
    let has_thin = (1..=MOST_THIN).contains(&thin_updates(problem).len());
    let thickened =
        recipes.filter(|_| has_thin).filter_map(|(recipe, which)| recipe.rewritten(problem, which, &is_over));
    let wider = thickened.chain(once_with(|| divided(problem)).flatten()).map(|problem| (problem, false));
    let leaner = once_with(|| separable::separated(problem)).flatten();
    let leaner = leaner.chain(once_with(|| constants::folded(problem)).flatten());
    for (problem, leaner) in wider.chain(leaner.map(|problem| (problem, true))) {
        if is_over() {
            return Promising { cut_short: true, ..Promising::default() };
        }
        let known = |rewritten: &RewrittenProblem| {
            rewritten.problem.pipeline().rewrites() == problem.pipeline().rewrites()
        };
        if !found.iter().any(known) {
            let cost = cost(&problem);
            tracing::debug!(start_us = cost, rewrites = %shown(&problem), "rewrote");
            found.push(RewrittenProblem { problem, leaner, cost });
        }
    }
    if found.is_empty() || is_over() {
        return Promising { cut_short: is_over(), ..Promising::default() };
    }
    let original = cost(problem);
    tracing::debug!(start_us = original, "not rewritten");
    found.retain(|rewritten| !rewritten.leaner || rewritten.cost < LEANER * original);
    let leanest = found
        .iter()
        .filter(|rewritten| rewritten.leaner)
        .map(|rewritten| rewritten.cost)
        .fold(original, f64::min);
    found.retain(|rewritten| rewritten.cost < HOPELESS * leanest);
    found.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let rewritten = found.into_iter().take(most).map(|rewritten| rewritten.problem).collect();
    Promising { rewritten, outdone: original > HOPELESS * leanest, cut_short: false }
}

fn shown(problem: &Problem) -> String {
    let rewrites: Vec<String> = problem.pipeline().rewrites().iter().map(Rewrite::to_string).collect();
    rewrites.join("; ")
}

/// An update with too little parallelism or too long a dependence chain, or one that runs along rows.
struct Thin {
    stage: StageRef,
    /// Points that are computed independently of each other.
    points: i64,
    /// The extents of the reduction variables.
    domain: Vec<i64>,
    /// Whether it writes at indices that it computes.
    scatters: bool,
}

fn thin_updates(problem: &Problem) -> Vec<Thin> {
    let funcs = problem.pipeline().funcs().iter();
    let stages =
        funcs.flat_map(|(func, decl)| (1..decl.stages.len()).map(move |stage| StageRef { func, stage }));
    stages.filter_map(|stage| Thin::of(problem, stage)).collect()
}

impl Thin {
    fn of(problem: &Problem, stage: StageRef) -> Option<Thin> {
        let extent = |kind: &LoopKind| problem.loop_range(stage.into(), *kind).extent.max(0);
        let loops = problem.loops(stage.into());
        let pure = loops.iter().filter(|kind| matches!(kind, LoopKind::Pure(_)));
        let points = pure.map(extent).fold(1, i64::saturating_mul);
        let domain: Vec<i64> =
            loops.iter().filter(|kind| matches!(kind, LoopKind::Reduction(_))).map(extent).collect();
        let steps = domain.iter().copied().fold(1, i64::saturating_mul);
        let decl = &problem.pipeline().funcs()[stage.func];
        let exprs = problem.pipeline().exprs();
        let update = &decl.stages[stage.stage];
        let stays = |d: usize| update.is_pure(exprs, d) || update.is_fixed(exprs, d);
        let scatters = !(0..decl.dims.len()).all(stays);
        // Threads that walk along rows of their own access memory uncoalesced.
        let few = (points as f64) < BUSY * capacity(problem) as f64;
        let is_thin = steps >= LONG_CHAIN
            && !domain.is_empty()
            && (points < TILED || !is_contraction(problem, stage))
            && (few || runs_along_rows(problem.pipeline(), stage.func));
        is_thin.then_some(Thin { stage, points, domain, scatters })
    }
}

/// The problem with its largest contraction divided into parts (split-K), if its tiles are too few for the device. A
/// second kernel adds the partial results.
fn divided(problem: &Problem) -> Vec<Problem> {
    let funcs = problem.pipeline().funcs().iter();
    let last = funcs.filter(|(_, decl)| decl.stages.len() == 2).map(|(func, _)| StageRef { func, stage: 1 });
    let extents = |stage: StageRef, pure: bool| -> Vec<i64> {
        let loops = problem.loops(stage.into());
        let of = loops.iter().filter(|kind| matches!(kind, LoopKind::Pure(_)) == pure);
        of.map(|kind| problem.loop_range(stage.into(), *kind).extent.max(1)).collect()
    };
    let work = |stage: &StageRef| points(&[extents(*stage, true), extents(*stage, false)].concat());
    let Some(stage) = last.filter(|stage| is_contraction(problem, *stage)).max_by_key(work) else {
        return Vec::new();
    };
    let (own, domain) = (points(&extents(stage, true)), extents(stage, false));
    let (steps, slowest) = (points(&domain), domain.last().copied().unwrap_or(1));
    let sms = i64::from(problem.device().sms);
    let (least, usual, most) = PART_POINTS;
    let far = |parts: &i64| (own.saturating_mul(*parts) as f64 / (sms * usual) as f64).ln().abs();
    let mut parts: Vec<i64> = (1..=6).map(|power| 1 << power).collect();
    parts.retain(|parts| {
        let range = sms * least..=sms * most;
        *parts <= slowest && steps / parts >= PART_STEPS && range.contains(&own.saturating_mul(*parts))
    });
    parts.sort_by(|a, b| far(a).total_cmp(&far(b)));
    parts.truncate(DIVISIONS);
    parts.into_iter().filter_map(|parts| divide(problem, stage, (slowest + parts - 1) / parts)).collect()
}

/// The problem with partial results of an update for each group of `by` values of its slowest variable.
fn divide(problem: &Problem, stage: StageRef, by: i64) -> Option<Problem> {
    let mut list = List { pipeline: problem.pipeline().clone() };
    let name = problem.pipeline().funcs()[stage.func].name.clone();
    let stage = StageName { func: name, stage: stage.stage };
    let slowest = list.update(&stage).map(names)?.pop()?;
    let part = list.factor(&stage, &slowest, Side::Outer, by)?;
    list.push(Rewrite::Cut { func: part, at: 2 });
    problem.of_rewritten(&list.pipeline).ok()
}

/// The threads that the device can hold.
fn capacity(problem: &Problem) -> i64 {
    let device = problem.device();
    i64::from(device.sms) * i64::from(device.threads.per_sm)
}

/// Rewrites that are applied one after the other.
struct List {
    pipeline: Pipeline,
}

impl List {
    /// Applies a rewrite, if it can be applied.
    fn push(&mut self, rewrite: Rewrite) -> bool {
        match rewrite.apply(&self.pipeline) {
            Ok(pipeline) => {
                self.pipeline = pipeline;
                true
            }
            Err(_) => false,
        }
    }

    fn func(&self, name: &str) -> Option<&FuncDecl> {
        self.pipeline.func_named(name).map(|id| &self.pipeline.funcs()[id])
    }

    /// Gives every new or `thin` reduction storage of its own inside the kernel that writes its result, so that its
    /// initial values need no kernel. Inlining the copy that this adds undoes it.
    fn cut_reductions(&mut self, original: &Pipeline, thin: &[Thin], is_over: &impl Fn() -> bool) {
        let reduces = |func: &FuncDecl| {
            let stays = |d: usize| func.stages[1].is_pure(self.pipeline.exprs(), d);
            func.stages.len() == 2 && !func.stages[1].domain.is_empty() && (0..func.dims.len()).all(stays)
        };
        let is_meant = |func: &FuncDecl| match original.func_named(&func.name) {
            Some(id) => thin.iter().any(|thin| thin.stage.func == id),
            None => true,
        };
        let funcs = self.pipeline.funcs().values().filter(|func| reduces(func) && is_meant(func));
        let names: Vec<String> = funcs.map(|func| func.name.clone()).collect();
        for func in names.into_iter().take_while(|_| !is_over()) {
            self.push(Rewrite::Cut { func, at: 2 });
        }
    }

    fn update(&self, stage: &StageName) -> Option<&Stage> {
        self.func(&stage.func)?.stages.get(stage.stage)
    }

    /// Divides the values of a variable. Returns the name of the Func of partial results.
    fn factor(&mut self, stage: &StageName, var: &str, side: Side, by: i64) -> Option<String> {
        let by = u32::try_from(by).ok().and_then(NonZeroU32::new)?;
        let before = self.pipeline.funcs().len();
        let var = VarName { stage: stage.clone(), var: var.to_string() };
        if !self.push(Rewrite::Factor { var, side, by }) || self.pipeline.funcs().len() != before + 1 {
            return None;
        }
        let part = format!("{}.part", stage.func);
        let newest = |id: &FuncId| self.pipeline.funcs()[*id].name.starts_with(&part);
        let newest = self.pipeline.funcs().keys().filter(newest).last()?;
        Some(self.pipeline.funcs()[newest].name.clone())
    }
}

impl Recipe {
    /// The problem after the rewrites of thin updates; `None` if none can be applied, or if there is no time.
    fn rewritten(
        &self,
        problem: &Problem,
        which: ThinUpdates,
        is_over: &impl Fn() -> bool,
    ) -> Option<Problem> {
        let mut list = List { pipeline: problem.pipeline().clone() };
        let mut updates = thin_updates(problem);
        if which == ThinUpdates::Resident {
            updates.retain(|thin| thin.points.saturating_mul(self.lanes.into()) <= capacity(problem));
        }
        for thin in &updates {
            if is_over() {
                return None;
            }
            let decl = &problem.pipeline().funcs()[thin.stage.func];
            // Earlier rewrites of the Func have taken its first stages.
            let Some(now) = list.func(&decl.name) else { continue };
            let gone = decl.stages.len().saturating_sub(now.stages.len());
            let Some(number) = thin.stage.stage.checked_sub(gone).filter(|number| *number > 0) else {
                continue;
            };
            let stage = StageName { func: decl.name.clone(), stage: number };
            let _ = self.reduce(&mut list, thin, &stage, problem.device().sms)
                || self.scan(&mut list, thin, &stage, runs_along_rows(problem.pipeline(), thin.stage.func));
        }
        list.cut_reductions(problem.pipeline(), &updates, is_over);
        let rewrites = list.pipeline.rewrites();
        (rewrites != problem.pipeline().rewrites()).then(|| problem.of_rewritten(&list.pipeline).ok())?
    }

    /// Rewrites a reduction or histogram. Returns false for other updates.
    fn reduce(&self, list: &mut List, thin: &Thin, stage: &StageName, sms: u32) -> bool {
        let Some(vars) = list.update(stage).map(names) else { return false };
        let (Some(fastest), Some(slowest), Some(extent)) = (vars.first(), vars.last(), thin.domain.last())
        else {
            return false;
        };
        if thin.points >= MANY_POINTS && !thin.scatters {
            // The blocks have points of their own; the lanes of a block share one.
            return self.share_all(list, stage, &vars, &thin.domain);
        }
        if thin.points >= MANY_POINTS {
            // The blocks have histograms of their own; some lanes of a block share one.
            let by = extent * SHARED_HISTOGRAMS / i64::from(self.lanes);
            return list.factor(stage, slowest, Side::Outer, by.max(1)).is_some();
        }
        // A block shares its lanes among many points of a reduction, but has only one histogram.
        let side_by_side = if thin.scatters { 1 } else { MANY_POINTS };
        let per_sm = if thin.scatters { self.blocks } else { SHARING / self.lanes };
        let blocks = i64::from(sms * per_sm) * side_by_side / thin.points.max(side_by_side);
        let by = (extent / blocks.max(1)).max(1);
        let Some(part) = list.factor(stage, slowest, Side::Outer, by) else { return false };
        let inner = StageName { func: part.clone(), stage: 1 };
        if thin.scatters {
            // The partial results get storage of their own inside the kernel that writes them.
            list.push(Rewrite::Cut { func: part, at: 2 });
        } else if thin.points < LANES {
            self.share(list, &inner, fastest);
        }
        let lanes = i64::from(self.lanes) * LANES / thin.points.max(LANES);
        if let Some(vars) = list.update(stage).map(names)
            && let Ok(lanes) = u32::try_from(lanes)
        {
            Recipe { lanes, ..*self }.share(list, stage, &vars[0]);
        }
        true
    }

    /// Lets the lanes of a block share a reduction. If the fastest variable has fewer values than there are lanes, the
    /// next long one provides the rest.
    fn share_all(&self, list: &mut List, stage: &StageName, vars: &[String], extents: &[i64]) -> bool {
        let lanes = i64::from(self.lanes);
        let (Some(fastest), Some(first)) = (vars.first(), extents.first()) else { return false };
        let other = vars.iter().zip(extents).skip(1).find(|(_, extent)| **extent > 1);
        let (2.., Some((next, second))) = (lanes / first, other) else {
            return self.share(list, stage, fastest);
        };
        let own = power_of_two(*first);
        let rest = power_of_two((*second).min(lanes / own));
        let Some(part) = list.factor(stage, fastest, Side::Inner, own) else { return false };
        let inner = StageName { func: part, stage: 1 };
        if let (Ok(rest), true) = (u32::try_from(rest), rest > 1) {
            Recipe { lanes: rest, ..*self }.share(list, &inner, next);
        }
        list.push(Rewrite::Tree { stage: stage.clone() })
    }

    /// Lets the lanes of a block share a reduction, and adds up their results in a tree.
    fn share(&self, list: &mut List, stage: &StageName, var: &str) -> bool {
        let shared = list.factor(stage, var, Side::Inner, i64::from(self.lanes)).is_some();
        shared && list.push(Rewrite::Tree { stage: stage.clone() })
    }

    /// Divides a scan into chunks. A Func with stages after the scan is cut behind it.
    fn scan(&self, list: &mut List, thin: &Thin, stage: &StageName, along_rows: bool) -> bool {
        let [extent] = thin.domain[..] else { return false };
        let by = match along_rows {
            // Neighbouring threads have neighbouring chunks. Chunks of odd length avoid bank conflicts.
            true if self.chunk > 0 => u32::try_from(extent / i64::from(self.lanes) + 1).unwrap_or(0) | 1,
            _ => self.chunk,
        };
        let Some(by) = NonZeroU32::new(by) else { return false };
        let Some(var) = list.update(stage).and_then(|stage| stage.domain.first()) else { return false };
        let mut var = VarName { stage: stage.clone(), var: var.name.clone() };
        let (func, end) = (&stage.func, stage.stage + 1);
        if list.func(func).is_some_and(|decl| decl.stages.len() > end) {
            if !list.push(Rewrite::Cut { func: func.clone(), at: end }) {
                return false;
            }
            var.stage.func = format!("{func}.cut");
        }
        let chunked = list.push(Rewrite::Chunk { var: var.clone(), by });
        if chunked && along_rows && extent / i64::from(by.get()) > MANY_CHUNKS {
            let stage = StageName { func: format!("{}.carry", var.stage.func), stage: 1 };
            if let (Some(carries), Some(by)) = (list.update(&stage).map(names), NonZeroU32::new(CARRIES)) {
                list.push(Rewrite::Chunk { var: VarName { stage, var: carries[0].clone() }, by });
            }
        }
        chunked
    }
}

/// The largest power of two that is no larger.
fn power_of_two(number: i64) -> i64 {
    1 << number.max(1).ilog2()
}

/// Whether the updates of a Func run along the contiguous dimension of something that they read, so that accesses are
/// uncoalesced. A pure Func may be inlined, so its own reads decide.
fn runs_along_rows(pipeline: &Pipeline, func: FuncId) -> bool {
    let (exprs, funcs) = (pipeline.exprs(), pipeline.funcs());
    let updates = funcs[func].stages.iter().skip(1).map(|stage| (stage, func, None));
    let mut left: Vec<(&Stage, FuncId, Option<Vec<bool>>)> = updates.collect();
    let mut seen = BTreeSet::new();
    while let Some((stage, own, along)) = left.pop() {
        let moves = |kind: NodeKind| match (&along, kind) {
            (None, NodeKind::RVar(_)) => true,
            (Some(along), NodeKind::Var(d)) => along.get(d as usize) == Some(&true),
            _ => false,
        };
        let moved = |id: &ExprId| exprs.reachable([*id]).into_iter().any(|id| moves(exprs[id].kind));
        for id in exprs.reachable(stage.values.iter().copied()) {
            let args = &exprs[id].args;
            match exprs[id].kind {
                NodeKind::Call(read, _) if read != own && funcs[read].stages.len() == 1 => {
                    let along: Vec<bool> = args.iter().map(moved).collect();
                    if along.contains(&true) && seen.insert((read, along.clone())) {
                        left.push((&funcs[read].stages[0], read, Some(along)));
                    }
                }
                NodeKind::Load(_) | NodeKind::Call(..) if args.first().is_some_and(moved) => return true,
                _ => {}
            }
        }
    }
    false
}

fn names(stage: &Stage) -> Vec<String> {
    stage.domain.iter().map(|var| var.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use warploom_lang::{Input, Realisation, Region, Type, func, vars};
    use warploom_target::Device;

    use super::*;

    /// A chain of sums over boxes of integers, which can be computed in two passes each.
    fn boxes(count: usize) -> Problem {
        let (x, y) = vars!(x, y);
        let image = Input::new("input", Type::U16, 2).repeat_edge();
        let mut last = func("start", (x, y), image.at((x, y)));
        for number in 0..count {
            let row = |dy: i32| (-1..=1).map(|dx| last.at((x + dx, y + dy))).reduce(|sum, next| sum + next);
            let sum = (-1..=1).filter_map(row).reduce(|sum, next| sum + next).expect("there are rows");
            last = func(format!("sum{number}"), (x, y), sum);
        }
        let pipeline = Pipeline::new("boxes", [last]).expect("it is right");
        let (image, output) = (Region::of_extents(&[640, 480]), pipeline.output_names()[0].clone());
        let request = Realisation::new(&pipeline).input("input", image.clone()).output(&output, image);
        let device = Device::preset("h200").expect("it is known");
        Problem::new(&pipeline, &request, &device).expect("the sizes fit")
    }

    #[test]
    fn less_work_shows_before_the_search() {
        let problem = boxes(1);
        let found = |cost: f64| {
            let start =
                |problem: &Problem| if problem.pipeline().rewrites().is_empty() { 100.0 } else { cost };
            let promising = promising(&problem, 3, start, || false);
            (promising.rewritten.len(), promising.outdone)
        };
        assert_eq!([120.0, 95.0, 80.0, 60.0].map(found), [(0, false), (0, false), (1, false), (1, true)]);
        assert_eq!(found(f64::INFINITY), (0, false), "it is not possible at all sizes");
        assert!(promising(&problem, 0, |_| 1.0, || false).rewritten.is_empty());
        assert!(promising(&problem, 3, |_| 1.0, || true).rewritten.is_empty());
        let much_less =
            |problem: &Problem| if problem.pipeline().rewrites().is_empty() { 100.0 } else { 60.0 };
        assert_eq!(
            [3, 70].map(|count| promising(&boxes(count), 3, much_less, || false).rewritten.len()),
            [1, 0]
        );
    }
}
