//! Loop nests of schedules, for the page.

use warploom::app::{App, Settings, Sizes, Subject};
use warploom::cost::CostModel;
use warploom::known_device;
use warploom::lang::{Pipeline, Realisation};
use warploom::model_for;
use warploom::schedule::Schedule;
use warploom::schedule_file::problem;
use warploom::target::Device;
use warploom::tune::explain::Explanation;
use warploom::tune::one_shot::predicted_us;

use crate::explained::{explanation, listing};

/// Explains schedules for the devices that source files name.
pub struct Nests {
    /// The device of `--device`, which overrides the files.
    given: Option<Device>,
    /// The devices looked up so far, with their models.
    known: Vec<(Wanted, Option<Model>)>,
}

/// A device as a source file describes it.
#[derive(Clone, PartialEq)]
pub(super) struct Wanted {
    pub name: String,
    /// Empty if the file does not have it.
    pub fingerprint: String,
}

/// What the kernels of a schedule do.
pub(super) struct Explained {
    /// The loop nests as text.
    pub nest: String,
    pub explanation: Explanation,
    /// The predicted time of the default schedule, in microseconds, if that is legal.
    pub default_us: Option<f64>,
}

/// A device and its cost model.
struct Model {
    device: Device,
    model: Box<dyn CostModel + Send>,
}

impl Nests {
    /// Explains for one device, or for those that source files name.
    pub fn new(given: Option<Device>) -> Nests {
        Nests { given, known: Vec::new() }
    }

    /// The loop nest of an app's schedule.
    pub(super) fn of_app(
        &mut self,
        apps: &[App],
        app: &str,
        sizes: &Sizes,
        device: &Wanted,
        schedule: &str,
    ) -> Result<String, String> {
        let Some(app) = apps.iter().find(|known| known.name == app) else {
            return Err("This program does not have the app.".to_owned());
        };
        let mut settings = Settings::defaults(app);
        if let Some(unknown) = sizes.give(&mut settings) {
            let known: Vec<&str> = app.sizes.iter().map(|size| size.name.as_str()).collect();
            return Err(without(&format!(
                "`{}` has no size `{unknown}`; it has {}",
                app.name,
                known.join(", ")
            )));
        }
        self.at(app, settings, device, schedule)
    }

    /// The loop nest of an app's schedule with some settings.
    pub(super) fn at(
        &mut self,
        app: &App,
        settings: Settings,
        device: &Wanted,
        schedule: &str,
    ) -> Result<String, String> {
        let at_sizes = Sizes::of_app(app, &settings).to_string();
        let subject = Subject::new(app, settings).map_err(|error| without(&error.to_string()))?;
        let explained = self.explained(&subject.pipeline, &subject.request, device, &at_sizes, schedule)?;
        Ok(explained.nest)
    }

    /// What the kernels of a pipeline's schedule do. `sizes` starts with ` at`.
    pub(super) fn explained(
        &mut self,
        pipeline: &Pipeline,
        request: &Realisation,
        device: &Wanted,
        sizes: &str,
        schedule: &str,
    ) -> Result<Explained, String> {
        let parsed = Schedule::parse(schedule, pipeline).map_err(|error| without(&error.to_string()))?;
        let Some(Model { device, model }) = self.model(device) else {
            return Err(without("this program does not know the device; name one like it with --device"));
        };
        let problem = problem(pipeline, request, device).map_err(|error| without(&error.to_string()))?;
        let explanation =
            explanation(&problem, &parsed, &**model).map_err(|error| without(&error.to_string()))?;
        let default = problem.default_schedule();
        let default = problem.is_legal(&default).then(|| predicted_us(&problem, &default, &**model));
        let nest = listing(pipeline.name(), sizes, device, &explanation);
        Ok(Explained { nest, explanation, default_us: default.and_then(Result::ok) })
    }

    /// The device of a source file, if it is known.
    pub(super) fn device(&mut self, wanted: &Wanted) -> Option<&Device> {
        self.model(wanted).map(|model| &model.device)
    }

    fn model(&mut self, wanted: &Wanted) -> Option<&Model> {
        let at = match self.known.iter().position(|(known, _)| known == wanted) {
            Some(at) => at,
            None => {
                let named = || known_device(&wanted.name, &wanted.fingerprint);
                let device = self.given.clone().or_else(named);
                let model = device.map(|device| Model { model: model_for(&device).model, device });
                self.known.push((wanted.clone(), model));
                self.known.len() - 1
            }
        };
        self.known[at].1.as_ref()
    }
}

/// A sentence that says why there are no loop nests.
pub(super) fn without(why: &str) -> String {
    format!("There are no loop nests: {why}.")
}
