//! Stages with a loop-carried dependence: scans, recursive filters, integral images, log-steps.

use warploom_lang::{Expr, Func, Itself, Operand, Type, average, clamp, max, min, undef};

use crate::grow::Grower;
use crate::image::{Extent, Image, VARS, here, int, shifted, with};
use crate::stages::reduce::domain;
use crate::term::Term;

/// How a running value is combined with the next value.
#[derive(Clone)]
enum Running {
    Max,
    Min,
    Add,
    Xor,
    Average,
    /// A blend: this fraction of the next value, the rest of the running one.
    Blend(Expr),
}

impl Running {
    fn step(&self, before: Expr, next: Expr) -> Expr {
        match self {
            Running::Max => max(before, next),
            Running::Min => min(before, next),
            Running::Add => before + next,
            Running::Xor => before ^ next,
            Running::Average => average(before, next),
            Running::Blend(part) => before * (1.0 - part) + next * part,
        }
    }
}

impl Grower {
    /// A random way to scan values of a type, and the magnitude of the running value after `steps`.
    fn running(&mut self, term: &Term, steps: i64) -> (Running, f32) {
        let sum = term.reach * steps as f32;
        match (term.ty, self.dice.below(5)) {
            (Type::Bool, _) => (Running::Xor, 1.0),
            (_, 0) => (Running::Max, term.reach),
            (_, 1) => (Running::Min, term.reach),
            (Type::F32, 2) => (Running::Add, sum),
            (Type::F32, _) => {
                let part = Term::constant(Type::F32, self.dice.between(2..=14) as f32 / 16.0);
                (Running::Blend(part.expr), term.reach)
            }
            (_, 2) => (Running::Average, term.reach),
            (_, 3) => (Running::Xor, term.reach),
            _ => (Running::Add, sum),
        }
    }

    /// A scan along one dimension, possibly forward and then backward.
    pub fn scan(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let rank = f.rank();
        let start = self.read(f, here(rank));
        let length = &f.extents[d];
        let (running, reach) = self.running(&start, length.points);
        let r = domain(vec![(int(1), &length.expr - 1)]);
        let r = match self.dice.chance(0.2) {
            true => r.clone().filter((r.x % 3).ne(0)),
            false => r,
        };
        let along = |x: Expr| with(here(rank), d, x);
        let step = |scan: &Itself, before: Expr, at: Expr| {
            let value = running.step(scan.at(along(before)), scan.at(along(at.clone())));
            scan.set(along(at), value)
        };
        let mut func = self.start("", rank, start.expr).over(&r, |scan| step(scan, r.x - 1, r.x.expr()));
        if self.dice.chance(0.6) {
            let back = &length.expr - 1 - r.x;
            func = func.over(&r, |scan| step(scan, &back + 1, back));
        }
        Some(self.image(func, f.extents.clone(), vec![reach]))
    }

    /// A recursive filter that starts from its first points only.
    pub fn recursive(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let rank = f.rank();
        let along = |x: Expr| with(here(rank), d, x);
        let value = self.dice.below(f.reach.len());
        let source = |x: Expr| f.read(value, along(x)).expr;
        let (ty, length) = (f.types()[value], &f.extents[d]);
        let like = Term::new(source(int(0)), ty, f.reach[value]);
        let (running, reach) = self.running(&like, length.points);
        // A second-order filter looks back two points, so it needs two initial points.
        let order = if ty.is_float() && length.points > 2 { self.dice.between(1..=2) } else { 1 };
        let mut own = self.start("", rank, undef(ty));
        for first in 0..order {
            own = own.update(|own| own.set(along(int(first)), source(int(first))));
        }
        let r = domain(vec![(int(order), &length.expr - order as i32)]);
        own = own.over(&r, |own| {
            let mut next = running.step(own.at(along(r.x - 1)), source(r.x.expr()));
            if order == 2 {
                next = next * 0.75 - own.at(along(r.x - 2)) * 0.25;
            }
            own.set(along(r.x.expr()), next)
        });
        if self.dice.chance(0.5) {
            let back = &length.expr - 1 - r.x;
            own = own.over(&r, |own| {
                let next = running.step(own.at(along(&back + 1)), own.at(along(back.clone())));
                own.set(along(back), next)
            });
        }
        let image = self.image(own, f.extents.clone(), vec![reach]);
        Some(Image { total: false, ..image })
    }

    /// An integral image, alone or with box means.
    pub fn integral(&mut self, f: &Image) -> Option<Image> {
        if f.rank() < 2 {
            return None;
        }
        let value = self.read(f, here(f.rank()));
        let Term { expr, ty, reach } = match value.ty {
            Type::F32 => Term::new(value.expr * 0.0625, Type::F32, value.reach * 0.0625),
            _ => self.addend(value),
        };
        let start = self.start("area", f.rank(), expr);
        let short = f.points() <= self.limits.serial;
        let func = if short && self.dice.chance(0.5) { by_corners(start, f) } else { by_rows(start, f) };
        let reach = reach * (f.extents[0].points * f.extents[1].points) as f32;
        let area = self.image(func, f.extents.clone(), vec![reach]);
        if self.dice.chance(0.3) {
            return Some(area);
        }
        let (across, down) = (self.dice.between(1..=4) as i32, self.dice.between(1..=4) as i32);
        let corner = |dx: i32, dy: i32| {
            let mut at = here(f.rank());
            at[0] = clamp(&at[0] + dx, 0, &f.extents[0].expr - 1);
            at[1] = clamp(&at[1] + dy, 0, &f.extents[1].expr - 1);
            area.read(0, at).expr
        };
        let inside =
            corner(across, down) - corner(-across, down) - corner(across, -down) + corner(-across, -down);
        let part = (4 * across * down) as f32 / (f.extents[0].points * f.extents[1].points) as f32;
        let value = self.settled(Term::new(inside, ty, reach * part.min(1.0)));
        Some(self.define(f.extents.clone(), value))
    }

    /// The maximum over 2^t neighbours from the maxima over 2^(t-1), for every t.
    pub fn log_steps(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let rank = f.rank();
        let slices = self.dice.between(2..=4);
        let mut extents = f.extents.clone();
        extents.push(Extent::fixed(slices));
        if rank == VARS.len() || !self.fits(&extents) {
            return None;
        }
        let start = self.read(f, here(rank));
        let (running, reach) = self.running(&start, 1 << slices);
        let r = domain(vec![(int(0), f.extents[d].expr.clone()), (int(1), int(slices - 1))]);
        let far = clamp(Expr::from(1) << (r.y - 1), 0, 1 << (slices - 1));
        let at = |x: Expr, slice: Expr| with(with(here(rank + 1), d, x), rank, slice);
        let func = self.start("slices", rank + 1, start.expr).over(&r, |own| {
            let near = own.at(at(r.x.expr(), r.y - 1));
            let value = running.step(near, own.at(at(r.x + far, r.y - 1)));
            own.set(at(r.x.expr(), r.y.expr()), value)
        });
        let all = self.image(func, extents, vec![reach]);
        if self.dice.chance(0.3) {
            return Some(all);
        }
        let last = |shift: i64| {
            let mut at = here(rank);
            at[d] = shifted(at[d].clone(), -shift);
            at.push(int(slices - 1));
            all.read(0, at)
        };
        let (left, right) = (last((1 << slices) / 2), last(0));
        let value = Term::new(running.step(left.expr, right.expr), right.ty, reach);
        Some(self.define(f.extents.clone(), value))
    }
}

/// Cumulative sums along rows, then along columns.
fn by_rows(start: Func, f: &Image) -> Func {
    let (width, height) = (&f.extents[0].expr, &f.extents[1].expr);
    let at = |d: usize, x: Expr| with(here(f.rank()), d, x);
    let (rx, ry) = (domain(vec![(int(1), width - 1)]), domain(vec![(int(1), height - 1)]));
    start
        .over(&rx, |own| own.add(at(0, rx.x.expr()), own.at(at(0, rx.x - 1))))
        .over(&ry, |own| own.add(at(1, ry.x.expr()), own.at(at(1, ry.x - 1))))
}

/// Every point from its three neighbours above and to the left.
fn by_corners(start: Func, f: &Image) -> Func {
    let (width, height) = (&f.extents[0].expr, &f.extents[1].expr);
    let r = domain(vec![(int(1), width - 1), (int(1), height - 1)]);
    let at = |x: Expr, y: Expr| with(with(here(f.rank()), 0, x), 1, y);
    start.over(&r, |own| {
        let (left, above) = (own.at(at(r.x - 1, r.y.expr())), own.at(at(r.x.expr(), r.y - 1)));
        own.add(at(r.x.expr(), r.y.expr()), left + above - own.at(at(r.x - 1, r.y - 1)))
    })
}
