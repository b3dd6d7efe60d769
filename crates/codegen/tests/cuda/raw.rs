//! Kernels written node by node: nothing is folded or simplified, so that the printer sees every operation.

use smallvec::SmallVec;
use warploom_codegen::ir::{
    Array, ArrayId, BufferDecl, BufferId, Kernel, KernelExprs, KernelId, KernelNode, Launch, Leaf, NodeId,
    NodeKind, Program, Role, Space, Stmt, VarId,
};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Id, IdVec, Range, Region, Type, Value};

/// A program in the making.
pub struct RawProgram {
    pub program: Program,
}

impl RawProgram {
    pub fn new(name: &str) -> RawProgram {
        let program = Program {
            name: name.to_string(),
            buffers: IdVec::new(),
            params: Vec::new(),
            tables: Default::default(),
            kernels: IdVec::new(),
            launches: Vec::new(),
            sizes: None,
        };
        RawProgram { program }
    }

    pub fn buffer(&mut self, name: &str, ty: Type, elements: usize, role: Role) -> BufferId {
        let region = Region(vec![Range::new(0, elements as i64)]);
        self.program.buffers.push(BufferDecl { name: name.to_string(), ty, region, strides: vec![1], role })
    }

    pub fn input(&mut self, name: &str, ty: Type, elements: usize) -> BufferId {
        let roles = self.program.buffers.values().filter(|buffer| matches!(buffer.role, Role::Input(_)));
        let input = Id::new(roles.count());
        self.buffer(name, ty, elements, Role::Input(input))
    }

    pub fn output(&mut self, name: &str, ty: Type, elements: usize) -> BufferId {
        let roles = self.program.buffers.values().filter(|buffer| matches!(buffer.role, Role::Output { .. }));
        let output = roles.count();
        self.buffer(name, ty, elements, Role::Output { output, value: 0 })
    }

    pub fn param(&mut self, ty: Type) -> Leaf {
        self.program.params.push((Id::new(self.program.params.len()), ty));
        Leaf::Param(self.program.params.len() as u32 - 1)
    }

    /// Adds a kernel and launches it last.
    pub fn launch(&mut self, kernel: RawKernel) -> KernelId {
        let id = self.program.kernels.push(kernel.kernel);
        self.program.launches.push(Launch::Kernel(id));
        id
    }

    pub fn kernel(&self, name: &str, grid: [u32; 3], threads: u32) -> RawKernel {
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
        let buffers =
            self.program.buffers.values().map(|buffer| (buffer.name.clone(), buffer.ty, buffer.elements()));
        RawKernel { kernel, buffers: buffers.collect() }
    }
}

/// A kernel in the making.
pub struct RawKernel {
    pub kernel: Kernel,
    buffers: Vec<(String, Type, usize)>,
}

impl RawKernel {
    pub fn global(&mut self, buffer: BufferId) -> ArrayId {
        let (name, ty, elements) = self.buffers[buffer.index()].clone();
        self.kernel.arrays.push(Array::new(name, ty, Space::Global(buffer), elements))
    }

    pub fn array(&mut self, name: &str, ty: Type, space: Space, elements: usize) -> ArrayId {
        self.kernel.arrays.push(Array::new(name.to_string(), ty, space, elements))
    }

    pub fn var(&mut self, name: &str) -> VarId {
        self.kernel.vars.push(name.to_string())
    }

    fn node(&mut self, kind: NodeKind, ty: Type, args: &[NodeId]) -> NodeId {
        self.kernel.exprs.intern(KernelNode { kind, ty, args: SmallVec::from_slice(args) })
    }

    pub fn leaf(&mut self, leaf: Leaf) -> NodeId {
        self.typed_leaf(leaf, Type::I32)
    }

    pub fn typed_leaf(&mut self, leaf: Leaf, ty: Type) -> NodeId {
        self.node(NodeKind::Leaf(leaf), ty, &[])
    }

    pub fn get(&mut self, var: VarId) -> NodeId {
        self.leaf(Leaf::Var(var))
    }

    pub fn constant(&mut self, value: impl Into<Value>) -> NodeId {
        let value = value.into();
        self.node(NodeKind::Op(Op::Const(value)), value.ty(), &[])
    }

    pub fn op(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        let types: Vec<Type> = args.iter().map(|arg| self.kernel.exprs[*arg].ty).collect();
        let ty = op.result_type(&types).expect("operands fit");
        self.node(NodeKind::Op(op), ty, args)
    }

    pub fn binary(&mut self, op: BinaryOp, a: NodeId, b: NodeId) -> NodeId {
        self.op(Op::Binary(op), &[a, b])
    }

    pub fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Add, a, b)
    }

    pub fn mul(&mut self, a: NodeId, b: NodeId) -> NodeId {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// `a * factor + offset`.
    pub fn affine(&mut self, a: NodeId, factor: i32, offset: i32) -> NodeId {
        let (factor, offset) = (self.constant(factor), self.constant(offset));
        let product = self.mul(a, factor);
        self.add(product, offset)
    }

    pub fn load(&mut self, array: ArrayId, index: NodeId) -> NodeId {
        let ty = self.kernel.arrays[array].ty;
        self.node(NodeKind::Load(array), ty, &[index])
    }

    /// `block_x * threads + thread`.
    pub fn global_index(&mut self) -> NodeId {
        let threads = self.kernel.threads as i32;
        let (block, thread) = (self.leaf(Leaf::Block(0)), self.leaf(Leaf::Thread));
        let factor = self.constant(threads);
        let first = self.mul(block, factor);
        self.add(first, thread)
    }

    pub fn store(&mut self, array: ArrayId, index: NodeId, value: NodeId) {
        self.kernel.body.push(Stmt::Store { array, index, value });
    }

    /// The statements that `fill` adds, taken out of the body.
    pub fn nested(&mut self, fill: impl FnOnce(&mut RawKernel)) -> Vec<Stmt> {
        let outer = std::mem::take(&mut self.kernel.body);
        fill(self);
        std::mem::replace(&mut self.kernel.body, outer)
    }

    pub fn for_loop(
        &mut self,
        name: &str,
        count: u32,
        unrolled: bool,
        fill: impl FnOnce(&mut RawKernel, NodeId),
    ) {
        let var = self.var(name);
        let index = self.get(var);
        let body = self.nested(|kernel| fill(kernel, index));
        self.kernel.body.push(Stmt::For { var, count, limit: None, unrolled, body });
    }

    pub fn when(&mut self, condition: NodeId, fill: impl FnOnce(&mut RawKernel)) {
        let body = self.nested(fill);
        self.kernel.body.push(Stmt::when(condition, body));
    }

    pub fn bind(&mut self, name: &str, value: NodeId) -> NodeId {
        let var = self.var(name);
        self.kernel.body.push(Stmt::Let(var, value));
        let ty = self.kernel.exprs[value].ty;
        self.typed_leaf(Leaf::Var(var), ty)
    }
}
