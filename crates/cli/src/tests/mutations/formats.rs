//! The file formats: valid files, and the code that reads them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use brotli::CompressorWriter;
use serde_json::json;
use warploom::app::{App, Settings};
use warploom::codegen::build::build;
use warploom::codegen::export::Manifest;
use warploom::cost::Weights;
use warploom::fuzz::Case;
use warploom::interp::buffer::Buffer;
use warploom::interp::{npy, picture};
use warploom::lang::files::{LINE, Limit, TEXT};
use warploom::lang::{Pipeline, Realisation, Region, Type};
use warploom::plan::Problem;
use warploom::runtime::compiler::{Arch, Image};
use warploom::schedule::Schedule;
use warploom::target::Device;
use warploom::tune::cache;
use warploom::tune::landscape::{Definition, Landscape, Limits, Outcome, Provenance};
use warploom::tune::records::{Records, Trial};
use warploom::tune::sample::{KernelUse, Origin, Sample, Shard, ShardWriter, Sizes, Status, Times};
use xxhash_rust::xxh3::xxh3_64;

use super::pictures::{pictures, png_files, pnm_files};
use crate::device::Beside;
use crate::execute;
use warploom_results::golden::Golden;

/// Reads a file, given as a path and as bytes. Returns whether it was accepted.
type Reader = Box<dyn Fn(&Path, &[u8]) -> bool>;

/// Generates a file that is meant to exhaust memory.
pub(super) type Bomb = fn() -> Vec<u8>;

pub(super) struct Format {
    pub(super) name: &'static str,
    /// Valid files, from which the mutations start.
    pub(super) whole: Vec<Vec<u8>>,
    /// Files that need as much memory as the limits allow, generated on demand.
    pub(super) bombs: Vec<Bomb>,
    /// Corrects the checksums of a mutated file, or compresses it.
    pub(super) finish: fn(Vec<u8>) -> Vec<u8>,
    pub(super) read: Reader,
}

pub(super) const NAMES: [&str; 24] = [
    "npy",
    "png",
    "pnm",
    "bmp",
    "jpeg",
    "tiff",
    "webp",
    "pipeline",
    "tensor",
    "params",
    "schedule",
    "device",
    "manifest",
    "weights",
    "samples",
    "sample",
    "landscapes",
    "landscape",
    "records",
    "export",
    "cache",
    "suite",
    "operators",
    "strategies",
];

/// The format with this name. Files that its reader needs are written to the folder.
pub(super) fn format(name: &'static str, folder: &Path) -> Format {
    match name {
        "npy" => npy_files(),
        "png" => png_files(),
        "pnm" => pnm_files(),
        "bmp" => pictures("bmp", &["rgb.bmp", "rgba.bmp", "grey.bmp", "bits.bmp", "palette.bmp"]),
        "jpeg" => pictures("jpeg", &["rgb.jpg", "progressive.jpg", "grey.jpg"]),
        "tiff" => pictures("tiff", &["rgb.tif", "deflate.tif", "rgba.tif", "grey16.tif", "grey-alpha.tif"]),
        "webp" => pictures("webp", &["rgb.webp", "rgba.webp", "lossy.webp", "lossy-alpha.webp"]),
        "pipeline" => pipelines(),
        "tensor" => comprehensions(),
        "params" => params(),
        "schedule" => schedules(),
        "manifest" => manifests(),
        "device" => devices(),
        "weights" => weights(),
        "samples" => sample_files(folder),
        "sample" => samples(folder),
        "landscapes" => landscape_files(folder),
        "landscape" => landscapes(folder),
        "records" => databases(folder),
        "export" => exports(folder),
        "cache" => cache_entries(),
        "suite" => suite_results(folder),
        "operators" => operator_results(folder),
        "strategies" => compared_strategies(folder),
        _ => unreachable!("it is one of the names"),
    }
}

/// A text format, whose reader takes a string.
fn text(name: &'static str, whole: Vec<String>, read: impl Fn(&str) -> bool + 'static) -> Format {
    let whole = whole.into_iter().map(String::into_bytes).collect();
    binary(name, whole, move |bytes| read(&String::from_utf8_lossy(bytes)))
}

pub(super) fn binary(
    name: &'static str,
    whole: Vec<Vec<u8>>,
    read: impl Fn(&[u8]) -> bool + 'static,
) -> Format {
    Format {
        name,
        whole,
        bombs: Vec::new(),
        finish: |bytes| bytes,
        read: Box::new(move |_, bytes| read(bytes)),
    }
}

pub(super) fn ramp(extents: &[i64], ty: Type) -> Buffer {
    let bytes = Buffer::from_fn(Region::of_extents(extents), |at| at.iter().sum::<i64>() as u8).unwrap();
    picture::convert(&bytes, ty).unwrap()
}

fn npy_files() -> Format {
    let file = |extents: &[i64], ty| {
        let mut file = Vec::new();
        npy::write_to(&mut file, &ramp(extents, ty)).unwrap();
        file
    };
    let whole = vec![
        file(&[5, 4, 3], Type::U8),
        file(&[7], Type::F32),
        file(&[], Type::U16),
        file(&[2, 2], Type::Bool),
    ];
    binary("npy", whole, |bytes| npy::read_from(bytes, "a.npy").is_ok())
}

fn app(name: &str) -> &'static App {
    warploom_apps::APPS.iter().chain(warploom_apps::BASICS.iter()).find(|app| app.name == name).unwrap()
}

fn pipeline(name: &str) -> Pipeline {
    app(name).pipeline(&Settings::defaults(app(name))).unwrap()
}

/// A small realisation of a pipeline on images.
fn small(pipeline: &Pipeline) -> Realisation {
    let request = Realisation::new(pipeline);
    let inputs = pipeline.inputs().values().map(|input| (&input.name, input.dimensions));
    let request = inputs.fold(request, |request, (name, dimensions)| {
        request.input(name, Region::of_extents(&[40, 30, 3][..dimensions]))
    });
    let outputs = pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id]);
    outputs.fold(request, |request, func| {
        request.output(&func.name, Region::of_extents(&[40, 30, 3][..func.dims.len()]))
    })
}

pub(super) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The contents of all files in a folder with an extension, sorted by name.
fn files_in(folder: &str, extension: &str) -> Vec<String> {
    let entries = fs::read_dir(repository(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    paths.sort();
    paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// Pipelines, and fuzzing cases, which contain one.
fn pipelines() -> Format {
    let mut whole: Vec<String> = ["blur", "unsharp", "hist"].map(|name| pipeline(name).to_json()).to_vec();
    whole.extend(files_in("crates/fuzz/cases", "json"));
    let read = |text: &str| match Case::parse(text) {
        Ok(_) => true,
        Err(_) => Pipeline::from_json(text).is_ok_and(|read| Pipeline::from_json(&read.to_json()).is_ok()),
    };
    let bombs: Vec<Bomb> = vec![|| zeros(r#"{ "format": "warploom-case", "pipeline": "#, TEXT), || {
        zeros(r#"{ "exprs": "#, TEXT)
    }];
    Format { bombs, ..text("pipeline", whole, read) }
}

/// JSON as long as the limit allows: `start`, then as many numbers as fit.
fn zeros(start: &str, limit: Limit) -> Vec<u8> {
    let count = (limit.most as usize - start.len() - 8) / 2;
    format!("{start}[0{}] }}", ",0".repeat(count)).into_bytes()
}

fn comprehensions() -> Format {
    let whole = [
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
        "def pool(float(H,W) I) -> (O) { O(h,w) max=! I(2*h + y, 2*w + x) where y in 0:3, x in 0:3 }",
    ];
    text("tensor", whole.map(str::to_owned).to_vec(), |text| {
        let Ok(program) = warploom::tensor::parse("a.tc", text) else { return false };
        let names = program.definitions();
        let mut realised = names.iter().map(|name| {
            let definition = program.define(Some(name)).unwrap();
            let sizes: Vec<(&str, i64)> = definition.sizes().into_iter().map(|name| (name, 16)).collect();
            definition.realise(&sizes).is_ok()
        });
        realised.all(|one| one)
    })
}

fn params() -> Format {
    let whole = ["bgu", "hist", "harris"]
        .map(|app| fs::read_to_string(repository(&format!("apps/golden/{app}/params.json"))).unwrap());
    text("params", whole.to_vec(), |text| Golden::parse(text).is_ok())
}

/// Schedules; those that parse are also checked and lowered to kernels.
fn schedules() -> Format {
    let pipeline = pipeline("blur");
    let request = small(&pipeline);
    let problem = Problem::new(&pipeline, &request, &Device::preset("h200").unwrap()).unwrap();
    let random = (0..6).map(|seed| problem.random_schedule(seed).to_text(&pipeline));
    let default = problem.default_schedule().to_text(&pipeline);
    let by_hand = fs::read_to_string(repository("apps/schedules/blur.schedule")).unwrap();
    let whole = random.chain([default, by_hand]).collect();
    text("schedule", whole, move |text| match Schedule::parse(text, &pipeline) {
        Ok(schedule) => match build(&problem, &schedule) {
            Ok(_) => true,
            Err(error) => error.to_string().is_empty(),
        },
        Err(errors) => errors.to_string().is_empty(),
    })
}

fn devices() -> Format {
    let whole = ["h200", "v100"].map(|name| Device::preset(name).unwrap().to_json().unwrap());
    text("device", whole.to_vec(), |text| Device::from_json(text).is_ok())
}

/// The manifests of packages.
fn manifests() -> Format {
    let device = Device::preset("h200").unwrap();
    let whole = ["blur", "brighten"].map(|name| {
        let pipeline = pipeline(name);
        let params = pipeline.params().values();
        let request = params.fold(small(&pipeline), |request, param| request.param(&param.name, 0.5f32));
        let problem = Problem::new(&pipeline, &request, &device).unwrap();
        let program = build(&problem, &problem.default_schedule()).unwrap();
        let manifest = Manifest::new(&pipeline, problem.request(), &device, &[], &program);
        manifest.to_json().unwrap()
    });
    // Beside a schedule, only the device is read.
    text("manifest", whole.to_vec(), |text| match Manifest::from_json(text) {
        Ok(_) => Beside::parse(text).is_some(),
        Err(error) => error.to_string().is_empty(),
    })
}

/// Corrects the checksum at `AT`, which covers everything after it.
fn with_checksum<const AT: usize>(mut file: Vec<u8>) -> Vec<u8> {
    if let Some((sum, rest)) = file.get_mut(AT..).and_then(|rest| rest.split_first_chunk_mut::<8>()) {
        *sum = xxh3_64(rest).to_le_bytes();
    }
    file
}

fn weights() -> Format {
    let whole = vec![Weights::random(1).to_bytes()];
    Format {
        finish: with_checksum::<20>,
        ..binary("weights", whole, |bytes| Weights::from_bytes(bytes).is_ok())
    }
}

/// The key of all cache entries.
const KEY: u128 = 7;

fn cache_entries() -> Format {
    let image = |cubin: Option<Vec<u8>>| Image {
        arch: Arch::Machine(90),
        cubin,
        ptx: ".version 8.0".to_owned(),
        kernels: [("k".to_owned(), Default::default())].into(),
        log: "nothing".to_owned(),
        time: Duration::from_millis(3),
    };
    let whole = [image(Some(vec![7; 100])), image(None)].map(|image| cache::encode(KEY, &image).unwrap());
    let read = |bytes: &[u8]| cache::decode(bytes, KEY).is_some();
    Format { finish: with_checksum::<8>, ..binary("cache", whole.to_vec(), read) }
}

fn trial(schedule: &str, status: Status) -> (Pipeline, Trial) {
    let pipeline = pipeline("blur");
    let sample = Sample {
        pipeline: pipeline.structural_hash(),
        sizes: Sizes::of(&small(&pipeline)),
        schedule: schedule.to_owned(),
        origin: Origin::Search,
        device: "H200".to_owned(),
        fingerprint: "0123".to_owned(),
        versions: ["warploom 1", "nvrtc 2", "driver 3"].map(str::to_owned).to_vec(),
        times: (status == Status::Measured).then_some(Times { min: 1.0, median: 1.5, runs: 10 }),
        status,
        verified: true,
        kernels: vec![KernelUse {
            name: "k".into(),
            registers: 40,
            spill_stores: 0,
            spill_loads: 0,
            shared: 1024,
        }],
        compile_ms: 20.0,
    };
    (pipeline, Trial { measured_at: 1_700_000_000, ..Trial::new(sample, Some(2.0), 0.02) })
}

fn trials() -> [(Pipeline, Trial); 2] {
    [
        trial("blur\n  kernel output\n", Status::Measured),
        trial("blur\n", Status::Crashed("signal 11".to_owned())),
    ]
}

/// A valid samples file.
fn shard(folder: &Path) -> Vec<u8> {
    let path = folder.join("whole.samples");
    let mut shard = ShardWriter::create(&path).unwrap();
    trials().into_iter().for_each(|(pipeline, trial)| shard.add(&pipeline, trial.sample).unwrap());
    drop(shard);
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    bytes
}

fn read_samples(path: &Path, _: &[u8]) -> bool {
    Shard::read(path).is_ok_and(|shard| !shard.samples.is_empty())
}

fn sample_files(folder: &Path) -> Format {
    let first_version = fs::read(repository("training/data/h200-2026-11-15-c.samples")).unwrap();
    let bombs: Vec<Bomb> = vec![
        // 46 bytes that claim to hold a text of 2^60 bytes.
        || {
            let start = b"warploom samples\x01\0\0\0\x16\0\0\0\0\0\xfd";
            [&start[..], &(1_u64 << 60).to_le_bytes(), &[0; 11]].concat()
        },
        || packed_samples(&[u32::MAX.to_le_bytes().to_vec(), vec![0; 40 << 20]].concat()),
    ];
    let whole = vec![shard(folder), first_version];
    Format { read: Box::new(read_samples), bombs, ..binary("samples", whole, |_| true) }
}

/// Compresses a stream into a samples file.
fn packed_samples(stream: &[u8]) -> Vec<u8> {
    let mut packed = CompressorWriter::new(b"warploom samples\x02\0\0\0".to_vec(), 1 << 14, 1, 18);
    packed.write_all(stream).unwrap();
    packed.into_inner()
}

/// The stream inside a samples file, one frame at a time; compressed after mutation.
fn samples(folder: &Path) -> Format {
    let mut stream = Vec::new();
    brotli::BrotliDecompress(&mut &shard(folder)[20..], &mut stream).unwrap();
    let (mut whole, mut rest) = (Vec::new(), stream.as_slice());
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let (frame, next) = after[4..].split_at(u32::from_le_bytes(*length) as usize);
        whole.push(frame.to_vec());
        rest = next;
    }
    let finish = |frame: Vec<u8>| {
        let (length, sum) = (frame.len() as u32, xxh3_64(&frame) as u32);
        packed_samples(&[&length.to_le_bytes()[..], &sum.to_le_bytes(), &frame].concat())
    };
    let read = |path: &Path, _: &[u8]| Shard::read(path).is_ok();
    Format { finish, read: Box::new(read), ..binary("sample", whole, |_| true) }
}

/// A valid landscape with all points of a small space.
fn landscape(folder: &Path) -> Vec<u8> {
    let pipeline = pipeline("blur");
    let by_hand = fs::read_to_string(repository("apps/schedules/blur.schedule")).unwrap();
    let template = Schedule::parse(&by_hand, &pipeline).unwrap();
    let limits: Limits = "threads=2..16,points=4".parse().unwrap();
    let definition = Definition { template, axes: vec!["output.y".to_owned()], limits };
    let region = Region::of_extents(&[64, 48]);
    let request = Realisation::new(&pipeline).input("input", region.clone()).output("output", region);
    let device = Device::preset("h200").unwrap();
    let problem = Problem::new(&pipeline, &request, &device).unwrap();
    let (_, points) = definition.points(&problem).unwrap();
    let outcome = |number| match number {
        0 => Outcome::Failed("wrong".to_owned()),
        _ => Outcome::Time { min_us: 1.0, median_us: 1.5 },
    };
    let outcomes = points.into_iter().enumerate().map(|(number, point)| (point, outcome(number))).collect();
    let (sizes, versions) = (Sizes::of(&request), vec!["warploom 1".to_owned()]);
    let source = Provenance { pipeline, sizes, device, versions, measured: (1, 2) };
    let path = folder.join("whole.landscape");
    Landscape::new(source, definition, outcomes, 0).unwrap().write(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::remove_file(path).unwrap();
    bytes
}

/// The letters and the version before the checksum.
const LANDSCAPE_START: usize = 22;

fn landscape_files(folder: &Path) -> Format {
    let bombs: Vec<Bomb> = vec![|| packed_landscape(vec![0xfd; 40 << 20])];
    let read = |bytes: &[u8]| Landscape::parse(bytes, Path::new("a.landscape")).is_ok();
    let whole = vec![landscape(folder)];
    Format { bombs, finish: with_checksum::<LANDSCAPE_START>, ..binary("landscapes", whole, read) }
}

/// The contents of a landscape; compressed after mutation.
fn landscapes(folder: &Path) -> Format {
    let mut plain = Vec::new();
    brotli::BrotliDecompress(&mut &landscape(folder)[LANDSCAPE_START + 8..], &mut plain).unwrap();
    let read = |bytes: &[u8]| Landscape::parse(bytes, Path::new("a.landscape")).is_ok();
    Format { finish: packed_landscape, ..binary("landscape", vec![plain], read) }
}

fn packed_landscape(plain: Vec<u8>) -> Vec<u8> {
    let start = b"warploom landscape\x01\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    let mut packed = CompressorWriter::new(start, 1 << 14, 1, 18);
    packed.write_all(&plain).unwrap();
    with_checksum::<LANDSCAPE_START>(packed.into_inner())
}

/// A records database with two trials.
fn database(path: &Path) -> Records {
    let mut records = Records::open(path).unwrap();
    let device = Device::preset("h200").unwrap();
    for (pipeline, trial) in trials() {
        let versions = &trial.sample.versions;
        let problem = records.problem(&pipeline, &small(&pipeline), &device, versions).unwrap();
        assert!(records.record(problem, &trial).unwrap());
    }
    records
}

fn databases(folder: &Path) -> Format {
    let path = folder.join("whole.db");
    drop(database(&path));
    let read = |path: &Path, _: &[u8]| {
        for beside in ["-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(format!("{}{beside}", path.display()));
        }
        let all = |records: Records| {
            let (problems, trials) = (records.problems().ok()?, records.trials(None).ok()?);
            let hashes = trials.iter().map(|trial| trial.sample.pipeline);
            hashes.map(|hash| records.pipeline(hash).ok()).collect::<Option<Vec<_>>>()?;
            Some(problems.len())
        };
        Records::open_existing(path).ok().and_then(all).is_some()
    };
    let whole = vec![fs::read(&path).unwrap()];
    Format { read: Box::new(read), ..binary("records", whole, |_| true) }
}

fn exports(folder: &Path) -> Format {
    let mut lines = Vec::new();
    database(&folder.join("exported.db")).export(None, &mut lines, Path::new("a.jsonl")).unwrap();
    let into = folder.join("into.db");
    let read = move |bytes: &[u8]| Records::open(&into).unwrap().import(bytes, Path::new("a.jsonl")).is_ok();
    let bombs: Vec<Bomb> = vec![|| zeros(r#"{ "record": "trial", "unknown": "#, LINE)];
    Format { bombs, ..binary("export", vec![lines], read) }
}

/// Results of the suite, as `warploom report` reads them.
fn suite_results(folder: &Path) -> Format {
    let row = |app: &str, status: &str| {
        json!({
            "app": app, "sizes": { "W": 640, "H": 480 }, "status": status, "message": "", "checked_at_full_size": true,
            "min_us": 5.0, "median_us": 5.5, "predicted_us": 4.0, "floor_us": 2.0, "kernels": 2, "registers": 40,
            "spilled_bytes": 0, "compile_seconds": 1.0, "search_seconds": 1.0,
            "anchor": { "halide_manual_us": 100.0, "anderson2021_us": 200.0, "floor_us": 1.0 },
            "schedule": "nobody\n  kernel output\n",
        })
    };
    let results = json!({
        "schema": "warploom.suite/2", "mode": "top5", "device": "H200", "versions": ["one"], "command": "c",
        "date": "2026-01-31", "anchors_of": "H200", "faster_than_manual": 1.5, "faster_than_anderson2021": 2.0,
        "apps": [row("one", "ok"), row("two", "wrong"), row("three", "ok")],
    });
    reported("suite", &results, folder)
}

/// Results of operators, as `warploom report` reads them.
fn operator_results(folder: &Path) -> Format {
    let row = |name: &str, shape: &str, status: &str| {
        json!({
            "family": "GMM", "name": name, "shape": shape, "sizes": { "M": 32, "K": 32, "N": 32 }, "operations": 65536.0,
            "status": status, "message": "", "notes": ["one"], "checked_at_full_size": true, "min_us": 5.0,
            "median_us": 5.5, "predicted_us": 4.0, "floor_us": 2.0, "kernels": 2, "registers": 40, "spilled_bytes": 0,
            "compile_seconds": 1.0, "search_seconds": 1.0, "schedule": "gmm\n  kernel O\n",
            "library": { "fp32_us": 5.0, "compiled_us": 4.0, "tf32_us": 3.0 }, "ratio": 0.8,
        })
    };
    let results = json!({
        "schema": "warploom.operators/1", "mode": "top5", "device": "H200", "versions": ["one"], "seed": 0, "command": "c",
        "date": "2026-01-31", "libraries_of": "H200", "mean_ratio": 1.5,
        "rows": [row("GMM", "32x32x32", "ok"), row("OpEvo C2", "big", "wrong")],
        "families": [{ "family": "GMM", "rows": 2, "mean_ratio": 0.8, "flextensor": null, "tensor_comprehensions": "2x" }],
        "networks": [{
            "network": "one", "layers": 2, "min_us": 10.0, "library_us": null, "ratio": null, "flextensor": "1.07x",
        }],
    });
    reported("operators", &results, folder)
}

/// A comparison of strategies, as `warploom report` reads it.
fn compared_strategies(folder: &Path) -> Format {
    let strategy = |name: &str| {
        json!({
            "strategy": name, "at": [{ "trials": 25, "mean_us": 5.0, "deviation_us": 0.5, "seeds": 2 }],
            "runs": [
                { "seed": 0, "trials": 30, "improved_at": [1, 4], "best_us": [9.5, 4.5] },
                { "seed": 1, "trials": 30, "improved_at": [2], "best_us": [5.5] },
            ],
        })
    };
    let results = json!({
        "schema": "warploom.strategies/1", "versions": ["one"], "command": "c", "date": "2026-01-31", "device": "H200",
        "trials": 30, "subjects": [{ "subject": "blur", "strategies": [strategy("random"), strategy("opevo")] }],
        "relative": [{ "strategy": "opevo", "at": [{ "trials": 25, "speed": 1.0, "subjects": 1 }] }],
    });
    reported("strategies", &results, folder)
}

/// Results that `warploom report` reads.
fn reported(name: &'static str, results: &serde_json::Value, folder: &Path) -> Format {
    let page = folder.join("page.html");
    let read = move |path: &Path, _: &[u8]| {
        let arguments = ["warploom".as_ref(), "report".as_ref(), path, "-o".as_ref(), page.as_path()];
        execute(&[], arguments.map(Into::into), &mut Vec::new()).is_ok()
    };
    Format { read: Box::new(read), ..text(name, vec![results.to_string()], |_| true) }
}
