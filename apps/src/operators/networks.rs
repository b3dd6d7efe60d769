//! Whole networks as sums of rows, and the layers that only they need.

use super::convolutions::conv2d;
use super::definitions::GMV;
use super::products::product;
use super::{Operator, row};

/// A network: the names of rows, and how often it has each.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Its name, with the batch where that is not 1.
    pub name: &'static str,
    /// The names of rows, and how often it has each. Every name is that of one row.
    pub layers: &'static [(&'static str, u32)],
}

/// The networks whose time is the sum over their convolutions and products.
pub const NETWORKS: [Network; 3] = [
    Network {
        name: "YOLO-v1, convolutions",
        layers: &[
            ("C2D C1", 1),
            ("C2D C2", 1),
            ("C2D C3", 1),
            ("C2D C4", 1),
            ("C2D C5", 1),
            ("C2D C6", 1),
            ("C2D C7", 4),
            ("C2D C8", 4),
            ("C2D C9", 1),
            ("C2D C10", 1),
            ("C2D C11", 2),
            ("C2D C12", 2),
            ("C2D C13", 1),
            ("C2D C14", 1),
            ("C2D C15", 2),
        ],
    },
    Network {
        name: "AlexNet, batch 512",
        layers: &[
            ("OpEvo C1", 1),
            ("OpEvo C2", 1),
            ("AlexNet conv3", 1),
            ("AlexNet conv4", 1),
            ("AlexNet conv5", 1),
            ("AlexNet fc6", 1),
            ("AlexNet fc7", 1),
            ("AlexNet fc8", 1),
        ],
    },
    Network {
        name: "OverFeat",
        layers: &[
            ("OverFeat conv1", 1),
            ("OverFeat conv2", 1),
            ("OverFeat conv3", 1),
            ("OverFeat conv4", 1),
            ("OverFeat conv5", 1),
            ("OverFeat fc6", 1),
            ("OverFeat fc7", 1),
            ("OverFeat fc8", 1),
        ],
    },
];

pub(super) fn rows() -> Vec<Operator> {
    let fully = |name: &str, [from, to]: [i64; 2]| {
        row(("OverFeat", name, format!("{to}x{from}")), &GMV, ["M", "K"], [to, from])
    };
    vec![
        conv2d("AlexNet", "AlexNet conv3", [512, 192, 13, 384, 3, 1, 1]),
        conv2d("AlexNet", "AlexNet conv4", [512, 384, 13, 256, 3, 1, 1]),
        conv2d("AlexNet", "AlexNet conv5", [512, 256, 13, 256, 3, 1, 1]),
        product("AlexNet", "AlexNet fc6", [512, 9216, 4096]),
        product("AlexNet", "AlexNet fc7", [512, 4096, 4096]),
        product("AlexNet", "AlexNet fc8", [512, 4096, 1000]),
        conv2d("OverFeat", "OverFeat conv1", [1, 3, 231, 96, 11, 4, 0]),
        conv2d("OverFeat", "OverFeat conv2", [1, 96, 28, 256, 5, 1, 0]),
        conv2d("OverFeat", "OverFeat conv3", [1, 256, 12, 512, 3, 1, 1]),
        conv2d("OverFeat", "OverFeat conv4", [1, 512, 12, 1024, 3, 1, 1]),
        conv2d("OverFeat", "OverFeat conv5", [1, 1024, 12, 1024, 3, 1, 1]),
        fully("OverFeat fc6", [36864, 3072]),
        fully("OverFeat fc7", [3072, 4096]),
        fully("OverFeat fc8", [4096, 1000]),
    ]
}
