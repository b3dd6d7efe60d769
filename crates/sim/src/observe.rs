//! Observed runs: reports every access with the points of Funcs and inputs that it touches.
//!
//! The compiler adds [`Instruction::Watch`] only to the code of observed kernels, so other runs do not pay for it.
//! Coordinates are evaluated with the statement, but not counted.

use smallvec::SmallVec;
use warploom_codegen::ir::{ArrayId, KernelId, Leaf, NodeId, NodeKind};
use warploom_codegen::points::{AccessPoint, Key};
use warploom_lang::{Id, Type};

use crate::code::{Home, Instruction, Slot, Watch};
use crate::compile::Compiler;
use crate::error::AccessKind;
use crate::machine::Machine;
use crate::mask::Mask;
use crate::world::World;

/// Receives the events of a run, in execution order. The blocks of a launch run one after another.
pub trait Observer {
    /// A kernel is launched; `iterations` are those of the loops around the launch, outermost first.
    fn launch(&mut self, kernel: KernelId, iterations: &[u32]);
    /// A block of the launch starts.
    fn block(&mut self, block: [u32; 3]);
    /// The threads of the block access an array.
    fn access(&mut self, access: &Observed<'_>);
}

/// An access that the active threads of a block make at once. The reads of a statement are reported before its writes.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The array of the kernel.
    pub array: ArrayId,
    /// Whether it is a read or a write.
    pub kind: AccessKind,
    /// The type of the array's elements.
    pub ty: Type,
    /// The stage of the Func that writes.
    pub stage: usize,
    /// The active threads.
    pub threads: &'a [u32],
    /// The number of coordinates of a point.
    pub dimensions: usize,
    /// The coordinates of each thread's point, one thread after the other.
    pub points: &'a [i32],
    /// The value of each thread's element after a write, as bit patterns; empty for reads.
    pub values: &'a [u64],
}

impl Compiler<'_> {
    /// The point of an access, if the kernel is observed and the point is known here.
    pub(crate) fn place(&self, array: ArrayId, index: NodeId, value: Option<NodeId>) -> Option<AccessPoint> {
        let places = self.points?.places(Key { array, index, value });
        places.iter().find(|place| self.is_known(index, place)).cloned()
    }

    /// Whether the coordinates of a place can be evaluated: their variables are bound, and all their loads are loads of
    /// the index.
    fn is_known(&self, index: NodeId, place: &AccessPoint) -> bool {
        let exprs = &self.kernel.exprs;
        let loaded = exprs.reachable([index]);
        exprs.reachable(place.at.iter().copied()).into_iter().all(|id| match exprs[id].kind {
            NodeKind::Leaf(Leaf::Var(var)) => self.vars[var].is_some(),
            NodeKind::Load(_) => loaded.contains(&id),
            _ => true,
        })
    }

    /// The loads of nodes, with their points, if the kernel is observed.
    pub(crate) fn observed_loads(&self, roots: &[NodeId]) -> Vec<(ArrayId, AccessPoint)> {
        if self.points.is_none() {
            return Vec::new();
        }
        let exprs = &self.kernel.exprs;
        let load = |id: NodeId| match exprs[id].kind {
            NodeKind::Load(array) => Some((array, self.place(array, exprs[id].args[0], None)?)),
            _ => None,
        };
        exprs.reachable(roots.iter().copied()).into_iter().filter_map(load).collect()
    }

    /// Reports loads whose coordinates have been evaluated.
    pub(crate) fn watch_loads(&mut self, loads: &[(ArrayId, AccessPoint)]) {
        for (array, place) in loads {
            self.watch(*array, AccessKind::Read, None, place);
        }
    }

    /// The points on both sides of a vector, if the kernel is observed and the points are known here.
    pub(crate) fn observed_vector(
        &self,
        (to, at): (ArrayId, NodeId),
        (from, index): (ArrayId, NodeId),
    ) -> Vec<(ArrayId, Vec<AccessPoint>)> {
        let places = |key: Key| {
            let known =
                |places: &&Vec<AccessPoint>| places.iter().all(|place| self.is_known(key.index, place));
            Some((key.array, self.points?.vectors(key).iter().find(known)?.clone()))
        };
        // The read comes first.
        let read = Key { array: from, index, value: None };
        [read, Key { array: to, index: at, value: Some(index) }].into_iter().filter_map(places).collect()
    }

    /// Reports the elements of a vector, which have been read and written from `index` on.
    pub(crate) fn watch_vector(&mut self, observed: &[(ArrayId, Vec<AccessPoint>)], index: Slot) {
        let elements = observed.iter().map(|(_, places)| places.len()).max().unwrap_or(0);
        for (element, offset) in (0..elements).zip(0..) {
            for (array, place) in observed.iter().map(|(array, places)| (*array, &places[element])) {
                match self.code.arrays[array.index()].home {
                    Home::Global(_) => self.watch(array, AccessKind::Read, None, place),
                    _ => self.watch(array, AccessKind::Write, Some((index, offset)), place),
                }
            }
        }
    }

    /// Reports an access whose coordinates have been evaluated; `index` is the index of a write and an offset to it.
    pub(crate) fn watch(
        &mut self,
        array: ArrayId,
        kind: AccessKind,
        index: Option<(Slot, u32)>,
        place: &AccessPoint,
    ) {
        let at = place.at.iter().map(|node| self.temporaries[node].slot).collect();
        let watch = Watch { array: array.index(), kind, index, at, stage: place.stage };
        self.code.instructions.push(Instruction::Watch(Box::new(watch)));
    }
}

impl Machine {
    /// Reports an access to the observer.
    pub(crate) fn watch(&self, watch: &Watch, mask: &Mask, world: &mut World<'_>) {
        let World { global, observer: Some(observer), .. } = world else { return };
        let read = |slot: Slot, thread: usize| self.registers.lanes(slot, thread..thread + 1).get(0) as u32;
        let array = &self.code.arrays[watch.array];
        let contents = |(index, offset): (Slot, u32), thread: usize| {
            let element = read(index, thread) + offset;
            match array.home {
                Home::Global(buffer) => global[buffer].bits.get(element as usize),
                Home::Shared(number) => self.shared[number].bits.get(element as usize),
                Home::Thread(number) => self.private[number].peek(element, thread),
            }
        };
        let points = |thread: usize| watch.at.iter().map(move |slot| read(*slot, thread) as i32);
        let threads: Vec<u32> = mask.threads().map(|thread| thread as u32).collect();
        let written = |index: (Slot, u32)| mask.threads().map(|thread| contents(index, thread)).collect();
        let values: Vec<u64> = watch.index.map(written).unwrap_or_default();
        observer.access(&Observed {
            array: ArrayId::new(watch.array),
            kind: watch.kind,
            ty: array.ty,
            stage: watch.stage,
            threads: &threads,
            dimensions: watch.at.len(),
            points: &mask.threads().flat_map(points).collect::<Vec<i32>>(),
            values: &values,
        });
    }
}

/// The nodes of the coordinates of some places.
pub(crate) fn nodes_of<'p>(places: impl IntoIterator<Item = &'p AccessPoint>) -> SmallVec<[NodeId; 8]> {
    places.into_iter().flat_map(|place| place.at.iter().copied()).collect()
}
