//! Finds and changes statements of a kernel by their path.

use std::ops::Range;
use std::slice;

use warploom_codegen::ir::{Kernel, Leaf, NodeId, NodeKind, Space, Stmt, every_stmt};
use warploom_codegen::verify::{StmtIndex, StmtPath};
use warploom_lang::op::{BinaryOp, Op};
use warploom_lang::{Type, Value};

use super::node;

/// Every statement of a kernel's body with its path, in textual order.
pub(super) fn statements(body: &[Stmt]) -> Vec<(StmtPath, &Stmt)> {
    let mut found = Vec::new();
    collect(body, StmtIndex::Body, &StmtPath::default(), &mut found);
    found
}

fn collect<'a>(
    list: &'a [Stmt],
    step: fn(usize) -> StmtIndex,
    around: &StmtPath,
    found: &mut Vec<(StmtPath, &'a Stmt)>,
) {
    for (position, stmt) in list.iter().enumerate() {
        let mut at = around.clone();
        at.0.push(step(position));
        found.push((at.clone(), stmt));
        let [body, otherwise] = stmt.lists();
        collect(body, StmtIndex::Body, &at, found);
        collect(otherwise, StmtIndex::Otherwise, &at, found);
    }
}

/// The list that contains the statement at a path.
///
/// # Panics
/// If there is no such list.
fn list_of<'a>(body: &'a mut Vec<Stmt>, at: &[StmtIndex]) -> &'a mut Vec<Stmt> {
    at.windows(2).fold(body, |list, steps| {
        let [body, otherwise] = list[position(steps[0])].lists_mut();
        let inner = if let StmtIndex::Body(_) = steps[1] { body } else { otherwise };
        inner.unwrap_or_else(|| panic!("no statement at {:?}", steps[1]))
    })
}

fn position(step: StmtIndex) -> usize {
    let (StmtIndex::Body(position) | StmtIndex::Otherwise(position)) = step;
    position
}

/// Replaces the statement at a path, or removes it.
///
/// # Panics
/// If there is no such statement.
pub(super) fn replace(body: &mut Vec<Stmt>, at: &StmtPath, with: Option<Stmt>) {
    let StmtPath(at) = at;
    let last = at.last().map_or(0, |step| position(*step));
    list_of(body, at).splice(last..=last, with);
}

/// The order in which threads run one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turns {
    Ascending,
    Descending,
    /// All threads but the first do nothing.
    First,
}

/// Makes threads run one after another between the barriers that enclose the path of a removed barrier. Threads that
/// exchange values there then compute other results, in ascending or in descending order.
pub(super) fn in_turn(kernel: &mut Kernel, at: &StmtPath, turns: Turns) {
    let (at, range) = between_barriers(&mut kernel.body, at.0.clone());
    let segment: Vec<Stmt> = list_of(&mut kernel.body, &at).drain(range.clone()).collect();
    // Indices stay visible to later statements.
    let (lets, work): (Vec<Stmt>, Vec<Stmt>) = segment.into_iter().partition(|stmt| is_index(kernel, stmt));
    let var = kernel.vars.push("turn".to_owned());
    let mut leaf = |leaf| node(kernel, NodeKind::Leaf(leaf), Type::I32, &[]);
    let (thread, mut turn) = (leaf(Leaf::Thread), leaf(Leaf::Var(var)));
    if turns == Turns::Descending {
        let last = Op::Const(Value::from(kernel.threads as i32 - 1));
        let last = node(kernel, NodeKind::Op(last), Type::I32, &[]);
        turn = node(kernel, NodeKind::Op(Op::Binary(BinaryOp::Sub)), Type::I32, &[last, turn]);
    }
    let mine = node(kernel, NodeKind::Op(Op::Binary(BinaryOp::Eq)), Type::Bool, &[thread, turn]);
    let count = if turns == Turns::First { 1 } else { kernel.threads };
    let body = vec![Stmt::when(mine, work), Stmt::Barrier];
    let turns = Stmt::For { var, count, limit: None, unrolled: false, body };
    list_of(&mut kernel.body, &at).splice(range.start..range.start, lets.into_iter().chain([turns]));
}

/// Makes copies plain stores, which need no commits and waits. All statements keep their paths.
pub(super) fn make_synchronous(kernel: &mut Kernel) {
    let never = node(kernel, NodeKind::Op(Op::Const(Value::from(false))), Type::Bool, &[]);
    let is_vector = |stmt: &&Stmt| matches!(stmt, Stmt::Vector { .. });
    let vectors: Vec<Stmt> = every_stmt(&kernel.body).filter(is_vector).cloned().collect();
    let stored = |vector| Some((each_stored(kernel, &vector)?, vector));
    let stored: Vec<(Stmt, Stmt)> = vectors.into_iter().filter_map(stored).collect();
    change(&mut kernel.body, &|stmt| {
        if let Stmt::Copy { array, index, value } = *stmt {
            *stmt = Stmt::Store { array, index, value };
        } else if matches!(stmt, Stmt::Commit | Stmt::Wait(_)) {
            *stmt = Stmt::when(never, Vec::new());
        } else if let Some((stores, _)) = stored.iter().find(|(_, vector)| vector == stmt) {
            *stmt = stores.clone();
        }
    });
}

/// A loop that stores the elements of a vector to a shared array, if the vector writes one.
fn each_stored(kernel: &mut Kernel, vector: &Stmt) -> Option<Stmt> {
    let Stmt::Vector { to: array, at, from, index, width: count } = *vector else { return None };
    (kernel.arrays[array].space == Space::Shared).then_some(())?;
    let var = kernel.vars.push("element".into());
    let element = node(kernel, NodeKind::Leaf(Leaf::Var(var)), Type::I32, &[]);
    let add = NodeKind::Op(Op::Binary(BinaryOp::Add));
    let [at, index] = [at, index].map(|first| node(kernel, add, Type::I32, &[first, element]));
    let value = node(kernel, NodeKind::Load(from), kernel.arrays[from].ty, &[index]);
    let body = vec![Stmt::Store { array, index: at, value }];
    Some(Stmt::For { var, count, limit: None, unrolled: true, body })
}

/// Removes statements in all lists, unless `keep` holds.
pub(super) fn retain(body: &mut Vec<Stmt>, keep: &dyn Fn(&Stmt) -> bool) {
    body.retain(keep);
    for stmt in body {
        stmt.lists_mut().into_iter().flatten().for_each(|list| retain(list, keep));
    }
}

fn change(body: &mut [Stmt], to: &dyn Fn(&mut Stmt)) {
    for stmt in body {
        to(stmt);
        stmt.lists_mut().into_iter().flatten().for_each(|list| change(list, to));
    }
}

/// The outermost list around a path that a block executes as a whole: one version of its body.
pub(super) fn version_of<'a>(body: &'a mut Vec<Stmt>, StmtPath(at): &StmtPath) -> &'a mut Vec<Stmt> {
    let mut depth = 1;
    while depth < at.len() && matches!(list_of(body, &at[..depth])[position(at[depth - 1])], Stmt::If { .. })
    {
        depth += 1;
    }
    list_of(body, &at[..depth])
}

/// The statements around a path without a barrier among them: a path into their list, and their positions. A loop
/// or branch without a barrier counts as a whole.
fn between_barriers(body: &mut Vec<Stmt>, mut at: Vec<StmtIndex>) -> (Vec<StmtIndex>, Range<usize>) {
    let waits = |stmt: &Stmt| every_stmt(slice::from_ref(stmt)).any(|stmt| *stmt == Stmt::Barrier);
    loop {
        let (list, here) = (list_of(body, &at), at.last().map_or(0, |step| position(*step)));
        let start = list[..here].iter().rposition(waits).map_or(0, |barrier| barrier + 1);
        let end = list[here..].iter().position(waits).map_or(list.len(), |barrier| here + barrier);
        let whole = start == 0 && end == list.len();
        let around = &at[..at.len() - 1];
        match around.last() {
            Some(step) if whole && !waits(&list_of(body, around)[position(*step)]) => {
                at.truncate(around.len())
            }
            _ => return (at, start..end),
        }
    }
}

/// Whether a statement binds a value that does not depend on memory.
fn is_index(kernel: &Kernel, stmt: &Stmt) -> bool {
    let loads = |id: &NodeId| matches!(kernel.exprs[*id].kind, NodeKind::Load(_));
    matches!(stmt, Stmt::Let(_, value) if !kernel.exprs.reachable([*value]).iter().any(loads))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warploom_lang::Id;

    #[test]
    fn every_statement_is_found_and_can_be_removed() {
        let inner = vec![Stmt::Barrier, Stmt::Barrier];
        let branch = Stmt::If { condition: Id::new(0), body: inner.clone(), otherwise: inner };
        let body = vec![
            Stmt::Barrier,
            Stmt::For { var: Id::new(0), count: 2, limit: None, unrolled: false, body: vec![branch] },
        ];
        let found = statements(&body);
        let paths: Vec<String> = found.iter().map(|(at, _)| at.to_string()).collect();
        assert_eq!(paths, ["0", "1", "1.0", "1.0.0", "1.0.1", "1.0.else.0", "1.0.else.1"]);
        for (at, stmt) in &found {
            let mut changed = body.clone();
            replace(&mut changed, at, Some((*stmt).clone()));
            assert_eq!(changed, body, "{at}");
            replace(&mut changed, at, None);
            let inside = found.iter().filter(|(other, _)| other.0.starts_with(&at.0)).count();
            assert_eq!(statements(&changed).len(), found.len() - inside, "{at}");
        }
    }
}
