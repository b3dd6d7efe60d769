//! Launches on streams and memory of the caller, from several streams and threads and in graphs.
//! Without a device, every test that needs one reports that it was skipped.

mod contexts;
mod early;
#[path = "../support/mod.rs"]
mod support;

use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use warploom_runtime::cuda::nvrtc;
use warploom_runtime::cuda::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use warploom_runtime::cuda::{CudaContext, CudaGraph, CudaSlice, CudaStream};
use warploom_runtime::testing::{self, Leaked};
use warploom_runtime::{
    DeviceBytes, DeviceBytesMut, Driver, Error, Gpu, Kernels, Launcher, Workspace, is_capturing,
};
use warploom_target::program::{Code, Kernel, LaunchStep, Program, Role};

use support::{ELEMENTS, buffer, cube, kernel};

/// The first kernel runs for about two milliseconds after it has written what the second one reads.
const RELAY: &str = r#"
extern "C" __global__ void __launch_bounds__(128) slow(
        const float* in, float* between, const unsigned* params) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    between[i] = in[i] * __uint_as_float(params[0]);
    const long long start = clock64();
    while (clock64() - start < 4000000) {}
}
extern "C" __global__ void __launch_bounds__(128) finish(
        const float* between, float* out, const unsigned* params) {
    const int i = blockIdx.x * 128 + threadIdx.x;
    out[i] = between[i] * __uint_as_float(params[0]);
}
"#;

/// Multiplies by the square of the param, through a temporary.
fn relay() -> Program {
    let steps = vec![LaunchStep::Launch(0), LaunchStep::Launch(1)];
    Program {
        name: "relay".to_string(),
        code: Code::Source { text: RELAY.to_string(), options: Vec::new() },
        kernels: vec![
            Kernel { reads_params: true, ..kernel("slow", &[0, 1]) },
            Kernel { reads_params: true, ..kernel("finish", &[1, 2]) },
        ],
        buffers: vec![
            buffer("in", Role::Input(0)),
            buffer("between", Role::Temporary),
            buffer("out", Role::Output { output: 0, value: 0 }),
        ],
        params: 1,
        steps,
    }
}

/// The first GPU, for one test at a time: while one captures, the driver refuses what others do to the same context.
struct Turn {
    gpu: Gpu,
    _turn: MutexGuard<'static, ()>,
}

impl Deref for Turn {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        &self.gpu
    }
}

fn gpu(test: &str) -> Option<Turn> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    testing::gpu(test).map(|gpu| Turn { gpu, _turn: turn })
}

fn ramp() -> Vec<f32> {
    (0..ELEMENTS).map(|i| i as f32).collect()
}

fn times(factor: f32) -> Vec<f32> {
    ramp().iter().map(|value| value * factor).collect()
}

/// Kernels with one workspace and one stream.
struct Single {
    kernels: Kernels,
    workspace: Workspace,
    stream: Arc<CudaStream>,
}

impl Single {
    fn new(gpu: &Gpu, program: &Program) -> Single {
        let kernels = gpu.load_kernels(program).expect("it compiles");
        let workspace = kernels.workspace().expect("there is room");
        Single { kernels, workspace, stream: gpu.stream().clone() }
    }

    fn launch(&mut self, from: &CudaSlice<f32>, to: &mut CudaSlice<f32>, factor: f32) -> Result<(), Error> {
        let Single { kernels, workspace, stream } = self;
        let params = [factor.to_bits()];
        kernels.launch(stream, workspace, &[&from.into()], &mut [&mut to.into()], &params)
    }

    fn launch_leaked(&mut self, from: &Leaked<f32>, to: &Leaked<f32>, factor: f32) -> Result<(), Error> {
        let Single { kernels, workspace, stream } = self;
        kernels.launch(stream, workspace, &[&from.input()], &mut [&mut to.output()], &[factor.to_bits()])
    }
}

/// Memory that a graph may use.
fn leaked(stream: &Arc<CudaStream>) -> Leaked<f32> {
    Leaked::new(stream, &ramp()).expect("there is room")
}

fn begin(stream: &CudaStream) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    stream.begin_capture(mode).expect("it can be captured");
}

fn end(stream: &Arc<CudaStream>) -> Option<CudaGraph> {
    stream.end_capture(CUgraphInstantiate_flags(0)).expect("it was captured")
}

#[test]
fn gpu_launches_on_memory_of_the_caller() {
    let Some(own) = gpu("gpu_launches_on_memory_of_the_caller") else { return };
    let context = CudaContext::new(0).unwrap();
    let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    assert!(context.is_managing_stream_synchronization());
    let gpu = Gpu::on(&stream).unwrap();
    assert_eq!((gpu.device(), gpu.ordinal()), (own.device(), 0));
    let mut cube = Single::new(&gpu, &cube());
    // The input comes from another stream, and the output goes to it.
    let image = other.clone_htod(&ramp()).unwrap();
    let mut once = other.alloc_zeros::<f32>(ELEMENTS).unwrap();
    let mut twice = stream.alloc_zeros::<f32>(ELEMENTS).unwrap();
    cube.launch(&image, &mut once, 2.0).unwrap();
    cube.launch(&once, &mut twice, 0.25).unwrap();
    assert_eq!(other.clone_dtoh(&once).unwrap(), times(8.0));
    assert_eq!(other.clone_dtoh(&twice).unwrap(), times(0.125));
    assert!(context.is_event_tracking(), "it is as it was");

    let short = stream.alloc_zeros::<f32>(ELEMENTS - 1).unwrap();
    let error = cube.launch(&short, &mut once, 1.0).unwrap_err();
    assert_eq!(error.to_string(), "`in` takes 4096 bytes, but 4092 were given");
    let Single { kernels, workspace, .. } = &mut cube;
    let once = &mut (&mut once).into();
    let error = kernels.launch(&stream, workspace, &[], &mut [once], &[0]).unwrap_err();
    assert!(matches!(error, Error::WrongNumber { what: "inputs", expected: 1, given: 0 }), "{error}");
    let error = kernels.launch(&stream, workspace, &[&(&image).into()], &mut [], &[0]).unwrap_err();
    assert!(matches!(error, Error::WrongNumber { what: "outputs", .. }), "{error}");
    let error = kernels.launch(&stream, workspace, &[&(&image).into()], &mut [once], &[]).unwrap_err();
    assert!(matches!(error, Error::WrongSize { expected: 4, given: 0, .. }), "{error}");
    let elsewhere = own.stream().clone_htod(&ramp()).unwrap();
    let error = cube.launch(&elsewhere, &mut twice, 1.0).unwrap_err();
    assert!(matches!(error, Error::OtherContext { .. }), "{error}");
}

#[test]
fn gpu_launches_keep_their_params() {
    let Some(gpu) = gpu("gpu_launches_keep_their_params") else { return };
    let mut cube = Single::new(&gpu, &cube());
    let stream = gpu.stream();
    let image = stream.clone_htod(&ramp()).unwrap();
    let mut outputs: Vec<CudaSlice<f32>> = (0..64).map(|_| stream.alloc_zeros(ELEMENTS).unwrap()).collect();
    let factor = |number: usize| (number / 2 % 8) as f32;
    for (number, output) in outputs.iter_mut().enumerate() {
        cube.launch(&image, output, factor(number)).unwrap();
    }
    drop(cube);
    for (number, output) in outputs.iter().enumerate() {
        assert_eq!(stream.clone_dtoh(output).unwrap(), times(factor(number).powi(3)), "{number}");
    }
}

#[test]
fn gpu_launches_become_part_of_a_graph() {
    let Some(_turn) = gpu("gpu_launches_become_part_of_a_graph") else { return };
    let context = CudaContext::new(0).unwrap();
    let stream = context.new_stream().unwrap();
    let gpu = Gpu::on(&stream).unwrap();
    let (mut captured, mut eager) = (Single::new(&gpu, &cube()), Single::new(&gpu, &cube()));
    let launcher = Launcher::new(gpu.load_kernels(&cube()).unwrap());
    let (image, once, twice) = (leaked(&stream), leaked(&stream), leaked(&stream));
    let borrowed = stream.clone_htod(&ramp()).unwrap();
    let mut dropped = stream.alloc_zeros::<f32>(ELEMENTS).unwrap();

    let (compiled, _) = nvrtc::compile_program(&cube(), gpu.arch().unwrap()).unwrap();
    // SAFETY: everything below is on one stream. Without events, borrowed memory could be captured.
    unsafe { context.disable_event_tracking() };
    begin(&stream);
    assert!(gpu.is_capturing().unwrap() && is_capturing(&stream).unwrap());
    let refused = captured.launch(&borrowed, &mut dropped, 2.0).unwrap_err();
    assert!(matches!(refused, Error::Captured { .. }), "{refused}");
    let late = gpu.load(&compiled).unwrap_err();
    assert!(matches!(late, Error::LoadedInCapture { .. }), "{late}");
    let waits = launcher.run(&[vec![0; 4 * ELEMENTS]], &[0]).unwrap_err();
    assert!(matches!(waits, Error::HostInCapture { .. }), "{waits}");
    captured.launch_leaked(&image, &once, 2.0).unwrap();
    captured.launch_leaked(&once, &twice, 0.25).unwrap();
    let graph = end(&stream).unwrap();
    // SAFETY: as before.
    unsafe { context.enable_event_tracking() };
    drop((borrowed, dropped));
    assert_eq!(twice.read().unwrap(), ramp(), "nothing has run");
    let refused = captured.launch_leaked(&image, &twice, 3.0).unwrap_err();
    assert!(matches!(refused, Error::WorkspaceInGraph { .. }), "{refused}");
    // The graph keeps what it needs.
    drop(captured);
    for _ in 0..2 {
        graph.launch().unwrap();
        assert_eq!(once.read().unwrap(), times(8.0));
        assert_eq!(twice.read().unwrap(), times(0.125));
        // Neither program sees the params of the other.
        eager.launch_leaked(&image, &twice, 3.0).unwrap();
        assert_eq!(twice.read().unwrap(), times(27.0));
    }
    drop(graph);
}

#[test]
fn gpu_takes_handles_and_addresses() {
    let Some(_turn) = gpu("gpu_takes_handles_and_addresses") else { return };
    for context in [CudaContext::new(0).unwrap(), CudaContext::new_non_primary(0, 0).unwrap()] {
        let stream = context.new_stream().unwrap();
        let image = stream.clone_htod(&ramp()).unwrap().leak();
        let output = stream.alloc_zeros::<f32>(ELEMENTS).unwrap().leak();
        // SAFETY: both live until the end of this block.
        let gpu = unsafe { Gpu::from_raw(context.cu_ctx().cast(), stream.cu_stream().cast()) }.unwrap();
        let cube = Launcher::new(gpu.load_kernels(&cube()).unwrap());
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
        let refused = cube.launch(gpu.stream(), &[&input], &mut [&mut overlapping], &[0]).unwrap_err();
        assert!(matches!(refused, Error::Overlap { .. }), "{refused}");
        cube.launch(gpu.stream(), &[&input], &mut [&mut written], &[2.0f32.to_bits()]).unwrap();
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

/// Launches a relay a few times in a row, each time from its own last result, on memory of the
/// stream.
fn relayed(launcher: &Launcher, stream: &Arc<CudaStream>, factor: f32, times: u32) -> CudaSlice<f32> {
    let mut from = stream.clone_htod(&ramp()).expect("there is room");
    let mut to = stream.alloc_zeros::<f32>(ELEMENTS).expect("there is room");
    for _ in 0..times {
        let params = [factor.to_bits()];
        launcher.launch(stream, &[&(&from).into()], &mut [&mut (&mut to).into()], &params).expect("it fits");
        std::mem::swap(&mut from, &mut to);
    }
    from
}

#[test]
fn gpu_streams_in_flight_do_not_disturb_each_other() {
    let Some(gpu) = gpu("gpu_streams_in_flight_do_not_disturb_each_other") else { return };
    let launcher = Launcher::new(gpu.load_kernels(&relay()).unwrap());
    let stream = || gpu.stream().context().new_stream().unwrap();
    let (first, second) = (stream(), stream());
    let results = [relayed(&launcher, &first, 2.0, 5), relayed(&launcher, &second, 0.5, 5)];
    assert_eq!(first.clone_dtoh(&results[0]).unwrap(), times(4.0f32.powi(5)));
    assert_eq!(second.clone_dtoh(&results[1]).unwrap(), times(0.25f32.powi(5)));
    // One workspace for each stream in flight, however many launches there were: a temporary and a
    // word for the param.
    let workspace = 4 * ELEMENTS + 512;
    let before = gpu.kept_bytes();
    launcher.release_idle();
    assert_eq!(gpu.kept_bytes(), before + 2 * workspace);
    // The code stays loaded until the last launch has ended.
    let result = relayed(&launcher, &first, 2.0, 5);
    drop(launcher);
    assert_eq!(first.clone_dtoh(&result).unwrap(), times(4.0f32.powi(5)));
}

#[test]
fn gpu_launches_with_one_workspace_wait_for_each_other() {
    let Some(gpu) = gpu("gpu_launches_with_one_workspace_wait_for_each_other") else { return };
    let kernels = gpu.load_kernels(&relay()).unwrap();
    let mut workspace = kernels.workspace().unwrap();
    let streams = [(); 2].map(|()| gpu.stream().context().new_stream().unwrap());
    let from = streams.each_ref().map(|stream| stream.clone_htod(&ramp()).unwrap());
    let mut outputs = streams.each_ref().map(|stream| stream.alloc_zeros::<f32>(ELEMENTS).unwrap());
    for _ in 0..5 {
        for (number, (stream, to)) in streams.iter().zip(&mut outputs).enumerate() {
            let params = [(2.0 + number as f32).to_bits()];
            let (from, to) = (&(&from[number]).into(), &mut to.into());
            kernels.launch(stream, &mut workspace, &[from], &mut [to], &params).unwrap();
        }
    }
    assert_eq!(streams[0].clone_dtoh(&outputs[0]).unwrap(), times(4.0));
    assert_eq!(streams[1].clone_dtoh(&outputs[1]).unwrap(), times(9.0));
}

#[test]
fn gpu_threads_share_kernels() {
    let Some(gpu) = gpu("gpu_threads_share_kernels") else { return };
    let launcher = Launcher::new(gpu.load_kernels(&relay()).unwrap());
    let input: Vec<u8> = ramp().into_iter().flat_map(f32::to_ne_bytes).collect();
    thread::scope(|scope| {
        for factor in [0.5f32, 2.0, 3.0, 4.0] {
            let (gpu, launcher, input) = (&gpu, &launcher, &input);
            scope.spawn(move || {
                let stream = gpu.stream().context().new_stream().unwrap();
                let result = relayed(launcher, &stream, factor, 3);
                // From host memory, on the stream that all threads share.
                let found = launcher.run(std::slice::from_ref(input), &[factor.to_bits()]).unwrap();
                let expected: Vec<u8> =
                    times(factor * factor).into_iter().flat_map(f32::to_ne_bytes).collect();
                assert_eq!(found, [expected]);
                assert_eq!(stream.clone_dtoh(&result).unwrap(), times(factor.powi(6)));
            });
        }
    });
}

#[test]
fn gpu_graphs_are_replayed_between_eager_launches() {
    let Some(gpu) = gpu("gpu_graphs_are_replayed_between_eager_launches") else { return };
    let launcher = Launcher::new(gpu.load_kernels(&relay()).unwrap());
    let context = gpu.stream().context();
    let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let image = leaked(&stream);
    let outputs = [(); 2].map(|()| leaked(&stream));
    // The eager launches begin before the capture and go on during it.
    let before = relayed(&launcher, &other, 3.0, 2);
    let mut during = other.alloc_zeros::<f32>(ELEMENTS).unwrap();
    begin(&stream);
    for (factor, output) in [2.0f32, 0.5].into_iter().zip(&outputs) {
        let (input, output) = (&image.input(), &mut output.output());
        launcher.launch(&stream, &[input], &mut [output], &[factor.to_bits()]).unwrap();
    }
    let eager =
        launcher.launch(&other, &[&(&before).into()], &mut [&mut (&mut during).into()], &[3.0f32.to_bits()]);
    eager.unwrap();
    let graph = end(&stream).unwrap();
    for _ in 0..3 {
        graph.launch().unwrap();
        let beside = relayed(&launcher, &other, 3.0, 3);
        assert_eq!(other.clone_dtoh(&beside).unwrap(), times(729.0));
        for (output, factor) in outputs.iter().zip([4.0, 0.25]) {
            assert_eq!(output.read().unwrap(), times(factor));
        }
    }
    assert_eq!(other.clone_dtoh(&during).unwrap(), times(729.0));
    // The graph needs neither the launcher nor the code that it would load again.
    drop(launcher);
    graph.launch().unwrap();
    assert_eq!(outputs[0].read().unwrap(), times(4.0));
    // Its memory returns when it is destroyed: one workspace, which both of its launches had.
    gpu.trim().unwrap();
    drop(graph);
    let workspace = 4 * ELEMENTS + 512;
    let deadline = Instant::now() + Duration::from_secs(10);
    while gpu.kept_bytes() < workspace && Instant::now() < deadline {
        // Every allocation collects what the driver has reported since.
        drop(gpu.upload("nothing", &[]).unwrap());
    }
    let kept = gpu.kept_bytes();
    assert!((workspace..2 * workspace).contains(&kept), "{kept}");
}

#[test]
fn gpu_refuses_workspaces_and_streams_of_others() {
    let Some(gpu) = gpu("gpu_refuses_workspaces_and_streams_of_others") else { return };
    let (relay, cube) = (gpu.load_kernels(&relay()).unwrap(), gpu.load_kernels(&cube()).unwrap());
    let stream = gpu.stream();
    let image = stream.clone_htod(&ramp()).unwrap();
    let mut output = stream.alloc_zeros::<f32>(ELEMENTS).unwrap();
    let mut launch = |stream: &CudaStream, workspace: &mut Workspace| {
        relay.launch(stream, workspace, &[&(&image).into()], &mut [&mut (&mut output).into()], &[0])
    };
    let refused = launch(stream, &mut cube.workspace().unwrap()).unwrap_err();
    assert!(matches!(refused, Error::OtherWorkspace { .. }), "{refused}");
    let elsewhere = CudaContext::new_non_primary(0, 0).unwrap().new_stream().unwrap();
    let refused = launch(&elsewhere, &mut relay.workspace().unwrap()).unwrap_err();
    assert!(matches!(refused, Error::OtherStream { .. }), "{refused}");
    launch(stream, &mut relay.workspace().unwrap()).unwrap();
}

#[test]
fn kernels_are_shared_and_workspaces_move_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Gpu>();
    shared::<Kernels>();
    shared::<Launcher>();
    moved::<Workspace>();
}
