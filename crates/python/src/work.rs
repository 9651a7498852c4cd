//! Measuring, building and exporting.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use forebay_demo::{Domain, Order, TensorKind};
use forebay_engine::build::{Build, BuildOptions, MixBuild, Part, Prepared, default_shards};
use forebay_engine::data::{Dataset, Listing, ListingOptions};
use forebay_engine::load::{CachePolicy, OnError, Shuffle};
use forebay_engine::memory::default_memory_bytes;
use forebay_engine::profile::{COMPRESSION_CANDIDATES, ProfileOptions};
use forebay_engine::{Error, Result, StorageChoice};
use forebay_pipeline::{StorageFormat, Strategy};
use forebay_plan::{Caching, Profile, Runs, units};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::callback::Callback;
use crate::errors;
use crate::files::FilesRequest;
use crate::pipeline::Pipeline;
use crate::turns::Work;

/// What to measure, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ProfileRequest {
    files: FilesRequest,
    samples: u64,
    runs: NonZeroU32,
    seconds: f64,
    /// Instead of that many runs of each.
    fast: bool,
    storage: String,
    /// `none`, `system` or `application`.
    caching: String,
    threads: usize,
    shards: usize,
    batch_size: usize,
    seed: u64,
    /// Only these; `None` for all, and also in all formats of `encodings`.
    strategies: Option<Vec<String>>,
    encodings: Vec<String>,
    /// The additional formats to choose from; `None` for the usual ones.
    compression_candidates: Option<Vec<String>>,
    memory_bytes: Option<u64>,
    work_folder: PathBuf,
}

/// What to build, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct BuildRequest {
    files: FilesRequest,
    output: PathBuf,
    /// The strategies, and the share of samples that each is to have: one, unless a mix is asked for.
    formats: Vec<(String, f64)>,
    /// Whether they are a mix.
    is_mix: bool,
    /// Decides which sample of a mix is in which format.
    seed: u64,
    storage: String,
    threads: usize,
    shards: Option<usize>,
    /// How many bytes a sample takes, where a plan says so.
    bytes_per_sample: Option<f64>,
    overwrite: bool,
    memory_bytes: Option<u64>,
}

pub(crate) fn on_error(skip_errors: bool) -> OnError {
    if skip_errors { OnError::Skip } else { OnError::Fail }
}

/// Measures a pipeline; the profile as JSON.
#[pyfunction]
pub(crate) fn profile(
    py: Python<'_>,
    pipeline: &Pipeline,
    request: ProfileRequest,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let work = Work::new();
    let functions = &pipeline.functions;
    let pipeline = &functions.bind(&pipeline.inner, &work);
    let caching: Caching = serde_json::from_value(request.caching.as_str().into()).map_err(|_| {
        errors::usage(py, &format!("`caching` is `{}`, but must be `none`, `system` or `application`", request.caching))
    })?;
    let progress = Callback::new(progress);
    let (mut samples, folder) = (0, request.files.folder.clone());
    let measured = progress.watch(py, &work, || -> Result<Profile> {
        let strategies = if let Some(names) = &request.strategies {
            names.iter().map(|name| Strategy::parse(pipeline, name)).collect::<Result<_, _>>()?
        } else {
            let formats = request.encodings.iter().map(|name| name.parse::<StorageFormat>());
            Strategy::all(pipeline, &formats.collect::<Result<Vec<_>, _>>()?)
        };
        let candidates = match &request.compression_candidates {
            Some(names) => names.clone(),
            None if request.strategies.is_some() => Vec::new(),
            None => COMPRESSION_CANDIDATES.map(str::to_owned).to_vec(),
        };
        let candidates = candidates.iter().map(|name| name.parse()).collect::<Result<_, forebay_pipeline::Error>>()?;
        let storage: StorageChoice = request.storage.parse()?;
        let options = ProfileOptions {
            compressions: candidates,
            sample_count: request.samples,
            run_seconds: request.seconds,
            runs: if request.fast { Runs::Fast } else { Runs::Each(request.runs) },
            threads: request.threads,
            shards: request.shards,
            batch_size: request.batch_size,
            caching,
            shuffle: Shuffle::No,
            seed: request.seed,
            on_error: on_error(request.files.skip_errors),
            work_folder: request.work_folder,
            strategies,
            memory_bytes: request.memory_bytes.unwrap_or_else(default_memory_bytes),
        };
        let source = pipeline.source();
        let scan = |folder: &Path, options: &ListingOptions<'_>| Listing::scan_with(source, folder, options);
        let listing = request.files.listed(source, functions, &work, scan)?;
        samples = (listing.len() as u64).min(request.samples);
        forebay_engine::profile::profile(pipeline, listing, &storage, &options, &progress)
    })?;
    let measured = measured.map_err(|error| failed(py, &error, &work, samples, &folder))?;
    measured.to_json().map_err(|error| errors::plan(py, &error))
}

/// Builds a data set, or resumes a build that was stopped; returns how many of its shards existed already.
#[pyfunction]
pub(crate) fn build(
    py: Python<'_>,
    pipeline: &Pipeline,
    request: BuildRequest,
    progress: Option<Py<PyAny>>,
) -> PyResult<usize> {
    let work = Work::new();
    let functions = &pipeline.functions;
    let pipeline = functions.bind(&pipeline.inner, &work);
    let progress = Callback::new(progress);
    let (mut samples, folder) = (0, request.files.folder.clone());
    let built = progress.watch(py, &work, || -> Result<usize> {
        let parse = |(name, share): &(String, f64)| -> Result<(Strategy, f64)> {
            Ok((Strategy::parse(&pipeline, name)?, *share))
        };
        let formats: Vec<(Strategy, f64)> = request.formats.iter().map(parse).collect::<Result<_>>()?;
        let (source, on_error) = (pipeline.source(), on_error(request.files.skip_errors));
        let scan = |folder: &Path, options: &ListingOptions<'_>| Listing::scan_with(source, folder, options);
        let listing = Arc::new(request.files.listed(source, functions, &work, scan)?);
        samples = listing.len() as u64;
        let options = BuildOptions {
            threads: request.threads,
            shards: request
                .shards
                .unwrap_or_else(|| default_shards(samples, request.threads, request.bytes_per_sample)),
            on_error,
            overwrite: request.overwrite,
            resume: None,
            memory_bytes: request.memory_bytes.unwrap_or_else(default_memory_bytes),
        };
        let storage = request.storage.parse::<StorageChoice>()?.open(0)?;
        match formats.first() {
            Some((strategy, _)) if !request.is_mix => {
                let build = Build { pipeline: pipeline.clone(), strategy: strategy.clone(), listing, storage };
                Ok(build.run(&request.output, &options, &progress)?.shards_reused)
            }
            _ => {
                let build = MixBuild { pipeline: pipeline.clone(), formats, seed: request.seed, listing, storage };
                Ok(build.run(&request.output, &options, &progress)?.shards_reused)
            }
        }
    })?;
    built.map_err(|error| failed(py, &error, &work, samples, &folder))
}

/// Prepares a build on many machines (`prepare`), builds a part of one (`3/16`), or finishes it (`finish`): its shards, those that were there
/// already, samples and bytes.
#[pyfunction]
pub(crate) fn build_part(
    py: Python<'_>,
    pipeline: &Pipeline,
    request: BuildRequest,
    part: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(usize, usize, u64, u64)> {
    let stage = match part {
        "prepare" | "finish" => None,
        part => Some(part.parse::<Part>().map_err(|problem| errors::usage(py, &format!("`part`: {problem}")))?),
    };
    let work = Work::new();
    let functions = &pipeline.functions;
    let pipeline = functions.bind(&pipeline.inner, &work);
    let progress = Callback::new(progress);
    let (mut samples, folder) = (0, request.files.folder.clone());
    let done = progress.watch(py, &work, || -> Result<(usize, usize, u64, u64)> {
        let source = pipeline.source();
        let (name, _) = request.formats.first().ok_or_else(|| Error::Usage {
            problem: "there is no strategy to build".to_owned(),
            remedy: "pass `strategy`".to_owned(),
        })?;
        let (on_error, reach) = (on_error(request.files.skip_errors), request.files.reach());
        let (listing, shards) = if part == "prepare" {
            let scan = |folder: &Path, options: &ListingOptions<'_>| Listing::scan_with(source, folder, options);
            (request.files.listed(source, functions, &work, scan)?, request.shards)
        } else {
            match Prepared::find(&request.output, source, &folder, reach)? {
                Some(prepared) => (prepared.listing, Some(prepared.shards)),
                None => return finished(&request.output),
            }
        };
        samples = listing.len() as u64;
        let build = Build {
            strategy: Strategy::parse(&pipeline, name)?,
            listing: Arc::new(listing),
            storage: request.storage.parse::<StorageChoice>()?.open(0)?,
            pipeline: pipeline.clone(),
        };
        let options = BuildOptions {
            threads: request.threads,
            shards: shards.unwrap_or_else(|| default_shards(samples, request.threads, request.bytes_per_sample)),
            on_error,
            overwrite: request.overwrite,
            resume: None,
            memory_bytes: request.memory_bytes.unwrap_or_else(default_memory_bytes),
        };
        match (part, stage) {
            ("prepare", _) => {
                let manifest = build.prepare(&request.output, &options)?;
                let kept = manifest.as_ref().map_or(0, |manifest| manifest.shards.len());
                Ok((options.shards, kept, samples, manifest.map_or(0, |manifest| manifest.bytes)))
            }
            (_, Some(part)) => {
                let report = build.run_part(&request.output, &options, part, &progress)?;
                Ok((report.shards, report.shards_reused, report.samples, report.bytes))
            }
            _ => {
                let manifest = build.finish(&request.output, &options, &progress)?.manifest;
                Ok((manifest.shards.len(), 0, manifest.samples, manifest.bytes))
            }
        }
    })?;
    done.map_err(|error| failed(py, &error, &work, samples, &folder))
}

/// What there is of a data set that is finished already.
fn finished(output: &Path) -> Result<(usize, usize, u64, u64)> {
    let dataset = Dataset::open(output)?;
    let manifest = dataset.manifest();
    Ok((manifest.shards.len(), manifest.shards.len(), manifest.samples, manifest.bytes))
}

/// An error of work on that many samples of a folder. If functions raised exceptions on all of them, that is the error.
fn failed(py: Python<'_>, error: &Error, work: &Work, samples: u64, folder: &Path) -> PyErr {
    match work.raised_on(py, samples.max(1)) {
        Some(raised) if !error.ends() => raised.on_all(samples).to_exception(py),
        _ => errors::engine(py, error, Some(folder)),
    }
}

/// Writes a data set as tars; their paths.
#[pyfunction]
pub(crate) fn export_tar(
    py: Python<'_>,
    folder: PathBuf,
    output: PathBuf,
    threads: usize,
    memory_bytes: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Vec<PathBuf>> {
    let progress = Callback::new(progress);
    let exported = progress.watch(py, &Work::new(), || {
        let dataset = Arc::new(Dataset::open(&folder)?);
        let storage = StorageChoice::Local.open(0)?;
        let memory_bytes = memory_bytes.unwrap_or_else(default_memory_bytes);
        forebay_engine::export::export_tar(&dataset, &storage, &output, threads, memory_bytes, &progress)
    })?;
    exported.map(|exported| exported.files).map_err(|error| errors::engine(py, &error, None))
}

/// Makes data of a domain from a seed: the folder of the files, and the pipeline for them.
#[pyfunction]
pub(crate) fn demo_data(
    py: Python<'_>,
    domain: &str,
    folder: PathBuf,
    samples: Option<u64>,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, String)> {
    let domain = Domain::parse(domain).ok_or_else(|| {
        let names = Domain::ALL.map(Domain::name).join("`, `");
        errors::usage(py, &format!("unknown domain `{domain}`\nhint: expected one of `{names}`"))
    })?;
    let samples = samples.unwrap_or(domain.usual_samples());
    let order = Order { domain, folder, seed, samples, tensors: TensorKind::default() };
    let progress = Callback::new(progress);
    let made = progress.watch(py, &Work::new(), || forebay_demo::make(&order, &progress))?;
    made.map(|made| (made.folder, made.pipeline)).map_err(|error| errors::engine(py, &error, None))
}

/// Bytes of a size as people write it: `2GB`.
#[pyfunction]
pub(crate) fn parse_bytes(text: &str) -> PyResult<u64> {
    forebay_storage::parse_bytes(text).map_err(PyValueError::new_err)
}

/// What stays in memory between epochs, as the engine writes it, and its budget; 0 where it has none.
#[pyfunction]
pub(crate) fn parse_cache(text: &str) -> PyResult<(String, u64)> {
    let cache: CachePolicy = text.parse().map_err(|error: Error| PyValueError::new_err(error.to_string()))?;
    Ok((cache.to_string(), cache.bytes().unwrap_or(0)))
}

/// Seconds of a time as people write it: `1h30min`.
#[pyfunction]
pub(crate) fn parse_seconds(text: &str) -> PyResult<f64> {
    forebay_storage::parse_seconds(text).map_err(PyValueError::new_err)
}

/// A quantity as Forebay writes it everywhere; `unit` is `bytes`, `seconds`, `number`, `count` or `percent`.
#[pyfunction]
pub(crate) fn format_quantity(py: Python<'_>, value: f64, unit: &str) -> PyResult<String> {
    Ok(match unit {
        "bytes" => units::bytes(value),
        "seconds" => units::seconds(value),
        "number" => units::number(value),
        "count" => units::count(value as u64),
        "percent" => units::percent(value),
        other => return Err(errors::usage(py, &format!("no unit `{other}`"))),
    })
}
