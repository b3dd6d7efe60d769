//! Checks cases, and classifies their failures.

use std::fmt;

use thiserror::Error;
use warploom_codegen::build::{BuildError, build_with};
use warploom_codegen::ir::Program;
use warploom_codegen::lower;
use warploom_codegen::verify::VerifyError;
use warploom_interp::EvalError;
use warploom_interp::buffer::Buffer;
use warploom_interp::compare::{Tolerance, compare};
use warploom_interp::expected::{Expected, Fault};
use warploom_lang::brief::shown;
use warploom_lang::ir::FuncDecl;
use warploom_lang::rounding::Rounding;
use warploom_lang::{FuncId, Pipeline, Range, Region, Value, infer, warnings};
use warploom_plan::{PlanError, Problem, Violation};
use warploom_sim::{SimError, Simulation};
use warploom_target::Device;

use crate::case::Case;
use crate::data::mixed;
use crate::panics::catch;
use crate::skip::{Reason, Skip};

/// Seeds of the block orders in which every case is simulated.
const ORDERS: [u64; 2] = [1, 2];

/// Thresholds, in elements, above which indices have 64 bits. The seed of a case selects one;
/// `None` adds no extra build. With the smallest threshold, every dimension is an index term of its
/// own. With thresholds between that and the sizes of arrays, terms cover several dimensions.
const WIDE_ABOVE: [Option<u32>; 8] = [None, None, None, None, None, Some(1), Some(40), Some(1000)];

/// Number of perturbed reference evaluations. It is high because cases are small and little is
/// known about them.
const PERTURBED_RUNS: u64 = 32;

/// The outcome of a case in which nothing is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// All outputs are correct.
    Passed,
    /// All outputs are correct, but kernels for any size had nothing to check at some sizes.
    PassedPartly(Vec<Skip>),
    /// There is nothing to check.
    Skipped(Skip),
    /// Kernels built for speed deviate by more than rounding, but so does the reference under
    /// perturbed rounding: the pipeline amplifies small errors.
    IllConditioned(String),
}

/// The failure of a case: always a bug in the compiler.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The schedule is illegal, although it was generated to be legal.
    #[error("the schedule is refused: {}", shown(.0, "\n"))]
    Illegal(Vec<Violation>),
    /// The schedule is legal but cannot be lowered.
    #[error("the schedule is legal but not lowered: {0}")]
    Unlowered(Box<BuildError>),
    /// Lowering produced kernels that violate the rules of the kernel IR.
    #[error(transparent)]
    Malformed(VerifyError),
    /// The simulator detected an invalid operation in a kernel.
    #[error("the simulator stopped: {0}")]
    Fault(Box<SimError>),
    /// An output differs from the reference.
    #[error("{0}")]
    Wrong(Difference),
    /// The rewritten pipeline computes other values. The difference lists the value of the original pipeline as the
    /// actual one.
    #[error("the rewritten pipeline differs: {0}")]
    Rewritten(Difference),
    /// An output of kernels built for speed deviates too much from the reference, although kernels
    /// built for checking match it.
    #[error("the timing build differs too much: {0}")]
    Numeric(String),
    /// The reference evaluator read outside the boxes that bounds inference computed.
    #[error("the reference evaluator failed: {0}")]
    Reference(Box<EvalError>),
    /// A GPU or its compiler rejected the kernels.
    #[error("a GPU or its compiler refused the kernels: {0}")]
    Device(String),
    /// Some part of the compiler panicked.
    #[error("panic: {0}")]
    Panic(String),
}

/// The kinds of [`Failure`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailureKind {
    /// [`Failure::Illegal`].
    Illegal,
    /// [`Failure::Unlowered`].
    Unlowered,
    /// [`Failure::Malformed`].
    Malformed,
    /// [`Failure::Fault`].
    Fault,
    /// [`Failure::Wrong`].
    Wrong,
    /// [`Failure::Rewritten`].
    Rewritten,
    /// [`Failure::Numeric`].
    Numeric,
    /// [`Failure::Reference`].
    Reference,
    /// [`Failure::Device`].
    Device,
    /// [`Failure::Panic`].
    Panic,
}

impl FailureKind {
    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            FailureKind::Illegal => "illegal",
            FailureKind::Unlowered => "unlowered",
            FailureKind::Malformed => "malformed",
            FailureKind::Fault => "fault",
            FailureKind::Wrong => "wrong",
            FailureKind::Rewritten => "rewritten",
            FailureKind::Numeric => "numeric",
            FailureKind::Reference => "reference",
            FailureKind::Device => "device",
            FailureKind::Panic => "panic",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Failure {
        match error {
            BuildError::Plan(PlanError::Illegal(violations)) => Failure::Illegal(violations),
            BuildError::Verify(error) => Failure::Malformed(error),
            error => Failure::Unlowered(Box::new(error)),
        }
    }
}

impl Failure {
    /// The kind of this failure, without its details.
    pub fn kind(&self) -> FailureKind {
        match self {
            Failure::Illegal(_) => FailureKind::Illegal,
            Failure::Unlowered(_) => FailureKind::Unlowered,
            Failure::Malformed(_) => FailureKind::Malformed,
            Failure::Fault(_) => FailureKind::Fault,
            Failure::Wrong(_) => FailureKind::Wrong,
            Failure::Rewritten(_) => FailureKind::Rewritten,
            Failure::Numeric(_) => FailureKind::Numeric,
            Failure::Reference(_) => FailureKind::Reference,
            Failure::Device(_) => FailureKind::Device,
            Failure::Panic(_) => FailureKind::Panic,
        }
    }

    /// A string that failures with the same likely cause share: the kind, and the rule, error or
    /// panic location.
    pub fn symptom(&self) -> String {
        let detail = match self {
            Failure::Illegal(violations) => {
                violations.first().map(|first| variant(&first.rule)).unwrap_or_default()
            }
            Failure::Unlowered(error) => match &**error {
                BuildError::Lower(error) => variant(error),
                error => variant(error),
            },
            Failure::Fault(error) => variant(error),
            Failure::Panic(message) => {
                message.rsplit_once(" (").map(|(_, place)| place.to_owned()).unwrap_or_default()
            }
            _ => String::new(),
        };
        format!("{} {detail}", self.kind()).trim_end().to_owned()
    }
}

impl Failure {
    /// The Func with an undefined initial value that was read before it was written. If this
    /// happens under every schedule, the pipeline is at fault.
    pub fn undefined(&self, pipeline: &Pipeline) -> Option<FuncId> {
        let Failure::Fault(error) = self else { return None };
        let SimError::Uninitialised { access } = &**error else { return None };
        let named = |func: &FuncDecl| {
            let rest = access.array.strip_prefix(&func.name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let mut undefined = pipeline.funcs().iter().filter(|(_, func)| func.stages[0].values.is_empty());
        undefined.find(|(_, func)| named(func)).map(|(id, _)| id)
    }
}

/// The variant name of an enum value.
fn variant(value: &impl fmt::Debug) -> String {
    format!("{value:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

/// The first sample of an output that differs from the reference, and how many differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The output: `out`, or `out.1` for a value of a tuple.
    pub output: String,
    /// Coordinates of the sample.
    pub at: Vec<i64>,
    /// Value that the kernels computed.
    pub actual: Value,
    /// Value that the reference evaluator computed.
    pub expected: Value,
    /// Number of samples that differ.
    pub differing: usize,
    /// Total number of samples of the output.
    pub samples: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { output, actual, expected, differing, samples, .. } = self;
        let at: Vec<String> = self.at.iter().map(i64::to_string).collect();
        let at = at.join(", ");
        write!(f, "`{output}` differs from the reference at ({at}): {actual} instead of {expected}")?;
        write!(f, " ({differing} of {samples} samples differ)")
    }
}

/// A case with its inputs and expected outputs.
#[derive(Debug)]
pub struct Run<'a> {
    /// The case being checked.
    pub case: &'a Case,
    /// Generated inputs, in the pipeline's order.
    pub inputs: Vec<Buffer>,
    /// Outputs of the reference evaluator, in the pipeline's order, one buffer per value.
    pub expected: Vec<Buffer>,
}

impl Case {
    /// Checks the schedule, lowers it, and runs the kernels in the simulator with blocks in two
    /// orders. Compares the outputs bit for bit with those of the reference evaluator; NaN payloads
    /// may differ. Does so for all [`Case::programs`].
    ///
    /// # Errors
    /// The first failure found. A panic anywhere counts as a failure.
    pub fn check(&self, device: &Device) -> Result<Verdict, Failure> {
        self.check_with(|run| {
            let mut programs = run.case.programs(device)?.into_iter();
            programs.try_for_each(|program| run.simulate(&program, device))?;
            Ok(Verdict::Passed)
        })
    }

    /// Like [`Case::check`], with `work` in place of the simulator.
    ///
    /// # Errors
    /// Failures that `work` returns, and those of [`Case::check`].
    pub fn check_with(
        &self,
        work: impl FnOnce(&Run<'_>) -> Result<Verdict, Failure>,
    ) -> Result<Verdict, Failure> {
        let checked = catch(|| {
            let case = match self.rewritten() {
                Ok(case) => case,
                Err(error) => return Ok(Verdict::Skipped(Reason::Rewrites.because(error))),
            };
            if !self.schedule.rewrites.is_empty() && case.reads_undefined() && !self.reads_undefined() {
                let why = "the rewritten pipeline reads undefined values at this size";
                return Ok(Verdict::Skipped(Reason::Rewrites.because(why)));
            }
            match case.prepared()? {
                Ok(run) => {
                    self.check_rewrites(&run)?;
                    work(&run)
                }
                Err(skip) => Ok(Verdict::Skipped(skip)),
            }
        });
        checked.unwrap_or_else(|message| Err(Failure::Panic(message)))
    }

    /// Whether the pipeline reads points that no stage defines.
    pub(crate) fn reads_undefined(&self) -> bool {
        let regions = infer(&self.pipeline, &self.request);
        regions.is_ok_and(|regions| !warnings(&self.pipeline, &regions).is_empty())
    }

    /// Checks that the rewritten pipeline computes the same bits as the original one, unless an update may be computed in
    /// another order.
    fn check_rewrites(&self, run: &Run<'_>) -> Result<(), Failure> {
        let mut stages = self.pipeline.funcs().values().flat_map(|func| &func.stages);
        if self.schedule.rewrites.is_empty() || stages.any(|stage| stage.reassociate) {
            return Ok(());
        }
        match self.reference(&run.inputs).map(|outputs| run.compare(&outputs)) {
            Ok(Err(Failure::Wrong(difference))) => Err(Failure::Rewritten(difference)),
            _ => Ok(()),
        }
    }

    /// The inputs and reference outputs, or why there are none.
    pub(crate) fn prepared(&self) -> Result<Result<Run<'_>, Skip>, Failure> {
        if let Err(error) = infer(&self.pipeline, &self.request) {
            return Ok(Err(Reason::Sizes.because(error)));
        }
        let inputs = match self.inputs() {
            Ok(inputs) => inputs,
            Err(error) => return Ok(Err(Reason::Reference.because(error))),
        };
        match self.reference(&inputs) {
            Ok(expected) => Ok(Ok(Run { case: self, inputs, expected })),
            Err(error @ EvalError::Outside { .. }) => Err(Failure::Reference(Box::new(error))),
            Err(error) => Ok(Err(Reason::Reference.because(error))),
        }
    }

    /// The kernels of the schedule. For some seeds there is a second version, lowered as if arrays
    /// were so large that indices need 64 bits.
    ///
    /// # Errors
    /// If the schedule is illegal, or lowering fails or produces malformed kernels.
    pub fn programs(&self, device: &Device) -> Result<Vec<Program>, Failure> {
        let drawn = WIDE_ABOVE[(mixed(self.seed) % WIDE_ABOVE.len() as u64) as usize];
        let wide =
            drawn.map(|narrow_elements| lower::Options { narrow_elements, ..lower::Options::default() });
        let options = [Some(lower::Options::default()), wide];
        options.into_iter().flatten().map(|options| self.lower_with(device, options)).collect()
    }

    /// The kernels of the schedule, lowered with `options`.
    ///
    /// # Errors
    /// If the schedule is illegal, or lowering fails or produces malformed kernels.
    pub fn lower_with(&self, device: &Device, options: lower::Options) -> Result<Program, Failure> {
        let problem = Problem::new(&self.pipeline, &self.request, device).map_err(BuildError::from)?;
        Ok(build_with(&problem, &self.schedule, options)?)
    }
}

impl Run<'_> {
    /// Compares outputs bit for bit with the reference; NaN equals any NaN.
    ///
    /// # Errors
    /// [`Failure::Wrong`].
    ///
    /// # Panics
    /// If an output is missing, or has a different box or type.
    pub fn compare(&self, outputs: &[Buffer]) -> Result<(), Failure> {
        assert_eq!(outputs.len(), self.expected.len(), "every output is given");
        for ((name, actual), expected) in
            self.case.pipeline.output_names().into_iter().zip(outputs).zip(&self.expected)
        {
            let compared = compare(actual, expected, &Tolerance::default());
            let compared = compared.unwrap_or_else(|mismatch| panic!("output `{name}`: {mismatch}"));
            if !compared.identical {
                return Err(Failure::Wrong(difference(name, actual, expected)));
            }
        }
        Ok(())
    }

    /// Judges the outputs of kernels built for speed. The tolerance follows from how much the
    /// reference changes under perturbed rounding.
    ///
    /// # Errors
    /// [`Failure::Numeric`], or [`Failure::Reference`] if perturbed rounding makes the reference
    /// evaluator read outside its boxes.
    pub fn judge(&self, outputs: &[Buffer]) -> Result<Verdict, Failure> {
        let perturbed =
            (0..PERTURBED_RUNS).map(|seed| self.case.evaluation(&self.inputs).perturbed(seed).run());
        let expected =
            Expected::new(&self.case.pipeline, self.expected.clone(), perturbed, None, Rounding::Timing);
        let expected = expected.map_err(|error| Failure::Reference(Box::new(error)))?;
        let found = expected.closeness(outputs);
        let by_nature = |fault: &Fault| matches!(fault, Fault::NotFinite { by_nature: true, .. });
        if let Some(wrong) =
            found.iter().find(|found| found.fault.as_ref().is_some_and(|fault| !by_nature(fault)))
        {
            return Err(Failure::Numeric(wrong.to_string()));
        }
        let shaky = found.iter().find(|found| found.ill_conditioned || found.fault.is_some());
        Ok(shaky.map_or(Verdict::Passed, |found| Verdict::IllConditioned(found.to_string())))
    }

    /// Runs the case's kernels in the simulator with blocks in two orders, and compares the outputs.
    ///
    /// # Errors
    /// [`Failure::Fault`] or [`Failure::Wrong`].
    pub fn simulate(&self, program: &Program, device: &Device) -> Result<(), Failure> {
        let mut simulation = Simulation::new(program, device);
        for (id, buffer) in self.case.pipeline.inputs().keys().zip(&self.inputs) {
            simulation = simulation.input(id, buffer);
        }
        for (id, value) in self.case.request.params.iter() {
            if let Some(value) = value {
                simulation = simulation.param(id, *value);
            }
        }
        for order in ORDERS {
            let outcome = simulation.clone().seed(order).run();
            self.compare(&outcome.map_err(|error| Failure::Fault(Box::new(error)))?.outputs)?;
        }
        Ok(())
    }
}

/// Describes the first sample that differs; there must be one.
fn difference(output: String, actual: &Buffer, expected: &Buffer) -> Difference {
    let samples = expected.len();
    let points = (0..samples).map(|number| point(expected.region(), number));
    let pairs = points.filter_map(|at| Some((actual.get(&at)?, expected.get(&at)?, at)));
    let is_nan = |value: &Value| value.as_f64().is_nan();
    let different = pairs.filter(|(a, e, _)| a != e && !(is_nan(a) && is_nan(e)));
    let different: Vec<_> = different.collect();
    let (actual, expected, at) = different[0].clone();
    Difference { output, at, actual, expected, differing: different.len(), samples }
}

/// The point with a linear index, first dimension fastest.
fn point(region: &Region, mut number: usize) -> Vec<i64> {
    let coordinate = |range: &Range| {
        let extent = range.extent as usize;
        let at = range.min + (number % extent) as i64;
        number /= extent;
        at
    };
    region.0.iter().map(coordinate).collect()
}
