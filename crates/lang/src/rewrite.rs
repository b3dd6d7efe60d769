//! Rewrites: changes that turn a pipeline into another one with more parallelism.
//!
//! A schedule may begin with a list of rewrites; its tree then describes the rewritten pipeline. The
//! rewritten pipeline is a pipeline like any other: it has an oracle, bounds and legal schedules of its
//! own. Each rewrite names Funcs and variables of the result of the rewrites before it. The original Func
//! keeps its name; new Funcs are named after it.
//!
//! | line | what it makes |
//! | --- | --- |
//! | `split f.1.r by 8` | `r` as two variables: `ri` counts 8 values, `ro` the groups of 8 |
//! | `permute f.1 ry, rx` | the variables in another order, the first fastest |
//! | `factor f.1.r inner 32` | `f.part`, with one partial result for every 32nd value of `r`, and `f` reduces the 32 partial results |
//! | `factor f.1.r outer 32` | `f.part`, with one partial result for each group of 32 values |
//! | `tree f.1` | a reduction over a constant number of values as a tree of pure Funcs |
//! | `cut f at 2` | `f.cut` with the stages before update 2; `f` starts from it |
//! | `chunk f.2.r 32` | a scan whose chunks of 32 values run in parallel: their ends, a scan of the ends, and the chunks again from their starts |
//! | `gather f.1` | a scatter as a reduction at each point, over the values that it takes; the order stays |
//! | `join f, g` | two reductions over one domain as one Func with the values of both |
//! | `clone f for g` | a copy of `f` that only `g` reads |
//! | `unroll f.1.r` | the values of `r` as Funcs of their own |
//!
//! # When a rewrite is legal
//!
//! A rewrite that keeps the order of all operations is always legal. One that changes it is legal if the
//! result is the same in any order: sums and products of integers (which wrap), `&`, `|`, `^`, `min` and
//! `max`; or if the author marked the update with [`Func::reassociate`](crate::Func::reassociate).
//!
//! # Tails
//!
//! If groups do not divide the domain, the last one is cut by a predicate. Bounds inference ignores
//! predicates, so indices stop at the last value of the domain as well.

mod error;
mod factor;
mod index;
mod operator;
mod split;
mod text;

use std::num::NonZeroU32;

use crate::draft::Draft;
use crate::ir::StageRef;
use crate::pipeline::Pipeline;

pub use error::{RewriteError, RewriteLineError};
pub use operator::Reduction;

/// A change of a pipeline. [`Display`](std::fmt::Display) and [`FromStr`](std::str::FromStr) are its text
/// form, one line of a schedule.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Rewrite {
    /// Replaces a variable of a domain by two.
    Split {
        /// The variable.
        var: VarName,
        /// The number of values of the inner variable.
        by: NonZeroU32,
    },
    /// Computes partial results as a new dimension.
    Factor {
        /// The variable whose values are divided among the partial results.
        var: VarName,
        /// Which values form one partial result.
        side: Side,
        /// The number of partial results for [`Side::Inner`], and of values in each for [`Side::Outer`].
        by: NonZeroU32,
    },
}

/// Which values of a reduction variable form one partial result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Side {
    /// Every n-th value: neighbouring partial results read neighbouring values.
    Inner,
    /// Consecutive values.
    Outer,
}

/// The name of a stage: `blur.1`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StageName {
    /// The name of the Func.
    pub func: String,
    /// The number of the definition; 0 is the pure one.
    pub stage: usize,
}

/// The name of a reduction variable: `blur.1.rx`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct VarName {
    /// The stage whose domain has the variable.
    pub stage: StageName,
    /// The variable's own name.
    pub var: String,
}

/// Applies rewrites in order. An error says which one failed, counted from 0.
///
/// ```
/// use warploom_lang::*;
/// use warploom_lang::rewrite::rewritten;
/// let image = Input::new("image", Type::U32, 1);
/// let r = rdom([(0, 100)]);
/// let total = func("total", (), 0u32).over(&r, |f| f.add((), image.at(r.x)));
/// let pipeline = Pipeline::new("total", [total])?;
/// let faster = rewritten(&pipeline, &["factor total.1.rx outer 16".parse()?])?;
/// assert_eq!(faster.to_string(), "\
/// pipeline total
///   input  image(d0): u32
///   total.part(rxo) = 0
///   total.part(rxo) = total.part(rxo) + image(min(rx + rxo * 16, 99))  over rx in (0, 16) where rx + rxo * 16 < 100
///   total() = 0
///   total() = total() + total.part(rxo)  over rxo in (0, 7)
/// ");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rewritten(pipeline: &Pipeline, rewrites: &[Rewrite]) -> Result<Pipeline, RewriteLineError> {
    let mut result = pipeline.clone();
    for (number, rewrite) in rewrites.iter().enumerate() {
        let failed = |error| RewriteLineError { number, rewrite: rewrite.clone(), error };
        result = rewrite.apply(&result).map_err(failed)?;
    }
    Ok(result)
}

impl Rewrite {
    /// The rewritten pipeline.
    pub fn apply(&self, pipeline: &Pipeline) -> Result<Pipeline, RewriteError> {
        let mut draft = Draft::of(pipeline);
        match self {
            Rewrite::Split { var, by } => {
                let (stage, var) = var.find(pipeline)?;
                split::split(&mut draft, stage, var, *by);
            }
            Rewrite::Factor { var, side, by } => {
                let (stage, var) = var.find(pipeline)?;
                factor::factor(&mut draft, stage, var, *side, *by)?;
            }
        }
        Ok(draft.finish()?)
    }
}

impl StageName {
    /// The stage with this name.
    fn find(&self, pipeline: &Pipeline) -> Result<StageRef, RewriteError> {
        let func = find_func(pipeline, &self.func)?;
        let stages = pipeline.funcs()[func].stages.len();
        if self.stage == 0 || self.stage >= stages {
            return Err(RewriteError::NoUpdate { func: self.func.clone(), stage: self.stage, stages });
        }
        Ok(StageRef { func, stage: self.stage })
    }
}

impl VarName {
    /// The stage of the variable, and its number there.
    fn find(&self, pipeline: &Pipeline) -> Result<(StageRef, usize), RewriteError> {
        let stage = self.stage.find(pipeline)?;
        let domain = &pipeline.funcs()[stage.func].stages[stage.stage].domain;
        let var = domain.iter().position(|var| var.name == self.var);
        let unknown = || RewriteError::NoVar {
            stage: self.stage.clone(),
            var: self.var.clone(),
            vars: domain.iter().map(|var| var.name.clone()).collect(),
        };
        Ok((stage, var.ok_or_else(unknown)?))
    }
}

fn find_func(pipeline: &Pipeline, name: &str) -> Result<crate::ids::FuncId, RewriteError> {
    pipeline.func_named(name).ok_or_else(|| RewriteError::NoFunc { name: name.to_string() })
}
