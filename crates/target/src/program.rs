//! The interface between code generation and a runtime: code, entry names, launches and buffers.
//!
//! A [`Program`] is everything that code generation passes to a runtime. It contains no expressions
//! or schedules: a kernel is a name with a launch shape and an argument list, and a buffer is a
//! number of bytes with a role.
//!
//! # The arguments of a kernel
//!
//! A kernel takes exactly these arguments, in this order:
//!
//! 1. one 8-byte pointer per entry of [`Kernel::buffers`];
//! 2. if [`Kernel::reads_params`], a pointer to [`Program::params`] 32-bit words, the program's
//!    scalars;
//! 3. per entry of [`Kernel::iterations`], the current iteration of that enclosing [`LaunchStep::Loop`]
//!    (loops are numbered from the outermost), as a 32-bit integer by value;
//! 4. the entries of [`Kernel::sizes`], as 32-bit integers by value.
//!
//! Scalars are in memory so that a captured graph of launches stays valid when they change.
//! Iterations are passed by value: they are the same in every run, and each graph node has its own.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A pipeline at fixed sizes, compiled or still in source form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The name of the pipeline, for messages.
    pub name: String,
    /// The device code of all kernels.
    pub code: Code,
    /// The kernels, which steps refer to by position.
    pub kernels: Vec<Kernel>,
    /// All device buffers, except the one for the params.
    pub buffers: Vec<Buffer>,
    /// The number of 32-bit scalar parameters.
    pub params: usize,
    /// The launches and loops, in execution order.
    pub steps: Vec<LaunchStep>,
}

/// Device code in source or binary form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The text of a printer.
    Source {
        /// One translation unit.
        text: String,
        /// Compiler options, without the architecture.
        options: Vec<String>,
    },
    /// Code of a virtual instruction set. The driver translates it for its device.
    #[serde(rename = "ptx")]
    Virtual(String),
    /// Machine code for one architecture.
    #[serde(rename = "cubin")]
    Machine(Vec<u8>),
    /// One piece of code per kernel, in the order of [`Program::kernels`]. Programs with kernels in
    /// common can then share compiled code.
    Parts(Vec<Code>),
}

/// A kernel: an entry point in the code, and how to launch it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// The symbol of the entry point in the code.
    pub entry: String,
    /// The number of blocks along x, y and z.
    pub grid: [u32; 3],
    /// The number of threads per block, all along x.
    pub threads: u32,
    /// The total shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// The part of `shared_bytes` that the launch must request; the code declares the rest
    /// statically.
    pub dynamic_shared_bytes: u32,
    /// The positions in [`Program::buffers`] of its pointer arguments, in order.
    pub buffers: Vec<usize>,
    /// Whether a pointer to the params follows the buffers.
    pub reads_params: bool,
    /// The enclosing loops whose iteration it takes, numbered from the outermost.
    pub iterations: Vec<usize>,
    /// The scalars that follow from the sizes and strides of this program; empty if its code is specialised for these.
    pub sizes: Vec<i32>,
    /// Whether every thread waits for the end of the previous launch before all accesses to memory, in code compiled
    /// for devices with early launches. Only such a kernel may be launched early.
    #[serde(default)]
    pub waits: bool,
}

/// A dense allocation of device memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// The name, for messages.
    pub name: String,
    /// The number of elements.
    pub elements: usize,
    /// The size of one element, in bytes.
    pub element_bytes: usize,
    /// Its start is a multiple of this number of bytes, and of the size of an element.
    #[serde(default)]
    pub alignment: usize,
    /// Whether the caller supplies it, receives it, or never sees it.
    pub role: Role,
}

/// The purpose of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Supplied by the caller: the pipeline's input with this number.
    Input(usize),
    /// Returned to the caller.
    Output {
        /// The position among the pipeline's outputs.
        output: usize,
        /// The number of the value, for an output with several values.
        value: usize,
    },
    /// Intermediate data between kernels.
    Temporary,
}

/// One step of a program's execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchStep {
    /// Launches the kernel at this position of [`Program::kernels`].
    Launch(usize),
    /// Repeats a sequence of steps.
    Loop {
        /// The number of iterations.
        count: u32,
        /// The steps of one iteration.
        body: Vec<LaunchStep>,
    },
}

/// An inconsistency in a program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// A step launches a kernel that does not exist.
    #[error("program `{program}` launches kernel number {kernel}, but has {kernels}")]
    NoKernel {
        /// The program's name.
        program: String,
        /// The invalid kernel number.
        kernel: usize,
        /// The number of kernels.
        kernels: usize,
    },
    /// A kernel refers to a buffer that does not exist.
    #[error("kernel `{kernel}` takes buffer number {buffer}, but the program has {buffers}")]
    NoBuffer {
        /// The entry name of the kernel.
        kernel: String,
        /// The invalid buffer number.
        buffer: usize,
        /// The number of buffers.
        buffers: usize,
    },
    /// A kernel reads the iteration of a loop that does not enclose it.
    #[error("kernel `{kernel}` takes the iteration of loop {level}, but is launched inside {depth} loops")]
    NoLoop {
        /// The entry name of the kernel.
        kernel: String,
        /// The number of the loop, from the outermost.
        level: usize,
        /// The number of loops around the launch.
        depth: usize,
    },
    /// A kernel with no threads or no blocks.
    #[error("kernel `{kernel}` has {threads} threads in each of {} x {} x {} blocks", .grid[0], .grid[1], .grid[2])]
    Empty {
        /// The entry name of the kernel.
        kernel: String,
        /// The number of threads per block.
        threads: u32,
        /// The number of blocks along x, y and z.
        grid: [u32; 3],
    },
    /// The number of code parts does not match the number of kernels.
    #[error("program `{program}` has {kernels} kernels, but its code has {parts} parts")]
    Parts {
        /// The program's name.
        program: String,
        /// The number of kernels.
        kernels: usize,
        /// The number of code parts.
        parts: usize,
    },
    /// Two buffers have the same input or output role.
    #[error("buffers `{first}` and `{second}` have the same role")]
    SameRole {
        /// The name of one buffer.
        first: String,
        /// The name of the other buffer.
        second: String,
    },
}

impl Buffer {
    /// The size of the whole buffer, in bytes.
    pub fn bytes(&self) -> usize {
        self.elements.saturating_mul(self.element_bytes)
    }
}

impl Program {
    /// The position of the buffer with this role; `None` for temporaries.
    pub fn buffer(&self, role: Role) -> Option<usize> {
        let position = self.buffers.iter().position(|buffer| buffer.role == role);
        if role == Role::Temporary { None } else { position }
    }

    /// The total size of all buffers in device memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.buffers.iter().map(Buffer::bytes).fold(0, usize::saturating_add)
    }

    /// The number of launches in one run, with loops unrolled.
    pub fn launches(&self) -> u64 {
        count(&self.steps)
    }

    /// Calls `launch` for every launch in order, until it fails. Passes the kernel and the
    /// iterations of the enclosing loops, outermost first.
    ///
    /// # Errors
    ///
    /// The first error that `launch` returns.
    pub fn for_each_launch<E>(
        &self,
        mut launch: impl FnMut(usize, &[u32]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut iterations = Vec::new();
        let mut visit = |kernel, iterations: &[u32]| match launch(kernel, iterations) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        };
        match walk(&self.steps, &mut iterations, &mut visit) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    }

    /// Checks that the program is consistent.
    ///
    /// # Errors
    ///
    /// The first inconsistency found.
    pub fn validate(&self) -> Result<(), ProgramError> {
        if let Code::Parts(parts) = &self.code
            && parts.len() != self.kernels.len()
        {
            let (program, kernels, parts) = (self.name.clone(), self.kernels.len(), parts.len());
            return Err(ProgramError::Parts { program, kernels, parts });
        }
        for kernel in &self.kernels {
            let buffers = self.buffers.len();
            if let Some(&buffer) = kernel.buffers.iter().find(|&&buffer| buffer >= buffers) {
                return Err(ProgramError::NoBuffer { kernel: kernel.entry.clone(), buffer, buffers });
            }
            let Kernel { entry, grid, threads, .. } = kernel;
            if *threads == 0 || grid.contains(&0) {
                return Err(ProgramError::Empty { kernel: entry.clone(), threads: *threads, grid: *grid });
            }
        }
        for (i, buffer) in self.buffers.iter().enumerate() {
            let twin = self.buffers[..i].iter().find(|other| other.role == buffer.role);
            if let (Some(other), true) = (twin, buffer.role != Role::Temporary) {
                let (first, second) = (other.name.clone(), buffer.name.clone());
                return Err(ProgramError::SameRole { first, second });
            }
        }
        self.validate_steps(&self.steps, 0)
    }

    fn validate_steps(&self, steps: &[LaunchStep], depth: usize) -> Result<(), ProgramError> {
        for step in steps {
            let kernel = match step {
                LaunchStep::Launch(kernel) => *kernel,
                LaunchStep::Loop { body, .. } => {
                    self.validate_steps(body, depth + 1)?;
                    continue;
                }
            };
            let Some(found) = self.kernels.get(kernel) else {
                let (program, kernels) = (self.name.clone(), self.kernels.len());
                return Err(ProgramError::NoKernel { program, kernel, kernels });
            };
            if let Some(&level) = found.iterations.iter().find(|&&level| level >= depth) {
                return Err(ProgramError::NoLoop { kernel: found.entry.clone(), level, depth });
            }
        }
        Ok(())
    }
}

fn count(steps: &[LaunchStep]) -> u64 {
    let each = steps.iter().map(|step| match step {
        LaunchStep::Launch(_) => 1,
        LaunchStep::Loop { count: times, body } => u64::from(*times) * count(body),
    });
    each.sum()
}

fn walk<E>(
    steps: &[LaunchStep],
    iterations: &mut Vec<u32>,
    visit: &mut impl FnMut(usize, &[u32]) -> ControlFlow<E>,
) -> ControlFlow<E> {
    for step in steps {
        match step {
            LaunchStep::Launch(kernel) => visit(*kernel, iterations)?,
            LaunchStep::Loop { count, body } => {
                for iteration in 0..*count {
                    iterations.push(iteration);
                    walk(body, iterations, visit)?;
                    iterations.pop();
                }
            }
        }
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(entry: &str) -> Kernel {
        Kernel {
            entry: entry.to_string(),
            grid: [1, 1, 1],
            threads: 32,
            shared_bytes: 0,
            dynamic_shared_bytes: 0,
            buffers: vec![0],
            reads_params: false,
            iterations: Vec::new(),
            sizes: Vec::new(),
            waits: false,
        }
    }

    fn program() -> Program {
        let role = Role::Output { output: 0, value: 0 };
        Program {
            name: "p".to_string(),
            code: Code::Virtual(String::new()),
            kernels: vec![kernel("a"), Kernel { iterations: vec![1], ..kernel("b") }],
            buffers: vec![Buffer {
                name: "out".to_string(),
                elements: 3,
                element_bytes: 4,
                alignment: 4,
                role,
            }],
            params: 0,
            steps: vec![
                LaunchStep::Launch(0),
                LaunchStep::Loop {
                    count: 2,
                    body: vec![
                        LaunchStep::Loop { count: 3, body: vec![LaunchStep::Launch(1)] },
                        LaunchStep::Launch(0),
                    ],
                },
            ],
        }
    }

    #[test]
    fn launches_come_in_order_with_their_iterations() {
        let mut seen = Vec::new();
        let all: Result<(), ()> = program().for_each_launch(|kernel, iterations| {
            seen.push((kernel, iterations.to_vec()));
            Ok(())
        });
        all.unwrap();
        let b = |i, j| (1, vec![i, j]);
        let expected =
            [(0, vec![]), b(0, 0), b(0, 1), b(0, 2), (0, vec![0]), b(1, 0), b(1, 1), b(1, 2), (0, vec![1])];
        assert_eq!(seen, expected);
        assert_eq!(program().launches(), 9);
        let stopped = program().for_each_launch(|kernel, _| if kernel == 1 { Err("stop") } else { Ok(()) });
        assert_eq!(stopped, Err("stop"));
    }

    #[test]
    fn contradictions_are_named() {
        assert_eq!(program().validate(), Ok(()));
        let broken = |change: fn(&mut Program)| {
            let mut program = program();
            change(&mut program);
            program.validate().unwrap_err().to_string()
        };
        assert_eq!(
            broken(|p| p.steps.push(LaunchStep::Launch(2))),
            "program `p` launches kernel number 2, but has 2"
        );
        assert_eq!(
            broken(|p| p.steps.push(LaunchStep::Launch(1))),
            "kernel `b` takes the iteration of loop 1, but is launched inside 0 loops"
        );
        assert_eq!(
            broken(|p| p.kernels[0].buffers.push(1)),
            "kernel `a` takes buffer number 1, but the program has 1"
        );
        assert_eq!(
            broken(|p| p.kernels[0].grid[1] = 0),
            "kernel `a` has 32 threads in each of 1 x 0 x 1 blocks"
        );
        assert_eq!(
            broken(|p| p.buffers.push(p.buffers[0].clone())),
            "buffers `out` and `out` have the same role"
        );
    }

    #[test]
    fn a_program_is_found_by_role_and_saved() {
        let program = program();
        assert_eq!(program.buffer(Role::Output { output: 0, value: 0 }), Some(0));
        assert_eq!(program.buffer(Role::Input(0)), None);
        assert_eq!(program.buffer(Role::Temporary), None);
        assert_eq!(program.bytes(), 12);
        let json = serde_json::to_string(&program).unwrap();
        assert_eq!(serde_json::from_str::<Program>(&json).unwrap(), program);
    }
}
