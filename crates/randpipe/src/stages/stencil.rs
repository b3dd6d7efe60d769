//! Stages that read neighbours: stencils, convolutions, pools, windows.

use warploom_lang::{Expr, Operand, RDom, Type, Value, maximum, minimum, mux};

use crate::grow::Grower;
use crate::image::{Extent, Image, here, int, points, scaled, shifted, variables, with};
use crate::stages::reduce::{SumForm, domain};
use crate::term::{Term, type_reach};

/// `count` neighbours, starting at offset `first`.
#[derive(Clone, Copy)]
struct Taps {
    first: i64,
    count: i64,
}

impl Taps {
    fn iter(self) -> impl Iterator<Item = i64> {
        self.first..self.first + self.count
    }
}

/// Windows over the first two dimensions of an image.
struct Windows {
    taps: [Taps; 2],
    /// The distance between windows, in points.
    stride: i64,
    /// The extents of the result.
    extents: Vec<Extent>,
}

impl Grower {
    /// Up to `reach` neighbours on each side, at most `most` in total.
    fn taps(&mut self, reach: i64, most: i64) -> Taps {
        let (before, after) = (self.dice.between(0..=reach), self.dice.between(0..=reach));
        let count = (before + after + 1).min(most.max(1));
        Taps { first: -before, count }
    }

    /// A random dimension of an image; `None` if it has no dimensions.
    pub fn dimension(&mut self, f: &Image) -> Option<usize> {
        (f.rank() > 0).then(|| self.dice.below(f.rank()))
    }

    /// A random expression over neighbours along one dimension.
    pub fn stencil(&mut self, f: &Image) -> Option<Image> {
        let value = self.neighbours(f, 3)?;
        let value = self.settled(value);
        Some(self.define(f.extents.clone(), value))
    }

    fn neighbours(&mut self, f: &Image, reach: i64) -> Option<Term> {
        let d = self.dimension(f)?;
        let x = here(f.rank()).swap_remove(d);
        let taps = self.taps(reach, self.affordable(f.points()));
        let terms: Vec<Term> =
            taps.iter().map(|tap| self.read(f, with(here(f.rank()), d, shifted(x.clone(), tap)))).collect();
        Some(self.combine(terms))
    }

    /// Two stencils of the same image, combined.
    pub fn diamond(&mut self, f: &Image) -> Option<Image> {
        let parts = ["a", "b"].map(|part| {
            let value = self.neighbours(f, 2)?;
            Some(self.define_part(part, f.extents.clone(), value))
        });
        let [Some(a), Some(b)] = parts else { return None };
        let mut terms: Vec<Term> = Vec::new();
        for side in [a, b] {
            terms.push(self.read(&side, here(f.rank())));
            terms.push(self.neighbours(&side, 1)?);
        }
        let value = self.combine(terms);
        let value = self.settled(value);
        Some(self.define(f.extents.clone(), value))
    }

    /// A convolution along one dimension.
    pub fn conv1d(&mut self, f: &Image, form: SumForm) -> Option<Image> {
        let d = self.dimension(f)?;
        let x = here(f.rank()).swap_remove(d);
        let taps = self.taps(10, self.affordable(f.points()));
        let r = domain(vec![(int(taps.first), self.steps(taps.count))]);
        let value = self.read(f, with(here(f.rank()), d, x + r.x));
        let term = self.weighted(value, vec![r.x.expr()]);
        Some(self.summed(form, f.extents.clone(), &r, taps.count, term))
    }

    /// Windows of up to `reach` points on each side, at every point or every other point.
    fn windows(&mut self, f: &Image, reach: i64) -> Option<Windows> {
        if f.rank() < 2 {
            return None;
        }
        let most = self.affordable(f.points());
        let across = self.taps(reach, most);
        let down = self.taps(reach, most / across.count);
        let small = f.extents[0].points < 4 || f.extents[1].points < 4;
        let stride = if small { 1 } else { self.dice.pick(&[1, 1, 1, 2, 2, 3]) };
        let mut extents = f.extents.clone();
        for extent in &mut extents[..2] {
            *extent = extent.divided(stride);
        }
        Some(Windows { taps: [across, down], stride, extents })
    }

    /// The position of the neighbour `(dx, dy)` in the window of the current point.
    fn window_point(f: &Image, stride: i64, dx: Expr, dy: Expr) -> Vec<Expr> {
        let mut at = here(f.rank());
        for (index, offset) in at.iter_mut().zip([dx, dy]) {
            let start = scaled(index.clone(), stride);
            *index = match offset.constant().and_then(Value::as_int) {
                Some(constant) => shifted(start, constant),
                None => start + offset,
            };
        }
        at
    }

    /// The reduction domain over a window.
    fn window_domain(&mut self, taps: [Taps; 2]) -> RDom {
        let ranges = taps.map(|taps| (int(taps.first), self.steps(taps.count)));
        domain(ranges.to_vec())
    }

    /// A convolution over two dimensions and channels.
    pub fn conv2d(&mut self, f: &Image) -> Option<Image> {
        let Windows { taps, stride, mut extents } = self.windows(f, 5)?;
        if f.rank() >= 3 {
            extents[2] = Extent::fixed(self.dice.pick(&[1, 2, 3, 4, 6, 8]));
        }
        if !self.fits(&extents) {
            return None;
        }
        let visits = taps[0].count * taps[1].count;
        if taps.iter().all(|taps| taps.count > 1) && visits <= 25 && self.dice.chance(0.4) {
            return Some(self.separable(f, taps, stride, extents));
        }
        if visits <= 9 && self.dice.chance(0.4) {
            return Some(self.conv2d_unrolled(f, taps, stride, extents));
        }
        let channels = match f.extents.get(2) {
            Some(extent) => extent.points.min(self.affordable(visits * points(&extents))),
            None => 1,
        };
        let mut ranges: Vec<(Expr, Expr)> =
            taps.iter().map(|taps| (int(taps.first), self.steps(taps.count))).collect();
        if f.rank() >= 3 {
            ranges.push((int(0), self.steps(channels)));
        }
        let r = domain(ranges);
        let mut at = Grower::window_point(f, stride, r.x.expr(), r.y.expr());
        let mut weight_at = vec![r.x.expr(), r.y.expr()];
        if f.rank() >= 3 {
            weight_at.extend([r.z.expr(), at[2].clone()]);
            at[2] = r.z.expr();
        }
        let value = self.read(f, at);
        let term = self.weighted(value, weight_at);
        let form = self.form();
        Some(self.summed(form, extents, &r, visits * channels, term))
    }

    /// The same with every tap unrolled. Each output channel has its own coefficients.
    fn conv2d_unrolled(&mut self, f: &Image, taps: [Taps; 2], stride: i64, extents: Vec<Extent>) -> Image {
        let mut terms = Vec::new();
        for (dy, dx) in taps[1].iter().flat_map(|dy| taps[0].iter().map(move |dx| (dy, dx))) {
            let mut at = Grower::window_point(f, stride, int(dx), int(dy));
            let mut factor = Expr::from(self.dice.factor());
            if let Some(channel) = at.get_mut(2) {
                let factors = [self.dice.factor(), self.dice.factor(), self.dice.factor()];
                factor = mux(&*channel, factors);
                *channel = int(self.dice.between(0..=f.extents[2].points - 1));
            }
            let value = self.read(f, at).float();
            terms.push(Term::new(value.expr * factor, Type::F32, 2.0 * value.reach));
        }
        let value = self.combine(terms);
        let value = self.settled(value);
        self.define(extents, value)
    }

    /// A sum of integers over a window, written out. The weights are usually an outer product.
    fn separable(&mut self, f: &Image, taps: [Taps; 2], stride: i64, extents: Vec<Extent>) -> Image {
        let [across, down] = taps.map(|taps| -> Vec<(i64, i64)> {
            taps.iter().map(|tap| (tap, self.dice.pick(&[-3, -2, -1, 1, 1, 2, 3, 5]))).collect()
        });
        let ty = self.dice.pick(&[Type::U8, Type::U16, Type::I16, Type::U32, Type::I32, Type::I64]);
        let channel = f.extents.get(2).map(|extent| int(self.dice.between(0..=extent.points - 1)));
        let odd = self.dice.chance(0.1).then(|| self.dice.below(across.len() * down.len()));
        let mut sum = Expr::from(Value::zero(ty));
        for (j, (dy, row)) in down.iter().enumerate() {
            for (i, (dx, column)) in across.iter().enumerate() {
                let mut at = Grower::window_point(f, stride, int(*dx), int(*dy));
                at.iter_mut().skip(2).zip(&channel).for_each(|(index, channel)| *index = channel.clone());
                let value = self.read(f, at).to(ty);
                let weight = row * column + i64::from(odd == Some(j * across.len() + i));
                sum = sum + value.expr * Expr::from(Value::from_bits(ty, weight as u64));
            }
        }
        let value = self.settled(Term::new(sum, ty, type_reach(ty)));
        self.define(extents, value)
    }

    /// The mean or maximum over windows.
    pub fn pool(&mut self, f: &Image) -> Option<Image> {
        let Windows { taps, stride, extents } = self.windows(f, 3)?;
        let r = self.window_domain(taps);
        let at = Grower::window_point(f, stride, r.x.expr(), r.y.expr());
        let value = self.read(f, at).number();
        if self.dice.chance(0.5) {
            let form = self.form();
            return Some(self.summed(form, extents, &r, taps[0].count * taps[1].count, value));
        }
        // The maximum, starting from the window's centre.
        let centre = Grower::window_point(f, stride, int(0), int(0));
        let start = self.read(f, centre).to(value.ty);
        let args = variables(f.rank());
        let func = self.start("", f.rank(), start.expr).over(&r, |f| f.max(args, value.expr));
        Some(self.image(func, extents, vec![value.reach]))
    }

    /// The largest or smallest value of a window, inline.
    pub fn window(&mut self, f: &Image) -> Option<Image> {
        let Windows { taps, stride, extents } = self.windows(f, 2)?;
        let r = self.window_domain(taps);
        let at = Grower::window_point(f, stride, r.x.expr(), r.y.expr());
        let Term { expr, ty, reach } = self.read(f, at).number();
        let expr = match self.dice.below(3) {
            0 => maximum(&r, &expr),
            1 => minimum(&r, expr),
            _ => maximum(&r, &expr) - minimum(&r, expr),
        };
        let value = self.settled(Term::new(expr, ty, reach));
        Some(self.define(extents, value))
    }
}
