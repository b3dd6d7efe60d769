//! An exported pipeline as a program over a stub of CUDA's driver that writes down every call.

use std::fs;
use std::path::Path;
use std::process::Command;

use warploom::codegen::export::{Argument, Buffer, CodeKind, Compiled, Kernel, Manifest, header, source};
use warploom::target::ComputeCapability;
use warploom::target::program::LaunchStep;

use crate::place::Place;

/// The stub: what stands for CUDA's header and library.
const STUB: [(&str, &str); 3] = [
    ("cuda.h", include_str!("stub/cuda.h")),
    ("cuda.c", include_str!("stub/cuda.c")),
    ("stub.h", include_str!("stub/stub.h")),
];

/// Where the stub's memory starts, which is where the first workspace lies.
pub const MEMORY: u64 = 0x7000_0000_0000;

/// Writes the files of the stub to a folder, which must exist.
pub fn write_stub(folder: &Path) {
    for (file, text) in STUB {
        fs::write(folder.join(file), text).unwrap();
    }
}

/// A C and a C++ compiler, with the options under which everything must compile.
pub fn compilers() -> [Command; 2] {
    let compiler = |variable: &str, usual: &str, standard: &str| {
        let mut command = Command::new(std::env::var(variable).unwrap_or(usual.to_owned()));
        command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        command
    };
    [compiler("CC", "cc", "-std=c99"), compiler("CXX", "c++", "-std=c++17")]
}

/// Runs a compiler that is there: Rust links with the one for C, and the other comes with it.
pub fn compile(mut command: Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The manifest with code that the stub loads: machine code for compute capability 9.0.
pub fn with_code(manifest: &Manifest) -> Manifest {
    with_codes(manifest, &[(CodeKind::Cubin, 9, 0)])
}

pub fn with_codes(manifest: &Manifest, codes: &[(CodeKind, u32, u32)]) -> Manifest {
    let code = codes.iter().map(|&(kind, major, minor)| Compiled {
        kind,
        compute: ComputeCapability { major, minor },
        file: String::new(),
        compiler: String::new(),
    });
    Manifest { code: code.collect(), ..manifest.clone() }
}

/// What stands for the code at a position.
fn bytes(code: &Compiled, position: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=255).map(|byte: u8| byte.wrapping_mul(7 + 2 * position as u8)).collect();
    if code.kind == CodeKind::Ptx {
        bytes[0] = b'.';
    }
    bytes
}

/// What the stub says when it loads the code at a position.
pub fn loads(manifest: &Manifest, position: usize) -> String {
    let bytes = bytes(&manifest.code[position], position);
    let sum: u32 = (1..).zip(bytes).map(|(number, byte)| number * u32::from(byte)).sum();
    format!("load own code {sum}")
}

/// The C and the C++ program.
pub struct Export<'a> {
    place: &'a Place,
}

impl Export<'_> {
    /// Compiles a program that creates, runs and destroys a pipeline, with all warnings as errors. `extra` are
    /// statements after the run.
    pub fn new<'a>(place: &'a Place, manifest: &Manifest, extra: &str) -> Export<'a> {
        Export::of_main(place, manifest, &main(manifest, extra))
    }

    /// The same with another program, in a language that both compilers take.
    pub fn of_main<'a>(place: &'a Place, manifest: &Manifest, main: &str) -> Export<'a> {
        Export::compiled(place, manifest, main, &[])
    }

    /// What [`Export::new`] gives with headers of this version of CUDA.
    pub fn with_cuda<'a>(place: &'a Place, manifest: &Manifest, version: u32) -> Export<'a> {
        Export::compiled(place, manifest, &main(manifest, ""), &[format!("-DCUDA_VERSION={version}")])
    }

    fn compiled<'a>(place: &'a Place, manifest: &Manifest, main: &str, options: &[String]) -> Export<'a> {
        let name = &manifest.name;
        let code: Vec<Vec<u8>> = manifest.code.iter().zip(0..).map(|(code, at)| bytes(code, at)).collect();
        let code: Vec<&[u8]> = code.iter().map(Vec::as_slice).collect();
        write_stub(&place.path(""));
        fs::write(place.path(&format!("{name}.h")), header(manifest)).unwrap();
        fs::write(place.path(&format!("{name}.c")), source(manifest, &code)).unwrap();
        fs::write(place.path("main.c"), main).unwrap();
        let [mut stub, _] = compilers();
        stub.args(["-c", "cuda.c"]).current_dir(place.path(""));
        compile(stub);
        for (mut compiler, (language, program)) in
            compilers().into_iter().zip([("c", "exported"), ("c++", "exported++")])
        {
            compiler.args(options).args([
                "-I.",
                "-o",
                program,
                "-x",
                language,
                "main.c",
                &format!("{name}.c"),
            ]);
            compiler.args(["-x", "none", "cuda.o"]).current_dir(place.path(""));
            compile(compiler);
        }
        Export { place }
    }

    /// What it asks of the driver, of which one call fails.
    pub fn run(&self, failing: &str) -> Vec<String> {
        self.run_on("9.0", failing)
    }

    /// The same on a GPU of this compute capability. C and C++ do the same.
    pub fn run_on(&self, compute: &str, failing: &str) -> Vec<String> {
        self.run_with(&[("STUB_COMPUTE", compute)], failing)
    }

    /// The same with settings of the stub.
    pub fn run_with(&self, settings: &[(&str, &str)], failing: &str) -> Vec<String> {
        let [c, cpp] = ["exported", "exported++"].map(|program| {
            let mut command = Command::new(self.place.path(program));
            let output = command.arg(failing).envs(settings.iter().copied()).output().unwrap();
            assert!(output.status.success());
            String::from_utf8(output.stdout).unwrap()
        });
        assert_eq!(c, cpp);
        c.lines().map(str::to_owned).collect()
    }
}

/// A program that creates, runs and destroys a pipeline.
fn main(manifest: &Manifest, extra: &str) -> String {
    let (name, kinds) = (&manifest.name, argument_kinds(manifest));
    let given = manifest.buffers.iter().enumerate().filter(|(_, buffer)| buffer.offset.is_none());
    let buffers = given.map(|(position, buffer)| {
        format!("    buffers.{} = {}u;\n", buffer.identifier, address(position, buffer))
    });
    let (declared, params) = match manifest.words_offset {
        Some(_) => (format!("    {name}_params params = {name}_default_params();\n"), "&params"),
        None => (String::new(), "NULL"),
    };
    format!(
        "{}{kinds}\
         int main(int count, char **arguments)\n{{\n    \
             failing = count > 1 ? arguments[1] : \"\";\n    \
             CUstream stream = (CUstream)arguments;\n    \
             CUdeviceptr workspace = 0;\n    \
             {name}_pipeline *pipeline;\n    \
             {name}_buffers buffers;\n{buffers}{declared}    \
             CUresult result = {name}_create(&pipeline, NULL);\n    \
             printf(\"created %d%s\\n\", result, pipeline ? \"\" : \" (nil)\");\n    \
             if (result == CUDA_SUCCESS) {{\n    \
                 result = {name}_allocate_workspace(&workspace);\n    \
                 if (result == CUDA_SUCCESS) result = {name}_run(pipeline, stream, workspace, &buffers, {params});\n    \
                 printf(\"ran %d\\n\", result);\n    \
             }}\n{extra}    \
             if (workspace != 0) cuMemFree(workspace);\n    \
             printf(\"destroyed %d\\n\", {name}_destroy(pipeline));\n    \
             return 0;\n}}\n",
        includes(name),
        buffers = buffers.collect::<String>(),
    )
}

/// What every program over the stub begins with.
pub fn includes(name: &str) -> String {
    format!(
        "#include <stdio.h>\n#include <string.h>\n#include \"{name}.h\"\n#include \"{name}.h\"\n\
         #include \"stub.h\"\n\nconst char *failing;\n\n"
    )
}

/// The function that tells the stub what each kernel takes.
pub fn argument_kinds(manifest: &Manifest) -> String {
    let kinds = manifest.kernels.iter().map(|kernel| {
        let kinds = kernel.arguments.iter().map(|argument| match argument {
            Argument::Iteration(_) | Argument::Number(_) => 'i',
            Argument::Buffer(_) | Argument::Words => 'p',
        });
        let (entry, kinds) = (&kernel.entry, kinds.collect::<String>());
        format!("    if (strcmp(kernel, \"{entry}\") == 0) return \"{kinds}\";\n")
    });
    let kinds = kinds.collect::<String>();
    format!("const char *arguments_of(const char *kernel)\n{{\n{kinds}    return \"\";\n}}\n\n")
}

/// Where a buffer lies: the user's in places of their own, the others in the workspace.
fn address(position: usize, buffer: &Buffer) -> u64 {
    buffer.offset.map_or((position as u64 + 1) << 12, |offset| MEMORY + offset)
}

/// What the program must ask of the driver.
pub fn expected(manifest: &Manifest) -> Vec<String> {
    let dynamic = manifest.kernels.iter().filter(|kernel| kernel.dynamic_shared_bytes > 0);
    let attribute =
        |kernel: &Kernel| format!("attribute 8 of {}: {}", kernel.entry, kernel.dynamic_shared_bytes);
    let words = manifest.params.iter().filter_map(|param| Some((4 * param.word?, param.value.bits())));
    let set = |(at, value): (u32, u64)| {
        let at = manifest.words_offset.unwrap_or_default() + u64::from(at);
        format!("set {at} to {value:08x}, 1 times on the stream")
    };
    let mut calls = vec![loads(manifest, 0)];
    calls.extend(dynamic.map(attribute));
    calls.extend(["created 0".to_owned(), format!("allocate {}", manifest.workspace_bytes.max(1))]);
    calls.extend(words.map(set));
    let mut launched = Vec::new();
    launches(manifest, &manifest.launches, &mut Vec::new(), &mut launched);
    calls.extend(launched);
    calls.extend(["ran 0", "free 0", "unload 1", "destroyed 0"].map(str::to_owned));
    calls
}

/// Every launch, loops written out.
fn launches(manifest: &Manifest, steps: &[LaunchStep], iterations: &mut Vec<u32>, calls: &mut Vec<String>) {
    for step in steps {
        match step {
            LaunchStep::Launch(kernel) => {
                let kernel = &manifest.kernels[*kernel];
                let early = !calls.is_empty() && kernel.waits;
                calls.push(launch(manifest, kernel, iterations, early));
            }
            LaunchStep::Loop { count, body } => {
                for iteration in 0..*count {
                    iterations.push(iteration);
                    launches(manifest, body, iterations, calls);
                    iterations.pop();
                }
            }
        }
    }
}

fn launch(manifest: &Manifest, kernel: &Kernel, iterations: &[u32], early: bool) -> String {
    let Kernel { entry, grid: [x, y, z], threads, dynamic_shared_bytes, arguments, .. } = kernel;
    let arguments = arguments.iter().map(|argument| match *argument {
        Argument::Buffer(position) => address(position, &manifest.buffers[position]),
        Argument::Words => MEMORY + manifest.words_offset.unwrap(),
        Argument::Iteration(level) => u64::from(iterations[level]),
        Argument::Number(_) => unreachable!("the sizes are fixed"),
    });
    let arguments: String = arguments.map(|argument| format!(" {argument}")).collect();
    let launch = if early { "launch early" } else { "launch" };
    format!(
        "{launch} {entry} grid {x} {y} {z} block {threads} 1 1 shared {dynamic_shared_bytes} on the stream:{arguments}"
    )
}
