//! A printer for a language that nobody compiles, in the manner of WGSL: what a back end has to write, and that the
//! trait asks for nothing that only CUDA has.

use std::fmt::Write;

use warploom_codegen::ir::{ArrayId, Kernel, KernelId, Leaf, NodeId, NodeKind, Program, Role, Space, Stmt};
use warploom_codegen::printer::{Build, LineOrigin, Listing, PRINTER, Printer, Usage, launched};
use warploom_lang::op::Op;
use warploom_target::program::{self as target, Code};

use crate::programs;

struct Toy;

impl Printer for Toy {
    fn extension(&self) -> &'static str {
        "toy"
    }

    fn options(&self, build: Build) -> Vec<String> {
        let option = match build {
            Build::Checking => "strict",
            Build::Timing => "fast",
        };
        vec![option.to_owned()]
    }

    fn print_lines(&self, program: &Program, build: Build) -> Listing {
        let (mut text, mut lines) = (String::new(), Vec::new());
        for kernel in program.kernels.keys() {
            text += &self.print_kernel(program, kernel, build);
            let origin = LineOrigin { kernel: Some(kernel), ..LineOrigin::default() };
            lines.resize(text.lines().count(), origin);
        }
        Listing { text, lines, helpers: 0..0 }
    }

    fn print_kernel(&self, program: &Program, id: KernelId, _: Build) -> String {
        let kernel = &program.kernels[id];
        let usage = Usage::of(program, id);
        let of = |array: ArrayId, memory: &str| {
            let array = &kernel.arrays[array];
            format!("{memory} {}: array<{}, {}>", array.name, array.ty, array.elements)
        };
        let (mut arguments, mut text) = (Vec::new(), String::new());
        for (array, decl) in kernel.arrays.iter() {
            match decl.space {
                Space::Global(buffer) if matches!(program.buffers[buffer].role, Role::Table(_)) => {}
                Space::Global(_) if usage.is_written(array) => arguments.push(of(array, "read_write")),
                Space::Global(_) => arguments.push(of(array, "read")),
                Space::Shared => _ = writeln!(text, "{};", of(array, "workgroup")),
                Space::Thread => _ = writeln!(text, "{};", of(array, "private")),
            }
        }
        arguments.extend(usage.reads_params().then(|| "params: uniform".to_owned()));
        arguments.extend(usage.iterations().iter().map(|level| format!("iteration{level}: i32")));
        let (name, threads) = (&kernel.name, kernel.threads);
        let mut printed = format!("@workgroup_size({threads}) fn {name}({}) {{\n", arguments.join(", "));
        text.lines().for_each(|line| _ = writeln!(printed, "  {line}"));
        block(kernel, &kernel.body, 1, &mut printed);
        printed + "}\n"
    }

    fn kernels(&self, program: &Program) -> Vec<target::Kernel> {
        program.kernels.keys().map(|id| launched(program, id)).collect()
    }
}

/// Prints statements; what the language does not have is refused.
fn block(kernel: &Kernel, body: &[Stmt], depth: usize, to: &mut String) {
    let indent = "  ".repeat(depth);
    let value = |id: &NodeId| expression(kernel, *id);
    for stmt in body {
        match stmt {
            Stmt::Let(var, id) => _ = writeln!(to, "{indent}let {} = {};", kernel.vars[*var], value(id)),
            Stmt::Store { array, index, value: stored } => {
                let name = &kernel.arrays[*array].name;
                _ = writeln!(to, "{indent}{name}[{}] = {};", value(index), value(stored));
            }
            Stmt::For { var, count, body, .. } => {
                _ = writeln!(to, "{indent}for {} in 0..{count} {{", kernel.vars[*var]);
                block(kernel, body, depth + 1, to);
                _ = writeln!(to, "{indent}}}");
            }
            Stmt::If { condition, body, otherwise } => {
                _ = writeln!(to, "{indent}if {} {{", value(condition));
                block(kernel, body, depth + 1, to);
                _ = writeln!(to, "{indent}}} else {{");
                block(kernel, otherwise, depth + 1, to);
                _ = writeln!(to, "{indent}}}");
            }
            Stmt::Barrier => _ = writeln!(to, "{indent}barrier();"),
            Stmt::Shuffle { .. }
            | Stmt::Copy { .. }
            | Stmt::Vector { .. }
            | Stmt::Commit
            | Stmt::Wait(_)
            | Stmt::Atomic { .. } => panic!("the language has no {stmt:?}"),
        }
    }
}

fn expression(kernel: &Kernel, id: NodeId) -> String {
    let node = &kernel.exprs[id];
    let args: Vec<String> = node.args.iter().map(|arg| expression(kernel, *arg)).collect();
    match node.kind {
        NodeKind::Leaf(Leaf::Thread) => "local_id".to_owned(),
        NodeKind::Leaf(Leaf::Block(dimension)) => format!("group_id[{dimension}]"),
        NodeKind::Leaf(Leaf::Var(var)) => kernel.vars[var].clone(),
        NodeKind::Leaf(Leaf::Param(position)) => format!("params[{position}]"),
        NodeKind::Leaf(Leaf::Size(position)) => kernel.scalars[position as usize].name.clone(),
        NodeKind::Leaf(Leaf::Iteration(level)) => format!("iteration{level}"),
        NodeKind::Op(Op::Const(value)) => value.to_string(),
        NodeKind::Op(op) => match &args[..] {
            [a, b] if !op.name().starts_with(char::is_alphabetic) => format!("({a} {} {b})", op.name()),
            _ => format!("{}({})", op.name(), args.join(", ")),
        },
        NodeKind::Load(array) => format!("{}[{}]", kernel.arrays[array].name, args[0]),
        NodeKind::Offset(_) => panic!("the language has no 64-bit indices"),
    }
}

#[test]
fn another_language_is_printed_through_the_same_trait() {
    let text = "\
@workgroup_size(128) fn copy(read input: array<f32, 100>, read_write out: array<f32, 100>) {
  let i = ((group_id[0] * 128) + local_id);
  if (i < 100) {
    out[i] = input[i];
  } else {
  }
}
";
    assert_eq!(Toy.print(&programs::copy(100), Build::Timing), text);
}

#[test]
fn a_driver_gets_the_same_of_both_printers() {
    for program in [programs::copy(100), programs::blur(), programs::product()] {
        let (toy, cuda) =
            (Toy.describe(&program, Build::Checking), PRINTER.describe(&program, Build::Checking));
        toy.validate().unwrap();
        assert_eq!((&toy.buffers, &toy.steps, toy.params), (&cuda.buffers, &cuda.steps, cuda.params));
        for (toy, cuda) in toy.kernels.iter().zip(&cuda.kernels) {
            assert_eq!((toy.grid, toy.threads, &toy.buffers), (cuda.grid, cuda.threads, &cuda.buffers));
            assert_eq!((toy.reads_params, &toy.iterations), (cuda.reads_params, &cuda.iterations));
        }
        let Code::Source { text, options } = &toy.code else { panic!("it is text") };
        assert_eq!(options, &["strict"]);
        let listing = Toy.print_lines(&program, Build::Checking);
        assert_eq!((&listing.text, listing.lines.len()), (text, text.lines().count()));
        let Code::Parts(parts) = Toy.describe_in_parts(&program, Build::Checking).code else {
            panic!("parts")
        };
        assert_eq!(parts.len(), program.kernels.len());
    }
}
