//! What a stage does at one point, counted.
//!
//! A table of [rows](Row) (kinds of operation and of access) by [columns](Column) (types). Expressions are
//! held with every distinct part once, so these are counts after the elimination of common subexpressions;
//! the arithmetic of indices and conditions is included.

use std::fmt;
use std::ops::Index;

use warploom_lang::Type;
use warploom_lang::ir::{Exprs, Node, NodeKind, Stage};
use warploom_lang::op::{BinaryOp, Op, UnaryOp};

use crate::access::{Access, AccessClass, AccessMap, Target};

/// A column of the table: what type an operation works on.
///
/// Comparisons and logic count for the type of their operands, conversions for the type of their result,
/// accesses for the type of the value read or written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Column {
    /// `f32`
    F32,
    /// `bool`
    Bool,
    /// Integers of 8 bits.
    Int8,
    /// Integers of 16 bits.
    Int16,
    /// Integers of 32 bits.
    Int32,
}

/// Number of columns.
pub const COLUMNS: usize = Column::ALL.len();

impl Column {
    /// All columns, in order.
    pub const ALL: [Column; 5] = [Column::F32, Column::Bool, Column::Int8, Column::Int16, Column::Int32];

    /// The column of a type.
    pub const fn of(ty: Type) -> Column {
        match ty {
            Type::F32 => Column::F32,
            Type::Bool => Column::Bool,
            Type::U8 | Type::I8 => Column::Int8,
            Type::U16 | Type::I16 => Column::Int16,
            Type::U32 | Type::I32 => Column::Int32,
        }
    }

    /// The name in tables.
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
            /// All rows, in order.
            pub const ALL: [Row; ROWS] = [$(Row::$row),*];
        }

        /// Number of rows.
        pub const ROWS: usize = [$($name),*].len();

        /// The names of all rows, in order.
        pub const NAMES: [&str; ROWS] = [$($name),*];
    };
}

rows! {
    /// Constants.
    Const "const";
    /// Variables of loops.
    Variable "variable";
    /// Scalar Params.
    Param "param";
    /// Sizes of inputs.
    Size "size";
    /// Conversions, saturating ones too.
    Cast "cast";
    /// Bits read as another type.
    Reinterpret "reinterpret";
    /// Sums and averages.
    Add "add";
    /// Differences and negations.
    Sub "sub";
    /// Products.
    Mul "mul";
    /// Quotients of integers.
    IntDiv "int_div";
    /// Remainders of integers.
    IntMod "int_mod";
    /// Quotients of floats.
    FloatDiv "float_div";
    /// Remainders of floats.
    FloatMod "float_mod";
    /// Minima.
    Min "min";
    /// Maxima.
    Max "max";
    /// Absolute values and differences.
    Abs "abs";
    /// exp, log, pow, sin, cos, tanh, fast_exp.
    Transcendental "transcendental";
    /// Square roots.
    Sqrt "sqrt";
    /// floor, ceil, round.
    Rounding "rounding";
    /// `==`
    Eq "eq";
    /// `!=`
    Ne "ne";
    /// `<` and `>`
    Lt "lt";
    /// `<=` and `>=`
    Le "le";
    /// And, logical or of bits.
    And "and";
    /// Or, logical or of bits.
    Or "or";
    /// Exclusive or, logical or of bits.
    Xor "xor";
    /// Complements, logical or of bits.
    Not "not";
    /// Shifts, either way.
    Shift "shift";
    /// Selects.
    Select "select";
    /// Reads of inputs.
    LoadInput "load_input";
    /// Reads of other Funcs.
    LoadFunc "load_func";
    /// Reads of the Func itself.
    LoadSelf "load_self";
    /// Reads of other Funcs, pointwise.
    FuncPointwise "func.pointwise";
    /// Reads of other Funcs, transposed.
    FuncTranspose "func.transpose";
    /// Reads of other Funcs, broadcast.
    FuncBroadcast "func.broadcast";
    /// Reads of other Funcs, slices.
    FuncSlice "func.slice";
    /// Reads of other Funcs, all else.
    FuncOther "func.other";
    /// Reads of the Func itself, pointwise.
    SelfPointwise "self.pointwise";
    /// Reads of the Func itself, transposed.
    SelfTranspose "self.transpose";
    /// Reads of the Func itself, broadcast.
    SelfBroadcast "self.broadcast";
    /// Reads of the Func itself, slices.
    SelfSlice "self.slice";
    /// Reads of the Func itself, all else.
    SelfOther "self.other";
    /// Reads of inputs, pointwise.
    InputPointwise "input.pointwise";
    /// Reads of inputs, transposed.
    InputTranspose "input.transpose";
    /// Reads of inputs, broadcast.
    InputBroadcast "input.broadcast";
    /// Reads of inputs, slices.
    InputSlice "input.slice";
    /// Reads of inputs, all else.
    InputOther "input.other";
    /// Values written, pointwise.
    StorePointwise "store.pointwise";
    /// Values written, transposed.
    StoreTranspose "store.transpose";
    /// Values written, broadcast: many steps write one place, as in a sum.
    StoreBroadcast "store.broadcast";
    /// Values written, slices.
    StoreSlice "store.slice";
    /// Values written, all else.
    StoreOther "store.other";
}

/// Who is read or written, for the rows of accesses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum AccessKind {
    /// Another Func is read.
    LoadFunc,
    /// The Func itself is read.
    LoadSelf,
    /// An input is read.
    LoadInput,
    /// The Func is written.
    Store,
}

impl AccessKind {
    /// The kind of a read.
    pub const fn of(target: Target) -> AccessKind {
        match target {
            Target::Func(_) => AccessKind::LoadFunc,
            Target::Itself => AccessKind::LoadSelf,
            Target::Input(_) => AccessKind::LoadInput,
        }
    }
}

impl Row {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// The row of accesses of a kind and class.
    pub const fn of_access(kind: AccessKind, class: AccessClass) -> Row {
        let first = Row::FuncPointwise as usize;
        Row::ALL[first + kind as usize * AccessClass::ALL.len() + class as usize]
    }
}

/// The row and column of a node.
fn place(exprs: &Exprs, node: &Node) -> (Row, Column) {
    let operand = node.args.first().map_or(node.ty, |arg| exprs[*arg].ty);
    match node.kind {
        NodeKind::Var(_) | NodeKind::RVar(_) => (Row::Variable, Column::of(node.ty)),
        NodeKind::Param(_) => (Row::Param, Column::of(node.ty)),
        NodeKind::InputMin(..) | NodeKind::InputExtent(..) => (Row::Size, Column::of(node.ty)),
        NodeKind::Load(_) => (Row::LoadInput, Column::of(node.ty)),
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
        UnaryOp::Sqrt => Row::Sqrt,
        UnaryOp::Exp | UnaryOp::Log | UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tanh | UnaryOp::FastExp => {
            Row::Transcendental
        }
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round => Row::Rounding,
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
        BinaryOp::Pow => Row::Transcendental,
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

/// The table of one stage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Features([[u32; COLUMNS]; ROWS]);

impl Features {
    /// Counts a stage that makes these accesses.
    pub(crate) fn of_stage(exprs: &Exprs, stage: &Stage, accesses: &[Access], store: &AccessMap) -> Features {
        let mut table = Features([[0; COLUMNS]; ROWS]);
        for id in exprs.reachable(stage.roots()) {
            let (row, column) = place(exprs, &exprs[id]);
            // Who is called is told by the accesses below.
            if row != Row::LoadFunc {
                table.add(row, column);
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

    /// All counts: rows as [`NAMES`] has them, columns as [`Column::ALL`].
    pub fn counts(&self) -> &[[u32; COLUMNS]; ROWS] {
        &self.0
    }

    /// The count of a row over all types.
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

/// A table of the rows and columns that are not zero throughout.
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
