//! The command by which ssh starts a worker that outlives the connection.

use std::collections::HashMap;

use super::Worker;
use super::hosts::{Host, Hosts};
use super::plan::{Remote, Start};
use super::quote::{line, word};

/// No prompts, and no forwarding of this machine's resources.
const OPTIONS: [&str; 7] = ["-a", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];

/// Status of the command if there is no such program.
pub(super) const NO_PROGRAM: i32 = 91;

/// Status of the command if there is no such farm file.
pub(super) const NO_FARM_FILE: i32 = 92;

/// One worker for each line of the file.
pub(super) fn starts(hosts: &Hosts, worker: &Worker) -> Vec<Start> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    let mut starts = Vec::new();
    for host in hosts.hosts() {
        let count = counts.entry(&host.name).or_default();
        *count += 1;
        starts.push(Start::Remote(remote(host, *count, worker)));
    }
    starts
}

fn remote(host: &Host, count: u32, worker: &Worker) -> Remote {
    let program = host.program.as_ref().unwrap_or(&worker.program).clone();
    let farm_file = host.farm_file.as_ref().unwrap_or(&worker.farm_file).clone();
    let folder = format!("{}.logs", farm_file.strip_suffix(".json").unwrap_or(&farm_file));
    let log = format!("{folder}/{}-{count}.log", host.name);
    let command = line(&worker.command_of(&program, &farm_file, &host.roles, &host.gpus));
    let script = script(&command, &word(&program), &word(&farm_file), &word(&folder), &word(&log));
    let options = OPTIONS.map(str::to_owned).into_iter();
    // The shell on the other machine may be of any kind.
    let arguments =
        options.chain(["--".to_owned(), host.name.clone(), line(&["sh", "-c", &script])]).collect();
    Remote { host: host.name.clone(), roles: host.roles.clone(), program, farm_file, arguments }
}

/// The script for the shell on the other machine. It prints the process id of the worker, or the reason why it ended:
/// most failures are immediate.
fn script(command: &str, program: &str, farm_file: &str, folder: &str, log: &str) -> String {
    format!(
        "umask 077; command -v {program} > /dev/null || exit {NO_PROGRAM}; [ -r {farm_file} ] || exit {NO_FARM_FILE}; \
         mkdir -p {folder} || exit; nohup {command} >> {log} 2>&1 < /dev/null & pid=$!; sleep 1; \
         kill -0 $pid 2> /dev/null || wait $pid || {{ tail -n 5 {log} >&2; exit 1; }}; echo $pid"
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Placement;
    use super::*;

    fn arguments(hosts: &str) -> Vec<Vec<String>> {
        let hosts = Hosts::parse(hosts, Path::new("hosts.txt")).unwrap();
        let worker = Worker::new("/opt/my tools/warploom", "/home/ann/farm.json").unwrap();
        let plan = Placement::Ssh(hosts).plan(&worker, Path::new("/x")).unwrap();
        let arguments = |start| match start {
            Start::Remote(Remote { arguments, .. }) => arguments,
            other => panic!("{other:?}"),
        };
        plan.starts.into_iter().map(arguments).collect()
    }

    #[test]
    fn hosts_come_after_all_options() {
        let arguments = arguments("ann@gpu1 gpus=0,1\ngpu2 role=compile farm-file=a.json program=warploom\n");
        for (words, host) in arguments.iter().zip(["ann@gpu1", "gpu2"]) {
            let dashes = words.iter().position(|word| word == "--").unwrap();
            assert_eq!(words[dashes + 1], host);
            assert_eq!(words.len(), dashes + 3);
        }
        let own = arguments[0].last().unwrap();
        assert!(own.contains("farm worker /home/ann/farm.json --role all --gpu 0,1 >>"), "{own}");
        let other = arguments[1].last().unwrap();
        assert!(
            other.contains("nohup warploom farm worker a.json --role compile >> a.logs/gpu2-1.log"),
            "{other}"
        );
    }

    #[test]
    fn workers_of_one_machine_have_logs_of_their_own() {
        let commands = arguments("gpu1 gpus=0\ngpu1 gpus=1\n");
        for (command, log) in commands.iter().zip(["farm.logs/gpu1-1.log", "farm.logs/gpu1-2.log"]) {
            assert!(command.last().unwrap().contains(log));
        }
    }
}
