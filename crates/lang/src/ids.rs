//! Typed indices into a pipeline's tables.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut, Range};

use serde::{Deserialize, Serialize};

/// A typed index into a table.
pub trait Id: Copy + Eq {
    /// The id of a table position.
    fn new(index: usize) -> Self;
    /// The table position.
    fn index(self) -> usize;
}

/// The ids of a range, in order.
pub fn ids_in<K: Id>(range: &Range<K>) -> impl DoubleEndedIterator<Item = K> + Clone + use<K> {
    (range.start.index()..range.end.index()).map(K::new)
}

/// Defines [`Id`] types: 32-bit indices that the type system keeps apart.
///
/// ```
/// warploom_lang::define_ids! {
///     /// A node of some graph.
///     NodeId;
/// }
/// assert_eq!(format!("{:?}", <NodeId as warploom_lang::Id>::new(3)), "NodeId3");
/// ```
#[macro_export]
macro_rules! define_ids {
    ($($(#[$attribute:meta])* $name:ident;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $crate::Id for $name {
            fn new(index: usize) -> $name {
                $name(index as u32)
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                write!(f, "{}{}", stringify!($name), self.0)
            }
        }
    )*};
}

define_ids! {
    /// A Func of a pipeline. Producers come before their consumers.
    #[derive(Serialize, Deserialize)]
    FuncId;
    /// An input of a pipeline.
    #[derive(Serialize, Deserialize)]
    InputId;
    /// A Param of a pipeline.
    #[derive(Serialize, Deserialize)]
    ParamId;
    /// A constant table of a pipeline.
    #[derive(Serialize, Deserialize)]
    TableId;
    /// A node of a pipeline's expressions. Arguments come before the nodes that use them.
    #[derive(Serialize, Deserialize)]
    ExprId;
}

/// A table indexed by one kind of [`Id`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdVec<K, V> {
    items: Vec<V>,
    #[serde(skip)]
    key: PhantomData<K>,
}

impl<K: Id, V> IdVec<K, V> {
    /// An empty table.
    pub fn new() -> IdVec<K, V> {
        IdVec { items: Vec::new(), key: PhantomData }
    }

    /// Appends an item and returns its id.
    pub fn push(&mut self, item: V) -> K {
        self.items.push(item);
        K::new(self.items.len() - 1)
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the table has no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The item with this id; `None` if the id is out of range.
    pub fn get(&self, id: K) -> Option<&V> {
        self.items.get(id.index())
    }

    /// The items in order.
    pub fn values(&self) -> std::slice::Iter<'_, V> {
        self.items.iter()
    }

    /// The items in order, to be changed.
    pub fn values_mut(&mut self) -> std::slice::IterMut<'_, V> {
        self.items.iter_mut()
    }

    /// The ids in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = K> + ExactSizeIterator + use<K, V> {
        (0..self.items.len()).map(K::new)
    }

    /// The items whose ids are in a range.
    pub fn slice(&self, ids: Range<K>) -> &[V] {
        &self.items[ids.start.index()..ids.end.index()]
    }

    /// The id that the next item will have.
    pub fn next_id(&self) -> K {
        K::new(self.items.len())
    }

    /// Ids and items in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(i, item)| (K::new(i), item))
    }
}

impl<K: Id, V> Default for IdVec<K, V> {
    fn default() -> Self {
        IdVec::new()
    }
}

impl<K: Id, V> FromIterator<V> for IdVec<K, V> {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Self {
        IdVec { items: items.into_iter().collect(), key: PhantomData }
    }
}

impl<K: Id, V> Index<K> for IdVec<K, V> {
    type Output = V;

    fn index(&self, id: K) -> &V {
        &self.items[id.index()]
    }
}

impl<K: Id, V> IndexMut<K> for IdVec<K, V> {
    fn index_mut(&mut self, id: K) -> &mut V {
        &mut self.items[id.index()]
    }
}
