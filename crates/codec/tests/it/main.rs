//! Tests of the public interface, on generated images and, where they are present, on real files.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests are tests, but the lints know only functions"
)]

mod allocation;
mod audio;
mod data;
mod framing;
mod l3;
mod malformed;
mod oracle;

mod pictures;
mod policy;
mod properties;
mod rms;
mod signal;
mod stale;
mod tensor_encoding;
mod text;
mod variants;
mod warnings;
