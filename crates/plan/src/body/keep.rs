//! Loads from shared memory that move before the loops of a block.

use warploom_schedule::{Item, NodeId};

use crate::body::Part;
use crate::body::builder::Builder;
use crate::body::flatten::Group;
use crate::body::moves::{Memory, Moves, Place};
use crate::body::walk::AxisKind;
use crate::footprint::MOST_KEPT;
use crate::ids::{LoopId, NestId};
use crate::plan::Sequence;

/// The loops of a block over which threads keep values in registers.
pub(super) struct Keeping {
    /// What the loops compute.
    inside: Vec<NodeId>,
    /// The values that are kept.
    elements: f64,
}

impl<'p> Builder<'_, 'p> {
    /// Begins the outermost loop of a block, unless threads do not wait for each other before it. Returns whether it did.
    pub fn begin_keeping(&mut self, id: LoopId, body: Sequence<'_, NestId>) -> bool {
        let plan = self.plan;
        let has_lanes = || {
            let mut nests = plan.nests_of(self.id).iter();
            nests.any(|nest| nest.footprint.as_ref().is_some_and(|nest| nest.lanes.is_some()))
        };
        if self.keeping.is_some()
            || !plan.repeats(id)
            || !has_lanes()
            || !plan.barriers(self.id).of_loop(id).before
        {
            return false;
        }
        let inside = plan.items_in(body).into_iter().map(|item: Item| self.node_of(item)).collect();
        self.keeping = Some(Keeping { inside, elements: 0.0 });
        true
    }

    /// Whether a stage in registers that lanes share loads a group of values once, before the loops.
    pub fn keeps(&mut self, part: &Part<'p>, group: &Group, place: &Place) -> bool {
        let is_shared = part.lanes.as_ref().is_some_and(|lanes| !lanes.is_guarded());
        let Some(keeping) = self.keeping.as_mut().filter(|_| is_shared) else { return false };
        let (walk, moves) = (&part.walk, Moves::new(&part.walk, group));
        let axes = || walk.around.axes.iter().enumerate().filter(|(axis, _)| moves.moves(*axis));
        if place.memory != Memory::Shared
            || keeping.inside.contains(&group.node)
            || axes().any(|(_, axis)| matches!(axis.kind, AxisKind::Over | AxisKind::Round))
            || walk.around.axes.iter().any(|axis| axis.kind == AxisKind::Reduce && axis.count > 1)
        {
            return false;
        }
        let own = axes().skip_while(|(axis, _)| *axis < walk.own_axes);
        let own = own.filter(|(_, axis)| axis.kind.is_unrolled());
        let elements = own.map(|(_, axis)| axis.count as f64).product::<f64>() * group.count;
        let fits = keeping.elements + elements <= f64::from(MOST_KEPT);
        keeping.elements += if fits { elements } else { 0.0 };
        fits
    }
}
