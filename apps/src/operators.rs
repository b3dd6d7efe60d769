//! The set of operators: definitions in the notation of Tensor Comprehensions (`apps/operators/*.tc`) at the sizes that papers on
//! tensor compilers use.
//!
//! ```
//! use warploom_apps::operators::operators;
//!
//! let all = operators();
//! let row = all.iter().find(|row| row.name == "C2D C13").ok_or("no such row")?;
//! assert_eq!(row.shape, "1x1024x14x14 * 1024x1024x3x3");
//! assert_eq!(row.app().name, "C2D C13 1x1024x14x14 * 1024x1024x3x3");
//! # Ok::<(), &str>(())
//! ```

mod convolutions;
mod definitions;
mod networks;
mod products;

use warploom::app::{App, InputRequest, Settings};
use warploom::interp::buffer::Buffer;
use warploom::lang::Type;

use crate::natural;
use definitions::Defined;

pub use networks::{NETWORKS, Network};

/// Checks of all rows take minutes even so, and every row is also checked at its full size.
const CHECK_POINTS: u64 = 1_000_000;

/// A row of the set: a definition at some sizes.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Rows of one family are averaged before families are.
    pub family: &'static str,
    /// The name, which rows of one family can share.
    pub name: String,
    /// The sizes, as times of other systems are recorded under. No two rows have the same name and shape.
    pub shape: String,
    defined: &'static Defined,
    sizes: Vec<(&'static str, i64)>,
}

/// All rows, family by family.
pub fn operators() -> Vec<Operator> {
    let mut all = products::rows();
    all.extend(convolutions::rows());
    all.extend(networks::rows());
    all
}

impl Operator {
    /// The row as an app, whose sizes are those of its definition.
    ///
    /// # Panics
    /// If the definition and the sizes do not fit each other, which is a bug in this crate.
    pub fn app(&self) -> App {
        let Defined { file, text, def, operations, indices } = *self.defined;
        let realised = || {
            let definition = warploom::tensor::parse(file, text)?.define(Some(def))?;
            let (pipeline, request) = definition.realise(&self.sizes)?;
            Ok::<_, Box<dyn std::error::Error>>(App::of_definition(
                definition,
                &self.sizes,
                &pipeline,
                &request,
            ))
        };
        let mut app = match realised() {
            Ok(app) => app.operations(operations).check_points(CHECK_POINTS),
            Err(error) => panic!("{} {}: {error}", self.name, self.shape),
        };
        app.name = format!("{} {}", self.name, self.shape);
        match indices {
            Some(end) => app.inputs(move |request| input(request, end)),
            None => app,
        }
    }

    /// Whether it reads all of its inputs. A lookup reads some rows of its tables.
    pub fn reads_all(&self) -> bool {
        !matches!(self.defined.def, "lut" | "lut2")
    }

    /// The number of arithmetic operations: a product and a sum of it count as two.
    pub fn operations(&self) -> f64 {
        (self.defined.operations)(&Settings::defaults(&self.app()))
    }
}

/// Noise, but for integers, which are indices below `end`.
fn input(request: &InputRequest<'_>, end: fn(&str, &Settings) -> i64) -> Buffer {
    if request.ty == Type::I32 {
        return natural::indices(&request.region, end(request.name, request.settings), request.own_seed());
    }
    match request.noise() {
        Ok(buffer) => buffer,
        Err(error) => panic!("{error}"),
    }
}

/// A row, with sizes in the order of `names`.
fn row<const N: usize>(
    (family, name, shape): (&'static str, &str, String),
    defined: &'static Defined,
    names: [&'static str; N],
    sizes: [i64; N],
) -> Operator {
    let sizes = names.into_iter().zip(sizes).collect();
    Operator { family, name: name.to_owned(), shape, defined, sizes }
}

#[cfg(test)]
mod tests;
