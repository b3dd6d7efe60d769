//! Builds schedules in Rust.

use warploom_lang::Pipeline;

use crate::error::{ScheduleError, ScheduleErrors, ScheduleFault};
use crate::names::Names;
use crate::parse::pairs;
use crate::tree::{
    BlockItem, Item, Kernel, KernelNumbers, Loops, Nest, ReductionTile, Schedule, Size, StageRef, Storage,
    ThreadTiles, Tile,
};

/// Variables with sizes: `"x 64, y 16"` as in the text form, or `[("x", 64), ("y", 16)]`.
#[derive(Clone, Debug)]
pub struct Tiles(Result<Vec<(String, Size)>, ScheduleFault>);

impl From<&str> for Tiles {
    fn from(text: &str) -> Tiles {
        Tiles(pairs(text))
    }
}

impl From<String> for Tiles {
    fn from(text: String) -> Tiles {
        Tiles(pairs(&text))
    }
}

impl<S: Into<Size> + Copy> From<&[(&str, S)]> for Tiles {
    fn from(tiles: &[(&str, S)]) -> Tiles {
        Tiles(Ok(tiles.iter().map(|(name, size)| ((*name).to_string(), (*size).into())).collect()))
    }
}

impl<S: Into<Size> + Copy, const N: usize> From<[(&str, S); N]> for Tiles {
    fn from(tiles: [(&str, S); N]) -> Tiles {
        Tiles::from(tiles.as_slice())
    }
}

impl<S: Into<Size> + Copy, const N: usize> From<&[(&str, S); N]> for Tiles {
    fn from(tiles: &[(&str, S); N]) -> Tiles {
        Tiles::from(tiles.as_slice())
    }
}

/// Builds a [`Schedule`] from names, in the order of its text form.
///
/// ```
/// use warploom_lang::*;
/// use warploom_schedule::ScheduleBuilder;
/// let (x, y) = vars!(x, y);
/// let input = Input::f32("input", 2);
/// let gray = func("gray", (x, y), input.at((x, y)) * 0.5);
/// let blur = func("blur", (x, y), gray.at((x - 1, y)) + gray.at((x + 1, y)));
/// let sharp = func("sharp", (x, y), 2.0 * gray.at((x, y)) - blur.at((x, y)));
/// let output = func("output", (x, y), max(sharp.at((x, y)), 0.0));
/// let pipeline = Pipeline::new("sharpen", [output])?;
///
/// let schedule = ScheduleBuilder::new(&pipeline)
///     .inline(["sharp"])
///     .kernel("output", [("x", 64), ("y", 16)], |block| {
///         block
///             .flat("gray")
///             .threads("output", "x 64, y 4").serial("y all").unroll().registers("blur")
///     })
///     .build()?;
///
/// assert_eq!(schedule.to_text(&pipeline), "\
/// sharpen          inline sharp
///   kernel output  block x 64, y 16
///     gray         flat                                     shared
///     output       threads x 64, y 4  serial y all  unroll
///       blur       registers
/// ");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Faults are collected until [`ScheduleBuilder::build`], which reports all of them.
#[derive(Clone)]
#[must_use = "nothing is built before `build`"]
pub struct ScheduleBuilder<'p> {
    names: Names<'p>,
    schedule: Schedule,
    faults: Vec<ScheduleFault>,
}

impl<'p> ScheduleBuilder<'p> {
    /// An empty schedule for this pipeline.
    pub fn new(pipeline: &'p Pipeline) -> ScheduleBuilder<'p> {
        let schedule = Schedule { rewrites: pipeline.rewrites().to_vec(), ..Schedule::default() };
        ScheduleBuilder { names: Names::new(pipeline), schedule, faults: Vec::new() }
    }

    /// Inlines Funcs into all their readers.
    pub fn inline<S: AsRef<str>>(mut self, funcs: impl IntoIterator<Item = S>) -> Self {
        for func in funcs {
            match self.names.func(func.as_ref()) {
                Ok(func) => drop(self.schedule.inlined.insert(func)),
                Err(fault) => self.faults.push(fault),
            }
        }
        self
    }

    /// Adds a kernel whose blocks compute tiles of a stage.
    pub fn kernel(
        mut self,
        stage: &str,
        block: impl Into<Tiles>,
        body: impl FnOnce(BlockBuilder<'p>) -> BlockBuilder<'p>,
    ) -> Self {
        let own = self.names.stage(stage).map_err(|fault| self.faults.push(fault)).ok();
        let inner = body(BlockBuilder { names: self.names, own, body: Vec::new(), faults: Vec::new() });
        let mut tiles = Vec::new();
        if let Some(own) = own {
            tiles = resolved(self.names, Item::Stage(own), block.into(), &mut self.faults);
        }
        self.faults.extend(inner.faults);
        if let Some(stage) = own {
            self.schedule.root.push(
                Kernel { stage, block: tiles, numbers: KernelNumbers::default(), body: inner.body }.into(),
            );
        }
        self
    }

    /// Adds serial loops around kernels, such as `"prod.1.r 16"`.
    pub fn around(mut self, loops: impl Into<Tiles>, body: impl FnOnce(Self) -> Self) -> Self {
        let loops = reductions(self.names, loops.into(), &mut self.faults);
        let inner = body(ScheduleBuilder::new(self.names.pipeline()));
        self.faults.extend(inner.faults);
        self.schedule.inlined.extend(inner.schedule.inlined);
        self.schedule.root.push(Loops { loops, body: inner.schedule.root }.into());
        self
    }

    /// Returns the schedule.
    ///
    /// # Errors
    /// All names and sizes that could not be resolved. The rules are not checked here; see
    /// `Problem::check`.
    pub fn build(self) -> Result<Schedule, ScheduleErrors> {
        if self.faults.is_empty() {
            return Ok(self.schedule);
        }
        let errors = self.faults.into_iter().map(|fault| ScheduleError { fault, spot: None });
        Err(ScheduleErrors { errors: errors.collect() })
    }
}

/// Builds the body of a block.
#[derive(Clone)]
#[must_use = "the block is what the closure gives back"]
pub struct BlockBuilder<'p> {
    names: Names<'p>,
    own: Option<StageRef>,
    body: Vec<BlockItem>,
    faults: Vec<ScheduleFault>,
}

impl BlockBuilder<'_> {
    /// Adds a stage or staged input whose points are spread over all threads by one flat loop. It is
    /// stored in shared memory, or in global memory if it is the kernel's own stage.
    pub fn flat(self, item: &str) -> Self {
        self.nest(item, |_, _| None)
    }

    /// Adds a stage or staged input with its own thread loops. It is stored in shared memory, or in
    /// global memory if it is the kernel's own stage.
    pub fn threads(self, item: &str, threads: impl Into<Tiles>) -> Self {
        let (names, threads) = (self.names, threads.into());
        self.nest(item, |item, faults| {
            let threads = resolved(names, item, threads, faults);
            Some(ThreadTiles { threads, ..ThreadTiles::default() })
        })
    }

    /// Gives the last stage serial loops inside each thread, outermost first.
    pub fn serial(mut self, serial: impl Into<Tiles>) -> Self {
        let (names, serial) = (self.names, serial.into());
        let Some((nest, faults)) = self.last("serial") else { return self };
        let serial = resolved(names, nest.item, serial, faults);
        match nest.mapping.tiles_mut() {
            Some(tiles) => tiles.serial = serial,
            None => faults.push(ScheduleFault::FlatWith { word: "serial".to_string() }),
        }
        self
    }

    /// Unrolls the serial loops of the last stage.
    pub fn unroll(mut self) -> Self {
        let Some((nest, faults)) = self.last("unroll") else { return self };
        match nest.mapping.tiles_mut() {
            Some(tiles) => tiles.unroll = true,
            None => faults.push(ScheduleFault::FlatWith { word: "unroll".to_string() }),
        }
        self
    }

    /// Stores the last stage in private memory of each thread.
    pub fn private(mut self) -> Self {
        if let Some((nest, _)) = self.last("private") {
            nest.storage = Storage::Private;
        }
        self
    }

    /// Computes a Func in registers, right before the last stage.
    pub fn registers(mut self, func: &str) -> Self {
        let func = self.names.func(func);
        let Some((nest, faults)) = self.last("registers") else { return self };
        match func {
            Ok(func) => nest.registers.push(func),
            Err(fault) => faults.push(fault),
        }
        self
    }

    /// Adds serial loops over the block, such as `"prod.1.r 16"`.
    pub fn over(mut self, loops: impl Into<Tiles>, body: impl FnOnce(Self) -> Self) -> Self {
        let loops = reductions(self.names, loops.into(), &mut self.faults);
        let inner = body(BlockBuilder { body: Vec::new(), faults: Vec::new(), ..self.clone() });
        self.faults.extend(inner.faults);
        self.body.push(Loops { loops, body: inner.body }.into());
        self
    }

    fn nest(
        mut self,
        item: &str,
        tiles: impl FnOnce(Item, &mut Vec<ScheduleFault>) -> Option<ThreadTiles>,
    ) -> Self {
        match self.names.item(item) {
            Ok(item) => {
                let own = item.stage().filter(|stage| self.own == Some(*stage));
                let nest = own.map_or_else(|| Nest::shared(item), Nest::global);
                let tiles = tiles(item, &mut self.faults);
                self.body.push(nest.mapped(tiles).into());
            }
            Err(fault) => self.faults.push(fault),
        }
        self
    }

    /// The stage added last and the list of faults. It is a fault if there is no stage yet.
    fn last(&mut self, word: &'static str) -> Option<(&mut Nest, &mut Vec<ScheduleFault>)> {
        match self.body.last_mut().and_then(BlockItem::nest_mut) {
            Some(nest) => Some((nest, &mut self.faults)),
            // An unresolved name was already reported.
            _ if !self.faults.is_empty() => None,
            _ => {
                self.faults.push(ScheduleFault::NoStage { word });
                None
            }
        }
    }
}

fn resolved(names: Names<'_>, item: Item, tiles: Tiles, faults: &mut Vec<ScheduleFault>) -> Vec<Tile> {
    named(tiles, faults, |name, size| names.tile(item, name).map(|dim| Tile { dim, size }))
}

fn reductions(names: Names<'_>, tiles: Tiles, faults: &mut Vec<ScheduleFault>) -> Vec<ReductionTile> {
    named(tiles, faults, |name, size| {
        names.reduction(name).map(|(stage, var)| ReductionTile { stage, var, size })
    })
}

fn named<T>(
    tiles: Tiles,
    faults: &mut Vec<ScheduleFault>,
    make: impl Fn(&str, Size) -> Result<T, ScheduleFault>,
) -> Vec<T> {
    let mut found = Vec::new();
    match tiles.0 {
        Ok(tiles) => {
            for (name, size) in tiles {
                match make(&name, size) {
                    Ok(tile) => found.push(tile),
                    Err(fault) => faults.push(fault),
                }
            }
        }
        Err(fault) => faults.push(fault),
    }
    found
}
