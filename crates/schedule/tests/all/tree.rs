//! Traversals and edits of trees.

use warploom_lang::{FuncId, Id};
use warploom_schedule::{
    BlockItem, Kernel, KernelNumbers, Loops, Nest, NodeMut, ReductionTile, RootItem, Schedule, Site, Size,
    StageRef,
};

fn stage(func: usize) -> StageRef {
    StageRef { func: FuncId::new(func), stage: 0 }
}

fn flat(func: usize) -> BlockItem {
    Nest::shared(stage(func)).into()
}

/// Loops over variables of a stage.
fn tiles(func: usize, vars: &[usize]) -> Vec<ReductionTile> {
    let tile = |var: &usize| ReductionTile { stage: stage(func), var: *var, size: Size::Of(1) };
    vars.iter().map(tile).collect()
}

fn over(vars: &[usize], body: Vec<BlockItem>) -> BlockItem {
    Loops { loops: tiles(9, vars), body }.into()
}

fn kernel(body: Vec<BlockItem>) -> Kernel {
    Kernel { stage: stage(9), block: Vec::new(), numbers: KernelNumbers::default(), body }
}

/// Kernels 1, 9 and 3; loops around the last two.
fn schedule(body: Vec<BlockItem>) -> Schedule {
    let three = RootItem::lone(stage(3), tiles(3, &[0]), Vec::new(), Vec::new(), None);
    let around = Loops { loops: tiles(9, &[2]), body: vec![kernel(body).into(), three] };
    Schedule { root: vec![RootItem::single(stage(1)), around.into()], ..Schedule::default() }
}

#[test]
fn places_are_before_readers_and_between_loops() {
    let inner = vec![flat(1), flat(9)];
    let kernel = kernel(vec![flat(0), over(&[1, 0], inner.clone())]);
    let put = |site: &Site| {
        let mut kernel = kernel.clone();
        site.insert(&mut kernel, vec![flat(5)]);
        kernel.body
    };
    // Only the last nest reads it.
    let sites = kernel.sites(&[false, false, true]);
    assert_eq!(
        sites.iter().map(put).collect::<Vec<_>>(),
        [
            vec![flat(0), flat(5), over(&[1, 0], inner.clone())],
            vec![flat(0), over(&[1], vec![flat(5), over(&[0], inner.clone())])],
            vec![flat(0), over(&[1, 0], vec![flat(1), flat(5), flat(9)])],
        ]
    );
    assert_eq!(sites.iter().map(|site| site.divides).collect::<Vec<_>>(), [false, true, false]);
    // Readers inside and outside the loops only share the block.
    let common = kernel.sites(&[true, false, true]);
    let bodies: Vec<_> = common.iter().map(put).collect();
    assert_eq!(bodies, [vec![flat(5), flat(0), over(&[1, 0], inner)]]);
    assert!(kernel.sites(&[false; 3]).is_empty());
}

#[test]
fn what_is_put_somewhere_can_be_removed_again() {
    let before = kernel(vec![flat(0), over(&[1], vec![flat(1), over(&[0], vec![flat(9)])])]);
    let sites = before.sites(&[false, false, true]);
    assert_eq!(sites.len(), 3);
    for site in sites {
        let mut after = before.clone();
        site.insert(&mut after, vec![Loops::holding(tiles(5, &[0]), Nest::shared(stage(5)))]);
        assert_eq!(after.nests().count(), 4);
        // Without the nest, its loops have an empty body.
        after.edit(|node, _| !matches!(node, NodeMut::Nest(nest) if nest.item == stage(5).into()));
        assert_eq!(after, before);
    }
}

#[test]
fn nodes_are_edited_in_order_with_the_loops_that_remain_outside() {
    let mut schedule = schedule(vec![flat(0), over(&[1], vec![flat(4), over(&[0], vec![flat(9)])])]);
    let mut seen = Vec::new();
    let vars = |tiles: &[ReductionTile]| tiles.iter().map(|tile| tile.var).collect::<Vec<_>>();
    schedule.edit(|node, outer| {
        let (name, stays) = match node {
            NodeMut::Around(around) => (format!("around {:?}", vars(&around.loops)), true),
            NodeMut::Kernel(kernel) => {
                (format!("kernel {}", kernel.stage.func.index()), kernel.stage != stage(3))
            }
            NodeMut::Over(over) => {
                over.loops[0].var += 5;
                (format!("over {:?}", vars(&over.loops)), over.loops[0].var != 6)
            }
            NodeMut::Nest(nest) => {
                let func = nest.item.stage().map_or(0, |stage| stage.func.index());
                (format!("nest {func}"), true)
            }
        };
        seen.push(format!("{name} in {:?}", vars(outer)));
        stays
    });
    let expected = [
        "kernel 1 in []",
        "nest 1 in []",
        "around [2] in []",
        "kernel 9 in [2]",
        "nest 0 in [2]",
        "over [6] in [2]",
        "nest 4 in [2]",
        "over [5] in [2]",
        "nest 9 in [2, 5]",
        "around [0] in [2]",
        "kernel 3 in [2, 0]",
    ];
    assert_eq!(seen, expected);
    // The outer loops were replaced by their body; the loops around kernel 3 were removed with it.
    let body = vec![flat(0), flat(4), over(&[5], vec![flat(9)])];
    let around = Loops { loops: tiles(9, &[2]), body: vec![kernel(body).into()] };
    assert_eq!(schedule.root, [RootItem::single(stage(1)), around.into()]);
}

#[test]
fn kernels_are_found_inside_loops() {
    let mut schedule = schedule(vec![over(&[1, 0], vec![flat(0)]), flat(9)]);
    let stages = |schedule: &Schedule| schedule.kernels().map(|kernel| kernel.stage).collect::<Vec<_>>();
    assert_eq!(stages(&schedule), [stage(1), stage(9), stage(3)]);
    assert_eq!(schedule.nests().count(), 4);
    let found = schedule.kernel_mut(stage(9)).unwrap();
    assert_eq!(found.loops_over(0).map(|tile| tile.var).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(found.loops_over(1).count(), 0);
    found.wrap(stage(9).into(), tiles(9, &[3]));
    assert_eq!(found.body, [over(&[1, 0], vec![flat(0)]), over(&[3], vec![flat(9)])]);
    assert_eq!(found.nest_mut(stage(0).into()).map(|nest| nest.item), Some(stage(0).into()));

    schedule.replace_kernel(stage(1), RootItem::single(stage(2)));
    assert_eq!(stages(&schedule), [stage(2), stage(9), stage(3)]);
    let changed = schedule.root[1].with(|kernel| kernel.stage = stage(8));
    assert_eq!(changed.kernels().map(|kernel| kernel.stage).collect::<Vec<_>>(), [stage(8), stage(3)]);
    schedule.remove_kernels(FuncId::new(3));
    assert_eq!(stages(&schedule), [stage(2)]);
}
