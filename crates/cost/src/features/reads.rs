//! How much of what it reads a stage touches: in a thread, in a run of its nest, in a block, in a launch.

use smallvec::SmallVec;
use warploom_schedule::NodeId;

use crate::features::flatten::Group;
use crate::features::traffic::{Moves, Place};
use crate::features::walk::AxisKind;
use crate::kernel::Memory;

/// Within what reads are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// A thread's tile.
    Thread,
    /// A run of the nest.
    Run,
    /// A block.
    Task,
    /// A launch of the kernel.
    Launch,
}

const SCOPES: usize = Scope::Launch as usize + 1;

impl Scope {
    /// The smallest scope in which all of an axis runs; all larger ones hold that.
    fn around(kind: AxisKind) -> Option<Scope> {
        match kind {
            AxisKind::Launch => None,
            AxisKind::Block => Some(Scope::Launch),
            AxisKind::Over => Some(Scope::Task),
            AxisKind::Lane | AxisKind::Round => Some(Scope::Run),
            AxisKind::Reduce | AxisKind::Serial { .. } => Some(Scope::Thread),
        }
    }
}

/// Extents of a box within each scope, dimension by dimension.
type Boxes = SmallVec<[[f64; SCOPES]; 4]>;

/// What is read of one Func or input.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub node: NodeId,
    pub memory: Memory,
    /// The values that are read, one bit each.
    values: u64,
    /// Bytes of one point, all values that are read together.
    bytes: f64,
    /// Extents of the array.
    array: SmallVec<[i64; 4]>,
    /// The dimension that is dense in memory.
    dense: usize,
    /// The box that is touched within each scope.
    boxes: Boxes,
}

impl Read {
    /// Bytes that are touched within a scope.
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

/// What is read of everything, each Func or input once.
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

    /// The sum of something over what is read from one kind of memory.
    pub fn sum(&self, memory: Memory, part: impl Fn(&Read) -> f64) -> f64 {
        self.0.iter().filter(|read| read.memory == memory).map(part).sum()
    }
}

/// How many values an index takes within each scope, of an array of that extent.
fn touched(group: &Group, moves: &Moves<'_>, row: usize, array: i64) -> [f64; SCOPES] {
    if group.rows[row].unknown != 0 {
        return [array as f64; SCOPES];
    }
    let mut moved = [0; SCOPES];
    for (number, axis) in moves.walk.around.axes.iter().enumerate() {
        if let Some(scope) = Scope::around(axis.kind) {
            moved[scope as usize] += moves.step(row, number).abs() * (axis.count - 1);
        }
    }
    let mut all = 0;
    moved.map(|own| {
        all += own;
        moves.extent_of(row, all).min(array as f64)
    })
}
