//! The native half of the Python package: `forebay._native`. The only crate that knows Python.
//!
//! Python code never uses this module itself; the package in `python/forebay` does, and makes it pleasant. What is here is
//! what only Rust can do: open what samples come from (`source::Source`), load it (`loader::Loader`), run an epoch without holding Python's lock
//! (`epoch::Epoch`), hand batches over without a copy (`array::Array`), measure and build (`work`), look at data
//! (`data_work`), and plan (`planning`). Errors become the exceptions of `forebay._errors`, with path, shard and record; what a Python function of the
//! user's raises is passed on unchanged (`raised`). Such functions are called one at a time (`turns`).
//!
//! What goes in and out is plain: numbers, texts, dictionaries, and JSON for profiles, plans and manifests, which have their
//! JSON layout anyway.
//!
//! ```python
//! loader = _native.Loader(_native.Source.dataset("dataset/", "local", False), {"batch_size": 64, "threads": 2, ...})
//! epoch = loader.start(loader.beginning_of(0))
//! while (next := epoch.next_batch()) is not None:
//!     samples_seen, batches_seen, batch = next
//!     numpy.asarray(batch["image"])  # no copy
//! ```
//!
//! # Limits
//!
//! A running epoch belongs to the process that started it: after a fork, the child must not touch it (the Python half
//! sees to that), and dropping it there does nothing. Encoded bytes and texts are copied; tensors and whole numbers are
//! not. Only Linux is tested.

#![deny(unsafe_code)]
#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands what it extracts from Python over by value")]

mod array;
mod callback;
mod columns;
mod data_work;
mod decode;
mod epoch;
mod errors;
mod files;
mod function;
mod in_process;
mod loader;
mod pipeline;
mod planning;
mod raised;
mod source;
mod strips;
mod turns;
mod work;

use pyo3::prelude::*;

/// Running out of memory is an exception, not the end of the process.
#[global_allocator]
static ALLOCATOR: forebay_allocator::Allocator = forebay_allocator::Allocator;

/// The `forebay` command with these arguments, the program's name first; the exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| forebay_cli::run(arguments))
}

/// The module's content.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    turns::register_at_fork(module)?;
    module.add_class::<array::Array>()?;
    module.add_class::<epoch::Epoch>()?;
    module.add_class::<pipeline::Pipeline>()?;
    module.add_class::<loader::Loader>()?;
    module.add_class::<source::Source>()?;
    module.add_function(wrap_pyfunction!(decode::decode, module)?)?;
    module.add_function(wrap_pyfunction!(epoch::bound_by, module)?)?;
    module.add_function(wrap_pyfunction!(errors::exceptions, module)?)?;
    module.add_function(wrap_pyfunction!(strips::l3_strips, module)?)?;
    module.add_function(wrap_pyfunction!(work::profile, module)?)?;
    module.add_function(wrap_pyfunction!(planning::summarize, module)?)?;
    module.add_function(wrap_pyfunction!(planning::notices, module)?)?;
    module.add_function(wrap_pyfunction!(planning::caching_words, module)?)?;
    module.add_function(wrap_pyfunction!(planning::rate_with_spread, module)?)?;
    module.add_function(wrap_pyfunction!(planning::plan, module)?)?;
    module.add_function(wrap_pyfunction!(planning::mix, module)?)?;
    module.add_function(wrap_pyfunction!(planning::advise, module)?)?;
    module.add_function(wrap_pyfunction!(planning::analyze, module)?)?;
    module.add_function(wrap_pyfunction!(planning::compare, module)?)?;
    module.add_function(wrap_pyfunction!(planning::diagnose, module)?)?;
    module.add_function(wrap_pyfunction!(planning::rate, module)?)?;
    module.add_function(wrap_pyfunction!(planning::stalls, module)?)?;
    module.add_function(wrap_pyfunction!(planning::threads_to_compare, module)?)?;
    module.add_function(wrap_pyfunction!(planning::table, module)?)?;
    module.add_function(wrap_pyfunction!(planning::report, module)?)?;
    module.add_function(wrap_pyfunction!(planning::study_page, module)?)?;
    module.add_function(wrap_pyfunction!(work::build, module)?)?;
    module.add_function(wrap_pyfunction!(work::build_part, module)?)?;
    module.add_function(wrap_pyfunction!(data_work::analyze_data, module)?)?;
    module.add_function(wrap_pyfunction!(data_work::data_page, module)?)?;
    module.add_function(wrap_pyfunction!(data_work::lower_quality, module)?)?;
    module.add_function(wrap_pyfunction!(data_work::recompress, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(work::demo_data, module)?)?;
    module.add_function(wrap_pyfunction!(work::export_tar, module)?)?;
    module.add_function(wrap_pyfunction!(work::parse_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(work::parse_cache, module)?)?;
    module.add_function(wrap_pyfunction!(work::parse_seconds, module)?)?;
    module.add_function(wrap_pyfunction!(pipeline::meant_argument, module)?)?;
    module.add_function(wrap_pyfunction!(pipeline::meant_step, module)?)?;
    module.add_function(wrap_pyfunction!(work::format_quantity, module)?)
}
