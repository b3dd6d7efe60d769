//! `warploom manual`: writes man pages and completion scripts.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use warploom::app::App;

use crate::completions;
use crate::error::Error;
use crate::help;
use crate::report::{self, Format};
use crate::show;
use crate::writable::{self, unwritable};

/// Write man pages, and completion scripts for all shells
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  warploom manual -o ~/.local        for you: `man warploom` and `man warploom-compile` then find their pages
  warploom manual -o /usr/local      for all users of the machine

The files are where man and the shells look for them below a prefix such as /usr/local. Zsh, Elvish and PowerShell look for
scripts of one user elsewhere: see `warploom help completions`.")]
pub(crate) struct Arguments {
    /// The folder below whose `share` the files are written; created if missing. Existing files are overwritten
    #[arg(short, long, alias = "out", value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    format: Format,
}

/// The characters of a line beside the margin of a page.
const WIDTH: usize = 72;

/// The folder of man pages.
const PAGES: &str = "share/man/man1";

/// Where each shell looks for completion scripts.
const SCRIPTS: [(Shell, &str); 5] = [
    (Shell::Bash, "share/bash-completion/completions/warploom"),
    (Shell::Elvish, "share/elvish/lib/warploom.elv"),
    (Shell::Fish, "share/fish/vendor_completions.d/warploom.fish"),
    (Shell::PowerShell, "share/powershell/warploom.ps1"),
    (Shell::Zsh, "share/zsh/site-functions/_warploom"),
];

report! {
    struct Written = "warploom.manual/1" {
        pages: Vec<String>, "the files of the man pages";
        scripts: Vec<String>, "the files of the completion scripts";
    }
}

/// Writes all files.
pub(crate) fn manual(apps: &[App], arguments: &Arguments, out: &mut dyn Write) -> Result<(), Error> {
    let Arguments { output, format } = arguments;
    let mut command = crate::Arguments::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    render(&command, &mut pages)?;
    let written = |(name, text): &(String, Vec<u8>)| write(output, name, text);
    let pages = pages.iter().map(written).collect::<Result<Vec<_>, _>>()?;
    let scripts =
        SCRIPTS.map(|(shell, name)| write(output, name, completions::script(apps, shell).as_bytes()));
    let scripts = scripts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let written = Written { pages, scripts };
    report::print(out, *format, &written, || {
        let pages = show::count(written.pages.len(), "man page");
        let scripts = show::count(written.scripts.len(), "completion script");
        format!("{pages} and {scripts} in {}\n", show::path(output.join("share")))
    })
}

/// Appends the man page of a command and those of its commands, each with its file below the folder.
fn render(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let man = Man::new(command.clone());
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    man.render_options_section(&mut text)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(more) = command.get_after_long_help().or(command.get_after_help()) {
        sections(&help::refolded(&more.to_string(), WIDTH)).to_writer(&mut text)?;
    }
    pages.push((format!("{PAGES}/{}", man.get_filename()), text));
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.into_iter().try_for_each(|command| render(command, pages))
}

/// The text below the options: a line that ends with a colon is the heading of a section, indented lines are shown as they are.
fn sections(text: &str) -> Roff {
    let mut roff = Roff::new();
    let mut heading = None;
    for block in text.split("\n\n") {
        let (first, rest) = block.split_once('\n').unwrap_or((block, ""));
        let title = first.strip_suffix(':').filter(|_| rest.starts_with(' '));
        let block = if title.is_some() { rest } else { block };
        // What has no heading is not part of the section before it.
        match title.unwrap_or("Notes").to_uppercase() {
            same if heading.as_ref() == Some(&same) => roff.control("PP", []),
            new => roff.control("SH", [heading.insert(new).as_str()]),
        };
        let shown = block.starts_with(' ');
        if shown {
            roff.control("nf", []);
        }
        block.lines().for_each(|line| _ = roff.text([roman(line)]));
        if shown {
            roff.control("fi", []);
        }
    }
    roff
}

/// Writes one file below a folder, and returns its path.
fn write(folder: &Path, name: &str, text: &[u8]) -> Result<String, Error> {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(unwritable(&path))?;
    writable::write(&path, text)
}
