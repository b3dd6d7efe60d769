//! Training: the cost model, from measured samples, and the filters of an app.
//!
//! | module | contents |
//! | --- | --- |
//! | [`collect`] | measuring schedules on a GPU |
//! | [`data`] | samples as inputs of the network, in groups of one pipeline at one size |
//! | [`model`] | the network in burn: the same values as [`warploom::cost::Network`], with gradients |
//! | [`batch`] | groups of samples as tensors |
//! | [`train`] | the training loop and its loss |
//! | [`retrain`] | training during autotuning |
//! | [`score`] | quality of predictions: ranks, regret, calibration |
//! | [`evaluate`] | scores of models over groups |
//! | [`demosaic`] | the filters of the app `learned_demosaic` |

pub mod batch;
pub mod collect;
pub mod data;
pub mod demosaic;
pub mod evaluate;
pub mod model;
pub mod retrain;
pub mod score;
pub mod train;
