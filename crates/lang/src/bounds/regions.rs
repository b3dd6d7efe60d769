//! Propagates the boxes requested of the outputs to every Func and input.

use ahash::AHashMap;
use smallvec::SmallVec;

use crate::bounds::analysis::{Analysis, Environment};
use crate::bounds::error::BoundsError;
use crate::bounds::span::{IntSpan, Span};
use crate::bounds::values::{Values, value_spans};
use crate::brief::shown;
use crate::ids::{ExprId, FuncId, IdVec, InputId, ParamId};
use crate::ir::{InputDecl, NodeKind, ParamDecl, ReductionVar, Stage, TableDecl, stage_name};
use crate::pipeline::Pipeline;
use crate::region::{Range, Region};
use crate::types::{Type, Value};

/// A request to a pipeline: a box for each output and input, and a value for each Param.
///
/// ```
/// use warploom_lang::*;
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let shift = func("shift", (x, y), input.at((x + 1, y)));
/// let pipeline = Pipeline::new("shift", [shift])?;
/// let request = Realisation::new(&pipeline)
///     .input("input", Region::of_extents(&[9, 4]))
///     .output("shift", Region::of_extents(&[8, 4]));
/// let regions = infer(&pipeline, &request)?;
/// assert_eq!(regions.inputs.values().next().unwrap().to_string(), "[1, 9) x [0, 4)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Realisation {
    /// The box of each input; `None` until given.
    pub inputs: IdVec<InputId, Option<Region>>,
    /// The box of each output, in the pipeline's order; `None` until given.
    pub outputs: Vec<Option<Region>>,
    /// The value of each Param; `None` until given.
    pub params: IdVec<ParamId, Option<Value>>,
    names: Vec<(String, Slot)>,
    unknown: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Slot {
    Input(InputId),
    Output(usize),
    Param(ParamId, Type),
}

impl Realisation {
    /// A request with only the typical values of Params: a default, or the middle of a range.
    pub fn new(pipeline: &Pipeline) -> Realisation {
        let inputs = pipeline.inputs.iter().map(|(id, input)| (input.name.clone(), Slot::Input(id)));
        let params =
            pipeline.params.iter().map(|(id, param)| (param.name.clone(), Slot::Param(id, param.ty)));
        let outputs = pipeline.outputs.iter().enumerate();
        let outputs = outputs.map(|(i, id)| (pipeline.funcs[*id].name.clone(), Slot::Output(i)));
        Realisation {
            inputs: pipeline.inputs.values().map(|_| None).collect(),
            outputs: vec![None; pipeline.outputs.len()],
            params: pipeline.params.values().map(ParamDecl::usual).collect(),
            names: inputs.chain(params).chain(outputs).collect(),
            unknown: Vec::new(),
        }
    }

    fn slot(&mut self, name: &str, accept: impl Fn(Slot) -> bool) -> Option<Slot> {
        let slot = self.names.iter().find(|(known, slot)| known == name && accept(*slot)).map(|(_, s)| *s);
        if slot.is_none() {
            self.unknown.push(name.to_string());
        }
        slot
    }

    /// Sets the box of an input.
    #[must_use]
    pub fn input(mut self, name: &str, region: Region) -> Realisation {
        if let Some(Slot::Input(id)) = self.slot(name, |slot| matches!(slot, Slot::Input(_))) {
            self.inputs[id] = Some(region);
        }
        self
    }

    /// Sets the box of an output.
    #[must_use]
    pub fn output(mut self, name: &str, region: Region) -> Realisation {
        if let Some(Slot::Output(i)) = self.slot(name, |slot| matches!(slot, Slot::Output(_))) {
            self.outputs[i] = Some(region);
        }
        self
    }

    /// Sets the value of a Param. An `f64` is rounded to the type of a Param of another float type, so
    /// that literals need no suffix.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Realisation {
        if let Some(Slot::Param(id, ty)) = self.slot(name, |slot| matches!(slot, Slot::Param(..))) {
            self.params[id] = Some(value.into().fitted(ty));
        }
        self
    }
}

/// Indices beyond this count as unbounded. The limit leaves room for 32-bit index arithmetic.
pub(crate) const MAX_INDEX: i64 = 1 << 30;

/// The maximum number of points in a box. The bytes of any array, and sums over them, fit in 64
/// bits.
const MAX_POINTS: u64 = 1 << 40;

/// The inferred box of every Func, and the part of every input that is read.
#[derive(Clone, PartialEq, Debug)]
pub struct Regions {
    /// The boxes of each Func.
    pub funcs: IdVec<FuncId, FuncRegions>,
    /// The part of each input that is read; empty if nothing is read.
    pub inputs: IdVec<InputId, Region>,
    /// The sizes, Params and value ranges that the boxes were inferred from.
    pub facts: Facts,
}

impl Regions {
    /// Whether a stage computes nothing: it has no values, no reader, or an empty domain.
    ///
    /// # Panics
    /// If the regions are those of another pipeline.
    pub fn is_idle(&self, pipeline: &Pipeline, func: FuncId, stage: usize) -> bool {
        let regions = &self.funcs[func];
        let undefined = pipeline.funcs[func].stages[stage].values.is_empty();
        undefined || !regions.needed || regions.stages[stage].is_idle()
    }
}

/// The leaves of an expression, other than loop variables, that a realisation fixes.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// The box of each input, as given; if sizes vary, the smallest one that covers it at all sizes.
    pub inputs: IdVec<InputId, Region>,
    /// The spans of the first index and of the extent of each input's dimensions, if sizes vary.
    pub varying: Option<VaryingInputs>,
    /// The span of each Param: the value if it is specialised, otherwise its declared range.
    pub params: IdVec<ParamId, Span>,
    /// The span of each value of each Func, at any point.
    pub values: IdVec<FuncId, Vec<Span>>,
}

/// For each dimension of each input, the spans of its first index and of its extent.
pub type VaryingInputs = IdVec<InputId, Vec<(IntSpan, IntSpan)>>;

impl Facts {
    /// The span of the first index of an input's dimension.
    pub fn input_min(&self, input: InputId, dimension: usize) -> IntSpan {
        input_spans(&self.inputs, &self.varying, input, dimension).0
    }

    /// The span of the extent of an input's dimension.
    pub fn input_extent(&self, input: InputId, dimension: usize) -> IntSpan {
        input_spans(&self.inputs, &self.varying, input, dimension).1
    }
}

/// The spans of the first index and of the extent of an input's dimension.
fn input_spans(
    inputs: &IdVec<InputId, Region>,
    varying: &Option<VaryingInputs>,
    input: InputId,
    dimension: usize,
) -> (IntSpan, IntSpan) {
    match varying {
        Some(varying) => varying[input][dimension],
        None => {
            let range = inputs[input][dimension];
            (IntSpan::constant(range.min), IntSpan::constant(range.extent))
        }
    }
}

/// The boxes of one Func.
#[derive(Clone, PartialEq, Debug)]
pub struct FuncRegions {
    /// Whether any point of the Func is needed.
    pub needed: bool,
    /// All points that its stages touch; this box must be stored.
    pub region: Region,
    /// The loop ranges of each stage.
    pub stages: Vec<StageRegions>,
}

/// The loops of one stage.
#[derive(Clone, PartialEq, Debug)]
pub struct StageRegions {
    /// The points needed after this stage. The pure variables run over them.
    pub needed: Region,
    /// The ranges of its reduction variables, the fastest first.
    pub domain: Vec<Range>,
}

impl StageRegions {
    /// Whether the stage does nothing because its domain is empty.
    pub fn is_idle(&self) -> bool {
        self.domain.iter().any(|range| range.is_empty())
    }
}

/// The sizes and values of one realisation, with the loops of one stage.
pub(crate) struct StageEnvironment<'a> {
    pub inputs: &'a IdVec<InputId, Region>,
    pub varying: &'a Option<VaryingInputs>,
    pub params: &'a IdVec<ParamId, Span>,
    pub values: &'a Values,
    pub vars: &'a [Range],
    pub rvars: &'a [Range],
}

/// A complete, checked request. For Params that are not specialised it holds only the declared
/// range, so regions never depend on their values.
pub(crate) struct Given {
    pub inputs: IdVec<InputId, Region>,
    pub varying: Option<VaryingInputs>,
    pub params: IdVec<ParamId, Span>,
    values: IdVec<ParamId, Value>,
}

impl Given {
    /// Placeholder sizes and values, used to find dependencies of an index before the real ones are known.
    pub fn nominal(pipeline: &Pipeline, extent: i64, value: impl Fn(&ParamDecl) -> Value) -> Given {
        let input = |input: &InputDecl| Region::of_extents(&vec![extent; input.dimensions]);
        let values: IdVec<ParamId, Value> = pipeline.params.values().map(value).collect();
        let params = values.values().map(|value| Span::constant(*value)).collect();
        Given { inputs: pipeline.inputs.values().map(input).collect(), varying: None, params, values }
    }

    /// Any sizes and values.
    pub fn any(pipeline: &Pipeline) -> Given {
        let every = IntSpan::of_type(Type::I32);
        let ends = |input: &InputDecl| vec![(every, IntSpan::fixed(0, every.max)); input.dimensions];
        let varying = Some(pipeline.inputs.values().map(ends).collect());
        let params = pipeline.params.values().map(Span::declared).collect();
        Given { varying, params, ..Given::nominal(pipeline, 1, |param| Value::zero(param.ty)) }
    }

    /// The environment of a stage with these loops.
    pub fn environment<'a>(
        &'a self,
        values: &'a Values,
        vars: &'a [Range],
        rvars: &'a [Range],
    ) -> StageEnvironment<'a> {
        let Given { inputs, varying, params, .. } = self;
        StageEnvironment { inputs, varying, params, values, vars, rvars }
    }

    /// Everything that is fixed, together with the spans of the values of Funcs.
    pub fn facts(self, values: Values) -> Facts {
        Facts { inputs: self.inputs, varying: self.varying, params: self.params, values }
    }

    /// The ranges of a reduction domain. Its bounds contain only constants, Params and sizes.
    pub fn domain(&self, pipeline: &Pipeline, stage: &Stage) -> Vec<Range> {
        let number = |id: ExprId| self.number(pipeline, id);
        let at_all_sizes = |min: ExprId, extent: ExprId| {
            let no_values = IdVec::new();
            let environment = self.environment(&no_values, &[], &[]);
            let analysis = Analysis::new(&pipeline.exprs, &environment, [min, extent]);
            let (min, extent) = (analysis.int(min), analysis.int(extent));
            Range::inclusive(min.min, min.max.saturating_add(extent.max - 1))
        };
        let range = |var: &ReductionVar| match self.varying {
            Some(_) => at_all_sizes(var.min, var.extent),
            None => Range::new(number(var.min), number(var.extent)),
        };
        stage.domain.iter().map(range).collect()
    }

    /// The spans of the first index and of the extent of an input's dimension.
    pub fn input_spans(&self, input: InputId, dimension: usize) -> (IntSpan, IntSpan) {
        input_spans(&self.inputs, &self.varying, input, dimension)
    }

    /// The value of an expression without variables and loads.
    fn number(&self, pipeline: &Pipeline, root: ExprId) -> i64 {
        let mut known: AHashMap<ExprId, Value> = AHashMap::new();
        for id in pipeline.exprs.reachable([root]) {
            let node = &pipeline.exprs[id];
            let args: SmallVec<[Value; 3]> = node.args.iter().map(|arg| known[arg]).collect();
            let value = match node.kind {
                NodeKind::Op(op) => op.eval(&args),
                NodeKind::Param(param) => self.values[param],
                NodeKind::InputMin(input, d) => Value::from(self.inputs[input][d as usize].min as i32),
                NodeKind::InputExtent(input, d) => Value::from(self.inputs[input][d as usize].extent as i32),
                NodeKind::Var(_)
                | NodeKind::RVar(_)
                | NodeKind::Load(_)
                | NodeKind::Table(_)
                | NodeKind::Call(..) => {
                    unreachable!("validation keeps these out of domain bounds")
                }
            };
            known.insert(id, value);
        }
        known[&root].as_int().unwrap_or_default()
    }
}

fn whole(range: Range) -> IntSpan {
    IntSpan::fixed(range.min, range.last())
}

impl Environment for StageEnvironment<'_> {
    fn var(&self, dimension: usize) -> IntSpan {
        whole(self.vars[dimension])
    }
    fn rvar(&self, index: usize) -> IntSpan {
        whole(self.rvars[index])
    }
    fn param(&self, param: ParamId) -> Span {
        self.params[param]
    }
    fn input_min(&self, input: InputId, dimension: usize) -> IntSpan {
        input_spans(self.inputs, self.varying, input, dimension).0
    }
    fn input_extent(&self, input: InputId, dimension: usize) -> IntSpan {
        input_spans(self.inputs, self.varying, input, dimension).1
    }
    fn value(&self, func: FuncId, value: usize, _ty: Type) -> Span {
        self.values[func][value]
    }
}

/// The box of every Func and input that a realisation needs, or why the realisation is invalid.
pub fn infer(pipeline: &Pipeline, request: &Realisation) -> Result<Regions, BoundsError> {
    let (given, outputs) = complete(pipeline, request)?;
    let values = value_spans(pipeline, &given);
    let mut inference = Inference {
        pipeline,
        given: &given,
        values: &values,
        required: pipeline.funcs.values().map(|func| Region::empty(func.dims.len())).collect(),
        needed: pipeline.funcs.values().map(|_| false).collect(),
        read: pipeline.inputs.values().map(|input| Region::empty(input.dimensions)).collect(),
    };
    for (&id, region) in pipeline.outputs.iter().zip(outputs) {
        inference.require(id, &region);
    }
    let mut found: Vec<FuncRegions> = Vec::new();
    for id in pipeline.funcs.keys().rev() {
        found.push(inference.func(id)?);
    }
    found.reverse();
    let inputs = inference.read;
    let funcs = found.into_iter().collect();
    Ok(Regions { funcs, inputs, facts: given.facts(values) })
}

/// Checks the request against the pipeline's inputs, outputs and Params.
pub(crate) fn complete(
    pipeline: &Pipeline,
    request: &Realisation,
) -> Result<(Given, Vec<Region>), BoundsError> {
    let known = || {
        let names: Vec<&str> = request.names.iter().map(|(name, _)| name.as_str()).collect();
        shown(&names, ", ")
    };
    let pipeline_name = || pipeline.name.clone();
    if let Some(name) = request.unknown.first() {
        return Err(BoundsError::Unknown { pipeline: pipeline_name(), name: name.clone(), known: known() });
    }
    let region = |name: &str, dimensions: usize, region: &Option<Region>| {
        let missing = || BoundsError::Missing { pipeline: pipeline_name(), name: name.into(), what: "size" };
        let region = region.clone().ok_or_else(missing)?;
        check_box(name, dimensions, &region)?;
        Ok(region)
    };
    let mut inputs = IdVec::new();
    for (id, input) in pipeline.inputs.iter() {
        inputs.push(region(&input.name, input.dimensions, &request.inputs[id])?);
    }
    let specialised = pipeline.specialised_params();
    let (mut params, mut values) = (IdVec::new(), IdVec::new());
    for (id, param) in pipeline.params.iter() {
        let name = param.name.clone();
        let missing =
            || BoundsError::Missing { pipeline: pipeline_name(), name: name.clone(), what: "value" };
        let value = request.params[id].ok_or_else(missing)?;
        if value.ty() != param.ty {
            return Err(BoundsError::ParamType { name, expected: param.ty, got: value.ty() });
        }
        if let Some((low, high)) = param.range
            && !(low.as_f64() <= value.as_f64() && value.as_f64() <= high.as_f64())
        {
            return Err(BoundsError::ParamRange { name, value, low, high });
        }
        values.push(value);
        params.push(if specialised[id] { Span::constant(value) } else { Span::declared(param) });
    }
    let outputs: Result<Vec<Region>, BoundsError> = pipeline
        .outputs
        .iter()
        .zip(&request.outputs)
        .map(|(&id, given)| {
            let func = &pipeline.funcs[id];
            region(&func.name, func.dims.len(), given)
        })
        .collect();
    Ok((Given { inputs, varying: None, params, values }, outputs?))
}

fn check_box(name: &str, dimensions: usize, region: &Region) -> Result<(), BoundsError> {
    if region.dimensions() != dimensions {
        let got = region.dimensions();
        return Err(BoundsError::Rank { name: name.into(), got, expected: dimensions });
    }
    let absurd = |range: &Range| !(1..=MAX_INDEX).contains(&range.extent);
    if let Some(dimension) = region.0.iter().position(absurd) {
        return Err(BoundsError::Extent { name: name.into(), dimension, extent: region[dimension].extent });
    }
    check_positions(name, region, &None)?;
    check_points(name, region)
}

/// Refuses a box with positions that index arithmetic cannot reach.
pub(crate) fn check_positions(
    name: &str,
    region: &Region,
    place: &Option<String>,
) -> Result<(), BoundsError> {
    let far = |range: &Range| range.min < -MAX_INDEX || range.min.saturating_add(range.extent) > MAX_INDEX;
    match region.0.iter().position(far) {
        None => Ok(()),
        Some(dimension) => Err(BoundsError::Position {
            name: name.into(),
            dimension,
            range: region[dimension],
            place: place.clone(),
        }),
    }
}

pub(crate) fn check_points(name: &str, region: &Region) -> Result<(), BoundsError> {
    match region.points() {
        Some(points) if points <= MAX_POINTS => Ok(()),
        _ => Err(BoundsError::TooLarge { func: name.into(), region: region.clone() }),
    }
}

struct Inference<'a> {
    pipeline: &'a Pipeline,
    given: &'a Given,
    values: &'a Values,
    required: IdVec<FuncId, Region>,
    /// Needed as a separate flag: a Func without dimensions has a box that is never empty.
    needed: IdVec<FuncId, bool>,
    read: IdVec<InputId, Region>,
}

impl Inference<'_> {
    fn require(&mut self, func: FuncId, region: &Region) {
        if self.needed[func] {
            self.required[func] = self.required[func].union(region);
        } else {
            self.needed[func] = true;
            self.required[func] = region.clone();
        }
    }

    /// The boxes of a Func whose consumers are all done. Adds its reads to its producers' boxes.
    fn func(&mut self, id: FuncId) -> Result<FuncRegions, BoundsError> {
        let func = &self.pipeline.funcs[id];
        let mut region = self.required[id].clone();
        let mut stages = Vec::new();
        for number in (0..func.stages.len()).rev() {
            let needed = region.clone();
            let domain = self.given.domain(self.pipeline, &func.stages[number]);
            let stage = StageRegions { needed, domain };
            if self.needed[id] && !stage.is_idle() {
                region = self.stage(id, number, &stage)?;
            }
            stages.push(stage);
        }
        stages.reverse();
        check_positions(&func.name, &region, &func.stages[0].place_text())?;
        check_points(&func.name, &region)?;
        Ok(FuncRegions { needed: self.needed[id], region, stages })
    }

    /// Adds the reads of one stage. Returns the box of its own Func that must exist before it.
    fn stage(&mut self, id: FuncId, number: usize, loops: &StageRegions) -> Result<Region, BoundsError> {
        let pipeline = self.pipeline;
        let (func, exprs) = (&pipeline.funcs[id], &pipeline.exprs);
        let stage = &func.stages[number];
        let environment = self.given.environment(self.values, &loops.needed.0, &loops.domain);
        let analysis = Analysis::new(exprs, &environment, stage.roots());
        let place = stage.place_text();
        let boxed = |producer: &str, indices: &[ExprId]| {
            let ranges = indices.iter().enumerate().map(|(dimension, index)| {
                let span = analysis.int(*index);
                if span.min < -MAX_INDEX || span.max > MAX_INDEX {
                    let (consumer, producer) = (stage_name(func, number), producer.to_string());
                    return Err(far_index(span, consumer, producer, dimension, &place));
                }
                Ok(Range::inclusive(span.min, span.max))
            });
            Ok(Region(ranges.collect::<Result<_, _>>()?))
        };
        let mut before = loops.needed.union(&boxed(&func.name, &stage.indices)?);
        for node in exprs.reachable(stage.roots()).into_iter().map(|id| &exprs[id]) {
            match node.kind {
                NodeKind::Call(callee, _) if callee == id => {
                    before = before.union(&boxed(&func.name, &node.args)?);
                }
                NodeKind::Call(callee, _) => {
                    let region = boxed(&pipeline.funcs[callee].name, &node.args)?;
                    self.require(callee, &region);
                }
                NodeKind::Load(input) => {
                    let region = boxed(&pipeline.inputs[input].name, &node.args)?;
                    self.check_inside(input, &region, stage_name(func, number), &place)?;
                    self.read[input] = self.read[input].union(&region);
                }
                NodeKind::Table(table) => {
                    let table = &pipeline.tables()[table];
                    let region = boxed(&table.name, &node.args)?;
                    check_inside_table(table, &region, stage_name(func, number), &place)?;
                }
                _ => {}
            }
        }
        Ok(before)
    }

    fn check_inside(
        &self,
        input: InputId,
        needed: &Region,
        consumer: String,
        place: &Option<String>,
    ) -> Result<(), BoundsError> {
        let available = &self.given.inputs[input];
        match (0..needed.dimensions()).find(|d| !available[*d].covers(needed[*d])) {
            None => Ok(()),
            Some(dimension) => Err(BoundsError::LeavesInput {
                consumer,
                input: self.pipeline.inputs[input].name.clone(),
                dimension,
                needed: needed[dimension],
                available: available[dimension],
                place: place.clone(),
            }),
        }
    }
}

/// The error for an index beyond the limits: far from 0, or without any bounds.
pub(crate) fn far_index(
    span: IntSpan,
    consumer: String,
    producer: String,
    dimension: usize,
    place: &Option<String>,
) -> BoundsError {
    let (place, every) = (place.clone(), IntSpan::of_type(Type::I32));
    if span.min <= every.min || every.max <= span.max {
        return BoundsError::Unbounded { consumer, producer, dimension, place };
    }
    let range = Range::inclusive(span.min, span.max);
    BoundsError::FarIndex { consumer, producer, dimension, range, place }
}

fn check_inside_table(
    table: &TableDecl,
    needed: &Region,
    consumer: String,
    place: &Option<String>,
) -> Result<(), BoundsError> {
    let available = table.region();
    match (0..needed.dimensions()).find(|d| !available[*d].covers(needed[*d])) {
        None => Ok(()),
        Some(dimension) => Err(BoundsError::LeavesTable {
            consumer,
            table: table.name.clone(),
            dimension,
            needed: needed[dimension],
            extent: available[dimension].extent,
            place: place.clone(),
        }),
    }
}
