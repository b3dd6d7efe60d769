//! Workers on this machine.

use std::num::NonZero;
use std::path::Path;

use super::error::LaunchError;
use super::plan::{Process, Start};
use super::roles::Roles;
use super::{Worker, text};

/// `count` workers, which share out the GPUs. If there are more workers than GPUs, the rest have the roles without a
/// GPU, and those with a GPU only measure, as in a cluster.
pub(super) fn starts(count: NonZero<u32>, worker: &Worker, folder: &Path) -> Result<Vec<Start>, LaunchError> {
    text(folder)?;
    let (count, gpus) = (count.get() as usize, &worker.gpus);
    let start = |number: usize| {
        let own: Vec<usize> = gpus.iter().copied().skip(number).step_by(count).collect();
        let roles = match (gpus.is_empty() || gpus.len() >= count, own.is_empty()) {
            (true, _) => Roles::all(),
            (false, false) => Roles::run(),
            (false, true) => Roles::without_gpu(),
        };
        let log = folder.join(format!("worker-{}.log", number + 1));
        Start::Process(Process { arguments: worker.command(&roles, &own), roles, log })
    };
    Ok((0..count).map(start).collect())
}

#[cfg(test)]
mod tests {
    use super::super::Placement;
    use super::*;

    fn ends(count: u32, gpus: &[usize]) -> Vec<String> {
        let worker = Worker::new("warploom", "/farm.json").unwrap();
        let worker = worker.with_gpus(gpus.to_vec()).with_arguments(vec!["--quiet".to_owned()]);
        let plan = Placement::Local(NonZero::new(count).unwrap()).plan(&worker, Path::new("/x")).unwrap();
        let end = |start| match start {
            Start::Process(Process { arguments, .. }) => arguments[4..].join(" "),
            other => panic!("{other:?}"),
        };
        plan.starts.into_iter().map(end).collect()
    }

    #[test]
    fn gpus_are_shared_out() {
        assert_eq!(ends(1, &[]), ["--role all --quiet"]);
        assert_eq!(ends(2, &[]), ["--role all --quiet", "--role all --quiet"]);
        assert_eq!(ends(1, &[0, 3]), ["--role all --gpu 0,3 --quiet"]);
        assert_eq!(ends(2, &[0, 3, 5]), ["--role all --gpu 0,5 --quiet", "--role all --gpu 3 --quiet"]);
        let rest =
            ["--role run --gpu 0 --quiet", "--role run --gpu 1 --quiet", "--role propose,compile --quiet"];
        assert_eq!(ends(3, &[0, 1]), rest);
    }
}
