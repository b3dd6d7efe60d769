//! Random image pipelines from a seed.
//!
//! The pipelines resemble image processing: stencils, convolutions, pyramids, histograms, scans,
//! matrix products and the other [`StageKind`]s, over images of every type and rank, connected to a
//! graph in which every Func is used. They serve as tests (a compiler must agree with the reference
//! evaluator on each of them) and as training data for cost models.
//!
//! # How a pipeline grows
//!
//! A pipeline starts with one or two inputs. Each step draws a kind of stage from a first-order
//! Markov chain: a convolution is often followed by an activation, an activation by padding or
//! pooling, and those by another convolution; all other kinds are equally likely. The operands are
//! drawn from the images made so far, preferring images that no stage reads yet. A kind that does
//! not fit its operands is replaced by a random expression of them. At the end, unread images are
//! joined until their number equals the number of outputs. Values are scaled along the way so that
//! they neither vanish nor overflow.
//!
//! Float inputs are meant to be between 0 and 1; integers may have any value.
//!
//! About half of the sums, products and linear recurrences of floats are marked with
//! [`Func::reassociate`](warploom_lang::Func::reassociate), so that rewrites may change their order.
//!
//! # Requests
//!
//! Extents are odd, prime, multiples of 32, or one off a multiple; boxes do not always start at 0. An input without a
//! boundary condition is sized to its reads, or a little more. A pipeline that bounds inference rejects, or that visits
//! more points than its [`Scale`] allows, is never returned: the next one derived from the seed is tried instead.
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

/// A pipeline with sizes and Params for which it can run.
#[derive(Clone, Debug)]
pub struct RandomPipeline {
    /// The generated pipeline, named after the seed.
    pub pipeline: Pipeline,
    /// The boxes of its inputs and outputs, and the values of its Params.
    pub request: Realisation,
    /// The kind of stage that made each Func, in the pipeline's order.
    pub kinds: Vec<(FuncId, StageKind)>,
}

/// The pipeline of a seed. It is the same on every machine for the same options. Another version of this crate may give
/// another pipeline: write a case to a file to keep it.
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

/// One attempt at the pipeline of a seed.
fn attempt_pipeline(seed: u64, attempt: u64, options: &Options) -> Result<RandomPipeline, Refusal> {
    Grower::new(Dice::new(seed, attempt), options).grow().realise(&format!("random_{seed}"))
}

#[cfg(test)]
mod tests;
