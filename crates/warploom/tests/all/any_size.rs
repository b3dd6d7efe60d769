//! A schedule that was found for one size runs at every other: random pipelines, whose kernels give the reference's bits in
//! the simulator whatever the size.

use warploom::check::grown;
use warploom::cost::Analytic;
use warploom::fuzz::{Case, Failure, Reason, Verdict};
use warploom::plan::Problem;
use warploom::prelude::*;
use warploom::randpipe::{self, random_pipeline};
use warploom::schedule::Schedule;
use warploom::search::{Options, search};

/// Extents of the first dimensions; further ones have the last.
const EXTENTS: [&[i64]; 6] = [&[1], &[133, 1], &[1, 133, 1], &[2, 3], &[17, 5, 2], &[7, 31, 3]];

/// Pipelines that are tried.
const PIPELINES: u64 = 40;

/// What a short search finds: the best, and the last of what it would have tried.
fn found(pipeline: &Pipeline, request: &Realisation, device: &Device) -> Vec<Schedule> {
    let options = Options { samples: 2, beam: 2, passes: 1, ..Options::default() };
    let problem = Problem::new(pipeline, request, device).expect("the sizes fit");
    assert_eq!(warnings(pipeline, problem.regions()), [], "{pipeline}");
    let outcome = search(&problem, &Analytic::new(device), &options, &|_| {});
    let last = outcome.candidates.last().map(|candidate| candidate.schedule.clone());
    [outcome.best].into_iter().chain(last).collect()
}

/// Outputs of other extents, and inputs that are large enough for them; `None` if the pipeline has no such size.
fn resized(pipeline: &Pipeline, request: &Realisation, extents: &[i64]) -> Option<Realisation> {
    let mut resized = request.clone();
    for region in resized.outputs.iter_mut().flatten() {
        for (d, range) in region.0.iter_mut().enumerate() {
            range.extent = *extents.get(d).or(extents.last())?;
        }
    }
    let resized = grown(pipeline, resized)?;
    warnings(pipeline, &infer(pipeline, &resized).ok()?).is_empty().then_some(resized)
}

/// Whether an output is larger along some dimension.
fn is_larger(request: &Realisation, scheduled: &Realisation) -> bool {
    let extents = |request: &Realisation| -> Vec<i64> {
        request
            .outputs
            .iter()
            .flatten()
            .flat_map(|region| region.0.iter().map(|range| range.extent))
            .collect()
    };
    extents(request).iter().zip(extents(scheduled)).any(|(now, then)| *now > then)
}

#[test]
fn searched_schedules_of_random_pipelines_run_at_every_size() {
    let device = Device::preset("h200").expect("it is a preset");
    let (mut passed, mut refused, mut impossible, mut skipped) = (0, 0, 0, 0);
    for seed in 0..PIPELINES {
        let random =
            random_pipeline(seed, &randpipe::Options { stages: 2..=6, ..randpipe::Options::default() });
        let schedules = found(&random.pipeline, &random.request, &device);
        for extents in EXTENTS {
            let Some(request) = resized(&random.pipeline, &random.request, extents) else {
                impossible += 1;
                continue;
            };
            for schedule in &schedules {
                let (pipeline, request) = (random.pipeline.clone(), request.clone());
                let case = Case { pipeline, request, schedule: schedule.clone(), seed };
                match case.check(&device) {
                    Ok(Verdict::Passed) => passed += 1,
                    Ok(Verdict::Skipped(skip)) if skip.reason == Reason::Rewrites => skipped += 1,
                    Ok(other) => panic!("seed {seed} at {extents:?}: {other:?}"),
                    // A clamp to constant limits may cut off more of a larger output than of the one that was scheduled.
                    Err(Failure::Illegal(_)) if is_larger(&case.request, &random.request) => refused += 1,
                    Err(failure) => {
                        let text = schedule.to_text(&random.pipeline);
                        panic!("seed {seed} at {extents:?}: {failure}\n{text}{}", random.pipeline);
                    }
                }
            }
        }
    }
    println!("{passed} passed, {refused} refused, {skipped} skipped, {impossible} sizes impossible");
    assert!(passed > 100 && refused * 100 <= passed && skipped + impossible <= 10);
}
