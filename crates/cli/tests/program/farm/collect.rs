//! Farms that collect samples.

use warploom::tune::sample::{Origin, Shard};

use super::*;

impl Farm {
    /// All samples, in a new file.
    fn samples(&self, name: &str) -> Shard {
        let exported = self.run(&format!("records export {name} --records farm/farm.json"));
        assert_eq!(exported.code, 0, "{}", exported.err);
        Shard::read(self.path(name)).unwrap()
    }
}

#[test]
fn a_farm_collects_samples_on_postgres() {
    let Some(farm) = Farm::new("a_farm_collects_samples_on_postgres") else { return };
    let collect = "farm collect --database farm --local 2 --fake fake --per-pipeline 6 --seed 5";
    let started = farm.run(&format!("{collect} --pipelines 2 --verify 0.5"));
    assert_eq!(started.code, 0, "{}", started.err);
    for line in ["2 runs: 2 random pipelines", "farm status", "records export night.samples"] {
        assert!(started.out.contains(line), "{line}: {}", started.out);
    }
    let status = farm.finished();
    for run in status["runs"].as_array().unwrap() {
        assert!(run["message"].as_str().unwrap().starts_with("timed "), "{run}");
        assert_eq!(run["trials"], run["valid"], "{run}");
    }
    let first = farm.samples("first.samples");
    assert_eq!(first.pipelines.len(), 2);
    let verified = first.samples.iter().filter(|sample| sample.verified).count();
    assert!(verified > 0 && verified < first.samples.len(), "{verified} of {}", first.samples.len());

    // Another collection goes into the same database.
    let more = farm.json(&format!("{collect} cuda_mat_mul --pipelines 0 --per-app 4 --verify 0 --json"));
    assert_eq!(more["runs"][0]["name"], "cuda_mat_mul round 1", "{more}");
    farm.finished();
    let all = farm.samples("all.samples");
    assert_eq!(all.pipelines.len(), 3);
    for pipeline in all.pipelines.keys() {
        let samples: Vec<_> = all.samples.iter().filter(|sample| sample.pipeline == *pipeline).collect();
        assert!((2..=6).contains(&samples.len()), "{}", samples.len());
        assert_eq!(samples.iter().filter(|sample| sample.origin == Origin::Default).count(), 1);
        assert!(samples.iter().any(|sample| sample.origin == Origin::Search));
        assert!(samples.iter().all(|sample| sample.times.is_some()));
    }
}

#[test]
fn what_is_wrong_with_a_collection_is_said_at_once() {
    let place = crate::place::Place::new();
    for (options, why) in [
        ("--pipelines 0", "nothing could be measured: --pipelines and --per-app are 0"),
        ("--per-app 20 harrris", "there is no app `harrris`"),
        ("--pipelines 2 --ssh hosts.txt --local 2", "cannot be used with"),
    ] {
        let ran = place.run(&format!("farm collect --database farm {options}"));
        assert_ne!(ran.code, 0, "{options}");
        let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(why), "{options}: {said}");
        assert!(!place.path("farm").exists(), "{options}");
    }
    let ran = place.run("farm collect --database farm --slurm gpu:2,cpu:1 --dry-run");
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("#SBATCH --array=0-1") && !place.path("farm").exists(), "{}", ran.out);
}
