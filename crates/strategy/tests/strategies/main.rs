//! Strategies on made-up spaces.

mod against_random;
mod evolution;
mod learning;
mod made_up;
mod rules;
mod walks;
