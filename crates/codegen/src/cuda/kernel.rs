//! Prints one kernel: signature, declarations, statements, and their expressions in [`pieces`].

mod pieces;

use std::collections::HashMap;

use warploom_lang::ir::TableDecl;
use warploom_lang::{IdVec, Type, Value};

use super::chain;
use super::expr::Printer;
use super::lines::Tracker;
use super::names::{Names, in_comment};
use super::prelude::{Helper, hardware_atomic};
use super::requested_shared_bytes;
use super::tables;
use super::text::{Text, WIDE, c_type, element_type};
use super::unroll;
use crate::ir::{
    Array, ArrayId, AtomicOp, Kernel, KernelId, Leaf, NodeId, NodeKind, Program, SHARED_UNIT, Scalar,
    ScalarValue, SharedPlace, Space, Stmt, VarId,
};
use crate::printer::{LineOrigin, Usage};
use warploom_lang::affine::interval::Interval;

/// The longest line that a parameter list may take.
const WIDTH: usize = 120;

/// A bound variable: its C++ name and value range.
#[derive(Clone)]
struct Variable {
    name: String,
    range: Interval,
}

pub(super) struct KernelPrinter<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    usage: &'a Usage,
    waits: bool,
    /// The tables in constant memory.
    constants: Vec<ArrayId>,
    printer: Printer<'a>,
    names: Names,
    arrays: IdVec<ArrayId, String>,
    variables: IdVec<VarId, Option<Variable>>,
    /// The bindings that inner ones replaced, innermost last.
    replaced: Vec<(VarId, Option<Variable>)>,
    leaves: HashMap<Leaf, String>,
    lines: String,
    tracker: Tracker<'a>,
    depth: usize,
}

impl<'a> KernelPrinter<'a> {
    pub(super) fn new(
        program: &'a Program,
        kernel: &'a Kernel,
        usage: &'a Usage,
        waits: bool,
        constants: Vec<ArrayId>,
        printer: Printer<'a>,
    ) -> KernelPrinter<'a> {
        KernelPrinter {
            program,
            kernel,
            usage,
            waits,
            constants,
            printer,
            names: Names::local(),
            arrays: IdVec::new(),
            variables: kernel.vars.values().map(|_| None).collect(),
            replaced: Vec::new(),
            leaves: HashMap::new(),
            lines: String::new(),
            tracker: Tracker::new(kernel),
            depth: 0,
        }
    }

    /// Prints the kernel as a function called `entry`. Also returns where each line comes from.
    pub(super) fn print(mut self, id: KernelId, entry: &str) -> (String, Vec<LineOrigin>) {
        self.name_leaves();
        let kernel = self.kernel;
        self.arrays = kernel.arrays.values().map(|array| self.names.take(&array.name)).collect();
        self.comment();
        self.signature(entry);
        self.depth = 1;
        self.follow();
        self.declare_arrays();
        self.declare_leaves();
        self.block(&kernel.body);
        self.depth = 0;
        self.line("}");
        (self.lines, self.tracker.finish(id))
    }

    fn line(&mut self, text: &str) {
        self.lines.extend(std::iter::repeat_n("    ", self.depth));
        self.lines.push_str(text);
        self.lines.push('\n');
        self.tracker.line();
    }

    fn comment(&mut self) {
        let [x, y, z] = self.kernel.grid;
        let most = if self.kernel.blocks.is_some() { "up to " } else { "" };
        let shared = match self.kernel.shared_bytes() {
            0 => String::new(),
            bytes => {
                let most = if self.kernel.shared.is_some() { "up to " } else { "" };
                format!(", {most}{bytes} bytes of shared memory")
            }
        };
        self.line(&format!("// {most}{x} x {y} x {z} blocks of {} threads{shared}", self.kernel.threads));
        if let Some(sizes) = &self.program.sizes {
            for position in self.usage.sizes() {
                let Scalar { name, value, .. } = &self.kernel.scalars[position as usize];
                match value {
                    ScalarValue::Formula(formula) => {
                        let text = sizes.formulas.text(formula);
                        if text != *name {
                            self.line(&format!("// {name} = {}", in_comment(&text)));
                        }
                    }
                    ScalarValue::Stride(..) => {}
                }
            }
        }
    }

    /// Reserves our own names first, so that they are the same in every kernel.
    fn name_leaves(&mut self) {
        for name in ["params", "shared_memory"].into_iter().chain(self.waits.then_some(chain::ORIGIN)) {
            self.names.take(name);
        }
        for &leaf in &self.usage.leaves {
            let name = match leaf {
                Leaf::Thread => "thread".to_string(),
                Leaf::Block(dimension) => format!("block_{}", dimension_name(dimension)),
                Leaf::Param(position) => format!("param{position}"),
                Leaf::Iteration(level) => format!("iteration{level}"),
                Leaf::Size(position) => self.kernel.scalars[position as usize].name.clone(),
                Leaf::Var(_) => continue,
            };
            let name = self.names.take(&name);
            self.leaves.insert(leaf, name);
        }
    }

    fn signature(&mut self, entry: &str) {
        let mut parameters: Vec<String> = Vec::new();
        for (id, array) in self.kernel.arrays.iter() {
            if matches!(array.space, Space::Global(_)) && self.table(array).is_none() {
                let constant = if self.usage.is_written(id) { "" } else { "const " };
                let restrict = if self.shares_its_buffer(array) { "" } else { " __restrict__" };
                parameters.push(format!(
                    "{constant}{}*{restrict} {}",
                    element_type(array.ty),
                    self.arrays[id]
                ));
            }
        }
        if self.usage.reads_params() {
            parameters.push("const unsigned* __restrict__ params".to_string());
        }
        for level in self.usage.iterations() {
            let name = &self.leaves[&Leaf::Iteration(level)];
            parameters.push(format!("int {name}"));
        }
        for position in self.usage.sizes() {
            parameters.push(format!("int {}", self.leaves[&Leaf::Size(position)]));
        }
        let resident = self.kernel.resident.map(|blocks| format!(", {blocks}")).unwrap_or_default();
        let threads = self.kernel.threads;
        let start = format!("extern \"C\" __global__ void __launch_bounds__({threads}{resident})");
        let one_line = format!("{start} {entry}({}) {{", parameters.join(", "));
        if one_line.len() <= WIDTH {
            self.line(&one_line);
            return;
        }
        self.line(&format!("{start} {entry}("));
        let last = parameters.len() - 1;
        for (i, parameter) in parameters.iter().enumerate() {
            self.line(&format!("        {parameter}{}", if i == last { ") {" } else { "," }));
        }
    }

    /// The constant table that an array is.
    fn table(&self, array: &Array) -> Option<&'a TableDecl> {
        tables::of(self.program, array.space)
    }

    /// Whether another array of the kernel aliases the same memory.
    fn shares_its_buffer(&self, array: &Array) -> bool {
        self.kernel.arrays.values().filter(|other| other.space == array.space).count() > 1
    }

    /// Waits for the previous kernel, if there may be one.
    fn follow(&mut self) {
        if self.waits {
            chain::HELPERS.into_iter().for_each(|helper| self.printer.helpers.insert(helper));
            let lines = chain::beginning(self.program, self.kernel, &self.arrays);
            lines.iter().for_each(|line| self.line(line));
        }
    }

    fn declare_arrays(&mut self) {
        let kernel = self.kernel;
        let requested = requested_shared_bytes(kernel) > 0;
        if requested {
            self.line("extern __shared__ __align__(16) unsigned char shared_memory[];");
        }
        let places: HashMap<ArrayId, SharedPlace> = kernel.shared_places().into_iter().collect();
        for (id, array) in kernel.arrays.iter() {
            let (ty, elements) = (element_type(array.ty), array.elements);
            let name = self.arrays[id].clone();
            match array.space {
                Space::Global(_) => {
                    let is_constant = self.constants.contains(&id);
                    let declared = |table| tables::declaration(table, &name, is_constant, WIDTH);
                    let lines = self.table(array).map(declared);
                    lines.into_iter().flatten().for_each(|line| self.line(&line));
                }
                Space::Thread => {
                    let align = if self.usage.is_vector(id) { "__align__(16) " } else { "" };
                    self.line(&format!("{align}{ty} {name}[{elements}];"));
                }
                Space::Shared if requested => {
                    let start = self.start(places[&id]);
                    self.line(&format!("{ty}* const {name} = ({ty}*)(shared_memory + {start});"));
                }
                Space::Shared => self.line(&format!("__shared__ __align__(16) {ty} {name}[{elements}];")),
            }
        }
    }

    /// The first byte of an array in shared memory.
    fn start(&self, place: SharedPlace) -> String {
        let SharedPlace { offset, units } = place;
        match units.map(|position| &self.leaves[&Leaf::Size(position)]) {
            None => offset.to_string(),
            Some(units) if offset == 0 => format!("{SHARED_UNIT} * {units}"),
            Some(units) => format!("{offset} + {SHARED_UNIT} * {units}"),
        }
    }

    fn declare_leaves(&mut self) {
        for &leaf in &self.usage.leaves {
            let (ty, value) = match leaf {
                Leaf::Thread => (Type::I32, "threadIdx.x".to_string()),
                Leaf::Block(dimension) => (Type::I32, format!("blockIdx.{}", dimension_name(dimension))),
                Leaf::Param(position) => {
                    let ty = self.param_type(position);
                    let word = format!("params[{position}]");
                    let value = match ty {
                        _ if ty.is_wide() => self.wide_param(position, ty),
                        Type::F16 | Type::BF16 => {
                            self.printer.half_value(ty, &Text::cast(Type::U16, &Text::atom(word))).code
                        }
                        Type::F32 => format!("__uint_as_float({word})"),
                        Type::Bool => format!("{word} != 0u"),
                        Type::U32 => word,
                        _ => format!("({}){word}", c_type(ty)),
                    };
                    (ty, value)
                }
                Leaf::Iteration(_) | Leaf::Size(_) | Leaf::Var(_) => continue,
            };
            let name = self.leaves[&leaf].clone();
            self.line(&format!("const {} {name} = {value};", c_type(ty)));
        }
    }

    /// A scalar of 64 bits, whose upper half comes after the words of all scalars.
    fn wide_param(&self, position: u32, ty: Type) -> String {
        let types: Vec<Type> = self.program.params.iter().map(|&(_, ty)| ty).collect();
        let upper = Value::upper_word(&types, position as usize);
        let bits = format!("((unsigned long long)params[{upper}] << 32 | params[{position}])");
        match ty {
            Type::U64 => bits,
            Type::I64 => format!("({WIDE}){bits}"),
            _ => format!("__longlong_as_double(({WIDE}){bits})"),
        }
    }

    fn param_type(&self, position: u32) -> Type {
        self.program.params.get(position as usize).map_or(Type::U32, |&(_, ty)| ty)
    }

    /// Prints a list of statements in its own scope.
    fn block(&mut self, body: &[Stmt]) {
        self.scope(|printer| body.iter().for_each(|stmt| printer.stmt(stmt)));
    }

    /// Prints in a new scope, whose bindings end with it.
    fn scope(&mut self, print: impl FnOnce(&mut Self)) {
        self.names.enter();
        let outer = self.replaced.len();
        print(self);
        for (var, before) in self.replaced.split_off(outer).into_iter().rev() {
            self.variables[var] = before;
        }
        self.names.leave();
    }

    /// Prints a list of statements, indented one level.
    fn indented(&mut self, head: &str, body: &[Stmt]) {
        self.line(head);
        self.depth += 1;
        self.block(body);
        self.depth -= 1;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let outside = self.tracker.enter(stmt);
        self.statement(stmt);
        self.tracker.leave(outside);
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Let(var, value) => {
                let [piece] = self.expressions([*value]);
                let ty = self.kernel.exprs[*value].ty;
                let name = self.bind(*var, piece.range);
                self.line(&format!("const {} {name} = {};", c_type(ty), piece.text.code));
            }
            Stmt::Shuffle { var, value, lane } => {
                let ty = self.kernel.exprs[*value].ty;
                let [value, lane] = self.expressions([*value, *lane]);
                let name = self.bind(*var, value.range);
                let shuffled =
                    Text::call("__shfl_sync", [&Text::atom("0xffffffffu"), &value.text, &lane.text]);
                self.line(&format!("const {} {name} = {};", c_type(ty), shuffled.code));
            }
            Stmt::Store { array, index, value } => {
                let [index, value] = self.expressions([*index, *value]);
                let element = Text::element(&self.arrays[*array], &index.text);
                let value = self.printer.stored(self.kernel.arrays[*array].ty, value.text);
                self.line(&format!("{} = {};", element.code, value.code));
            }
            Stmt::Copy { array, index, value } => self.copy(*array, *index, *value),
            Stmt::Vector { to, at, from, index, width } => self.vector((*to, *at), (*from, *index), *width),
            Stmt::Commit => self.line("asm volatile(\"cp.async.commit_group;\" ::: \"memory\");"),
            Stmt::Wait(groups) => {
                self.line(&format!("asm volatile(\"cp.async.wait_group {groups};\" ::: \"memory\");"));
            }
            Stmt::Atomic { op, array, index, value } => self.atomic(*op, *array, [*index, *value]),
            Stmt::For { var, count, limit, unrolled, body } => {
                if *unrolled {
                    self.line("#pragma unroll");
                }
                if let Some(factor) = limit.and_then(|limit| unroll::factor(self.kernel, limit, body)) {
                    self.line(&format!("#pragma unroll {factor}"));
                }
                self.scope(|printer| {
                    let end = match limit {
                        Some(position) => printer.leaves[&Leaf::Size(*position)].clone(),
                        None => count.to_string(),
                    };
                    let name = printer.bind(*var, Interval::below(*count));
                    printer.indented(&format!("for (int {name} = 0; {name} < {end}; ++{name}) {{"), body);
                    printer.line("}");
                });
            }
            Stmt::If { condition, body, otherwise } => {
                let [condition] = self.expressions([*condition]);
                self.indented(&format!("if ({}) {{", condition.text.code), body);
                if !otherwise.is_empty() {
                    self.indented("} else {", otherwise);
                }
                self.line("}");
            }
            Stmt::Barrier => self.line("__syncthreads();"),
        }
    }

    /// An asynchronous copy from a buffer to a shared array.
    fn copy(&mut self, array: ArrayId, index: NodeId, value: NodeId) {
        let loaded = &self.kernel.exprs[value];
        let (NodeKind::Load(from), [at]) = (loaded.kind, &loaded.args[..]) else { return };
        self.copied((array, index), (from, *at), loaded.ty.bytes());
    }

    fn copied(&mut self, (to, at): (ArrayId, NodeId), (from, index): (ArrayId, NodeId), bytes: usize) {
        let helper = match bytes {
            4 => Helper::Copy,
            8 => Helper::CopyWide,
            _ => Helper::CopyWidest,
        };
        self.printer.helpers.insert(helper);
        let [to, from] = self.elements([(to, at), (from, index)]);
        self.line(&format!("{}(&{to}, &{from});", helper.name()));
    }

    /// Two elements of arrays.
    fn elements(&mut self, [one, other]: [(ArrayId, NodeId); 2]) -> [String; 2] {
        let [first, second] = self.expressions([one.1, other.1]);
        [(one.0, first), (other.0, second)]
            .map(|(array, at)| Text::element(&self.arrays[array], &at.text).code)
    }

    /// A move of adjacent elements.
    fn vector(&mut self, (to, at): (ArrayId, NodeId), (from, index): (ArrayId, NodeId), width: u32) {
        let Array { ty, space, .. } = self.kernel.arrays[to];
        if space == Space::Shared {
            return self.copied((to, at), (from, index), ty.bytes() * width as usize);
        }
        self.printer.helpers.insert(Helper::Move);
        let [to, from] = self.elements([(to, at), (from, index)]);
        self.line(&format!("{}<{width}>(&{to}, &{from});", Helper::Move.name()));
    }

    fn atomic(&mut self, op: AtomicOp, array: ArrayId, operands: [NodeId; 2]) {
        let ty = self.kernel.arrays[array].ty;
        let [index, value] = self.expressions(operands);
        let element = Text::element(&self.arrays[array], &index.text);
        let function = hardware_atomic(op, ty).unwrap_or_else(|| {
            let helper = Helper::Atomic(op, ty);
            self.printer.helpers.insert(helper);
            helper.name()
        });
        self.line(&format!("{function}(&{}, {});", element.code, value.text.code));
    }

    /// Binds a variable to a name and range in the innermost scope.
    fn bind(&mut self, var: VarId, range: Interval) -> String {
        let name = self.names.take(&self.kernel.vars[var]);
        let before = self.variables[var].replace(Variable { name: name.clone(), range });
        self.replaced.push((var, before));
        name
    }
}

fn dimension_name(dimension: u8) -> char {
    match dimension {
        0 => 'x',
        1 => 'y',
        _ => 'z',
    }
}
