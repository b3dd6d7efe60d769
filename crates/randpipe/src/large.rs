//! Pipelines with any number of Funcs, for tests and benchmarks of how the compiler scales.

use warploom_lang::{Expr, Func, Input, Pipeline, PipelineError, Realisation, Region, func, vars};

/// The dependence graph of a large pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// Each Func reads the previous one at its own point.
    Chain,
    /// Each Func reads the previous two. Fully inlined, the last one is exponentially large.
    Fibonacci,
    /// All Funcs read the input, and one Func reads all of them.
    Fan,
    /// Each Func reads two neighbours of the previous one.
    Stencils,
}

impl Shape {
    /// All shapes, in declaration order.
    pub const ALL: [Shape; 4] = [Shape::Chain, Shape::Fibonacci, Shape::Fan, Shape::Stencils];

    /// The name in lower case, for tests and benchmarks.
    pub fn name(self) -> &'static str {
        match self {
            Shape::Chain => "chain",
            Shape::Fibonacci => "fibonacci",
            Shape::Fan => "fan",
            Shape::Stencils => "stencils",
        }
    }

    /// A pipeline with this many Funcs, and sizes at which it can run.
    ///
    /// # Errors
    ///
    /// If the pipeline exceeds a limit of the language.
    pub fn pipeline(self, funcs: usize) -> Result<(Pipeline, Realisation), PipelineError> {
        let (x, y) = vars!(x, y);
        let input = Input::f32("input", 2);
        let mut made: Vec<Func> = Vec::with_capacity(funcs);
        for number in 0..funcs {
            let before = |back: usize| match number.checked_sub(back) {
                Some(earlier) if self != Shape::Fan => made[earlier].at((x, y)),
                _ => input.at((x, y)),
            };
            let value = match (self, made.last()) {
                (Shape::Fan, _) if number + 1 == funcs => sum(&made, x.into(), y.into()),
                (Shape::Fan, _) => before(1) * (number as f32),
                (Shape::Chain, _) => before(1) * 0.5 + 1.0,
                (Shape::Fibonacci, _) => before(1) + before(2),
                (Shape::Stencils, None) => input.at((x, y)) + input.at((x + 2, y)),
                (Shape::Stencils, Some(last)) => last.at((x, y)) + last.at((x + 2, y)),
            };
            made.push(func(format!("f{number}"), (x, y), value));
        }
        let output = format!("f{}", funcs.saturating_sub(1));
        let pipeline = Pipeline::new(self.name(), made.pop())?;
        let margin = if self == Shape::Stencils { 2 * funcs as i64 } else { 0 };
        let request = Realisation::new(&pipeline)
            .input("input", Region::of_extents(&[512 + margin, 256]))
            .output(&output, Region::of_extents(&[512, 256]));
        Ok((pipeline, request))
    }
}

/// The sum of some Funcs, as a balanced tree.
fn sum(funcs: &[Func], x: Expr, y: Expr) -> Expr {
    let mut terms: Vec<Expr> = funcs.iter().map(|func| func.at((x.clone(), y.clone()))).collect();
    while terms.len() > 1 {
        let pair = |pair: &[Expr]| match pair {
            [a, b] => a + b,
            rest => rest[0].clone(),
        };
        terms = terms.chunks(2).map(pair).collect();
    }
    terms.pop().unwrap_or_else(|| Expr::from(0.0))
}
