//! Range inference: from the shapes of a statement's operands to the ranges of its indices.
//!
//! Ranges are solved in rounds. A round takes every index that is alone in some constraints and gives it the largest
//! interval on which these hold; then the solved indices are eliminated from all other constraints so that these hold
//! for all their values. There is no search among alternatives, so the order of indices has no effect.

mod statement;

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::ast::{Dim, Statement, TensorType};
use crate::check::{Checked, each_name};
use crate::error::{Fault, Mistake, Mistakes};
use crate::formula::{Formula, Numbers};

use statement::{Problem, Solution};

/// The integers from `low` to `high`, both included.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub low: Formula,
    pub high: Formula,
}

impl Interval {
    fn of_size(size: Formula) -> Interval {
        Interval { low: Formula::default(), high: size.add(-1) }
    }

    pub fn extent(&self) -> Formula {
        self.high.add(1).minus(&self.low)
    }

    /// Both ends at these sizes.
    pub fn at(&self, numbers: &Numbers) -> Option<(i64, i64)> {
        Some((self.low.at(numbers)?, self.high.at(numbers)?))
    }
}

/// Reads inside a choice whose index must be clamped: the place of the read, and the dimension.
pub(crate) type Clamped = HashSet<((u32, u32), usize)>;

/// The ranges of the indices of one statement.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    pub of: BTreeMap<String, Interval>,
    pub clamped: Clamped,
}

/// The shapes of all tensors that have a value.
pub(crate) type Shapes = HashMap<String, Vec<Interval>>;

/// The ranges of all statements.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inferred {
    pub statements: Vec<Ranges>,
    /// The shapes of all tensors. A tensor keeps its shape, however often it is written.
    pub shapes: Shapes,
}

/// Infers the ranges of all statements at some sizes. The sizes decide signs and emptiness; the ranges themselves are
/// formulas. Reports the mistakes of all statements.
pub(crate) fn infer(checked: &Checked, numbers: &Numbers, mistakes: &mut Mistakes) -> Inferred {
    let mut inferred = Inferred::default();
    for param in &checked.def.params {
        inferred.shapes.insert(param.name.text.clone(), declared_shape(&param.ty));
    }
    let next = next_writes(&checked.def.statements);
    // A statement that reads a tensor without a range has no basis, so its mistakes are mere consequences.
    let mut failed: HashSet<&str> = HashSet::new();
    for (number, statement) in checked.def.statements.iter().enumerate() {
        let target = statement.target.text.as_str();
        let mut depends = failed.contains(target);
        each_name(statement, &mut |name| depends |= failed.contains(name));
        let ranges = match depends {
            true => None,
            false => one(checked, numbers, &inferred.shapes, number, next[number])
                .map_err(|mistake| mistakes.push(*mistake))
                .ok(),
        };
        if let Some(ranges) = &ranges {
            let shape = statement.indices.iter().filter_map(|index| ranges.of.get(&index.text));
            let from_zero =
                |interval: &Interval| Interval { low: Formula::default(), high: interval.high.clone() };
            inferred.shapes.entry(target.to_string()).or_insert(shape.map(from_zero).collect());
        } else {
            failed.insert(target);
        }
        inferred.statements.push(ranges.unwrap_or_default());
    }
    check_results(checked, numbers, &inferred.shapes, mistakes);
    inferred
}

fn declared_shape(ty: &TensorType) -> Vec<Interval> {
    let size = |dim: &Dim| match dim {
        Dim::Name(name) => Formula::symbol(&name.text),
        Dim::Number(number, _) => Formula::number(*number),
    };
    ty.dims.iter().map(|dim| Interval::of_size(size(dim))).collect()
}

/// For each statement, the next one that writes the same tensor.
fn next_writes(statements: &[Statement]) -> Vec<Option<usize>> {
    let mut next = vec![None; statements.len()];
    let mut later: HashMap<&str, usize> = HashMap::new();
    for (number, statement) in statements.iter().enumerate().rev() {
        next[number] = later.insert(&statement.target.text, number);
    }
    next
}

/// The ranges of one statement.
fn one(
    checked: &Checked,
    numbers: &Numbers,
    shapes: &Shapes,
    number: usize,
    next: Option<usize>,
) -> Result<Ranges, Box<Mistake>> {
    let statement = &checked.def.statements[number];
    let problem = Problem::new(checked, number, numbers, shapes);
    let mut known = BTreeMap::new();
    for (position, index) in statement.indices.iter().enumerate() {
        if problem.is_constrained(&index.text) {
            continue;
        }
        // `C(i) = 0` takes its range from the next statement that writes `C`.
        let borrowed = next.and_then(|next| {
            let later = Problem::new(checked, next, numbers, shapes).solve(BTreeMap::new()).ok()?;
            let Solution { ranges, unsolved } = later;
            let name = &checked.def.statements[next].indices.get(position)?.text;
            unsolved.iter().all(|other| other != name).then(|| ranges.get(name).cloned())?
        });
        let only_on_left = || Fault::OnlyOnLeft { variable: index.text.clone() };
        let interval = borrowed.ok_or_else(|| Box::new(Mistake::new(index.span, only_on_left())))?;
        known.insert(index.text.clone(), interval);
    }
    let ranges = problem.solve_whole(known)?;
    starts_at_zero(statement, &ranges, numbers)?;
    same_shape(statement, &ranges, numbers, shapes)?;
    Ok(ranges)
}

/// Checks that the indices on the left begin at 0.
fn starts_at_zero(statement: &Statement, ranges: &Ranges, numbers: &Numbers) -> Result<(), Box<Mistake>> {
    for index in &statement.indices {
        let Some(interval) = ranges.of.get(&index.text) else { continue };
        if interval.low.at(numbers) != Some(0) {
            let range = format!("{}:{}", interval.low, interval.high.add(1));
            let fault = Fault::Start { variable: index.text.clone(), range };
            return Err(Box::new(Mistake::new(index.span, fault)));
        }
    }
    Ok(())
}

/// Checks that a tensor that has a shape keeps it.
fn same_shape(
    statement: &Statement,
    ranges: &Ranges,
    numbers: &Numbers,
    shapes: &Shapes,
) -> Result<(), Box<Mistake>> {
    let Some(before) = shapes.get(&statement.target.text) else { return Ok(()) };
    let now: Vec<Interval> =
        statement.indices.iter().filter_map(|index| ranges.of.get(&index.text).cloned()).collect();
    if extents(&now, numbers) == extents(before, numbers) {
        return Ok(());
    }
    let name = statement.target.text.clone();
    let fault = Fault::OtherRanges { name, before: shown(before, numbers), now: shown(&now, numbers) };
    Err(Box::new(Mistake::new(statement.target.span, fault)))
}

fn extents(shape: &[Interval], numbers: &Numbers) -> Vec<Option<i64>> {
    shape.iter().map(|interval| interval.extent().at(numbers)).collect()
}

/// A shape as formulas and numbers: `H - 2 = 14, W = 16`.
fn shown(shape: &[Interval], numbers: &Numbers) -> String {
    let one = |interval: &Interval| {
        let extent = interval.extent();
        match (extent.constant(), extent.at(numbers)) {
            (None, Some(number)) => format!("{extent} = {number}"),
            _ => extent.to_string(),
        }
    };
    shape.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Checks that results have their declared shapes.
fn check_results(checked: &Checked, numbers: &Numbers, shapes: &Shapes, mistakes: &mut Mistakes) {
    for result in &checked.def.results {
        let (Some(ty), Some(inferred)) = (&result.ty, shapes.get(&result.name.text)) else { continue };
        let declared = declared_shape(ty);
        if extents(&declared, numbers) != extents(inferred, numbers) {
            let (declared, inferred) = (shown(&declared, numbers), shown(inferred, numbers));
            let fault = Fault::ResultShape { name: result.name.text.clone(), declared, inferred };
            mistakes.add(result.name.span, fault);
        }
    }
}
