//! An executable on another thread than the one it belongs to, and one workspace on two threads.

use std::thread;

use warploom_runtime::cuda::CudaStream;
use warploom_runtime::{Error, Executable, Execute, Kernels, Workspace};

fn moved(mut executable: Executable) {
    thread::spawn(move || executable.run());
}

fn shared(kernels: &Kernels, stream: &CudaStream, workspace: &mut Workspace) {
    let mut run = || -> Result<(), Error> { kernels.launch(stream, workspace, &[], &mut [], &[]) };
    thread::scope(|scope| {
        scope.spawn(&mut run);
        scope.spawn(&mut run);
    });
}

fn main() {}
