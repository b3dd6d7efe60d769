//! Tilings of stages that have their own kernel.

use std::sync::Arc;

use ahash::AHashSet;
use warploom_schedule::{RootItem, Size, ThreadTiles, Tile};

use crate::choices::{Choices, Room};
use crate::hash::of_words;
use crate::reductions::{Variant, at_root};
use crate::space::{SearchSpace, Span, StageFacts};
use crate::tiles::{Bounds, MIN_VECTOR, idle_lanes, points, serial_sizes, thread_sizes, thread_tilings};

/// The most tilings that are enumerated. If there are more, they are sampled.
const MAX_TILINGS: usize = 6000;

/// With more dimensions, hardly any random draw has few enough threads for a block, so only three dimensions get
/// threads.
const MANY_DIMENSIONS: usize = 8;

/// The most unrolled points, including reduction variables.
const MAX_UNROLLED: i64 = 1024;

/// A stage as a kernel of its own.
#[derive(Clone, Debug)]
pub(crate) struct Tiling {
    pub item: Arc<RootItem>,
    /// Whether it is a last resort because it leaves SMs or lanes idle.
    pub secondary: bool,
}

/// The parameters of a tiling.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    /// The index of the reduction variant.
    pub variant: usize,
    /// The dimension of neighbouring threads.
    pub vector: usize,
    /// Points per thread along each dimension.
    pub serial: Vec<i64>,
    /// Threads along each dimension.
    pub threads: Vec<i64>,
}

/// Enumerates the tilings of a stage.
pub(crate) struct Tiler<'a> {
    space: &'a SearchSpace<'a>,
    facts: &'a StageFacts,
    pub variants: Vec<Variant>,
}

/// The tilings of a stage: all of them, or a sample if there are too many.
pub(crate) fn tilings(space: &SearchSpace<'_>, facts: &StageFacts) -> Vec<Tiling> {
    let tiler = Tiler::new(space, facts);
    let mut shapes: Vec<(Shape, f64)> =
        tiler.shapes().into_iter().map(|shape| (shape.clone(), tiler.blocks(&shape))).collect();
    // Require enough blocks for every SM, or as many as any tiling has.
    let mut least = space.options.limits.blocks_per_sm * f64::from(space.problem.device().sms);
    while least > 1.0 && !shapes.iter().any(|(_, blocks)| *blocks >= least) {
        least /= 2.0;
    }
    shapes.retain(|(_, blocks)| *blocks >= least);
    let tiling = |(shape, blocks): (Shape, f64)| Tiling {
        item: Arc::new(tiler.item(&shape)),
        secondary: tiler.is_wasteful(&shape, blocks),
    };
    shapes.into_iter().map(tiling).collect()
}

impl<'a> Tiler<'a> {
    pub fn new(space: &'a SearchSpace<'a>, facts: &'a StageFacts) -> Tiler<'a> {
        Tiler { space, facts, variants: at_root(space, facts) }
    }

    /// The loops that are split among blocks and threads.
    fn dims(&self, variant: usize) -> Vec<Span> {
        self.facts.pure.iter().chain(&self.variants[variant].shared).copied().collect()
    }

    fn bounds(&self) -> Bounds {
        let limits = &self.space.options.limits;
        Bounds {
            vector: limits.vector_threads,
            other: limits.other_threads,
            block: i64::from(self.space.problem.device().threads.per_block),
            dims: 3,
        }
    }

    fn shapes(&self) -> Vec<Shape> {
        let mut shapes = Vec::new();
        let each = MAX_TILINGS / self.variants.len().max(1);
        for variant in 0..self.variants.len() {
            let dims = self.dims(variant);
            let vectors = self.vectors(&dims);
            let most = if dims.len() > MANY_DIMENSIONS { each / vectors.len() } else { each };
            for vector in vectors {
                self.shapes_of(variant, vector, most, &mut shapes);
            }
        }
        shapes
    }

    /// The candidates for the dimension of neighbouring threads: the first one in memory order that
    /// is long enough, and those along which loads are contiguous.
    fn vectors(&self, dims: &[Span]) -> Vec<usize> {
        let first = dims.iter().position(|span| span.extent >= MIN_VECTOR).unwrap_or(0);
        let mut vectors = vec![first];
        let dag = self.space.dag;
        let stage = &dag.stages()[self.space.stage_id(self.facts.at)];
        for edge in stage.producers.iter().map(|edge| &dag.edges()[*edge]) {
            let Some(fastest) = dag.nodes()[edge.producer].storage_order.first() else { continue };
            for load in &edge.loads {
                let Some(row) = load.map.rows().get(*fastest).and_then(|row| row.unit_loop()) else {
                    continue;
                };
                let along = dims.iter().position(|span| span.dim == stage.loops[row].kind);
                vectors.extend(along.filter(|d| dims[*d].extent >= MIN_VECTOR && !vectors.contains(d)));
            }
        }
        vectors
    }

    fn serial_sizes(&self, span: Span, is_vector: bool) -> Vec<i64> {
        let mut sizes =
            serial_sizes(span.extent, is_vector, i64::from(self.space.problem.device().threads.warp));
        let small = span.extent <= self.space.options.limits.small_extent;
        if small && !is_vector && !sizes.contains(&span.extent) {
            sizes.push(span.extent);
        }
        sizes
    }

    fn shapes_of(&self, variant: usize, vector: usize, most: usize, shapes: &mut Vec<Shape>) {
        let dims = self.dims(variant);
        let lists = dims.iter().enumerate().map(|(d, span)| self.serial_sizes(*span, d == vector)).collect();
        let serials = Choices::new(lists, Room { most: self.most_serial(variant), several: None });
        let outer = |serial: &[i64]| -> Vec<i64> {
            dims.iter().zip(serial).map(|(span, size)| (span.extent + size - 1) / size).collect()
        };
        let only = dims.len() == 1;
        let threads = |serial: &[i64]| thread_tilings(&outer(serial), vector, only, self.bounds());
        let widest = serials.get(0).map_or(0, |serial| threads(&serial).count());
        if serials.count().saturating_mul(widest.max(1)) <= most as u64 {
            for serial in serials.all() {
                let shape = |threads| Shape { variant, vector, serial: serial.clone(), threads };
                shapes.extend(threads(&serial).all().map(shape));
            }
            return;
        }
        // Too many to list: draw the wanted number uniformly.
        let mut seen = AHashSet::new();
        for draw in 0..most as u64 {
            let pick =
                |word: u64, len: u64| of_words(&[draw, word, variant as u64, vector as u64]) % len.max(1);
            let Some(serial) = serials.get(pick(0, serials.count())) else { continue };
            let others = [1, 2].map(|number| pick(u64::MAX - number, dims.len() as u64) as usize);
            let is_shared = |d: usize| dims.len() <= MANY_DIMENSIONS || d == vector || others.contains(&d);
            let size = |(d, extent): (usize, i64)| {
                if !is_shared(d) {
                    return Some(1);
                }
                let sizes = thread_sizes(extent, d == vector, only, self.bounds());
                sizes.get(pick(1 + d as u64, sizes.len() as u64) as usize).copied()
            };
            let Some(threads) = outer(&serial).into_iter().enumerate().map(size).collect() else { continue };
            let shape = Shape { variant, vector, serial, threads };
            if self.fits(&shape) && seen.insert(shape.clone()) {
                shapes.push(shape);
            }
        }
    }

    /// The most points per thread.
    fn most_serial(&self, variant: usize) -> i64 {
        let unrolled = self.variants[variant].unrolled(self.facts).max(1);
        self.space.options.limits.serial_points.min(MAX_UNROLLED / unrolled)
    }

    /// Whether the number of threads is allowed.
    fn fits(&self, shape: &Shape) -> bool {
        let bounds = self.bounds();
        shape.threads.iter().filter(|threads| **threads > 1).count() <= bounds.dims
            && points(&shape.threads) <= bounds.block
    }

    fn blocks(&self, shape: &Shape) -> f64 {
        let dims = self.dims(shape.variant);
        let counts = dims.iter().zip(shape.serial.iter().zip(&shape.threads));
        counts
            .map(|(span, (serial, threads))| (span.extent as f64 / (serial * threads) as f64).ceil())
            .product()
    }

    fn is_wasteful(&self, shape: &Shape, blocks: f64) -> bool {
        let limits = &self.space.options.limits;
        let waves = blocks / f64::from(self.space.problem.device().sms);
        let threads: i64 = shape.threads.iter().product();
        let idle = idle_lanes(threads, i64::from(self.space.problem.device().threads.warp));
        waves.ceil() / waves > limits.idle_cores || idle as f64 / (threads + idle) as f64 > limits.idle_lanes
    }

    /// The kernel of a shape.
    pub fn item(&self, shape: &Shape) -> RootItem {
        let variant = &self.variants[shape.variant];
        let (around, over) = (variant.around.clone(), variant.over.clone());
        RootItem::lone(self.facts.at, around, self.block(shape), over, self.thread_tiles(shape))
    }

    /// The block tiles of a shape.
    pub fn block(&self, shape: &Shape) -> Vec<Tile> {
        let dims = self.dims(shape.variant);
        let order = std::iter::once(shape.vector).chain((0..dims.len()).filter(|d| *d != shape.vector));
        let order = order.filter(|d| *d < dims.len());
        let tile = |d: usize| {
            let whole = shape.threads[d] == 1 && shape.serial[d] == dims[d].extent && dims[d].extent > 1;
            sized(dims[d], shape.threads[d] * shape.serial[d], whole)
        };
        order.map(tile).collect()
    }

    /// The thread tiles of a shape.
    pub fn thread_tiles(&self, shape: &Shape) -> ThreadTiles {
        let dims = self.dims(shape.variant);
        let order = std::iter::once(shape.vector).chain((0..dims.len()).filter(|d| *d != shape.vector));
        let shared = order.filter(|d| *d < dims.len() && shape.threads[*d] > 1);
        let threads = shared.map(|d| sized(dims[d], shape.threads[d], false)).collect();
        let mut serial = self.variants[shape.variant].inner.clone();
        let named = (0..dims.len()).rev().filter(|d| shape.serial[*d] > 1);
        serial.extend(named.map(|d| {
            let whole = shape.threads[d] == 1 && shape.serial[d] == dims[d].extent;
            sized(dims[d], shape.serial[d], whole)
        }));
        ThreadTiles { threads, unroll: !serial.is_empty(), serial }
    }

    /// Shapes that differ in one dimension, or in how reduction loops run inside threads.
    pub fn neighbours(&self, shape: &Shape) -> Vec<Shape> {
        let mut found = Vec::new();
        let dims = self.dims(shape.variant);
        for (d, span) in dims.iter().enumerate() {
            for serial in self.serial_sizes(*span, d == shape.vector) {
                let outer = (span.extent + serial - 1) / serial;
                for threads in thread_sizes(outer, d == shape.vector, dims.len() == 1, self.bounds()) {
                    let mut next = shape.clone();
                    (next.serial[d], next.threads[d]) = (serial, threads);
                    found.push(next);
                }
            }
        }
        let variant = &self.variants[shape.variant];
        let alike = |other: &Variant| {
            (&other.around, &other.over, &other.shared) == (&variant.around, &variant.over, &variant.shared)
        };
        let variants = (0..self.variants.len()).filter(|i| alike(&self.variants[*i]));
        found.extend(variants.map(|variant| Shape { variant, ..shape.clone() }));
        found.retain(|next| {
            next != shape && points(&next.serial) <= self.most_serial(next.variant) && self.fits(next)
        });
        found
    }

    /// The shape of a kernel's own nest, if the enumeration contains it.
    pub fn shape(&self, block: &[Tile], tiles: &ThreadTiles, variant: usize) -> Option<Shape> {
        let dims = self.dims(variant);
        let of = |list: &[Tile], span: &Span, missing: i64| {
            let tile = list.iter().find(|tile| tile.dim == span.dim);
            tile.map_or(missing, |tile| tile.size.of(span.extent))
        };
        let threads: Vec<i64> = dims.iter().map(|span| of(&tiles.threads, span, 1)).collect();
        let serial: Vec<i64> = dims
            .iter()
            .zip(&threads)
            .map(|(span, threads)| of(&tiles.serial, span, (of(block, span, span.extent) / threads).max(1)))
            .collect();
        let vector = tiles.threads.first().and_then(|tile| dims.iter().position(|span| span.dim == tile.dim));
        Some(Shape { variant, vector: vector.unwrap_or(0), serial, threads })
    }
}

/// A tile of the given size, or of the whole extent.
fn sized(span: Span, size: i64, whole: bool) -> Tile {
    let size = if whole { None } else { u32::try_from(size).ok() };
    Tile { dim: span.dim, size: size.map_or(Size::All, Size::Of) }
}
