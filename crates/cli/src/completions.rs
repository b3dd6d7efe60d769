//! `warploom completions`: prints shell completion scripts.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::error::Error;
use crate::report;

/// Print a script with which a shell completes the program's commands and options
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom completions bash > ~/.local/share/bash-completion/completions/warploom
  warploom completions zsh > \"${fpath[1]}/_warploom\"                 a folder of $fpath; then start a new shell
  warploom completions fish > ~/.config/fish/completions/warploom.fish
  warploom completions elvish >> ~/.config/elvish/rc.elv
  warploom completions powershell >> $PROFILE

For one session alone: source <(warploom completions bash)")]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn completions(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let mut script = Vec::new();
    let mut command = crate::Arguments::command();
    let name = command.get_name().to_owned();
    generate(arguments.shell, &mut command, name, &mut script);
    report::text(out, &String::from_utf8_lossy(&script))
}
