//! # A first pipeline: sharpening a picture
//!
//! A pipeline consists of *Funcs*: functions from grid points to values. A Func has a value at
//! every integer point, so it has no size. Sizes appear only where data comes in and where results
//! are requested.
//!
//! ```
//! use warploom::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//!
//! // Variables name dimensions. They are plain values that can be copied around.
//! let (x, y, c) = vars!(x, y, c);
//!
//! // An input with three dimensions: x, y and colour channel.
//! let input = Input::f32("input", 3);
//!
//! // Pixels beyond the edge repeat the edge. Without this, reading input.at((x, y - 1, c)) at y = 0
//! // would be refused, with a sentence that says which row is missing.
//! let edge = input.repeat_edge();
//!
//! // A definition reads like its mathematics.
//! let gray = func("gray", (x, y), 0.299 * edge.at((x, y, 0)) + 0.587 * edge.at((x, y, 1)) + 0.114 * edge.at((x, y, 2)));
//! # Ok(())
//! # }
//! ```
//!
//! ## Reductions
//!
//! A blur adds up a window. A *reduction domain* says which points are in it, and
//! [`sum`](crate::lang::sum) adds their terms one after another:
//!
//! ```
//! # use warploom::prelude::*;
//! # let (x, y) = vars!(x, y);
//! # let gray = func("gray", (x, y), 0.5);
//! let r = rdom!(dx: (-1, 3), dy: (-1, 3)); // dx and dy run from -1 over 3 values each
//! let blur = func("blur", (x, y), sum(&r, gray.at((x + r.x, y + r.y))) / 9.0);
//! ```
//!
//! `sum` is shorthand for a separate Func with an *update*. The long form has a start value and a
//! step that runs for every point of the domain, with the first variable fastest:
//!
//! ```
//! # use warploom::prelude::*;
//! # let (x, y) = vars!(x, y);
//! # let gray = func("gray", (x, y), 0.5);
//! # let r = rdom!(dx: (-1, 3), dy: (-1, 3));
//! let total = func("total", (x, y), 0.0).over(&r, |f| f.add((x, y), gray.at((x + r.x, y + r.y))));
//! let blur = func("blur", (x, y), total.at((x, y)) / 9.0);
//! ```
//!
//! ## Parameters and types
//!
//! A [`Param`](crate::lang::Param) is a number given when the pipeline runs. There are no implicit
//! conversions: convert an integer with `.f32()`, a float with `.u8()`, and so on. Only
//! whole-number constants adapt to the type of the other operand.
//!
//! ## Running it
//!
//! ```
//! use warploom::prelude::*;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (x, y, c) = vars!(x, y, c);
//! # let input = Input::f32("input", 3);
//! # let edge = input.repeat_edge();
//! # let gray = func("gray", (x, y), 0.299 * edge.at((x, y, 0)) + 0.587 * edge.at((x, y, 1)) + 0.114 * edge.at((x, y, 2)));
//! # let r = rdom!(dx: (-1, 3), dy: (-1, 3));
//! # let blur = func("blur", (x, y), sum(&r, gray.at((x + r.x, y + r.y))) / 9.0);
//! let strength = Param::f32("strength");
//! let detail = func("detail", (x, y), gray.at((x, y)) - blur.at((x, y)));
//! let sharp = func("sharp", (x, y, c), clamp(input.at((x, y, c)) + &strength * detail.at((x, y)), 0.0, 1.0));
//! let pipeline = Pipeline::new("sharpen", [sharp])?;
//!
//! // The listing shows every Func, helpers included.
//! assert!(pipeline.to_string().contains("blur(x, y) = blur.sum0(x, y) / 9.0"));
//!
//! // The reference evaluator needs no schedule and no GPU.
//! let image = Buffer::from_fn(Region::of_extents(&[32, 24, 3]), |at| ((at[0] / 8 + at[1] / 8) % 2) as f32)?;
//! let out = Evaluation::new(&pipeline)
//!     .input("input", &image)
//!     .param("strength", 1.5f32)
//!     .output("sharp", image.region().clone())
//!     .run()?;
//! assert_eq!(out[0].region(), image.region());
//!
//! // A mistake is answered in a sentence: here the input is too small for the output that is asked for.
//! let larger = Region::of_extents(&[40, 24, 3]);
//! let refused = Evaluation::new(&pipeline)
//!     .input("input", &image)
//!     .param("strength", 1.5f32)
//!     .output("sharp", larger)
//!     .run();
//! let message = refused.unwrap_err().to_string();
//! assert!(message.starts_with("`sharp` needs [0, 40) of `input` in dimension 0, but there is only [0, 32)"));
//! # Ok(())
//! # }
//! ```
//!
//! ## Next steps
//!
//! The [next page](super::_02_schedules) turns this pipeline into kernels. The 17 apps in
//! `apps/src` are larger examples of the same language: start with `unsharp.rs` and `harris.rs`.
//! The exact rules of the language are on the front page of [`lang`](crate::lang).
