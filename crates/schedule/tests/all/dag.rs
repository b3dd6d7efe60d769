//! Nodes, stages and edges of all kinds of pipelines, and their printed forms.

use warploom_lang::*;
use warploom_schedule::*;

fn dag(outputs: impl IntoIterator<Item = Func>) -> Dag {
    Dag::new(&Pipeline::new("p", outputs).unwrap())
}

fn node<'a>(dag: &'a Dag, name: &str) -> &'a Node {
    &dag.nodes()[dag.node_named(name).unwrap()]
}

fn blur() -> Dag {
    let (x, y, c) = vars!(x, y, c);
    let input = Input::new("input", Type::U8, 3).stored([2, 0, 1]);
    let edge = input.repeat_edge();
    let gray = func("gray", (x, y), edge.at((x, y, 0)).f32() * 0.5 + edge.at((x, y, 1)).f32() * 0.5);
    let blur_x = func("blur_x", (x, y), gray.at((x - 1, y)) + gray.at((x, y)) + gray.at((x + 1, y)));
    let blur_y = func("blur_y", (x, y), blur_x.at((x, y - 1)) + blur_x.at((x, y)) + blur_x.at((x, y + 1)));
    let r = rdom!(rx: (0, 64), ry: (0, 64));
    let bin = clamp(blur_y.at((r.x, r.y)).i32(), 0, 255);
    let histogram = func("histogram", x, 0u32).over(&r, |f| f.add(bin, 1));
    let small = func("small", (x, y, c), blur_y.at((2 * x, 2 * y)) + blur_y.at((x / 2, y)));
    Dag::new(&Pipeline::new("blur", [small, histogram]).unwrap())
}

#[test]
fn text() {
    insta::assert_snapshot!(blur().to_text());
}

#[test]
fn graphviz() {
    insta::assert_snapshot!(blur().to_dot());
}

#[test]
fn edges_lead_from_inputs_and_funcs_but_not_from_oneself() {
    let dag = blur();
    let edges = |name: &str| -> Vec<(String, String, u64)> {
        let edges = node(&dag, name).consumers.iter().map(|edge| &dag.edges()[*edge]);
        let text = |edge: &Edge| {
            (dag.nodes()[edge.producer].name.clone(), dag.stages()[edge.consumer].name.clone(), edge.calls)
        };
        edges.map(text).collect()
    };
    let is = |from: &str, to: &str, calls: u64| (from.to_string(), to.to_string(), calls);
    assert_eq!(edges("input"), [is("input", "input.repeat_edge", 1)]);
    assert_eq!(edges("gray"), [is("gray", "blur_x", 3)]);
    assert_eq!(edges("blur_y"), [is("blur_y", "small", 2), is("blur_y", "histogram.1", 1)]);
    assert_eq!(edges("histogram"), []);
    assert_eq!(node(&dag, "input").storage_order, [2, 0, 1]);
    let (gray, blur_x) = (dag.node_named("gray").unwrap(), node(&dag, "blur_x").stages[0]);
    assert_eq!(dag.edges()[dag.edge_between(gray, blur_x).unwrap()].loads.len(), 1);
    assert_eq!(dag.edge_between(dag.node_named("input").unwrap(), blur_x), None);
}

#[test]
fn orders_and_dependencies() {
    let dag = blur();
    let names: Vec<&str> = dag.consumers_first().map(|id| dag.nodes()[id].name.as_str()).collect();
    assert_eq!(names, ["histogram", "small", "blur_y", "blur_x", "gray", "input.repeat_edge", "input"]);
    let downstream = |stage: usize, of: &str| {
        let stage = dag.stages().values().nth(stage).unwrap();
        stage.is_downstream_of(dag.node_named(of).unwrap())
    };
    // Stages: repeat_edge, gray, blur_x, blur_y, small, histogram.0, histogram.1.
    assert!(downstream(4, "input") && downstream(4, "gray") && downstream(4, "blur_y"));
    assert!(!downstream(4, "histogram") && !downstream(4, "small"));
    assert!(!downstream(5, "input") && !downstream(5, "histogram"));
    assert!(downstream(6, "input") && downstream(6, "histogram"));
    for (id, stage) in dag.stages().iter() {
        assert!(dag.nodes()[stage.node].stages.contains(&id));
        assert_eq!(dag.func_node(stage.func), stage.node);
    }
    assert_eq!(dag.outputs().count(), 2);
}

#[test]
fn loops_run_innermost_first() {
    let (x, y, c) = vars!(x, y, c);
    let image = Input::f32("image", 3);
    let r = rdom!(i: (0, 4), j: (0, 5));
    let sums = func("sums", (x, y, c), 0.0).over(&r, |f| f.add((x, 0, c), image.at((x + r.x, r.y, c))));
    let dag = dag([sums]);
    let loops = |stage: usize| dag.stages().values().nth(stage).unwrap().loops.clone();
    assert_eq!(loops(0).iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), ["x", "y", "c"]);
    use LoopKind::*;
    let kinds: Vec<(String, LoopKind)> = loops(1).into_iter().map(|l| (l.name, l.kind)).collect();
    let expected = [("i", Reduction(0)), ("j", Reduction(1)), ("x", Pure(0)), ("c", Pure(2))];
    assert_eq!(kinds, expected.map(|(name, kind)| (name.to_string(), kind)));
    let update = dag.stages().values().nth(1).unwrap();
    assert_eq!(update.store.rows()[0].unit_loop(), Some(2));
    assert_eq!(update.store.rows()[1].constant(), Some(0));
}

#[test]
fn pointwise_is_exactly_the_own_point() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let line = Input::f32("line", 1);
    let copy = func("copy", (x, y), input.at((x, y)));
    let scaled = func("scaled", (x, y), copy.at((x, y)) * input.at((x, y)));
    let shifted = func("shifted", (x, y), input.at((x + 1, y)));
    let flipped = func("flipped", (x, y), input.at((y, x)));
    let spread = func("spread", (x, y), line.at(x));
    let updated = func("updated", (x, y), input.at((x, y))).update(|f| f.add((x, y), 1.0));
    let ramp = func("ramp", (x, y), x + y);
    let dag = dag([scaled, shifted, flipped, spread, updated, ramp]);
    let is = |name: &str| (node(&dag, name).is_wrapper, node(&dag, name).is_pointwise);
    assert_eq!(is("copy"), (true, true));
    assert_eq!(is("scaled"), (false, true));
    assert_eq!(is("ramp"), (false, true));
    assert_eq!(is("input"), (false, true));
    for name in ["shifted", "flipped", "spread", "updated"] {
        assert_eq!(is(name), (false, false), "{name}");
    }
}

#[test]
fn boundary_conditions_are_known_by_their_structure() {
    let (x, y) = vars!(x, y);
    let input = Input::f32("input", 2);
    let (w, h) = (input.extent(0), input.extent(1));
    let held = |v: Var, n: &Expr| clamp(v, 0, n - 1);
    let flag = Param::new("flag", Type::Bool);
    let yes = [
        input.repeat_edge(),
        input.repeat_image(),
        input.mirror_image(),
        input.mirror_interior(),
        input.constant_exterior(0.0),
        input.repeat_edge_in(input.limits([1])).named("one_way"),
        func("by_hand", (x, y), input.at((held(x, &w), y))),
        func(
            "chosen",
            (x, y),
            select(&flag, select(x.lt(0), 1.0, input.at((held(x, &w), held(y, &h)))), 2.0),
        ),
    ];
    let read = |x: Expr, y: Expr| input.at((x, y));
    let no = [
        func("plain", (x, y), read(x.expr(), y.expr())),
        func("shifted", (x, y), read(x + 1, y.expr())),
        func("swapped", (x, y), read(held(y, &w), held(x, &h))),
        func("mixed", (x, y), read(clamp(x + y, 0, 9), y.expr())),
        func("sliced", (x, y), read(held(x, &w), Expr::from(0))),
        func("scaled", (x, y), read(held(x, &w), y.expr()) * 2.0),
        func("two", (x, y), select(x.lt(3), read(held(x, &w), y.expr()), read(x.expr(), held(y, &h)))),
        func("tested", (x, y), select(read(held(x, &w), y.expr()).lt(1.0), 0.0, 1.0)),
        func("spread", (x, y), Input::f32("line", 1).at(held(x, &w))),
        func("updated", (x, y), read(held(x, &w), y.expr())).update(|f| f.add((x, y), 1.0)),
        func("pair", (x, y), (read(held(x, &w), y.expr()), 1.0f32)),
    ];
    let dag = dag(yes.iter().chain(&no).cloned());
    for (i, id) in dag.outputs().enumerate() {
        let node = &dag.nodes()[id];
        assert_eq!(node.is_boundary_condition, i < yes.len(), "{}", node.name);
    }
}

/// Every legal pipeline can be analysed, printed and drawn.
#[test]
fn pipelines_of_every_kind() {
    let (x, y) = vars!(x, y);
    let image = Input::f32("image", 2);
    let scalar = Input::new("scalar", Type::I32, 0);
    let r = rdom([(0, 8)]);
    let total = func("total", (), 0.0).over(&r, |f| f.add((), image.at((r.x, scalar.at(())))));
    let pair = func("pair", x, (image.at((x, 0)), x.expr()));
    let scan = func("scan", (x, y), undef(Type::F32))
        .update(|f| f.set((x, 0), image.at((x, 0))))
        .over(&r, |f| f.set((x, r.x + 1), f.at((x, r.x)) * 0.5 + pair.get(0, x) + pair.get(1, x).f32()));
    let scatter = func("scatter", x, 0).over(&r, |f| f.add(clamp(pair.get(1, r.x) % 7, 0, 6), 1));
    let best = argmax(&r, image.at((x + r.x, 0)));
    let indirect = func("indirect", x, image.at((clamp(&best.at[0], 0, 7), 0)) + best.value);
    let dag = dag([total, scan, scatter, indirect]);
    assert_eq!(dag.edges().values().filter(|edge| edge.calls > 1).count(), 2);
    insta::assert_snapshot!(dag.to_text());
    assert!(dag.to_dot().ends_with("}\n"));
    assert_eq!(node(&dag, "pair").bytes_per_point, 8);
}

#[test]
fn indices_read_like_formulas() {
    let (x, y) = vars!(x, y);
    let grid = Input::f32("grid", 2);
    let size = grid.extent(0);
    let value = [
        (x / 2 * 2, y - 2 * x),
        (3 * x / 2, -(y / 4)),
        (x + y + 1, size - x),
        (x + y - 1, grid.extent(0) - x),
        (clamp(x, 0, 9) + y, Expr::from(-3)),
        (x % 3 + y, grid.min(1)),
        (select(x.lt(4), 2, 3), x.expr()),
    ];
    let value = value.into_iter().map(|at| grid.at(at)).reduce(|a, b| a + b).unwrap();
    insta::assert_snapshot!(dag([func("f", (x, y), value)]).to_text(), @"
    graph p: 1 input, 1 Func, 1 stage, 1 edge

    grid(d0, d1)  f32  input
    f(x, y)       f32  output
        <- grid[x@2, -2x+y], grid[3x/2, -y/4], grid[x+y+(-1..1), -x+_] (2), grid[~x+y, -3],
           grid[y+?(x), _], grid[~2, x]

    ~x    x, clamped
    ?(x)  moves with x, not evenly
    _     fixed by sizes, Params or data
    x@2   x, rounded in steps of 2
    ");
}

#[test]
fn strange_names_do_not_break_graphviz() {
    let x = Var::new("a_\"quoted\\name");
    let pipeline = Pipeline::new("a \"graph\"", [func("f", x, 1.0)]).unwrap();
    let dot = Dag::new(&pipeline).to_dot();
    assert!(dot.starts_with("digraph \"a \\\"graph\\\"\" {"), "{dot}");
    assert!(dot.contains("f(a_\\\"quoted\\\\name)"), "{dot}");
}
