//! What is checked of a case, and what can be wrong with it.

use std::fmt;

use thiserror::Error;
use warploom_codegen::build::{BuildError, build_with};
use warploom_codegen::ir::Program;
use warploom_codegen::lower::{self, LowerError};
use warploom_codegen::verify::VerifyError;
use warploom_interp::EvalError;
use warploom_interp::buffer::Buffer;
use warploom_interp::compare::{Tolerance, compare};
use warploom_interp::expected::{Expected, Fault};
use warploom_lang::brief::shown;
use warploom_lang::ir::FuncDecl;
use warploom_lang::{FuncId, Pipeline, Range, Region, Value, infer};
use warploom_schedule::schedule::Violation;
use warploom_sim::{SimError, Simulation};
use warploom_target::Device;

use crate::case::Case;
use crate::data::mixed;
use crate::panics::catch;

/// The orders of blocks in which every case is simulated.
const ORDERS: [u64; 2] = [1, 2];

/// Beyond how many elements indices have 64 bits, if anywhere: one of these for each seed. Between the smallest,
/// where every dimension is a term of its own, and the sizes of arrays, terms are of several dimensions.
const WIDE_ABOVE: [Option<u32>; 8] = [None, None, None, None, None, Some(1), Some(40), Some(1000)];

/// How often the reference is evaluated with other roundings: cases are small, and little is known of them.
const PERTURBED_RUNS: u64 = 32;

/// How a case ended that found nothing wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Everything is as it should be.
    Passed,
    /// There is nothing to compare with: the sizes don't fit the pipeline, or memory is short.
    Skipped(String),
    /// Kernels built for speed are further off than roundings are, but the reference with other roundings is so too: the
    /// pipeline makes much of little.
    IllConditioned(String),
}

/// What is wrong with a case: always a mistake of the compiler.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Failure {
    /// The schedule breaks rules, although it was made to keep them.
    #[error("the schedule is refused: {}", shown(.0, "\n"))]
    Illegal(Vec<Violation>),
    /// The schedule is legal but cannot be lowered.
    #[error("the schedule is legal but not lowered: {0}")]
    Unlowered(LowerError),
    /// Lowering gave kernels that break the rules of the kernel IR.
    #[error(transparent)]
    Malformed(VerifyError),
    /// The simulator refused what a kernel does.
    #[error("the simulator stopped: {0}")]
    Fault(Box<SimError>),
    /// An output is not the reference's.
    #[error("{0}")]
    Wrong(Difference),
    /// An output of kernels built for speed is too far from the reference's, though that of kernels built for
    /// checking is the same.
    #[error("kernels built for speed are too far off: {0}")]
    Numeric(String),
    /// The reference evaluator read outside the boxes that bounds inference gave it.
    #[error("the reference evaluator failed: {0}")]
    Reference(Box<EvalError>),
    /// A GPU or its compiler refused the kernels.
    #[error("a GPU or its compiler refused the kernels: {0}")]
    Device(String),
    /// Something panicked.
    #[error("panic: {0}")]
    Panic(String),
}

/// The kinds of [`Failure`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
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
    /// [`Failure::Numeric`].
    Numeric,
    /// [`Failure::Reference`].
    Reference,
    /// [`Failure::Device`].
    Device,
    /// [`Failure::Panic`].
    Panic,
}

impl Kind {
    /// Its name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Illegal => "illegal",
            Kind::Unlowered => "unlowered",
            Kind::Malformed => "malformed",
            Kind::Fault => "fault",
            Kind::Wrong => "wrong",
            Kind::Numeric => "numeric",
            Kind::Reference => "reference",
            Kind::Device => "device",
            Kind::Panic => "panic",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Failure {
        match error {
            BuildError::Bounds(error) => Failure::Unlowered(LowerError::Bounds(error)),
            BuildError::Illegal(violations) => Failure::Illegal(violations),
            BuildError::Lower(error) => Failure::Unlowered(error),
            BuildError::Verify(error) => Failure::Malformed(error),
        }
    }
}

impl Failure {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Failure::Illegal(_) => Kind::Illegal,
            Failure::Unlowered(_) => Kind::Unlowered,
            Failure::Malformed(_) => Kind::Malformed,
            Failure::Fault(_) => Kind::Fault,
            Failure::Wrong(_) => Kind::Wrong,
            Failure::Numeric(_) => Kind::Numeric,
            Failure::Reference(_) => Kind::Reference,
            Failure::Device(_) => Kind::Device,
            Failure::Panic(_) => Kind::Panic,
        }
    }

    /// What two failures share that likely come from one mistake: the kind, and the rule, error or place.
    pub fn symptom(&self) -> String {
        let detail = match self {
            Failure::Illegal(violations) => {
                violations.first().map(|first| variant(&first.rule)).unwrap_or_default()
            }
            Failure::Unlowered(error) => variant(error),
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
    /// The Func of a pipeline that starts undefined and was read before anything wrote it. If that is so under every schedule,
    /// it is a mistake of the pipeline.
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

/// The name of an enum's variant.
fn variant(value: &impl fmt::Debug) -> String {
    format!("{value:?}").chars().take_while(|c| c.is_alphanumeric()).collect()
}

/// The first sample of an output that is not the reference's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The output: `out`, or `out.1` for a value of a tuple.
    pub output: String,
    /// Where.
    pub at: Vec<i64>,
    /// What is there.
    pub actual: Value,
    /// What the reference evaluator has there.
    pub expected: Value,
    /// How many samples differ.
    pub differing: usize,
    /// How many there are.
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

/// A case with its inputs and what has to come of them.
#[derive(Debug)]
pub struct Run<'a> {
    /// The case.
    pub case: &'a Case,
    /// Its inputs, in the pipeline's order.
    pub inputs: Vec<Buffer>,
    /// The reference's outputs, in the pipeline's order, one buffer a value.
    pub expected: Vec<Buffer>,
}

impl Case {
    /// Checks the schedule, lowers it, runs the kernels in the simulator with blocks in two orders, and compares the
    /// outputs with the reference evaluator's, bit for bit; only NaN may differ from NaN. All [`Case::programs`] are
    /// checked so.
    ///
    /// # Errors
    /// The first thing that is wrong. A panic anywhere on the way counts as such.
    pub fn check(&self, device: &Device) -> Result<Verdict, Failure> {
        self.check_with(|run| {
            let mut programs = run.case.programs(device)?.into_iter();
            programs.try_for_each(|program| run.simulate(&program, device))?;
            Ok(Verdict::Passed)
        })
    }

    /// The same with something else in place of the simulator.
    ///
    /// # Errors
    /// What `work` finds, and as [`Case::check`].
    pub fn check_with(
        &self,
        work: impl FnOnce(&Run<'_>) -> Result<Verdict, Failure>,
    ) -> Result<Verdict, Failure> {
        let checked = catch(|| match self.prepared()? {
            Ok(run) => work(&run),
            Err(reason) => Ok(Verdict::Skipped(reason)),
        });
        checked.unwrap_or_else(|message| Err(Failure::Panic(message)))
    }

    /// The inputs and the reference, or why there is none.
    fn prepared(&self) -> Result<Result<Run<'_>, String>, Failure> {
        if let Err(error) = infer(&self.pipeline, &self.request) {
            return Ok(Err(error.to_string()));
        }
        let inputs = match self.inputs() {
            Ok(inputs) => inputs,
            Err(error) => return Ok(Err(error.to_string())),
        };
        match self.reference(&inputs) {
            Ok(expected) => Ok(Ok(Run { case: self, inputs, expected })),
            Err(error @ EvalError::Outside { .. }) => Err(Failure::Reference(Box::new(error))),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// The kernels of the schedule: as they are, and for some seeds once more as they would be if arrays were so
    /// large that indices need 64 bits.
    ///
    /// # Errors
    /// If the schedule is refused, or lowering fails or gives something malformed.
    pub fn programs(&self, device: &Device) -> Result<Vec<Program>, Failure> {
        let drawn = WIDE_ABOVE[(mixed(self.seed) % WIDE_ABOVE.len() as u64) as usize];
        let wide = drawn.map(|narrow_elements| lower::Options { narrow_elements });
        let options = [Some(lower::Options::default()), wide];
        options.into_iter().flatten().map(|options| self.lower_with(device, options)).collect()
    }

    /// The kernels of the schedule with options.
    ///
    /// # Errors
    /// If the schedule is refused, or lowering fails or gives something malformed.
    pub fn lower_with(&self, device: &Device, options: lower::Options) -> Result<Program, Failure> {
        Ok(build_with(&self.pipeline, &self.schedule, &self.request, device, options)?)
    }
}

impl Run<'_> {
    /// Fails at the first sample whose bits are not the reference's, unless both are NaN.
    ///
    /// # Errors
    /// [`Failure::Wrong`].
    ///
    /// # Panics
    /// If an output is missing, or has another box or type.
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

    /// Judges the outputs of kernels built for speed by how much the reference's change under other roundings.
    ///
    /// # Errors
    /// [`Failure::Numeric`], and [`Failure::Reference`] if other roundings lead it out of its boxes.
    pub fn judge(&self, outputs: &[Buffer]) -> Result<Verdict, Failure> {
        let perturbed =
            (0..PERTURBED_RUNS).map(|seed| self.case.evaluation(&self.inputs).perturbed(seed).run());
        let expected = Expected::new(&self.case.pipeline, self.expected.clone(), perturbed, None);
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
    /// [`Failure::Fault`] and [`Failure::Wrong`].
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

/// The first of the samples that differ; there is one.
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

/// The point with a number, counted first dimension fastest.
fn point(region: &Region, mut number: usize) -> Vec<i64> {
    let coordinate = |range: &Range| {
        let extent = range.extent as usize;
        let at = range.min + (number % extent) as i64;
        number /= extent;
        at
    };
    region.0.iter().map(coordinate).collect()
}
