//! Compiled kernels with what is predicted of them.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use warploom::app::Sizes;
use warploom::codegen::export::{Compiled, Target};
use warploom::cost::Basis;
use warploom::runtime::compiler::Image;
use warploom::show;
use warploom::target::program;
use warploom::tune::explain::{Explanation, Idle, KernelExplanation};
use warploom_report::{Table, dash};

use crate::explained::Ranges;
use crate::search::Report as Searched;

report! {
    /// Kernels, what is predicted of them, and the files that they were written to.
    pub struct Report = "warploom.compile/2" {
        pub app: String, "the app, or the pipeline of a file";
        pub sizes: Sizes, "its sizes by name";
        pub device: String, "the GPU that the schedule was searched for";
        pub also_for: Vec<Target>, "the other GPUs of `--device`";
        pub arch: Option<String>, "what the code for the GPU was compiled for; `null` if it was not compiled";
        pub code: Vec<Compiled>, "all compiled code of the package";
        pub notes: Vec<String>, "why there is no machine code for some of these GPUs";
        pub launches: u64, "kernel launches per run";
        pub workspace_bytes: u64,
            "memory for arrays between kernels; with `--dynamic`, like all other figures, at `sizes`";
        pub ranges: Option<Ranges>, "with `--dynamic`: the sizes that every run gives, and figures across their ranges";
        pub predicted_us: f64, "the predicted time of a run";
        pub predicted_us_low: Option<f64>,
            "the measured time lies between this and the next for nine of ten pipelines; `null` if the model's errors are not known here";
        pub predicted_us_high: Option<f64>, "the other end of the range";
        #[serde(flatten)]
        pub basis: Basis, "what predicted the times";
        pub idle: Option<Idle>, "the kernel that takes most of the time while most of the GPU is idle";
        pub kernels: Vec<Kernel>, "the kernels";
        pub search: Option<Searched>, "`null` if a schedule was given";
        pub schedule: String, "the [schedule](schedules.md)";
        pub files: Vec<String>, "the files that were written";
        pub emitted: BTreeMap<String, Json>, "the outputs of `--emit` by name";
    }

    /// A compiled kernel.
    pub struct Kernel = "compiled kernel" {
        name: String, "its name";
        grid: [u32; 3] ["blocks"], "along x, y and z";
        threads: u32, "the threads per block";
        shared_bytes: u32, "shared memory per block";
        registers: Option<u32>, "registers per thread; `null` if it was not compiled";
        spilled_bytes: Option<u32>, "what it spills; `null` if it was not compiled";
        block: String, "the tile of its stage that one block computes, as a schedule writes it";
        estimated_registers: u32, "the estimate that the search uses";
        predicted_us: f64, "the predicted time of all its launches";
    }
}

/// The kernels of a program, with the cost model's view of each.
pub fn kernels(
    described: &program::Program,
    explanation: &Explanation,
    image: Option<&Image>,
) -> Vec<Kernel> {
    // Kernels that are empty at these sizes are explained but not built.
    let mut explained = explanation.kernels.iter().filter(|kernel| kernel.launches > 0.0);
    let of = |kernel: &program::Kernel| Kernel::new(kernel, explained.next(), image);
    described.kernels.iter().map(of).collect()
}

impl Kernel {
    fn new(kernel: &program::Kernel, explained: Option<&KernelExplanation>, image: Option<&Image>) -> Kernel {
        let used = image.and_then(|image| image.kernels.get(&kernel.entry));
        Kernel {
            name: kernel.entry.clone(),
            grid: kernel.grid,
            threads: kernel.threads,
            shared_bytes: kernel.shared_bytes,
            registers: used.map(|used| used.registers),
            spilled_bytes: used.map(|used| used.spill_stores + used.spill_loads),
            block: explained.map(|kernel| kernel.block.clone()).unwrap_or_default(),
            estimated_registers: explained.map_or(0, |kernel| kernel.registers),
            predicted_us: explained.map_or(0.0, |kernel| kernel.predicted_us),
        }
    }
}

impl Report {
    /// The summary and the list of written files; `shown` lays out tables.
    pub fn text(&self, arch: &str, explanation: &Explanation, shown: &dyn Fn(&Table) -> String) -> String {
        let launches = self.launches;
        let launches = if launches == 1 { "1 launch".to_owned() } else { format!("{launches} launches") };
        let also_for = self.also_for.iter().map(|Target { device, arch }| format!(", {device} ({arch})"));
        let also_for = also_for.collect::<String>();
        // The figures that follow are of the sizes in the head.
        let across = self.ranges.as_ref().map(|ranges| {
            format!("{} for {} ({arch}){also_for}, {}\n", self.app, self.device, ranges.text(shown))
        });
        let head = format!(
            "{}{}{} for {} ({arch}){}: {:.1} us predicted by {}; {}; {}, {launches} per run, {} of workspace\n\n",
            across.unwrap_or_default(),
            self.app,
            self.sizes,
            self.device,
            also_for,
            self.predicted_us,
            self.basis,
            show::range(explanation.range()),
            show::count(self.kernels.len(), "kernel"),
            show::bytes(self.workspace_bytes)
        );
        let files = show::paths(&self.files);
        let separator = if files.is_empty() { "" } else { "\n" };
        let idle = self.idle.as_ref().map(|idle| format!("\nnote: {idle}\n")).unwrap_or_default();
        let table = Table::of(&self.kernels)
            .left("kernel", |kernel| kernel.name.clone())
            .left("block", |kernel| kernel.block.clone())
            .right("grid", |kernel| show::grid(kernel.grid))
            .right("threads", |kernel| kernel.threads.to_string())
            .right("shared bytes", |kernel| kernel.shared_bytes.to_string())
            .right("registers", |kernel| match kernel.registers {
                Some(registers) => registers.to_string(),
                None => format!("~{}", kernel.estimated_registers),
            })
            .right("spilled bytes", |kernel| dash(kernel.spilled_bytes))
            .right("predicted us", |kernel| format!("{:.1}", kernel.predicted_us));
        head + &shown(&table.done()) + &idle + separator + &files
    }
}
