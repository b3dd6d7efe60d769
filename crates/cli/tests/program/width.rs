//! Text fits 80 columns, whatever the names are.

use std::fs;

use warploom::prelude::*;

use crate::place::Place;

/// The characters of a line.
const WIDTH: usize = 80;

const SEARCH: &str = "--samples 2 --beam 2 --passes 1";

/// What prints tables and lists without a GPU, in this order in one folder.
const COMMANDS: [&str; 26] = [
    "apps",
    "devices --presets",
    "graph long.json",
    "compile long.json --size 64x48 --schedule default -o out",
    "compile long.json --size 64x48 --schedule default --emit nest",
    "compile harris --device h200,a100,rtx4090 --schedule SCHEDULES -o package",
    "explain long.json --size 64x48 --schedule default",
    "explain nl_means --size 640x480 --schedule SCHEDULES",
    "explain local_laplacian --schedule default",
    "explain harris --schedule SCHEDULES --decisions",
    "explain harris --schedule SCHEDULES --against default",
    "run blur --size 16x8 --generate",
    "sim hist --size 32x16 --schedule default --counters",
    "verify golden",
    "accuracy harris",
    "tune long.json --size 64x48 SEARCH --top 3 --fake fake:crash=20,spill=20",
    "records list",
    "records list 1",
    "suite --apps blur,harris --sizes small --samples 2 --fake fake",
    "suite --set operators --rows moments*128x2304 --samples 2 --fake fake",
    "suite --strategies random,opevo --apps blur --sizes small --samples 2 --trials 30 --seeds 2 --fake fake",
    "landscape record blur --size 64x48 --template SCHEDULES/blur.schedule --limits threads=256..256,along=4,points=4 --fake fake \
     -o blur.landscape",
    "landscape show blur.landscape",
    "fuzz --pipelines 2 --schedules 1 --device h200 --search --coverage",
    "fuzz --mutate 1 --device h200",
    "-v compile blur --size 64x48 --schedule default -o out",
];

#[test]
fn tables_and_lists_fit_a_page() {
    let place = Place::new();
    place.copy_golden(&["harris", "depthwise_separable_conv"]);
    fs::write(place.path("long.json"), long().to_json()).unwrap();
    let schedules = concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps/schedules");
    let mut folded = 0;
    for command in COMMANDS {
        let command = command.replace("SEARCH", SEARCH).replace("SCHEDULES", schedules);
        let ran = place.run(&command);
        assert_eq!(ran.code, 0, "{command}: {}{}", ran.out, ran.err);
        for line in ran.out.lines() {
            let width = line.chars().count();
            // A long name is never folded.
            let forced = line.split_whitespace().any(|word| word.chars().count() + 10 > WIDTH);
            assert!(
                width <= WIDTH || forced,
                "`{command}` prints {width} characters:\n{line}\n\n{}",
                ran.out
            );
            folded += usize::from(line.starts_with("    ") && line.trim_start().len() < line.len());
        }
    }
    assert!(folded > 50, "only {folded} lines are indented");
}

/// A pipeline whose names are longer than half a page.
fn long() -> Pipeline {
    let (x, y) = vars!(x, y);
    let name = |what: &str| format!("{what}_{}", "with_a_long_name_".repeat(4));
    let edge = Input::f32(name("input"), 2).repeat_edge();
    let rows = func(name("rows"), (x, y), edge.at((x - 1, y)) + edge.at((x + 1, y)));
    let columns = func(name("columns"), (x, y), rows.at((x, y - 1)) * rows.at((x, y + 1)));
    Pipeline::new(name("pipeline"), [columns]).unwrap()
}
