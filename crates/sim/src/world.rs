//! The state that outlives a kernel: global memory and the time.

use warploom_codegen::ir::BufferId;
use warploom_lang::IdVec;

use crate::code::Home;
use crate::memory::Common;
use crate::observe::Observer;
use crate::shadow::{Era, GIVEN};

/// The state that outlives a kernel.
pub struct World<'o> {
    pub global: IdVec<BufferId, Common>,
    pub clock: Clock,
    /// The observer of every access, if any.
    pub observer: Option<&'o mut dyn Observer>,
}

/// The time in stamps: see [`crate::shadow`].
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    launch: u32,
    block: u32,
    now: u32,
}

/// The stamps are used up.
#[derive(Debug)]
pub struct TooLong;

impl Clock {
    /// The time before the first launch.
    pub fn new() -> Clock {
        Clock { launch: GIVEN, block: GIVEN, now: GIVEN }
    }

    /// Starts a new stamp, as a barrier does.
    pub fn tick(&mut self) -> Result<(), TooLong> {
        self.now = self.now.checked_add(1).ok_or(TooLong)?;
        Ok(())
    }

    /// Starts a block and returns its first stamp.
    pub fn start_block(&mut self) -> Result<u32, TooLong> {
        self.tick()?;
        self.block = self.now;
        Ok(self.now)
    }

    /// Starts a launch.
    pub fn start_launch(&mut self) -> Result<(), TooLong> {
        self.launch = self.start_block()?;
        Ok(())
    }

    /// The first stamp of the running block.
    pub fn block(&self) -> u32 {
        self.block
    }

    /// The current stamp, which started at the last barrier.
    pub fn now(&self) -> u32 {
        self.now
    }

    /// The stamps to compare with an access to an array.
    pub fn era(&self, home: Home) -> Era {
        let Clock { launch, block, now } = *self;
        match home {
            Home::Global(_) => Era { written: GIVEN, since: launch, block, now },
            Home::Shared(_) | Home::Thread(_) => Era { written: block, since: block, block, now },
        }
    }
}
