//! A schedule's nests in the order they run, each with the loops it stands in.

use std::fmt;

use smallvec::SmallVec;
use warploom_lang::FuncId;

use crate::schedule::tree::{BlockItem, Item, Kernel, Nest, ReductionTile, RootItem, StageRef};

/// Numbers of loops, the outermost first.
pub(crate) type LoopNumbers = SmallVec<[usize; 4]>;

/// Where a node stands in a schedule's tree: the number of the child at each level, from the root.
///
/// Below root are kernels and loops around them, below these the items of their bodies, below a nest its
/// Funcs in registers.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Path(SmallVec<[u32; 4]>);

impl Path {
    /// The schedule itself.
    pub const ROOT: Path = Path(SmallVec::new_const());

    /// The child of this number.
    #[must_use]
    pub fn child(&self, number: usize) -> Path {
        Path(self.0.iter().copied().chain([number as u32]).collect())
    }

    /// The node that this one is a child of; root is its own.
    #[must_use]
    pub fn parent(&self) -> Path {
        Path(SmallVec::from_slice(&self.0[..self.0.len().saturating_sub(1)]))
    }

    /// How many levels below root.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// Whether `other` is this node or stands below it.
    pub fn encloses(&self, other: &Path) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        write!(f, "/{}", numbers.join("/"))
    }
}

/// A loop around kernels or over a block.
#[derive(Clone, Debug)]
pub(crate) struct LoopInfo<'a> {
    pub path: Path,
    pub tile: &'a ReductionTile,
}

/// A kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelInfo<'a> {
    pub path: Path,
    pub kernel: &'a Kernel,
    /// The loops around it, the outermost first.
    pub loops: LoopNumbers,
    /// Its nests.
    pub nests: std::ops::Range<usize>,
    /// The loops over its block.
    pub over: std::ops::Range<usize>,
}

/// A stage or staged input in a kernel.
#[derive(Clone, Debug)]
pub(crate) struct NestInfo<'a> {
    pub path: Path,
    pub kernel: usize,
    /// The loops it stands in, around kernels and over the block, the outermost first.
    pub loops: LoopNumbers,
    pub nest: &'a Nest,
}

impl NestInfo<'_> {
    pub fn stage(&self) -> Option<StageRef> {
        match self.nest.item {
            Item::Stage(stage) => Some(stage),
            Item::Input(_) => None,
        }
    }

    pub fn computes(&self, func: FuncId) -> bool {
        self.stage().is_some_and(|stage| stage.func == func)
    }
}

/// All of a schedule, flat. Loops, kernels and nests are numbered in the order of the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline<'a> {
    pub loops: Vec<LoopInfo<'a>>,
    pub kernels: Vec<KernelInfo<'a>>,
    pub nests: Vec<NestInfo<'a>>,
    /// The nests that compute each Func, in order.
    computing: Vec<(FuncId, usize)>,
    /// The nests that have each Func in registers, and its position there, in order.
    holding: Vec<(FuncId, usize, usize)>,
    /// The stages of the kernels, in order.
    own: Vec<StageRef>,
}

impl<'a> Outline<'a> {
    pub fn new(root: impl IntoIterator<Item = &'a RootItem>) -> Outline<'a> {
        let mut outline = Outline::default();
        for (i, item) in root.into_iter().enumerate() {
            outline.root_item(Path::ROOT.child(i), &[], item);
        }
        outline.index();
        outline
    }

    fn index(&mut self) {
        for (number, info) in self.nests.iter().enumerate() {
            self.computing.extend(info.stage().map(|stage| (stage.func, number)));
            let registers = info.nest.registers.iter().enumerate();
            self.holding.extend(registers.map(|(position, func)| (*func, number, position)));
        }
        self.own.extend(self.kernels.iter().map(|info| info.kernel.stage));
        self.computing.sort_unstable();
        self.holding.sort_unstable();
        self.own.sort_unstable();
    }

    /// The nests that compute stages of a Func, with their numbers.
    pub fn computing(&self, func: FuncId) -> impl Iterator<Item = (usize, &NestInfo<'a>)> {
        let first = self.computing.partition_point(|(known, _)| *known < func);
        let nests = self.computing[first..].iter().take_while(move |(known, _)| *known == func);
        nests.map(|(_, number)| (*number, &self.nests[*number]))
    }

    /// The nests that a Func is in registers of, with its position there.
    pub fn holding(&self, func: FuncId) -> impl Iterator<Item = (&NestInfo<'a>, usize)> {
        let first = self.holding.partition_point(|(known, ..)| *known < func);
        let nests = self.holding[first..].iter().take_while(move |(known, ..)| *known == func);
        nests.map(|(_, number, position)| (&self.nests[*number], *position))
    }

    /// Whether a stage has a kernel of its own.
    pub fn has_kernel(&self, stage: StageRef) -> bool {
        self.own.binary_search(&stage).is_ok()
    }

    /// The numbers of the loops, in front of them those they stand in.
    fn add_loops(&mut self, path: &Path, outer: &[usize], tiles: &'a [ReductionTile]) -> LoopNumbers {
        let first = self.loops.len();
        self.loops.extend(tiles.iter().map(|tile| LoopInfo { path: path.clone(), tile }));
        outer.iter().copied().chain(first..self.loops.len()).collect()
    }

    fn root_item(&mut self, path: Path, outer: &[usize], item: &'a RootItem) {
        match item {
            RootItem::Around(around) => {
                let loops = self.add_loops(&path, outer, &around.loops);
                for (i, item) in around.body.iter().enumerate() {
                    self.root_item(path.child(i), &loops, item);
                }
            }
            RootItem::Kernel(kernel) => {
                let (number, first, first_loop) = (self.kernels.len(), self.nests.len(), self.loops.len());
                self.body(&path, number, outer, &kernel.body);
                let (nests, over) = (first..self.nests.len(), first_loop..self.loops.len());
                let loops = SmallVec::from_slice(outer);
                self.kernels.push(KernelInfo { path, kernel, loops, nests, over });
            }
        }
    }

    fn body(&mut self, path: &Path, kernel: usize, outer: &[usize], body: &'a [BlockItem]) {
        for (i, item) in body.iter().enumerate() {
            let path = path.child(i);
            match item {
                BlockItem::Nest(nest) => {
                    self.nests.push(NestInfo { path, kernel, loops: SmallVec::from_slice(outer), nest });
                }
                BlockItem::Over(over) => {
                    let loops = self.add_loops(&path, outer, &over.loops);
                    self.body(&path, kernel, &loops, &over.body);
                }
            }
        }
    }

    /// The nests of a kernel.
    pub fn nests_of(&self, kernel: usize) -> &[NestInfo<'a>] {
        &self.nests[self.kernels[kernel].nests.clone()]
    }

    /// Whether a nest is its kernel's own stage.
    pub fn is_own(&self, nest: &NestInfo<'_>) -> bool {
        nest.stage() == Some(self.kernels[nest.kernel].kernel.stage)
    }

    /// Those of a nest's loops that run over variables of its own stage.
    pub fn own_loops(&self, nest: &NestInfo<'_>) -> LoopNumbers {
        let own = |number: &usize| Some(self.loops[*number].tile.stage) == nest.stage();
        nest.loops.iter().copied().filter(own).collect()
    }

    /// Those of a nest's loops that run over variables of other stages.
    pub fn foreign_loops(&self, nest: &NestInfo<'_>) -> LoopNumbers {
        let foreign = |number: &usize| Some(self.loops[*number].tile.stage) != nest.stage();
        nest.loops.iter().copied().filter(foreign).collect()
    }
}
