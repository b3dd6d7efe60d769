//! Kernels that each break one rule of the IR, and what the verifier says of them.

use smallvec::smallvec;
use warploom_codegen::ir::{
    ArrayId, AtomicOp, BufferId, KernelId, KernelNode, Launch, Leaf, NARROW_ELEMENTS, NodeId, NodeKind,
    Program, Space, Stmt, Strides, StridesId, VarId,
};
use warploom_codegen::verify::StmtIndex::{Body, Otherwise};
use warploom_codegen::verify::{Fault, Missing, StmtIndex, StmtPath, VerifyError, verify};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Id, Type, Value};

use crate::raw::{RawKernel, RawProgram};

/// What the kernels have: an input and an output of 128 floats, and 64 floats that the 32 threads of a block share.
struct Arrays {
    from: ArrayId,
    to: ArrayId,
    shared: ArrayId,
}

/// A program of one kernel, called `k`, of 4 blocks.
fn program(fill: impl FnOnce(&mut RawKernel, Arrays)) -> Program {
    let mut raw = RawProgram::new("wrong");
    let (from, to) = (raw.input("from", Type::F32, 128), raw.output("to", Type::F32, 128));
    let mut kernel = raw.kernel("k", [4, 1, 1], 32);
    let (from, to) = (kernel.global(from), kernel.global(to));
    let shared = kernel.array("shared", Type::F32, Space::Shared, 64);
    fill(&mut kernel, Arrays { from, to, shared });
    raw.launch(kernel);
    raw.program
}

fn found(program: &Program) -> VerifyError {
    verify(program).expect_err("the program is wrong")
}

/// The kernel that `fill` makes is refused as a whole.
fn refused(fault: Fault, fill: impl FnOnce(&mut RawKernel, Arrays)) {
    assert_eq!(found(&program(fill)), VerifyError::Kernel { kernel: "k".into(), fault });
}

/// The kernel that `fill` makes is refused at a statement.
fn refused_at(at: &[StmtIndex], fault: Fault, fill: impl FnOnce(&mut RawKernel, Arrays)) {
    let at = StmtPath(at.to_vec());
    assert_eq!(found(&program(fill)), VerifyError::Statement { kernel: "k".into(), at, fault });
}

fn node(k: &mut RawKernel, kind: NodeKind, ty: Type, args: &[NodeId]) -> NodeId {
    k.kernel.exprs.intern(KernelNode { kind, ty, args: args.into() })
}

/// `thread < 7`.
fn some_threads(k: &mut RawKernel) -> NodeId {
    let (thread, seven) = (k.leaf(Leaf::Thread), k.constant(7));
    k.binary(BinaryOp::Lt, thread, seven)
}

/// `block_x < 2`.
fn some_blocks(k: &mut RawKernel) -> NodeId {
    let (block, two) = (k.leaf(Leaf::Block(0)), k.constant(2));
    k.binary(BinaryOp::Lt, block, two)
}

fn atomic(k: &mut RawKernel, array: ArrayId, index: NodeId, value: NodeId) {
    k.kernel.body.push(Stmt::Atomic { op: AtomicOp::Add, array, index, value });
}

fn barrier(k: &mut RawKernel) {
    k.kernel.body.push(Stmt::Barrier);
}

#[test]
fn right_kernels_pass() {
    let right = program(|k, Arrays { from, to, shared }| {
        let (index, thread) = (k.global_index(), k.leaf(Leaf::Thread));
        let value = k.load(from, index);
        k.store(shared, thread, value);
        barrier(k);
        k.for_loop("r", 3, false, |k, _| {
            let value = k.bind("v", value);
            atomic(k, shared, thread, value);
        });
        barrier(k);
        let condition = some_blocks(k);
        let sum = k.load(shared, thread);
        let body = k.nested(|k| k.store(to, index, sum));
        let otherwise = k.nested(|k| {
            barrier(k);
            k.store(to, index, value);
        });
        k.kernel.body.push(Stmt::If { condition, body, otherwise });
    });
    assert_eq!(verify(&right), Ok(()));
}

#[test]
fn launches_name_kernels() {
    let mut wrong = program(|_, _| {});
    wrong.launches.push(Launch::Loop { count: 2, limit: None, body: vec![Launch::Kernel(KernelId::new(1))] });
    assert_eq!(found(&wrong), VerifyError::Launch(Missing::Kernel(KernelId::new(1))));
}

#[test]
fn what_is_named_exists() {
    let array = ArrayId::new(9);
    refused(Fault::Missing(Missing::Array(array)), |k, _| {
        let zero = k.constant(0);
        node(k, NodeKind::Load(array), Type::F32, &[zero]);
    });
    refused(Fault::Missing(Missing::Param(0)), |k, _| _ = k.leaf(Leaf::Param(0)));
    refused(Fault::Missing(Missing::BlockDimension(3)), |k, _| _ = k.leaf(Leaf::Block(3)));
    refused(Fault::Missing(Missing::Iteration(0)), |k, _| _ = k.leaf(Leaf::Iteration(0)));
    refused(Fault::Missing(Missing::Var(VarId::new(2))), |k, _| _ = k.leaf(Leaf::Var(VarId::new(2))));
    refused(Fault::Missing(Missing::Buffer(BufferId::new(5))), |k, _| {
        k.array("lost", Type::F32, Space::Global(BufferId::new(5)), 1);
    });
    let strides = StridesId::new(4);
    refused(Fault::Missing(Missing::Strides(strides)), |k, _| {
        node(k, NodeKind::Offset(strides), Type::I32, &[]);
    });
    let lost = NodeId::new(1000);
    refused_at(&[Body(0)], Fault::Missing(Missing::Node(lost)), |k, arrays| {
        let value = k.constant(1.0_f32);
        k.store(arrays.to, lost, value);
    });
    refused_at(&[Body(0)], Fault::Missing(Missing::Var(VarId::new(2))), |k, _| {
        let one = k.constant(1);
        k.kernel.body.push(Stmt::Let(VarId::new(2), one));
    });
}

#[test]
fn grids_have_blocks_and_blocks_threads() {
    for (grid, threads) in [([4, 0, 1], 32), ([4, 1, 1], 0), ([1 << 31, 1, 1], 32)] {
        refused(Fault::Launch { grid, threads }, |k, _| {
            (k.kernel.grid, k.kernel.threads) = (grid, threads);
        });
    }
}

#[test]
fn arrays_are_as_their_buffers() {
    for (ty, elements) in [(Type::I32, 128), (Type::F32, 127)] {
        refused(Fault::Buffer { array: "view".into() }, |k, _| {
            k.array("view", ty, Space::Global(BufferId::new(0)), elements);
        });
    }
}

#[test]
fn operands_come_first() {
    let own = NodeId::new(1);
    refused(Fault::Order { node: own, operand: own }, |k, _| {
        let zero = k.constant(0);
        node(k, NodeKind::Op(Op::Binary(BinaryOp::Add)), Type::I32, &[zero, own]);
    });
}

#[test]
fn operations_have_their_types() {
    let op = Op::Binary(BinaryOp::Add);
    let mixed = vec![Type::I32, Type::F32];
    refused(Fault::Operation { node: NodeId::new(2), op, operands: mixed, ty: Type::I32 }, |k, _| {
        let (a, b) = (k.constant(0), k.constant(0.0_f32));
        node(k, NodeKind::Op(op), Type::I32, &[a, b]);
    });
    let same = vec![Type::I32, Type::I32];
    refused(Fault::Operation { node: NodeId::new(1), op, operands: same, ty: Type::F32 }, |k, _| {
        let a = k.constant(0);
        node(k, NodeKind::Op(op), Type::F32, &[a, a]);
    });
}

#[test]
fn loads_have_one_index() {
    refused(Fault::Indices { node: NodeId::new(1), indices: 2 }, |k, arrays| {
        let zero = k.constant(0);
        node(k, NodeKind::Load(arrays.from), Type::F32, &[zero, zero]);
    });
}

#[test]
fn offsets_have_a_term_for_each_stride() {
    let (one, two): (Strides, Strides) =
        (Strides { strides: smallvec![1], constant: 0 }, Strides { strides: smallvec![1, 128], constant: 0 });
    refused(Fault::Terms { node: NodeId::new(1), strides: 2, terms: vec![Type::I32] }, |k, _| {
        let zero = k.constant(0);
        k.kernel.exprs.intern_offset(smallvec![zero], two);
    });
    refused(Fault::Terms { node: NodeId::new(1), strides: 1, terms: vec![Type::F32] }, |k, _| {
        let zero = k.constant(0.0_f32);
        k.kernel.exprs.intern_offset(smallvec![zero], one);
    });
}

#[test]
fn offsets_are_no_values() {
    let offset = |k: &mut RawKernel| {
        let zero = k.constant(0);
        k.kernel.exprs.intern_offset(smallvec![zero], Strides { strides: smallvec![1], constant: 0 })
    };
    refused(Fault::OffsetValue { node: NodeId::new(1) }, |k, _| {
        let offset = offset(k);
        node(k, NodeKind::Op(Op::Binary(BinaryOp::Add)), Type::I32, &[offset, offset]);
    });
    refused_at(&[Body(0)], Fault::OffsetValue { node: NodeId::new(1) }, |k, _| {
        let offset = offset(k);
        k.bind("offset", offset);
    });
}

#[test]
fn leaves_have_their_types() {
    let leaf = Leaf::Thread;
    refused(Fault::LeafType { leaf, expected: Type::I32, found: Type::U32 }, |k, _| {
        k.typed_leaf(leaf, Type::U32);
    });
    let leaf = Leaf::Var(VarId::new(0));
    refused_at(&[Body(1)], Fault::LeafType { leaf, expected: Type::I32, found: Type::F32 }, |k, arrays| {
        let thread = k.leaf(Leaf::Thread);
        k.bind("v", thread);
        let value = k.typed_leaf(leaf, Type::F32);
        k.store(arrays.to, thread, value);
    });
}

#[test]
fn elements_have_their_types() {
    let fault = || Fault::ElementType { array: "from".into(), expected: Type::F32, found: Type::U8 };
    refused(fault(), |k, arrays| {
        let zero = k.constant(0);
        node(k, NodeKind::Load(arrays.from), Type::U8, &[zero]);
    });
    refused_at(&[Body(0)], fault(), |k, arrays| {
        let (zero, value) = (k.constant(0), k.constant(3_u8));
        k.store(arrays.from, zero, value);
    });
}

#[test]
fn indices_are_integers() {
    refused(Fault::IndexType { array: "from".into(), found: Type::U32 }, |k, arrays| {
        let zero = k.constant(0_u32);
        node(k, NodeKind::Load(arrays.from), Type::F32, &[zero]);
    });
}

#[test]
fn large_arrays_have_offsets() {
    let elements = NARROW_ELEMENTS as usize + 1;
    refused(Fault::NarrowIndex { array: "large".into(), elements }, |k, _| {
        let large = k.array("large", Type::U8, Space::Shared, elements);
        let zero = k.constant(0);
        k.load(large, zero);
    });
}

#[test]
fn conditions_are_truth_values() {
    refused_at(&[Body(0)], Fault::Condition { found: Type::I32 }, |k, _| {
        let thread = k.leaf(Leaf::Thread);
        k.when(thread, |_| {});
    });
}

#[test]
fn loops_run_as_often_as_indices_count() {
    for count in [0, 1 << 31] {
        refused_at(&[Body(0)], Fault::LoopCount { var: "r".into(), count }, |k, _| {
            k.for_loop("r", count, false, |_, _| {});
        });
    }
}

#[test]
fn variables_have_values_where_they_are_used() {
    refused_at(&[Body(1)], Fault::Unbound { var: "r".into() }, |k, arrays| {
        let (mut r, thread) = (None, k.leaf(Leaf::Thread));
        k.for_loop("r", 3, false, |_, var| r = Some(var));
        let one = k.constant(1.0_f32);
        let index = k.add(thread, r.unwrap());
        k.store(arrays.to, index, one);
    });
    // What was found of a variable holds only as long as its value.
    refused_at(&[Body(0), Otherwise(0)], Fault::Unbound { var: "v".into() }, |k, arrays| {
        let (condition, thread) = (some_threads(k), k.leaf(Leaf::Thread));
        let (mut v, one) = (None, k.constant(1.0_f32));
        let body = k.nested(|k| {
            let bound = k.bind("v", thread);
            k.store(arrays.to, bound, one);
            v = Some(bound);
        });
        let otherwise = k.nested(|k| k.store(arrays.to, v.unwrap(), one));
        k.kernel.body.push(Stmt::If { condition, body, otherwise });
    });
}

#[test]
fn variables_are_bound_once() {
    refused_at(&[Body(0), Body(0)], Fault::BoundTwice { var: "r".into() }, |k, _| {
        k.for_loop("r", 3, false, |k, index| k.kernel.body.push(Stmt::Let(VarId::new(0), index)));
    });
}

#[test]
fn barriers_stand_where_all_threads_come_by() {
    refused_at(&[Body(1), Body(0), Body(0)], Fault::DivergentBarrier, |k, _| {
        let condition = some_threads(k);
        let condition = k.bind("some", condition);
        k.when(condition, |k| k.for_loop("r", 2, false, |k, _| barrier(k)));
    });
    refused_at(&[Body(0), Otherwise(0)], Fault::DivergentBarrier, |k, _| {
        let condition = some_threads(k);
        k.kernel.body.push(Stmt::If { condition, body: Vec::new(), otherwise: vec![Stmt::Barrier] });
    });
    // What is loaded may differ even if the index does not.
    refused_at(&[Body(0), Body(0)], Fault::DivergentBarrier, |k, arrays| {
        let zero = k.constant(0);
        let loaded = k.load(arrays.from, zero);
        let condition = k.binary(BinaryOp::Lt, loaded, loaded);
        k.when(condition, barrier);
    });
}

/// Shuffles what `value` makes from the lane that `lane` makes.
fn shuffle(k: &mut RawKernel, value: impl Into<Value>, lane: NodeId) {
    let (var, value) = (k.var("other"), k.constant(value));
    k.kernel.body.push(Stmt::Shuffle { var, value, lane });
}

#[test]
fn shuffles_stand_where_all_threads_come_by() {
    refused_at(&[Body(0), Body(0)], Fault::DivergentShuffle, |k, _| {
        let (condition, lane) = (some_threads(k), k.constant(0));
        k.when(condition, |k| shuffle(k, 1, lane));
    });
    // What another lane has may differ from thread to thread.
    refused_at(&[Body(1), Body(0)], Fault::DivergentBarrier, |k, _| {
        let (lane, zero) = (k.leaf(Leaf::Thread), k.constant(0));
        shuffle(k, 1, lane);
        let other = k.get(VarId::new(0));
        let condition = k.binary(BinaryOp::Lt, zero, other);
        k.when(condition, barrier);
    });
    let fault = Fault::PartialWarp { threads: 48 };
    refused_at(&[Body(0)], fault, |k, _| {
        k.kernel.threads = 48;
        let lane = k.constant(31);
        shuffle(k, 1, lane);
    });
}

#[test]
fn shuffles_exchange_words_between_lanes() {
    refused_at(&[Body(0)], Fault::ShuffledType { found: Type::U8 }, |k, _| {
        let lane = k.leaf(Leaf::Thread);
        shuffle(k, 1_u8, lane);
    });
    refused_at(&[Body(0)], Fault::Lane { found: Type::I32, min: 32, max: 63 }, |k, _| {
        let (thread, lanes) = (k.leaf(Leaf::Thread), k.constant(32));
        let lane = k.add(thread, lanes);
        shuffle(k, 1, lane);
    });
    refused_at(&[Body(0)], Fault::Lane { found: Type::I32, min: -1, max: -1 }, |k, _| {
        let lane = k.constant(-1);
        shuffle(k, 1, lane);
    });
    refused_at(&[Body(0)], Fault::Lane { found: Type::U32, min: 3, max: 3 }, |k, _| {
        let lane = k.constant(3_u32);
        shuffle(k, 1, lane);
    });
    refused_at(&[Body(1)], Fault::BoundTwice { var: "other".into() }, |k, _| {
        let (var, lane) = (k.var("other"), k.constant(3));
        let again = Stmt::Shuffle { var, value: lane, lane };
        k.kernel.body.extend([again.clone(), again]);
    });
}

#[test]
fn accesses_can_be_in_bounds() {
    let outside =
        |array: &str, min, max, elements| Fault::OutOfBounds { array: array.into(), min, max, elements };
    refused_at(&[Body(0)], outside("from", -32, -1, 128), |k, arrays| {
        let (thread, index) = (k.leaf(Leaf::Thread), k.global_index());
        let before = k.affine(thread, 1, -32);
        let value = k.load(arrays.from, before);
        k.store(arrays.to, index, value);
    });
    refused_at(&[Body(0), Body(0)], outside("shared", 64, 67, 64), |k, arrays| {
        let one = k.constant(1.0_f32);
        k.for_loop("r", 4, true, |k, r| {
            let index = k.affine(r, 1, 64);
            k.store(arrays.shared, index, one);
        });
    });
    // An index that overflows does not come back into the array.
    refused_at(&[Body(0)], outside("to", 1 << 32, (1 << 32) + 31 * 4, 128), |k, arrays| {
        let (thread, one) = (k.leaf(Leaf::Thread), k.constant(1.0_f32));
        let (large, four) = (k.affine(thread, 1, 1 << 30), k.constant(4));
        let index = k.mul(large, four);
        k.store(arrays.to, index, one);
    });
    // 64-bit indices have ranges too.
    refused_at(&[Body(0)], outside("to", 1 << 33, (1 << 33) + 31 * 4, 128), |k, arrays| {
        let (thread, one) = (k.leaf(Leaf::Thread), k.constant(1.0_f32));
        let strides = Strides { strides: smallvec![4], constant: 1 << 33 };
        let index = k.kernel.exprs.intern_offset(smallvec![thread], strides);
        k.store(arrays.to, index, one);
    });
}

/// An access that is never made breaks no rule; the same one where it is made does.
#[test]
fn accesses_that_are_never_made_can_be_anywhere() {
    let store = |k: &mut RawKernel, arrays: &Arrays| {
        let (far, one) = (k.constant(1000), k.constant(1.0_f32));
        let index = k.binary(BinaryOp::Max, far, far);
        k.store(arrays.to, index, one);
    };
    let never = |k: &mut RawKernel, arrays: &Arrays| {
        let condition = k.constant(false);
        k.when(condition, |k| store(k, arrays));
    };
    assert_eq!(verify(&program(|k, arrays| never(k, &arrays))), Ok(()));
    let fault = Fault::OutOfBounds { array: "to".into(), min: 1000, max: 1000, elements: 128 };
    refused_at(&[Body(1)], fault, |k, arrays| {
        never(k, &arrays);
        store(k, &arrays);
    });
}

#[test]
fn inputs_are_only_read() {
    refused_at(&[Body(0)], Fault::WritesInput { array: "from".into() }, |k, arrays| {
        let (index, one) = (k.global_index(), k.constant(1.0_f32));
        k.store(arrays.from, index, one);
    });
}

#[test]
fn blocks_start_with_nothing() {
    refused_at(&[Body(0)], Fault::NeverWritten { array: "shared".into() }, |k, arrays| {
        let (index, thread) = (k.global_index(), k.leaf(Leaf::Thread));
        let value = k.load(arrays.shared, thread);
        k.store(arrays.to, index, value);
    });
}

#[test]
fn copies_go_from_buffers_to_shared_memory() {
    let copy = |k: &mut RawKernel, array: ArrayId, from: ArrayId| {
        let index = k.leaf(Leaf::Thread);
        let value = k.load(from, index);
        k.kernel.body.push(Stmt::Copy { array, index, value });
    };
    let right = program(|k, Arrays { from, shared, .. }| {
        copy(k, shared, from);
        k.kernel.body.extend([Stmt::Commit, Stmt::Wait(0)]);
    });
    assert_eq!(verify(&right), Ok(()));
    let fault = |array: &str, ty| Fault::Copy { array: array.into(), ty };
    refused_at(&[Body(0)], fault("to", Type::F32), |k, Arrays { from, to, .. }| copy(k, to, from));
    refused_at(&[Body(0)], fault("shared", Type::F32), |k, Arrays { shared, .. }| copy(k, shared, shared));
    // The kernel writes what it copies.
    refused_at(&[Body(0)], fault("shared", Type::F32), |k, Arrays { to, shared, .. }| {
        copy(k, shared, to);
        let (thread, one) = (k.leaf(Leaf::Thread), k.constant(1.0_f32));
        k.store(to, thread, one);
    });
    refused_at(&[Body(0)], fault("shared", Type::F32), |k, Arrays { shared, .. }| {
        let (index, value) = (k.leaf(Leaf::Thread), k.constant(1.0_f32));
        k.kernel.body.push(Stmt::Copy { array: shared, index, value });
    });
    for stmt in [Stmt::Commit, Stmt::Wait(1)] {
        refused_at(&[Body(0), Body(0)], Fault::DivergentWait, |k, _| {
            let condition = some_threads(k);
            k.when(condition, |k| k.kernel.body.push(stmt.clone()));
        });
    }
}

#[test]
fn vectors_are_between_buffers_and_threads_and_aligned() {
    let load = |k: &mut RawKernel, (from, to): (ArrayId, ArrayId), factor: i32, width: u32| {
        let (thread, at) = (k.leaf(Leaf::Thread), k.constant(0));
        let factor = k.constant(factor);
        let index = k.op(Op::Binary(BinaryOp::Mul), &[thread, factor]);
        k.kernel.body.push(Stmt::Vector { to, at, from, index, width });
    };
    let own = |k: &mut RawKernel| k.array("own", Type::F32, Space::Thread, 8);
    let right = program(|k, Arrays { from, .. }| {
        let own = own(k);
        load(k, (from, own), 4, 4);
        load(k, (from, own), 6, 2);
    });
    assert_eq!(verify(&right), Ok(()));
    let misaligned = Fault::Misaligned { array: "from".into(), width: 4 };
    refused_at(&[Body(0)], misaligned, |k, Arrays { from, .. }| {
        let own = own(k);
        load(k, (from, own), 6, 4);
    });
    for (factor, width) in [(8, 8), (3, 3), (1, 1)] {
        refused_at(&[Body(0)], Fault::Vector { array: "from".into(), width }, |k, Arrays { from, .. }| {
            let own = own(k);
            load(k, (from, own), factor, width);
        });
    }
    let fault = Fault::Vector { array: "own".into(), width: 4 };
    refused_at(&[Body(0)], fault, |k, Arrays { shared, .. }| {
        let own = own(k);
        load(k, (shared, own), 4, 4);
    });
    refused_at(&[Body(0)], Fault::WritesInput { array: "from".into() }, |k, Arrays { from, .. }| {
        let own = own(k);
        let zero = k.constant(0);
        k.kernel.body.push(Stmt::Vector { to: from, at: zero, from: own, index: zero, width: 4 });
    });
    // The last elements of all vectors are out of bounds.
    let range = Fault::OutOfBounds { array: "own".into(), min: 0, max: 0, elements: 2 };
    refused_at(&[Body(0)], range, |k, Arrays { from, .. }| {
        let own = k.array("own", Type::F32, Space::Thread, 2);
        load(k, (from, own), 4, 4);
    });
}

#[test]
fn vectors_to_shared_memory_are_aligned_copies() {
    let copy = |k: &mut RawKernel, (to, from): (ArrayId, ArrayId), factors: [i32; 2]| {
        let thread = k.leaf(Leaf::Thread);
        let [at, index] = factors.map(|factor| {
            let factor = k.constant(factor);
            k.op(Op::Binary(BinaryOp::Mul), &[thread, factor])
        });
        k.kernel.body.push(Stmt::Vector { to, at, from, index, width: 4 });
    };
    let right = program(|k, Arrays { from, shared, .. }| {
        copy(k, (shared, from), [4, 8]);
        k.kernel.body.extend([Stmt::Commit, Stmt::Wait(0)]);
    });
    assert_eq!(verify(&right), Ok(()));
    for (factors, array) in [([2, 4], "shared"), ([4, 6], "from")] {
        let fault = Fault::Misaligned { array: array.into(), width: 4 };
        refused_at(&[Body(0)], fault, |k, Arrays { from, shared, .. }| copy(k, (shared, from), factors));
    }
    // The kernel writes what it copies.
    refused_at(&[Body(0)], Fault::Copy { array: "shared".into(), ty: Type::F32 }, |k, arrays| {
        copy(k, (arrays.shared, arrays.to), [4, 4]);
        let (thread, one) = (k.leaf(Leaf::Thread), k.constant(1.0_f32));
        k.store(arrays.to, thread, one);
    });
}

#[test]
fn atomics_are_for_words_that_threads_share() {
    for (ty, space) in [(Type::U8, Space::Shared), (Type::F32, Space::Thread)] {
        let fault = Fault::Atomic { array: "own".into(), ty, space };
        refused_at(&[Body(0)], fault, |k, _| {
            let own = k.array("own", ty, space, 4);
            let (zero, one) = (k.constant(0), k.constant(1_u8));
            let one = if ty == Type::U8 { one } else { k.op(Op::Cast(ty), &[one]) };
            atomic(k, own, zero, one);
        });
    }
}

#[test]
fn a_barrier_stands_between_atomics_and_plain_accesses() {
    let mixed = |array: &str| Fault::AtomicAndPlain { array: array.into() };
    let operands = |k: &mut RawKernel| (k.leaf(Leaf::Thread), k.constant(1.0_f32));
    refused_at(&[Body(1)], mixed("shared"), |k, arrays| {
        let (thread, one) = operands(k);
        k.store(arrays.shared, thread, one);
        atomic(k, arrays.shared, thread, one);
    });
    // The next iteration comes after the last.
    refused_at(&[Body(0), Body(0)], mixed("shared"), |k, arrays| {
        let (thread, one) = operands(k);
        k.for_loop("r", 2, false, |k, _| {
            k.store(arrays.shared, thread, one);
            barrier(k);
            atomic(k, arrays.shared, thread, one);
        });
    });
    // Some threads take one way while others take the other.
    refused_at(&[Body(0), Otherwise(0)], mixed("shared"), |k, arrays| {
        let (condition, (thread, one)) = (some_threads(k), operands(k));
        let body = k.nested(|k| atomic(k, arrays.shared, thread, one));
        let otherwise = k.nested(|k| k.store(arrays.shared, thread, one));
        k.kernel.body.push(Stmt::If { condition, body, otherwise });
    });
    // No barrier orders the blocks of a launch.
    refused_at(&[Body(2)], mixed("to"), |k, arrays| {
        let (thread, one) = operands(k);
        atomic(k, arrays.to, thread, one);
        barrier(k);
        k.store(arrays.to, thread, one);
    });
    // Some blocks take one way while others take the other.
    refused_at(&[Body(0), Otherwise(0)], mixed("to"), |k, arrays| {
        let (condition, (thread, one)) = (some_blocks(k), operands(k));
        let body = k.nested(|k| atomic(k, arrays.to, thread, one));
        let otherwise = k.nested(|k| k.store(arrays.to, thread, one));
        k.kernel.body.push(Stmt::If { condition, body, otherwise });
    });
    // All threads of a block take the same way here.
    let either = program(|k, arrays| {
        let (condition, (thread, one)) = (some_blocks(k), operands(k));
        let body = k.nested(|k| atomic(k, arrays.shared, thread, one));
        let otherwise = k.nested(|k| k.store(arrays.shared, thread, one));
        k.kernel.body.push(Stmt::If { condition, body, otherwise });
    });
    assert_eq!(verify(&either), Ok(()));
}

#[test]
fn messages_name_the_place() {
    let wrong = program(|k, _| {
        let condition = some_threads(k);
        k.kernel.body.push(Stmt::If { condition, body: Vec::new(), otherwise: vec![Stmt::Barrier] });
    });
    assert_eq!(
        found(&wrong).to_string(),
        "the kernel `k` is malformed at statement 0.else.0: a barrier is in divergent control flow; this is a bug \
         in Warploom"
    );
}
