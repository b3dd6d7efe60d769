//! Which elements a block touches, without any memory: indices here depend on no loaded value.

use std::collections::{BTreeSet, HashMap};

use warploom_codegen::ir::{ArrayId, Kernel, Leaf, NodeId, NodeKind, Stmt, VarId};
use warploom_lang::{Type, Value};

/// What a block touches.
#[derive(Default)]
pub struct Touched {
    pub read: BTreeSet<(ArrayId, i64)>,
    pub written: BTreeSet<(ArrayId, i64)>,
}

/// What the threads of one block touch; everything they load is 0.
pub fn touched(kernel: &Kernel, block: [u32; 3]) -> Touched {
    let mut touched = Touched::default();
    for thread in 0..kernel.threads {
        let mut run = Thread { kernel, block, thread, vars: HashMap::new(), touched: &mut touched };
        run.list(&kernel.body);
    }
    touched
}

struct Thread<'a> {
    kernel: &'a Kernel,
    block: [u32; 3],
    thread: u32,
    vars: HashMap<VarId, Value>,
    touched: &'a mut Touched,
}

impl Thread<'_> {
    fn list(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Let(var, value) => {
                    let value = self.values([*value])[value];
                    self.vars.insert(*var, value);
                }
                Stmt::Store { array, index, value }
                | Stmt::Copy { array, index, value }
                | Stmt::Atomic { array, index, value, .. } => {
                    let values = self.values([*index, *value]);
                    let element = self.element(*index, &values);
                    self.touched.written.insert((*array, element));
                }
                Stmt::Vector { to, at, from, index, width } => {
                    let values = self.values([*at, *index]);
                    let (at, index) = (self.element(*at, &values), self.element(*index, &values));
                    for offset in 0..i64::from(*width) {
                        self.touched.written.insert((*to, at + offset));
                        self.touched.read.insert((*from, index + offset));
                    }
                }
                Stmt::For { var, count, body, .. } => {
                    for iteration in 0..*count {
                        self.vars.insert(*var, Value::from(iteration as i32));
                        self.list(body);
                    }
                }
                Stmt::If { condition, body, otherwise } => {
                    let holds = self.values([*condition])[condition].bits() != 0;
                    self.list(if holds { body } else { otherwise });
                }
                Stmt::Shuffle { .. } => unreachable!("threads run one after another"),
                Stmt::Barrier | Stmt::Commit | Stmt::Wait(_) => {}
            }
        }
    }

    /// The values of all nodes that some are made of, offsets aside.
    fn values<const N: usize>(&mut self, roots: [NodeId; N]) -> HashMap<NodeId, Value> {
        let mut values: HashMap<NodeId, Value> = HashMap::new();
        for id in self.kernel.exprs.reachable(roots) {
            let node = &self.kernel.exprs[id];
            let value = match node.kind {
                NodeKind::Leaf(Leaf::Thread) => Value::from(self.thread as i32),
                NodeKind::Leaf(Leaf::Block(axis)) => Value::from(self.block[usize::from(axis)] as i32),
                NodeKind::Leaf(Leaf::Var(var)) => self.vars[&var],
                NodeKind::Leaf(Leaf::Param(_) | Leaf::Iteration(_) | Leaf::Size(_)) => Value::zero(node.ty),
                NodeKind::Op(op) => {
                    let args: Vec<Value> = node.args.iter().map(|arg| values[arg]).collect();
                    op.eval(&args)
                }
                NodeKind::Load(array) => {
                    let element = self.element(node.args[0], &values);
                    self.touched.read.insert((array, element));
                    Value::zero(node.ty)
                }
                NodeKind::Offset(_) => continue,
            };
            values.insert(id, value);
        }
        values
    }

    fn element(&self, index: NodeId, values: &HashMap<NodeId, Value>) -> i64 {
        let node = &self.kernel.exprs[index];
        assert_eq!(node.ty, Type::I32);
        match node.kind {
            NodeKind::Offset(strides) => {
                let terms = node.args.iter().map(|arg| values[arg].get::<i32>().unwrap());
                self.kernel.exprs.strides()[strides].offset(terms)
            }
            _ => i64::from(values[&index].get::<i32>().unwrap()),
        }
    }
}
