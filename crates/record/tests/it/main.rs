//! The crate from outside: real files, damaged files, made-up files.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "helpers of tests, which may panic and say why they skip"
)]

mod arrow;
mod compression;
mod damage;
#[path = "../../../../tests/data.rs"]
mod data;
mod example;
mod golden;
mod index;
mod interop;
mod messages;
mod mutants;
mod parquet;
mod reader;
mod streams;
mod support;
mod tensor;
