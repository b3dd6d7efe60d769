//! Rewritten pipelines compute what the original ones do: the same bits where the result does not depend on
//! the order, otherwise within the rounding error of a sum.

mod check;
mod chunk;
mod clone;
mod cut;
mod expand;
mod factor;
mod gather;
mod join;
mod permute;
mod separate;
mod split;
mod tabulate;
mod tree;
mod unroll;
