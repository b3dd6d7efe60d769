//! The C header of an exported pipeline.

use warploom_target::program::Role;

use super::c;
use super::manifest::{Buffer, Manifest, Param};
use super::template::fill;
use crate::cuda::names::{Names, in_comment};

/// Prints the header: sizes, types and functions, documented for the user of the C interface.
pub fn header(manifest: &Manifest) -> String {
    let mut macros = Macros { prefix: manifest.name.to_uppercase(), names: Names::local() };
    // The header's own sizes come first, so that no buffer takes their name.
    macros.base("workspace");
    let example: Vec<String> =
        manifest.given().map(|buffer| format!(".{0} = {0}", buffer.identifier)).collect();
    let fields: String = manifest
        .given()
        .map(|buffer| format!("    CUdeviceptr {}; /* {} */\n", buffer.identifier, kind(buffer)))
        .collect();
    fill(
        include_str!("template.h"),
        &[
            ("title", in_comment(&manifest.pipeline)),
            ("name", manifest.name.clone()),
            ("NAME", macros.prefix.clone()),
            ("made_by", manifest.made_by.clone()),
            ("device", in_comment(&manifest.device)),
            ("arch", manifest.arch.clone()),
            ("hash", manifest.hash.clone()),
            ("example", example.join(", ")),
            ("sizes", manifest.given().map(|buffer| sizes(buffer, &mut macros)).collect()),
            ("workspace", manifest.workspace_bytes.to_string()),
            ("values", values(&manifest.params, &mut macros)),
            ("fields", fields),
            ("set_params", set_params(manifest)),
        ],
    )
}

/// Macro names. They stay distinct when case is ignored.
struct Macros {
    prefix: String,
    names: Names,
}

impl Macros {
    /// The common prefix of the macros of one buffer or Param.
    fn base(&mut self, name: &str) -> String {
        format!("{}_{}", self.prefix, self.names.take(&name.to_uppercase()))
    }
}

fn kind(buffer: &Buffer) -> &'static str {
    if matches!(buffer.role, Role::Input(_)) { "input" } else { "output" }
}

/// The macros for the sizes of a buffer.
fn sizes(buffer: &Buffer, macros: &mut Macros) -> String {
    let base = macros.base(&buffer.identifier);
    let ty = c::type_name(buffer.ty);
    let mut text = format!("/* The {} `{}`: {ty}. */\n", kind(buffer), in_comment(&buffer.name));
    text += &format!("#define {base}_BYTES {}\n", buffer.bytes);
    for (d, dimension) in buffer.dimensions.iter().enumerate() {
        let numbers = [("MIN", dimension.min), ("EXTENT", dimension.extent), ("STRIDE", dimension.stride)];
        for (what, number) in numbers {
            let number = if number < 0 { format!("({number})") } else { number.to_string() };
            text += &format!("#define {base}_{what}_{d} {number}\n");
        }
    }
    text + "\n"
}

/// The macros for the values of the Params.
fn values(params: &[Param], macros: &mut Macros) -> String {
    let each = params.iter().map(|param| {
        let until = match param.word {
            Some(_) => "until set_params changes it",
            None => "fixed: the kernels were made for it",
        };
        let base = macros.base(&param.identifier);
        format!(
            "/* The Param `{}`, {until}. */\n#define {base}_VALUE {}\n\n",
            in_comment(&param.name),
            c::literal(param.value)
        )
    });
    each.collect()
}

/// The declaration of the function that sets Params; empty if all Params are fixed.
fn set_params(manifest: &Manifest) -> String {
    if manifest.words_offset.is_none() {
        return String::new();
    }
    let bounded = manifest.settable().filter_map(|(param, _)| {
        let (low, high) = param.range?;
        Some(format!("\n * {} from {low} to {high}", param.identifier))
    });
    let bounded: String = bounded.collect();
    let ranges = match bounded.as_str() {
        "" => String::new(),
        bounded => format!("\n * Refuses, with CUDA_ERROR_INVALID_VALUE, what is not in its range:{bounded}"),
    };
    let head = set_params_head(manifest);
    format!(
        "/* Sets the Params of all runs that come later on the stream. Captured graphs see the new values \
         too.{ranges} */\n{head};\n\n"
    )
}

/// The signature of that function.
pub(super) fn set_params_head(manifest: &Manifest) -> String {
    let name = &manifest.name;
    let argument =
        |(param, _): (&Param, u32)| format!("{} {}", c::type_name(param.value.ty()), param.identifier);
    let arguments: Vec<String> = manifest.settable().map(argument).collect();
    let arguments = arguments.join(", ");
    format!("CUresult {name}_set_params({name}_pipeline *pipeline, CUstream stream,\n        {arguments})")
}
