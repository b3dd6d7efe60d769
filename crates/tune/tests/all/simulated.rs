//! The simulator as a driver: that the trait asks for nothing that only CUDA has, and that candidates are measured through it.

use std::sync::Arc;
use std::time::Duration;

use warploom_codegen::build::build;
use warploom_codegen::ir::{self, BufferDecl, KernelId};
use warploom_codegen::printer::{Build, LineOrigin, Listing, Printer, launched};
use warploom_interp::buffer::Buffer;
use warploom_lang::{Id, Input, InputId, Pipeline, Region, Scalar, dispatch, func, vars};
use warploom_runtime::{Compiled, Driver, Error, Execute, Mode, TimingOptions};
use warploom_sim::Simulation;
use warploom_target::program::{self as target, Code, Role};
use warploom_target::{Device, Program};
use warploom_tune::measure::{GpuMachine, Machine, Subject};
use warploom_tune::workload::Workload;

/// Prints the IR itself, as JSON.
struct Json;

impl Printer for Json {
    fn extension(&self) -> &'static str {
        "json"
    }

    fn options(&self, _: Build) -> Vec<String> {
        Vec::new()
    }

    fn print_lines(&self, program: &ir::Program, _: Build) -> Listing {
        Listing {
            text: serde_json::to_string(program).unwrap(),
            lines: vec![LineOrigin::default()],
            helpers: 0..0,
        }
    }

    fn print_kernel(&self, program: &ir::Program, kernel: KernelId, _: Build) -> String {
        serde_json::to_string(&program.kernels[kernel]).unwrap()
    }

    fn kernels(&self, program: &ir::Program) -> Vec<target::Kernel> {
        program.kernels.keys().map(|id| launched(program, id)).collect()
    }
}

/// A device that is simulated.
struct Simulated {
    device: Device,
}

/// A program in the memory of a simulated device.
struct Loaded {
    program: Program,
    kernels: ir::Program,
    device: Device,
    /// One piece per buffer of the program.
    memory: Vec<Vec<u8>>,
}

impl Driver for Simulated {
    type Buffer = Arc<[u8]>;
    type Executable = Loaded;

    fn compile(program: &Program, device: &Device) -> Result<Compiled, Error> {
        let mut program = program.clone();
        if let Code::Source { text, .. } = &program.code {
            let refused =
                |error: serde_json::Error| Error::Compile { arch: device.arch(), log: error.to_string() };
            serde_json::from_str::<ir::Program>(text).map_err(refused)?;
            program.code = Code::Machine(text.clone().into_bytes());
        }
        Ok(Compiled { program, kernels: Default::default(), time: Duration::ZERO })
    }

    fn device(&self) -> &Device {
        &self.device
    }

    fn upload(&self, _: &str, data: &[u8]) -> Result<Arc<[u8]>, Error> {
        Ok(data.into())
    }

    fn load_with(&self, program: &Program, inputs: &[Arc<[u8]>]) -> Result<Loaded, Error> {
        let damaged = |why| Error::DamagedCode { program: program.name.clone(), why };
        let Code::Machine(code) = &Simulated::compile(program, &self.device)?.program.code else {
            return Err(damaged("it is not one piece"));
        };
        let kernels = serde_json::from_slice(code).map_err(|_| damaged("it is no kernel IR"))?;
        let memory = program.buffers.iter().map(|buffer| match buffer.role {
            Role::Input(input) if input < inputs.len() => inputs[input].to_vec(),
            _ => vec![0; buffer.bytes()],
        });
        let (memory, program) = (memory.collect(), program.clone());
        Ok(Loaded { program, kernels, device: self.device.clone(), memory })
    }
}

impl Execute for Loaded {
    fn program(&self) -> &Program {
        &self.program
    }

    fn upload(&mut self, input: usize, data: &[u8]) -> Result<(), Error> {
        let role = Role::Input(input);
        let position = self.program.buffer(role).ok_or(Error::NoBuffer { role })?;
        self.memory[position] = data.to_vec();
        Ok(())
    }

    fn set_params(&mut self, params: &[u32]) -> Result<(), Error> {
        assert!(params.is_empty(), "the pipelines of these tests have none");
        Ok(())
    }

    fn fill(&mut self, byte: u8) -> Result<(), Error> {
        for (buffer, memory) in self.program.buffers.iter().zip(&mut self.memory) {
            if !matches!(buffer.role, Role::Input(_)) {
                memory.fill(byte);
            }
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), Error> {
        let decls = self.kernels.buffers.values();
        let inputs: Vec<(InputId, Buffer)> = decls
            .zip(&self.memory)
            .filter_map(|(decl, bytes)| match decl.role {
                ir::Role::Input(input) => Some((input, buffer(decl, bytes))),
                _ => None,
            })
            .collect();
        let mut simulation = Simulation::new(&self.kernels, &self.device);
        for (input, buffer) in &inputs {
            simulation = simulation.input(*input, buffer);
        }
        let outcome = simulation.run().map_err(|error| Error::Fault {
            doing: "run the program".to_owned(),
            name: "simulator".to_owned(),
            message: error.to_string(),
        })?;
        let mut outputs = outcome.outputs.iter();
        for (decl, memory) in self.kernels.buffers.values().zip(&mut self.memory) {
            if let ir::Role::Output { .. } = decl.role {
                *memory = bytes(outputs.next().unwrap());
            }
        }
        Ok(())
    }

    fn download_buffer(&self, position: usize) -> Result<Vec<u8>, Error> {
        Ok(self.memory[position].clone())
    }

    fn prepare(&mut self, _: Mode) -> Result<(), Error> {
        Ok(())
    }

    /// A microsecond for each launch.
    fn batch(&mut self, _: Mode, calls: u32) -> Result<Duration, Error> {
        self.run()?;
        Ok(Duration::from_micros(self.program.launches()) * calls)
    }
}

fn buffer(decl: &BufferDecl, bytes: &[u8]) -> Buffer {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    let samples = bytes.chunks_exact(decl.ty.bytes()).map(word);
    dispatch!(decl.ty, T => {
        let samples = samples.map(<T as Scalar>::from_word).collect();
        Buffer::from_vec_in_order::<T>(decl.region.clone(), &decl.storage_order(), samples).unwrap()
    })
}

fn bytes(buffer: &Buffer) -> Vec<u8> {
    dispatch!(buffer.ty(), T => {
        let word = |sample: &T| sample.to_word().to_le_bytes()[..T::TYPE.bytes()].to_vec();
        buffer.as_slice::<T>().unwrap().iter().flat_map(word).collect()
    })
}

fn workload() -> Workload {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let edge = input.repeat_edge();
    let rows = func("rows", (x, y), edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y)));
    let out = func("out", (x, y), rows.at((x, y)) * rows.at((x, y + 1)));
    let pipeline = Pipeline::new("blurred", [out]).unwrap();
    let region = Region::of_extents(&[20, 12]);
    let image = Buffer::from_fn::<f32>(region.clone(), |at| (at[0] * 3 - at[1]) as f32).unwrap();
    Workload { pipeline, inputs: vec![image], params: Vec::new(), outputs: vec![region] }
}

#[test]
fn candidates_are_measured_on_any_driver() {
    let workload = workload();
    let subject = Arc::new(Subject::of(&workload).unwrap());
    let driver = Simulated { device: Device::preset("a100").unwrap() };
    let problem = subject.problem(driver.device()).unwrap();
    let lowered = build(&problem, &problem.default_schedule()).unwrap();
    let program = Json.describe(&lowered, Build::Checking);
    let compiled = Simulated::compile(&program, driver.device()).unwrap().program;
    let mut machine = GpuMachine::new(&driver);
    let expected: Vec<Vec<u8>> = workload.reference().unwrap().iter().map(bytes).collect();
    assert_eq!(machine.run(&subject, &compiled).unwrap(), expected);
    let timed = machine.time(&subject, &compiled, &TimingOptions::quick()).unwrap();
    assert!((timed.times.min - program.launches() as f64).abs() < 1e-9, "{timed:?}");
}

#[test]
fn what_is_wrong_with_a_program_is_an_error() {
    let driver = Simulated { device: Device::preset("h200").unwrap() };
    let problem = Subject::of(&workload()).unwrap().problem(driver.device()).unwrap();
    let lowered = build(&problem, &problem.default_schedule()).unwrap();
    let program = Json.describe(&lowered, Build::Checking);
    let other = |code| Program { code, ..program.clone() };
    let text = Code::Source { text: "__global__".to_owned(), options: Vec::new() };
    assert!(matches!(Simulated::compile(&other(text), driver.device()), Err(Error::Compile { .. })));
    let loaded = driver.load(&other(Code::Machine(vec![1, 2])));
    assert!(loaded.is_err_and(
        |error| error.to_string() == "the code of program `blurred` is damaged: it is no kernel IR"
    ));
    let mut loaded = driver.load(&program).unwrap();
    assert!(matches!(loaded.download(7, 0), Err(Error::NoBuffer { .. })));
    loaded.kernels.kernels[Id::new(0)].body.clear();
    let faulted = loaded.run_over_poison().unwrap_err();
    assert!(faulted.is_fault(), "{faulted}");
}
