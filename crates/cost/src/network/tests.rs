//! Compares the fast path with a slow one in `f64` that shares none of its code.

use warploom_lang::*;
use warploom_schedule::{NodeId, StageId};
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::analytic::Constants;
use crate::kernel::{RowSource, StageRow};
use crate::schema::StageFeatures;

/// A seeded random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number from ten orders of magnitude; sometimes 0.
    fn count(&mut self) -> f64 {
        let size = self.next() * 10.0;
        if self.next() < 0.2 { 0.0 } else { 10f64.powf(size).round() }
    }
}

fn dag() -> Dag {
    let (x, y) = vars!(x, y);
    let input = Input::u8("input", 2);
    let gray = func("gray", (x, y), input.at((x, y)).cast(Type::F32) / 255.0);
    let blur = func("blur", (x, y), sqrt(gray.at((x - 1, y)) + gray.at((x, y)) + gray.at((x + 1, y))) * 0.5);
    let out = func("out", (x, y), select(blur.at((x, y)).lt(0.5), blur.at((x, y)), gray.at((y, x))));
    Dag::new(&Pipeline::new("shapes", [out]).expect("it is right"))
}

/// Lists the fields, because the macro that defines the features cannot set one by number.
fn features(random: &mut Random) -> StageFeatures {
    let mut count = || random.count();
    let mut features = StageFeatures {
        num_realizations: count(),
        num_productions: count(),
        points_computed_per_thread: count(),
        points_computed_total: count(),
        inlined_calls: count(),
        num_threads_per_block: count(),
        global_bytes_at_task: count(),
        global_innermost_bytes_at_task: count(),
        unique_global_bytes_read_per_realization: count(),
        unique_global_lines_read_per_realization: count(),
        unique_shared_bytes_read_per_realization: count(),
        unique_shared_lines_read_per_realization: count(),
        unique_global_bytes_read_per_thread: count(),
        unique_global_lines_read_per_thread: count(),
        unique_shared_bytes_read_per_thread: count(),
        unique_shared_lines_read_per_thread: count(),
        unique_register_bytes_read_per_thread: count(),
        unique_bytes_read_per_point: count(),
        unique_lines_read_per_point: count(),
        unique_bytes_read_per_task: count(),
        unique_lines_read_per_task: count(),
        working_set: count(),
        num_global_mem_loads_per_block: count(),
        num_global_mem_stores_per_block: count(),
        num_shared_mem_loads_per_block: count(),
        num_shared_mem_stores_per_block: count(),
        merged_global_loads_per_block: count(),
        merged_shared_loads_per_block: count(),
        local_requests_per_block: count(),
        f32_add: count(),
        int_div: count(),
        convert: count(),
        select: count(),
        registers_per_thread: count(),
        ..StageFeatures::default()
    };
    features.num_waves = random.next() * 5.0;
    features.tail_wastage = random.next() * 0.9;
    features.warp_lane_utilization = random.next();
    features.global_load_efficiency = random.next();
    features.global_store_efficiency = random.next();
    features
}

fn kernel(random: &mut Random) -> KernelFeatures {
    let sources = [
        RowSource::Staged(NodeId::new(0)),
        RowSource::Stage(StageId::new(0)),
        RowSource::Inlined(StageId::new(1)),
        RowSource::Stage(StageId::new(2)),
        RowSource::Inlined(StageId::new(0)),
    ];
    let rows = sources.map(|source| StageRow { source, nest: 0, features: features(random) });
    KernelFeatures {
        launches: 1.0 + (random.next() * 10.0).floor(),
        blocks: 1.0 + random.count(),
        cut_blocks: random.next(),
        threads: 32 * (1 + (random.next() * 32.0) as u32),
        registers: 16 + (random.next() * 100.0) as u32,
        shared_bytes: (random.next() * 48_000.0) as u32,
        barriers: random.count(),
        read_bytes: random.count(),
        written_bytes: random.count(),
        rows: rows.into(),
        ..KernelFeatures::default()
    }
}

/// A layer of weights in `f64`, computed from the definition.
fn layer(weights: &Weights, tensor: &str, inputs: &[f64]) -> Vec<f64> {
    let of = |name: &str| {
        let place = Weights::TENSORS.iter().position(|(known, ..)| *known == name).expect("it is a tensor");
        &weights.tensors()[place]
    };
    let (matrix, bias) = (of(tensor), of(&format!("{tensor}.bias")));
    let channel = |channel: usize| {
        let products = inputs.iter().enumerate();
        let products = products.map(|(input, value)| value * f64::from(matrix[input * bias.len() + channel]));
        products.sum::<f64>() + f64::from(bias[channel])
    };
    (0..bias.len()).map(channel).collect()
}

/// The cost of a kernel, computed from the definition.
fn reference(weights: &Weights, analytic: &Analytic, kernel: &KernelFeatures) -> f64 {
    let inputs = KernelInputs::new(analytic, kernel);
    let [row_means, row_factors, kernel_means, kernel_factors, ..] = weights.tensors();
    let scaled = |numbers: &[f32], means: &[f32], factors: &[f32]| -> Vec<f64> {
        let scaled = numbers.iter().zip(means).zip(factors);
        let scaled = scaled.map(|((number, mean), factor)| f64::from(number - mean) * f64::from(*factor));
        scaled.map(|number| number.clamp(-4.0, 4.0)).collect()
    };
    let rows: Vec<RowInputs> = kernel.rows.iter().map(|row| inputs.row(analytic, kernel, row)).collect();
    let total: f64 = rows.iter().map(|row| f64::from(row.weight)).sum();
    let mut joined = vec![0.0; ROW_CHANNELS];
    for row in &rows {
        let channels = layer(weights, "row", &scaled(&row.numbers, row_means, row_factors));
        for (sum, channel) in joined.iter_mut().zip(channels) {
            *sum += f64::from(row.weight) / total * channel.max(0.0);
        }
    }
    joined.extend(scaled(&inputs.numbers, kernel_means, kernel_factors));
    let hidden = layer(weights, "hidden", &joined).into_iter().map(|channel| channel.max(0.0));
    let output = layer(weights, "output", &hidden.collect::<Vec<_>>());
    let parts = inputs.parts.iter().zip(output);
    let parts: Vec<f64> =
        parts.map(|(part, output)| f64::from(*part) * (1.5 * output.tanh()).exp()).collect();
    let overlap = Constants::default().overlap;
    let together = parts[1..].iter().map(|part| part.powf(overlap)).sum::<f64>().powf(1.0 / overlap);
    kernel.launches * (parts[0] + together)
}

/// The costs of kernels.
fn cost(network: &Network, dag: &Dag, kernels: &[&KernelFeatures]) -> Vec<f64> {
    let mut costs = Vec::new();
    network.costs(dag, kernels, &mut costs);
    costs
}

fn h200() -> Device {
    Device::preset("h200").expect("it is a preset")
}

fn random_network(seed: u64) -> Network {
    Network::new(&Weights::random(seed), &h200())
}

#[test]
fn the_fast_path_is_the_formula() {
    let (dag, device) = (dag(), h200());
    let analytic = Analytic::new(&device);
    for seed in 0..200 {
        let weights = Weights::random(seed);
        let kernel = kernel(&mut Random(seed));
        let expected = reference(&weights, &analytic, &kernel);
        let found = cost(&Network::new(&weights, &device), &dag, &[&kernel])[0];
        assert!((found - expected).abs() <= 1e-4 * expected, "seed {seed}: {found} is not {expected}");
    }
}

#[test]
fn without_a_last_layer_it_is_the_analytic_model() {
    let (dag, device) = (dag(), h200());
    let [rows, kernels] = [inputs::ROW_INPUTS, inputs::KERNEL_INPUTS];
    let scaling = [vec![1.0; rows], vec![0.2; rows], vec![1.0; kernels], vec![0.2; kernels]];
    let weights = Weights::initial(3, scaling).expect("the sizes are right");
    let (network, analytic) = (Network::new(&weights, &device), Analytic::new(&device));
    for seed in 0..50 {
        let kernel = kernel(&mut Random(seed));
        let mut expected = Vec::new();
        analytic.costs(&dag, &[&kernel], &mut expected);
        let found = cost(&network, &dag, &[&kernel])[0];
        assert!((found - expected[0]).abs() <= 1e-4 * expected[0], "{found} is not {}", expected[0]);
    }
}

/// The ranges that the documents give are those in the file.
#[test]
fn documents_give_the_ranges_of_the_shipped_weights() {
    let shipped = warploom_models::nearest("H200", (9, 0)).expect("there are weights").bytes;
    let weights = Weights::from_bytes(shipped).expect("they are for these features");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for page in ["models/README.md", "docs/model.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect("the page is there");
        for band in weights.ranges().expect("they have ranges").bands() {
            let range = format!("{:.2} to {:.2} ", band.low, band.high);
            assert!(text.contains(&range), "{page} does not give {range}");
        }
    }
}

#[test]
fn shipped_weights_load_and_predict_what_they_always_did() {
    let shipped = warploom_models::nearest("H200", (9, 0)).expect("there are weights").bytes;
    let (dag, weights) = (dag(), Weights::from_bytes(shipped).expect("they are for these features"));
    assert_eq!(weights.to_bytes(), shipped);
    // If the costs of kernels without new decisions change, the weights no longer match the model
    // that they correct.
    for (weights, expected) in [(weights, 0x0f56_4982_2be6_4790), (Weights::random(1), 0x00c4_a889_0048_5587)]
    {
        let network = Network::new(&weights, &h200());
        let bits = |seed| cost(&network, &dag, &[&kernel(&mut Random(seed))])[0].to_bits().to_le_bytes();
        assert_eq!(xxh3_64(&(0..1000).flat_map(bits).collect::<Vec<u8>>()), expected, "{}", weights.name());
    }
}

#[test]
fn a_kernel_with_an_unknown_decision_has_its_analytic_cost() {
    let (dag, weights, device) = (dag(), Weights::random(4), h200());
    let (network, analytic) = (Network::new(&weights, &device), Analytic::new(&device));
    let knowing = Network::new(&weights.knowing(NewDecisions::EXAMPLE), &device);
    for seed in 0..50 {
        let usual = kernel(&mut Random(seed));
        let new = KernelFeatures { decisions: NewDecisions::EXAMPLE, ..usual.clone() };
        let learned = cost(&network, &dag, &[&usual])[0];
        let plain = analytic.cost(&usual);
        assert_ne!(learned, plain);
        // The other kernels of a batch do not matter.
        assert_eq!(cost(&network, &dag, &[&new, &usual, &new]), [plain, learned, plain]);
        assert_eq!(cost(&knowing, &dag, &[&new, &usual]), [learned, learned]);
        assert_eq!(network.explain(&dag, &new), analytic.explain(&dag, &new));
        let inputs = KernelInputs::new(&analytic, &new);
        let stored = network.predict(&inputs, new.rows.iter().map(|row| inputs.row(&analytic, &new, row)));
        assert!((stored - plain).abs() <= 1e-4 * plain, "{stored} is not {plain}");
    }
}

#[test]
fn a_prediction_does_not_depend_on_its_batch() {
    let (dag, network) = (dag(), random_network(5));
    let mut random = Random(5);
    let kernels: Vec<KernelFeatures> = (0..1000).map(|_| kernel(&mut random)).collect();
    let all: Vec<&KernelFeatures> = kernels.iter().collect();
    let together = cost(&network, &dag, &all);
    for (kernel, together) in kernels.iter().zip(together) {
        assert_eq!(cost(&network, &dag, &[kernel])[0].to_bits(), together.to_bits());
    }
}

#[test]
fn predictions_are_numbers_whatever_the_features() {
    let dag = dag();
    for value in [0.0, 1.0, 1e14, 1e300, -1.0, f64::INFINITY, f64::NAN] {
        for seed in 0..50 {
            let mut kernel = kernel(&mut Random(seed));
            (kernel.blocks, kernel.launches, kernel.barriers) = (value, value, value);
            for row in &mut kernel.rows {
                row.features = StageFeatures {
                    num_waves: value,
                    tail_wastage: value,
                    warp_lane_utilization: value,
                    global_load_efficiency: value,
                    num_productions: value,
                    num_threads_per_block: value,
                    points_computed_per_thread: value,
                    points_computed_total: value,
                    merged_global_loads_per_block: value,
                    f32_add: value,
                    inlined_calls: value,
                    ..row.features
                };
            }
            let cost = cost(&random_network(seed), &dag, &[&kernel])[0];
            assert!(cost.is_finite() && cost >= 0.0, "{value} and seed {seed} give {cost}");
        }
    }
    let nothing = KernelFeatures::default();
    assert_eq!(cost(&random_network(1), &dag, &[&nothing]), [0.0]);
}

#[test]
fn parts_are_those_of_the_analytic_model_corrected() {
    let (dag, network, analytic) = (dag(), random_network(9), Analytic::new(&h200()));
    let kernel = kernel(&mut Random(9));
    let (terms, plain) = (network.explain(&dag, &kernel), analytic.explain(&dag, &kernel));
    assert_eq!(terms.total, cost(&network, &dag, &[&kernel])[0]);
    assert_eq!(terms.rows.len(), kernel.rows.len());
    for (term, plain) in terms.kernel.iter().zip(&plain.kernel) {
        let correction = (term.microseconds / plain.microseconds).ln().abs();
        assert!(term.name == plain.name && correction <= 1.501, "{term:?} is not {plain:?}");
    }
}
