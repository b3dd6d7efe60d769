//! What outlives a kernel: global memory and the time.

use warploom_codegen::ir::BufferId;
use warploom_lang::IdVec;

use crate::code::Home;
use crate::memory::Common;
use crate::shadow::{Era, GIVEN};

/// What outlives a kernel.
#[derive(Debug)]
pub struct World {
    pub global: IdVec<BufferId, Common>,
    pub clock: Clock,
}

/// The time in stamps: see [`crate::shadow`].
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    launch: u32,
    block: u32,
    now: u32,
}

/// There are no stamps left.
#[derive(Debug)]
pub struct TooLong;

impl Clock {
    /// Before the first launch.
    pub fn new() -> Clock {
        Clock { launch: GIVEN, block: GIVEN, now: GIVEN }
    }

    /// Something new starts: all that follows is behind a barrier.
    pub fn tick(&mut self) -> Result<(), TooLong> {
        self.now = self.now.checked_add(1).ok_or(TooLong)?;
        Ok(())
    }

    /// A block starts; gives its first stamp.
    pub fn start_block(&mut self) -> Result<u32, TooLong> {
        self.tick()?;
        self.block = self.now;
        Ok(self.now)
    }

    /// A launch starts.
    pub fn start_launch(&mut self) -> Result<(), TooLong> {
        self.launch = self.start_block()?;
        Ok(())
    }

    /// The first stamp of the running block.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// The stamp since the last barrier.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// What an access to an array is held against.
    pub fn era(&self, home: Home) -> Era {
        let Clock { launch, block, now } = *self;
        match home {
            Home::Global(_) => Era { written: GIVEN, since: launch, block, now },
            Home::Shared(_) | Home::Thread(_) => Era { written: block, since: block, block, now },
        }
    }
}
