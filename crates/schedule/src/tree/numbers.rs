//! Decisions that are a single number or word.
//!
//! Each such decision is one field of a struct, and the name of the field is its keyword unless another word is given. The
//! text form, hashes, `explain`, coverage and the reducer are all driven by these fields.

use std::num::NonZeroU32;

/// The field that a keyword sets.
#[derive(PartialEq, Eq, Debug)]
pub enum Setting<'a> {
    /// A keyword with a number after it; `None` if not set.
    Number(&'a mut Option<NonZeroU32>),
    /// A keyword alone.
    Flag(&'a mut bool),
}

/// The type of a field.
trait Field: Copy {
    /// The number; 1 for a flag that is set.
    fn number(self) -> Option<NonZeroU32>;

    /// The keyword with its argument, if the field is set.
    fn text(self, word: &str) -> Option<String>;

    fn setting(&mut self) -> Setting<'_>;
}

impl Field for Option<NonZeroU32> {
    fn number(self) -> Option<NonZeroU32> {
        self
    }

    fn text(self, word: &str) -> Option<String> {
        self.map(|number| format!("{word} {number}"))
    }

    fn setting(&mut self) -> Setting<'_> {
        Setting::Number(self)
    }
}

impl Field for bool {
    fn number(self) -> Option<NonZeroU32> {
        self.then_some(NonZeroU32::MIN)
    }

    fn text(self, word: &str) -> Option<String> {
        self.then(|| word.to_owned())
    }

    fn setting(&mut self) -> Setting<'_> {
        Setting::Flag(self)
    }
}

macro_rules! word {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $word:literal) => {
        $word
    };
}

macro_rules! numbers {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $field:ident $(= $word:literal)?: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $type {
            $($(#[$doc])* pub $field: $kind,)*
        }

        impl $type {
            /// The keywords of the text form, in field order.
            pub const WORDS: &'static [&'static str] = &[$(word!($field $($word)?)),*];

            /// The numbers of all keywords, in field order. A flag that is set is 1.
            pub fn all(&self) -> impl Iterator<Item = Option<NonZeroU32>> + use<> {
                let all: [Option<NonZeroU32>; $type::WORDS.len()] = [$(self.$field.number()),*];
                all.into_iter()
            }

            /// The keywords that are set, with the number. A flag has 1.
            pub fn given(&self) -> impl Iterator<Item = (&'static str, NonZeroU32)> + use<> {
                $type::WORDS.iter().copied().zip(self.all()).filter_map(|(word, number)| Some((word, number?)))
            }

            /// The keywords that are set, as the text form writes them.
            pub fn texts(&self) -> impl Iterator<Item = String> + use<> {
                let all: [Option<String>; $type::WORDS.len()] = [$(self.$field.text(word!($field $($word)?))),*];
                all.into_iter().flatten()
            }

            /// The field that a keyword sets; `None` if there is no such keyword.
            pub fn of_word(&mut self, word: &str) -> Option<Setting<'_>> {
                match word {
                    $(word!($field $($word)?) => Some(self.$field.setting()),)*
                    _ => None,
                }
            }
        }
    };
}

numbers! {
    /// The numbers that the line of a kernel can set; `None` if not set.
    KernelNumbers {
        /// The occupancy that a kernel asks for: the number of blocks that an SM must be able to hold at once, if their
        /// threads and shared memory fit. The kernel compiler limits the registers per thread accordingly.
        blocks: Option<NonZeroU32>,
    }
}

numbers! {
    /// The numbers and flags that the line of a stage or staged input can set.
    NestNumbers {
        /// The pitch of an array in shared memory: the distance between its rows, in elements. Longer rows are not
        /// padded. Rows that start in different banks can be read by column without bank conflicts.
        pitch: Option<NonZeroU32>,
        /// Whether each point is updated by one atomic operation on memory, so that threads and blocks can share
        /// reduction variables whose values meet at one point.
        atomic: bool,
        /// Unrolls the rounds of a thread inside the reduction (virtual threads in TVM). A thread then has groups of
        /// adjacent points, interleaved with those of other threads.
        interleave: bool,
        /// The depth of a software pipeline: how many slices of a copy exist in shared memory at once. While the
        /// threads work on one iteration of the loop around it, asynchronous copies for the next iterations are in
        /// flight. A loop has the smallest depth of its copies, and at most as many slices as iterations.
        depth = "async": Option<NonZeroU32>,
        /// Whether an array in shared memory is transposed: its last dimension is adjacent in memory. A thread then
        /// reads along the last dimension by vector loads.
        transpose: bool,
        /// Whether a thread accesses buffers by vector loads and stores of up to 16 bytes: its unrolled points along
        /// the innermost loop, where they are adjacent and aligned. Other accesses stay scalar.
        vector: bool,
        /// Whether the threads of a warp, a row of 32 along the first dimension of the threads, share the Funcs in
        /// their registers: each computes its own part, and reads the parts of the others by shuffles.
        lanes: bool,
        /// Whether a thread computes its points row by row, along the first of its serial loops, with a sliding window
        /// of the Funcs in its registers: each row of these is computed just before the first row that needs it.
        slide: bool,
    }
}
