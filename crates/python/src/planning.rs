//! Planning: arithmetic on profiles. JSON in, JSON out.

use forebay_plan::{
    AdviceOptions, LowerQuality, Measured, Mix, MixFormat, MixLimits, MixMode, Objective, Profile, Rate, Stalls,
    mix_by, mix_formats, mix_limits, mix_notices,
};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors;

/// What is wanted of a strategy.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    /// Weights, limits, prices and the machine: an [`Objective`] as JSON.
    objective: String,
    /// For how many epochs and months the prices are paid, where there are some.
    epochs: Option<u64>,
    months: Option<f64>,
}

impl Wanted {
    fn objective(&self, py: Python<'_>) -> PyResult<Objective> {
        let mut objective: Objective = serde_json::from_str(&self.objective)
            .map_err(|error| errors::usage(py, &format!("cannot plan for this objective: {error}")))?;
        let paid = objective.prices.map(|prices| prices.paid_for(self.epochs, self.months)).transpose();
        objective.prices = paid.map_err(|error| errors::plan(py, &error))?;
        Ok(objective)
    }
}

/// Each strategy of a profile in numbers.
#[pyfunction]
pub(crate) fn summarize(py: Python<'_>, profile: &str) -> PyResult<String> {
    let summaries = Profile::parse(profile).and_then(|profile| forebay_plan::summarize(&profile, None));
    Ok(json(&summaries.map_err(|error| errors::plan(py, &error))?))
}

/// What was cached, in words; nothing where there is no such kind of caching.
#[pyfunction]
pub(crate) fn caching_words(caching: &str) -> Option<&'static str> {
    serde_json::from_value(caching.into()).ok().map(forebay_plan::Caching::words)
}

/// The throughput of a strategy with its spread or interval, as tables have it, by its summary.
#[pyfunction]
pub(crate) fn rate_with_spread(summary: &str) -> Option<String> {
    serde_json::from_str(summary).ok().as_ref().map(forebay_plan::rate_with_spread)
}

/// What to know before relying on a profile, a paragraph each.
#[pyfunction]
pub(crate) fn notices(py: Python<'_>, profile: &str) -> PyResult<Vec<String>> {
    let notices = Profile::parse(profile).and_then(|profile| forebay_plan::notices(&profile));
    notices.map_err(|error| errors::plan(py, &error))
}

/// The best strategy of a profile.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, profile: &str, wanted: Wanted) -> PyResult<String> {
    let objective = wanted.objective(py)?;
    let plan = Profile::parse(profile).and_then(|profile| forebay_plan::plan(&profile, &objective));
    plan.and_then(|plan| plan.to_json()).map_err(|error| errors::plan(py, &error))
}

/// What is wanted of a mix of formats.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct MixWanted {
    /// Only these; empty for all that the profile knows.
    formats: Vec<String>,
    /// The name of a [`MixMode`].
    mode: String,
    buffer_bytes: u64,
    max_storage_bytes: Option<u64>,
    max_lossy_share: f64,
    trainer: Option<f64>,
}

/// The shares of the formats of a profile that give the most.
#[pyfunction]
pub(crate) fn mix(py: Python<'_>, profile: &str, wanted: MixWanted) -> PyResult<String> {
    let profile = Profile::parse(profile).map_err(|error| errors::plan(py, &error))?;
    let mode: MixMode = wanted.mode.parse().map_err(|error| errors::plan(py, &error))?;
    let all = mix_formats(&profile, wanted.max_lossy_share);
    let unknown = |name: &&String| all.iter().all(|format| format.format != **name);
    if let Some(name) = wanted.formats.iter().find(unknown) {
        let names = all.iter().map(|format| format.format.as_str()).collect::<Vec<_>>().join("`, `");
        return Err(errors::usage(
            py,
            &format!(
                "the profile has no format `{name}` that can be part of a mix\nhint: there are `{names}`; lossy ones need \
                 `max_lossy_share`"
            ),
        ));
    }
    let is_wanted = |format: &MixFormat| wanted.formats.is_empty() || wanted.formats.contains(&format.format);
    let formats: Vec<MixFormat> = all.into_iter().filter(is_wanted).collect();
    let limits = MixLimits {
        max_storage_bytes: wanted.max_storage_bytes,
        max_lossy_share: wanted.max_lossy_share,
        trainer_samples_per_second: wanted.trainer,
        ..mix_limits(&profile, wanted.buffer_bytes)
    };
    let mix = mix_by(mode, &formats, &limits).map_err(|error| errors::plan(py, &error))?;
    let notices = mix_notices(&profile).map_err(|error| errors::plan(py, &error))?;
    Ok(json(&FoundMix { mix, notices }))
}

/// A mix, and what its profile leaves open.
#[derive(Serialize)]
struct FoundMix {
    #[serde(flatten)]
    mix: Mix,
    notices: Vec<String>,
}

/// Every strategy of a profile: its rank, the Pareto front, what an encoding saves.
#[pyfunction]
pub(crate) fn analyze(py: Python<'_>, profile: &str, wanted: Wanted) -> PyResult<String> {
    let objective = wanted.objective(py)?;
    let analysis = Profile::parse(profile).and_then(|profile| forebay_plan::analyze(&profile, &objective));
    Ok(json(&analysis.map_err(|error| errors::plan(py, &error))?))
}

/// What profiles show together that differ in one thing.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, profiles: Vec<String>) -> PyResult<String> {
    let profiles = parse(py, &profiles)?;
    let comparison = forebay_plan::compare(&profiles.iter().collect::<Vec<_>>());
    Ok(json(&comparison.map_err(|error| errors::plan(py, &error))?))
}

/// Everything about every strategy of profiles as one table.
#[pyfunction]
pub(crate) fn table(py: Python<'_>, profiles: Vec<String>, wanted: Wanted) -> PyResult<String> {
    let objective = wanted.objective(py)?;
    let profiles = parse(py, &profiles)?;
    let table = forebay_plan::table(&profiles.iter().collect::<Vec<_>>(), &objective);
    Ok(json(&table.map_err(|error| errors::plan(py, &error))?))
}

/// Profiles as one page.
#[pyfunction]
pub(crate) fn report(py: Python<'_>, profiles: Vec<String>, wanted: Wanted) -> PyResult<String> {
    let objective = wanted.objective(py)?;
    let profiles = parse(py, &profiles)?;
    let report = forebay_report::Report::new(&profiles, &objective).map_err(|error| errors::plan(py, &error))?;
    Ok(report.page())
}

/// What a trainer waits for by measured rates, and what would change it.
#[pyfunction]
pub(crate) fn diagnose(py: Python<'_>, measured: &str) -> PyResult<String> {
    let measured: Measured = serde_json::from_str(measured)
        .map_err(|error| errors::usage(py, &format!("cannot diagnose these measurements: {error}")))?;
    Ok(json(&forebay_plan::diagnose(&measured).map_err(|error| errors::plan(py, &error))?))
}

/// The number of threads to compare with `threads`, to see what more of them would give.
#[pyfunction]
pub(crate) fn threads_to_compare(threads: u64) -> Option<u64> {
    forebay_plan::Scaling::threads_to_compare(threads, forebay_engine::cores() as u64)
}

/// What is wanted of advice.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AdviceWanted {
    trainer: Option<f64>,
    /// `None`: what suits the machine.
    memory_bytes: Option<u64>,
    max_storage_bytes: Option<u64>,
    max_prep_seconds: Option<f64>,
    lossy: bool,
    /// The quality, the share and the number of images of [`LowerQuality`].
    lower_quality: Option<(u8, f64, u64)>,
    /// What the commands name.
    pipeline: String,
    data: String,
}

/// What a profile recommends, and the commands that follow.
#[pyfunction]
pub(crate) fn advise(py: Python<'_>, profile: &str, wanted: AdviceWanted) -> PyResult<(String, Vec<String>)> {
    let options = AdviceOptions {
        trainer_samples_per_second: wanted.trainer,
        memory_bytes: wanted.memory_bytes.unwrap_or_else(forebay_engine::memory::default_memory_bytes),
        max_storage_bytes: wanted.max_storage_bytes,
        max_prep_seconds: wanted.max_prep_seconds,
        lossy: wanted.lossy,
        lower_quality: wanted.lower_quality.map(|(quality, share, images)| LowerQuality { quality, share, images }),
    };
    let advice = Profile::parse(profile).and_then(|profile| forebay_plan::advise(&profile, &options));
    let advice = advice.map_err(|error| errors::plan(py, &error))?;
    Ok((json(&advice), advice.commands(&wanted.pipeline, &wanted.data, &options)))
}

/// The rate of a measurement in parts, each samples and seconds.
#[pyfunction]
pub(crate) fn rate(parts: Vec<(f64, f64)>) -> Option<String> {
    Rate::of_parts(&parts).map(|rate| json(&rate))
}

/// What the consumer of a running loader waits for, by the loader's statistics.
#[pyfunction]
pub(crate) fn stalls(stats: &str) -> String {
    json(&Stalls::live(&serde_json::from_str(stats).unwrap_or_default()))
}

/// What a study measured as one page.
#[pyfunction]
pub(crate) fn study_page(py: Python<'_>, study: &str) -> PyResult<String> {
    let study: forebay_report::Study = serde_json::from_str(study).map_err(|error| {
        errors::usage(py, &format!("this is not a study: {error}\nhint: pass what `forebay.study` made"))
    })?;
    Ok(study.page(env!("CARGO_PKG_VERSION")))
}

fn parse(py: Python<'_>, profiles: &[String]) -> PyResult<Vec<Profile>> {
    let parsed = profiles.iter().map(|profile| Profile::parse(profile).map_err(|error| errors::plan(py, &error)));
    parsed.collect()
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what is measured has text keys and finite numbers")
}
