//! The GPUs that a scheduler gave a worker, and their numbers in the driver.
//!
//! | variable | names |
//! | --- | --- |
//! | `CUDA_VISIBLE_DEVICES` | the GPUs that the driver shows, renumbered from 0 |
//! | `SLURM_STEP_GPUS`, `SLURM_JOB_GPUS` | the GPUs as Slurm numbers them on that machine |
//!
//! With the first, the driver's numbers are therefore 0, 1, ... without gaps, whatever the variable contains. Slurm may
//! leave it empty or unset in a job that runs again; then its own variables count. Their numbers are those of the
//! driver if it shows all GPUs of the machine. Where Slurm hides the others from jobs, the driver shows exactly the
//! given GPUs, and numbers those from 0.

use super::error::LaunchError;

/// The driver's variable.
const CUDA: &str = "CUDA_VISIBLE_DEVICES";

/// Slurm's variables, in order of preference.
const SLURM: [&str; 2] = ["SLURM_STEP_GPUS", "SLURM_JOB_GPUS"];

/// The GPUs that a scheduler, or a user by `CUDA_VISIBLE_DEVICES`, gave this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    variable: &'static str,
    /// Numbers, or names such as `GPU-8932f937` and `MIG-...`.
    names: Vec<String>,
    /// Whether the driver is told to show nothing.
    is_hidden: bool,
}

/// The GPUs in an environment; `None` if it does not mention any. An empty list means no GPU.
///
/// # Errors
///
/// If a GPU is listed twice, or if a number of Slurm is invalid.
pub fn given_gpus(environment: impl Fn(&str) -> Option<String>) -> Result<Option<Given>, LaunchError> {
    let cuda = environment(CUDA);
    let is_empty = cuda.as_ref().is_some_and(|list| list.trim().is_empty());
    let in_job = environment("SLURM_JOB_ID").is_some();
    match cuda {
        Some(list) if !(is_empty && in_job) => {
            // The driver ignores a number below 0 and all that follows.
            let is_gpu = |name: &&str| !name.starts_with('-') && *name != "NoDevFiles";
            let names = words(&list).take_while(is_gpu).map(str::to_owned).collect();
            return given(CUDA, names, false).map(Some);
        }
        _ => {}
    }
    for variable in SLURM {
        let list = environment(variable).unwrap_or_default();
        let names: Vec<String> = words(&list).map(str::to_owned).collect();
        if let Some(name) = names.iter().find(|name| name.parse::<usize>().is_err()) {
            let name = name.escape_debug();
            let reason = format!("`{name}` is no number of a GPU; set {CUDA} to what this worker shall use");
            return Err(LaunchError::Given { variable, reason });
        }
        if !names.is_empty() {
            return given(variable, names, is_empty).map(Some);
        }
    }
    // A job without GPUs.
    let none = Given { variable: CUDA, names: Vec::new(), is_hidden: false };
    Ok(is_empty.then_some(none))
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn given(variable: &'static str, names: Vec<String>, is_hidden: bool) -> Result<Given, LaunchError> {
    match (1..names.len()).find(|n| names[..*n].contains(&names[*n])) {
        Some(n) => {
            let name = names[n].escape_debug();
            let reason = format!("`{name}` is there twice, and the driver then shows none; leave out one");
            Err(LaunchError::Given { variable, reason })
        }
        None => Ok(Given { variable, names, is_hidden }),
    }
}

impl Given {
    /// The GPUs, by numbers or names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Their numbers in the driver, which shows `visible` GPUs.
    ///
    /// # Errors
    ///
    /// If the driver shows fewer GPUs than were given, or none with such a number.
    pub fn indices(&self, visible: usize) -> Result<Vec<usize>, LaunchError> {
        let given = self.names.len();
        let wrong = |advice| LaunchError::Visible { variable: self.variable, given, visible, advice };
        if visible < given {
            return Err(wrong(match self.is_hidden {
                true => "unset CUDA_VISIBLE_DEVICES, which is empty and so hides all of them",
                false => "check `nvidia-smi` on this machine, and that the list names GPUs that it has",
            }));
        }
        if self.variable == CUDA || visible == given {
            return Ok((0..given).collect());
        }
        let numbers: Vec<usize> = self.names.iter().filter_map(|name| name.parse().ok()).collect();
        match numbers.iter().all(|number| *number < visible) {
            true => Ok(numbers),
            false => {
                Err(wrong("one of them has a number that the driver does not know; set CUDA_VISIBLE_DEVICES"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<Option<Given>, LaunchError> {
        given_gpus(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn indices(variables: &[(&str, &str)], visible: usize) -> Result<Vec<usize>, String> {
        let given = find(variables).unwrap().unwrap();
        given.indices(visible).map_err(|error| error.to_string())
    }

    const JOB: (&str, &str) = ("SLURM_JOB_ID", "17");

    #[test]
    fn the_driver_numbers_what_it_shows_from_0() {
        assert_eq!(find(&[]).unwrap(), None);
        assert_eq!(find(&[JOB]).unwrap(), None);
        assert_eq!(find(&[(CUDA, "2,GPU-8932f937")]).unwrap().unwrap().names(), ["2", "GPU-8932f937"]);
        assert_eq!(indices(&[(CUDA, "5, 7")], 2), Ok(vec![0, 1]));
        assert_eq!(indices(&[JOB, (CUDA, "5"), ("SLURM_JOB_GPUS", "3,4")], 1), Ok(vec![0]));
        for none in ["", "-1", "NoDevFiles", "-1,0"] {
            assert_eq!(indices(&[(CUDA, none)], 0), Ok(vec![]));
        }
        let error = indices(&[(CUDA, "5,7")], 1).unwrap_err();
        assert!(
            error.starts_with("CUDA_VISIBLE_DEVICES names 2 GPUs, and the driver shows 1; check"),
            "{error}"
        );
    }

    #[test]
    fn slurms_own_list_counts_where_cuda_has_none() {
        for cuda in [&[][..], &[(CUDA, "")]] {
            let with = |more: &[(&'static str, &'static str)]| [&[JOB], cuda, more].concat();
            assert_eq!(indices(&with(&[("SLURM_JOB_GPUS", "2")]), 4), Ok(vec![2]));
            assert_eq!(indices(&with(&[("SLURM_JOB_GPUS", "2")]), 1), Ok(vec![0]));
            assert_eq!(
                indices(&with(&[("SLURM_JOB_GPUS", "0,1"), ("SLURM_STEP_GPUS", "1")]), 4),
                Ok(vec![1])
            );
            assert!(indices(&with(&[("SLURM_JOB_GPUS", "7")]), 4).unwrap_err().contains("does not know"));
            for list in ["a", "0-3"] {
                let error = find(&with(&[("SLURM_JOB_GPUS", list)])).unwrap_err().to_string();
                assert!(error.contains("is no number of a GPU; set "), "{error}");
            }
        }
        let hidden = indices(&[JOB, (CUDA, ""), ("SLURM_JOB_GPUS", "2")], 0).unwrap_err();
        assert!(hidden.contains("names 1 GPU, and the driver shows 0; unset CUDA"), "{hidden}");
        assert_eq!(indices(&[JOB, (CUDA, "")], 0), Ok(vec![]));
        assert!(find(&[(CUDA, "1,1")]).unwrap_err().to_string().contains("`1` is there twice"));
    }
}
