//! Advice: the questions of the (DL)² flowchart, answered by a profile, each with its figures.
//!
//! Does the data fit in memory? What is slow, storage or preparation? What should be done once? Would compression, a mix or lossy
//! encodings help, and which cache? The answers only put into words what [`plan`], [`mix`] and the profile say.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::mix::{Mix, mix, mix_formats, mix_limits};
use crate::objective::{Objective, RankedStrategy};
use crate::plan::{Plan, plan};
use crate::prediction::Bound;
use crate::profile::Profile;
use crate::units;

/// The subject of the advice.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AdviceOptions {
    /// How many samples per second the trainer takes, where that is known.
    pub trainer_samples_per_second: Option<f64>,
    /// How much memory there is for data.
    pub memory_bytes: u64,
    /// The largest size of the data set.
    pub max_storage_bytes: Option<u64>,
    /// The longest time for preparing it.
    pub max_prep_seconds: Option<f64>,
    /// Whether quality may be lost.
    pub lossy: bool,
    /// What a lower quality makes of the files, where that was measured.
    pub lower_quality: Option<LowerQuality>,
}

/// What a lower quality makes of image files, by some that were encoded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LowerQuality {
    /// The quality of JPEG.
    pub quality: u8,
    /// Their bytes then, over their bytes now.
    pub share: f64,
    /// How many images were encoded.
    pub images: u64,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// The question, in a word or two: `memory`, `bottleneck`, `offline steps`.
    pub about: String,
    /// The answer, with its figures.
    pub sentence: String,
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The strategy to build; one that reads the source files is not built.
    pub strategy: String,
    /// What it should give, and what the files give as they are, in samples per second.
    pub samples_per_second: f64,
    /// See `samples_per_second`; `None` where files were not measured.
    pub files_samples_per_second: Option<f64>,
    /// The formats of a mix and their shares, where a mix should give more.
    pub mix: Option<Mix>,
    /// The quality to recompress the files to first, where that should give more than all else; the strategy is `concatenated` then.
    pub recompress: Option<LowerQuality>,
    /// The cache to load with, as `--cache` takes it.
    pub cache: String,
    /// Why, a question and its answer each.
    pub answers: Vec<Answer>,
}

/// More than this must be gained for a recommendation.
const GAIN: f64 = 1.1;

/// What `profile` recommends.
pub fn advise(profile: &Profile, options: &AdviceOptions) -> Result<Advice> {
    let mut objective =
        Objective { trainer_samples_per_second: options.trainer_samples_per_second, ..Objective::default() };
    objective.limits.max_storage_bytes = options.max_storage_bytes;
    objective.limits.max_prep_seconds = options.max_prep_seconds;
    objective.limits.lossless = !options.lossy;
    let plan = plan(profile, &objective)?;
    let best = &plan.ranking[0];
    let files = plan.ranking.iter().find(|strategy| strategy.summary.split.keeps_files());
    let mut mixed = mixed(profile, options, best)?;
    let reached = mixed.as_ref().map_or(best.summary.samples_per_second, |mixed| mixed.predicted_samples_per_second);
    let smaller = smaller_files(&plan, options);
    let recompress = smaller.filter(|smaller| smaller.samples_per_second > GAIN * reached);
    if recompress.is_some() {
        mixed = None;
    }
    let bytes = recompress.map_or(best.summary.storage_bytes_total, |smaller| smaller.bytes);
    let (cache, cache_sentence) = cache(bytes, mixed.is_some(), options);
    let mut answers = vec![
        answer("memory", memory(profile, options)),
        answer("bottleneck", bottleneck(files.unwrap_or(best), options)),
        answer("offline steps", offline(best, files)),
    ];
    answers.extend(compression(&plan, best).map(|sentence| answer("compression", sentence)));
    answers.push(answer("mix", mix_sentence(mixed.as_ref(), best)));
    let of_smaller = smaller.map(|smaller| smaller.sentence(reached, options));
    answers.push(answer("quality", of_smaller.unwrap_or_else(|| quality(best, options))));
    answers.push(answer("cache", cache_sentence));
    Ok(Advice {
        strategy: if recompress.is_some() { CONCATENATED.to_owned() } else { plan.chosen.clone() },
        samples_per_second: recompress.map_or(best.summary.samples_per_second, |smaller| smaller.samples_per_second),
        files_samples_per_second: files.map(|files| files.summary.samples_per_second),
        mix: mixed,
        recompress: recompress.map(|smaller| smaller.by),
        cache,
        answers,
    })
}

fn answer(about: &str, sentence: String) -> Answer {
    Answer { about: about.to_owned(), sentence }
}

fn memory(profile: &Profile, options: &AdviceOptions) -> String {
    let (data, memory) = (profile.data.bytes, options.memory_bytes);
    let sizes = format!("{} of files, {} of memory for data", units::bytes(data as f64), units::bytes(memory as f64));
    if data <= memory {
        format!(
            "the files fit ({sizes}): after the first epoch they can come from the page cache, and storage matters once"
        )
    } else {
        let share = memory as f64 / data as f64;
        format!(
            "the files do not fit ({sizes}): {} of them can stay in memory, the rest is read every epoch",
            units::percent(share)
        )
    }
}

fn bottleneck(files: &RankedStrategy, options: &AdviceOptions) -> String {
    let rate = files.summary.samples_per_second;
    let what = match files.summary.modeled_bound_by {
        Bound::Storage => "storage is what takes the time",
        Bound::Cpu => "the bottleneck is preparation, not storage",
        Bound::Trainer | Bound::Unknown => "there is no known bottleneck",
    };
    let measured =
        format!("`{}` gives {}: {what} ({})", files.summary.name, units::samples_per_second(rate), files.sentence);
    match options.trainer_samples_per_second {
        Some(trainer) if trainer <= rate => {
            format!("{measured}; the trainer takes {}, so it does not need to wait", units::samples_per_second(trainer))
        }
        Some(trainer) => {
            let waits = units::percent(1.0 - rate / trainer);
            format!(
                "{measured}; the trainer takes {} and waits {waits} of the time",
                units::samples_per_second(trainer)
            )
        }
        None => format!("{measured}; the rate of the trainer was not given (`--trainer`)"),
    }
}

fn offline(best: &RankedStrategy, files: Option<&RankedStrategy>) -> String {
    let summary = &best.summary;
    if summary.split.keeps_files() {
        return "no step is worth running offline: keep the files, and run all steps every epoch".to_owned();
    }
    let times = files.map(|files| summary.samples_per_second / files.summary.samples_per_second);
    let times =
        times.map_or_else(String::new, |times| format!(", {} times as much as from files", units::number(times)));
    format!(
        "build `{}`: {}{times}, for {} on storage and {} of preparation",
        summary.name,
        units::samples_per_second(summary.samples_per_second),
        units::bytes(summary.storage_bytes_total as f64),
        units::seconds(summary.prep_seconds_total)
    )
}

/// Of the split that was chosen.
fn compression(plan: &Plan, best: &RankedStrategy) -> Option<String> {
    let name = &best.summary.name;
    let of_it = |choice: &&crate::CompressionChoice| {
        choice.strategy == *name || choice.compression.as_ref().is_some_and(|compression| compression == name)
    };
    plan.compressions.iter().find(of_it).map(|choice| choice.sentence.clone())
}

/// The mix of all formats that were measured, where it gives clearly more than the best of them.
fn mixed(profile: &Profile, options: &AdviceOptions, best: &RankedStrategy) -> Result<Option<Mix>> {
    let lossy_share = if options.lossy { 1.0 } else { 0.0 };
    let formats = mix_formats(profile, lossy_share);
    if formats.len() < 2 || best.summary.split.keeps_files() {
        return Ok(None);
    }
    let limits = crate::MixLimits {
        max_storage_bytes: options.max_storage_bytes,
        max_lossy_share: lossy_share,
        trainer_samples_per_second: options.trainer_samples_per_second,
        ..mix_limits(profile, 0)
    };
    let found = mix(&formats, &limits)?;
    let gains = found.shares.len() > 1 && found.predicted_samples_per_second > GAIN * best.summary.samples_per_second;
    Ok(gains.then_some(found))
}

fn mix_sentence(mixed: Option<&Mix>, best: &RankedStrategy) -> String {
    let Some(mixed) = mixed else {
        return "no mix of the formats that were measured should give 10 % more than one format".to_owned();
    };
    let shares = mixed.shares.iter().map(|share| format!("{} of `{}`", units::percent(share.share), share.format));
    format!(
        "a mix should give more, {} instead of {}: {}",
        units::samples_per_second(mixed.predicted_samples_per_second),
        units::samples_per_second(best.summary.samples_per_second),
        shares.collect::<Vec<_>>().join(", ")
    )
}

fn quality(best: &RankedStrategy, options: &AdviceOptions) -> String {
    let rate = best.summary.samples_per_second;
    let enough = options.trainer_samples_per_second.is_some_and(|trainer| rate >= trainer);
    match best.summary.modeled_bound_by {
        _ if enough => "there is no need to lose quality: the trainer is never kept waiting".to_owned(),
        Bound::Storage => {
            let size = units::bytes(best.summary.storage_bytes_total as f64);
            let may = if options.lossy {
                "and a loss of quality is allowed"
            } else {
                "if a loss of quality is acceptable (`--lossy`)"
            };
            format!("storage is still the bottleneck, with {size} per epoch: a lossy encoding reads less, {may}")
        }
        Bound::Cpu | Bound::Trainer | Bound::Unknown => {
            "lower quality would gain nothing: fewer bytes do not help, because storage is not the bottleneck"
                .to_owned()
        }
    }
}

/// The files at a lower quality, in records.
#[derive(Clone, Copy)]
struct SmallerFiles {
    by: LowerQuality,
    /// What they take together.
    bytes: u64,
    samples_per_second: f64,
}

/// What records of recompressed files should give. Of bare files nobody knows: opening them takes time, too, which does not become less.
fn smaller_files(plan: &Plan, options: &AdviceOptions) -> Option<SmallerFiles> {
    let by = options.lower_quality.filter(|_| options.lossy)?;
    let records = plan.ranking.iter().find(|strategy| strategy.summary.name == CONCATENATED)?;
    // That they are decoded faster, too, is left out.
    let prediction = &records.prediction;
    let bounds = [prediction.load.map(|load| load / by.share), prediction.decode, prediction.trainer];
    let predicted = bounds.into_iter().flatten().reduce(f64::min)?;
    let bytes = (records.summary.storage_bytes_total as f64 * by.share) as u64;
    let fits = options.max_storage_bytes.is_none_or(|most| bytes <= most);
    fits.then_some(SmallerFiles { by, bytes, samples_per_second: predicted })
}

impl SmallerFiles {
    /// What they would change where `reached` is reached without them.
    fn sentence(&self, reached: f64, options: &AdviceOptions) -> String {
        let LowerQuality { quality, share, images } = self.by;
        let size = format!(
            "at JPEG quality {quality} the files would take {} of their size, {} (estimated from {})",
            units::percent(share),
            units::bytes(self.bytes as f64),
            units::counted(images, "image")
        );
        let rate = units::samples_per_second(self.samples_per_second);
        let before = units::samples_per_second(reached);
        if options.trainer_samples_per_second.is_some_and(|trainer| reached >= trainer) {
            format!("there is no need to lose quality: the trainer is never kept waiting ({size})")
        } else if self.samples_per_second > GAIN * reached {
            format!("{size}, and records of them should give {rate} instead of {before}: recompress them first")
        } else {
            format!("{size}, but records of them should give {rate}, not clearly more than {before}: keep the quality")
        }
    }
}

/// The cache for this many bytes of samples, in the form of `--cache`, and why.
fn cache(bytes: u64, is_mix: bool, options: &AdviceOptions) -> (String, String) {
    let memory = options.memory_bytes;
    let sizes = format!("{} of samples, {} of memory", units::bytes(bytes as f64), units::bytes(memory as f64));
    if is_mix {
        let cache = format!("liquid:{}", size(memory));
        let sentence = format!("`{cache}` caches samples of a mix in their stored form, the same share of every batch");
        return (cache, sentence);
    }
    if bytes <= memory {
        let cache = format!("decoded:{}", size(memory));
        (
            cache.clone(),
            format!("all samples fit ({sizes}): `{cache}` caches them with the results of the deterministic steps"),
        )
    } else {
        let cache = format!("liquid:{}", size(memory));
        let share = units::percent(memory as f64 / bytes as f64);
        (
            cache.clone(),
            format!("not all samples fit ({sizes}): with `{cache}`, {share} of every batch comes from memory"),
        )
    }
}

/// At most this much, in the form of `--cache`, rounded to two digits or more.
fn size(bytes: u64) -> String {
    let unit = if bytes >= 10_000_000_000 { 1_000_000_000 } else { 1_000_000 };
    units::typed_bytes(bytes / unit * unit)
}

impl Advice {
    /// The commands that follow it, for `pipeline` on the files in the folder `data`.
    pub fn commands(&self, pipeline: &str, data: &str, options: &AdviceOptions) -> Vec<String> {
        let mut commands = Vec::new();
        let mut data = data.to_owned();
        if let Some(LowerQuality { quality, .. }) = self.recompress {
            commands.push(format!("forebay recompress {data} smaller/ --quality {quality}"));
            data = format!("smaller/jpeg-{quality}");
        }
        let keeps_files = self.mix.is_none() && self.strategy == KEPT_FILES;
        if keeps_files {
            commands.push(format!("forebay load {pipeline} --data {data} --shuffle --cache {}", self.cache));
        } else {
            let share = |share: &crate::MixShare| format!("{}={:.3}", share.format, share.share);
            let what = match &self.mix {
                Some(mix) => format!("--mix {}", mix.shares.iter().map(share).collect::<Vec<_>>().join(",")),
                None => format!("--strategy {}", self.strategy),
            };
            commands.push(format!("forebay build {pipeline} --data {data} {what} -o dataset/"));
            commands.push(format!("forebay load dataset/ --shuffle --cache {}", self.cache));
        }
        if let Some(trainer) = options.trainer_samples_per_second {
            let what = if keeps_files { format!("{data} {pipeline}") } else { "dataset/".to_owned() };
            commands.push(format!("forebay diagnose {what} --trainer {trainer}"));
        }
        commands
    }
}

/// The strategy that is not built.
const KEPT_FILES: &str = "unprocessed";
/// The strategy that stores the unchanged files in records.
const CONCATENATED: &str = "concatenated";
