//! The definitions of `apps/operators`, with what their texts do not say: operation counts, and what integers mean.

use warploom::app::Settings;

/// A definition of a file.
#[derive(Debug)]
pub(super) struct Defined {
    pub file: &'static str,
    pub text: &'static str,
    pub def: &'static str,
    /// The number of operations at some sizes; a product and a sum of it count as two.
    pub operations: fn(&Settings) -> f64,
    /// The end of the range of an integer input; `None` if there are only floats.
    pub indices: Option<fn(&str, &Settings) -> i64>,
}

macro_rules! defined {
    ($(#[$about:meta])* $name:ident, $file:literal, $def:literal, $operations:expr) => {
        defined! { $(#[$about])* $name, $file, $def, $operations, None }
    };
    ($(#[$about:meta])* $name:ident, $file:literal, $def:literal, $operations:expr, $indices:expr) => {
        $(#[$about])*
        pub(super) static $name: Defined = Defined {
            file: $file,
            text: include_str!(concat!("../../operators/", $file)),
            def: $def,
            operations: $operations,
            indices: $indices,
        };
    };
}

/// The product of some sizes, whose names are letters, or separated by spaces.
fn product(of: &Settings, names: &str) -> f64 {
    names.split_whitespace().map(|name| of.number(name)).product()
}

/// The length of what a convolution computes along one dimension. Scalars that a definition does not have are those of the
/// plain one.
fn convolved(of: &Settings, length: &str, kernel: &str) -> f64 {
    let or = |name: &str, usual: f64| of.get(name).unwrap_or(usual);
    let reach = or("d", 1.0) * (of.number(kernel) - 1.0) + 1.0;
    ((of.number(length) + 2.0 * or("p", or("q", 0.0)) - reach) / or("s", 1.0)).floor() + 1.0
}

fn plane(of: &Settings) -> f64 {
    convolved(of, "H", "KH") * convolved(of, "W", "KW")
}

defined! { GMM, "gmm.tc", "gmm", |of| 2.0 * product(of, "M K N") }
defined! { TMM, "tmm.tc", "tmm", |of| 2.0 * product(of, "M K N") }
defined! { GMV, "gmv.tc", "gmv", |of| 2.0 * product(of, "M K") }
defined! { BMM, "bmm.tc", "bmm", |of| 2.0 * product(of, "B N M K") }
defined! { BMM_FIRST, "bmm.tc", "bmm_first", |of| 2.0 * product(of, "B N M K") }
defined! { BMM_SECOND, "bmm.tc", "bmm_second", |of| 2.0 * product(of, "B N M K") }
defined! { BILINEAR, "bilinear.tc", "bilinear", |of| 2.0 * product(of, "I J K") * (of.number("L") + 1.0) }
defined! { CONV1D, "conv1d.tc", "conv1d", |of| 2.0 * product(of, "B C F KL") * convolved(of, "L", "KL") }
defined! { CONV2D, "conv2d.tc", "conv2d", |of| 2.0 * product(of, "B C F KH KW") * plane(of) }
defined! {
    CONV3D, "conv3d.tc", "conv3d",
    |of| 2.0 * product(of, "B C F KD KH KW") * convolved(of, "D", "KD") * plane(of)
}
defined! { DILATED, "dilated.tc", "dilated", |of| 2.0 * product(of, "B C F KH KW") * plane(of) }
defined! { GROUPED, "grouped.tc", "grouped", |of| 2.0 * product(of, "B G C F KH KW") * plane(of) }
defined! { DEPTHWISE, "depthwise.tc", "depthwise", |of| 2.0 * product(of, "B C M KH KW") * plane(of) }
defined! { GCONV, "gconv.tc", "gconv", |of| 2.0 * product(of, "N G C F KH KW") * plane(of) }
defined! {
    TRANSPOSED1D, "transposed.tc", "transposed1d",
    |of| 2.0 * product(of, "B C F KL") * convolved(of, "L", "KL")
}
defined! { TRANSPOSED2D, "transposed.tc", "transposed2d", |of| 2.0 * product(of, "B C F KH KW") * plane(of) }
defined! {
    TRANSPOSED3D, "transposed.tc", "transposed3d",
    |of| 2.0 * product(of, "B C F KD KH KW") * convolved(of, "D", "KD") * plane(of)
}
defined! {
    /// Every tap of every input point, also those few that are cut off.
    STRIDED2D, "transposed.tc", "strided2d", |of| 2.0 * product(of, "B C F KH KW H W")
}
defined! {
    /// As [`STRIDED2D`].
    STRIDED3D, "transposed.tc", "strided3d", |of| 2.0 * product(of, "B C F KD KH KW D H W")
}
defined! { LUT, "lut.tc", "lut", |of| product(of, "B L D"), Some(|_, of| of.int("E")) }
defined! {
    LUT2, "lut.tc", "lut2", |of| product(of, "B L D") + product(of, "B L2 D2"),
    Some(|name, of| of.int(if name == "I" { "E" } else { "E2" }))
}
defined! { MLP1, "mlp.tc", "mlp1", |of| 2.0 * product(of, "B M N") }
defined! {
    MLP3, "mlp.tc", "mlp3",
    |of| 2.0 * (product(of, "B N O") + product(of, "B O P") + product(of, "B P Q"))
}
defined! {
    KRONECKER, "kronecker.tc", "kronecker",
    |of| 2.0 * (product(of, "M N0 N1 N2 D2") + product(of, "M N0 N1 D1 D2") + product(of, "M N0 D0 D1 D2"))
}
defined! { MOMENTS, "moments.tc", "moments", |of| 3.0 * product(of, "N K") }
defined! {
    /// Sum, square and its sum, then one product and one sum with numbers of the channel.
    GROUPNORM, "groupnorm.tc", "groupnorm", |of| 5.0 * product(of, "N G D H W")
}
defined! {
    /// Each row is read for its maximum, exponentials and their sum, then scaled, summed up twice and scaled again.
    SOFTMAX_LAYERNORM, "softmax_layernorm.tc", "softmax_layernorm", |of| 10.0 * product(of, "N D")
}
defined! {
    /// A sum over every point.
    BCM, "bcm.tc", "bcm", |of| product(of, "R F Q F")
}
defined! {
    /// It only moves data.
    SHIFT, "shift.tc", "shift", |_| 0.0, Some(|_, of| of.int("k").pow(2))
}
defined! {
    WAVENET, "wavenet.tc", "wavenet",
    |of| 2.0 * product(of, "B T C") * (5.0 * of.number("R") + of.number("S"))
}
