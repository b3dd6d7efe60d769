//! Numbers that depend on the sizes of a launch.

use ahash::AHashMap;
use serde::{Deserialize, Serialize};

use crate::affine::{Interval, Linear};
use crate::ids::{Id, IdVec};

crate::define_ids! {
    /// A part of a formula that is not a sum.
    #[derive(Serialize, Deserialize)]
    AtomId;
}

/// An integer that depends on the sizes: a sum of multiples of atoms.
pub type Formula = Linear<AtomId>;

/// A size that is given at each launch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SizeRange {
    /// How users refer to it.
    pub name: String,
    /// The smallest allowed value.
    pub min: i64,
    /// The largest allowed value.
    pub max: i64,
}

/// A part of a formula that is not a sum.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Atom {
    /// The size with this number.
    Size(usize),
    /// The quotient by a positive constant, rounded down.
    Quotient(Formula, i64),
    /// The quotient of a number that is not negative by a positive one, rounded down.
    Ratio(Formula, Formula),
    /// The smaller of two.
    Min(Formula, Formula),
    /// The larger of two.
    Max(Formula, Formula),
}

/// The names that a formula's text uses.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    /// The name of an atom that is not expanded; every size has one.
    pub name: &'a dyn Fn(AtomId) -> Option<String>,
    /// The function for the smaller of two.
    pub min: &'a str,
    /// The function for the larger of two.
    pub max: &'a str,
    /// The function for quotients of numbers that may be negative, rounded down.
    pub floor_div: &'a str,
}

/// How many nested minima and maxima a comparison looks into.
const MAX_SPLITS: usize = 4;

/// How deep quotients, minima and maxima are nested in the text of a formula for people.
const SHOWN_NESTING: usize = 3;

/// The sizes of a launch, and the atoms of all formulas over them.
///
/// Atoms are hash-consed and simplified by their ranges, so equal formulas are usually equal values.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Formulas {
    sizes: Vec<SizeRange>,
    atoms: IdVec<AtomId, Atom>,
    ranges: IdVec<AtomId, (i64, i64)>,
    #[serde(skip)]
    known: AHashMap<Atom, AtomId>,
}

impl Formulas {
    /// No formulas yet, over these sizes.
    pub fn new(sizes: Vec<SizeRange>) -> Formulas {
        let mut formulas = Formulas { sizes, ..Formulas::default() };
        for number in 0..formulas.sizes.len() {
            let SizeRange { min, max, .. } = formulas.sizes[number];
            formulas.atom(Atom::Size(number), Interval::new(min, max));
        }
        formulas
    }

    /// The sizes, in the order of their numbers.
    pub fn sizes(&self) -> &[SizeRange] {
        &self.sizes
    }

    /// The definition of each atom. Its operands have smaller ids.
    pub fn atoms(&self) -> &IdVec<AtomId, Atom> {
        &self.atoms
    }

    /// The size with this number.
    pub fn size(&self, number: usize) -> Formula {
        let range = &self.sizes[number];
        if range.min == range.max { Formula::constant(range.min) } else { Formula::atom(AtomId::new(number)) }
    }

    fn atom(&mut self, atom: Atom, range: Interval) -> Formula {
        if let Some(id) = self.known.get(&atom) {
            return Formula::atom(*id);
        }
        let id = self.atoms.push(atom.clone());
        self.ranges.push((range.min, range.max));
        self.known.insert(atom, id);
        Formula::atom(id)
    }

    /// All values that an atom can have.
    pub fn atom_range(&self, atom: AtomId) -> Interval {
        let (min, max) = self.ranges[atom];
        Interval::new(min, max)
    }

    /// The values that a formula can have at any sizes; may be too wide.
    pub fn range(&self, formula: &Formula) -> Interval {
        let start = Interval::new(formula.constant, formula.constant);
        formula
            .terms
            .iter()
            .fold(start, |sum, (atom, factor)| sum.plus(self.atom_range(*atom).times(*factor)))
    }

    /// Whether `a <= b` at all sizes. False if that is not certain.
    pub fn surely_le(&self, a: &Formula, b: &Formula) -> bool {
        a.add_scaled(b, -1)
            .is_some_and(|difference| self.is_at_most(&difference, 0, MAX_SPLITS) == Some(true))
    }

    /// Whether a formula is surely at most `bound`; `None` on overflow. A quotient `u / d` lies between `(u - d + 1) / d` and
    /// `u / d` as fractions, so both sides are multiplied by `d`. Minima and maxima are split into their two cases.
    fn is_at_most(&self, formula: &Formula, bound: i64, splits: usize) -> Option<bool> {
        if self.range(formula).max <= bound {
            return Some(true);
        }
        let is_size = |atom: AtomId| matches!(self.atoms[atom], Atom::Size(_));
        let part = formula.terms.iter().filter(|(atom, _)| !is_size(*atom)).max_by_key(|(atom, _)| *atom);
        let Some(&(atom, factor)) = part else { return Some(false) };
        let others = formula.add_scaled(&Formula::atom(atom), factor.checked_neg()?)?;
        let with = |operand: &Formula| others.add_scaled(operand, factor);
        let (x, y, is_max) = match &self.atoms[atom] {
            Atom::Size(_) | Atom::Ratio(..) => return Some(false),
            Atom::Quotient(inner, divisor) => {
                let rounding = Formula::constant(if factor < 0 { 1 - divisor } else { 0 });
                let scaled = others.scale(*divisor)?.add_scaled(&inner.add_scaled(&rounding, 1)?, factor)?;
                let bound = bound.checked_add(1)?.checked_mul(*divisor)? - 1;
                return self.is_at_most(&scaled, bound, splits);
            }
            Atom::Min(x, y) => (x, y, false),
            Atom::Max(x, y) => (x, y, true),
        };
        let Some(splits) = splits.checked_sub(1) else { return Some(false) };
        let is_case = |operand: &Formula| self.is_at_most(&with(operand)?, bound, splits);
        let (x, y) = (is_case(x)?, is_case(y)?);
        Some(if is_max == (factor > 0) { x && y } else { x || y })
    }

    /// The smaller of two; `None` on overflow.
    pub fn min(&mut self, a: &Formula, b: &Formula) -> Option<Formula> {
        if self.surely_le(a, b) {
            return Some(a.clone());
        }
        if self.surely_le(b, a) {
            return Some(b.clone());
        }
        let (a, b) = in_order(a, b);
        // Equal shifts share an atom.
        let shift = Formula::constant(a.constant);
        let (low, high) = (a.add_scaled(&shift, -1)?, b.add_scaled(&shift, -1)?);
        let (first, second) = (self.range(&low), self.range(&high));
        let range = Interval::new(first.min.min(second.min), first.max.min(second.max));
        self.atom(Atom::Min(low, high), range).add_scaled(&shift, 1)
    }

    /// The larger of two; `None` on overflow.
    pub fn max(&mut self, a: &Formula, b: &Formula) -> Option<Formula> {
        if self.surely_le(a, b) {
            return Some(b.clone());
        }
        if self.surely_le(b, a) {
            return Some(a.clone());
        }
        let (a, b) = in_order(a, b);
        let shift = Formula::constant(a.constant);
        let (low, high) = (a.add_scaled(&shift, -1)?, b.add_scaled(&shift, -1)?);
        let (first, second) = (self.range(&low), self.range(&high));
        let range = Interval::new(first.min.max(second.min), first.max.max(second.max));
        self.atom(Atom::Max(low, high), range).add_scaled(&shift, 1)
    }

    /// The quotient by a positive constant, rounded down; `None` on overflow.
    pub fn quotient(&mut self, formula: &Formula, divisor: i64) -> Option<Formula> {
        if divisor == 1 {
            return Some(formula.clone());
        }
        let mut whole = Formula::constant(formula.constant.div_euclid(divisor));
        let mut rest = Formula::constant(formula.constant.rem_euclid(divisor));
        for (atom, factor) in &formula.terms {
            let part = Formula::atom(*atom);
            whole = whole.add_scaled(&part, factor.div_euclid(divisor))?;
            rest = rest.add_scaled(&part, factor.rem_euclid(divisor))?;
        }
        let Interval { min, max } = self.range(&rest);
        if min.div_euclid(divisor) == max.div_euclid(divisor) {
            return whole.add_scaled(&Formula::constant(min.div_euclid(divisor)), 1);
        }
        let (rest, divisor) = self.flattened(rest, divisor)?;
        let Interval { min, max } = self.range(&rest);
        let range = Interval::new(min.div_euclid(divisor), max.div_euclid(divisor));
        whole.add_scaled(&self.atom(Atom::Quotient(rest, divisor), range), 1)
    }

    /// The quotient of two formulas, rounded down; `None` on overflow, or if the first may be negative or the second 0 or less.
    pub fn ratio(&mut self, a: &Formula, b: &Formula) -> Option<Formula> {
        let (over, under) = (self.range(a), self.range(b));
        if over.min < 0 || under.min < 1 {
            return None;
        }
        if b.is_constant() {
            return self.quotient(a, b.constant);
        }
        let range = Interval::new(over.min / under.max, over.max / under.min);
        if range.min == range.max {
            return Some(Formula::constant(range.min));
        }
        Some(self.atom(Atom::Ratio(a.clone(), b.clone()), range))
    }

    /// `(u / a + k) / b` as `(u + k a) / (a b)`.
    fn flattened(&self, rest: Formula, divisor: i64) -> Option<(Formula, i64)> {
        let [(atom, 1)] = rest.terms[..] else { return Some((rest, divisor)) };
        let Atom::Quotient(inner, by) = &self.atoms[atom] else { return Some((rest, divisor)) };
        let shift = Formula::constant(rest.constant.checked_mul(*by)?);
        Some((inner.add_scaled(&shift, 1)?, by.checked_mul(divisor)?))
    }

    /// A formula as text for people, in the syntax of C with the functions `min`, `max` and `floor_div`. Deeply nested
    /// parts are left out.
    pub fn text(&self, formula: &Formula) -> String {
        let name = |atom: AtomId| match &self.atoms[atom] {
            Atom::Size(number) => Some(self.sizes[*number].name.clone()),
            _ => None,
        };
        let words = Words { name: &name, min: "min", max: "max", floor_div: "floor_div" };
        self.written(formula, &words, SHOWN_NESTING)
    }

    /// A formula as text, in the syntax of C with these names.
    pub fn text_in(&self, formula: &Formula, words: &Words<'_>) -> String {
        self.written(formula, words, usize::MAX)
    }

    /// The definition of an atom, as text in the syntax of C with these names.
    pub fn atom_text_in(&self, atom: AtomId, words: &Words<'_>) -> String {
        self.written_atom(atom, words, usize::MAX)
    }

    fn written(&self, formula: &Formula, words: &Words<'_>, nesting: usize) -> String {
        let mut text = String::new();
        for (atom, factor) in &formula.terms {
            let sign = match (text.is_empty(), *factor < 0) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => " - ",
                (false, false) => " + ",
            };
            let atom = (words.name)(*atom).unwrap_or_else(|| self.written_atom(*atom, words, nesting));
            match factor.unsigned_abs() {
                1 => text += &format!("{sign}{atom}"),
                factor => text += &format!("{sign}{factor} * {atom}"),
            }
        }
        match formula.constant {
            constant if text.is_empty() => constant.to_string(),
            0 => text,
            constant if constant < 0 => format!("{text} - {}", constant.unsigned_abs()),
            constant => format!("{text} + {constant}"),
        }
    }

    fn written_atom(&self, atom: AtomId, words: &Words<'_>, nesting: usize) -> String {
        let Some(nesting) = nesting.checked_sub(1) else { return "...".to_string() };
        let text = |formula: &Formula| self.written(formula, words, nesting);
        match &self.atoms[atom] {
            Atom::Size(_) => (words.name)(atom).unwrap_or_default(),
            Atom::Quotient(formula, divisor) => match (self.range(formula).min >= 0, formula.terms.len()) {
                (false, _) => format!("{}({}, {divisor})", words.floor_div, text(formula)),
                (true, 1) if formula.constant == 0 && formula.terms[0].1 == 1 => {
                    format!("({} / {divisor})", text(formula))
                }
                _ => format!("(({}) / {divisor})", text(formula)),
            },
            Atom::Ratio(a, b) => format!("(({}) / ({}))", text(a), text(b)),
            Atom::Min(a, b) => format!("{}({}, {})", words.min, text(a), text(b)),
            Atom::Max(a, b) => format!("{}({}, {})", words.max, text(a), text(b)),
        }
    }

    /// The value of a formula at some sizes.
    pub fn at(&self, formula: &Formula, sizes: &[i64]) -> i64 {
        self.evaluation(sizes).of(formula)
    }

    /// The values of all atoms at some sizes.
    pub fn evaluation(&self, sizes: &[i64]) -> Evaluation {
        let mut values = Evaluation(IdVec::new());
        for atom in self.atoms.values() {
            let value = match atom {
                Atom::Size(number) => sizes[*number],
                Atom::Quotient(formula, divisor) => values.of(formula).div_euclid(*divisor),
                Atom::Ratio(a, b) => values.of(a).checked_div(values.of(b)).unwrap_or(0),
                Atom::Min(a, b) => values.of(a).min(values.of(b)),
                Atom::Max(a, b) => values.of(a).max(values.of(b)),
            };
            values.0.push(value);
        }
        values
    }
}

/// All atoms at one choice of sizes.
#[derive(Clone, Debug)]
pub struct Evaluation(IdVec<AtomId, i64>);

impl Evaluation {
    /// The value of a formula. It saturates beyond 64 bits.
    pub fn of(&self, formula: &Formula) -> i64 {
        formula.terms.iter().fold(formula.constant, |sum, (atom, factor)| {
            sum.saturating_add(self.0[*atom].saturating_mul(*factor))
        })
    }
}

/// Two operands in a canonical order.
fn in_order<'f>(a: &'f Formula, b: &'f Formula) -> (&'f Formula, &'f Formula) {
    if (&a.terms[..], a.constant) <= (&b.terms[..], b.constant) { (a, b) } else { (b, a) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> (Formulas, Formula, Formula) {
        let size = |name: &str, min, max| SizeRange { name: name.to_string(), min, max };
        let formulas = Formulas::new(vec![size("W", 3, 40), size("H", 1, 9)]);
        let (w, h) = (formulas.size(0), formulas.size(1));
        (formulas, w, h)
    }

    fn plus(a: &Formula, constant: i64) -> Formula {
        a.add_scaled(&Formula::constant(constant), 1).unwrap()
    }

    #[test]
    fn ranges_decide_what_they_can() {
        let (mut formulas, w, h) = table();
        assert_eq!(formulas.min(&w, &plus(&w, -1)).unwrap(), plus(&w, -1));
        assert_eq!(formulas.max(&w, &plus(&w, -1)).unwrap(), w);
        assert_eq!(formulas.max(&h, &Formula::constant(9)).unwrap(), Formula::constant(9));
        let open = formulas.min(&w, &h).unwrap();
        assert_eq!(formulas.range(&open), Interval::new(1, 9));
        assert_eq!(open, formulas.min(&h, &w).unwrap());
        let shifted = formulas.min(&plus(&w, 4), &plus(&h, 4)).unwrap();
        assert_eq!(shifted, plus(&open, 4));
    }

    #[test]
    fn quotients_are_compared_as_fractions() {
        let (mut formulas, w, _) = table();
        let (up, down) = (formulas.quotient(&plus(&w, 1), 2).unwrap(), formulas.quotient(&w, 2).unwrap());
        assert!(formulas.surely_le(&up, &plus(&down, 1)) && !formulas.surely_le(&up, &down));
        assert!(formulas.surely_le(&down, &up) && !formulas.surely_le(&plus(&down, 1), &up));
        // The box of a pyramid level, of the next level, and the box that the next level needs.
        let next = formulas.quotient(&plus(&down, 2), 2).unwrap();
        let needed = plus(&next.scale(2).unwrap(), 1);
        assert_eq!(formulas.max(&plus(&down, 1), &needed), Some(needed));
    }

    #[test]
    fn deep_formulas_have_short_texts_and_whole_ones() {
        let (mut formulas, w, h) = table();
        let mut nested = w.clone();
        for step in 0..12 {
            let half =
                formulas.quotient(&nested.scale(step + 2).unwrap().add_scaled(&h, -3).unwrap(), 5 + step);
            nested = formulas.max(&half.unwrap(), &nested.add_scaled(&h, -1).unwrap()).unwrap();
        }
        let text = formulas.text(&nested);
        assert!(text.contains("...") && text.len() < 200, "{text}");
        let last = nested.terms[0].0;
        let name = |atom: AtomId| (atom != last).then(|| format!("v{}", atom.index()));
        let words = Words { name: &name, min: "min", max: "max", floor_div: "floor_div" };
        assert!(formulas.text_in(&nested, &words).starts_with("max("), "the others have names");
    }

    #[test]
    fn every_formula_has_its_value_at_all_sizes() {
        let (mut formulas, w, h) = table();
        let double = w.scale(2).unwrap();
        let half = formulas.quotient(&plus(&w, 1), 2).unwrap();
        let quarter = formulas.quotient(&plus(&half, 3), 2).unwrap();
        let odd = formulas.quotient(&double.add_scaled(&h, -3).unwrap(), 4).unwrap();
        let least = formulas.min(&half, &h).unwrap();
        let most = formulas.max(&plus(&odd, 2), &quarter).unwrap();
        let ratio = formulas.ratio(&double, &h).unwrap();
        assert!(
            matches!(formulas.atoms()[quarter.terms[0].0], Atom::Quotient(_, 4)),
            "nested quotients merge"
        );
        for (width, height) in (3..=40).flat_map(|w| (1..=9).map(move |h| (w, h))) {
            let (a, b): (i64, i64) = ((width + 1) / 2, 2 * width - 3 * height);
            let least_and_most = (a.min(height), (b.div_euclid(4) + 2).max((a + 3) / 2));
            let expected =
                [a, (a + 3) / 2, b.div_euclid(4), least_and_most.0, least_and_most.1, 2 * width / height];
            let values = formulas.evaluation(&[width, height]);
            for (formula, expected) in
                [&half, &quarter, &odd, &least, &most, &ratio].into_iter().zip(expected)
            {
                assert_eq!(values.of(formula), expected, "{formula:?} at {width} x {height}");
                let range = formulas.range(formula);
                assert!((range.min..=range.max).contains(&expected), "{range:?} of {formula:?}");
            }
        }
    }

    #[test]
    fn a_size_without_choice_is_a_number() {
        let formulas = Formulas::new(vec![SizeRange { name: "N".to_string(), min: 5, max: 5 }]);
        assert_eq!(formulas.size(0), Formula::constant(5));
    }
}
