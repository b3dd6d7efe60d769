//! Placement rules: every Func has a place, and that place is allowed.

use warploom_lang::FuncId;
use warploom_schedule::{Item, NodeSet, Path, Source, StageRef, Storage};

use crate::legality::Checker;
use crate::legality::rule::Rule;
use crate::plan::NestPlan;

impl Checker<'_> {
    /// Checks that the outputs and everything they read have a place.
    pub(super) fn needed_places(&mut self) {
        let outputs = self.names.pipeline().outputs();
        let mut needed = NodeSet::default();
        outputs.iter().for_each(|func| self.problem.func(*func).add_upstream(&mut needed));
        for func in self.names.pipeline().funcs().keys() {
            if !needed.contains(self.problem.node(Source::Func(func))) {
                continue;
            }
            if self.is_inlined(func) {
                self.inlined(func);
            } else {
                self.placed(func, true);
            }
        }
    }

    /// Checks the places of the Funcs that occur here, and that all inlined Funcs can be inlined.
    pub(super) fn present_places(&mut self) {
        let wrong = self.plan.inlined.iter().find(|func| !self.problem.func(*func).can_be_inlined());
        if let Some(func) = wrong {
            self.inlined(func);
        }
        for func in self.present() {
            if self.is_inlined(func) {
                self.inlined(func);
            } else {
                // The other stages of a Func in global memory may be in other kernels.
                let in_block = self.nests_of(func).any(|(_, nest)| !self.plan.is_own(nest));
                self.placed(func, in_block);
            }
        }
    }

    pub(super) fn storage_words(&mut self) {
        for kernel in self.plan.kernels.values() {
            let last = self.plan.nests.slice(kernel.nests.clone()).last();
            if !last.is_some_and(|nest| self.plan.is_own(nest)) {
                let stage = self.stage_name(kernel.kernel.stage);
                self.report(&kernel.path, Rule::OwnStage { stage });
            }
        }
        for nest in self.plan.nests.values() {
            self.nest_storage(nest);
        }
    }

    fn inlined(&mut self, func: FuncId) {
        let stages = self.names.func_decl(func).stages.len();
        if self.problem.func(func).is_output {
            self.report(&Path::ROOT, Rule::InlinedOutput { func: self.func_name(func) });
        }
        if stages > 1 {
            self.report(&Path::ROOT, Rule::InlinedUpdates { func: self.func_name(func), stages });
        }
        let nests = self.nests_of(func).map(|(_, nest)| nest.path.clone());
        let registers = self.registers_of(func).map(|(nest, i)| nest.path.child(i));
        for path in nests.chain(registers) {
            self.report(&path, Rule::InlinedAndPlaced { func: self.func_name(func) });
        }
    }

    /// Checks that a Func that is not inlined has one place. If `complete`, all its stages must be
    /// there.
    fn placed(&mut self, func: FuncId, complete: bool) {
        let mut registers = self.registers_of(func);
        if let Some((holder, i)) = registers.next() {
            for (nest, i) in registers {
                self.report(&nest.path.child(i), Rule::Twice { name: self.func_name(func) });
            }
            for (_, nest) in self.nests_of(func) {
                self.report(&nest.path, Rule::Twice { name: self.func_name(func) });
            }
            if self.problem.func(func).is_output {
                self.report(&holder.path.child(i), Rule::OutputPlace { func: self.func_name(func) });
            }
            return;
        }
        self.output_storage(func);
        if complete {
            self.all_stages(func);
        }
        for (number, nest) in self.nests_of(func) {
            let Some(stage) = nest.stage() else { continue };
            let mut earlier = self.nests_of(func).take_while(|(other, _)| *other < number);
            if earlier.any(|(_, earlier)| earlier.stage() == Some(stage)) {
                self.report(&nest.path, Rule::Twice { name: self.stage_name(stage) });
            } else if !self.is_defined(stage) {
                self.report(&nest.path, Rule::Undefined { stage: self.stage_name(stage) });
            }
        }
    }

    fn is_defined(&self, stage: StageRef) -> bool {
        !self.names.stage_decl(stage).values.is_empty()
    }

    /// Checks that every stage of a Func that computes something is present.
    fn all_stages(&mut self, func: FuncId) {
        let first = self.nests_of(func).next();
        for stage in self.problem.stages_of(func) {
            let own = self.plan.has_kernel(stage);
            let placed = || self.nests_of(func).any(|(_, nest)| nest.stage() == Some(stage));
            if !self.is_defined(stage) || own || placed() {
                continue;
            }
            match first {
                Some((_, nest)) => {
                    self.report(&nest.path, Rule::MissingStage { stage: self.stage_name(stage) });
                }
                None => self.report(&Path::ROOT, Rule::Missing { func: self.func_name(func) }),
            }
        }
    }

    fn output_storage(&mut self, func: FuncId) {
        if !self.problem.func(func).is_output {
            return;
        }
        let elsewhere = self.nests_of(func).find(|(_, nest)| !self.plan.is_own(nest));
        if let Some((_, nest)) = elsewhere {
            self.report(&nest.path, Rule::OutputPlace { func: self.func_name(func) });
        }
    }

    fn nest_storage(&mut self, nest: &NestPlan) {
        let item = || self.names.of_item(nest.nest.item);
        match (nest.nest.item, nest.nest.storage) {
            (Item::Stage(_), Storage::Global) if self.plan.is_own(nest) => {}
            (Item::Stage(_), _) if self.plan.is_own(nest) => {
                self.report(&nest.path, Rule::OwnStorage { stage: item() });
            }
            (_, Storage::Global) => self.report(&nest.path, Rule::NoStorage { item: item() }),
            (Item::Input(_), Storage::Private) => {
                self.report(&nest.path, Rule::PrivateInput { item: item() })
            }
            _ => {}
        }
    }
}
