//! Programs and definitions, as users see them.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use warploom_lang::brief::shown;
use warploom_lang::{Pipeline, Range, Realisation, Region, Value, files};

use crate::ast::{Declared, Def, Dim};
use crate::check::{Checked, check};
use crate::error::{DefineError, Errors, Fault, Mistake, Mistakes, counted};
use crate::formula::Numbers;
use crate::lower::pipeline;
use crate::names::{default_value, element_type};
use crate::parser::definitions;
use crate::ranges::{Inferred, infer};
use crate::source::{SourceFile, Span};
use crate::types::type_name;

/// The largest size.
const MAX_SIZE: i64 = 1 << 30;

/// Reads a text and checks everything that does not depend on sizes.
///
/// # Errors
/// All mistakes that were found, with their places in `file_name`.
///
/// ```
/// let text = "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }";
/// let program = warploom_tensor::parse("mv.tc", text)?;
/// assert_eq!(program.definitions(), ["mv"]);
///
/// let errors = warploom_tensor::parse("mv.tc", &text.replace("+=!", "=")).unwrap_err();
/// assert_eq!(errors.position(&errors.list()[0]), (1, 48));
/// # Ok::<(), warploom_tensor::Errors>(())
/// ```
pub fn parse(file_name: &str, text: &str) -> Result<Program, Errors> {
    let source = SourceFile { file: file_name.into(), text: text.into() };
    let mut mistakes = Mistakes::default();
    let defs = trees(&source, &mut mistakes);
    let mut seen = HashSet::new();
    let mut checked = Vec::new();
    for def in defs {
        if !seen.insert(def.name.text.clone()) {
            let fault = Fault::AlreadyDefined { name: def.name.text.clone(), what: "a definition" };
            mistakes.add(def.name.span, fault);
        }
        checked.push(Arc::new(check(def, &mut mistakes)));
    }
    mistakes.into_result(&source)?;
    Ok(Program { source, defs: checked })
}

/// Parses a text into trees, without checking their meaning.
///
/// # Errors
/// All mistakes in the syntax.
pub fn read(file_name: &str, text: &str) -> Result<Vec<Def>, Errors> {
    let source = SourceFile { file: file_name.into(), text: text.into() };
    let mut mistakes = Mistakes::default();
    let defs = trees(&source, &mut mistakes);
    mistakes.into_result(&source)?;
    Ok(defs)
}

/// The definitions of a text that is not too long.
fn trees(source: &SourceFile, mistakes: &mut Mistakes) -> Vec<Def> {
    let bytes = source.text.len();
    if bytes as u64 > files::TEXT.most {
        mistakes.add(Span::default(), Fault::TextTooLong { bytes, most: files::TEXT.most });
        return Vec::new();
    }
    definitions(source, mistakes)
}

/// The definitions of one file.
#[derive(Clone)]
pub struct Program {
    source: SourceFile,
    defs: Vec<Arc<Checked>>,
}

impl Program {
    /// The names of the definitions, in order.
    pub fn definitions(&self) -> Vec<&str> {
        self.defs.iter().map(|checked| checked.def.name.text.as_str()).collect()
    }

    /// The definition with this name; without a name, the only one.
    ///
    /// # Errors
    /// There is no such definition, or more than one.
    pub fn define(&self, name: Option<&str>) -> Result<Definition, DefineError> {
        let file = warploom_lang::visible(&self.source.file).into_owned();
        let known = shown(&self.definitions(), ", ");
        let found = match (name, self.defs.as_slice()) {
            (_, []) => return Err(DefineError::None { file }),
            (None, [only]) => only,
            (None, _) => return Err(DefineError::Several { file, known }),
            (Some(name), defs) => {
                let unknown = || DefineError::Unknown { file, name: name.to_string(), known };
                defs.iter().find(|checked| checked.def.name.text == name).ok_or_else(unknown)?
            }
        };
        Ok(Definition { source: self.source.clone(), checked: found.clone() })
    }

    /// The program as text. Reading it gives the same program.
    pub fn to_text(&self) -> String {
        let texts: Vec<String> = self.defs.iter().map(|checked| checked.def.to_string()).collect();
        texts.join("\n")
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

/// One `def` of a file.
#[derive(Clone)]
pub struct Definition {
    source: SourceFile,
    checked: Arc<Checked>,
}

/// The range of an index, as [`Definition::ranges`] gives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexRange {
    /// The index.
    pub index: String,
    /// The first value, as a formula of sizes.
    pub low: String,
    /// One past the last value, as a formula of sizes.
    pub high: String,
    /// The range at the sizes given.
    pub range: Range,
}

impl fmt::Display for IndexRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}:{}", self.index, self.low, self.high)
    }
}

impl Definition {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.checked.def.name.text
    }

    /// The tree of the definition.
    pub fn tree(&self) -> &Def {
        &self.checked.def
    }

    /// The definition as text. Reading it gives a definition with the same pipelines.
    pub fn to_text(&self) -> String {
        self.checked.def.to_string()
    }

    /// The names that need a number to make a pipeline: sizes in order of appearance, then the integer scalars that
    /// ranges or indices depend on.
    ///
    /// ```
    /// let text = "def shift(float(N) A, int32 by, float c) -> (B) { B(i) = c * A(i + by) where i in 0:4 }";
    /// let definition = warploom_tensor::parse("shift.tc", text)?.define(None).unwrap();
    /// assert_eq!(definition.sizes(), ["N", "by"]);
    /// # Ok::<(), warploom_tensor::Errors>(())
    /// ```
    pub fn sizes(&self) -> Vec<&str> {
        let sizes = self.checked.names.size_order.iter().chain(&self.checked.specialised);
        sizes.map(String::as_str).collect()
    }

    /// The default of one of [`Definition::sizes`], which a caller may then omit.
    ///
    /// ```
    /// let text = "def shift(float(N) A, int32 by = 2) -> (B) { B(i) = A(i + by) where i in 0:N - by }";
    /// let definition = warploom_tensor::parse("shift.tc", text)?.define(None).unwrap();
    /// assert_eq!((definition.default_of("by"), definition.default_of("N")), (Some(2), None));
    /// let (_, request) = definition.realise(&[("N", 9)])?;
    /// assert_eq!(request.outputs[0].as_ref().unwrap().extents(), [7]);
    /// # Ok::<(), warploom_tensor::Errors>(())
    /// ```
    pub fn default_of(&self, size: &str) -> Option<i64> {
        let position = self.checked.names.params.get(size)?;
        default_value(&self.checked.def.params[*position])?.as_int()
    }

    /// The names of its input tensors, as its pipelines call them: `C_in` for the old values of a tensor `C` that is updated in
    /// place.
    pub fn inputs(&self) -> Vec<String> {
        let tensors = self.checked.def.params.iter().filter(|param| !param.ty.dims.is_empty());
        tensors.map(|param| self.checked.names.outside(&param.name.text)).collect()
    }

    /// The sizes that follow from the shapes of tensors, in the notation's order of dimensions.
    ///
    /// # Errors
    /// Shapes that do not fit the parameters or each other.
    ///
    /// ```
    /// let text = "def mv(float(M,K) A, float(K) x) -> (C) { C(i) +=! A(i,k) * x(k) }";
    /// let mv = warploom_tensor::parse("mv.tc", text)?.define(None).unwrap();
    /// let sizes = mv.sizes_of(&[("A", &[3, 5]), ("x", &[5])])?;
    /// assert_eq!(sizes, [("M".to_string(), 3), ("K".to_string(), 5)]);
    /// assert!(mv.sizes_of(&[("A", &[3, 5]), ("x", &[4])]).is_err());
    /// # Ok::<(), warploom_tensor::Errors>(())
    /// ```
    pub fn sizes_of(&self, shapes: &[(&str, &[i64])]) -> Result<Vec<(String, i64)>, Errors> {
        let mut mistakes = Mistakes::default();
        let mut found: HashMap<&str, Extent<'_>> = HashMap::new();
        for (name, shape) in shapes {
            let Some(param) = self.tensor_param(name) else {
                mistakes.add(self.checked.def.name.span, self.no_such_input(name));
                continue;
            };
            let (tensor, dims) = (param.name.text.as_str(), &param.ty.dims);
            if dims.len() != shape.len() {
                let got = counted(shape.len(), "dimension", "dimensions");
                let fault = Fault::ShapeRank { tensor: tensor.to_string(), rank: dims.len(), got };
                mistakes.add(param.name.span, fault);
                continue;
            }
            for (dimension, (dim, &size)) in dims.iter().zip(*shape).enumerate() {
                let extent = Extent { tensor, dimension, size };
                if let Err(mistake) = extent.fits(dim, &mut found) {
                    mistakes.push(mistake);
                }
            }
        }
        mistakes.into_result(&self.source)?;
        let order = self.checked.names.size_order.iter();
        Ok(order.filter_map(|size| Some((size.clone(), found.get(size.as_str())?.size))).collect())
    }

    /// The tensor parameter with this name, or with this name in the pipeline.
    fn tensor_param(&self, name: &str) -> Option<&Declared> {
        let own = |param: &&Declared| {
            param.name.text == name || self.checked.names.outside(&param.name.text) == name
        };
        self.checked.def.params.iter().filter(|param| !param.ty.dims.is_empty()).find(own)
    }

    fn no_such_input(&self, name: &str) -> Fault {
        let tensors = self.checked.def.params.iter().filter(|param| !param.ty.dims.is_empty());
        let known: Vec<&str> = tensors.map(|param| param.name.text.as_str()).collect();
        let definition = self.name().to_string();
        Fault::NoSuchInput { definition, name: name.to_string(), known: list_or_none(&known) }
    }

    /// The ranges of all indices, statement by statement, in order of their names.
    ///
    /// # Errors
    /// As for [`Definition::realise`].
    ///
    /// ```
    /// let text = "def conv(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i+x) }";
    /// let conv = warploom_tensor::parse("conv.tc", text)?.define(None).unwrap();
    /// let ranges = conv.ranges(&[("M", 100), ("N", 5)])?;
    /// assert_eq!(ranges[0][0].to_string(), "i in 0:M - N + 1");
    /// assert_eq!(ranges[0][0].range.extent, 96);
    /// # Ok::<(), warploom_tensor::Errors>(())
    /// ```
    pub fn ranges(&self, sizes: &[(&str, i64)]) -> Result<Vec<Vec<IndexRange>>, Errors> {
        let (inferred, numbers) = self.inferred(sizes)?;
        let shown = |(index, interval): (&String, &crate::ranges::Interval)| {
            let (low, high) = interval.at(&numbers).unwrap_or((0, -1));
            IndexRange {
                index: index.clone(),
                low: interval.low.to_string(),
                high: interval.high.add(1).to_string(),
                range: Range::inclusive(low, high),
            }
        };
        Ok(inferred.statements.iter().map(|ranges| ranges.of.iter().map(shown).collect()).collect())
    }

    /// The pipeline, and a request with the boxes of all inputs and outputs and the scalars that
    /// sizes depend on. Other scalars remain to be given with [`Realisation::param`].
    ///
    /// The pipeline contains sizes as formulas, so the same one serves other sizes, as long as no sign or guard
    /// changes. Index lists are reversed: the last index of the notation, which is the fastest in memory, is the first
    /// of an input or output.
    ///
    /// # Errors
    /// Sizes that are missing or unknown, ranges that do not follow from the reads, are empty or do
    /// not begin at 0, and reads out of bounds.
    ///
    /// ```
    /// let text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }";
    /// let mm = warploom_tensor::parse("mm.tc", text)?.define(None).unwrap();
    /// let (pipeline, request) = mm.realise(&[("M", 8), ("N", 16), ("K", 32)])?;
    /// assert_eq!(request.outputs[0].as_ref().unwrap().extents(), [16, 8]);
    /// assert_eq!(pipeline.to_string(), "\
    /// pipeline mm
    ///   input  A(d0, d1): f32
    ///   input  B(d0, d1): f32
    ///   C.sum(n, m) = 0.0
    ///   C.sum(n, m) = C.sum(n, m) + A(k, m) * B(n, k)  over k in (0, A.extent(0))  in any order
    ///   C(n, m) = C.sum(n, m)
    /// ");
    /// # Ok::<(), warploom_tensor::Errors>(())
    /// ```
    pub fn realise(&self, sizes: &[(&str, i64)]) -> Result<(Pipeline, Realisation), Errors> {
        let (inferred, numbers) = self.inferred(sizes)?;
        let refused = |mistake| Errors::new(&self.source, vec![mistake]);
        let pipeline = pipeline(&self.checked, &inferred).map_err(refused)?;
        let region = |tensor: &str| {
            let shape = inferred.shapes.get(tensor).map(Vec::as_slice).unwrap_or_default();
            let extents = shape.iter().rev().map(|interval| interval.extent().at(&numbers).unwrap_or(0));
            Region::of_extents(&extents.collect::<Vec<i64>>())
        };
        let mut request = Realisation::new(&pipeline);
        for param in &self.checked.def.params {
            let name = &param.name.text;
            let outside = self.checked.names.outside(name);
            // The pipeline has only the inputs that it uses.
            if pipeline.input_named(&outside).is_some() {
                request = request.input(&outside, region(name));
            }
            let number = numbers.get(name).and_then(|number| Value::from_int(element_type(param), *number));
            if let Some(number) = number
                && pipeline.param_named(&outside).is_some()
            {
                request = request.param(&outside, number);
            }
        }
        for result in &self.checked.def.results {
            request = request.output(&result.name.text, region(&result.name.text));
        }
        Ok((pipeline, request))
    }

    fn inferred(&self, sizes: &[(&str, i64)]) -> Result<(Inferred, Numbers), Errors> {
        let mut mistakes = Mistakes::default();
        let numbers = self.numbers(sizes, &mut mistakes);
        mistakes.into_result(&self.source)?;
        let mut mistakes = Mistakes::default();
        let inferred = infer(&self.checked, &numbers, &mut mistakes);
        mistakes.into_result(&self.source)?;
        Ok((inferred, numbers))
    }

    /// The numbers given, checked.
    fn numbers(&self, sizes: &[(&str, i64)], mistakes: &mut Mistakes) -> Numbers {
        let names = &self.checked.names;
        let place = self.checked.def.name.span;
        let mut numbers = Numbers::new();
        for &(name, value) in sizes {
            if !self.sizes().contains(&name) {
                let (definition, known) = (self.name().to_string(), list_or_none(&self.sizes()));
                mistakes.add(place, Fault::NoSuchSize { definition, name: name.to_string(), known });
            } else if let Some(first) = numbers.insert(name.to_string(), value)
                && first != value
            {
                mistakes.add(place, Fault::GivenTwice { name: name.to_string(), first, second: value });
            }
        }
        for name in &names.size_order {
            let span = names.sizes.get(name).map_or(place, |size| size.span);
            match numbers.get(name) {
                None => mistakes.add(span, Fault::MissingSize { name: name.clone() }),
                Some(value) if !(1..=MAX_SIZE).contains(value) => {
                    mistakes.add(span, Fault::BadSize { name: name.clone(), value: *value });
                }
                Some(_) => {}
            }
        }
        for name in &self.checked.specialised {
            let Some(param) = names.params.get(name).map(|position| &self.checked.def.params[*position])
            else {
                continue;
            };
            let ty = element_type(param);
            if let (false, Some(default)) = (numbers.contains_key(name), self.default_of(name)) {
                numbers.insert(name.clone(), default);
            }
            match numbers.get(name) {
                None => mistakes.add(param.name.span, Fault::MissingScalar { name: name.clone() }),
                Some(&value) if Value::from_int(ty, value).is_none() || value.abs() > MAX_SIZE => {
                    let fault = Fault::BadScalar { name: name.clone(), value, ty: type_name(ty) };
                    mistakes.add(param.name.span, fault);
                }
                Some(_) => {}
            }
        }
        self.declared_numbers(mistakes);
        numbers
    }

    /// Checks the sizes that are written as numbers.
    fn declared_numbers(&self, mistakes: &mut Mistakes) {
        for param in &self.checked.def.params {
            for dim in &param.ty.dims {
                if let Dim::Number(value, span) = dim
                    && !(1..=MAX_SIZE).contains(value)
                {
                    mistakes.add(*span, Fault::BadSize { name: param.name.text.clone(), value: *value });
                }
            }
        }
    }
}

/// The size of one dimension of a given tensor.
#[derive(Clone, Copy)]
struct Extent<'a> {
    tensor: &'a str,
    dimension: usize,
    size: i64,
}

impl<'a> Extent<'a> {
    /// Compares the size with its declaration and with other dimensions of the same name.
    fn fits(self, declared: &'a Dim, found: &mut HashMap<&'a str, Extent<'a>>) -> Result<(), Mistake> {
        let Extent { tensor, dimension, size } = self;
        match declared {
            Dim::Number(declared, span) if *declared != size => {
                let (tensor, declared) = (tensor.to_string(), *declared);
                Err(Mistake::new(*span, Fault::DeclaredSize { tensor, dimension, declared, got: size }))
            }
            Dim::Number(..) => Ok(()),
            Dim::Name(name) => match found.entry(&name.text).or_insert(self) {
                first if first.size == size => Ok(()),
                first => {
                    let fault = Fault::SizesDiffer {
                        size: name.text.clone(),
                        t1: first.tensor.to_string(),
                        d1: first.dimension,
                        n1: first.size,
                        t2: tensor.to_string(),
                        d2: dimension,
                        n2: size,
                    };
                    Err(Mistake::new(name.span, fault))
                }
            },
        }
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

fn list_or_none(names: &[&str]) -> String {
    if names.is_empty() { "none".to_string() } else { shown(names, ", ") }
}
