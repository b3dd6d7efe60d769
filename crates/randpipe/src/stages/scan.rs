//! Stages with a loop-carried dependence: scans, recursive filters, integral images, log-steps.

use warploom_lang::{Expr, Func, Operand, Param, Type, Value, average, clamp, undef};

use crate::grow::Grower;
use crate::image::{Extent, Image, VARS, here, int, shifted, with};
use crate::stages::fold::Fold;
use crate::stages::reduce::domain;
use crate::term::{Term, type_reach};

/// How a running value is combined with the next value.
#[derive(Clone)]
enum Running {
    Fold(Fold),
    Average,
    /// A linear recurrence: the running value times one factor plus the next one times another.
    Linear(Expr, Expr),
}

impl Running {
    fn step(&self, before: Expr, next: Expr) -> Expr {
        match self {
            // Even factors would soon make 0.
            Running::Fold(Fold::Mul) => before * (next | 1),
            Running::Fold(fold) => fold.step(before, next),
            Running::Average => average(before, next),
            Running::Linear(old, new) => before * old + next * new,
        }
    }

    /// Whether the order of steps matters for the type but not for real numbers.
    fn is_ordered(&self, ty: Type) -> bool {
        match self {
            Running::Fold(fold) => fold.is_ordered(ty),
            Running::Average => false,
            Running::Linear(..) => true,
        }
    }
}

/// The direction of a scan along a dimension.
#[derive(Clone, Copy)]
enum Sweep {
    Forward,
    Backward,
}

impl Sweep {
    /// The index at a step, of a dimension of extent `length`.
    fn at(self, step: Expr, length: &Expr) -> Expr {
        match self {
            Sweep::Forward => step,
            Sweep::Backward => length - 1 - step,
        }
    }

    /// The index some steps earlier.
    fn before(self, index: &Expr, steps: i32) -> Expr {
        match self {
            Sweep::Forward => index - steps,
            Sweep::Backward => index + steps,
        }
    }
}

impl Grower {
    /// A random way to scan values of a type, and the magnitude of the running value after `steps`.
    fn running(&mut self, term: &Term, steps: i64) -> (Running, f32) {
        // Sums of many floats of 16 bits lose most of their terms, or overflow.
        let is_long = term.ty.is_half() && steps > 16;
        if term.ty.is_float() && (is_long || self.dice.chance(0.5)) {
            return self.linear(term.ty, term.reach);
        }
        if term.ty.is_int() && self.dice.chance(0.1) {
            return (Running::Average, term.reach);
        }
        let fold = match Fold::any(&mut self.dice, term.ty) {
            Fold::Mul if term.ty.is_float() => Fold::Add,
            fold => fold,
        };
        let reach = match fold {
            Fold::Add => term.reach * steps as f32,
            Fold::Mul => type_reach(term.ty),
            _ => term.reach,
        };
        (Running::Fold(fold), reach)
    }

    /// A linear recurrence that decays, and the magnitude of its value.
    fn linear(&mut self, ty: Type, reach: f32) -> (Running, f32) {
        let sixteenths = self.dice.between(2..=14) as f32 / 16.0;
        if self.dice.chance(0.5) {
            let sign = self.dice.pick(&[1.0, 1.0, -1.0]);
            let taken = self.dice.factor();
            let limit = reach * taken.abs() / (1.0 - sixteenths);
            return (Running::Linear((sign * sixteenths).into(), taken.into()), limit);
        }
        // An average with weights that add up to 1.
        if !self.dice.chance(0.3) {
            return (Running::Linear((1.0 - sixteenths).into(), sixteenths.into()), reach);
        }
        let param = Param::new(format!("a{}", self.params.len()), ty);
        let param = param.range(Value::zero(ty), Value::one(ty));
        self.params.push((param.clone(), Value::rounded(ty, sixteenths.into()).unwrap_or(Value::one(ty))));
        let part = Expr::from(&param);
        (Running::Linear(1.0 - &part, part), reach)
    }

    /// One sweep, or one followed by the opposite one.
    fn sweeps(&mut self) -> Vec<Sweep> {
        use Sweep::*;
        self.dice.pick(&[vec![Forward], vec![Backward], vec![Forward, Backward], vec![Backward, Forward]])
    }

    /// A scan along one dimension: forward, backward, or both.
    pub fn scan(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let along = |x: Expr| with(here(f.rank()), d, x);
        let value = self.dice.below(f.reach.len());
        let start = f.read(value, here(f.rank()));
        let length = &f.extents[d];
        let (running, reach) = self.running(&start, length.points);
        let is_ordered = running.is_ordered(start.ty);
        let r = domain(vec![(int(1), &length.expr - 1)]);
        let r = match self.dice.chance(0.2) {
            true => r.clone().filter((r.x % 3).ne(0)),
            false => r,
        };
        // The first sweep may read the image instead of its copy.
        let mut is_direct = self.dice.chance(0.5);
        let mut func = self.start("", f.rank(), start.expr);
        for sweep in self.sweeps() {
            let at = sweep.at(r.x.expr(), &length.expr);
            func = func.over(&r, |scan| {
                let here = along(at.clone());
                let next = if is_direct { f.read(value, here.clone()).expr } else { scan.at(here.clone()) };
                scan.set(here, running.step(scan.at(along(sweep.before(&at, 1))), next))
            });
            func = self.marked(func, is_ordered);
            is_direct = false;
        }
        Some(self.image(func, f.extents.clone(), vec![reach]))
    }

    /// A recursive filter that starts from its first points only.
    pub fn recursive(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let along = |x: Expr| with(here(f.rank()), d, x);
        let value = self.dice.below(f.reach.len());
        let (ty, length) = (f.types()[value], &f.extents[d]);
        let source = |x: Expr| f.read(value, along(x)).expr;
        let like = Term::new(source(int(0)), ty, f.reach[value]);
        let (running, reach) = self.running(&like, length.points);
        // A second-order filter looks back two points, so it needs two initial points.
        let order = match ty.is_float() && length.points > 2 && self.dice.chance(0.4) {
            true => 2,
            false => 1,
        };
        let sweeps = self.sweeps();
        let mut own = self.start("", f.rank(), undef(ty));
        for first in 0..order {
            let first = sweeps[0].at(int(first), &length.expr);
            own = own.update(|own| own.set(along(first.clone()), source(first)));
        }
        let r = domain(vec![(int(order), &length.expr - order as i32)]);
        for (number, sweep) in sweeps.into_iter().enumerate() {
            let at = sweep.at(r.x.expr(), &length.expr);
            own = own.over(&r, |own| {
                let next = if number == 0 { source(at.clone()) } else { own.at(along(at.clone())) };
                let mut next = running.step(own.at(along(sweep.before(&at, 1))), next);
                if number == 0 && order == 2 {
                    next = next * 0.75 - own.at(along(sweep.before(&at, 2))) * 0.25;
                }
                own.set(along(at), next)
            });
            own = self.marked(own, running.is_ordered(ty));
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
            ty if ty.is_float() => {
                let value = value.calm();
                Term::new(value.expr * 0.0625, ty, value.reach * 0.0625)
            }
            _ => self.addend(value),
        };
        let start = self.start("area", f.rank(), expr);
        let short = f.points() <= self.limits.serial;
        let func =
            if short && self.dice.chance(0.5) { by_corners(start, f) } else { self.by_rows(start, f, ty) };
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

    /// Cumulative sums along rows, then along columns.
    fn by_rows(&mut self, mut own: Func, f: &Image, ty: Type) -> Func {
        for d in 0..2 {
            let r = domain(vec![(int(1), &f.extents[d].expr - 1)]);
            let at = |x: Expr| with(here(f.rank()), d, x);
            own = own.over(&r, |own| own.add(at(r.x.expr()), own.at(at(r.x - 1))));
            own = self.marked(own, ty.is_float());
        }
        own
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
