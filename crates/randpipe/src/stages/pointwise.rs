//! Stages that read each image once per point: expressions, comparisons, boundary conditions,
//! layout.

use warploom_lang::{Bounded, Expr, Limit, Operand, Type, clamp, max, min, select, tanh};

use crate::grow::Grower;
use crate::image::{Body, Extent, Image, here, int, scaled, shifted};
use crate::term::{Term, function, type_reach};

impl Grower {
    /// The value of `image` that corresponds to a point of an image with `extents`, for any sizes
    /// of both.
    pub fn fitted(&mut self, image: &Image, extents: &[Extent]) -> Term {
        let at = (0..image.rank()).map(|d| self.fitted_index(&image.extents[d], d, extents)).collect();
        self.read(image, at)
    }

    /// The index into dimension `d`, of extent `source`, for a point of an image with `extents`.
    fn fitted_index(&mut self, source: &Extent, d: usize, extents: &[Extent]) -> Expr {
        let Some(target) = extents.get(d) else {
            return int(self.dice.between(0..=source.points - 1));
        };
        let x = here(d + 1).swap_remove(d);
        let (has, wanted) = (source.points, target.points);
        match (self.dice.below(4), has < wanted) {
            _ if has == wanted => x,
            (0, true) => x % &source.expr,
            (1, true) => clamp(x, 0, &source.expr - 1),
            (_, true) => x / ((wanted + has - 1) / has) as i32,
            (0, false) => x,
            (_, false) => {
                let step = has / wanted;
                shifted(scaled(x, step), self.dice.between(0..=step - 1))
            }
        }
    }

    /// A random expression of two images, over the extents of the larger one.
    pub fn binary(&mut self, f: &Image, g: &Image) -> Image {
        let larger = if g.points() > f.points() { g } else { f };
        let extents = larger.extents.clone();
        let mut terms = vec![self.fitted(f, &extents), self.fitted(g, &extents)];
        if self.dice.chance(0.3) {
            let ty = terms[0].ty;
            terms.push(self.scalar(ty));
        }
        let value = self.combine(terms);
        let value = self.settled(value);
        self.define(extents, value)
    }

    /// A rectifier or a smooth activation.
    pub fn activation(&mut self, f: &Image) -> Image {
        let value = self.read(f, here(f.rank()));
        let value = match (value.ty, self.dice.below(4)) {
            (Type::Bool, _) => Term::new(!value.expr, Type::Bool, 1.0),
            (ty, 0) if ty.is_float() => Term::new(tanh(value.expr), ty, 1.0),
            (ty, 1) if ty.is_float() => {
                let value = value.calm();
                let slope = self.scalar(ty);
                let negative = min(&value.expr, 0.0) * slope.expr;
                Term::new(max(value.expr, 0.0) + negative, ty, 2.0 * value.reach)
            }
            (ty, _) if ty.is_float() => Term::new(max(value.expr, 0.0), ty, value.reach),
            (ty, shift) if ty.is_signed() => narrowed(Term { expr: max(value.expr, 0), ..value }, shift),
            (_, shift) => narrowed(value, shift),
        };
        let value = self.settled(value);
        self.define(f.extents.clone(), value)
    }

    /// An elementary function of each value.
    pub fn unary(&mut self, f: &Image) -> Option<Image> {
        if !self.dice.chance(self.limits.functions) {
            return None;
        }
        let value = self.read(f, here(f.rank()));
        let value = function(&mut self.dice, value);
        let value = self.settled(value);
        Some(self.define(f.extents.clone(), value))
    }

    /// A comparison of two images, alone or with a select that uses it.
    pub fn mask(&mut self, f: &Image, g: &Image) -> Image {
        let extents = f.extents.clone();
        let (a, b) = (self.fitted(f, &extents).float(), self.fitted(g, &extents).float());
        let level = b.expr.clone() * (a.reach / b.reach.max(1e-3));
        let condition = match self.dice.below(3) {
            0 => a.expr.gt(a.reach * 0.4),
            1 => a.expr.le(level),
            _ => a.expr.lt(&level) ^ b.expr.lt(0.25),
        };
        let value = match self.dice.chance(0.4) {
            true => Term::new(condition, Type::Bool, 1.0),
            false => Term::new(select(condition, a.expr, b.expr), Type::F32, a.reach.max(b.reach)),
        };
        self.define(extents, value)
    }

    /// A boundary condition around a Func with one value.
    pub fn pad(&mut self, f: &Image) -> Option<Image> {
        let Body::Func(func) = &f.body else { return None };
        if f.reach.len() > 1 || f.rank() == 0 {
            return None;
        }
        // If nothing is defined outside the box, every dimension needs a limit.
        let mut limit = |extent: &Extent| {
            let limited = !f.total || self.dice.chance(0.75);
            limited.then(|| (int(0), extent.expr.clone()))
        };
        let limits: Vec<Limit> = f.extents.iter().map(&mut limit).collect();
        let padded = match self.dice.below(5) {
            0 => func.repeat_edge_in(limits),
            1 => func.repeat_image_in(limits),
            2 => func.mirror_image_in(limits),
            3 => func.mirror_interior_in(limits),
            _ => {
                let outside = self.scalar(func.types()[0]);
                func.constant_exterior_in(limits, outside.expr)
            }
        };
        let name = self.name("");
        Some(self.image(padded.named(name), f.extents.clone(), f.reach.clone()))
    }

    /// A transposition of two dimensions.
    pub fn transpose(&mut self, f: &Image) -> Option<Image> {
        let rank = f.rank();
        if rank < 2 {
            return None;
        }
        let a = self.dice.below(rank - 1);
        let b = a + 1 + self.dice.below(rank - 1 - a);
        let (mut at, mut extents) = (here(rank), f.extents.clone());
        at.swap(a, b);
        extents.swap(a, b);
        let value = self.read(f, at);
        let value = self.settled(value);
        Some(self.define(extents, value))
    }
}

/// An integer shifted right; if `shift` is 0, saturated to a narrower type instead.
fn narrowed(value: Term, shift: usize) -> Term {
    let Term { expr, ty, reach } = value;
    let narrow = match ty {
        Type::I64 => Type::I32,
        Type::I32 | Type::I16 => Type::I8,
        Type::U64 => Type::U32,
        Type::U32 => Type::U16,
        _ => Type::U8,
    };
    if shift == 0 {
        return Term::new(expr.saturating_cast(narrow), narrow, type_reach(narrow));
    }
    Term::new(expr >> shift as i32, ty, reach)
}
