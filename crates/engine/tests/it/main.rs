//! Tests of the whole crate through its public face, on pictures that they make themselves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod building;
mod converting;
mod listing;
mod loading;
mod packed;
mod profiling;
mod support;
