//! The positions of a stage's variables, and what the stage can read.

use warploom_lang::bounds::{Environment, IntSpan, Span};
use warploom_lang::{Facts, FuncId, InputId, ParamId, Type};

use crate::reach::Reach;

/// The reach of each variable of a stage.
#[derive(Clone, Debug)]
pub(crate) struct VariableReaches {
    pub vars: Vec<Reach>,
    pub rvars: Vec<Reach>,
}

/// Spans of a stage's variables, and the facts of a realisation.
pub(crate) struct Spans<'a> {
    pub facts: &'a Facts,
    pub vars: Vec<IntSpan>,
    pub rvars: Vec<IntSpan>,
}

impl Environment for Spans<'_> {
    fn var(&self, dimension: usize) -> IntSpan {
        self.vars[dimension]
    }
    fn rvar(&self, index: usize) -> IntSpan {
        self.rvars[index]
    }
    fn param(&self, param: ParamId) -> Span {
        self.facts.params[param]
    }
    fn input_min(&self, input: InputId, dimension: usize) -> IntSpan {
        self.facts.input_min(input, dimension)
    }
    fn input_extent(&self, input: InputId, dimension: usize) -> IntSpan {
        self.facts.input_extent(input, dimension)
    }
    fn value(&self, func: FuncId, value: usize, _ty: Type) -> Span {
        self.facts.values[func][value]
    }
}
