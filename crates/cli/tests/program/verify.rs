//! `warploom verify` on copies of the suite's reference data.

use crate::place::Place;
use serde_json::Value as Json;
use warploom::interp::npy;
use warploom::lang::Value;

#[test]
fn reference_data_passes() {
    let place = Place::new();
    place.copy_golden(&["harris", "hist", "unsharp"]);
    let ran = place.run("verify golden");
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let rows: Vec<Vec<&str>> =
        ran.out.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1][..3], ["harris", "122x90", "10980"]);
    assert_eq!(rows[2][..3], ["hist", "160x112x3", "53760"]);
    assert_eq!(rows[3][..3], ["unsharp", "128x96x3", "36864"]);
    assert!(rows[1..4].iter().all(|row| row.last() == Some(&"ok")), "{}", ran.out);
    assert!(ran.out.contains("\nall 3 apps passed in "), "{}", ran.out);
}

#[test]
fn one_wrong_sample_is_found() {
    let place = Place::new();
    place.copy_golden(&["harris", "hist"]);
    let file = place.path("golden/harris/output.npy");
    let mut expected = npy::read(&file).unwrap();
    expected.set(&[2, 4], Value::from(1.0_f32)).unwrap();
    npy::write(&file, &expected).unwrap();

    let ran = place.run("verify golden");
    assert_eq!((ran.code, ran.err.as_str()), (6, "error: 1 of 2 apps failed verification: harris\n"));
    // The titles take two lines, and the sentence three.
    let lines: Vec<&str> = ran.out.lines().skip(2).collect();
    let [harris, mismatch, rest, _, hist] = lines[..] else { panic!("{}", ran.out) };
    assert!(harris.ends_with("FAIL"), "{harris}");
    // The output starts at (3, 3).
    let start = "  output: 1 of 10980 samples are beyond the tolerance, the first at (5, 7) with";
    assert!(mismatch.starts_with(start) && rest.contains(" instead of 1.0 "), "{mismatch}\n{rest}");
    assert!(hist.ends_with("ok"), "the others are checked all the same: {hist}");

    let ran = place.run("verify golden --json");
    assert_eq!(ran.code, 6);
    let report: Json = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["schema"], "warploom.verify/1");
    assert_eq!(report["passed"], false);
    let output = &report["apps"][0]["outputs"][0];
    assert_eq!(output["beyond_tolerance"], 1);
    assert_eq!(output["first_mismatch"]["at"], serde_json::json!([5, 7]));
    assert_eq!(output["first_mismatch"]["expected"], 1.0);
    assert_eq!(report["apps"][1]["passed"], true);
}

#[test]
fn a_sample_that_is_not_a_number_is_wrong() {
    let place = Place::new();
    place.copy_golden(&["unsharp"]);
    let file = place.path("golden/unsharp/output.npy");
    let mut expected = npy::read(&file).unwrap();
    expected.set(&[0, 0, 0], Value::from(f32::NAN)).unwrap();
    npy::write(&file, &expected).unwrap();
    let ran = place.run("verify golden --json");
    assert_eq!(ran.code, 6);
    let report: Json = serde_json::from_str(&ran.out).unwrap();
    assert!(report["apps"][0]["outputs"][0]["max_abs_error"].is_null());
}

#[test]
fn apps_can_be_chosen() {
    let place = Place::new();
    place.copy_golden(&["harris", "hist", "unsharp"]);
    let report = place.json("verify golden --app unsharp --app hist --on reference --json");
    let apps: Vec<&Json> = report["apps"].as_array().unwrap().iter().map(|app| &app["app"]).collect();
    assert_eq!(apps, ["hist", "unsharp"]);
    assert_eq!((&report["on"], &report["passed"]), (&"reference".into(), &true.into()));
}

#[test]
fn one_folder_can_be_given() {
    let place = Place::new();
    place.copy_golden(&["cuda_mat_mul"]);
    let report = place.json("verify golden/cuda_mat_mul --json");
    assert_eq!(report["apps"].as_array().unwrap().len(), 1);
    assert_eq!(report["apps"][0]["outputs"][0]["samples"], 96 * 96);
}

#[test]
fn parameters_of_the_structure_are_taken_over() {
    let place = Place::new();
    place.copy_golden(&["max_filter"]);
    let file = place.path("golden/max_filter/params.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"radius\": 26", "\"radius\": 25")).unwrap();
    assert_eq!(place.run("verify golden").code, 6);
}

#[test]
fn an_app_that_cannot_run_has_failed() {
    let place = Place::new();
    place.copy_golden(&["harris"]);
    let file = place.path("golden/harris/params.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let moved = text.replace("    3,\n    3\n", "    0,\n    3\n");
    assert_ne!(text, moved);
    std::fs::write(&file, moved).unwrap();
    let ran = place.run("verify golden");
    assert_eq!((ran.code, ran.err.as_str()), (6, "error: 1 of 1 apps failed verification: harris\n"));
    assert!(ran.out.contains("FAIL\n") && ran.out.contains("but there is only [0, 128)"), "{}", ran.out);
}
