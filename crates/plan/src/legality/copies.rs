//! Rules on asynchronous copies: what is copied, from where, and in which loop.

use warploom_lang::FuncId;
use warploom_schedule::Item;

use crate::legality::Checker;
use crate::legality::rule::Rule;
use crate::plan::{NestPlan, Plan};
use crate::problem::Problem;
use crate::problem::flow::Read;

/// The smallest and largest number of slices that exist at once.
pub const ASYNC_DEPTHS: (u32, u32) = (2, 4);

/// The fewest bytes that an asynchronous copy moves.
const LEAST_BYTES: usize = 4;

impl Checker<'_> {
    /// Checks a nest that copies asynchronously.
    pub(super) fn asynchronous(&mut self, nest: &NestPlan, depth: u32) {
        let (least, most) = ASYNC_DEPTHS;
        let item = || self.names.of_item(nest.nest.item);
        let rule = match (least..=most).contains(&depth) {
            true => self.problem.async_rule(self.plan, nest, item),
            false => Some(Rule::AsyncDepth { item: item(), depth, least, most }),
        };
        rule.into_iter().for_each(|rule| self.report(&nest.path, rule));
    }
}

impl Problem {
    /// Whether a stage or staged input is a copy that the device could make asynchronously, if what it reads is in global
    /// memory.
    pub fn is_copy(&self, item: Item, is_inlined: impl Fn(FuncId) -> bool) -> bool {
        let copies = item.stage().is_none_or(|stage| self.copied(stage, is_inlined).is_some());
        let large = self.types(item).iter().all(|ty| ty.bytes() >= LEAST_BYTES);
        copies && large && self.device().features().async_copies
    }

    /// Whether a nest could copy asynchronously.
    pub fn can_be_async(&self, plan: &Plan, nest: &NestPlan) -> bool {
        self.async_rule(plan, nest, String::new).is_none()
    }

    /// The rule that keeps a nest from copying asynchronously.
    fn async_rule(&self, plan: &Plan, nest: &NestPlan, item: impl Fn() -> String) -> Option<Rule> {
        let in_loop = nest.loops.len() > plan.kernels[nest.kernel].around.len();
        if !nest.nest.storage.is_shared() || !in_loop {
            return Some(Rule::AsyncPlace { item: item() });
        }
        if !self.copies_from_global(plan, nest) {
            return Some(Rule::AsyncForm { item: item() });
        }
        let mut bytes = self.types(nest.nest.item).iter().map(|ty| ty.bytes());
        if let Some(bytes) = bytes.find(|bytes| *bytes < LEAST_BYTES) {
            return Some(Rule::AsyncBytes { item: item(), bytes });
        }
        let has_copies = self.device().features().async_copies;
        (!has_copies).then(|| self.no_feature(item(), "async", "asynchronous copies"))
    }

    /// The refusal of a word that takes what the device does not have.
    pub(super) fn no_feature(&self, item: String, word: &'static str, feature: &'static str) -> Rule {
        Rule::NoFeature { item, word, feature, device: self.device().name.clone() }
    }

    /// Whether a nest copies from global memory that its own kernel only reads.
    fn copies_from_global(&self, plan: &Plan, nest: &NestPlan) -> bool {
        let Item::Stage(stage) = nest.nest.item else { return true };
        match self.copied(stage, |func| plan.inlined.contains(func)) {
            None => false,
            Some(Read::Input(input)) => {
                let mut nests = plan.nests_of(nest.kernel).iter();
                !nests.any(|other| other.nest.item == Item::Input(input))
            }
            Some(Read::Func(func)) => {
                let mut places = plan.computing(func);
                !nest.nest.registers.contains(&func) && !places.any(|(_, other)| other.kernel == nest.kernel)
            }
        }
    }
}
