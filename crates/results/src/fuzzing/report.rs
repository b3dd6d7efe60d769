//! The results of a fuzzing run: a summary, one line per failure, and the table of decisions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use warploom::fuzz::{Failure, Reason, Reduced, Skipped, Summary};
use warploom::plan::{Choice, Coverage, Share, StageKind};
use warploom::show;
use warploom::target::Device;

use super::{Compiled, Searched};

report! {
    /// The results of a fuzzing run.
    pub struct Report = "warploom.fuzz/1" {
        pub passed: bool, "whether nothing failed, and no more pairs were skipped than `--max-skipped` allows";
        on: String, "`sim` or `cuda`";
        device: String, "the GPU that kernels were built for";
        seed: u64, "the seed of all pipelines and schedules";
        pipelines: u64, "the pipelines";
        pub pairs: u64, "the pairs of a pipeline and a schedule";
        pub skipped: u64, "the pairs with nothing to check";
        skips: Vec<SkipLine>, "these pairs by reason";
        skipped_sizes: Vec<SkipLine>,
            "with `--dynamic`, sizes with nothing to check, of pairs that passed at others, by reason";
        ill_conditioned: Vec<Shaky>, "pairs whose pipeline amplifies rounding errors";
        pub failed: usize, "the pairs that failed";
        kinds: BTreeMap<&'static str, usize>, "the failures by kind";
        stopped: bool, "whether the run stopped early because of too many failures";
        seconds: f64, "how long it took";
        pub search: Option<Searched>, "with `--search`";
        pub compiled: Option<Compiled>, "with `--compile`";
        pub failures: Vec<Written>, "the failures that were reduced and written";
        coverage: Vec<Line>, "which decisions occurred";
    }

    /// What was skipped for one reason.
    pub struct SkipLine = "fuzz skip" {
        reason: &'static str,
            "`sizes`: they do not fit the pipeline; `rewrites`: those of the schedule are impossible; `reference`: the evaluator cannot run; with `--dynamic` also `range`: no range of sizes fits the pipeline; `illegal`: the schedule is not legal at all sizes; `unusable`: the sizes cannot be used together; `undefined`: other sizes read undefined values";
        count: u64, "the pairs, or the sizes";
        schedule_seed: u64, "the seed of the schedule of the first one";
        message: String, "the message of the first one";
        #[serde(skip)]
        sentence: String;
    }

    /// A pair with an ill-conditioned pipeline.
    pub struct Shaky = "fuzz ill-conditioned" {
        schedule_seed: u64, "the seed of the schedule";
        message: String, "how far the kernels are off";
    }

    /// A failure and the file it was written to.
    pub struct Written = "fuzz failure" {
        kind: &'static str, "the kind of failure, such as `numeric` or `fault`";
        message: String, "what happened";
        pipeline_seed: u64, "the seed of the pipeline";
        schedule_seed: u64, "the seed of the schedule";
        file: Option<PathBuf>, "the file of the reduced case; `null` if it could not be generated";
        funcs: Option<(usize, usize)>, "the Funcs before and after reduction";
        out_of_time: bool, "whether a smaller case may exist";
    }

    /// One decision for one kind of stage: how many stages took it, out of how many that could.
    pub struct Line = "fuzz coverage" {
        decision: &'static str, "the decision";
        stages: &'static str, "the kind of stage";
        eligible: u64, "the stages that could take it";
        taken: u64, "the stages that did";
    }
}

impl Written {
    /// A failure while the case was generated.
    pub(super) fn unmade(pipeline_seed: u64, schedule_seed: u64, failure: &Failure) -> Written {
        Written {
            kind: failure.kind().name(),
            message: failure.to_string(),
            pipeline_seed,
            schedule_seed,
            file: None,
            funcs: None,
            out_of_time: false,
        }
    }

    /// A failure that was reduced and written.
    pub(super) fn new(
        pipeline_seed: u64,
        schedule_seed: u64,
        reduced: &Reduced,
        funcs: usize,
        file: PathBuf,
    ) -> Written {
        Written {
            file: Some(file),
            funcs: Some((funcs, reduced.case.pipeline.funcs().len())),
            out_of_time: reduced.out_of_time,
            ..Written::unmade(pipeline_seed, schedule_seed, &reduced.failure)
        }
    }

    /// The failure for a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("\n{}: {}\n", self.kind, self.message);
        match (&self.file, self.funcs) {
            (Some(file), Some((before, after))) => {
                let unfinished = if self.out_of_time { ", not fully reduced" } else { "" };
                let file = show::path(file);
                text += &format!(
                    "  {} of {before}{unfinished}: {file}\n  warploom fuzz --replay {file}\n",
                    show::count(after, "Func")
                );
            }
            _ => {
                text += &format!("  while generating pipeline {}\n", self.pipeline_seed);
            }
        }
        text
    }
}

impl Report {
    /// What is known before failures are reduced. `on` is `sim` or `cuda`.
    pub fn new(on: String, seed: u64, device: &Device, summary: &Summary) -> Report {
        Report {
            passed: summary.failures.is_empty(),
            on,
            device: device.name.clone(),
            seed,
            pipelines: summary.pipelines,
            pairs: summary.pairs,
            skipped: summary.skipped_pairs(),
            skips: skip_lines(&summary.skipped),
            skipped_sizes: skip_lines(&summary.skipped_sizes),
            ill_conditioned: shaky(summary),
            failed: summary.failures.len(),
            kinds: summary.kinds().into_iter().map(|(kind, count)| (kind.name(), count)).collect(),
            stopped: summary.stopped,
            seconds: summary.time.as_secs_f64(),
            search: None,
            compiled: None,
            failures: Vec::new(),
            coverage: lines(&summary.coverage),
        }
    }

    /// What is known before failures are reduced, for a terminal.
    pub fn header(&self) -> String {
        let Report { pairs, skipped, failed, seconds, .. } = self;
        let passed = *pairs - *skipped - *failed as u64;
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let on = match self.on.as_str() {
            "sim" => "simulated for",
            _ => "on",
        };
        let stopped = if self.stopped { "; stopped early" } else { "" };
        let line = format!(
            "{pairs} pairs of {} {on} {}, seed {}, in {seconds:.1} s: \
             {passed} passed, {skipped} skipped, {failed} failed{kinds}{stopped}\n",
            show::count(self.pipelines as usize, "pipeline"),
            self.device,
            self.seed
        );
        let skips = self.skips.iter().map(|skip| skip.text("pair"));
        let sizes = self.skipped_sizes.iter().map(|skip| skip.text("size"));
        let line = line + &skips.chain(sizes).collect::<String>();
        let shaky = self.ill_conditioned.iter().map(|Shaky { schedule_seed, message }| {
            format!("ill-conditioned, schedule {schedule_seed:016x}: {message}\n")
        });
        let line = shaky.fold(line, |line, shaky| line + &shaky);
        let search = self.search.as_ref().map(Searched::text).unwrap_or_default();
        let compiled = self.compiled.as_ref().map(Compiled::text).unwrap_or_default();
        line + &search + &compiled
    }
}

impl SkipLine {
    fn text(&self, what: &str) -> String {
        let SkipLine { count, schedule_seed, message, sentence, .. } = self;
        let message = message.lines().next().unwrap_or_default();
        let what = show::count(*count as usize, what);
        format!("skipped {what}, {sentence}; the first, schedule {schedule_seed:016x}: {message}\n")
    }
}

fn skip_lines(skipped: &BTreeMap<Reason, Skipped>) -> Vec<SkipLine> {
    let line = |(reason, skipped): (&Reason, &Skipped)| SkipLine {
        reason: reason.name(),
        count: skipped.count,
        schedule_seed: skipped.schedule_seed,
        message: skipped.why.clone(),
        sentence: reason.to_string(),
    };
    skipped.iter().map(line).collect()
}

fn shaky(summary: &Summary) -> Vec<Shaky> {
    let shaky = summary.ill_conditioned.iter();
    shaky.map(|(seed, message)| Shaky { schedule_seed: *seed, message: message.clone() }).collect()
}

fn lines(coverage: &Coverage) -> Vec<Line> {
    let all = Choice::ALL.into_iter().flat_map(|decision| {
        StageKind::ALL.into_iter().map(move |stages| (decision, stages, coverage.share(decision, stages)))
    });
    let line = |(decision, stages, share): (Choice, StageKind, Share)| Line {
        decision: decision.name(),
        stages: stages.name(),
        eligible: share.eligible,
        taken: share.taken,
    };
    all.filter(|(.., share)| share.eligible > 0).map(line).collect()
}
