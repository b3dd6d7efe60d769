//! The scalar parameters of a program in device memory.
//!
//! They are written word by word with commands that carry the value themselves. Therefore no host memory has to outlive
//! the transfer, nothing waits, and enqueued work keeps the values it was enqueued with.

use cudarc::driver::{CudaStream, sys};

use crate::cuda::failed::Doing;
use crate::error::Error;

/// The values on the device after everything enqueued so far has run; `None` if they are unknown.
#[derive(Default)]
pub(crate) struct Params {
    known: Option<Vec<u32>>,
}

impl Params {
    /// Enqueues the writes needed for these values at an address; all of them for a graph, which
    /// must not depend on earlier work.
    pub(crate) fn set(
        &mut self,
        stream: &CudaStream,
        address: u64,
        values: &[u32],
        in_a_graph: bool,
    ) -> Result<(), Error> {
        let known = self.known.take().filter(|_| !in_a_graph);
        let stale = stale(known.as_deref(), values);
        if !stale.is_empty() {
            stream.context().bind_to_thread().doing("set params")?;
        }
        for position in stale {
            let word = address + 4 * position as u64;
            // SAFETY: the memory belongs to a workspace and has a word for each value. Other streams
            // that used it are ordered with this one.
            let set = unsafe { sys::cuMemsetD32Async(word, values[position], 1, stream.cu_stream()) };
            set.result().doing("set params")?;
        }
        self.known = Some(values.to_vec());
        Ok(())
    }
}

/// Rejects a wrong number of scalars.
pub(crate) fn check_number(expected: usize, given: &[u32]) -> Result<(), Error> {
    if given.len() == expected {
        return Ok(());
    }
    Err(Error::WrongSize { what: "params".to_string(), expected: 4 * expected, given: 4 * given.len() })
}

/// The positions whose value on the device is unknown or different.
fn stale(known: Option<&[u32]>, values: &[u32]) -> Vec<usize> {
    let is_known = |position: usize| known.is_some_and(|known| known[position] == values[position]);
    (0..values.len()).filter(|&position| !is_known(position)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_written() {
        assert_eq!(stale(None, &[1, 2, 3]), [0, 1, 2]);
        assert_eq!(stale(Some(&[1, 5, 3]), &[1, 2, 3]), [1]);
        assert!(stale(Some(&[1, 2]), &[1, 2]).is_empty());
        assert!(stale(None, &[]).is_empty());
    }

    #[test]
    fn every_param_has_a_value() {
        assert!(check_number(2, &[1, 2]).is_ok());
        let refused = check_number(2, &[1]).unwrap_err().to_string();
        assert_eq!(refused, "`params` takes 8 bytes, but 4 were given");
    }
}
