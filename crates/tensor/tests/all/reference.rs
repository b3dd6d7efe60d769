//! Texts in the notation, and for each what NumPy computes; `tests/reference/generate.py` says how.

use std::path::PathBuf;

use warploom_interp::buffer::Buffer;
use warploom_interp::npy;
use warploom_lang::{Pipeline, Realisation, Value};
use warploom_tensor::{Definition, Program, parse};

/// One definition at some sizes, with data.
pub struct Reference {
    /// The file of the text.
    pub file: String,
    /// The name of the case, which tells it from others of the definition.
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

/// A folder with texts, and what belongs to it here: `NAME.txt` and `data/NAME`.
#[derive(Clone, Copy)]
pub enum Folder {
    /// The examples of the notation.
    Examples,
    /// The operators of the suite.
    Operators,
}

/// A file of the tests of this crate, or beside them. Tests of other crates read them too.
fn path(file: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tensor/tests")).join(file)
}

fn contents(path: PathBuf) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Folder {
    fn name(self) -> &'static str {
        match self {
            Folder::Examples => "examples",
            Folder::Operators => "operators",
        }
    }

    /// Where the texts are.
    pub fn path(self) -> PathBuf {
        match self {
            Folder::Examples => path("examples"),
            Folder::Operators => path("../../../apps/operators"),
        }
    }

    /// A file's text.
    pub fn text(self, file: &str) -> String {
        contents(self.path().join(file))
    }

    /// A file's definitions.
    pub fn program(self, file: &str) -> Program {
        parse(file, &self.text(file)).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The cases of the manifest.
    pub fn references(self) -> Vec<Reference> {
        let manifest = contents(path(&format!("reference/{}.txt", self.name())));
        manifest.lines().map(|line| Reference::of(self, line)).collect()
    }
}

impl Reference {
    /// The case of a line of the manifest.
    fn of(folder: Folder, line: &str) -> Reference {
        let (file, fields) = line.split_once(' ').unwrap();
        let field = |name: &str| fields.split(' ').find_map(|field| field.strip_prefix(name)).unwrap();
        let name = field("case=").to_string();
        let program = folder.program(file);
        let definition = program.define(Some(field("def="))).unwrap();
        let scalars = pairs(field("scalars="));
        let known = [pairs(field("sizes=")), scalars.clone()].concat();
        let sizes = known.iter().filter(|(name, _)| definition.sizes().contains(name));
        let sizes: Vec<(&str, i64)> = sizes.map(|(name, size)| (*name, *size as i64)).collect();
        let (pipeline, request) =
            definition.realise(&sizes).unwrap_or_else(|errors| panic!("{name}: {errors}"));

        let data = path(&format!("reference/data/{}/{name}", folder.name()));
        let array = |array: &str| npy::read(data.join(format!("{array}.npy"))).unwrap();
        let of = |pairs: &[(&str, f64)], wanted: &str| {
            pairs.iter().find(|(name, _)| *name == wanted).unwrap_or_else(|| panic!("{name}: {wanted}")).1
        };
        let inputs = pipeline.inputs().values().map(|input| array(&input.name)).collect();
        let params = pipeline.params().values();
        let params =
            params.map(|param| Value::from_number(param.ty, of(&scalars, &param.name)).unwrap()).collect();
        let allowed = pairs(field("outputs="));
        let outputs = pipeline.output_names().iter().map(|name| (array(name), of(&allowed, name))).collect();
        Reference { file: file.to_string(), name, definition, pipeline, request, inputs, params, outputs }
    }
}

/// `M:5,K:7` as names and numbers.
fn pairs(text: &str) -> Vec<(&str, f64)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once(':'));
    pairs.map(|(name, number)| (name, number.parse().unwrap())).collect()
}
