//! The bottleneck of a kernel.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use warploom_cost::Term;

use crate::explain::{Explainer, Open};

/// The part of a kernel's predicted time that is the longest.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bottleneck {
    /// The kind of limit.
    #[serde(flatten, serialize_with = "as_facts")]
    pub limit: Limit,
    /// The time of that part, in microseconds.
    pub us: f64,
    /// The predicted time of the kernel, in microseconds.
    pub of_us: f64,
    /// The same as a sentence.
    pub sentence: String,
}

/// A limit in a uniform form, for JSON.
#[derive(Serialize)]
struct Facts<'a> {
    kind: &'static str,
    pipe: Option<&'static str>,
    stage: Option<&'a str>,
    numbers: BTreeMap<&'static str, f64>,
}

fn as_facts<S: Serializer>(limit: &Limit, serializer: S) -> Result<S::Ok, S::Error> {
    let of = |kind, numbers: &[(&'static str, f64)]| Facts {
        kind,
        pipe: None,
        stage: None,
        numbers: numbers.iter().copied().collect(),
    };
    let facts = match limit {
        Limit::Launch { launches } => of("launch", &[("launches", *launches)]),
        Limit::Dram { bytes, gbps } => of("dram", &[("bytes", *bytes), ("gbps", *gbps)]),
        Limit::L2 { bytes } => of("l2", &[("bytes", *bytes)]),
        Limit::Sms { pipe, stage } => Facts { pipe: Some(pipe), stage: Some(stage), ..of("sms", &[]) },
        Limit::Latency { warps_per_sm, most_warps_per_sm, blocks, sms } => {
            let numbers = [*warps_per_sm, *most_warps_per_sm, *blocks, *sms].map(|number| number as f64);
            let names = ["warps_per_sm", "most_warps_per_sm", "blocks", "sms"];
            Facts { numbers: names.into_iter().zip(numbers).collect(), ..of("latency", &[]) }
        }
    };
    facts.serialize(serializer)
}

/// A limit of a kernel, with the numbers behind it.
#[derive(Clone, PartialEq, Debug)]
pub enum Limit {
    /// The time from one launch to the next.
    Launch {
        /// The number of launches.
        launches: f64,
    },
    /// The bandwidth of DRAM.
    Dram {
        /// Distinct bytes that the launches read and write.
        bytes: f64,
        /// The achievable rate of the device.
        gbps: f64,
    },
    /// The bandwidth of the L2 cache.
    L2 {
        /// Bytes that the blocks move from and to it.
        bytes: f64,
    },
    /// The instructions that the SMs execute.
    Sms {
        /// The busiest pipe, as the terms of stages name it.
        pipe: &'static str,
        /// The stage that uses it most.
        stage: String,
    },
    /// Exposed latency: too few warps to hide waiting for results.
    Latency {
        /// Warps per SM while the kernel runs.
        warps_per_sm: u64,
        /// The most warps that an SM can hold.
        most_warps_per_sm: u64,
        /// Blocks per launch.
        blocks: u64,
        /// SMs of the device.
        sms: u64,
    },
}

impl Explainer<'_> {
    /// The longest part of a kernel's time; `None` if it takes no time or the model names other parts.
    pub(super) fn bottleneck(
        &self,
        open: &Open<'_>,
        terms: &[Term],
        of_us: f64,
        blocks_per_sm: u32,
    ) -> Option<Bottleneck> {
        let longest = terms.iter().max_by(|a, b| a.microseconds.total_cmp(&b.microseconds))?;
        let us = longest.microseconds;
        if us <= 0.0 || of_us <= 0.0 {
            return None;
        }
        let limit = self.limit(open, longest.name, blocks_per_sm)?;
        let mut bottleneck = Bottleneck { limit, us, of_us, sentence: String::new() };
        bottleneck.sentence = bottleneck.to_string();
        Some(bottleneck)
    }

    fn limit(&self, open: &Open<'_>, part: &str, blocks_per_sm: u32) -> Option<Limit> {
        let (features, device) = (open.features, self.problem.device());
        Some(match part {
            "launch" => Limit::Launch { launches: features.launches },
            "DRAM" => Limit::Dram {
                bytes: (features.read_bytes + features.written_bytes) * features.launches,
                gbps: device.memory.dram_achieved_gbps,
            },
            "L2" => {
                let traffic = open.lines.iter().filter_map(|line| line.traffic);
                let bytes = traffic.map(|of| of.global_read_bytes + of.global_written_bytes).sum();
                Limit::L2 { bytes }
            }
            "SMs" => {
                let (pipe, stage) = self.busiest(open)?;
                Limit::Sms { pipe, stage }
            }
            "latency" => {
                let (blocks, sms) = (features.blocks as u64, u64::from(device.sms));
                let resident = u64::from(blocks_per_sm).min(blocks.div_ceil(sms.max(1))).max(1);
                Limit::Latency {
                    warps_per_sm: resident * open.plan.threads.div_ceil(device.threads.warp.into()),
                    most_warps_per_sm: device.threads.warps_per_sm.into(),
                    blocks,
                    sms,
                }
            }
            _ => return None,
        })
    }

    /// The busiest pipe of the SMs over all stages, and the stage that uses it most.
    fn busiest(&self, open: &Open<'_>) -> Option<(&'static str, String)> {
        let mut pipes: Vec<(&'static str, f64)> = Vec::new();
        for term in open.rows.iter().flatten() {
            match pipes.iter_mut().find(|(name, _)| *name == term.name) {
                Some((_, us)) => *us += term.microseconds,
                None => pipes.push((term.name, term.microseconds)),
            }
        }
        let (pipe, _) = pipes.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let of = |terms: &[Term]| -> f64 {
            terms.iter().filter(|term| term.name == pipe).map(|term| term.microseconds).sum()
        };
        // Ties go to the first.
        let rows = open.features.rows.iter().zip(&open.rows).rev();
        let (row, _) = rows.max_by(|(_, a), (_, b)| of(a).total_cmp(&of(b)))?;
        Some((pipe, self.row_name(row)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(limit: Limit) -> String {
        Bottleneck { limit, us: 8.04, of_us: 11.0, sentence: String::new() }.to_string()
    }

    #[test]
    fn limits_are_sentences() {
        assert_eq!(
            said(Limit::Dram { bytes: 31.5e6, gbps: 3900.0 }),
            "limited by DRAM: 31.5 MB at 3.9 TB/s take 8.0 of its 11.0 us"
        );
        // At the rate of DRAM it would take far longer: most of it is in the L2 cache.
        assert_eq!(
            said(Limit::Dram { bytes: 315e6, gbps: 3900.0 }),
            "limited by DRAM: 315.0 MB, a part of them in the L2 cache, take 8.0 of its 11.0 us"
        );
        assert_eq!(
            said(Limit::L2 { bytes: 120e6 }),
            "limited by the L2 cache: its blocks move 120.0 MB, which take 8.0 of its 11.0 us"
        );
        assert_eq!(
            said(Limit::Launch { launches: 9.0 }),
            "limited by the launch: its 9 launches take 8.0 of its 11.0 us"
        );
        assert_eq!(
            said(Limit::Launch { launches: 1.0 }),
            "limited by the launch, which takes 8.0 of its 11.0 us"
        );
        assert_eq!(
            said(Limit::Sms { pipe: "L1 and shared", stage: "blur_y".to_owned() }),
            "limited by the SMs, busy for 8.0 of its 11.0 us: accesses to L1 and shared memory, above all for `blur_y`"
        );
    }

    #[test]
    fn latency_says_what_is_missing() {
        let latency = |warps_per_sm, blocks| {
            said(Limit::Latency { warps_per_sm, most_warps_per_sm: 64, blocks, sms: 132 })
        };
        assert_eq!(
            latency(12, 1000),
            "limited by latency: only 12 warps per SM; waiting takes 8.0 of its 11.0 us"
        );
        assert_eq!(
            latency(48, 1000),
            "limited by latency, with 48 warps per SM; waiting takes 8.0 of its 11.0 us"
        );
        assert_eq!(
            latency(8, 24),
            "limited by latency: only 24 blocks for 132 SMs; waiting takes 8.0 of its 11.0 us"
        );
        assert_eq!(
            latency(8, 1),
            "limited by latency: only 1 block for 132 SMs; waiting takes 8.0 of its 11.0 us"
        );
    }
}
