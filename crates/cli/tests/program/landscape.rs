//! Recording landscapes, with a device that is made up.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::place::Place;

const PRODUCT: &str = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";

const TEMPLATE: &str = "mm
  kernel C     block n 32, m 32
    C.sum.0    threads n 16, m 8  serial m 4, n 2         unroll  private
    over C.sum.1.k 8
      A.stage  flat                                               shared
      B.stage  flat                                               shared
      C.sum.1  threads n 16, m 8  serial k all, m 4, n 2  unroll  private
    C          threads n 16, m 8  serial m 4, n 2         unroll
";

const RECORD: &str = "landscape record mm.tc --size M=64,K=64,N=64 --template mm.schedule \
                      --limits threads=64..128,along=4,points=8,values=8..16";

/// A folder with a product of matrices and a template.
fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("mm.tc"), PRODUCT).unwrap();
    fs::write(place.path("mm.schedule"), TEMPLATE).unwrap();
    place
}

/// The points of a landscape and how many are missing.
fn counts(place: &Place, file: &str) -> (u64, u64) {
    let shown = place.json(&format!("landscape show {file} --json"));
    (shown["points"].as_u64().unwrap(), shown["missing"].as_u64().unwrap())
}

#[test]
fn a_landscape_is_recorded_bit_by_bit() {
    let place = place();
    let fake = "--fake fake:wrong=10,spill=20,seed=3";
    let counted = place.json(&format!("{RECORD} --dry-run --json {fake}"));
    let legal = counted["legal"].as_u64().unwrap();
    assert!(legal > 100 && legal < counted["points"].as_u64().unwrap(), "{counted}");
    let first = place.run(&format!("{RECORD} {fake} --trials 20 -o part.landscape"));
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(first.out.contains(&format!("points  20, {} missing", legal - 20)), "{}", first.out);
    let rest = place.run(&format!("{RECORD} {fake} -o whole.landscape"));
    assert_eq!(rest.code, 0, "{}", rest.err);
    assert!(rest.out.contains(" wrong\n") && !rest.out.contains("spilled"), "{}", rest.out);
    assert_eq!(counts(&place, "whole.landscape"), (legal, 0));
    // Another database gives the same table, and the same one measures nothing again.
    let other = place.run(&format!("{RECORD} {fake} -o other.landscape --records other.db"));
    let times = |text: &str| text.split_once("\nlimits").map(|(_, after)| after.to_owned());
    assert_eq!(times(&other.out), times(&rest.out));
    let before = fs::read(place.path("whole.landscape")).unwrap();
    place.run(&format!("{RECORD} {fake} -o whole.landscape --trials 0"));
    assert_eq!(fs::read(place.path("whole.landscape")).unwrap(), before);
}

#[test]
fn a_killed_recording_goes_on() {
    let place = place();
    let log = place.path("log");
    let command = format!("{RECORD} -o mm.landscape --fake fake:delay=5,log={}", log.display());
    let mut kills = 0;
    // Killed after a few points, more each time.
    while kills < 3 {
        let mut process = place.command();
        process.args(command.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = process.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(120);
        let timed = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
        let enough = timed() + 5;
        while timed() < enough && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(timed() >= enough, "nothing was timed");
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    let ran = place.run(&command);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (points, missing) = counts(&place, "mm.landscape");
    assert!(points > 100 && missing == 0);
    // Only what a killed process was timing may have been timed again.
    let lines = fs::read_to_string(&log).unwrap().lines().count() as u64;
    assert!((points..=points + kills).contains(&lines), "{lines} of {points}");
}

#[test]
fn mistakes_are_explained() {
    let place = place();
    let fails = |arguments: &str, code: i32, why: &str| {
        let ran = place.run(arguments);
        assert_eq!(ran.code, code, "{arguments}: {}", ran.err);
        assert!(ran.err.contains(why), "{arguments}: {}", ran.err);
    };
    let anywhere = place.run(&format!("{RECORD} --dry-run --json"));
    assert_eq!(anywhere.code, 0, "points are counted without a GPU: {}", anywhere.err);
    let dry = format!("{RECORD} --dry-run --fake fake");
    fails(&format!("{dry} --axes C.x"), 3, "no axis `C.x`; there are C.n, C.m, C.sum.1.k");
    fails(&dry.replace("64..128", "256..512"), 2, "the template is not within the limits threads=256..512");
    fails(&dry.replace("along=4", "along"), 2, "write along=8");
    fails(&format!("{RECORD} --fake fake"), 2, "--output <FILE>");
    fails("landscape show mm.tc", 2, "mm.tc is not a landscape");
    fails("landscape show absent.landscape", 2, "cannot read absent.landscape");
    fails(
        &format!("{RECORD} --fake fake:wrong=100 -o no.landscape --trials 3"),
        5,
        "3 points of `mm` were tried",
    );
}
