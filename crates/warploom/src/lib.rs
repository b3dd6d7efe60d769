//! (under construction)
pub mod app;

pub use warploom_interp as interp;
pub use warploom_lang as lang;
pub use warploom_schedule as schedule;
pub use warploom_target as target;

/// What almost every program needs.
pub mod prelude {
    pub use warploom_interp::buffer::Buffer;
    pub use warploom_lang::*;
}
