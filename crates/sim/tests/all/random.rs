//! Random kernels without communication, against one thread at a time evaluated from the tree.

use std::collections::HashMap;

use warploom_codegen::ir::*;
use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{Id, Type, Value};

use crate::support::*;

const TYPES: [Type; 5] = [Type::I32, Type::F32, Type::U8, Type::I16, Type::Bool];
const OWN: usize = 5;
const THREADS: u32 = 45;
const BLOCKS: u32 = 3;

/// A generator of numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }
}

/// Makes bodies of random statements over one private array a type.
struct Generator<'a, 'b> {
    random: Random,
    k: &'a mut KernelMaker<'b>,
    own: HashMap<Type, ArrayId>,
    /// Variables in scope.
    vars: Vec<(VarId, Type)>,
}

impl Generator<'_, '_> {
    fn expr(&mut self, ty: Type, depth: usize) -> NodeId {
        let choice = if depth == 0 { self.random.below(4) } else { self.random.below(10) };
        match choice {
            0 => {
                let bits = self.random.below(40) as u32;
                let value = match ty {
                    ty if ty.is_float() => {
                        Value::rounded(ty, f64::from(bits) * 0.25 - 3.0).unwrap_or(Value::zero(ty))
                    }
                    Type::Bool => Value::from(bits.is_multiple_of(2)),
                    ty => Value::from_bits(ty, u64::from(bits).wrapping_sub(9)),
                };
                self.k.op(Op::Const(value), &[])
            }
            1 => {
                let fitting: Vec<VarId> =
                    self.vars.iter().filter(|(_, found)| *found == ty).map(|(var, _)| *var).collect();
                match fitting.is_empty() {
                    true => self.thread_as(ty),
                    false => {
                        let var = fitting[self.random.below(fitting.len())];
                        self.k.use_var(var, ty)
                    }
                }
            }
            2 => self.thread_as(ty),
            3 | 4 => {
                let index = self.index(depth);
                self.k.load(self.own[&ty], index)
            }
            5 => {
                let from = TYPES[self.random.below(TYPES.len())];
                let value = self.expr(from, depth - 1);
                self.k.op(Op::Cast(ty), &[value])
            }
            6 => {
                let condition = self.expr(Type::Bool, depth - 1);
                let (a, b) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
                self.k.op(Op::Select, &[condition, a, b])
            }
            _ => self.operation(ty, depth),
        }
    }

    fn operation(&mut self, ty: Type, depth: usize) -> NodeId {
        use BinaryOp::*;
        let pick = |random: &mut Random, ops: &[BinaryOp]| ops[random.below(ops.len())];
        if ty == Type::Bool {
            let operand = TYPES[self.random.below(TYPES.len())];
            let ops: &[BinaryOp] =
                if operand == Type::Bool { &[And, Or, Xor, Eq] } else { &[Lt, Le, Eq, Ne] };
            let op = pick(&mut self.random, ops);
            let (a, b) = (self.expr(operand, depth - 1), self.expr(operand, depth - 1));
            return self.k.binary(op, a, b);
        }
        if self.random.below(5) == 0 {
            let a = self.expr(ty, depth - 1);
            let ops = match ty {
                Type::F32 => [UnaryOp::Floor, UnaryOp::Atan, UnaryOp::Tan, UnaryOp::Erf],
                _ => [UnaryOp::Neg, UnaryOp::Not, UnaryOp::Popcount, UnaryOp::LeadingZeros],
            };
            let op = ops[self.random.below(ops.len())];
            return self.k.op(Op::Unary(op), &[a]);
        }
        let ops: &[BinaryOp] = match ty {
            Type::F32 => &[Add, Sub, Mul, Div, Min, Max],
            _ => &[Add, Sub, Mul, Div, Mod, Min, Max, Shl, Shr, Xor],
        };
        let op = pick(&mut self.random, ops);
        let (a, b) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
        self.k.binary(op, a, b)
    }

    fn thread_as(&mut self, ty: Type) -> NodeId {
        let position = self.k.position();
        if ty == Type::I32 { position } else { self.k.op(Op::Cast(ty), &[position]) }
    }

    fn index(&mut self, depth: usize) -> NodeId {
        match self.random.below(4) {
            0 => self.wide_index(depth),
            _ => self.part(depth, OWN as i32),
        }
    }

    /// An index of 64 bits, of two terms and a constant.
    fn wide_index(&mut self, depth: usize) -> NodeId {
        let (small, large) = (self.part(depth, 2), self.part(depth, 2));
        match self.random.below(2) {
            0 => self.k.offset(&[(small, 1), (large, 3)], 0),
            _ => self.k.offset(&[(small, -1), (large, 2)], 2),
        }
    }

    /// A number below a limit.
    fn part(&mut self, depth: usize, limit: i32) -> NodeId {
        let any = self.expr(Type::I32, depth.saturating_sub(1));
        let limit = self.k.int(limit);
        self.k.rem(any, limit)
    }

    fn body(&mut self, depth: usize) -> Vec<Stmt> {
        let scope = self.vars.len();
        let statements = 1 + self.random.below(4);
        let body = (0..statements).map(|_| self.statement(depth)).collect();
        self.vars.truncate(scope);
        body
    }

    fn statement(&mut self, depth: usize) -> Stmt {
        let ty = TYPES[self.random.below(TYPES.len())];
        match self.random.below(if depth == 0 { 3 } else { 6 }) {
            0 => {
                let value = self.expr(ty, 3);
                let var = self.k.var("v");
                self.vars.push((var, ty));
                Stmt::Let(var, value)
            }
            1 | 2 => {
                let (index, value) = (self.index(2), self.expr(ty, 4));
                store(self.own[&ty], index, value)
            }
            3 => {
                let count = self.random.below(4) as u32;
                let var = self.k.var("r");
                self.vars.push((var, Type::I32));
                let body = self.body(depth - 1);
                self.vars.retain(|(known, _)| *known != var);
                repeat(var, count, body)
            }
            _ => {
                let condition = self.expr(Type::Bool, 3);
                let body = self.body(depth - 1);
                let otherwise = if self.random.below(2) == 0 { self.body(depth - 1) } else { Vec::new() };
                Stmt::If { condition, body, otherwise }
            }
        }
    }
}

/// One thread, straight from the tree.
struct Naive<'a> {
    kernel: &'a Kernel,
    block: i32,
    thread: i32,
    vars: HashMap<VarId, Value>,
    memory: HashMap<(ArrayId, i64), Value>,
}

impl Naive<'_> {
    fn eval(&self, id: NodeId) -> Value {
        let node = &self.kernel.exprs[id];
        match node.kind {
            NodeKind::Leaf(Leaf::Thread) => Value::from(self.thread),
            NodeKind::Leaf(Leaf::Block(_)) => Value::from(self.block),
            NodeKind::Leaf(Leaf::Var(var)) => self.vars[&var],
            NodeKind::Leaf(_) => unreachable!("not generated"),
            NodeKind::Op(op) => {
                let args: Vec<Value> = node.args.iter().map(|arg| self.eval(*arg)).collect();
                op.eval(&args)
            }
            NodeKind::Load(array) => self.memory[&(array, self.element(node.args[0]))],
            NodeKind::Offset(_) => unreachable!("an index only"),
        }
    }

    fn element(&self, index: NodeId) -> i64 {
        match &self.kernel.exprs[index] {
            KernelNode { kind: NodeKind::Offset(strides), args, .. } => {
                let terms = args.iter().map(|arg| self.eval(*arg).get::<i32>().expect("an integer"));
                self.kernel.exprs.strides()[*strides].offset(terms)
            }
            _ => self.eval(index).as_int().expect("an integer"),
        }
    }

    fn run(&mut self, body: &[Stmt]) {
        for stmt in body {
            match stmt {
                Stmt::Let(var, value) => _ = self.vars.insert(*var, self.eval(*value)),
                Stmt::Store { array, index, value } => {
                    let element = self.element(*index);
                    let value = self.eval(*value);
                    self.memory.insert((*array, element), value);
                }
                Stmt::For { var, count, body, .. } => {
                    for iteration in 0..*count {
                        self.vars.insert(*var, Value::from(iteration as i32));
                        self.run(body);
                    }
                }
                Stmt::If { condition, body, otherwise } => {
                    let holds = self.eval(*condition).bits() != 0;
                    self.run(if holds { body } else { otherwise });
                }
                Stmt::Atomic { .. }
                | Stmt::Shuffle { .. }
                | Stmt::Copy { .. }
                | Stmt::Vector { .. }
                | Stmt::Commit
                | Stmt::Wait(_)
                | Stmt::Barrier => unreachable!("not generated"),
            }
        }
    }
}

/// A random program that writes all its private arrays to outputs.
fn random_program(seed: u64) -> Program {
    let mut maker = Maker::new();
    let count = (THREADS * BLOCKS) as usize * OWN;
    let outputs = TYPES.map(|ty| maker.output(ty.name(), ty, count));
    maker.kernel("random", [BLOCKS, 1, 1], THREADS, |k| {
        let own: HashMap<Type, ArrayId> =
            TYPES.iter().map(|ty| (*ty, k.private(ty.name(), *ty, OWN))).collect();
        let clear = k.var("clear");
        let at = k.use_var(clear, Type::I32);
        let mut body = Vec::new();
        for ty in TYPES {
            let zero = k.op(Op::Const(Value::zero(ty)), &[]);
            body.push(repeat(clear, OWN as u32, vec![store(own[&ty], at, zero)]));
        }
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut generator = Generator { random, k, own: own.clone(), vars: Vec::new() };
        for _ in 0..3 {
            body.extend(generator.body(3));
        }
        let (position, size) = (k.position(), k.int(OWN as i32));
        let start = k.mul(position, size);
        let index = k.add(start, at);
        for (ty, output) in TYPES.iter().zip(outputs) {
            let output = k.global(output);
            let value = k.load(own[ty], at);
            body.push(repeat(clear, OWN as u32, vec![store(output, index, value)]));
        }
        body
    });
    maker.program
}

#[test]
fn lockstep_computes_what_single_threads_compute() {
    for seed in 0..300 {
        let program = random_program(seed);
        let outcome = run_seeded(&program, &[], seed).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let kernel = program.kernels.values().next().unwrap();
        for (block, thread) in (0..BLOCKS).flat_map(|block| (0..THREADS).map(move |thread| (block, thread))) {
            let (block, thread) = (block as i32, thread as i32);
            let mut naive = Naive { kernel, block, thread, vars: HashMap::new(), memory: HashMap::new() };
            naive.run(&kernel.body);
            let start = i64::from(block * THREADS as i32 + thread) * OWN as i64;
            for (number, output) in outcome.outputs.iter().enumerate() {
                let array = ArrayId::new(TYPES.len() + number);
                for element in start..start + OWN as i64 {
                    let (found, wanted) = (output.get(&[element]).unwrap(), naive.memory[&(array, element)]);
                    let nan = found.as_f64().is_nan() && wanted.as_f64().is_nan();
                    assert!(found == wanted || nan, "seed {seed}, {}: {found:?} {wanted:?}", TYPES[number]);
                }
            }
        }
    }
}
