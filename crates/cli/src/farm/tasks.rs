//! Tasks of a farm, as text that every worker reads.

mod tuning;

use serde::{Deserialize, Serialize};
use warploom::app::App;
use warploom::farm::worker::{Opened, ProposeError, Proposed, Site, Workshop};
use warploom::target::Device;
#[cfg(feature = "train")]
use warploom_training::collect::Collecting;

use crate::error::Error;
#[cfg(feature = "train")]
use crate::names::find_app;

use tuning::Tuning;

/// The format of tasks.
const VERSION: u32 = 2;

/// What a run is about.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Task {
    /// Something to tune.
    Tune(Tuning),
    /// A unit of a collection of samples.
    #[cfg(feature = "train")]
    Collect(Collecting),
}

/// A task as it is stored.
#[derive(Serialize, Deserialize)]
struct Stored<T> {
    version: u32,
    #[serde(flatten)]
    task: T,
}

impl Task {
    /// The task of tuning an app, an operator or a file with some options.
    pub(super) fn tune(what: &str, options: &[String]) -> Result<Task, Error> {
        Ok(Task::Tune(Tuning::new(what, options)?))
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(&Stored { version: VERSION, task: self }).unwrap_or_default()
    }

    fn parse(text: &str) -> Result<Task, String> {
        let unreadable = |error: serde_json::Error| format!("the task cannot be read: {error}");
        let Stored { version, .. } = serde_json::from_str::<Stored<Anything>>(text).map_err(unreadable)?;
        if version != VERSION {
            return Err(format!("the task has format {version}, and this program reads {VERSION}"));
        }
        Ok(serde_json::from_str::<Stored<Task>>(text).map_err(unreadable)?.task)
    }

    /// The error that every worker would find in the task.
    pub(super) fn check(&self, apps: &[App]) -> Result<(), Error> {
        match self {
            Task::Tune(tuning) => tuning.check(apps),
            #[cfg(feature = "train")]
            Task::Collect(_) => Ok(()),
        }
    }
}

/// A task of any version.
#[derive(Deserialize)]
struct Anything {}

/// What this program knows of tasks.
pub(super) struct Shop<'a> {
    pub(super) apps: &'a [App],
}

#[cfg(feature = "train")]
impl<'a> Shop<'a> {
    fn find(&self, name: &str) -> Result<&'a App, String> {
        find_app(self.apps, name).map_err(|error| error.to_string())
    }
}

impl Workshop for Shop<'_> {
    fn open(&self, task: &str, device: &Device) -> Result<Opened, String> {
        match Task::parse(task)? {
            Task::Tune(tuning) => tuning.open(self.apps, device),
            #[cfg(feature = "train")]
            Task::Collect(collecting) => collecting.open(&|name| self.find(name)),
        }
    }

    fn propose(&self, task: &str, site: Site<'_>) -> Result<Proposed, ProposeError> {
        match Task::parse(task).map_err(ProposeError::Task)? {
            Task::Tune(tuning) => tuning.propose(self.apps, site),
            #[cfg(feature = "train")]
            Task::Collect(collecting) => {
                let text = |unit| Task::Collect(unit).to_json();
                collecting.propose(&|name| self.find(name), text, site)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "train")]
    use warploom_training::collect::Options;

    use super::*;

    #[test]
    fn tasks_are_read_as_they_were_written() {
        let options = ["--iterations", "20"].map(str::to_owned);
        let tune = Task::tune("harris", &options).unwrap();
        assert_eq!(
            tune.to_json(),
            r#"{"version":2,"tune":{"arguments":["harris","--iterations","20"],"content":null}}"#
        );
        assert_eq!(Task::parse(&tune.to_json()), Ok(tune));
    }

    #[test]
    fn what_is_no_task_is_refused() {
        for (text, why) in [
            (r#"{"version":1,"arguments":["harris"]}"#, "the task has format 1, and this program reads 2"),
            (r#"{"version":3,"dance":{}}"#, "the task has format 3, and this program reads 2"),
            (r#"{"version":2,"dance":{}}"#, "the task cannot be read: "),
            ("{}", "the task cannot be read: missing field `version`"),
        ] {
            let error = Task::parse(text).unwrap_err();
            assert!(error.starts_with(why), "{text}: {error}");
        }
    }

    #[cfg(feature = "train")]
    #[test]
    fn units_are_read_as_they_were_written() {
        let options = Options {
            pipelines: 3,
            per_pipeline: 24,
            per_app: 25,
            verify: 0.03,
            seed: u64::MAX,
            threads: 1,
            time_limit: None,
        };
        let blur = warploom_apps::find("blur").unwrap();
        let units = Collecting::all(&options, &[blur]);
        let names: Vec<String> = units.iter().map(Collecting::name).collect();
        assert_eq!(names, ["random 0", "random 1", "blur round 1", "random 2", "blur round 2"]);
        let samples: Vec<usize> = units.iter().map(Collecting::samples).collect();
        assert_eq!(samples, [24, 24, 20, 24, 5]);
        for unit in units {
            let task = Task::Collect(unit);
            assert_eq!(Task::parse(&task.to_json()), Ok(task));
        }
    }
}
