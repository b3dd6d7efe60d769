//! A program at the sizes and strides of one launch.
//!
//! The result has no scalars: each is a constant. Simulator and verifier read it like any other program. A
//! runtime launches the kernels of the original program with its grids and [scalars](Program::scalars_at).

use thiserror::Error;
use warploom_lang::dynamic::{Evaluation, SizeError, SizeRange};
use warploom_lang::op::Op;
use warploom_lang::{IdVec, Range, Region, Type, Value};

use crate::ir::{
    BufferDecl, BufferId, Kernel, KernelExprs, KernelNode, Launch, Leaf, NodeId, NodeKind, Program,
    ProgramSizes, Role, ScalarValue, Space, Stmt,
};

/// The most elements of a buffer whose strides are scalars: its indices, and their partial sums, then fit in 32 bits.
pub const MOST_ELEMENTS: i64 = 1 << 30;

/// The strides of inputs and outputs that the caller chose; `None` for dense ones.
pub type Strides = IdVec<BufferId, Option<Vec<i64>>>;

/// Why a program cannot run at some sizes or strides.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The sizes cannot be used.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// The number of sizes differs from that of the program.
    #[error("the kernels take {expected} sizes, but {given} were given")]
    Count {
        /// The number of sizes of the program.
        expected: usize,
        /// The number given.
        given: usize,
    },
    /// Strides for a buffer that must be dense.
    #[error(
        "`{name}` must be dense: the kernels were compiled without strides as arguments; compile them with --pitch"
    )]
    Dense {
        /// Name of the input or output.
        name: String,
    },
    /// Strides that are negative, or let rows overlap, or not one per dimension.
    #[error(
        "the strides {strides:?} of `{name}` do not fit its box {region}; in storage order, the first must be 1 and each further one at least the extent below it times its stride"
    )]
    Strides {
        /// Name of the input or output.
        name: String,
        /// The strides given.
        strides: Vec<i64>,
        /// The box at these sizes.
        region: Region,
    },
    /// A buffer with too many elements.
    #[error(
        "`{name}` would have {elements} elements, more than the {MOST_ELEMENTS} of kernels for any size; compile kernels for this size alone"
    )]
    TooLarge {
        /// Name of the buffer.
        name: String,
        /// The number of its elements.
        elements: usize,
    },
    /// A grid that does not fit the device.
    #[error(
        "the kernel `{kernel}` would have {blocks} blocks along one axis, more than the device allows; use smaller sizes"
    )]
    Blocks {
        /// Name of the kernel.
        kernel: String,
        /// The number of blocks.
        blocks: i64,
    },
}

impl Program {
    /// The names and ranges of the sizes that a launch gives; none if all are fixed.
    pub fn size_ranges(&self) -> &[SizeRange] {
        self.sizes.as_ref().map_or(&[], |sizes| sizes.formulas.sizes())
    }

    /// The program at the sizes and strides of a launch.
    ///
    /// # Errors
    /// If a size is out of range, or a stride does not fit.
    pub fn at(&self, sizes: &[i64], strides: &Strides) -> Result<Program, InstanceError> {
        let Some(own) = &self.sizes else { return Ok(self.clone()) };
        let values = evaluated(own, sizes)?;
        let buffers = self.buffers.iter().map(|(id, decl)| {
            let given = strides.get(id).and_then(Option::as_ref);
            buffer_at(own, id, decl, given, &values)
        });
        let buffers: IdVec<BufferId, BufferDecl> = buffers.collect::<Result<_, _>>()?;
        let kernels = self.kernels.values().map(|kernel| kernel_at(kernel, &buffers, &values));
        let kernels = kernels.collect::<Result<_, _>>()?;
        let launches = launches_at(&self.launches, &values);
        let (name, params, tables) = (self.name.clone(), self.params.clone(), self.tables.clone());
        Ok(Program { name, buffers, params, tables, kernels, launches, sizes: None })
    }

    /// The values of a kernel's scalars at the sizes of a launch, with its buffers at those sizes.
    pub fn scalars_at(
        &self,
        kernel: &Kernel,
        sizes: &[i64],
        buffers: &IdVec<BufferId, BufferDecl>,
    ) -> Vec<i32> {
        let Some(own) = &self.sizes else { return Vec::new() };
        scalars(kernel, buffers, &own.formulas.evaluation(sizes))
    }
}

/// The values of all formulas, if the sizes can be used.
fn evaluated(own: &ProgramSizes, sizes: &[i64]) -> Result<Evaluation, InstanceError> {
    let ranges = own.formulas.sizes();
    if ranges.len() != sizes.len() {
        return Err(InstanceError::Count { expected: ranges.len(), given: sizes.len() });
    }
    for (SizeRange { name, min, max }, &value) in ranges.iter().zip(sizes) {
        if !(*min..=*max).contains(&value) {
            let name = name.clone();
            return Err(SizeError::Outside { name, value, min: *min, max: *max }.into());
        }
    }
    let values = own.formulas.evaluation(sizes);
    let broken =
        own.conditions.iter().find(|condition| values.of(&condition.low) > values.of(&condition.high));
    match broken {
        None => Ok(values),
        Some(condition) => {
            let shown = ranges.iter().zip(sizes).map(|(range, value)| format!("{}={value}", range.name));
            let sizes = shown.collect::<Vec<_>>().join(", ");
            Err(SizeError::Condition { sizes, why: condition.why.clone() }.into())
        }
    }
}

fn buffer_at(
    own: &ProgramSizes,
    id: BufferId,
    decl: &BufferDecl,
    given: Option<&Vec<i64>>,
    values: &Evaluation,
) -> Result<BufferDecl, InstanceError> {
    let layout = &own.buffers[id];
    let at_least_one = |range: Range| Range::new(range.min, range.extent.max(1));
    let region = Region(layout.region.iter().map(|range| at_least_one(range.at(values))).collect());
    let name = || decl.name.clone();
    if given.is_some() && (!layout.pitched || decl.role == Role::Temporary) {
        return Err(InstanceError::Dense { name: name() });
    }
    let (mut strides, mut least) = (vec![0; layout.order.len()], 1_i64);
    for (position, &d) in layout.order.iter().enumerate() {
        let stride = match given {
            Some(given) => given.get(d).copied().unwrap_or(0),
            None => least,
        };
        if stride < least || (position == 0 && stride != 1) {
            return Err(InstanceError::Strides {
                name: name(),
                strides: given.cloned().unwrap_or_default(),
                region,
            });
        }
        strides[d] = stride;
        least = stride.saturating_mul(region[d].extent);
    }
    if let Some(given) = given.filter(|given| given.len() != strides.len()) {
        return Err(InstanceError::Strides { name: name(), strides: given.clone(), region });
    }
    let buffer = BufferDecl { name: name(), ty: decl.ty, region, strides, role: decl.role };
    match buffer.elements() {
        elements if elements as u64 > MOST_ELEMENTS.unsigned_abs() => {
            Err(InstanceError::TooLarge { name: name(), elements })
        }
        _ => Ok(buffer),
    }
}

fn scalars(kernel: &Kernel, buffers: &IdVec<BufferId, BufferDecl>, values: &Evaluation) -> Vec<i32> {
    let value = |value: &ScalarValue| match value {
        ScalarValue::Formula(formula) => values.of(formula),
        ScalarValue::Stride(buffer, dimension) => buffers[*buffer].strides[*dimension],
    };
    kernel.scalars.iter().map(|scalar| i32::try_from(value(&scalar.value)).unwrap_or(i32::MAX)).collect()
}

fn kernel_at(
    kernel: &Kernel,
    buffers: &IdVec<BufferId, BufferDecl>,
    values: &Evaluation,
) -> Result<Kernel, InstanceError> {
    let scalars = scalars(kernel, buffers, values);
    let mut grid = kernel.grid;
    if let Some(factors) = &kernel.blocks {
        for (blocks, factors) in grid.iter_mut().zip(factors.iter()) {
            let product = factors
                .iter()
                .fold(1_i64, |product, factor| product.saturating_mul(values.of(factor).max(1)));
            let fits = u32::try_from(product).ok().filter(|count| i32::try_from(*count).is_ok());
            *blocks =
                fits.ok_or_else(|| InstanceError::Blocks { kernel: kernel.name.clone(), blocks: product })?;
        }
    }
    let (exprs, renamed) = constants(&kernel.exprs, &scalars);
    let mut arrays = kernel.arrays.clone();
    for array in arrays.keys() {
        if let Space::Global(buffer) = arrays[array].space {
            arrays[array].elements = buffers[buffer].elements();
        }
        if let Some(length) = &arrays[array].at_launch {
            let elements = usize::try_from(values.of(&length.elements)).unwrap_or(0);
            arrays[array].elements = elements.min(arrays[array].elements);
        }
    }
    let body = stmts(&kernel.body, &renamed, &scalars);
    Ok(Kernel {
        name: kernel.name.clone(),
        grid,
        blocks: None,
        scalars: Vec::new(),
        threads: kernel.threads,
        resident: kernel.resident,
        arrays,
        vars: kernel.vars.clone(),
        exprs,
        body,
        shared: kernel.shared.clone(),
        origins: kernel.origins.clone(),
    })
}

/// Expressions with scalars as constants, and the new id of each node.
fn constants(exprs: &KernelExprs, scalars: &[i32]) -> (KernelExprs, IdVec<NodeId, NodeId>) {
    let (mut made, mut renamed) = (KernelExprs::default(), IdVec::new());
    for KernelNode { kind, ty, args } in exprs.nodes().values() {
        let args = args.iter().map(|arg| renamed[*arg]).collect();
        let id = match kind {
            NodeKind::Leaf(Leaf::Size(position)) => {
                let value = Value::from(scalars[*position as usize]);
                let kind = NodeKind::Op(Op::Const(value));
                made.intern(KernelNode { kind, ty: Type::I32, args })
            }
            NodeKind::Offset(strides) => made.intern_offset(args, exprs.strides()[*strides].clone()),
            kind => made.intern(KernelNode { kind: *kind, ty: *ty, args }),
        };
        renamed.push(id);
    }
    (made, renamed)
}

fn stmts(body: &[Stmt], renamed: &IdVec<NodeId, NodeId>, scalars: &[i32]) -> Vec<Stmt> {
    let stmt = |stmt: &Stmt| {
        let mut stmt = stmt.clone();
        if let Stmt::For { count, limit, .. } = &mut stmt
            && let Some(position) = limit.take()
        {
            *count = scalars[position as usize].max(0).unsigned_abs().min(*count);
            (*count > 0).then_some(())?;
        }
        stmt.operands_mut().into_iter().for_each(|operand| *operand = renamed[*operand]);
        for list in stmt.lists_mut().into_iter().flatten() {
            *list = stmts(list, renamed, scalars);
        }
        Some(stmt)
    };
    body.iter().filter_map(stmt).collect()
}

fn launches_at(launches: &[Launch], values: &Evaluation) -> Vec<Launch> {
    let launch = |launch: &Launch| match launch {
        Launch::Kernel(kernel) => Launch::Kernel(*kernel),
        Launch::Loop { count, limit, body } => {
            let limited =
                limit.as_ref().map(|limit| u32::try_from(values.of(limit).max(0)).unwrap_or(u32::MAX));
            let count = limited.map_or(*count, |limited| limited.min(*count));
            Launch::Loop { count, limit: None, body: launches_at(body, values) }
        }
    };
    launches.iter().map(launch).collect()
}
