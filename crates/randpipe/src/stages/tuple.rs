//! Stages with several values, and reductions over part of a domain.

use warploom_lang::{Expr, Operand, RDom, Type, Undefined, Value, argmax, argmin, func, max, min};

use crate::grow::Grower;
use crate::image::{Image, VARS, here, int, variables, with};
use crate::stages::reduce::domain;
use crate::term::Term;

/// The smallest or largest value around a point.
struct Nearest {
    dimension: usize,
    /// The offset of that value along the dimension.
    place: Expr,
    best: Term,
    /// The number of points inspected.
    count: i64,
}

impl Grower {
    /// A window along one dimension: the dimension, a domain of up to `reach` points on each side,
    /// and the number of points.
    fn around(&mut self, f: &Image, reach: i64) -> Option<(usize, RDom, i64)> {
        let d = self.dimension(f)?;
        let before = self.dice.between(0..=reach);
        let count = (before + 1 + self.dice.between(0..=reach)).min(self.affordable(f.points()));
        let r = domain(vec![(int(-before), self.steps(count))]);
        Some((d, r, count))
    }

    /// The smallest or largest value in a window: its position and value, or an expression of both.
    pub fn extreme(&mut self, f: &Image) -> Option<Image> {
        let Nearest { place, best, count, .. } = self.nearest(f)?;
        let extents = f.extents.clone();
        if self.dice.chance(0.5) {
            let func = self.start("", f.rank(), (place, best.expr));
            return Some(self.image(func, extents, vec![count as f32, best.reach]));
        }
        let value = self.combine(vec![Term::index(place, count), best]);
        Some(self.define(extents, value))
    }

    /// The value of `g` where `f` is smallest or largest.
    pub fn match_extreme(&mut self, f: &Image, g: &Image) -> Option<Image> {
        if g.rank() != f.rank() {
            return None;
        }
        let Nearest { dimension: d, place, .. } = self.nearest(f)?;
        let there = self.read(g, with(here(f.rank()), d, VARS[d] + place));
        Some(self.define(f.extents.clone(), there))
    }

    fn nearest(&mut self, f: &Image) -> Option<Nearest> {
        let (dimension, r, count) = self.around(f, 4)?;
        let at = with(here(f.rank()), dimension, VARS[dimension] + r.x);
        let value = self.read(f, at).number();
        let found = match self.dice.chance(0.5) {
            true => argmin(&r, &value.expr),
            false => argmax(&r, &value.expr),
        };
        let best = Term::new(found.value, value.ty, value.reach);
        Some(Nearest { dimension, place: found.at[0].clone(), best, count })
    }

    /// A Func with several values, whose updates use all of them.
    pub fn tuple(&mut self, f: &Image) -> Option<Image> {
        match self.dice.below(3) {
            0 => self.range_and_count(f),
            1 => self.moments(f),
            _ => self.rotation(f),
        }
    }

    /// The smallest and largest value nearby, and the number of values below the point's own.
    fn range_and_count(&mut self, f: &Image) -> Option<Image> {
        let (d, r, count) = self.around(f, 3)?;
        let own = self.read(f, here(f.rank()));
        let own = self.addend(own);
        let near = f.read(0, with(here(f.rank()), d, VARS[d] + r.x)).to(own.ty).expr;
        let args = variables(f.rank());
        let func = self.start("", f.rank(), (&own.expr, &own.expr, 0)).over(&r, |t| {
            let [low, high, below] = [0, 1, 2].map(|value| t.get(value, args.clone()));
            let below = below + near.lt(&own.expr).i32();
            t.set(args.clone(), (min(low, &near), max(high, &near), below))
        });
        Some(self.image(func, f.extents.clone(), vec![own.reach, own.reach, count as f32]))
    }

    /// The sums of the values and of their squares; then an update that computes each from both.
    fn moments(&mut self, f: &Image) -> Option<Image> {
        let (d, r, count) = self.around(f, 3)?;
        let near = self.read(f, with(here(f.rank()), d, VARS[d] + r.x)).float();
        let (part, reach) = (1.0 / count as f32, near.reach);
        let value = near.expr;
        let args = variables(f.rank());
        let start = vec![Expr::from(0.0), Expr::from(0.0)];
        let mut func = self.start("", f.rank(), start).over(&r, |t| {
            let [sum, squares] = [0, 1].map(|value| t.get(value, args.clone()));
            t.set(args.clone(), (sum + &value * part, squares + &value * &value * part))
        });
        func = self.marked(func, true);
        if self.dice.chance(0.5) {
            func = func.update(|t| {
                let [sum, squares] = [0, 1].map(|value| t.get(value, args.clone()));
                t.set(args.clone(), (&squares - &sum * &sum, squares + sum))
            });
        }
        Some(self.image(func, f.extents.clone(), vec![reach * reach + reach; 2]))
    }

    /// A pair of numbers rotated at every step along a dimension, with the image added.
    fn rotation(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let along = |x: Expr| with(here(f.rank()), d, x);
        let length = f.extents[d].expr.clone();
        let source = |x: Expr| f.read(0, along(x)).float();
        let reach = 4.0 * source(int(0)).reach;
        let r = domain(vec![(int(1), length - 1)]);
        let undefined = self.dice.chance(0.5);
        let name = self.name("");
        let args = variables(f.rank());
        let first = source(int(0)).expr;
        let start = match undefined {
            true => func(name, args, Undefined(vec![Type::F32; 2]))
                .update(|t| t.set(along(int(0)), (first, Value::from(0.0f32)))),
            false => func(name, args, (source(VARS[d].expr()).expr, Value::from(0.5f32))),
        };
        let (cos, sin) = (0.625f32, 0.5f32);
        let turned = start.over(&r, |t| {
            let [re, im] = [0, 1].map(|value| t.get(value, along(r.x - 1)));
            let real = &re * cos - &im * sin + source(r.x.expr()).expr;
            t.set(along(r.x.expr()), (real, re * sin + im * cos))
        });
        let image = self.image(turned, f.extents.clone(), vec![reach; 2]);
        Some(Image { total: !undefined, ..image })
    }

    /// A reduction over part of a window.
    pub fn filtered(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let most = self.affordable(f.points());
        let width = self.dice.between(1..=5).min(most);
        let height = self.dice.between(1..=5).min((most / width).max(1));
        let r = domain(vec![(int(-1), self.steps(width)), (int(-2), self.steps(height))]);
        let value = self.read(f, with(here(f.rank()), d, VARS[d] + r.x + r.y * 2));
        let value = self.addend(value);
        let condition = match self.dice.below(5) {
            0 => r.x.le(r.y),
            1 => (r.x * r.x + r.y * r.y).lt(5),
            2 => ((VARS[d] + r.x + r.y) % 2).eq(0),
            3 => value.expr.gt(Term::constant(value.ty, value.reach * 0.25).expr),
            _ => {
                let limit = self.scalar(Type::I32);
                (r.x + r.y).lt(limit.expr)
            }
        };
        let part = r.filter(condition);
        let form = self.form();
        Some(self.summed(form, f.extents.clone(), &part, width * height, value))
    }
}
