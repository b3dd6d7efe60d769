//! What decisions offer to the points of spaces.

use std::fmt::Debug;

use warploom_schedule::{Item, Kernel};

use crate::decisions::{DECISIONS, Decision};

/// The length of the rows of the array of a nest, if it has several.
pub type Row<'a> = dyn Fn(Item) -> Option<i64> + 'a;

/// The values of a word between which the points of a space choose in one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Values {
    /// What they are named after.
    pub of: Item,
    /// The nests whose lines have the word; none if it is on that of the kernel.
    pub items: Vec<Item>,
    /// In rising order; 0 is a word that is not set.
    pub values: Vec<i64>,
}

/// A word that the points of a space choose.
pub trait Open: Decision + Debug {
    /// What an axis is called, after the name of what it belongs to.
    fn name(&self) -> &'static str;

    /// Whether its values depend on the sizes of arrays, so that it is set once these are known.
    fn follows_sizes(&self) -> bool {
        false
    }

    /// The values in a kernel, one list for each axis. What the kernel has is among them.
    fn values(&self, kernel: &Kernel, row: &Row<'_>) -> Vec<Values>;

    /// The value of some nests or the kernel. `None` if nests have several.
    fn read(&self, kernel: &Kernel, items: &[Item], row: &Row<'_>) -> Option<i64>;

    /// Sets the value of some nests or the kernel.
    fn write(&self, kernel: &mut Kernel, items: &[Item], value: i64, row: &Row<'_>);

    /// Takes the word from everything that axes are about.
    fn clear(&self, kernel: &mut Kernel);
}

/// The words that the points of a space choose, in the order of the table.
pub fn open() -> impl Iterator<Item = &'static dyn Open> {
    DECISIONS.iter().filter_map(|decision| decision.facts().open)
}

/// Numbers in rising order, one more among them.
pub(super) fn with(menu: &[i64], found: i64) -> Vec<i64> {
    let mut values = menu.to_vec();
    values.push(found);
    values.sort_unstable();
    values.dedup();
    values
}
