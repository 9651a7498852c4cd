//! The integration tests of `forebay-storage`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, in its helpers too, and one that is skipped says why"
)]

mod contract;
mod credentials;
#[path = "../../../../tests/data.rs"]
mod data;
mod errors;
mod local;
#[path = "../../../../tests/object_server.rs"]
mod object_server;
mod page_cache;
mod probe;
mod profiles;
mod remote;
mod support;
mod throttle;
mod throttled;
mod write_faults;
mod writing;
