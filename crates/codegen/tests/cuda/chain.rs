//! How kernels that follow each other are printed: which wait, and which pointers depend on the wait; and that a GPU runs
//! them in order although they start early.

use warploom_codegen::ir::{BufferId, KernelId, Launch, Leaf, Program, Role};
use warploom_codegen::printer::{Build, PRINTER};
use warploom_lang::{Id, Type};
use warploom_runtime::cuda::nvrtc::{self, Arch};
use warploom_runtime::{Driver, Executable, Execute, Gpu, Launches, testing};
use warploom_target::program::Code;

use crate::programs;
use crate::raw::RawProgram;

const ELEMENTS: usize = 1024;

/// A program in which kernels named `a`, `b`, ... copy buffers: `input`, `first`, `second` and `out` are number 0 to 3.
fn copies(pairs: &[(usize, usize)]) -> Program {
    let mut program = RawProgram::new("copies");
    program.input("input", Type::F32, ELEMENTS);
    program.buffer("first", Type::F32, ELEMENTS, Role::Temporary);
    program.buffer("second", Type::F32, ELEMENTS, Role::Temporary);
    program.output("out", Type::F32, ELEMENTS);
    for (number, &(from, to)) in pairs.iter().enumerate() {
        let name = char::from(b'a' + number as u8).to_string();
        let mut kernel = program.kernel(&name, [1, 1, 1], ELEMENTS as u32);
        let [from, to] = [from, to].map(|buffer| kernel.global(BufferId::new(buffer)));
        let index = kernel.leaf(Leaf::Thread);
        let value = kernel.load(from, index);
        kernel.store(to, index, value);
        program.launch(kernel);
    }
    program.program
}

/// Kernels by number, in order.
fn kernels(numbers: &[usize]) -> Vec<Launch> {
    numbers.iter().map(|&number| Launch::Kernel(KernelId::new(number))).collect()
}

fn repeated(count: u32, body: Vec<Launch>) -> Launch {
    Launch::Loop { count, limit: None, body }
}

const WAIT: &str = "const unsigned long long origin = wl_await_previous();";

/// The parameters of each kernel, and the pointers that depend on its wait; `None` if it does not wait.
fn beginnings(program: &Program) -> Vec<(String, Option<String>)> {
    let text = PRINTER.print(program, Build::Timing);
    let kernel = |text: &str| {
        let (head, body) = text.split_once(") {\n")?;
        let parameters = head.split_once("(1024) ")?.1;
        let mut lines = body.lines().map(str::trim).peekable();
        let waits = lines.next_if_eq(&WAIT).is_some();
        let pointers = lines.map_while(|line| {
            let (pointer, value) = line.split_once(" = ")?;
            (value == format!("wl_after({pointer}, origin);")).then_some(pointer)
        });
        let pointers: Vec<&str> = pointers.collect();
        Some((parameters.to_string(), waits.then(|| pointers.join(" "))))
    };
    let parts = text.split("extern \"C\"").skip(1).map(|part| kernel(part).expect("it is a kernel"));
    parts.collect()
}

fn assert_begins(program: &Program, expected: &[(&str, Option<&str>)]) {
    let found = beginnings(program);
    let found: Vec<(&str, Option<&str>)> =
        found.iter().map(|(head, pointers)| (head.as_str(), pointers.as_deref())).collect();
    assert_eq!(found, expected);
    let waits: Vec<bool> =
        PRINTER.describe(program, Build::Timing).kernels.iter().map(|kernel| kernel.waits).collect();
    let waiting: Vec<bool> = expected.iter().map(|(_, pointers)| pointers.is_some()).collect();
    assert_eq!(waits, waiting);
}

#[test]
fn all_but_the_first_wait_before_they_touch_what_kernels_write() {
    assert_begins(
        &copies(&[(0, 1), (1, 2), (0, 3)]),
        &[
            ("a(const float* __restrict__ input, float* __restrict__ first", None),
            ("b(const float* __restrict__ first, float* __restrict__ second", Some("first second")),
            // It needs nothing of the others, and waits.
            ("c(const float* __restrict__ input, float* __restrict__ out", Some("out")),
        ],
    );
}

#[test]
fn a_single_launch_is_printed_as_if_nothing_followed() {
    let alone = [("a(const float* __restrict__ input, float* __restrict__ out", None)];
    assert_begins(&copies(&[(0, 3)]), &alone);
    let once = copies(&[(0, 3)]);
    let once = Program { launches: vec![repeated(1, vec![repeated(1, once.launches)])], ..once };
    assert_begins(&once, &alone);
    assert!(!PRINTER.print(&programs::blur(), Build::Timing).contains("griddepcontrol"));
}

#[test]
fn launches_of_a_loop_follow_each_other() {
    let copy = copies(&[(0, 3)]);
    let own = [("a(const float* __restrict__ input, float* __restrict__ out", Some("out"))];
    for launches in [
        vec![repeated(2, kernels(&[0]))],
        vec![repeated(1, vec![repeated(7, kernels(&[0]))])],
        vec![repeated(7, vec![repeated(1, kernels(&[0]))])],
    ] {
        assert_begins(&Program { launches, ..copy.clone() }, &own);
    }
    // A loop without iterations comes before nothing.
    let program = copies(&[(0, 1), (0, 3)]);
    let launches = vec![repeated(0, kernels(&[0])), Launch::Kernel(KernelId::new(1))];
    assert_begins(
        &Program { launches, ..program },
        &[
            ("a(const float* __restrict__ input, float* __restrict__ first", None),
            ("b(const float* __restrict__ input, float* __restrict__ out", None),
        ],
    );
}

#[test]
fn a_part_depends_only_on_whether_a_launch_comes_before_it() {
    let part = |program: &Program, number: usize| match PRINTER.describe_in_parts(program, Build::Timing).code
    {
        Code::Parts(parts) => parts[number].clone(),
        other => panic!("{other:?}"),
    };
    let (two, three) = (copies(&[(0, 1), (1, 3)]), copies(&[(0, 1), (1, 3), (0, 2)]));
    assert_eq!(part(&two, 0), part(&three, 0));
    assert_eq!(part(&two, 1), part(&three, 1));
    let swapped = Program { launches: kernels(&[1, 0]), ..two.clone() };
    assert_ne!(part(&two, 0), part(&swapped, 0));
}

#[test]
fn nvrtc_an_array_may_be_called_as_what_the_wait_gives() {
    let mut program = copies(&[(0, 1), (1, 3)]);
    for kernel in program.kernels.values_mut() {
        kernel.arrays.values_mut().for_each(|array| array.name = "origin".to_string());
    }
    let text = PRINTER.print(&program, Build::Timing);
    assert!(text.contains("a(const float* __restrict__ origin, "), "the first one does not wait: {text}");
    assert_eq!(text.matches(WAIT).count(), 1, "{text}");
    if testing::has_nvrtc("nvrtc_an_array_may_be_called_as_what_the_wait_gives") {
        nvrtc::compile(&text, Arch::Virtual(90), &PRINTER.options(Build::Timing)).unwrap();
    }
}

#[test]
fn nvrtc_only_code_for_new_devices_waits() {
    if !testing::has_nvrtc("nvrtc_only_code_for_new_devices_waits") {
        return;
    }
    let program = copies(&[(0, 1), (1, 2), (2, 1), (1, 3)]);
    for build in [Build::Checking, Build::Timing] {
        let text = PRINTER.print(&program, build);
        let ptx = |arch| nvrtc::compile(&text, Arch::Virtual(arch), &PRINTER.options(build)).unwrap().ptx;
        assert_eq!(ptx(90).matches("griddepcontrol.wait").count(), 3);
        assert_eq!(ptx(80).matches("griddepcontrol").count(), 0, "older devices have no such instruction");
        for arch in [80, 90] {
            assert_eq!(
                ptx(arch).matches("ld.global.nc").count(),
                4,
                "all memory is constant while a kernel runs"
            );
        }
    }
}

/// A program whose first kernel lets the second one start at once, and stores a millisecond later. (Printed kernels let
/// others start when they end. So they overlap too little to show that a wait is missing.)
fn with_a_late_first(program: &Program) -> warploom_target::program::Program {
    let mut described = PRINTER.describe(program, Build::Timing);
    let Code::Source { text, .. } = &mut described.code else { panic!("it is text") };
    let kernel = text.find("extern \"C\"").expect("it has a kernel");
    let start = kernel + text[kernel..].find(") {\n").expect("it has a body") + ") {\n".len();
    text.insert_str(
        start,
        "    asm volatile(\"griddepcontrol.launch_dependents;\" ::: \"memory\");
    for (const long long start = clock64(); clock64() - start < 2000000;) {}\n",
    );
    described
}

fn ramp() -> Vec<u8> {
    (0..ELEMENTS).flat_map(|i| (i as f32 + 0.5).to_le_bytes()).collect()
}

/// Whether the results in a stream and as a graph are right.
fn is_right(loaded: &mut Executable) -> [bool; 2] {
    [Executable::run, Executable::replay].map(|run| {
        loaded.poison().unwrap();
        run(loaded).unwrap();
        loaded.download(0, 0).unwrap() == ramp()
    })
}

/// Loads a program of two copies with a late first one, after a change of its text.
fn load(gpu: &Gpu, change: impl Fn(&str) -> String) -> Executable {
    let mut program = with_a_late_first(&copies(&[(0, 1), (1, 3)]));
    let Code::Source { text, .. } = &mut program.code else { panic!("it is text") };
    *text = change(text);
    let mut loaded = gpu.load(&program).unwrap();
    loaded.upload(0, &ramp()).unwrap();
    loaded
}

#[test]
fn gpu_printed_kernels_wait_for_a_late_one_and_without_the_wait_are_wrong() {
    let test = "gpu_printed_kernels_wait_for_a_late_one_and_without_the_wait_are_wrong";
    let Some(gpu) = testing::gpu(test).filter(|gpu| gpu.device().features().early_launches) else { return };
    let mut whole = load(&gpu, str::to_string);
    whole.set_launches(Launches::Early);
    assert_eq!(whole.early_launches(), 1);
    for round in 0..20 {
        assert_eq!(is_right(&mut whole), [true; 2], "round {round}");
    }
    let mut careless = load(&gpu, |text| text.replace("= wl_await_previous();", "= 0;"));
    careless.set_launches(Launches::Early);
    assert_eq!(is_right(&mut careless), [false; 2]);
    careless.set_launches(Launches::Plain);
    assert_eq!(is_right(&mut careless), [true; 2]);
}
