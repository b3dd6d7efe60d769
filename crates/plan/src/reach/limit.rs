//! The limits of clamps, which may follow from the sizes of a launch.

use warploom_lang::affine::Interval;
use warploom_lang::dynamic::{AtomId, Formula, Formulas};

/// One side of a clamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// No limit on this side.
    None,
    /// A number.
    Value(i64),
    /// The formula with this number in [`Limits`].
    Formula(usize),
}

impl Limit {
    /// The number, if the limit is one.
    pub fn value(self) -> Option<i64> {
        match self {
            Limit::Value(value) => Some(value),
            Limit::None | Limit::Formula(_) => None,
        }
    }
}

/// The formulas that limits refer to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Limits {
    /// The sizes and the atoms of all formulas.
    pub formulas: Formulas,
    /// The formula of each [`Limit::Formula`].
    pub list: Vec<Formula>,
}

/// [`Formula`]s contain no floats; two plans are equal if their limits are.
impl Eq for Limits {}

impl Limits {
    pub(crate) fn new(formulas: Formulas) -> Limits {
        Limits { formulas, list: Vec::new() }
    }

    /// A limit given by a formula.
    pub(crate) fn limit(&mut self, formula: Formula) -> Limit {
        if formula.is_constant() {
            return Limit::Value(formula.constant);
        }
        let known = self.list.iter().position(|known| *known == formula);
        Limit::Formula(known.unwrap_or_else(|| {
            self.list.push(formula);
            self.list.len() - 1
        }))
    }

    /// The formula of a limit; `None` if there is no limit.
    pub fn formula(&self, limit: Limit) -> Option<Formula> {
        match limit {
            Limit::None => None,
            Limit::Value(value) => Some(Formula::constant(value)),
            Limit::Formula(number) => Some(self.list[number].clone()),
        }
    }

    /// The values that a limit can have at any sizes; `missing` without a limit.
    pub(crate) fn range(&self, limit: Limit, missing: i64) -> Interval {
        match limit {
            Limit::None => Interval::new(missing, missing),
            Limit::Value(value) => Interval::new(value, value),
            Limit::Formula(number) => self.formulas.range(&self.list[number]),
        }
    }

    /// The limit after a change of the values; `None` if it does not fit.
    pub(crate) fn changed(
        &mut self,
        limit: Limit,
        of_value: impl Fn(i64) -> Option<i64>,
        of_formula: impl Fn(&mut Formulas, &Formula) -> Option<Formula>,
    ) -> Option<Limit> {
        match limit {
            Limit::None => Some(Limit::None),
            Limit::Value(value) => Some(Limit::Value(of_value(value)?)),
            Limit::Formula(number) => {
                let changed = of_formula(&mut self.formulas, &self.list[number])?;
                Some(self.limit(changed))
            }
        }
    }

    /// A limit, itself clamped to two others. Without a limit of its own it is the one on its side, `otherwise`.
    pub(crate) fn clamped(
        &mut self,
        limit: Limit,
        (low, high): (Limit, Limit),
        otherwise: Limit,
    ) -> Option<Limit> {
        if let (Limit::Value(value), Limit::None | Limit::Value(_), Limit::None | Limit::Value(_)) =
            (limit, low, high)
        {
            let (low, high) = (low.value().unwrap_or(i64::MIN), high.value().unwrap_or(i64::MAX));
            return Some(Limit::Value(value.max(low).min(high)));
        }
        let Some(mut formula) = self.formula(limit) else { return Some(otherwise) };
        if let Some(low) = self.formula(low) {
            formula = self.formulas.max(&formula, &low)?;
        }
        if let Some(high) = self.formula(high) {
            formula = self.formulas.min(&formula, &high)?;
        }
        Some(self.limit(formula))
    }

    /// All values of an atom.
    pub(crate) fn atom_range(&self, atom: AtomId) -> (i64, i64) {
        let range = self.formulas.atom_range(atom);
        (range.min, range.max)
    }
}
