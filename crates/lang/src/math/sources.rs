//! The text of this module.

/// The source text of these functions, from which back ends print their own: a file after those whose functions it calls.
/// `warploom_codegen` says which part of Rust it may use.
pub const SOURCES: [&str; 4] = [
    include_str!("../math.rs"),
    include_str!("angles.rs"),
    include_str!("powers.rs"),
    include_str!("double.rs"),
];
