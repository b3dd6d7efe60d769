//! Times of a pipeline on a GPU.

use warploom::app::{Sizes, Subject};
use warploom::runtime::{KernelFacts, Timing};
use warploom::show;
use warploom::target::{Device, program};
use warploom_report::Table;

report! {
    /// The times of a pipeline.
    pub struct Report = "warploom.bench/2" {
        app: String, "the app";
        sizes: Sizes, "its sizes by name";
        device: String, "the GPU";
        exact: Option<bool>, "`true` if `--check` found no difference; `null` without it";
        min_us: f64, "the shortest time of the faster mode";
        median_us: f64, "its median";
        gigabytes_per_second: f64 ["GB/s"], "compulsory bytes divided by the shortest time";
        floor_us: f64, "a lower bound from the bandwidth and arithmetic throughput of the GPU";
        fraction_of_floor: f64 ["share"], "the lower bound divided by the shortest time";
        timing: Timing, "all measurements";
        kernels: Vec<Kernel>, "the kernels";
    }

    /// A kernel that was timed.
    pub struct Kernel = "timed kernel" {
        name: String, "its name";
        grid: [u32; 3] ["blocks"], "along x, y and z";
        threads: u32, "the threads per block";
        registers: u32, "registers per thread";
        local_bytes: u32, "local memory per thread";
        shared_bytes: u32, "shared memory per block";
        blocks_per_sm: u32, "resident blocks per SM";
    }
}

/// The kernels of a program, with what the driver says of each.
pub fn kernels(program: &program::Program, facts: &[KernelFacts]) -> Vec<Kernel> {
    let kernels = program.kernels.iter().zip(facts).map(|(kernel, facts)| Kernel {
        name: kernel.entry.clone(),
        grid: kernel.grid,
        threads: kernel.threads,
        registers: facts.registers,
        local_bytes: facts.local_bytes,
        shared_bytes: facts.shared_bytes,
        blocks_per_sm: facts.blocks_per_sm,
    });
    kernels.collect()
}

impl Report {
    /// The times of a pipeline; `None` if no run was timed.
    pub fn new(
        subject: &Subject,
        device: &Device,
        exact: Option<bool>,
        timing: Timing,
        kernels: Vec<Kernel>,
    ) -> Option<Report> {
        let best = timing.best()?;
        let (min_us, median_us) = (best.min_us, best.median_us);
        let floor_us = subject.floor_us(device);
        Some(Report {
            app: subject.name.clone(),
            sizes: subject.sizes.clone(),
            device: device.name.clone(),
            exact,
            min_us,
            median_us,
            gigabytes_per_second: subject.compulsory_bytes() as f64 / (min_us * 1e3),
            floor_us,
            fraction_of_floor: floor_us / min_us,
            timing,
            kernels,
        })
    }

    /// The times for a terminal; `shown` lays out the table.
    pub fn text(&self, shown: &dyn Fn(&Table) -> String) -> String {
        let check = match self.exact {
            Some(_) => ", checked",
            None => "",
        };
        let mut text = format!("{}{} on {}{check}\n\n", self.app, self.sizes, self.device);
        for sample in &self.timing.samples {
            text += &format!(
                "{:>8}  {:.2} us minimum, {:.2} us median, spread {:.1} %, {} runs\n",
                format!("{:?}", sample.mode).to_lowercase(),
                sample.min_us,
                sample.median_us,
                sample.spread * 100.0,
                sample.runs
            );
        }
        text += &format!(
            "{:>8}  {:.0} GB/s of compulsory bytes, {:.0} % of the floor of {:.1} us\n\n",
            "best",
            self.gigabytes_per_second,
            self.fraction_of_floor * 100.0,
            self.floor_us
        );
        let table = Table::of(&self.kernels)
            .left("kernel", |kernel| kernel.name.clone())
            .right("grid", |kernel| show::grid(kernel.grid))
            .right("threads", |kernel| kernel.threads.to_string())
            .right("registers", |kernel| kernel.registers.to_string())
            .right("local bytes", |kernel| kernel.local_bytes.to_string())
            .right("shared bytes", |kernel| kernel.shared_bytes.to_string())
            .right("blocks per SM", |kernel| kernel.blocks_per_sm.to_string());
        text + &shown(&table.done())
    }
}

#[cfg(test)]
mod tests {
    use warploom::runtime::{Mode, Sample};

    use super::*;
    use crate::tests::Documented;

    #[test]
    fn the_report_is_as_its_page_says() {
        let sample = |mode| Sample {
            mode,
            min_us: 4.5,
            median_us: 4.75,
            mean_us: 4.875,
            spread: 0.25,
            batches: 3,
            runs: 60,
        };
        let kernel = Kernel {
            name: "output".to_owned(),
            grid: [4, 2, 1],
            threads: 256,
            registers: 32,
            local_bytes: 0,
            shared_bytes: 1024,
            blocks_per_sm: 8,
        };
        let report = Report {
            app: "blur".to_owned(),
            sizes: Sizes::default(),
            device: "H200".to_owned(),
            exact: None,
            min_us: 4.5,
            median_us: 4.75,
            gigabytes_per_second: 1.5,
            floor_us: 2.25,
            fraction_of_floor: 0.5,
            timing: Timing { samples: vec![sample(Mode::Stream), sample(Mode::Graph)] },
            kernels: vec![kernel],
        };
        let json = serde_json::to_value(crate::report::object(&report)).unwrap();
        Documented::read().check(&json);
    }
}
