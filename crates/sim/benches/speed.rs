//! Lane-operations a second: operations, loads and stores, each in each active thread.
#![allow(missing_docs, reason = "criterion's macros")]

#[path = "../tests/support/mod.rs"]
mod support;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use support::*;
use warploom_codegen::ir::*;
use warploom_lang::Type;
use warploom_lang::op::{BinaryOp, Op, UnaryOp};

/// A blur of 7 along x, on tiles of 32 x `rows` in shared memory with a halo, filled by all threads.
fn stencil(rows: i32) -> Program {
    let (width, height) = (1024, 256);
    let mut maker = Maker::new();
    let from = maker.input("from", Type::F32, ((width + 6) * height) as usize);
    let to = maker.output("to", Type::F32, (width * height) as usize);
    let grid = [width as u32 / 32, (height / rows) as u32, 1];
    maker.kernel("stencil", grid, 32 * rows as u32, |k| {
        let (from, to) = (k.global(from), k.global(to));
        let tile = k.shared("tile", Type::F32, (38 * rows) as usize);
        let (step, flat) = (k.var("step"), k.var("i"));
        let (thread, threads, pitch) = (k.thread(), k.int(32 * rows), k.int(38));
        let (bx, by, side, rows_node) = (k.block(0), k.block(1), k.int(32), k.int(rows));
        let (x0, y0) = (k.mul(bx, side), k.mul(by, rows_node));
        let round = k.use_var(step, Type::I32);
        let start = k.mul(round, threads);
        let i = k.add(start, thread);
        let i_value = k.use_var(flat, Type::I32);
        let size = k.int(38 * rows);
        let inside = k.lt(i_value, size);
        let (column, row) = (k.rem(i_value, pitch), k.div(i_value, pitch));
        let (x, y) = (k.add(x0, column), k.add(y0, row));
        let from_width = k.int(width + 6);
        let line = k.mul(y, from_width);
        let index = k.add(line, x);
        let pixel = k.load(from, index);
        let rounds = (38 * rows as u32).div_ceil(32 * rows as u32);
        let fill = vec![Stmt::Let(flat, i), when(inside, vec![store(tile, i_value, pixel)])];

        let (tx, ty) = (k.rem(thread, side), k.div(thread, side));
        let line = k.mul(ty, pitch);
        let place = k.add(line, tx);
        let mut sum = k.constant(0.0_f32);
        for (tap, weight) in [0.1_f32, 0.2, 0.3, 0.4, 0.3, 0.2, 0.1].into_iter().enumerate() {
            let (tap, weight) = (k.int(tap as i32), k.constant(weight));
            let at = k.add(place, tap);
            let value = k.load(tile, at);
            let term = k.mul(value, weight);
            sum = k.add(sum, term);
        }
        let (x, y, width) = (k.add(x0, tx), k.add(y0, ty), k.int(width));
        let line = k.mul(y, width);
        let index = k.add(line, x);
        vec![repeat(step, rounds, fill), Stmt::Barrier, store(to, index, sum)]
    });
    maker.program
}

/// A product of matrices of 128 x 128 in tiles of 32 x 32, four results a thread in a private array.
fn product() -> Program {
    let n = 128;
    let mut maker = Maker::new();
    let pixels = (n * n) as usize;
    let (a, b) = (maker.input("a", Type::F32, pixels), maker.input("b", Type::F32, pixels));
    let to = maker.output("to", Type::F32, pixels);
    maker.kernel("product", [4, 4, 1], 256, |k| {
        let [a, b, to] = [a, b, to].map(|buffer| k.global(buffer));
        let tiles = ["ta", "tb"].map(|name| k.shared(name, Type::F32, 32 * 32));
        let sums = k.private("sums", Type::F32, 4);
        let [outer, inner, line] = ["outer", "inner", "line"].map(|name| k.var(name));
        let (thread, side, eight, n_node) = (k.thread(), k.int(32), k.int(8), k.int(n));
        let (tx, ty) = (k.rem(thread, side), k.div(thread, side));
        let [outer_at, inner_at, line_at] = [outer, inner, line].map(|var| k.use_var(var, Type::I32));
        let rows = k.mul(line_at, eight);
        let row = k.add(ty, rows);
        let (bx, by) = (k.block(0), k.block(1));
        let (x0, y0, k0) = (k.mul(bx, side), k.mul(by, side), k.mul(outer_at, side));
        let at = |k: &mut KernelMaker<'_>, x: NodeId, y: NodeId, pitch: NodeId| {
            let start = k.mul(y, pitch);
            k.add(start, x)
        };
        let (ax, ay, bx, by) = (k.add(k0, tx), k.add(y0, row), k.add(x0, tx), k.add(k0, row));
        let (a_at, b_at) = (at(k, ax, ay, n_node), at(k, bx, by, n_node));
        let (a_value, b_value, place) = (k.load(a, a_at), k.load(b, b_at), at(k, tx, row, side));
        let fill = vec![store(tiles[0], place, a_value), store(tiles[1], place, b_value)];
        let (left, right) = (at(k, inner_at, row, side), at(k, tx, inner_at, side));
        let (left, right) = (k.load(tiles[0], left), k.load(tiles[1], right));
        let (term, old, zero) = (k.mul(left, right), k.load(sums, line_at), k.constant(0.0_f32));
        let next = k.add(old, term);
        let result = at(k, bx, ay, n_node);
        vec![
            repeat(line, 4, vec![store(sums, line_at, zero)]),
            repeat(
                outer,
                n as u32 / 32,
                vec![
                    repeat(line, 4, fill),
                    Stmt::Barrier,
                    repeat(inner, 32, vec![repeat(line, 4, vec![store(sums, line_at, next)])]),
                    Stmt::Barrier,
                ],
            ),
            repeat(line, 4, vec![store(to, result, old)]),
        ]
    });
    maker.program
}

/// Arithmetic on one load and one store.
fn arithmetic(threads: u32) -> Program {
    let count = 1 << 17;
    let mut maker = Maker::new();
    let from = maker.input("from", Type::F32, count);
    let to = maker.output("to", Type::F32, count);
    maker.kernel("arithmetic", [count as u32 / threads, 1, 1], threads, |k| {
        let (from, to, i) = (k.global(from), k.global(to), k.position());
        let x = k.load(from, i);
        let (half, two) = (k.constant(0.5_f32), k.constant(2.0_f32));
        let mut value = x;
        for round in 0..20 {
            value = match round % 5 {
                0 => k.mul(value, half),
                1 => k.add(value, x),
                2 => k.binary(BinaryOp::Max, value, two),
                3 => k.div(value, two),
                _ => k.op(Op::Unary(UnaryOp::Sqrt), &[value]),
            };
        }
        vec![store(to, i, value)]
    });
    maker.program
}

fn speed(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("lane_operations");
    let programs = [
        ("stencil_256_threads", stencil(8)),
        ("stencil_1024_threads", stencil(32)),
        ("matrix_product", product()),
        ("arithmetic_256_threads", arithmetic(256)),
        ("arithmetic_32_threads", arithmetic(32)),
    ];
    for (name, program) in &programs {
        let inputs: Vec<_> = program
            .buffers
            .values()
            .filter(|decl| matches!(decl.role, Role::Input(_)))
            .map(|decl| buffer(vec![1.25_f32; decl.elements()]))
            .collect();
        let inputs: Vec<_> = inputs.iter().collect();
        let outcome = run_seeded(program, &inputs, 0).expect("a program without mistakes");
        group.throughput(Throughput::Elements(outcome.counters.lane_operations()));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| run_seeded(program, &inputs, 0));
        });
    }
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
