//! Refuses flags that would have no effect.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::backend::{Backend, Source};
use crate::error::Error;
use crate::suite::{Mode, Set};

/// Flags of some commands that have no effect in some cases.
struct Rule {
    commands: &'static [&'static str],
    /// The ids of the flags.
    flags: &'static [&'static str],
    /// Whether they have no effect with these arguments.
    ignored: fn(&ArgMatches) -> bool,
    /// Why not, and what to do.
    why: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        commands: &["run", "verify"],
        flags: &["schedule", "device", "model"],
        ignored: |given| runs_on(given, Backend::Reference),
        why: "the reference evaluator runs no kernels; add --on sim or --on cuda",
    },
    Rule {
        commands: &["run", "verify"],
        flags: &["device"],
        ignored: |given| runs_on(given, Backend::Cuda),
        why: "kernels that run on a GPU are generated for that GPU; remove it",
    },
    Rule {
        commands: &["bench"],
        flags: &["device"],
        ignored: |_| true,
        why: "kernels that run on a GPU are generated for that GPU; remove it",
    },
    Rule {
        commands: &["run", "verify", "sim", "bench"],
        flags: &["model"],
        ignored: |given| !matches!(schedule(given), None | Some(Source::Search(_))),
        why: "only a search uses a cost model; add --schedule search",
    },
    Rule {
        commands: &["suite"],
        flags: &["iterations", "retrain"],
        ignored: |given| mode(given) != Some(Mode::Autotune),
        why: "only autotuning has iterations; add --mode autotune",
    },
    Rule {
        commands: &["tune"],
        flags: &["trials", "set_strategy", "templates", "template", "axes", "run_spilling"],
        ignored: |given| !is_given(given, "strategy"),
        why: "only a strategy has trials and templates; add --strategy",
    },
    Rule {
        commands: &["suite"],
        flags: &["trials", "seeds", "templates", "template", "axes", "run_spilling"],
        ignored: |given| !is_given(given, "strategies"),
        why: "only strategies have trials and templates; add --strategies",
    },
    Rule {
        commands: &["suite"],
        flags: &["compare", "time_limit"],
        ignored: |given| is_given(given, "strategies"),
        why: "strategies are compared with each other, after as many --trials; remove --strategies",
    },
    Rule {
        commands: &["suite"],
        flags: &["apps", "size", "sizes"],
        ignored: |given| set(given) == Some(Set::Operators),
        why: "operators have sizes of their own and are chosen with --rows; remove --of operators",
    },
    Rule {
        commands: &["suite"],
        flags: &["rows"],
        ignored: |given| set(given) != Some(Set::Operators),
        why: "only operators are chosen by pattern; add --of operators",
    },
    Rule {
        commands: &["suite"],
        flags: &["schedules"],
        ignored: |given| mode(given) != Some(Mode::Manual),
        why: "only mode `manual` reads schedules; add --mode manual",
    },
    Rule {
        commands: &["suite"],
        flags: &["samples", "time_limit", "from_scratch", "init"],
        ignored: |given| matches!(mode(given), Some(Mode::Manual | Mode::Default)),
        why: "this mode does not search; choose another --mode",
    },
];

/// Returns an error if a flag on the command line has no effect.
pub(crate) fn check(matches: &ArgMatches) -> Result<(), Error> {
    let Some((command, given)) = matches.subcommand() else { return Ok(()) };
    for rule in RULES.iter().filter(|rule| rule.commands.contains(&command)) {
        let flag = rule.flags.iter().find(|flag| is_given(given, flag));
        if let Some(flag) = flag.filter(|_| (rule.ignored)(given)) {
            return Err(Error::Ignored { flag: spelled(flag), why: rule.why });
        }
    }
    Ok(())
}

/// How a flag with this id is written.
fn spelled(id: &str) -> String {
    match id {
        "axes" => "open".to_owned(),
        id => id.replace('_', "-"),
    }
}

/// Whether a flag is on the command line. A program without some features lacks some flags.
fn is_given(given: &ArgMatches, flag: &str) -> bool {
    let exists = given.try_contains_id(flag).unwrap_or(false);
    exists && given.value_source(flag) == Some(ValueSource::CommandLine)
}

fn runs_on(given: &ArgMatches, backend: Backend) -> bool {
    let usual = if is_given(given, "trace") { Backend::Sim } else { Backend::Reference };
    *given.get_one::<Backend>("on").unwrap_or(&usual) == backend
}

fn schedule(given: &ArgMatches) -> Option<&Source> {
    given.get_one::<Source>("schedule")
}

fn mode(given: &ArgMatches) -> Option<Mode> {
    given.get_one::<Mode>("mode").copied()
}

fn set(given: &ArgMatches) -> Option<Set> {
    given.get_one::<Set>("set").copied()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn rules_are_about_flags_that_exist() {
        let program = crate::Arguments::command();
        for rule in RULES {
            for name in rule.commands {
                let command = program.find_subcommand(name).expect("it is a command");
                for flag in rule.flags.iter().filter(|flag| **flag != "retrain") {
                    assert!(command.get_arguments().any(|arg| arg.get_id() == *flag), "{name} --{flag}");
                }
            }
        }
    }
}
