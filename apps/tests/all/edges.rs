//! The boxes that kernels compute: Funcs of a picture that repeats its edge end where they no longer change.

use crate::common::problem;

/// The extents that are required of a Func of an app at its own sizes, and those that a kernel computes.
fn extents(app: &str, func: &str) -> (Vec<i64>, Vec<i64>) {
    let problem = problem(warploom_apps::find(app).expect("the app is in the suite"), &[]);
    let func = problem.pipeline().func_named(func).expect("the pipeline has the Func");
    (problem.regions().funcs[func].region.extents(), problem.stored(func).extents())
}

#[test]
fn pyramids_need_few_points_beyond_the_picture() {
    let two = |a: [i64; 2], b: [i64; 2]| (a.to_vec(), b.to_vec());
    assert_eq!(extents("local_laplacian", "inG1"), two([1022, 1534], [770, 1282]));
    assert_eq!(extents("local_laplacian", "inG4"), two([126, 190], [100, 164]));
    assert_eq!(extents("interpolate", "D4").1, [99, 163, 4]);
}

#[test]
fn boxes_that_would_be_hardly_smaller_stay() {
    let (required, stored) = extents("stencil_chain", "s1");
    assert_eq!((&required, &stored), (&vec![1660, 2684], &required));
}

#[test]
fn apps_that_never_leave_their_input_keep_their_boxes() {
    for name in ["conv_layer", "cuda_mat_mul", "camera_pipe", "iir_blur", "hist", "learned_demosaic"] {
        let problem = problem(warploom_apps::find(name).expect("the app is in the suite"), &[]);
        for (func, decl) in problem.pipeline().funcs().iter() {
            assert_eq!(problem.stored(func), &problem.regions().funcs[func].region, "{name}: {}", decl.name);
        }
    }
}
