//! Running the programs that start workers.

use std::env;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::error::LaunchError;

/// The limit on a program's output, in bytes.
pub(super) const MOST: u64 = 1 << 16;

/// The failure of a program.
pub(super) struct Failure {
    /// Its exit status, if it ended by itself.
    pub(super) code: Option<i32>,
    /// The reason, on one line.
    pub(super) reason: String,
}

/// The output or the failure of a program; an error only if it does not exist.
pub(super) type Outcome = Result<Result<String, Failure>, LaunchError>;

/// Runs a program to its end, or to the time limit.
pub(super) fn run(program: &Path, arguments: &[String], limit: Duration, advice: &'static str) -> Outcome {
    match try_run(program, arguments, limit) {
        Ok(outcome) => Ok(outcome),
        Err(error) => not_run(program, &error, advice).map(|reason| Err(Failure { code: None, reason })),
    }
}

/// Why a program did not run, for a report; an error if there is no such program.
pub(super) fn not_run(
    program: &Path,
    error: &io::Error,
    advice: &'static str,
) -> Result<String, LaunchError> {
    match error.kind() {
        io::ErrorKind::NotFound => Err(LaunchError::Missing { program: program.to_path_buf(), advice }),
        _ => Ok(format!("cannot run {}: {error}", program.display())),
    }
}

fn try_run(program: &Path, arguments: &[String], limit: Duration) -> io::Result<Result<String, Failure>> {
    // A process that the program leaves running could keep a pipe open.
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut command = command(program);
    command.args(arguments).stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
    let Some(status) = wait(&mut command.spawn()?, limit)? else {
        let reason = format!("no answer after {} s; it may be started nevertheless", limit.as_secs());
        return Ok(Err(Failure { code: None, reason }));
    };
    if status.success() {
        out.rewind()?;
        return Ok(Ok(text(&mut out)?));
    }
    err.rewind()?;
    let reason = match last_lines(&text(&mut err)?) {
        said if said.is_empty() => format!("it ended with {status}"),
        said => said,
    };
    Ok(Err(Failure { code: status.code(), reason }))
}

/// A program without this process's settings for databases.
pub(super) fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PG")) {
        command.env_remove(name);
    }
    command
}

/// Waits for a child, and ends one that takes too long.
fn wait(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The rest of a file, up to a limit.
pub(super) fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The end of a text, on one line.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(5)..].join("; ");
    last.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_apart() {
        let run = |script: &str, limit| {
            let arguments = ["-c", script].map(str::to_owned);
            run(Path::new("sh"), &arguments, limit, "install it").unwrap()
        };
        let long = Duration::from_secs(20);
        assert_eq!(run("echo a; echo b", long).ok(), Some("a\nb\n".to_owned()));
        let failure = |script, limit| run(script, limit).err().map(|failure| (failure.code, failure.reason));
        let said = "for n in 1 2 3 4 5 6; do echo; printf \"\\033$n\\n\" >&2; done; exit 7";
        assert_eq!(failure(said, long), Some((Some(7), " 2;  3;  4;  5;  6".to_owned())));
        assert_eq!(failure("exit 7", long), Some((Some(7), "it ended with exit status: 7".to_owned())));
        let (code, reason) = failure("kill -9 $$", long).unwrap();
        assert!(code.is_none() && reason.contains("signal: 9"), "{reason}");
        assert!(failure("exec sleep 20", Duration::ZERO).unwrap().1.starts_with("no answer after 0 s"));
        // A process that the program leaves running does not block this one.
        assert_eq!(run("sleep 2 & echo a", long).ok(), Some("a\n".to_owned()));
    }
}
