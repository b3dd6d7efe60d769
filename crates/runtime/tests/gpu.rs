//! Programs on a real device. Without one, every test here reports that it was skipped.

mod support;

use std::process::Command;
use std::time::Duration;

use warploom_runtime::cuda::nvrtc::{self, Arch};
use warploom_runtime::{Driver, Error, Execute, Gpu, Mode, POISON, TimingOptions, testing};
use warploom_target::program::{Code, LaunchStep, Program};

use support::{ELEMENTS, cube, program};

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
    let mut program = program(vec![LaunchStep::Launch(1)]);
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
    let mut shared = gpu.load(&program(vec![LaunchStep::Launch(1)])).unwrap();
    shared.run().unwrap();
    let out = floats(&shared.download(0, 0).unwrap());
    assert_eq!((out[0], out[127], out[128]), (24_999.0, 24_872.0, 24_999.0));
    let facts = shared.facts().unwrap();
    assert_eq!(facts[1].shared_bytes, 100_000);
    assert!(facts[1].blocks_per_sm >= 1 && facts[0].registers > 0, "{facts:?}");
    // The same code, compiled again, gives the same report.
    let image = gpu.load(&program(vec![LaunchStep::Launch(1)])).unwrap().image().unwrap().clone();
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

    let damaged = Program { code: Code::Machine(vec![1, 2, 3]), ..cube() };
    assert!(matches!(gpu.load(&damaged), Err(Error::DamagedCode { .. })));
    let nonsense = Program { code: Code::Virtual("nonsense".to_string()), ..cube() };
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
    let mut wild = gpu.load(&program(vec![LaunchStep::Launch(2)])).unwrap();
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
