//! Tests of the whole crate through its public face, on pictures that they make themselves.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop, and one that is skipped should say why"
)]

mod building;
mod converting;
mod damage;
mod domains;
mod faults;
mod integrity;
mod links;
mod listing;
mod loading;
mod memory;
mod packed;
mod profiling;
mod stats;
mod support;
