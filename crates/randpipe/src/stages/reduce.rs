//! Sums over domains, and the stages that are mostly sums.

use warploom_lang::{Expr, Operand, RDom, RRange, Type, Value, abs};

use crate::grow::Grower;
use crate::image::{Extent, Image, here, int, points, scaled, variables, with};
use crate::stages::fold::{Fold, Reduction};
use crate::term::Term;

/// The names of reduction variables.
const RVARS: [&str; 4] = ["rx", "ry", "rz", "rw"];

/// How a sum is expressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SumForm {
    /// An update of a Func that starts at 0.
    Update,
    /// An inline reduction in an expression.
    Inline,
}

/// A domain from at most four `(min, extent)` ranges.
pub fn domain(ranges: Vec<(Expr, Expr)>) -> RDom {
    let named = RVARS.iter().zip(ranges);
    RDom::new(named.map(|(name, (min, extent))| RRange::new(name, min, extent)).collect())
}

impl Grower {
    /// A random form: update or inline.
    pub fn form(&mut self) -> SumForm {
        self.dice.pick(&[SumForm::Update, SumForm::Inline])
    }

    /// A term that can be summed, in a type that may be too narrow for the sum.
    pub fn addend(&mut self, term: Term) -> Term {
        let wide = match term.ty {
            ty if ty.is_float() => return term.calm(),
            Type::Bool => return term.to(Type::I32),
            ty if ty.is_wide() => return term,
            ty if ty.is_signed() => self.type_of(&[Type::I32], &[Type::I64, Type::I32]),
            _ => self.type_of(&[Type::U32], &[Type::U64, Type::U32]),
        };
        if self.dice.chance(0.5) { term.to(wide) } else { term }
    }

    /// The sum of `term` over a domain of `count` points; the mean if values are floats.
    pub fn summed(
        &mut self,
        form: SumForm,
        extents: Vec<Extent>,
        domain: &RDom,
        count: i64,
        term: Term,
    ) -> Image {
        let term = self.addend(term);
        let term = Fold::Add.conditioned(&mut self.dice, term, count, &domain.var(0).expr());
        self.folded("", extents, Reduction { form, fold: Fold::Add, domain, term, is_varied: true })
    }

    /// A value times a coefficient for `at`, which is computed or comes from an input.
    pub fn weighted(&mut self, value: Term, at: Vec<Expr>) -> Term {
        let value = self.addend(value);
        let ty = value.ty;
        if self.dice.chance(0.4) {
            let weights = self.weights(ty, at.len());
            let weight = weights.read(0, at);
            return Term::new(value.expr * weight.expr, ty, value.reach * weight.reach.min(8.0));
        }
        let mut mixed = int(self.dice.between(0..=6));
        for index in at {
            mixed = mixed + scaled(index, self.dice.between(1..=5));
        }
        let weight = match ty {
            ty if ty.is_float() => (mixed % 7 - 2).cast(ty) * 0.25,
            ty => (mixed % 5).cast(ty),
        };
        Term::new(value.expr * weight, ty, 2.0 * value.reach)
    }

    /// Channel mixing over the last dimension: every channel from all channels.
    pub fn mix(&mut self, f: &Image) -> Option<Image> {
        let (extents, channels) = self.mixed_extents(f)?;
        if channels > 8 {
            return self.mix_sum(f, SumForm::Inline);
        }
        let last = f.rank() - 1;
        let out = here(f.rank()).swap_remove(last);
        let terms = (0..channels).map(|channel| {
            let value = self.read(f, with(here(f.rank()), last, int(channel)));
            self.weighted(value, vec![&out + channel as i32])
        });
        let terms: Vec<Term> = terms.collect();
        let value = self.combine(terms);
        let value = self.settled(value);
        Some(self.define(extents, value))
    }

    /// Channel mixing as a reduction.
    pub fn mix_sum(&mut self, f: &Image, form: SumForm) -> Option<Image> {
        let (extents, channels) = self.mixed_extents(f)?;
        let last = f.rank() - 1;
        let out = here(f.rank()).swap_remove(last);
        let r = domain(vec![(int(0), self.steps(channels))]);
        let value = self.read(f, with(here(f.rank()), last, r.x));
        let term = self.weighted(value, vec![r.x.expr(), out]);
        Some(self.summed(form, extents, &r, channels, term))
    }

    /// The extents of an image with a different number of channels, and the number of channels that
    /// can be read.
    fn mixed_extents(&mut self, f: &Image) -> Option<(Vec<Extent>, i64)> {
        let (last, others) = f.extents.split_last()?;
        if others.is_empty() {
            return None;
        }
        let mut extents = others.to_vec();
        extents.push(Extent::fixed(self.dice.pick(&[1, 2, 3, 4, 8])));
        let channels = last.points.min(self.affordable(points(&extents)));
        self.fits(&extents).then_some((extents, channels))
    }

    /// A matrix product: rows of `f` times columns of `g`.
    pub fn mat_mul(&mut self, f: &Image, g: &Image) -> Option<Image> {
        if f.rank() == 0 || g.rank() < 2 {
            return None;
        }
        // The width of the product comes from g, all other dimensions from f.
        let mut extents = vec![g.extents[0].clone()];
        extents.extend(f.extents.iter().skip(1).cloned());
        let shared = if f.extents[0].points < g.extents[1].points { &f.extents[0] } else { &g.extents[1] };
        let steps = self.affordable(points(&extents)).min(64);
        let (count, extent) = match shared.points <= steps {
            true => (shared.points, shared.expr.clone()),
            false => (steps, self.steps(steps)),
        };
        if !self.fits(&extents) {
            return None;
        }
        let r = domain(vec![(int(0), extent)]);
        let a = self.read(f, with(here(f.rank()), 0, r.x));
        let mut at = here(g.rank().min(f.rank().max(2)));
        at.resize_with(g.rank(), || int(0));
        let b = self.read(g, with(at, 1, r.x));
        let a = self.addend(a);
        let b = b.to(a.ty).calm();
        let reach = a.reach * b.reach;
        let term = Term::new(a.expr * b.expr, a.ty, reach).calm();
        let form = self.form();
        Some(self.summed(form, extents, &r, count, term))
    }

    /// One number from a whole image or per row, alone or with the image relative to it.
    pub fn total(&mut self, f: &Image) -> Option<Image> {
        let rank = f.rank();
        if rank == 0 {
            return None;
        }
        let reduced = if f.points() <= self.limits.serial && self.dice.chance(0.7) { rank } else { 1 };
        let (lost, kept) = f.extents.split_at(reduced);
        let r = domain(lost.iter().map(|extent| (int(0), extent.expr.clone())).collect());
        let rows = (0..reduced).map(|d| r.var(d).expr());
        let at = rows.chain(here(rank - reduced)).collect();
        let value = self.read(f, at);
        let value = self.addend(value);
        if self.dice.chance(0.4) {
            let form = self.form();
            return Some(self.summed(form, kept.to_vec(), &r, points(lost), value));
        }
        let args = variables(rank - reduced);
        let start = self.start("peak", args.len(), Value::zero(value.ty));
        let largest = start.over(&r, |f| f.max(args, value.expr));
        let peak = Term::new(largest.at(here(rank).split_off(reduced)), value.ty, value.reach).float();
        let own = self.read(f, here(rank)).float();
        let relative = Term::new(own.expr / (abs(peak.expr) + 1.0), Type::F32, own.reach);
        Some(self.define(f.extents.clone(), relative))
    }
}
