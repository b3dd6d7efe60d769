//! The syntax tree of a text, before any check of its meaning.

use crate::source::Span;
use crate::types::Scalar;

/// A name and its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Name {
    /// The name itself.
    pub text: String,
    /// Its place.
    pub span: Span,
}

/// One `def`.
#[derive(Clone, PartialEq, Debug)]
pub struct Def {
    /// The name of the definition.
    pub name: Name,
    /// The tensors and scalars that a caller gives.
    pub params: Vec<Declared>,
    /// The tensors that a caller gets.
    pub results: Vec<ResultName>,
    /// The statements, in order.
    pub statements: Vec<Statement>,
}

/// A name with a type.
#[derive(Clone, PartialEq, Debug)]
pub struct Declared {
    /// The type.
    pub ty: TensorType,
    /// The name.
    pub name: Name,
    /// The value of a scalar unless a caller gives another.
    pub default: Option<Number>,
}

/// A number with its sign, and its place.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Number {
    /// The number itself.
    pub value: f64,
    /// Whether it is written with a point or an exponent.
    pub is_float: bool,
    /// Its place.
    pub span: Span,
}

/// A result, with its type where one is written.
#[derive(Clone, PartialEq, Debug)]
pub struct ResultName {
    /// The type that the result must turn out to have.
    pub ty: Option<TensorType>,
    /// The name.
    pub name: Name,
}

/// A scalar type and the sizes of a tensor; no sizes for a scalar.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorType {
    /// The type of the elements.
    pub scalar: Scalar,
    /// The sizes, in the order written.
    pub dims: Vec<Dim>,
    /// The place of the type.
    pub span: Span,
}

/// The size of one dimension.
#[derive(Clone, PartialEq, Debug)]
pub enum Dim {
    /// A named size.
    Name(Name),
    /// A number.
    Number(i64, Span),
}

/// One statement: `type target(indices) assign value where clauses`.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// The type of a temporary tensor that is declared here, and its place.
    pub ty: Option<(Scalar, Span)>,
    /// The tensor that is written.
    pub target: Name,
    /// The indices on the left.
    pub indices: Vec<Name>,
    /// How the value is stored.
    pub assign: Assign,
    /// The right side.
    pub value: Expr,
    /// A library call that computes the same; it is parsed and ignored.
    pub equivalent: Option<(Name, Vec<Expr>)>,
    /// The clauses after `where`.
    pub clauses: Vec<Clause>,
    /// The place of the assignment operator.
    pub assign_span: Span,
}

/// How a statement stores its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assign {
    /// `=`
    Set,
    /// `+=` and its siblings; with `!`, the target first becomes the neutral element.
    Reduce {
        /// The operator.
        op: Reduction,
        /// Whether a `!` follows.
        initialised: bool,
    },
}

/// The operator of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// `+=`
    Sum,
    /// `*=`
    Product,
    /// `min=`
    Min,
    /// `max=`
    Max,
}

/// One clause of a `where`.
#[derive(Clone, PartialEq, Debug)]
pub enum Clause {
    /// `index in low:high`, without `high`.
    Range {
        /// The index.
        index: Name,
        /// The first value.
        low: Expr,
        /// One past the last value.
        high: Expr,
    },
    /// `name = value`: a name for an expression.
    Let {
        /// The name.
        name: Name,
        /// The expression that it names.
        value: Expr,
    },
    /// `exists value`: reads that take part in range inference and compute nothing.
    Exists(Expr),
}

/// An expression and its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// The kind of the expression.
    pub kind: ExprKind,
    /// Its place.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// An integer.
    Int(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// An index, a size, a scalar, a let, or a tensor of rank 0.
    Name(Name),
    /// A read of a tensor, or a builtin function.
    Call(Name, Vec<Expr>),
    /// `A.1`: the size of a dimension.
    Size(Name, usize),
    /// A conversion.
    Cast(Scalar, Box<Expr>),
    /// One operand.
    Unary(Unary, Box<Expr>),
    /// Two operands.
    Binary(Binary, Box<[Expr; 2]>),
    /// `condition ? one : other`
    Select(Box<[Expr; 3]>),
}

/// Operators with one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// Operators with two operands; `min(a, b)` and `max(a, b)` too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Binary {
    Or,
    And,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Min,
    Max,
}

impl Binary {
    /// The notation of the operator.
    pub fn symbol(self) -> &'static str {
        match self {
            Binary::Or => "||",
            Binary::And => "&&",
            Binary::Lt => "<",
            Binary::Gt => ">",
            Binary::Le => "<=",
            Binary::Ge => ">=",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Mod => "%",
            Binary::Min => "min",
            Binary::Max => "max",
        }
    }

    /// The precedence: 1 for `||` up to 5 for `*`; 7 for calls.
    pub(crate) fn level(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::Lt | Binary::Gt | Binary::Le | Binary::Ge | Binary::Eq | Binary::Ne => 3,
            Binary::Add | Binary::Sub => 4,
            Binary::Mul | Binary::Div | Binary::Mod => 5,
            Binary::Min | Binary::Max => 7,
        }
    }

    /// Whether it compares its operands.
    pub fn is_comparison(self) -> bool {
        self.level() == 3
    }
}

impl Assign {
    /// The notation of the operator.
    pub fn symbol(self) -> &'static str {
        match self {
            Assign::Set => "=",
            Assign::Reduce { op, initialised: false } => op.symbol(),
            Assign::Reduce { op, initialised: true } => match op {
                Reduction::Sum => "+=!",
                Reduction::Product => "*=!",
                Reduction::Min => "min=!",
                Reduction::Max => "max=!",
            },
        }
    }
}

impl Reduction {
    /// The notation of the operator, without `!`.
    pub fn symbol(self) -> &'static str {
        match self {
            Reduction::Sum => "+=",
            Reduction::Product => "*=",
            Reduction::Min => "min=",
            Reduction::Max => "max=",
        }
    }
}

impl Expr {
    /// The operands, in the order written.
    pub fn operands(&self) -> &[Expr] {
        match &self.kind {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Name(_) | ExprKind::Size(..) => &[],
            ExprKind::Call(_, operands) => operands,
            ExprKind::Cast(_, operand) | ExprKind::Unary(_, operand) => std::slice::from_ref(operand),
            ExprKind::Binary(_, operands) => &operands[..],
            ExprKind::Select(operands) => &operands[..],
        }
    }
}
