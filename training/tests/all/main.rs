//! The tests of this crate, in one program: building many takes longer than running them.

mod collect;
#[cfg(feature = "flex")]
mod demosaic;
mod retrain;
mod training;
