//! The accesses of a part, before and after its decisions.

use smallvec::SmallVec;

use crate::body::builder::Builder;
use crate::body::flatten::Group;
use crate::body::{Access, AccessKind, Accessed, Part, Runs};
use crate::decisions::DECISIONS;

impl Access {
    fn new(kind: AccessKind, elements: Accessed, array: usize) -> Access {
        let (runs, vectors) = (Runs::All, SmallVec::new());
        Access { kind, elements, array, runs, before: false, shuffled: false, vectors }
    }
}

impl<'p> Builder<'_, 'p> {
    /// Fills in the arrays and accesses of a part.
    pub fn access(&mut self, part: &mut Part<'p>) {
        part.arrays.push(self.own_place(part));
        let flat = part.flat.clone();
        for (number, group) in flat.loads.iter().enumerate() {
            self.load(part, number, group);
        }
        let runs = if part.accumulates { Runs::Points } else { Runs::All };
        let kinds = [part.accumulates.then_some(AccessKind::Begin), Some(AccessKind::Store)];
        for kind in kinds.into_iter().flatten() {
            let each = (0..flat.stores.len()).map(|number| Access::new(kind, Accessed::Store(number), 0));
            part.accesses.extend(each.map(|access| Access { runs, ..access }));
        }
        for decision in DECISIONS {
            decision.apply(part, self);
        }
    }

    fn load(&mut self, part: &mut Part<'p>, number: usize, group: &Group) {
        let own = group.own && part.nest.is_some();
        if own && part.accumulates {
            return;
        }
        if own && part.carries {
            return scanned(part, group);
        }
        let mut access = Access::new(AccessKind::Load, Accessed::Load(number), 0);
        if !group.own || part.stage().is_none() {
            let place = self.place(group.node, part);
            access.array = part.arrays.len();
            access.shuffled = !group.own && self.is_in_warps(group.node);
            if self.keeps(part, group, &place) {
                part.before.get_or_insert_with(|| Box::new(part.walk.before_loops()));
                access.before = true;
            }
            part.arrays.push(place);
        }
        part.accesses.push(access);
    }
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
