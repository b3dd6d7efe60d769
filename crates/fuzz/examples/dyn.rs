use warploom_fuzz::{Case, Options, fuzz, random_schedules};
use warploom_target::Device;
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let device = Device::preset("h200").unwrap();
    let options = Options { pipelines: args[0], seed: args[1], max_failures: 12, ..Options::default() };
    let skipped = std::sync::Mutex::new(std::collections::BTreeMap::<String, usize>::new());
    let check = |case: &Case| {
        let r = case.check_dynamic(&device, &|_| Ok(()));
        if let Ok(warploom_fuzz::Verdict::Skipped(why)) = &r {
            let key: String = why.chars().filter(|c| !c.is_ascii_digit()).take(70).collect();
            *skipped.lock().unwrap().entry(key).or_insert(0) += 1;
        }
        r
    };
    let summary = fuzz(&options, &device, &random_schedules(3), &check, &|_| ()).unwrap();
    println!(
        "pairs {} skipped {} failures {} {:?}",
        summary.pairs,
        summary.skipped,
        summary.failures.len(),
        summary.time
    );
    let mut list: Vec<_> = skipped.into_inner().unwrap().into_iter().collect();
    list.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    for (why, n) in list.into_iter().take(15) {
        println!("  {n} {why}");
    }
    for f in &summary.failures {
        println!(
            "seed {} {}: {}",
            f.pipeline_seed,
            f.schedule_seed,
            f.failure.to_string().chars().take(500).collect::<String>()
        );
    }
    if let Some(first) = summary.failures.first().and_then(|f| f.case.as_ref()) {
        println!("{}", first.pipeline);
        println!("{}", first.schedule.to_text(&first.pipeline));
        for r in first.request.inputs.values().flatten() {
            println!("in {r}");
        }
        for r in first.request.outputs.iter().flatten() {
            println!("out {r}");
        }
    }
}
