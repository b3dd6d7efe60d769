//! Stages that read constant tables.

use warploom_lang::{Scalar, Table, Type, Value, dispatch, table};

use crate::grow::Grower;
use crate::image::{Image, VARS, here, int, with};
use crate::stages::reduce::{SumForm, domain};
use crate::term::{Term, type_reach};

/// The length of the rows of tables with two dimensions.
const ROW: usize = 4;

impl Grower {
    /// Values looked up in a table, a repeated pattern, or a sum whose offsets and weights are tables.
    pub fn constants(&mut self, f: &Image) -> Option<Image> {
        match self.dice.below(3) {
            0 => Some(self.looked_up(f)),
            1 => self.tiled(f),
            _ => self.spread(f),
        }
    }

    fn looked_up(&mut self, f: &Image) -> Image {
        let entries = self.dice.pick(&[3, 16, 64]);
        let values = self.flat_table(entries);
        let binning = self.binning();
        let index = self.read(f, here(f.rank())).index_of(binning, entries as i64);
        let value = self.settled(entry(&values, values.at(index)));
        self.define(f.extents.clone(), value)
    }

    /// An image with a small pattern that repeats, as for dithering.
    fn tiled(&mut self, f: &Image) -> Option<Image> {
        if f.rank() < 2 {
            return None;
        }
        let (name, ty, rows) = (self.name("table"), self.ty(), self.dice.between(1..=3) as usize);
        let values: Vec<Value> = (0..ROW * rows).map(|_| self.table_value(ty)).collect();
        let pattern = dispatch!(ty, T => table(name, typed_rows::<T>(&values)));
        let at = (VARS[0] % pattern.extent(0), VARS[1] % pattern.extent(1));
        let terms = vec![self.read(f, here(f.rank())), entry(&pattern, pattern.at(at))];
        let value = self.combine(terms);
        let value = self.settled(value);
        Some(self.define(f.extents.clone(), value))
    }

    /// A sum over neighbours whose distances and weights are tables.
    fn spread(&mut self, f: &Image) -> Option<Image> {
        let (d, taps) = (self.dimension(f)?, self.dice.between(2..=5));
        let distances: Vec<i32> = (0..taps).map(|_| self.dice.between(-3..=3) as i32).collect();
        let distances = table(self.name("distances"), distances);
        let weights: Vec<f32> = (0..taps).map(|_| self.dice.factor()).collect();
        let weights = table(self.name("weights"), weights);
        let r = domain(vec![(int(0), int(taps))]);
        let value = self.read(f, with(here(f.rank()), d, VARS[d] + distances.at(r.x))).float();
        let value = Term::new(value.expr * weights.at(r.x), Type::F32, 2.0 * value.reach);
        let form: SumForm = self.form();
        Some(self.summed(form, f.extents.clone(), &r, taps, value))
    }

    fn flat_table(&mut self, entries: usize) -> Table {
        let (name, ty) = (self.name("table"), self.ty());
        let values: Vec<Value> = (0..entries).map(|_| self.table_value(ty)).collect();
        dispatch!(ty, T => table(name, typed::<T>(&values)))
    }

    fn table_value(&mut self, ty: Type) -> Value {
        match ty.int_range() {
            None => Value::from_number(ty, self.dice.factor().into()).unwrap_or(Value::zero(ty)),
            Some((low, high)) => {
                let int = self.dice.between(low.max(-1000)..=high.min(1000));
                Value::from_int(ty, int).unwrap_or(Value::zero(ty))
            }
        }
    }
}

/// An element of a table, as a term.
fn entry(of: &Table, expr: warploom_lang::Expr) -> Term {
    let reach = if of.ty().is_float() { 2.0 } else { type_reach(of.ty()).min(1000.0) };
    Term::new(expr, of.ty(), reach)
}

fn typed<T: Scalar>(values: &[Value]) -> Vec<T> {
    values.iter().filter_map(|value| value.get::<T>()).collect()
}

fn typed_rows<T: Scalar>(values: &[Value]) -> Vec<[T; ROW]> {
    typed::<T>(values).as_chunks::<ROW>().0.to_vec()
}
