//! A second, naive evaluator that checks the first: it computes one point of one Func at a time, by
//! recursion over the definitions.
//!
//! It uses the pipeline's tables, `Op::eval` and the inputs' buffers. It has no bounds, no boxes of
//! storage and no rows.
//!
//! Stage `k` of a Func changes what stage `k - 1` left. A run of an update for one choice of its
//! pure variables accesses the Func only where the pure dimensions have those coordinates. To find
//! the value of a point after stage `k`, it is therefore enough to run that stage once, with its
//! pure variables at the point's coordinates, over the whole reduction domain in order. The writes
//! of the run go into a sparse map. A point that is read before it is written has its value after
//! stage `k - 1`, found in the same way.

use std::collections::HashMap;
use std::rc::Rc;

use warploom_interp::buffer::Buffer;
use warploom_lang::ir::{NodeKind, Stage};
use warploom_lang::{ExprId, FuncId, IdVec, InputId, ParamId, Pipeline, Region, Type, Value};

/// Coordinates, first dimension first.
type Point = Vec<i64>;
/// The writes of one run of an update: the last values of each point.
type Written = HashMap<Point, Vec<Value>>;

/// The naive evaluator of one pipeline with its inputs and Params.
pub struct Naive<'a> {
    pipeline: &'a Pipeline,
    inputs: IdVec<InputId, &'a Buffer>,
    params: IdVec<ParamId, Value>,
    pure: HashMap<(FuncId, Point), Vec<Value>>,
    /// By Func, stage and coordinates of the stage's pure dimensions.
    updates: HashMap<(FuncId, usize, Point), Rc<Written>>,
}

/// The context in which an expression is evaluated.
struct Place<'b> {
    func: FuncId,
    stage: usize,
    point: &'b [i64],
    domain: &'b [i64],
    /// The writes of the current run so far.
    written: &'b Written,
    known: HashMap<ExprId, Value>,
}

impl<'a> Naive<'a> {
    /// Takes inputs and Params in the order of the pipeline's tables.
    pub fn new(pipeline: &'a Pipeline, inputs: Vec<&'a Buffer>, params: Vec<Value>) -> Naive<'a> {
        Naive {
            pipeline,
            inputs: inputs.into_iter().collect(),
            params: params.into_iter().collect(),
            pure: HashMap::new(),
            updates: HashMap::new(),
        }
    }

    /// All values of a Func over a box, point by point, first coordinate fastest.
    pub fn values(&mut self, func: FuncId, region: &Region) -> Vec<Vec<Value>> {
        let last = self.pipeline.funcs()[func].stages.len() - 1;
        let ranges: Vec<(i64, i64)> = region.0.iter().map(|range| (range.min, range.extent)).collect();
        points(&ranges).iter().map(|point| self.after(func, last, point)).collect()
    }

    /// The values of a point after `stage` has run.
    fn after(&mut self, func: FuncId, stage: usize, point: &[i64]) -> Vec<Value> {
        if stage == 0 {
            return self.start(func, point);
        }
        let written = self.written(func, stage, point);
        match written.get(point) {
            Some(values) => values.clone(),
            None => self.after(func, stage - 1, point),
        }
    }

    /// The pure definition; zeros if it is undefined.
    fn start(&mut self, func: FuncId, point: &[i64]) -> Vec<Value> {
        let key = (func, point.to_vec());
        if let Some(values) = self.pure.get(&key) {
            return values.clone();
        }
        let decl = &self.pipeline.funcs()[func];
        let values = match decl.stages[0].values.as_slice() {
            [] => decl.types.iter().map(|ty| Value::zero(*ty)).collect(),
            values => {
                let nothing = Written::new();
                let mut place = Place::new(func, 0, point, &[], &nothing);
                values.iter().map(|value| self.value(*value, &mut place)).collect()
            }
        };
        self.pure.entry(key).or_insert(values).clone()
    }

    /// The writes of an update with its pure variables at the coordinates of `point`.
    fn written(&mut self, func: FuncId, number: usize, point: &[i64]) -> Rc<Written> {
        let stage = &self.pipeline.funcs()[func].stages[number];
        let pure = (0..point.len()).filter(|d| stage.is_pure(self.pipeline.exprs(), *d));
        let key = (func, number, pure.map(|d| point[d]).collect::<Point>());
        if let Some(written) = self.updates.get(&key) {
            return Rc::clone(written);
        }
        let mut written = Written::new();
        for domain in self.domain(func, number, stage) {
            let mut place = Place::new(func, number, point, &domain, &written);
            let runs = stage.predicate.is_none_or(|predicate| self.value(predicate, &mut place).bits() != 0);
            if runs {
                let to = stage.indices.iter().map(|index| self.index(*index, &mut place)).collect();
                let values = stage.values.iter().map(|value| self.value(*value, &mut place)).collect();
                written.insert(to, values);
            }
        }
        Rc::clone(self.updates.entry(key).or_insert(Rc::new(written)))
    }

    /// The points of a reduction domain, in the order they are visited.
    fn domain(&mut self, func: FuncId, number: usize, stage: &Stage) -> Vec<Point> {
        let nothing = Written::new();
        let mut place = Place::new(func, number, &[], &[], &nothing);
        let mut bound = |id: ExprId| self.index(id, &mut place);
        let ranges: Vec<_> = stage.domain.iter().map(|var| (bound(var.min), bound(var.extent))).collect();
        points(&ranges)
    }

    fn index(&mut self, id: ExprId, place: &mut Place<'_>) -> i64 {
        self.value(id, place).as_int().expect("an index is an integer")
    }

    fn value(&mut self, id: ExprId, place: &mut Place<'_>) -> Value {
        if let Some(&value) = place.known.get(&id) {
            return value;
        }
        let node = &self.pipeline.exprs()[id];
        let args: Vec<Value> = node.args.iter().map(|arg| self.value(*arg, place)).collect();
        let indices = || args.iter().filter_map(|arg| arg.as_int()).collect::<Point>();
        let int = |value: i64| Value::from_int(Type::I32, value).expect("a coordinate is an i32");
        let value = match node.kind {
            NodeKind::Op(op) => op.eval(&args),
            NodeKind::Var(d) => int(place.point[d as usize]),
            NodeKind::RVar(r) => int(place.domain[r as usize]),
            NodeKind::Param(param) => self.params[param],
            NodeKind::Table(table) => {
                self.pipeline.tables()[table].value(indices()).expect("a point of the table")
            }
            NodeKind::InputMin(input, d) => int(self.inputs[input].region()[d as usize].min),
            NodeKind::InputExtent(input, d) => int(self.inputs[input].region()[d as usize].extent),
            NodeKind::Load(input) => self.inputs[input].get(&indices()).expect("a point of the input"),
            NodeKind::Call(callee, value) => {
                let values = if callee == place.func {
                    let now = place.written.get(&indices()).cloned();
                    now.unwrap_or_else(|| self.after(callee, place.stage - 1, &indices()))
                } else {
                    let last = self.pipeline.funcs()[callee].stages.len() - 1;
                    self.after(callee, last, &indices())
                };
                values[value as usize]
            }
        };
        place.known.insert(id, value);
        value
    }
}

impl<'b> Place<'b> {
    fn new(
        func: FuncId,
        stage: usize,
        point: &'b [i64],
        domain: &'b [i64],
        written: &'b Written,
    ) -> Place<'b> {
        Place { func, stage, point, domain, written, known: HashMap::new() }
    }
}

/// Every point of a box of `(min, extent)` pairs, first coordinate fastest. A box without
/// dimensions has one point without coordinates.
fn points(ranges: &[(i64, i64)]) -> Vec<Point> {
    ranges.iter().fold(vec![Vec::new()], |before, &(min, extent)| {
        let along = min..min + extent.max(0);
        along.flat_map(|at| before.iter().map(move |point| [point.as_slice(), &[at]].concat())).collect()
    })
}
