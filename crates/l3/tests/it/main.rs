//! The crate from outside: every mode, depth, channel count and level.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests fail by panicking, and say on the error stream what they skip"
)]

mod damage;
mod golden;
mod images;
mod levels;
mod regions;
mod released;
mod round_trip;
mod strip_batch;
