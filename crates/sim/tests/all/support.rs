//! Kernels by hand.

use warploom_codegen::ir::*;
use warploom_interp::buffer::{Buffer, Element};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Id, IdVec, InputId, ParamId, Region, Scalar, Type, Value};
use warploom_sim::{Outcome, SimError, Simulation};
use warploom_target::Device;

/// A program that grows kernel by kernel.
pub struct Maker {
    pub program: Program,
    inputs: usize,
    outputs: usize,
}

impl Maker {
    pub fn new() -> Maker {
        let program = Program {
            name: "test".to_string(),
            buffers: IdVec::new(),
            params: Vec::new(),
            tables: Default::default(),
            kernels: IdVec::new(),
            launches: Vec::new(),
            sizes: None,
        };
        Maker { program, inputs: 0, outputs: 0 }
    }

    fn buffer(&mut self, name: &str, ty: Type, elements: usize, role: Role) -> BufferId {
        let region = Region::of_extents(&[elements as i64]);
        self.program.buffers.push(BufferDecl { name: name.to_string(), ty, region, strides: vec![1], role })
    }

    pub fn input(&mut self, name: &str, ty: Type, elements: usize) -> BufferId {
        self.inputs += 1;
        self.buffer(name, ty, elements, Role::Input(InputId::new(self.inputs - 1)))
    }

    pub fn output(&mut self, name: &str, ty: Type, elements: usize) -> BufferId {
        self.outputs += 1;
        self.buffer(name, ty, elements, Role::Output { output: self.outputs - 1, value: 0 })
    }

    pub fn temporary(&mut self, name: &str, ty: Type, elements: usize) -> BufferId {
        self.buffer(name, ty, elements, Role::Temporary)
    }

    pub fn param(&mut self, ty: Type) -> u32 {
        let position = self.program.params.len();
        self.program.params.push((ParamId::new(position), ty));
        position as u32
    }

    /// Adds a kernel and its launch; `make` gives the body.
    pub fn kernel(
        &mut self,
        name: &str,
        grid: [u32; 3],
        threads: u32,
        make: impl FnOnce(&mut KernelMaker<'_>) -> Vec<Stmt>,
    ) -> KernelId {
        let id = self.kernel_only(name, grid, threads, make);
        self.program.launches.push(Launch::Kernel(id));
        id
    }

    pub fn kernel_only(
        &mut self,
        name: &str,
        grid: [u32; 3],
        threads: u32,
        make: impl FnOnce(&mut KernelMaker<'_>) -> Vec<Stmt>,
    ) -> KernelId {
        let kernel = Kernel {
            name: name.to_string(),
            grid,
            blocks: None,
            scalars: Vec::new(),
            threads,
            resident: None,
            origins: Vec::new(),
            shared: None,
            arrays: IdVec::new(),
            vars: IdVec::new(),
            exprs: KernelExprs::default(),
            body: Vec::new(),
        };
        let mut maker = KernelMaker { program: &self.program, kernel };
        maker.kernel.body = make(&mut maker);
        let kernel = maker.kernel;
        self.program.kernels.push(kernel)
    }
}

/// A kernel that grows.
pub struct KernelMaker<'a> {
    program: &'a Program,
    pub kernel: Kernel,
}

impl KernelMaker<'_> {
    pub fn global(&mut self, buffer: BufferId) -> ArrayId {
        let BufferDecl { name, ty, .. } = self.program.buffers[buffer].clone();
        let elements = self.program.buffers[buffer].elements();
        self.kernel.arrays.push(Array::new(name, ty, Space::Global(buffer), elements))
    }

    pub fn shared(&mut self, name: &str, ty: Type, elements: usize) -> ArrayId {
        self.kernel.arrays.push(Array::new(name.to_string(), ty, Space::Shared, elements))
    }

    pub fn private(&mut self, name: &str, ty: Type, elements: usize) -> ArrayId {
        self.kernel.arrays.push(Array::new(name.to_string(), ty, Space::Thread, elements))
    }

    pub fn node(&mut self, kind: NodeKind, ty: Type, args: &[NodeId]) -> NodeId {
        self.kernel.exprs.intern(KernelNode { kind, ty, args: args.iter().copied().collect() })
    }

    pub fn op(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        let types: Vec<Type> = args.iter().map(|arg| self.kernel.exprs[*arg].ty).collect();
        let ty = op.result_type(&types).expect("operands that fit");
        self.node(NodeKind::Op(op), ty, args)
    }

    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.op(Op::Binary(op), &[a, b])
    }

    pub fn constant(&mut self, value: impl Scalar) -> NodeId {
        self.op(Op::Const(Value::from(value)), &[])
    }

    pub fn int(&mut self, value: i32) -> NodeId {
        self.constant(value)
    }

    pub fn thread(&mut self) -> NodeId {
        self.node(NodeKind::Leaf(Leaf::Thread), Type::I32, &[])
    }

    pub fn block(&mut self, dimension: u8) -> NodeId {
        self.node(NodeKind::Leaf(Leaf::Block(dimension)), Type::I32, &[])
    }

    pub fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Add, a, b)
    }

    pub fn sub(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Sub, a, b)
    }

    pub fn mul(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Mul, a, b)
    }

    pub fn div(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Div, a, b)
    }

    pub fn rem(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Mod, a, b)
    }

    pub fn lt(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Lt, a, b)
    }

    pub fn load(&mut self, array: ArrayId, index: NodeId) -> NodeId {
        let ty = self.kernel.arrays[array].ty;
        self.node(NodeKind::Load(array), ty, &[index])
    }

    /// An index of 64 bits.
    pub fn offset(&mut self, terms: &[(NodeId, i64)], constant: i64) -> NodeId {
        let (args, strides) = terms.iter().copied().unzip();
        self.kernel.exprs.intern_offset(args, Strides { strides, constant })
    }

    pub fn var(&mut self, name: &str) -> VarId {
        self.kernel.vars.push(name.to_string())
    }

    pub fn use_var(&mut self, var: VarId, ty: Type) -> NodeId {
        self.node(NodeKind::Leaf(Leaf::Var(var)), ty, &[])
    }

    /// `block * threads + thread`.
    pub fn position(&mut self) -> NodeId {
        let (block, threads, thread) = (self.block(0), self.int(self.kernel.threads as i32), self.thread());
        let start = self.mul(block, threads);
        self.add(start, thread)
    }
}

pub fn store(array: ArrayId, index: NodeId, value: NodeId) -> Stmt {
    Stmt::Store { array, index, value }
}

pub fn atomic(op: AtomicOp, array: ArrayId, index: NodeId, value: NodeId) -> Stmt {
    Stmt::Atomic { op, array, index, value }
}

pub fn when(condition: NodeId, body: Vec<Stmt>) -> Stmt {
    Stmt::when(condition, body)
}

pub fn repeat(var: VarId, count: u32, body: Vec<Stmt>) -> Stmt {
    Stmt::For { var, count, limit: None, unrolled: false, body }
}

pub fn device() -> Device {
    Device::preset("h200").expect("a preset")
}

pub fn buffer<T: Element>(samples: Vec<T>) -> Buffer {
    Buffer::from_vec(Region::of_extents(&[samples.len() as i64]), samples).expect("samples that fit")
}

/// Runs a program under one seed; inputs in the order they were made.
pub fn run_seeded(program: &Program, inputs: &[&Buffer], seed: u64) -> Result<Outcome, SimError> {
    let device = device();
    let mut simulation = Simulation::new(program, &device).seed(seed);
    for (number, input) in inputs.iter().enumerate() {
        simulation = simulation.input(InputId::new(number), input);
    }
    simulation.run()
}

/// Runs a program under several seeds; they must agree in outputs, or all fail.
pub fn run(program: &Program, inputs: &[&Buffer]) -> Result<Outcome, SimError> {
    let first = run_seeded(program, inputs, 0);
    for seed in 1..4 {
        match (&first, run_seeded(program, inputs, seed)) {
            (Ok(a), Ok(b)) => assert_eq!(*a, b),
            (Err(a), Err(b)) => {
                assert_eq!(std::mem::discriminant(a), std::mem::discriminant(&b), "{a}\n{b}");
            }
            (a, b) => panic!("seed {seed}: {a:?}\n{b:?}"),
        }
    }
    first
}
