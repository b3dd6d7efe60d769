//! `compile --dynamic` and `--pitch`: one C package for many sizes. What it asks of the driver is what the compiler
//! itself launches at each of them.

use warploom::app::Settings;
use warploom::codegen::build::build_with;
use warploom::codegen::export::{Manifest, named};
use warploom::codegen::instance::Strides;
use warploom::codegen::ir::{Program, Role};
use warploom::codegen::lower;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::lang::Id;
use warploom::lang::dynamic::SizeRange;
use warploom::plan::Problem;
use warploom::target::Device;
use warploom::target::program::Kernel;

use crate::place::Place;
use crate::stubbed::{Export, MEMORY, argument_kinds, includes, with_code};

/// A setting and its value.
type Fixed = (&'static str, f64);

/// A size, with its smallest and its largest value.
type Ranged = (&'static str, i64, i64);

/// The kernels of an app's default schedule for ranges of some sizes, and their description.
fn package(app: &str, fixed: &[Fixed], sizes: &[Ranged]) -> (Program, Manifest) {
    let app = warploom_apps::find(app).unwrap();
    let mut settings = Settings::defaults(app);
    assert!(fixed.iter().all(|(name, value)| settings.set(name, *value)));
    let pipeline = app.pipeline(&settings).unwrap();
    let range = |(name, min, max): &Ranged| SizeRange { name: (*name).into(), min: *min, max: *max };
    let request = app.dynamic(&pipeline, &settings, sizes.iter().map(range).collect()).unwrap().unwrap();
    let device = Device::preset("h200").unwrap();
    let problem = Problem::dynamic(&pipeline, &request, &device).unwrap();
    let options = lower::Options { pitched: true, ..lower::Options::default() };
    let program = build_with(&problem, &problem.default_schedule(), options).unwrap();
    let program = named(&program, pipeline.name());
    let manifest = Manifest::new(&pipeline, problem.request(), &device, &[], &program);
    (program, with_code(&manifest))
}

/// Strides of all inputs and outputs with rows that are longer than their contents.
fn padded(program: &Program, sizes: &[i64], pad: i64) -> Strides {
    let dense = program.at(sizes, &Strides::default()).unwrap();
    let layouts = &program.sizes.as_ref().unwrap().buffers;
    let of = |(id, decl): (warploom::codegen::ir::BufferId, &warploom::codegen::ir::BufferDecl)| {
        let (mut strides, mut least) = (vec![0; decl.strides.len()], 1);
        for (position, &d) in layouts[id].order.iter().enumerate() {
            strides[d] = if position == 0 { 1 } else { least + pad };
            least = strides[d] * decl.region[d].extent;
        }
        (decl.role != Role::Temporary && pad > 0).then_some(strides)
    };
    dense.buffers.iter().map(of).collect()
}

/// A program that runs a package at several sizes and strides.
fn main(manifest: &Manifest, runs: &[(Vec<i64>, Strides)]) -> String {
    let name = &manifest.name;
    let mut body = String::new();
    for (sizes, strides) in runs {
        for (size, value) in manifest.sizes.iter().zip(sizes) {
            body += &format!("    sizes.{} = {value};\n", size.identifier);
        }
        let given = manifest.buffers.iter().enumerate().filter(|(_, buffer)| buffer.offset.is_none());
        for (position, buffer) in given {
            body += &format!("    buffers.{} = {}u;\n", buffer.identifier, (position + 1) << 12);
            let own = strides.get(Id::new(position)).and_then(Option::as_ref);
            for d in 0..buffer.dimensions.len() {
                let stride = own.map_or(0, |own| own[d]);
                body += &format!("    buffers.{}_stride[{d}] = {stride};\n", buffer.identifier);
            }
        }
        body += &format!(
            "    result = {name}_allocate_workspace(&sizes, &workspace);\n    \
             printf(\"allocated %d, %zu\\n\", result, {name}_workspace_bytes(&sizes));\n    \
             result = {name}_run(pipeline, stream, workspace, &sizes, &buffers, NULL);\n    \
             printf(\"ran %d\\n\", result);\n"
        );
    }
    format!(
        "{}{}int main(int count, char **arguments)\n{{\n    failing = count > 1 ? arguments[1] : \"\";\n    \
         CUstream stream = (CUstream)arguments;\n    CUdeviceptr workspace = 0;\n    {name}_pipeline *pipeline;\n    \
         {name}_buffers buffers;\n    {name}_sizes sizes;\n    CUresult result = {name}_create(&pipeline, NULL);\n{body}    \
         return {name}_destroy(pipeline);\n}}\n",
        includes(name),
        argument_kinds(manifest)
    )
}

/// The launches at some sizes, as the stub writes them down. Workspaces are so far apart that only offsets count.
fn launches(
    program: &Program,
    manifest: &Manifest,
    sizes: &[i64],
    strides: &Strides,
    run: u64,
) -> Vec<String> {
    let described = PRINTER.describe_at(program, Build::Timing, sizes, strides).unwrap();
    let workspace = MEMORY + run * 0x100_0000_0000;
    let (mut addresses, mut end) = (Vec::new(), 0);
    for (position, buffer) in described.buffers.iter().enumerate() {
        let temporary = manifest.buffers[position].offset.is_some();
        addresses.push(if temporary { workspace + end } else { (position as u64 + 1) << 12 });
        end += if temporary { (buffer.bytes() as u64).next_multiple_of(256) } else { 0 };
    }
    let mut calls = Vec::new();
    let made: Result<(), ()> = described.for_each_launch(|kernel, iterations| {
        let Kernel { entry, grid: [x, y, z], threads, dynamic_shared_bytes, buffers, .. } = &described.kernels[kernel];
        let target = &described.kernels[kernel];
        let numbers = target.iterations.iter().map(|level| iterations[*level] as i64);
        let numbers = numbers.chain(target.sizes.iter().map(|size| i64::from(*size)));
        let words = target.reads_params.then(|| workspace + end);
        let pointers = buffers.iter().map(|buffer| addresses[*buffer]).chain(words);
        let arguments: String =
            pointers.map(|at| format!(" {at}")).chain(numbers.map(|number| format!(" {number}"))).collect();
        let launch = if target.waits && !calls.is_empty() { "launch early" } else { "launch" };
        calls.push(format!(
            "{launch} {entry} grid {x} {y} {z} block {threads} 1 1 shared {dynamic_shared_bytes} on the stream:{arguments}"
        ));
        Ok(())
    });
    made.unwrap();
    calls
}

#[test]
fn one_package_launches_what_each_size_needs() {
    let apps: [(&str, &[Fixed], &[Ranged]); 5] = [
        ("blur", &[], &[("W", 1, 9000), ("H", 1, 9000)]),
        ("harris", &[], &[("W", 7, 4000), ("H", 7, 4000)]),
        ("local_laplacian", &[("pyramid_levels", 4.0)], &[("W", 9, 4000), ("H", 9, 4000)]),
        ("cuda_mat_mul", &[], &[("size", 1, 4096)]),
        ("hist", &[], &[("W", 1, 4000), ("H", 1, 4000)]),
    ];
    for (app, fixed, sizes) in apps {
        let (program, manifest) = package(app, fixed, sizes);
        let mut runs = Vec::new();
        for (number, pad) in [(0, 0), (1, 5), (2, 0), (3, 64)] {
            let size = |(_, min, max): &Ranged| [*min, 37.max(*min), 640.max(*min), *max][number];
            let sizes: Vec<i64> = sizes.iter().map(size).collect();
            let strides = padded(&program, &sizes, pad);
            runs.push((sizes, strides));
        }
        let place = Place::new();
        let said = Export::of_main(&place, &manifest, &main(&manifest, &runs)).run("");
        let shown = |line: &String| ["allocated", "launch", "ran"].iter().any(|word| line.starts_with(word));
        let mut said = said.into_iter().filter(shown);
        for (run, (sizes, strides)) in (0..).zip(&runs) {
            let described = PRINTER.describe_at(&program, Build::Timing, sizes, strides).unwrap();
            let bytes = manifest.workspace_bytes_at(&described);
            assert_eq!(said.next(), Some(format!("allocated 0, {bytes}")), "{app} at {sizes:?}");
            for expected in launches(&program, &manifest, sizes, strides, run) {
                assert_eq!(said.next(), Some(expected), "{app} at {sizes:?}");
            }
            assert_eq!(said.next().as_deref(), Some("ran 0"), "{app} at {sizes:?}");
        }
        assert_eq!(said.next(), None, "{app}");
    }
}

/// Sizes and strides that cannot be used are refused, and nothing is launched.
#[test]
fn bad_sizes_and_strides_launch_nothing() {
    let (program, manifest) = package("blur", &[], &[("W", 8, 40_000), ("H", 8, 40_000)]);
    let dense = |sizes: [i64; 2]| (sizes.to_vec(), Strides::default());
    let strided = |strides: [i64; 2]| {
        let of = |decl: &warploom::codegen::ir::BufferDecl| {
            (decl.role != Role::Temporary).then(|| strides.to_vec())
        };
        (vec![64, 32], program.buffers.values().map(of).collect::<Strides>())
    };
    let runs = [
        dense([7, 32]),
        dense([64, 40_001]),
        dense([-1, 32]),
        // Each is in its range.
        dense([40_000, 40_000]),
        strided([1, 63]),
        strided([2, 200]),
        strided([1, -64]),
        strided([64, 1]),
        strided([1, 1 << 40]),
    ];
    let place = Place::new();
    let said = Export::of_main(&place, &manifest, &main(&manifest, &runs)).run("");
    assert!(said.iter().all(|line| !line.starts_with("launch")), "{said:?}");
    let refused: Vec<&str> = said.iter().filter_map(|line| line.strip_prefix("ran ")).collect();
    assert_eq!(refused, [["1003"; 4].as_slice(), &["1004"; 5]].concat(), "sizes, then strides: {said:?}");
    for (sizes, strides) in &runs {
        assert!(
            PRINTER.describe_at(&program, Build::Timing, sizes, strides).is_err(),
            "{sizes:?} {strides:?}"
        );
    }
}

/// The summary says which sizes its figures are of, and those of one size are what kernels for that size have.
#[test]
fn summaries_say_which_sizes_they_are_of() {
    let place = Place::new();
    let ranges = "--dynamic W=64..8192,H=64..8192 --size 640x480 --schedule default --device h200";
    let ran = place.run(&format!("--quiet compile harris {ranges} -o ."));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.starts_with("harris for H200 (sm_90), for any sizes W=64..8192, H=64..8192\n"),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("\nharris at W=640, H=480 for H200 (sm_90): "), "{}", ran.out);
    let explained = place.run(&format!("explain harris {ranges}"));
    assert_eq!(explained.code, 0, "{}", explained.err);
    let table = ran.out.split("\nharris at").next().unwrap();
    assert!(explained.out.starts_with(table), "{}", explained.out);

    let report = place.json(&format!("--quiet compile harris {ranges} -o . --json"));
    let fixed = place
        .json("--quiet compile harris --pitch --size 640x480 --schedule default --device h200 -o . --json");
    assert!(fixed["ranges"].is_null());
    for field in ["launches", "workspace_bytes", "predicted_us"] {
        assert_eq!(report[field], fixed[field], "{field}");
    }
    let grids = |report: &serde_json::Value| -> Vec<serde_json::Value> {
        report["kernels"].as_array().unwrap().iter().map(|kernel| kernel["grid"].clone()).collect()
    };
    assert_eq!(grids(&report), grids(&fixed));
    let ranges = &report["ranges"];
    assert_eq!(ranges["given"][1], serde_json::json!({"name": "H", "min": 64, "max": 8192, "asked": 480}));
    let [smallest, asked, largest] = ranges["at"].as_array().unwrap().as_slice() else { panic!("{ranges}") };
    assert_eq!(asked["values"], serde_json::json!([640, 480]));
    for field in ["predicted_us", "workspace_bytes"] {
        assert_eq!(asked[field], report[field], "{field}");
        let number = |at: &serde_json::Value| at[field].as_f64().unwrap();
        assert!(number(smallest) < number(asked) && number(asked) < number(largest), "{ranges}");
    }
}

#[test]
fn sizes_are_given_on_the_command_line() {
    let place = Place::new();
    let ran = place
        .run("--quiet compile blur --dynamic W=64..8192,H=64..8192 --schedule default --device h200 -o .");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let header = std::fs::read_to_string(place.path("blur.h")).unwrap();
    assert!(header.contains("int64_t W; /* from 64 to 8192 */"), "{header}");
    assert!(header.contains("int64_t input_stride[2];"), "{header}");
    let fixed =
        place.run("--quiet compile blur --pitch --size 640x480 --schedule default --device h200 -o .");
    assert_eq!(fixed.code, 0, "{}", fixed.err);
    let header = std::fs::read_to_string(place.path("blur.h")).unwrap();
    assert!(header.contains("int64_t output_stride[2];") && !header.contains("blur_sizes"), "{header}");
    for (arguments, sentence) in [
        (
            "blur --dynamic W=64",
            "`W=64` is not a range of a size; write NAME=SMALLEST..LARGEST, as in --dynamic W=64..8192",
        ),
        ("blur --dynamic D=64..80", "`blur` has no size `D` that a run could give; it has W, H"),
        (
            "blur --dynamic W=0..80",
            "the size `W` is to range from 0 to 80; give a range from 1 or more to at most 2^30",
        ),
        ("blur --dynamic W=1..80", "W=8192 is outside the range 1..80"),
        (
            "harris --dynamic W=1..8000",
            "`output` would have no points in dimension 0 at the smallest sizes; raise them",
        ),
    ] {
        let ran = place.run(&format!("compile {arguments} --device h200"));
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(sentence), "{}", ran.err);
    }
}
