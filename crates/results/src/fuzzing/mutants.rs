//! What the checks notice of mutated kernels.

use warploom::fuzz::{Fate, FoundKernel, Mutant, Mutated, Survival};
use warploom::show;
use warploom::target::Device;
use warploom_report::Table;

report! {
    /// The mutants of some kernels, and what came of them.
    pub struct Report = "warploom.fuzz.mutate/1" {
        device: String, "the GPU that kernels were built for";
        seed: u64, "the seed of all pipelines and schedules";
        pipelines: u64, "the pipelines";
        kernels: usize, "the mutated kernels";
        skipped: u64, "the pairs with nothing to check";
        mutants: Vec<Row>, "the mutants by kind of change";
        survivors: Vec<Survivor>, "the mutants that no check noticed";
    }

    /// The mutants of one kind of change.
    #[derive(Default)]
    pub struct Row = "mutation" {
        mutation: &'static str, "the kind of change";
        mutants: usize, "the mutants";
        refused: usize, "those that the verifier refused";
        stopped: usize, "those that the simulator stopped";
        wrong: usize, "those with a wrong output";
        survived: usize, "those that no check noticed";
    }

    /// A mutant that no check noticed.
    pub struct Survivor = "survivor" {
        pipeline_seed: u64, "the seed of the pipeline";
        schedule_seed: u64, "the seed of the schedule";
        kernel: String, "the kernel";
        mutation: &'static str, "the kind of change";
        statement: String, "the path of the statement in the kernel";
        reason: &'static str, "why the change has no effect; `unexplained` exits with 1";
        #[serde(skip)]
        line: String;
    }
}

impl Report {
    /// The results of mutating kernels.
    pub fn new(seed: u64, device: &Device, mutated: &Mutated) -> Report {
        let mut report = Report {
            device: device.name.clone(),
            seed,
            pipelines: mutated.pipelines,
            kernels: mutated.kernels.len(),
            skipped: mutated.skipped.values().sum(),
            mutants: Vec::new(),
            survivors: Vec::new(),
        };
        for found in &mutated.kernels {
            found.mutated.mutants.iter().for_each(|mutant| report.add(found, mutant));
        }
        report
    }

    fn add(&mut self, found: &FoundKernel, mutant: &Mutant) {
        let mutation = mutant.mutation.name();
        let known = self.mutants.iter().position(|row| row.mutation == mutation);
        let number = known.unwrap_or_else(|| {
            self.mutants.push(Row { mutation, ..Row::default() });
            self.mutants.len() - 1
        });
        let row = &mut self.mutants[number];
        row.mutants += 1;
        match mutant.fate {
            Fate::Refused => row.refused += 1,
            Fate::Stopped => row.stopped += 1,
            Fate::Wrong => row.wrong += 1,
            Fate::Survived(reason) => {
                row.survived += 1;
                self.survivors.push(Survivor {
                    pipeline_seed: found.case.seed,
                    schedule_seed: found.schedule_seed,
                    kernel: found.mutated.kernel.name.clone(),
                    mutation,
                    statement: mutant.at.to_string(),
                    reason: reason.name(),
                    line: mutant.to_string(),
                });
            }
        }
    }

    /// How many mutants survived without a reason.
    pub fn unexplained(&self) -> usize {
        let unexplained = |survivor: &&Survivor| survivor.reason == Survival::Unexplained.name();
        self.survivors.iter().filter(unexplained).count()
    }

    /// The results for a terminal; `shown` lays out the table.
    pub fn text(&self, shown: &dyn Fn(&Table) -> String) -> String {
        let Report { device, seed, pipelines, kernels, skipped, mutants, survivors } = self;
        let total: usize = mutants.iter().map(|row| row.mutants).sum();
        let (kernels, pipelines) =
            (show::count(*kernels, "kernel"), show::count(*pipelines as usize, "pipeline"));
        let mut text = format!(
            "{} of {kernels} of {pipelines} for {device}, seed {seed}: {} survived\n",
            show::count(total, "mutant"),
            survivors.len()
        );
        if *skipped > 0 {
            text += &format!("{} with nothing to check\n", show::count(*skipped as usize, "pair"));
        }
        text += &shown(&self.table());
        for reason in Survival::ALL {
            let lines = survivors.iter().filter(|survivor| survivor.reason == reason.name());
            let lines: Vec<String> = lines.map(Survivor::text).collect();
            if !lines.is_empty() {
                text += &format!("\n{}, {reason}:\n{}", show::count(lines.len(), "survivor"), lines.concat());
            }
        }
        text
    }

    fn table(&self) -> Table {
        Table::of(&self.mutants)
            .left("mutation", |row| row.mutation.to_owned())
            .right("mutants", |row| row.mutants.to_string())
            .right("refused", |row| row.refused.to_string())
            .right("stopped", |row| row.stopped.to_string())
            .right("wrong", |row| row.wrong.to_string())
            .right("survived", |row| row.survived.to_string())
            .done()
    }
}

impl Survivor {
    fn text(&self) -> String {
        let Survivor { pipeline_seed, schedule_seed, kernel, line, .. } = self;
        format!("  pipeline {pipeline_seed:016x}, schedule {schedule_seed:016x}, kernel `{kernel}`: {line}\n")
    }
}
