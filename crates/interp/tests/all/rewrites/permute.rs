//! `permute`: reductions in another order.

use warploom_lang::*;

use super::check::{near, noise, refusal, rewrite, same};

fn sum_of(ty: Type, marked: bool) -> Pipeline {
    let (x, input) = (vars!(x), Input::new("input", ty, 3));
    let r = rdom([(0, input.extent(0)), (0, input.extent(1)), (0, Expr::from(2))]);
    let r = r.clone().filter(r.x.le(r.y));
    let total = func("total", x, Value::zero(ty)).over(&r, |f| f.add(x, input.at((r.x, r.y, r.z + x))));
    Pipeline::new("sum", [if marked { total.reassociate() } else { total }]).unwrap()
}

#[test]
fn any_order_gives_the_same_integers() {
    for order in ["rx, ry, rz", "ry, rx, rz", "rz, ry, rx", "ry, rz, rx", "rz, rx, ry"] {
        for extents in [[1, 1, 4], [7, 5, 4]] {
            let input = noise(Type::I32, &extents);
            let line = format!("permute total.1 {order}");
            same(&sum_of(Type::I32, false), &[&line], &[("input", &input)], &[3]);
        }
    }
}

#[test]
fn the_first_variable_is_the_fastest() {
    assert_eq!(
        rewrite(&sum_of(Type::U32, false), &["permute total.1 rz, rx, ry"]).to_string(),
        "\
pipeline sum
  input  input(d0, d1, d2): u32
  total(x) = 0
  total(x) = total(x) + input(rx, ry, rz + x)  over rz in (0, 2), rx in (0, input.extent(0)), ry in (0, input.extent(1)) where rx <= ry
"
    );
}

#[test]
fn floats_need_the_mark() {
    let input = noise(Type::F32, &[9, 7, 4]);
    let lines = ["permute total.1 rz, ry, rx", "factor total.1.rx outer 2"];
    near(&sum_of(Type::F32, true), &lines, &[("input", &input)], &[3], 9.0 * 7.0 * 2.0 * 8.0);
    assert_eq!(
        refusal(&sum_of(Type::F32, false), "permute total.1 ry, rx, rz"),
        "`permute total.1 ry, rx, rz` cannot be applied: the result of `total.1` depends on the order, because it computes `+` of f32; mark the definition with .reassociate(), or remove .in_order(), if any order will do"
    );
}

#[test]
fn lists_that_are_no_permutation_are_refused() {
    for order in ["rx, ry", "rx, ry, rx", "rx, ry, rw", "rx, ry, rz, rx"] {
        assert_eq!(
            refusal(&sum_of(Type::I32, false), &format!("permute total.1 {order}")),
            format!(
                "`permute total.1 {order}` cannot be applied: name each reduction variable of `total.1` once: rx, ry, rz"
            )
        );
    }
    for text in ["permute total.1", "permute total.1 rx,, ry", "permute total.1 rx ry"] {
        let wrong: Result<rewrite::Rewrite, _> = text.parse();
        let message = wrong.unwrap_err().to_string();
        assert_eq!(message, format!("`{text}` is not a rewrite; write permute FUNC.STAGE VAR, VAR"));
    }
}
