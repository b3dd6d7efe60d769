//! Workers as array jobs of Slurm, and their scripts.
//!
//! Tasks with a GPU have the role `run`, and those without `propose,compile`. If there are none without, the others
//! have all roles. Every task is a worker of its own, so one that Slurm requeues simply runs again.

use std::fmt;
use std::num::NonZero;
use std::path::Path;
use std::str::FromStr;

use super::error::LaunchError;
use super::plan::{Job, Start};
use super::quote;
use super::roles::Roles;
use super::{Worker, text};

/// The most tasks of one array.
const MOST: u32 = 10_000;

/// Numbers of tasks. The text form is `gpu:8,cpu:4`, or with a kind of GPU `gpu:h100:8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slurm {
    /// Tasks with a GPU each.
    gpu: Option<NonZero<u32>>,
    /// The kind of GPU, as the cluster names it.
    kind: Option<String>,
    /// Tasks without a GPU.
    cpu: Option<NonZero<u32>>,
    /// More options.
    options: Vec<SbatchOption>,
}

/// One of the two arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Array {
    Gpu,
    Cpu,
}

/// An option of `sbatch`, as in a line of a script: `--partition=long`. After `gpu:` or `cpu:` it applies only to tasks
/// with a GPU, or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SbatchOption {
    array: Option<Array>,
    text: String,
}

impl Slurm {
    /// The same with more options, which follow those of the scripts and so override them.
    pub fn with_options(self, options: Vec<SbatchOption>) -> Slurm {
        Slurm { options, ..self }
    }

    /// The jobs to submit.
    pub(super) fn starts(&self, worker: &Worker, folder: &Path) -> Result<Vec<Start>, LaunchError> {
        let mut jobs = Vec::new();
        for (array, tasks) in [(Array::Gpu, self.gpu), (Array::Cpu, self.cpu)] {
            if let Some(tasks) = tasks {
                jobs.push(Start::Job(self.job(array, tasks.get(), worker, folder)?));
            }
        }
        Ok(jobs)
    }

    fn job(&self, array: Array, tasks: u32, worker: &Worker, folder: &Path) -> Result<Job, LaunchError> {
        let (name, roles) = match (array, self.cpu) {
            (Array::Gpu, None) => ("all", Roles::all()),
            (Array::Gpu, Some(_)) => ("run", Roles::run()),
            (Array::Cpu, _) => ("compile", Roles::without_gpu()),
        };
        let title = format!("warploom-farm-{name}");
        let mut script = format!("#!/bin/sh\n#SBATCH --job-name={title}\n#SBATCH --array=0-{}\n", tasks - 1);
        if array == Array::Gpu {
            let kind = self.kind.as_ref().map(|kind| format!("{kind}:")).unwrap_or_default();
            script += &format!("#SBATCH --gres=gpu:{kind}1\n");
        }
        let output = log_name(folder, name)?;
        script += &format!("#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output={output}\n");
        for option in self.options.iter().filter(|option| option.array.is_none_or(|only| only == array)) {
            script += &format!("#SBATCH {}\n", option.text);
        }
        if array == Array::Gpu {
            script += "# Slurm may leave this empty in a job that runs again, which would hide all GPUs.\n";
            script += "[ -n \"${CUDA_VISIBLE_DEVICES-}\" ] || unset CUDA_VISIBLE_DEVICES\n";
        }
        script += &format!("exec {}\n", quote::line(&worker.command(&roles, &[])));
        Ok(Job { name: title, roles, tasks, path: folder.join(format!("{name}.sh")), script })
    }
}

/// The logs of an array's tasks, as an option's value: Slurm's quoting differs from a shell's.
fn log_name(folder: &Path, name: &str) -> Result<String, LaunchError> {
    let folder = text(folder)?;
    if folder.contains(['%', '\\', '"']) {
        return Err(LaunchError::SlurmPath { path: folder.to_owned() });
    }
    let path = format!("{folder}/{name}-%A_%a.log");
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,@%".contains(c);
    Ok(if path.chars().all(is_plain) { path } else { format!("\"{path}\"") })
}

impl fmt::Display for Slurm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_ref().map(|kind| format!("{kind}:")).unwrap_or_default();
        match (self.gpu, self.cpu) {
            (Some(gpu), Some(cpu)) => write!(f, "gpu:{kind}{gpu},cpu:{cpu}"),
            (Some(gpu), None) => write!(f, "gpu:{kind}{gpu}"),
            (None, Some(cpu)) => write!(f, "cpu:{cpu}"),
            (None, None) => Ok(()),
        }
    }
}

impl FromStr for Slurm {
    type Err = LaunchError;

    fn from_str(text: &str) -> Result<Slurm, LaunchError> {
        let wrong = |reason: String| LaunchError::Tasks { text: text.to_owned(), reason };
        let mut slurm = Slurm { gpu: None, kind: None, cpu: None, options: Vec::new() };
        for part in text.split(',') {
            let (array, rest) = part.split_once(':').unwrap_or((part, ""));
            let (kind, number) = match rest.rsplit_once(':') {
                Some((kind, number)) if array == "gpu" && is_kind(kind) => (Some(kind.to_owned()), number),
                _ => (None, rest),
            };
            let place = match array {
                "gpu" => &mut slurm.gpu,
                "cpu" => &mut slurm.cpu,
                _ => return Err(wrong("give numbers of tasks as in `gpu:8,cpu:4`".to_owned())),
            };
            let tasks = number.parse().ok().filter(|tasks: &NonZero<u32>| tasks.get() <= MOST);
            let tasks = tasks.ok_or_else(|| {
                wrong(format!("after `{array}:` comes a number from 1 to {MOST}, as in `gpu:8,cpu:4`"))
            })?;
            if place.replace(tasks).is_some() {
                return Err(wrong(format!("`{array}` is there twice; leave out one")));
            }
            slurm.kind = slurm.kind.or(kind);
        }
        Ok(slurm)
    }
}

/// Whether a text may be the name of a kind of GPU.
fn is_kind(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

impl fmt::Display for SbatchOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let array = match self.array {
            None => "",
            Some(Array::Gpu) => "gpu:",
            Some(Array::Cpu) => "cpu:",
        };
        write!(f, "{array}{}", self.text)
    }
}

impl FromStr for SbatchOption {
    type Err = LaunchError;

    fn from_str(text: &str) -> Result<SbatchOption, LaunchError> {
        let wrong = |reason| LaunchError::SbatchOption { text: text.to_owned(), reason };
        let (array, option) = match (text.strip_prefix("gpu:"), text.strip_prefix("cpu:")) {
            (Some(rest), _) => (Some(Array::Gpu), rest),
            (_, Some(rest)) => (Some(Array::Cpu), rest),
            _ => (None, text),
        };
        if option.chars().any(char::is_control) {
            return Err(wrong(
                "it contains a line break or another control character; give each option by itself",
            ));
        }
        if !option.starts_with('-') {
            return Err(wrong("it does not begin with `-`; give an option as in `--partition=long`"));
        }
        Ok(SbatchOption { array, text: option.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Placement;
    use super::*;

    fn scripts(tasks: &str, options: &[&str], folder: &str) -> Result<Vec<String>, LaunchError> {
        let slurm: Slurm = tasks.parse()?;
        let options: Result<Vec<SbatchOption>, _> = options.iter().map(|option| option.parse()).collect();
        let worker = Worker::new("/opt/my tools/warploom", "/home/ann/it's/farm.json")?;
        let plan = Placement::Slurm(slurm.with_options(options?)).plan(&worker, Path::new(folder))?;
        let script = |start| match start {
            Start::Job(Job { script, .. }) => script,
            other => panic!("{other:?}"),
        };
        Ok(plan.starts.into_iter().map(script).collect())
    }

    #[test]
    fn tasks_are_read_and_printed() {
        for text in ["gpu:8,cpu:4", "gpu:1", "cpu:10000", "gpu:h100.80gb:8,cpu:1"] {
            assert_eq!(text.parse::<Slurm>().unwrap().to_string(), text);
        }
        assert_eq!("cpu:4,gpu:8".parse::<Slurm>().unwrap().to_string(), "gpu:8,cpu:4");
        for text in [
            "",
            "8",
            "gpu",
            "gpu:",
            "gpu:0",
            "gpu:-1",
            "gpu:10001",
            "gpu:1,gpu:1",
            "gpu:1,",
            "tpu:1",
            "cpu:x:1",
            "gpu:a b:1",
            "gpu::1",
            "gpu:1\n",
        ] {
            let error = text.parse::<Slurm>().unwrap_err().to_string();
            assert!(error.starts_with("cannot read the tasks `"), "{text}: {error}");
        }
    }

    #[test]
    fn tasks_with_a_gpu_do_all_if_there_are_no_others() {
        assert_eq!(
            scripts("gpu:8,cpu:4", &[], "/home/ann/farm.jobs").unwrap(),
            [
                "#!/bin/sh\n\
                 #SBATCH --job-name=warploom-farm-run\n\
                 #SBATCH --array=0-7\n\
                 #SBATCH --gres=gpu:1\n\
                 #SBATCH --requeue\n\
                 #SBATCH --open-mode=append\n\
                 #SBATCH --output=/home/ann/farm.jobs/run-%A_%a.log\n\
                 # Slurm may leave this empty in a job that runs again, which would hide all GPUs.\n\
                 [ -n \"${CUDA_VISIBLE_DEVICES-}\" ] || unset CUDA_VISIBLE_DEVICES\n\
                 exec '/opt/my tools/warploom' farm worker '/home/ann/it'\"'\"'s/farm.json' --role run\n",
                "#!/bin/sh\n\
                 #SBATCH --job-name=warploom-farm-compile\n\
                 #SBATCH --array=0-3\n\
                 #SBATCH --requeue\n\
                 #SBATCH --open-mode=append\n\
                 #SBATCH --output=/home/ann/farm.jobs/compile-%A_%a.log\n\
                 exec '/opt/my tools/warploom' farm worker '/home/ann/it'\"'\"'s/farm.json' --role propose,compile\n",
            ]
        );
        let all = scripts("gpu:1", &[], "/x").unwrap();
        assert_eq!(all.len(), 1);
        assert!(all[0].contains("--array=0-0\n") && all[0].ends_with("--role all\n"), "{}", all[0]);
    }

    #[test]
    fn options_go_to_the_arrays_they_are_for() {
        let options = ["--account=ann", "gpu:--partition=a100", "cpu:--cpus-per-task=8"];
        let scripts = scripts("gpu:h100:2,cpu:1", &options, "/x").unwrap();
        assert!(scripts[0].contains("--gres=gpu:h100:1\n"), "{}", scripts[0]);
        assert!(
            scripts[0].contains("\n#SBATCH --account=ann\n#SBATCH --partition=a100\n#"),
            "{}",
            scripts[0]
        );
        assert!(
            scripts[1].contains("\n#SBATCH --account=ann\n#SBATCH --cpus-per-task=8\nexec"),
            "{}",
            scripts[1]
        );
        for option in options {
            assert_eq!(option.parse::<SbatchOption>().unwrap().to_string(), option);
        }
        for text in ["", "partition", "--a=b\nrm -rf x", "gpu:", "gpu:cpu:--x", " --x", "--x\r"] {
            let error = text.parse::<SbatchOption>().unwrap_err().to_string();
            assert!(error.contains(" to sbatch: it ") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn folders_of_logs_are_quoted_as_slurm_reads_them() {
        let script = scripts("gpu:1", &[], "/home/ann/my #1 farm's").unwrap().remove(0);
        assert!(script.contains("--output=\"/home/ann/my #1 farm's/all-%A_%a.log\"\n"), "{script}");
        for folder in ["/a%b", "/a\\b", "/a\"b"] {
            let error = scripts("gpu:1", &[], folder).unwrap_err().to_string();
            assert!(error.contains("Slurm's logs"), "{error}");
        }
    }
}
