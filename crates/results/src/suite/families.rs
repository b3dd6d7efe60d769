//! Mean ratios of families, beside what papers claim.

use serde::Deserialize;
use warploom_report::geometric_mean;
use warploom_report::{Table, dash};

use super::operators::Row;
use super::timed::times;

/// What a ratio counts at most in the mean of its family; at least, it counts as the inverse.
pub(crate) const MOST: f64 = 4.0;

/// Rows that are in no mean, and why.
const APART: [(&str, &str); 1] =
    [("OpEvo C2", "its library time is of a transform algorithm, above the direct peak")];

/// What FlexTensor claims: over cuDNN on a V100, if nothing else is said.
const FLEXTENSOR: [(&str, &str); 8] = [
    ("C2D", "1.5x"),
    ("GRP", "1.54x to 21.35x"),
    ("DIL", "1.54x to 21.35x"),
    ("DEP", "4.39x to 8.53x of PyTorch"),
    ("T2D", "slower"),
    ("T3D", "slower"),
    ("BCM", "2.11x of hand-tuned code"),
    ("SHO", "1.53x of hand-tuned code"),
];

/// What Tensor Comprehensions reach over the best library on a P100.
const COMPREHENSIONS: [(&str, &str); 5] =
    [("tbmm", "3.6x"), ("gconv", "up to 8.8x"), ("2LUT", "4.2x"), ("MLP3", "2.8x"), ("MLP1", "1.2x")];

report! {
    /// The rows of a family together.
    #[derive(Clone, Deserialize)]
    pub struct Family = "family" {
        pub family: String, "its name";
        rows: usize, "the rows that were run";
        pub mean_ratio: Option<f64>, "geometric mean of their ratios, each counted as at most 4 and at least 1/4";
        flextensor: Option<String>, "what FlexTensor claims";
        tensor_comprehensions: Option<String>, "what Tensor Comprehensions claim";
    }
}

impl Family {
    fn new(family: &str, rows: &[&Row]) -> Family {
        let ratios = rows.iter().filter(|row| !is_apart(&row.name)).filter_map(|row| row.ratio);
        Family {
            family: family.to_owned(),
            rows: rows.len(),
            mean_ratio: geometric_mean(ratios.map(|ratio| ratio.clamp(1.0 / MOST, MOST))),
            flextensor: claimed(&FLEXTENSOR, family),
            tensor_comprehensions: claimed(&COMPREHENSIONS, family),
        }
    }
}

/// The table of families.
pub(crate) fn family_table(families: &[Family]) -> Table {
    Table::of(families)
        .left("family", |family| family.family.clone())
        .right("rows", |family| family.rows.to_string())
        .right("mean ratio", |family| times(family.mean_ratio))
        .left("FlexTensor", |family| dash(family.flextensor.as_ref()))
        .left("Tensor Comprehensions", |family| dash(family.tensor_comprehensions.as_ref()))
        .done()
}

/// The families of some rows, in order of first appearance.
pub(crate) fn of_rows(rows: &[Row]) -> Vec<Family> {
    let mut families: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        match families.iter_mut().find(|(family, _)| *family == row.family) {
            Some((_, rows)) => rows.push(row),
            None => families.push((&row.family, vec![row])),
        }
    }
    families.iter().map(|(family, rows)| Family::new(family, rows)).collect()
}

/// The geometric mean of the families' means.
pub(crate) fn overall(families: &[Family]) -> Option<f64> {
    geometric_mean(families.iter().filter_map(|family| family.mean_ratio))
}

/// Why a row is in no mean.
pub(crate) fn apart(name: &str) -> Option<&'static str> {
    APART.iter().find(|(row, _)| *row == name).map(|(_, why)| *why)
}

/// Whether a row is in no mean.
pub fn is_apart(name: &str) -> bool {
    apart(name).is_some()
}

fn claimed(claims: &[(&str, &str)], of: &str) -> Option<String> {
    claims.iter().find(|(name, _)| *name == of).map(|(_, claim)| (*claim).to_owned())
}

#[cfg(test)]
mod tests {
    use warploom_apps::operators::operators;

    use super::*;

    #[test]
    fn claims_are_about_families_and_exceptions_about_rows() {
        let set = operators();
        for (family, _) in FLEXTENSOR.iter().chain(&COMPREHENSIONS) {
            assert!(set.iter().any(|row| row.family == *family), "{family}");
        }
        assert!(APART.iter().all(|(name, _)| set.iter().any(|row| row.name == *name)));
    }
}
