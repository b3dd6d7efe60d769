//! # Tensors: from a text to a tuned kernel
//!
//! A tensor operator is shorter in the notation of Tensor Comprehensions: a statement says what the
//! elements of a tensor are, and the loops and their ranges follow from what it reads. `docs/tensor.md`
//! in the repository describes the notation. A definition becomes a pipeline like any other:
//!
//! ```standalone_crate
//! use warploom::prelude::*;
//! use warploom::tensor;
//! # use warploom::search::Options;
//! # use warploom::tune::worker::BenchOptions;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // Tuning compiles and runs kernels in other processes of this program.
//!     warploom::worker_entry();
//!
//!     let text = "
//!         def layer(float(B,K) I, float(N,K) W, float(N) bias) -> (O) {
//!             O(b,n) +=! I(b,k) * W(n,k)
//!             O(b,n) = fmax(O(b,n) + bias(n), 0)
//!         }";
//!     let layer = tensor::parse("layer.tc", text)?.define(Some("layer"))?;
//!     assert_eq!(layer.sizes(), ["B", "K", "N"]);
//!     let (pipeline, request) = layer.realise(&[("B", 8), ("K", 30), ("N", 20)])?;
//!
//!     // The last index of the notation is the fastest in memory, as in NumPy, and the first one of a buffer.
//!     let input = Buffer::from_fn(Region::of_extents(&[30, 8]), |at| (at[0] % 5) as f32 - at[1] as f32)?;
//!     let weights = Buffer::from_fn(Region::of_extents(&[30, 20]), |at| (at[0] + at[1]) as f32)?;
//!     let bias = Buffer::from_fn(Region::of_extents(&[20]), |at| at[0] as f32)?;
//!     let given: [(&str, &[i64]); 3] = [("I", &[8, 30]), ("W", &[20, 30]), ("bias", &[20])];
//!     assert_eq!(layer.sizes_of(&given)?.len(), 3);
//!
//!     let device = Device::preset("h200")?;
//!     # let search = Options { samples: 4, beam: 4, passes: 2, ..Options::default() };
//!     # let fast = pipeline.autoschedule_with(&device, &request, &search)?;
//!     # if false {
//!     let fast = pipeline.autoschedule(&device, &request)?;
//!     # }
//!     let outputs = fast.compile_for(Backend::Simulator(device))?.run(&[&input, &weights, &bias])?;
//!     // Batch 1, output 2: the sum of (k % 5 - 1) * (k + 2), plus 2.
//!     let expected: i64 = (0..30).map(|k| (k % 5 - 1) * (k + 2)).sum::<i64>() + 2;
//!     assert_eq!(outputs[0].get(&[2, 1]), Some(Value::from(expected as f32)));
//!
//!     // On a machine with a GPU, without `bench`.
//!     # let bench = BenchOptions { fake: Some("fake".parse()?), ..BenchOptions::default() };
//!     # let tuning = Tuning { search, bench, ..Tuning::default() };
//!     # if false {
//!     let tuning = Tuning::default();
//!     # drop(tuning);
//!     # }
//!     let faster = fast.tune(&tuning)?;
//!     println!("{faster}{:?} us", faster.measured_us());
//!     Ok(())
//! }
//! ```
//!
//! The order of a reduction is not defined in the notation, so a search may split sums over threads and
//! blocks. All commands of the program take such files, too: `warploom tune layer.tc --size B=8,K=30,N=20`.
