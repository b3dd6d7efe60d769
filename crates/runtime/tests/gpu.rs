//! Programs on a real device. Without one, every test here reports that it was skipped.

use std::process::Command;
use std::time::Duration;

use warploom_runtime::cuda::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use warploom_runtime::cuda::{CudaContext, CudaSlice};
use warploom_runtime::nvrtc::{self, Arch};
use warploom_runtime::{
    DeviceBytes, DeviceBytesMut, Error, Gpu, Kernels, Mode, POISON, TimingOptions, testing,
};
use warploom_target::program::{Buffer, Code, Kernel, Program, Role, Step};

const SOURCE: &str = r#"
extern "C" __global__ void __launch_bounds__(128) scale(
        const float* in, float* out, const unsigned* params, int iteration0) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = (iteration0 == 0 ? in[i] : out[i]) * __uint_as_float(params[0]);
}
extern "C" __global__ void __launch_bounds__(128) shared(float* out) {
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < 25000; i += 128) tile[i] = (float)i;
    __syncthreads();
    out[blockIdx.x * 128 + threadIdx.x] = tile[24999 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(128) wild(float* out) {
    out[1ll << 40] = 1.0f;
}
"#;

const ELEMENTS: usize = 1024;

fn kernel(entry: &str, buffers: &[usize]) -> Kernel {
    Kernel {
        entry: entry.to_string(),
        grid: [8, 1, 1],
        threads: 128,
        shared_bytes: 0,
        dynamic_shared_bytes: 0,
        buffers: buffers.to_vec(),
        reads_params: false,
        iterations: Vec::new(),
    }
}

fn buffer(name: &str, role: Role) -> Buffer {
    Buffer { name: name.to_string(), elements: ELEMENTS, element_bytes: 4, role }
}

/// Multiplies by the param three times, or runs one kernel.
fn program(steps: Vec<Step>) -> Program {
    Program {
        name: "test".to_string(),
        code: Code::Source { text: SOURCE.to_string(), options: Vec::new() },
        kernels: vec![
            Kernel { reads_params: true, iterations: vec![0], ..kernel("scale", &[0, 1]) },
            Kernel { shared_bytes: 100_000, dynamic_shared_bytes: 100_000, ..kernel("shared", &[1]) },
            kernel("wild", &[1]),
        ],
        buffers: vec![buffer("in", Role::Input(0)), buffer("out", Role::Output { output: 0, value: 0 })],
        params: 1,
        steps,
    }
}

fn cube() -> Program {
    program(vec![Step::Loop { count: 3, body: vec![Step::Launch(0)] }])
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|word| f32::from_ne_bytes(*word)).collect()
}

fn input() -> Vec<u8> {
    (0..ELEMENTS).flat_map(|i| (i as f32).to_ne_bytes()).collect()
}

#[test]
fn gpu_runs_on_a_stream_and_as_a_graph() {
    let Some(gpu) = testing::gpu("gpu_runs_on_a_stream_and_as_a_graph") else { return };
    let mut cube = gpu.load(&cube()).unwrap();
    cube.upload(0, &input()).unwrap();
    let expect = |bytes: Vec<u8>, factor: f32| {
        let expected: Vec<f32> = (0..ELEMENTS).map(|i| i as f32 * factor * factor * factor).collect();
        assert_eq!(floats(&bytes), expected);
    };
    cube.set_params(&[2.0f32.to_bits()]).unwrap();
    cube.run().unwrap();
    expect(cube.download(0, 0).unwrap(), 2.0);
    cube.poison().unwrap();
    assert!(cube.download(0, 0).unwrap().iter().all(|&byte| byte == POISON));
    cube.run_step_by_step().unwrap();
    expect(cube.download(0, 0).unwrap(), 2.0);
    cube.poison().unwrap();
    cube.replay().unwrap();
    expect(cube.download(0, 0).unwrap(), 2.0);
    // The captured graph uses the new params.
    cube.set_params(&[0.5f32.to_bits()]).unwrap();
    cube.replay().unwrap();
    expect(cube.download(0, 0).unwrap(), 0.5);
}

#[test]
fn gpu_finds_what_is_not_written() {
    let Some(gpu) = testing::gpu("gpu_finds_what_is_not_written") else { return };
    let mut program = program(vec![Step::Launch(1)]);
    let mut whole = gpu.load(&program).unwrap();
    assert_eq!(floats(&whole.run_over_poison().unwrap()[0])[..2], [24999.0, 24998.0]);
    program.kernels[1].grid = [4, 1, 1];
    let half = gpu.load(&program).unwrap().run_over_poison();
    assert!(matches!(half, Err(Error::Unwritten { what, element: 512 }) if what == "out"));
}

#[test]
fn gpu_programs_share_inputs() {
    let Some(gpu) = testing::gpu("gpu_programs_share_inputs") else { return };
    let shared = gpu.upload("in", &input()).unwrap();
    assert_eq!(shared.bytes(), 4 * ELEMENTS);
    let load = || gpu.load_with(&cube(), std::slice::from_ref(&shared)).unwrap();
    let (mut first, mut second) = (load(), load());
    for cube in [&mut first, &mut second] {
        cube.set_params(&[1.0f32.to_bits()]).unwrap();
        cube.poison().unwrap();
        cube.replay().unwrap();
        assert_eq!(cube.download(0, 0).unwrap(), input());
    }
    // The inputs of one program do not affect the other.
    let zeros = vec![0; 4 * ELEMENTS];
    first.upload(0, &zeros).unwrap();
    for (cube, expected) in [(&mut first, zeros), (&mut second, input())] {
        cube.replay().unwrap();
        assert_eq!(cube.download(0, 0).unwrap(), expected);
    }
    let short = gpu.upload("in", &[0; 8]).unwrap();
    let refused = gpu.load_with(&cube(), &[short]);
    assert!(matches!(refused, Err(Error::WrongSize { expected: 4096, given: 8, .. })));
}

fn ramp() -> Vec<f32> {
    (0..ELEMENTS).map(|i| i as f32).collect()
}

fn times(factor: f32) -> Vec<f32> {
    ramp().iter().map(|value| value * factor).collect()
}

fn launch(
    cube: &mut Kernels,
    from: &CudaSlice<f32>,
    to: &mut CudaSlice<f32>,
    factor: f32,
) -> Result<(), Error> {
    cube.launch(&[&from.into()], &mut [&mut to.into()], &[factor.to_bits()])
}

#[test]
fn gpu_launches_on_memory_of_the_caller() {
    let Some(own) = testing::gpu("gpu_launches_on_memory_of_the_caller") else { return };
    let context = CudaContext::new(0).unwrap();
    let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    assert!(context.is_managing_stream_synchronization());
    let gpu = Gpu::on(&stream).unwrap();
    assert_eq!((gpu.device(), gpu.ordinal()), (own.device(), 0));
    let mut cube = gpu.load_kernels(&cube()).unwrap();
    // The input comes from another stream, and the output goes to it.
    let image = other.clone_htod(&ramp()).unwrap();
    let mut once = other.alloc_zeros::<f32>(ELEMENTS).unwrap();
    let mut twice = stream.alloc_zeros::<f32>(ELEMENTS).unwrap();
    launch(&mut cube, &image, &mut once, 2.0).unwrap();
    launch(&mut cube, &once, &mut twice, 0.25).unwrap();
    assert_eq!(other.clone_dtoh(&once).unwrap(), times(8.0));
    assert_eq!(other.clone_dtoh(&twice).unwrap(), times(0.125));
    assert!(context.is_event_tracking(), "it is as it was");

    let short = stream.alloc_zeros::<f32>(ELEMENTS - 1).unwrap();
    let error = launch(&mut cube, &short, &mut once, 1.0).unwrap_err();
    assert_eq!(error.to_string(), "`in` takes 4096 bytes, but 4092 were given");
    let error = cube.launch(&[], &mut [&mut (&mut once).into()], &[0]).unwrap_err();
    assert!(matches!(error, Error::WrongNumber { what: "inputs", expected: 1, given: 0 }), "{error}");
    let error = cube.launch(&[&(&image).into()], &mut [], &[0]).unwrap_err();
    assert!(matches!(error, Error::WrongNumber { what: "outputs", .. }), "{error}");
    let elsewhere = own.stream().clone_htod(&ramp()).unwrap();
    let error = launch(&mut cube, &elsewhere, &mut once, 1.0).unwrap_err();
    assert!(matches!(error, Error::OtherContext { .. }), "{error}");
}

#[test]
fn gpu_launches_keep_their_params() {
    let Some(gpu) = testing::gpu("gpu_launches_keep_their_params") else { return };
    let mut cube = gpu.load_kernels(&cube()).unwrap();
    let stream = gpu.stream();
    let image = stream.clone_htod(&ramp()).unwrap();
    let mut outputs: Vec<CudaSlice<f32>> = (0..64).map(|_| stream.alloc_zeros(ELEMENTS).unwrap()).collect();
    let factor = |number: usize| (number / 2 % 8) as f32;
    for (number, output) in outputs.iter_mut().enumerate() {
        launch(&mut cube, &image, output, factor(number)).unwrap();
    }
    drop(cube);
    for (number, output) in outputs.iter().enumerate() {
        assert_eq!(stream.clone_dtoh(output).unwrap(), times(factor(number).powi(3)), "{number}");
    }
}

#[test]
fn gpu_launches_become_part_of_a_graph() {
    let Some(_) = testing::gpu("gpu_launches_become_part_of_a_graph") else { return };
    let context = CudaContext::new(0).unwrap();
    let stream = context.new_stream().unwrap();
    let gpu = Gpu::on(&stream).unwrap();
    let mut cube_kernels = gpu.load_kernels(&cube()).unwrap();
    let image = stream.clone_htod(&ramp()).unwrap();
    let (mut once, mut twice) =
        (stream.alloc_zeros::<f32>(ELEMENTS).unwrap(), stream.alloc_zeros(ELEMENTS).unwrap());
    let begin = || stream.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
    let end = || stream.end_capture(CUgraphInstantiate_flags(0)).unwrap();

    let (compiled, _) = nvrtc::compile_program(&cube(), gpu.arch().unwrap()).unwrap();
    begin();
    assert!(gpu.is_capturing().unwrap());
    let tracked = launch(&mut cube_kernels, &image, &mut once, 2.0).unwrap_err();
    assert!(matches!(tracked, Error::Captured { .. }), "{tracked}");
    let late = gpu.load(&compiled).unwrap_err();
    assert!(matches!(late, Error::LoadedInCapture { .. }), "{late}");
    end();

    // SAFETY: everything below is on one stream.
    unsafe { context.disable_event_tracking() };
    begin();
    launch(&mut cube_kernels, &image, &mut once, 2.0).unwrap();
    launch(&mut cube_kernels, &once, &mut twice, 0.25).unwrap();
    let graph = end().unwrap();
    // SAFETY: as before.
    unsafe { context.enable_event_tracking() };
    assert_eq!(stream.clone_dtoh(&twice).unwrap(), vec![0.0; ELEMENTS], "nothing has run");
    for _ in 0..2 {
        graph.launch().unwrap();
        assert_eq!(stream.clone_dtoh(&once).unwrap(), times(8.0));
        assert_eq!(stream.clone_dtoh(&twice).unwrap(), times(0.125));
        // Neither program sees the params of the other.
        launch(&mut cube_kernels, &image, &mut twice, 3.0).unwrap();
        assert_eq!(stream.clone_dtoh(&twice).unwrap(), times(27.0));
    }
    drop(graph);
}

#[test]
fn gpu_takes_handles_and_addresses() {
    let Some(_) = testing::gpu("gpu_takes_handles_and_addresses") else { return };
    for context in [CudaContext::new(0).unwrap(), CudaContext::new_non_primary(0, 0).unwrap()] {
        let stream = context.new_stream().unwrap();
        let image = stream.clone_htod(&ramp()).unwrap().leak();
        let output = stream.alloc_zeros::<f32>(ELEMENTS).unwrap().leak();
        // SAFETY: both live until the end of this block.
        let gpu = unsafe { Gpu::from_raw(context.cu_ctx().cast(), stream.cu_stream().cast()) }.unwrap();
        let mut cube = gpu.load_kernels(&cube()).unwrap();
        let bytes = 4 * ELEMENTS;
        // SAFETY: the memory is freed below, in the order of the same stream; overlapping memory is
        // rejected.
        let (input, mut written, mut overlapping) = unsafe {
            (
                DeviceBytes::at(image, bytes),
                DeviceBytesMut::at(output, bytes),
                DeviceBytesMut::at(image + 16, bytes),
            )
        };
        let refused = cube.launch(&[&input], &mut [&mut overlapping], &[0]).unwrap_err();
        assert!(matches!(refused, Error::Overlap { .. }), "{refused}");
        cube.launch(&[&input], &mut [&mut written], &[2.0f32.to_bits()]).unwrap();
        // SAFETY: they were leaked above.
        let (image, output) = unsafe {
            (
                stream.upgrade_device_ptr::<f32>(image, ELEMENTS),
                stream.upgrade_device_ptr::<f32>(output, ELEMENTS),
            )
        };
        assert_eq!(stream.clone_dtoh(&output).unwrap(), times(8.0));
        drop((cube, gpu, image, output));
        // The context was not destroyed.
        assert_eq!(stream.clone_dtoh(&stream.clone_htod(&ramp()).unwrap()).unwrap(), ramp());
    }
}

#[test]
fn gpu_times_for_collection() {
    let Some(gpu) = testing::gpu("gpu_times_for_collection") else { return };
    let mut cube = gpu.load_with(&cube(), &[gpu.upload("in", &input()).unwrap()]).unwrap();
    cube.set_params(&[1.0f32.to_bits()]).unwrap();
    let timing = cube.time(&TimingOptions::collection()).unwrap();
    let sample = timing.of(Mode::Graph).unwrap();
    assert!(timing.samples.len() == 1 && sample.batches <= 5 && sample.runs > 50, "{sample:?}");
    assert!(sample.min_us > 0.1 && sample.median_us < 1000.0, "{sample:?}");
}

#[test]
fn gpu_gives_kernels_much_shared_memory() {
    let Some(gpu) = testing::gpu("gpu_gives_kernels_much_shared_memory") else { return };
    let mut shared = gpu.load(&program(vec![Step::Launch(1)])).unwrap();
    shared.run().unwrap();
    let out = floats(&shared.download(0, 0).unwrap());
    assert_eq!((out[0], out[127], out[128]), (24_999.0, 24_872.0, 24_999.0));
    let facts = shared.facts().unwrap();
    assert_eq!(facts[1].shared_bytes, 100_000);
    assert!(facts[1].blocks_per_sm >= 1 && facts[0].registers > 0, "{facts:?}");
    // The same code, compiled again, gives the same report.
    let image = gpu.load(&program(vec![Step::Launch(1)])).unwrap().image().unwrap().clone();
    assert_eq!(image.kernels, shared.image().unwrap().kernels);
    assert_eq!(facts[0].registers, image.kernels["scale"].registers);
}

#[test]
fn gpu_loads_compiled_programs() {
    let Some(gpu) = testing::gpu("gpu_loads_compiled_programs") else { return };
    for arch in [gpu.arch().unwrap(), Arch::Virtual(80)] {
        let (compiled, _) = nvrtc::compile_program(&cube(), arch).unwrap();
        let mut loaded = gpu.load(&compiled).unwrap();
        assert!(loaded.image().is_none());
        loaded.upload(0, &input()).unwrap();
        loaded.set_params(&[2.0f32.to_bits()]).unwrap();
        loaded.run().unwrap();
        assert_eq!(floats(&loaded.download(0, 0).unwrap())[5], 40.0, "{arch}");
    }
}

#[test]
fn gpu_runs_empty_programs() {
    let Some(gpu) = testing::gpu("gpu_runs_empty_programs") else { return };
    let mut nothing = program(Vec::new());
    nothing.buffers[1].elements = 0;
    nothing.params = 0;
    let mut nothing = gpu.load(&nothing).unwrap();
    nothing.set_params(&[]).unwrap();
    nothing.run().unwrap();
    nothing.replay().unwrap();
    nothing.poison().unwrap();
    assert_eq!(nothing.download(0, 0).unwrap(), Vec::<u8>::new());
}

#[test]
fn gpu_times_both_modes() {
    let Some(gpu) = testing::gpu("gpu_times_both_modes") else { return };
    let mut cube = gpu.load(&cube()).unwrap();
    cube.upload(0, &input()).unwrap();
    cube.set_params(&[1.0f32.to_bits()]).unwrap();
    let options = TimingOptions { total: Duration::from_millis(50), ..TimingOptions::default() };
    let timing = cube.time(&options).unwrap();
    for mode in [Mode::Stream, Mode::Graph] {
        let sample = timing.of(mode).unwrap();
        println!("{sample:?}");
        assert!(sample.min_us > 0.1 && sample.min_us <= sample.median_us, "{sample:?}");
        assert!(sample.median_us < 1000.0 && sample.runs >= 10, "{sample:?}");
    }
    assert!(timing.best().unwrap().min_us <= timing.of(Mode::Stream).unwrap().min_us);
}

#[test]
fn gpu_is_described() {
    let Some(gpu) = testing::gpu("gpu_is_described") else { return };
    let devices = Gpu::devices().unwrap();
    assert_eq!(&devices[0], gpu.device());
    gpu.device().validate().unwrap();
    println!("{}", gpu.device().to_json().unwrap());
    println!("driver {:?}, NVRTC {:?}", warploom_runtime::driver_version(), nvrtc::place());
    let (free, total) = gpu.memory_info().unwrap();
    assert!(free <= total && total as u64 <= gpu.device().memory.dram_bytes + (1 << 30));
    let error = Gpu::new(devices.len()).unwrap_err();
    assert!(matches!(error, Error::NoDevice { .. }), "{error}");
}

#[test]
fn gpu_memory_is_used_again() {
    let Some(gpu) = testing::gpu("gpu_memory_is_used_again") else { return };
    drop(gpu.load(&cube()).unwrap());
    let kept = gpu.kept_bytes();
    assert!(kept >= 2 * ELEMENTS * 4, "{kept}");
    let loaded = gpu.load(&cube()).unwrap();
    assert_eq!(gpu.kept_bytes(), 0);
    drop(loaded);
    assert_eq!(gpu.kept_bytes(), kept);
    gpu.trim().unwrap();
    assert_eq!(gpu.kept_bytes(), 0);
}

#[test]
fn gpu_errors_are_errors() {
    let Some(gpu) = testing::gpu("gpu_errors_are_errors") else { return };
    let mut loaded = gpu.load(&cube()).unwrap();
    let error = loaded.upload(0, &[0; 12]).unwrap_err();
    assert_eq!(error.to_string(), "`in` takes 4096 bytes, but 12 were given");
    assert!(matches!(loaded.upload(1, &[]), Err(Error::NoBuffer { .. })));
    assert!(matches!(loaded.download(0, 1), Err(Error::NoBuffer { .. })));
    assert!(matches!(loaded.set_params(&[]), Err(Error::WrongSize { .. })));

    let mut huge = cube();
    huge.buffers[0].elements = 1 << 46;
    let error = gpu.load(&huge).unwrap_err();
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");

    let mut absent = cube();
    absent.kernels[0].entry = "absent".to_string();
    let error = gpu.load(&absent).unwrap_err();
    assert!(error.to_string().contains("find kernel `absent`"), "{error}");

    let damaged = Program { code: Code::Cubin(vec![1, 2, 3]), ..cube() };
    assert!(matches!(gpu.load(&damaged), Err(Error::DamagedCode { .. })));
    let nonsense = Program { code: Code::Ptx("nonsense".to_string()), ..cube() };
    let error = gpu.load(&nonsense).unwrap_err();
    assert!(error.to_string().contains("load the code"), "{error}");
    // The device still works.
    loaded.upload(0, &input()).unwrap();
    loaded.set_params(&[1.0f32.to_bits()]).unwrap();
    loaded.run().unwrap();
}

#[test]
fn gpu_faults_are_errors() {
    let Some(_) = testing::gpu("gpu_faults_are_errors") else { return };
    // A fault makes the device unusable for its process, so this runs in a separate one.
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "fault_in_a_process_of_its_own", "--nocapture"])
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
}

#[test]
#[ignore = "started by gpu_faults_are_errors"]
fn fault_in_a_process_of_its_own() {
    let gpu = Gpu::new(0).unwrap();
    let mut wild = gpu.load(&program(vec![Step::Launch(2)])).unwrap();
    let error = wild.run_step_by_step().unwrap_err();
    assert!(error.is_fault() && error.to_string().contains("kernel `wild`"), "{error}");
    let error = wild.run().unwrap_err();
    assert!(error.is_fault(), "{error}");
    assert!(gpu.load(&cube()).is_err());
}

#[test]
fn without_a_driver_there_is_a_sentence() {
    if let Err(error) = Gpu::devices() {
        let text = error.to_string();
        assert!(text.contains("driver"), "{text}");
        assert!(Gpu::new(0).is_err());
    }
}
