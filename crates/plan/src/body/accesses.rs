//! The accesses of a part, as its decisions change them.

use smallvec::SmallVec;

use crate::body::builder::Builder;
use crate::body::flatten::Group;
use crate::body::moves::{Memory, Moves, Place};
use crate::body::vectors::{VECTOR_BYTES, Vector};
use crate::body::{Access, AccessKind, Accessed, Part, Runs};

/// What decides how a part accesses memory, beyond what it says of itself.
pub(super) struct Decided {
    /// Whether accesses of its unrolled points are vectors, where that is possible.
    pub vector: bool,
    /// Whether its loop-invariant loads move before the loops over the block, where that is possible.
    pub keeps: bool,
}

impl Access {
    fn new(kind: AccessKind, elements: Accessed, array: usize) -> Access {
        let (runs, vectors) = (Runs::All, SmallVec::new());
        Access { kind, elements, array, runs, before: false, shuffled: false, vectors }
    }
}

impl<'p> Builder<'_, 'p> {
    /// Fills in the arrays and accesses of a part.
    pub fn access(&mut self, part: &mut Part<'p>, decided: &Decided) {
        if part.nest.is_some_and(|nest| nest.numbers.depth.is_some()) {
            part.slices = self.allocation(part.node).map_or(1, |array| array.slices);
        }
        part.arrays.push(self.own_place(part));
        let flat = part.flat.clone();
        for (number, group) in flat.loads.iter().enumerate() {
            self.load(part, number, group, decided);
        }
        for number in 0..flat.stores.len() {
            if part.accumulates {
                let begin = Access::new(AccessKind::Begin, Accessed::Store(number), 0);
                part.accesses.push(Access { runs: Runs::Points, ..begin });
            }
        }
        let kind = if is_atomic(part) { AccessKind::Atomic } else { AccessKind::Store };
        let runs = if part.accumulates { Runs::Points } else { Runs::All };
        for number in 0..flat.stores.len() {
            part.accesses.push(Access { runs, ..Access::new(kind, Accessed::Store(number), 0) });
        }
        if decided.vector {
            let all: SmallVec<[_; 8]> = part.accesses.iter().map(|access| vectors(part, access)).collect();
            part.accesses.iter_mut().zip(all).for_each(|(access, vectors)| access.vectors = vectors);
        }
    }

    fn load(&mut self, part: &mut Part<'p>, number: usize, group: &Group, decided: &Decided) {
        let mut access = Access::new(AccessKind::Load, Accessed::Load(number), 0);
        let own = group.own && part.nest.is_some();
        if own && part.accumulates {
            return;
        }
        if own && is_atomic(part) {
            access.kind = AccessKind::Update;
        } else if own && part.carries {
            return scanned(part, group);
        } else if !group.own || part.stage().is_none() {
            let place = self.place(group.node, part);
            access.array = part.arrays.len();
            access.shuffled = !group.own && self.is_in_warps(group.node);
            if decided.keeps && self.keeps(part, group, &place) {
                part.before.get_or_insert_with(|| Box::new(part.walk.before_loops()));
                access.before = true;
            }
            part.arrays.push(place);
        }
        part.accesses.push(access);
    }
}

fn is_atomic(part: &Part<'_>) -> bool {
    part.nest.is_some_and(|nest| nest.numbers.atomic)
}

/// The loads of a scan from its own Func. What it wrote last is in a register, and is loaded once per line.
fn scanned(part: &mut Part<'_>, group: &Group) {
    let variable = part.walk.vars.len() - 1;
    let store = part.flat.stores.iter().find(|store| store.value == group.value);
    let (previous, others) = store.map_or((None, None), |store| group.split_previous(store, variable));
    for (group, runs) in [(previous, Runs::Points), (others, Runs::All)] {
        let only = group.map(|group| Accessed::Only(Box::new(group)));
        let access = only.map(|only| Access { runs, ..Access::new(AccessKind::Load, only, 0) });
        part.accesses.extend(access);
    }
}

/// The vectors of an access of a part that makes them where it can: nothing else in the loop accesses what it writes.
fn vectors(part: &Part<'_>, access: &Access) -> SmallVec<[Option<Vector>; 4]> {
    let (group, place) = (part.group(access), &part.arrays[access.array]);
    let reads_own = || part.flat.loads.iter().any(|load| load.own) && part.stage().is_some();
    let is_alone = !group.own || part.accumulates || !reads_own();
    if access.kind == AccessKind::Atomic || !is_alone {
        return SmallVec::new();
    }
    let most = match (part.copies_ahead(), place.memory) {
        (true, _) => copied_at_once(part),
        (false, Memory::Global) => VECTOR_BYTES,
        (false, _) => 1,
    };
    if most == 1 {
        return SmallVec::new();
    }
    let moves = Moves::new(part.walk_of(access), group);
    let runs = access.runs;
    let vectors = moves.elements(place).map(|of| moves.vectors(&of, place, |kind| runs.repeats(kind), most));
    vectors.unwrap_or_default()
}

/// The elements of an asynchronous copy, as many as both sides allow.
fn copied_at_once(part: &Part<'_>) -> i64 {
    let [load, store] = &part.accesses[..] else { return 1 };
    let width = |access: &Access| {
        let (moves, place): (_, &Place) =
            (Moves::new(&part.walk, part.group(access)), &part.arrays[access.array]);
        let vectors = moves.elements(place).map(|of| moves.vectors(&of, place, |_| true, VECTOR_BYTES));
        vectors.iter().flatten().map(|of| of.map_or(1, |of| of.width)).min().unwrap_or(1)
    };
    width(load).min(width(store))
}
