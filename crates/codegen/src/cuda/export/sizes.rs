//! Numbers that follow from the sizes and strides of a run, in C.

use ahash::AHashMap;
use warploom_lang::dynamic::{Atom, AtomId, Formula, FormulaRange, Words};
use warploom_lang::{Id, IdVec};
use warploom_target::program as target;

use super::c;
use super::manifest::{
    ALIGNMENT, Argument, Buffer, Derived, Kernel, Layout, Manifest, Number, Size, words_of,
};
use super::source::error;
use super::template::fill;
use crate::cuda::names::Names;
use crate::instance::MOST_ELEMENTS;
use crate::ir::{BufferId, KernelId, Launch, Program, ProgramSizes, ScalarValue};
use crate::printer::Usage;

/// The functions of the C source that formulas use.
const FUNCTIONS: [(&str, &str); 3] = [
    ("lesser", "static int64_t lesser(int64_t a, int64_t b)\n{\n    return a < b ? a : b;\n}\n\n"),
    ("greater", "static int64_t greater(int64_t a, int64_t b)\n{\n    return a > b ? a : b;\n}\n\n"),
    (
        "floor_div",
        "static int64_t floor_div(int64_t a, int64_t b)\n{\n    return a / b - (a % b < 0 ? 1 : 0);\n}\n\n",
    ),
];

/// A program whose formulas are written in C.
pub(super) struct Sized<'p> {
    program: &'p Program,
    own: Option<&'p ProgramSizes>,
    pub sizes: Vec<Size>,
    /// The names of all sizes, and of all values that several formulas share.
    names: AHashMap<AtomId, String>,
}

impl<'p> Sized<'p> {
    pub fn new(program: &'p Program, names: &mut Names) -> Sized<'p> {
        let ranges = program.size_ranges().iter();
        let sizes: Vec<Size> = ranges
            .map(|range| Size {
                name: range.name.clone(),
                identifier: names.take(&range.name),
                min: range.min,
                max: range.max,
            })
            .collect();
        let own = program.sizes.as_deref();
        let of_sizes =
            sizes.iter().enumerate().map(|(number, size)| (AtomId::new(number), size.identifier.clone()));
        let mut named: AHashMap<AtomId, String> = of_sizes.collect();
        for atom in own.map(|own| shared(program, own)).unwrap_or_default() {
            named.entry(atom).or_insert_with(|| names.take("derived"));
        }
        Sized { program, own, sizes, names: named }
    }

    /// The values that several formulas share, each after the values that it uses.
    pub fn values(&self) -> Vec<Derived> {
        let Some(own) = self.own else { return Vec::new() };
        let named = own.formulas.atoms().keys().skip(self.sizes.len());
        let values = named.filter_map(|atom| {
            let identifier = self.names.get(&atom)?.clone();
            Some(Derived { identifier, value: self.in_words(|words| own.formulas.atom_text_in(atom, words)) })
        });
        values.collect()
    }

    fn text(&self, own: &ProgramSizes, formula: &Formula) -> String {
        self.in_words(|words| own.formulas.text_in(formula, words))
    }

    fn in_words(&self, write: impl Fn(&Words<'_>) -> String) -> String {
        let [(min, _), (max, _), (floor_div, _)] = FUNCTIONS;
        let name = |atom: AtomId| self.names.get(&atom).cloned();
        write(&Words { name: &name, min, max, floor_div })
    }

    pub fn conditions(&self) -> Vec<String> {
        let Some(own) = self.own else { return Vec::new() };
        let text = |formula| self.text(own, formula);
        own.conditions
            .iter()
            .map(|condition| format!("{} <= {}", text(&condition.low), text(&condition.high)))
            .collect()
    }

    pub fn layout(&self, buffer: BufferId) -> Option<Layout> {
        let own = self.own?;
        let layout = &own.buffers[buffer];
        let texts = |end: fn(&FormulaRange) -> &Formula| {
            layout.region.iter().map(|range| self.text(own, end(range))).collect()
        };
        Some(Layout {
            first: texts(|range| &range.first),
            last: texts(|range| &range.last),
            order: layout.order.clone(),
            pitched: layout.pitched,
        })
    }

    pub fn kernel(&self, id: KernelId, described: &target::Kernel) -> Kernel {
        let (mut kernel, own) = (Kernel::new(described), &self.program.kernels[id]);
        let Some(sizes) = self.own else { return kernel };
        let product = |factors: &Vec<Formula>| match factors.as_slice() {
            [] => "1".to_string(),
            [one] => self.text(sizes, one),
            several => {
                let factors: Vec<String> =
                    several.iter().map(|one| format!("({})", self.text(sizes, one))).collect();
                factors.join(" * ")
            }
        };
        kernel.blocks = own.blocks.as_ref().map(|blocks| [0, 1, 2].map(|axis| product(&blocks[axis])));
        kernel.shared = own.shared.as_ref().map(|bytes| self.text(sizes, bytes));
        for position in Usage::of(self.program, id).sizes() {
            kernel.arguments.push(Argument::Number(kernel.numbers.len()));
            kernel.numbers.push(match &own.scalars[position as usize].value {
                ScalarValue::Formula(formula) => Number::Formula(self.text(sizes, formula)),
                ScalarValue::Stride(buffer, dimension) => Number::Stride(buffer.index(), *dimension),
            });
        }
        kernel
    }

    /// The counts of all loops over launches, in text order; none if the sizes are fixed.
    pub fn loop_counts(&self) -> Vec<Option<String>> {
        let Some(own) = self.own else { return Vec::new() };
        loops(self.program).into_iter().map(|limit| limit.map(|limit| self.text(own, limit))).collect()
    }
}

/// The atoms, other than sizes, that occur more than once in the formulas of a program.
fn shared(program: &Program, own: &ProgramSizes) -> Vec<AtomId> {
    let atoms = own.formulas.atoms();
    let mut uses: IdVec<AtomId, usize> = atoms.values().map(|_| 0).collect();
    let count = |formula: &Formula, uses: &mut IdVec<AtomId, usize>| {
        formula.terms.iter().for_each(|(atom, _)| uses[*atom] += 1);
    };
    for formula in formulas(program, own) {
        count(formula, &mut uses);
    }
    // Operands have smaller ids.
    for id in atoms.keys().rev() {
        match &atoms[id] {
            _ if uses[id] == 0 => {}
            Atom::Size(_) => {}
            Atom::Quotient(inner, _) => count(inner, &mut uses),
            Atom::Ratio(a, b) | Atom::Min(a, b) | Atom::Max(a, b) => {
                [a, b].iter().for_each(|operand| count(operand, &mut uses))
            }
        }
    }
    let is_size = |atom: &Atom| matches!(atom, Atom::Size(_));
    atoms.iter().filter(|(id, atom)| uses[*id] > 1 && !is_size(atom)).map(|(id, _)| id).collect()
}

/// All formulas that are computed for a run.
fn formulas<'p>(program: &'p Program, own: &'p ProgramSizes) -> Vec<&'p Formula> {
    let conditions = own.conditions.iter().flat_map(|condition| [&condition.low, &condition.high]);
    let regions = own.buffers.values().flat_map(|layout| &layout.region);
    let mut formulas: Vec<&Formula> =
        conditions.chain(regions.flat_map(|range| [&range.first, &range.last])).collect();
    for kernel in program.kernels.values() {
        formulas.extend(kernel.blocks.iter().flat_map(|blocks| blocks.iter().flatten()));
        formulas.extend(&kernel.shared);
        formulas.extend(kernel.scalars.iter().filter_map(|scalar| match &scalar.value {
            ScalarValue::Formula(formula) => Some(formula),
            ScalarValue::Stride(..) => None,
        }));
    }
    formulas.extend(loops(program).into_iter().flatten());
    formulas
}

/// The limits of all loops over launches, in text order.
fn loops(program: &Program) -> Vec<Option<&Formula>> {
    let (mut limits, mut open) = (Vec::new(), program.launches.iter().rev().collect::<Vec<_>>());
    while let Some(launch) = open.pop() {
        if let Launch::Loop { limit, body, .. } = launch {
            limits.push(limit.as_ref());
            open.extend(body.iter().rev());
        }
    }
    limits
}

/// Whether every run computes the layout of its buffers.
pub(super) fn vary(manifest: &Manifest) -> bool {
    manifest.buffers.iter().any(|buffer| buffer.layout.is_some())
}

/// The struct with the sizes of a run, for the header; empty if all sizes are fixed.
pub(super) fn type_of_sizes(manifest: &Manifest) -> String {
    if manifest.sizes.is_empty() {
        return String::new();
    }
    let name = &manifest.name;
    let fields = manifest
        .sizes
        .iter()
        .map(|size| format!("    int64_t {}; /* from {} to {} */\n", size.identifier, size.min, size.max));
    let fields: String = fields.collect();
    format!("/* The sizes of a run. */\ntypedef struct {name}_sizes {{\n{fields}}} {name}_sizes;\n\n")
}

/// The parameter with the sizes, as a declaration that others follow; empty if all sizes are fixed.
pub(super) fn parameter(manifest: &Manifest) -> String {
    match manifest.sizes.is_empty() {
        true => String::new(),
        false => format!("const {}_sizes *sizes, ", manifest.name),
    }
}

/// The functions that compute the layout of a run's buffers; empty if it is fixed.
pub(super) fn functions(manifest: &Manifest) -> String {
    if !vary(manifest) {
        return String::new();
    }
    let dims = manifest.buffers.iter().map(|buffer| buffer.dimensions.len()).max().unwrap_or(0).max(1);
    let words = match manifest.words_offset {
        Some(_) => {
            format!("    at->words = at->bytes;\n    at->bytes += {};\n", 4 * words_of(&manifest.params))
        }
        None => String::new(),
    };
    let buffers: String =
        manifest.buffers.iter().enumerate().map(|(position, _)| placed(manifest, position)).collect();
    let text = fill(
        include_str!("sizes.c"),
        &[
            ("name", manifest.name.clone()),
            ("buffers", manifest.buffers.len().max(1).to_string()),
            ("dims", dims.to_string()),
            ("most", MOST_ELEMENTS.to_string()),
            ("sizes", parameter(manifest)),
            ("locals", size_locals(manifest)),
            ("ranges", refused(manifest, ranges(manifest))),
            ("values", value_locals(manifest)),
            (
                "conditions",
                refused(
                    manifest,
                    manifest.conditions.iter().map(|condition| format!("!({condition})")).collect(),
                ),
            ),
            ("place", buffers),
            ("words_field", if words.is_empty() { String::new() } else { "    size_t words;\n".to_string() }),
            ("words", words),
        ],
    );
    // Compilers warn about unused static functions.
    let all = text.clone() + &kernels_text(manifest);
    let used = FUNCTIONS.iter().filter(|(name, _)| all.contains(&format!("{name}(")));
    used.map(|(_, code)| *code).collect::<String>() + &text
}

/// The expressions outside the layout that may call functions.
fn kernels_text(manifest: &Manifest) -> String {
    let of_kernel = |kernel: &Kernel| {
        let numbers = kernel.numbers.iter().map(|number| match number {
            Number::Formula(text) => text.clone(),
            Number::Stride(..) => String::new(),
        });
        let launch = kernel.blocks.iter().flatten().chain(&kernel.shared).cloned();
        launch.chain(numbers).collect::<String>()
    };
    let loops = manifest.loop_counts.iter().flatten().cloned();
    let loops = loops.chain(manifest.values.iter().map(|value| value.value.clone()));
    manifest.kernels.iter().map(of_kernel).chain(loops).collect()
}

/// The sizes as local variables.
pub(super) fn size_locals(manifest: &Manifest) -> String {
    let each = manifest.sizes.iter().map(|Size { identifier, .. }| {
        format!("    const int64_t {identifier} = sizes->{identifier};\n    (void){identifier};\n")
    });
    each.collect()
}

/// The values that several formulas share, as local variables.
pub(super) fn value_locals(manifest: &Manifest) -> String {
    let each = manifest.values.iter().map(|Derived { identifier, value }| {
        format!("    const int64_t {identifier} = {value};\n    (void){identifier};\n")
    });
    each.collect()
}

/// The conditions under which a size is out of its range.
fn ranges(manifest: &Manifest) -> Vec<String> {
    let ranges = manifest.sizes.iter().flat_map(|Size { identifier, min, max, .. }| {
        [format!("{identifier} < {min}"), format!("{identifier} > {max}")]
    });
    ranges.collect()
}

/// Refuses sizes that meet one of these conditions.
fn refused(manifest: &Manifest, broken: Vec<String>) -> String {
    let code = error(manifest, "SIZE");
    match broken.is_empty() {
        true => String::new(),
        false => {
            format!("    if ({}) {{\n        return {code};\n    }}\n", broken.join("\n        || "))
        }
    }
}

/// Computes the strides of a buffer, and its place in the workspace if it is a temporary.
fn placed(manifest: &Manifest, position: usize) -> String {
    let buffer = &manifest.buffers[position];
    let Some(layout) = &buffer.layout else { return String::new() };
    let dims = layout.first.len();
    let extents = layout.first.iter().zip(&layout.last).map(|(first, last)| match first.as_str() {
        "0" => format!("{last} + 1"),
        first => format!("{last} - ({first}) + 1"),
    });
    let list = |items: Vec<String>| if items.is_empty() { "1".to_string() } else { items.join(", ") };
    let extents = list(extents.collect());
    let order = list(layout.order.iter().map(usize::to_string).collect());
    let given = match layout.pitched {
        true => format!("buffers != NULL ? buffers->{}_stride : NULL", buffer.identifier),
        false => "NULL".to_string(),
    };
    let size = buffer.ty.bytes();
    let place = match buffer.offset {
        Some(_) => format!(
            "        at->offset[{position}] = at->bytes;\n        \
             at->bytes += ((size_t)elements * {size} + {last}) / {ALIGNMENT} * {ALIGNMENT};\n",
            last = ALIGNMENT - 1
        ),
        None => String::new(),
    };
    format!(
        "    {{\n        const int64_t extent[] = {{{extents}}};\n        \
         static const int order[] = {{{order}}};\n        \
         const int64_t elements = place({dims}, extent, order, {given}, at->stride[{position}]);\n        \
         if (elements <= 0) {{\n            return elements == 0 ? {} : {};\n        }}\n{place}    }}\n",
        error(manifest, "STRIDE"),
        error(manifest, "SIZE")
    )
}

/// The field with the strides of a buffer, for the header; empty if they are fixed.
pub(super) fn stride_field(buffer: &Buffer) -> String {
    match &buffer.layout {
        Some(layout) if layout.pitched && !layout.first.is_empty() => format!(
            "    int64_t {}_stride[{}]; /* in elements, by dimension; all 0 if it is dense */\n",
            buffer.identifier,
            layout.first.len()
        ),
        _ => String::new(),
    }
}

/// The box of a buffer whose sizes vary, for a comment in the header.
pub(super) fn box_text(buffer: &Buffer, layout: &Layout) -> String {
    let ranges = layout.first.iter().zip(&layout.last).enumerate();
    let ranges: Vec<String> =
        ranges.map(|(d, (first, last))| format!("dimension {d} from {first} to {last}")).collect();
    let order: Vec<String> = layout.order.iter().map(usize::to_string).collect();
    let ty = c::type_name(buffer.ty);
    match ranges.is_empty() {
        true => format!("{ty}, one element"),
        false => format!(
            "{ty}; {}; from the fastest dimension to the slowest: {}",
            ranges.join(", "),
            order.join(", ")
        ),
    }
}
