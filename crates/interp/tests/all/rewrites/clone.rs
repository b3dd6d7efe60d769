//! `clone`: a copy for one reader.

use warploom_lang::*;

use super::check::{noise, refusal, rewrite, same};

fn two_readers() -> Pipeline {
    let (x, input) = (vars!(x), Input::f32("input", 1));
    let r = rdom([(1, input.extent(0) - 1)]);
    let scan = func("scan", x, input.at(x)).over(&r, |f| f.set(r.x, f.at(r.x - 1) * 0.5 + f.at(r.x)));
    let one = func("one", x, scan.at(x) * 2.0).update(|f| f.set(0, f.at(0) + scan.at(0)));
    let two = func("two", x, scan.at(x) + one.at(x));
    Pipeline::new("readers", [two]).unwrap()
}

#[test]
fn the_copy_has_all_stages() {
    assert_eq!(
        rewrite(&two_readers(), &["clone scan for one"]).to_string(),
        "\
pipeline readers
  input  input(d0): f32
  scan(x) = input(x)
  scan(rx) = scan(rx - 1) * 0.5 + scan(rx)  over rx in (1, input.extent(0) - 1)
  scan.clone(x) = input(x)
  scan.clone(rx) = scan.clone(rx - 1) * 0.5 + scan.clone(rx)  over rx in (1, input.extent(0) - 1)
  one(x) = scan.clone(x) * 2.0
  one(0) = one(0) + scan.clone(0)
  two(x) = scan(x) + one(x)
"
    );
}

#[test]
fn copies_compute_the_same() {
    for width in [1, 2, 9] {
        let input = noise(Type::F32, &[width]);
        for lines in [&["clone scan for one"][..], &["clone one for two", "clone scan for one.clone"]] {
            same(&two_readers(), lines, &[("input", &input)], &[width]);
        }
    }
}

#[test]
fn needless_and_second_copies_are_refused() {
    let pipeline = two_readers();
    assert_eq!(
        [
            refusal(&pipeline, "clone two for one"),
            refusal(&pipeline, "clone scan for scan"),
            refusal(&rewrite(&pipeline, &["clone scan for one"]), "clone scan for two"),
        ],
        [
            "`clone two for one` cannot be applied: `one` does not read `two`; name a Func that does",
            "`clone scan for scan` cannot be applied: `scan` does not read `scan`; name a Func that does",
            "`clone scan for two` cannot be applied: two Funcs, inputs or Params are named `scan.clone`; rename one (a Func that is called before its updates are added counts as a different Func)",
        ]
    );
}
