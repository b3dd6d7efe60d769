//! Bounds on the values of Funcs, independent of the point read. They bound indices that are loaded
//! from data.

use crate::bounds::analysis::{Analysis, Environment};
use crate::bounds::regions::Given;
use crate::bounds::span::{IntSpan, Span};
use crate::ids::{FuncId, IdVec, InputId, ParamId};
use crate::pipeline::Pipeline;
use crate::region::Range;
use crate::types::Type;

/// The span of each value of each Func.
pub(crate) type Values = IdVec<FuncId, Vec<Span>>;

/// The updates of a Func are iterated this often to find a fixed point; after that its values count
/// as unbounded.
const ROUNDS: usize = 4;

/// The environment of one stage at an arbitrary point.
struct Anywhere<'a> {
    given: &'a Given,
    domain: &'a [Range],
    values: &'a Values,
    own: (FuncId, &'a [Span]),
}

impl Environment for Anywhere<'_> {
    fn var(&self, _dimension: usize) -> IntSpan {
        IntSpan::of_type(Type::I32)
    }
    fn rvar(&self, index: usize) -> IntSpan {
        let range = self.domain[index];
        IntSpan::fixed(range.min, range.last().max(range.min))
    }
    fn param(&self, param: ParamId) -> Span {
        self.given.params[param]
    }
    fn input_min(&self, input: InputId, dimension: usize) -> IntSpan {
        self.given.input_spans(input, dimension).0
    }
    fn input_extent(&self, input: InputId, dimension: usize) -> IntSpan {
        self.given.input_spans(input, dimension).1
    }
    fn value(&self, func: FuncId, value: usize, _ty: Type) -> Span {
        if func == self.own.0 { self.own.1[value] } else { self.values[func][value] }
    }
}

/// The spans of all Funcs' values, computed producers first.
pub(crate) fn value_spans(pipeline: &Pipeline, given: &Given) -> Values {
    let mut values: Values = IdVec::new();
    for id in pipeline.funcs.keys() {
        let spans = func_spans(pipeline, given, id, &values);
        values.push(spans);
    }
    values
}

fn func_spans(pipeline: &Pipeline, given: &Given, id: FuncId, values: &Values) -> Vec<Span> {
    let func = &pipeline.funcs[id];
    let unbounded: Vec<Span> = func.types.iter().map(|ty| Span::of_type(*ty)).collect();
    let stage_spans = |number: usize, own: &[Span]| -> Vec<Span> {
        let stage = &func.stages[number];
        let domain = given.domain(pipeline, stage);
        let environment = Anywhere { given, domain: &domain, values, own: (id, own) };
        let analysis = Analysis::new(&pipeline.exprs, &environment, stage.roots());
        stage.values.iter().map(|value| analysis.span(*value)).collect()
    };
    if func.stages[0].values.is_empty() {
        return unbounded;
    }
    let mut spans = stage_spans(0, &unbounded);
    for _ in 0..ROUNDS {
        let mut next = spans.clone();
        for number in 1..func.stages.len() {
            for (span, new) in next.iter_mut().zip(stage_spans(number, &spans)) {
                *span = span.union(&new);
            }
        }
        if next == spans {
            return spans;
        }
        spans = next;
    }
    unbounded
}
