//! A GPU computes with the printed text what the language says, bit for bit in the checking build.

use warploom_codegen::ir::{AtomicOp, Program};
use warploom_codegen::printer::{Build, PRINTER};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Type, Value};
use warploom_runtime::cuda::nvrtc;
use warploom_runtime::{Driver, Executable, Execute, Gpu, Mode, POISON, testing};
use warploom_target::program::Code;

use crate::programs;

/// A generator of bits that is the same everywhere.
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }
}

/// Values at which operations change, and others.
fn values(ty: Type, count: usize) -> Vec<Value> {
    let mut found: Vec<Value> = match ty.int_range() {
        None => [
            0.0,
            -0.0,
            0.5,
            1.0,
            1.5,
            2.5,
            3.0,
            0.1,
            1e-3,
            126.6,
            127.0,
            128.0,
            255.5,
            256.0,
            32767.9,
            65535.7,
            1e6,
            2.1e9,
            4.3e9,
            1e10,
            1e-40,
            1e-30,
            1e30,
            f32::MIN_POSITIVE,
            f32::MAX,
            f32::INFINITY,
            f32::NAN,
        ]
        .into_iter()
        .flat_map(|x: f32| [x, -x])
        .filter_map(|x| Value::rounded(ty, x.into()))
        .collect(),
        Some((min, max)) => {
            let near = [0, 1, 2, 3, 7, 8, 31, 32, 127, 128, 255, 256];
            let all = near.into_iter().flat_map(|n| [n, -n, min.saturating_add(n), max - n]);
            let beyond = near.map(|n| Value::from(u64::MAX - n as u64));
            let beyond = beyond.into_iter().filter(|_| ty == Type::U64);
            beyond.chain(all.filter_map(|int| Value::from_int(ty, int))).collect()
        }
    };
    found.truncate(count);
    let mut bits = Bits(7);
    while found.len() < count {
        let word = bits.next() ^ (bits.next() << 16);
        let word = if ty == Type::Bool { word & 1 } else { word };
        let upper = if ty.is_wide() { u64::from(bits.next()) << 33 } else { 0 };
        let random = Value::from_bits(ty, u64::from(word) | upper);
        // Floats of all magnitudes, and as many of those that images hold.
        let moderate = Value::rounded(ty, f64::from(word as i32) / 1e7);
        found.push(moderate.filter(|_| found.len().is_multiple_of(2)).unwrap_or(random));
    }
    found
}

fn bytes(values: &[Value]) -> Vec<u8> {
    let each = values.iter().flat_map(|value| value.bits().to_le_bytes()[..value.ty().bytes()].to_vec());
    each.collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn load(gpu: &Gpu, program: &Program, build: Build) -> Executable {
    let mut executable = gpu.load(&PRINTER.describe(program, build)).unwrap();
    executable.poison().unwrap();
    executable
}

fn patterns(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Bits that count as equal: all NaNs do.
fn same(ty: Type, a: u64, b: u64) -> bool {
    let nan = |bits| Value::from_bits(ty, bits).as_f64().is_nan();
    a == b || (nan(a) && nan(b))
}

/// The operations of a type whose results on a GPU differ from the language's, one line for each.
fn differences(gpu: &Gpu, ty: Type, a: &[Value], b: &[Value]) -> Vec<String> {
    let count = a.len();
    let mut executable = load(gpu, &programs::operations(ty, count), Build::Checking);
    executable.upload(0, &bytes(a)).unwrap();
    executable.upload(1, &bytes(b)).unwrap();
    executable.run().unwrap();
    let results = patterns(&executable.download(0, 0).unwrap());
    let cases = programs::cases(ty);
    let of_case = |(case, row): (&programs::Case, &[u64])| {
        let expected = |i: usize| match case.operands.len() {
            1 => case.op.eval(&[a[i]]),
            2 => case.op.eval(&[a[i], b[i]]),
            _ => case.op.eval(&[Op::Binary(BinaryOp::Ne).eval(&[a[i], b[i]]), a[i], b[i]]),
        };
        let differs = |i: &usize| {
            let expected = expected(*i);
            !same(expected.ty(), expected.bits(), row[*i])
        };
        let misses: Vec<usize> = (0..count).filter(differs).collect();
        let &i = misses.first()?;
        Some(format!(
            "{:?} on {ty}: {} of {count} differ; {:?}, {:?} give {:?}, not {:?}",
            case.op,
            misses.len(),
            a[i],
            b[i],
            Value::from_bits(expected(i).ty(), row[i]),
            expected(i)
        ))
    };
    cases.iter().zip(results.chunks_exact(count)).filter_map(of_case).collect()
}

#[test]
fn gpu_computes_every_operation_as_the_language_defines_it() {
    let Some(gpu) = testing::gpu("gpu_computes_every_operation_as_the_language_defines_it") else { return };
    let wrong = Type::ALL.into_iter().flat_map(|ty| {
        let list = values(ty, if ty.is_float() { 256 } else { 96 });
        let count = list.len() * list.len();
        let a: Vec<Value> = (0..count).map(|i| list[i % list.len()]).collect();
        let b: Vec<Value> = (0..count).map(|i| list[i / list.len()]).collect();
        differences(&gpu, ty, &a, &b)
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Functions have many cases that few values do not reach.
#[test]
fn gpu_computes_functions_of_floats_of_all_magnitudes() {
    let Some(gpu) = testing::gpu("gpu_computes_functions_of_floats_of_all_magnitudes") else { return };
    let all: Vec<Value> =
        (0..=u32::MAX).step_by(8191).map(|bits| Value::from(f32::from_bits(bits))).collect();
    // Second operands of both signs and similar magnitudes.
    let near = |bits: u32| (bits & 0x7f00_0000) | (bits.wrapping_mul(0x9e37_79b1) & 0x80ff_ffff);
    let other: Vec<Value> =
        all.iter().map(|value| Value::from(f32::from_bits(near(value.bits() as u32)))).collect();
    let wrong = differences(&gpu, Type::F32, &all, &other);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The functions of `f64` over all magnitudes, and around the places where they change.
#[test]
fn gpu_computes_functions_of_doubles_of_all_magnitudes() {
    let Some(gpu) = testing::gpu("gpu_computes_functions_of_doubles_of_all_magnitudes") else { return };
    let step = u64::MAX / 300_000;
    let all = (0..300_000_u64).map(|i| f64::from_bits(i * step + i));
    let near = (0..200_000).map(|i| (f64::from(i) - 1e5) * 0.0123);
    let a: Vec<Value> = all.chain(near).map(Value::from).collect();
    let b: Vec<Value> = (0..a.len()).map(|i| Value::from((i % 173) as f64 * 0.37 - 20.0)).collect();
    let wrong = differences(&gpu, Type::F64, &a, &b);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn gpu_computes_with_constants_as_the_language_defines_it() {
    let Some(gpu) = testing::gpu("gpu_computes_with_constants_as_the_language_defines_it") else { return };
    let mut wrong = Vec::new();
    for ty in Type::ALL.into_iter().filter(|ty| ty.is_int()) {
        let list = values(ty, 128);
        let mut executable = load(&gpu, &programs::constants(ty, list.len()), Build::Timing);
        executable.upload(0, &bytes(&list)).unwrap();
        executable.run().unwrap();
        let results = patterns(&executable.download(0, 0).unwrap());
        let rows = results.chunks_exact(list.len());
        for ((op, constant, right), row) in programs::constant_cases(ty).into_iter().zip(rows) {
            let expected = |a: Value| Op::Binary(op).eval(&if right { [a, constant] } else { [constant, a] });
            let misses = list.iter().zip(row).filter(|(a, word)| expected(**a).bits() != **word);
            wrong.extend(misses.map(|(a, word)| {
                format!(
                    "{op:?} of {a:?} and {constant:?} (right: {right}): {word:#x}, not {:?}",
                    expected(*a)
                )
            }));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn gpu_computes_index_arithmetic_as_the_language_defines_it() {
    let Some(gpu) = testing::gpu("gpu_computes_index_arithmetic_as_the_language_defines_it") else { return };
    for build in [Build::Checking, Build::Timing] {
        let mut executable = load(&gpu, &programs::indices(), build);
        executable.run().unwrap();
        let results = patterns(&executable.download(0, 0).unwrap());
        let mut rows = results.chunks_exact(programs::INDICES as usize);
        for (op, constant) in programs::index_cases() {
            for shift in [0, -30] {
                let row = rows.next().unwrap();
                for (thread, &word) in row.iter().enumerate() {
                    let operand = Value::from(thread as i32 + shift);
                    let expected = Op::Binary(op).eval(&[operand, Value::from(constant)]);
                    assert_eq!(word, expected.bits(), "{op:?} of {operand:?} and {constant}, {build:?}");
                }
            }
        }
    }
}

#[test]
fn gpu_runs_the_sample_programs() {
    let Some(gpu) = testing::gpu("gpu_runs_the_sample_programs") else { return };
    for build in [Build::Checking, Build::Timing] {
        copies(&gpu, build);
        blurs(&gpu, build);
        multiplies(&gpu, build);
        goes_round(&gpu, build);
    }
}

fn copies(gpu: &Gpu, build: Build) {
    let values = values(Type::F32, 1000);
    let mut executable = load(gpu, &programs::copy(1000), build);
    executable.upload(0, &bytes(&values)).unwrap();
    executable.run().unwrap();
    assert_eq!(executable.download(0, 0).unwrap(), bytes(&values));
}

fn blurs(gpu: &Gpu, build: Build) {
    let (width, height) = programs::BLUR;
    let mut bits = Bits(3);
    let image: Vec<u8> = (0..(width + 2) * (height + 2)).map(|_| bits.next() as u8).collect();
    let at = |x: usize, y: usize| u32::from(image[y * (width + 2) + x]);
    let expected: Vec<u8> = (0..width * height)
        .map(|i| {
            let (x, y) = (i % width, i / width);
            let sum: u32 = (0..9).map(|tap| at(x + tap % 3, y + tap / 3)).sum();
            (sum / 9) as u8
        })
        .collect();
    let mut executable = load(gpu, &programs::blur(), build);
    executable.upload(0, &image).unwrap();
    executable.replay().unwrap();
    assert_eq!(executable.download(0, 0).unwrap(), expected);
}

fn multiplies(gpu: &Gpu, build: Build) {
    let size = programs::PRODUCT;
    let mut bits = Bits(5);
    let mut matrix =
        || -> Vec<Value> { (0..size * size).map(|_| Value::from(bits.next() as f32 / 2e9)).collect() };
    let (a, b) = (matrix(), matrix());
    let mut executable = load(gpu, &programs::product(), build);
    executable.upload(0, &bytes(&a)).unwrap();
    executable.upload(1, &bytes(&b)).unwrap();
    executable.run().unwrap();
    let results = words(&executable.download(0, 0).unwrap());
    for (i, word) in results.into_iter().enumerate() {
        let (x, y) = (i % size, i / size);
        let term = |r: usize| (a[y * size + r].get::<f32>().unwrap(), b[r * size + x].get::<f32>().unwrap());
        let expected = (0..size).map(term).fold(0.0f32, |sum, (a, b)| match build {
            Build::Checking => sum + a * b,
            Build::Timing => a.mul_add(b, sum),
        });
        assert_eq!(f32::from_bits(word), expected, "{x}, {y}, {build:?}");
    }
}

fn goes_round(gpu: &Gpu, build: Build) {
    went_round(load(gpu, &programs::rounds(), build));
    // The same with a module for each kernel.
    let mut parts = PRINTER.describe_in_parts(&programs::rounds(), build);
    if let Code::Parts(parts) = &mut parts.code {
        for part in parts {
            let Code::Source { text, options } = &*part else { panic!("{part:?}") };
            *part = nvrtc::compile(text, gpu.arch().unwrap(), options).unwrap().code();
        }
    }
    went_round(gpu.load(&parts).unwrap());
}

fn went_round(mut executable: Executable) {
    let (outer, inner) = programs::ROUND_COUNTS;
    for (flag, scale) in [(false, 3.7f32), (true, 3.7), (true, -1e12)] {
        executable.set_params(&[scale.to_bits(), u32::from(flag)]).unwrap();
        for graph in [false, true] {
            if graph { executable.replay() } else { executable.run() }.unwrap();
            let results = words(&executable.download(0, 0).unwrap());
            for (i, word) in results.into_iter().enumerate() {
                let extra = if flag { scale as i32 } else { 127 - (i as i32 % 128) };
                let steps = (0..outer as i32).flat_map(|o| (0..inner as i32).map(move |i| o * 5 + i));
                let expected = steps.fold(7i32, |old, step| {
                    old.wrapping_mul(31_000_003).wrapping_add(step).wrapping_add(extra)
                });
                assert_eq!(word as i32, expected, "element {i}, flag {flag}");
            }
        }
    }
}

#[test]
fn gpu_combines_atomically() {
    let Some(gpu) = testing::gpu("gpu_combines_atomically") else { return };
    let ops = programs::all_atomics();
    let mut executable = load(&gpu, &programs::atomics(&ops), Build::Checking);
    let types = programs::atomic_types();
    let inputs: Vec<Vec<Value>> = types
        .iter()
        .map(|ty| match ty {
            // Sums of small whole floats do not depend on their order.
            Type::F32 => (0..programs::ATOMICS).map(|i| Value::from(i as f32 - 100.0)).collect(),
            ty => values(*ty, programs::ATOMICS),
        })
        .collect();
    for (number, values) in inputs.iter().enumerate() {
        executable.upload(number, &bytes(values)).unwrap();
    }
    executable.run().unwrap();
    for (number, ty) in types.iter().enumerate() {
        let start = Value::from_bits(*ty, u64::from_le_bytes([POISON; 8]));
        let fold = |op: AtomicOp| {
            let (defined, op) = (ops.contains(&(op, *ty)), Op::Binary(op.operation()));
            inputs[number].iter().filter(|_| defined).fold(start, |sum, value| op.eval(&[sum, *value]))
        };
        let expected = AtomicOp::ALL.map(fold);
        let found = executable.download(number, 0).unwrap();
        for (op, (expected, bytes)) in expected.iter().zip(found.chunks_exact(ty.bytes())).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let found = Value::from_bits(*ty, u64::from_le_bytes(word));
            assert!(same(*ty, found.bits(), expected.bits()), "{ty} {op}: {found:?}, not {expected:?}");
        }
    }
}

#[test]
fn gpu_functions_of_the_timing_build_are_close() {
    let Some(gpu) = testing::gpu("gpu_functions_of_the_timing_build_are_close") else { return };
    let x: Vec<Value> = (0..4096).map(|i| Value::from((i as f32 + 0.5) / 256.0)).collect();
    let y: Vec<Value> = (0..4096).map(|i| Value::from((i % 37) as f32 / 8.0)).collect();
    let mut executable = load(&gpu, &programs::operations(Type::F32, x.len()), Build::Timing);
    executable.upload(0, &bytes(&x)).unwrap();
    executable.upload(1, &bytes(&y)).unwrap();
    executable.run().unwrap();
    let results = patterns(&executable.download(0, 0).unwrap());
    for (case, row) in programs::cases(Type::F32).iter().zip(results.chunks_exact(x.len())) {
        if case.op.result_type(&case.operands) != Ok(Type::F32) || case.operands.len() > 2 {
            continue;
        }
        for (i, &word) in row.iter().enumerate() {
            let operands = [x[i], y[i]];
            let expected = case.op.eval(&operands[..case.operands.len()]).get::<f32>().unwrap();
            let found = f32::from_bits(word as u32);
            let error = (found - expected).abs() / expected.abs().max(1e-2);
            assert!(
                error < 1e-4 || found == expected || expected.is_nan(),
                "{:?} of {operands:?}: {found} {expected}",
                case.op
            );
        }
    }
    let timing = executable.time(&warploom_runtime::TimingOptions::quick()).unwrap();
    println!("{:?} {:?}", timing.of(Mode::Stream), timing.of(Mode::Graph));
}

#[test]
fn copies_arrive() {
    let Some(gpu) = testing::gpu("copies_arrive") else { return };
    let builds = [Build::Checking, Build::Timing].into_iter();
    for (build, width) in builds.flat_map(|build| [1, 2, 4].map(|width| (build, width))) {
        let mut executable = load(&gpu, &programs::copies(width), build);
        let types = programs::copied_types(width);
        let given: Vec<Vec<Value>> = types.iter().map(|ty| values(*ty, 2 * programs::COPIES)).collect();
        for (number, values) in given.iter().enumerate() {
            executable.upload(number, &bytes(values)).unwrap();
        }
        executable.run().unwrap();
        for (number, values) in given.iter().enumerate() {
            let turned: Vec<Value> =
                values.chunks(programs::COPIES).flat_map(|block| block.iter().rev().copied()).collect();
            assert_eq!(executable.download(number, 0).unwrap(), bytes(&turned), "{}", types[number]);
        }
    }
}
