//! Random image pipelines from a seed.
//!
//! The pipelines look like image processing: stencils, convolutions, pyramids, histograms, scans, matrix
//! products and the other [`StageKind`]s over images of every type and rank, joined to a graph in which every
//! Func is used. They are for tests (a compiler must agree with the reference evaluator on every one) and for
//! training cost models.
//!
//! # How a pipeline grows
//!
//! It begins with one or two inputs. Each step draws a kind by a first-order chain: after a convolution often
//! an activation, after that padding or pooling, after those again a convolution; everything else is equally
//! likely. Its operands are drawn from the images made so far, those that nothing reads yet most often; a kind
//! that does not fit its operands becomes a random expression of them. In the end the images that nothing
//! reads are joined until as many are left as the pipeline has outputs. Values are scaled on the way
//! so that they neither vanish nor overflow.
//!
//! Floats of inputs are meant to be between 0 and 1; integers may have any value.
//!
//! # Which requests are made
//!
//! Extents are odd, prime, multiples of 32 or one off; boxes do not always start at 0. An input without a
//! boundary condition is given just what is read of it, or little more. A pipeline that bounds refuse, or that
//! visits more points than its [`Scale`] allows, is never returned: the next one derived from the seed is.
mod dice;
mod grow;
mod image;
mod kind;
mod large;
mod options;
mod request;
mod source;
mod stages;
mod term;

pub use kind::StageKind;
pub use large::Shape;
pub use options::{Options, Scale};
pub use request::visited_points;
use warploom_lang::{FuncId, Pipeline, Realisation};

use crate::dice::Dice;
use crate::grow::Grower;
use crate::request::Refusal;

/// A pipeline with sizes and Params at which it can run.
#[derive(Clone, Debug)]
pub struct RandomPipeline {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The boxes of its inputs and outputs, and the values of its Params.
    pub request: Realisation,
    /// Which kind of stage made each Func, in the pipeline's order.
    pub kinds: Vec<(FuncId, StageKind)>,
}

/// The pipeline of a seed: the same one on every machine, as long as the options are the same.
///
/// ```
/// use warploom_lang::infer;
/// use warploom_randpipe::{Options, random_pipeline};
/// let random = random_pipeline(7, &Options::default());
/// assert!(infer(&random.pipeline, &random.request).is_ok());
/// assert_eq!(random.kinds.len(), random.pipeline.funcs().len());
/// ```
pub fn random_pipeline(seed: u64, options: &Options) -> RandomPipeline {
    let mut attempt = 0;
    loop {
        if let Ok(random) = attempt_pipeline(seed, attempt, options) {
            return random;
        }
        attempt += 1;
    }
}

/// One attempt at a seed's pipeline.
fn attempt_pipeline(seed: u64, attempt: u64, options: &Options) -> Result<RandomPipeline, Refusal> {
    Grower::new(Dice::new(seed, attempt), options).grow().realise(&format!("random_{seed}"))
}

#[cfg(test)]
mod tests;
