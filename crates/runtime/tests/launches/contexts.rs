//! Two contexts on one GPU, and two objects for one context: what belongs to one is refused by the other, and both compute
//! at the same time.

use std::sync::Arc;
use std::thread;

use warploom_runtime::cuda::{CudaContext, CudaStream};
use warploom_runtime::{Driver, Error, Executable, Execute, Gpu, Launches};

use crate::support::{ELEMENTS, cube};
use crate::{Single, gpu, ramp, times};

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// A GPU in a context that nobody else has.
fn alone() -> Gpu {
    let context = CudaContext::new_non_primary(0, 0).expect("a GPU has room for contexts");
    Gpu::on(&context.new_stream().expect("a context has room for streams")).expect("it is a GPU")
}

fn expect_cube(cube: &mut Executable, factor: f32) {
    cube.set_params(&[factor.to_bits()]).expect("it has one Param");
    cube.run().expect("it runs");
    assert_eq!(cube.download(0, 0).expect("it has an output"), bytes(&times(factor.powi(3))));
}

#[test]
fn gpu_inputs_are_shared_within_one_context() {
    let Some(gpu) = gpu("gpu_inputs_are_shared_within_one_context") else { return };
    let elsewhere = alone();
    let uploaded = elsewhere.upload("in", &bytes(&ramp())).unwrap();
    let refused = gpu.load_with(&cube(), std::slice::from_ref(&uploaded)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the memory for `in` was uploaded to another context than the one that `test` is loaded in: upload it with the Gpu \
         that loads the program"
    );
    expect_cube(&mut elsewhere.load_with(&cube(), &[uploaded]).unwrap(), 2.0);
    // Another object for the same context, with a stream of its own.
    let twin = Gpu::new(0).unwrap();
    let uploaded = twin.upload("in", &bytes(&ramp())).unwrap();
    let mut shared = gpu.load_with(&cube(), &[uploaded]).unwrap();
    drop(twin);
    expect_cube(&mut shared, 3.0);
}

#[test]
fn gpu_contexts_keep_to_themselves() {
    let Some(gpu) = gpu("gpu_contexts_keep_to_themselves") else { return };
    let elsewhere = alone();
    let (mut here, mut there) = (Single::new(&gpu, &cube()), Single::new(&elsewhere, &cube()));
    let memory = |stream: &Arc<CudaStream>| {
        (stream.clone_htod(&ramp()).unwrap(), stream.alloc_zeros::<f32>(ELEMENTS).unwrap())
    };
    let (mut ours, mut theirs) = (memory(gpu.stream()), memory(elsewhere.stream()));
    // They take turns on one thread, which has one context at a time.
    for round in 1..4 {
        let factor = round as f32;
        here.launch(&ours.0, &mut ours.1, factor).unwrap();
        there.launch(&theirs.0, &mut theirs.1, factor + 1.0).unwrap();
        let refused = here.launch(&theirs.0, &mut ours.1, factor).unwrap_err();
        assert!(matches!(refused, Error::OtherContext { .. }), "{refused}");
        let refused = there.launch(&theirs.0, &mut ours.1, factor).unwrap_err();
        assert!(matches!(refused, Error::OtherContext { .. }), "{refused}");
        assert_eq!(gpu.stream().clone_dtoh(&ours.1).unwrap(), times(factor.powi(3)));
        assert_eq!(elsewhere.stream().clone_dtoh(&theirs.1).unwrap(), times((factor + 1.0).powi(3)));
    }
    // Neither a stream nor a workspace of the other context.
    let (input, output) = (&(&theirs.0).into(), &mut (&mut theirs.1).into());
    let Single { kernels, workspace, .. } = &mut here;
    let refused = kernels.launch(elsewhere.stream(), workspace, &[input], &mut [output], &[0]).unwrap_err();
    assert!(matches!(refused, Error::OtherStream { .. }), "{refused}");
    let workspace = &mut there.workspace;
    let refused = kernels.launch(gpu.stream(), workspace, &[input], &mut [output], &[0]).unwrap_err();
    assert!(matches!(refused, Error::OtherWorkspace { .. }), "{refused}");
}

#[test]
fn gpu_contexts_work_at_the_same_time() {
    let Some(gpu) = gpu("gpu_contexts_work_at_the_same_time") else { return };
    let elsewhere = alone();
    thread::scope(|scope| {
        for (gpu, factor) in [(&*gpu, 2.0f32), (&elsewhere, 3.0), (&*gpu, 0.5), (&elsewhere, 0.25)] {
            scope.spawn(move || {
                for _ in 0..20 {
                    let input = gpu.upload("in", &bytes(&ramp())).unwrap();
                    expect_cube(&mut gpu.load_with(&cube(), &[input]).unwrap(), factor);
                }
            });
        }
    });
}

/// One thread captures its graph again and again while another one runs on the same stream: no run may get into the graph.
#[test]
fn gpu_captures_take_in_nothing_of_other_threads() {
    let Some(gpu) = gpu("gpu_captures_take_in_nothing_of_other_threads") else { return };
    let load = || {
        let mut cube = gpu.load(&cube()).unwrap();
        cube.upload(0, &bytes(&ramp())).unwrap();
        cube
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut captured = load();
            captured.set_params(&[2.0f32.to_bits()]).unwrap();
            for _ in 0..300 {
                // This forgets the graph.
                captured.set_launches(Launches::Plain);
                captured.replay().unwrap();
                assert_eq!(captured.download(0, 0).unwrap(), bytes(&times(8.0)));
            }
        });
        scope.spawn(|| {
            let mut eager = load();
            for round in 0..300 {
                expect_cube(&mut eager, (1 + round % 5) as f32);
            }
        });
    });
}
