//! Long reductions: of rows, of whole images, several over one domain, and of rows that are then normalised.

use warploom_lang::{Expr, Operand, RDom, Type, exp, fast_exp};

use crate::grow::Grower;
use crate::image::{Extent, Image, here, int, points, scaled};
use crate::stages::fold::{Fold, Reduction};
use crate::stages::reduce::{SumForm, domain};
use crate::term::Term;

/// The longest row that is read in a circle, and thus several times.
const LONGEST: i64 = 300;

/// Rows or planes of an image: the domain of a long reduction, and the remaining dimensions.
struct Strip {
    domain: RDom,
    /// The number of points in the domain.
    count: i64,
    /// The point of the image that is read.
    at: Vec<Expr>,
    /// A number that differs between nearby points of the domain.
    place: Expr,
    /// The dimensions of the image that remain.
    kept: Vec<usize>,
}

impl Strip {
    /// The strip along `reduced` dimensions of an image, with a variable of `lengths` for each.
    fn new(f: &Image, reduced: &[usize], lengths: Vec<Extent>) -> Strip {
        let kept: Vec<usize> = (0..f.rank()).filter(|d| !reduced.contains(d)).collect();
        let count = points(&lengths);
        let domain = domain(lengths.into_iter().map(|length| (int(0), length.expr)).collect());
        let mut at = vec![int(0); f.rank()];
        for (d, x) in kept.iter().zip(here(kept.len())) {
            at[*d] = x;
        }
        let mut place = domain.x.expr();
        for (r, d) in reduced.iter().enumerate() {
            at[*d] = domain.var(r).expr();
            place = if r == 0 { place } else { place + domain.var(r) };
        }
        Strip { domain, count, at, place, kept }
    }

    /// The extents of the remaining dimensions.
    fn extents(&self, f: &Image) -> Vec<Extent> {
        self.kept.iter().map(|d| f.extents[*d].clone()).collect()
    }

    /// The point of the result that belongs to the current point of the image.
    fn result_at(&self, f: &Image) -> Vec<Expr> {
        let all = here(f.rank());
        self.kept.iter().map(|d| all[*d].clone()).collect()
    }
}

impl Grower {
    /// All points along one or two dimensions, or the points of one dimension several times.
    fn strip(&mut self, f: &Image) -> Option<Strip> {
        let order = self.dice.order(f.rank());
        if order.is_empty() {
            return None;
        }
        if self.dice.chance(0.5) {
            let both = f.rank() > 1 && self.dice.chance(0.5);
            return Some(self.circle(f, if both { &order[..2] } else { &order[..1] }));
        }
        let is_short = |reduced: &[usize]| {
            reduced.iter().map(|d| f.extents[*d].points).product::<i64>() <= self.limits.serial
        };
        let two = f.rank() > 1 && is_short(&order[..2]) && self.dice.chance(0.7);
        let reduced = if two { &order[..2] } else { &order[..1] };
        Some(whole(f, reduced))
    }

    /// The points along one or two dimensions; the first one wraps around.
    fn circle(&mut self, f: &Image, reduced: &[usize]) -> Strip {
        let length = &f.extents[reduced[0]];
        let rest = f.points() / length.points.max(1);
        let count = self.dice.between(LONGEST / 4..=LONGEST).min(self.affordable(2 * rest));
        let turns = length.multiplied((count / length.points.max(1)).max(1));
        let extent = match self.dice.chance(0.5) {
            true => turns,
            false => Extent { points: count, expr: self.steps(count) },
        };
        let others = reduced[1..].iter().map(|d| f.extents[*d].clone());
        let mut strip = Strip::new(f, reduced, [extent].into_iter().chain(others).collect());
        let index = scaled(strip.domain.x.expr(), self.dice.pick(&[1, 1, 3]));
        strip.at[reduced[0]] = index % &length.expr;
        strip
    }

    /// A long reduction, alone or with the image relative to its result.
    pub fn long_reduction(&mut self, f: &Image) -> Option<Image> {
        let strip = self.strip(f)?;
        let term = self.read(f, strip.at.clone());
        let form = self.form();
        let result = self.strip_fold("result", f, &strip, form, term);
        if self.dice.chance(0.4) {
            return Some(result);
        }
        Some(self.relative(f, &strip, &[result]))
    }

    /// Several reductions over the same domain, and an expression of their results.
    pub fn siblings(&mut self, f: &Image) -> Option<Image> {
        let strip = self.strip(f)?;
        let mut results = Vec::new();
        for part in &["a", "b", "c"][..self.dice.pick(&[2, 2, 3])] {
            let term = self.read(f, strip.at.clone());
            let term = match self.dice.chance(0.4) {
                true => {
                    let Term { expr, reach, .. } = term.float();
                    Term::new(&expr * &expr, Type::F32, reach * reach).calm()
                }
                false => term,
            };
            results.push(self.strip_fold(part, f, &strip, SumForm::Update, term));
        }
        if self.dice.chance(0.5) {
            return Some(self.relative(f, &strip, &results));
        }
        let at = here(strip.kept.len());
        let value = self.combine(results.iter().map(|result| result.read(0, at.clone())).collect());
        let value = self.settled(value);
        Some(self.define(strip.extents(f), value))
    }

    /// The reduction of `term` over a strip with a random operator.
    fn strip_fold(&mut self, part: &str, f: &Image, strip: &Strip, form: SumForm, term: Term) -> Image {
        let term = match self.dice.chance(0.5) {
            true => {
                let ty = self.any_type();
                term.to(ty).calm()
            }
            false => self.addend(term),
        };
        let fold = Fold::any(&mut self.dice, term.ty);
        let term = fold.conditioned(&mut self.dice, term, strip.count, &strip.place);
        let reduction = Reduction { form, fold, domain: &strip.domain, term, is_varied: true };
        self.folded(part, strip.extents(f), reduction)
    }

    /// An expression of each value of an image and of the results for its row.
    fn relative(&mut self, f: &Image, strip: &Strip, results: &[Image]) -> Image {
        let at = strip.result_at(f);
        let mut terms = vec![self.read(f, here(f.rank()))];
        terms.extend(results.iter().map(|result| result.read(0, at.clone())));
        let value = self.combine(terms);
        let value = self.settled(value);
        self.define(f.extents.clone(), value)
    }

    /// A softmax along one dimension: the largest value, the sum of exponentials, the quotient.
    pub fn softmax(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        if !self.dice.chance(self.limits.functions) {
            return None;
        }
        let strip = whole(f, &[d]);
        let value = self.dice.below(f.reach.len());
        let source = |at: Vec<Expr>| steep(f.read(value, at));
        let peak = self.row_fold("peak", f, &strip, Fold::Max, source(strip.at.clone()));
        let is_fast = self.dice.chance(0.5);
        let power = |at: Vec<Expr>, row: Vec<Expr>| {
            let below = source(at).expr - peak.read(0, row).expr;
            Term::new(if is_fast { fast_exp(below) } else { exp(below) }, Type::F32, 1.0)
        };
        let own = power(here(f.rank()), strip.result_at(f));
        // The exponentials are computed twice, or once as a separate Func.
        let (own, term) = match self.dice.chance(0.4) {
            true => {
                let powers = self.define_part("powers", f.extents.clone(), own);
                (powers.read(0, here(f.rank())), powers.read(0, strip.at.clone()))
            }
            false => (own, power(strip.at.clone(), here(strip.kept.len()))),
        };
        let term = Term::new(term.expr, Type::F32, strip.count as f32);
        let total = self.row_fold("sum", f, &strip, Fold::Add, term);
        let divisor = total.read(0, strip.result_at(f)).expr;
        let value = self.settled(Term::new(own.expr / divisor, Type::F32, 1.0));
        Some(self.define(f.extents.clone(), value))
    }

    /// The reduction of `term` over a strip, without variations.
    fn row_fold(&mut self, part: &str, f: &Image, strip: &Strip, fold: Fold, term: Term) -> Image {
        let form = self.form();
        let reduction = Reduction { form, fold, domain: &strip.domain, term, is_varied: false };
        self.folded(part, strip.extents(f), reduction)
    }
}

/// A float of at most 8: the exponentials of larger differences would hide most of a row.
fn steep(term: Term) -> Term {
    let Term { expr, ty, reach } = term.float();
    if reach > 8.0 { Term::new(expr * (8.0 / reach), ty, 8.0) } else { Term::new(expr, ty, reach) }
}

/// All points along some dimensions.
fn whole(f: &Image, reduced: &[usize]) -> Strip {
    Strip::new(f, reduced, reduced.iter().map(|d| f.extents[*d].clone()).collect())
}
