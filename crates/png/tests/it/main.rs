//! Tests of the public interface against the `png` crate: equal pixels, or a refusal.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests are tests, but the lints know only functions"
)]

mod damage;
mod data;
mod equality;
mod library;
mod made;
mod refusal;
