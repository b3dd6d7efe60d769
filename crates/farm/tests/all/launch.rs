//! Workers are started by scripts in place of Slurm, ssh and the program.

use std::fs;
use std::num::NonZero;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use warploom_farm::farm_file::FarmFile;
use warploom_farm::launch::hosts::Hosts;
use warploom_farm::launch::start::{Report, Started, Tools};
use warploom_farm::launch::{LaunchError, Placement, Plan, Worker};

/// A folder with a farm file, whose name a shell would take apart.
struct Farm {
    around: tempfile::TempDir,
    file: PathBuf,
}

impl Farm {
    fn new() -> Farm {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("it's a $(farm)");
        fs::create_dir(&folder).unwrap();
        let url = "postgres://warploom_worker:secret@10.0.0.1:5432/warploom".to_owned();
        let file = folder.join("farm.json");
        FarmFile { url, ca: None }.write(&file).unwrap();
        Farm { around, file }
    }

    fn worker(&self, arguments: &[&str]) -> Worker {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Worker::new(stand_in("warploom"), &self.file).unwrap().with_arguments(arguments)
    }

    fn slurm(&self, tasks: &str, folder: &str) -> Plan {
        let placement = Placement::Slurm(tasks.parse().unwrap());
        placement.plan(&self.worker(&["--done"]), &self.around.path().join(folder)).unwrap()
    }

    fn ssh(&self, hosts: &str, arguments: &[&str]) -> Plan {
        let hosts = Hosts::parse(hosts, Path::new("hosts.txt")).unwrap();
        Placement::Ssh(hosts).plan(&self.worker(arguments), self.around.path()).unwrap()
    }

    fn local(&self, count: u32, arguments: &[&str]) -> Plan {
        let placement = Placement::Local(NonZero::new(count).unwrap());
        placement.plan(&self.worker(arguments), &self.around.path().join("jobs of mine")).unwrap()
    }
}

/// A script in place of a program.
fn stand_in(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/launch").join(name)
}

fn tools() -> Tools {
    let limit = Duration::from_secs(20);
    Tools { sbatch: stand_in("sbatch"), ssh: stand_in("ssh"), limit, watch: limit }
}

/// The text of a file, as soon as it has some.
fn soon(path: &Path) -> String {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let text = fs::read_to_string(path).unwrap_or_default();
        if text.ends_with('\n') || Instant::now() > end {
            return text;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn failures(report: &Report) -> Vec<String> {
    report.failed.iter().map(|failed| format!("{}: {}", failed.what, failed.reason)).collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn jobs_are_submitted() {
    let farm = Farm::new();
    let plan = farm.slurm("gpu:3,cpu:1", "new/my jobs");
    let report = plan.start(&tools()).unwrap();
    let job = |id, cluster: Option<&str>, name: &str, tasks| Started::Job {
        id,
        cluster: cluster.map(str::to_owned),
        name: format!("warploom-farm-{name}"),
        tasks,
    };
    assert_eq!(report.started, [job(17, Some("east"), "run", 3), job(18, None, "compile", 1)]);
    assert_eq!(failures(&report), [""; 0]);

    let script = plan.folder.join("run.sh");
    assert_eq!((mode(&plan.folder), mode(&script)), (0o700, 0o600));
    let arguments = fs::read_to_string(plan.folder.join("run.sh.arguments")).unwrap();
    assert_eq!(arguments, format!("--parsable\n{}\n", script.display()));
    let environment = fs::read_to_string(plan.folder.join("run.sh.environment")).unwrap();
    assert!(!environment.lines().any(|line| line.starts_with("PG")), "{environment}");
    // The script starts a worker as Slurm would start it.
    let output = Command::new("sh").arg(&script).env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("<farm><worker><{}><--role><run><--done>\n", farm.file.display()));
    // A second start of the same farm replaces the scripts.
    assert_eq!(plan.start(&tools()).unwrap(), report);
}

#[test]
fn what_slurm_refuses_is_reported() {
    let farm = Farm::new();
    let report = farm.slurm("gpu:3,cpu:1", "refused").start(&tools()).unwrap();
    assert_eq!(report.started.len(), 1);
    assert_eq!(
        failures(&report),
        ["warploom-farm-compile: sbatch: error: invalid partition specified: long"]
    );
    let report = farm.slurm("gpu:3,cpu:1", "silent").start(&tools()).unwrap();
    assert_eq!(failures(&report), ["warploom-farm-run: it ended with exit status: 1"]);
    let report = farm.slurm("gpu:1", "odd").start(&tools()).unwrap();
    assert_eq!(failures(&report), ["warploom-farm-all: sbatch printed `welcome` in place of a job's number"]);
}

#[test]
fn missing_programs_are_named() {
    let farm = Farm::new();
    let nowhere = PathBuf::from("/no such folder/program");
    let tools = Tools { sbatch: nowhere.clone(), ssh: nowhere.clone(), ..tools() };
    let worker = Worker::new(&nowhere, &farm.file).unwrap();
    let local = Placement::Local(NonZero::<u32>::MIN).plan(&worker, farm.around.path()).unwrap();
    for (plan, said) in [
        (farm.slurm("gpu:1", "jobs"), "a cluster's login node"),
        (farm.ssh("gpu1", &[]), "apt install openssh-client"),
        (local, "give the path of a program that exists"),
    ] {
        let error = plan.start(&tools).unwrap_err();
        assert!(matches!(error, LaunchError::Missing { .. }), "{error}");
        let error = error.to_string();
        assert!(error.starts_with("cannot find the program `/no such folder/program`; "), "{error}");
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn bad_hosts_do_not_stop_the_others() {
    let farm = Farm::new();
    let hosts = "gpu1 gpus=0\nunknown\ngpu2 program=/nowhere/warploom\nchatty\ngpu1 role=propose,compile\n\
                 gpu3 farm-file=/nowhere/farm.json\ngpu4 gpus=7\ngpu5 gpus=8\n";
    let report = farm.ssh(hosts, &["--work"]).start(&tools()).unwrap();
    let started: Vec<&str> = report.started.iter().map(host).collect();
    // The last has found nothing to do, which is no failure.
    assert_eq!(started, ["gpu1", "gpu1", "gpu5"]);
    let file = farm.file.display();
    assert_eq!(
        failures(&report),
        [
            "unknown: ssh: Could not resolve hostname unknown: Name or service not known".to_owned(),
            "gpu2: there is no program `/nowhere/warploom` there; install it, or name another with `program=`".to_owned(),
            "chatty: the machine printed `` in place of a process id".to_owned(),
            "gpu3: cannot read the farm file `/nowhere/farm.json` there; copy it, or name another with `farm-file=`".to_owned(),
            format!("gpu4: <farm><worker><{file}><--role><all><--gpu><7><--work>; cannot find NVRTC"),
        ]
    );
    let logs = farm.file.with_extension("logs");
    for (log, roles) in [("gpu1-1", "all><--gpu><0"), ("gpu1-2", "propose,compile")] {
        let log = logs.join(format!("{log}.log"));
        assert_eq!(soon(&log), format!("<farm><worker><{file}><--role><{roles}><--work>\n"));
        assert_eq!(mode(&log), 0o600);
    }
    assert_eq!(mode(&logs), 0o700);
    report.started[..2].iter().for_each(stop);
}

#[test]
fn hosts_that_do_not_answer_are_given_up() {
    let farm = Farm::new();
    let report =
        farm.ssh("slow\nslow", &[]).start(&Tools { limit: Duration::from_secs(1), ..tools() }).unwrap();
    assert_eq!(failures(&report), ["slow: no answer after 1 s; it may be started nevertheless"; 2]);
}

#[test]
fn workers_that_end_at_once_are_reported() {
    let farm = Farm::new();
    let report = farm.local(2, &["--fail"]).start(&tools()).unwrap();
    assert_eq!((report.started.len(), report.failed.len()), (0, 2));
    let failed = failures(&report).concat();
    assert!(failed.contains("the worker ended at once (exit status: 1): <farm>"), "{failed}");
    assert!(failed.ends_with("; cannot find NVRTC"), "{failed}");
    // One that finds nothing to do has not failed.
    assert_eq!(failures(&farm.local(1, &["--done"]).start(&tools()).unwrap()), [""; 0]);
}

#[test]
fn workers_here_have_groups_and_logs_of_their_own() {
    let farm = Farm::new();
    let plan = farm.local(2, &["--work"]);
    let report = plan.start(&Tools { watch: Duration::from_millis(100), ..tools() }).unwrap();
    assert_eq!(report.started.len(), 2, "{report:?}");
    for (number, started) in (1..).zip(&report.started) {
        let Started::Process { pid, log } = started else { panic!("{started:?}") };
        assert_eq!(*log, plan.folder.join(format!("worker-{number}.log")));
        let text = soon(log);
        let file = farm.file.display();
        assert!(text.starts_with(&format!("<farm><worker><{file}><--role><all><--work>")), "{text}");
        let group = Command::new("ps").args(["-o", "pgid=", "-p", &pid.to_string()]).output();
        if let Ok(group) = group {
            assert_eq!(String::from_utf8(group.stdout).unwrap().trim(), pid.to_string());
        }
    }
    report.started.iter().for_each(stop);
}

#[test]
fn roles_that_nobody_has_are_named() {
    let farm = Farm::new();
    for (plan, missing) in [
        (farm.slurm("gpu:3,cpu:1", "jobs"), None),
        (farm.slurm("gpu:3", "jobs"), None),
        (farm.slurm("cpu:1", "jobs"), Some("run")),
        (farm.ssh("gpu1 role=run\ngpu2 role=run,compile", &[]), Some("propose")),
        (farm.local(1, &[]), None),
    ] {
        assert_eq!(plan.missing_roles().map(|roles| roles.to_string()).as_deref(), missing);
    }
}

#[test]
fn nothing_that_others_can_read_has_a_password() {
    let farm = Farm::new();
    for plan in
        [farm.slurm("gpu:3,cpu:1", "jobs"), farm.ssh("ann@gpu1 gpus=0,1\ngpu2", &[]), farm.local(2, &[])]
    {
        for text in [plan.describe(), format!("{plan:?}")] {
            assert!(!text.contains("secret") && !text.contains("postgres"), "{text}");
            assert!(text.contains("farm.json"), "{text}");
        }
    }
}

#[test]
fn a_dry_run_shows_commands_that_a_shell_understands() {
    let worker = Worker::new("/opt/warploom", "/home/ann/farm.json").unwrap();
    let shown =
        |placement: Placement| placement.plan(&worker, Path::new("/home/ann/my jobs")).unwrap().describe();
    let slurm = shown(Placement::Slurm("gpu:2,cpu:1".parse().unwrap()));
    assert!(slurm.starts_with("# /home/ann/my jobs/run.sh\n#!/bin/sh\n#SBATCH --job-name="), "{slurm}");
    assert!(
        slurm.contains(
            "--role run\n\nsbatch --parsable '/home/ann/my jobs/run.sh'\n\n# /home/ann/my jobs/compile.sh"
        ),
        "{slurm}"
    );
    let hosts = Hosts::parse("gpu1", Path::new("hosts.txt")).unwrap();
    assert_eq!(
        shown(Placement::Ssh(hosts)),
        "ssh -a -x -T -o BatchMode=yes -o ConnectTimeout=10 -- gpu1 'sh -c '\"'\"'umask 077; \
         command -v /opt/warploom > /dev/null || exit 91; [ -r /home/ann/farm.json ] || exit 92; \
         mkdir -p /home/ann/farm.logs || exit; \
         nohup /opt/warploom farm worker /home/ann/farm.json --role all >> /home/ann/farm.logs/gpu1-1.log 2>&1 \
         < /dev/null & pid=$!; sleep 1; kill -0 $pid 2> /dev/null || wait $pid || \
         { tail -n 5 /home/ann/farm.logs/gpu1-1.log >&2; exit 1; }; echo $pid'\"'\"''\n"
    );
    assert_eq!(
        shown(Placement::Local(NonZero::<u32>::MIN)),
        "/opt/warploom farm worker /home/ann/farm.json --role all >> '/home/ann/my jobs/worker-1.log' 2>&1 < /dev/null &\n"
    );
}

fn host(started: &Started) -> &str {
    match started {
        Started::Remote { host, .. } => host,
        other => panic!("{other:?}"),
    }
}

/// Ends a worker of a test, which may have ended by itself.
fn stop(started: &Started) {
    let (Started::Remote { pid, .. } | Started::Process { pid, .. }) = started else { panic!("{started:?}") };
    Command::new("kill").arg(pid.to_string()).output().unwrap();
}
