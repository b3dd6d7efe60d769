//! What a runtime needs to know to run a pipeline: code, entry names, launches and buffers.
//!
//! A [`Program`] is all that passes from code generation to a runtime. It knows nothing of expressions or
//! schedules: kernels are names with a launch shape and a list of arguments, buffers are bytes with a role.
//!
//! # The arguments of a kernel
//!
//! In this order, and nothing else:
//!
//! 1. one pointer for each of [`Kernel::buffers`], 8 bytes;
//! 2. if [`Kernel::reads_params`], a pointer to [`Program::params`] 32-bit words, the program's scalars;
//! 3. for each of [`Kernel::iterations`], the current iteration of that enclosing [`Step::Loop`], counted
//!    from the outermost, as a 32-bit integer by value.
//!
//! Scalars lie in memory so that a captured graph of launches survives new ones. An iteration is by value:
//! it is the same in every run, and each node of a graph holds its own.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A compiled, or yet to be compiled, pipeline at fixed sizes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// The pipeline's name.
    pub name: String,
    /// What runs on the device.
    pub code: Code,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// Everything in the device's memory, the params aside.
    pub buffers: Vec<Buffer>,
    /// Number of 32-bit scalars.
    pub params: usize,
    /// What runs, in order.
    pub steps: Vec<Step>,
}

/// Code in one of its forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// CUDA C++.
    Source {
        /// One translation unit.
        text: String,
        /// What the compiler must be told, the architecture aside.
        options: Vec<String>,
    },
    /// Text of NVIDIA's virtual instruction set, which the driver translates for its device.
    Ptx(String),
    /// Machine code of one architecture.
    Cubin(Vec<u8>),
    /// One piece of code a kernel, in the order of [`Program::kernels`]. Programs that have kernels in common can then share
    /// what was compiled.
    Parts(Vec<Code>),
}

/// A kernel: an entry of the code and how to launch it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Its symbol in the code.
    pub entry: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block, along x.
    pub threads: u32,
    /// Bytes of shared memory a block takes in all.
    pub shared_bytes: u32,
    /// How many of these the launch must ask for; the code declares the others.
    pub dynamic_shared_bytes: u32,
    /// Positions in [`Program::buffers`] of its pointers, in order.
    pub buffers: Vec<usize>,
    /// Whether a pointer to the params follows.
    pub reads_params: bool,
    /// The enclosing loops whose iteration it takes, counted from the outermost.
    pub iterations: Vec<usize>,
}

/// A piece of device memory, dense.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Its name, for messages.
    pub name: String,
    /// Number of elements.
    pub elements: usize,
    /// Bytes of one element.
    pub element_bytes: usize,
    /// Whose it is.
    pub role: Role,
}

/// Whose a buffer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Given by the user: the pipeline's input of that number.
    Input(usize),
    /// Given back to the user.
    Output {
        /// Position among the pipeline's outputs.
        output: usize,
        /// Which value of a tuple.
        value: usize,
    },
    /// Between kernels.
    Temporary,
}

/// One step of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Launches the kernel at that position of [`Program::kernels`].
    Launch(usize),
    /// Runs steps several times.
    Loop {
        /// How often.
        count: u32,
        /// What.
        body: Vec<Step>,
    },
}

/// A program that contradicts itself.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// A step launches a kernel that is not there.
    #[error("program `{program}` launches kernel number {kernel}, but has {kernels}")]
    NoKernel {
        /// The program's name.
        program: String,
        /// The number that is not there.
        kernel: usize,
        /// How many there are.
        kernels: usize,
    },
    /// A kernel names a buffer that is not there.
    #[error("kernel `{kernel}` takes buffer number {buffer}, but the program has {buffers}")]
    NoBuffer {
        /// The kernel's entry.
        kernel: String,
        /// The number that is not there.
        buffer: usize,
        /// How many there are.
        buffers: usize,
    },
    /// A kernel reads the iteration of a loop that does not enclose it.
    #[error("kernel `{kernel}` takes the iteration of loop {level}, but is launched inside {depth} loops")]
    NoLoop {
        /// The kernel's entry.
        kernel: String,
        /// The loop, counted from the outermost.
        level: usize,
        /// How many loops enclose the launch.
        depth: usize,
    },
    /// A kernel without threads or blocks.
    #[error("kernel `{kernel}` has {threads} threads in each of {} x {} x {} blocks", .grid[0], .grid[1], .grid[2])]
    Empty {
        /// The kernel's entry.
        kernel: String,
        /// Its threads.
        threads: u32,
        /// Its blocks.
        grid: [u32; 3],
    },
    /// Parts of code that don't go with the kernels.
    #[error("program `{program}` has {kernels} kernels, but its code has {parts} parts")]
    Parts {
        /// The program's name.
        program: String,
        /// How many kernels there are.
        kernels: usize,
        /// How many parts.
        parts: usize,
    },
    /// Two buffers are the same input or output.
    #[error("buffers `{first}` and `{second}` have the same role")]
    SameRole {
        /// A buffer's name.
        first: String,
        /// The other's.
        second: String,
    },
}

impl Buffer {
    /// Bytes of the whole buffer.
    pub fn bytes(&self) -> usize {
        self.elements.saturating_mul(self.element_bytes)
    }
}

impl Program {
    /// The buffer of that role; none for temporaries.
    pub fn buffer(&self, role: Role) -> Option<usize> {
        let position = self.buffers.iter().position(|buffer| buffer.role == role);
        if role == Role::Temporary { None } else { position }
    }

    /// Bytes of device memory that the buffers take in all.
    pub fn bytes(&self) -> usize {
        self.buffers.iter().map(Buffer::bytes).fold(0, usize::saturating_add)
    }

    /// How many launches one run makes.
    pub fn launches(&self) -> u64 {
        count(&self.steps)
    }

    /// Calls `launch` for every launch in order, with the kernel and the iterations of the loops around it,
    /// outermost first, until it fails.
    ///
    /// # Errors
    ///
    /// The first one of `launch`.
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

    /// Checks that the parts fit together.
    ///
    /// # Errors
    ///
    /// Names the first contradiction.
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

    fn validate_steps(&self, steps: &[Step], depth: usize) -> Result<(), ProgramError> {
        for step in steps {
            let kernel = match step {
                Step::Launch(kernel) => *kernel,
                Step::Loop { body, .. } => {
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

fn count(steps: &[Step]) -> u64 {
    let each = steps.iter().map(|step| match step {
        Step::Launch(_) => 1,
        Step::Loop { count: times, body } => u64::from(*times) * count(body),
    });
    each.sum()
}

fn walk<E>(
    steps: &[Step],
    iterations: &mut Vec<u32>,
    visit: &mut impl FnMut(usize, &[u32]) -> ControlFlow<E>,
) -> ControlFlow<E> {
    for step in steps {
        match step {
            Step::Launch(kernel) => visit(*kernel, iterations)?,
            Step::Loop { count, body } => {
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
        }
    }

    fn program() -> Program {
        let role = Role::Output { output: 0, value: 0 };
        Program {
            name: "p".to_string(),
            code: Code::Ptx(String::new()),
            kernels: vec![kernel("a"), Kernel { iterations: vec![1], ..kernel("b") }],
            buffers: vec![Buffer { name: "out".to_string(), elements: 3, element_bytes: 4, role }],
            params: 0,
            steps: vec![
                Step::Launch(0),
                Step::Loop {
                    count: 2,
                    body: vec![Step::Loop { count: 3, body: vec![Step::Launch(1)] }, Step::Launch(0)],
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
            broken(|p| p.steps.push(Step::Launch(2))),
            "program `p` launches kernel number 2, but has 2"
        );
        assert_eq!(
            broken(|p| p.steps.push(Step::Launch(1))),
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
