//! Training in the course of autotuning.

use warploom::cost::{Network, Weights};
use warploom::target::Device;
use warploom::tune::retrain::Retrain;
use warploom::tune::sample::Shard;
use warploom_training::retrain::Retrainer;
use warploom_training::train::Options;

#[test]
fn weights_change_and_predict_and_nothing_is_an_error() {
    let samples = concat!(env!("CARGO_MANIFEST_DIR"), "/data/h200-2026-11-15-c.samples");
    let shard = Shard::read(samples).expect("it is whole");
    let device = Device::preset("h200").expect("it is known");
    let mut retrainer = Retrainer { options: Options { epochs: 2, ..Options::default() } };
    let first = retrainer.retrain(&shard, &device, None).expect("there are samples");
    let second = retrainer.retrain(&shard, &device, Some(&first)).expect("there are samples");
    assert_ne!(first.to_bytes(), second.to_bytes());
    assert_eq!(second.tensors().len(), Weights::random(1).tensors().len());
    assert!(second.tensors().iter().flatten().all(|number| number.is_finite()));
    let _ = Network::new(&second, &device);
    let other = Device::preset("v100").expect("it is known");
    assert!(retrainer.retrain(&shard, &other, None).is_err(), "there are none of that device");
}
