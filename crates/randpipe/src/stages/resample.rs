//! Stages that change sizes and dimensions: resampling, pyramids, interleaving, mosaics.

use warploom_lang::{Expr, Operand, Type, average, mux, select};

use crate::grow::Grower;
use crate::image::{Extent, Image, VARS, here, int, shifted, with};
use crate::stages::reduce::domain;
use crate::term::Term;

impl Grower {
    /// Upsampling along one dimension, nearest or linear.
    pub fn upsample(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let factor = self.dice.between(2..=4);
        let mut extents = f.extents.clone();
        extents[d] = extents[d].multiplied(factor);
        if !self.fits(&extents) {
            return None;
        }
        let linear = self.dice.chance(0.5);
        let value = self.dice.below(f.reach.len());
        let value = upsampled(f, value, d, factor as i32, linear);
        let value = self.settled(value);
        Some(self.define(extents, value))
    }

    /// Downsampling along one dimension, by picking or averaging points.
    pub fn downsample(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let factor = self.dice.between(2..=4);
        let mut extents = f.extents.clone();
        extents[d] = extents[d].divided(factor);
        let x = here(f.rank()).swap_remove(d) * factor as i32;
        if self.dice.chance(0.4) {
            let offset = self.dice.between(0..=factor - 1);
            let value = self.read(f, with(here(f.rank()), d, shifted(x, offset)));
            return Some(self.define(extents, value));
        }
        let r = domain(vec![(int(0), self.steps(factor))]);
        let value = self.read(f, with(here(f.rank()), d, x + r.x));
        let form = self.form();
        Some(self.summed(form, extents, &r, factor, value))
    }

    /// A pyramid of levels of half the size, and the way back up.
    pub fn pyramid(&mut self, f: &Image) -> Option<Image> {
        if f.rank() < 2 || f.extents[0].points.min(f.extents[1].points) < 2 {
            return None;
        }
        let base = self.read(f, here(f.rank())).float();
        let mut levels = vec![self.define_part("level0", f.extents.clone(), base)];
        for level in 1..=self.dice.between(1..=3) as usize {
            let half = self.halved(&levels[level - 1], level);
            levels.push(half);
        }
        let coarsest = levels.pop()?;
        let linear = self.dice.chance(0.6);
        let mut result = coarsest;
        for (level, finer) in levels.iter().enumerate().rev() {
            let wide = upsampled(&result, 0, 0, 2, linear);
            let mut extents = result.extents.clone();
            extents[0] = finer.extents[0].clone();
            let wide = self.define_part(&format!("wide{level}"), extents, wide);
            let up = upsampled(&wide, 0, 1, 2, linear);
            let own = finer.read(0, here(f.rank()));
            let value = match self.dice.chance(0.5) {
                true => Term::new(own.expr - up.expr, Type::F32, own.reach),
                false => Term::new(own.expr * 0.5 + up.expr * 0.5, Type::F32, own.reach),
            };
            let part = if level == 0 { String::new() } else { format!("up{level}") };
            result = self.define_part(&part, finer.extents.clone(), value);
        }
        Some(result)
    }

    /// An image of half the width and height. Each point comes from 2x2 or 4x4 points.
    fn halved(&mut self, f: &Image, level: usize) -> Image {
        let weights: &[(i64, f32)] = match self.dice.chance(0.5) {
            true => &[(0, 0.5), (1, 0.5)],
            false => &[(-1, 0.125), (0, 0.375), (1, 0.375), (2, 0.125)],
        };
        let mut half = f.clone();
        for (d, part) in [(0, "narrow"), (1, "level")] {
            let x = here(f.rank()).swap_remove(d) * 2;
            let tap = |(shift, weight): &(i64, f32)| {
                half.read(0, with(here(f.rank()), d, shifted(x.clone(), *shift))).expr * *weight
            };
            let mean = weights.iter().map(tap).reduce(|a, b| a + b);
            let mean = mean.map_or(Term::constant(Type::F32, 0.0), |v| Term::new(v, Type::F32, f.reach[0]));
            let mut extents = half.extents.clone();
            extents[d] = extents[d].divided(2);
            half = self.define_part(&format!("{part}{level}"), extents, mean);
        }
        half
    }

    /// Points moved between two dimensions.
    pub fn interleave(&mut self, f: &Image) -> Option<Image> {
        if self.dice.chance(0.5) { self.split(f) } else { self.merged(f) }
    }

    /// `f(x * n + k, ...)`: one dimension becomes two.
    fn split(&mut self, f: &Image) -> Option<Image> {
        if f.rank() == 0 || f.rank() == VARS.len() {
            return None;
        }
        let count = self.dice.between(2..=4);
        let k = VARS[f.rank()];
        let value = self.read(f, with(here(f.rank()), 0, VARS[0] * count as i32 + k));
        let mut extents = f.extents.clone();
        extents[0] = extents[0].divided(count);
        extents.push(Extent::fixed(count));
        Some(self.define(extents, value))
    }

    /// `f(x / n, ..., x % n)`: the last dimension becomes part of the first.
    fn merged(&mut self, f: &Image) -> Option<Image> {
        let (last, others) = f.extents.split_last()?;
        let mut extents = others.to_vec();
        let first = extents.first_mut()?;
        *first = first.multiplied(last.points);
        let count = last.points as i32;
        let mut at = with(here(extents.len()), 0, VARS[0] / count);
        at.push(VARS[0] % count);
        let value = self.read(f, at);
        self.fits(&extents).then(|| self.define(extents, value))
    }

    /// Points of two images, alternating.
    pub fn zip(&mut self, f: &Image, g: &Image) -> Option<Image> {
        if f.rank() != g.rank() || f.rank() == 0 {
            return None;
        }
        let d = self.dice.below(f.rank());
        let x = VARS[d];
        let at = with(here(f.rank()), d, x / 2);
        let (a, b) = (self.read(f, at.clone()), self.read(g, at));
        let b = b.to(a.ty);
        let mut extents = f.extents.clone();
        extents[d] = extents[d].multiplied(2);
        let value = Term::new(select((x % 2).eq(0), a.expr, b.expr), a.ty, a.reach.max(b.reach));
        self.fits(&extents).then(|| self.define(extents, value))
    }

    /// Channels arranged as a sensor mosaic, demosaicked again or not.
    pub fn mosaic(&mut self, f: &Image) -> Option<Image> {
        if f.rank() < 2 || f.rank() > 3 {
            return None;
        }
        let (x, y) = (VARS[0], VARS[1]);
        let mut raw = f.clone();
        if let Some(channels) = f.extents.get(2) {
            let channel = |k: i64| f.read(0, vec![x.expr(), y.expr(), int(k % channels.points)]).expr;
            let even = select((x % 2).eq(0), channel(1), channel(0));
            let odd = select((x % 2).eq(0), channel(2), channel(1));
            let site = Term::new(select((y % 2).eq(0), even, odd), f.types()[0], f.reach[0]);
            raw = self.define_part("raw", f.extents[..2].to_vec(), site);
            if self.dice.chance(0.3) {
                return Some(raw);
            }
        }
        let mut extents = raw.extents.clone();
        extents.push(Extent::fixed(3));
        if !self.fits(&extents) {
            return None;
        }
        let ty = if raw.types()[0] == Type::Bool { Type::U8 } else { raw.types()[0] };
        let at =
            |dx: i64, dy: i64| raw.read(0, vec![shifted(x.expr(), dx), shifted(y.expr(), dy)]).to(ty).expr;
        let mean = |a: Expr, b: Expr| if ty.is_float() { (a + b) * 0.5 } else { average(a, b) };
        let (across, down) = (mean(at(-1, 0), at(1, 0)), mean(at(0, -1), at(0, 1)));
        let diagonal = mean(mean(at(-1, -1), at(1, 1)), mean(at(1, -1), at(-1, 1)));
        let (even_x, even_y) = ((x % 2).eq(0), (y % 2).eq(0));
        let red = select(&even_y, select(&even_x, &across, at(0, 0)), select(&even_x, &diagonal, &down));
        let green = select(even_x.eq(&even_y), at(0, 0), mean(across.clone(), down.clone()));
        let blue = select(even_y, select(&even_x, down, &diagonal), select(even_x, at(0, 0), across));
        let value = Term::new(mux(VARS[2], [red, green, blue]), ty, raw.reach[0]);
        Some(self.define(extents, value))
    }

    /// One dimension more or less: a slice, a diagonal, shifted copies.
    pub fn reshape(&mut self, f: &Image) -> Option<Image> {
        let rank = f.rank();
        let fewer = rank > 1 && (rank == VARS.len() || self.dice.chance(0.5));
        if !fewer {
            return self.copies(f);
        }
        let d = self.dice.below(rank);
        let mut extents = f.extents.clone();
        let dropped = extents.remove(d);
        let mut at = here(rank - 1);
        let index = match self.dice.chance(0.5) {
            true => int(self.dice.between(0..=dropped.points - 1)),
            false => self.dice.pick(&at),
        };
        at.insert(d, index);
        let value = self.read(f, at);
        Some(self.define(extents, value))
    }

    /// Copies of an image along a new last dimension, each shifted further.
    fn copies(&mut self, f: &Image) -> Option<Image> {
        let count = self.dice.between(2..=5);
        let mut extents = f.extents.clone();
        extents.push(Extent::fixed(count));
        if !self.fits(&extents) {
            return None;
        }
        let rank = f.rank();
        let mut at = here(rank + 1);
        let k = at.pop()?;
        if let Some(first) = at.first_mut() {
            *first = &*first + &k * self.dice.between(-2..=2) as i32;
        }
        let value = self.read(f, at);
        let value = match rank {
            // A single number cannot be shifted.
            0 => self.combine(vec![value, Term::index(k, count)]),
            _ => value,
        };
        Some(self.define(extents, value))
    }
}

/// The value at `x / factor` along a dimension, or an interpolation between it and the next.
fn upsampled(f: &Image, value: usize, d: usize, factor: i32, linear: bool) -> Term {
    let x = here(f.rank()).swap_remove(d);
    let at = |shift: i64| f.read(value, with(here(f.rank()), d, shifted(&x / factor, shift)));
    if !linear {
        return at(0);
    }
    let (near, far) = (at(0).float(), at(1).float());
    let part = (&x % factor).f32() * (1.0 / factor as f32);
    Term::new(near.expr * (1.0 - &part) + far.expr * part, Type::F32, near.reach)
}
