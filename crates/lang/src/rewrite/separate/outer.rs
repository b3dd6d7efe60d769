//! Matrices of weights that are outer products.

use crate::affine::gcd;
use crate::op::BinaryOp;
use crate::rewrite::separate::sums::{binary, number, signed};
use crate::types::{Type, Value};

/// The most weights that are tried as the pivot of their column, because quotients of floats round.
const MOST_PIVOTS: usize = 128;

/// An outer product: the weight at a row and a column is the product of their factors.
pub(super) struct Factors {
    pub rows: Vec<Value>,
    pub columns: Vec<Value>,
}

/// The factors of a matrix of weights of one type. Each row and each column has a weight other than 0.
///
/// Integers: small factors if the weights are an outer product as they stand, otherwise factors modulo 2^n, which exist
/// for every outer product modulo 2^n. Floats: products must round to the weights.
pub(super) fn factors(matrix: &[Vec<Value>]) -> Option<Factors> {
    let ty = matrix.first()?.first()?.ty();
    let candidates = if ty.is_float() { of_floats(matrix, ty) } else { of_integers(matrix, ty) };
    candidates.into_iter().find(|factors| factors.give(matrix))
}

impl Factors {
    fn give(&self, matrix: &[Vec<Value>]) -> bool {
        let gives = |(row, weights): (&Value, &Vec<Value>)| {
            let mut pairs = self.columns.iter().zip(weights);
            pairs.all(|(column, weight)| binary(BinaryOp::Mul, *row, *column) == *weight)
        };
        self.rows.iter().zip(matrix).all(gives)
    }

    fn of_numbers(ty: Type, rows: &[i64], columns: &[i64]) -> Factors {
        let values = |numbers: &[i64]| numbers.iter().map(|at| number(ty, *at)).collect();
        Factors { rows: values(rows), columns: values(columns) }
    }
}

fn of_integers(matrix: &[Vec<Value>], ty: Type) -> Vec<Factors> {
    let numbers = |number: &dyn Fn(Value) -> i64| -> Vec<Vec<i64>> {
        matrix.iter().map(|row| row.iter().map(|weight| number(*weight)).collect()).collect()
    };
    let unsigned = |weight: Value| signed(weight) & (mask(8 * ty.bytes() as u32) as i64);
    let plain = [numbers(&signed), numbers(&unsigned)].into_iter().filter_map(|matrix| whole(&matrix));
    let plain: Vec<_> = plain.chain(modular(&numbers(&signed), 8 * ty.bytes() as u32)).collect();
    plain.iter().map(|(rows, columns)| Factors::of_numbers(ty, rows, columns)).collect()
}

fn of_floats(matrix: &[Vec<Value>], ty: Type) -> Vec<Factors> {
    let mut candidates = Vec::new();
    let is_whole = |weight: &Value| weight.as_f64().fract() == 0.0 && weight.as_f64().abs() < 1e15;
    if matrix.iter().flatten().all(is_whole) {
        let numbers = |row: &Vec<Value>| row.iter().map(|weight| weight.as_f64() as i64).collect();
        let numbers: Vec<Vec<i64>> = matrix.iter().map(numbers).collect();
        candidates.extend(whole(&numbers).map(|(rows, columns)| Factors::of_numbers(ty, &rows, &columns)));
    }
    let pivots = matrix.iter().flat_map(|columns| columns.iter().enumerate().map(move |at| (columns, at)));
    let pivots = pivots.filter(|(_, (_, one))| one.as_f64() != 0.0).take(MOST_PIVOTS);
    candidates.extend(pivots.map(|(columns, (pivot, one))| {
        let rows = matrix.iter().map(|row| binary(BinaryOp::Div, row[pivot], *one)).collect();
        Factors { rows, columns: columns.clone() }
    }));
    candidates
}

/// Factors in whole numbers, if the first row divided by its common divisor divides the others.
fn whole(matrix: &[Vec<i64>]) -> Option<(Vec<i64>, Vec<i64>)> {
    let first = matrix.first()?;
    let common = first.iter().fold(0, |common, weight| gcd(common, *weight));
    let columns: Vec<i64> = first.iter().map(|weight| weight.checked_div(common)).collect::<Option<_>>()?;
    let pivot = columns.iter().position(|weight| *weight != 0)?;
    let row = |row: &Vec<i64>| {
        let divides = row[pivot].checked_rem(columns[pivot])? == 0;
        row[pivot].checked_div(columns[pivot]).filter(|_| divides)
    };
    Some((matrix.iter().map(row).collect::<Option<_>>()?, columns))
}

/// Factors modulo 2^bits.
///
/// Divided by the largest common power of 2, one weight is odd and has an inverse: its row and column then determine
/// all others, modulo the remaining bits.
fn modular(matrix: &[Vec<i64>], bits: u32) -> Option<(Vec<i64>, Vec<i64>)> {
    let twos = matrix.iter().flatten().map(|weight| weight.trailing_zeros()).min()?.min(bits - 1);
    let odd = |row: &Vec<i64>| row.iter().position(|weight| (weight >> twos) & 1 == 1);
    let (row, pivot) = matrix.iter().find_map(|row| Some((row, odd(row)?)))?;
    let inverse = inverse((row[pivot] >> twos) as u64);
    let mask = mask(bits - twos);
    let factor = |weight: i64| ((weight >> twos) as u64).wrapping_mul(inverse) & mask;
    let rows = matrix.iter().map(|row| (factor(row[pivot]) as i64) << twos).collect();
    Some((rows, row.iter().map(|weight| weight >> twos).collect()))
}

/// The inverse of an odd number modulo 2^64. Each step doubles the number of correct bits, from 3.
fn inverse(odd: u64) -> u64 {
    let step = |inverse: u64| inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
    (0..5).fold(odd, |inverse, _| step(inverse))
}

/// The lowest bits.
fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits.clamp(1, 64))
}
