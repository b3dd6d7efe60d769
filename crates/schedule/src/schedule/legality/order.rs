//! Producers before consumers, at places that hold them all.

use std::collections::BTreeSet;

use warploom_lang::FuncId;
use warploom_lang::ir::NodeKind;

use crate::schedule::legality::Checker;
use crate::schedule::outline::NestInfo;
use crate::schedule::trace::{lives_before, read_of};
use crate::schedule::tree::{Item, StageRef, Storage};
use crate::schedule::violation::Rule;

impl<'a> Checker<'a> {
    pub(super) fn order(&mut self) {
        for (position, nest) in self.outline.nests.iter().enumerate() {
            match nest.nest.item {
                Item::Stage(stage) => {
                    for func in self.reads(nest, stage) {
                        self.reader(position, nest, stage, func);
                    }
                    self.registers(nest);
                }
                Item::Input(_) => self.staged_input(position, nest),
            }
        }
        for func in self.names.pipeline().funcs().keys() {
            self.stages(func);
        }
    }

    /// The Funcs that a definition calls.
    pub(super) fn calls(&self, stage: StageRef) -> BTreeSet<FuncId> {
        let exprs = self.names.pipeline().exprs();
        let nodes = exprs.reachable(self.names.stage_decl(stage).roots());
        let calls = nodes.into_iter().filter_map(|id| match exprs[id].kind {
            NodeKind::Call(func, _) if func != stage.func => Some(func),
            _ => None,
        });
        calls.collect()
    }

    /// The Funcs that some definitions call, those looked through that `inside` holds.
    fn calls_through(&self, stages: Vec<StageRef>, inside: impl Fn(FuncId) -> bool) -> BTreeSet<FuncId> {
        let (mut found, mut seen, mut stack) = (BTreeSet::new(), BTreeSet::new(), stages);
        while let Some(stage) = stack.pop() {
            for func in self.calls(stage) {
                if !inside(func) {
                    found.insert(func);
                } else if seen.insert(func) {
                    stack.extend(self.stages_of(func));
                }
            }
        }
        found
    }

    pub(super) fn stages_of(&self, func: FuncId) -> Vec<StageRef> {
        (0..self.names.func_decl(func).stages.len()).map(|stage| StageRef { func, stage }).collect()
    }

    /// What a nest reads: its stage and all that is inlined or in registers there.
    pub(super) fn reads(&self, nest: &NestInfo<'_>, stage: StageRef) -> BTreeSet<FuncId> {
        let inside = |func: FuncId| self.is_inlined(func) || nest.nest.registers.contains(&func);
        let mut reads = self.calls_through(vec![stage], inside);
        reads.remove(&stage.func);
        reads
    }

    fn reader(&mut self, position: usize, nest: &NestInfo<'_>, stage: StageRef, func: FuncId) {
        let consumer = self.stage_name(stage);
        if let Some((holder, i)) = self.registers_of(func).first() {
            if holder.stage().is_none() {
                // Registers of a copy are mistake enough.
                return;
            }
            let rule = Rule::RegistersElsewhere {
                func: self.func_name(func),
                stage: self.names.of_item(holder.nest.item),
                consumer,
            };
            return self.report(&holder.path.child(*i), rule);
        }
        // The last stage; where the others must be follows from it.
        let producers = self.nests_of(func).into_iter();
        let last = producers.filter_map(|(number, nest)| Some((number, nest, nest.stage()?)));
        let Some((other, producer, made)) = last.max_by_key(|(_, _, stage)| stage.stage) else { return };
        if !self.outline.is_own(producer) && producer.kernel != nest.kernel {
            let kernel = self.stage_name(self.outline.kernels[nest.kernel].kernel.stage);
            let rule = Rule::OutsideKernel { producer: self.stage_name(made), consumer, kernel };
            self.report(&producer.path, rule);
        } else if other > position {
            self.report(&nest.path, Rule::Order { producer: self.stage_name(made), consumer });
        } else if let Some(rule) = self.loops_between(producer, made, nest, &consumer) {
            let path = if matches!(rule, Rule::Incomplete { .. }) { &nest.path } else { &producer.path };
            self.report(path, rule);
        }
    }

    /// What is wrong with the loops that hold a producer, as seen from its consumer.
    fn loops_between(
        &self,
        producer: &NestInfo<'_>,
        made: StageRef,
        consumer: &NestInfo<'_>,
        name: &str,
    ) -> Option<Rule> {
        let variable = |number: usize| {
            let tile = self.outline.loops[number].tile;
            self.names.of_reduction(tile.stage, tile.var)
        };
        let (made, consumer_name) = (self.stage_name(made), name.to_string());
        let own = self.outline.own_loops(producer);
        if let Some(&number) = own.iter().find(|number| consumer.loops.contains(number)) {
            let variable = variable(number);
            return Some(Rule::Incomplete { producer: made, consumer: consumer_name, variable });
        }
        let foreign = self.outline.foreign_loops(producer);
        let outside = foreign.iter().enumerate().find(|(i, number)| consumer.loops.get(*i) != Some(number));
        let variable = variable(*outside?.1);
        Some(Rule::NotEnclosing { producer: made, consumer: consumer_name, variable })
    }

    fn staged_input(&mut self, position: usize, nest: &NestInfo<'_>) {
        let item = self.names.of_item(nest.nest.item);
        for (i, func) in nest.nest.registers.iter().enumerate() {
            let rule = Rule::RegistersOfInput { item: item.clone(), func: self.func_name(*func) };
            self.report(&nest.path.child(i), rule);
        }
        if lives_before(self.outline, position, read_of(nest.nest.item)) || self.is_staged_before(position) {
            return self.report(&nest.path, Rule::StagedTwice { item });
        }
        if self.footprints.nests[position].is_none() {
            self.report(&nest.path, Rule::Unread { item });
        }
    }

    fn is_staged_before(&self, position: usize) -> bool {
        let nest = &self.outline.nests[position];
        let first = self.outline.kernels[nest.kernel].nests.start;
        self.outline.nests[first..position].iter().any(|other| other.nest.item == nest.nest.item)
    }

    /// Funcs in registers: their shape, and that each comes before those that read it.
    fn registers(&mut self, nest: &NestInfo<'_>) {
        for (i, &func) in nest.nest.registers.iter().enumerate() {
            let path = nest.path.child(i);
            let exprs = self.names.pipeline().exprs();
            let known = |stage: &StageRef| {
                let decl = self.names.stage_decl(*stage);
                (0..decl.indices.len()).all(|d| decl.is_pure(exprs, d) || decl.is_fixed(exprs, d))
            };
            let stages = self.stages_of(func);
            if let Some(stage) = stages.iter().find(|stage| !known(stage)) {
                let rule = Rule::RegistersShape { stage: self.stage_name(*stage) };
                self.report(&path, rule);
            }
            let reads = self.calls_through(stages, |func| self.is_inlined(func));
            for &later in &nest.nest.registers[i + 1..] {
                if reads.contains(&later) {
                    let (producer, consumer) = (self.func_name(later), self.func_name(func));
                    self.report(&path, Rule::RegistersOrder { producer, consumer });
                }
            }
        }
    }

    /// The stages of a Func follow each other and can share an array.
    fn stages(&mut self, func: FuncId) {
        let nests = self.nests_of(func);
        let first_of = |stage: usize| {
            nests.iter().find(|(_, nest)| nest.stage().is_some_and(|known| known.stage == stage))
        };
        let placed =
            (0..self.names.func_decl(func).stages.len()).filter_map(|stage| first_of(stage).copied());
        let placed: Vec<(usize, &NestInfo<'_>)> = placed.collect();
        for pair in placed.windows(2) {
            let [(before, earlier), (after, later)] = pair else { continue };
            let (Some(first), Some(second)) = (earlier.stage(), later.stage()) else { continue };
            let (stage, name) = (self.stage_name(second), self.stage_name(first));
            if before > after {
                self.report(&later.path, Rule::StageOrder { stage, earlier: name });
                continue;
            }
            let home = |nest: &NestInfo<'_>| match self.outline.is_own(nest) {
                true => (None, Storage::Global),
                false => (Some(nest.kernel), nest.nest.storage),
            };
            let together = home(earlier) == home(later)
                && self.outline.foreign_loops(earlier) == self.outline.foreign_loops(later);
            if !together {
                self.report(&later.path, Rule::StagePlace { stage, earlier: name });
            }
        }
    }
}
