//! Numbers that depend on the sizes of a launch: constants if the sizes are fixed.

use warploom_lang::affine::Interval;
use warploom_lang::dynamic::{Atom, AtomId, Formula, FormulaRange};
use warploom_lang::{InputId, Type};
use warploom_plan::Limit;
use warploom_schedule::{Item, LoopKind};

use crate::builder::Builder;
use crate::ir::{BufferId, Leaf, NodeId, Scalar, ScalarValue};
use crate::lower::context::Context;
use crate::lower::state::KernelLowering;

/// The scalars of a kernel that are needed so far.
#[derive(Clone, Default)]
pub(crate) struct Scalars(pub Vec<Scalar>);

impl Scalars {
    /// The position of a formula's value.
    pub fn position(&mut self, context: &Context<'_>, formula: &Formula) -> u32 {
        let name = || match formula.terms[..] {
            [(atom, 1)] if formula.constant == 0 => context.atom_name(atom),
            _ => None,
        };
        let typical = Some(context.typical(formula));
        self.add(name(), ScalarValue::Formula(formula.clone()), context.range(formula), typical)
    }

    fn add(
        &mut self,
        name: Option<String>,
        value: ScalarValue,
        range: Interval,
        typical: Option<i64>,
    ) -> u32 {
        let known = self.0.iter().position(|known| known.value == value).unwrap_or_else(|| {
            let name = name.unwrap_or_else(|| format!("n{}", self.0.len()));
            self.0.push(Scalar { name, value, min: range.min, max: range.max, typical });
            self.0.len() - 1
        });
        u32::try_from(known).unwrap_or(u32::MAX)
    }

    /// A formula as an expression: a sum of its atoms.
    pub fn node(&mut self, context: &Context<'_>, builder: &mut Builder, formula: &Formula) -> NodeId {
        let mut sum = builder.int(formula.constant);
        for (atom, factor) in &formula.terms {
            let atom = self.whole(context, builder, &Formula::atom(*atom));
            let term = builder.scale(atom, *factor);
            sum = builder.add(sum, term);
        }
        sum
    }

    /// A formula as one scalar.
    pub fn whole(&mut self, context: &Context<'_>, builder: &mut Builder, formula: &Formula) -> NodeId {
        if formula.is_constant() {
            return builder.int(formula.constant);
        }
        let position = self.position(context, formula);
        builder.leaf(Leaf::Size(position), Type::I32, Some(context.range(formula)))
    }

    /// The stride of a buffer's dimension.
    pub fn stride(
        &mut self,
        builder: &mut Builder,
        buffer: BufferId,
        name: &str,
        dimension: usize,
    ) -> NodeId {
        let range = Interval::new(1, i64::from(i32::MAX));
        let name = Some(format!("{name}_stride{dimension}"));
        let position = self.add(name, ScalarValue::Stride(buffer, dimension), range, None);
        builder.leaf(Leaf::Size(position), Type::I32, Some(range))
    }
}

impl Context<'_> {
    pub fn range(&self, formula: &Formula) -> Interval {
        self.formulas.borrow().range(formula)
    }

    /// The value of a formula at the sizes that kernels are scheduled for.
    pub fn typical(&self, formula: &Formula) -> i64 {
        let Some(sizes) = self.problem.sizes() else { return formula.constant };
        self.formulas.borrow().at(formula, &sizes.request.typical_sizes)
    }

    /// The name of a size; `None` for other atoms.
    fn atom_name(&self, atom: AtomId) -> Option<String> {
        let formulas = self.formulas.borrow();
        match &formulas.atoms()[atom] {
            Atom::Size(number) => Some(formulas.sizes()[*number].name.clone()),
            _ => None,
        }
    }

    /// The values of a loop of a stage or staged input at any sizes.
    pub fn loop_range(&self, item: Item, kind: LoopKind) -> FormulaRange {
        let fixed = || FormulaRange::constant(self.problem.nested_range(item, kind));
        let Some(sizes) = self.problem.sizes() else { return fixed() };
        let range = match (item, kind) {
            (Item::Stage(stage), LoopKind::Reduction(r)) => {
                sizes.funcs[stage.func].stages[stage.stage].domain.get(r)
            }
            (Item::Stage(stage), LoopKind::Pure(d)) => {
                sizes.funcs[stage.func].stages[stage.stage].needed.get(d)
            }
            (Item::Input(input), LoopKind::Pure(d)) => sizes.read[input].get(d),
            (Item::Input(_), LoopKind::Reduction(_)) => None,
        };
        range.cloned().unwrap_or_else(fixed)
    }

    /// The number of steps of `size` that cover a range starting at `first`; at least `least`. `None` if it is the same
    /// at all sizes.
    pub fn steps(&self, range: &FormulaRange, first: i64, size: i64, least: i64) -> Option<Formula> {
        if range.last.is_constant() {
            return None;
        }
        let mut formulas = self.formulas.borrow_mut();
        let shifted = range.last.add_scaled(&Formula::constant(size - first), 1)?;
        let steps = formulas.quotient(&shifted, size)?;
        formulas.max(&steps, &Formula::constant(least)).filter(|steps| !steps.is_constant())
    }
}

impl KernelLowering<'_> {
    /// The first index of an input's dimension.
    pub fn input_min(&mut self, input: InputId, dimension: usize) -> NodeId {
        let first = self.context.inputs[input][dimension].first.clone();
        self.formula(&first)
    }

    /// The extent of an input's dimension.
    pub fn input_extent(&mut self, input: InputId, dimension: usize) -> NodeId {
        let last = self.context.inputs[input][dimension].last.clone();
        let (first, last) = (self.input_min(input, dimension), self.formula(&last));
        let width = self.builder.sub(last, first);
        self.builder.offset(width, 1)
    }

    pub fn formula(&mut self, formula: &Formula) -> NodeId {
        self.scalars.node(self.context, &mut self.builder, formula)
    }

    /// The first and last value of a loop.
    pub fn loop_ends(&mut self, item: Item, kind: LoopKind) -> (NodeId, NodeId) {
        let FormulaRange { first, last } = self.context.loop_range(item, kind);
        (self.formula(&first), self.formula(&last))
    }

    /// The first and last value of a loop over a box that lies inside `range` at every position. A kernel that computes
    /// only part of its Func also needs less of other Funcs.
    pub fn box_ends(&mut self, item: Item, kind: LoopKind, range: Interval) -> (NodeId, NodeId) {
        let FormulaRange { mut first, mut last } = self.context.loop_range(item, kind);
        if first.is_constant() && last.is_constant() {
            first.constant = first.constant.max(range.min);
            last.constant = last.constant.min(range.max);
        }
        (self.formula(&first), self.formula(&last))
    }

    /// A limit of a clamp; `None` if there is none.
    pub fn limit(&mut self, limit: Limit) -> Option<NodeId> {
        let formula = match (limit, &self.context.plan.limits) {
            (Limit::None, _) | (Limit::Formula(_), None) => return None,
            // A limit that does not fit in an index limits nothing.
            (Limit::Value(value), _) => {
                return i32::try_from(value).ok().map(|value| self.builder.int(value.into()));
            }
            (Limit::Formula(_), Some(limits)) => limits.formula(limit)?,
        };
        Some(self.formula(&formula))
    }

    /// The scalar with the trip count of a loop; `None` if it is the same at all sizes.
    pub fn counted(&mut self, range: &FormulaRange, first: i64, size: i64) -> Option<u32> {
        let steps = self.context.steps(range, first, size, 0)?;
        Some(self.scalars.position(self.context, &steps))
    }
}
