//! The manifest: everything that a program needs to run a pipeline's kernels.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use warploom_lang::{Pipeline, Realisation, Type, Value, visible};
use warploom_target::program::{self as target, LaunchStep, Role};
use warploom_target::{ComputeCapability, Device};

use crate::cuda::Cuda;
use crate::cuda::names::Names;
use crate::ir::{BufferDecl, Program};
use crate::printer::{Build, Printer};

use super::sizes::Sized;
use super::{c, file_stem};

/// The manifest format and its version. The number changes with the format.
pub const SCHEMA: &str = "warploom.manifest/2";

/// Alignment of the workspace and of its parts, the same as for CUDA's own allocations.
pub(super) const ALIGNMENT: u64 = 256;

/// A pipeline at fixed sizes under one schedule, compiled for export.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of this manifest: [`SCHEMA`].
    pub schema: String,
    /// The program that wrote the manifest, with its version.
    pub made_by: String,
    /// The base name of the files and C functions: the pipeline's name as an identifier.
    pub name: String,
    /// The pipeline's name as the user wrote it.
    pub pipeline: String,
    /// The pipeline's structural hash, 32 hexadecimal digits. It does not depend on sizes.
    pub hash: String,
    /// The device that the schedule was made for.
    #[serde(flatten)]
    pub target: Target,
    /// Further devices that the kernels were checked against and compiled for.
    pub also_for: Vec<Target>,
    /// The compiler options for the kernels, without the architecture.
    pub options: Vec<String>,
    /// The compiled code shipped with this manifest, in the order in which to try it: cubins from
    /// the newest architecture to the oldest, then PTX. Empty if there is only CUDA C++.
    pub code: Vec<Compiled>,
    /// The pipeline's Params, in word order.
    pub params: Vec<Param>,
    /// The sizes that every run gives; empty if all are fixed. Numbers that follow from them are C expressions below;
    /// the plain numbers beside those are the largest values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Size>,
    /// Values that follow from the sizes and are used in several expressions below, each after those that it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Derived>,
    /// The conditions on the sizes of a run besides their ranges, in C.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<String>,
    /// Every array in device memory: inputs, outputs and temporaries.
    pub buffers: Vec<Buffer>,
    /// Bytes of the workspace, which holds temporaries and Params. Every run that may overlap with
    /// others in time needs one of its own.
    pub workspace_bytes: u64,
    /// Offset of the Param words in the workspace; `null` if every Param is fixed.
    pub words_offset: Option<u64>,
    /// The kernels, which launches refer to by position.
    pub kernels: Vec<Kernel>,
    /// The launches in order: kernels by position, and loops over them.
    pub launches: Vec<LaunchStep>,
    /// The number of iterations of each loop over launches, in text order, where it follows from the sizes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loop_counts: Vec<Option<String>>,
}

/// A size that every run gives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Size {
    /// Its name for users.
    pub name: String,
    /// Its name in C.
    pub identifier: String,
    /// The smallest allowed value.
    pub min: i64,
    /// The largest allowed value.
    pub max: i64,
}

/// A value that follows from the sizes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Derived {
    /// Its name in C.
    pub identifier: String,
    /// A C expression.
    pub value: String,
}

/// The layout of a buffer whose sizes or strides every run gives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Layout {
    /// The first index of each dimension.
    pub first: Vec<String>,
    /// The last index of each dimension.
    pub last: Vec<String>,
    /// The dimensions by increasing stride. The first one has stride 1.
    pub order: Vec<usize>,
    /// Whether a run may give the strides; otherwise the buffer is dense.
    pub pitched: bool,
}

/// A number that a kernel takes because it follows from the sizes or strides of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    /// A C expression of the sizes.
    Formula(String),
    /// The stride of a dimension of the buffer at this position.
    Stride(usize, usize),
}

/// A device that kernels are exported for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Target {
    /// The name of the device.
    pub device: String,
    /// Its architecture, for example `sm_90`.
    pub arch: String,
}

/// One piece of compiled code that contains all kernels.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Compiled {
    /// Whether it is machine code or PTX.
    pub kind: CodeKind,
    /// The architecture that it was compiled for. Devices of the same generation that are not older
    /// run its machine code; all devices that are not older run its PTX.
    pub compute: ComputeCapability,
    /// The file that contains it, beside the manifest.
    pub file: String,
    /// The compiler and its version.
    pub compiler: String,
}

/// The form of compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// Machine code.
    Cubin,
    /// NVIDIA's virtual instruction set, which the driver translates.
    Ptx,
}

/// A scalar parameter of the pipeline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Param {
    /// Its name in the pipeline.
    pub name: String,
    /// Its name in C.
    pub identifier: String,
    /// Its value at export: final if there is no `word`, otherwise the default of a run.
    #[serde(flatten)]
    pub value: Value,
    /// Its position among the 32-bit words that kernels read; `null` if its value is fixed in the
    /// kernels. The upper halves of those with 64 bits follow the words of all.
    pub word: Option<u32>,
    /// The smallest and largest value that the kernels accept.
    pub range: Option<(Value, Value)>,
}

/// A dense array in device memory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Buffer {
    /// Its name in the pipeline.
    pub name: String,
    /// Its name in C.
    pub identifier: String,
    /// Whether it is an input, an output or a temporary.
    pub role: Role,
    /// Type of its elements.
    #[serde(rename = "type")]
    pub ty: Type,
    /// Its dimensions, in index order.
    pub dimensions: Vec<Dimension>,
    /// Total size in bytes.
    pub bytes: u64,
    /// Its offset in the workspace; `null` for inputs and outputs, which the user supplies. If sizes vary, only the order of
    /// the offsets counts.
    pub offset: Option<u64>,
    /// Its layout at any sizes; `null` if that is fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
}

/// Range and stride of one dimension of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Dimension {
    /// The smallest index.
    pub min: i64,
    /// The number of indices.
    pub extent: i64,
    /// The distance between neighbours, in elements.
    pub stride: i64,
}

/// A kernel and its launch configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kernel {
    /// Its symbol in the code.
    pub entry: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads per block, all along x.
    pub threads: u32,
    /// Bytes of shared memory that its code declares.
    pub static_shared_bytes: u32,
    /// Bytes of dynamic shared memory that a launch must request; the most, if they follow from the sizes.
    pub dynamic_shared_bytes: u32,
    /// The arguments of each launch, in parameter order.
    pub arguments: Vec<Argument>,
    /// Whether it waits for the launch before it, in code for compute capability 9.0 or higher. It may then be launched
    /// early, with the attribute for programmatic stream serialization.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits: bool,
    /// Blocks along x, y and z at any sizes; `null` if they are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<[String; 3]>,
    /// Bytes of dynamic shared memory at any sizes; `null` if they are fixed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
    /// The numbers that follow from the sizes or strides of a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<Number>,
}

/// An argument that a launch passes to a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// A pointer to the buffer at this position.
    Buffer(usize),
    /// A pointer to the Param words.
    Words,
    /// The iteration of the launch loop at this level, 0 for the outermost: a 32-bit integer by
    /// value.
    Iteration(usize),
    /// The kernel's number at this position: a 32-bit integer by value.
    Number(usize),
}

/// Why a text is not a manifest that this version reads.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// A manifest of another version of the format.
    #[error(
        "the manifest has the format `{found}`, but this version reads `{SCHEMA}`; export the pipeline again"
    )]
    Version {
        /// The format that the text names.
        found: String,
    },
    /// A text that is no manifest.
    #[error("this is not a manifest of an exported pipeline: {0}")]
    Json(#[from] serde_json::Error),
}

impl Manifest {
    /// Describes the kernels of `program`, which was lowered from `pipeline` at `request` and
    /// [named](super::named) for export. The schedule was made for `device`, and is legal on the
    /// devices of `also_for`.
    pub fn new(
        pipeline: &Pipeline,
        request: &Realisation,
        device: &Device,
        also_for: &[Device],
        program: &Program,
    ) -> Manifest {
        let described = Cuda.describe(program, Build::Timing);
        let mut names = names(&described);
        let formulas = Sized::new(program, &mut names);
        let mut workspace = Workspace::default();
        let buffers = program.buffers.iter().zip(&described.buffers).map(|((id, decl), buffer)| {
            let layout = formulas.layout(id);
            Buffer { layout, ..Buffer::new(decl, buffer, &mut names, &mut workspace) }
        });
        let buffers = buffers.collect();
        let params = params(pipeline, request, &mut names);
        let read = params.iter().any(|param| param.word.is_some());
        let words_offset = read.then(|| workspace.place(4 * words_of(&params) as u64));
        Manifest {
            schema: SCHEMA.to_string(),
            made_by: concat!("warploom ", env!("CARGO_PKG_VERSION")).to_string(),
            name: file_stem(&program.name),
            pipeline: pipeline.name().to_owned(),
            hash: format!("{:032x}", pipeline.structural_hash()),
            target: Target::new(device),
            also_for: also_for.iter().map(Target::new).collect(),
            options: Cuda.options(Build::Timing),
            code: Vec::new(),
            params,
            buffers,
            workspace_bytes: workspace.bytes,
            words_offset,
            kernels: program
                .kernels
                .keys()
                .zip(&described.kernels)
                .map(|(id, kernel)| formulas.kernel(id, kernel))
                .collect(),
            launches: described.steps,
            loop_counts: formulas.loop_counts(),
            conditions: formulas.conditions(),
            values: formulas.values(),
            sizes: formulas.sizes,
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// If the text is no manifest, or one of another version.
    pub fn from_json(text: &str) -> Result<Manifest, ManifestError> {
        #[derive(Deserialize)]
        struct Version {
            schema: String,
        }
        let Version { schema } = serde_json::from_str(text)?;
        if schema != SCHEMA {
            return Err(ManifestError::Version { found: visible(&schema).into_owned() });
        }
        Ok(serde_json::from_str(text)?)
    }

    /// The manifest as JSON text.
    ///
    /// # Errors
    /// If a number has no representation in JSON.
    pub fn to_json(&self) -> Result<String, ManifestError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// The size of the workspace of a run with the given buffers: those of the program at the sizes of the run.
    pub fn workspace_bytes_at(&self, run: &target::Program) -> u64 {
        let mut workspace = Workspace::default();
        for buffer in run.buffers.iter().filter(|buffer| buffer.role == Role::Temporary) {
            workspace.place(buffer.bytes() as u64);
        }
        if self.words_offset.is_some() {
            workspace.place(4 * words_of(&self.params) as u64);
        }
        // Sizes that vary are rounded up one by one, as `lay_out` in C does.
        match self.words_offset {
            None if super::sizes::vary(self) => workspace.bytes.next_multiple_of(ALIGNMENT),
            _ => workspace.bytes,
        }
    }

    /// All devices that the kernels are exported for.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        std::iter::once(&self.target).chain(&self.also_for)
    }

    /// The buffers that the user supplies: inputs and outputs.
    pub fn given(&self) -> impl Iterator<Item = &Buffer> {
        self.buffers.iter().filter(|buffer| buffer.offset.is_none())
    }

    /// The Params that can change between runs, with their words.
    pub fn settable(&self) -> impl Iterator<Item = (&Param, u32)> {
        self.params.iter().filter_map(|param| Some((param, param.word?)))
    }
}

/// How many 32-bit words the Params take.
pub(super) fn words_of(params: &[Param]) -> usize {
    Value::words_of(params.iter().map(|param| param.value.ty()))
}

impl Target {
    fn new(device: &Device) -> Target {
        Target { device: device.name.clone(), arch: device.arch() }
    }
}

impl Compiled {
    /// The architecture as compilers spell it: `sm_90` for machine code, `compute_90` for PTX.
    pub fn arch(&self) -> String {
        let ComputeCapability { major, minor } = self.compute;
        match self.kind {
            CodeKind::Cubin => format!("sm_{major}{minor}"),
            CodeKind::Ptx => format!("compute_{major}{minor}"),
        }
    }
}

impl Buffer {
    fn new(
        decl: &BufferDecl,
        described: &target::Buffer,
        names: &mut Names,
        workspace: &mut Workspace,
    ) -> Buffer {
        let dimensions = decl.region.0.iter().zip(&decl.strides);
        let dimensions =
            dimensions.map(|(range, &stride)| Dimension { min: range.min, extent: range.extent, stride });
        let bytes = described.bytes() as u64;
        // Inputs and outputs choose their names first.
        let (identifier, offset) = match described.role {
            Role::Temporary => (names.take(&format!("scratch_{}", decl.name)), Some(workspace.place(bytes))),
            Role::Input(_) | Role::Output { .. } => (names.take(&decl.name), None),
        };
        Buffer {
            name: decl.name.clone(),
            identifier,
            role: described.role,
            ty: decl.ty,
            dimensions: dimensions.collect(),
            bytes,
            offset,
            layout: None,
        }
    }
}

impl Kernel {
    pub(super) fn new(kernel: &target::Kernel) -> Kernel {
        let buffers = kernel.buffers.iter().map(|&position| Argument::Buffer(position));
        let words = kernel.reads_params.then_some(Argument::Words);
        let iterations = kernel.iterations.iter().map(|&level| Argument::Iteration(level));
        Kernel {
            entry: kernel.entry.clone(),
            grid: kernel.grid,
            threads: kernel.threads,
            static_shared_bytes: kernel.shared_bytes - kernel.dynamic_shared_bytes,
            dynamic_shared_bytes: kernel.dynamic_shared_bytes,
            arguments: buffers.chain(words).chain(iterations).collect(),
            waits: kernel.waits,
            blocks: None,
            shared: None,
            numbers: Vec::new(),
        }
    }
}

/// The Params, in the order of the program's words.
fn params(pipeline: &Pipeline, request: &Realisation, names: &mut Names) -> Vec<Param> {
    let specialised = pipeline.specialised_params();
    let params = pipeline.params().iter().enumerate().map(|(position, (id, param))| Param {
        name: param.name.clone(),
        identifier: names.take(&param.name),
        // Lowering requires a value for every Param.
        value: request.params[id].unwrap_or(Value::zero(param.ty)),
        word: (!specialised[id]).then_some(position as u32),
        range: param.range,
    });
    params.collect()
}

/// Names for buffers and Params that clash neither with other names in the C functions nor with
/// macros of the header.
fn names(program: &target::Program) -> Names {
    let stem = file_stem(&program.name);
    let mut names = Names::local().without([format!("{}_", stem.to_uppercase()), "WARPLOOM_".to_string()]);
    for local in ["pipeline", "stream", "workspace", "buffers", "params", "values", "result", "words"] {
        names.take(local);
    }
    for function in [
        "arguments",
        "launch",
        "usable",
        "in_range",
        "set_words",
        "sizes",
        "at",
        "numbers",
        "grid",
        "kernels",
        "launched",
    ] {
        names.take(function);
    }
    for function in
        ["layout", "place", "lay_out", "lesser", "greater", "floor_div", "extent", "order", "elements"]
    {
        names.take(function);
    }
    for global in ["pipeline", "sizes", "buffers", "params", "default_params", "run"] {
        names.take(&format!("{stem}_{global}"));
    }
    let kernels = program.kernels.iter().map(|kernel| c::kernel(&kernel.entry));
    for local in kernels.chain((0..depth(&program.steps)).map(c::iteration)) {
        names.take(&local);
    }
    names
}

/// The nesting depth of the launch loops.
fn depth(launches: &[LaunchStep]) -> usize {
    let each = launches.iter().map(|step| match step {
        LaunchStep::Launch(_) => 0,
        LaunchStep::Loop { body, .. } => 1 + depth(body),
    });
    each.max().unwrap_or(0)
}

/// One allocation that is divided into parts.
#[derive(Default)]
struct Workspace {
    bytes: u64,
}

impl Workspace {
    /// Appends a part and returns its offset.
    fn place(&mut self, bytes: u64) -> u64 {
        let offset = self.bytes.next_multiple_of(ALIGNMENT);
        self.bytes = offset + bytes;
        offset
    }
}
