//! The learned cost model: measured samples, and training on them.

pub mod collect;
pub mod demosaic;
