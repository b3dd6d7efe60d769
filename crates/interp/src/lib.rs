//! (under construction)
pub mod buffer;
pub mod compare;
pub mod files;
pub mod npy;
pub mod picture;
