//! Propagates the boxes of the outputs to every Func and input, as formulas of the sizes.

use crate::bounds::regions::Given;
use serde::{Deserialize, Serialize};

use crate::bounds::regions::{MAX_INDEX, check_points, complete};
use crate::bounds::values::{Values, value_spans};
use crate::bounds::{Analysis, BoundsError, Environment, FuncRegions, IntSpan, Regions, StageRegions};
use crate::dynamic::ends::{Ends, Ranges, union};
use crate::dynamic::formula::{Formula, Formulas};
use crate::dynamic::request::{DynamicRequest, FormulaRange, SizeError};
use crate::ids::{ExprId, FuncId, IdVec, InputId, TableId};
use crate::ir::{NodeKind, Stage, stage_name};
use crate::pipeline::Pipeline;
use crate::region::{Range, Region};

/// A box as formulas of sizes.
type FormulaBox = Vec<FormulaRange>;

/// The boxes of every Func and input at any sizes.
#[derive(Clone, Debug)]
pub struct DynamicRegions {
    /// The boxes of inputs and outputs, with the atoms of all formulas.
    pub request: DynamicRequest,
    /// The boxes of each Func.
    pub funcs: IdVec<FuncId, DynamicFunc>,
    /// The part of each input that is read.
    pub read: IdVec<InputId, FormulaBox>,
    /// The conditions on the sizes of a launch, beyond their ranges.
    pub conditions: Vec<Condition>,
}

/// The boxes of one Func at any sizes.
#[derive(Clone, Debug)]
pub struct DynamicFunc {
    /// All points that its stages touch.
    pub region: FormulaBox,
    /// The loops of each stage.
    pub stages: Vec<DynamicStage>,
}

/// The loops of one stage at any sizes.
#[derive(Clone, Debug)]
pub struct DynamicStage {
    /// The points needed after the stage.
    pub needed: FormulaBox,
    /// The ranges of its reduction variables.
    pub domain: FormulaBox,
}

/// A condition on the sizes of a launch: `low <= high`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Condition {
    /// The side that must be the smaller one, or equal.
    pub low: Formula,
    /// The side that must be the larger one, or equal.
    pub high: Formula,
    /// The consequence of a violation.
    pub why: String,
}

impl DynamicRegions {
    /// The formula of an expression that depends only on the sizes. `analysis` must cover all sizes.
    pub fn number<E: Environment>(
        &mut self,
        pipeline: &Pipeline,
        id: ExprId,
        analysis: &Analysis<'_, E>,
    ) -> Option<Formula> {
        let exprs = &pipeline.exprs;
        let of_sizes = |kind: NodeKind| {
            matches!(
                kind,
                NodeKind::Op(_) | NodeKind::Param(_) | NodeKind::InputMin(..) | NodeKind::InputExtent(..)
            )
        };
        if !exprs.reachable([id]).into_iter().all(|id| of_sizes(exprs[id].kind)) {
            return None;
        }
        let DynamicRequest { formulas, inputs, .. } = &mut self.request;
        let ranges = Ranges { vars: &[], rvars: &[], inputs };
        let ends = Ends::new(exprs, analysis, formulas, ranges).of(id)?;
        (ends.first == ends.last).then_some(ends.first)
    }

    /// Checks the conditions of a launch at some sizes.
    ///
    /// # Errors
    /// The first condition that does not hold.
    pub fn check(&self, sizes: &[i64]) -> Result<(), SizeError> {
        let values = self.request.formulas.evaluation(sizes);
        match self.conditions.iter().find(|condition| values.of(&condition.low) > values.of(&condition.high))
        {
            None => Ok(()),
            Some(condition) => {
                Err(SizeError::Condition { sizes: self.request.shown(sizes), why: condition.why.clone() })
            }
        }
    }
}

/// The boxes of every Func and input as formulas, and the boxes that cover them at all sizes.
///
/// # Errors
/// If the request does not fit the pipeline, or a box has no formula.
pub fn infer_dynamic(
    pipeline: &Pipeline,
    request: &DynamicRequest,
) -> Result<(DynamicRegions, Regions), BoundsError> {
    let (mut given, _) = complete(pipeline, &request.typical)?;
    let span = |input: InputId, d: usize| {
        let (min, extent) = request.input_ranges(input, d);
        (IntSpan::fixed(min.min, min.max), IntSpan::fixed(extent.min, extent.max))
    };
    let dims = |input: InputId| 0..pipeline.inputs[input].dimensions;
    given.varying =
        Some(pipeline.inputs.keys().map(|input| dims(input).map(|d| span(input, d)).collect()).collect());
    given.inputs = request.inputs.values().map(|ranges| hull(ranges, &request.formulas)).collect();
    let values = value_spans(pipeline, &given);
    let mut inference = Inference {
        pipeline,
        given: &given,
        values: &values,
        formulas: request.formulas.clone(),
        inputs: &request.inputs,
        required: pipeline.funcs.values().map(|_| None).collect(),
        read: pipeline.inputs.values().map(|_| None).collect(),
        conditions: Vec::new(),
    };
    for (&id, ranges) in pipeline.outputs.iter().zip(&request.outputs) {
        inference
            .require(id, ranges.clone())
            .ok_or_else(|| inference.unbounded(&pipeline.funcs[id].name, id, 0, 0))?;
    }
    let mut found: Vec<(bool, DynamicFunc)> = Vec::new();
    for id in pipeline.funcs.keys().rev() {
        found.push(inference.func(id)?);
    }
    found.reverse();
    let Inference { formulas, read, conditions, .. } = inference;
    let regions = found.iter().map(|(needed, func)| over_all_sizes(*needed, func, &formulas)).collect();
    let empty = |dimensions: usize| vec![FormulaRange::constant(Range::new(0, 0)); dimensions];
    let read: IdVec<InputId, FormulaBox> = read
        .iter()
        .map(|(input, read)| read.clone().unwrap_or_else(|| empty(pipeline.inputs[input].dimensions)))
        .collect();
    let inputs = read.values().map(|ranges| hull(ranges, &formulas)).collect();
    let hulls = Regions { funcs: regions, inputs, facts: given.facts(values) };
    for (id, func) in hulls.funcs.iter() {
        check_points(&pipeline.funcs[id].name, &func.region)?;
    }
    let funcs = found.into_iter().map(|(_, func)| func).collect();
    let request = DynamicRequest { formulas, ..request.clone() };
    Ok((DynamicRegions { request, funcs, read, conditions }, hulls))
}

fn hull(ranges: &[FormulaRange], formulas: &Formulas) -> Region {
    Region(ranges.iter().map(|range| range.hull(formulas)).collect())
}

fn over_all_sizes(needed: bool, func: &DynamicFunc, formulas: &Formulas) -> FuncRegions {
    let stage = |stage: &DynamicStage| StageRegions {
        needed: hull(&stage.needed, formulas),
        domain: hull(&stage.domain, formulas).0,
    };
    FuncRegions {
        needed,
        region: hull(&func.region, formulas),
        stages: func.stages.iter().map(stage).collect(),
    }
}

struct Inference<'a> {
    pipeline: &'a Pipeline,
    given: &'a Given,
    values: &'a Values,
    formulas: Formulas,
    inputs: &'a IdVec<InputId, FormulaBox>,
    /// `None` while nothing reads the Func.
    required: IdVec<FuncId, Option<FormulaBox>>,
    read: IdVec<InputId, Option<FormulaBox>>,
    conditions: Vec<Condition>,
}

impl Inference<'_> {
    fn require(&mut self, func: FuncId, ranges: FormulaBox) -> Option<()> {
        let joined = joined(&mut self.formulas, self.required[func].as_ref(), ranges)?;
        self.required[func] = Some(joined);
        Some(())
    }

    /// The boxes of a Func whose consumers are all done, and whether any of it is needed. Adds its reads to its
    /// producers' boxes.
    fn func(&mut self, id: FuncId) -> Result<(bool, DynamicFunc), BoundsError> {
        let func = &self.pipeline.funcs[id];
        let empty = || vec![FormulaRange::constant(Range::new(0, 0)); func.dims.len()];
        let needed = self.required[id].is_some();
        let mut region = self.required[id].clone().unwrap_or_else(empty);
        let mut stages = Vec::new();
        for number in (0..func.stages.len()).rev() {
            let domain = self.domain(id, number)?;
            let stage = DynamicStage { needed: region.clone(), domain };
            let idle = hull(&stage.domain, &self.formulas).is_empty();
            if needed && !idle {
                region = self.stage(id, number, &stage)?;
            }
            stages.push(stage);
        }
        stages.reverse();
        Ok((needed, DynamicFunc { region, stages }))
    }

    /// The ranges of a stage's reduction variables.
    fn domain(&mut self, id: FuncId, number: usize) -> Result<FormulaBox, BoundsError> {
        let (func, exprs) = (&self.pipeline.funcs[id], &self.pipeline.exprs);
        let stage = &func.stages[number];
        let bounds = stage.domain.iter().flat_map(|var| [var.min, var.extent]);
        let no_values = IdVec::new();
        let environment = self.given.environment(&no_values, &[], &[]);
        let analysis = Analysis::new(exprs, &environment, bounds);
        let ranges = Ranges { vars: &[], rvars: &[], inputs: self.inputs };
        let mut ends = Ends::new(exprs, &analysis, &mut self.formulas, ranges);
        let mut exact =
            |id: ExprId| ends.of(id).filter(|ends| ends.first == ends.last).map(|ends| ends.first);
        let mut domain = FormulaBox::new();
        for var in &stage.domain {
            let range = exact(var.min).zip(exact(var.extent)).and_then(|(first, extent)| {
                let last = first.add_scaled(&extent, 1)?.add_scaled(&Formula::constant(1), -1)?;
                Some(FormulaRange { first, last })
            });
            domain.push(range.ok_or_else(|| BoundsError::Domain {
                variable: var.name.clone(),
                stage: stage_name(func, number),
                place: stage.place_text(),
            })?);
        }
        Ok(domain)
    }

    /// Adds the reads of one stage. Returns the box of its own Func that must exist before it.
    fn stage(&mut self, id: FuncId, number: usize, loops: &DynamicStage) -> Result<FormulaBox, BoundsError> {
        let pipeline = self.pipeline;
        let func = &pipeline.funcs[id];
        let stage = &func.stages[number];
        let mut before = loops.needed.clone();
        for (read, ranges) in
            self.reads(id, stage, loops).map_err(|producer| self.unbounded(&producer, id, number, 0))?
        {
            let is_far = |range: &FormulaRange| {
                self.formulas.range(&range.first).min < -MAX_INDEX
                    || self.formulas.range(&range.last).max > MAX_INDEX
            };
            if let Some(dimension) = ranges.iter().position(is_far) {
                return Err(self.unbounded(&self.name_of(id, read), id, number, dimension));
            }
            let added = match read {
                Accessed::Own => {
                    joined(&mut self.formulas, Some(&before), ranges).map(|joined| before = joined)
                }
                Accessed::Func(callee) => self.require(callee, ranges),
                Accessed::Input(input) => {
                    let name = &pipeline.inputs[input].name;
                    self.stay_inside(name, &self.inputs[input], &ranges, &stage_name(func, number));
                    let joined = joined(&mut self.formulas, self.read[input].as_ref(), ranges);
                    joined.map(|joined| self.read[input] = Some(joined))
                }
                Accessed::Table(table) => {
                    let table = &pipeline.tables()[table];
                    let available: FormulaBox =
                        table.region().0.into_iter().map(FormulaRange::constant).collect();
                    self.stay_inside(&table.name, &available, &ranges, &stage_name(func, number));
                    Some(())
                }
            };
            added.ok_or_else(|| self.unbounded(&self.name_of(id, read), id, number, 0))?;
        }
        Ok(before)
    }

    /// The box of each access of a stage, or the name of a producer whose index has no ends.
    fn reads(
        &mut self,
        id: FuncId,
        stage: &Stage,
        loops: &DynamicStage,
    ) -> Result<Vec<(Accessed, FormulaBox)>, String> {
        let (pipeline, exprs) = (self.pipeline, &self.pipeline.exprs);
        let (vars, rvars) = (hull(&loops.needed, &self.formulas).0, hull(&loops.domain, &self.formulas).0);
        let environment = self.given.environment(self.values, &vars, &rvars);
        let analysis = Analysis::new(exprs, &environment, stage.roots());
        let ranges = Ranges { vars: &loops.needed, rvars: &loops.domain, inputs: self.inputs };
        let mut ends = Ends::new(exprs, &analysis, &mut self.formulas, ranges);
        let mut boxed = |name: &str, indices: &[ExprId]| {
            let ranges = indices.iter().map(|index| ends.of(*index)).collect::<Option<FormulaBox>>();
            ranges.ok_or_else(|| name.to_string())
        };
        let mut found = vec![(Accessed::Own, boxed(&pipeline.funcs[id].name, &stage.indices)?)];
        for node in exprs.reachable(stage.roots()).into_iter().map(|id| &exprs[id]) {
            let (read, name) = match node.kind {
                NodeKind::Call(callee, _) if callee == id => (Accessed::Own, &pipeline.funcs[id].name),
                NodeKind::Call(callee, _) => (Accessed::Func(callee), &pipeline.funcs[callee].name),
                NodeKind::Load(input) => (Accessed::Input(input), &pipeline.inputs[input].name),
                NodeKind::Table(table) => (Accessed::Table(table), &pipeline.tables()[table].name),
                _ => continue,
            };
            found.push((read, boxed(name, &node.args)?));
        }
        Ok(found)
    }

    fn name_of(&self, own: FuncId, read: Accessed) -> String {
        match read {
            Accessed::Own => self.pipeline.funcs[own].name.clone(),
            Accessed::Func(func) => self.pipeline.funcs[func].name.clone(),
            Accessed::Input(input) => self.pipeline.inputs[input].name.clone(),
            Accessed::Table(table) => self.pipeline.tables()[table].name.clone(),
        }
    }

    fn unbounded(&self, producer: &str, id: FuncId, number: usize, dimension: usize) -> BoundsError {
        let func = &self.pipeline.funcs[id];
        BoundsError::Unbounded {
            consumer: stage_name(func, number),
            producer: producer.to_string(),
            dimension,
            place: func.stages[number].place_text(),
        }
    }

    /// A read must stay inside the box of an input or table. Uncertain reads become conditions of the launch.
    fn stay_inside(
        &mut self,
        name: &str,
        available: &[FormulaRange],
        needed: &[FormulaRange],
        consumer: &str,
    ) {
        for (d, (available, needed)) in available.iter().zip(needed).enumerate() {
            let sides = [(&available.first, &needed.first), (&needed.last, &available.last)];
            for (low, high) in sides.into_iter().filter(|(low, high)| !self.formulas.surely_le(low, high)) {
                let why = format!("`{consumer}` would read `{name}` out of bounds in dimension {d}");
                let condition = Condition { low: low.clone(), high: high.clone(), why };
                if !self.conditions.contains(&condition) {
                    self.conditions.push(condition);
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Accessed {
    Own,
    Func(FuncId),
    Input(InputId),
    Table(TableId),
}

/// The smallest box that covers both; `None` on overflow.
fn joined(formulas: &mut Formulas, known: Option<&FormulaBox>, ranges: FormulaBox) -> Option<FormulaBox> {
    match known {
        None => Some(ranges),
        Some(known) => known.iter().zip(&ranges).map(|(a, b)| union(formulas, a, b)).collect(),
    }
}
