//! Limits that make a space small.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use warploom_strategy::{Coordinate, Point};

/// Limits of the points of a landscape on its open axes. An axis with three factors has blocks, threads and the points
/// of a thread; one with two has iterations and the values in each.
///
/// ```
/// use warploom_tune::landscape::Limits;
/// let limits: Limits = "threads=64..256,values=8..32".parse()?;
/// assert_eq!(limits.to_string(), "threads=64..256,along=8,points=64,values=8..32");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// The fewest and the most threads of a block.
    pub threads: (u64, u64),
    /// The most points of a thread along one dimension.
    pub along: u64,
    /// The most points of a thread.
    pub points: u64,
    /// The fewest and the most values of a reduction in an iteration.
    pub values: (u64, u64),
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { threads: (32, 512), along: 8, points: 64, values: (4, 32) }
    }
}

impl Limits {
    /// Whether a point is within the limits.
    pub fn hold(&self, point: &Point) -> bool {
        let (mut threads, mut points, mut values) = (1u64, 1u64, None);
        for coordinate in &point.at {
            let Coordinate::Factors(factors) = coordinate else { continue };
            match factors[..] {
                [_, _, own] if own > self.along => return false,
                [_, shared, own] => {
                    threads = threads.saturating_mul(shared);
                    points = points.saturating_mul(own);
                }
                [_, each] => values = Some(values.unwrap_or(1u64).saturating_mul(each)),
                _ => {}
            }
        }
        let within = |number: u64, (least, most): (u64, u64)| (least..=most).contains(&number);
        within(threads, self.threads)
            && points <= self.points
            && values.is_none_or(|values| within(values, self.values))
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limits { threads, along, points, values } = self;
        let range = |(least, most): &(u64, u64)| format!("{least}..{most}");
        write!(out, "threads={},along={along},points={points},values={}", range(threads), range(values))
    }
}

impl FromStr for Limits {
    type Err = String;

    /// Limits that are not named have defaults.
    fn from_str(text: &str) -> Result<Limits, String> {
        let mut limits = Limits::default();
        for limit in text.split(',').filter(|limit| !limit.is_empty()) {
            let (name, value) = limit.split_once('=').unwrap_or((limit, ""));
            let range = || range(value).ok_or_else(|| format!("`{limit}`: write {name}=4..32"));
            let most = || value.parse().map_err(|_| format!("`{limit}`: write {name}=8"));
            match name {
                "threads" => limits.threads = range()?.into_inner(),
                "values" => limits.values = range()?.into_inner(),
                "along" => limits.along = most()?,
                "points" => limits.points = most()?,
                _ => {
                    return Err(format!(
                        "there is no limit `{name}`; there are threads, along, points, values"
                    ));
                }
            }
        }
        Ok(limits)
    }
}

fn range(text: &str) -> Option<RangeInclusive<u64>> {
    let (least, most) = text.split_once("..")?;
    let (least, most) = (least.parse().ok()?, most.parse().ok()?);
    (least <= most).then_some(least..=most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(factors: &[&[u64]]) -> Point {
        Point { template: 0, at: factors.iter().map(|of| Coordinate::Factors(of.to_vec())).collect() }
    }

    #[test]
    fn limits_are_inclusive() {
        let limits = Limits::default();
        let holds = |factors: &[&[u64]]| limits.hold(&point(factors));
        assert!(holds(&[&[16, 16, 4], &[8, 16, 8], &[64, 16]]));
        assert!(holds(&[&[4, 32, 8], &[8, 16, 8], &[32, 32]]), "all at their ends");
        assert!(holds(&[&[1, 32, 1], &[64, 1, 1], &[32, 4]]), "all at their other ends");
        assert!(holds(&[&[16, 16, 4], &[8, 16, 8]]), "nothing is reduced");
        assert!(!holds(&[&[1, 64, 4], &[8, 16, 8], &[64, 16]]), "1024 threads");
        assert!(!holds(&[&[64, 4, 4], &[8, 4, 8], &[64, 16]]), "16 threads");
        assert!(!holds(&[&[8, 16, 16], &[8, 16, 1], &[64, 16]]), "16 points along a dimension");
        assert!(!holds(&[&[16, 16, 8], &[8, 4, 8], &[64, 4], &[1, 16]]), "64 values in two variables");
        assert!(!holds(&[&[16, 16, 8], &[8, 4, 4], &[8, 1, 4], &[64, 16]]), "128 points");
    }

    #[test]
    fn limits_are_text() {
        assert_eq!("".parse(), Ok(Limits::default()));
        let limits = Limits { threads: (1, 9), along: 3, points: 5, values: (2, 2) };
        assert_eq!(limits.to_string().parse(), Ok(limits));
        for wrong in ["threads", "threads=8", "threads=9..8", "along=", "points=1..2", "warps=3"] {
            assert!(wrong.parse::<Limits>().unwrap_err().contains('`'), "{wrong}");
        }
    }
}
