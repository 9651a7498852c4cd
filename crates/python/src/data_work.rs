//! Looking at data, and making it smaller.

use std::path::PathBuf;

use forebay_engine::Result;
use forebay_engine::analyze::{AnalyzeOptions, kind_of};
use forebay_engine::memory::default_memory_bytes;
use forebay_engine::recompress::{
    RecompressOptions, Recompressed, RecompressedImage, RecompressedVariant, lossy_encodings,
};
use forebay_plan::{DataAnalysis, NextStep, Skipped};
use pyo3::prelude::*;
use serde::Serialize;

use crate::callback::Callback;
use crate::errors;
use crate::source::Source;
use crate::turns::Work;
use crate::work::on_error;

/// How to analyze.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AnalyzeRequest {
    /// What was named, for commands.
    data: String,
    distance: u32,
    threads: usize,
    skip_errors: bool,
    memory_bytes: Option<u64>,
}

/// What samples are like, and what to do about it, as JSON.
#[pyfunction]
pub(crate) fn analyze_data(
    py: Python<'_>,
    source: &Source,
    request: AnalyzeRequest,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let progress = Callback::new(progress);
    let inner = &*source.inner;
    let options = AnalyzeOptions {
        threads: request.threads,
        on_error: on_error(request.skip_errors),
        memory_bytes: request.memory_bytes.unwrap_or_else(default_memory_bytes),
        max_distance: request.distance,
    };
    let analyzed = progress.watch(py, &Work::new(), || forebay_engine::analyze::analyze(inner, &options, &progress))?;
    let analysis = analyzed.map_err(|error| errors::engine(py, &error, None))?;
    let next = analysis.next_steps(&request.data, kind_of(inner));
    Ok((json(&analysis), json(&next)))
}

/// What JPEG of a quality makes of some images of a source: the quality, the share of their bytes, and how many they are.
#[pyfunction]
pub(crate) fn lower_quality(
    py: Python<'_>,
    source: &Source,
    quality: u8,
    count: u64,
) -> PyResult<Option<(u8, f64, u64)>> {
    let inner = &*source.inner;
    let found = py.detach(|| forebay_engine::analyze::lower_quality(inner, quality, count));
    let found = found.map_err(|error| errors::engine(py, &error, None))?;
    Ok(found.map(|found| (found.quality, found.share, found.images)))
}

/// An analysis as one page.
#[pyfunction]
pub(crate) fn data_page(py: Python<'_>, analysis: &str, data: &str, next: &str) -> PyResult<String> {
    let wrong = |error: serde_json::Error| errors::usage(py, &format!("this is not an analysis: {error}"));
    let analysis: DataAnalysis = serde_json::from_str(analysis).map_err(wrong)?;
    let next: Vec<NextStep> = serde_json::from_str(next).map_err(wrong)?;
    Ok(forebay_report::data_page(&analysis, data, &next, env!("CARGO_PKG_VERSION")))
}

/// What to recompress, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "the arguments of a Python function")]
pub(crate) struct RecompressRequest {
    input: PathBuf,
    output: PathBuf,
    /// `jpeg` or `webp`.
    format: String,
    quality: Vec<u8>,
    verify: bool,
    metrics: bool,
    overwrite: bool,
    threads: usize,
    skip_errors: bool,
    memory_bytes: Option<u64>,
}

/// What `recompress` gives.
#[derive(Serialize)]
struct Outcome {
    variants: Vec<RecompressedVariant>,
    others: u64,
    images: Vec<RecompressedImage>,
    skipped: u64,
    skipped_samples: Vec<Skipped>,
}

/// Writes images at other qualities; what became of them, as JSON.
#[pyfunction]
pub(crate) fn recompress(py: Python<'_>, request: RecompressRequest, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let progress = Callback::new(progress);
    let done = progress.watch(py, &Work::new(), || -> Result<Outcome> {
        let options = RecompressOptions {
            encodings: lossy_encodings(&request.format, &request.quality)?,
            verify: request.verify,
            metrics: request.metrics,
            overwrite: request.overwrite,
            threads: request.threads,
            on_error: on_error(request.skip_errors),
            memory_bytes: request.memory_bytes.unwrap_or_else(default_memory_bytes),
        };
        let done = forebay_engine::recompress::recompress(&request.input, &request.output, &options, &progress)?;
        let Recompressed { variants, images, others, skipped_samples } = done;
        let skipped = Skipped::count(&skipped_samples);
        Ok(Outcome { variants, others, images, skipped, skipped_samples })
    })?;
    Ok(json(&done.map_err(|error| errors::engine(py, &error, None))?))
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is measured has text keys and finite numbers")
}
