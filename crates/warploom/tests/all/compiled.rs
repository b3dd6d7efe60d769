//! Scheduled pipelines on data: in the simulator and on the reference evaluator, which must agree.

use std::sync::Arc;
use std::thread;

use warploom::SizesError;
use warploom::lang::Param;
use warploom::prelude::*;
use warploom::schedule::Schedule;
use warploom::search::Options;

fn blur() -> Pipeline {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let gain = Param::f32("gain");
    let row = func("row", (x, y), edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y)));
    let blur = func("blur", (x, y), gain.expr() * (row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1))));
    Pipeline::new("blur", [blur]).expect("it is right")
}

fn image(extents: &[i64]) -> Buffer {
    Buffer::from_fn(Region::of_extents(extents), |at| (3 * at[0] + 5 * at[1]) as f32).expect("it is small")
}

fn scheduled(extents: &[i64]) -> Autoscheduled {
    let pipeline = blur();
    let region = Region::of_extents(extents);
    let request = Realisation::new(&pipeline).input("input", region.clone()).output("blur", region);
    let options = Options { samples: 1, beam: 2, passes: 1, ..Options::default() };
    let device = Device::preset("h200").expect("it is known");
    pipeline.autoschedule_with(&device, request.param("gain", 0.5f32), &options).expect("it is legal")
}

fn simulator() -> Backend {
    Backend::Simulator(Device::preset("h200").expect("it is known"))
}

#[test]
fn other_sizes_and_params_need_no_other_schedule() {
    let scheduled = scheduled(&[40, 30]);
    let mut simulated = scheduled.compile_for(simulator()).expect("it can be built");
    let mut reference = scheduled.compile_for(Backend::Reference).expect("there is nothing to build");
    for (extents, gain) in [([40, 30], 0.5f32), ([33, 65], 0.5), ([33, 65], 2.0), ([200, 90], 2.0)] {
        let image = image(&extents);
        simulated.set_param("gain", gain).expect("it is a Param");
        reference.set_param("gain", gain).expect("it is a Param");
        let (found, expected) = (simulated.run(&[&image]), reference.run(&[&image]));
        let (found, expected) = (found.expect("it runs"), expected.expect("it runs"));
        assert_eq!(found[0].region(), image.region());
        assert_eq!(found[0].as_slice::<f32>(), expected[0].as_slice::<f32>());
    }
}

#[test]
fn small_pictures_need_no_other_schedule() {
    let scheduled = scheduled(&[3840, 2160]);
    let simulated = scheduled.compile_for(simulator()).expect("it can be built");
    let reference = scheduled.compile_for(Backend::Reference).expect("there is nothing to build");
    for extents in [[1, 1], [133, 1], [1, 133], [2, 3], [17, 5]] {
        let image = image(&extents);
        let (found, expected) = (simulated.run(&[&image]), reference.run(&[&image]));
        assert_eq!(found.expect("it runs"), expected.expect("it runs"), "{extents:?}");
    }
}

/// A block that keeps whole rows has no room for those of a wider picture.
#[test]
fn the_default_schedule_stands_in_where_a_schedule_does_not_fit() {
    let text = "blur inline input.repeat_edge\n  kernel blur block y 4\n    row flat shared\n    blur flat\n";
    let pipeline = blur();
    let schedule = Schedule::parse(text, &pipeline).expect("it is well formed");
    let at = |width: i64| {
        let region = Region::of_extents(&[width, 9]);
        let request = Realisation::new(&pipeline).input("input", region.clone()).output("blur", region);
        let request = request.param("gain", 0.5f32);
        Compiled::new(pipeline.clone(), schedule.clone(), request, simulator())
    };
    let compiled = at(64).expect("rows of 64 fit");
    for width in [64, 20_000, 65] {
        let image = image(&[width, 9]);
        let found = compiled.run(&[&image]).expect("it runs at any size");
        let middle = found[0].get(&[width / 2, 4]);
        // Nine samples of a ramp are nine times the one in the middle.
        assert_eq!(middle, Some(Value::from(4.5 * (3 * (width / 2) + 20) as f32)), "{width}");
    }
    assert!(matches!(at(20_000), Err(RunError::Build(_))));
}

#[test]
fn parts_of_an_output_can_be_asked_for() {
    let compiled = scheduled(&[40, 30]).compile_for(simulator()).expect("it can be built");
    let image = image(&[40, 30]);
    let whole = compiled.run(&[&image]).expect("it runs");
    let part = Region::of_extents(&[7, 5]);
    let found = compiled.run_at(&[&image], std::slice::from_ref(&part)).expect("it runs");
    let cropped = whole[0].cropped(&part).expect("it is inside");
    assert_eq!(found[0].as_slice::<f32>(), cropped.as_slice::<f32>());
}

#[test]
fn wrong_inputs_are_refused() {
    let compiled = scheduled(&[40, 30]).compile_for(simulator()).expect("it can be built");
    assert!(matches!(compiled.run(&[]), Err(RunError::Sizes(SizesError::Inputs { .. }))));
    let bytes = Buffer::from_fn(Region::of_extents(&[40, 30]), |_| 0u8).expect("it is small");
    let refused = compiled.run(&[&bytes]).expect_err("it is no f32");
    assert_eq!(refused.to_string(), "the input `input` is f32, but the buffer holds u8; convert it");
    let line = Buffer::from_fn(Region::of_extents(&[40]), |_| 0f32).expect("it is small");
    assert!(matches!(compiled.run(&[&line]), Err(RunError::Build(_) | RunError::Bounds(_))));
}

#[test]
fn wrong_params_are_refused_and_change_nothing() {
    let mut compiled = scheduled(&[40, 30]).compile_for(simulator()).expect("it can be built");
    let image = image(&[40, 30]);
    let before = compiled.run(&[&image]).expect("it runs");
    assert!(matches!(compiled.set_param("grain", 1f32), Err(RunError::Bounds(_))));
    assert!(matches!(compiled.set_param("gain", 1i32), Err(RunError::Bounds(_))));
    let after = compiled.run(&[&image]).expect("it runs");
    assert_eq!(before[0].as_slice::<f32>(), after[0].as_slice::<f32>());
}

#[test]
fn kernels_of_sixteen_sizes_are_kept() {
    let compiled = scheduled(&[40, 30]).compile_for(simulator()).expect("it can be built");
    let kernels = |width: i64| {
        compiled.run(&[&image(&[width, 3])]).expect("it runs");
        compiled.program().expect("it was built")
    };
    let first: Vec<_> = (1..=16).map(kernels).collect();
    assert!(Arc::ptr_eq(&first[0], &kernels(1)), "it is still there");
    kernels(17);
    assert!(Arc::ptr_eq(&first[0], &kernels(1)), "it was used since");
    assert!(!Arc::ptr_eq(&first[1], &kernels(2)), "it was the oldest");
}

#[test]
fn only_params_that_sizes_depend_on_need_other_kernels() {
    let x = vars!(x);
    let (input, shift, gain) = (Input::f32("input", 1), Param::i32("shift"), Param::f32("gain"));
    let shifted = func("shifted", x, &gain * input.at(x + &shift));
    let pipeline = Pipeline::new("shift", [shifted]).expect("it is right");
    let request = Realisation::new(&pipeline).input("input", Region::of_extents(&[16]));
    let request =
        request.output("shifted", Region::of_extents(&[8])).param("shift", 0i32).param("gain", 1f32);
    let device = Device::preset("h200").expect("it is known");
    let scheduled = pipeline.autoschedule(&device, request).expect("it is legal");
    let mut compiled = scheduled.compile_for(simulator()).expect("it can be built");
    let line = Buffer::from_fn(Region::of_extents(&[16]), |at| at[0] as f32).expect("it is small");
    let mut run = |shift: i32, gain: f32| {
        compiled.set_param("shift", shift).expect("it is a Param");
        compiled.set_param("gain", gain).expect("it is a Param");
        let found = compiled.run(&[&line]).expect("it runs");
        assert_eq!(found[0].get(&[2]), Some(Value::from(gain * (2 + shift) as f32)));
        compiled.program().expect("it was built")
    };
    let first = run(0, 1.0);
    assert!(Arc::ptr_eq(&first, &run(0, 3.0)));
    assert!(!Arc::ptr_eq(&first, &run(5, 3.0)));
    assert!(Arc::ptr_eq(&first, &run(0, 2.0)), "both are kept");
}

#[test]
fn threads_share_kernels_and_have_their_own_params() {
    fn shared<T: Clone + Send + Sync>(_: &T) {}
    for backend in [simulator(), Backend::Reference] {
        let compiled = scheduled(&[40, 30]).compile_for(backend).expect("it can be built");
        shared(&compiled);
        assert!(!compiled.is_from_cache());
        let gains = [0.5f32, 2.0, 3.0];
        let found = thread::scope(|scope| {
            let threads = gains.map(|gain| {
                let mut own = compiled.clone();
                own.set_param("gain", gain).expect("it is a Param");
                scope.spawn(move || {
                    let sizes = [[33, 17], [40, 30], [33, 17]];
                    sizes.map(|extents| own.run(&[&image(&extents)]).expect("it runs").remove(0))
                })
            });
            threads.map(|thread| thread.join().expect("it does not panic"))
        });
        for (gain, found) in gains.into_iter().zip(&found) {
            // Nine samples of a ramp are nine times the one in the middle.
            assert_eq!(found[0].get(&[9, 9]), Some(Value::from(gain * 9.0 * 72.0)));
            assert_eq!(found[0], found[2]);
            assert_eq!(found[1].get(&[9, 9]), found[0].get(&[9, 9]));
        }
    }
}

/// An output with interleaved channels: the samples of a pixel lie side by side, and indices stay as they are.
#[test]
fn outputs_are_stored_in_their_order() {
    let (x, y, c) = vars!(x, y, c);
    let image = Input::u8("image", 3).stored([2, 0, 1]);
    let negative = func("negative", (x, y, c), 255 - image.at((x, y, c))).stored([2, 0, 1]);
    let pipeline = Pipeline::new("negative", [negative]).expect("it is right");
    let sample = |at: &[i64]| (at[0] + 10 * at[1] + 100 * at[2]) as u8;
    let image = Buffer::from_fn::<u8>(Region::of_extents(&[5, 4, 3]), sample).expect("it is right");
    let device = Device::preset("h200").expect("it is right");
    let scheduled = pipeline.autoschedule(&device, [&image]).expect("it is right");
    let strides: Vec<&Vec<i64>> =
        scheduled.program().buffers.values().map(|buffer| &buffer.strides).collect();
    assert_eq!(strides, [&vec![3, 15, 1], &vec![3, 15, 1]]);
    let outputs = scheduled
        .compile_for(Backend::Simulator(device))
        .expect("it is right")
        .run(&[&image])
        .expect("it is right");
    assert_eq!(outputs[0].order(), [2, 0, 1]);
    for at in [[0, 0, 0], [4, 3, 2], [2, 1, 0]] {
        assert_eq!(outputs[0].get(&at), Some(Value::from(255 - sample(&at))));
    }
    let twice = func("twice", (x, y), x + y).stored([0, 0]);
    let refused = Pipeline::new("twice", [twice]).expect_err("it is refused").to_string();
    assert!(refused.contains("the storage order [0, 0] of `twice` is not a permutation"), "{refused}");
}

/// Kernels for any size refuse what they were not made for, and say what would fit.
#[test]
fn sizes_out_of_range_are_refused() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let sums = func("sums", (x, y), input.at((x, y)) + input.at((x + 1, y)));
    let pipeline = Pipeline::new("sums", [sums]).expect("it is right");
    let sizes = varying([("W", 2..=40, 30), ("H", 1..=40, 20)], |pipeline, sizes| {
        let request = Realisation::new(pipeline).input("input", Region::of_extents(&[sizes[0], sizes[1]]));
        Ok(request.output("sums", Region::of_extents(&[sizes[0] - 1, sizes[1]])))
    });
    let device = Device::preset("h200").expect("it is right");
    let sums = pipeline
        .autoschedule(&device, sizes)
        .expect("it is right")
        .compile_for(Backend::Simulator(device))
        .expect("it is right");
    let image = |w: i64, h: i64| {
        Buffer::from_fn::<f32>(Region::of_extents(&[w, h]), |at| at[0] as f32).expect("it is right")
    };
    for (w, h) in [(2, 1), (40, 40), (7, 13)] {
        let found = sums.run(&[&image(w, h)]).expect("it is right");
        assert_eq!(found[0].region(), &Region::of_extents(&[w - 1, h]));
        assert_eq!(found[0].get(&[w - 2, h - 1]), Some(Value::from((2 * w - 3) as f32)));
    }
    let refused = sums.run(&[&image(41, 3)]).expect_err("it is refused").to_string();
    assert!(refused.starts_with("W=41 is outside the range 2..40"), "{refused}");
    let refused =
        sums.run_at(&[&image(9, 3)], &[Region::of_extents(&[9, 3])]).expect_err("it is refused").to_string();
    assert_eq!(
        refused,
        "at W=9, H=3, `sums` must have the box [0, 8) x [0, 3), but [0, 9) x [0, 3) was given"
    );
}
