//! The constraints of one statement and their solution.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use warploom_lang::Type;
use warploom_lang::brief::{quoted, shown};

use super::{Clamped, Interval, Ranges, Shapes};
use crate::ast::{Assign, Clause, Expr, ExprKind, Statement};
use crate::check::{Checked, declared_type};
use crate::error::{Fault, Mistake};
use crate::formula::{Formula, Numbers};
use crate::linear::{Forms, Guarded, IndexForm, Linear, MAX_LENGTH, interval};
use crate::names::{Lets, Meaning};
use crate::source::Span;

/// A read, with the conditions of the choices around it.
struct Access<'a> {
    tensor: &'a str,
    /// The place of the whole read.
    span: Span,
    /// The index of one dimension.
    index: Option<&'a Expr>,
    dimension: usize,
    guards: Option<Rc<Guard<'a>>>,
}

struct Guard<'a> {
    condition: Guarded<'a>,
    outer: Option<Rc<Guard<'a>>>,
}

/// `form >= 0`, because of an access.
struct Constraint {
    form: Linear,
    access: usize,
}

/// The problem of one statement.
pub(super) struct Problem<'a> {
    checked: &'a Checked,
    number: usize,
    statement: &'a Statement,
    numbers: &'a Numbers,
    shapes: &'a Shapes,
    lets: Lets<'a>,
    accesses: Vec<Access<'a>>,
}

/// The ranges that were found, and the indices without one.
pub(super) struct Solution {
    pub ranges: BTreeMap<String, Interval>,
    pub unsolved: Vec<String>,
}

type Solved = BTreeMap<String, Interval>;

impl<'a> Problem<'a> {
    pub fn new(checked: &'a Checked, number: usize, numbers: &'a Numbers, shapes: &'a Shapes) -> Problem<'a> {
        let statement = &checked.def.statements[number];
        let lets = Lets::of(statement);
        let mut problem = Problem { checked, number, statement, numbers, shapes, lets, accesses: Vec::new() };
        let mut walk = vec![&statement.value];
        for clause in &statement.clauses {
            if let Clause::Exists(value) = clause {
                walk.push(value);
            }
        }
        let mut seen = HashSet::new();
        for expr in walk {
            problem.collect(expr, None, &mut seen);
        }
        if let Assign::Reduce { initialised: false, .. } = statement.assign {
            problem.own_access();
        }
        problem
    }

    /// Records the reads in an expression. The body of a let is visited once, without conditions.
    fn collect(&mut self, expr: &'a Expr, guards: Option<Rc<Guard<'a>>>, seen: &mut HashSet<usize>) {
        match &expr.kind {
            ExprKind::Name(name) => {
                if let Meaning::Let(number) = self.checked.names.meaning(&self.lets, &name.text)
                    && seen.insert(number)
                {
                    let value = self.lets.values[number];
                    self.collect(value, None, seen);
                }
                return;
            }
            ExprKind::Call(name, operands) if self.checked.names.ranks.contains_key(&name.text) => {
                for (dimension, index) in operands.iter().enumerate() {
                    let access = Access {
                        tensor: &name.text,
                        span: expr.span,
                        index: Some(index),
                        dimension,
                        guards: guards.clone(),
                    };
                    self.accesses.push(access);
                }
            }
            ExprKind::Select(operands) => {
                self.collect(&operands[0], guards.clone(), seen);
                for (arm, holds) in [(1, true), (2, false)] {
                    let guard = Guard { condition: (&operands[0], holds), outer: guards.clone() };
                    self.collect(&operands[arm], Some(Rc::new(guard)), seen);
                }
                return;
            }
            _ => {}
        }
        for operand in expr.operands() {
            self.collect(operand, guards.clone(), seen);
        }
    }

    /// The read of the target that an update makes.
    fn own_access(&mut self) {
        for dimension in 0..self.statement.indices.len() {
            let (tensor, span) = (self.statement.target.text.as_str(), self.statement.target.span);
            self.accesses.push(Access { tensor, span, index: None, dimension, guards: None });
        }
    }

    fn with_forms<T>(&self, body: impl FnOnce(&Forms<'_>) -> T) -> T {
        let is_integer = |name: &str| {
            let ty = declared_type(&self.checked.def, &self.checked.names, name);
            self.checked.names.is_scalar(name) && matches!(ty, Some(Type::I32 | Type::I64))
        };
        let size = |tensor: &str, dimension: usize| Some(self.shapes.get(tensor)?.get(dimension)?.extent());
        body(&Forms::new(&self.checked.names, &self.lets, &is_integer, &size))
    }

    fn form(&self, forms: &Forms<'_>, access: &Access<'_>) -> IndexForm {
        match access.index {
            Some(index) => forms.of(index),
            None => IndexForm::Linear(Linear::index(&self.statement.indices[access.dimension].text)),
        }
    }

    /// The bounds of the dimension that an access reads; `None` if it has no shape yet.
    fn bounds(&self, access: &Access<'_>) -> Option<&Interval> {
        self.shapes.get(access.tensor)?.get(access.dimension)
    }

    fn constraints(&self, forms: &Forms<'_>) -> Vec<Constraint> {
        let mut constraints = Vec::new();
        for (number, access) in self.accesses.iter().enumerate() {
            let Some(Interval { low, high }) = self.bounds(access) else { continue };
            let (form, low, high) = match self.form(forms, access) {
                IndexForm::Linear(form) => (form, low.clone(), high.clone()),
                IndexForm::Floor(form, by) => (form, low.scaled(by), high.scaled(by).add(by - 1)),
                IndexForm::Opaque => continue,
            };
            let above = form.minus(&Linear::of(low));
            let below = Linear::of(high).minus(&form);
            constraints.extend([above, below].map(|form| Constraint { form, access: number }));
        }
        constraints
    }

    /// Whether a range can follow for this index.
    pub fn is_constrained(&self, index: &str) -> bool {
        let ranged =
            |clause: &Clause| matches!(clause, Clause::Range { index: name, .. } if name.text == index);
        let uses = |access: &Access<'_>, forms: &Forms<'_>| match self.form(forms, access) {
            IndexForm::Linear(form) | IndexForm::Floor(form, _) => form.terms.contains_key(index),
            IndexForm::Opaque => false,
        };
        self.statement.clauses.iter().any(ranged)
            || self.with_forms(|forms| {
                self.accesses.iter().any(|access| self.bounds(access).is_some() && uses(access, forms))
            })
    }

    /// Solves as many indices as possible.
    pub fn solve(&self, known: Solved) -> Result<Solution, Box<Mistake>> {
        self.with_forms(|forms| {
            let mut solved = known;
            self.given(forms, &mut solved)?;
            let constraints = self.constraints(forms);
            let mut open = self.indices();
            loop {
                open.retain(|name| !solved.contains_key(name));
                let found = self.round(&constraints, &solved, &open)?;
                if found.is_empty() {
                    return Ok(Solution { ranges: solved, unsolved: open });
                }
                solved.extend(found);
            }
        })
    }

    /// Solves everything, and checks every read.
    pub fn solve_whole(&self, known: Solved) -> Result<Ranges, Box<Mistake>> {
        let Solution { ranges, unsolved } = self.solve(known)?;
        if !unsolved.is_empty() {
            return Err(Box::new(self.unsolved(&unsolved)));
        }
        let clamped = self.with_forms(|forms| self.verify(forms, &ranges))?;
        Ok(Ranges { of: ranges, clamped })
    }

    /// All indices: those on the left, then the reduction variables.
    fn indices(&self) -> Vec<String> {
        let left = self.statement.indices.iter().map(|index| index.text.clone());
        left.chain(self.checked.reduced[self.number].iter().cloned()).collect()
    }

    /// The ranges of `where` clauses.
    fn given(&self, forms: &Forms<'_>, solved: &mut Solved) -> Result<(), Box<Mistake>> {
        for clause in &self.statement.clauses {
            let Clause::Range { index, low, high } = clause else { continue };
            let formula = |bound: &Expr| {
                let name = quoted(&bound.to_string()).into_owned();
                forms.formula(bound).ok_or_else(|| fail(bound.span, Fault::RangeBound { name }))
            };
            let interval = Interval { low: formula(low)?, high: formula(high)?.add(-1) };
            self.filled(&index.text, &interval, index.span, || format!("{} in {low}:{high}", index.text))?;
            solved.insert(index.text.clone(), interval);
        }
        Ok(())
    }

    /// Refuses an empty interval.
    fn filled(
        &self,
        variable: &str,
        interval: &Interval,
        span: Span,
        constraints: impl Fn() -> String,
    ) -> Result<(), Box<Mistake>> {
        match interval.at(self.numbers) {
            None => Err(fail(span, Fault::Overflow)),
            Some((low, high)) if low > high => {
                let constraints = format!("{} gives {low}:{}", constraints(), high + 1);
                Err(fail(span, Fault::Empty { variable: variable.to_string(), constraints }))
            }
            Some(_) => Ok(()),
        }
    }

    /// The indices that are alone in constraints that bound them on both sides.
    fn round(
        &self,
        constraints: &[Constraint],
        solved: &Solved,
        open: &[String],
    ) -> Result<Solved, Box<Mistake>> {
        type Side = Option<Formula>;
        let mut sides: BTreeMap<String, (Side, Side)> = BTreeMap::new();
        for constraint in constraints {
            let form = self.least(&constraint.form, solved).ok_or_else(|| self.overflow())?;
            let mut terms = form.terms.iter();
            let (Some((name, factor)), None) = (terms.next(), terms.next()) else { continue };
            let sign = factor.at(self.numbers).ok_or_else(|| self.overflow())?;
            let (low, high) = sides.entry(name.clone()).or_default();
            if sign > 0 {
                let bound = form.constant.floor_div(factor).scaled(-1);
                *low = Some(low.take().map_or(bound.clone(), |low| low.larger(&bound)));
            } else {
                let bound = form.constant.floor_div(&factor.scaled(-1));
                *high = Some(high.take().map_or(bound.clone(), |high| high.smaller(&bound)));
            }
        }
        let mut found = Solved::new();
        for (name, side) in sides {
            let (Some(low), Some(high)) = side else { continue };
            if !open.contains(&name) {
                continue;
            }
            let interval = Interval { low: self.brief(low)?, high: self.brief(high)? };
            self.filled(&name, &interval, self.statement.target.span, || self.about(&name))?;
            found.insert(name, interval);
        }
        Ok(found)
    }

    /// A formula, as a number if it is long.
    fn brief(&self, formula: Formula) -> Result<Formula, Box<Mistake>> {
        if formula.length() <= MAX_LENGTH {
            return Ok(formula);
        }
        formula.at(self.numbers).map(Formula::number).ok_or_else(|| self.overflow())
    }

    fn overflow(&self) -> Box<Mistake> {
        fail(self.statement.target.span, Fault::Overflow)
    }

    /// The smallest value of a form over the solved indices, as a form over the others.
    fn least(&self, form: &Linear, solved: &Solved) -> Option<Linear> {
        let mut least = Linear::of(form.constant.clone());
        for (name, factor) in &form.terms {
            let sign = factor.at(self.numbers)?;
            match solved.get(name) {
                _ if sign == 0 => {}
                None => drop(least.terms.insert(name.clone(), factor.clone())),
                Some(Interval { low, high }) => {
                    let end = if sign > 0 { low } else { high };
                    least.constant = least.constant.plus(&end.times(factor));
                }
            }
        }
        Some(least)
    }

    /// The smallest value of a form whose indices are all solved; `None` if it has none.
    fn least_number(&self, form: &Linear, solved: &Solved) -> Option<i64> {
        let least = self.least(form, solved)?;
        if least.terms.is_empty() { least.constant.at(self.numbers) } else { None }
    }

    /// Checks that all reads are in bounds. Returns the reads that only a condition keeps in bounds.
    fn verify(&self, forms: &Forms<'_>, solved: &Solved) -> Result<Clamped, Box<Mistake>> {
        let mut clamped = Clamped::new();
        for constraint in self.constraints(forms) {
            let access = &self.accesses[constraint.access];
            if self.least_number(&constraint.form, solved).is_some_and(|least| least >= 0) {
                continue;
            }
            if !self.is_implied(forms, access, &constraint.form, solved) {
                return Err(self.out_of_bounds(forms, access, solved));
            }
            clamped.insert((access.span.ends(), access.dimension));
        }
        for access in &self.accesses {
            let Some(index) = access.index else { continue };
            if matches!(forms.of(index), IndexForm::Opaque) && !self.checked.names.loads(&self.lets, index) {
                let inside = self.reached(forms, access, solved).zip(self.allowed(access));
                if !inside.is_some_and(|((low, high), (first, last))| first <= low && high <= last) {
                    return Err(self.out_of_bounds(forms, access, solved));
                }
            }
        }
        Ok(clamped)
    }

    /// Whether the conditions around an access make a form at least 0.
    fn is_implied(&self, forms: &Forms<'a>, access: &Access<'a>, form: &Linear, solved: &Solved) -> bool {
        let mut facts = Vec::new();
        let mut guard = access.guards.as_ref();
        while let Some(inner) = guard {
            forms.facts(inner.condition, &mut facts);
            guard = inner.outer.as_ref();
        }
        facts.iter().any(|fact| self.least_number(&form.minus(fact), solved).is_some_and(|least| least >= 0))
    }

    /// The smallest and the largest index of an access.
    fn reached(&self, forms: &Forms<'_>, access: &Access<'_>, solved: &Solved) -> Option<(i64, i64)> {
        if let IndexForm::Linear(form) = self.form(forms, access) {
            let least = self.least_number(&form, solved)?;
            return Some((least, -self.least_number(&form.scaled(-1), solved)?));
        }
        let ends = |(name, interval): (&String, &Interval)| Some((name.clone(), interval.at(self.numbers)?));
        let indices: BTreeMap<String, (i64, i64)> = solved.iter().filter_map(ends).collect();
        let mut lets = Vec::new();
        for value in &self.lets.values {
            let found = interval(forms, value, self.numbers, &indices, &lets);
            lets.push(found);
        }
        interval(forms, access.index?, self.numbers, &indices, &lets)
    }

    fn allowed(&self, access: &Access<'_>) -> Option<(i64, i64)> {
        self.bounds(access)?.at(self.numbers)
    }

    fn out_of_bounds(&self, forms: &Forms<'_>, access: &Access<'_>, solved: &Solved) -> Box<Mistake> {
        let text = |ends: Option<(i64, i64)>| match ends {
            Some((low, high)) if low == high => format!("{low}"),
            Some((low, high)) => format!("{low} to {high}"),
            None => "an unknown number".to_string(),
        };
        let index = access.index.map_or_else(
            || self.statement.indices[access.dimension].text.clone(),
            |index| quoted(&index.to_string()).into_owned(),
        );
        let fault = Fault::OutOfBounds {
            tensor: access.tensor.to_string(),
            dimension: access.dimension,
            access: format!("`{index}`"),
            reached: text(self.reached(forms, access, solved)),
            allowed: text(self.allowed(access)),
        };
        fail(access.index.map_or(access.span, |index| index.span), fault)
    }

    /// The reads that constrain an index, as one text.
    fn about(&self, variable: &str) -> String {
        self.with_forms(|forms| {
            let about = |access: &&Access<'_>| match self.form(forms, access) {
                IndexForm::Linear(form) | IndexForm::Floor(form, _) => form.terms.contains_key(variable),
                IndexForm::Opaque => false,
            };
            let reads: Vec<String> =
                self.accesses.iter().filter(about).filter_map(|access| self.text(access)).collect();
            shown(&reads, " and ")
        })
    }

    /// `0 <= i + x <= M - 1`
    fn text(&self, access: &Access<'_>) -> Option<String> {
        let Interval { low, high } = self.bounds(access)?;
        let index = match access.index {
            Some(index) => quoted(&index.to_string()).into_owned(),
            None => self.statement.indices[access.dimension].text.clone(),
        };
        Some(format!("{low} <= {index} <= {high}"))
    }

    fn unsolved(&self, unsolved: &[String]) -> Mistake {
        let mut constraints = Vec::new();
        for text in unsolved.iter().map(|variable| self.about(variable)).filter(|text| !text.is_empty()) {
            if !constraints.contains(&text) {
                constraints.push(text);
            }
        }
        let constraints = match constraints.is_empty() {
            true => String::new(),
            false => format!(" ({})", shown(&constraints, "; ")),
        };
        let names: Vec<String> = unsolved.iter().map(|name| format!("`{name}`")).collect();
        let fault = Fault::Unsolved {
            variables: shown(&names, ", "),
            constraints,
            one: if unsolved.len() == 1 { "it" } else { "some" },
            first: unsolved.last().cloned().unwrap_or_default(),
        };
        Mistake::new(self.statement.target.span, fault)
    }
}

fn fail(span: Span, fault: Fault) -> Box<Mistake> {
    Box::new(Mistake::new(span, fault))
}
