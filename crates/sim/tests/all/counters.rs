//! Counts with known answers.

use warploom_codegen::ir::*;
use warploom_interp::buffer::Element;
use warploom_lang::op::{BinaryOp, Op, UnaryOp};
use warploom_lang::{Scalar, Type};
use warploom_sim::{Counters, KernelCounters, Memory, Operations, Traffic};

use crate::support::*;

/// What one warp does that copies `from(stride * thread + offset)` to an output.
fn loads<T: Element + Scalar>(stride: i32, offset: i32, threads: u32) -> Traffic {
    let mut maker = Maker::new();
    let from = maker.input("from", T::TYPE, 4096);
    let to = maker.output("to", T::TYPE, threads as usize);
    maker.kernel("copy", [1, 1, 1], threads, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let (thread, stride, offset) = (k.thread(), k.int(stride), k.int(offset));
        let scaled = k.mul(thread, stride);
        let index = k.add(scaled, offset);
        let value = k.load(from, index);
        vec![store(to, thread, value)]
    });
    let outcome =
        run(&maker.program, &[&buffer(vec![T::default(); 4096])]).expect("a program without mistakes");
    let counters = outcome.counters.kernel("copy").expect("a kernel that ran");
    assert_eq!(counters.stores(Memory::Global).elements, u64::from(threads));
    counters.loads(Memory::Global)
}

#[test]
fn sectors_of_a_warp() {
    let sectors = |traffic: Traffic| (traffic.requests, traffic.sectors);
    assert_eq!(sectors(loads::<f32>(1, 0, 32)), (1, 4));
    assert_eq!(sectors(loads::<f32>(1, 1, 32)), (1, 5));
    assert_eq!(sectors(loads::<f32>(2, 0, 32)), (1, 8));
    assert_eq!(sectors(loads::<f32>(-1, 31, 32)), (1, 4));
    assert_eq!(sectors(loads::<f32>(32, 0, 32)), (1, 32));
    assert_eq!(sectors(loads::<u8>(1, 0, 32)), (1, 1));
    assert_eq!(sectors(loads::<u16>(1, 0, 32)), (1, 2));
    assert_eq!(sectors(loads::<f32>(0, 9, 32)), (1, 1));
    // Two warps, the second with 8 threads.
    let traffic = loads::<f32>(1, 0, 40);
    assert_eq!(traffic, Traffic { elements: 40, bytes: 160, requests: 2, sectors: 5, wavefronts: 0 });
}

#[test]
fn an_index_that_is_the_same_everywhere_counts_in_every_warp() {
    let mut maker = Maker::new();
    let from = maker.input("from", Type::F32, 8);
    let to = maker.output("to", Type::F32, 100);
    maker.kernel("fill", [1, 1, 1], 100, |k| {
        let (from, to, thread, three) = (k.global(from), k.global(to), k.thread(), k.int(3));
        let value = k.load(from, three);
        vec![store(to, thread, value)]
    });
    let outcome = run(&maker.program, &[&buffer(vec![1.5_f32; 8])]).expect("a program without mistakes");
    let traffic = outcome.counters.kernels()[0].loads(Memory::Global);
    assert_eq!(traffic, Traffic { elements: 100, bytes: 400, requests: 4, sectors: 4, wavefronts: 0 });
}

/// Bank conflicts of one warp that stores to, and one that loads from, `tile(stride * thread)`.
fn conflicts(stride: i32) -> [u64; 2] {
    let mut maker = Maker::new();
    let to = maker.output("to", Type::F32, 32);
    maker.kernel("tile", [1, 1, 1], 32, |k| {
        let (to, tile) = (k.global(to), k.shared("tile", Type::F32, 2048));
        let (thread, factor) = (k.thread(), k.int(stride.max(1)));
        let one = k.constant(1.0_f32);
        let place = k.mul(thread, factor);
        let from = if stride == 0 { k.int(7) } else { place };
        let value = k.load(tile, from);
        vec![store(tile, place, one), Stmt::Barrier, store(to, thread, value)]
    });
    let outcome = run(&maker.program, &[]).expect("a program without mistakes");
    let counters = &outcome.counters.kernels()[0];
    let [stores, loads] = [counters.stores(Memory::Shared), counters.loads(Memory::Shared)];
    assert_eq!((stores.requests, loads.requests, stores.sectors), (1, 1, 0));
    [stores.bank_conflicts(), loads.bank_conflicts()]
}

#[test]
fn bank_conflicts_of_a_warp() {
    assert_eq!(conflicts(1), [0, 0]);
    assert_eq!(conflicts(2), [1, 1]);
    assert_eq!(conflicts(32), [31, 31]);
    assert_eq!(conflicts(33), [0, 0]);
    // A broadcast.
    assert_eq!(conflicts(0), [0, 0]);
}

/// A kernel with operations of every class, in a loop, half of the threads masked off.
fn classes() -> (Program, Counters) {
    let mut maker = Maker::new();
    let to = maker.output("to", Type::F32, 50);
    maker.kernel("classes", [2, 1, 1], 50, |k| {
        let (to, i, fifty, round) = (k.global(to), k.position(), k.int(50), k.var("round"));
        let thread = k.thread();
        let inside = k.lt(i, fifty);
        let x = k.op(Op::Cast(Type::F32), &[thread]);
        let (half, third) = (k.constant(0.5_f32), k.constant(3.0_f32));
        let sum = k.add(x, half);
        let product = k.mul(sum, third);
        let quotient = k.div(product, sum);
        let root = k.op(Op::Unary(UnaryOp::Sqrt), &[quotient]);
        let power = k.op(Op::Unary(UnaryOp::Exp), &[root]);
        let smaller = k.binary(BinaryOp::Min, power, third);
        let below = k.lt(smaller, x);
        let chosen = k.op(Op::Select, &[below, smaller, x]);
        let (seven, eight) = (k.int(7), k.int(8));
        let (remainder, folded) = (k.rem(i, seven), k.div(seven, eight));
        let shifted = k.div(remainder, eight);
        let index = k.mul(shifted, i);
        let index = k.add(index, folded);
        let index = k.add(index, i);
        vec![repeat(round, 3, vec![when(inside, vec![store(to, index, chosen)])])]
    });
    let counters = run(&maker.program, &[]).expect("a program without mistakes").counters;
    (maker.program, counters)
}

#[test]
fn operations_by_class() {
    let (_, counters) = classes();
    let kernel = &counters.kernels()[0];
    // 100 threads compute the position and compare; 50 of them do the rest, three times.
    let every = 3 * 50;
    let position = 3 * 100;
    let expected = Operations {
        f32_add: every,
        f32_mul: every,
        f32_div: every,
        f32_sqrt: every,
        f32_special: every,
        f32_compare: 2 * every,
        convert: every,
        select: every,
        int_add: position + 4 * every,
        int_mul: position + every + every,
        int_div: every,
        int_compare: position,
    };
    assert_eq!(kernel.operations, expected);
    assert_eq!(kernel.lane_operations, expected.total() + every);
    assert_eq!(kernel.array("to").unwrap().stores.elements, every);
    assert_eq!(expected.flops(), 5 * every);
}

#[test]
fn counters_are_data_and_a_table() {
    let (_, counters) = classes();
    let json = serde_json::to_string(&counters).unwrap();
    assert_eq!(serde_json::from_str::<Counters>(&json).unwrap(), counters);
    let kernel: KernelCounters = counters.kernel("classes").unwrap();
    assert_eq!(kernel.blocks, 2);
    let expected = "\
kernel   launches  blocks  threads  barriers  flops   int  compare  convert  select
classes         1       2      100         0    750  1950      300      150     150

kernel   array  memory  access  elements  bytes  requests  sectors  wavefronts  conflicts
classes  to     global  store        150    600         6       21           0          0
";
    assert_eq!(counters.to_string(), expected);
}

#[test]
fn one_block_can_be_counted_alone() {
    let mut maker = Maker::new();
    let to = maker.output("to", Type::F32, 90);
    maker.kernel("fill", [3, 1, 1], 40, |k| {
        let (to, i, end, one) = (k.global(to), k.position(), k.int(90), k.constant(1.0_f32));
        let inside = k.lt(i, end);
        vec![when(inside, vec![store(to, i, one)])]
    });
    let device = warploom_target::Device::preset("h200").unwrap();
    let stores = |block: u32| {
        let simulation = warploom_sim::Simulation::new(&maker.program, &device);
        let kernel = maker.program.kernels.keys().next().unwrap();
        let outcome = simulation.watch(kernel, [block, 0, 0]).run().expect("a program without mistakes");
        let counters = outcome.counters.kernels().remove(0);
        assert_eq!((counters.blocks, counters.threads), (1, 40));
        counters.stores(Memory::Global).elements
    };
    assert_eq!([0, 1, 2].map(stores), [40, 40, 10]);
}
