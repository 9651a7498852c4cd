//! Whole runs of the program: exit code, standard output, standard error, and the files that it leaves.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and one that is skipped says why"
)]

mod analyzing;
mod architecture;
mod compression;
mod convert;
#[path = "../../../../tests/data.rs"]
mod data;
mod diagnosing;
mod domains;
mod errors;
mod experiment;
mod faults;
mod files;
mod inspect;
mod integrity;
mod interrupt;
mod memory;
mod mixed_domains;
mod mixing;
#[path = "../../../../tests/object_server.rs"]
mod object_server;
mod remote;
mod report;
mod resume;
mod sharing;
mod strangers;
mod support;
mod surface;
mod tensor_encodings;
mod walk;
