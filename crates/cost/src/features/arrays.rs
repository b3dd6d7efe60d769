//! The accesses of one block to each array, as the simulator counts them.

use crate::features::block::Block;
use crate::features::flatten::Group;
use crate::features::row::{Keep, Work};
use crate::features::traffic::{Moves, Place};
use crate::kernel::{ArrayTraffic, Memory, Traffic};

/// A kind of access.
#[derive(Clone, Copy)]
pub(super) enum Access {
    Load,
    Store,
    Atomic,
    /// A store of zero, where a lane computes nothing.
    Zero,
    /// A load, a shuffle and a store.
    Exchange,
}

impl Block<'_, '_> {
    /// The traffic of accesses. If a single block is analysed, it is also added to that of the
    /// array.
    pub(super) fn count(
        &mut self,
        work: &Work<'_>,
        group: &Group,
        moves: &Moves<'_>,
        place: &Place,
        keep: Keep,
        access: Access,
    ) -> Traffic {
        let is_atomic = matches!(access, Access::Atomic);
        let most = if is_atomic { 1 } else { self.most_at_once(work, group, place) };
        let (traffic, all) = moves.traffic(place, self.units, keep, most);
        if self.items.chosen.is_some() {
            let whole = work.walk.vars.iter().chain(&place.base).all(|linear| linear.den == 1);
            let exact = all
                && work.flat.exact
                && work.walk.exact
                && whole
                && (moves.is_exact() || place.memory == Memory::Thread)
                && (place.memory != Memory::Global || moves.stays_inside(place))
                && !self.is_in_warps(group.node)
                && self.is_inside(work);
            self.note_access(group, place.memory, traffic, exact, access);
        }
        traffic
    }

    /// If a single block is analysed, adds accesses to the registers in which a thread accumulates
    /// before it writes to memory.
    pub(super) fn count_tile(
        &mut self,
        work: &Work<'_>,
        group: &Group,
        moves: &Moves<'_>,
        own: &Place,
        each: &[(Keep, Access)],
    ) {
        if self.items.chosen.is_some() {
            let tile = Place { memory: Memory::Thread, ..own.clone() };
            for (keep, access) in each {
                self.count(work, group, moves, &tile, *keep, *access);
            }
        }
    }

    pub(super) fn note_access(
        &mut self,
        group: &Group,
        memory: Memory,
        traffic: Traffic,
        exact: bool,
        access: Access,
    ) {
        let (node, value) = (group.node, group.value);
        let is_same = |array: &ArrayTraffic| (array.node, array.value, array.memory) == (node, value, memory);
        let position = self.arrays.iter().position(is_same).unwrap_or_else(|| {
            let none = Traffic::default();
            let (loads, stores, atomics) = (none, none, none);
            let (moved, shuffles) = (0.0, 0.0);
            let array =
                ArrayTraffic { node, value, memory, loads, stores, atomics, moved, shuffles, exact: true };
            self.arrays.push(array);
            self.arrays.len() - 1
        });
        let array = &mut self.arrays[position];
        array.exact &= exact;
        match access {
            Access::Load => array.loads += traffic,
            Access::Store => array.stores += traffic,
            Access::Atomic => array.atomics += traffic,
            Access::Zero => {
                array.stores += traffic;
                array.moved += traffic.elements;
            }
            Access::Exchange => {
                array.loads += traffic;
                array.stores += traffic;
                array.moved += traffic.elements;
                array.shuffles += traffic.requests;
            }
        }
    }
}
