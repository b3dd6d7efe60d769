//! `warploom completions`: prints shell completion scripts.

use std::io::Write;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::{Shell, generate};
use warploom::app::App;
use warploom::target::Device;

use crate::device;
use crate::error::Error;
use crate::report;

/// Print a shell completion script
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom completions bash > ~/.local/share/bash-completion/completions/warploom
  warploom completions zsh > \"${fpath[1]}/_warploom\"                 any folder in $fpath; then start a new shell
  warploom completions fish > ~/.config/fish/completions/warploom.fish
  warploom completions elvish >> ~/.config/elvish/rc.elv
  warploom completions powershell >> $PROFILE

For the current session only: source <(warploom completions bash)
`warploom manual` writes the scripts of all shells at once, and man pages.")]
pub(crate) struct Arguments {
    /// The shell to complete for
    shell: Shell,
}

/// Words that an argument can be besides a file.
struct Words {
    apps: Vec<String>,
    devices: Vec<String>,
}

pub(crate) fn completions(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    report::verbatim(out, &script(apps, arguments.shell))
}

/// The script for a shell.
pub(crate) fn script(apps: &[App], shell: Shell) -> String {
    let presets = Device::presets().into_iter().map(|device| device.name.to_lowercase().replace(' ', "-"));
    let devices = presets.chain([device::AUTO.to_owned()]);
    let words = Words { apps: apps.iter().map(|app| app.name.clone()).collect(), devices: devices.collect() };
    let mut script = Vec::new();
    let mut command = words.teach(crate::Arguments::command());
    let name = command.get_name().to_owned();
    generate(shell, &mut command, name, &mut script);
    words.with_files(shell, &command, &String::from_utf8_lossy(&script))
}

impl Words {
    /// The command line with the words that arguments can be. Only completion sees it: the program itself takes files, too.
    fn teach(&self, command: Command) -> Command {
        command.mut_subcommands(|command| command.mut_args(|arg| self.teach_argument(arg)))
    }

    fn teach_argument(&self, arg: Arg) -> Arg {
        match self.of(&arg) {
            Some(words) => arg.value_parser(PossibleValuesParser::new(words.clone())),
            None if takes_path(&arg) => arg.value_hint(ValueHint::AnyPath),
            None => arg,
        }
    }

    fn of(&self, arg: &Arg) -> Option<&Vec<String>> {
        match arg.get_id().as_str() {
            "app" | "apps" => Some(&self.apps),
            "device" => Some(&self.devices),
            _ => None,
        }
    }

    /// The script with files beside the words. Bash and PowerShell offer files by themselves where no word fits.
    fn with_files(&self, shell: Shell, command: &Command, script: &str) -> String {
        match shell {
            Shell::Zsh => [&self.apps, &self.devices].iter().fold(script.to_owned(), |script, words| {
                let words = words.join(" ");
                let files = r#""files:file:_files""#;
                script.replace(
                    &format!(":({words})"),
                    &format!(r#":{{_alternative "words:name:({words})" {files}}}"#),
                )
            }),
            Shell::Fish => script.to_owned() + &self.fish(command),
            _ => script.to_owned(),
        }
    }

    /// Lines for the first argument of commands, which clap leaves to files.
    fn fish(&self, command: &Command) -> String {
        let takes_app = |command: &&Command| command.get_positionals().any(|arg| arg.get_id() == "app");
        let line = |command: &Command| {
            let seen = format!("__fish_seen_subcommand_from {}", command.get_name());
            format!("complete -c warploom -n \"{seen}\" -a \"{}\"\n", self.apps.join(" "))
        };
        command.get_subcommands().filter(takes_app).map(line).collect()
    }
}

/// Whether the value of an argument is the path of a file or folder.
fn takes_path(arg: &Arg) -> bool {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().any(|name| name.contains("FILE") || name.contains("DIR"))
}
