//! NVRTC: what it compiles, what it rejects, and what it reports.

use warploom_runtime::cuda::nvrtc::{self, Arch};
use warploom_runtime::{Error, testing};
use warploom_target::Device;
use warploom_target::program::{Code, Program};

const SCALE: &str = r#"
extern "C" __global__ void __launch_bounds__(128) scale(float* __restrict__ out, float factor) {
    __shared__ float tile[128];
    tile[threadIdx.x] = out[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = factor * tile[127 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(1024) spill(float* out, const float* in, int step) {
    float values[96];
    for (int i = 0; i < 96; ++i) values[i] = in[i * step];
    for (int i = 0; i < 96; ++i) values[i] = expf(values[i]) * values[(i * 7) % 96];
    out[threadIdx.x] = values[step] + values[step + 1];
}
"#;

#[test]
fn nvrtc_machine_code_comes_with_its_resources() {
    if !testing::has_nvrtc("nvrtc_machine_code_comes_with_its_resources") {
        return;
    }
    let image = nvrtc::compile(SCALE, Arch::Machine(90), &[]).unwrap();
    assert!(image.cubin.as_ref().unwrap().starts_with(b"\x7fELF"));
    assert!(image.ptx.contains(".entry scale") && !image.ptx.ends_with('\0'));
    let scale = image.kernels["scale"];
    assert_eq!((scale.shared_bytes, scale.spill_stores, scale.local_bytes), (512, 0, 0));
    assert!((4..=32).contains(&scale.registers), "{scale:?}");
    assert!(image.kernels["spill"].local_bytes >= 96 * 4, "{:?}", image.kernels);
    assert_eq!(image.log, "");
    assert!(matches!(image.code(), Code::Machine(_)));
    assert!(image.time.as_nanos() > 0);
}

#[test]
fn nvrtc_virtual_code_is_text() {
    if !testing::has_nvrtc("nvrtc_virtual_code_is_text") {
        return;
    }
    let image = nvrtc::compile(SCALE, Arch::Virtual(80), &["--fmad=false".to_string()]).unwrap();
    assert!(image.cubin.is_none() && image.kernels.is_empty());
    assert!(matches!(image.code(), Code::Virtual(text) if text.contains(".target sm_80")));
}

#[test]
fn nvrtc_mistakes_are_errors_with_the_compilers_words() {
    if !testing::has_nvrtc("nvrtc_mistakes_are_errors_with_the_compilers_words") {
        return;
    }
    let error =
        nvrtc::compile("extern \"C\" __global__ void k() { nothing; }", Arch::Machine(90), &[]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Compile { .. }) && text.contains("nothing"), "{text}");
    let error = nvrtc::compile(SCALE, Arch::Machine(90), &["--no-such-option".to_string()]).unwrap_err();
    assert!(error.to_string().contains("no-such-option"), "{error}");
    let error = nvrtc::compile("a\0b", Arch::Machine(90), &[]).unwrap_err();
    assert_eq!(error.to_string(), "NVRTC could not read the source: it contains a NUL byte");
    let error = nvrtc::compile(SCALE, Arch::Machine(1), &[]).unwrap_err();
    assert!(error.to_string().contains("gpu-architecture"), "{error}");
}

#[test]
fn nvrtc_the_architecture_follows_the_device() {
    if !testing::has_nvrtc("nvrtc_the_architecture_follows_the_device") {
        return;
    }
    let supported = nvrtc::supported().unwrap();
    assert!(supported.contains(&90), "{supported:?}");
    let h200 = Device::preset("h200").unwrap();
    assert_eq!(Arch::for_device(&h200).unwrap(), Arch::Machine(90));
    if !supported.contains(&70) {
        let error = Arch::for_device(&Device::preset("v100").unwrap()).unwrap_err();
        assert!(matches!(error, Error::OldDevice { device: 70, .. }), "{error}");
    }
}

#[test]
fn nvrtc_many_threads_compile_at_once() {
    if !testing::has_nvrtc("nvrtc_many_threads_compile_at_once") {
        return;
    }
    let compile = || nvrtc::compile(SCALE, Arch::Machine(90), &[]).unwrap().cubin;
    let images: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(compile)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(images.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn nvrtc_a_program_is_compiled_once() {
    if !testing::has_nvrtc("nvrtc_a_program_is_compiled_once") {
        return;
    }
    let program = Program {
        name: "scale".to_string(),
        code: Code::Source { text: SCALE.to_string(), options: vec!["--fmad=false".to_string()] },
        kernels: Vec::new(),
        buffers: Vec::new(),
        params: 0,
        steps: Vec::new(),
    };
    let (compiled, image) = nvrtc::compile_program(&program, Arch::Machine(90)).unwrap();
    assert!(matches!(compiled.code, Code::Machine(_)) && image.is_some());
    let (again, image) = nvrtc::compile_program(&compiled, Arch::Machine(90)).unwrap();
    assert!(again == compiled && image.is_none());
}
