//! Whatever the names of a pipeline, every file that it is in gives it back.

#[path = "../../../plan/tests/all/pipelines/renamed.rs"]
mod drawn;

use proptest::prelude::*;
use warploom_codegen::build::build;
use warploom_codegen::export::{LONGEST_STEM, Manifest, named};
use warploom_lang::{Input, Pipeline, Realisation, Region, func, rdom, vars};
use warploom_plan::Problem;
use warploom_schedule::Schedule;
use warploom_target::Device;
use warploom_tune::landscape::{Definition, Landscape, Limits, Outcome, Provenance};
use warploom_tune::records::{Records, Trial};
use warploom_tune::sample::{Origin, Sample, Sizes, Status, Times};

const TEMPLATE: &str = "
mm
  kernel out   block x 32, y 32
    prod.0     threads x 16, y 16  serial x 2, y 2         unroll  private
    over prod.1.r 8
      A.stage  flat                                                shared
      B.stage  flat                                                shared
      prod.1   threads x 16, y 16  serial r all, x 2, y 2  unroll  private
    out        threads x 16, y 16  serial x 2, y 2         unroll
";

/// A product of 32x32 matrices, and its schedule, which names all of its parts.
fn product() -> (Pipeline, Schedule) {
    let (x, y) = vars!(x, y);
    let (a, b) = (Input::f32("A", 2), Input::f32("B", 2));
    let r = rdom!(r: (0, 32));
    let [k] = r.vars();
    let prod = func("prod", (x, y), 0.0_f32).over(&r, |f| f.add((x, y), a.at((k, y)) * b.at((x, k))));
    let pipeline = Pipeline::new("mm", [func("out", (x, y), prod.at((x, y)))]).unwrap();
    let schedule = Schedule::parse(TEMPLATE, &pipeline).unwrap_or_else(|errors| panic!("{errors}"));
    (pipeline, schedule)
}

fn problem(pipeline: &Pipeline) -> Problem {
    let mut request = Realisation::new(pipeline);
    let square = Some(Region::of_extents(&[32, 32]));
    request.inputs.values_mut().for_each(|input| input.clone_from(&square));
    request.outputs.fill(square);
    Problem::new(pipeline, &request, &Device::preset("h200").unwrap()).unwrap()
}

fn reads_from_a_landscape(problem: &Problem, template: &Schedule) {
    let (pipeline, device) = (problem.pipeline().clone(), problem.device().clone());
    let sizes = Sizes::of(problem.request());
    let source =
        Provenance { pipeline, sizes, device, versions: vec!["warploom 1".to_owned()], measured: (7, 8) };
    let definition = Definition { template: template.clone(), axes: Vec::new(), limits: Limits::default() };
    let (_, points) = definition.points(problem).unwrap();
    let time = Outcome::Time { min_us: 3.0, median_us: 4.0 };
    let outcomes = points.into_iter().take(5).map(|point| (point, time.clone())).collect();
    let written = Landscape::new(source, definition, outcomes, 7).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.landscape");
    written.write(&file).unwrap();
    let read = Landscape::read(&file).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.source.pipeline.to_json(), problem.pipeline().to_json());
    assert_eq!(&read.definition.template, template);
    assert!(read.points().eq(written.points()));
}

fn reads_from_records(problem: &Problem, schedule: &Schedule) {
    let (pipeline, device) = (problem.pipeline(), problem.device());
    let mut records = Records::in_memory().unwrap();
    let versions = vec!["warploom 1".to_owned()];
    let id = records.problem(pipeline, problem.request(), device, &versions).unwrap();
    let text = schedule.to_text(pipeline);
    let sample = Sample {
        pipeline: pipeline.structural_hash(),
        sizes: Sizes::of(problem.request()),
        schedule: text.clone(),
        origin: Origin::Search,
        device: device.name.clone(),
        fingerprint: device.fingerprint(),
        versions,
        status: Status::Measured,
        verified: true,
        times: Some(Times { min: 3.0, median: 4.0, runs: 20 }),
        kernels: Vec::new(),
        compile_ms: 1.0,
    };
    assert!(records.record(id, &Trial::new(sample, None, 0.0)).unwrap());
    let kept = records.pipeline(records.key(pipeline).unwrap()).unwrap().unwrap();
    assert_eq!(kept.to_json(), pipeline.to_json());
    let trial = records.find(id, &text).unwrap().unwrap();
    assert_eq!(&Schedule::parse(&trial.sample.schedule, &kept).unwrap(), schedule);
    assert_eq!(records.problems().unwrap()[0].name, pipeline.name());
}

fn reads_from_a_manifest(problem: &Problem, schedule: &Schedule) {
    let pipeline = problem.pipeline();
    let program = named(&build(problem, schedule).unwrap(), pipeline.name());
    let manifest = Manifest::new(pipeline, problem.request(), problem.device(), &[], &program);
    let read = Manifest::from_json(&manifest.to_json().unwrap()).unwrap();
    assert_eq!(read, manifest);
    assert_eq!(read.pipeline, pipeline.name());
    assert!(read.name.len() <= LONGEST_STEM);
    let inputs = pipeline.inputs().values().map(|input| input.name.as_str());
    let outputs = pipeline.output_names();
    let given: Vec<&str> = inputs.chain(outputs.iter().map(String::as_str)).collect();
    assert_eq!(read.given().map(|buffer| buffer.name.as_str()).collect::<Vec<_>>(), given);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn all_names_read_back(given in drawn::names()) {
        let (pipeline, schedule) = product();
        let Some(pipeline) = given.renamed(&pipeline) else { return Ok(()) };
        let again = Pipeline::from_json(&pipeline.to_json()).unwrap();
        prop_assert_eq!(again.to_json(), pipeline.to_json());
        let problem = problem(&pipeline);
        reads_from_a_landscape(&problem, &schedule);
        reads_from_records(&problem, &schedule);
        reads_from_a_manifest(&problem, &schedule);
    }
}
