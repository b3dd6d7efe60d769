//! Why there is nothing to check.

use std::fmt;

/// Why a case, or one of its sizes, has nothing to check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Skip {
    /// The kind of reason.
    pub reason: Reason,
    /// The message of the operation that is impossible.
    pub why: String,
}

/// The kinds of reasons why there is nothing to check.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The sizes do not fit the pipeline.
    Sizes,
    /// The schedule's rewrites are impossible, or not at these sizes.
    Rewrites,
    /// The reference evaluator cannot run, for example because memory is insufficient.
    Reference,
    /// For kernels for any size: no range of sizes around the case's own has boxes that are linear in the sizes.
    Range,
    /// For kernels for any size: the schedule is legal at the case's own size, but not at all sizes of the range.
    Illegal,
    /// For kernels for any size: this size of the range cannot be used together with the others.
    Unusable,
    /// For kernels for any size: the pipeline reads points that no stage defines, though not at the case's own size.
    Undefined,
}

impl Reason {
    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Sizes => "sizes",
            Reason::Rewrites => "rewrites",
            Reason::Reference => "reference",
            Reason::Range => "range",
            Reason::Illegal => "illegal",
            Reason::Unusable => "unusable",
            Reason::Undefined => "undefined",
        }
    }

    /// A skip for this reason, with a message.
    pub(crate) fn because(self, why: impl fmt::Display) -> Skip {
        Skip { reason: self, why: why.to_string() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Sizes => "the sizes do not fit the pipeline",
            Reason::Rewrites => "the rewrites are impossible",
            Reason::Reference => "the reference evaluator cannot run",
            Reason::Range => "no range of sizes fits the pipeline",
            Reason::Illegal => "the schedule is not legal at all sizes of the range",
            Reason::Unusable => "the sizes cannot be used together",
            Reason::Undefined => "other sizes read undefined values",
        })
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.why)
    }
}
