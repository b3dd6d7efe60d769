//! Simulated hardware counters.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use warploom_lang::Type;
use warploom_lang::brief::padded;
use warploom_lang::op::{Class, Op};

macro_rules! counts {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: u64,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: u64,)*
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                $(self.$field += other.$field;)*
            }
        }

        impl $name {
            /// Multiplies all counts by `factor`.
            #[must_use]
            pub fn times(self, factor: u64) -> $name {
                $name { $($field: self.$field * factor,)* }
            }
        }
    };
}

counts! {
    /// Operation counts by functional unit: one per operation and active thread.
    ///
    /// A node of an expression counts once in each statement that contains it, even if its value is the
    /// same in all threads. Constants, operations only on constants, and bit casts are free. Integer
    /// division by a power of two counts as a shift.
    pub struct Operations {
        /// Floats of any width: addition, subtraction, absolute difference, negation, absolute value.
        pub f32_add: u64,
        /// Floats of any width: multiplication.
        pub f32_mul: u64,
        /// Floats of any width: division, remainder.
        pub f32_div: u64,
        /// Floats of any width: square root.
        pub f32_sqrt: u64,
        /// Floats of any width: exponential, sine and all other functions.
        pub f32_special: u64,
        /// Floats of any width: comparison, minimum, maximum.
        pub f32_compare: u64,
        /// Conversion between float and integer or Boolean; rounding to an integral float.
        pub convert: u64,
        /// Selection by a condition, of any type.
        pub select: u64,
        /// Integers and Booleans: addition, subtraction, sign, average, logic, shift, change of width.
        pub int_add: u64,
        /// Integers: multiplication.
        pub int_mul: u64,
        /// Integers: division, remainder.
        pub int_div: u64,
        /// Integers and Booleans: comparison, minimum, maximum.
        pub int_compare: u64,
    }
}

impl Operations {
    /// Floating-point operations: all on floats except comparisons and conversions.
    pub fn flops(&self) -> u64 {
        self.f32_add + self.f32_mul + self.f32_div + self.f32_sqrt + self.f32_special
    }

    /// Operations on integers and Booleans.
    pub fn integer(&self) -> u64 {
        self.int_add + self.int_mul + self.int_div + self.int_compare
    }

    /// All operations.
    pub fn total(&self) -> u64 {
        self.flops() + self.integer() + self.f32_compare + self.convert + self.select
    }

    /// The counts of one operation; `operand` is the type of its (last) operand.
    pub(crate) fn of(op: Op, operand: Type, result: Type) -> Operations {
        let mut one = Operations::default();
        if let Some(class) = op.class(operand, result) {
            *one.count(class) = 1;
        }
        one
    }

    fn count(&mut self, class: Class) -> &mut u64 {
        match class {
            Class::FloatAdd => &mut self.f32_add,
            Class::FloatMul => &mut self.f32_mul,
            Class::FloatDiv => &mut self.f32_div,
            Class::FloatRoot => &mut self.f32_sqrt,
            Class::FloatSpecial => &mut self.f32_special,
            Class::FloatCompare => &mut self.f32_compare,
            Class::Convert => &mut self.convert,
            Class::Select => &mut self.select,
            Class::IntAdd => &mut self.int_add,
            Class::IntMul => &mut self.int_mul,
            Class::IntDiv => &mut self.int_div,
            Class::IntCompare => &mut self.int_compare,
        }
    }
}

counts! {
    /// Accesses of one kind to one array.
    pub struct Traffic {
        /// Accessed elements: one per active thread.
        pub elements: u64,
        /// The size of those elements in bytes.
        pub bytes: u64,
        /// Warp-wide instructions with at least one active thread.
        pub requests: u64,
        /// Sectors of global memory that the requests touch, each counted once per request; 0 for other
        /// memory.
        pub sectors: u64,
        /// Wavefronts of shared memory that the requests need; 0 for other memory.
        pub wavefronts: u64,
    }
}

impl Traffic {
    /// Wavefronts of shared memory beyond the first one of each request.
    pub fn bank_conflicts(&self) -> u64 {
        self.wavefronts.saturating_sub(self.requests)
    }
}

/// The memory that an array is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Global memory, shared by all blocks.
    Global,
    /// Shared memory, with one copy per block.
    Shared,
    /// Registers or local memory, with one copy per thread.
    Thread,
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Memory::Global => "global",
            Memory::Shared => "shared",
            Memory::Thread => "thread",
        })
    }
}

/// The accesses to one array of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ArrayCounters {
    /// The name of the array in the kernel.
    pub name: String,
    /// The memory that the array is in.
    pub memory: Memory,
    /// Loads from the array.
    pub loads: Traffic,
    /// Stores to the array.
    pub stores: Traffic,
    /// Atomic updates of the array.
    pub atomics: Traffic,
}

/// The counters of one or more launches of a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KernelCounters {
    /// The name of the kernel.
    pub kernel: String,
    /// The number of launches.
    pub launches: u64,
    /// Blocks of all launches.
    pub blocks: u64,
    /// Threads of all blocks.
    pub threads: u64,
    /// Barriers: one per barrier and block.
    pub barriers: u64,
    /// Shuffles: one per shuffle and warp.
    #[serde(default)]
    pub shuffles: u64,
    /// Operations, loads, stores, atomics and shuffles: one per active thread.
    pub lane_operations: u64,
    /// Arithmetic operations by class.
    pub operations: Operations,
    /// Accesses, in the order of the kernel's arrays.
    pub arrays: Vec<ArrayCounters>,
}

impl KernelCounters {
    /// The counters of the array with this name.
    pub fn array(&self, name: &str) -> Option<&ArrayCounters> {
        self.arrays.iter().find(|array| array.name == name)
    }

    /// All loads from one kind of memory.
    pub fn loads(&self, memory: Memory) -> Traffic {
        self.sum(memory, |array| array.loads)
    }

    /// All stores to one kind of memory.
    pub fn stores(&self, memory: Memory) -> Traffic {
        self.sum(memory, |array| array.stores)
    }

    /// All atomics on one kind of memory.
    pub fn atomics(&self, memory: Memory) -> Traffic {
        self.sum(memory, |array| array.atomics)
    }

    /// Bank conflicts of all loads and stores.
    pub fn bank_conflicts(&self) -> u64 {
        self.loads(Memory::Shared).bank_conflicts() + self.stores(Memory::Shared).bank_conflicts()
    }

    fn sum(&self, memory: Memory, traffic: impl Fn(&ArrayCounters) -> Traffic) -> Traffic {
        let mut sum = Traffic::default();
        for array in self.arrays.iter().filter(|array| array.memory == memory) {
            sum += traffic(array);
        }
        sum
    }

    /// Adds the counters of another launch of the same kernel.
    fn add(&mut self, other: &KernelCounters) {
        self.launches += other.launches;
        self.blocks += other.blocks;
        self.threads += other.threads;
        self.barriers += other.barriers;
        self.shuffles += other.shuffles;
        self.lane_operations += other.lane_operations;
        self.operations += other.operations;
        for (array, other) in self.arrays.iter_mut().zip(&other.arrays) {
            array.loads += other.loads;
            array.stores += other.stores;
            array.atomics += other.atomics;
        }
    }
}

/// The counters of a program, per launch. Displayed as a table with one line per kernel and one per
/// array.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// The launches in execution order, each with the number of its kernel in the program.
    pub launches: Vec<(usize, KernelCounters)>,
}

impl Counters {
    /// The launched kernels in the program's order, each with the sum of its launches.
    pub fn kernels(&self) -> Vec<KernelCounters> {
        let mut kernels: std::collections::BTreeMap<usize, KernelCounters> = Default::default();
        for (kernel, counters) in &self.launches {
            match kernels.get_mut(kernel) {
                Some(sum) => sum.add(counters),
                None => _ = kernels.insert(*kernel, counters.clone()),
            }
        }
        kernels.into_values().collect()
    }

    /// The sum of all launches of the kernel with this name.
    pub fn kernel(&self, name: &str) -> Option<KernelCounters> {
        self.kernels().into_iter().find(|kernel| kernel.kernel == name)
    }

    /// Operations, loads, stores, atomics and shuffles of all launches: one per active thread.
    pub fn lane_operations(&self) -> u64 {
        self.launches.iter().map(|(_, counters)| counters.lane_operations).sum()
    }
}

const KERNEL_TITLES: &[&str] =
    &["kernel", "launches", "blocks", "threads", "barriers", "flops", "int", "compare", "convert", "select"];
const ARRAY_TITLES: &[&str] = &[
    "kernel",
    "array",
    "memory",
    "access",
    "elements",
    "bytes",
    "requests",
    "sectors",
    "wavefronts",
    "conflicts",
];

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernels = self.kernels();
        let rows: Vec<Vec<String>> = kernels.iter().map(kernel_row).collect();
        table(f, KERNEL_TITLES, 1, &rows)?;
        writeln!(f)?;
        let rows: Vec<Vec<String>> = kernels.iter().flat_map(array_rows).collect();
        table(f, ARRAY_TITLES, 4, &rows)
    }
}

fn kernel_row(kernel: &KernelCounters) -> Vec<String> {
    let operations = &kernel.operations;
    let numbers = [
        kernel.launches,
        kernel.blocks,
        kernel.threads,
        kernel.barriers,
        operations.flops(),
        operations.integer(),
        operations.f32_compare,
        operations.convert,
        operations.select,
    ];
    std::iter::once(kernel.kernel.clone()).chain(numbers.iter().map(u64::to_string)).collect()
}

fn array_rows(kernel: &KernelCounters) -> impl Iterator<Item = Vec<String>> + '_ {
    kernel.arrays.iter().flat_map(move |array| {
        let kinds = [("load", array.loads), ("store", array.stores), ("atomic", array.atomics)];
        kinds.into_iter().filter(|(_, traffic)| traffic.elements > 0).map(move |(kind, traffic)| {
            let conflicts = traffic.bank_conflicts();
            let names = [&kernel.kernel, &array.name, &array.memory.to_string(), kind].map(str::to_string);
            let Traffic { elements, bytes, requests, sectors, wavefronts } = traffic;
            let numbers = [elements, bytes, requests, sectors, wavefronts, conflicts];
            names.into_iter().chain(numbers.iter().map(u64::to_string)).collect()
        })
    })
}

/// Writes a table: the first `texts` columns are left-aligned, the others right-aligned.
fn table(f: &mut fmt::Formatter<'_>, titles: &[&str], texts: usize, rows: &[Vec<String>]) -> fmt::Result {
    let titles: Vec<String> = titles.iter().map(|title| (*title).to_string()).collect();
    let lines = || std::iter::once(&titles).chain(rows);
    let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..titles.len()).map(width).collect();
    for line in lines() {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            if column < texts {
                write!(f, "{gap}{}", padded(cell, *width))?;
            } else {
                write!(f, "{gap}{cell:>width$}")?;
            }
        }
        writeln!(f)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use warploom_lang::Value;

    use warploom_lang::op::{BinaryOp, UnaryOp};

    use super::*;

    #[test]
    fn every_operation_has_a_class() {
        let class = |op: Op, operand: Type, result: Type| Operations::of(op, operand, result);
        let binary = |op: BinaryOp, ty: Type| class(Op::Binary(op), ty, ty);
        assert_eq!(binary(BinaryOp::Add, Type::F32).f32_add, 1);
        assert_eq!(binary(BinaryOp::Div, Type::F32).f32_div, 1);
        assert_eq!(binary(BinaryOp::Pow, Type::F32).f32_special, 1);
        assert_eq!(binary(BinaryOp::Lt, Type::F32).f32_compare, 1);
        assert_eq!(binary(BinaryOp::Mul, Type::I32).int_mul, 1);
        assert_eq!(binary(BinaryOp::Mod, Type::U8).int_div, 1);
        assert_eq!(binary(BinaryOp::Max, Type::I16).int_compare, 1);
        assert_eq!(binary(BinaryOp::And, Type::Bool).int_add, 1);
        assert_eq!(class(Op::Unary(UnaryOp::Sqrt), Type::F32, Type::F32).f32_sqrt, 1);
        assert_eq!(class(Op::Unary(UnaryOp::Rsqrt), Type::F32, Type::F32).f32_sqrt, 1);
        assert_eq!(class(Op::Unary(UnaryOp::Erf), Type::F32, Type::F32).f32_special, 1);
        assert_eq!(class(Op::Unary(UnaryOp::IsNan), Type::F32, Type::Bool).f32_compare, 1);
        assert_eq!(class(Op::Unary(UnaryOp::Popcount), Type::U16, Type::U16).int_add, 1);
        assert_eq!(binary(BinaryOp::Atan2, Type::F32).f32_special, 1);
        assert_eq!(class(Op::Unary(UnaryOp::Floor), Type::F32, Type::F32).convert, 1);
        assert_eq!(class(Op::Cast(Type::F32), Type::U8, Type::F32).convert, 1);
        assert_eq!(class(Op::Cast(Type::I32), Type::U8, Type::I32).int_add, 1);
        assert_eq!(class(Op::Cast(Type::U8), Type::U8, Type::U8).total(), 0);
        assert_eq!(class(Op::Const(Value::from(1.0_f32)), Type::F32, Type::F32).total(), 0);
        assert_eq!(class(Op::Select, Type::F32, Type::F32).select, 1);
    }
}
