//! Products of matrices and vectors, lookups, layers and norms: everything that is no convolution.

use super::definitions::*;
use super::{Operator, row};

pub(super) fn rows() -> Vec<Operator> {
    let mut all = matrices();
    all.extend(batches());
    all.extend(layers());
    all.extend(norms());
    all.extend(others());
    all
}

/// A product of M x K by K x N.
pub(super) fn product(family: &'static str, name: &str, [m, k, n]: [i64; 3]) -> Operator {
    row((family, name, format!("{m}x{k}x{n}")), &GMM, ["M", "K", "N"], [m, k, n])
}

/// A product of M x K by the transpose of N x K.
fn transposed(family: &'static str, name: &str, [m, k, n]: [i64; 3]) -> Operator {
    row((family, name, format!("{m}x{k}x{n} transposed")), &TMM, ["M", "K", "N"], [m, k, n])
}

fn matrices() -> Vec<Operator> {
    let mut all: Vec<Operator> = (5..12).map(|power| product("GMM", "GMM", [1 << power; 3])).collect();
    all.push(product("MM", "MM1", [512, 1024, 1024]));
    all.push(product("MM", "MM2", [512, 1024, 4096]));
    all.push(product("MM", "MM3", [512, 4096, 1024]));
    let skinny = [[128, 32, 256], [128, 1024, 1024], [128, 4096, 16384]];
    all.extend(skinny.map(|sizes| transposed("tmm", "tmm", sizes)));
    let square = |power: u32| {
        let side: i64 = 1 << power;
        row(("GMV", "GMV", side.to_string()), &GMV, ["M", "K"], [side, side])
    };
    all.extend((7..13).map(square));
    all
}

fn batches() -> Vec<Operator> {
    let batch = |family, name, defined, [b, n, m, k]: [i64; 4]| {
        row((family, name, format!("{b}x({n}x{m}x{k})")), defined, ["B", "N", "M", "K"], [b, n, m, k])
    };
    let bilinear = |[i, k, l, j]: [i64; 4]| {
        row(("BIL", "BIL", format!("{i},{k},{l},{j}")), &BILINEAR, ["I", "K", "L", "J"], [i, k, l, j])
    };
    let mut all = vec![
        batch("BMM", "BMM1", &BMM, [960, 128, 128, 64]),
        batch("BMM", "BMM2", &BMM_FIRST, [960, 128, 128, 64]),
        batch("BMM", "BMM3", &BMM_SECOND, [960, 128, 64, 128]),
        batch("tbmm", "tbmm", &BMM_SECOND, [500, 26, 72, 26]),
    ];
    let layers = [
        [32, 1024, 1024, 32],
        [64, 512, 1024, 32],
        [128, 256, 512, 64],
        [256, 128, 256, 128],
        [512, 64, 128, 256],
    ];
    all.extend(layers.map(bilinear));
    all
}

fn layers() -> Vec<Operator> {
    const TABLE: &str = "B128 D64 L50 E1e7";
    let kronecker = |text: &str, [n0, n1, n2]: [i64; 3]| {
        let names = ["M", "N0", "N1", "N2", "D0", "D1", "D2"];
        let shape = format!("256 x {text} -> 16^3");
        row(("Kronecker", "Kronecker", shape), &KRONECKER, names, [256, n0, n1, n2, 16, 16, 16])
    };
    vec![
        row(("1LUT", "1LUT", TABLE.to_owned()), &LUT, ["B", "D", "L", "E"], [128, 64, 50, 10_000_000]),
        row(
            ("2LUT", "2LUT", format!("twice {TABLE}")),
            &LUT2,
            ["B", "D", "L", "E", "D2", "L2", "E2"],
            [128, 64, 50, 10_000_000, 64, 50, 10_000_000],
        ),
        row(("MLP1", "MLP1", "128,2000,128".to_owned()), &MLP1, ["B", "M", "N"], [128, 2000, 128]),
        transposed("C3", "C3", [128, 1000, 1024]),
        row(
            ("MLP3", "MLP3", "128,64,32,2 batch 128".to_owned()),
            &MLP3,
            ["B", "N", "O", "P", "Q"],
            [128, 128, 64, 32, 2],
        ),
        kronecker("32^3", [32; 3]),
        kronecker("64^3", [64; 3]),
        kronecker("64x128^2", [64, 128, 128]),
    ]
}

fn norms() -> Vec<Operator> {
    let moments =
        |[n, k]: [i64; 2]| row(("moments", "moments", format!("{n}x{k}")), &MOMENTS, ["N", "K"], [n, k]);
    let groupnorm = |[n, channels, groups, side]: [i64; 4]| {
        let shape = format!("{n},{channels},{groups},{side}");
        let sizes = [n, groups, channels / groups, side, side];
        row(("groupnorm", "groupnorm", shape), &GROUPNORM, ["N", "G", "D", "H", "W"], sizes)
    };
    let softmax = "softmax+layernorm";
    vec![
        moments([128, 2304]),
        moments([1024, 36864]),
        groupnorm([4, 512, 32, 12]),
        groupnorm([32, 512, 32, 48]),
        row((softmax, softmax, "8192x1024".to_owned()), &SOFTMAX_LAYERNORM, ["N", "D"], [8192, 1024]),
    ]
}

/// Operators without times of libraries.
fn others() -> Vec<Operator> {
    let circulant = |[rows, columns, side]: [i64; 3]| {
        let shape = format!("{rows}x{columns} f{side}");
        row(("BCM", "BCM", shape), &BCM, ["R", "Q", "F"], [rows / side, columns / side, side])
    };
    let shift = |[side, channels, k]: [i64; 3]| {
        let shape = format!("{side}x{side}x{channels} k{k}");
        row(("SHO", "SHO", shape), &SHIFT, ["N", "H", "W", "C", "k"], [1, side, side, channels, k])
    };
    let wavenet = |d: i64| {
        let (names, shape) = (["B", "R", "C", "S", "T", "d"], format!("1,32,32,256,4000 d{d}"));
        row(("WaveNet", "WaveNet", shape), &WAVENET, names, [1, 32, 32, 256, 4000, d])
    };
    let blocks = [[1024, 256, 8], [1024, 256, 16], [1024, 512, 8], [1024, 512, 16], [1024, 40, 8]];
    let shifts = [[128, 64, 3], [64, 128, 5], [32, 256, 3], [16, 512, 3]];
    let mut all: Vec<Operator> = blocks.map(circulant).into();
    all.extend(shifts.map(shift));
    all.extend([1, 32].map(wavenet));
    all
}
