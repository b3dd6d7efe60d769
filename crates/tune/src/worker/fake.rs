//! A fake device for tests on machines without a GPU, which can also inject failures.
//!
//! It computes results with the reference evaluator, regardless of the kernels, and derives their
//! times from a hash of their code. On request, a given percentage of programs crashes, hangs,
//! sends garbage or gives wrong results. A given program always fails in the same way.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use warploom_codegen::printer::{Build, PRINTER};
use warploom_interp::buffer::Buffer;
use warploom_lang::{Type, Value, dispatch};
use warploom_runtime::Resources;
use warploom_runtime::{POISON, TimingOptions};
use warploom_target::program::Code;
use warploom_target::{Device, Program};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::measure::{Compiled, Failure, Machine, Subject, Timed};
use crate::sample::Times;
use crate::workload::{Workload, from_bytes, output_orders, to_bytes};

/// Name of the fake device, and prefix of its text form.
const NAME: &str = "fake";

/// A failure to inject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mishap {
    Crash,
    Hang,
    Garbage,
    Fault,
    Refuse,
    Wrong,
    TimingWrong,
    TimingNan,
    TimingUnwritten,
    CompileCrash,
    CompileHang,
    CompileGarbage,
    CompileRefuse,
    Spill,
}

/// Names of the mishaps, and whether they happen at compile time.
const MISHAPS: [(&str, Mishap, bool); 14] = [
    ("crash", Mishap::Crash, false),
    ("hang", Mishap::Hang, false),
    ("garbage", Mishap::Garbage, false),
    ("fault", Mishap::Fault, false),
    ("refuse", Mishap::Refuse, false),
    ("wrong", Mishap::Wrong, false),
    ("timing-wrong", Mishap::TimingWrong, false),
    ("timing-nan", Mishap::TimingNan, false),
    ("timing-unwritten", Mishap::TimingUnwritten, false),
    ("compile-crash", Mishap::CompileCrash, true),
    ("compile-hang", Mishap::CompileHang, true),
    ("compile-garbage", Mishap::CompileGarbage, true),
    ("compile-refuse", Mishap::CompileRefuse, true),
    ("spill", Mishap::Spill, true),
];

/// A fake device, written `fake`, optionally with the failures to inject:
/// `fake:crash=5,hang=1,delay=20`.
///
/// `crash`, `hang`, `garbage`, `fault`, `refuse`, `wrong`, `timing-wrong`, `timing-nan`,
/// `timing-unwritten`, `compile-crash`, `compile-hang`, `compile-garbage`, `compile-refuse` and
/// `spill` each give the percentage of programs with that failure. The `timing-` failures affect
/// only programs built for speed: some of their samples, including one in the last row, are outside
/// the range of all others, NaN or unwritten. `samples` is how many of 1000 samples are affected; 0
/// means a single one. `seed` selects which programs fail. `delay` is the duration of every call in
/// milliseconds. `noise` is by how many percent the time of the same program may vary upwards.
/// `log` names a file that gets one line per timed program.
///
/// ```
/// use warploom_tune::worker::Fake;
/// let fake: Fake = "fake:crash=5,delay=20".parse()?;
/// assert_eq!(fake.to_string(), "fake:crash=5,delay=20");
/// assert!("fake:fire=3".parse::<Fake>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fake {
    shares: [u8; MISHAPS.len()],
    seed: u64,
    delay: u64,
    noise: u64,
    samples: u64,
    log: Option<PathBuf>,
}

impl FromStr for Fake {
    type Err = String;

    fn from_str(text: &str) -> Result<Fake, String> {
        let mut fake = Fake::default();
        let settings = match text.split_once(':') {
            None if text == NAME => return Ok(fake),
            Some((NAME, settings)) => settings,
            _ => {
                return Err(format!("`{text}` is not a fake device; write {NAME}, or {NAME}:crash=5,hang=1"));
            }
        };
        for setting in settings.split(',') {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            let number = |most: u64| {
                let number: Option<u64> = value.parse().ok().filter(|number| *number <= most);
                number.ok_or_else(|| format!("`{setting}`: give a whole number up to {most}"))
            };
            match (name, MISHAPS.iter().position(|(known, ..)| *known == name)) {
                (_, Some(position)) => fake.shares[position] = number(100)? as u8,
                ("seed", _) => fake.seed = number(u64::MAX)?,
                ("delay", _) => fake.delay = number(60_000)?,
                ("noise", _) => fake.noise = number(100)?,
                ("samples", _) => fake.samples = number(1000)?,
                ("log", _) => fake.log = Some(PathBuf::from(value)),
                _ => return Err(format!("a fake device has no setting `{name}`")),
            }
        }
        Ok(fake)
    }
}

impl fmt::Display for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares = MISHAPS.iter().zip(self.shares).map(|((name, ..), share)| (*name, u64::from(share)));
        let settings =
            [("seed", self.seed), ("delay", self.delay), ("noise", self.noise), ("samples", self.samples)];
        let numbers = shares.chain(settings);
        let set = numbers.filter(|(_, number)| *number > 0);
        let log = self.log.iter().map(|log| format!("log={}", log.display()));
        let all: Vec<String> = set.map(|(name, number)| format!("{name}={number}")).chain(log).collect();
        match all.is_empty() {
            true => f.write_str(NAME),
            false => write!(f, "{NAME}:{}", all.join(",")),
        }
    }
}

impl Fake {
    /// An H200 with a different name and clock, so that its times are not mistaken for real ones.
    pub(super) fn device(&self) -> Device {
        let mut device = Device::preset("h200").unwrap_or_else(|_| unreachable!("it is a preset"));
        device.name = NAME.to_owned();
        device.clock_ghz = 1.0;
        device
    }

    pub(super) fn machine(&self) -> FakeMachine {
        FakeMachine { fake: self.clone(), results: Vec::new(), calls: 0 }
    }

    /// The failure of a program, if it has one.
    fn fault(&self, code: &[u8], compiling: bool) -> Option<Mishap> {
        let drawn = xxh3_64_with_seed(code, self.seed ^ u64::from(compiling)) % 100;
        let mut below = 0;
        for ((_, fault, of_compiler), share) in MISHAPS.iter().zip(self.shares) {
            if *of_compiler == compiling {
                below += u64::from(share);
                if drawn < below {
                    return Some(*fault);
                }
            }
        }
        None
    }

    /// Carries out a failure, except those that the caller applies to the results.
    fn suffer(&self, fault: Option<Mishap>) -> Result<(), Failure> {
        thread::sleep(Duration::from_millis(self.delay));
        match fault {
            Some(Mishap::Crash | Mishap::CompileCrash) => std::process::abort(),
            Some(Mishap::Hang | Mishap::CompileHang) => loop {
                thread::sleep(Duration::from_secs(60));
            },
            Some(Mishap::Garbage | Mishap::CompileGarbage) => {
                // Writing fails only if the parent is gone.
                let _ = io::stdout().write_all(&[0x3f; 100]).and_then(|()| io::stdout().flush());
                Ok(())
            }
            Some(Mishap::Fault) => Err(Failure::Fault("a kernel failed: made up".to_owned())),
            Some(Mishap::Refuse | Mishap::CompileRefuse) => Err(Failure::Refused("made up".to_owned())),
            Some(
                Mishap::Wrong
                | Mishap::TimingWrong
                | Mishap::TimingNan
                | Mishap::TimingUnwritten
                | Mishap::Spill,
            )
            | None => Ok(()),
        }
    }

    pub(super) fn compile(&self, program: &Program) -> Result<Compiled, Failure> {
        let mut compiled = program.clone();
        let code = code(&program.code);
        let fault = self.fault(&code, true);
        self.suffer(fault)?;
        let spilled = if fault == Some(Mishap::Spill) { 16 } else { 0 };
        let resources = |entry: &str| Resources {
            registers: 32 + (xxh3_64_with_seed(entry.as_bytes(), 0) % 64) as u32,
            spill_stores: spilled,
            spill_loads: spilled,
            ..Resources::default()
        };
        let kernels = program.kernels.iter().map(|kernel| (kernel.entry.clone(), resources(&kernel.entry)));
        let mark: &[u8] = if is_for_speed(&program.code) { FOR_SPEED } else { &[] };
        compiled.code = Code::Machine([&code, mark].concat());
        Ok(Compiled { program: compiled, kernels: kernels.collect(), time: Duration::from_millis(1) })
    }
}

/// Suffix of the fake machine code of a timing build. Its source text may equal that of the
/// checking build.
const FOR_SPEED: &[u8] = b"\0for speed";

fn is_for_speed(code: &Code) -> bool {
    match code {
        Code::Source { options, .. } => *options == PRINTER.options(Build::Timing),
        Code::Machine(bytes) => bytes.ends_with(FOR_SPEED),
        Code::Parts(parts) => parts.iter().any(is_for_speed),
        Code::Virtual(_) => false,
    }
}

/// The bytes that determine the time and the failure of a program.
fn code(code: &Code) -> Vec<u8> {
    match code {
        Code::Source { text, .. } | Code::Virtual(text) => text.clone().into_bytes(),
        Code::Machine(bytes) => bytes.strip_suffix(FOR_SPEED).unwrap_or(bytes).to_vec(),
        Code::Parts(parts) => parts.iter().flat_map(self::code).collect(),
    }
}

/// The machine of a fake device.
pub(super) struct FakeMachine {
    fake: Fake,
    /// Cached outputs per subject.
    results: Vec<(Weak<Subject>, Vec<Vec<u8>>)>,
    calls: u64,
}

impl FakeMachine {
    fn results(&mut self, subject: &Arc<Subject>) -> Result<Vec<Vec<u8>>, Failure> {
        self.results.retain(|(known, _)| known.strong_count() > 0);
        let known = |(known, _): &&(Weak<Subject>, _)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(subject));
        if let Some((_, results)) = self.results.iter().find(known) {
            return Ok(results.clone());
        }
        let results = evaluate(subject).map_err(Failure::Refused)?;
        self.results.push((Arc::downgrade(subject), results.clone()));
        Ok(results)
    }
}

impl FakeMachine {
    /// Corrupts some samples of a subject's first output, including one in its last row.
    fn spoil(&self, subject: &Subject, program: &Program, fault: Option<Mishap>, bytes: &mut [u8]) {
        let pipeline = subject.pipeline();
        let ty = pipeline.funcs()[pipeline.outputs()[0]].types[0];
        let region = subject.request().outputs[0].as_ref();
        let row = region.and_then(|region| region.0.first()).map_or(1, |range| range.extent as usize);
        let mut samples: Vec<&mut [u8]> = bytes.chunks_exact_mut(ty.bytes()).collect();
        let count = samples.len();
        let of_bytes = |bytes: &[u8]| if ty == Type::F32 { from_bytes::<f32>(bytes)[0].abs() } else { 0.0 };
        let largest = samples.iter().map(|bytes| of_bytes(bytes)).fold(0.0, f32::max);
        let spoilt: &[u8] = match fault {
            Some(Mishap::TimingNan) => &f32::NAN.to_le_bytes(),
            Some(Mishap::TimingUnwritten) => &[POISON; 4],
            _ => &(2.0 * largest + 1.0).to_le_bytes(),
        };
        let seed = self.fake.seed ^ xxh3_64_with_seed(&code(&program.code), 2);
        let draw =
            |number: u64, below: usize| (xxh3_64_with_seed(&number.to_le_bytes(), seed) as usize) % below;
        let many = (count * self.fake.samples as usize / 1000).max(1) as u64;
        let last_row = count.saturating_sub(row) + draw(0, row.min(count));
        for place in std::iter::once(last_row).chain((1..many).map(|number| draw(number, count))) {
            // Smaller types have no value outside the range of all others.
            match ty {
                Type::F32 => samples[place].copy_from_slice(spoilt),
                _ => samples[place].iter_mut().for_each(|byte| *byte ^= 0x80),
            }
        }
    }
}

/// The outputs of a subject, computed by the reference evaluator.
fn evaluate(subject: &Subject) -> Result<Vec<Vec<u8>>, String> {
    let (pipeline, request) = (subject.pipeline(), subject.request());
    let mut inputs = Vec::new();
    for ((id, decl), bytes) in pipeline.inputs().iter().zip(subject.inputs()) {
        let region = request.inputs[id].clone().ok_or("an input has no size")?;
        let order = &decl.storage_order;
        let buffer =
            dispatch!(decl.ty, T => Buffer::from_vec_in_order::<T>(region, order, from_bytes::<T>(bytes)));
        inputs.push(buffer.map_err(|error| error.to_string())?);
    }
    let types: Vec<Type> = pipeline.params().values().map(|decl| decl.ty).collect();
    let workload = Workload {
        pipeline: pipeline.clone(),
        inputs,
        params: Value::from_words(&types, subject.params()),
        outputs: request.outputs.iter().flatten().cloned().collect(),
    };
    let outputs = workload.reference().map_err(|error| error.to_string())?;
    let stored = outputs.iter().zip(output_orders(pipeline)).map(|(buffer, order)| buffer.reordered(&order));
    let bytes = stored.map(|buffer| Ok(to_bytes(buffer.map_err(|error| error.to_string())?.data())));
    bytes.collect()
}

impl Machine for FakeMachine {
    fn time(&mut self, _: &Arc<Subject>, program: &Program, _: &TimingOptions) -> Result<Timed, Failure> {
        let code = code(&program.code);
        self.fake.suffer(self.fake.fault(&code, false))?;
        self.calls += 1;
        let hash = xxh3_64_with_seed(&code, 1);
        if let Some(log) = &self.fake.log {
            let opened = OpenOptions::new().create(true).append(true).open(log);
            let written = opened.and_then(|mut log| log.write_all(format!("{hash:016x}\n").as_bytes()));
            written.map_err(|error| Failure::Refused(error.to_string()))?;
        }
        // From 20 to 200 microseconds.
        let share = |hash: u64| hash as f64 / u64::MAX as f64;
        let noise =
            self.fake.noise as f64 / 100.0 * share(xxh3_64_with_seed(&self.calls.to_le_bytes(), hash));
        let min = 20.0 * 10f64.powf(share(hash)) * (1.0 + noise);
        Ok(Timed { times: Times { min, median: min * 1.01, runs: 100 }, spread: 0.01 })
    }

    fn run(&mut self, subject: &Arc<Subject>, program: &Program) -> Result<Vec<Vec<u8>>, Failure> {
        let fault = self.fake.fault(&code(&program.code), false);
        self.fake.suffer(fault)?;
        let mut results = self.results(subject)?;
        match (fault, results.first_mut()) {
            (Some(Mishap::Wrong), Some(bytes)) => {
                if let Some(byte) = bytes.last_mut() {
                    *byte ^= 0x40;
                }
            }
            (Some(Mishap::TimingWrong | Mishap::TimingNan | Mishap::TimingUnwritten), Some(bytes))
                if is_for_speed(&program.code) =>
            {
                self.spoil(subject, program, fault, bytes);
            }
            _ => {}
        }
        Ok(results)
    }

    fn restore(&mut self) {}
}
