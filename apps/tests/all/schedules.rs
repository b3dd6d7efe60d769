//! The hand-written schedules: each reads, prints back as it stands, and is legal on an H200 at the sizes that are
//! benchmarked and at those of the reference data.

use warploom::app::{App, Settings};
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::schedule::{Item, Schedule};
use warploom::target::Device;

/// The sizes of the reference data, of some apps.
const GOLDEN: [(&str, &[(&str, f64)]); 5] = [
    ("unsharp", &[("W", 128.0), ("H", 96.0)]),
    ("harris", &[("W", 128.0), ("H", 96.0)]),
    ("max_filter", &[("W", 128.0), ("H", 96.0)]),
    ("nl_means", &[("W", 112.0), ("H", 80.0)]),
    ("cuda_mat_mul", &[("size", 96.0)]),
];

fn text(app: &str) -> String {
    let path = format!("{}/schedules/{app}.schedule", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn settings(app: &App, sizes: &[(&str, f64)]) -> Settings {
    let mut settings = Settings::defaults(app);
    for (name, value) in sizes {
        assert!(settings.set(name, *value), "{} has no size {name}", app.name);
    }
    settings
}

/// An app and its schedule.
fn scheduled(app: &App, sizes: &[(&str, f64)]) -> (Problem, Schedule) {
    let problem = realised(app, &settings(app, sizes));
    let schedule = Schedule::parse(&text(&app.name), problem.pipeline());
    (problem, schedule.unwrap_or_else(|errors| panic!("{errors}")))
}

fn realised(app: &App, settings: &Settings) -> Problem {
    let pipeline = app.pipeline(settings).unwrap();
    let mut request = app.shapes_at(settings).realisation(&pipeline);
    for param in pipeline.params().values() {
        let value = Value::from_number(param.ty, settings.number(&param.name)).unwrap();
        request = request.param(&param.name, value);
    }
    Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap()
}

/// The app of each file in the folder.
fn apps() -> Vec<&'static App> {
    let folder = format!("{}/schedules", env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let name =
        |file: std::ffi::OsString| file.to_str().unwrap().strip_suffix(".schedule").unwrap().to_string();
    files.map(|file| warploom_apps::find(&name(file)).unwrap()).collect()
}

#[test]
fn files_print_back_as_they_stand() {
    let apps = apps();
    assert!(apps.len() >= GOLDEN.len());
    for app in apps {
        let (problem, schedule) = scheduled(app, &[]);
        let printed = schedule.to_text(problem.pipeline());
        if std::env::var_os("BLESS").is_some() {
            let path = format!("{}/schedules/{}.schedule", env!("CARGO_MANIFEST_DIR"), app.name);
            std::fs::write(path, &printed).unwrap();
        }
        assert_eq!(printed, text(&app.name), "{}; set BLESS=1 to write the files anew", app.name);
    }
}

#[test]
fn schedules_are_legal_at_all_sizes() {
    let benchmark = apps().into_iter().map(|app| (app, [].as_slice()));
    let golden = GOLDEN.into_iter().map(|(name, sizes)| (warploom_apps::find(name).unwrap(), sizes));
    for (app, sizes) in benchmark.chain(golden) {
        let (problem, schedule) = scheduled(app, sizes);
        let problem =
            problem.rewritten(&schedule.rewrites).unwrap_or_else(|error| panic!("{}: {error}", app.name));
        if let Err(violations) = problem.check(&schedule) {
            let text: Vec<String> = violations.iter().map(ToString::to_string).collect();
            panic!("{} {sizes:?}:\n{}", app.name, text.join("\n\n"));
        }
    }
}

/// The extents of everything that lives in the blocks of a schedule's kernels, by name.
fn allocated(app: &str, text: &str) -> Vec<(String, Vec<i64>)> {
    let app = warploom_apps::find(app).unwrap();
    let problem = realised(app, &settings(app, &[]));
    let pipeline = problem.pipeline();
    let schedule = Schedule::parse(text, pipeline).unwrap_or_else(|errors| panic!("{errors}"));
    let plan = problem.plan(&schedule);
    let name = |item: Item| match item {
        Item::Stage(stage) => pipeline.funcs()[stage.func].name.clone(),
        Item::Input(input) => format!("{}.stage", pipeline.inputs()[input].name),
    };
    let allocations = plan.kernels.values().flat_map(|kernel| &kernel.allocations);
    let mut found: Vec<(String, Vec<i64>)> =
        allocations.map(|allocation| (name(allocation.item), allocation.extents.clone())).collect();
    for nest in plan.nests.values().filter_map(|nest| nest.footprint.as_ref()) {
        let registers = nest.registers.iter();
        found.extend(
            registers
                .map(|(func, box_)| (pipeline.funcs()[*func].name.clone(), box_.thread.points.extents())),
        );
    }
    found
}

fn named(found: &[(String, Vec<i64>)]) -> Vec<(&str, &[i64])> {
    found.iter().map(|(name, extents)| (name.as_str(), extents.as_slice())).collect()
}

const MATRIX_PRODUCT: &str = "
cuda_mat_mul
  kernel out   block x 64, y 64
    prod.0     threads x 16, y 16  serial x 4, y 4         unroll  private
    over prod.1.r 16
      A.stage  flat                                                shared
      B.stage  flat                                                shared
      prod.1   threads x 16, y 16  serial r all, x 4, y 4  unroll  private
    out        threads x 16, y 16  serial x 4, y 4         unroll
";

const SEARCH_WINDOW: &str = "
nl_means                  inline cl, dc, blur_d, cl_a
  kernel non_local_means  block x 64, y 16
    input.stage           flat                                          shared
    sum4.0                threads x 64, y 4  serial y 4, c all  unroll  private
    over sum4.1.sy 1, sum4.1.sx 1
      d                   flat                                          shared
        d.sum0            registers
      blur_d_y            flat                                          shared
        blur_d_y.sum0     registers
      sum4.1              threads x 64, y 4  serial y 4, c all  unroll  private
        blur_d.sum0       registers
        w                 registers
    non_local_means       threads x 64, y 4  serial y 4, c all  unroll
";

#[test]
fn footprints_are_what_blocks_and_threads_need() {
    let found = allocated("unsharp", &text("unsharp"));
    assert_eq!(named(&found), [("gray", &[70, 22][..]), ("blur_y", &[70, 16]), ("blur_x", &[1, 4])]);

    let found = allocated("cuda_mat_mul", MATRIX_PRODUCT);
    assert_eq!(named(&found), [("prod", &[4, 4][..]), ("A.stage", &[64, 16]), ("B.stage", &[16, 64])]);

    let found = allocated("nl_means", SEARCH_WINDOW);
    let expected: [(&str, &[i64]); 8] = [
        ("input.stage", &[76, 28, 3]),
        ("sum4", &[1, 4, 4]),
        ("d", &[70, 22, 1, 1]),
        ("blur_d_y", &[70, 16, 1, 1]),
        ("d.sum0", &[1, 1, 1, 1]),
        ("blur_d_y.sum0", &[1, 1, 1, 1]),
        ("blur_d.sum0", &[1, 4, 1, 1]),
        ("w", &[1, 4, 1, 1]),
    ];
    assert_eq!(named(&found), expected);
}

/// Every stage in a kernel of its own, except Funcs that are inlined.
fn at_root(pipeline: &Pipeline, inlined: impl Fn(&ir::FuncDecl) -> bool) -> String {
    let is_output = |id: FuncId| pipeline.outputs().contains(&id);
    let (inline, root): (Vec<FuncId>, Vec<FuncId>) =
        pipeline.funcs().keys().partition(|id| !is_output(*id) && inlined(&pipeline.funcs()[*id]));
    let mut text = format!("{}\n", pipeline.name());
    for id in inline {
        text += &format!("  inline {}\n", pipeline.funcs()[id].name);
    }
    for func in root.into_iter().map(|id| &pipeline.funcs()[id]) {
        for (number, stage) in func.stages.iter().enumerate().filter(|(_, stage)| !stage.values.is_empty()) {
            let loops = (0..func.dims.len()).filter(|d| stage.is_pure(pipeline.exprs(), *d)).take(2);
            let tiles: Vec<String> =
                loops.zip([32, 8]).map(|(d, size)| format!("{} {size}", func.dims[d])).collect();
            let block = if tiles.is_empty() { String::new() } else { format!("block {}", tiles.join(", ")) };
            text += &format!("  kernel {} {block} flat\n", ir::stage_name(func, number));
        }
    }
    text
}

#[test]
fn every_app_can_be_computed_at_root_or_inlined() {
    for app in warploom_apps::APPS.iter() {
        let problem = realised(app, &Settings::defaults(app));
        let pipeline = problem.pipeline();
        assert_eq!(warnings(pipeline, problem.regions()), [], "{}", app.name);
        for inline in [false, true] {
            let text = at_root(pipeline, |func| inline && func.stages.len() == 1);
            let schedule = Schedule::parse(&text, pipeline).unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(Schedule::parse(&schedule.to_text(pipeline), pipeline).as_ref(), Ok(&schedule));
            if let Err(violations) = problem.check(&schedule) {
                panic!("{}: {}", app.name, violations[0]);
            }
        }
    }
}
