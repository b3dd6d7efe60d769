//! Packages as the library writes them.

use std::fs;
use std::path::{Path, PathBuf};

use warploom::codegen::export::Manifest;
use warploom::prelude::*;
use warploom::runtime::compiler;
use warploom::search::Options;
use warploom::{ExportError, ExportOptions};

/// A small search finds a schedule for a blur.
fn blur(device: &Device) -> Autoscheduled {
    let (x, y) = vars!(x, y);
    let edge = Input::f32("input", 2).repeat_edge();
    let row = func("row", (x, y), edge.at((x - 1, y)) + edge.at((x, y)) + edge.at((x + 1, y)));
    let output = func("output", (x, y), row.at((x, y - 1)) + row.at((x, y)) + row.at((x, y + 1)));
    let pipeline = Pipeline::new("blur", [output]).unwrap();
    let options = Options { samples: 2, beam: 4, passes: 2, ..Options::default() };
    pipeline.autoschedule_with(device, size([640, 480]), &options).unwrap()
}

/// An empty folder for one test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = fs::remove_dir_all(&folder);
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_package_has_all_files_with_or_without_nvrtc() {
    let folder = folder("a_package_has_all_files_with_or_without_nvrtc");
    let scheduled = blur(&Device::preset("h200").unwrap());
    let package = scheduled.export(&folder).unwrap();
    let mut expected = vec!["blur.c", "blur.cu", "blur.h", "blur.json", "blur.schedule"];
    match compiler::version() {
        Ok(_) => expected.extend(["blur.ptx", "blur.sm_90.cubin"]),
        Err(_) => assert!(package.notes()[0].contains("NVRTC was not found"), "{:?}", package.notes()),
    }
    expected.sort_unstable();
    assert_eq!(files(&folder), expected);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(Manifest::from_json(&read("blur.json")).unwrap(), *package.manifest());
    assert_eq!(read("blur.schedule"), scheduled.to_string());
    let entries: Vec<String> = package.manifest().kernels.iter().map(|kernel| kernel.entry.clone()).collect();
    assert!(
        entries.iter().all(|entry| entry.starts_with("blur_") && read("blur.cu").contains(entry)),
        "{entries:?}"
    );
}

#[test]
fn two_packages_of_one_pipeline_share_no_name_with_or_without_nvrtc() {
    let folder = folder("two_packages_of_one_pipeline_share_no_name_with_or_without_nvrtc");
    let scheduled = blur(&Device::preset("h200").unwrap());
    let also_for = vec![Device::preset("a100").unwrap(), Device::preset("rtx4090").unwrap()];
    let options = ExportOptions { name: Some("other blur".to_owned()), also_for };
    let packages = [scheduled.export(&folder).unwrap(), scheduled.export_with(&folder, &options).unwrap()];
    let [first, second] = packages.each_ref().map(|package| package.manifest());
    assert_eq!(
        (first.name.as_str(), second.name.as_str(), second.pipeline.as_str()),
        ("blur", "other_blur", "blur")
    );
    for (first, second) in first.kernels.iter().zip(&second.kernels) {
        assert_eq!(first.entry.replacen("blur_", "other_blur_", 1), second.entry);
    }
    assert!(
        files(&folder).contains(&"blur.c".to_owned()) && files(&folder).contains(&"other_blur.c".to_owned())
    );
    let targets: Vec<&str> = second.targets().map(|target| target.arch.as_str()).collect();
    assert_eq!(targets, ["sm_90", "sm_80", "sm_89"]);
    if compiler::version().is_ok() {
        let code: Vec<String> = second.code.iter().map(|code| code.arch()).collect();
        assert_eq!(code, ["sm_90", "sm_89", "sm_80", "compute_80"]);
    }
}

#[test]
fn a_schedule_that_does_not_fit_a_device_is_refused() {
    let folder = folder("a_schedule_that_does_not_fit_a_device_is_refused");
    let mut small = Device::preset("h200").unwrap();
    small.name = "small".to_owned();
    small.threads.per_block = 32;
    let options = ExportOptions { also_for: vec![small], ..ExportOptions::default() };
    let refused = blur(&Device::preset("h200").unwrap()).export_with(&folder, &options).unwrap_err();
    assert!(matches!(refused, ExportError::Unfit { .. }), "{refused}");
    let sentence = "the schedule, which was made for H200, does not fit small; list small first, or export a package for it";
    assert!(refused.to_string().starts_with(sentence), "{refused}");
    assert!(!folder.exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let refused = blur(&Device::preset("h200").unwrap()).export("/dev/null/package").unwrap_err();
    assert!(refused.to_string().starts_with("cannot write /dev/null/package: "), "{refused}");
}
