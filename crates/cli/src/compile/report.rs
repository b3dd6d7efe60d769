//! The report of `warploom compile`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value as Json;
use warploom::codegen::export::{Compiled, Target};
use warploom::cost::Basis;
use warploom::runtime::compiler::Image;
use warploom::target::program;
use warploom::tune::explain::{Explanation, Idle, KernelExplanation};

use crate::any_size::Ranges;
use crate::search;
use crate::show;
use crate::sizes::Sizes;
use crate::table::{self, Align};

#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) app: String,
    pub(crate) sizes: Sizes,
    pub(crate) device: String,
    /// Further devices that the package is for.
    pub(crate) also_for: Vec<Target>,
    /// The architecture that the code for the device was compiled for; `null` if it was not compiled.
    pub(crate) arch: Option<String>,
    /// All compiled code of the package.
    pub(crate) code: Vec<Compiled>,
    /// Why there is no machine code for some of these exact devices.
    pub(crate) notes: Vec<String>,
    pub(crate) launches: u64,
    pub(crate) workspace_bytes: u64,
    /// The sizes that every run gives, and what the kernels need at some of them; `null` if all sizes are fixed.
    pub(crate) ranges: Option<Ranges>,
    /// The run time that the cost model predicts.
    pub(crate) predicted_us: f64,
    /// The measured time lies between these two for nine of ten pipelines; `null` if that is not known.
    pub(crate) predicted_us_low: Option<f64>,
    pub(crate) predicted_us_high: Option<f64>,
    /// What predicted the times.
    #[serde(flatten)]
    pub(crate) basis: Basis,
    /// The kernel that takes most of the predicted time while most of the device is idle; `null` if
    /// there is none.
    pub(crate) idle: Option<Idle>,
    pub(crate) kernels: Vec<Kernel>,
    /// `null` if a schedule was given.
    pub(crate) search: Option<search::Report>,
    pub(crate) schedule: String,
    pub(crate) files: Vec<String>,
    /// The outputs of `--emit` that are not written to files.
    pub(crate) emitted: BTreeMap<&'static str, Json>,
}

#[derive(Serialize)]
pub(crate) struct Kernel {
    name: String,
    grid: [u32; 3],
    threads: u32,
    shared_bytes: u32,
    /// Known for machine code only, like `spilled_bytes`.
    registers: Option<u32>,
    spilled_bytes: Option<u32>,
    /// The tile of the kernel's stage that one block computes.
    block: String,
    estimated_registers: u32,
    /// The sum over all its launches.
    predicted_us: f64,
}

/// The kernels of a program, with the cost model's view of each.
pub(crate) fn kernels(
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

    fn cells(&self) -> Vec<String> {
        let [x, y, z] = self.grid;
        let known = |number: Option<u32>| number.map(|number| number.to_string());
        vec![
            self.name.clone(),
            self.block.clone(),
            format!("{x}x{y}x{z}"),
            self.threads.to_string(),
            self.shared_bytes.to_string(),
            known(self.registers).unwrap_or_else(|| format!("~{}", self.estimated_registers)),
            known(self.spilled_bytes).unwrap_or_else(|| "-".to_owned()),
            format!("{:.1}", self.predicted_us),
        ]
    }
}

impl Report {
    /// The summary and the list of written files.
    pub(crate) fn text(&self, arch: &str, explanation: &Explanation) -> String {
        let titles = [
            ("kernel", Align::Left),
            ("block", Align::Left),
            ("grid", Align::Right),
            ("threads", Align::Right),
            ("shared bytes", Align::Right),
            ("registers", Align::Right),
            ("spilled bytes", Align::Right),
            ("predicted us", Align::Right),
        ];
        let launches =
            if self.launches == 1 { "1 launch".to_owned() } else { format!("{} launches", self.launches) };
        let also_for = self.also_for.iter().map(|Target { device, arch }| format!(", {device} ({arch})"));
        let also_for = also_for.collect::<String>();
        // The figures that follow are of the sizes in the head.
        let across = self.ranges.as_ref().map(|ranges| {
            format!("{} for {} ({arch}){also_for}, {}\n", self.app, self.device, ranges.text())
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
        let rows: Vec<Vec<String>> = self.kernels.iter().map(Kernel::cells).collect();
        let files = show::paths(&self.files);
        let separator = if files.is_empty() { "" } else { "\n" };
        let idle = self.idle.as_ref().map(|idle| format!("\nnote: {idle}\n")).unwrap_or_default();
        head + &table::whole(&titles, &rows) + &idle + separator + &files
    }
}
