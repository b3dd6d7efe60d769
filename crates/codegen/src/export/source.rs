//! The C source of an exported pipeline.

use warploom_lang::Type;
use warploom_target::program::{Code, Step};

use super::c;
use super::header::set_params_head;
use super::manifest::{Argument, Kernel, Manifest};
use super::template::fill;
use crate::cuda::names::in_comment;

/// Bytes of embedded code per line.
const BYTES_A_LINE: usize = 24;

/// A C function that returns the bit pattern of a float.
const BITS_OF: &str = include_str!("bits_of.c");

/// Prints the definitions of what [`header`](super::header()) declares. The source embeds `code` if
/// it is compiled; otherwise the user has to supply a file.
pub fn source(manifest: &Manifest, code: Option<&Code>) -> String {
    let name = &manifest.name;
    let code = code.map_or_else(Vec::new, loadable);
    let load_own = match code.is_empty() {
        true => "CUDA_ERROR_FILE_NOT_FOUND",
        false => "cuModuleLoadData(&pipeline->module, code)",
    };
    let numbers = manifest.kernels.iter().map(|kernel| format!("    {},\n", c::kernel(&kernel.entry)));
    let kernels = manifest.kernels.iter().map(|kernel| {
        let Kernel { entry, grid: [x, y, z], threads, dynamic_shared_bytes, .. } = kernel;
        format!("    {{\"{entry}\", {{{x}, {y}, {z}}}, {threads}, {dynamic_shared_bytes}}},\n")
    });
    fill(
        include_str!("template.c"),
        &[
            ("title", in_comment(&manifest.pipeline)),
            ("name", name.clone()),
            ("numbers", numbers.collect()),
            ("kernels", kernels.collect()),
            ("code", array(manifest, &code)),
            ("load_own", load_own.to_string()),
            ("allocate", allocate(manifest)),
            ("set_params", set_params(manifest)),
            ("or_unusable", unusable(manifest)),
            ("locals", locals(manifest)),
            ("launches", launches(manifest, &manifest.launches, 0)),
        ],
    )
}

/// The code as the driver loads it: text ends with a NUL byte. Empty for code that must be compiled
/// first or consists of several parts.
fn loadable(code: &Code) -> Vec<u8> {
    match code {
        Code::Cubin(bytes) => bytes.clone(),
        Code::Ptx(text) => text.bytes().chain([0]).collect(),
        Code::Source { .. } | Code::Parts(_) => Vec::new(),
    }
}

/// The code as a C array.
fn array(manifest: &Manifest, code: &[u8]) -> String {
    if code.is_empty() {
        return String::new();
    }
    let arch = manifest.code.as_ref().map_or(&manifest.arch, |compiled| &compiled.arch);
    let lines = code.chunks(BYTES_A_LINE).map(|bytes| {
        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
        format!("    {},\n", bytes.join(","))
    });
    let lines: String = lines.collect();
    format!("/* The kernels, compiled for {arch}. */\nstatic const unsigned char code[] = {{\n{lines}}};\n\n")
}

/// Allocates the workspace and sets the Params, if there are any.
fn allocate(manifest: &Manifest) -> String {
    let name = &manifest.name;
    let mut steps = Vec::new();
    if manifest.workspace_bytes > 0 {
        steps.push(format!("cuMemAlloc(&pipeline->workspace, {}_WORKSPACE_BYTES)", name.to_uppercase()));
    }
    let values: String =
        manifest.settable().map(|(param, _)| format!(", {}", c::literal(param.value))).collect();
    if manifest.words_offset.is_some() {
        steps.push(format!("{name}_set_params(pipeline, NULL{values})"));
        // Other streams do not wait for this one.
        steps.push("cuStreamSynchronize(NULL)".to_string());
    }
    each_after_success(steps.into_iter())
}

/// Makes each call only if the previous one succeeded.
fn each_after_success(calls: impl Iterator<Item = String>) -> String {
    let call = |call| format!("    if (result == CUDA_SUCCESS) {{\n        result = {call};\n    }}\n");
    calls.map(call).collect()
}

/// The function that sets Params; empty if all Params are fixed.
fn set_params(manifest: &Manifest) -> String {
    let Some(offset) = manifest.words_offset else { return String::new() };
    let has_floats = manifest.settable().any(|(param, _)| param.value.ty() == Type::F32);
    let ranges =
        manifest.settable().filter_map(|(param, _)| Some(c::in_range(&param.identifier, param.range?)));
    // Phrased so that NaN counts as out of range.
    let outside = ranges.flatten().map(|condition| format!("\n        || !({condition})"));
    let calls = manifest.settable().map(|(param, word)| match param.value.ty() {
        Type::F32 => format!("set_word(pipeline, stream, {word}, bits_of({}))", param.identifier),
        _ => format!("set_word(pipeline, stream, {word}, (uint32_t){})", param.identifier),
    });
    fill(
        include_str!("set_params.c"),
        &[
            // Compilers warn about unused static functions.
            ("bits_of", if has_floats { BITS_OF.to_string() } else { String::new() }),
            ("name", manifest.name.clone()),
            ("offset", offset.to_string()),
            ("head", set_params_head(manifest) + "\n"),
            ("or_outside", outside.collect()),
            ("set_words", each_after_success(calls)),
        ],
    )
}

/// The conditions under which a buffer cannot be used by the kernels.
fn unusable(manifest: &Manifest) -> String {
    manifest
        .given()
        .map(|buffer| format!("\n        || !is_usable(buffers->{})", buffer.identifier))
        .collect()
}

/// One variable for each pointer that a kernel takes.
fn locals(manifest: &Manifest) -> String {
    let taken = |argument| manifest.kernels.iter().any(|kernel| kernel.arguments.contains(&argument));
    let mut text = String::new();
    for (position, buffer) in manifest.buffers.iter().enumerate() {
        let name = &buffer.identifier;
        let place = match buffer.offset {
            Some(offset) => format!("pipeline->workspace + {offset}"),
            None => format!("buffers->{name}"),
        };
        if taken(Argument::Buffer(position)) {
            text += &format!("    CUdeviceptr {name} = {place};\n");
        }
    }
    match manifest.words_offset {
        Some(offset) if taken(Argument::Words) => {
            text + &format!("    CUdeviceptr words = pipeline->workspace + {offset};\n")
        }
        _ => text,
    }
}

/// The launches in order, inside `level` loops.
fn launches(manifest: &Manifest, steps: &[Step], level: usize) -> String {
    let indent = "    ".repeat(level + 1);
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Launch(kernel) => {
                let kernel = &manifest.kernels[*kernel];
                let arguments = kernel.arguments.iter().map(|argument| match argument {
                    Argument::Buffer(position) => format!("&{}", manifest.buffers[*position].identifier),
                    Argument::Words => "&words".to_string(),
                    Argument::Iteration(level) => format!("&{}", c::iteration(*level)),
                });
                let arguments = arguments.collect::<Vec<String>>().join(", ");
                text += &format!(
                    "{indent}result = launch(pipeline, stream, {},\n\
                     {indent}                (void *[]){{{arguments}}});\n\
                     {indent}if (result != CUDA_SUCCESS) {{\n{indent}    return result;\n{indent}}}\n",
                    c::kernel(&kernel.entry)
                );
            }
            Step::Loop { count, body } => {
                let i = c::iteration(level);
                text += &format!("{indent}for (int {i} = 0; {i} < {count}; {i}++) {{\n");
                text += &launches(manifest, body, level + 1);
                text += &format!("{indent}}}\n");
            }
        }
    }
    text
}
