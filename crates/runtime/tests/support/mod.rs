//! Programs for the tests on a device.

use warploom_target::program::{Buffer, Code, Kernel, LaunchStep, Program, Role};

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

pub const ELEMENTS: usize = 1024;

pub fn kernel(entry: &str, buffers: &[usize]) -> Kernel {
    Kernel {
        entry: entry.to_string(),
        grid: [8, 1, 1],
        threads: 128,
        shared_bytes: 0,
        dynamic_shared_bytes: 0,
        buffers: buffers.to_vec(),
        reads_params: false,
        iterations: Vec::new(),
        sizes: Vec::new(),
        waits: false,
    }
}

pub fn buffer(name: &str, role: Role) -> Buffer {
    Buffer { name: name.to_string(), elements: ELEMENTS, element_bytes: 4, alignment: 4, role }
}

/// Multiplies by the param three times, or runs one kernel.
pub fn program(steps: Vec<LaunchStep>) -> Program {
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

pub fn cube() -> Program {
    program(vec![LaunchStep::Loop { count: 3, body: vec![LaunchStep::Launch(0)] }])
}
