//! What kernels for any size need across their ranges of sizes, in reports.

use warploom::codegen::export::Manifest;
use warploom::codegen::instance::Strides;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::CostModel;
use warploom::lang::dynamic::SizeRange;
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::schedule_file::{ScheduleFileError, problem};
use warploom::show;
use warploom::target::program;
use warploom_report::{Table, dash};

use super::explanation;

report! {
    /// The sizes that every run gives, and what the kernels need at some of them.
    pub struct Ranges = "ranges" {
        given: Vec<Given>, "the sizes that every run gives";
        at: Vec<At>, "at the smallest sizes, at those that the schedule was searched for, and at the largest";
    }

    struct Given = "given size" {
        name: String, "its name";
        min: i64, "the smallest value";
        max: i64, "the largest value";
        asked: i64, "the value that the schedule was searched for";
    }

    /// A run at one choice of sizes.
    struct At = "figures at sizes" {
        sizes: &'static str, "`smallest`, `asked` or `largest`";
        values: Vec<i64>, "the values, in the order of `given`";
        unusable: Option<String>, "why these sizes cannot be used together; the figures are `null` then";
        blocks: Option<u64>, "the blocks of all kernels";
        workspace_bytes: Option<u64>, "memory for arrays between kernels";
        predicted_us: Option<f64>, "the predicted time of a run";
    }
}

/// The description of a program for launches at the sizes that it was scheduled for, dense.
pub fn described(program: &Program, any_size: Option<&Problem>) -> program::Program {
    let sizes = any_size.and_then(Problem::sizes);
    let typical = sizes.map_or(&[][..], |sizes| &sizes.request.typical_sizes);
    PRINTER
        .describe_at(program, Build::Timing, typical, &Strides::default())
        .unwrap_or_else(|error| unreachable!("building checks the sizes it is asked for: {error}"))
}

impl Ranges {
    /// The figures of kernels for any size; `None` if all sizes are fixed.
    ///
    /// # Errors
    /// If the schedule is illegal at some of the sizes.
    pub fn new(
        any_size: &Problem,
        schedule: &Schedule,
        program: &Program,
        model: &dyn CostModel,
    ) -> Result<Option<Ranges>, ScheduleFileError> {
        let Some(request) = any_size.sizes().map(|sizes| &sizes.request) else { return Ok(None) };
        let (pipeline, device) = (any_size.pipeline(), any_size.device());
        let manifest = Manifest::new(pipeline, any_size.request(), device, &[], program);
        let ranges = request.formulas.sizes();
        let ends = |end: fn(&SizeRange) -> i64| ranges.iter().map(end).collect::<Vec<i64>>();
        let asked = request.typical_sizes.clone();
        let given = ranges.iter().zip(&asked).map(|(range, &asked)| Given {
            name: range.name.clone(),
            min: range.min,
            max: range.max,
            asked,
        });
        let at = |sizes: &'static str, values: Vec<i64>| {
            let unusable = |why: String| At {
                sizes,
                values: values.clone(),
                unusable: Some(why),
                blocks: None,
                workspace_bytes: None,
                predicted_us: None,
            };
            let realised = match request.at(&values) {
                Ok(realised) => realised,
                Err(error) => return Ok(unusable(error.to_string())),
            };
            let described = match PRINTER.describe_at(program, Build::Timing, &values, &Strides::default()) {
                Ok(described) => described,
                Err(error) => return Ok(unusable(error.to_string())),
            };
            let fixed = problem(pipeline, &realised, device)?;
            let blocks =
                |kernel: &program::Kernel| kernel.grid.iter().copied().map(u64::from).product::<u64>();
            Ok(At {
                sizes,
                unusable: None,
                blocks: Some(described.kernels.iter().map(blocks).sum()),
                workspace_bytes: Some(manifest.workspace_bytes_at(&described)),
                predicted_us: Some(explanation(&fixed, schedule, model)?.predicted_us),
                values: values.clone(),
            })
        };
        let at = [
            ("smallest", ends(|range| range.min)),
            ("asked", asked.clone()),
            ("largest", ends(|range| range.max)),
        ]
        .map(|(sizes, values)| at(sizes, values));
        let at = at.into_iter().collect::<Result<Vec<At>, ScheduleFileError>>()?;
        Ok(Some(Ranges { given: given.collect(), at }))
    }

    /// The ranges, and a table, which `shown` lays out, with a line for each choice of sizes.
    pub fn text(&self, shown: &dyn Fn(&Table) -> String) -> String {
        let range = |Given { name, min, max, .. }: &Given| format!("{name}={min}..{max}");
        let names: Vec<String> = self.given.iter().map(range).collect();
        format!("for any sizes {}\n{}", names.join(", "), self.table(shown))
    }

    fn table(&self, shown: &dyn Fn(&Table) -> String) -> String {
        let values = |at: &At| {
            let values = self.given.iter().zip(&at.values);
            values.map(|(given, value)| format!("{}={value}", given.name)).collect::<Vec<_>>().join(", ")
        };
        let unusable = self.at.iter().filter_map(|at| Some((at.sizes, at.unusable.as_ref()?)));
        let notes =
            unusable.map(|(sizes, why)| format!("note: the {sizes} sizes cannot be used together: {why}\n"));
        let table = Table::of(&self.at)
            .left("sizes", |at| at.sizes.to_owned())
            .left("", values)
            .right("blocks", |at| dash(at.blocks))
            .right("workspace", |at| dash(at.workspace_bytes.map(show::bytes)))
            .right("predicted us", |at| dash(at.predicted_us.map(|time| format!("{time:.1}"))));
        shown(&table.done()) + &notes.collect::<String>()
    }
}
