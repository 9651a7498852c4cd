//! Tests of the whole crate through its public face, on pictures that they make themselves.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop, and one that is skipped should say why"
)]

mod analyzing;
mod arrow;
mod building;
mod choosing;
mod compressed;
mod compressed_sources;
mod converting;
mod damage;
#[path = "../../../../tests/data.rs"]
mod data;
mod dictionaries;
mod domains;
mod faults;
mod integrity;
mod interleaving;
mod links;
mod listing;
mod loading;
mod meanwhile;
mod memory;
mod mixing;
#[path = "../../../../tests/object_server.rs"]
mod object_server;
mod packing;
mod parquet;
mod parts;
mod profiling;
mod progressive;
mod recompressing;
mod remote;
mod stats;
mod streams;
mod support;
mod tar_index;
mod tensor_encodings;
