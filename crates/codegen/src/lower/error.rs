//! Errors of lowering.

use thiserror::Error;

/// Why a schedule could not be lowered.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum LowerError {
    /// A kernel reads a Func where it has not been computed.
    #[error(
        "`{func}` is read in the kernel of `{kernel}`, but the schedule computes it where it cannot be read; place it before its readers or inline it"
    )]
    Unplaced {
        /// Name of the Func that is read.
        func: String,
        /// Name of the stage that the kernel computes.
        kernel: String,
    },
    /// A kernel would have too many expressions.
    #[error(
        "the kernel of `{kernel}` would have more than {limit} different expressions; inline fewer Funcs into it"
    )]
    TooLong {
        /// Name of the stage that the kernel computes.
        kernel: String,
        /// The largest number of expressions allowed.
        limit: usize,
    },
    /// A kernel exceeds a limit of the device.
    #[error("the kernel of `{kernel}` needs {needed} {what}, the device has {limit}; use smaller tiles")]
    Limit {
        /// Name of the stage that the kernel computes.
        kernel: String,
        /// The resource that is exceeded, in the plural, as the message shows it.
        what: &'static str,
        /// The amount that the kernel needs.
        needed: u64,
        /// The amount that the device has.
        limit: u64,
    },
    /// A kernel needs a coordinate, a count or a flat index beyond 32 bits.
    #[error(
        "the kernel of `{kernel}` would need an index of {number}, but indices have 32 bits; use smaller sizes or tiles, or threads instead of a flat loop"
    )]
    Index {
        /// Name of the stage that the kernel computes.
        kernel: String,
        /// The first number that does not fit.
        number: i64,
    },
}
