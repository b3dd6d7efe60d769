//! The kinds of errors, and their exit codes.

/// The exit codes other than 0.
pub(crate) mod exit {
    /// A bug in the program itself.
    pub(crate) const INTERNAL: u8 = 1;
    /// A wrong argument or file.
    pub(crate) const USAGE: u8 = 2;
    /// A pipeline that cannot run as requested.
    pub(crate) const PIPELINE: u8 = 3;
    /// No GPU, or a GPU error.
    pub(crate) const DEVICE: u8 = 4;
    /// Nothing could be measured or checked.
    pub(crate) const NOTHING: u8 = 5;
    /// Outputs that differ from the reference.
    pub(crate) const VERIFICATION: u8 = 6;
    /// Standard output was closed: the code that a shell reports for a process killed by SIGPIPE.
    pub(crate) const CLOSED: u8 = 141;
}

/// What went wrong, in one word for programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Usage,
    File,
    Pipeline,
    NoGpu,
    Gpu,
    NothingMeasured,
    Verification,
    Fuzz,
    Internal,
    Output,
    Closed,
}

impl Kind {
    /// The name in JSON, which never changes.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Usage => "usage",
            Kind::File => "file",
            Kind::Pipeline => "pipeline",
            Kind::NoGpu => "no_gpu",
            Kind::Gpu => "gpu",
            Kind::NothingMeasured => "nothing_measured",
            Kind::Verification => "verification",
            Kind::Fuzz => "fuzz",
            Kind::Internal => "internal",
            Kind::Output => "output",
            Kind::Closed => "closed",
        }
    }

    /// The exit code.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Kind::Usage | Kind::File | Kind::Output => exit::USAGE,
            Kind::Pipeline => exit::PIPELINE,
            Kind::NoGpu | Kind::Gpu => exit::DEVICE,
            Kind::NothingMeasured => exit::NOTHING,
            Kind::Verification => exit::VERIFICATION,
            Kind::Fuzz | Kind::Internal => exit::INTERNAL,
            Kind::Closed => exit::CLOSED,
        }
    }
}
