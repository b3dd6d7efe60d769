//! The layout of arrays in files against that of inputs.
//!
//! The samples of a file lie in an order of their own: the last axis of a NumPy array is the fastest, and the
//! channels of a pixel lie side by side. Files are matched with inputs by index, `f(x, y, c)` with
//! `array[c][y][x]` or with a picture. Where that does not fit, an input may still be stored as the file is.

use warploom_interp::buffer::{Buffer, BufferError};
use warploom_lang::Region;
use warploom_lang::ir::InputDecl;

use crate::app::{App, Settings};
use crate::show;

/// An input, and what is known of its extents before a file gives its sizes.
pub struct Layout<'a> {
    input: &'a InputDecl,
    /// The extents that no size changes.
    known: Vec<Option<i64>>,
    source: Source,
}

/// Where the extents come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    /// A pipeline at some sizes.
    Sizes,
    /// A pipeline without sizes: nothing is known before the file is read.
    Nothing,
    /// A declaration in Tensor Comprehensions, whose dimensions are in the order of the array.
    Tensor,
}

/// A file that fits an input only in another order of its dimensions, or that may be meant so.
#[derive(Debug)]
pub enum Misfit {
    /// It fits in another order.
    Order {
        /// The extents of the file.
        found: String,
        /// The dimension of the input whose extent differs, from 0.
        dimension: usize,
        /// The extent that it must have.
        extent: i64,
        /// What to do, as a clause.
        remedy: String,
    },
    /// An array whose last axis looks like channels, for an input of which nothing is known.
    Unknown {
        /// The extents of the file.
        found: String,
    },
}

impl Misfit {
    /// The error for a file and an input of an app.
    pub(super) fn sentence(&self, file: &str, input: &str, app: &str) -> String {
        match self {
            Misfit::Order { found, dimension, extent, remedy } => format!(
                "{file} has extents {found}, but dimension {dimension} of input `{input}` of `{app}` has extent {extent}; \
                 {remedy}"
            ),
            Misfit::Unknown { found } => format!(
                "{file} has extents {found}, so its last axis may be the channels, and nothing says what size input \
                 `{input}` of `{app}` has; transpose the array, array.transpose(2, 0, 1), or give --size {input}={found} \
                 to take it as it is"
            ),
        }
    }
}

impl<'a> Layout<'a> {
    /// The layout of an app's input.
    pub fn of(app: &App, settings: &Settings, input: &'a InputDecl) -> Layout<'a> {
        let extents = |settings: &Settings| Some(app.shapes_at(settings).input(&input.name)?.extents());
        let here = extents(settings);
        let source = if here.is_some() { Source::Sizes } else { Source::Nothing };
        let mut known: Vec<Option<i64>> = here.unwrap_or_default().into_iter().map(Some).collect();
        known.resize(input.dimensions, None);
        for size in &app.sizes {
            let mut larger = settings.clone();
            let _known = larger.set(&size.name, settings.number(&size.name) + 1.0);
            let there = extents(&larger).unwrap_or_default();
            for (d, known) in known.iter_mut().enumerate() {
                *known = known.filter(|extent| there.get(d) == Some(extent));
            }
        }
        Layout { input, known, source }
    }

    /// The layout of a tensor that is declared with these known extents, first dimension first.
    pub fn of_tensor(input: &'a InputDecl, known: Vec<Option<i64>>) -> Layout<'a> {
        Layout { input, known, source: Source::Tensor }
    }

    /// The number of dimensions of the input.
    pub(super) fn dimensions(&self) -> usize {
        self.input.dimensions
    }

    /// The number of channels of pictures that the input takes; `None` if it takes any number, or no pictures. They are the
    /// last dimension, or the first.
    pub fn channels(&self) -> Option<usize> {
        match self.known[..] {
            [_, _] => Some(1),
            [first, _, last] => {
                let channels = [last, first].into_iter().flatten().find(|extent| matches!(extent, 3 | 4));
                channels.and_then(|channels| usize::try_from(channels).ok())
            }
            _ => None,
        }
    }

    /// The name of the input.
    pub(super) fn name(&self) -> &str {
        &self.input.name
    }

    /// The content of a file with the dimensions of the input. `order` lists the dimensions of the file from
    /// the fastest to the slowest.
    pub(super) fn fit(&self, buffer: Buffer, order: &[usize]) -> Result<Result<Buffer, Misfit>, BufferError> {
        let extents = buffer.region().extents();
        let as_stored = self.as_stored(order);
        if extents.len() != self.input.dimensions {
            return Ok(Ok(buffer));
        }
        if self.source == Source::Nothing && order.is_sorted() && has_channels_last(&extents) {
            return Ok(match as_stored == self.by_index() {
                true => Err(Misfit::Unknown { found: show::extents(buffer.region()) }),
                false => Ok(buffer.transposed(&as_stored)?),
            });
        }
        if self.holds(&extents, &self.by_index()) {
            return Ok(Ok(buffer));
        }
        if self.holds(&extents, &as_stored) {
            return Ok(Ok(buffer.transposed(&as_stored)?));
        }
        match self.misfit(&extents, order) {
            Some(misfit) => Ok(Err(misfit)),
            None => Ok(Ok(buffer)),
        }
    }

    /// The dimensions of a file that is read by index.
    fn by_index(&self) -> Vec<usize> {
        (0..self.input.dimensions).collect()
    }

    /// For each dimension of the input, that of a file whose samples lie as the input's do.
    fn as_stored(&self, order: &[usize]) -> Vec<usize> {
        let mut from = self.by_index();
        for (own, file) in self.input.storage_order.iter().zip(order) {
            from[*own] = *file;
        }
        from
    }

    /// Whether a file has the known extents, if dimension `d` of the input is its dimension `from[d]`.
    fn holds(&self, extents: &[i64], from: &[usize]) -> bool {
        self.known.iter().zip(from).all(|(known, from)| known.is_none_or(|known| known == extents[*from]))
    }

    /// The error for a file that another order of dimensions would make fit.
    fn misfit(&self, extents: &[i64], order: &[usize]) -> Option<Misfit> {
        let from = rotations(extents.len()).into_iter().find(|from| self.holds(extents, from))?;
        let differs = |(known, own): (&Option<i64>, &i64)| known.is_some_and(|known| known != *own);
        let dimension = self.known.iter().zip(extents).position(differs)?;
        let last = extents.len() - 1;
        let axes: Vec<usize> = (0..=last).map(|axis| last - from[last - axis]).collect();
        let stored: Vec<usize> =
            order.iter().filter_map(|file| from.iter().position(|from| from == file)).collect();
        let transpose = format!("transpose the array, array.transpose{}", tuple(&axes));
        let declare = format!("declare the input .stored({stored:?}), which takes the file as it is");
        // Only arrays have their dimensions in order.
        let remedy = match (order.is_sorted(), self.source) {
            (true, Source::Tensor) => transpose,
            (true, _) => format!("{transpose}, or {declare}"),
            (false, Source::Tensor) => {
                "give an array, a .npy file, in the order of the definition".to_owned()
            }
            (false, _) => declare,
        };
        let found = show::extents(&Region::of_extents(extents));
        Some(Misfit::Order { found, dimension, extent: self.known[dimension]?, remedy })
    }
}

/// Whether the extents of an array are those of a picture whose channels are the last axis.
fn has_channels_last(extents: &[i64]) -> bool {
    matches!(*extents, [1..=4, width, height] if width > 4 && height > 4)
}

/// The orders of dimensions that move the first ones behind the others, or the last ones before them.
fn rotations(dimensions: usize) -> Vec<Vec<usize>> {
    let turned = |by: usize| (0..dimensions).map(|d| (d + by) % dimensions).collect();
    let reversed = (0..dimensions).rev().collect();
    (1..dimensions).map(turned).chain([reversed]).collect()
}

/// `(2, 0, 1)`
fn tuple(axes: &[usize]) -> String {
    let axes: Vec<String> = axes.iter().map(usize::to_string).collect();
    format!("({})", axes.join(", "))
}

#[cfg(test)]
mod tests {
    use warploom_lang::Type;

    use super::*;

    fn input(storage_order: &[usize]) -> InputDecl {
        let (name, dimensions) = ("image".to_owned(), storage_order.len());
        InputDecl { name, ty: Type::U8, dimensions, storage_order: storage_order.to_vec() }
    }

    /// The extents after fitting, or the remedy.
    fn fitted(stored: &[usize], known: &[Option<i64>], extents: &[i64], order: &[usize]) -> String {
        fitted_of(Source::Sizes, stored, known, extents, order)
    }

    fn fitted_of(
        source: Source,
        stored: &[usize],
        known: &[Option<i64>],
        extents: &[i64],
        order: &[usize],
    ) -> String {
        let (input, known) = (input(stored), known.to_vec());
        let buffer = Buffer::zeros(Type::U8, Region::of_extents(extents)).unwrap();
        match (Layout { input: &input, known, source }).fit(buffer, order).unwrap() {
            Ok(buffer) => format!("{:?}", buffer.region().extents()),
            Err(Misfit::Order { dimension, extent, remedy, .. }) => {
                format!("{extent} in {dimension}: {remedy}")
            }
            Err(Misfit::Unknown { found }) => format!("unknown {found}"),
        }
    }

    #[test]
    fn channels_that_may_be_last_are_asked_for_or_follow_the_storage() {
        let (array, picture) = ([0, 1, 2], [2, 0, 1]);
        let fitted = |stored: &[usize], extents: &[i64], order: &[usize]| {
            fitted_of(Source::Nothing, stored, &[None; 3], extents, order)
        };
        assert_eq!(fitted(&[0, 1, 2], &[3, 64, 48], &array), "unknown 3x64x48");
        assert_eq!(fitted(&[2, 0, 1], &[3, 64, 48], &array), "[64, 48, 3]");
        // Channels first, pictures, and nothing that could be a channel.
        assert_eq!(fitted(&[0, 1, 2], &[64, 48, 3], &array), "[64, 48, 3]");
        assert_eq!(fitted(&[2, 0, 1], &[64, 48, 3], &array), "[64, 48, 3]");
        assert_eq!(fitted(&[0, 1, 2], &[3, 64, 48], &picture), "[3, 64, 48]");
        assert_eq!(fitted(&[0, 1, 2], &[5, 64, 48], &array), "[5, 64, 48]");
        assert_eq!(fitted(&[0, 1, 2], &[3, 64, 4], &array), "[3, 64, 4]");
    }

    #[test]
    fn tensors_are_not_declared_otherwise() {
        let known = [Some(3), None, None];
        let remedy = fitted_of(Source::Tensor, &[0, 1, 2], &known, &[64, 48, 3], &[0, 1, 2]);
        assert_eq!(remedy, "3 in 0: transpose the array, array.transpose(1, 2, 0)");
        let known = [None, Some(3), None];
        let remedy = fitted_of(Source::Tensor, &[0, 1, 2], &known, &[64, 48, 3], &[2, 0, 1]);
        assert_eq!(remedy, "3 in 1: give an array, a .npy file, in the order of the definition");
    }

    #[test]
    fn pictures_have_their_channels_last_or_first() {
        let channels = |known: &[Option<i64>]| {
            let order: Vec<usize> = (0..known.len()).collect();
            Layout::of_tensor(&input(&order), known.to_vec()).channels()
        };
        assert_eq!(channels(&[None, None]), Some(1));
        assert_eq!(channels(&[None, None, Some(3)]), Some(3));
        assert_eq!(channels(&[Some(4), None, None]), Some(4));
        assert_eq!(channels(&[Some(4), None, Some(3)]), Some(3));
        assert_eq!(channels(&[None, Some(3), None]), None);
        assert_eq!(channels(&[None, None, Some(5)]), None);
        assert_eq!(channels(&[None, None, None, Some(3)]), None);
    }

    #[test]
    fn files_fit_by_index_or_as_they_are_stored() {
        let (array, picture) = ([0, 1, 2], [2, 0, 1]);
        let planes = [None, None, Some(3)];
        let interleaved = [Some(3), None, None];
        // An array (3, 4, 6) and a picture of 6x4, for an input (x, y, c).
        assert_eq!(fitted(&[0, 1, 2], &planes, &[6, 4, 3], &array), "[6, 4, 3]");
        assert_eq!(fitted(&[2, 0, 1], &planes, &[6, 4, 3], &array), "[6, 4, 3]");
        assert_eq!(fitted(&[2, 0, 1], &planes, &[6, 4, 3], &picture), "[6, 4, 3]");
        // An array (4, 6, 3), where the channels of an input (x, y, c) lie side by side.
        assert_eq!(fitted(&[2, 0, 1], &planes, &[3, 6, 4], &array), "[6, 4, 3]");
        // What is not known is not guessed.
        assert_eq!(fitted(&[2, 0, 1], &[None; 3], &[3, 6, 4], &array), "[3, 6, 4]");
        // A picture for an input (c, x, y).
        assert_eq!(fitted(&[0, 1, 2], &interleaved, &[6, 4, 3], &picture), "[3, 6, 4]");
        assert_eq!(fitted(&[0, 1, 2], &[None; 3], &[6, 4, 3], &picture), "[6, 4, 3]");
    }

    #[test]
    fn a_remedy_names_the_transposition_and_the_storage_order() {
        let (array, picture) = ([0, 1, 2], [2, 0, 1]);
        let planes = [None, None, Some(3)];
        assert_eq!(
            fitted(&[0, 1, 2], &planes, &[3, 6, 4], &array),
            "3 in 2: transpose the array, array.transpose(2, 0, 1), or declare the input .stored([2, 0, 1]), which \
             takes the file as it is"
        );
        assert_eq!(
            fitted(&[1, 2, 0], &[Some(3), None, None], &[6, 4, 3], &picture),
            "3 in 0: declare the input .stored([0, 1, 2]), which takes the file as it is"
        );
        assert_eq!(
            fitted(&[0, 1], &[Some(9), None], &[5, 9], &[0, 1]),
            "9 in 0: transpose the array, array.transpose(1, 0), or declare the input .stored([1, 0]), which takes the \
             file as it is"
        );
        // No order of dimensions helps.
        assert_eq!(fitted(&[0, 1, 2], &planes, &[6, 4, 2], &array), "[6, 4, 2]");
    }
}
