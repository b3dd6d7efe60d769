//! Rewrites: changes that turn a pipeline into another one with more parallelism.
//!
//! A schedule may begin with a list of rewrites; its tree then describes the rewritten pipeline. The
//! rewritten pipeline is a pipeline like any other: it has an oracle, bounds and legal schedules of its
//! own. Each rewrite names Funcs and variables of the result of the rewrites before it. The original Func
//! keeps its name; new Funcs are named after it.
//!
//! | line | result |
//! | --- | --- |
//! | `split f.1.r by 8` | `r` as two variables: `ri` counts 8 values, `ro` the groups of 8 |
//! | `permute f.1 ry, rx` | the variables in another order, the first fastest |
//! | `factor f.1.r inner 32` | `f.part`, with one partial result for every 32nd value of `r`, and `f` reduces the 32 partial results |
//! | `factor f.1.r outer 32` | `f.part`, with one partial result for each group of 32 values; the next one of `f` is `f.part2` |
//! | `tree f.1` | a reduction over a constant number of values as a tree of pure Funcs |
//! | `cut f at 2` | `f.cut` with the stages before update 2; `f` starts from it |
//! | `chunk f.2.r 32` | a scan whose chunks of 32 values run in parallel: their ends, a scan of the ends, and the chunks again from their starts |
//! | `gather f.1` | a scatter as a reduction at each point, over the values that it takes; the order stays |
//! | `join f, g` | two reductions over one domain as one Func with the values of both |
//! | `clone f for g` | a copy of `f` that only `g` reads |
//! | `unroll f.1.r` | the values of `r` as Funcs of their own |
//! | `separate f along x` | `f.pass`, a sum over neighbours along `x` alone, and `f` sums `f.pass` along the rest: for weights that are an outer product |
//! | `tabulate f` | a constant table, for a Func that depends only on its point |
//! | `expand f.1` | a reduction over a few constant values as one expression, with constants folded |
//!
//! # When a rewrite is legal
//!
//! A rewrite that keeps the order of all operations is always legal. A rewrite that changes it is legal if the result
//! is the same in any order: sums and products of integers (which wrap), `&`, `|`, `^`, `min` and `max`; or if the
//! author marked the update with [`Func::reassociate`](crate::Func::reassociate). A recurrence
//! `f(r) = a * f(r - 1) + term` of floats also needs an `a` that is known to be at most 1 in magnitude.
//!
//! # Tails
//!
//! If groups do not divide the domain, the last one is cut by a predicate. Bounds inference ignores
//! predicates, so indices stop at the last value of the domain as well.

mod chunk;
mod clone;
mod cut;
mod error;
mod evaluate;
mod expand;
mod factor;
mod fold;
mod gather;
mod index;
mod join;
mod operator;
mod permute;
mod proposals;
mod recurrence;
mod separate;
mod split;
mod tabulate;
mod text;
mod tree;
mod unroll;

use std::borrow::Cow;
use std::num::NonZeroU32;

use crate::draft::Draft;
use crate::ids::FuncId;
use crate::ir::{FuncDecl, StageRef};
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
    /// Moves the first stages of a Func to a Func of their own.
    Cut {
        /// The name of the Func.
        func: String,
        /// The number of stages that move.
        at: usize,
    },
    /// Computes a scan in chunks that do not depend on each other.
    Chunk {
        /// The variable along which the scan runs.
        var: VarName,
        /// The number of values in each chunk.
        by: NonZeroU32,
    },
    /// Combines values pairwise, in one pure Func per round.
    Tree {
        /// The reduction.
        stage: StageName,
    },
    /// Gives one reader of a Func a copy of it.
    Clone {
        /// The Func that is copied.
        func: String,
        /// The Func that reads the copy.
        reader: String,
    },
    /// Computes two reductions in one pass.
    Join {
        /// The Func whose values come first.
        one: String,
        /// The other Func.
        other: String,
    },
    /// Lets each point gather the values that are scattered to it.
    Gather {
        /// The update that scatters.
        stage: StageName,
    },
    /// Changes the order of a domain.
    Permute {
        /// The reduction.
        stage: StageName,
        /// All variables of its domain, the fastest first.
        vars: Vec<String>,
    },
    /// Sums neighbours along one dimension first.
    Separate {
        /// The name of the Func.
        func: String,
        /// The name of the dimension.
        dim: String,
    },
    /// Makes a Func of each slice that an update writes.
    Unroll {
        /// The variable that counts the slices.
        var: VarName,
    },
    /// Evaluates a Func of constants.
    Tabulate {
        /// The name of the Func.
        func: String,
    },
    /// Unrolls a reduction into one expression.
    Expand {
        /// The reduction.
        stage: StageName,
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

/// Applies rewrites in order; see [`Pipeline::rewritten`].
///
/// ```
/// use warploom_lang::*;
/// let image = Input::new("image", Type::U32, 1);
/// let r = rdom([(0, 100)]);
/// let total = func("total", (), 0u32).over(&r, |f| f.add((), image.at(r.x)));
/// let pipeline = Pipeline::new("total", [total])?;
/// let faster = pipeline.rewritten(&["factor total.1.rx outer 16".parse()?])?;
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
pub(crate) fn rewritten<'p>(
    pipeline: &'p Pipeline,
    rewrites: &[Rewrite],
) -> Result<Cow<'p, Pipeline>, RewriteLineError> {
    let done = pipeline.rewrites.len();
    let same = pipeline.rewrites.iter().zip(rewrites).take_while(|(done, asked)| done == asked).count();
    if let (true, Some(first)) = (same < done, pipeline.rewrites.get(same)) {
        let (rewrite, error) = (first.clone(), Box::new(RewriteError::AlreadyRewritten));
        return Err(RewriteLineError { number: same, rewrite, error });
    }
    let mut result = Cow::Borrowed(pipeline);
    for (number, rewrite) in rewrites.iter().enumerate().skip(done) {
        let failed = |error| RewriteLineError { number, rewrite: rewrite.clone(), error: Box::new(error) };
        result = Cow::Owned(rewrite.apply(&result).map_err(failed)?);
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
            Rewrite::Cut { func, at } => cut::cut(&mut draft, find_func(pipeline, func)?, *at)?,
            Rewrite::Chunk { var, by } => chunk::chunk(&mut draft, var.find(pipeline)?.0, *by)?,
            Rewrite::Tree { stage } => tree::tree(&mut draft, stage.find(pipeline)?)?,
            Rewrite::Clone { func, reader } => {
                clone::clone(&mut draft, find_func(pipeline, func)?, find_func(pipeline, reader)?)?;
            }
            Rewrite::Join { one, other } => {
                join::join(&mut draft, find_func(pipeline, one)?, find_func(pipeline, other)?)?;
            }
            Rewrite::Gather { stage } => gather::gather(&mut draft, stage.find(pipeline)?)?,
            Rewrite::Permute { stage, vars } => permute::permute(&mut draft, stage.find(pipeline)?, vars)?,
            Rewrite::Separate { func, dim } => {
                let func = find_func(pipeline, func)?;
                separate::separate(&mut draft, func, find_dim(pipeline, func, dim)?)?;
            }
            Rewrite::Unroll { var } => {
                let (stage, var) = var.find(pipeline)?;
                unroll::unroll(&mut draft, stage, var)?;
            }
            Rewrite::Tabulate { func } => {
                tabulate::tabulate(&mut draft, pipeline, find_func(pipeline, func)?)?;
            }
            Rewrite::Expand { stage } => expand::expand(&mut draft, stage.find(pipeline)?)?,
        }
        draft.rewrites.push(self.clone());
        Ok(draft.finish()?)
    }
}

impl Rewrite {
    /// Whether terms may be combined in another order than before, with other rounding errors.
    pub fn reorders(&self) -> bool {
        match self {
            Rewrite::Factor { .. }
            | Rewrite::Chunk { .. }
            | Rewrite::Tree { .. }
            | Rewrite::Permute { .. }
            | Rewrite::Separate { .. } => true,
            Rewrite::Split { .. }
            | Rewrite::Cut { .. }
            | Rewrite::Clone { .. }
            | Rewrite::Join { .. }
            | Rewrite::Gather { .. }
            | Rewrite::Unroll { .. }
            | Rewrite::Tabulate { .. }
            | Rewrite::Expand { .. } => false,
        }
    }

    /// The name of the Func that it changes.
    pub fn func(&self) -> &str {
        match self {
            Rewrite::Split { var, .. }
            | Rewrite::Factor { var, .. }
            | Rewrite::Chunk { var, .. }
            | Rewrite::Unroll { var } => &var.stage.func,
            Rewrite::Tree { stage }
            | Rewrite::Gather { stage }
            | Rewrite::Permute { stage, .. }
            | Rewrite::Expand { stage } => &stage.func,
            Rewrite::Cut { func, .. }
            | Rewrite::Clone { func, .. }
            | Rewrite::Separate { func, .. }
            | Rewrite::Join { one: func, .. }
            | Rewrite::Tabulate { func } => func,
        }
    }
}

impl StageName {
    fn of(draft: &Draft, stage: StageRef) -> StageName {
        StageName { func: draft.funcs[stage.func].name.clone(), stage: stage.stage }
    }

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
    ///
    /// # Errors
    /// If the pipeline has no such variable.
    pub fn find(&self, pipeline: &Pipeline) -> Result<(StageRef, usize), RewriteError> {
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

fn find_func(pipeline: &Pipeline, name: &str) -> Result<FuncId, RewriteError> {
    pipeline.func_named(name).ok_or_else(|| RewriteError::NoFunc { name: name.to_string() })
}

fn find_dim(pipeline: &Pipeline, func: FuncId, name: &str) -> Result<usize, RewriteError> {
    let FuncDecl { name: func, dims, .. } = &pipeline.funcs()[func];
    dims.iter().position(|dim| dim == name).ok_or_else(|| RewriteError::NoDim {
        func: func.clone(),
        dim: name.to_string(),
        dims: dims.clone(),
    })
}
