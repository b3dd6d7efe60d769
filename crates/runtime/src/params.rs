//! The scalar parameters of a program in device memory.
//!
//! They are written word by word with commands that carry the value themselves. Therefore no host
//! memory has to outlive the transfer, nothing waits, and everything that is enqueued keeps the
//! values it was enqueued with.

use cudarc::driver::sys;

use crate::error::{Doing, Error};
use crate::memory::{Allocation, Memory};

pub(crate) struct Params {
    words: Allocation,
    number: usize,
    /// The values on the device after everything enqueued so far has run; `None` if they are
    /// unknown.
    known: Option<Vec<u32>>,
    /// Whether a caller's graph also writes them, at unknown times.
    in_a_graph: bool,
}

impl Params {
    pub(crate) fn new(memory: &Memory, number: usize) -> Result<Params, Error> {
        let words = memory.allocate("params", number * 4)?;
        Ok(Params { words, number, known: None, in_a_graph: false })
    }

    pub(crate) fn address(&self) -> u64 {
        self.words.address()
    }

    /// Enqueues the writes needed for these values. During a capture it writes all of them: the
    /// graph must not depend on earlier work.
    pub(crate) fn set(&mut self, values: &[u32], capturing: bool) -> Result<(), Error> {
        if values.len() != self.number {
            let (expected, given) = (4 * self.number, 4 * values.len());
            return Err(Error::WrongSize { what: "params".to_string(), expected, given });
        }
        self.in_a_graph |= capturing;
        let known = self.known.take().filter(|_| !self.in_a_graph);
        for position in stale(known.as_deref(), values) {
            self.words.set_word(position, values[position])?;
        }
        self.known = Some(values.to_vec());
        Ok(())
    }
}

/// The positions whose value on the device is unknown or different.
fn stale(known: Option<&[u32]>, values: &[u32]) -> Vec<usize> {
    let is_known = |position: usize| known.is_some_and(|known| known[position] == values[position]);
    (0..values.len()).filter(|&position| !is_known(position)).collect()
}

impl Allocation {
    /// Enqueues the write of one 32-bit word, at a position counted in words.
    fn set_word(&mut self, position: usize, value: u32) -> Result<(), Error> {
        let stream = self.stream();
        stream.context().bind_to_thread().doing("set params")?;
        let address = self.address() + 4 * position as u64;
        // SAFETY: the memory is ours, has a word at that position, and is used on this stream only.
        unsafe { sys::cuMemsetD32Async(address, value, 1, stream.cu_stream()) }.result().doing("set params")
    }
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
}
