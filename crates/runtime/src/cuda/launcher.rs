//! Kernels with the workspaces of their launches.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cudarc::driver::CudaStream;
use warploom_target::program::Role;

use crate::cuda::caller::{DeviceBytes, DeviceBytesMut};
use crate::cuda::capture::{Capture, beside_captures, is_capturing};
use crate::cuda::failed::Doing;
use crate::cuda::kernels::Kernels;
use crate::cuda::memory::Allocation;
use crate::cuda::stream::Stream;
use crate::cuda::workspace::{Home, Workspace};
use crate::error::Error;

/// Kernels that any number of threads and streams launch at the same time, each launch with a
/// workspace of its own.
///
/// A launch takes an idle workspace: that of an earlier launch on the same stream, or one whose last launch has ended.
/// Device memory is allocated only if there is none. A graph keeps the workspace of its launches; when it is destroyed,
/// the memory returns to the pool of the [`Gpu`](crate::Gpu).
#[derive(Debug)]
pub struct Launcher {
    kernels: Kernels,
    idle: Mutex<Vec<Workspace>>,
}

impl Launcher {
    /// A launcher without workspaces.
    pub fn new(kernels: Kernels) -> Launcher {
        Launcher { kernels, idle: Mutex::default() }
    }

    /// The kernels, which may also be launched with workspaces of the caller.
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// Enqueues one run on a stream, on the caller's memory; see [`Kernels::launch`]. While the stream
    /// is captured, all launches on it in the same capture share a workspace.
    ///
    /// # Errors
    ///
    /// As [`Kernels::launch`], and if there is no memory for a workspace.
    pub fn launch<'s>(
        &self,
        stream: impl Into<Stream<'s>>,
        inputs: &[&DeviceBytes<'_>],
        outputs: &mut [&mut DeviceBytesMut<'_>],
        params: &[u32],
    ) -> Result<(), Error> {
        let Stream(stream) = stream.into();
        let mut workspace = self.take(stream)?;
        let launched = self.kernels.launch(stream, &mut workspace, inputs, outputs, params);
        self.idle().push(workspace);
        launched
    }

    /// Runs once from host memory to host memory, on the stream of the GPU, and waits.
    ///
    /// Inputs are in the program's order. Returns the bytes of each output value, in the order of
    /// [`Role::Output`].
    ///
    /// # Errors
    ///
    /// If the inputs or params do not match the program, the memory does not suffice, or a kernel
    /// fails.
    pub fn run(&self, inputs: &[Vec<u8>], params: &[u32]) -> Result<Vec<Vec<u8>>, Error> {
        let stream = &self.kernels.memory().stream;
        if is_capturing(stream)? {
            return Err(Error::HostInCapture { program: self.kernels.program().name.clone() });
        }
        let mut read = self.allocate(|role| matches!(role, Role::Input(_)))?;
        let written = self.allocate(|role| matches!(role, Role::Output { .. }))?;
        if inputs.len() != read.len() {
            return Err(Error::WrongNumber { what: "inputs", expected: read.len(), given: inputs.len() });
        }
        for ((name, to), from) in read.iter_mut().zip(inputs) {
            to.upload(name, from)?;
        }
        // SAFETY: the memory is allocated in the order of this stream and lives until the run has
        // ended, which is waited for below.
        let inputs = read.iter().map(|(_, input)| unsafe { DeviceBytes::at(input.address(), input.bytes()) });
        let inputs: Vec<DeviceBytes<'_>> = inputs.collect();
        // SAFETY: as above.
        let outputs = written.iter().map(|(_, to)| unsafe { DeviceBytesMut::at(to.address(), to.bytes()) });
        let mut outputs: Vec<DeviceBytesMut<'_>> = outputs.collect();
        let inputs: Vec<_> = inputs.iter().collect();
        let launched = self.launch(stream, &inputs, &mut outputs.iter_mut().collect::<Vec<_>>(), params);
        // Even if one launch failed, others may be running.
        launched.and(stream.synchronize().doing("run the program"))?;
        written.iter().map(|(_, output)| output.download()).collect()
    }

    /// Returns the memory of workspaces that are not in use to the pool of the GPU. Waits for their
    /// launches.
    pub fn release_idle(&self) {
        let idle = std::mem::take(&mut *self.idle());
        drop(idle);
    }

    /// Memory for the buffers of some roles, with their names, in the order of the roles.
    fn allocate(&self, wanted: impl Fn(&Role) -> bool) -> Result<Vec<(&str, Allocation)>, Error> {
        let mut buffers: Vec<_> = self.kernels.program().buffers.iter().collect();
        buffers.retain(|buffer| wanted(&buffer.role));
        buffers.sort_by_key(|buffer| match buffer.role {
            Role::Input(input) => (input, 0),
            Role::Output { output, value } => (output, value),
            Role::Temporary => (0, 0),
        });
        let memory = self.kernels.memory();
        let allocated = buffers
            .into_iter()
            .map(|buffer| Ok((buffer.name.as_str(), memory.allocate(&buffer.name, buffer.bytes())?)));
        allocated.collect()
    }

    fn take(&self, stream: &CudaStream) -> Result<Workspace, Error> {
        let home = Home::of(stream, Capture::of(stream)?.as_ref());
        let taken = beside_captures(|| take(&mut self.idle(), home));
        taken.map_or_else(|| self.kernels.workspace(), Ok)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Workspace>> {
        // A panic elsewhere leaves the list consistent: it is changed by single calls only.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The properties that decide the choice among idle workspaces.
trait Used {
    fn home(&self) -> Home;
    fn has_finished(&self) -> bool;
}

impl Used for Workspace {
    fn home(&self) -> Home {
        self.home()
    }

    fn has_finished(&self) -> bool {
        self.has_finished()
    }
}

/// Takes a workspace for a launch, if there is one that does not make it wait for another stream. Forgets workspaces of
/// graphs whose capture has ended.
fn take<W: Used>(idle: &mut Vec<W>, home: Home) -> Option<W> {
    idle.retain(|workspace| workspace.home().capture.is_none() || workspace.home() == home);
    let own = idle.iter().position(|workspace| workspace.home() == home);
    let is_free = |workspace: &W| workspace.home().capture.is_none() && workspace.has_finished();
    let chosen = own.or_else(|| idle.iter().position(is_free));
    chosen.map(|position| idle.swap_remove(position))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Fake {
        stream: usize,
        capture: Option<u64>,
        finished: bool,
    }

    impl Used for Fake {
        fn home(&self) -> Home {
            Home { stream: self.stream, capture: self.capture }
        }

        fn has_finished(&self) -> bool {
            self.finished
        }
    }

    fn on(stream: usize, finished: bool) -> Fake {
        Fake { stream, capture: None, finished }
    }

    fn captured(stream: usize, id: u64) -> Fake {
        Fake { stream, capture: Some(id), finished: true }
    }

    #[test]
    fn a_stream_uses_its_own_workspace_again_and_waits_for_no_other() {
        let mut idle = vec![on(1, false), on(2, false), on(3, true)];
        assert_eq!(take(&mut idle, on(2, true).home()), Some(on(2, false)), "its own, though it is busy");
        assert_eq!(take(&mut idle, on(2, true).home()), Some(on(3, true)), "one that has ended");
        assert_eq!(take(&mut idle, on(2, true).home()), None, "the last one is busy elsewhere");
        assert_eq!(idle, [on(1, false)]);
    }

    #[test]
    fn graphs_share_no_workspace_with_anything_else() {
        let first = captured(1, 7);
        let mut idle = vec![on(1, false), first];
        assert_eq!(take(&mut idle, first.home()), Some(first), "the same capture on the same stream");
        assert_eq!(take(&mut idle, first.home()), None, "the stream is busy with eager launches");

        let mut idle = vec![first];
        assert_eq!(take(&mut idle, on(1, true).home()), None, "an eager launch on the same stream");
        assert!(idle.is_empty(), "the graph alone keeps it");
        let mut idle = vec![first, on(9, true)];
        assert_eq!(take(&mut idle, captured(1, 8).home()), Some(on(9, true)), "a later capture");
        let mut idle = vec![first];
        assert_eq!(take(&mut idle, captured(2, 7).home()), None, "a stream forked from the capture");
    }
}
