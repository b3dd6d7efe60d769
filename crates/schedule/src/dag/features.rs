//! Counts of what a stage does at one point.
//!
//! The counts form a table of [rows](Row) (kinds of operations and accesses) by [columns](Column) (types).
//! Expressions store each distinct subexpression once, so the counts are after common-subexpression
//! elimination. They include the arithmetic of indices and conditions.

use std::fmt;
use std::ops::Index;

use warploom_lang::Type;
use warploom_lang::ir::{Exprs, Node, NodeKind, Stage};
use warploom_lang::op::{BinaryOp, Op, UnaryOp};

use crate::dag::access::{Access, AccessClass, AccessMap, Target};

/// A column of the table: the type that an operation works on.
///
/// Comparisons and logic count under the type of their operands, conversions under the type of their result,
/// and accesses under the type of the value that is read or written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Column {
    /// Floats. The weights were trained on `f32` alone; other widths count the same.
    F32,
    /// The type `bool`.
    Bool,
    /// `u8` and `i8`.
    Int8,
    /// `u16` and `i16`.
    Int16,
    /// Integers of 32 and 64 bits.
    Int32,
}

/// The number of columns of the table.
pub const COLUMNS: usize = Column::ALL.len();

impl Column {
    /// All columns, in table order.
    pub const ALL: [Column; 5] = [Column::F32, Column::Bool, Column::Int8, Column::Int16, Column::Int32];

    /// The column that counts a type.
    pub const fn of(ty: Type) -> Column {
        match ty {
            Type::F32 | Type::F16 | Type::BF16 | Type::F64 => Column::F32,
            Type::Bool => Column::Bool,
            Type::U8 | Type::I8 => Column::Int8,
            Type::U16 | Type::I16 => Column::Int16,
            Type::U32 | Type::I32 | Type::U64 | Type::I64 => Column::Int32,
        }
    }

    /// The column heading in printed tables.
    pub const fn name(self) -> &'static str {
        match self {
            Column::F32 => "f32",
            Column::Bool => "bool",
            Column::Int8 => "int8",
            Column::Int16 => "int16",
            Column::Int32 => "int32",
        }
    }
}

macro_rules! rows {
    ($($(#[$doc:meta])* $row:ident $name:literal;)*) => {
        /// A row of the table: a kind of operation, or a kind and class of access.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Row {
            $($(#[$doc])* $row,)*
        }

        impl Row {
            /// All rows, in table order.
            pub const ALL: [Row; ROWS] = [$(Row::$row),*];
        }

        /// The number of rows of the table.
        pub const ROWS: usize = [$($name),*].len();

        /// The names of all rows, in table order.
        pub const NAMES: [&str; ROWS] = [$($name),*];
    };
}

rows! {
    /// Constants of any type.
    Const "const";
    /// Loop variables.
    Variable "variable";
    /// Scalar Params.
    Param "param";
    /// Minima and extents of inputs.
    Size "size";
    /// Conversions, including saturating ones.
    Cast "cast";
    /// Reinterpretations of bits as another type.
    Reinterpret "reinterpret";
    /// Sums and averages.
    Add "add";
    /// Differences and negations.
    Sub "sub";
    /// Multiplications.
    Mul "mul";
    /// Integer divisions.
    IntDiv "int_div";
    /// Integer remainders.
    IntMod "int_mod";
    /// Floating-point divisions.
    FloatDiv "float_div";
    /// Floating-point remainders.
    FloatMod "float_mod";
    /// Minima of two values.
    Min "min";
    /// Maxima of two values.
    Max "max";
    /// Absolute values and differences.
    Abs "abs";
    /// exp, log, pow, sin, cos, tanh, fast_exp and the like.
    Transcendental "transcendental";
    /// Square roots and their reciprocals.
    Sqrt "sqrt";
    /// floor, ceil, round.
    Rounding "rounding";
    /// `==` comparisons.
    Eq "eq";
    /// `!=` comparisons and tests for NaN.
    Ne "ne";
    /// `<` and `>` comparisons.
    Lt "lt";
    /// `<=` and `>=` comparisons.
    Le "le";
    /// And, logical or bitwise.
    And "and";
    /// Or, logical or bitwise.
    Or "or";
    /// Exclusive or, logical or bitwise.
    Xor "xor";
    /// Complements, logical or bitwise.
    Not "not";
    /// Shifts to the left and to the right, and counts of bits.
    Shift "shift";
    /// Selects between two values by a condition.
    Select "select";
    /// Reads of inputs, of any class, and of constant tables.
    LoadInput "load_input";
    /// Reads of other Funcs, of any class.
    LoadFunc "load_func";
    /// Reads of the stage's own Func, of any class.
    LoadSelf "load_self";
    /// Pointwise reads of other Funcs.
    FuncPointwise "func.pointwise";
    /// Transposed reads of other Funcs.
    FuncTranspose "func.transpose";
    /// Broadcast reads of other Funcs.
    FuncBroadcast "func.broadcast";
    /// Slice reads of other Funcs.
    FuncSlice "func.slice";
    /// Reads of other Funcs of class `Other`.
    FuncOther "func.other";
    /// Pointwise reads of the stage's own Func.
    SelfPointwise "self.pointwise";
    /// Transposed reads of the stage's own Func.
    SelfTranspose "self.transpose";
    /// Broadcast reads of the stage's own Func.
    SelfBroadcast "self.broadcast";
    /// Slice reads of the stage's own Func.
    SelfSlice "self.slice";
    /// Reads of the stage's own Func of class `Other`.
    SelfOther "self.other";
    /// Pointwise reads of inputs.
    InputPointwise "input.pointwise";
    /// Transposed reads of inputs.
    InputTranspose "input.transpose";
    /// Broadcast reads of inputs.
    InputBroadcast "input.broadcast";
    /// Slice reads of inputs.
    InputSlice "input.slice";
    /// Reads of inputs of class `Other`, and of constant tables.
    InputOther "input.other";
    /// Pointwise writes, one per value.
    StorePointwise "store.pointwise";
    /// Transposed writes, one per value.
    StoreTranspose "store.transpose";
    /// Broadcast writes, one per value: many iterations write the same point, as in a sum.
    StoreBroadcast "store.broadcast";
    /// Slice writes, one per value.
    StoreSlice "store.slice";
    /// Writes of class `Other`, one per value.
    StoreOther "store.other";
}

/// What is read or written, for the rows that count accesses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AccessKind {
    /// A read of another Func.
    LoadFunc,
    /// A read of the stage's own Func.
    LoadSelf,
    /// A read of an input.
    LoadInput,
    /// A write to the stage's own Func.
    Store,
}

impl AccessKind {
    /// The kind of a read of `target`.
    pub const fn of(target: Target) -> AccessKind {
        match target {
            Target::Func(_) => AccessKind::LoadFunc,
            Target::Itself => AccessKind::LoadSelf,
            Target::Input(_) => AccessKind::LoadInput,
        }
    }
}

impl Row {
    /// The row heading in printed tables.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The row that counts accesses of this kind and class.
    pub const fn of_access(kind: AccessKind, class: AccessClass) -> Row {
        let first = Row::FuncPointwise as usize;
        Row::ALL[first + kind as usize * AccessClass::ALL.len() + class as usize]
    }
}

/// The row and column that count an expression node.
fn place(exprs: &Exprs, node: &Node) -> (Row, Column) {
    let operand = node.args.first().map_or(node.ty, |arg| exprs[*arg].ty);
    match node.kind {
        NodeKind::Var(_) | NodeKind::RVar(_) => (Row::Variable, Column::of(node.ty)),
        NodeKind::Param(_) => (Row::Param, Column::of(node.ty)),
        NodeKind::InputMin(..) | NodeKind::InputExtent(..) => (Row::Size, Column::of(node.ty)),
        NodeKind::Load(_) => (Row::LoadInput, Column::of(node.ty)),
        // A table is read like an input that is small and always cached.
        NodeKind::Table(_) => (Row::LoadInput, Column::of(node.ty)),
        NodeKind::Call(..) => (Row::LoadFunc, Column::of(node.ty)),
        NodeKind::Op(Op::Const(_)) => (Row::Const, Column::of(node.ty)),
        NodeKind::Op(Op::Cast(_) | Op::SaturatingCast(_)) => (Row::Cast, Column::of(node.ty)),
        NodeKind::Op(Op::Reinterpret(_)) => (Row::Reinterpret, Column::of(node.ty)),
        NodeKind::Op(Op::Select) => (Row::Select, Column::of(node.ty)),
        NodeKind::Op(Op::Unary(op)) => (unary(op), Column::of(operand)),
        NodeKind::Op(Op::Binary(op)) => (binary(op, operand), Column::of(operand)),
    }
}

fn unary(op: UnaryOp) -> Row {
    match op {
        UnaryOp::Neg => Row::Sub,
        UnaryOp::Not => Row::Not,
        UnaryOp::Abs => Row::Abs,
        UnaryOp::Sqrt | UnaryOp::Rsqrt => Row::Sqrt,
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round => Row::Rounding,
        UnaryOp::IsNan => Row::Ne,
        UnaryOp::Popcount | UnaryOp::LeadingZeros => Row::Shift,
        _ => Row::Transcendental,
    }
}

fn binary(op: BinaryOp, operand: Type) -> Row {
    match op {
        BinaryOp::Add | BinaryOp::Average => Row::Add,
        BinaryOp::Sub => Row::Sub,
        BinaryOp::Mul => Row::Mul,
        BinaryOp::Div if operand.is_float() => Row::FloatDiv,
        BinaryOp::Div => Row::IntDiv,
        BinaryOp::Mod if operand.is_float() => Row::FloatMod,
        BinaryOp::Mod => Row::IntMod,
        BinaryOp::Min => Row::Min,
        BinaryOp::Max => Row::Max,
        BinaryOp::Pow | BinaryOp::Atan2 => Row::Transcendental,
        BinaryOp::Absd => Row::Abs,
        BinaryOp::And => Row::And,
        BinaryOp::Or => Row::Or,
        BinaryOp::Xor => Row::Xor,
        BinaryOp::Shl | BinaryOp::Shr => Row::Shift,
        BinaryOp::Eq => Row::Eq,
        BinaryOp::Ne => Row::Ne,
        BinaryOp::Lt => Row::Lt,
        BinaryOp::Le => Row::Le,
    }
}

/// The table of one stage; `Index` takes a row and a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Features([[u32; COLUMNS]; ROWS]);

impl Features {
    /// Counts the operations of a stage, and these accesses.
    pub(crate) fn of_stage(exprs: &Exprs, stage: &Stage, accesses: &[Access], store: &AccessMap) -> Features {
        let mut table = Features([[0; COLUMNS]; ROWS]);
        for id in exprs.reachable(stage.roots()) {
            let (row, column) = place(exprs, &exprs[id]);
            // Calls are counted below, from the accesses, which know the callee.
            if row != Row::LoadFunc {
                table.add(row, column);
            }
            if let NodeKind::Table(_) = exprs[id].kind {
                table.add(Row::InputOther, column);
            }
        }
        for access in accesses {
            let column = Column::of(exprs[access.expr].ty);
            let kind = AccessKind::of(access.target);
            match kind {
                AccessKind::LoadSelf => table.add(Row::LoadSelf, column),
                AccessKind::LoadFunc => table.add(Row::LoadFunc, column),
                AccessKind::LoadInput | AccessKind::Store => {}
            }
            table.add(Row::of_access(kind, access.map.class()), column);
        }
        for value in &stage.values {
            table.add(Row::of_access(AccessKind::Store, store.class()), Column::of(exprs[*value].ty));
        }
        table
    }

    fn add(&mut self, row: Row, column: Column) {
        self.0[row as usize][column as usize] += 1;
    }

    /// All counts, with rows in the order of [`NAMES`] and columns in the order of [`Column::ALL`].
    pub fn counts(&self) -> &[[u32; COLUMNS]; ROWS] {
        &self.0
    }

    /// The count of a row, summed over all types.
    pub fn total(&self, row: Row) -> u32 {
        self.0[row as usize].iter().sum()
    }
}

impl Index<(Row, Column)> for Features {
    type Output = u32;

    fn index(&self, (row, column): (Row, Column)) -> &u32 {
        &self.0[row as usize][column as usize]
    }
}

/// Prints a table of the rows and columns that have a nonzero count.
impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = |column: &Column| Row::ALL.iter().any(|row| self[(*row, *column)] > 0);
        let columns: Vec<Column> = Column::ALL.into_iter().filter(used).collect();
        let rows: Vec<Row> = Row::ALL.into_iter().filter(|row| self.total(*row) > 0).collect();
        let width = rows.iter().map(|row| row.name().len()).max().unwrap_or(0);
        write!(f, "{:width$}", "")?;
        for column in &columns {
            write!(f, "  {:>5}", column.name())?;
        }
        writeln!(f)?;
        for row in rows {
            write!(f, "{:width$}", row.name())?;
            for column in &columns {
                match self[(row, *column)] {
                    0 => write!(f, "  {:>5}", "-")?,
                    count => write!(f, "  {count:>5}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
