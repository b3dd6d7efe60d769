//! The examples of the notation, and for each what NumPy computes; `generate.py` says how.

use std::path::PathBuf;

use warploom_interp::buffer::Buffer;
use warploom_interp::npy;
use warploom_lang::{Pipeline, Realisation, Value};
use warploom_tensor::{Definition, parse};

/// One example at some sizes, with data.
pub struct Reference {
    pub name: String,
    pub definition: Definition,
    pub pipeline: Pipeline,
    pub request: Realisation,
    /// One buffer per input of the pipeline.
    pub inputs: Vec<Buffer>,
    /// One value per Param of the pipeline.
    pub params: Vec<Value>,
    /// One result per output of the pipeline, and by how much it may be missed.
    pub outputs: Vec<(Buffer, f64)>,
}

/// A file beside the tests of this crate. Tests of other crates read them too.
fn path(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tensor/tests")).join(file)
}

fn contents(file: &str) -> String {
    let path = path(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of an example.
pub fn text(name: &str) -> String {
    contents(&format!("examples/{name}.tc"))
}

/// The examples of the manifest.
pub fn all() -> Vec<Reference> {
    contents("reference/manifest.txt").lines().map(Reference::of).collect()
}

impl Reference {
    /// The example of a line of the manifest.
    fn of(line: &str) -> Reference {
        let (file, fields) = line.split_once(' ').unwrap();
        let name = file.strip_suffix(".tc").unwrap().to_string();
        let field = |name: &str| fields.split(' ').find_map(|field| field.strip_prefix(name)).unwrap();
        let program = parse(file, &text(&name)).unwrap_or_else(|errors| panic!("{errors}"));
        let definition = program.define(Some(field("def="))).unwrap();
        let scalars = pairs(field("scalars="));
        let known = [pairs(field("sizes=")), scalars.clone()].concat();
        let sizes = known.iter().filter(|(name, _)| definition.sizes().contains(name));
        let sizes: Vec<(&str, i64)> = sizes.map(|(name, size)| (*name, *size as i64)).collect();
        let (pipeline, request) =
            definition.realise(&sizes).unwrap_or_else(|errors| panic!("{name}: {errors}"));

        let array = |array: &str| npy::read(path(&format!("reference/data/{name}/{array}.npy"))).unwrap();
        let of = |pairs: &[(&str, f64)], wanted: &str| {
            pairs.iter().find(|(name, _)| *name == wanted).unwrap_or_else(|| panic!("{name}: {wanted}")).1
        };
        let inputs = pipeline.inputs().values().map(|input| array(&input.name)).collect();
        let params = pipeline.params().values();
        let params =
            params.map(|param| Value::from_number(param.ty, of(&scalars, &param.name)).unwrap()).collect();
        let allowed = pairs(field("outputs="));
        let outputs = pipeline.output_names().iter().map(|name| (array(name), of(&allowed, name))).collect();
        Reference { name, definition, pipeline, request, inputs, params, outputs }
    }
}

/// `M:5,K:7` as names and numbers.
fn pairs(text: &str) -> Vec<(&str, f64)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    pairs.map(|(name, number)| (name, number.parse().unwrap())).collect()
}
