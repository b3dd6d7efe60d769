//! What kernels for any size need across their ranges of sizes, in reports.

use serde::Serialize;
use warploom::codegen::export::Manifest;
use warploom::codegen::instance::Strides;
use warploom::codegen::ir::Program;
use warploom::codegen::printer::{Build, PRINTER};
use warploom::cost::CostModel;
use warploom::lang::dynamic::SizeRange;
use warploom::plan::Problem;
use warploom::schedule::Schedule;
use warploom::target::program;

use crate::backend::problem;
use crate::error::Error;
use crate::explain::explanation;
use crate::show;
use crate::table::{self, Align};

/// The sizes that every run gives, and what the kernels need at some of them.
#[derive(Serialize)]
pub(crate) struct Ranges {
    /// The sizes with their ranges.
    given: Vec<Given>,
    /// The smallest sizes, the ones that the schedule was searched for, and the largest.
    at: Vec<At>,
}

#[derive(Serialize)]
struct Given {
    name: String,
    min: i64,
    max: i64,
    /// The value of the report's other figures.
    asked: i64,
}

/// A run at one choice of sizes.
#[derive(Serialize)]
struct At {
    sizes: &'static str,
    /// The values of the sizes, in the order of `given`.
    values: Vec<i64>,
    /// Why these sizes cannot be used together; the figures are `null` then.
    unusable: Option<String>,
    blocks: Option<u64>,
    workspace_bytes: Option<u64>,
    predicted_us: Option<f64>,
}

/// The description of a program for launches at the sizes that it was scheduled for, dense.
pub(crate) fn described(program: &Program, any_size: Option<&Problem>) -> program::Program {
    let sizes = any_size.and_then(Problem::sizes);
    let typical = sizes.map_or(&[][..], |sizes| &sizes.request.typical_sizes);
    PRINTER
        .describe_at(program, Build::Timing, typical, &Strides::default())
        .unwrap_or_else(|error| unreachable!("building checks the sizes it is asked for: {error}"))
}

impl Ranges {
    /// `None` if all sizes are fixed.
    pub(crate) fn new(
        any_size: &Problem,
        schedule: &Schedule,
        program: &Program,
        model: &dyn CostModel,
    ) -> Result<Option<Ranges>, Error> {
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
        let at = at.into_iter().collect::<Result<Vec<At>, Error>>()?;
        Ok(Some(Ranges { given: given.collect(), at }))
    }

    /// The ranges, and a table with a line for each choice of sizes.
    pub(crate) fn text(&self) -> String {
        let range = |Given { name, min, max, .. }: &Given| format!("{name}={min}..{max}");
        let names: Vec<String> = self.given.iter().map(range).collect();
        format!("for any sizes {}\n{}", names.join(", "), self.table())
    }

    fn table(&self) -> String {
        let titles = [
            ("sizes", Align::Left),
            ("", Align::Left),
            ("blocks", Align::Right),
            ("workspace", Align::Right),
            ("predicted us", Align::Right),
        ];
        let row = |at: &At| {
            let values =
                self.given.iter().zip(&at.values).map(|(given, value)| format!("{}={value}", given.name));
            let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            vec![
                at.sizes.to_owned(),
                values.collect::<Vec<String>>().join(", "),
                or_dash(at.blocks.map(|blocks| blocks.to_string())),
                or_dash(at.workspace_bytes.map(show::bytes)),
                or_dash(at.predicted_us.map(|time| format!("{time:.1}"))),
            ]
        };
        let unusable = self.at.iter().filter_map(|at| Some((at.sizes, at.unusable.as_ref()?)));
        let notes =
            unusable.map(|(sizes, why)| format!("note: the {sizes} sizes cannot be used together: {why}\n"));
        table::whole(&titles, &self.at.iter().map(row).collect::<Vec<_>>()) + &notes.collect::<String>()
    }
}
