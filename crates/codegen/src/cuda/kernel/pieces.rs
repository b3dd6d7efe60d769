//! Prints the expressions of statements.

use std::collections::{HashMap, HashSet};

use warploom_lang::affine::interval::{self, Interval};
use warploom_lang::op::Op;
use warploom_lang::{Id, Type};

use super::{KernelPrinter, Variable};
use crate::cuda::literal;
use crate::cuda::operand::Operand;
use crate::cuda::tables;
use crate::cuda::text::{Text, WIDE, c_type, level};
use crate::ir::{KernelNode, Leaf, NodeId, NodeKind, ScalarValue, StridesId};

/// A subexpression longer than this becomes a local.
const LONG: usize = 100;

/// A printed node of the current statement.
pub(super) struct Piece {
    pub text: Text,
    pub range: Interval,
    /// Whether it is an index that contains multiples of strides given at launch.
    pub strided: bool,
}

impl KernelPrinter<'_> {
    /// Prints the expressions of one statement. Subexpressions that are used more than once, or
    /// that would make a line too long, become locals before the statement.
    pub(super) fn expressions<const N: usize>(&mut self, roots: [NodeId; N]) -> [Piece; N] {
        let (nodes, uses) = self.reachable(&roots);
        let early = self.early(&nodes);
        let mut pieces: HashMap<NodeId, Piece> = HashMap::with_capacity(nodes.len());
        for &id in &nodes {
            let mut piece = self.piece(id, &pieces);
            let node = &self.kernel.exprs[id];
            let named = match node.kind {
                NodeKind::Leaf(_) | NodeKind::Op(Op::Const(_)) => false,
                _ => {
                    uses[&id] > 1
                        || early.contains(&id)
                        || (piece.text.code.len() > LONG && !roots.contains(&id))
                }
            };
            if named {
                let name = self.names.take_numbered();
                self.line(&format!("const {} {name} = {};", local_type(node), piece.text.code));
                piece.text = Text::atom(name);
            }
            pieces.insert(id, piece);
        }
        roots.map(|root| {
            let piece = &pieces[&root];
            Piece { text: piece.text.clone(), range: piece.range, strided: piece.strided }
        })
    }

    /// The sides of a `select` that contain a load while the other side does not, as at the border of an image. C++
    /// evaluates only one side; hoisted loads are unconditional and merged between neighbouring points.
    fn early(&self, nodes: &[NodeId]) -> HashSet<NodeId> {
        let exprs = &self.kernel.exprs;
        let mut loading: HashSet<NodeId> = HashSet::new();
        let mut early = HashSet::new();
        for &id in nodes {
            let node = &exprs[id];
            if matches!(node.kind, NodeKind::Load(_)) || node.args.iter().any(|arg| loading.contains(arg)) {
                loading.insert(id);
            }
            if let (NodeKind::Op(Op::Select), [_, a, b]) = (node.kind, node.args.as_slice())
                && loading.contains(a) != loading.contains(b)
            {
                early.insert(if loading.contains(a) { *a } else { *b });
            }
        }
        early
    }

    /// The nodes of some expressions, operands first, and the number of uses of each.
    fn reachable(&self, roots: &[NodeId]) -> (Vec<NodeId>, HashMap<NodeId, usize>) {
        let mut uses: HashMap<NodeId, usize> = HashMap::new();
        let mut open: Vec<NodeId> = roots.to_vec();
        while let Some(id) = open.pop() {
            let count = uses.entry(id).or_insert(0);
            *count += 1;
            if *count == 1 {
                open.extend_from_slice(&self.kernel.exprs[id].args);
            }
        }
        let mut nodes: Vec<NodeId> = uses.keys().copied().collect();
        nodes.sort_unstable_by_key(|id| id.index());
        (nodes, uses)
    }

    fn piece(&mut self, id: NodeId, pieces: &HashMap<NodeId, Piece>) -> Piece {
        let kernel = self.kernel;
        let node = &kernel.exprs[id];
        match node.kind {
            NodeKind::Leaf(leaf) => self.leaf(leaf, node.ty),
            NodeKind::Load(array) => {
                let text = Text::element(&self.arrays[array], &pieces[&node.args[0]].text);
                let text = match self.table(&kernel.arrays[array]) {
                    Some(table) => tables::element(&mut self.printer, table, text),
                    None => self.printer.loaded(node.ty, text),
                };
                Piece { text, range: Interval::of_type(node.ty), strided: false }
            }
            NodeKind::Offset(strides) => {
                let terms = node.args.iter().map(|arg| &pieces[arg].text);
                Piece { text: self.offset(strides, terms), range: Interval::of_type(node.ty), strided: false }
            }
            NodeKind::Op(op) => {
                let strided = node.ty == Type::I32 && node.args.iter().any(|arg| pieces[arg].strided);
                let operands: Vec<Operand<'_>> = node
                    .args
                    .iter()
                    .map(|arg| {
                        let (piece, operand) = (&pieces[arg], &kernel.exprs[*arg]);
                        let constant = match operand.kind {
                            NodeKind::Op(Op::Const(value)) => Some(value),
                            _ => None,
                        };
                        // Sums of multiples of strides fit, but their ranges do not show it.
                        let range = if strided { Interval::new(0, 1) } else { piece.range };
                        Operand { text: &piece.text, ty: operand.ty, range, constant }
                    })
                    .collect();
                let ranges: Vec<interval::Operand> =
                    operands.iter().map(|operand| (operand.ty, operand.range)).collect();
                let text = self.printer.op(op, node.ty, &operands);
                let range = if strided {
                    Interval::of_type(Type::I32)
                } else {
                    interval::result(op, node.ty, &ranges)
                };
                Piece { text, range, strided }
            }
        }
    }

    /// A 64-bit sum, large strides first. The first summand makes the sum 64-bit, so the others
    /// need no cast unless they are products themselves.
    fn offset<'t>(&self, strides: StridesId, terms: impl DoubleEndedIterator<Item = &'t Text>) -> Text {
        let strides = &self.kernel.exprs.strides()[strides];
        let mut sum: Option<Text> = None;
        for (term, &stride) in terms.rev().zip(strides.strides.iter().rev()) {
            let term = match (&sum, stride) {
                (Some(_), 1) => term.clone(),
                (None, 1) => Text::wide(term),
                _ => Text::infix(level::PRODUCT, &Text::wide(term), "*", &literal::wide(stride)),
            };
            sum = Some(sum.map_or(term.clone(), |sum| Text::infix(level::SUM, &sum, "+", &term)));
        }
        match (sum, strides.constant) {
            (Some(sum), 0) => sum,
            (Some(sum), constant) if constant < 0 => {
                Text::infix(level::SUM, &sum, "-", &literal::wide(-constant))
            }
            (Some(sum), constant) => Text::infix(level::SUM, &sum, "+", &literal::wide(constant)),
            (None, constant) => literal::wide(constant),
        }
    }

    fn leaf(&self, leaf: Leaf, ty: Type) -> Piece {
        let range = match leaf {
            Leaf::Thread => Interval::below(self.kernel.threads),
            Leaf::Block(dimension) => {
                Interval::below(self.kernel.grid.get(usize::from(dimension)).copied().unwrap_or(1))
            }
            Leaf::Iteration(level) => self
                .usage
                .iteration_counts
                .get(usize::from(level))
                .map_or(Interval::of_type(ty), |&count| Interval::below(count)),
            Leaf::Param(_) => Interval::of_type(ty),
            Leaf::Size(position) => {
                let scalar = &self.kernel.scalars[position as usize];
                let strided = matches!(scalar.value, ScalarValue::Stride(..));
                let text = Text::atom(self.leaves.get(&leaf).cloned().unwrap_or_default());
                return Piece { text, range: Interval::new(scalar.min, scalar.max), strided };
            }
            Leaf::Var(var) => {
                let unbound =
                    || Variable { name: self.kernel.vars[var].clone(), range: Interval::of_type(ty) };
                let variable = self.variables[var].clone().unwrap_or_else(unbound);
                return Piece { text: Text::atom(variable.name), range: variable.range, strided: false };
            }
        };
        let text = Text::atom(self.leaves.get(&leaf).cloned().unwrap_or_default());
        Piece { text, range, strided: false }
    }
}

/// The C++ type of a local that holds a node's value.
fn local_type(node: &KernelNode) -> &'static str {
    match node.kind {
        NodeKind::Offset(_) => WIDE,
        _ => c_type(node.ty),
    }
}
