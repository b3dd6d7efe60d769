//! Trained weights of the cost model, embedded, so that whoever adds the library has them.
//!
//! `README.md` beside them says what they were trained on and how good they are.

/// Weights that come with the program.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Their name.
    pub name: &'static str,
    /// The device that they were trained on.
    pub device: &'static str,
    /// Its compute capability.
    pub compute: (u32, u32),
    /// The file of weights.
    pub bytes: &'static [u8],
}

/// All there are.
pub static MODELS: &[Model] =
    &[Model { name: "h200", device: "H200", compute: (9, 0), bytes: include_bytes!("../h200.bin") }];

/// The weights of a device; those of the device with the nearest compute capability if it has none of its own.
pub fn nearest(device: &str, compute: (u32, u32)) -> Option<&'static Model> {
    nearest_of(MODELS, device, compute)
}

fn nearest_of<'a>(models: &'a [Model], device: &str, compute: (u32, u32)) -> Option<&'a Model> {
    let version = |(major, minor): (u32, u32)| 10 * major + minor;
    models.iter().min_by_key(|model| {
        (!model.device.eq_ignore_ascii_case(device), version(model.compute).abs_diff(version(compute)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_weights_come_first_and_then_the_nearest() {
        let model = |name, device, compute| Model { name, device, compute, bytes: &[] };
        let models =
            [model("h200", "H200", (9, 0)), model("a100", "A100", (8, 0)), model("h100", "H100", (9, 0))];
        let found = |device, compute| nearest_of(&models, device, compute).map(|model| model.name);
        assert_eq!(found("H100", (9, 0)), Some("h100"));
        assert_eq!(found("RTX 3090", (8, 6)), Some("h200"));
        assert_eq!(found("V100", (7, 0)), Some("a100"));
        assert!(nearest_of(&[], "V100", (7, 0)).is_none());
    }
}
