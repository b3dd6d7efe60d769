//! Tensor Comprehensions as pipelines.
//!
//! A text in the notation of Tensor Comprehensions defines the elements of tensors. The ranges of its indices follow
//! from the shapes of the tensors that it reads. [`parse`] reads a text, [`Program::define`] chooses a definition, and
//! [`Definition::realise`] makes a [`Pipeline`](warploom_lang::Pipeline) out of it, with the boxes of its inputs and
//! outputs.
//!
//! ```
//! let text = "
//!     ## A layer with a bias, and then everything below 0 is 0.
//!     def layer(float(B,M) I, float(N,M) W, float(N) C) -> (O) {
//!         O(b,n) +=! I(b,m) * W(n,m)
//!         O(b,n) = fmax(O(b,n) + C(n), 0)
//!     }";
//! let program = warploom_tensor::parse("layer.tc", text)?;
//! let layer = program.define(Some("layer")).unwrap();
//! let (pipeline, request) = layer.realise(&[("B", 2), ("M", 3), ("N", 4)])?;
//! assert_eq!(pipeline.output_names(), ["O"]);
//! # let _ = request;
//! # Ok::<(), warploom_tensor::Errors>(())
//! ```
//!
//! # Inside
//!
//! | module | holds |
//! | --- | --- |
//! | `lexer`, `parser`, [`ast`], `print` | text to tree and back |
//! | [`types`], `builtins` | scalar types and functions |
//! | `names`, `check` | the meaning of names; ranks, types and reductions |
//! | `formula`, `linear`, `ranges` | formulas of sizes, index expressions, range inference |
//! | `lower` | tree and ranges to a pipeline |
//! | `program` | programs and definitions, as users see them |
//! | `source`, [`error`] | places in a text; every mistake, with a remedy |
pub mod ast;
mod builtins;
mod check;
pub mod error;
mod formula;
mod lexer;
mod linear;
mod lower;
mod names;
mod parser;
mod print;
mod program;
mod ranges;
mod source;
pub mod types;

pub use error::{DefineError, Errors, Fault, Mistake};
pub use parser::MAX_NESTING;
pub use program::{Definition, IndexRange, Program, parse, read};
pub use source::Span;
