//! The projects of `docs/examples`, built as their users do, with the stub driver in place of CUDA.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use warploom::runtime::compiler;

use crate::place::{Place, Ran};
use crate::stubbed::{compile, compilers, write_stub};

/// What stands for CMake's own module: the stub as the driver's library.
const FIND_CUDA: &str = "
add_library(cuda_stub STATIC ${CMAKE_CURRENT_LIST_DIR}/cuda.c)
target_include_directories(cuda_stub PUBLIC ${CMAKE_CURRENT_LIST_DIR})
add_library(CUDA::cuda_driver ALIAS cuda_stub)
";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").canonicalize().unwrap()
}

fn run(command: &mut Command) -> Ran {
    Ran::from(command.output().unwrap())
}

/// The lines of a run that begin with a word.
fn lines<'a>(ran: &'a Ran, word: &str) -> Vec<&'a str> {
    ran.out.lines().filter(|line| line.starts_with(word)).collect()
}

/// The C and the C++ program of the CMake example ask the driver for the right things.
fn check_programs(in_c: &Path, in_cpp: &Path) {
    let [c, cpp] = [in_c, in_cpp].map(|program| run(&mut Command::new(program)));
    if compiler::version().is_err() {
        // The packages contain no code.
        let why = "there is no such file, or the package contains no code and no file was given";
        assert_eq!((c.code, c.err), (1, format!("could not load soften: {why}\n")));
        assert_eq!((cpp.code, cpp.err), (1, format!("could not load brighten: {why}\n")));
        return;
    }
    assert_eq!((c.code, cpp.code), (0, 0), "{}{}", c.err, cpp.err);
    let launches = lines(&c, "launch");
    assert!(launches.first().unwrap().starts_with("launch soften_"), "{}", c.out);
    assert!(launches.last().unwrap().starts_with("launch brighten_"), "{}", c.out);
    let values = |ran: &Ran| -> Vec<String> {
        let word = |line: &&str| line.split([' ', ',']).nth(3).unwrap().to_owned();
        lines(ran, "set").iter().map(word).collect()
    };
    let bits = |values: &[f32]| -> Vec<String> {
        values.iter().map(|value| format!("{:08x}", value.to_bits())).collect()
    };
    assert_eq!(values(&c), bits(&[2.0, 0.25]));
    assert_eq!(values(&cpp), bits(&[1.0, 0.0, 2.0, 0.0]));
    assert!(lines(&cpp, "launch").iter().all(|line| line.contains(" on the stream")), "{}", cpp.out);
    assert_eq!(lines(&cpp, "free").len(), 5);
}

/// The same files and commands as CMake's, without CMake, which not every machine has.
#[test]
fn the_files_of_the_cmake_example_compile_with_or_without_nvrtc() {
    let (place, cmake) = (Place::new(), examples().join("cmake"));
    let project = fs::read_to_string(cmake.join("CMakeLists.txt")).unwrap();
    let pipelines = project.lines().filter_map(|line| line.strip_prefix("add_pipeline(")?.strip_suffix(')'));
    let mut names = Vec::new();
    for (name, arguments) in pipelines.map(|pipeline| pipeline.split_once(' ').unwrap()) {
        let ran = place.run(&format!("--quiet compile {arguments} --name {name} -o ."));
        assert_eq!(ran.code, 0, "{}", ran.err);
        names.push(format!("{name}.c"));
    }
    assert_eq!(names, ["soften.c", "brighten.c"]);
    write_stub(&place.path(""));
    let [mut c, mut cpp] = compilers();
    c.args(["-c", "-I.", "cuda.c"]).args(&names).current_dir(place.path(""));
    compile(c);
    let objects = ["cuda.o", "soften.o", "brighten.o"];
    let [mut c, _] = compilers();
    c.args(["-I.", "-o", "in_c"]).arg(cmake.join("main.c")).args(objects).current_dir(place.path(""));
    compile(c);
    cpp.args(["-I.", "-o", "in_cpp"]).arg(cmake.join("main.cpp")).args(objects).current_dir(place.path(""));
    compile(cpp);
    check_programs(&place.path("in_c"), &place.path("in_cpp"));
}

#[test]
fn cmake_builds_its_example_with_or_without_nvrtc() {
    if Command::new("cmake").arg("--version").output().is_err() {
        writeln!(io::stderr(), "skipped: there is no cmake to build its example with").unwrap_or_default();
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("stub")).unwrap();
    write_stub(&place.path("stub"));
    fs::write(place.path("stub/FindCUDAToolkit.cmake"), FIND_CUDA).unwrap();
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(examples().join("cmake")).args(["-B", "build"]);
    configure.arg(format!("-DCMAKE_MODULE_PATH={}", place.path("stub").display()));
    configure.arg(concat!("-DWARPLOOM=", env!("CARGO_BIN_EXE_warploom")));
    compile_in(&place, configure);
    let mut build = Command::new("cmake");
    build.args(["--build", "build"]);
    compile_in(&place, build);
    check_programs(&place.path("build/in_c"), &place.path("build/in_cpp"));
}

fn compile_in(place: &Place, mut command: Command) {
    command.current_dir(place.path("")).env("WARPLOOM_CACHE_DIR", "");
    compile(command);
}

/// The project for build scripts, as Cargo builds it. This compiles the library once more, as a dependency of a build script.
#[test]
#[ignore = "takes minutes; the_example_for_build_scripts_runs_with_or_without_nvrtc checks the same files without Cargo"]
fn cargo_builds_the_example_for_build_scripts() {
    let place = Place::new();
    let project = place.path("build-rs");
    let cuda = write_cuda(&project);
    for file in ["Cargo.toml", "build.rs", "src/main.rs", "src/cuda.rs", "src/soften.rs"] {
        let text = fs::read_to_string(examples().join("build-rs").join(file)).unwrap();
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../warploom").canonicalize().unwrap();
        fs::create_dir_all(project.join("src")).unwrap();
        fs::write(project.join(file), text.replace("../../../crates/warploom", library.to_str().unwrap()))
            .unwrap();
    }
    // The versions of everything that are tested and, without a network, there.
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    fs::copy(lock, project.join("Cargo.lock")).unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["run", "--offline", "--quiet"]).current_dir(&project).env("CUDA_PATH", &cuda);
    check_soften(&run(&mut build));
}

/// The build script and the program of that project, compiled with what the tests are built from.
#[test]
fn the_example_for_build_scripts_runs_with_or_without_nvrtc() {
    let place = Place::new();
    let (cuda, out) = (write_cuda(&place.path("")), place.path("out"));
    fs::create_dir(&out).unwrap();
    // The build script is an example target of this crate.
    let tests = std::env::current_exe().unwrap();
    let script = tests.ancestors().nth(2).unwrap().join("examples/build_script");
    let host = Command::new("rustc").arg("-vV").output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    assert!(script.exists(), "`cargo test` builds examples, `cargo test --test` does not");
    let mut script = Command::new(script);
    script.env("OUT_DIR", &out).env("CUDA_PATH", &cuda).env("WARPLOOM_CACHE_DIR", "");
    script.envs([("TARGET", host), ("HOST", host), ("OPT_LEVEL", "1")]);
    let ran = run(&mut script);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut program = Command::new("rustc");
    program.args(["--edition", "2024", "-o"]).arg(place.path("program"));
    program.arg(examples().join("build-rs/src/main.rs"));
    for asked in ran.out.lines().filter_map(|line| line.strip_prefix("cargo:rustc-link-")) {
        let (kind, value) = asked.split_once('=').unwrap();
        program.arg(if kind == "lib" { "-l" } else { "-L" }).arg(value);
    }
    compile(program);
    check_soften(&run(&mut Command::new(place.path("program"))));
}

/// Writes what stands for CUDA's header and library to a folder, and returns its path.
fn write_cuda(folder: &Path) -> PathBuf {
    let cuda = folder.join("cuda");
    for part in ["include", "lib64/stubs"] {
        fs::create_dir_all(cuda.join(part)).unwrap();
    }
    write_stub(&cuda.join("include"));
    let [mut stub, _] = compilers();
    stub.args(["-c", "cuda.c", "-o", "../lib64/stubs/cuda.o"]).current_dir(cuda.join("include"));
    compile(stub);
    let mut library = Command::new("ar");
    library.args(["rcs", "libcuda.a", "cuda.o"]).current_dir(cuda.join("lib64/stubs"));
    compile(library);
    cuda
}

/// The program of the project asks the driver for the right things.
fn check_soften(ran: &Ran) {
    if compiler::version().is_err() {
        assert!(ran.code == 1 && ran.err.contains("Error(301)"), "{}", ran.err);
        return;
    }
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(lines(ran, "launch").iter().all(|line| line.contains(" soften_")), "{}", ran.out);
    let sets: Vec<bool> = lines(ran, "set").iter().map(|line| line.contains("3f800000")).collect();
    assert_eq!(sets, [false, true], "{}", ran.out);
    assert!(ran.out.contains("a strength of 2 is refused"), "{}", ran.out);
}
