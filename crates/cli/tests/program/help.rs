//! The pages of `--help`, so that every change of them is seen.

use crate::place::Place;

/// Every command, and commands of commands.
pub const COMMANDS: [&str; 30] = [
    "",
    "apps",
    "graph",
    "run",
    "compile",
    "explain",
    "verify",
    "sim",
    "bench",
    "accuracy",
    "tune",
    "suite",
    "records",
    "records list",
    "records show",
    "records best",
    "records export",
    "records copy",
    "records import",
    "landscape",
    "landscape record",
    "landscape show",
    "report",
    "cache",
    "cache info",
    "cache clear",
    "fuzz",
    "devices",
    "completions",
    "manual",
];

/// Those that only a program with the feature `train` has.
const TRAINING: [&str; 3] = ["collect", "train", "evaluate"];

/// Those that only a program with the feature `farm` has.
pub const FARM: &[&str] = if cfg!(all(feature = "farm", feature = "train", unix)) {
    &["farm", "farm start", "farm worker", "farm status", "farm stop", "farm collect"]
} else if cfg!(all(feature = "farm", unix)) {
    &["farm", "farm start", "farm worker", "farm status", "farm stop"]
} else {
    &[]
};

/// Those that say more where the program can train.
const LONGER_WITH_TRAIN: [&str; 4] = ["", "tune", "suite", "farm"];

#[test]
fn pages_are_as_they_were() {
    let place = Place::new();
    let trains = cfg!(feature = "train");
    for command in
        COMMANDS.iter().chain(FARM).filter(|command| !trains || !LONGER_WITH_TRAIN.contains(command))
    {
        let ran = place.run(&format!("{command} --help"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command}");
        let name = if command.is_empty() { "warploom".to_owned() } else { command.replace(' ', "-") };
        insta::with_settings!({ omit_expression => true }, {
            insta::assert_snapshot!(format!("help-{name}"), ran.out);
        });
    }
}

#[cfg(feature = "train")]
#[test]
fn commands_of_training_have_pages() {
    let place = Place::new();
    for command in TRAINING {
        let ran = place.run(&format!("{command} --help"));
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{command}");
        assert!(ran.out.contains(&format!("Examples:\n  warploom {command}")), "{}", ran.out);
    }
    assert!(place.run("tune --help").out.contains("--retrain"));
}

#[test]
fn no_command_is_left_out() {
    let place = Place::new();
    let listed = |of: &str| {
        let text = place.run(&format!("{of} -h")).out;
        let commands = text.split("Commands:\n").nth(1).unwrap_or_default().to_owned();
        // What continues the text of a command is further right.
        let lines = commands.lines().take_while(|line| line.starts_with("  "));
        let lines = lines.filter(|line| !line.starts_with("    "));
        lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect::<Vec<_>>()
    };
    for of in ["", "records", "landscape", "cache", "farm"] {
        for command in listed(of).iter().filter(|command| *command != "help") {
            let whole = format!("{of} {command}");
            let known = COMMANDS.iter().chain(&TRAINING).chain(FARM).any(|known| *known == whole.trim());
            assert!(known, "`{}` has no page in this test", whole.trim());
        }
    }
}

#[test]
fn a_page_fits_its_command() {
    let place = Place::new();
    for command in COMMANDS.iter().chain(FARM) {
        let [short, long] = ["-h", "--help"].map(|flag| place.run(&format!("{command} {flag}")).out);
        assert!(short.len() <= long.len(), "{command}");
        let widest = long.lines().chain(short.lines()).map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{command}: {widest:?}");
    }
    let whole = place.run("--help").out;
    for variable in [
        "WARPLOOM_LOG",
        "WARPLOOM_CACHE_DIR",
        "WARPLOOM_NVRTC_DIR",
        "WARPLOOM_LAUNCH",
        "WARPLOOM_POSTGRES",
        "CUDA_HOME",
    ] {
        assert!(whole.contains(variable), "{variable}");
    }
    assert!(
        (0..=6).all(|code| whole.contains(&format!("\n  {code}    ")))
            && [130, 141].iter().all(|code| whole.contains(&format!("\n  {code}  "))),
        "{whole}"
    );
}
