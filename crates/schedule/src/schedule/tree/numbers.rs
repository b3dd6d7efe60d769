//! Decisions that are one number each.
//!
//! Each such decision is one field of a struct, and the name of the field is its keyword. The text form, hashes, `explain`,
//! coverage and the reducer are all driven by these fields.

use std::num::NonZeroU32;

macro_rules! numbers {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $type {
            $($(#[$doc])* pub $field: Option<NonZeroU32>,)*
        }

        impl $type {
            /// The keywords of the text form, in field order.
            pub const WORDS: &'static [&'static str] = &[$(stringify!($field)),*];

            /// The numbers of all keywords, in field order.
            pub fn all(&self) -> impl Iterator<Item = Option<NonZeroU32>> + use<> {
                let all: [Option<NonZeroU32>; $type::WORDS.len()] = [$(self.$field),*];
                all.into_iter()
            }

            /// The keywords whose number is set, with the number.
            pub fn given(&self) -> impl Iterator<Item = (&'static str, NonZeroU32)> + use<> {
                $type::WORDS.iter().copied().zip(self.all()).filter_map(|(word, number)| Some((word, number?)))
            }

            /// The number that a keyword sets; `None` if there is no such keyword.
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
    /// The numbers that the line of a kernel can set; `None` if not set.
    KernelNumbers {
        /// The number of blocks that an SM must be able to hold at once, as far as their threads and shared
        /// memory allow. The kernel compiler limits the registers per thread accordingly.
        blocks,
    }
}

numbers! {
    /// The numbers that the line of a stage or staged input can set; `None` if not set.
    NestNumbers {
        /// The distance between the rows of an array in shared memory, in elements. Rows that are longer
        /// are not padded. Rows that start in different banks can be read by column without bank conflicts.
        pitch,
    }
}
