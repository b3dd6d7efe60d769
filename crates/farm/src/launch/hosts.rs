//! The file of machines that are reached by ssh.
//!
//! ```text
//! # name, and what is special about it
//! gpu1
//! ann@gpu2.lan   gpus=0,1
//! gpu3           role=run program=/opt/warploom/bin/warploom farm-file=farm.json
//! build7         role=propose,compile
//! ```
//!
//! Each line starts one worker; a machine may have several. Relative paths are those of the home
//! folder there. Ports, keys and other settings belong in `~/.ssh/config`.

use std::fmt;
use std::fs;
use std::path::Path;

use super::error::LaunchError;
use super::roles::{Role, Roles};

/// The machines of a file, at least one. `Display` prints a valid file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(Vec<Host>);

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The machine in ssh's form: `name` or `user@name`.
    pub name: String,
    /// The roles of the worker.
    pub roles: Roles,
    /// Numbers of its GPUs; if empty, the first.
    pub gpus: Vec<usize>,
    /// The program there, if its path differs.
    pub program: Option<String>,
    /// The farm file there, if its path differs.
    pub farm_file: Option<String>,
}

impl Hosts {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, if a line is wrong, or if no line names a host.
    pub fn read(path: &Path) -> Result<Hosts, LaunchError> {
        let text = fs::read_to_string(path)
            .map_err(|error| LaunchError::Hosts { path: path.to_path_buf(), error })?;
        Hosts::parse(&text, path)
    }

    /// Reads the text of a file, whose path stands in errors.
    ///
    /// # Errors
    ///
    /// If a line is wrong, or if none names a host.
    pub fn parse(text: &str, path: &Path) -> Result<Hosts, LaunchError> {
        let mut hosts = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = |reason| LaunchError::Host { path: path.to_path_buf(), line: number, reason };
            hosts.extend(host(line).map_err(wrong)?);
        }
        match hosts.is_empty() {
            true => Err(LaunchError::NoHosts { path: path.to_path_buf() }),
            false => Ok(Hosts(hosts)),
        }
    }

    /// The machines, in the order of the lines.
    pub fn hosts(&self) -> &[Host] {
        &self.0
    }
}

/// The machine on a line, if there is one.
fn host(line: &str) -> Result<Option<Host>, String> {
    if let Some(odd) = line.chars().find(|c| c.is_control() && *c != '\t') {
        return Err(format!("the line contains the control character {odd:?}; remove it"));
    }
    let mut words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
    let Some(name) = words.next() else { return Ok(None) };
    check_name(name)?;
    let mut host =
        Host { name: name.to_owned(), roles: Roles::all(), gpus: Vec::new(), program: None, farm_file: None };
    let mut seen = Vec::new();
    for word in words {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        if seen.contains(&key) {
            return Err(format!("`{key}` is there twice; leave out one"));
        }
        seen.push(key);
        match key {
            "role" => host.roles = value.parse().map_err(|error: LaunchError| error.to_string())?,
            "gpus" => host.gpus = numbers(value)?,
            "program" => host.program = Some(remote_path(key, value)?),
            "farm-file" => host.farm_file = Some(remote_path(key, value)?),
            _ => {
                return Err(format!(
                    "`{}` means nothing here; after the name come `role=`, `gpus=`, `program=` and `farm-file=`, \
                     without spaces in their values",
                    word.escape_debug()
                ));
            }
        }
    }
    if !host.gpus.is_empty() && !host.roles.contains(Role::Run) {
        return Err(format!(
            "a worker with the role `{}` has no use for GPUs; leave out `gpus=`",
            host.roles
        ));
    }
    Ok(Some(host))
}

/// Refuses names that ssh or a shell could mistake for something other than `name` or `user@name`.
fn check_name(text: &str) -> Result<(), String> {
    let shown = text.escape_debug();
    if text.starts_with('-') {
        return Err(format!(
            "`{shown}` begins with `-`, so ssh would take it for an option; give the name of a host"
        ));
    }
    let (user, name) = text.split_once('@').unwrap_or(("ann", text));
    let is_name = |text: &str, more: &[u8]| {
        let is_fine =
            |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte) || more.contains(&byte);
        !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_fine)
    };
    // IPv6 addresses contain colons.
    match is_name(user, b"") && is_name(name, b":") {
        true => Ok(()),
        false => Err(format!(
            "`{shown}` is no name of a host; give `name` or `user@name` of letters, digits, `.`, `-` and `_`, and a \
             port or anything else in ~/.ssh/config"
        )),
    }
}

/// Numbers of GPUs.
fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let numbers: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
    let numbers = numbers.map_err(|_| {
        format!("`{}` is no list of GPUs; give numbers as in `gpus=0,1`", text.escape_debug())
    })?;
    match (1..numbers.len()).find(|n| numbers[..*n].contains(&numbers[*n])) {
        Some(n) => Err(format!("GPU {} is there twice; leave out one", numbers[n])),
        None => Ok(numbers),
    }
}

/// A path on another machine.
fn remote_path(key: &str, text: &str) -> Result<String, String> {
    if text.starts_with('~') {
        return Err(format!(
            "`~` stands for nothing in `{key}=`; give the whole path, or one relative to the home folder there"
        ));
    }
    if text.contains("://") {
        return Err(format!(
            "`{key}=` is a URL, which others could read in arguments; give the path of a farm file"
        ));
    }
    match text.is_empty() || text.starts_with('-') {
        true => Err(format!(
            "`{key}=` needs a path that does not begin with `-`; give one, or leave out `{key}=`"
        )),
        false => Ok(text.to_owned()),
    }
}

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|host| writeln!(f, "{host}"))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} role={}", self.name, self.roles)?;
        if !self.gpus.is_empty() {
            let numbers: Vec<String> = self.gpus.iter().map(usize::to_string).collect();
            write!(f, " gpus={}", numbers.join(","))?;
        }
        for (key, path) in [("program", &self.program), ("farm-file", &self.farm_file)] {
            if let Some(path) = path {
                write!(f, " {key}={path}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Hosts, LaunchError> {
        Hosts::parse(text, Path::new("hosts.txt"))
    }

    #[test]
    fn files_are_read_and_printed() {
        let text = "# all of them\n\ngpu1\r\n  ann@gpu-2.lan\tgpus=0,1 # the old one\n2001:db8::7 role=run\n\
                    gpu3 farm-file=farm.json program=/opt/a'b role=compile,propose\n";
        let hosts = parse(text).unwrap();
        let shown = "gpu1 role=all\nann@gpu-2.lan role=all gpus=0,1\n2001:db8::7 role=run\n\
                     gpu3 role=propose,compile program=/opt/a'b farm-file=farm.json\n";
        assert_eq!(hosts.to_string(), shown);
        assert_eq!(parse(shown).unwrap(), hosts);
    }

    #[test]
    fn odd_names_are_refused_with_their_line() {
        for name in [
            "-oProxyCommand=x",
            "ann@-x",
            "-l@x",
            "a;b",
            "a$(b)",
            "a`b`",
            "a|b",
            "a&b",
            "a'b",
            "a\"b",
            "a\\b",
            "a*",
            "a/b",
            "@a",
            "a@",
            "a@b@c",
            "gpu1,gpu2",
            "ä",
            "\u{1b}[2J",
            "a\u{a0}b",
            "[::1]",
            "a%b",
            "ssh://a",
        ] {
            let error = parse(&format!("gpu1\n\n{name}\n")).unwrap_err().to_string();
            assert!(error.starts_with("hosts.txt:3: ") && error.contains("; "), "{error}");
            assert!(!error.contains('\u{1b}'), "{error}");
        }
    }

    #[test]
    fn odd_options_are_refused_with_their_line() {
        for (options, said) in [
            ("roles=run", "`roles=run` means nothing here"),
            ("run", "`run` means nothing here"),
            ("role=walk", "no list of roles"),
            ("gpus=", "no list of GPUs"),
            ("gpus=0,x", "no list of GPUs"),
            ("gpus=1,0,1", "GPU 1 is there twice"),
            ("gpus=0 gpus=1", "`gpus` is there twice"),
            ("role=compile gpus=0", "has no use for GPUs"),
            ("program=", "needs a path"),
            ("farm-file=~/farm.json", "`~` stands for nothing"),
            ("farm-file=postgres://a:secret@b/c", "is a URL"),
        ] {
            let error = parse(&format!("gpu1 {options}")).unwrap_err().to_string();
            assert!(error.starts_with("hosts.txt:1: ") && error.contains(said), "{error}");
            assert!(error.contains("; ") && !error.contains("secret"), "{error}");
        }
        assert!(parse("# none\n").unwrap_err().to_string().contains("names no host"));
        let error = Hosts::read(Path::new("/no such file")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the hosts in /no such file: "), "{error}");
    }
}
