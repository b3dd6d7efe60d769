//! The index expressions of a stage as small programs over the reaches of its variables.
//!
//! The structure of an index does not depend on the schedule, so it is analysed once. The reads of a stage then
//! follow from the reaches of its variables, without looking at the expressions again.

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;
use warploom_lang::bounds::{Analysis, IntSpan};
use warploom_lang::dynamic::{DynamicRegions, Formula};
use warploom_lang::ir::NodeKind;
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{ExprId, Pipeline, Range, Regions};
use warploom_schedule::{Source, StageRef};

use crate::problem::flow::{Spans, VariableReaches};
use crate::reach::limit::Limit;
use crate::reach::{Reach, Symbols};

/// The accesses of a stage.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    forms: Vec<Bounded>,
    /// Reads of other Funcs and of inputs.
    pub reads: Vec<Access>,
    /// Reads and writes of the stage's own Func, without the dimensions in which they are at its own
    /// point.
    pub own: Access,
}

/// All accesses to one Func or input.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub read: Source,
    /// The distinct indices along each dimension.
    columns: Vec<Vec<IndexSum>>,
}

/// Indices that differ by a constant: `Σ factor · form`, plus any value from `low` to `high`.
#[derive(Clone, Debug)]
struct IndexSum {
    terms: SmallVec<[(usize, i64); 3]>,
    low: i64,
    high: i64,
}

/// A form with the range that it never leaves.
#[derive(Clone, Debug)]
struct Bounded {
    form: IndexTerm,
    min: i64,
    max: i64,
}

/// A part of an index. Operands come before the forms that use them.
#[derive(Clone, Debug)]
enum IndexTerm {
    Var(usize),
    RVar(usize),
    /// Every value of a range that follows from constants.
    Range,
    /// Any value in a range.
    Unknown,
    Sum(IndexSum),
    FloorDiv(usize, i64),
    Clamp(usize, Bound, Bound),
    /// A number that follows from the sizes of a launch.
    Size(Formula),
    Either(usize, usize),
    /// An expression without such a form: only its range counts.
    Opaque(ExprId),
}

/// A limit of a clamp; `None` if there is none on its side.
type Bound = Option<Formula>;

/// The reaches of accesses, per dimension.
pub(crate) type Columns = Vec<Vec<Reach>>;

impl Program {
    /// Compiles a stage at the sizes of a realisation.
    pub fn new(
        pipeline: &Pipeline,
        regions: &Regions,
        sizes: Option<&mut DynamicRegions>,
        stage: StageRef,
    ) -> Program {
        let exprs = pipeline.exprs();
        let decl = &pipeline.funcs()[stage.func].stages[stage.stage];
        let spans = whole(regions, stage);
        let analysis = Analysis::new(exprs, &spans, decl.roots());
        let mut compiler =
            Compiler { pipeline, analysis: &analysis, sizes, forms: Vec::new(), known: AHashMap::new() };
        let mut own = Access { read: Source::Func(stage.func), columns: Vec::new() };
        let mut reads: Vec<Access> = Vec::new();
        let moves = |d: usize| !decl.is_pure(exprs, d);
        compiler.access(&mut own, &decl.indices, moves);
        for node in exprs.reachable(decl.roots()).into_iter().map(|id| &exprs[id]) {
            let read = match node.kind {
                NodeKind::Call(func, _) if func == stage.func => {
                    compiler.access(&mut own, &node.args, moves);
                    continue;
                }
                NodeKind::Call(func, _) => Source::Func(func),
                NodeKind::Load(input) => Source::Input(input),
                _ => continue,
            };
            let position = reads.iter().position(|access| access.read == read).unwrap_or_else(|| {
                reads.push(Access { read, columns: Vec::new() });
                reads.len() - 1
            });
            compiler.access(&mut reads[position], &node.args, |_| true);
        }
        Program { forms: compiler.forms, reads, own }
    }
}

/// The spans of a stage's variables over the whole pipeline.
fn whole(regions: &Regions, stage: StageRef) -> Spans<'_> {
    let func = &regions.funcs[stage.func];
    let at = &func.stages[stage.stage];
    let span = |range: &Range| IntSpan::fixed(range.min, range.last().max(range.min));
    let vars = at.needed.0.iter().zip(&func.region.0).map(|(needed, stored)| {
        let (needed, stored) = (span(needed), span(stored));
        IntSpan::fixed(needed.min.min(stored.min), needed.max.max(stored.max))
    });
    Spans { facts: &regions.facts, vars: vars.collect(), rvars: at.domain.iter().map(span).collect() }
}

/// Finds the forms of one stage's index expressions.
struct Compiler<'a> {
    pipeline: &'a Pipeline,
    analysis: &'a Analysis<'a, Spans<'a>>,
    /// The formulas of the boxes, if sizes vary.
    sizes: Option<&'a mut DynamicRegions>,
    forms: Vec<Bounded>,
    known: AHashMap<ExprId, usize>,
}

impl Compiler<'_> {
    /// Adds the indices of one access along the selected dimensions.
    fn access(&mut self, access: &mut Access, ids: &[ExprId], along: impl Fn(usize) -> bool) {
        access.columns.resize(ids.len().max(access.columns.len()), Vec::new());
        for (d, id) in ids.iter().enumerate().filter(|(d, _)| along(*d)) {
            let row = self.row(*id);
            match access.columns[d].iter_mut().find(|known| known.terms == row.terms) {
                Some(known) => (known.low, known.high) = (known.low.min(row.low), known.high.max(row.high)),
                None => access.columns[d].push(row),
            }
        }
    }

    /// An expression as a sum. An expression that is not a sum becomes the only term.
    fn row(&mut self, id: ExprId) -> IndexSum {
        let linear = self.analysis.linear(id).clone();
        let terms = linear.terms.iter().map(|(atom, factor)| match *atom == id {
            true => (self.atom(id), *factor),
            false => (self.form(*atom), *factor),
        });
        let terms = terms.collect();
        IndexSum { terms, low: linear.constant, high: linear.constant }
    }

    fn form(&mut self, id: ExprId) -> usize {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let row = self.row(id);
        let number = match row.terms.as_slice() {
            [(form, 1)] if row.low == 0 => *form,
            _ => self.add(id, IndexTerm::Sum(row)),
        };
        self.known.insert(id, number);
        number
    }

    fn add(&mut self, id: ExprId, form: IndexTerm) -> usize {
        let span = self.analysis.int(id);
        self.forms.push(Bounded { form, min: span.min, max: span.max });
        self.forms.len() - 1
    }

    /// The form of a node that is not a sum.
    fn atom(&mut self, id: ExprId) -> usize {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        let form = match self.number(id).map(IndexTerm::Size).or_else(|| self.shape(id)) {
            Some(form) => form,
            None if self.varies(id) => IndexTerm::Opaque(id),
            None if is_range(self.pipeline, id, self.analysis.int(id)) => IndexTerm::Range,
            None => IndexTerm::Unknown,
        };
        let number = self.add(id, form);
        self.known.insert(id, number);
        number
    }

    /// An expression that follows from the sizes of a launch.
    fn number(&mut self, id: ExprId) -> Option<Formula> {
        self.sizes.as_mut()?.number(self.pipeline, id, self.analysis)
    }

    /// An expression that is the same everywhere.
    fn limit(&mut self, id: ExprId) -> Option<Formula> {
        let constant = self.analysis.int(id).singleton().map(Formula::constant);
        constant.or_else(|| self.number(id))
    }

    fn shape(&mut self, id: ExprId) -> Option<IndexTerm> {
        let node = &self.pipeline.exprs()[id];
        let analysis = self.analysis;
        let constant = |id: ExprId| analysis.int(id).singleton();
        let op = match node.kind {
            NodeKind::Var(d) => return Some(IndexTerm::Var(d as usize)),
            NodeKind::RVar(r) => return Some(IndexTerm::RVar(r as usize)),
            NodeKind::Op(op) => op,
            _ => return None,
        };
        match (op, node.args.as_slice()) {
            (Op::Binary(BinaryOp::Div), [a, b]) => {
                let divisor = constant(*b).filter(|divisor| *divisor > 0)?;
                Some(IndexTerm::FloorDiv(self.form(*a), divisor))
            }
            (Op::Binary(BinaryOp::Shr), [a, b]) if node.ty.bytes() == 4 => {
                let amount = constant(*b).filter(|amount| (0..=31).contains(amount))?;
                Some(IndexTerm::FloorDiv(self.form(*a), 1 << amount))
            }
            (Op::Binary(op @ (BinaryOp::Min | BinaryOp::Max)), [a, b]) => {
                let (a, limit) = match (self.limit(*a), self.limit(*b)) {
                    (_, Some(limit)) => (*a, limit),
                    (Some(limit), _) => (*b, limit),
                    _ => return None,
                };
                let (low, high) = if op == BinaryOp::Min { (None, Some(limit)) } else { (Some(limit), None) };
                Some(IndexTerm::Clamp(self.form(a), low, high))
            }
            (Op::SaturatingCast(ty), [a]) if self.pipeline.exprs()[*a].ty.is_int() => {
                let (low, high) = ty.int_range()?;
                let (low, high) = (Formula::constant(low), Formula::constant(high));
                Some(IndexTerm::Clamp(self.form(*a), Some(low), Some(high)))
            }
            (Op::Select, [condition, a, b]) => Some(match constant(*condition) {
                Some(chosen) => {
                    let row = self.row(if chosen == 0 { *b } else { *a });
                    IndexTerm::Sum(row)
                }
                None => IndexTerm::Either(self.form(*a), self.form(*b)),
            }),
            _ => None,
        }
    }

    /// Whether the range of an expression depends on the position of the variables. Values that are
    /// read have a fixed range, independent of the position of the read.
    fn varies(&self, id: ExprId) -> bool {
        let exprs = self.pipeline.exprs();
        let (mut open, mut seen) = (vec![id], AHashSet::new());
        while let Some(id) = open.pop() {
            match exprs[id].kind {
                NodeKind::Var(_) | NodeKind::RVar(_) => return true,
                NodeKind::Op(_) if seen.insert(id) => open.extend(&exprs[id].args),
                _ => {}
            }
        }
        false
    }
}

/// Whether an expression really takes every value of its range, so that the range is not just missing
/// knowledge. This holds for remainders and masks.
fn is_range(pipeline: &Pipeline, id: ExprId, span: IntSpan) -> bool {
    let masks = matches!(pipeline.exprs()[id].kind, NodeKind::Op(Op::Binary(BinaryOp::Mod | BinaryOp::And)));
    masks && span.width == span.max - span.min
}

/// A program with concrete reaches of its variables.
pub(crate) struct Evaluation<'a> {
    pipeline: &'a Pipeline,
    regions: &'a Regions,
    program: &'a Program,
    scope: &'a VariableReaches,
    /// The reach of each form, filled on demand; empty until the first query.
    known: Vec<Option<Reach>>,
}

impl<'a> Evaluation<'a> {
    pub fn new(
        pipeline: &'a Pipeline,
        regions: &'a Regions,
        program: &'a Program,
        scope: &'a VariableReaches,
    ) -> Evaluation<'a> {
        Evaluation { pipeline, regions, program, scope, known: Vec::new() }
    }

    /// Adds the reaches of an access.
    pub fn add(&mut self, access: &Access, symbols: &mut Symbols, columns: &mut Columns) {
        columns.resize(access.columns.len().max(columns.len()), Vec::new());
        for (rows, column) in access.columns.iter().zip(columns) {
            for row in rows {
                self.row(row, symbols, &mut |reach| {
                    if !column.contains(&reach) {
                        column.push(reach);
                    }
                });
            }
        }
    }

    /// Finds the reaches of a row: one that includes all its indices, or those of the first and last
    /// index.
    fn row(&mut self, row: &IndexSum, symbols: &mut Symbols, found: &mut impl FnMut(Reach)) {
        let unknown = |evaluation: &Self| {
            let (min, max) = evaluation.range_of(row);
            Reach::unknown(min, max)
        };
        let Some(sum) = self.sum(row, symbols) else { return found(unknown(self)) };
        let settle = |reach: Option<Reach>| reach.map_or_else(|| unknown(self), Reach::settled);
        if row.low == row.high {
            found(settle(sum.shift(row.low, symbols)));
        } else if sum.clamp.is_none() {
            found(settle(sum.spread(row.low, row.high)));
        } else {
            // A clamp is shifted along with the constant, so the two ends have different clamps.
            found(settle(sum.clone().shift(row.low, symbols)));
            found(settle(sum.shift(row.high, symbols)));
        }
    }

    /// `Σ factor · form`
    fn sum(&mut self, row: &IndexSum, symbols: &mut Symbols) -> Option<Reach> {
        let Some(((first, factor), rest)) = row.terms.split_first() else { return Some(Reach::fixed(0, 0)) };
        let mut sum = self.reach(*first, symbols).scale(*factor, symbols)?;
        for (form, factor) in rest {
            let part = self.reach(*form, symbols).scale(*factor, symbols)?;
            sum = match sum.add(&part, symbols) {
                Some(sum) => sum,
                None => sum.plain(symbols).add(&part.plain(symbols), symbols)?,
            };
        }
        Some(sum)
    }

    /// The range that a row never leaves.
    fn range_of(&self, row: &IndexSum) -> (i64, i64) {
        let forms = &self.program.forms;
        row.terms.iter().fold((row.low, row.high), |(min, max), (form, factor)| {
            let ends = [forms[*form].min, forms[*form].max].map(|end| end.saturating_mul(*factor));
            (min.saturating_add(ends[0].min(ends[1])), max.saturating_add(ends[0].max(ends[1])))
        })
    }

    fn reach(&mut self, number: usize, symbols: &mut Symbols) -> Reach {
        let Bounded { form, min, max } = &self.program.forms[number];
        match form {
            IndexTerm::Var(d) => return self.scope.vars[*d].iterated(),
            IndexTerm::RVar(r) => return self.scope.rvars[*r].iterated(),
            IndexTerm::Range => return Reach::fixed(*min, *max),
            IndexTerm::Unknown => return Reach::unknown(*min, *max),
            _ => {}
        }
        if let Some(Some(reach)) = self.known.get(number) {
            return reach.clone();
        }
        let reach = match form {
            IndexTerm::Sum(row) => self.sum(row, symbols).and_then(|sum| sum.shift(row.low, symbols)),
            IndexTerm::Size(formula) => Some(Reach::of_formula(formula, symbols)),
            IndexTerm::FloorDiv(of, divisor) => self.reach(*of, symbols).floor_div(*divisor, symbols),
            IndexTerm::Clamp(of, low, high) => {
                let mut limit = |bound: &Bound| match bound {
                    Some(formula) => symbols.limits.limit(formula.clone()),
                    None => Limit::None,
                };
                let (low, high) = (limit(low), limit(high));
                self.reach(*of, symbols).clamped(low, high, symbols)
            }
            IndexTerm::Either(a, b) => {
                let both = [self.reach(*a, symbols), self.reach(*b, symbols)];
                Reach::hull(&both, symbols)
            }
            IndexTerm::Opaque(id) => Some(self.opaque(*id)),
            IndexTerm::Var(_) | IndexTerm::RVar(_) | IndexTerm::Range | IndexTerm::Unknown => None,
        };
        let reach = reach.map_or_else(|| Reach::unknown(*min, *max), |reach| reach.within(*min, *max));
        self.known.resize(self.program.forms.len(), None);
        self.known[number] = Some(reach.clone());
        reach
    }

    fn opaque(&self, id: ExprId) -> Reach {
        let span = |reaches: &[Reach]| reaches.iter().map(Reach::span).collect();
        let (vars, rvars) = (span(&self.scope.vars), span(&self.scope.rvars));
        let spans = Spans { facts: &self.regions.facts, vars, rvars };
        let span = Analysis::new(self.pipeline.exprs(), &spans, [id]).int(id);
        match span.singleton().is_some() || is_range(self.pipeline, id, span) {
            true => Reach::fixed(span.min, span.max),
            false => Reach::unknown(span.min, span.max),
        }
    }
}
