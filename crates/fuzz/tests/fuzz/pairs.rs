//! Pairs of words on one line: refused with a sentence, or right in the simulator.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use warploom_fuzz::{Case, Verdict};
use warploom_lang::{Pipeline, Realisation};
use warploom_plan::Problem;
use warploom_plan::decisions::{DECISIONS, Facts};
use warploom_randpipe::{Options, random_pipeline};
use warploom_schedule::{Nest, NestNumbers, Schedule, Setting};

use crate::support::device;

const PIPELINES: u64 = 80;

const SCHEDULES: u64 = 12;

/// The most schedules with a pair that are simulated.
const SIMULATED: usize = 3;

type Pair = [&'static str; 2];

/// The words of nests, two by two, and whether one excludes the other.
fn pairs() -> Vec<(Pair, bool)> {
    let all = DECISIONS.iter().map(|decision| decision.facts());
    let all: Vec<Facts> = all.filter(|facts| NestNumbers::WORDS.contains(&facts.word)).collect();
    let mut pairs = Vec::new();
    for (number, first) in all.iter().enumerate() {
        for second in &all[number + 1..] {
            let excluded = first.excludes.contains(&second.word) || second.excludes.contains(&first.word);
            pairs.push(([first.word, second.word], excluded));
        }
    }
    pairs
}

fn set(nest: &mut Nest, word: &str) {
    match nest.numbers.of_word(word) {
        Some(Setting::Flag(flag)) => *flag = true,
        Some(Setting::Number(number)) => *number = number.or(NonZeroU32::new(3)),
        None => panic!("`{word}` is no word of a nest"),
    }
}

/// The schedules that have both words on the line of some nest.
fn with_pair(schedule: &Schedule, pair: Pair) -> Vec<Schedule> {
    let number = schedule.nests().count();
    let with = |at: usize| {
        let mut next = schedule.clone();
        let nest = next.kernels_mut().flat_map(|kernel| kernel.nests_mut()).nth(at);
        nest.into_iter().for_each(|nest| pair.iter().for_each(|word| set(nest, word)));
        next
    };
    (0..number).map(with).collect()
}

struct Random {
    pipeline: Pipeline,
    request: Realisation,
    problem: Problem,
    schedules: Vec<Schedule>,
}

fn random(seed: u64) -> Random {
    let random = random_pipeline(seed, &Options::default());
    let problem = Problem::new(&random.pipeline, &random.request, &device()).unwrap();
    let schedules = (0..SCHEDULES).map(|seed| problem.random_schedule(seed)).collect();
    Random { pipeline: random.pipeline, request: random.request, problem, schedules }
}

#[test]
fn pairs_of_words_exclude_each_other_or_give_the_reference() {
    let mut found: BTreeMap<Pair, usize> = BTreeMap::new();
    for seed in 0..PIPELINES {
        let Random { pipeline, request, problem, schedules } = random(seed);
        for (pair, excluded) in pairs() {
            for schedule in schedules.iter().flat_map(|schedule| with_pair(schedule, pair)) {
                let times = found.entry(pair).or_default();
                if *times == SIMULATED {
                    break;
                }
                let text = schedule.to_text(&pipeline);
                match problem.check(&schedule) {
                    Err(violations) => assert!(violations.iter().all(|found| found.to_string().len() > 20)),
                    Ok(_) if excluded => panic!("{pair:?} exclude each other:\n{text}"),
                    Ok(_) => {
                        let (pipeline, request) = (pipeline.clone(), request.clone());
                        let case = Case { pipeline, request, schedule, seed };
                        assert_eq!(case.check(&device()).unwrap(), Verdict::Passed, "{pair:?}:\n{text}");
                        *times += 1;
                    }
                }
            }
        }
    }
    for (pair, excluded) in pairs() {
        assert!(excluded || found[&pair] > 0, "{pair:?} never go together, so one should exclude the other");
    }
}
