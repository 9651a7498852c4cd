//! The integration tests of `forebay-storage`.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is how a failure is reported, in its helpers too")]

mod contract;
mod errors;
mod local;
mod page_cache;
mod probe;
mod support;
mod throttle;
mod throttled;
mod writing;
