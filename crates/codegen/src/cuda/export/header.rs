//! The C header of an exported pipeline.

use warploom_target::ComputeCapability;
use warploom_target::program::Role;

use super::c;
use super::manifest::{Buffer, CodeKind, Compiled, Manifest, Param};
use super::sizes::{box_text, parameter, stride_field, type_of_sizes, vary};
use super::template::fill;
use crate::cuda::names::{Names, in_comment};

/// Prints the header: sizes, types and functions, documented for the user of the C interface.
pub fn header(manifest: &Manifest) -> String {
    let mut macros = Macros { prefix: manifest.name.to_uppercase(), names: Names::local() };
    let devices: Vec<String> = manifest
        .targets()
        .map(|target| format!("{} ({})", in_comment(&target.device), target.arch))
        .collect();
    let example = manifest.given().map(|buffer| format!(" *     buffers.{0} = {0};\n", buffer.identifier));
    let fields = manifest.given().map(|buffer| {
        let address = format!("    CUdeviceptr {}; /* {} */\n", buffer.identifier, kind(buffer));
        address + &stride_field(buffer)
    });
    let strides = manifest.given().filter(|buffer| !stride_field(buffer).is_empty());
    let zeros = strides.map(|buffer| {
        format!(" *     memset(buffers.{0}_stride, 0, sizeof buffers.{0}_stride);\n", buffer.identifier)
    });
    let example: String = example.chain(zeros).collect();
    let given_sizes: Vec<String> =
        manifest.sizes.iter().map(|size| format!(" *     sizes.{0} = {0};\n", size.identifier)).collect();
    let example_sizes = match given_sizes.is_empty() {
        true => String::new(),
        false => format!(" *     {}_sizes sizes;\n", manifest.name) + &given_sizes.concat(),
    };
    let params_argument = match manifest.words_offset {
        Some(_) => "If `params` is NULL, all Params have their default values.",
        None => "There are no Params to give, so `params` is NULL.",
    };
    fill(
        include_str!("template.h"),
        &[
            ("title", in_comment(&manifest.pipeline)),
            ("name", manifest.name.clone()),
            ("NAME", macros.prefix.clone()),
            ("made_by", manifest.made_by.clone()),
            ("devices", devices.join(", ")),
            ("hash", manifest.hash.clone()),
            ("example", example),
            ("example_sizes", example_sizes),
            ("run_sizes", if manifest.sizes.is_empty() { String::new() } else { "&sizes, ".to_string() }),
            ("size_parameter", parameter(manifest)),
            ("only_sizes", only_sizes(manifest)),
            ("sizes_type", type_of_sizes(manifest)),
            ("aligned", aligned(manifest).to_string()),
            ("sizes", manifest.given().map(|buffer| sizes(buffer, &mut macros)).collect()),
            ("errors", errors(manifest)),
            ("fixed", manifest.params.iter().filter_map(|param| fixed(param, &mut macros)).collect()),
            ("fields", fields.collect()),
            ("params", params(manifest)),
            ("code", code(manifest)),
            ("params_argument", params_argument.to_owned()),
            ("run_head", run_head(manifest)),
        ],
    )
}

/// The error codes, and the function that describes them.
fn errors(manifest: &Manifest) -> String {
    let name = &manifest.name;
    fill(include_str!("errors.h"), &[("name", name.clone()), ("NAME", name.to_uppercase())])
}

/// The signature of the function that launches the kernels.
pub(super) fn run_head(manifest: &Manifest) -> String {
    let name = &manifest.name;
    format!(
        "CUresult {name}_run(const {name}_pipeline *pipeline, CUstream stream, CUdeviceptr workspace,\n        \
         {}const {name}_buffers *buffers, const {name}_params *params)",
        parameter(manifest)
    )
}

/// The parameters of a function that takes nothing but the sizes.
pub(super) fn only_sizes(manifest: &Manifest) -> String {
    match manifest.sizes.is_empty() {
        true => "void".to_string(),
        false => format!("const {}_sizes *sizes", manifest.name),
    }
}

/// The alignment of the memory of inputs and outputs, as words after "a multiple of".
pub(super) fn aligned(manifest: &Manifest) -> &'static str {
    match vary(manifest) {
        true => "an element's own size, so that it may be a part of a larger array",
        false => "16 bytes",
    }
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
    if let Some(layout) = &buffer.layout {
        let (kind, name) = (kind(buffer), in_comment(&buffer.name));
        return format!("/* The {kind} `{name}`: {}. */\n\n", box_text(buffer, layout));
    }
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

/// The macro for the value of a Param that is fixed in the kernels.
fn fixed(param: &Param, macros: &mut Macros) -> Option<String> {
    if param.word.is_some() {
        return None;
    }
    let (base, value) = (macros.base(&param.identifier), c::literal(param.value));
    let name = in_comment(&param.name);
    Some(format!(
        "/* The Param `{name}`, fixed: the kernels were made for it. */\n#define {base}_VALUE {value}\n\n"
    ))
}

/// The type of the Params, with their default values and ranges; only its name if all are fixed.
fn params(manifest: &Manifest) -> String {
    let fields = manifest.settable().map(|(param, _)| {
        let range = param.range.map_or(String::new(), |(low, high)| format!(", from {low} to {high}"));
        let (ty, name) = (c::type_name(param.value.ty()), in_comment(&param.name));
        format!("    {ty} {}; /* `{name}`: {} unless changed{range} */\n", param.identifier, param.value)
    });
    let template = match manifest.words_offset {
        Some(_) => include_str!("params.h"),
        None => include_str!("no_params.h"),
    };
    fill(template, &[("name", manifest.name.clone()), ("fields", fields.collect())])
}

/// Describes the code in the source, for a comment.
fn code(manifest: &Manifest) -> String {
    let line = |code: &Compiled| {
        let (arch, ComputeCapability { major, minor }) = (code.arch(), code.compute);
        let which = match code.kind {
            CodeKind::Cubin => {
                format!("machine code for compute capability {major}.{minor} and newer {major}.x")
            }
            CodeKind::Ptx => {
                format!("PTX for other GPUs from {major}.{minor} on, which the driver translates")
            }
        };
        format!("\n *     {arch}: {which}")
    };
    match manifest.code.as_slice() {
        [] => " there is none, so a file must be given.".to_owned(),
        codes => codes.iter().map(line).collect(),
    }
}
