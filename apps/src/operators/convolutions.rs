//! Convolutions over one to three dimensions, plain, grouped, dilated, depthwise and transposed.

use super::definitions::*;
use super::{Operator, row};

/// A convolution of YOLO-v1: its number, channels, output channels, side, side of the kernel, and stride.
struct Layer(usize, i64, i64, i64, i64, i64);

const YOLO: [Layer; 15] = [
    Layer(1, 3, 64, 448, 7, 2),
    Layer(2, 64, 192, 112, 3, 1),
    Layer(3, 192, 128, 56, 1, 1),
    Layer(4, 128, 256, 56, 3, 1),
    Layer(5, 256, 256, 56, 1, 1),
    Layer(6, 256, 512, 56, 3, 1),
    Layer(7, 512, 256, 28, 1, 1),
    Layer(8, 256, 512, 28, 3, 1),
    Layer(9, 512, 512, 28, 1, 1),
    Layer(10, 512, 1024, 28, 3, 1),
    Layer(11, 1024, 512, 14, 1, 1),
    Layer(12, 512, 1024, 14, 3, 1),
    Layer(13, 1024, 1024, 14, 3, 1),
    Layer(14, 1024, 1024, 14, 3, 2),
    Layer(15, 1024, 1024, 7, 3, 1),
];

/// Channels, length, output channels and length of the kernel.
const LINES: [[i64; 4]; 7] = [
    [192, 3136, 128, 1],
    [128, 3136, 256, 9],
    [512, 784, 256, 1],
    [256, 784, 512, 9],
    [1024, 196, 512, 1],
    [512, 196, 1024, 9],
    [1024, 49, 1024, 9],
];

/// Channels, depth, side, output channels, side of the kernel, and stride.
const VOLUMES: [[i64; 6]; 8] = [
    [3, 16, 112, 64, 7, 2],
    [64, 16, 28, 192, 3, 1],
    [192, 4, 28, 128, 1, 1],
    [128, 4, 28, 256, 3, 1],
    [512, 4, 14, 256, 1, 1],
    [256, 4, 14, 512, 3, 1],
    [1024, 4, 7, 512, 1, 1],
    [512, 4, 7, 1024, 3, 1],
];

/// Channels, side, kernels per channel, and stride.
const DEPTHWISE_LAYERS: [[i64; 4]; 7] = [
    [32, 112, 1, 1],
    [16, 112, 6, 2],
    [24, 56, 6, 2],
    [32, 28, 6, 2],
    [64, 14, 6, 1],
    [96, 14, 6, 2],
    [160, 7, 6, 1],
];

/// Channels and output channels per group, and side.
const GROUPS: [[i64; 3]; 4] = [[16, 16, 14], [32, 32, 7], [4, 4, 56], [8, 8, 28]];

/// A convolution over two dimensions: batch, channels, side, output channels, side of the kernel, stride, padding.
pub(super) fn conv2d(family: &'static str, name: &str, sizes: [i64; 7]) -> Operator {
    let [b, c, side, f, k, s, p] = sizes;
    let shape = format!("{b}x{c}x{side}x{side} * {f}x{c}x{k}x{k}");
    let names = ["B", "C", "H", "W", "F", "KH", "KW", "s", "p"];
    row((family, name, shape), &CONV2D, names, [b, c, side, side, f, k, k, s, p])
}

pub(super) fn rows() -> Vec<Operator> {
    let mut all: Vec<Operator> = YOLO.iter().map(Layer::plain).collect();
    all.extend(YOLO[1..].iter().map(Layer::grouped));
    all.extend(YOLO[4..].iter().map(Layer::dilated));
    all.extend(DEPTHWISE_LAYERS.map(depthwise));
    all.extend(LINES.map(line));
    all.extend(LINES.map(transposed_line));
    all.extend(VOLUMES.map(volume));
    all.extend(VOLUMES.map(transposed_volume));
    all.extend([1, 2, 4, 8, 12, 13, 14].map(|number: usize| YOLO[number - 1].transposed()));
    all.extend(GROUPS.map(gconv));
    all.push(conv2d("OpEvo conv", "OpEvo C1", [512, 3, 227, 64, 11, 4, 0]));
    all.push(conv2d("OpEvo conv", "OpEvo C2", [512, 64, 27, 192, 5, 1, 2]));
    all.push(conv2d("TC conv", "TC conv", [32, 4, 56, 4, 3, 1, 0]));
    all
}

impl Layer {
    fn plain(&self) -> Operator {
        let Layer(number, c, f, side, k, s) = *self;
        conv2d("C2D", &format!("C2D C{number}"), [1, c, side, f, k, s, k / 2])
    }

    fn grouped(&self) -> Operator {
        const GROUPS: i64 = 4;
        let Layer(number, c, f, side, k, s) = *self;
        let shape = format!("1x{c}x{side}x{side} * {f}x{}x{k}x{k}", c / GROUPS);
        let names = ["B", "G", "C", "H", "W", "F", "KH", "KW", "s", "p"];
        let sizes = [1, GROUPS, c / GROUPS, side, side, f / GROUPS, k, k, s, k / 2];
        row(("GRP", &format!("GRP C{number} g{GROUPS}"), shape), &GROUPED, names, sizes)
    }

    /// The padding is that of the plain convolution.
    fn dilated(&self) -> Operator {
        let Layer(number, c, f, side, k, s) = *self;
        let shape = format!("1x{c}x{side}x{side} * {f}x{c}x{k}x{k}");
        let names = ["B", "C", "H", "W", "F", "KH", "KW", "s", "p", "d"];
        let sizes = [1, c, side, side, f, k, k, s, k / 2, 2];
        row(("DIL", &format!("DIL C{number} d2"), shape), &DILATED, names, sizes)
    }

    fn transposed(&self) -> Operator {
        let Layer(number, c, f, side, k, s) = *self;
        let text = ("T2D", &*format!("T2D C{number}"), format!("1x{c}x{side}x{side} * {c}x{f}x{k}x{k}"));
        if s == 1 {
            let names = ["B", "C", "H", "W", "F", "KH", "KW", "q"];
            return row(text, &TRANSPOSED2D, names, [1, c, side, side, f, k, k, reversed(k)]);
        }
        let names = ["B", "C", "H", "W", "F", "KH", "KW", "s", "p", "k"];
        row(text, &STRIDED2D, names, [1, c, side, side, f, k, k, s, k / 2, taps(k, s)])
    }
}

/// The padding of a transposed convolution of stride 1, as that of a convolution with the kernel reversed.
const fn reversed(k: i64) -> i64 {
    k - 1 - k / 2
}

/// The most taps that reach a point of a transposed convolution, along one dimension.
const fn taps(k: i64, stride: i64) -> i64 {
    (k + stride - 1) / stride
}

fn depthwise([c, side, m, s]: [i64; 4]) -> Operator {
    let shape = format!("1x{c}x{side}x{side} * {}x1x3x3", c * m);
    let names = ["B", "C", "H", "W", "M", "KH", "KW", "s", "p"];
    row(("DEP", "DEP", shape), &DEPTHWISE, names, [1, c, side, side, m, 3, 3, s, 1])
}

fn line([c, length, f, k]: [i64; 4]) -> Operator {
    let shape = format!("1x{c}x{length} * {f}x{c}x{k}");
    row(("C1D", "C1D", shape), &CONV1D, ["B", "C", "L", "F", "KL", "s", "p"], [1, c, length, f, k, 1, k / 2])
}

fn transposed_line([c, length, f, k]: [i64; 4]) -> Operator {
    let shape = format!("1x{c}x{length} * {c}x{f}x{k}");
    let names = ["B", "C", "L", "F", "KL", "q"];
    row(("T1D", "T1D", shape), &TRANSPOSED1D, names, [1, c, length, f, k, reversed(k)])
}

fn volume([c, depth, side, f, k, s]: [i64; 6]) -> Operator {
    let shape = format!("1x{c}x{depth}x{side}x{side} * {f}x{c}x{k}x{k}x{k}");
    let names = ["B", "C", "D", "H", "W", "F", "KD", "KH", "KW", "s", "p"];
    row(("C3D", "C3D", shape), &CONV3D, names, [1, c, depth, side, side, f, k, k, k, s, k / 2])
}

fn transposed_volume([c, depth, side, f, k, s]: [i64; 6]) -> Operator {
    let text = ("T3D", "T3D", format!("1x{c}x{depth}x{side}x{side} * {c}x{f}x{k}x{k}x{k}"));
    if s == 1 {
        let names = ["B", "C", "D", "H", "W", "F", "KD", "KH", "KW", "q"];
        return row(text, &TRANSPOSED3D, names, [1, c, depth, side, side, f, k, k, k, reversed(k)]);
    }
    let names = ["B", "C", "D", "H", "W", "F", "KD", "KH", "KW", "s", "p", "k"];
    row(text, &STRIDED3D, names, [1, c, depth, side, side, f, k, k, k, s, k / 2, taps(k, s)])
}

fn gconv([c, f, side]: [i64; 3]) -> Operator {
    const GROUPS: i64 = 32;
    let shape = format!("32x{}x{side}x{side} * {}x{c}x3x3", GROUPS * c, GROUPS * f);
    let names = ["N", "G", "C", "F", "H", "W", "KH", "KW"];
    row(("gconv", "gconv", shape), &GCONV, names, [32, GROUPS, c, f, side, side, 3, 3])
}
