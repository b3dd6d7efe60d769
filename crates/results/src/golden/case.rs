//! Apps against reference data.

use warploom::app::{App, Settings};
use warploom::interp::buffer::Buffer;
use warploom::interp::compare::{Comparison, compare};
use warploom::lang::{Pipeline, Realisation, Region, Value, infer};
use warploom::tune::workload::Workload;

use super::{Array, Folder, FolderError};

/// Runs a workload with a tolerance for kernels: its outputs and seconds, or why there are none.
pub type Running<'a> = dyn Fn(Workload, Option<f64>) -> Result<(Vec<Buffer>, f64), String> + 'a;

report! {
    /// The result of checking one app.
    pub struct Checked = "verified app" {
        pub app: String, "the app";
        folder: String, "the folder with its reference data";
        pub passed: bool, "whether all its outputs passed";
        pub seconds: f64, "how long it ran";
        pub error: Option<String>, "why there are no outputs to compare";
        pub outputs: Vec<Output>, "its outputs";
    }

    /// One output, compared.
    pub struct Output = "verified output" {
        pub name: String, "its name";
        pub passed: bool, "whether it is within the tolerance";
        pub region: Region, "its box";
        pub samples: usize, "the compared samples";
        pub max_abs_error: f64 as "number or null",
            "the largest difference; `null` if a sample is NaN or infinite in only one of the two";
        pub differing: usize, "the samples that differ at all";
        pub beyond_tolerance: usize, "the samples that differ by more than the tolerance";
        first_mismatch: Option<Mismatch>, "the first of those";
        /// The comparison in words.
        #[serde(skip)]
        pub sentence: String;
    }

    /// A sample beyond the tolerance.
    pub struct Mismatch = "mismatch" {
        at: Vec<i64> ["points"], "its place";
        actual: f64 as "number or null", "the value that was computed";
        expected: f64 as "number or null", "the reference value";
    }
}

/// An app with its reference data: everything is read.
pub struct Case<'a> {
    app: &'a App,
    folder: &'a Folder,
    settings: Settings,
    params: Vec<(String, Value)>,
    inputs: Vec<(&'a str, Buffer)>,
    expected: Vec<(&'a str, Buffer)>,
}

impl<'a> Case<'a> {
    /// Reads the arrays of a folder. `settings` has the structure parameters that the folder names.
    ///
    /// # Errors
    /// If an array cannot be read.
    pub fn read(app: &'a App, folder: &'a Folder, mut settings: Settings) -> Result<Case<'a>, FolderError> {
        let golden = &folder.golden;
        for (name, value) in &golden.scalars {
            // A Param without a default is not a setting, so `set` may fail.
            let _ = settings.set(name, value.as_f64());
        }
        let read = |(name, array): (&'a String, &'a Array)| Ok((name.as_str(), folder.array(name, array)?));
        let inputs = golden.inputs.iter().map(read).collect::<Result<Vec<_>, FolderError>>()?;
        let expected = golden.outputs.iter().map(read).collect::<Result<Vec<_>, FolderError>>()?;
        let params = golden.scalars.iter().map(|(name, value)| (name.clone(), *value)).collect();
        Ok(Case { app, folder, settings, params, inputs, expected })
    }

    /// Runs the app. Errors of the app become part of the result.
    pub fn check(&self, run: &Running<'_>) -> Checked {
        let pipeline = self.app.built(&self.settings);
        let outcome =
            pipeline.map_err(|error| error.to_string()).and_then(|pipeline| self.run(&pipeline, run));
        let (outputs, seconds, error) = match outcome {
            Ok((outputs, seconds)) => (outputs, seconds, None),
            Err(error) => (Vec::new(), 0.0, Some(error)),
        };
        Checked {
            app: self.app.name.clone(),
            folder: self.folder.path.display().to_string(),
            passed: error.is_none() && outputs.iter().all(|output| output.passed),
            seconds,
            error,
            outputs,
        }
    }

    fn run(&self, pipeline: &Pipeline, run: &Running<'_>) -> Result<(Vec<Output>, f64), String> {
        let (outputs, seconds) = run(self.workload(pipeline)?, self.app.tolerance)?;
        let mut compared = Vec::new();
        for (name, actual) in pipeline.output_names().iter().zip(&outputs) {
            let expected = self.expected(name)?;
            let comparison = compare(actual, expected, &self.folder.golden.tolerance);
            let comparison = comparison.map_err(|mismatch| format!("output `{name}`: {mismatch}"))?;
            compared.push(Output::new(name, expected.region(), &comparison));
        }
        Ok((compared, seconds))
    }

    /// The pipeline with its data. Returns an error unless each output, and nothing else, has reference data.
    fn workload(&self, pipeline: &Pipeline) -> Result<Workload, String> {
        let known = pipeline.output_names();
        if let Some((name, _)) =
            self.expected.iter().find(|(name, _)| !known.iter().any(|known| known == name))
        {
            return Err(format!("there is no output `{name}`; the outputs are {}", known.join(", ")));
        }
        let mut request = Realisation::new(pipeline);
        for (name, buffer) in &self.inputs {
            request = request.input(name, buffer.region().clone());
        }
        for (name, value) in &self.params {
            request = request.param(name, *value);
        }
        for func in pipeline.outputs().iter().map(|id| &pipeline.funcs()[*id]) {
            for name in func.value_names() {
                request = request.output(&func.name, self.expected(&name)?.region().clone());
            }
        }
        infer(pipeline, &request).map_err(|error| error.to_string())?;
        let input = |name: &str| self.inputs.iter().find(|(known, _)| *known == name);
        let inputs = pipeline.inputs().values().filter_map(|decl| Some(input(&decl.name)?.1.clone()));
        Ok(Workload::new(pipeline, &request, inputs.collect()))
    }

    fn expected(&self, name: &str) -> Result<&Buffer, String> {
        let found = self.expected.iter().find(|(known, _)| *known == name);
        let found = found.map(|(_, buffer)| buffer);
        found.ok_or_else(|| format!("there is no reference data for the output `{name}`"))
    }
}

impl Output {
    fn new(name: &str, region: &Region, comparison: &Comparison) -> Output {
        let first = comparison.first.as_ref().map(|first| Mismatch {
            at: first.at.clone(),
            actual: first.actual.as_f64(),
            expected: first.expected.as_f64(),
        });
        Output {
            name: name.to_owned(),
            passed: comparison.passed,
            region: region.clone(),
            samples: comparison.samples,
            max_abs_error: comparison.max_abs,
            differing: comparison.differing,
            beyond_tolerance: comparison.beyond,
            first_mismatch: first,
            sentence: comparison.to_string(),
        }
    }
}
