//! Decisions that are one number each.
//!
//! A field of these structs is all that the text form, hashes, `explain`, coverage and the reducer need to know of such a
//! decision: its name is its word.

use std::num::NonZeroU32;

macro_rules! numbers {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $type {
            $($(#[$doc])* pub $field: Option<NonZeroU32>,)*
        }

        impl $type {
            /// The words of the text form, in the order of the fields.
            pub const WORDS: &'static [&'static str] = &[$(stringify!($field)),*];

            /// The numbers of all words, in the order of the fields.
            pub fn all(&self) -> impl Iterator<Item = Option<NonZeroU32>> + use<> {
                let all: [Option<NonZeroU32>; $type::WORDS.len()] = [$(self.$field),*];
                all.into_iter()
            }

            /// The words that have a number, with these numbers.
            pub fn given(&self) -> impl Iterator<Item = (&'static str, NonZeroU32)> + use<> {
                $type::WORDS.iter().copied().zip(self.all()).filter_map(|(word, number)| Some((word, number?)))
            }

            /// The number of a word, if there is such a word.
            pub fn of_word(&mut self, word: &str) -> Option<&mut Option<NonZeroU32>> {
                match word {
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

numbers! {
    /// Numbers that a kernel's line may give.
    KernelNumbers {
        /// Blocks that an SM must be able to hold at once. The kernel compiler gives each thread no more registers than
        /// that allows.
        blocks,
    }
}

numbers! {
    /// Numbers that the line of a stage or copy may give.
    NestNumbers {
        /// Elements between the rows of an array in shared memory, at least as many as a row has. Rows that start in
        /// different banks can be read by columns without conflicts.
        pitch,
    }
}
