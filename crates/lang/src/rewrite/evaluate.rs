//! Evaluates a Func that depends only on its point, with the language's own arithmetic.

use ahash::AHashMap;

use crate::ids::{ExprId, FuncId};
use crate::ir::{Exprs, FuncDecl, NodeKind, Stage};
use crate::region::{Range, Region};
use crate::types::Value;

/// The values of a Func over a box, the first dimension fastest.
pub(super) struct Evaluation<'a> {
    exprs: &'a Exprs,
    id: FuncId,
    func: &'a FuncDecl,
    region: &'a Region,
    values: Vec<Vec<Value>>,
}

/// A read outside of a table or of the box.
pub(super) struct Outside;

/// The variables at one point of a stage.
struct Point<'a> {
    vars: &'a [i64],
    rvars: &'a [i64],
}

impl<'a> Evaluation<'a> {
    /// A Func that reads constant tables and itself alone, with 0 everywhere.
    pub fn new(exprs: &'a Exprs, id: FuncId, func: &'a FuncDecl, region: &'a Region) -> Evaluation<'a> {
        let points = region.points().unwrap_or(0) as usize;
        let values = func.types.iter().map(|ty| vec![Value::zero(*ty); points]).collect();
        Evaluation { exprs, id, func, region, values }
    }

    /// An upper bound on the operations of the evaluation.
    pub fn work(&self) -> u64 {
        let points = self.region.points().unwrap_or(u64::MAX);
        let of = |stage: &Stage| {
            let steps = self.domain(stage).into_iter().map(|range| range.extent as u64);
            let nodes = self.exprs.reachable(stage.roots()).len() as u64;
            steps.fold(points.saturating_mul(nodes), u64::saturating_mul)
        };
        self.func.stages.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The results, one list for each value of the Func.
    pub fn run(mut self) -> Result<Vec<Vec<Value>>, Outside> {
        for stage in &self.func.stages {
            let pure = |d: usize| stage.is_pure(self.exprs, d);
            let along = self.region.0.iter().enumerate();
            // An update visits each point of its pure variables once.
            let vars: Vec<Range> =
                along.map(|(d, range)| if pure(d) { *range } else { Range::new(0, 1) }).collect();
            let (nodes, domain) = (self.exprs.reachable(stage.roots()), self.domain(stage));
            for vars in points(&vars) {
                for rvars in points(&domain) {
                    self.step(stage, &nodes, Point { vars: &vars, rvars: &rvars })?;
                }
            }
        }
        Ok(self.values)
    }

    fn step(&mut self, stage: &Stage, nodes: &[ExprId], point: Point<'_>) -> Result<(), Outside> {
        let mut known: AHashMap<ExprId, Value> = AHashMap::new();
        for id in nodes {
            let value = self.node(*id, &point, &known)?;
            known.insert(*id, value);
        }
        if stage.predicate.is_some_and(|predicate| known[&predicate].bits() == 0) {
            return Ok(());
        }
        let at = self.offset(&stage.indices, &known)?;
        for (values, value) in self.values.iter_mut().zip(&stage.values) {
            values[at] = known[value];
        }
        Ok(())
    }

    fn node(&self, id: ExprId, point: &Point<'_>, known: &AHashMap<ExprId, Value>) -> Result<Value, Outside> {
        let node = &self.exprs[id];
        let index = |index: i64| Value::from(i32::try_from(index).unwrap_or_default());
        match node.kind {
            NodeKind::Var(d) => Ok(index(point.vars[d as usize])),
            NodeKind::RVar(r) => Ok(index(point.rvars[r as usize])),
            NodeKind::Op(op) => {
                let args: Vec<Value> = node.args.iter().map(|arg| known[arg]).collect();
                Ok(op.eval(&args))
            }
            NodeKind::Table(table) => {
                let at = node.args.iter().map(|arg| known[arg].as_int().unwrap_or(-1));
                self.exprs.tables()[table].value(at).ok_or(Outside)
            }
            NodeKind::Call(func, value) if func == self.id => {
                let at = self.offset(&node.args, known)?;
                Ok(self.values[value as usize][at])
            }
            _ => Err(Outside),
        }
    }

    /// The place of a point among the values.
    fn offset(&self, indices: &[ExprId], known: &AHashMap<ExprId, Value>) -> Result<usize, Outside> {
        let (mut offset, mut stride) = (0, 1);
        for (index, range) in indices.iter().zip(&self.region.0) {
            let index = known[index].as_int().filter(|index| range.contains(*index)).ok_or(Outside)?;
            offset += (index - range.min) as usize * stride;
            stride *= range.extent as usize;
        }
        Ok(offset)
    }

    fn domain(&self, stage: &Stage) -> Vec<Range> {
        let int = |id: ExprId| constant(self.exprs, id).and_then(Value::as_int).unwrap_or_default();
        stage.domain.iter().map(|var| Range::new(int(var.min), int(var.extent))).collect()
    }
}

/// The value of an expression of constants.
fn constant(exprs: &Exprs, root: ExprId) -> Option<Value> {
    let mut known: AHashMap<ExprId, Value> = AHashMap::new();
    for id in exprs.reachable([root]) {
        let NodeKind::Op(op) = exprs[id].kind else { return None };
        let args: Vec<Value> = exprs[id].args.iter().map(|arg| known[arg]).collect();
        known.insert(id, op.eval(&args));
    }
    known.get(&root).copied()
}

/// Every point of a box, the first coordinate fastest.
pub(super) fn points(ranges: &[Range]) -> Vec<Vec<i64>> {
    let mut points = vec![Vec::new()];
    for range in ranges {
        points = range
            .iter()
            .flat_map(|at| points.iter().map(move |point: &Vec<i64>| [point.as_slice(), &[at]].concat()))
            .collect();
    }
    points
}
