//! Runs several jobs in parallel.

use std::panic::resume_unwind;
use std::thread::{self, Builder};

use warploom_codegen::ir;
use warploom_codegen::printer::{Build, PRINTER};
use warploom_target::Program;

use super::{Compile, Failure, STACK_BYTES};

/// Applies `work` to every item in parallel, one thread per item, with stacks deep enough for
/// compiling. Returns the results in the order of the items.
///
/// # Errors
/// If a thread cannot be started.
///
/// # Panics
/// Propagates a panic of `work`.
pub(crate) fn at_once<I: Send, T: Send>(
    items: Vec<I>,
    work: impl Fn(I) -> T + Sync,
) -> Result<Vec<T>, Failure> {
    let work = &work;
    thread::scope(|scope| {
        let spawn = |item| Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || work(item));
        let started: Vec<_> = items.into_iter().map(spawn).collect();
        let joined = started.into_iter().map(|thread| match thread.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(error) => Err(Failure::Lost(format!("cannot start a thread: {error}; use fewer"))),
        });
        joined.collect()
    })
}

/// Compiles the checking build and the timing build in parallel, in that order.
pub(crate) fn both_builds(lowered: &ir::Program, compile: Compile<'_>) -> Result<[Program; 2], Failure> {
    let compile = |build| compile(&PRINTER.describe_in_parts(lowered, build));
    let compiled = at_once(vec![Build::Checking, Build::Timing], compile)?;
    let programs = compiled.into_iter().map(|compiled| compiled.map(|compiled| compiled.program));
    let programs: Vec<Program> = programs.collect::<Result<_, _>>()?;
    Ok(programs.try_into().unwrap_or_else(|_| unreachable!("two builds were asked for")))
}

#[cfg(test)]
mod tests {
    use super::at_once;

    #[test]
    fn results_keep_their_order() {
        assert_eq!(at_once(vec![3, 1, 2], |number| 10 * number), Ok(vec![30, 10, 20]));
        assert_eq!(at_once(Vec::<i32>::new(), |number| number), Ok(Vec::new()));
    }
}
