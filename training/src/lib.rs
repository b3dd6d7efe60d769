//! What is learned: the cost model, from measured samples, and the filters of an app.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`collect`] | measuring schedules on a GPU |
//! | [`data`] | samples as the network sees them, in groups of one pipeline at one size |
//! | [`model`] | the network in burn: the same numbers as [`warploom::cost::Network`], and their gradients |
//! | [`batch`] | groups of samples as tensors |
//! | [`train`] | the loop: what is minimised, when it stops |
//! | [`retrain`] | training in the course of autotuning |
//! | [`score`] | how good predictions are: ranks, regret, calibration |
//! | [`evaluate`] | the scores of models over groups |
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
