//! The fast path against a slow one in `f64` that shares none of its code.

use warploom_lang::*;
use warploom_schedule::{NodeId, StageId};

use super::*;
use crate::kernel::StageRow;
use crate::schema::FEATURES;

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Of a size drawn from ten orders of magnitude; sometimes 0.
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

/// The macro that defines the features gives no way to set one by number, and needs none elsewhere.
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
        blocks: random.count(),
        barriers: random.count(),
        read_bytes: random.count(),
        written_bytes: random.count(),
        rows: rows.into(),
        ..KernelFeatures::default()
    }
}

/// One weight of a tensor.
fn weight(weights: &Weights, tensor: &str, input: usize, channel: usize) -> f64 {
    let place = Weights::TENSORS.iter().position(|(name, ..)| *name == tensor).expect("it is a tensor");
    weights.tensors()[place][input * Weights::TENSORS[place].2 + channel].into()
}

/// The coefficients of a row, from the definitions.
fn reference_coefficients(weights: &Weights, dag: &Dag, row: &StageRow) -> Vec<f64> {
    let activation = |x: f64| if x > 0.0 { x } else { 1e-10 * x };
    let counts: Vec<f64> = match row.source {
        RowSource::Stage(stage) | RowSource::Inlined(stage) => {
            dag.stages()[stage].features.counts().iter().flatten().map(|count| f64::from(*count)).collect()
        }
        RowSource::Staged(_) => vec![0.0; weights::COUNTS],
    };
    let mut joined = Vec::new();
    for channel in 0..8 {
        let scaled = counts
            .iter()
            .enumerate()
            .map(|(input, count)| count * (1.0 / (1.0 + (-weight(weights, "head1", input, channel)).exp())));
        joined.push(weight(weights, "head1.bias", 0, channel) + scaled.sum::<f64>());
    }
    let values = row.features.values();
    for channel in 0..24 {
        let logs = (0..values.len()).map(|i| (1.0 + values[i]).ln() * weight(weights, "head2", i, channel));
        joined.push(activation(weight(weights, "head2.bias", 0, channel) + logs.sum::<f64>()));
    }
    let trunk = |channel: usize| {
        let sum: f64 = (0..32).map(|input| joined[input] * weight(weights, "trunk", input, channel)).sum();
        activation(sum + weight(weights, "trunk.bias", 0, channel))
    };
    (0..32).map(trunk).collect()
}

/// The time of a row in picoseconds, the formula written out.
fn reference_row(c: &[f64], kernel: &KernelFeatures, row: &StageRow, last: bool) -> f64 {
    let f = &row.features;
    let get = |name: &str| f.values()[FEATURES.iter().position(|feature| feature.name == name).expect(name)];
    let waves = f.num_waves.ceil() / f.num_waves;
    let turns = 1.0 / (1.0 - f.tail_wastage);
    let operations = f.f32_add + f.int_div + f.convert + f.select;
    if let RowSource::Inlined(_) = row.source {
        return c[3] * f.inlined_calls * turns + c[4] * operations * waves;
    }
    let blocks = kernel.blocks.max(1.0) * kernel.launches;
    let (runs, points) = (f.num_productions, f.points_computed_total);
    let threads = runs * f.num_threads_per_block;
    let share = |name: &str| get(name).max(1.0 / 32.0);
    let compute = turns * points * c[1]
        + turns * threads * f.points_computed_per_thread / share("warp_lane_utilization") * c[19]
        + waves * operations * c[23];
    let mut per_run = 0.0;
    for (bytes, lines, memory) in [(6, 5, "global"), (20, 16, "shared")] {
        per_run += c[bytes] * get(&format!("unique_{memory}_bytes_read_per_realization"));
        per_run += c[lines] * get(&format!("unique_{memory}_lines_read_per_realization"));
    }
    let mut per_thread = c[7] * f.unique_register_bytes_read_per_thread;
    for (bytes, lines, memory) in [(13, 18, "global"), (11, 17, "shared")] {
        per_thread += c[bytes] * get(&format!("unique_{memory}_bytes_read_per_thread"));
        per_thread += c[lines] * get(&format!("unique_{memory}_lines_read_per_thread"));
    }
    let per_point = c[10] * f.unique_bytes_read_per_point + c[12] * f.unique_lines_read_per_point;
    let per_block = c[14] * f.unique_bytes_read_per_task
        + c[15] * f.unique_lines_read_per_task
        + c[2] * f.num_global_mem_loads_per_block
        + c[0] * f.num_shared_mem_loads_per_block
        + c[28] * f.merged_global_loads_per_block / share("global_load_efficiency")
        + c[27] * f.merged_shared_loads_per_block
        + c[21] * f.num_global_mem_stores_per_block / share("global_store_efficiency")
        + c[29] * f.num_shared_mem_stores_per_block
        + c[30] * f.local_requests_per_block;
    let lines_written =
        if f.global_bytes_at_task > 0.0 { points / f.global_innermost_bytes_at_task.max(1.0) } else { 0.0 };
    let of_kernel = c[8] * (kernel.read_bytes + kernel.written_bytes) * kernel.launches
        + c[25] * 1e6 * kernel.launches
        + c[26] * blocks
        + c[31] * kernel.barriers * blocks;
    compute
        + per_run * runs
        + per_thread * threads
        + per_point * points
        + per_block * blocks
        + lines_written * c[22]
        + c[24] * f.num_realizations
        + c[9] * f.working_set
        + if last { of_kernel } else { 0.0 }
}

/// The costs of kernels, and those of the reference.
fn cost(network: &Network, dag: &Dag, kernels: &[&KernelFeatures]) -> Vec<f64> {
    let mut costs = Vec::new();
    network.costs(dag, kernels, &mut costs);
    costs
}

#[test]
fn the_fast_path_is_the_formula() {
    let dag = dag();
    for seed in 0..200 {
        let weights = Weights::random(seed);
        let kernel = kernel(&mut Random(seed));
        let expected: f64 = kernel
            .rows
            .iter()
            .enumerate()
            .map(|(number, row)| {
                reference_row(&reference_coefficients(&weights, &dag, row), &kernel, row, number == 3)
            })
            .sum();
        let found = cost(&Network::new(&weights), &dag, &[&kernel])[0];
        let expected = expected * 1e-6;
        assert!((found - expected).abs() <= 1e-4 * expected, "seed {seed}: {found} is not {expected}");
    }
}

#[test]
fn a_prediction_does_not_depend_on_its_batch() {
    let (dag, network) = (dag(), Network::new(&Weights::random(5)));
    let mut random = Random(5);
    let kernels: Vec<KernelFeatures> = (0..1000).map(|_| kernel(&mut random)).collect();
    let all: Vec<&KernelFeatures> = kernels.iter().collect();
    let together = cost(&network, &dag, &all);
    for (kernel, together) in kernels.iter().zip(together) {
        assert_eq!(cost(&network, &dag, &[kernel])[0].to_bits(), together.to_bits());
    }
}

#[test]
fn another_pipeline_in_between_changes_nothing() {
    let x = vars!(x);
    let other = func("other", x, Input::f32("input", 1).at(x) * Input::f32("more", 1).at(x));
    let other = Dag::new(&Pipeline::new("other", [other]).expect("it is right"));
    let (dag, network, kernel) = (dag(), Network::new(&Weights::random(6)), kernel(&mut Random(6)));
    let rows =
        kernel.rows.iter().map(|row| StageRow { source: RowSource::Stage(StageId::new(0)), ..row.clone() });
    let elsewhere = KernelFeatures { rows: rows.collect(), ..kernel.clone() };
    let before = cost(&network, &dag, &[&kernel]);
    assert_ne!(cost(&network, &dag, &[&elsewhere]), cost(&network, &other, &[&elsewhere]));
    assert_eq!(cost(&network, &dag, &[&kernel]), before);
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
            let cost = cost(&Network::new(&Weights::random(seed)), &dag, &[&kernel])[0];
            assert!(cost.is_finite() && cost >= 0.0, "{value} and seed {seed} give {cost}");
        }
    }
    let nothing = KernelFeatures::default();
    assert_eq!(cost(&Network::new(&Weights::random(1)), &dag, &[&nothing]), [0.0]);
}

#[test]
fn parts_add_up_to_the_whole() {
    let (dag, network) = (dag(), Network::new(&Weights::random(9)));
    let kernel = kernel(&mut Random(9));
    let terms = network.explain(&dag, &kernel);
    assert_eq!(terms.total, cost(&network, &dag, &[&kernel])[0]);
    assert_eq!(terms.rows.len(), kernel.rows.len());
    let parts = terms.rows.iter().flatten().chain(&terms.kernel).map(|term| term.microseconds);
    assert!((parts.sum::<f64>() - terms.total).abs() <= 1e-9 * terms.total);
    let names: Vec<&str> = terms.kernel.iter().map(|term| term.name).collect();
    assert_eq!(names, ["launches", "blocks", "barriers", "memory"]);
    let inlined = &terms.rows[2];
    assert!(inlined[1..].iter().all(|term| term.microseconds == 0.0), "{inlined:?}");
}
