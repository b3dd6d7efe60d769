//! Integers as formulas of sizes: polynomials whose atoms are sizes and scalars, quotients rounded
//! down, and minima and maxima. Equal terms cancel.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use warploom_lang::{Expr, max, min};

/// The value of every size and of every scalar that ranges depend on.
pub(crate) type Numbers = HashMap<String, i64>;

/// A formula of sizes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Formula {
    /// Each product of atoms and its factor; the empty product is the constant.
    terms: BTreeMap<Vec<Atom>, i128>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Atom {
    Symbol(String),
    /// A quotient rounded down; the divisor is positive.
    Floor(Formula, Formula),
    Min(Vec<Formula>),
    Max(Vec<Formula>),
}

impl Formula {
    pub fn number(number: i64) -> Formula {
        Formula::of(Vec::new(), number.into())
    }

    pub fn symbol(name: &str) -> Formula {
        Formula::of(vec![Atom::Symbol(name.to_string())], 1)
    }

    fn of(product: Vec<Atom>, factor: i128) -> Formula {
        let terms = if factor == 0 { BTreeMap::new() } else { [(product, factor)].into() };
        Formula { terms }
    }

    /// The number, if the formula has no atoms.
    pub fn constant(&self) -> Option<i128> {
        match self.terms.len() {
            0 => Some(0),
            1 => self.terms.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    pub fn plus(&self, other: &Formula) -> Formula {
        let mut sum = self.clone();
        for (product, factor) in &other.terms {
            let entry = sum.terms.entry(product.clone()).or_insert(0);
            *entry = entry.saturating_add(*factor);
            if *entry == 0 {
                sum.terms.remove(product);
            }
        }
        sum
    }

    pub fn times(&self, other: &Formula) -> Formula {
        let mut result = Formula::default();
        for (a, x) in &self.terms {
            for (b, y) in &other.terms {
                let mut product: Vec<Atom> = a.iter().chain(b).cloned().collect();
                product.sort();
                result = result.plus(&Formula::of(product, x.saturating_mul(*y)));
            }
        }
        result
    }

    pub fn scaled(&self, factor: i64) -> Formula {
        self.times(&Formula::number(factor))
    }

    pub fn minus(&self, other: &Formula) -> Formula {
        self.plus(&other.scaled(-1))
    }

    /// The sum with a number, which goes into a minimum or maximum.
    pub fn add(&self, number: i64) -> Formula {
        let moved = |all: &[Formula]| all.iter().map(|one| one.add(number)).collect();
        let atom = match self.single() {
            Some(Atom::Min(all)) => Atom::Min(moved(all)),
            Some(Atom::Max(all)) => Atom::Max(moved(all)),
            _ => return self.plus(&Formula::number(number)),
        };
        Formula::of(vec![atom], 1)
    }

    /// The atom, if the formula is a single atom.
    fn single(&self) -> Option<&Atom> {
        match self.terms.iter().next() {
            Some((product, 1)) if self.terms.len() == 1 && product.len() == 1 => product.first(),
            _ => None,
        }
    }

    /// The quotient rounded down, for a positive divisor.
    pub fn floor_div(&self, divisor: &Formula) -> Formula {
        let Some(number) = divisor.constant().filter(|number| *number > 0) else {
            return Formula::of(vec![Atom::Floor(self.clone(), divisor.clone())], 1);
        };
        let (mut whole, mut rest) = (Formula::default(), Formula::default());
        for (product, factor) in &self.terms {
            let exact = factor % number == 0;
            let (quotient, left) = match product.is_empty() || exact {
                true => (factor.div_euclid(number), factor.rem_euclid(number)),
                false => (0, *factor),
            };
            whole = whole.plus(&Formula::of(product.clone(), quotient));
            rest = rest.plus(&Formula::of(product.clone(), left));
        }
        match rest.constant() {
            Some(_) => whole,
            None => whole.plus(&Formula::of(vec![Atom::Floor(rest, divisor.clone())], 1)),
        }
    }

    pub fn smaller(&self, other: &Formula) -> Formula {
        let parts = |atom: &Atom| match atom {
            Atom::Min(all) => Some(all.clone()),
            _ => None,
        };
        let mut all = extremes(self, other, parts, |difference| difference <= 0);
        if all.len() == 1 { all.swap_remove(0) } else { Formula::of(vec![Atom::Min(all)], 1) }
    }

    pub fn larger(&self, other: &Formula) -> Formula {
        let parts = |atom: &Atom| match atom {
            Atom::Max(all) => Some(all.clone()),
            _ => None,
        };
        let mut all = extremes(self, other, parts, |difference| difference >= 0);
        if all.len() == 1 { all.swap_remove(0) } else { Formula::of(vec![Atom::Max(all)], 1) }
    }

    /// The value at these sizes; `None` if it is too large.
    pub fn at(&self, numbers: &Numbers) -> Option<i64> {
        self.wide(numbers)
            .and_then(|value| i64::try_from(value).ok())
            .filter(|value| value.unsigned_abs() < 1 << 40)
    }

    fn wide(&self, numbers: &Numbers) -> Option<i128> {
        let mut sum: i128 = 0;
        for (product, factor) in &self.terms {
            let mut value = *factor;
            for atom in product {
                value = value.checked_mul(atom.wide(numbers)?)?;
            }
            sum = sum.checked_add(value)?;
        }
        Some(sum)
    }

    /// The length of the formula, in atoms.
    pub fn length(&self) -> usize {
        self.terms.keys().map(|product| 1 + product.iter().map(Atom::length).sum::<usize>()).sum()
    }

    /// The formula as an expression; `symbol` gives the expression of a size. `None` if a number in
    /// it does not fit 32 bits.
    pub fn expr(&self, symbol: &dyn Fn(&str) -> Expr) -> Option<Expr> {
        let mut sum: Option<Expr> = None;
        for (product, factor) in self.terms.iter().rev() {
            let negative = *factor < 0 && sum.is_some() && !product.is_empty();
            let factor = i32::try_from(if negative { factor.checked_neg()? } else { *factor }).ok()?;
            let mut value: Option<Expr> = None;
            for atom in product {
                let atom = atom.expr(symbol)?;
                value = Some(match value {
                    None => atom,
                    Some(value) => value * atom,
                });
            }
            let value = match value {
                None => Expr::from(factor),
                Some(value) if factor == 1 => value,
                Some(value) => value * factor,
            };
            sum = Some(match sum {
                None => value,
                Some(sum) if negative => sum - value,
                Some(sum) => sum + value,
            });
        }
        Some(sum.unwrap_or(Expr::from(0)))
    }
}

/// The operands of a minimum or maximum of two formulas, with nested ones flattened. Of two that differ by a number,
/// only the one that wins is kept.
fn extremes(
    a: &Formula,
    b: &Formula,
    parts: impl Fn(&Atom) -> Option<Vec<Formula>>,
    wins: impl Fn(i128) -> bool,
) -> Vec<Formula> {
    let mut all: Vec<Formula> = Vec::new();
    for formula in [a, b] {
        for part in formula.single().and_then(&parts).unwrap_or_else(|| vec![formula.clone()]) {
            match all.iter_mut().find_map(|kept| Some((kept.minus(&part).constant()?, kept))) {
                Some((difference, _)) if wins(difference) => {}
                Some((_, kept)) => *kept = part,
                None => all.push(part),
            }
        }
    }
    all.sort();
    all
}

impl Atom {
    fn wide(&self, numbers: &Numbers) -> Option<i128> {
        match self {
            Atom::Symbol(name) => numbers.get(name).map(|number| i128::from(*number)),
            Atom::Floor(number, divisor) => {
                let divisor = divisor.wide(numbers).filter(|divisor| *divisor > 0)?;
                Some(number.wide(numbers)?.div_euclid(divisor))
            }
            Atom::Min(all) => {
                all.iter().map(|one| one.wide(numbers)).try_fold(i128::MAX, |a, b| Some(a.min(b?)))
            }
            Atom::Max(all) => {
                all.iter().map(|one| one.wide(numbers)).try_fold(i128::MIN, |a, b| Some(a.max(b?)))
            }
        }
    }

    fn length(&self) -> usize {
        match self {
            Atom::Symbol(_) => 1,
            Atom::Floor(number, divisor) => number.length() + divisor.length(),
            Atom::Min(all) | Atom::Max(all) => all.iter().map(Formula::length).sum(),
        }
    }

    fn expr(&self, symbol: &dyn Fn(&str) -> Expr) -> Option<Expr> {
        let folded = |all: &[Formula], combine: fn(Expr, Expr) -> Expr| {
            let all: Option<Vec<Expr>> = all.iter().map(|one| one.expr(symbol)).collect();
            all?.into_iter().reduce(combine)
        };
        match self {
            Atom::Symbol(name) => Some(symbol(name)),
            Atom::Floor(number, divisor) => Some(number.expr(symbol)? / divisor.expr(symbol)?),
            Atom::Min(all) => folded(all, |a, b| min(a, b)),
            Atom::Max(all) => folded(all, |a, b| max(a, b)),
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut terms: Vec<(&Vec<Atom>, i128)> =
            self.terms.iter().map(|(product, factor)| (product, *factor)).collect();
        terms.sort_by_key(|(product, factor)| (product.is_empty(), *factor < 0));
        if terms.is_empty() {
            return f.write_str("0");
        }
        for (number, (product, factor)) in terms.into_iter().enumerate() {
            match (number, factor < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            let mut parts: Vec<String> = product.iter().map(Atom::to_string).collect();
            if factor.unsigned_abs() != 1 || parts.is_empty() {
                parts.insert(0, factor.unsigned_abs().to_string());
            }
            f.write_str(&parts.join("*"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |all: &[Formula]| all.iter().map(Formula::to_string).collect::<Vec<_>>().join(", ");
        let wrapped = |formula: &Formula| match formula.length() {
            0..=2 => formula.to_string(),
            _ => format!("({formula})"),
        };
        match self {
            Atom::Symbol(name) => f.write_str(name),
            Atom::Floor(number, divisor) => write!(f, "{}/{}", wrapped(number), wrapped(divisor)),
            Atom::Min(all) => write!(f, "min({})", joined(all)),
            Atom::Max(all) => write!(f, "max({})", joined(all)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_terms_cancel_and_quotients_take_out_what_divides() {
        let (h, k) = (Formula::symbol("H"), Formula::symbol("KH"));
        let two = Formula::number(2);
        assert_eq!(h.minus(&k).add(1).plus(&k).to_string(), "H + 1");
        assert_eq!(h.add(-2).floor_div(&two).add(1).to_string(), "H/2");
        assert_eq!(h.minus(&k).floor_div(&two).to_string(), "(H - KH)/2");
        assert_eq!(h.scaled(4).add(6).floor_div(&two).to_string(), "2*H + 3");
        assert_eq!(h.smaller(&h.add(-1)).to_string(), "H - 1");
        assert_eq!(h.smaller(&k).smaller(&h.add(2)).to_string(), "min(H, KH)");
        let numbers = Numbers::from([("H".to_string(), 7), ("KH".to_string(), 2)]);
        assert_eq!(h.minus(&k).floor_div(&two).at(&numbers), Some(2));
        assert_eq!(k.minus(&h).floor_div(&two).at(&numbers), Some(-3));
    }

    #[test]
    fn numbers_that_overflow_have_no_value() {
        let numbers = Numbers::from([("N".to_string(), 1 << 30)]);
        let n = Formula::symbol("N");
        assert_eq!(n.times(&n).at(&numbers), None);
        assert_eq!((0..9).fold(n.clone(), |product, _| product.times(&product)).wide(&numbers), None);
    }
}
