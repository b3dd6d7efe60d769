//! Stages with data-dependent indices: histograms, tables, slices, gathers, scatters.

use warploom_lang::{Expr, Func, Operand, RDom, Type, Value, clamp};

use crate::grow::Grower;
use crate::image::{Extent, Image, VARS, here, int, points, shifted, with};
use crate::stages::reduce::domain;
use crate::term::{Binning, Term, function, type_reach};

impl Grower {
    pub fn binning(&mut self) -> Binning {
        self.dice.pick(&Binning::ALL)
    }

    /// A histogram per tile.
    pub fn tile_histogram(&mut self, f: &Image) -> Option<Image> {
        if f.rank() < 2 {
            return None;
        }
        let size = self.dice.pick(&[2, 4, 8]);
        let bins = self.dice.pick(&[3, 4, 8, 16]);
        let mut extents: Vec<Extent> = f.extents[..2].iter().map(|extent| extent.divided(size)).collect();
        extents.push(Extent::fixed(bins));
        if !self.fits(&extents) {
            return None;
        }
        let r = domain(vec![(int(0), int(size)), (int(0), int(size))]);
        let mut at = vec![VARS[0] * size as i32 + r.x, VARS[1] * size as i32 + r.y];
        for extent in &f.extents[2..] {
            at.push(int(self.dice.between(0..=extent.points - 1)));
        }
        let binning = self.binning();
        let bin = self.read(f, at).index_of(binning, bins);
        use Type::*;
        let ty = self.type_of(&[I32, U8, U16, F32], &[F16, BF16, F64, I64, U64, I32]);
        let one = Term::constant(ty, 1.0).expr;
        let point = with(here(3), 2, bin);
        let func = self.start("", 3, Value::zero(ty)).over(&r, |own| own.add(point, one));
        let func = self.marked(func, ty.is_float());
        Some(self.image(func, extents, vec![(size * size) as f32]))
    }

    /// A histogram of a whole image or of each channel: the table itself, or the entry of every
    /// point.
    pub fn histogram(&mut self, f: &Image) -> Option<Image> {
        if f.rank() == 0 || f.points() > self.limits.serial {
            return None;
        }
        let kept = usize::from(f.rank() > 2 && self.dice.chance(0.4));
        let (lost, channels) = f.extents.split_at(f.rank() - kept);
        let r = all_points(lost);
        let bins = self.dice.pick(&[7, 16, 33, 64]);
        let (binning, value) = (self.binning(), self.dice.below(f.reach.len()));
        let entry = |at: Vec<Expr>, channel: Vec<Expr>| {
            [vec![f.read(value, at).index_of(binning, bins)], channel].concat()
        };
        let channel = here(1 + kept).split_off(1);
        let at = (0..lost.len()).map(|d| r.var(d).expr()).chain(channel.clone()).collect::<Vec<_>>();
        use Type::*;
        let ty = self.type_of(&[U32, I32, F32], &[F64, I64, U64, U32]);
        let own = f.read(value, at.clone()).number();
        let part = if self.dice.chance(0.4) { self.part_of(r.clone(), &own) } else { r };
        let weight = if self.dice.chance(0.5) { Term::constant(ty, 1.0) } else { own.to(ty).calm() };
        let func = self.start("table", 1 + kept, Value::zero(ty));
        let func = func.over(&part, |table| table.add(entry(at, channel), weight.expr));
        let func = self.marked(func, ty.is_float());
        let extents = [&[Extent::fixed(bins)], channels].concat();
        let reach = (weight.reach * points(lost) as f32).min(type_reach(ty));
        let table = self.image(func, extents, vec![reach]);
        if self.dice.chance(0.3) {
            return Some(table);
        }
        let all = here(f.rank());
        let looked_up = table.read(0, entry(all.clone(), all[lost.len()..].to_vec()));
        let value = self.settled(looked_up);
        Some(self.define(f.extents.clone(), value))
    }

    /// Some points of a domain: those with large values, or a pattern.
    fn part_of(&mut self, r: RDom, value: &Term) -> RDom {
        let condition = match self.dice.chance(0.5) {
            true => value.expr.gt(Term::constant(value.ty, value.reach * 0.25).expr),
            false => (r.var(0) % 3).ne(self.dice.between(0..=2) as i32),
        };
        r.filter(condition)
    }

    /// A histogram of the whole image, its cumulative sum, and the rank of every value.
    pub fn equalize(&mut self, f: &Image) -> Option<Image> {
        let bins = self.dice.pick(&[16, 64, 256]);
        let (binning, value) = (self.binning(), self.dice.below(f.reach.len()));
        let bin = |at: Vec<Expr>| f.read(value, at).index_of(binning, bins);
        let histogram = self.counts(f, bins, &bin)?;
        let r = domain(vec![(int(1), int(bins - 1))]);
        let first = histogram.at(VARS[0]);
        let ranks =
            self.start("ranks", 1, first).over(&r, |own| own.set(r.x, own.at(r.x - 1) + histogram.at(r.x)));
        let rank = ranks.at(bin(here(f.rank()))).f32() * (1.0 / f.points() as f32);
        let value = self.settled(Term::new(rank, Type::F32, 1.0));
        Some(self.define(f.extents.clone(), value))
    }

    /// The histogram of an image: counted point by point, or per row and then added up.
    fn counts(&mut self, f: &Image, bins: i64, bin: &impl Fn(Vec<Expr>) -> Expr) -> Option<Func> {
        let (first, others) = f.extents.split_first()?;
        if f.points() <= self.limits.serial && (others.is_empty() || self.dice.chance(0.6)) {
            let r = all_points(&f.extents);
            let at = (0..f.rank()).map(|d| r.var(d).expr()).collect();
            return Some(self.start("histogram", 1, 0).over(&r, |own| own.add(bin(at), 1)));
        }
        if others.is_empty() || bins * points(others) > self.limits.image {
            return None;
        }
        // Row histograms have the variables of the image, with the bin in place of the first.
        let r = domain(vec![(int(0), first.expr.clone())]);
        let row = bin(with(here(f.rank()), 0, r.x));
        let rows = self.start("rows", f.rank(), 0).over(&r, |own| own.add(with(here(f.rank()), 0, row), 1));
        let r = all_points(others);
        let mut at = vec![VARS[0].expr()];
        at.extend((0..others.len()).map(|d| r.var(d).expr()));
        Some(self.start("histogram", 1, 0).over(&r, |own| own.add(VARS[0], rows.at(at))))
    }

    /// A curve as a lookup table, indexed by an image's values.
    pub fn curve(&mut self, f: &Image) -> Image {
        let entries = self.dice.pick(&[16, 100, 256]);
        let table = match self.dice.chance(0.3) {
            true => {
                let ty = self.ty();
                self.weights(ty, 1)
            }
            false => {
                let place = Term::new(VARS[0].f32() * (4.0 / entries as f32), Type::F32, 4.0);
                let value = function(&mut self.dice, place);
                let value = self.settled(value);
                self.define_part("table", vec![Extent::fixed(entries)], value)
            }
        };
        let binning = self.binning();
        let index = self.read(f, here(f.rank())).index_of(binning, entries);
        let value = table.read(0, vec![index]);
        self.define(f.extents.clone(), value)
    }

    /// `g` with a value of `f` as its last index.
    pub fn slice(&mut self, f: &Image, g: &Image) -> Option<Image> {
        let (last, extents) = g.extents.split_last()?;
        // A one-dimensional table is read at every point of f.
        let extents = if extents.is_empty() { &f.extents } else { extents };
        let binning = self.binning();
        let index = self.fitted(f, extents).index_of(binning, last.points);
        let mut at = here(g.rank() - 1);
        at.push(index);
        let value = self.read(g, at);
        Some(self.define(extents.to_vec(), value))
    }

    /// `g` read at an offset given by values of `f`.
    pub fn gather(&mut self, f: &Image, g: &Image) -> Option<Image> {
        let d = self.dimension(g)?;
        let reach = self.dice.between(2..=6);
        let binning = self.binning();
        let away = self.fitted(f, &g.extents).bin(binning, reach) - (reach / 2) as i32;
        let mut index = VARS[d] + away;
        if self.dice.chance(0.4) {
            index = clamp(index, 0, &g.extents[d].expr - 1);
        }
        let value = self.read(g, with(here(g.rank()), d, index));
        Some(self.define(g.extents.clone(), value))
    }

    /// An update that writes at computed indices, possibly followed by a second one.
    pub fn scatter(&mut self, f: &Image) -> Option<Image> {
        let d = self.dimension(f)?;
        let (rank, length) = (f.rank(), &f.extents[d]);
        let r = domain(vec![(int(0), length.expr.clone()), (int(0), self.steps(2))]);
        let value = self.read(f, with(here(rank), d, r.x));
        let value = self.addend(value);
        let r = match self.dice.chance(0.25) {
            true => r.filter(value.expr.gt(Term::constant(value.ty, value.reach * 0.25).expr)),
            false => r,
        };
        let binning = self.binning();
        let to = match self.dice.below(6) {
            0 => &length.expr - 1 - r.x,
            1 => (r.x * self.dice.pick(&[3, 5, 7]) + r.y) % &length.expr,
            2 => r.x + r.y * 2,
            3 => r.x / 2 + r.y,
            _ => value.clone().index_of(binning, length.points),
        };
        let at = with(here(rank), d, to);
        let add = self.dice.chance(0.6);
        let start = self.read(f, here(rank)).to(value.ty);
        let start = if self.dice.chance(0.5) { Value::zero(value.ty).into() } else { start.expr };
        let reach = 2.0 * value.reach;
        let mut func = self.start("", rank, start).over(&r, |own| match add {
            true => own.add(at, &value.expr),
            false => own.max(at, &value.expr),
        });
        func = self.marked(func, add && value.ty.is_float());
        if self.dice.chance(0.4) {
            // Every other point again, from its neighbour.
            let r = domain(vec![(int(0), (&length.expr + 1) / 2)]);
            let at = |shift: i64| with(here(rank), d, shifted(r.x * 2, shift));
            func = func.over(&r, |own| own.sub(at(0), own.at(at(1))));
        }
        Some(self.image(func, f.extents.clone(), vec![reach.min(type_reach(value.ty))]))
    }
}

/// The domain of all points of an image with these extents.
fn all_points(extents: &[Extent]) -> RDom {
    domain(extents.iter().map(|extent| (int(0), extent.expr.clone())).collect())
}
