//! The loops around a stage: rows of points, parallel where points are independent.

use rayon::prelude::*;
use warploom_lang::ir::{FuncDecl, Stage};
use warploom_lang::{FuncId, Pipeline, Range, Region, StageRegions, Type};

use crate::buffer::{Buffer, BufferError};
use crate::machine::{LANES, Machine, Outside, Own, PointRow, Sources};
use crate::program::{Constants, Program};
use crate::samples::{Layout, SamplesMut, split};

/// The samples of a Func while it is being computed.
pub struct Storage {
    pub region: Region,
    /// Dimensions from the fastest to the slowest. Updates are split among threads along the last
    /// one.
    pub order: Vec<usize>,
    pub layout: Layout,
    /// Whether the last dimension of `order` is pure in every update.
    parallel: bool,
    pub values: Vec<Buffer>,
}

/// The storage order of a Func: the order of its dimensions, except that a dimension that is pure
/// in every update comes last, so that updates can be split along it.
fn storage_order(pipeline: &Pipeline, func: &FuncDecl, region: &Region) -> (Vec<usize>, bool) {
    let dims = func.dims.len();
    let mut order: Vec<usize> = (0..dims).collect();
    let updates = &func.stages[1..];
    let always_pure = |d: usize| updates.iter().all(|stage| stage.is_pure(pipeline.exprs(), d));
    // Prefer other dimensions, so that the first stays the fastest and rows stay long.
    let widest = (1..dims).filter(|d| always_pure(*d)).max_by_key(|d| (region[*d].extent, *d));
    let choice = widest.or_else(|| (dims > 0 && always_pure(0)).then_some(0));
    match choice {
        Some(chosen) if !updates.is_empty() => {
            order.retain(|d| *d != chosen);
            order.push(chosen);
            (order, true)
        }
        _ => (order, false),
    }
}

impl Storage {
    /// Zeroed samples for a Func over a box.
    pub fn new(pipeline: &Pipeline, func: &FuncDecl, region: &Region) -> Result<Storage, BufferError> {
        let (order, parallel) = storage_order(pipeline, func, region);
        let layout = Layout::new(region, &order);
        let zeros = |ty: &Type| Buffer::zeros_in_order(*ty, region.clone(), &order);
        let values = func.types.iter().map(zeros).collect::<Result<_, _>>()?;
        Ok(Storage { region: region.clone(), order, layout, parallel, values })
    }
}

/// One stage of a Func, with everything it reads.
pub struct StageRun<'a> {
    pub pipeline: &'a Pipeline,
    pub id: FuncId,
    pub stage: &'a Stage,
    pub loops: &'a StageRegions,
    pub constants: &'a Constants<'a>,
    pub sources: &'a Sources<'a>,
}

/// One thread's part of the samples: all values over one range of offsets.
type SamplesPart<'a> = (usize, Vec<SamplesMut<'a>>);

/// Splits every value's samples into parts of `len` samples.
fn parts(values: &mut [Buffer], len: usize) -> Vec<SamplesPart<'_>> {
    let mut parts: Vec<SamplesPart<'_>> = Vec::new();
    for (number, buffer) in values.iter_mut().enumerate() {
        for (i, samples) in split(buffer.data_mut(), len.max(1)).into_iter().enumerate() {
            if number == 0 {
                parts.push((i * len, vec![samples]));
            } else if let Some((_, values)) = parts.get_mut(i) {
                values.push(samples);
            }
        }
    }
    parts
}

/// The number of parts per thread; more than one, for load balancing.
const PARTS_PER_THREAD: usize = 8;

fn per_part(items: usize) -> usize {
    items.div_ceil(rayon::current_num_threads() * PARTS_PER_THREAD).max(1)
}

impl StageRun<'_> {
    /// Computes the pure definition at every point of the storage.
    pub fn pure(&self, storage: &mut Storage) -> Result<(), Outside> {
        let Storage { region, order, layout, values, .. } = storage;
        let row = order.first().copied();
        let program = Program::new(self.pipeline, (self.id, self.stage), row, self.constants);
        let row_range = row.map_or(Range::new(0, 1), |d| region[d]);
        let points = region.points().unwrap_or(0) as usize;
        let rows_per_part = per_part(points / row_range.extent as usize);
        let part_len = rows_per_part * row_range.extent as usize;
        parts(values, part_len).into_par_iter().try_for_each(|(start, values)| {
            let len = values[0].view().len();
            let mut own = Own { id: self.id, layout, values, base: start as i64 };
            let mut machine = Machine::new(&program);
            let mut point = vec![0; region.dimensions()];
            for offset in (start..start + len).step_by(row_range.extent as usize) {
                let mut rest = offset as i64;
                for &d in order.iter().rev() {
                    point[d] = region[d].min + rest / layout.strides[d];
                    rest %= layout.strides[d];
                }
                self.row(&mut machine, &mut point, row, row_range, &mut own)?;
            }
            Ok(())
        })
    }

    /// Runs an update over its domain for every point of its pure variables.
    pub fn update(&self, storage: &mut Storage) -> Result<(), Outside> {
        let Storage { order, layout, parallel, values, region, .. } = storage;
        let split_dim = order.last().copied().filter(|_| *parallel);
        let row = self.row_dimension(order, split_dim);
        let program = Program::new(self.pipeline, (self.id, self.stage), row, self.constants);
        let total = region.points().unwrap_or(0) as usize;
        let (slice, slices) =
            split_dim.map_or((total, 1), |d| (layout.strides[d] as usize, region[d].extent as usize));
        let slices_per_part = per_part(slices);
        parts(values, slice * slices_per_part).into_par_iter().try_for_each(|(start, values)| {
            let mut needed = self.loops.needed.clone();
            if let Some(d) = split_dim {
                let first = region[d].min + (start / slice) as i64;
                needed.0[d] = overlap(needed[d], Range::new(first, slices_per_part as i64));
            }
            let mut own = Own { id: self.id, layout, values, base: start as i64 };
            self.update_part(&program, row, &needed, &mut own)
        })
    }

    fn update_part(
        &self,
        program: &Program,
        row: Option<usize>,
        needed: &Region,
        own: &mut Own<'_, '_>,
    ) -> Result<(), Outside> {
        let outer: Vec<usize> = (0..needed.dimensions())
            .filter(|d| Some(*d) != row && self.stage.is_pure(self.pipeline.exprs(), *d))
            .collect();
        let ranges: Vec<Range> = outer.iter().map(|d| needed[*d]).collect();
        let row_range = row.map_or(Range::new(0, 1), |d| needed[d]);
        let mut machine = Machine::new(program);
        let mut point: Vec<i64> = needed.0.iter().map(|range| range.min).collect();
        for_each_point(&ranges, |at| {
            for (d, value) in outer.iter().zip(at) {
                point[*d] = *value;
            }
            self.row(&mut machine, &mut point, row, row_range, own)
        })
    }

    /// Computes one row in chunks of a register's length, each over the whole domain.
    fn row(
        &self,
        machine: &mut Machine<'_>,
        point: &mut [i64],
        row: Option<usize>,
        range: Range,
        own: &mut Own<'_, '_>,
    ) -> Result<(), Outside> {
        let mut start = range.min;
        while start < range.end() {
            let lanes = (range.end() - start).min(LANES as i64) as usize;
            if let Some(d) = row {
                point[d] = start;
            }
            for_each_point(&self.loops.domain, |domain| {
                machine.run(&PointRow { point, domain, lanes }, self.sources, own)
            })?;
            start += lanes as i64;
        }
        Ok(())
    }

    /// The pure dimension that rows run along: the fastest one, otherwise the widest one that is
    /// not split.
    fn row_dimension(&self, order: &[usize], split_dim: Option<usize>) -> Option<usize> {
        let pure = |d: &usize| self.stage.is_pure(self.pipeline.exprs(), *d);
        let candidates = order.iter().copied().filter(pure);
        let wide = |d: &usize| (self.loops.needed[*d].extent, std::cmp::Reverse(*d));
        match order.first() {
            Some(fastest) if pure(fastest) && Some(*fastest) != split_dim => Some(*fastest),
            _ => candidates
                .clone()
                .filter(|d| Some(*d) != split_dim)
                .max_by_key(wide)
                .or(split_dim.filter(pure)),
        }
    }
}

fn overlap(a: Range, b: Range) -> Range {
    let min = a.min.max(b.min);
    Range::new(min, a.end().min(b.end()) - min)
}

/// Visits every point of a box, the first coordinate fastest.
fn for_each_point<E>(ranges: &[Range], mut visit: impl FnMut(&[i64]) -> Result<(), E>) -> Result<(), E> {
    if ranges.iter().any(|range| range.is_empty()) {
        return Ok(());
    }
    let mut at: Vec<i64> = ranges.iter().map(|range| range.min).collect();
    loop {
        visit(&at)?;
        let mut d = 0;
        loop {
            let Some(range) = ranges.get(d) else { return Ok(()) };
            at[d] += 1;
            if at[d] < range.end() {
                break;
            }
            at[d] = range.min;
            d += 1;
        }
    }
}
