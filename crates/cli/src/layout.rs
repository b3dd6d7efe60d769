//! The layout of arrays in files against that of inputs.
//!
//! The samples of a file lie in an order of their own: the last axis of a NumPy array is the fastest, and the
//! channels of a pixel lie side by side. Files are matched with inputs by index, `f(x, y, c)` with
//! `array[c][y][x]` or with a picture. Where that does not fit, an input may still be stored as the file is.

use warploom::app::{App, Settings};
use warploom::interp::buffer::{Buffer, BufferError};
use warploom::lang::Region;
use warploom::lang::ir::InputDecl;

use crate::settings::change;
use crate::show;

/// An input, and what is known of its extents before a file gives its sizes.
pub(crate) struct Layout<'a> {
    input: &'a InputDecl,
    /// The extents that no size changes.
    known: Vec<Option<i64>>,
}

/// A file that fits an input only in another order of its dimensions.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// The extents of the file.
    pub found: String,
    /// The dimension of the input whose extent differs, from 0.
    pub dimension: usize,
    /// The extent that it must have.
    pub extent: i64,
    /// What to do, as a clause.
    pub remedy: String,
}

impl<'a> Layout<'a> {
    /// The layout of an app's input.
    pub fn of(app: &App, settings: &Settings, input: &'a InputDecl) -> Layout<'a> {
        let extents = |settings: &Settings| Some(app.shapes_at(settings).input(&input.name)?.extents());
        let here = extents(settings).unwrap_or_default();
        let mut known: Vec<Option<i64>> = here.iter().copied().map(Some).collect();
        known.resize(input.dimensions, None);
        for size in &app.sizes {
            let mut larger = settings.clone();
            change(&mut larger, &size.name, settings.number(&size.name) + 1.0);
            let there = extents(&larger).unwrap_or_default();
            for (d, known) in known.iter_mut().enumerate() {
                *known = known.filter(|extent| there.get(d) == Some(extent));
            }
        }
        Layout { input, known }
    }

    /// The layout of an input with these known extents.
    pub fn with(input: &'a InputDecl, known: Vec<Option<i64>>) -> Layout<'a> {
        Layout { input, known }
    }

    /// The name of the input.
    pub fn name(&self) -> &str {
        &self.input.name
    }

    /// The content of a file with the dimensions of the input. `order` lists the dimensions of the file from
    /// the fastest to the slowest.
    pub fn fit(&self, buffer: Buffer, order: &[usize]) -> Result<Result<Buffer, Misfit>, BufferError> {
        let extents = buffer.region().extents();
        if extents.len() != self.input.dimensions || self.holds(&extents, &self.by_index()) {
            return Ok(Ok(buffer));
        }
        let as_stored = self.as_stored(order);
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
        let remedy = match order.is_sorted() {
            true => format!("{transpose}, or {declare}"),
            false => declare,
        };
        let found = show::extents(&Region::of_extents(extents));
        Some(Misfit { found, dimension, extent: self.known[dimension]?, remedy })
    }
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
    use warploom::lang::Type;

    use super::*;

    fn input(storage_order: &[usize]) -> InputDecl {
        let (name, dimensions) = ("image".to_owned(), storage_order.len());
        InputDecl { name, ty: Type::U8, dimensions, storage_order: storage_order.to_vec() }
    }

    /// The extents after fitting, or the remedy.
    fn fitted(stored: &[usize], known: &[Option<i64>], extents: &[i64], order: &[usize]) -> String {
        let (input, known) = (input(stored), known.to_vec());
        let buffer = Buffer::zeros(Type::U8, Region::of_extents(extents)).unwrap();
        match (Layout { input: &input, known }).fit(buffer, order).unwrap() {
            Ok(buffer) => format!("{:?}", buffer.region().extents()),
            Err(Misfit { dimension, extent, remedy, .. }) => format!("{extent} in {dimension}: {remedy}"),
        }
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
