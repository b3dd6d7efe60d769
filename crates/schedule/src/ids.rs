//! Typed indices into the tables of a [`Dag`](crate::Dag).

use std::fmt;

use warploom_lang::Id;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl Id for $name {
            fn new(index: usize) -> $name {
                $name(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}{}", stringify!($name), self.0)
            }
        }
    )*};
}

ids! {
    /// An input or a Func. Inputs come first, then the Funcs, producers before their consumers.
    NodeId;
    /// A stage, numbered over the whole pipeline: by node, then by the order of definition.
    StageId;
    /// An edge, numbered by its consumer, then by its producer.
    EdgeId;
}
