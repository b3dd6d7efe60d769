//! The footprint of a stage's reads in a thread, in a run of its nest, in a block and in a launch.

use smallvec::SmallVec;
use warploom_plan::body::{AxisKind, Group, Memory, Moves, Place};
use warploom_schedule::NodeId;

/// The scope over which a footprint is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// A thread's tile.
    Thread,
    /// One run of the nest.
    Run,
    /// One block.
    Task,
    /// One launch of the kernel.
    Launch,
}

const SCOPES: usize = Scope::Launch as usize + 1;

impl Scope {
    /// The smallest scope that contains all iterations of an axis. Larger scopes contain them too.
    fn around(kind: AxisKind) -> Option<Scope> {
        match kind {
            AxisKind::Launch => None,
            AxisKind::Block => Some(Scope::Launch),
            AxisKind::Over => Some(Scope::Task),
            AxisKind::Lane | AxisKind::Round | AxisKind::Group => Some(Scope::Run),
            AxisKind::Reduce | AxisKind::Serial { .. } => Some(Scope::Thread),
        }
    }
}

/// Extents of a box in each scope, by dimension.
type Boxes = SmallVec<[[f64; SCOPES]; 4]>;

/// The reads of one Func or input.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub node: NodeId,
    pub memory: Memory,
    /// The tuple values that are read, as a bit mask.
    values: u64,
    /// Bytes per point, summed over the values that are read.
    bytes: f64,
    /// Extents of the array.
    array: SmallVec<[i64; 4]>,
    /// The dimension that is contiguous in memory.
    dense: usize,
    /// The footprint in each scope.
    boxes: Boxes,
}

impl Read {
    /// Bytes touched in a scope.
    pub fn bytes_in(&self, scope: Scope) -> f64 {
        self.boxes.iter().map(|along| along[scope as usize]).product::<f64>() * self.bytes
    }

    /// Contiguous runs of those bytes.
    pub fn lines_in(&self, scope: Scope) -> f64 {
        let others = self.boxes.iter().enumerate().filter(|(d, _)| *d != self.dense);
        others.map(|(_, along)| along[scope as usize]).product()
    }

    /// Bytes of the whole array.
    pub fn array_bytes(&self) -> f64 {
        self.array.iter().map(|extent| *extent as f64).product::<f64>() * self.bytes
    }
}

/// The reads of a stage, each Func or input once.
#[derive(Default, Debug)]
pub(crate) struct Reads(pub Vec<Read>);

impl Reads {
    /// Adds the accesses of a group.
    pub fn add(&mut self, group: &Group, moves: &Moves<'_>, place: &Place) {
        let boxes: Boxes =
            place.extents.iter().enumerate().map(|(row, array)| touched(group, moves, row, *array)).collect();
        let known = self.0.iter_mut().find(|read| (read.node, read.memory) == (group.node, place.memory));
        let Some(read) = known else {
            let dense = place.strides.iter().position(|stride| *stride == 1).unwrap_or(0);
            self.0.push(Read {
                node: group.node,
                memory: place.memory,
                values: 1 << group.value.min(63),
                bytes: group.bytes as f64,
                array: place.extents.clone(),
                dense,
                boxes,
            });
            return;
        };
        if read.values >> group.value.min(63) & 1 == 0 {
            read.values |= 1 << group.value.min(63);
            read.bytes += group.bytes as f64;
        }
        for (own, other) in read.boxes.iter_mut().flatten().zip(boxes.into_iter().flatten()) {
            *own = own.max(other);
        }
    }

    /// The sum of `part` over the reads from one kind of memory.
    pub fn sum(&self, memory: Memory, part: impl Fn(&Read) -> f64) -> f64 {
        self.0.iter().filter(|read| read.memory == memory).map(part).sum()
    }
}

/// The number of values that an index takes in each scope, for an array of that extent.
fn touched(group: &Group, moves: &Moves<'_>, row: usize, array: i64) -> [f64; SCOPES] {
    if group.rows[row].unknown != 0 {
        return [array as f64; SCOPES];
    }
    let (mut moved, mut groups) = ([0; SCOPES], 1.0);
    for (number, axis) in moves.walk.around.axes.iter().enumerate() {
        let along = moves.step(row, number).abs() * (axis.count - 1);
        if let Some(scope) = Scope::around(axis.kind) {
            moved[scope as usize] += along;
        }
        if axis.kind == AxisKind::Group && along > 0 {
            groups *= axis.count as f64;
        }
    }
    let mut all = 0;
    let mut touched = moved.map(|own| {
        all += own;
        moves.extent_of(row, all)
    });
    // The groups of a thread lie between those of other threads.
    touched[Scope::Thread as usize] *= groups;
    touched.map(|extent| extent.min(array as f64))
}
