//! Lowers a checked definition with ranges to a pipeline.
//!
//! The notation is row-major and Warploom's first index is the fastest, so all index lists are
//! reversed. Every statement makes a new version of its tensor; readers see the version before
//! them. A reduction over a tensor that nobody has read becomes one more stage of the same Func.

mod expr;
mod gather;
mod value;

use std::collections::{BTreeSet, HashMap};

use warploom_lang::{Expr, Func, Input, Operand, Param, Pipeline, RDom, RRange, Type, Value, Var, func};

use crate::ast::{Assign, Reduction, Statement};
use crate::check::{Checked, Stored};
use crate::error::{Fault, Mistake};
use crate::formula::Formula;
use crate::names::{Lets, default_value, element_type};
use crate::ranges::{Inferred, Ranges};

pub(crate) use value::convert;

use expr::StatementScope;
use value::Lowered;

/// The pipeline of a definition.
pub(crate) fn pipeline(checked: &Checked, inferred: &Inferred) -> Result<Pipeline, Mistake> {
    let mut lowering = Lowering::new(checked, inferred);
    for number in 0..checked.def.statements.len() {
        lowering.statement(number)?;
    }
    let outputs: Vec<Func> =
        checked.def.results.iter().filter_map(|result| lowering.output(&result.name.text)).collect();
    let definition = checked.def.name.text.clone();
    Pipeline::new(definition.clone(), outputs).map_err(|error| {
        let message = error.diagnostics.first().map_or(String::new(), |first| first.fault.to_string());
        Mistake::new(checked.def.name.span, Fault::Refused { definition, message })
    })
}

/// One version of a tensor.
struct Version {
    values: Values,
    ty: Type,
    /// Whether a later statement reads it.
    read: bool,
}

enum Values {
    Input(Input),
    Param(Param),
    /// A Func over these variables, in the notation's order. `start` is the value of a Func without updates. A Func
    /// with updates holds floats of 16 bits as `f32`, which its readers round.
    Func {
        func: Func,
        vars: Vec<Var>,
        start: Option<Lowered>,
    },
}

struct Lowering<'a> {
    checked: &'a Checked,
    inferred: &'a Inferred,
    versions: HashMap<String, Version>,
    /// The inputs, by the positions of their parameters; `None` for scalars.
    inputs: Vec<Option<Input>>,
    scalars: HashMap<String, Param>,
    /// The number of Funcs with each name.
    named: HashMap<String, usize>,
    /// The gathers of the current statement, by the ends of their texts.
    gathers: HashMap<(u32, u32), Func>,
}

impl<'a> Lowering<'a> {
    fn new(checked: &'a Checked, inferred: &'a Inferred) -> Lowering<'a> {
        let (mut versions, mut inputs, mut scalars) = (HashMap::new(), Vec::new(), HashMap::new());
        for param in &checked.def.params {
            let (name, ty) = (&param.name.text, element_type(param));
            let outside = checked.names.outside(name);
            let values = match param.ty.dims.len() {
                0 => {
                    let scalar = Param::new(outside, ty);
                    let scalar = match default_value(param) {
                        Some(value) => scalar.default(value),
                        None => scalar,
                    };
                    scalars.insert(name.clone(), scalar.clone());
                    inputs.push(None);
                    Values::Param(scalar)
                }
                rank => {
                    let input = Input::new(outside, ty, rank);
                    inputs.push(Some(input.clone()));
                    Values::Input(input)
                }
            };
            versions.insert(name.clone(), Version { values, ty, read: false });
        }
        Lowering {
            checked,
            inferred,
            versions,
            inputs,
            scalars,
            named: HashMap::new(),
            gathers: HashMap::new(),
        }
    }

    /// The expression of a size, or of a scalar that ranges depend on.
    fn symbol(&self, name: &str) -> Expr {
        let size = self.checked.names.sizes.get(name);
        if let Some(size) = size
            && let Some(input) = &self.inputs[size.param]
        {
            return input.extent(input.dimensions() - 1 - size.dimension);
        }
        match self.scalars.get(name) {
            Some(scalar) => convert(Expr::from(scalar), Type::I32),
            None => Expr::from(0),
        }
    }

    fn formula(&self, formula: &Formula, statement: &Statement) -> Result<Expr, Mistake> {
        let found = formula.expr(&|name| self.symbol(name));
        found.ok_or_else(|| Mistake::new(statement.target.span, Fault::Overflow))
    }

    fn statement(&mut self, number: usize) -> Result<(), Mistake> {
        let (checked, inferred) = (self.checked, self.inferred);
        let (statement, ranges) = (&checked.def.statements[number], &inferred.statements[number]);
        let (reduced, stored) = (&checked.reduced[number], checked.stored[number]);
        match statement.assign {
            Assign::Reduce { op, initialised } if !reduced.is_empty() => {
                self.reduction(statement, ranges, reduced, (op, initialised), stored)
            }
            assign => self.pointwise(statement, ranges, assign, stored),
        }
    }

    /// Converts the literals that an update starts from to the type of the tensor.
    fn settle(&mut self, name: &str, Stored { ty, settles, .. }: Stored) {
        let version = self.versions.get(name).filter(|version| settles && version.ty != ty);
        let values = version.map(|version| &version.values);
        if let Some(Values::Func { vars, start: Some(start), .. }) = values {
            let (vars, value) = (vars.clone(), start.at(ty));
            self.define(name, vars, value.into(), ty);
        }
    }

    /// Makes a new version of a tensor, without updates.
    fn define(&mut self, name: &str, vars: Vec<Var>, value: Lowered, ty: Type) {
        let func = func(self.fresh(name, "value"), reversed(&vars), value.at(ty));
        let values = Values::Func { func, vars, start: Some(value) };
        self.versions.insert(name.to_string(), Version { values, ty, read: false });
    }

    /// A statement without reduction variables: a new Func.
    fn pointwise(
        &mut self,
        statement: &'a Statement,
        ranges: &'a Ranges,
        assign: Assign,
        stored: Stored,
    ) -> Result<(), Mistake> {
        let Stored { ty, widened, open, .. } = stored;
        let name = statement.target.text.as_str();
        let vars = variables(statement);
        let indices =
            statement.indices.iter().zip(&vars).map(|(index, var)| (index.text.as_str(), Expr::from(*var)));
        let mut value = self.value(statement, ranges, indices.collect(), widened)?;
        if let Assign::Reduce { op, initialised: false } = assign {
            self.settle(name, stored);
            let old = self.read(name, vars.iter().map(|var| Expr::from(*var)).collect());
            let (old, new) = (convert(old, ty.accumulator()), value.at(ty.accumulator()));
            value = expr::reduce(op, old, new).into();
        }
        self.define(name, vars, if open { value } else { value.at(ty).into() }, ty);
        Ok(())
    }

    /// A statement with reduction variables: a Func with an update.
    fn reduction(
        &mut self,
        statement: &'a Statement,
        ranges: &'a Ranges,
        reduced: &'a [String],
        (op, initialised): (Reduction, bool),
        stored: Stored,
    ) -> Result<(), Mistake> {
        let Stored { ty, widened, .. } = stored;
        let name = statement.target.text.as_str();
        if !initialised {
            self.settle(name, stored);
        }
        let old = if initialised { None } else { self.versions.get(name) };
        let vars = match old.map(|old| &old.values) {
            Some(Values::Func { vars, .. }) => vars.clone(),
            _ => variables(statement),
        };
        let domain = self.domain(statement, ranges, reduced, &vars)?;
        let left =
            statement.indices.iter().zip(&vars).map(|(index, var)| (index.text.as_str(), Expr::from(*var)));
        let last = reduced.len() - 1;
        let right =
            reduced.iter().enumerate().map(|(i, index)| (index.as_str(), Expr::from(domain.var(last - i))));
        let value = self.value(statement, ranges, left.chain(right).collect(), widened)?;
        let value = value.at(ty.accumulator());
        let start = self.start(name, &vars, ty, op, initialised);
        let at: Vec<Expr> = reversed(&vars).into_iter().map(Expr::from).collect();
        let mut func = start.over(&domain, |f| match op {
            Reduction::Sum => f.add(at, value),
            Reduction::Product => f.mul(at, value),
            Reduction::Min => f.min(at, value),
            Reduction::Max => f.max(at, value),
        });
        // Integers, minima and maxima are exact in any order and need no mark.
        if ty.is_float() && matches!(op, Reduction::Sum | Reduction::Product) {
            func = func.reassociate();
        }
        self.versions.insert(
            name.to_string(),
            Version { values: Values::Func { func, vars, start: None }, ty, read: false },
        );
        Ok(())
    }

    /// The Func that a reduction updates.
    fn start(&mut self, name: &str, vars: &[Var], ty: Type, op: Reduction, initialised: bool) -> Func {
        let what = match op {
            Reduction::Sum => "sum",
            Reduction::Product => "product",
            Reduction::Min => "min",
            Reduction::Max => "max",
        };
        let sum = ty.accumulator();
        let neutral = match op {
            Reduction::Sum => Value::zero(sum),
            Reduction::Product => Value::one(sum),
            Reduction::Min => Value::largest(sum),
            Reduction::Max => Value::smallest(sum),
        };
        let value = match self.versions.get(name) {
            _ if initialised => Expr::from(neutral),
            // Nobody has read the old version, so it needs no array of its own.
            Some(Version { values: Values::Func { start: Some(start), .. }, read: false, .. }) => {
                convert(start.alone(), sum)
            }
            Some(Version { values: Values::Func { func, start: None, .. }, read: false, ty: old })
                if *old == ty && sum == ty =>
            {
                return func.clone();
            }
            _ => convert(self.read(name, vars.iter().map(|var| Expr::from(*var)).collect()), sum),
        };
        let name = self.fresh(name, what);
        func(name, reversed(vars), value)
    }

    /// The domain of the reduction variables; the last one found is the fastest.
    fn domain(
        &self,
        statement: &Statement,
        ranges: &Ranges,
        reduced: &[String],
        vars: &[Var],
    ) -> Result<RDom, Mistake> {
        let mut taken: BTreeSet<String> = vars.iter().map(|var| var.name().to_string()).collect();
        let mut dimensions = Vec::new();
        for index in reduced.iter().rev() {
            let mut name = index.clone();
            while !taken.insert(name.clone()) {
                name.push('_');
            }
            let Some(interval) = ranges.of.get(index) else { continue };
            let low = self.formula(&interval.low, statement)?;
            let extent = self.formula(&interval.extent(), statement)?;
            dimensions.push(RRange::new(name, low, extent));
        }
        Ok(RDom::new(dimensions))
    }

    /// The right side of a statement.
    fn value(
        &mut self,
        statement: &'a Statement,
        ranges: &'a Ranges,
        indices: HashMap<&'a str, Expr>,
        widened: bool,
    ) -> Result<Lowered, Mistake> {
        let lets = Lets::of(statement);
        self.gathers.clear();
        let is_reduction = indices.len() > statement.indices.len();
        let plain_indices = indices.keys().map(|index| (*index, Expr::from(Var::new(index)))).collect();
        let empty = |indices, plain| StatementScope {
            lets: &lets,
            known: Vec::new(),
            indices,
            clamped: &ranges.clamped,
            statement,
            widened,
            plain,
        };
        let plain = match is_reduction {
            true => Some(self.with_lets(empty(plain_indices, None))?),
            false => None,
        };
        let scope = self.with_lets(empty(indices, plain.as_ref()))?;
        self.expr(&statement.value, &scope)
    }

    /// Adds the values of the lets to the scope of a statement.
    fn with_lets<'s>(&mut self, mut scope: StatementScope<'s>) -> Result<StatementScope<'s>, Mistake> {
        for value in &scope.lets.values {
            let value = self.expr(value, &scope)?;
            scope.known.push(value);
        }
        Ok(scope)
    }

    /// The value of the current version of a tensor at these indices, in the notation's order.
    fn read(&mut self, name: &str, mut indices: Vec<Expr>) -> Expr {
        indices.reverse();
        let Some(version) = self.versions.get_mut(name) else { return Expr::from(0) };
        version.read = true;
        match &version.values {
            Values::Input(input) => input.at(indices),
            Values::Param(param) => Expr::from(param),
            Values::Func { func, .. } => func.at(indices).cast(version.ty),
        }
    }

    /// The Func of a result. A tensor that is reduced or read elsewhere stays an inner Func, which the output copies,
    /// so that its readers can be fused with it.
    fn output(&mut self, name: &str) -> Option<Func> {
        let version = self.versions.get(name)?;
        let Values::Func { func: found, vars, start } = &version.values else { return None };
        if start.is_some() && !version.read {
            return Some(found.named(name));
        }
        let at: Vec<Expr> = reversed(vars).into_iter().map(Expr::from).collect();
        Some(func(name, reversed(vars), found.at(at).cast(version.ty)))
    }

    /// A name for the next Func of a tensor: `C.sum`, `C.sum2`. No name of the notation has a dot.
    fn fresh(&mut self, tensor: &str, what: &str) -> String {
        let name = format!("{tensor}.{what}");
        let count = self.named.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { name } else { format!("{name}{count}") }
    }
}

fn variables(statement: &Statement) -> Vec<Var> {
    statement.indices.iter().map(|index| Var::new(&index.text)).collect()
}

fn reversed(vars: &[Var]) -> Vec<Var> {
    vars.iter().rev().copied().collect()
}
