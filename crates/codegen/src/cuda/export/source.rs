//! The C source of an exported pipeline.

use warploom_lang::{Type, Value};
use warploom_target::ComputeCapability;
use warploom_target::program::LaunchStep;

use super::c;
use super::header::{aligned, only_sizes, run_head};
use super::manifest::{ALIGNMENT, Argument, CodeKind, Compiled, Kernel, Manifest, Number};
use super::sizes;
use super::template::fill;
use crate::cuda::names::in_comment;

/// Bytes of embedded code per line.
const BYTES_A_LINE: usize = 24;

/// A C function that returns the bit pattern of a float.
const BITS_OF: &str = include_str!("bits_of.c");
const BITS_OF_DOUBLE: &str = include_str!("bits_of_double.c");

/// Finds out whether a kernel that waits can be launched early.
const FIND_EARLY: &str = "        if (result == CUDA_SUCCESS && waits[i]) {
            result = find_early(*function, &pipeline->early[i]);
        }
";

/// Prints the definitions of the functions that [`header`](super::header()) declares. `code` is the content of each
/// file of [`Manifest::code`], which is embedded. If there is none, the user has to supply a file.
pub fn source(manifest: &Manifest, code: &[&[u8]]) -> String {
    let name = &manifest.name;
    let load_own = match code {
        [] => "CUDA_ERROR_FILE_NOT_FOUND",
        _ => "load_own(&pipeline->module)",
    };
    let numbers = manifest.kernels.iter().map(|kernel| format!("    {},\n", c::kernel(&kernel.entry)));
    let kernels = manifest.kernels.iter().map(|kernel| {
        let Kernel { entry, grid: [x, y, z], threads, dynamic_shared_bytes, .. } = kernel;
        format!("    {{\"{entry}\", {{{x}, {y}, {z}}}, {threads}, {dynamic_shared_bytes}}},\n")
    });
    // A program of one launch needs no chaining.
    let chained = |text: &str| if is_chained(manifest) { text.to_string() } else { String::new() };
    fill(
        include_str!("template.c"),
        &[
            ("early_field", chained("    bool early[kernel_count];\n")),
            ("early", chained(&early(manifest))),
            ("find_early", chained(FIND_EARLY)),
            ("follows", chained(", bool follows")),
            ("launch_early", chained(include_str!("launch_early.c"))),
            ("title", in_comment(&manifest.pipeline)),
            ("name", name.clone()),
            ("NAME", name.to_uppercase()),
            ("errors", errors(manifest)),
            ("numbers", numbers.collect()),
            ("kernels", kernels.collect()),
            ("code", embedded(&manifest.code, code)),
            ("load_own", load_own.to_string()),
            ("layout", sizes::functions(manifest)),
            ("only_sizes", only_sizes(manifest)),
            ("size_parameter", sizes::parameter(manifest)),
            ("pass_sizes", if manifest.sizes.is_empty() { String::new() } else { "sizes".to_string() }),
            ("workspace_bytes", workspace_bytes(manifest)),
            ("allocatable", allocatable(manifest)),
            ("lay_out", lay_out(manifest)),
            ("params", params(manifest)),
            ("run_head", run_head(manifest) + "\n"),
            (
                "or_no_sizes",
                if manifest.sizes.is_empty() { String::new() } else { " || sizes == NULL".to_string() },
            ),
            ("usable", usable(manifest)),
            ("values", values(manifest)),
            ("locals", locals(manifest)),
            ("launches", launches(manifest, &manifest.launches, 0, &mut manifest.loop_counts.iter())),
        ],
    )
}

/// Whether kernels may be launched before their predecessor has ended.
fn is_chained(manifest: &Manifest) -> bool {
    manifest.kernels.iter().any(|kernel| kernel.waits)
}

/// Which kernels may be launched early, and the function that asks the driver whether they can.
fn early(manifest: &Manifest) -> String {
    let waits: Vec<String> = manifest.kernels.iter().map(|kernel| kernel.waits.to_string()).collect();
    fill(include_str!("early.c"), &[("waits", waits.join(", "))])
}

/// The code as C arrays, and the function that loads the right one; empty if there is no code.
fn embedded(compiled: &[Compiled], code: &[&[u8]]) -> String {
    if code.is_empty() {
        return String::new();
    }
    let pieces = || compiled.iter().zip(code);
    let rows = pieces().map(|(compiled, _)| {
        let ComputeCapability { major, minor } = compiled.compute;
        let is_ptx = compiled.kind == CodeKind::Ptx;
        format!("    {{{is_ptx}, {major}, {minor}, code_{}}},\n", compiled.arch())
    });
    let loader =
        fill(include_str!("load.c"), &[("count", code.len().to_string()), ("codes", rows.collect())]);
    pieces().map(|(compiled, code)| array(compiled, code)).collect::<String>() + &loader
}

/// One piece of code as a C array. Text ends with a NUL byte, as the driver requires.
fn array(compiled: &Compiled, code: &[u8]) -> String {
    let end: &[u8] = if compiled.kind == CodeKind::Ptx { &[0] } else { &[] };
    let lines = [code, end].concat();
    let lines = lines.chunks(BYTES_A_LINE).map(|bytes| {
        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
        format!("    {},\n", bytes.join(","))
    });
    format!(
        "static const unsigned char code_{}[] = {{\n{}}};\n\n",
        compiled.arch(),
        lines.collect::<String>()
    )
}

/// The functions that handle Params; empty if all Params are fixed.
fn params(manifest: &Manifest) -> String {
    if manifest.words_offset.is_none() {
        return String::new();
    }
    let defaults = manifest
        .settable()
        .map(|(param, _)| format!("    params.{} = {};\n", param.identifier, c::literal(param.value)));
    let types: Vec<Type> = manifest.params.iter().map(|param| param.value.ty()).collect();
    let words = manifest.settable().map(|(param, word)| {
        let ty = param.value.ty();
        let name = format!("params->{}", param.identifier);
        let bits = match ty {
            Type::F32 => format!("bits_of({name})"),
            Type::F64 => format!("bits_of_double({name})"),
            _ => name,
        };
        let mut words = match ty {
            Type::F32 => format!("        {{{word}, {bits}}},\n"),
            _ => format!("        {{{word}, (uint32_t){bits}}},\n"),
        };
        if ty.is_wide() {
            let upper = Value::upper_word(&types, word as usize);
            words += &format!("        {{{upper}, (uint32_t)((uint64_t){bits} >> 32)}},\n");
        }
        words
    });
    let name = || ("name", manifest.name.clone());
    let in_range = match conditions(manifest).as_slice() {
        [] => String::new(),
        conditions => {
            fill(include_str!("in_range.c"), &[name(), ("conditions", conditions.join("\n        && "))])
        }
    };
    // Compilers warn about unused static functions.
    let has = |ty: Type| manifest.settable().any(|(param, _)| param.value.ty() == ty);
    let bits_of = [(Type::F32, BITS_OF), (Type::F64, BITS_OF_DOUBLE)]
        .into_iter()
        .filter_map(|(ty, text)| has(ty).then_some(text));
    fill(
        include_str!("params.c"),
        &[
            name(),
            ("defaults", defaults.collect()),
            ("bits_of", bits_of.collect()),
            ("in_range", in_range),
            ("words", words.collect()),
        ],
    )
}

/// The conditions that the Params of a run must meet. NaN meets none.
fn conditions(manifest: &Manifest) -> Vec<String> {
    let ranges = manifest
        .settable()
        .filter_map(|(param, _)| Some(c::in_range(&format!("params->{}", param.identifier), param.range?)));
    ranges.flatten().collect()
}

/// The Params of a run, checked before anything is written.
fn values(manifest: &Manifest) -> String {
    let name = &manifest.name;
    let fixed = !sizes::vary(manifest);
    let unused = if manifest.workspace_bytes == 0 && fixed { "    (void)workspace;\n" } else { "" };
    if manifest.words_offset.is_none() {
        return format!("    (void)params;\n{unused}");
    }
    let values = format!("    {name}_params values = params != NULL ? *params : {name}_default_params();\n");
    match conditions(manifest).is_empty() {
        true => values,
        false => {
            let code = error(manifest, "PARAM");
            format!("{values}    if (!in_range(&values)) {{\n        return {code};\n    }}\n")
        }
    }
}

/// The code of an error.
pub(super) fn error(manifest: &Manifest, kind: &str) -> String {
    format!("{}_ERROR_{kind}", manifest.name.to_uppercase())
}

/// The function that describes errors.
fn errors(manifest: &Manifest) -> String {
    fill(
        include_str!("errors.c"),
        &[
            ("name", manifest.name.clone()),
            ("NAME", manifest.name.to_uppercase()),
            ("aligned", aligned(manifest).to_string()),
            ("alignment", ALIGNMENT.to_string()),
        ],
    )
}

/// Refuses memory that kernels cannot access.
fn usable(manifest: &Manifest) -> String {
    let workspace = match sizes::vary(manifest) {
        true => Some(format!("at.bytes > 0 ? usable(workspace, {ALIGNMENT}) : CUDA_SUCCESS")),
        false => (manifest.workspace_bytes > 0).then(|| format!("usable(workspace, {ALIGNMENT})")),
    };
    let buffers = manifest.given().map(|buffer| {
        let alignment = if buffer.layout.is_some() { buffer.ty.bytes() } else { 16 };
        format!("usable(buffers->{}, {alignment})", buffer.identifier)
    });
    let checks = workspace.into_iter().chain(buffers);
    checks
        .map(|check| {
            format!(
                "    result = {check};\n    if (result != CUDA_SUCCESS) {{\n        return result;\n    }}\n"
            )
        })
        .collect()
}

/// The body of the function that returns the size of a workspace.
fn workspace_bytes(manifest: &Manifest) -> String {
    if !sizes::vary(manifest) {
        return format!("    return {};\n", manifest.workspace_bytes);
    }
    let (none, pass) = match manifest.sizes.is_empty() {
        true => ("", ""),
        false => ("sizes != NULL && ", "sizes, "),
    };
    let call = format!("lay_out({pass}NULL, &at) == CUDA_SUCCESS");
    format!("    layout at;\n    return {none}{call} ? at.bytes : 0;\n")
}

/// Refuses a null result pointer, and sizes that cannot be used.
fn allocatable(manifest: &Manifest) -> String {
    let null = error(manifest, "NULL");
    let refuse = |condition: &str| format!("    if ({condition}) {{\n        return {null};\n    }}\n");
    match manifest.sizes.is_empty() {
        true => refuse("workspace == NULL"),
        false => {
            let checked = "    layout at;\n    CUresult result = lay_out(sizes, NULL, &at);\n    \
                           if (result != CUDA_SUCCESS) {\n        return result;\n    }\n";
            refuse("workspace == NULL || sizes == NULL") + checked
        }
    }
}

/// Lays out the buffers of a run, if that is not fixed.
fn lay_out(manifest: &Manifest) -> String {
    if !sizes::vary(manifest) {
        return String::new();
    }
    let pass = if manifest.sizes.is_empty() { "" } else { "sizes, " };
    format!(
        "    layout at;\n    result = lay_out({pass}buffers, &at);\n    if (result != CUDA_SUCCESS) {{\n        \
         return result;\n    }}\n{}{}",
        sizes::size_locals(manifest),
        sizes::value_locals(manifest)
    )
}

/// One variable for each pointer that a kernel takes, and the Params in the workspace.
fn locals(manifest: &Manifest) -> String {
    let taken = |position| {
        let argument = Argument::Buffer(position);
        manifest.kernels.iter().any(|kernel| kernel.arguments.contains(&argument))
    };
    let mut text = String::new();
    for (position, buffer) in manifest.buffers.iter().enumerate().filter(|(position, _)| taken(*position)) {
        let name = &buffer.identifier;
        let place = match buffer.offset {
            Some(_) if buffer.layout.is_some() => format!("workspace + at.offset[{position}]"),
            Some(offset) => format!("workspace + {offset}"),
            None => format!("buffers->{name}"),
        };
        text += &format!("    CUdeviceptr {name} = {place};\n");
    }
    if is_chained(manifest) {
        text += "    int launched = 0;\n";
    }
    text + &match manifest.words_offset {
        Some(offset) => format!(
            "    CUdeviceptr words = workspace + {};\n    \
             result = set_words(words, stream, &values);\n    \
             if (result != CUDA_SUCCESS) {{\n        return result;\n    }}\n",
            if sizes::vary(manifest) { "at.words".to_string() } else { offset.to_string() }
        ),
        None => String::new(),
    }
}

/// The launches in order, inside `level` loops. `counts` are those of the loops still to come.
fn launches<'m>(
    manifest: &Manifest,
    steps: &[LaunchStep],
    level: usize,
    counts: &mut impl Iterator<Item = &'m Option<String>>,
) -> String {
    let indent = "    ".repeat(level + 1);
    let follows = if is_chained(manifest) { ", launched++ > 0" } else { "" };
    let mut text = String::new();
    for step in steps {
        match step {
            LaunchStep::Launch(kernel) => {
                let kernel = &manifest.kernels[*kernel];
                let entry = c::kernel(&kernel.entry);
                let arguments = kernel.arguments.iter().map(|argument| match argument {
                    Argument::Buffer(position) => format!("&{}", manifest.buffers[*position].identifier),
                    Argument::Words => "&words".to_string(),
                    Argument::Iteration(level) => format!("&{}", c::iteration(*level)),
                    Argument::Number(position) => format!("&numbers[{position}]"),
                });
                let arguments = arguments.collect::<Vec<String>>().join(", ");
                text += &format!(
                    "{indent}{{\n\
                     {}\
                     {indent}    void *arguments[] = {{{arguments}}};\n\
                     {indent}    result = launch(pipeline, stream, {entry}, {}, {}, arguments{follows});\n\
                     {indent}}}\n\
                     {indent}if (result != CUDA_SUCCESS) {{\n{indent}    return result;\n{indent}}}\n",
                    numbers(kernel, &indent),
                    if kernel.blocks.is_some() {
                        "grid".to_string()
                    } else {
                        format!("kernels[{entry}].grid")
                    },
                    match &kernel.shared {
                        Some(bytes) => format!("(unsigned int)({bytes})"),
                        None => format!("kernels[{entry}].dynamic_shared_bytes"),
                    }
                );
            }
            LaunchStep::Loop { count, body } => {
                let i = c::iteration(level);
                let end = counts.next().cloned().flatten().unwrap_or_else(|| count.to_string());
                text += &format!("{indent}for (int {i} = 0; {i} < {end}; {i}++) {{\n");
                text += &launches(manifest, body, level + 1, counts);
                text += &format!("{indent}}}\n");
            }
        }
    }
    text
}

/// The grid and the numbers of a launch that follow from the sizes and strides.
fn numbers(kernel: &Kernel, indent: &str) -> String {
    let mut text = String::new();
    if let Some([x, y, z]) = &kernel.blocks {
        text += &format!(
            "{indent}    const unsigned int grid[3] = {{(unsigned int)({x}), (unsigned int)({y}), (unsigned int)({z})}};\n"
        );
    }
    let numbers = kernel.numbers.iter().map(|number| match number {
        Number::Formula(formula) => format!("(int)({formula})"),
        Number::Stride(buffer, dimension) => format!("(int)at.stride[{buffer}][{dimension}]"),
    });
    match kernel.numbers.is_empty() {
        true => text,
        false => {
            text + &format!("{indent}    int numbers[] = {{{}}};\n", numbers.collect::<Vec<_>>().join(", "))
        }
    }
}
