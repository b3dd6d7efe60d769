//! The C of `warploom compile`: a C compiler takes it without a warning, and what it asks of CUDA's driver is
//! what the manifest says, call by call. The driver is a stub that writes down every call.

use std::fs;
use std::process::Command;

use warploom::app::{App, Settings};
use warploom::codegen::build::build;
use warploom::codegen::cuda::{Build, describe};
use warploom::codegen::export::{Argument, Buffer, Kernel, Manifest, header, source};
use warploom::codegen::ir::{Program, Role, Space};
use warploom::prelude::*;
use warploom::schedule::schedule::{Problem, Schedule};
use warploom::target::Device;
use warploom::target::program::{Code, Step};

use crate::place::Place;

/// Where the stub's memory starts.
const WORKSPACE: u64 = 0x7000_0000_0000;

/// What the stub is told to be code.
fn code() -> Code {
    Code::Cubin((0..=255).map(|byte: u8| byte.wrapping_mul(7)).collect())
}

/// An app's pipeline at its default settings, but for `changes`.
fn realise(app: &App, changes: &[(&str, f64)]) -> (Pipeline, Realisation) {
    let mut settings = Settings::defaults(app);
    assert!(changes.iter().all(|(name, value)| settings.set(name, *value)));
    let pipeline = (app.build)(&settings).unwrap();
    let mut request = (app.shapes)(&settings).realisation(&pipeline);
    for param in pipeline.params().values() {
        let value = Value::from_number(param.ty, settings.number(&param.name)).unwrap();
        request = request.param(&param.name, value);
    }
    (pipeline, request)
}

/// The kernels of a pipeline's default schedule and their description.
fn default_program(pipeline: &Pipeline, request: &Realisation) -> (Program, Manifest) {
    let device = Device::preset("h200").unwrap();
    let problem = Problem::new(pipeline, request, &device).unwrap();
    let program = build(&problem, &Schedule::default_for(&problem)).unwrap();
    let manifest = Manifest::new(pipeline, request, &device, &program);
    (program, manifest)
}

#[test]
fn header_and_manifest_of_blur() {
    let (pipeline, request) = realise(warploom_apps::find("blur").unwrap(), &[("W", 640.0), ("H", 480.0)]);
    let (_, mut manifest) = default_program(&pipeline, &request);
    manifest.made_by = "warploom".to_owned();
    insta::assert_snapshot!("blur.h", header(&manifest));
    insta::assert_snapshot!("blur.json", serde_json::to_string_pretty(&manifest).unwrap());
}

#[test]
fn the_manifest_is_what_the_kernels_are() {
    for app in warploom_apps::APPS.iter().chain(&warploom_apps::BASICS) {
        let (pipeline, request) = realise(app, &[]);
        let (program, manifest) = default_program(&pipeline, &request);
        assert_eq!(manifest.kernels.len(), program.kernels.len());
        for (kernel, lowered) in manifest.kernels.iter().zip(program.kernels.values()) {
            assert_eq!((kernel.grid, kernel.threads), (lowered.grid, lowered.threads), "{}", app.name);
            let shared = kernel.static_shared_bytes + kernel.dynamic_shared_bytes;
            assert_eq!(shared as usize, lowered.shared_bytes());
            let arrays = lowered.arrays.values().filter_map(|array| match array.space {
                Space::Global(buffer) => Some(Argument::Buffer(buffer.index())),
                _ => None,
            });
            let pointers: Vec<Argument> = arrays.collect();
            assert_eq!(kernel.arguments[..pointers.len()], pointers, "{} {}", app.name, kernel.entry);
        }
        assert_eq!(manifest.buffers.len(), program.buffers.len());
        for (buffer, declared) in manifest.buffers.iter().zip(program.buffers.values()) {
            assert_eq!(buffer.name, declared.name);
            assert_eq!(buffer.bytes as usize, declared.elements() * declared.ty.bytes());
            assert_eq!(buffer.offset.is_some(), declared.role == Role::Temporary);
            let extents: Vec<i64> = buffer.dimensions.iter().map(|dimension| dimension.extent).collect();
            assert_eq!(extents, declared.region.extents());
        }
        assert_eq!(manifest.launches, describe(&program, Build::Timing).steps);
        let read: Vec<bool> = manifest.params.iter().map(|param| param.word.is_none()).collect();
        let specialised: Vec<bool> = pipeline.specialised_params().values().copied().collect();
        assert_eq!(read, specialised, "{}", app.name);
        check_workspace(&manifest);
        let text = serde_json::to_string(&manifest).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), manifest);
    }
}

/// No two parts of the workspace overlap, and none ends beyond it.
fn check_workspace(manifest: &Manifest) {
    let parts = manifest.buffers.iter().filter_map(|buffer| Some((buffer.offset?, buffer.bytes)));
    let words = manifest.words_offset.map(|offset| (offset, 4 * manifest.params.len() as u64));
    let mut parts: Vec<(u64, u64)> = parts.chain(words).collect();
    parts.sort_unstable();
    let ends = parts.iter().map(|(offset, bytes)| offset + bytes);
    let starts = parts.iter().skip(1).map(|(offset, _)| *offset).chain([manifest.workspace_bytes]);
    assert!(ends.zip(starts).all(|(end, next)| end <= next), "{parts:?}");
    assert!(parts.iter().all(|(offset, _)| offset % 256 == 0), "{parts:?}");
}

#[test]
fn exported_apps_ask_the_driver_for_what_their_manifests_say() {
    let schedules = format!("{}/../../apps/schedules", env!("CARGO_MANIFEST_DIR"));
    let apps = [
        ("blur", "default", "--size 640x480"),
        ("brighten", "default", "--size 65x33 --param gain=-2"),
        ("max_filter", &schedules, "--size 128x96"),
        ("local_laplacian", "default", "--size 192x128"),
        ("bgu", "default", "--size 96x64,w=12,h=8"),
        ("camera_pipe", "default", "--size 96x64"),
    ];
    for (app, schedule, settings) in apps {
        let place = Place::new();
        let ran = place.run(&format!("compile {app} {settings} --schedule {schedule} -o ."));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let text = fs::read_to_string(place.path(&format!("{app}.json"))).unwrap();
        let manifest: Manifest = serde_json::from_str(&text).unwrap();
        let loops = manifest.launches.iter().any(|step| matches!(step, Step::Loop { .. }));
        assert!(loops || app != "max_filter");
        let outcome = Export::new(&place, &manifest, Some(&code()), "").run("");
        assert_eq!(outcome, expected(&manifest), "{app}");
        let text = source(&manifest, None);
        let given = text.lines().filter(|line| line.contains("(void *[])"));
        let given = given.map(|line| line.matches('&').count());
        let taken = kernels_of(&manifest.launches).into_iter();
        let taken = taken.map(|kernel| manifest.kernels[kernel].arguments.len());
        assert!(given.eq(taken), "{app}: a kernel gets as many arguments as it takes");
    }
}

/// The kernels launched, those in a loop once.
fn kernels_of(steps: &[Step]) -> Vec<usize> {
    let kernels = |step: &Step| match step {
        Step::Launch(kernel) => vec![*kernel],
        Step::Loop { body, .. } => kernels_of(body),
    };
    steps.iter().flat_map(kernels).collect()
}

/// Names that mean something in C or in the functions themselves, every type of Param, tuples, regions away from the
/// origin, and parts of outputs.
fn awkward() -> (Pipeline, Realisation) {
    let (x, y) = vars!(x, y);
    let (lower, upper) = (Input::f32("a", 2), Input::u8("A", 2));
    let strength = Param::f32("float").range(-0.5, 2.0f32);
    let step = Param::new("words", Type::I8).range(-3i8, 127);
    let on = Param::new("stream", Type::Bool);
    let wide = Param::new("iteration0", Type::U32);
    let first = func("kernel_pair", (x, y), lower.at((x, y)) * &strength + upper.at((x, y)).f32());
    let scaled = select(&on, first.at((x - 1, y)), step.f32()) + wide.f32();
    let pair = func("pair", (x, y), vec![scaled, first.at((x, y - 1))]);
    let pipeline = Pipeline::new("3d blur*/", [first, pair]).unwrap();
    let at = |min: i64, extent| Region(vec![Range::new(min, extent), Range::new(min, extent)]);
    let request = Realisation::new(&pipeline)
        .input("a", at(-4, 40))
        .input("A", at(-4, 40))
        .output("kernel_pair", at(0, 20))
        .output("pair", at(1, 30))
        .param("float", 1.5f32)
        .param("words", -3i8)
        .param("stream", true)
        .param("iteration0", u32::MAX);
    (pipeline, request)
}

#[test]
fn awkward_names_and_types_are_exported() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    assert_eq!(manifest.name, "v3d_blur__");
    let words = manifest.params.iter().filter(|param| param.word.is_some()).count();
    assert_eq!(words, 4, "{:?}", manifest.params);
    let place = Place::new();
    let outcome = Export::new(&place, &manifest, Some(&code()), "").run("");
    assert_eq!(outcome, expected(&manifest));
}

/// Words of C and C++ that are no other identifiers.
const KEYWORDS: &str = "
    alignas alignof and asm auto bitand bool break case catch char class compl const constexpr continue decltype default
    delete do double else enum explicit export extern false float for friend goto if inline int long mutable namespace new
    noexcept not nullptr operator or private protected public register requires restrict return short signed sizeof static
    static_assert struct switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union
    unsigned using virtual void volatile wchar_t while xor _Alignas _Alignof _Atomic _BitInt _Bool _Complex _Decimal32
    _Decimal64 _Decimal128 _Generic _Imaginary _Noreturn _Static_assert _Thread_local __func__ __attribute__ __asm__
    CUcontext CUdevice CUevent CUgraph CU_STREAM_PER_THREAD CUDA_VERSION cudaStream_t cudaMalloc dim3 uint ushort half
    WARPLOOM_WORDS_H WORDS_WORKSPACE_BYTES words_create words_buffers NDEBUG errno stdin main";

/// All of them, and every identifier of an exported pipeline and of what it includes.
fn words() -> Vec<String> {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let texts = [header(&manifest), source(&manifest, Some(&code())), include_str!("stub/cuda.h").to_owned()];
    let identifiers =
        texts.iter().flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let identifiers =
        identifiers.filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
    let all: std::collections::BTreeSet<&str> = KEYWORDS.split_whitespace().chain(identifiers).collect();
    all.into_iter().map(str::to_owned).collect()
}

/// A pipeline `name` whose inputs, Params or outputs are called as given.
fn called(name: &str, inputs: &[String], params: &[String], outputs: &[String]) -> (Pipeline, Realisation) {
    let x = vars!(x);
    let mut value = Input::f32("given_input", 1).at(x);
    for input in inputs {
        value = value + Input::f32(input, 1).at(x);
    }
    for param in params {
        value = value + &Param::f32(param);
    }
    let outputs: Vec<String> =
        if outputs.is_empty() { vec!["given_output".to_owned()] } else { outputs.to_vec() };
    let funcs: Vec<Func> = outputs.iter().map(|output| func(output, x, value.clone())).collect();
    let pipeline = Pipeline::new(name, funcs).unwrap();
    let line = Region::of_extents(&[100]);
    let mut request = Realisation::new(&pipeline).input("given_input", line.clone());
    for input in inputs {
        request = request.input(input, line.clone());
    }
    for param in params {
        request = request.param(param, 0.5f32);
    }
    for output in &outputs {
        request = request.output(output, line.clone());
    }
    (pipeline, request)
}

/// Compiles the files of a pipeline as several kinds of C, its header as C++, and its kernels, where there is NVRTC.
fn check_names(pipeline: &Pipeline, request: &Realisation) {
    let (program, manifest) = default_program(pipeline, request);
    let (place, name) = (Place::new(), &manifest.name);
    fs::write(place.path("cuda.h"), include_str!("stub/cuda.h")).unwrap();
    fs::write(place.path(&format!("{name}.h")), header(&manifest)).unwrap();
    fs::write(place.path(&format!("{name}.c")), source(&manifest, None)).unwrap();
    let header = format!("{name}.h");
    let source = format!("{name}.c");
    let compilers = [
        ("CC", "cc", "-std=c99", "c", &source),
        ("CC", "cc", "-std=gnu17", "c", &source),
        ("CC", "cc", "-std=c2x", "c", &source),
        ("CXX", "c++", "-std=c++17", "c++", &header),
    ];
    for (variable, usual, standard, language, file) in compilers {
        let compiler = std::env::var(variable).unwrap_or(usual.to_owned());
        let options =
            [standard, "-fsyntax-only", "-Wall", "-Wextra", "-Wno-pragma-once-outside-header", "-Werror"];
        let mut command = Command::new(compiler);
        command.args(options).args(["-I.", "-x", language, file]).current_dir(place.path(""));
        match command.output() {
            Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
            // Rust links with a C compiler, so there is one.
            Err(error) => assert!(language != "c", "{error}"),
        }
    }
    if warploom::runtime::nvrtc::version().is_ok() {
        let described = describe(&program, Build::Timing);
        let arch = warploom::runtime::nvrtc::Arch::Machine(90);
        warploom::runtime::nvrtc::compile_program(&described, arch).unwrap();
    }
}

#[test]
fn words_of_c_and_cuda_are_names_like_others() {
    let words = words();
    assert!(
        ["_Bool", "CUresult", "uint32_t", "KERNELS"].iter().all(|word| words.iter().any(|it| it == word))
    );
    let (inputs, request) = called("words", &words, &[], &[]);
    check_names(&inputs, &request);
    let (params, request) = called("words", &[], &words, &[]);
    check_names(&params, &request);
    for some in words.chunks(60) {
        let (outputs, request) = called("words", &[], &[], some);
        check_names(&outputs, &request);
    }
}

#[test]
fn pipelines_can_be_called_like_words_and_headers() {
    for name in ["_Bool", "typeof", "CUresult", "cuda", "stdlib", "stdint", "string", "features", "../up"] {
        let (pipeline, request) = called(name, &[], &["gain".to_owned()], &[]);
        check_names(&pipeline, &request);
    }
}

#[test]
fn loops_within_loops_and_much_shared_memory_are_exported() {
    let (pipeline, request) = awkward();
    let (_, mut manifest) = default_program(&pipeline, &request);
    let [first, .., last] = manifest.kernels.as_mut_slice() else { panic!("there are two kernels") };
    first.dynamic_shared_bytes = 100_000;
    first.arguments.extend([Argument::Iteration(0), Argument::Iteration(1)]);
    last.arguments.push(Argument::Iteration(1));
    let inner = Step::Loop { count: 3, body: manifest.launches.clone() };
    manifest.launches = vec![Step::Loop { count: 2, body: vec![inner] }];
    let place = Place::new();
    let outcome = Export::new(&place, &manifest, Some(&code()), "").run("");
    assert_eq!(outcome, expected(&manifest));
}

#[test]
fn values_and_buffers_that_kernels_cannot_take_are_refused() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let order: Vec<&str> = manifest.params.iter().map(|param| param.name.as_str()).collect();
    let set = |changes: &[(&str, &str)]| {
        let value = |name: &&str| match changes.iter().find(|(changed, _)| changed == name) {
            Some((_, value)) => *value,
            None => {
                if *name == "stream" {
                    "false"
                } else {
                    "1"
                }
            }
        };
        let values: Vec<&str> = order.iter().map(value).collect();
        format!("    printf(\"%d\\n\", v3d_blur___set_params(pipeline, NULL, {}));\n", values.join(", "))
    };
    let run =
        |pipeline, buffers| format!("    printf(\"%d\\n\", v3d_blur___run({pipeline}, NULL, {buffers}));\n");
    let input = &manifest.buffers[0].identifier;
    let extra = [
        set(&[("float", "2.0f")]),
        set(&[("float", "2.5f")]),
        set(&[("float", "0.0f / 0.0f")]),
        set(&[("words", "-4")]),
        format!("    buffers.{input} = 0x1008;\n") + &run("pipeline", "&buffers"),
        format!("    buffers.{input} = 0;\n") + &run("pipeline", "&buffers"),
        run("pipeline", "NULL"),
        run("NULL", "&buffers"),
        "    printf(\"%d\\n\", v3d_blur___destroy(NULL));\n".to_owned(),
    ];
    let place = Place::new();
    let extra = extra.concat();
    let outcome = Export::new(&place, &manifest, Some(&code()), &extra).run("");
    let answers = outcome.iter().skip_while(|line| *line != "ran 0").skip(1);
    let answers: Vec<&str> = answers.map(String::as_str).filter(|line| !line.starts_with("set")).collect();
    assert_eq!(answers, ["0", "1", "1", "1", "1", "1", "1", "1", "0", "free 1", "unload 1", "destroyed 0"]);
}

#[test]
fn what_was_made_before_a_failure_is_freed() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let place = Place::new();
    let export = Export::new(&place, &manifest, Some(&code()), "");
    let outcome = |failing: &str| {
        let outcome = export.run(failing);
        let first_word = |line: &str| line.split(' ').next().map(str::to_owned).unwrap_or_default();
        let on_the_way = ["load", "allocate", "set", "wait", "launch"];
        outcome.into_iter().filter(|line| !on_the_way.contains(&&*first_word(line))).collect::<Vec<String>>()
    };
    assert_eq!(outcome("cuModuleLoadData"), ["created 999 (nil)", "destroyed 0"]);
    assert_eq!(outcome("cuModuleGetFunction"), ["unload 1", "created 999 (nil)", "destroyed 0"]);
    assert_eq!(outcome("cuMemAlloc"), ["unload 1", "created 2 (nil)", "destroyed 0"]);
    assert_eq!(outcome("cuMemsetD32Async"), ["free 1", "unload 1", "created 999 (nil)", "destroyed 0"]);
    assert_eq!(outcome("cuLaunchKernel"), ["created 0", "ran 999", "free 1", "unload 1", "destroyed 0"]);

    for nothing in [None, Some(&Code::Source { text: String::new(), options: Vec::new() })] {
        let without_code = Export::new(&place, &manifest, nothing, "");
        assert_eq!(without_code.run("")[0], "created 301 (nil)");
    }
}

#[test]
fn virtual_code_ends_as_text_does() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let text = source(&manifest, Some(&Code::Ptx(".version".to_owned())));
    assert!(text.contains("code[] = {\n    46,118,101,114,115,105,111,110,0,\n};"), "{text}");
}

/// An exported pipeline as a program over the stub.
struct Export<'a> {
    place: &'a Place,
}

impl Export<'_> {
    /// Compiles it, with all warnings as errors; `extra` are statements after the run.
    fn new<'a>(place: &'a Place, manifest: &Manifest, code: Option<&Code>, extra: &str) -> Export<'a> {
        let name = &manifest.name;
        let files = [
            ("cuda.h", include_str!("stub/cuda.h").to_owned()),
            ("cuda.c", include_str!("stub/cuda.c").to_owned()),
            (&format!("{name}.h"), header(manifest)),
            (&format!("{name}.c"), source(manifest, code)),
            ("main.c", main(manifest, extra)),
        ];
        for (file, text) in &files {
            fs::write(place.path(file), text).unwrap();
        }
        // Rust links with it, so it is there.
        let compiler = std::env::var("CC").unwrap_or("cc".to_owned());
        let options = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I.", "-o", "exported"];
        let mut command = Command::new(compiler);
        command.args(options).args(["cuda.c", "main.c", &format!("{name}.c")]);
        let output = command.current_dir(place.path("")).output().expect("there is a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Export { place }
    }

    /// What it asks of the driver, of which one call fails.
    fn run(&self, failing: &str) -> Vec<String> {
        let output = Command::new(self.place.path("exported")).arg(failing).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    }
}

/// A program that creates, runs and destroys a pipeline.
fn main(manifest: &Manifest, extra: &str) -> String {
    let name = &manifest.name;
    let kinds = manifest.kernels.iter().map(|kernel| {
        let kinds = kernel.arguments.iter().map(|argument| match argument {
            Argument::Iteration(_) => 'i',
            Argument::Buffer(_) | Argument::Words => 'p',
        });
        let (entry, kinds) = (&kernel.entry, kinds.collect::<String>());
        format!("    if (strcmp(kernel, \"{entry}\") == 0) return \"{kinds}\";\n")
    });
    let given = manifest.buffers.iter().enumerate().filter(|(_, buffer)| buffer.offset.is_none());
    let buffers = given.map(|(position, buffer)| {
        format!("    buffers.{} = {}u;\n", buffer.identifier, address(position, buffer))
    });
    let values = manifest.params.iter().filter(|param| param.word.is_some());
    let values =
        values.map(|param| format!(", {0}_{1}_VALUE", name.to_uppercase(), param.identifier.to_uppercase()));
    let set = match manifest.words_offset {
        Some(_) => format!("{name}_set_params(pipeline, stream{})", values.collect::<String>()),
        None => "CUDA_SUCCESS".to_owned(),
    };
    format!(
        "#include <stdio.h>\n#include <string.h>\n#include \"{name}.h\"\n#include \"{name}.h\"\n\n\
         const char *failing;\n\n\
         const char *arguments_of(const char *kernel)\n{{\n{kinds}    return \"\";\n}}\n\n\
         int main(int count, char **arguments)\n{{\n    \
             failing = count > 1 ? arguments[1] : \"\";\n    \
             CUstream stream = (CUstream)arguments;\n    \
             {name}_pipeline *pipeline;\n    \
             {name}_buffers buffers;\n{buffers}    \
             CUresult result = {name}_create(&pipeline, NULL);\n    \
             printf(\"created %d%s\\n\", result, pipeline ? \"\" : \" (nil)\");\n    \
             if (result == CUDA_SUCCESS) {{\n    \
                 result = {set};\n    \
                 if (result == CUDA_SUCCESS) result = {name}_run(pipeline, stream, &buffers);\n    \
                 printf(\"ran %d\\n\", result);\n    \
             }}\n{extra}    \
             printf(\"destroyed %d\\n\", {name}_destroy(pipeline));\n    \
             return 0;\n}}\n",
        kinds = kinds.collect::<String>(),
        buffers = buffers.collect::<String>(),
    )
}

/// Where a buffer lies: the user's in places of their own, the others in the workspace.
fn address(position: usize, buffer: &Buffer) -> u64 {
    buffer.offset.map_or((position as u64 + 1) << 12, |offset| WORKSPACE + offset)
}

/// What the program must ask of the driver.
fn expected(manifest: &Manifest) -> Vec<String> {
    let Code::Cubin(code) = code() else { unreachable!() };
    let sum: u32 = (1..).zip(code).map(|(number, byte)| number * u32::from(byte)).sum();
    let dynamic = manifest.kernels.iter().filter(|kernel| kernel.dynamic_shared_bytes > 0);
    let words = manifest.params.iter().filter_map(|param| Some((4 * param.word?, param.value.bits())));
    let words: Vec<(u32, u32)> = words.collect();
    let set = |stream: &str| {
        let offset = manifest.words_offset.unwrap_or_default();
        let set = |&(at, value): &(u32, u32)| {
            format!("set {} to {value:08x}, 1 times{stream}", offset + u64::from(at))
        };
        words.iter().map(set).collect::<Vec<String>>()
    };

    let mut calls = vec![format!("load own code {sum}")];
    calls.extend(
        dynamic.map(|kernel| format!("attribute 8 of {}: {}", kernel.entry, kernel.dynamic_shared_bytes)),
    );
    if manifest.workspace_bytes > 0 {
        calls.push(format!("allocate {}", manifest.workspace_bytes));
    }
    calls.extend(set(""));
    calls.extend(manifest.words_offset.map(|_| "wait".to_owned()));
    calls.push("created 0".to_owned());
    calls.extend(set(" on the stream"));
    launches(manifest, &manifest.launches, &mut Vec::new(), &mut calls);
    calls.push("ran 0".to_owned());
    if manifest.workspace_bytes > 0 {
        calls.push("free 1".to_owned());
    }
    calls.extend(["unload 1", "destroyed 0"].map(str::to_owned));
    calls
}

/// Every launch, loops written out.
fn launches(manifest: &Manifest, steps: &[Step], iterations: &mut Vec<u32>, calls: &mut Vec<String>) {
    for step in steps {
        match step {
            Step::Launch(kernel) => calls.push(launch(manifest, &manifest.kernels[*kernel], iterations)),
            Step::Loop { count, body } => {
                for iteration in 0..*count {
                    iterations.push(iteration);
                    launches(manifest, body, iterations, calls);
                    iterations.pop();
                }
            }
        }
    }
}

fn launch(manifest: &Manifest, kernel: &Kernel, iterations: &[u32]) -> String {
    let Kernel { entry, grid: [x, y, z], threads, dynamic_shared_bytes, arguments, .. } = kernel;
    let arguments = arguments.iter().map(|argument| match *argument {
        Argument::Buffer(position) => address(position, &manifest.buffers[position]),
        Argument::Words => WORKSPACE + manifest.words_offset.unwrap(),
        Argument::Iteration(level) => u64::from(iterations[level]),
    });
    let arguments: String = arguments.map(|argument| format!(" {argument}")).collect();
    format!(
        "launch {entry} grid {x} {y} {z} block {threads} 1 1 shared {dynamic_shared_bytes} on the stream:{arguments}"
    )
}
