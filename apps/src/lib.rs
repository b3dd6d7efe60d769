//! (under construction)
pub mod natural;
