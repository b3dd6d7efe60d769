//! Elementary functions in CUDA C++.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use warploom_lang::affine::Interval;
use warploom_lang::{Type, Value};

use super::Build;
use super::expr::Printer;
use super::literal::literal;
use super::names::Names;
use super::operand::Operand;
use super::prelude::{Helper, Helpers};
use super::text::{Text, c_type};
use crate::elementary::{Block, Expr, ExprKind, Statement, functions};

/// The range of integers in these functions. Sums and products of two such integers do not overflow.
const RANGE: Interval = Interval { min: -(1 << 15), max: 1 << 15 };

/// A function as text.
pub(super) struct Definition {
    pub(super) text: String,
    /// The helpers that it calls.
    pub(super) helpers: Vec<Helper>,
    /// The declarations of the tuples that it uses.
    pub(super) tuples: BTreeSet<String>,
}

/// The definition of the function with this number.
pub(super) fn definition(number: usize) -> Definition {
    let function = &functions()[number];
    let mut names = Names::local();
    let locals: Vec<String> = function.locals.iter().map(|local| names.take(&local.name)).collect();
    let mut helpers = Helpers::default();
    let printer = Printer { build: Build::Checking, helpers: &mut helpers };
    let (tables, tuples) = (BTreeSet::new(), BTreeSet::new());
    let mut body = Body { locals, tables, tuples, lines: Vec::new(), depth: 1, printer };
    let result = body.type_of(&function.result);
    let params = (0..function.params).map(|param| {
        let ty = body.type_of(&function.locals[param].types);
        format!("{ty} {}", body.locals[param])
    });
    let params = params.collect::<Vec<_>>().join(", ");
    body.block(&function.body);
    let mut lines = vec![format!("static __device__ __forceinline__ {result} {}({params}) {{", name(number))];
    lines.extend(body.tables.into_iter().map(|table| format!("    {table}")));
    lines.extend(body.lines);
    lines.push("}".to_owned());
    Definition { text: lines.join("\n"), tuples: body.tuples, helpers: helpers.used() }
}

/// The name in C++. Functions of `float` and of `double` are overloads.
pub(super) fn name(number: usize) -> &'static str {
    static NAMES: LazyLock<Vec<String>> =
        LazyLock::new(|| functions().iter().map(|function| format!("wl_{}", function.name)).collect());
    &NAMES[number]
}

struct Body<'a> {
    /// The C++ name of each local.
    locals: Vec<String>,
    /// The declarations of constant arrays.
    tables: BTreeSet<String>,
    /// The declarations of tuples.
    tuples: BTreeSet<String>,
    lines: Vec<String>,
    depth: usize,
    printer: Printer<'a>,
}

impl Body<'_> {
    fn line(&mut self, line: &str) {
        self.lines.push(format!("{:1$}{line}", "", 4 * self.depth));
    }

    /// The C++ type of a scalar or a tuple.
    fn type_of(&mut self, types: &[Type]) -> String {
        if let [ty] = types {
            return c_type(*ty).to_owned();
        }
        let words: Vec<String> = types.iter().map(|ty| c_type(*ty).replace(' ', "_")).collect();
        let name = format!("wl_{}", words.join("_"));
        let fields = types.iter().enumerate().map(|(number, ty)| format!("{} v{number};", c_type(*ty)));
        self.tuples.insert(format!("struct {name} {{ {} }};", fields.collect::<Vec<_>>().join(" ")));
        name
    }

    fn block(&mut self, block: &Block) {
        block.statements.iter().for_each(|statement| self.statement(statement));
        let value = self.expr(&block.value);
        self.line(&format!("return {};", value.code));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Let(locals, Expr { kind: ExprKind::Tuple(parts), .. })
                if locals.len() == parts.len() =>
            {
                locals.iter().zip(parts).for_each(|(local, part)| self.declare(*local, part));
            }
            Statement::Let(locals, value) => {
                self.declare(locals[0], value);
                // The others are the fields of the first.
                if let [first, ..] = locals[..]
                    && locals.len() > 1
                {
                    let tuple = self.locals[first].clone();
                    for (field, local) in locals.iter().enumerate() {
                        self.locals[*local] = format!("{tuple}.v{field}");
                    }
                }
            }
            Statement::Leave(condition, block) if block.statements.is_empty() => {
                let (condition, value) = (self.expr(condition), self.expr(&block.value));
                self.line(&format!("if ({}) return {};", condition.code, value.code));
            }
            Statement::Leave(condition, block) => {
                let condition = self.expr(condition);
                self.line(&format!("if ({}) {{", condition.code));
                self.depth += 1;
                self.block(block);
                self.depth -= 1;
                self.line("}");
            }
        }
    }

    fn declare(&mut self, local: usize, value: &Expr) {
        let (ty, text) = (self.type_of(&value.types), self.expr(value));
        self.line(&format!("const {ty} {} = {};", self.locals[local], text.code));
    }

    fn expr(&mut self, expr: &Expr) -> Text {
        match &expr.kind {
            ExprKind::Op(op, args) => {
                let texts: Vec<Text> = args.iter().map(|arg| self.expr(arg)).collect();
                let operands = args.iter().zip(&texts).map(|(arg, text)| operand(arg, text));
                self.printer.op(*op, expr.types[0], &operands.collect::<Vec<_>>())
            }
            ExprKind::MulHigh(sides) => {
                let [a, b] = [&sides[0], &sides[1]].map(|side| self.expr(side));
                Text::call("__umul64hi", [&a, &b])
            }
            ExprKind::Local(local) => Text::atom(&self.locals[*local]),
            ExprKind::Element(name, values, index) => {
                let name = name.to_lowercase();
                let (ty, count) = (c_type(expr.types[0]), values.len());
                let values: Vec<String> = values.iter().map(|value| literal(*value).code).collect();
                self.tables.insert(format!("static const {ty} {name}[{count}] = {{{}}};", values.join(", ")));
                let index = self.expr(index);
                Text::element(&name, &index)
            }
            ExprKind::Call(number, args) => {
                self.printer.helpers.insert(Helper::Elementary(*number));
                let args: Vec<String> = args.iter().map(|arg| self.expr(arg).code).collect();
                Text::atom(format!("{}({})", name(*number), args.join(", ")))
            }
            ExprKind::Field(tuple, field) => {
                let tuple = self.expr(tuple);
                Text::atom(format!("{}.v{field}", tuple.code))
            }
            ExprKind::If(parts) => {
                let [condition, yes, no] = [0, 1, 2].map(|part: usize| self.expr(&parts[part]));
                Text::select(&condition, &yes, &no)
            }
            ExprKind::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.expr(part).code).collect();
                Text::atom(format!("{}{{{}}}", self.type_of(&expr.types), parts.join(", ")))
            }
        }
    }
}

fn operand<'a>(expr: &Expr, text: &'a Text) -> Operand<'a> {
    let constant = expr.constant();
    let range = constant.and_then(Value::as_int).map_or(RANGE, |int| Interval::new(int, int));
    Operand { text, ty: expr.types[0], range, constant }
}
