//! Kernels that start before their predecessor has ended. The last block of the predecessor takes a millisecond, and most
//! late kernels let the next one start at once, so that one which does not wait gives wrong results. Without a device that
//! can do this, every test reports that it was skipped or ends early.

use warploom_runtime::cuda::nvrtc::{self, Arch};
use warploom_runtime::{Driver, Executable, Execute, Gpu, Launches, Mode, TimingOptions, testing};
use warploom_target::program::{Code, Kernel, LaunchStep, Program, Role};

use crate::Turn;
use crate::support::{ELEMENTS, buffer, kernel};

/// `WAIT_name` is where kernel `name` waits.
const SOURCE: &str = r#"
#if __CUDA_ARCH__ >= 900
#define LET_NEXT_START asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define WAIT asm volatile("griddepcontrol.wait;\n\tmov.u64 %0, 0;" : "=l"(origin) :: "memory")
#else
#define LET_NEXT_START
#define WAIT
#endif
#define AFTER(pointer) pointer = (decltype(pointer))((char*)pointer + origin)
#define I (blockIdx.x * 128 + threadIdx.x)

static __device__ void be_late() {
    if (blockIdx.x + 1 < gridDim.x) return;
    const long long start = clock64();
    while (clock64() - start < 2000000) {}
}
extern "C" __global__ void __launch_bounds__(128) write(const float* __restrict__ in, float* __restrict__ between) {
    unsigned long long origin = 0;
    WAIT_write;
    AFTER(between);
    between[I] = in[I];
}
extern "C" __global__ void __launch_bounds__(128) write_late(const float* __restrict__ in, float* __restrict__ between) {
    LET_NEXT_START;
    unsigned long long origin = 0;
    WAIT_write_late;
    AFTER(between);
    be_late();
    between[I] = in[I];
}
extern "C" __global__ void __launch_bounds__(128) bystander(float* __restrict__ other) {
    LET_NEXT_START;
    unsigned long long origin = 0;
    WAIT_bystander;
    AFTER(other);
    other[I] = 1.0f;
}
extern "C" __global__ void __launch_bounds__(128) read(const float* __restrict__ between, float* __restrict__ out) {
    unsigned long long origin = 0;
    WAIT_read;
    AFTER(between);
    AFTER(out);
    out[I] = between[I];
}
extern "C" __global__ void __launch_bounds__(128) read_late(const float* __restrict__ between, float* __restrict__ out) {
    LET_NEXT_START;
    unsigned long long origin = 0;
    WAIT_read_late;
    AFTER(between);
    AFTER(out);
    be_late();
    out[I] = between[I];
}
extern "C" __global__ void __launch_bounds__(128) erase_odd(float* __restrict__ between) {
    unsigned long long origin = 0;
    WAIT_erase_odd;
    AFTER(between);
    if (I % 2 == 1) between[I] = 0.0f;
}
extern "C" __global__ void __launch_bounds__(128) count(float* __restrict__ other, int iteration0) {
    unsigned long long origin = 0;
    WAIT_count;
    AFTER(other);
    other[I] = iteration0 == 0 ? 0.0f : other[I] + 1.0f;
}
// All blocks load the even elements, and with them their neighbours into their caches, which the last block then changes.
extern "C" __global__ void __launch_bounds__(128) touch(const float* __restrict__ in, float* between, float* __restrict__ other) {
    unsigned long long origin = 0;
    WAIT_touch;
    AFTER(between);
    AFTER(other);
    float sum = 0.0f;
    for (int i = threadIdx.x * 2; i < 1024; i += 256) sum += between[i];
    other[I] = sum;
    be_late();
    if (blockIdx.x + 1 < gridDim.x) return;
    for (int i = threadIdx.x * 2 + 1; i < 1024; i += 256) between[i] = in[i];
}
"#;

const NAMES: [&str; 8] =
    ["write", "write_late", "bystander", "read", "read_late", "erase_odd", "count", "touch"];

const WRITE: usize = 0;
const WRITE_LATE: usize = 1;
const BYSTANDER: usize = 2;
const READ: usize = 3;
const READ_LATE: usize = 4;
const ERASE_ODD: usize = 5;
const COUNT: usize = 6;
const TOUCH: usize = 7;

/// A program whose kernels wait, but for one.
fn program(steps: Vec<LaunchStep>, careless: Option<usize>) -> Program {
    let (input, between, other, out) = (0, 1, 2, 3);
    let text = NAMES.iter().enumerate().fold(SOURCE.to_string(), |text, (number, name)| {
        let wait = if careless == Some(number) { "" } else { "WAIT;" };
        text.replace(&format!("WAIT_{name};"), wait)
    });
    let waiting = |number: usize, buffers: &[usize]| Kernel { waits: true, ..kernel(NAMES[number], buffers) };
    Program {
        name: "early".to_string(),
        code: Code::Source { text, options: Vec::new() },
        kernels: vec![
            waiting(WRITE, &[input, between]),
            waiting(WRITE_LATE, &[input, between]),
            waiting(BYSTANDER, &[other]),
            waiting(READ, &[between, out]),
            waiting(READ_LATE, &[between, out]),
            waiting(ERASE_ODD, &[between]),
            Kernel { iterations: vec![0], ..waiting(COUNT, &[other]) },
            waiting(TOUCH, &[input, between, other]),
        ],
        buffers: vec![
            buffer("in", Role::Input(0)),
            buffer("between", Role::Temporary),
            buffer("other", Role::Temporary),
            buffer("out", Role::Output { output: 0, value: 0 }),
        ],
        params: 0,
        steps,
    }
}

/// Ways in which a kernel depends on one before it, and the kernel whose missing wait shows. (Without that of the one
/// between them an H200 gives the right answer too, though nothing promises that.)
fn cases() -> [(&'static str, Vec<LaunchStep>, Option<usize>); 4] {
    let launches = |kernels: &[usize]| kernels.iter().map(|&kernel| LaunchStep::Launch(kernel)).collect();
    [
        ("it reads what was written", launches(&[WRITE_LATE, READ]), Some(READ)),
        ("one between them touches neither", launches(&[WRITE_LATE, BYSTANDER, READ]), None),
        ("it overwrites what was read", launches(&[WRITE, READ_LATE, ERASE_ODD]), Some(ERASE_ODD)),
        ("what it reads was in caches before it changed", launches(&[WRITE, ERASE_ODD, TOUCH, READ]), None),
    ]
}

/// The first GPU, if its kernels can start early.
fn gpu(test: &str) -> Option<Turn> {
    let gpu = crate::gpu(test)?;
    (gpu.device().features().early_launches).then_some(gpu)
}

fn load(gpu: &Gpu, program: &Program) -> Executable {
    let mut loaded = gpu.load(program).expect("it compiles");
    loaded.upload(0, &bytes(ramp())).expect("it is the input");
    loaded
}

fn ramp() -> Vec<f32> {
    (0..ELEMENTS).map(|i| i as f32 + 0.5).collect()
}

fn bytes(values: Vec<f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// Whether the results in a stream and as a graph are right.
fn is_right(loaded: &mut Executable) -> [bool; 2] {
    [Executable::run, Executable::replay].map(|run| {
        loaded.poison().expect("there is memory");
        run(loaded).expect("it runs");
        loaded.download(0, 0).expect("it is the output") == bytes(ramp())
    })
}

#[test]
fn nvrtc_old_devices_have_no_instructions_for_this() {
    if !testing::has_nvrtc("nvrtc_old_devices_have_no_instructions_for_this") {
        return;
    }
    let waits = |arch, careless| {
        let (compiled, _) = nvrtc::compile_program(&program(Vec::new(), careless), arch).unwrap();
        let Code::Virtual(text) = compiled.code else { panic!("it is virtual code") };
        text.matches("griddepcontrol.wait").count()
    };
    assert_eq!(waits(Arch::Virtual(80), None), 0);
    assert_eq!(waits(Arch::Virtual(90), None), NAMES.len());
    assert_eq!(waits(Arch::Virtual(90), Some(READ)), NAMES.len() - 1);
}

#[test]
fn gpu_kernels_that_start_early_wait() {
    let Some(gpu) = gpu("gpu_kernels_that_start_early_wait") else { return };
    for (case, steps, _) in cases() {
        let later = steps.len() - 1;
        let mut loaded = load(&gpu, &program(steps, None));
        loaded.set_launches(Launches::Early);
        assert_eq!(loaded.early_launches(), later, "{case}");
        for round in 0..20 {
            assert_eq!(is_right(&mut loaded), [true; 2], "{case}, round {round}");
        }
    }
}

/// So the kernels do overlap, and the test above would notice a missing wait.
#[test]
fn gpu_kernels_that_do_not_wait_are_wrong_only_if_they_start_early() {
    let test = "gpu_kernels_that_do_not_wait_are_wrong_only_if_they_start_early";
    let Some(gpu) = gpu(test) else { return };
    for (case, steps, careless) in cases().into_iter().filter(|(.., careless)| careless.is_some()) {
        let mut loaded = load(&gpu, &program(steps, careless));
        loaded.set_launches(Launches::Early);
        assert_eq!(is_right(&mut loaded), [false; 2], "{case}");
        loaded.set_launches(Launches::Plain);
        assert_eq!(loaded.early_launches(), 0);
        assert_eq!(is_right(&mut loaded), [true; 2], "{case}");
    }
}

/// A new device runs code for old ones, in which there is no wait.
#[test]
fn gpu_code_for_old_devices_does_not_start_early() {
    let Some(gpu) = gpu("gpu_code_for_old_devices_does_not_start_early") else { return };
    for (case, steps, _) in cases() {
        let (compiled, _) = nvrtc::compile_program(&program(steps, None), Arch::Virtual(80)).unwrap();
        let mut loaded = load(&gpu, &compiled);
        loaded.set_launches(Launches::Early);
        assert_eq!(loaded.early_launches(), 0, "{case}");
        assert_eq!(is_right(&mut loaded), [true; 2], "{case}");
    }
}

#[test]
fn gpu_early_launches_take_less_time() {
    let Some(gpu) = gpu("gpu_early_launches_take_less_time") else { return };
    let steps =
        vec![LaunchStep::Launch(WRITE), LaunchStep::Loop { count: 8, body: vec![LaunchStep::Launch(COUNT)] }];
    let mut loaded = load(&gpu, &program(steps, None));
    let mut time = |kind| {
        loaded.set_launches(kind);
        loaded.time(&TimingOptions::default()).unwrap()
    };
    let (plain, early) = (time(Launches::Plain), time(Launches::Early));
    for mode in [Mode::Stream, Mode::Graph] {
        let [plain, early] = [&plain, &early].map(|timing| timing.of(mode).unwrap().min_us);
        eprintln!("9 small kernels, {mode:?}: plain {plain:.2} us, early {early:.2} us");
    }
    let [plain, early] = [&plain, &early].map(|timing| timing.of(Mode::Graph).unwrap().min_us);
    assert!(early < plain, "{early} {plain}");
}
