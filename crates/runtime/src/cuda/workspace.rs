//! The device memory that one run of a program at a time needs besides its inputs and outputs.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream};
use warploom_target::program::Role;

use crate::cuda::capture::{Capture, beside_captures};
use crate::cuda::failed::Doing;
use crate::cuda::kernels::Loaded;
use crate::cuda::memory::{Allocation, StreamMemory};
use crate::cuda::params::Params;
use crate::error::Error;

/// Temporaries and params of one program, made by [`Kernels::workspace`](crate::Kernels::workspace).
///
/// Launches that share a workspace run one after the other, even on different streams. Dropping it waits for its last
/// launch. A captured graph keeps its own resources.
pub struct Workspace {
    held: Arc<Held>,
    params: Params,
    /// The end of the last use outside graphs.
    used: CudaEvent,
    home: Home,
}

/// The memory, and the code that uses it.
struct Held {
    loaded: Arc<Loaded>,
    /// One entry per buffer of the program; `None` for inputs and outputs.
    temporaries: Vec<Option<Allocation>>,
    params: Allocation,
}

/// The place of a workspace's last use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home {
    /// The stream's handle.
    pub(crate) stream: usize,
    /// The number of the capture, if the use was captured.
    pub(crate) capture: Option<u64>,
}

impl Home {
    pub(crate) fn of(stream: &CudaStream, capture: Option<&Capture>) -> Home {
        Home { stream: stream.cu_stream() as usize, capture: capture.map(|capture| capture.id) }
    }
}

impl Workspace {
    pub(crate) fn new(loaded: &Arc<Loaded>, memory: &StreamMemory) -> Result<Workspace, Error> {
        beside_captures(|| {
            let stream = &memory.stream;
            let capture = Capture::of(stream)?;
            let allocate = |what: &str, bytes| match capture {
                Some(_) => memory.allocate_in_capture(what, bytes),
                None => memory.allocate(what, bytes),
            };
            let temporaries = loaded.program.buffers.iter().map(|buffer| match buffer.role {
                Role::Temporary => allocate(&buffer.name, buffer.bytes()).map(Some),
                Role::Input(_) | Role::Output { .. } => Ok(None),
            });
            let temporaries = temporaries.collect::<Result<_, Error>>()?;
            let params = allocate("params", 4 * loaded.program.params)?;
            let used = stream.context().new_event(None).doing("create an event")?;
            if capture.is_none() {
                // Other streams must not use the memory before it is allocated on this one.
                used.record(stream).doing("record an event")?;
            }
            let held = Arc::new(Held { loaded: loaded.clone(), temporaries, params });
            Ok(Workspace { held, params: Params::default(), used, home: Home::of(stream, None) })
        })
    }

    /// Rejects a workspace of other kernels.
    pub(crate) fn check_owner(&self, loaded: &Arc<Loaded>) -> Result<(), Error> {
        if Arc::ptr_eq(&self.held.loaded, loaded) {
            return Ok(());
        }
        Err(Error::OtherWorkspace { program: loaded.program.name.clone() })
    }

    pub(crate) fn home(&self) -> Home {
        self.home
    }

    /// Whether the last use outside graphs has ended.
    pub(crate) fn has_finished(&self) -> bool {
        self.used.is_complete()
    }

    /// Uses the memory on a stream: after the previous use, and before the next.
    pub(crate) fn on(
        &mut self,
        stream: &CudaStream,
        capture: Option<&Capture>,
        action: impl FnOnce(&mut Workspace) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let home = Home::of(stream, capture);
        let doing = "order a launch after the last one with the same workspace";
        match (capture, self.home.capture) {
            (_, Some(_)) if home != self.home => {
                return Err(Error::WorkspaceInGraph { program: self.held.loaded.program.name.clone() });
            }
            (_, Some(_)) => {}
            (None, None) => stream.wait(&self.used).doing(doing)?,
            (Some(capture), None) => {
                // A graph cannot wait for an event from before its capture.
                beside_captures(|| self.used.synchronize()).doing(doing)?;
                capture.keep(self.held.clone())?;
            }
        }
        self.home = home;
        let done = action(self);
        if capture.is_none() {
            // Some of the launches may be enqueued even if one failed.
            self.used.record(stream).doing("record the end of a launch")?;
        }
        done
    }

    /// Sets the scalars for everything enqueued from now on.
    pub(crate) fn set_params(&mut self, stream: &CudaStream, params: &[u32]) -> Result<(), Error> {
        self.params.set(stream, self.params_address(), params, self.home.capture.is_some())
    }

    pub(crate) fn params_address(&self) -> u64 {
        self.held.params.address()
    }

    /// Fills the temporaries with a byte, on the stream of their GPU.
    pub(crate) fn fill(&mut self, byte: u8) -> Result<(), Error> {
        self.held.temporaries.iter().flatten().try_for_each(|temporary| temporary.fill(byte))
    }

    /// The memory of a temporary; `None` for inputs and outputs.
    pub(crate) fn temporary(&self, position: usize) -> Option<&Allocation> {
        self.held.temporaries[position].as_ref()
    }

    /// The address of each buffer of the program; 0 for inputs and outputs, to be filled in.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        self.held.temporaries.iter().map(|own| own.as_ref().map_or(0, Allocation::address)).collect()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // If a kernel failed, there is nothing to wait for.
        if self.home.capture.is_none() {
            let _ = beside_captures(|| self.used.synchronize());
        }
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("program", &self.held.loaded.program.name).finish()
    }
}
