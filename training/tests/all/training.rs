//! Training on samples that were measured: what burn computes, and what comes of it.

use std::path::Path;
use std::sync::OnceLock;

use warploom::cost::{Analytic, Network, Weights};
use warploom::target::Device;
use warploom::tune::sample::Shard;
use warploom_training::batch::{Batch, Scaling};
use warploom_training::data::{Data, DataError, Group};
use warploom_training::evaluate::{Evaluation, Predictor, mean_score, predictions};
use warploom_training::model::{Backend, Model};
use warploom_training::train::{Options, TrainError, train};

/// Schedules of all apps, with every kind of decision.
fn data() -> &'static Data {
    static DATA: OnceLock<Data> = OnceLock::new();
    DATA.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
        let read = |name: &str| {
            let file = folder.join(format!("h200-2026-11-15-{name}.samples"));
            Shard::read(file).expect("it is part of the repository")
        };
        Data::of_shards(&["d", "g"].map(read), &Device::preset("h200").expect("it is a preset"))
    })
}

fn short() -> Options {
    Options { epochs: 20, ..Options::default() }
}

#[test]
fn samples_of_every_app_are_still_legal() {
    let data = data();
    assert_eq!(data.left_out.not_legal, 0);
    assert!(data.times.len() > 200, "only {} samples are left", data.times.len());
    for app in warploom_apps::APPS.iter() {
        assert!(data.groups.iter().any(|group| group.name == app.name), "no sample of {}", app.name);
    }
}

#[test]
fn burn_and_the_fast_path_agree() {
    let data = data();
    let device = Backend::Flex.device().expect("it is the default");
    let all: Vec<usize> = (0..data.times.len()).collect();
    let layers = Weights::random(11);
    let mut tensors = layers.tensors().clone();
    // Inputs as they are in training, so that most are within their limits.
    for (tensor, scaling) in tensors.iter_mut().zip(Scaling::of(data, &all).tensors()) {
        *tensor = scaling;
    }
    let weights = Weights::new("test", tensors).expect("the sizes are right");
    let batch = Batch::new(data, &Scaling::of_weights(&weights), &[&all], &device);
    let slow = Model::new(&weights, &device).predict(&batch).into_data();
    let slow = slow.try_to_vec::<f32>().expect("they are f32");
    let network = Network::new(&weights, &data.device);
    assert!(data.inputs.len() > 2000, "only {} kernels", data.inputs.len());
    for (sample, slow) in all.into_iter().zip(slow) {
        let (fast, slow) = (Predictor::predict(&network, data, sample), f64::from(slow).exp());
        assert!((fast - slow).abs() <= 1e-4 * slow, "sample {sample}: {fast} is not {slow}");
    }
}

#[test]
fn training_learns_what_it_sees_and_repeats_itself() {
    let data = data();
    let mut losses = Vec::new();
    let mut run = || {
        let hear = &mut |epoch: &warploom_training::train::Epoch| losses.push(epoch.loss);
        train(data, |group| group.name != "harris", None, "test", &short(), hear).expect("there are samples")
    };
    let (first, second) = (run(), run());
    assert_eq!(first.weights.to_bytes(), second.weights.to_bytes());
    assert_eq!((losses.len(), first.epoch), (40, 20));
    assert!(losses[19] < 0.9 * losses[0], "the loss went from {} to {}", losses[0], losses[19]);
    let seen: Vec<&Group> = data.groups.iter().filter(|group| group.name != "harris").collect();
    let score = |network: &Network| mean_score(data, &seen, &predictions(data, &seen, network));
    let untrained = Weights::initial(0, Scaling::of(data, &[0]).tensors()).expect("the sizes are right");
    let before = score(&Network::new(&untrained, &data.device)).expect("there are groups");
    let after = score(&Network::new(&first.weights, &data.device)).expect("there are groups");
    assert!(after.spearman > before.spearman, "{after:?} is not better than {before:?}");
}

#[test]
fn restrained_corrections_leave_the_analytic_model_as_it_is() {
    let data = data();
    let all: Vec<&Group> = data.groups.iter().collect();
    let plain = predictions(data, &all, &Analytic::new(&data.device)).concat();
    // How far predictions are from those of the analytic model, as a logarithm.
    let distance = |restraint: f32| {
        let options = Options { epochs: 4, restraint, ..Options::default() };
        let trained = train(data, |_| true, None, "test", &options, &mut |_| {}).expect("there are samples");
        let network = Network::new(&trained.weights, &data.device);
        let learned = predictions(data, &all, &network).concat();
        learned.iter().zip(&plain).map(|(one, other)| (one / other).ln().abs()).sum::<f64>()
            / plain.len() as f64
    };
    let (free, restrained) = (distance(0.0), distance(1000.0));
    assert!(restrained < 0.2 * free, "{restrained} is not far below {free}");
}

#[test]
fn weights_can_be_trained_further() {
    let data = data();
    let options = Options { epochs: 1, ..Options::default() };
    let start = train(data, |_| true, None, "start", &options, &mut |_| {}).expect("there are samples");
    let more = train(data, |_| true, Some(&start.weights), "more", &options, &mut |_| {});
    let more = more.expect("there are samples").weights;
    assert_ne!(more.tensors()[4], start.weights.tensors()[4]);
    assert_eq!(more.tensors()[..4], start.weights.tensors()[..4], "inputs keep their meaning");
}

#[test]
fn every_app_is_compared_with_chance() {
    let evaluation = Evaluation::new(data(), &|_| None);
    assert_eq!(evaluation.apps.len(), 17);
    assert!(evaluation.random.is_none(), "there are no random pipelines among the samples");
    let all = evaluation.all_apps.expect("there are apps");
    assert!(1.0 < all.analytic.top1 && all.analytic.top1 < all.chance.top1, "{all:?}");
    assert_eq!(all.learned, None);
}

#[test]
fn nothing_to_train_on_is_said() {
    let nothing = train(data(), |_| false, None, "test", &short(), &mut |_| {});
    assert!(matches!(nothing, Err(TrainError::Nothing)));
    let missing = Data::read(Path::new("no/such/folder"), None).unwrap_err();
    assert!(matches!(missing, DataError::Folder { .. }));
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let error = Data::read(&sources, None).unwrap_err();
    assert!(error.to_string().starts_with("there are no .samples files in"), "{error}");
}
