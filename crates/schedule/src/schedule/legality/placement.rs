//! Every Func has a place, and the right one.

use std::collections::BTreeSet;

use warploom_lang::FuncId;

use crate::schedule::legality::Checker;
use crate::schedule::outline::{NestInfo, Path};
use crate::schedule::tree::{Item, StageRef, Storage};
use crate::schedule::violation::Rule;

impl Checker<'_> {
    pub(super) fn placement(&mut self) {
        for func in self.needed() {
            if self.is_inlined(func) {
                self.inlined(func);
            } else {
                self.placed(func);
            }
        }
        for kernel in &self.outline.kernels {
            let last = self.outline.nests[kernel.nests.clone()].last();
            if !last.is_some_and(|nest| self.outline.is_own(nest)) {
                let stage = self.stage_name(kernel.kernel.stage);
                self.report(&kernel.path, Rule::OwnStage { stage });
            }
        }
        for nest in &self.outline.nests {
            self.nest_storage(nest);
        }
    }

    /// The outputs and all that they read, producers first.
    fn needed(&self) -> BTreeSet<FuncId> {
        let mut needed: BTreeSet<FuncId> = self.names.pipeline().outputs().iter().copied().collect();
        // Producers come before their consumers.
        for func in self.names.pipeline().funcs().keys().rev() {
            if needed.contains(&func) {
                let reads = self.stages_of(func).into_iter().flat_map(|stage| self.calls(stage));
                needed.extend(reads.collect::<Vec<_>>());
            }
        }
        needed
    }

    fn inlined(&mut self, func: FuncId) {
        let decl = self.names.func_decl(func);
        if self.names.pipeline().outputs().contains(&func) {
            self.report(&Path::ROOT, Rule::InlinedOutput { func: self.func_name(func) });
        }
        if decl.stages.len() > 1 {
            let rule = Rule::InlinedUpdates { func: self.func_name(func), stages: decl.stages.len() };
            self.report(&Path::ROOT, rule);
        }
        let nests = self.nests_of(func).into_iter().map(|(_, nest)| nest.path.clone());
        let registers = self.registers_of(func).into_iter().map(|(nest, i)| nest.path.child(i));
        for path in nests.chain(registers) {
            self.report(&path, Rule::InlinedAndPlaced { func: self.func_name(func) });
        }
    }

    fn placed(&mut self, func: FuncId) {
        let decl = self.names.func_decl(func);
        let (nests, registers) = (self.nests_of(func), self.registers_of(func));
        for (nest, i) in registers.iter().skip(1) {
            self.report(&nest.path.child(*i), Rule::Twice { name: self.func_name(func) });
        }
        if !registers.is_empty() {
            for (_, nest) in &nests {
                self.report(&nest.path, Rule::Twice { name: self.func_name(func) });
            }
            if self.names.pipeline().outputs().contains(&func) {
                let (nest, i) = registers[0];
                self.report(&nest.path.child(i), Rule::OutputPlace { func: self.func_name(func) });
            }
            return;
        }
        self.output_storage(func, &nests);
        let own = |stage| self.outline.kernels.iter().any(|kernel| kernel.kernel.stage == stage);
        let defined = |stage: usize| !decl.stages[stage].values.is_empty();
        let stages = (0..decl.stages.len()).map(|stage| StageRef { func, stage });
        let missing: Vec<StageRef> = stages
            .filter(|stage| defined(stage.stage) && !own(*stage))
            .filter(|stage| nests.iter().all(|(_, nest)| nest.stage() != Some(*stage)))
            .collect();
        let first = nests.first().map(|(_, nest)| nest.path.clone());
        match first {
            Some(path) => {
                for stage in missing {
                    self.report(&path, Rule::MissingStage { stage: self.stage_name(stage) });
                }
            }
            None if !missing.is_empty() => {
                self.report(&Path::ROOT, Rule::Missing { func: self.func_name(func) });
            }
            None => {}
        }
        for (position, (_, nest)) in nests.iter().enumerate() {
            let Some(stage) = nest.stage() else { continue };
            let name = self.stage_name(stage);
            if nests[..position].iter().any(|(_, earlier)| earlier.stage() == Some(stage)) {
                self.report(&nest.path, Rule::Twice { name });
            } else if !defined(stage.stage) {
                self.report(&nest.path, Rule::Undefined { stage: name });
            }
        }
    }

    fn output_storage(&mut self, func: FuncId, nests: &[(usize, &NestInfo<'_>)]) {
        if !self.names.pipeline().outputs().contains(&func) {
            return;
        }
        if let Some((_, nest)) = nests.iter().find(|(_, nest)| !self.outline.is_own(nest)) {
            self.report(&nest.path, Rule::OutputPlace { func: self.func_name(func) });
        }
    }

    fn nest_storage(&mut self, nest: &NestInfo<'_>) {
        let item = self.names.of_item(nest.nest.item);
        match (nest.nest.item, nest.nest.storage) {
            (Item::Stage(_), Storage::Global) if self.outline.is_own(nest) => {}
            (Item::Stage(_), _) if self.outline.is_own(nest) => {
                self.report(&nest.path, Rule::OwnStorage { stage: item });
            }
            (_, Storage::Global) => self.report(&nest.path, Rule::NoStorage { item }),
            (Item::Input(_), Storage::Private) => self.report(&nest.path, Rule::PrivateInput { item }),
            _ => {}
        }
    }
}
