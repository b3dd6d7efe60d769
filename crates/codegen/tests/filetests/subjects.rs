//! The pipelines and programs that cases name. Pipelines are at one size each, on one device.

use warploom_codegen::ir::{AtomicOp, Program};
use warploom_lang::dynamic::{DynamicRequest, SizeRange};
use warploom_lang::*;
use warploom_plan::Problem;
use warploom_target::Device;

use crate::{at_size, names, programs};

/// What a case is about.
pub enum Subject {
    /// A pipeline at a size, which the case has a schedule for.
    Problem(Problem),
    /// Kernels written node by node, which need no schedule.
    Program(Program),
}

/// The pipeline or program of this name.
pub fn find(name: &str) -> Option<Subject> {
    if let Some(program) = name.strip_prefix("program ") {
        return hand_made(program).map(Subject::Program);
    }
    if let Some(pipeline) = name.strip_prefix("any size ") {
        return at_any_size(pipeline).map(Subject::Problem);
    }
    let (outputs, sizes): (Vec<Func>, Sizes) = match name {
        "stencils" => stencils(),
        "product" => product(),
        "correlation" => correlation(),
        "offsets" => offsets(),
        "scans" => scans(),
        "sums" => sums(),
        "doubling" => doubling(),
        "total" => total(),
        "rows" => rows(),
        "pair" => pair(),
        "digits" => digits(),
        "own_elements" => own_elements(),
        "diagonals" => diagonals(),
        "table256" => lookup(256),
        "table5000" => lookup(5000),
        "skewed" => skewed(),
        "disc" => disc(),
        "channels" => channels(),
        "scatter" => scatter(),
        "histogram" => histogram(),
        "ends" => ends(),
        "neighbours" => neighbours(),
        "far" => far(),
        "line" => line(),
        "points" => (vec![sum_of_coordinates()], vec![("out", vec![100_000, 100_000])]),
        "columns" => (vec![sum_of_coordinates()], vec![("out", vec![3, 200_000])]),
        "cubes" => cubes(),
        "blur" => blur(),
        "picture" => picture(),
        "corners" => corners(),
        "mixed" => mixed(),
        "names" => {
            (names::outputs(), vec![("A", vec![99, 99]), ("over.in", vec![99, 99]), ("output", vec![8, 8])])
        }
        _ => return None,
    };
    Some(Subject::Problem(at_size::problem(name, outputs, &sizes)))
}

/// A pipeline for pictures of any size, scheduled for 200 by 30 points.
fn at_any_size(name: &str) -> Option<Problem> {
    let output = match name {
        "rows" => rows_of_any_length(),
        "columns" => columns_of_any_length(),
        "late" => late_scans(),
        _ => return None,
    };
    let pipeline = Pipeline::new(name, [output]).unwrap_or_else(|error| panic!("{error}"));
    let size = |name: &str| SizeRange { name: name.into(), min: 8, max: 8192 };
    let at = |sizes: &[i64]| {
        let picture = Region::of_extents(sizes);
        Realisation::new(&pipeline).input("input", picture.clone()).output("out", picture)
    };
    let request = DynamicRequest::fit(&pipeline, vec![size("W"), size("H")], &[200, 30], at);
    let request = request.unwrap_or_else(|error| panic!("{name}: {error}"));
    let device = Device::preset("h200").unwrap_or_else(|error| panic!("{error}"));
    Some(Problem::dynamic(&pipeline, &request, &device).unwrap_or_else(|error| panic!("{name}: {error}")))
}

/// Every row less its maximum.
fn rows_of_any_length() -> Func {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let r = rdom([(0, input.extent(0))]);
    let highest = func("highest", y, f32::NEG_INFINITY).over(&r, |f| f.max(y, input.at((r.x, y))));
    func("out", (x, y), input.at((x, y)) - highest.at(y))
}

/// Every column less its sum.
fn columns_of_any_length() -> Func {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::I32, 2);
    let r = rdom([(0, input.extent(1))]);
    let sum = func("sum", x, 0).over(&r, |f| f.add(x, input.at((x, r.x))));
    func("out", (x, y), input.at((x, y)) - sum.at(x))
}

/// Running sums down the columns from row 20 on, if there is one.
fn late_scans() -> Func {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let r = rdom([(20, input.extent(1) - 20)]);
    func("out", (x, y), input.at((x, y)))
        .over(&r, |f| f.set((x, r.x), f.at((x, r.x - 1)) + input.at((x, r.x))))
}

/// The extents of inputs and outputs, by name.
type Sizes = Vec<(&'static str, Vec<i64>)>;

fn hand_made(name: &str) -> Option<Program> {
    let ops = [
        (AtomicOp::Add, Type::I32),
        (AtomicOp::Max, Type::F32),
        (AtomicOp::Add, Type::U8),
        (AtomicOp::Min, Type::I16),
    ];
    let operations = |ty: &str| Type::ALL.into_iter().find(|known| known.name() == ty);
    Some(match name {
        "copy" => programs::copy(1000),
        "blur" => programs::blur(),
        "product" => programs::product(),
        "rounds" => programs::rounds(),
        "atomics" => programs::atomics(&ops),
        "indices" => programs::indices(),
        "long" => programs::long(20),
        name => programs::operations(operations(name.strip_prefix("operations ")?)?, 64),
    })
}

/// A picture of bytes: what is missing to white, and its neighbours as floats.
fn picture() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::U8, 2);
    let inverse = func("inverse", (x, y), Expr::from(255u8) - input.at((x, y)));
    let sum = inverse.at((x, y)).cast(Type::F32) + inverse.at((x + 1, y)).cast(Type::F32);
    let bright = func("bright", (x, y), sum);
    let sizes = vec![("input", vec![272, 64]), ("inverse", vec![272, 64]), ("bright", vec![256, 60])];
    (vec![inverse, bright], sizes)
}

/// A chain of stencils, where the first is read twice.
fn stencils() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let gray = func("gray", (x, y), edge.at((x, y)) * 0.5);
    let bx = func("bx", (x, y), gray.at((x - 1, y)) + gray.at((x + 1, y)));
    let by = func("by", (x, y), bx.at((x, y - 1)) + bx.at((x, y + 1)));
    let out = func("out", (x, y), by.at((x, y)) + gray.at((x, y)));
    (vec![out], vec![("input", vec![400, 300]), ("out", vec![400, 300])])
}

/// A scaled matrix product.
fn product() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("A", 2), Input::f32("B", 2));
    let gain = func("gain", (x, y), (x + y).f32());
    let r = rdom!(r: (0, 64));
    let prod = func("prod", (x, y), 0.0)
        .over(&r, |f| f.add((x, y), gain.at((x, y)) * a.at((x, r.x)) * b.at((r.x, y))));
    let out = func("out", (x, y), prod.at((x, y)) + gain.at((x, y)));
    (vec![out], vec![("A", vec![64, 64]), ("B", vec![64, 64]), ("out", vec![64, 64])])
}

/// Weighted sums of a picture that goes on beyond its edges.
fn correlation() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let (taps, marks) = (Input::f32("taps", 2), Input::new("marks", Type::U8, 1));
    let half = func("half", (x, y), edge.at((x, y)) * 0.5);
    let r = rdom!(rx: (0, 5), ry: (0, 22));
    let sum = func("sum", (x, y), 0.0).over(&r, |f| {
        let at = (x + r.x, y + r.y);
        f.add((x, y), taps.at((r.x, r.y)) * (edge.at(at) + half.at((x, y + r.y))) * marks.at(r.y).f32())
    });
    let out = func("out", (x, y), sum.at((x, y)));
    let sizes =
        vec![("input", vec![60, 50]), ("taps", vec![5, 22]), ("marks", vec![22]), ("out", vec![60, 50])];
    (vec![out], sizes)
}

/// Sums of differences between a picture and itself, moved by some columns.
fn offsets() -> (Vec<Func>, Sizes) {
    let (x, y, s) = vars!(x, y, s);
    let edge = Input::f32("input", 2).repeat_edge().named("edge");
    let difference = func("difference", (x, y, s), abs(edge.at((x, y)) - edge.at((x + s, y))));
    let r = rdom!(r: (1, 4));
    let sum = func("sum", (x, y), 0.0)
        .over(&r, |f| f.add((x, y), difference.at((x, y, r.x)) + difference.at((x + 1, y, r.x))));
    (vec![func("out", (x, y), sum.at((x, y)))], vec![("input", vec![310, 20]), ("out", vec![310, 20])])
}

/// Running sums down the columns, with an undefined initial value.
fn scans() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let r = rdom!(ry: (1, 63));
    let scan = func("scan", (x, y), undef(Type::F32))
        .update(|f| f.set((x, 0), input.at((x, 0))))
        .over(&r, |f| f.set((x, r.x), f.at((x, r.x - 1)) + input.at((x, r.x))));
    let out = func("out", (x, y), scan.at((x, y)) * 2.0);
    (vec![out], vec![("input", vec![64, 64]), ("out", vec![64, 64])])
}

/// Running sums down the columns, in any order.
fn sums() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let input = Input::new("input", Type::U32, 2);
    let r = rdom!(ry: (1, 99));
    let sum = func("sum", (x, y), undef(Type::U32))
        .update(|f| f.set((x, 0), input.at((x, 0))))
        .over(&r, |f| f.set((x, r.x), f.at((x, r.x - 1)) + input.at((x, r.x))));
    let out = func("out", (x, y), sum.at((x, y)) * 2u32);
    (vec![out], vec![("input", vec![128, 100]), ("out", vec![128, 100])])
}

/// Maxima over twice as many rows per step, as far as needed.
fn doubling() -> (Vec<Func>, Sizes) {
    let (x, y, t) = vars!(x, y, t);
    let edge = Input::f32("input", 2).repeat_edge();
    let r = rdom!(ry: (0, 64), rt: (1, 3));
    let log = func("log", (x, y, t), edge.at((x, y))).over(&r, |f| {
        let lower = f.at((x, r.x + clamp(1 << (r.y - 1), 0, 4), r.y - 1));
        f.set((x, r.x, r.y), max(f.at((x, r.x, r.y - 1)), lower))
    });
    let out = func("out", (x, y), log.at((x, y, 3)));
    (vec![out], vec![("input", vec![64, 64]), ("out", vec![64, 64])])
}

/// Sums over a whole image: of integers, of floats in any order, and of floats in their order.
fn total() -> (Vec<Func>, Sizes) {
    let (image, weights) = (Input::new("image", Type::U32, 2), Input::f32("weights", 2));
    let r = rdom([(0, 100), (0, 60)]);
    let sum = func("sum", (), 0u32).over(&r, |f| f.add((), image.at((r.x, r.y))));
    let free = func("free", (), 0.0).over(&r, |f| f.add((), weights.at((r.x, r.y)))).reassociate();
    let strict = func("strict", (), 0.0).over(&r, |f| f.add((), weights.at((r.x, r.y))));
    let out = func("out", (), sum.at(()).f32() + free.at(()) + strict.at(()));
    (vec![out], vec![("image", vec![100, 60]), ("weights", vec![100, 60]), ("out", vec![])])
}

/// Every row less its maximum.
fn rows() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let (input, r) = (Input::f32("input", 2), rdom!(r: (0, 256)));
    let highest = func("highest", y, f32::NEG_INFINITY).over(&r, |f| f.max(y, input.at((r.x, y))));
    let out = func("out", (x, y), input.at((x, y)) - highest.at(y));
    (vec![out], vec![("input", vec![256, 30]), ("out", vec![256, 30])])
}

/// Two outputs, one of which reads the other.
fn pair() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let first = func("first", (x, y), x + y);
    let second = func("second", (x, y), first.at((x, y)) * 2);
    (vec![first, second], vec![("first", vec![64, 64]), ("second", vec![64, 64])])
}

/// The digits of a number, where order matters.
fn digits() -> (Vec<Func>, Sizes) {
    let x = vars!(x);
    let input = Input::f32("input", 2);
    let r = rdom!(r: (0, 8), s: (0, 8));
    let number = func("number", x, 0.0).over(&r, |f| f.set(x, f.at(x) * 10.0 + input.at((r.x, r.y))));
    (vec![number], vec![("input", vec![8, 8]), ("number", vec![4])])
}

/// Every pair (r, s) writes its own element.
fn own_elements() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let r = rdom!(r: (0, 8), s: (0, 8));
    let f = func("f", (x, y), 0).over(&r, |f| f.set((r.x, r.y), f.at((r.x, r.y)) * 2 + 1));
    (vec![f], vec![("f", vec![8, 8])])
}

/// For a fixed r, no two values of s conflict, but (r 1, s 0) and (r 0, s 1) write the same element in
/// this order.
fn diagonals() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let r = rdom!(r: (0, 4), s: (0, 4));
    let [a, b] = r.vars();
    let f = func("f", (x, y), 0).over(&r, |f| f.set((x, a + b), f.at((x, a + b)) * 2 + a));
    (vec![f], vec![("f", vec![8, 8])])
}

fn table() -> Func {
    let x = vars!(x);
    func("table", x, x.f32() * 2.0)
}

/// A lookup table that is read anywhere.
fn lookup(levels: i32) -> (Vec<Func>, Sizes) {
    let x = vars!(x);
    let input = Input::f32("input", 1);
    let out = func("out", x, table().at(clamp(input.at(x).i32(), 0, levels - 1)));
    (vec![out], vec![("input", vec![5000]), ("out", vec![5000])])
}

/// A sum over the rows and columns of a disc. The reach of a column depends on nothing but its place.
fn disc() -> (Vec<Func>, Sizes) {
    let (x, y, d) = vars!(x, y, d);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge().named("edge");
    let (r, dx) = (rdom!(dy: (0, 3)), rdom!(dx: (-2, 5)));
    let reach = func("reach", d, 0).over(&r, |f| f.add(d, select((d * d + r.x * r.x).le(5), 1, 0)));
    let ends = |reach: Expr| edge.at((x + dx.x, y - &reach)) + edge.at((x + dx.x, y + reach));
    let out = func("out", (x, y), sum(&dx, ends(reach.at(dx.x))));
    (vec![out], vec![("input", vec![128, 64]), ("out", vec![128, 64])])
}

/// Rows of three channels, whose edges repeat.
fn channels() -> (Vec<Func>, Sizes) {
    let (x, y, c) = vars!(x, y, c);
    let edge = Input::f32("input", 3).repeat_edge();
    let out = func("out", (x, y, c), edge.at((x - 1, y, c)) + edge.at((x + 1, y, c)));
    (vec![out], vec![("input", vec![128, 64, 3]), ("out", vec![128, 64, 3])])
}

/// A table with two readers that move differently.
fn skewed() -> (Vec<Func>, Sizes) {
    let (x, table) = (vars!(x), table());
    (vec![func("out", x, table.at(x) + table.at(2 * x))], vec![("out", vec![5000])])
}

/// A table that is read at two points far from each other, by millions.
fn far() -> (Vec<Func>, Sizes) {
    let (x, table) = (vars!(x), table());
    (vec![func("out", x, table.at(x) + table.at(x + 300))], vec![("out", vec![1 << 22])])
}

/// A table that is read point by point, by millions.
fn line() -> (Vec<Func>, Sizes) {
    let x = vars!(x);
    (vec![func("out", x, table().at(x))], vec![("out", vec![1 << 22])])
}

/// A histogram: any thread may add to any point.
fn scatter() -> (Vec<Func>, Sizes) {
    let x = vars!(x);
    let a = Input::f32("a", 1);
    let r = rdom!(r: (0, 5));
    let count = func("count", x, 0).over(&r, |f| f.add(clamp(a.at(r.x).cast(Type::I32), 0, 9), 1));
    (vec![func("out", x, count.at(x))], vec![("a", vec![5]), ("out", vec![10])])
}

/// Histograms of the rows of an image, and their sum.
fn histogram() -> (Vec<Func>, Sizes) {
    let (b, y) = vars!(b, y);
    let image = Input::u8("image", 2);
    let (rx, ry) = (rdom!(rx: (0, 64)), rdom!(ry: (0, 40)));
    let rows = func("rows", (b, y), 0).over(&rx, |f| f.add((image.at((rx.x, y)).i32(), y), 1));
    let count = func("count", b, 0).over(&ry, |f| f.add(b, rows.at((b, ry.x))));
    (vec![count], vec![("image", vec![64, 40]), ("count", vec![256])])
}

/// The smallest value, the largest one and all bits of two rows, one after the other in one array; and a
/// sum of floats.
fn ends() -> (Vec<Func>, Sizes) {
    let x = vars!(x);
    let values = Input::new("values", Type::U32, 2);
    let r = rdom!(r: (0, 64));
    let read = |row: i32| values.at((r.x, row));
    let ends = func("ends", x, 7u32)
        .over(&r, |f| f.set(0, min(f.at(0), read(0))))
        .over(&r, |f| f.set(0, max(read(1), f.at(0))))
        .over(&r, |f| f.set(r.x % 2, f.at(r.x % 2) | read(0)))
        .over(&r, |f| f.set(0, f.at(0) * read(0)))
        .over(&r, |f| f.set(0, f.at(0) + f.at(1)));
    let float = func("float", (), 0.0).over(&r, |f| f.add((), read(0).f32()));
    let out = func("out", x, ends.at(x).f32() + float.at(()));
    (vec![out], vec![("values", vec![64, 2]), ("out", vec![2])])
}

/// The sum of 64 neighbours, each through `tile`.
fn neighbours() -> (Vec<Func>, Sizes) {
    let x = vars!(x);
    let r = rdom!(r: (0, 64));
    let tile = func("tile", x, Input::f32("input", 1).at(x) * 2.0);
    let sum = func("sum", x, 0.0).over(&r, |it| it.add(x, tile.at(x + r.x)));
    (vec![sum], vec![("input", vec![1000]), ("sum", vec![900])])
}

fn sum_of_coordinates() -> Func {
    let (x, y) = vars!(x, y);
    func("out", (x, y), x + y)
}

/// More dimensions than a grid has.
fn cubes() -> (Vec<Func>, Sizes) {
    let (x, y, z, w) = vars!(x, y, z, w);
    (vec![func("out", (x, y, z, w), x + y + z + w)], vec![("out", vec![64, 32, 16, 8])])
}

/// A blur in two passes of an image with more elements than 32 bits can count.
fn blur() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let edge = Input::u8("input", 2).repeat_edge();
    let row =
        func("row", (x, y), edge.at((x - 1, y)).u16() + edge.at((x, y)).u16() + edge.at((x + 1, y)).u16());
    let sum = row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1));
    let blur = func("blur", (x, y), (sum / 9).u8());
    (vec![blur], vec![("input", vec![60_000, 60_000]), ("blur", vec![60_000, 60_000])])
}

/// A stencil of a stencil.
fn corners() -> (Vec<Func>, Sizes) {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let gray = func("gray", (x, y), input.at((x, y)) * 0.5);
    let dx = func("dx", (x, y), gray.at((x + 2, y)) - gray.at((x, y + 1)));
    let out = func("out", (x, y), dx.at((x, y)) + dx.at((x + 1, y + 1)) + dx.at((x + 2, y + 2)));
    (vec![out], vec![("input", vec![184, 35]), ("out", vec![180, 32])])
}

/// Neighbours of several Funcs: with small elements, a sum, in the other direction, and of what a thread has.
fn mixed() -> (Vec<Func>, Sizes) {
    let x = vars!(x);
    let input = Input::u8("input", 1);
    let small = func("small", x, input.at(x) + 1);
    let r = rdom!(r: (0, 4));
    let sums = func("sums", x, 0).over(&r, |f| f.add(x, input.at(x + r.x).i32()));
    let turned = func("turned", x, input.at(199 - x).i32());
    let own = func("own", x, input.at(x).i32());
    let doubled = func("doubled", x, own.at(x) * 2);
    let pairs = small.at(x).i32() + small.at(x + 1).i32() + sums.at(x) + sums.at(x + 1);
    let out = func("out", x, pairs + turned.at(100 - x) + turned.at(101 - x) + doubled.at(x));
    (vec![out], vec![("input", vec![200]), ("out", vec![100])])
}
