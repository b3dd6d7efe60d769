//! Order rules: producers run before their consumers, inside loops that contain both.

use smallvec::SmallVec;
use warploom_lang::FuncId;
use warploom_schedule::{Item, StageRef};

use crate::ids::{LoopId, NestId};
use crate::legality::Checker;
use crate::legality::rule::Rule;
use crate::plan::NestPlan;
use crate::trace::{lives_before, read_of};

impl Checker<'_> {
    pub(super) fn order(&mut self) {
        for (position, nest) in self.plan.nests.iter() {
            match nest.nest.item {
                Item::Stage(stage) => {
                    for i in 0..self.reads[position].len() {
                        self.reader(position, nest, stage, self.reads[position][i]);
                    }
                    self.registers(nest);
                }
                Item::Input(_) => self.staged_input(position, nest),
            }
        }
        for func in self.present() {
            self.stages(func);
        }
    }

    fn reader(&mut self, position: NestId, nest: &NestPlan, stage: StageRef, func: FuncId) {
        let consumer = || self.stage_name(stage);
        if let Some((holder, i)) = self.registers_of(func).next() {
            // Registers below a staged input are reported elsewhere.
            if holder.stage().is_some() {
                let rule = Rule::RegistersElsewhere {
                    func: self.func_name(func),
                    stage: self.names.of_item(holder.nest.item),
                    consumer: consumer(),
                };
                self.report(&holder.path.child(i), rule);
            }
            return;
        }
        // Only the last stage matters: it determines where the others must be.
        let last = self.nests_of(func).filter_map(|(number, nest)| Some((number, nest, nest.stage()?)));
        let Some((other, producer, made)) = last.max_by_key(|(_, _, stage)| stage.stage) else { return };
        if !self.plan.is_own(producer) && producer.kernel != nest.kernel {
            let kernel = self.stage_name(self.plan.kernels[nest.kernel].kernel.stage);
            let (producer_name, consumer) = (self.stage_name(made), consumer());
            let rule = Rule::OutsideKernel { producer: producer_name, consumer, kernel };
            self.report(&producer.path, rule);
        } else if other > position {
            let rule = Rule::Order { producer: self.stage_name(made), consumer: consumer() };
            self.report(&nest.path, rule);
        } else if let Some(rule) = self.loops_between(producer, made, nest, stage) {
            let path = if matches!(rule, Rule::Incomplete { .. }) { &nest.path } else { &producer.path };
            self.report(path, rule);
        }
    }

    /// The rule broken by the loops around a producer, as seen from its consumer.
    fn loops_between(
        &self,
        producer: &NestPlan,
        made: StageRef,
        consumer: &NestPlan,
        reader: StageRef,
    ) -> Option<Rule> {
        let variable = |number: LoopId| {
            let tile = self.plan.loops[number].tile;
            self.names.of_reduction(tile.stage, tile.var)
        };
        let names = || (self.stage_name(made), self.stage_name(reader));
        if consumer.loops.is_empty() && producer.loops.is_empty() {
            return None;
        }
        let own = self.plan.own_loops(producer);
        if let Some(&number) = own.iter().find(|number| consumer.loops.contains(number)) {
            let ((producer, consumer), variable) = (names(), variable(number));
            return Some(Rule::Incomplete { producer, consumer, variable });
        }
        let foreign = self.plan.foreign_loops(producer);
        let outside = foreign.iter().enumerate().find(|(i, number)| consumer.loops.get(*i) != Some(number));
        let (variable, (producer, consumer)) = (variable(*outside?.1), names());
        Some(Rule::NotEnclosing { producer, consumer, variable })
    }

    fn staged_input(&mut self, position: NestId, nest: &NestPlan) {
        let names = self.names;
        let item = || names.of_item(nest.nest.item);
        for (i, func) in nest.nest.registers.iter().enumerate() {
            let rule = Rule::RegistersOfInput { item: item(), func: self.func_name(*func) };
            self.report(&nest.path.child(i), rule);
        }
        if lives_before(self.plan, position, read_of(nest.nest.item)) || self.is_staged_before(position) {
            return self.report(&nest.path, Rule::StagedTwice { item: item() });
        }
        if self.plan.nests[position].footprint.is_none() {
            self.report(&nest.path, Rule::Unread { item: item() });
        }
    }

    fn is_staged_before(&self, position: NestId) -> bool {
        let nest = &self.plan.nests[position];
        let first = self.plan.kernels[nest.kernel].nests.start;
        self.plan.nests.slice(first..position).iter().any(|other| other.nest.item == nest.nest.item)
    }

    /// Checks Funcs in registers: their shape, and that each comes before its readers.
    fn registers(&mut self, nest: &NestPlan) {
        for (i, &func) in nest.nest.registers.iter().enumerate() {
            let path = nest.path.child(i);
            if let Some(stage) = self.problem.func(func).moving_stage {
                let rule = Rule::RegistersShape { stage: self.stage_name(stage) };
                self.report(&path, rule);
            }
            if i + 1 == nest.nest.registers.len() {
                continue;
            }
            let stages = self.problem.stages_of(func);
            let reads = self.problem.reads_through(stages, |func| self.is_inlined(func)).outside;
            for &later in &nest.nest.registers[i + 1..] {
                if reads.contains(&later) {
                    let (producer, consumer) = (self.func_name(later), self.func_name(func));
                    self.report(&path, Rule::RegistersOrder { producer, consumer });
                }
            }
        }
    }

    /// Checks that the stages of a Func follow each other and can share an array.
    fn stages(&mut self, func: FuncId) {
        let first_of = |stage: StageRef| self.nests_of(func).find(|(_, nest)| nest.stage() == Some(stage));
        let placed: SmallVec<[(NestId, &NestPlan); 4]> =
            self.problem.stages_of(func).filter_map(first_of).collect();
        for pair in placed.windows(2) {
            let [(before, earlier), (after, later)] = pair else { continue };
            let (Some(first), Some(second)) = (earlier.stage(), later.stage()) else { continue };
            let names = || (self.stage_name(second), self.stage_name(first));
            if before > after {
                let (stage, earlier) = names();
                self.report(&later.path, Rule::StageOrder { stage, earlier });
                continue;
            }
            let home =
                |nest: &NestPlan| (!self.plan.is_own(nest)).then_some((nest.kernel, nest.nest.storage));
            let together = home(earlier) == home(later)
                && self.plan.foreign_loops(earlier) == self.plan.foreign_loops(later);
            if !together {
                let (stage, earlier) = names();
                self.report(&later.path, Rule::StagePlace { stage, earlier });
            }
        }
    }
}
