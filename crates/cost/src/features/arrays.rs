//! The accesses of one block to each array, as the simulator counts them.

use smallvec::SmallVec;
use warploom_lang::Range;
use warploom_plan::body::{
    AccessKind, Axis, Body, Linear, Memory, Moves, Part, Place, What, has_inner_blocks, inner_axes,
};
use warploom_plan::{KernelId, KernelPlan, Plan, Problem};
use warploom_schedule::NodeId;

use crate::features::block::Block;
use crate::features::traffic::Counter;
use crate::kernel::{ArrayTraffic, Traffic};

/// What accesses do to an array.
#[derive(Clone, Copy)]
enum Does {
    Load,
    Store,
    Atomic,
    /// A store of zero, where a lane computes nothing.
    Zero,
    /// A load, a shuffle and a store.
    Exchange,
}

/// The accesses to each array in a block that does what a body says.
pub(super) fn of_body(problem: &Problem, plan: &Plan, id: KernelId, body: &Body<'_>) -> Vec<ArrayTraffic> {
    let block = Block::new(problem, plan, id, body);
    let mut arrays = Arrays { problem, plan, kernel: &plan.kernels[id], block, found: Vec::new() };
    body.parts.iter().for_each(|part| arrays.part(part));
    arrays.found
}

struct Arrays<'k> {
    problem: &'k Problem,
    plan: &'k Plan,
    kernel: &'k KernelPlan,
    block: Block<'k>,
    found: Vec<ArrayTraffic>,
}

impl Arrays<'_> {
    fn part(&mut self, part: &Part<'_>) {
        let inside = self.is_inside(part, &part.walk.around.axes);
        // Where lanes compute points without a guard, blocks at the edges would bring one with them, and zeros.
        let alike = part
            .lanes
            .as_ref()
            .is_none_or(|lanes| lanes.harmless || lanes.is_guarded() || self.is_inside_everywhere(part));
        let exact = part.flat.exact && part.walk.exact && alike && inside;
        for access in &part.accesses {
            let does = match access.kind {
                AccessKind::Load | AccessKind::Begin => Does::Load,
                AccessKind::Store => Does::Store,
                AccessKind::Atomic => Does::Atomic,
                AccessKind::Update => continue,
            };
            let (moves, place) =
                (Moves::new(part.walk_of(access), part.group(access)), &part.arrays[access.array]);
            let (traffic, all) = self.block.count(part, access, &moves);
            let followed = all
                && part.walk.vars.iter().chain(&place.base).all(|linear| linear.den == 1)
                && (moves.is_exact() || place.memory == Memory::Thread)
                && (place.memory != Memory::Global || stays_inside(&moves, place))
                && !self.is_in_warps(moves.group.node);
            self.note(&moves, place.memory, traffic, exact && followed, does);
        }
        self.in_registers(part, exact);
        self.exchanged(part, alike && inside);
    }

    /// The accesses to registers that stand for an array while a thread accumulates or scans.
    fn in_registers(&mut self, part: &Part<'_>, exact: bool) {
        for (group, runs, kind) in part.register_accesses() {
            let (moves, place) =
                (&Moves::new(&part.walk, group), &Place { memory: Memory::Thread, ..part.own().clone() });
            let units = self.block.units;
            let traffic = Counter { moves, place, units }.traffic(|kind| runs.repeats(kind), &[]).0;
            let whole = part.walk.vars.iter().chain(&place.base).all(|linear| linear.den == 1);
            let whole = whole && !self.is_in_warps(group.node);
            let does = if kind == AccessKind::Store { Does::Store } else { Does::Load };
            self.note(moves, Memory::Thread, traffic, exact && whole, does);
        }
    }

    /// What lanes do to the points of a stage beside computing them.
    fn exchanged(&mut self, part: &Part<'_>, inside: bool) {
        let Some(lanes) = &part.lanes else { return };
        let (place, units) = (part.own(), self.block.units);
        for group in &part.flat.stores {
            let moves = &Moves::new(part.everywhere(), group);
            let each = Counter { moves, place, units }.traffic(|_| true, &[]).0;
            let exact = part.everywhere().exact && inside;
            let zeros = each.times(f64::from(u8::from(lanes.zeros)));
            self.note(moves, place.memory, zeros, exact, Does::Zero);
            self.note(moves, place.memory, each.times(lanes.taken), exact, Does::Exchange);
        }
    }

    fn note(&mut self, moves: &Moves<'_>, memory: Memory, traffic: Traffic, exact: bool, does: Does) {
        let (node, value) = (moves.group.node, moves.group.value);
        let is_same = |array: &ArrayTraffic| (array.node, array.value, array.memory) == (node, value, memory);
        let position = self.found.iter().position(is_same).unwrap_or_else(|| {
            let none = Traffic::default();
            let (loads, stores, atomics) = (none, none, none);
            let (moved, shuffles) = (0.0, 0.0);
            let array =
                ArrayTraffic { node, value, memory, loads, stores, atomics, moved, shuffles, exact: true };
            self.found.push(array);
            self.found.len() - 1
        });
        let array = &mut self.found[position];
        array.exact &= exact;
        match does {
            Does::Load => array.loads += traffic,
            Does::Store => array.stores += traffic,
            Does::Atomic => array.atomics += traffic,
            Does::Zero => {
                array.stores += traffic;
                array.moved += traffic.elements;
            }
            Does::Exchange => {
                array.loads += traffic;
                array.stores += traffic;
                array.moved += traffic.elements;
                array.shuffles += traffic.requests;
            }
        }
    }

    /// Whether threads exchange a node within warps. Lanes without a point take part, so that no count is exact.
    fn is_in_warps(&self, node: NodeId) -> bool {
        let mut allocations = self.kernel.allocations.iter();
        allocations.any(|allocation| allocation.in_warps && self.block.node_of(allocation.item) == node)
    }

    /// The same for all blocks away from the edges of the grid, which run the same code as the chosen one.
    fn is_inside_everywhere(&self, part: &Part<'_>) -> bool {
        has_inner_blocks(self.kernel) && self.is_inside(part, &inner_axes(self.kernel, &part.walk))
    }

    /// Whether no guard and no clamp takes effect on the points of a part or on the arrays of the block.
    fn is_inside(&self, part: &Part<'_>, axes: &[Axis]) -> bool {
        let (walk, lowest) = (&part.walk, &self.plan.lowest);
        let allocated = self.kernel.allocations.iter().all(|allocation| {
            allocation.points.dims.iter().all(|reach| {
                let (low, high) = walk.around.lowest(reach, lowest).range(axes);
                reach.min <= low && high + reach.extent() - 1 <= reach.max
            })
        });
        let ranges = walk.ranges.iter().zip(self.points_of(part));
        let own = walk.vars.iter().zip(&walk.extents).zip(ranges).all(|((var, extent), ranges)| {
            let ((first, last), range) = ranges;
            let outside = var.steps.iter().filter(|(axis, _)| (*axis as usize) < walk.own_axes);
            let starts = Linear { steps: outside.copied().collect(), ..var.clone() };
            let (low, high) = starts.range(axes);
            let (first, last) = (range.min.max(*first), range.last().min(*last));
            *extent <= 1 || (first <= low && high + extent - 1 <= last)
        });
        allocated && own
    }

    /// The ranges of a part's variables.
    fn points_of(&self, part: &Part<'_>) -> SmallVec<[Range; 6]> {
        match part.what {
            What::Stage(stage) => {
                let stage = &self.problem.dag().stages()[stage];
                let regions = &self.problem.regions().funcs[stage.func].stages[stage.number];
                regions.needed.0.iter().chain(&regions.domain).copied().collect()
            }
            What::Copy(input) => self.problem.regions().inputs[input].0.iter().copied().collect(),
        }
    }
}

/// Whether all indices are in bounds, so that nothing is clamped.
fn stays_inside(moves: &Moves<'_>, place: &Place) -> bool {
    let axes = &moves.walk.around.axes;
    let vars: SmallVec<[(i64, i64); 6]> = moves.walk.vars.iter().map(|var| var.range(axes)).collect();
    moves.group.rows.iter().enumerate().all(|(number, row)| {
        let constants = || moves.group.origins.iter().map(|origin| origin[number]);
        let (mut low, mut high) = (constants().min().unwrap_or(0), constants().max().unwrap_or(0));
        for (coef, (first, last)) in row.coefs.iter().zip(&vars) {
            low += (coef * first).min(coef * last);
            high += (coef * first).max(coef * last);
        }
        let (base, _) = place.base[number].range(axes);
        base <= low && high < base + place.extents[number]
    })
}
