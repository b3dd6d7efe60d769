//! Small programs that between them use all of the IR.

use warploom_codegen::ir::{ArrayId, AtomicOp, Launch, Leaf, Program, Space, Stmt, VECTOR_BYTES};
use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{Type, Value};

use crate::raw::{RawKernel, RawProgram};

/// A guarded copy.
pub fn copy(elements: usize) -> Program {
    let mut program = RawProgram::new("copy");
    let (input, out) =
        (program.input("input", Type::F32, elements), program.output("out", Type::F32, elements));
    let mut kernel = program.kernel("copy", [elements.div_ceil(128) as u32, 1, 1], 128);
    let (input, out) = (kernel.global(input), kernel.global(out));
    let index = kernel.global_index();
    let i = kernel.bind("i", index);
    let end = kernel.constant(elements as i32);
    let inside = kernel.binary(BinaryOp::Lt, i, end);
    kernel.when(inside, |kernel| {
        let value = kernel.load(input, i);
        kernel.store(out, i, value);
    });
    program.launch(kernel);
    program.program
}

/// Width and height of [`blur`]'s output.
pub const BLUR: (usize, usize) = (70, 9);

/// A 3 x 3 box blur: rows of sums in shared memory, a flat cooperative loop, a barrier. The input has a border
/// of one pixel.
pub fn blur() -> Program {
    let (width, height) = BLUR;
    let mut program = RawProgram::new("blur");
    let input = program.input("input", Type::U8, (width + 2) * (height + 2));
    let out = program.output("blur.y", Type::U8, width * height);
    let grid = [width.div_ceil(32) as u32, height.div_ceil(4) as u32, 1];
    let mut kernel = program.kernel("blur.y", grid, 128);
    let (input, out) = (kernel.global(input), kernel.global(out));
    let sums = kernel.array("blur.x", Type::U16, Space::Shared, 32 * 6);
    let [x0, y0] = [(0u8, 32), (1, 4)].map(|(dimension, tile)| {
        let block = kernel.leaf(Leaf::Block(dimension));
        let tile = kernel.constant(tile);
        kernel.mul(block, tile)
    });
    let (x0, y0) = (kernel.bind("x0", x0), kernel.bind("y0", y0));
    let thread = kernel.leaf(Leaf::Thread);
    let (row, threads) = (kernel.constant(32), kernel.constant(128));

    // 192 sums by 128 threads.
    kernel.for_loop("step", 2, false, |kernel, step| {
        let first = kernel.mul(step, threads);
        let flat = kernel.add(first, thread);
        let flat = kernel.bind("flat", flat);
        let x = kernel.binary(BinaryOp::Mod, flat, row);
        let x = kernel.add(x0, x);
        let x = kernel.bind("x", x);
        let y = kernel.binary(BinaryOp::Div, flat, row);
        let y = kernel.add(y0, y);
        let y = kernel.bind("y", y);
        let limits = [(flat, 192), (x, width), (y, height + 2)].map(|(value, limit)| {
            let limit = kernel.constant(limit as i32);
            kernel.binary(BinaryOp::Lt, value, limit)
        });
        let both = kernel.binary(BinaryOp::And, limits[1], limits[2]);
        let all = kernel.binary(BinaryOp::And, limits[0], both);
        kernel.when(all, |kernel| {
            let first = kernel.affine(y, width as i32 + 2, 0);
            let first = kernel.add(first, x);
            let taps = [0, 1, 2].map(|offset| {
                let offset = kernel.constant(offset);
                let index = kernel.add(first, offset);
                let pixel = kernel.load(input, index);
                kernel.op(Op::Cast(Type::U16), &[pixel])
            });
            let sum = kernel.add(taps[0], taps[1]);
            let sum = kernel.add(sum, taps[2]);
            kernel.store(sums, flat, sum);
        });
    });
    kernel.kernel.body.push(Stmt::Barrier);

    let column = kernel.binary(BinaryOp::Mod, thread, row);
    let x = kernel.add(x0, column);
    let x = kernel.bind("x", x);
    let line = kernel.binary(BinaryOp::Div, thread, row);
    let y = kernel.add(y0, line);
    let y = kernel.bind("y", y);
    let limits = [(x, width), (y, height)].map(|(value, limit)| {
        let limit = kernel.constant(limit as i32);
        kernel.binary(BinaryOp::Lt, value, limit)
    });
    let inside = kernel.binary(BinaryOp::And, limits[0], limits[1]);
    kernel.when(inside, |kernel| {
        let taps = [0, 32, 64].map(|offset| {
            let offset = kernel.constant(offset);
            let index = kernel.add(thread, offset);
            kernel.load(sums, index)
        });
        let sum = kernel.add(taps[0], taps[1]);
        let sum = kernel.add(sum, taps[2]);
        let nine = kernel.constant(9u16);
        let mean = kernel.binary(BinaryOp::Div, sum, nine);
        let mean = kernel.op(Op::Cast(Type::U8), &[mean]);
        let index = kernel.affine(y, width as i32, 0);
        let index = kernel.add(index, x);
        kernel.store(out, index, mean);
    });
    program.launch(kernel);
    program.program
}

/// Size of the matrices of [`product`].
pub const PRODUCT: usize = 32;

/// A matrix product: each thread accumulates a 2 x 2 tile in registers.
pub fn product() -> Program {
    let size = PRODUCT as i32;
    let elements = PRODUCT * PRODUCT;
    let mut program = RawProgram::new("product");
    let a = program.input("A", Type::F32, elements);
    let b = program.input("B", Type::F32, elements);
    let out = program.output("out", Type::F32, elements);
    let mut kernel = program.kernel("out", [2, 2, 1], 64);
    let [a, b, out] = [a, b, out].map(|buffer| kernel.global(buffer));
    let prod = kernel.array("prod", Type::F32, Space::Thread, 4);
    let thread = kernel.leaf(Leaf::Thread);
    let eight = kernel.constant(8);
    let corner = [(0u8, BinaryOp::Mod), (1, BinaryOp::Div)].map(|(dimension, op)| {
        let block = kernel.leaf(Leaf::Block(dimension));
        let block = kernel.affine(block, 16, 0);
        let lane = kernel.binary(op, thread, eight);
        let lane = kernel.affine(lane, 2, 0);
        kernel.add(block, lane)
    });
    let x0 = kernel.bind("x", corner[0]);
    let y0 = kernel.bind("y", corner[1]);
    let tile = |kernel: &mut RawKernel, each: &dyn Fn(&mut RawKernel, _, _, _)| {
        kernel.for_loop("y", 2, true, |kernel, y| {
            kernel.for_loop("x", 2, true, |kernel, x| {
                let slot = kernel.affine(y, 2, 0);
                let slot = kernel.add(slot, x);
                let (x, y) = (kernel.add(x0, x), kernel.add(y0, y));
                each(kernel, slot, x, y);
            });
        });
    };
    tile(&mut kernel, &|kernel, slot, _, _| {
        let zero = kernel.constant(0.0f32);
        kernel.store(prod, slot, zero);
    });
    kernel.for_loop("r", PRODUCT as u32, false, |kernel, r| {
        tile(kernel, &|kernel, slot, x, y| {
            let (row, column) = (kernel.affine(y, size, 0), kernel.affine(r, size, 0));
            let (left, right) = (kernel.add(row, r), kernel.add(column, x));
            let (left, right) = (kernel.load(a, left), kernel.load(b, right));
            let term = kernel.mul(left, right);
            let old = kernel.load(prod, slot);
            let sum = kernel.add(old, term);
            kernel.store(prod, slot, sum);
        });
    });
    tile(&mut kernel, &|kernel, slot, x, y| {
        let row = kernel.affine(y, size, 0);
        let index = kernel.add(row, x);
        let value = kernel.load(prod, slot);
        kernel.store(out, index, value);
    });
    program.launch(kernel);
    program.program
}

/// Elements of [`rounds`]'s buffers.
pub const ROUNDS: usize = 256;

/// How often [`rounds`] runs its loops.
pub const ROUND_COUNTS: (u32, u32) = (2, 3);

/// Launches in loops, scalars, more shared memory than a kernel can declare, and names that clash with C++.
pub fn rounds() -> Program {
    let mut program = RawProgram::new("rounds \\\n of launches");
    let state = program.output("float", Type::I32, ROUNDS);
    let (scale, flag) = (program.param(Type::F32), program.param(Type::Bool));

    let mut start = program.kernel("exp", [2, 1, 1], 128);
    let array = start.global(state);
    let i = start.global_index();
    let seven = start.constant(7);
    start.store(array, i, seven);
    let start = program.program.kernels.push(start.kernel);

    let mut round = program.kernel("exp", [2, 1, 1], 128);
    let array = round.global(state);
    let big = round.array("big", Type::F32, Space::Shared, 16_000);
    let bytes = round.array("bytes", Type::U8, Space::Shared, 130);
    let i = round.global_index();
    let thread = round.leaf(Leaf::Thread);
    let far = round.affine(thread, 125, 0);
    let (scale, flag) = (round.typed_leaf(scale, Type::F32), round.typed_leaf(flag, Type::Bool));
    round.store(big, far, scale);
    let small = round.op(Op::Cast(Type::U8), &[thread]);
    round.store(bytes, thread, small);
    round.kernel.body.push(Stmt::Barrier);
    let (outer, inner) = (round.leaf(Leaf::Iteration(0)), round.leaf(Leaf::Iteration(1)));
    let old = round.load(array, i);
    // old * 31 + outer * 5 + inner, wrapping, plus what the other thread wrote.
    let hash = round.affine(old, 31_000_003, 0);
    let step = round.affine(outer, 5, 0);
    let step = round.add(step, inner);
    let sum = round.add(hash, step);
    let last = round.constant(127);
    let mirror = round.binary(BinaryOp::Sub, last, thread);
    let float = round.affine(mirror, 125, 0);
    let float = round.load(big, float);
    let float = round.op(Op::Cast(Type::I32), &[float]);
    let byte = round.load(bytes, mirror);
    let byte = round.op(Op::Cast(Type::I32), &[byte]);
    let extra = round.op(Op::Select, &[flag, float, byte]);
    let sum = round.add(sum, extra);
    round.store(array, i, sum);
    let round = program.program.kernels.push(round.kernel);

    let (outer, inner) = ROUND_COUNTS;
    let nest = Launch::Loop { count: inner, limit: None, body: vec![Launch::Kernel(round)] };
    program.program.launches =
        vec![Launch::Kernel(start), Launch::Loop { count: outer, limit: None, body: vec![nest] }];
    program.program
}

/// Every type of 4 or 8 bytes, rotated by one lane in each warp.
pub fn shuffles() -> Program {
    let mut program = RawProgram::new("shuffles");
    let types = Type::ALL.into_iter().filter(|ty| ty.bytes() >= 4);
    let buffers: Vec<_> = types
        .map(|ty| {
            (program.input(&format!("in.{ty}"), ty, 128), program.output(&format!("out.{ty}"), ty, 128))
        })
        .collect();
    let mut kernel = program.kernel("rotate", [2, 1, 1], 64);
    let (i, thread) = (kernel.global_index(), kernel.leaf(Leaf::Thread));
    let (one, lanes) = (kernel.constant(1), kernel.constant(32));
    let next = kernel.add(thread, one);
    let lane = kernel.binary(BinaryOp::Mod, next, lanes);
    for (from, to) in buffers {
        let (from, to, var) = (kernel.global(from), kernel.global(to), kernel.var("next"));
        let value = kernel.load(from, i);
        kernel.kernel.body.push(Stmt::Shuffle { var, value, lane });
        let next = kernel.typed_leaf(Leaf::Var(var), kernel.kernel.arrays[from].ty);
        kernel.store(to, i, next);
    }
    program.launch(kernel);
    program.program
}

/// Threads of each of the two blocks of [`copies`].
pub const COPIES: usize = 64;

/// The types of which so many elements can be copied at once.
pub fn copied_types(width: u32) -> Vec<Type> {
    let bytes = |ty: &Type| ty.bytes() * width as usize;
    Type::ALL.into_iter().filter(|ty| ty.bytes() >= 4 && bytes(ty) <= VECTOR_BYTES).collect()
}

/// Every type of 4 or 8 bytes, turned around in each block through shared memory, by asynchronous copies of so many elements.
pub fn copies(width: u32) -> Program {
    let mut program = RawProgram::new("copies");
    let count = 2 * COPIES;
    let buffers: Vec<_> = copied_types(width)
        .into_iter()
        .map(|ty| {
            (program.input(&format!("in.{ty}"), ty, count), program.output(&format!("out.{ty}"), ty, count))
        })
        .collect();
    let mut kernel = program.kernel("turn", [2, 1, 1], COPIES as u32);
    let (i, thread, last) =
        (kernel.global_index(), kernel.leaf(Leaf::Thread), kernel.constant(COPIES as i32 - 1));
    let other = kernel.binary(BinaryOp::Sub, last, thread);
    let mut stores = Vec::new();
    for (from, to) in buffers {
        let (from, to) = (kernel.global(from), kernel.global(to));
        let ty = kernel.kernel.arrays[from].ty;
        let tile = kernel.array(&format!("tile.{ty}"), ty, Space::Shared, COPIES);
        match width {
            1 => {
                let value = kernel.load(from, i);
                kernel.kernel.body.push(Stmt::Copy { array: tile, index: thread, value });
            }
            _ => copied_by_some(&mut kernel, tile, from, width),
        }
        kernel.kernel.body.push(Stmt::Commit);
        stores.push((to, kernel.load(tile, other)));
    }
    kernel.kernel.body.extend([Stmt::Wait(0), Stmt::Barrier]);
    stores.into_iter().for_each(|(to, value)| kernel.store(to, i, value));
    program.launch(kernel);
    program.program
}

/// As many threads as are needed copy the elements of a block.
fn copied_by_some(kernel: &mut RawKernel, to: ArrayId, from: ArrayId, width: u32) {
    let (thread, block) = (kernel.leaf(Leaf::Thread), kernel.leaf(Leaf::Block(0)));
    let [used, factor, elements] =
        [COPIES as i32 / width as i32, width as i32, COPIES as i32].map(|number| kernel.constant(number));
    let is_used = kernel.binary(BinaryOp::Lt, thread, used);
    let (at, first) = (kernel.mul(thread, factor), kernel.mul(block, elements));
    let index = kernel.add(first, at);
    kernel.when(is_used, |kernel| kernel.kernel.body.push(Stmt::Vector { to, at, from, index, width }));
}

/// Threads of [`atomics`].
pub const ATOMICS: usize = 512;

/// Every atomic on every type it is defined for.
pub fn all_atomics() -> Vec<(AtomicOp, Type)> {
    let types = atomic_types().into_iter();
    let ops = |ty: Type| AtomicOp::ALL.into_iter().filter(move |op| !ty.is_float() || op.works_on(ty));
    types.flat_map(|ty| ops(ty).map(move |op| (op, ty))).collect()
}

/// The types that some atomic is defined for.
pub fn atomic_types() -> Vec<Type> {
    Type::ALL.into_iter().filter(|ty| *ty != Type::Bool && !ty.is_wide() && !ty.is_half()).collect()
}

/// Some atomics, each on an element of its own, combined by all threads.
pub fn atomics(ops: &[(AtomicOp, Type)]) -> Program {
    let mut program = RawProgram::new("atomics");
    let types = atomic_types();
    let inputs: Vec<_> = types.iter().map(|ty| program.input(&format!("in.{ty}"), *ty, ATOMICS)).collect();
    let outs: Vec<_> =
        types.iter().map(|ty| program.output(&format!("out.{ty}"), *ty, AtomicOp::ALL.len())).collect();
    let mut kernel = program.kernel("combine", [ATOMICS as u32 / 128, 1, 1], 128);
    let inputs: Vec<_> = inputs.into_iter().map(|buffer| kernel.global(buffer)).collect();
    let outs: Vec<_> = outs.into_iter().map(|buffer| kernel.global(buffer)).collect();
    let i = kernel.global_index();
    for &(op, ty) in ops {
        let place = types.iter().position(|other| *other == ty).expect("a type that has atomics");
        let value = kernel.load(inputs[place], i);
        let index = kernel.constant(op as i32);
        kernel.kernel.body.push(Stmt::Atomic { op, array: outs[place], index, value });
    }
    program.launch(kernel);
    program.program
}

/// A case of [`operations`]: operands by their types.
#[derive(Clone)]
pub struct Case {
    pub op: Op,
    pub operands: Vec<Type>,
}

/// Everything the language can compute on one type, or into others from it.
pub fn cases(ty: Type) -> Vec<Case> {
    let one = UnaryOp::ALL.iter().map(|op| Op::Unary(*op));
    let casts =
        Type::ALL.into_iter().flat_map(|to| [Op::Cast(to), Op::SaturatingCast(to), Op::Reinterpret(to)]);
    let unary = one.chain(casts).map(|op| Case { op, operands: vec![ty] });
    let binary = BinaryOp::ALL.iter().map(|op| Case { op: Op::Binary(*op), operands: vec![ty, ty] });
    let select = Case { op: Op::Select, operands: vec![Type::Bool, ty, ty] };
    let all = unary.chain(binary).chain([select]);
    all.filter(|case| case.op.result_type(&case.operands).is_ok()).collect()
}

/// All [`cases`] of a type on `count` pairs of values: the bits of every result, case after case.
pub fn operations(ty: Type, count: usize) -> Program {
    of_cases(ty, &cases(ty), count)
}

/// Some [`cases`] of a type.
pub fn of_cases(ty: Type, cases: &[Case], count: usize) -> Program {
    let mut program = RawProgram::new(&format!("operations on {ty}"));
    let (a, b) = (program.input("a", ty, count), program.input("b", ty, count));
    let bits = program.output("bits", Type::U64, count * cases.len());
    let mut kernel = program.kernel(ty.name(), [count.div_ceil(64) as u32, 1, 1], 64);
    let [a, b, bits] = [a, b, bits].map(|buffer| kernel.global(buffer));
    let index = kernel.global_index();
    let i = kernel.bind("i", index);
    let end = kernel.constant(count as i32);
    let inside = kernel.binary(BinaryOp::Lt, i, end);
    kernel.when(inside, |kernel| {
        let (a, b) = (kernel.load(a, i), kernel.load(b, i));
        let (a, b) = (kernel.bind("x", a), kernel.bind("y", b));
        let condition = kernel.binary(BinaryOp::Ne, a, b);
        for (number, case) in cases.iter().enumerate() {
            let operands: Vec<_> = match case.operands.len() {
                1 => vec![a],
                2 => vec![a, b],
                _ => vec![condition, a, b],
            };
            let result = kernel.op(case.op, &operands);
            let word = bits_of(kernel, result);
            let place = kernel.constant((number * count) as i32);
            let place = kernel.add(i, place);
            kernel.store(bits, place, word);
        }
    });
    program.launch(kernel);
    program.program
}

/// The extended bit pattern of a value.
fn bits_of(kernel: &mut RawKernel, value: warploom_codegen::ir::NodeId) -> warploom_codegen::ir::NodeId {
    let conversion = match kernel.kernel.exprs[value].ty {
        Type::F32 => Op::Reinterpret(Type::U32),
        Type::F64 => Op::Reinterpret(Type::U64),
        Type::F16 | Type::BF16 => Op::Reinterpret(Type::U16),
        Type::I64 => Op::Cast(Type::U64),
        Type::U64 => return value,
        _ => Op::Cast(Type::U32),
    };
    let bits = kernel.op(conversion, &[value]);
    if kernel.kernel.exprs[bits].ty == Type::U64 { bits } else { kernel.op(Op::Cast(Type::U64), &[bits]) }
}

/// Threads of [`indices`].
pub const INDICES: u32 = 64;

/// The operations of index arithmetic with a constant on the right.
pub fn index_cases() -> Vec<(BinaryOp, i32)> {
    use BinaryOp::*;
    let ops = [Add, Sub, Mul, Div, Mod, Min, Max, Absd, Average, And, Or, Xor, Shl, Shr, Lt, Le];
    let constants = [-8, -3, -1, 0, 1, 2, 3, 8, 100, i32::MAX, i32::MIN];
    ops.into_iter().flat_map(|op| constants.map(|constant| (op, constant))).collect()
}

/// All [`index_cases`] on `thread` and on `thread - 30`: operands of small, known range.
pub fn indices() -> Program {
    let mut program = RawProgram::new("indices");
    let cases = index_cases();
    let bits = program.output("bits", Type::U64, cases.len() * 2 * INDICES as usize);
    let mut kernel = program.kernel("indices", [1, 1, 1], INDICES);
    let bits = kernel.global(bits);
    let thread = kernel.leaf(Leaf::Thread);
    let shift = kernel.constant(-30);
    let shifted = kernel.add(thread, shift);
    let mut row = 0;
    for (op, constant) in cases {
        for operand in [thread, shifted] {
            let constant = kernel.constant(constant);
            let result = kernel.binary(op, operand, constant);
            let word = bits_of(&mut kernel, result);
            let place = kernel.constant(row * INDICES as i32);
            let place = kernel.add(thread, place);
            kernel.store(bits, place, word);
            row += 1;
        }
    }
    program.launch(kernel);
    program.program
}

/// Operations of integers with a constant on the right, or else on the left.
pub fn constant_cases(ty: Type) -> Vec<(BinaryOp, Value, bool)> {
    use BinaryOp::*;
    let ops = [Add, Sub, Mul, Div, Mod, Min, Max, Absd, Average, And, Or, Xor, Shl, Shr, Eq, Lt, Le];
    let (min, max) = ty.int_range().expect("an integer type");
    let constants = [0, 1, -1, 2, -3, 7, 8, 100, min, max];
    let values: Vec<Value> = constants.iter().filter_map(|int| Value::from_int(ty, *int)).collect();
    let each = ops.into_iter().flat_map(|op| values.clone().into_iter().map(move |value| (op, value)));
    each.flat_map(|(op, value)| [true, false].map(|right| (op, value, right))).collect()
}

/// All [`constant_cases`] of a type on `count` values: the bits of every result, case after case.
pub fn constants(ty: Type, count: usize) -> Program {
    let mut program = RawProgram::new(&format!("constants of {ty}"));
    let cases = constant_cases(ty);
    let a = program.input("a", ty, count);
    let bits = program.output("bits", Type::U64, count * cases.len());
    let mut kernel = program.kernel(ty.name(), [1, 1, 1], count as u32);
    let (a, bits) = (kernel.global(a), kernel.global(bits));
    let i = kernel.leaf(Leaf::Thread);
    let a = kernel.load(a, i);
    let a = kernel.bind("x", a);
    for (number, (op, value, right)) in cases.into_iter().enumerate() {
        let constant = kernel.constant(value);
        let result = if right { kernel.binary(op, a, constant) } else { kernel.binary(op, constant, a) };
        let word = bits_of(&mut kernel, result);
        let place = kernel.constant((number * count) as i32);
        let place = kernel.add(i, place);
        kernel.store(bits, place, word);
    }
    program.launch(kernel);
    program.program
}

/// A long sum in one expression, and a deep chain of `max`.
pub fn long(terms: usize) -> Program {
    let mut program = RawProgram::new("long");
    let input = program.input("input", Type::F32, terms + 64);
    let out = program.output("out", Type::F32, 64 * 2);
    let mut kernel = program.kernel("long", [1, 1, 1], 64);
    let (input, out) = (kernel.global(input), kernel.global(out));
    let thread = kernel.leaf(Leaf::Thread);
    let offset = kernel.constant(64);
    let second = kernel.add(thread, offset);
    for (place, op) in [(thread, BinaryOp::Add), (second, BinaryOp::Max)] {
        let mut value = kernel.constant(Value::from(0.0f32));
        for term in 0..terms {
            let term = kernel.constant(term as i32);
            let index = kernel.add(thread, term);
            let term = kernel.load(input, index);
            value = kernel.binary(op, value, term);
        }
        kernel.store(out, place, value);
    }
    program.launch(kernel);
    program.program
}

/// Names that C++ and CUDA have already, or that no identifier can be.
pub fn names() -> Program {
    let words = [
        "float",
        "int",
        "min",
        "max",
        "exp",
        "y0",
        "gamma",
        "threadIdx",
        "thread",
        "params",
        "float4",
        "linux",
        "operator",
        "t0",
        "i",
        "x.y",
        "x_y",
        "x:y",
        "3d",
        "__ldg",
        "wl_exp",
        "äöü",
        "",
        "assert",
        "NULL",
    ];
    let mut program = RawProgram::new("names");
    let buffers: Vec<_> = words.iter().map(|word| program.output(word, Type::F32, 64)).collect();
    for word in words {
        let mut kernel = program.kernel(word, [1, 1, 1], 64);
        let arrays: Vec<_> = buffers.iter().map(|buffer| kernel.global(*buffer)).collect();
        let thread = kernel.leaf(Leaf::Thread);
        let one = kernel.constant(1.0f32);
        for array in &arrays[1..] {
            let value = kernel.load(arrays[0], thread);
            let value = kernel.bind(word, value);
            let value = kernel.op(Op::Unary(UnaryOp::Exp), &[value]);
            let value = kernel.binary(BinaryOp::Min, value, one);
            kernel.store(*array, thread, value);
        }
        program.launch(kernel);
    }
    program.program
}
