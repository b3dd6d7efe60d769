//! `warploom completions`: prints shell completion scripts.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::{Shell, generate};

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

For the current session only: source <(warploom completions bash)")]
pub(crate) struct Arguments {
    /// The shell to complete for
    shell: Shell,
}

pub(crate) fn completions(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let mut script = Vec::new();
    let mut command = crate::Arguments::command();
    let name = command.get_name().to_owned();
    generate(arguments.shell, &mut command, name, &mut script);
    report::text(out, &String::from_utf8_lossy(&script))
}
