//! Flattens a stage: collects the accesses that remain after Funcs are inlined into it.

use ahash::{AHashMap, AHashSet};
use smallvec::SmallVec;
use warploom_lang::ir::{Exprs, Node, NodeKind};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{ExprId, FuncId, Pipeline, Range, Regions};
use warploom_schedule::{Dag, NodeId, StageId};

use crate::body::form::{Form, tag_of};
use crate::body::live::Live;
use crate::body::operations::Operations;
use crate::body::value::Known;

/// The most evaluations of inlined Funcs that are followed at one point. The others are counted but
/// not analysed.
const MAX_EVALUATIONS: usize = 4096;

/// The most accesses per group whose constants are kept. The others are assumed to be similar.
const MAX_ORIGINS: usize = 256;

/// How an index of a group's accesses depends on the variables: a linear form without its constant.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Motion {
    /// One coefficient per variable.
    pub coefs: SmallVec<[i64; 6]>,
    /// The divisor of the sum.
    pub den: i64,
    /// A bit mask of variables that affect the index in a non-linear way.
    pub unknown: u64,
    /// Whether the linear form describes the index completely.
    pub exact: bool,
}

/// Accesses to one array that differ only by constants.
#[derive(Clone, Debug)]
pub struct Group {
    /// The Func or input.
    pub node: NodeId,
    /// The number of the tuple value.
    pub value: usize,
    /// Bytes per element.
    pub bytes: usize,
    /// Whether the array belongs to the stage's own Func.
    pub own: bool,
    /// How each index depends on the variables.
    pub rows: SmallVec<[Motion; 4]>,
    /// The constants of each access.
    pub origins: Vec<SmallVec<[i64; 4]>>,
    /// The number of accesses.
    pub count: f64,
}

impl Group {
    /// Whether the accessed elements follow from the forms alone.
    pub fn is_exact(&self) -> bool {
        self.rows.iter().all(|row| row.exact) && self.count == self.origins.len() as f64
    }

    /// Splits the accesses of a scan to its own Func into those to what `store` wrote at the previous value of the variable
    /// with this position among the coefficients, and all others.
    pub fn split_previous(&self, store: &Group, variable: usize) -> (Option<Group>, Option<Group>) {
        let alike = self.value == store.value && self.rows == store.rows;
        let is_previous = |origin: &SmallVec<[i64; 4]>| {
            let steps = store.rows.iter().map(|row| row.coefs.get(variable).copied().unwrap_or(0));
            let before = store.origins[0].iter().zip(steps).map(|(origin, step)| origin - step);
            alike && before.eq(origin.iter().copied())
        };
        let (previous, others): (Vec<_>, Vec<_>) = self.origins.iter().cloned().partition(is_previous);
        let unlisted = self.count - self.origins.len() as f64;
        let some = |origins: Vec<SmallVec<[i64; 4]>>, more: f64| {
            let count = origins.len() as f64 + more;
            (!origins.is_empty()).then(|| Group { origins, count, ..self.clone() })
        };
        (some(previous, 0.0), some(others, unlisted))
    }

    /// The distance between the first and the last access along an index.
    pub fn spread(&self, row: usize) -> i64 {
        let constants = || self.origins.iter().map(|origin| origin[row]);
        let spread = constants().max().unwrap_or(0) - constants().min().unwrap_or(0);
        spread.div_euclid(self.rows[row].den)
    }
}

/// A stage with some Funcs inlined into it, at one point.
#[derive(Clone, Debug)]
pub struct Flat {
    /// The groups of elements that it reads.
    pub loads: Vec<Group>,
    /// The groups of elements that it writes, one group per value.
    pub stores: Vec<Group>,
    /// The work of its own expressions.
    pub work: OwnWork,
    /// The inlined Funcs, in the order of their stages.
    pub inlined: Vec<InlinedWork>,
    /// Whether it reads constant tables.
    pub tables: bool,
    /// Sums that decide choices between reads: where none is negative, the stage does what it does away from the edges.
    pub(crate) edges: Vec<Form>,
    /// Whether the stage runs at every point and its accesses were followed completely.
    pub exact: bool,
}

impl Flat {
    /// A copy of an input, point by point.
    pub fn copy(node: NodeId, bytes: usize, dims: usize) -> Flat {
        let at: SmallVec<[Form; 4]> = (0..dims).map(|d| Form::variable(dims, d)).collect();
        let one = |own: bool| vec![group(node, 0, bytes, own, &at)];
        Flat {
            loads: one(false),
            stores: one(true),
            work: OwnWork { nodes: 2.0, ..OwnWork::default() },
            inlined: Vec::new(),
            tables: false,
            edges: Vec::new(),
            exact: true,
        }
    }
}

/// The work of expressions at one point. Address computations are left out: their cost depends on
/// how accesses are merged.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnWork {
    /// Its operations by class.
    pub operations: Operations,
    /// Nodes of the expressions.
    pub nodes: f64,
}

impl OwnWork {
    /// Adds a node.
    fn add(&mut self, exprs: &Exprs, node: &Node) {
        self.nodes += 1.0;
        if let NodeKind::Op(op) = node.kind {
            let last = node.args.last();
            let operand = last.map_or(node.ty, |arg| exprs[*arg].ty);
            let divisor = last.and_then(|arg| exprs.constant(*arg)).and_then(|value| value.as_int());
            let by_power = divisor.is_some_and(|divisor| divisor > 0 && divisor & (divisor - 1) == 0);
            self.operations.count(op, operand, node.ty, by_power);
        }
        if let NodeKind::Table(_) = node.kind {
            self.operations.count_table();
        }
    }
}

/// A Func that is inlined into a stage, at one point of that stage.
#[derive(Clone, Debug)]
pub struct InlinedWork {
    /// The only stage of the Func.
    pub stage: StageId,
    /// The points at which it is evaluated, as if they were reads.
    pub places: Vec<Group>,
    /// The total work of all evaluations.
    pub work: OwnWork,
}

impl InlinedWork {
    /// The number of evaluations.
    pub fn times(&self) -> f64 {
        self.places.iter().map(|place| place.count).sum()
    }
}

/// Flattens a stage.
pub struct Flattening<'a> {
    pub pipeline: &'a Pipeline,
    pub regions: &'a Regions,
    pub dag: &'a Dag,
    /// Sorted.
    pub inlined: &'a [FuncId],
    pub stage: StageId,
    /// Whether all its points are away from the edges that decide choices between reads.
    pub inside: bool,
}

/// An inlined value: the Func, the value number and the coordinates.
type Instance = (FuncId, u32, SmallVec<[Form; 4]>);

/// An access to a Func or input: node, value number and coordinates.
type Place = (NodeId, usize, SmallVec<[Form; 4]>);

#[derive(Default)]
struct Walked {
    /// State of the current statement.
    accesses: AHashSet<Place>,
    instances: AHashMap<Instance, Known>,
    evaluated: AHashSet<(FuncId, SmallVec<[Form; 4]>)>,
    /// State of the whole stage.
    loads: Groups,
    evaluations: AHashMap<FuncId, Groups>,
    work: AHashMap<FuncId, OwnWork>,
    followed: usize,
    tables: bool,
    edges: Vec<Form>,
    /// Whether the accesses depend on choices that were assumed to have the same outcome
    /// everywhere.
    supposed: bool,
}

impl Flattening<'_> {
    pub fn flat(&self) -> Flat {
        let stage = &self.dag.stages()[self.stage];
        let decl = &self.pipeline.funcs()[stage.func].stages[stage.number];
        let point = self.point();
        let mut walked = Walked::default();
        for statement in statements(decl) {
            walked.accesses.clear();
            walked.instances.clear();
            walked.evaluated.clear();
            self.walk(&statement, &point, &mut walked);
        }
        let at: SmallVec<[Form; 4]> = self.forms(&decl.indices, &point);
        let types = &self.pipeline.funcs()[stage.func].types;
        let written = types.iter().enumerate().take(decl.values.len());
        let stores = written.map(|(value, ty)| group(stage.node, value, ty.bytes(), true, &at)).collect();
        let work = |func: &FuncId| walked.work.get(func).copied().unwrap_or_default();
        let mut inlined: Vec<InlinedWork> = walked
            .evaluations
            .iter()
            .map(|(func, places)| {
                let stage = self.dag.nodes()[self.dag.func_node(*func)].stages[0];
                InlinedWork { stage, places: places.list.clone(), work: work(func) }
            })
            .collect();
        inlined.sort_unstable_by_key(|inlined| inlined.stage);
        let work = work(&stage.func);
        let decided = self.inside || walked.edges.is_empty();
        let followed = !walked.supposed && walked.followed < MAX_EVALUATIONS;
        let exact = decl.predicate.is_none() && decided && followed;
        let Walked { loads, tables, edges, .. } = walked;
        Flat { loads: loads.list, stores, work, inlined, tables, edges, exact }
    }

    /// The values of the stage's variables.
    fn point(&self) -> Vec<Known> {
        let stage = &self.dag.stages()[self.stage];
        let regions = &self.regions.funcs[stage.func].stages[stage.number];
        let ranges: Vec<Range> = regions.needed.0.iter().chain(&regions.domain).copied().collect();
        let number = ranges.len();
        ranges.into_iter().enumerate().map(|(i, range)| Known::variable(number, i, range)).collect()
    }

    fn dims(&self) -> usize {
        let stage = &self.dag.stages()[self.stage];
        self.pipeline.funcs()[stage.func].dims.len()
    }

    /// The forms of some indices. Loads inside them are opaque.
    fn forms(&self, indices: &[ExprId], point: &[Known]) -> SmallVec<[Form; 4]> {
        let mut known: AHashMap<ExprId, Known> = AHashMap::new();
        for id in self.pipeline.exprs().reachable(indices.iter().copied()) {
            let value = self.opaque_value(id, &known, point);
            known.insert(id, value);
        }
        indices.iter().map(|index| known[index].form.clone()).collect()
    }

    /// The value of a node whose operands are known. Loads are opaque.
    pub(super) fn opaque_value(&self, id: ExprId, known: &AHashMap<ExprId, Known>, point: &[Known]) -> Known {
        let node = &self.pipeline.exprs()[id];
        let args: SmallVec<[&Known; 3]> = node.args.iter().map(|arg| &known[arg]).collect();
        match node.kind {
            NodeKind::Var(d) => point[d as usize].clone(),
            NodeKind::RVar(r) => point[self.dims() + r as usize].clone(),
            NodeKind::Load(_) | NodeKind::Table(_) | NodeKind::Call(..) => {
                loaded(point_size(point), &args, tag_of(id))
            }
            _ => Known::of_node(node, &args, point_size(point), self.regions),
        }
    }

    /// Walks the expressions of one statement and those of the Funcs inlined there. Uses an
    /// explicit stack, so deep inlining cannot overflow the call stack.
    fn walk(&self, roots: &[ExprId], point: &[Known], walked: &mut Walked) {
        let own = self.dag.stages()[self.stage].func;
        let mut frames = vec![self.frame(own, roots, point.to_vec(), None, walked)];
        while let Some(frame) = frames.last_mut() {
            if let Some(inner) = self.advance(frame, walked) {
                frames.push(*inner);
                continue;
            }
            let value = frame.instance.take().map(|(instance, root)| {
                let value = frame.known[&root].clone();
                walked.instances.insert(instance, value.clone());
                value
            });
            frames.pop();
            if let Some(outer) = frames.last_mut() {
                outer.answer = value;
            }
        }
    }

    /// Starts a walk over some expressions of a Func, with its variables at `point`.
    fn frame(
        &self,
        func: FuncId,
        roots: &[ExprId],
        point: Vec<Known>,
        instance: Option<(Instance, ExprId)>,
        walked: &mut Walked,
    ) -> Frame {
        let Live { nodes, arms, edges } = self.live(roots, &point);
        for edge in edges {
            if !walked.edges.contains(&edge) {
                walked.edges.push(edge);
            }
        }
        let known = AHashMap::with_capacity(nodes.len());
        Frame { func, point, nodes, arms, known, position: 0, answer: None, instance }
    }

    /// Whether a node chooses between reads by an equation, as scans do at the first value of a chunk. A block away from
    /// the points where it holds makes only some of the reads.
    fn is_first_or_rest(&self, node: &Node) -> bool {
        let exprs = self.pipeline.exprs();
        let (NodeKind::Op(Op::Select), [condition, a, b]) = (node.kind, node.args.as_slice()) else {
            return false;
        };
        exprs[*condition].kind == NodeKind::Op(Op::Binary(BinaryOp::Eq)) && self.reads(&[*a, *b])
    }

    /// Walks until the end, or until an inlined Func must be walked first.
    fn advance(&self, frame: &mut Frame, walked: &mut Walked) -> Option<Box<Frame>> {
        let exprs = self.pipeline.exprs();
        while let Some(&id) = frame.nodes.get(frame.position) {
            let node = &exprs[id];
            let value = match frame.answer.take() {
                Some(value) => value,
                None => match self.step(frame, id, node, walked) {
                    Step::Known(value) => value,
                    Step::Into(inner) => return Some(inner),
                },
            };
            walked.supposed |= !frame.arms.contains_key(&id) && self.is_first_or_rest(node);
            // Values that no variable changes are hoisted out of all loops; sums of variables are
            // addresses.
            let is_lifted = value.form.moved_by() == 0;
            if !frame.arms.contains_key(&id) && !is_lifted && (node.ty.is_float() || !value.form.is_affine())
            {
                walked.work.entry(frame.func).or_default().add(exprs, node);
            }
            frame.known.insert(id, value);
            frame.position += 1;
        }
        None
    }

    /// The value of a node whose operands are known.
    fn step(&self, frame: &Frame, id: ExprId, node: &Node, walked: &mut Walked) -> Step {
        let own = self.dag.stages()[self.stage].func;
        let vars = point_size(&frame.point);
        let args = || -> SmallVec<[&Known; 4]> { node.args.iter().map(|arg| &frame.known[arg]).collect() };
        walked.tables |= matches!(node.kind, NodeKind::Table(_));
        Step::Known(match (node.kind, frame.arms.get(&id)) {
            (_, Some(arm)) => frame.known[arm].clone(),
            (NodeKind::Load(input), _) => {
                walked.access(self, self.dag.input_node(input), 0, node.ty.bytes(), &args(), vars)
            }
            (NodeKind::Call(func, value), _) if func != own && self.inlined.binary_search(&func).is_ok() => {
                return self.inlined(func, value, &args(), vars, walked);
            }
            (NodeKind::Call(func, value), _) => {
                let node_id = self.dag.func_node(func);
                walked.access(self, node_id, value as usize, node.ty.bytes(), &args(), vars)
            }
            _ => self.opaque_value(id, &frame.known, &frame.point),
        })
    }

    /// The value of an inlined Func. A statement evaluates each point once.
    fn inlined(&self, func: FuncId, value: u32, at: &[&Known], vars: usize, walked: &mut Walked) -> Step {
        let forms: SmallVec<[Form; 4]> = at.iter().map(|arg| arg.form.clone()).collect();
        let instance = (func, value, forms.clone());
        if let Some(known) = walked.instances.get(&instance) {
            return Step::Known(known.clone());
        }
        walked.supposed |= at.iter().any(|arg| arg.supposed);
        if walked.evaluated.insert((func, forms.clone())) {
            let place = group(self.dag.func_node(func), 0, 0, false, &forms);
            walked.evaluations.entry(func).or_default().add(place);
            walked.followed += 1;
        }
        match self.pipeline.funcs()[func].stages[0].values.get(value as usize) {
            Some(root) if walked.followed < MAX_EVALUATIONS => {
                // A pure definition has no reduction variables, so the indices are its whole point.
                let mut point: Vec<Known> = at.iter().map(|arg| (*arg).clone()).collect();
                if point.is_empty() {
                    point.push(Known::constant(vars, 0));
                }
                Step::Into(Box::new(self.frame(func, &[*root], point, Some((instance, *root)), walked)))
            }
            _ => {
                let known = loaded(vars, at, tag_of(&instance));
                walked.instances.insert(instance, known.clone());
                Step::Known(known)
            }
        }
    }
}

/// Expressions of a Func that are being walked.
struct Frame {
    func: FuncId,
    /// The values of its variables.
    point: Vec<Known>,
    /// The nodes, operands first.
    nodes: Vec<ExprId>,
    position: usize,
    arms: AHashMap<ExprId, ExprId>,
    known: AHashMap<ExprId, Known>,
    /// The value of the next node, which is that of an inlined Func.
    answer: Option<Known>,
    /// The inlined value that the outer walk waits for, and the expression that computes it.
    instance: Option<(Instance, ExprId)>,
}

/// The result of one node.
enum Step {
    Known(Known),
    /// The value of an inlined Func, whose expressions must be walked first.
    Into(Box<Frame>),
}

/// The number of variables in the forms.
fn point_size(point: &[Known]) -> usize {
    point.first().map_or(0, |known| known.form.coefs.len())
}

/// A loaded value. It depends on every variable that its indices depend on.
fn loaded(vars: usize, at: &[&Known], tag: u64) -> Known {
    let moved_by = at.iter().fold(0, |mask, arg| mask | arg.form.moved_by());
    Known::loaded(vars, moved_by, tag)
}

impl Walked {
    /// Records an access, once per statement, and returns its value.
    fn access(
        &mut self,
        flattening: &Flattening<'_>,
        node: NodeId,
        value: usize,
        bytes: usize,
        at: &[&Known],
        vars: usize,
    ) -> Known {
        let forms: SmallVec<[Form; 4]> = at.iter().map(|arg| arg.form.clone()).collect();
        self.supposed |= at.iter().any(|arg| arg.supposed);
        let place = (node, value, forms);
        let known = loaded(vars, at, tag_of(&place));
        if self.accesses.insert(place.clone()) {
            let own = node == flattening.dag.stages()[flattening.stage].node;
            self.loads.add(group(node, value, bytes, own, &place.2));
        }
        known
    }
}

/// Accesses, grouped by how they depend on the variables.
#[derive(Default)]
struct Groups {
    list: Vec<Group>,
    numbers: AHashMap<(NodeId, usize, SmallVec<[Motion; 4]>), usize>,
}

impl Groups {
    fn add(&mut self, one: Group) {
        let key = (one.node, one.value, one.rows.clone());
        let number = *self.numbers.entry(key).or_insert(self.list.len());
        match self.list.get_mut(number) {
            Some(group) => {
                group.count += 1.0;
                if group.origins.len() < MAX_ORIGINS {
                    group.origins.extend(one.origins);
                }
            }
            None => self.list.push(one),
        }
    }
}

/// A group of one access.
fn group(node: NodeId, value: usize, bytes: usize, own: bool, at: &[Form]) -> Group {
    let motion = |form: &Form| Motion {
        coefs: form.coefs.clone(),
        den: form.den,
        unknown: form.unknown,
        exact: form.tag == 0,
    };
    Group {
        node,
        value,
        bytes,
        own,
        rows: at.iter().map(motion).collect(),
        origins: vec![at.iter().map(|form| form.constant).collect()],
        count: 1.0,
    }
}

/// The expressions of each statement. A statement evaluates common subexpressions once. A stage
/// with several values reads all of them before it writes any.
fn statements(decl: &warploom_lang::ir::Stage) -> Vec<Vec<ExprId>> {
    let predicate = decl.predicate.iter().map(|predicate| vec![*predicate]);
    if decl.values.len() == 1 {
        let all = decl.indices.iter().chain(&decl.values).copied().collect();
        return predicate.chain([all]).collect();
    }
    let each = decl.indices.iter().chain(&decl.values).map(|root| vec![*root]);
    predicate.chain(each).collect()
}
