//! The C of `warploom compile`: a C compiler takes it without a warning, and what it asks of CUDA's driver is
//! what the manifest says, call by call. The driver is a stub that writes down every call.

use std::fs;

use warploom::app::{App, Settings};
use warploom::codegen::build::build;
use warploom::codegen::export::{Argument, CodeKind, Manifest, header, named, source};
use warploom::codegen::ir::{Program, Role, Space};
use warploom::codegen::printer::{Build, PRINTER};
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::target::Device;
use warploom::target::program::LaunchStep;

use crate::place::Place;
use crate::stubbed::{Export, compile, compilers, expected, loads, with_code, with_codes, write_stub};

/// An app's pipeline at its default settings, but for `changes`.
fn realise(app: &App, changes: &[(&str, f64)]) -> (Pipeline, Realisation) {
    let mut settings = Settings::defaults(app);
    assert!(changes.iter().all(|(name, value)| settings.set(name, *value)));
    let pipeline = app.pipeline(&settings).unwrap();
    let mut request = app.shapes_at(&settings).realisation(&pipeline);
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
    let program = named(&build(&problem, &problem.default_schedule()).unwrap(), pipeline.name());
    let manifest = Manifest::new(pipeline, request, &device, &[], &program);
    (program, manifest)
}

#[test]
fn header_and_manifest_of_blur() {
    let (pipeline, request) = realise(warploom_apps::find("blur").unwrap(), &[("W", 640.0), ("H", 480.0)]);
    let (_, mut manifest) = default_program(&pipeline, &request);
    manifest.made_by = "warploom".to_owned();
    insta::assert_snapshot!("blur.h", header(&manifest));
    insta::assert_snapshot!("blur.json", manifest.to_json().unwrap());
}

#[test]
fn the_manifest_is_what_the_kernels_are() {
    for app in warploom_apps::APPS.iter().chain(warploom_apps::BASICS.iter()) {
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
        assert_eq!(manifest.launches, PRINTER.describe(&program, Build::Timing).steps);
        let read: Vec<bool> = manifest.params.iter().map(|param| param.word.is_none()).collect();
        let specialised: Vec<bool> = pipeline.specialised_params().values().copied().collect();
        assert_eq!(read, specialised, "{}", app.name);
        check_workspace(&manifest);
        let manifest = with_codes(&manifest, &[(CodeKind::Cubin, 8, 9), (CodeKind::Ptx, 8, 0)]);
        assert_eq!(Manifest::from_json(&manifest.to_json().unwrap()).unwrap(), manifest);
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
    let apps = [
        ("blur", "default", "--size 640x480"),
        ("brighten", "default", "--size 65x33 --param gain=-2"),
        ("max_filter", "looped.schedule", "--size 128x96"),
        ("local_laplacian", "default", "--size 192x128"),
        ("bgu", "default", "--size 96x64,w=12,h=8"),
        ("camera_pipe", "default", "--size 96x64"),
    ];
    let looped =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps/tests/schedules/max_filter_launches.schedule");
    for (app, schedule, settings) in apps {
        let place = Place::new();
        fs::copy(looped, place.path("looped.schedule")).unwrap();
        let ran = place.run(&format!("compile {app} {settings} --schedule {schedule} -o ."));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let text = fs::read_to_string(place.path(&format!("{app}.json"))).unwrap();
        let manifest = Manifest::from_json(&text).unwrap();
        let loops = manifest.launches.iter().any(|step| matches!(step, LaunchStep::Loop { .. }));
        assert!(loops || app != "max_filter");
        let manifest = with_code(&manifest);
        let outcome = Export::new(&place, &manifest, "").run("");
        assert_eq!(outcome, expected(&manifest), "{app}");
        let text = source(&manifest, &[]);
        let given = text.lines().filter(|line| line.contains("void *arguments[] ="));
        let given = given.map(|line| line.matches('&').count());
        let taken = kernels_of(&manifest.launches).into_iter();
        let taken = taken.map(|kernel| manifest.kernels[kernel].arguments.len());
        assert!(given.eq(taken), "{app}: a kernel gets as many arguments as it takes");
    }
}

/// The kernels launched, those in a loop once.
fn kernels_of(steps: &[LaunchStep]) -> Vec<usize> {
    let kernels = |step: &LaunchStep| match step {
        LaunchStep::Launch(kernel) => vec![*kernel],
        LaunchStep::Loop { body, .. } => kernels_of(body),
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
    let (place, manifest) = (Place::new(), with_code(&manifest));
    let outcome = Export::new(&place, &manifest, "").run("");
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
    WARPLOOM_WORDS_H WORDS_A_BYTES words_create words_buffers NDEBUG errno stdin main";

/// All of them, and every identifier of an exported pipeline and of what it includes.
fn words() -> Vec<String> {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let manifest = with_code(&manifest);
    let texts = [header(&manifest), source(&manifest, &[&[1]]), include_str!("stub/cuda.h").to_owned()];
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

/// Compiles the files of a pipeline as several kinds of C and C++, and its kernels, where there is NVRTC.
fn check_names(pipeline: &Pipeline, request: &Realisation) {
    let (program, manifest) = default_program(pipeline, request);
    let (place, name) = (Place::new(), &manifest.name);
    let (header_file, source_file) = (format!("{name}.h"), format!("{name}.c"));
    write_stub(&place.path(""));
    fs::write(place.path(&header_file), header(&manifest)).unwrap();
    fs::write(place.path(&source_file), source(&manifest, &[])).unwrap();
    for standard in ["-std=c99", "-std=gnu17", "-std=c2x", "-std=c++17", "-std=c++20"] {
        let [c, cpp] = compilers();
        let (mut compiler, language) = if standard.contains("++") { (cpp, "c++") } else { (c, "c") };
        compiler.args([standard, "-fsyntax-only", "-I.", "-x", language, &source_file]);
        compiler.current_dir(place.path(""));
        compile(compiler);
    }
    if warploom::runtime::compiler::version().is_ok() {
        let described = PRINTER.describe(&program, Build::Timing);
        let arch = warploom::runtime::compiler::Arch::Machine(90);
        warploom::runtime::compiler::compile_program(&described, arch).unwrap();
    }
}

#[test]
fn words_of_c_and_cuda_are_names_like_others_with_or_without_nvrtc() {
    let words = words();
    assert!(
        ["_Bool", "CUresult", "uint32_t", "kernel_count"]
            .iter()
            .all(|word| words.iter().any(|it| it == word))
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
fn pipelines_can_be_called_like_words_and_headers_with_or_without_nvrtc() {
    for name in [
        "_Bool",
        "typeof",
        "CUresult",
        "cuda",
        "Cuda",
        "cuda_error",
        "stdlib",
        "stdint",
        "String",
        "features",
        "KERNELS",
        "kernels",
        "../up",
    ] {
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
    let inner = LaunchStep::Loop { count: 3, body: manifest.launches.clone() };
    manifest.launches = vec![LaunchStep::Loop { count: 2, body: vec![inner] }];
    let (place, manifest) = (Place::new(), with_code(&manifest));
    let outcome = Export::new(&place, &manifest, "").run("");
    assert_eq!(outcome, expected(&manifest));
}

#[test]
fn values_and_buffers_that_kernels_cannot_take_are_refused() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let identifier = |name: &str| {
        let mut params = manifest.params.iter();
        params.find(|param| param.name == name).unwrap().identifier.clone()
    };
    let run = |arguments: &str| format!("    printf(\"%d\\n\", v3d_blur___run({arguments}));\n");
    let with = |name: &str, value: &str| {
        let set = format!(
            "    params = v3d_blur___default_params();\n    params.{} = {value};\n",
            identifier(name)
        );
        set + &run("pipeline, stream, workspace, &buffers, &params")
    };
    let input = &manifest.buffers[0].identifier;
    let extra = [
        with("float", "2.0f"),
        with("float", "2.5f"),
        with("float", "0.0f / 0.0f"),
        with("words", "-4"),
        run("pipeline, stream, workspace, &buffers, NULL"),
        run("pipeline, stream, 0, &buffers, NULL"),
        run("pipeline, stream, workspace + 128, &buffers, NULL"),
        run("pipeline, stream, workspace, NULL, NULL"),
        run("NULL, stream, workspace, &buffers, NULL"),
        format!("    buffers.{input} = 0x1008;\n") + &run("pipeline, stream, workspace, &buffers, NULL"),
        format!("    buffers.{input} = 0;\n") + &run("pipeline, stream, workspace, &buffers, NULL"),
        "    printf(\"%d\\n\", v3d_blur___allocate_workspace(NULL));\n".to_owned(),
        "    printf(\"%d\\n\", v3d_blur___create(NULL, NULL));\n".to_owned(),
        "    printf(\"%d\\n\", v3d_blur___destroy(NULL));\n".to_owned(),
    ];
    let place = Place::new();
    let outcome = Export::new(&place, &with_code(&manifest), &extra.concat()).run("");
    // What is refused asks nothing of the driver.
    let mut kinds: Vec<&str> = outcome.iter().map(|line| line.split(' ').next().unwrap()).collect();
    kinds.dedup_by(|second, first| second == first && matches!(*second, "set" | "launch"));
    let after = kinds.iter().skip_while(|kind| **kind != "ran").skip(1);
    let refused = ["1005"; 3].into_iter().chain(["set", "launch", "0"]);
    let refused = refused.chain(["1001", "1002", "1001", "1001", "1002", "1001", "1001", "1001"]);
    let all = ["set", "launch", "0"].into_iter().chain(refused).chain(["0", "free", "unload", "destroyed"]);
    assert!(after.copied().eq(all), "{outcome:#?}");
}

#[test]
fn every_error_is_said_in_words() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let own = ["NULL", "ALIGNMENT", "SIZE", "STRIDE", "PARAM"].map(|kind| format!("V3D_BLUR___ERROR_{kind}"));
    let codes = own.iter().map(String::as_str).chain([
        "CUDA_SUCCESS",
        "CUDA_ERROR_OUT_OF_MEMORY",
        "CUDA_ERROR_NO_BINARY_FOR_GPU",
        "CUDA_ERROR_FILE_NOT_FOUND",
        "CUDA_ERROR_UNKNOWN",
        "CUDA_ERROR_INVALID_VALUE",
    ]);
    let say = |code: &str| format!("    printf(\"says %d %s\\n\", {code}, v3d_blur___error({code}));\n");
    let said = codes.clone().map(say).collect::<String>();
    let (place, manifest) = (Place::new(), with_code(&manifest));
    let outcome = Export::new(&place, &manifest, &said).run("");
    let said: Vec<&str> = outcome.iter().filter_map(|line| line.strip_prefix("says ")).collect();
    assert_eq!(
        said,
        [
            "1001 an argument, or the address of a buffer or the workspace, is NULL",
            "1002 an input or output does not start at a multiple of 16 bytes, or the workspace at one of 256 bytes",
            "1003 a size is out of its range, which the header says, or the sizes cannot be used together",
            "1004 the strides of a buffer do not fit: in storage order, the first is 1, and each further one at least the \
             extent before it times its stride; or all are 0, which is dense",
            "1005 a Param is out of its range, which the header says",
            "0 there is no error",
            "2 there is not enough memory",
            "209 the package has no code for this GPU, or the GPU has too little shared memory",
            "301 there is no such file, or the package contains no code and no file was given",
            "999 unknown error",
            "1 the error is unknown",
        ]
    );
}

#[test]
fn runs_with_different_workspaces_do_not_touch_each_other() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let extra = "    CUdeviceptr other;
    v3d_blur___allocate_workspace(&other);
    v3d_blur___run(pipeline, NULL, other, &buffers, NULL);
    cuMemFree(other);
";
    let (place, manifest) = (Place::new(), with_code(&manifest));
    let outcome = Export::new(&place, &manifest, extra).run("");
    let commands = |lines: &[String]| -> Vec<String> {
        let kept = lines.iter().filter(|line| line.starts_with("set") || line.starts_with("launch"));
        kept.cloned().collect()
    };
    let second = outcome.iter().position(|line| line == "ran 0").unwrap();
    let (first, second) = (commands(&outcome[..second]), commands(&outcome[second..]));
    assert!(!first.is_empty() && first.len() == second.len());
    // The stub's allocations lie 2^40 bytes apart.
    let moved = |word: &str| match word.parse::<u64>() {
        Ok(address) if address >= 0x7000_0000_0000 => (address + (1 << 40)).to_string(),
        _ => word.to_owned(),
    };
    for (first, second) in first.iter().zip(&second) {
        let first = first.replace(" on the stream", "");
        let mut words: Vec<String> = first.split(' ').map(moved).collect();
        if words[0] == "set" {
            words[1] = (words[1].parse::<u64>().unwrap() + (1 << 40)).to_string();
        }
        assert_eq!(&words.join(" "), second);
    }
}

#[test]
fn the_code_for_the_gpu_is_loaded() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let codes =
        [(CodeKind::Cubin, 9, 0), (CodeKind::Cubin, 8, 9), (CodeKind::Cubin, 8, 0), (CodeKind::Ptx, 8, 0)];
    let (place, manifest) = (Place::new(), with_codes(&manifest, &codes));
    let export = Export::new(&place, &manifest, "");
    let loaded = |compute: &str, failing: &str| {
        let outcome = export.run_on(compute, failing);
        let end = outcome.iter().position(|line| line.starts_with("created")).unwrap();
        outcome[..=end].to_vec()
    };
    let gets = |position: usize| vec![loads(&manifest, position), "created 0".to_owned()];
    for (compute, position) in
        [("9.0", 0), ("9.3", 0), ("8.9", 1), ("8.0", 2), ("8.6", 2), ("10.0", 3), ("12.1", 3)]
    {
        assert_eq!(loaded(compute, ""), gets(position), "{compute}");
    }
    assert_eq!(loaded("7.5", ""), ["created 209 (nil)"]);
    // A GPU that refuses machine code of others still runs PTX.
    let refused: Vec<String> = [1, 2, 3].map(|position| loads(&manifest, position)).into();
    assert_eq!(loaded("8.9", "cubin"), [refused, vec!["created 0".to_owned()]].concat());
    assert_eq!(loaded("9.0", "cuCtxGetDevice"), ["created 999 (nil)"]);

    let without_ptx = with_codes(&manifest, &codes[..1]);
    let export = Export::new(&place, &without_ptx, "");
    assert_eq!(export.run_on("10.0", "")[0], "created 209 (nil)");
    assert_eq!(export.run_on("9.0", "cubin")[1], "created 209 (nil)");
}

/// The launches of a run: how, and which kernel.
fn launched(outcome: &[String]) -> Vec<&str> {
    let launches = outcome.iter().filter(|line| line.starts_with("launch"));
    launches.filter_map(|line| Some(line.split_once(" grid")?.0)).collect()
}

#[test]
fn kernels_that_wait_are_launched_early_where_all_know_how() {
    let (pipeline, request) = awkward();
    let (program, manifest) = default_program(&pipeline, &request);
    let [first, others @ ..] = manifest.kernels.as_slice() else { panic!("there are kernels") };
    assert!(!first.waits && !others.is_empty() && others.iter().all(|kernel| kernel.waits));
    let (place, manifest) = (Place::new(), with_code(&manifest));
    let plain: Vec<String> =
        manifest.kernels.iter().map(|kernel| format!("launch {}", kernel.entry)).collect();
    let mut early = plain.clone();
    early[1..].iter_mut().for_each(|launch| *launch = launch.replace("launch", "launch early"));
    let export = Export::new(&place, &manifest, "");
    let run = |settings: &[(&str, &str)]| {
        let outcome = export.run_with(settings, "");
        launched(&outcome).into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(run(&[]), early);
    assert_eq!(run(&[("STUB_DRIVER", "12030"), ("STUB_CODE", "120"), ("STUB_COMPUTE", "9.0")]), early);
    assert_eq!(run(&[("STUB_DRIVER", "12020")]), plain, "the driver has no such graphs");
    // A new GPU can run old code, which does not wait.
    assert_eq!(run(&[("STUB_CODE", "80")]), plain);
    for call in ["cuDriverGetVersion", "cuFuncGetAttribute"] {
        assert!(export.run(call).contains(&"created 999 (nil)".to_owned()), "{call}");
    }
    for version in [11070, 12020] {
        let export = Export::with_cuda(&place, &manifest, version);
        assert_eq!(launched(&export.run("")), plain, "the headers have no such launches");
    }
    let text = warploom::codegen::printer::PRINTER.print(&program, Build::Timing);
    assert_eq!(text.matches("origin = wl_await_previous();").count(), others.len());
}

#[test]
fn a_single_launch_is_exported_as_ever() {
    let (pipeline, request) = called("alone", &[], &[], &[]);
    let (_, manifest) = default_program(&pipeline, &request);
    assert_eq!(manifest.kernels.len(), 1);
    let text = source(&with_code(&manifest), &[&[1]]);
    assert!(!text.contains("early") && !text.contains("launched"), "{text}");
    assert!(!manifest.to_json().unwrap().contains("waits"));
}

#[test]
fn what_was_made_before_a_failure_is_freed() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let place = Place::new();
    let code = with_code(&manifest);
    let export = Export::new(&place, &code, "");
    let outcome = |failing: &str| {
        let outcome = export.run(failing);
        let first_word = |line: &str| line.split(' ').next().map(str::to_owned).unwrap_or_default();
        let on_the_way = ["load", "allocate", "set", "launch"];
        outcome.into_iter().filter(|line| !on_the_way.contains(&&*first_word(line))).collect::<Vec<String>>()
    };
    assert_eq!(outcome("cuModuleLoadData"), ["created 999 (nil)", "destroyed 0"]);
    assert_eq!(outcome("cuModuleGetFunction"), ["unload 1", "created 999 (nil)", "destroyed 0"]);
    assert_eq!(outcome("cuMemAlloc"), ["created 0", "ran 2", "unload 1", "destroyed 0"]);
    assert_eq!(outcome("cuMemsetD32Async"), ["created 0", "ran 999", "free 0", "unload 1", "destroyed 0"]);
    assert_eq!(outcome("cuLaunchKernel"), ["created 0", "ran 999", "free 0", "unload 1", "destroyed 0"]);

    let without_code = Export::new(&place, &manifest, "");
    assert_eq!(without_code.run("")[0], "created 301 (nil)");
}

#[test]
fn a_gpu_with_too_little_shared_memory_has_no_code() {
    let (pipeline, request) = awkward();
    let (_, mut manifest) = default_program(&pipeline, &request);
    manifest.kernels[0].dynamic_shared_bytes = 200_000;
    let (place, manifest) = (Place::new(), with_code(&manifest));
    let outcome = Export::new(&place, &manifest, "").run("cuFuncSetAttribute");
    assert_eq!(outcome[2..], ["unload 1", "created 209 (nil)", "destroyed 0"]);
}

#[test]
fn virtual_code_ends_as_text_does() {
    let (pipeline, request) = awkward();
    let (_, manifest) = default_program(&pipeline, &request);
    let text = source(&with_codes(&manifest, &[(CodeKind::Ptx, 8, 0)]), &[b".version"]);
    assert!(text.contains("code_compute_80[] = {\n    46,118,101,114,115,105,111,110,0,\n};"), "{text}");
}

#[test]
fn manifests_of_other_versions_are_refused() {
    let refused = |text: &str| Manifest::from_json(text).unwrap_err().to_string();
    assert_eq!(
        refused(r#"{"schema": "warploom.manifest/1", "code": null}"#),
        "the manifest has the format `warploom.manifest/1`, but this version reads `warploom.manifest/2`; export the \
         pipeline again"
    );
    assert!(
        refused("{}").starts_with("this is not a manifest of an exported pipeline: missing field `schema`")
    );
}
