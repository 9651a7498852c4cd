//! Tests of the public interface against libjpeg-turbo: equal pixels, or a refusal.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests are tests, but the lints know only functions"
)]

mod damage;
mod data;
mod equality;
mod pictures;
mod refusal;
mod turbo;
