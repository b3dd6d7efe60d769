//! Compiles the kernels of a program one by one.

use std::collections::BTreeMap;
use std::time::Duration;

use warploom_target::Program;
use warploom_target::program::Code;

use super::{Compiled, Failure};

/// Compiles each part of a program separately with `compile`, which handles single-part programs
/// only.
pub(crate) fn by_parts(
    program: &Program,
    compile: impl Fn(&Program) -> Result<Compiled, Failure>,
) -> Result<Compiled, Failure> {
    let Code::Parts(parts) = &program.code else { return compile(program) };
    let mut codes = Vec::with_capacity(parts.len());
    let (mut kernels, mut time) = (BTreeMap::new(), Duration::ZERO);
    for (kernel, part) in program.kernels.iter().zip(parts) {
        // A compiler needs only the code. Other fields are left empty, so that equal code hits a
        // cache.
        let alone = Program {
            name: String::new(),
            code: part.clone(),
            kernels: vec![kernel.clone()],
            buffers: Vec::new(),
            params: 0,
            steps: Vec::new(),
        };
        let compiled = compile(&alone)?;
        codes.push(compiled.program.code);
        kernels.extend(compiled.kernels);
        time += compiled.time;
    }
    let program = Program { code: Code::Parts(codes), ..program.clone() };
    Ok(Compiled { program, kernels, time })
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use warploom_target::program::{Kernel, LaunchStep};

    use super::*;

    fn kernel(entry: &str) -> Kernel {
        Kernel {
            entry: entry.to_owned(),
            grid: [1; 3],
            threads: 32,
            shared_bytes: 0,
            dynamic_shared_bytes: 0,
            buffers: Vec::new(),
            reads_params: false,
            iterations: Vec::new(),
            sizes: Vec::new(),
            waits: false,
        }
    }

    #[test]
    fn every_part_is_compiled_by_itself() {
        let source = |text: &str| Code::Source { text: text.to_owned(), options: Vec::new() };
        let program = Program {
            name: "two".to_owned(),
            code: Code::Parts(vec![source("one"), source("other")]),
            kernels: vec![kernel("a"), kernel("b")],
            buffers: Vec::new(),
            params: 3,
            steps: vec![LaunchStep::Launch(0), LaunchStep::Launch(1)],
        };
        let seen = RefCell::new(Vec::new());
        let compile = |part: &Program| {
            seen.borrow_mut().push((part.code.clone(), part.kernels[0].entry.clone()));
            let kernels = BTreeMap::from([(part.kernels[0].entry.clone(), Default::default())]);
            let code = Code::Machine(part.kernels[0].entry.clone().into_bytes());
            let time = Duration::from_millis(5);
            Ok(Compiled { program: Program { code, ..part.clone() }, kernels, time })
        };
        let compiled = by_parts(&program, compile).unwrap();
        assert_eq!(*seen.borrow(), [(source("one"), "a".to_owned()), (source("other"), "b".to_owned())]);
        let codes = Code::Parts(vec![Code::Machine(b"a".to_vec()), Code::Machine(b"b".to_vec())]);
        assert_eq!(compiled.program, Program { code: codes, ..program.clone() });
        assert_eq!(compiled.kernels.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(compiled.time, Duration::from_millis(10));
        let refused = by_parts(&program, |_| Err(Failure::Refused("made up".to_owned())));
        assert!(matches!(refused, Err(Failure::Refused(_))));
    }
}
