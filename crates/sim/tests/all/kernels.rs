//! Small kernels that are right.

use warploom_codegen::ir::*;
use warploom_interp::buffer::Buffer;
use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{Id, InputId, ParamId, Range, Region, Type, Value};
use warploom_sim::{Memory, SimError, Simulation};

use crate::support::*;

fn ramp(count: usize) -> Buffer {
    buffer((0..count).map(|i| i as f32).collect::<Vec<f32>>())
}

/// Copies `count` elements with blocks of 64 threads and a guard.
fn copy(count: usize) -> Program {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::F32, count);
    let to = maker.output("to", Type::F32, count);
    maker.kernel("copy", [count.div_ceil(64) as u32, 1, 1], 64, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let (i, end) = (k.position(), k.int(count as i32));
        let (inside, value) = (k.lt(i, end), k.load(from, i));
        vec![when(inside, vec![store(to, i, value)])]
    });
    maker.program
}

#[test]
fn copies() {
    for count in [1, 63, 64, 65, 1000] {
        let outcome = run(&copy(count), &[&ramp(count)]).unwrap();
        assert_eq!(outcome.outputs, [ramp(count)]);
    }
}

/// The same with indices of 64 bits, the last row first.
#[test]
fn copies_rows_by_offsets() {
    let mut maker = Maker::new();
    let (from, to) = (maker.input("from", Type::F32, 60), maker.output("to", Type::F32, 60));
    maker.kernel("rows", [6, 1, 1], 10, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let (row, x) = (k.block(0), k.thread());
        let (above, below) = (k.offset(&[(x, 1), (row, 10)], 0), k.offset(&[(x, 1), (row, -10)], 50));
        let value = k.load(from, above);
        vec![store(to, below, value)]
    });
    let outcome = run(&maker.program, &[&ramp(60)]).unwrap();
    let rows: Vec<f32> = (0..60).map(|i| ((5 - i / 10) * 10 + i % 10) as f32).collect();
    assert_eq!(outcome.outputs, [buffer(rows)]);
}

#[test]
fn reverses_through_shared_memory() {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::U8, 256);
    let to = maker.output("to", Type::U8, 256);
    maker.kernel("reverse", [4, 1, 1], 64, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let tile = k.shared("tile", Type::U8, 64);
        let (i, thread, last) = (k.position(), k.thread(), k.int(63));
        let (value, mirrored) = (k.load(from, i), k.sub(last, thread));
        let back = k.load(tile, mirrored);
        vec![store(tile, thread, value), Stmt::Barrier, store(to, i, back)]
    });
    let samples: Vec<u8> = (0..=255).collect();
    let expected: Vec<u8> = samples.chunks(64).flat_map(|tile| tile.iter().rev().copied()).collect();
    let outcome = run(&maker.program, &[&buffer(samples)]).unwrap();
    assert_eq!(outcome.outputs[0].as_slice::<u8>(), Some(&expected[..]));
    let counters = outcome.counters.kernel("reverse").unwrap();
    assert_eq!((counters.barriers, counters.blocks, counters.threads), (4, 4, 256));
}

#[test]
fn reduces_with_atomics() {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::I32, 1000);
    let sums = maker.output("sums", Type::I32, 3);
    maker.kernel("clear", [1, 1, 1], 32, |k| {
        let sums = k.global(sums);
        let (thread, three, zero) = (k.thread(), k.int(3), k.int(0));
        let inside = k.lt(thread, three);
        vec![when(inside, vec![store(sums, thread, zero)])]
    });
    maker.kernel("sum", [10, 1, 1], 100, |k| {
        let (from, sums) = (k.global(from), k.global(sums));
        let partial = k.shared("partial", Type::I32, 1);
        let (i, thread) = (k.position(), k.thread());
        let (zero, one, two) = (k.int(0), k.int(1), k.int(2));
        let (value, first) = (k.load(from, i), k.lt(thread, one));
        let total = k.load(partial, zero);
        vec![
            when(first, vec![store(partial, zero, zero)]),
            Stmt::Barrier,
            atomic(AtomicOp::Add, partial, zero, value),
            atomic(AtomicOp::Min, sums, one, value),
            atomic(AtomicOp::Max, sums, two, value),
            Stmt::Barrier,
            when(first, vec![atomic(AtomicOp::Add, sums, zero, total)]),
        ]
    });
    let samples: Vec<i32> = (0..1000).map(|i| i * 7919 % 1013 - 500).collect();
    let expected = [samples.iter().sum(), *samples.iter().min().unwrap(), *samples.iter().max().unwrap()];
    let outcome = run(&maker.program, &[&buffer(samples)]).unwrap();
    assert_eq!(outcome.outputs[0].as_slice::<i32>(), Some(&expected[..]));
    let counters = outcome.counters.kernel("sum").unwrap();
    assert_eq!(counters.atomics(Memory::Shared).elements, 1000);
    assert_eq!(counters.atomics(Memory::Global).elements, 2010);
}

/// Transposes an image of `width` x `height` in tiles of 16 x 16, rows of the tile `pitch` apart.
fn transpose(width: i32, height: i32, pitch: i32) -> Program {
    let mut maker = Maker::new();
    let pixels = (width * height) as usize;
    let from = maker.input("from", Type::F32, pixels);
    let to = maker.output("to", Type::F32, pixels);
    let grid = [(width as u32).div_ceil(16), (height as u32).div_ceil(16), 1];
    maker.kernel("transpose", grid, 256, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let tile = k.shared("tile", Type::F32, (16 * pitch) as usize);
        let [tx, ty, x0, y0] = ["tx", "ty", "x0", "y0"].map(|name| k.var(name));
        let (thread, size) = (k.thread(), k.int(16));
        let (column, row) = (k.rem(thread, size), k.div(thread, size));
        let (left, top) = (k.block(0), k.block(1));
        let (left, top) = (k.mul(left, size), k.mul(top, size));
        let (width, height, pitch) = (k.int(width), k.int(height), k.int(pitch));
        let mut body =
            vec![Stmt::Let(tx, column), Stmt::Let(ty, row), Stmt::Let(x0, left), Stmt::Let(y0, top)];
        let [tx, ty, x0, y0] = [tx, ty, x0, y0].map(|var| k.use_var(var, Type::I32));

        let (x, y) = (k.add(x0, tx), k.add(y0, ty));
        let (inside_x, inside_y) = (k.lt(x, width), k.lt(y, height));
        let inside = k.binary(BinaryOp::And, inside_x, inside_y);
        let start = k.mul(y, width);
        let index = k.add(start, x);
        let pixel = k.load(from, index);
        let start = k.mul(ty, pitch);
        let place = k.add(start, tx);
        body.push(when(inside, vec![store(tile, place, pixel)]));
        body.push(Stmt::Barrier);

        let (x, y) = (k.add(x0, ty), k.add(y0, tx));
        let (inside_x, inside_y) = (k.lt(x, width), k.lt(y, height));
        let inside = k.binary(BinaryOp::And, inside_x, inside_y);
        let start = k.mul(x, height);
        let index = k.add(start, y);
        let start = k.mul(tx, pitch);
        let place = k.add(start, ty);
        let pixel = k.load(tile, place);
        body.push(when(inside, vec![store(to, index, pixel)]));
        body
    });
    maker.program
}

#[test]
fn transposes_in_tiles() {
    for (width, height) in [(32, 16), (33, 50), (1, 7)] {
        let image = ramp((width * height) as usize);
        let outcome = run(&transpose(width, height, 17), &[&image]).unwrap();
        let at = |x: i32, y: i32| (y * width + x) as f32;
        let expected: Vec<f32> = (0..width).flat_map(|x| (0..height).map(move |y| at(x, y))).collect();
        assert_eq!(outcome.outputs[0].as_slice::<f32>(), Some(&expected[..]));
    }
    // Columns of the tile lie in two banks; padding spreads them, but for the two rows that a warp holds,
    // which meet in one bank, in stores and in loads.
    let conflicts = |pitch: i32| {
        let outcome = run(&transpose(64, 64, pitch), &[&ramp(4096)]).unwrap();
        outcome.counters.kernel("transpose").unwrap().bank_conflicts()
    };
    let warps = 16 * 8;
    assert_eq!(conflicts(16), 7 * warps);
    assert_eq!(conflicts(17), 2 * warps);
}

#[test]
fn loops_around_launches_params_and_layouts() {
    // out(x, y) = scale * (x + 10 y), a row a launch, stored row by row of y.
    let mut maker = Maker::new();
    let out = maker.output("out", Type::F32, 12);
    let scale = maker.param(Type::F32);
    let decl = &mut maker.program.buffers[out];
    decl.region = Region(vec![Range::new(-1, 4), Range::new(5, 3)]);
    decl.strides = vec![3, 1];
    let row = maker.kernel_only("row", [1, 1, 1], 4, |k| {
        let out = k.global(out);
        let (iteration, thread) = (k.node(NodeKind::Leaf(Leaf::Iteration(0)), Type::I32, &[]), k.thread());
        let scale = k.node(NodeKind::Leaf(Leaf::Param(scale)), Type::F32, &[]);
        let (three, ten, one, five) = (k.int(3), k.int(10), k.int(1), k.int(5));
        let column = k.mul(thread, three);
        let index = k.add(column, iteration);
        let (x, y) = (k.sub(thread, one), k.add(iteration, five));
        let tens = k.mul(y, ten);
        let sum = k.add(x, tens);
        let sum = k.op(Op::Cast(Type::F32), &[sum]);
        let value = k.mul(scale, sum);
        vec![store(out, index, value)]
    });
    maker.program.launches = vec![Launch::Loop { count: 3, limit: None, body: vec![Launch::Kernel(row)] }];

    let device = device();
    let simulation = Simulation::new(&maker.program, &device);
    assert_eq!(simulation.run().unwrap_err(), SimError::MissingParam { param: 0 });
    let wrong = simulation.clone().param(ParamId::new(0), 1_i32).run().unwrap_err();
    assert_eq!(wrong, SimError::ParamType { param: 0, expected: Type::F32, found: Type::I32 });

    let outcome = simulation.param(ParamId::new(0), 0.5_f32).run().unwrap();
    let output = &outcome.outputs[0];
    assert_eq!((output.order(), output.get(&[2, 7])), (&[1, 0][..], Some(Value::from(36.0_f32))));
    assert_eq!(output.get(&[-1, 5]), Some(Value::from(24.5_f32)));
    assert_eq!(outcome.counters.launches.len(), 3);
    let row = outcome.counters.kernel("row").unwrap();
    assert_eq!((row.launches, row.threads, row.array("out").unwrap().stores.elements), (3, 12, 12));
}

#[test]
fn dimensions_of_one_point_keep_their_order() {
    for (extents, strides) in [([6, 1], [1, 6]), ([1, 6], [1, 1]), ([1, 1], [1, 1])] {
        let region = Region::of_extents(&extents);
        let points = extents[0] * extents[1];
        let mut maker = Maker::new();
        let out = maker.output("out", Type::I32, points as usize);
        maker.program.buffers[out].region = region.clone();
        maker.program.buffers[out].strides = strides.to_vec();
        maker.kernel("count", [1, 1, 1], points as u32, |k| {
            let (out, thread) = (k.global(out), k.thread());
            vec![store(out, thread, thread)]
        });
        let device = device();
        let outcome = Simulation::new(&maker.program, &device).run().unwrap();
        assert_eq!(outcome.outputs[0].order(), [0, 1], "{extents:?}");
        assert_eq!(outcome.outputs[0], Buffer::from_fn(region, |at| (at[0] + at[1]) as i32).unwrap());
    }
}

#[test]
fn inputs_are_read_in_any_order() {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::I16, 6);
    let to = maker.output("to", Type::I16, 6);
    maker.program.buffers[from].region = Region::of_extents(&[3, 2]);
    maker.program.buffers[from].strides = vec![1, 3];
    maker.kernel("copy", [1, 1, 1], 6, |k| {
        let (from, to, thread) = (k.global(from), k.global(to), k.thread());
        let value = k.load(from, thread);
        vec![store(to, thread, value)]
    });
    let image = Buffer::from_fn(Region::of_extents(&[3, 2]), |at| (at[0] - 10 * at[1]) as i16).unwrap();
    let expected = [0, 1, 2, -10, -9, -8_i16];
    for order in [[0, 1], [1, 0]] {
        let image = image.reordered(&order).unwrap();
        let device = device();
        let outcome = Simulation::new(&maker.program, &device).input("from", &image).run().unwrap();
        assert_eq!(outcome.outputs[0].as_slice::<i16>(), Some(&expected[..]));
    }
    let device = device();
    let other = buffer(vec![0_i16; 6]);
    let simulation = Simulation::new(&maker.program, &device);
    assert_eq!(simulation.run().unwrap_err(), SimError::MissingInput { input: "from".into() });
    let error = simulation.clone().input(InputId::new(0), &other).run().unwrap_err();
    assert!(matches!(error, SimError::InputRegion { .. }), "{error}");
    let other = buffer(vec![0_u8; 6]);
    let error = simulation.input("from", &other).run().unwrap_err();
    assert!(matches!(error, SimError::InputType { .. }), "{error}");
}

#[test]
fn private_arrays_belong_to_their_threads() {
    // Each thread keeps three numbers, written in a loop, and sums those it wrote.
    let mut maker = Maker::new();
    let to = maker.output("to", Type::I32, 80);
    maker.kernel("private", [2, 1, 1], 40, |k| {
        let to = k.global(to);
        let own = k.private("own", Type::I32, 3);
        let (r, sum) = (k.var("r"), k.var("sum"));
        let (i, thread) = (k.position(), k.thread());
        let at = k.use_var(r, Type::I32);
        let value = k.mul(thread, at);
        let (three, zero, one, two) = (k.int(3), k.int(0), k.int(1), k.int(2));
        let chosen = k.rem(thread, three);
        let (a, b) = (k.load(own, chosen), k.load(own, two));
        let both = k.add(a, b);
        let total = k.use_var(sum, Type::I32);
        let even = k.rem(thread, two);
        let even = k.lt(even, one);
        vec![
            repeat(r, 3, vec![store(own, at, value)]),
            when(even, vec![store(own, chosen, zero)]),
            Stmt::Let(sum, both),
            store(to, i, total),
        ]
    });
    let outcome = run(&maker.program, &[]).unwrap();
    let expected: Vec<i32> = (0..80)
        .map(|i| {
            let thread = i % 40;
            let mut own = [0, thread, 2 * thread];
            if thread % 2 == 0 {
                own[(thread % 3) as usize] = 0;
            }
            own[(thread % 3) as usize] + own[2]
        })
        .collect();
    assert_eq!(outcome.outputs[0].as_slice::<i32>(), Some(&expected[..]));
    let own = outcome.counters.kernels()[0].array("own").unwrap().clone();
    assert_eq!((own.memory, own.stores.elements, own.loads.elements), (Memory::Thread, 80 * 3 + 40, 160));
}

#[test]
fn seeds_decide_nothing_but_the_order() {
    let program = copy(1000);
    let a = run_seeded(&program, &[&ramp(1000)], 7).unwrap();
    assert_eq!(a, run_seeded(&program, &[&ramp(1000)], 7).unwrap());
    assert_eq!(a, run_seeded(&program, &[&ramp(1000)], 8).unwrap());

    // Floating-point atomics do depend on the order; one seed always gives one result.
    let mut maker = Maker::new();
    let from = maker.input("from", Type::F32, 4096);
    let sum = maker.output("sum", Type::F32, 1);
    maker.kernel("clear", [1, 1, 1], 1, |k| {
        let (sum, zero, nothing) = (k.global(sum), k.int(0), k.constant(0.0_f32));
        vec![store(sum, zero, nothing)]
    });
    maker.kernel("sum", [64, 1, 1], 64, |k| {
        let (from, sum, zero) = (k.global(from), k.global(sum), k.int(0));
        let i = k.position();
        let value = k.load(from, i);
        let value = k.op(Op::Unary(UnaryOp::Exp), &[value]);
        vec![atomic(AtomicOp::Add, sum, zero, value)]
    });
    let samples = buffer((0..4096).map(|i| (i % 97) as f32 * 0.1).collect::<Vec<f32>>());
    let bits = |seed: u64| run_seeded(&maker.program, &[&samples], seed).unwrap().outputs[0].clone();
    assert_eq!(bits(3), bits(3));
    assert!((1..20).any(|seed| bits(seed) != bits(0)));
}

#[test]
fn messages_name_the_place() {
    let mut program = copy(100);
    let kernel = KernelId::new(0);
    if let Stmt::If { body, .. } = program.kernels[kernel].body[0].clone() {
        program.kernels[kernel].body = body;
    }
    let error = run_seeded(&program, &[&ramp(100)], 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "out of bounds: in the kernel `copy`, statement 0 (store to), thread 36 of block [1, 0, 0] reads \
         element 100 of `from`, which has 100 elements"
    );
}
