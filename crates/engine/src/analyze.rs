//! Analyzing: what samples are like before anything is done to them. Sizes, formats, dimensions, JPEG qualities, colors, duplicates, broken samples and
//! the balance of classes, for any [`Source`]: files, tar or TFRecord shards, or a data set that was built.
//!
//! Every image is decoded once, so that damage is detected wherever it is. Only the facts of a sample are retained, about 150 bytes: for a million
//! samples, 150 MB in addition to the memory budget.

mod duplicates;
mod facts;
mod open;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use forebay_codec::image::{Decoder, Encoding};
use forebay_pipeline::Format;
use forebay_plan::{
    ClassCount, Colors, DataAnalysis, DataKind, Distribution, FormatCount, LowerQuality, Qualities, Recompression,
    Skipped,
};

use crate::error::{Error, Result};
use crate::load::OnError;
use crate::memory::{Gate, Pass, StreamLimits};
use crate::progress::{Progress, while_wanted};
use crate::recompress::lossy_encodings;
use crate::source::{Block, Failed, Source};
use crate::sync::Mutex;
use crate::threads::share;
use facts::{Facts, Kind, Look};

pub use open::open_data;

/// How to analyze.
#[derive(Debug, Clone)]
pub struct AnalyzeOptions {
    /// Samples that are looked at at once.
    pub threads: usize,
    /// What happens to a sample that cannot be read: with [`OnError::Skip`] it is counted and listed, which is what one usually wants to know.
    pub on_error: OnError,
    /// The memory budget: how many bytes the samples at work may take together.
    pub memory_bytes: u64,
    /// In how many bits of 64 the perceptual hashes of near duplicates may differ, up to [`DISTANCE_MAX`].
    pub max_distance: u32,
}

/// Hashes that differ in more bits say nothing.
pub const DISTANCE_MAX: u32 = 16;
/// The default maximum of differing bits of near duplicates: copies in another size or quality differ in fewer, other images hardly ever do.
pub const DISTANCE_DEFAULT: u32 = 4;

/// So many samples that cannot be read are listed; all are counted.
const BROKEN_LISTED_MAX: usize = 100_000;

/// The approximate number of images that are encoded at [`LOWER_QUALITY`], to estimate the savings.
const ENCODED_IMAGES: u64 = 64;
/// The quality of many data sets on the web (Places365 has it), at which training hardly loses anything.
const LOWER_QUALITY: &str = "jpeg-75";

/// What `source` is.
pub fn kind_of(source: &dyn Source) -> DataKind {
    if source.folder().is_none() {
        DataKind::Dataset
    } else if source.pipeline().source().format == Format::Files {
        DataKind::Folder
    } else {
        DataKind::Shards
    }
}

/// Looks at every sample of `source`.
pub fn analyze(source: &dyn Source, options: &AnalyzeOptions, progress: &dyn Progress) -> Result<DataAnalysis> {
    if options.max_distance > DISTANCE_MAX {
        return Err(Error::Usage {
            problem: format!("hashes of near duplicates that differ in up to {} of 64 bits", options.max_distance),
            remedy: format!("pass 0 to {DISTANCE_MAX} as `distance` (`--distance`)"),
        });
    }
    let tasks = tasks(source.blocks()?);
    let threads = options.threads.clamp(1, tasks.len().max(1));
    let streams_bytes = source.limit_streams(StreamLimits::of(options.memory_bytes / 8));
    let gate = Gate::new(options.memory_bytes - streams_bytes, threads);
    let found = Mutex::new(Found::default());
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let encoding: Encoding = LOWER_QUALITY.parse().map_err(forebay_pipeline::Error::Encoding)?;
    let every = source.samples().div_ceil(ENCODED_IMAGES).max(1);
    progress.begin("analyze", source.samples());
    let work = || {
        let mut worker = Worker { source, gate: &gate, decoder: Decoder::new(), encoding, every };
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            for block in task {
                if stop.load(Ordering::Relaxed) || progress.is_cancelled() {
                    return;
                }
                let looked = Error::if_memory_was_refused().and_then(|()| worker.block(block));
                progress.advance(block.samples.end - block.samples.start);
                let ended = found.lock().add(looked, options.on_error);
                stop.fetch_or(ended, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| share(scope, threads, "analyze", &work))?;
    while_wanted(progress)?;
    let found = found.into_inner();
    if let Some(error) = found.failure {
        return Err(error);
    }
    let analysis = summary(source, found, options, progress)?;
    progress.end();
    Ok(analysis)
}

/// What JPEG of `quality` makes of up to `count` images of `source`, spread over it evenly; `None` where there are no images among them. Those that
/// cannot be read are left out.
pub fn lower_quality(source: &dyn Source, quality: u8, count: u64) -> Result<Option<LowerQuality>> {
    let encodings = lossy_encodings("jpeg", &[quality])?;
    let mut decoder = Decoder::new();
    let (mut before, mut after, mut images) = (0_u64, 0_u64, 0_u64);
    let count = count.min(source.samples());
    for number in (0..count).map(|at| at * source.samples() / count) {
        let Some(Ok(content)) = source.read(number..number + 1).contents.pop() else { continue };
        let Ok(sample) = source.unpack(number, content) else { continue };
        let look =
            Look { sample: &sample, field: &source.pipeline().source().field, encoding: encodings.first().copied() };
        let Ok(Facts { bytes, image: Some(image), .. }) = look.facts(number, &mut decoder, |_| Ok(())) else {
            continue;
        };
        let Some(smaller) = image.recompressed_bytes else { continue };
        (before, after, images) = (before + bytes, after + smaller, images + 1);
    }
    let share = after as f64 / before.max(1) as f64;
    Ok((before > 0).then_some(LowerQuality { quality, share, images }))
}

/// Blocks that threads take by turns; those of a sequence together, since they are best read in order.
fn tasks(blocks: Vec<Block>) -> Vec<Vec<Block>> {
    let mut tasks: Vec<Vec<Block>> = Vec::new();
    for block in blocks {
        match tasks.last_mut() {
            Some(task) if block.sequence.is_some() && task[0].sequence == block.sequence => task.push(block),
            _ => tasks.push(vec![block]),
        }
    }
    tasks
}

/// What threads found.
#[derive(Default)]
struct Found {
    facts: Vec<Facts>,
    broken: Vec<(u64, Skipped)>,
    broken_count: u64,
    /// What takes more memory than there is: nobody knows what is wrong with it, if anything.
    unexamined: Vec<(u64, Skipped)>,
    unexamined_count: u64,
    failure: Option<Error>,
}

impl Found {
    /// Adds what was found in a block; whether that is the end of the work.
    fn add(&mut self, looked: Result<Vec<(u64, Result<Facts, Failed>)>>, on_error: OnError) -> bool {
        let looked = match looked {
            Ok(looked) => looked,
            Err(error) => {
                self.failure.get_or_insert(error);
                return true;
            }
        };
        for (number, looked) in looked {
            match looked {
                Ok(facts) => self.facts.push(facts),
                Err(failed) if on_error == OnError::Fail || failed.error.ends() => {
                    self.failure.get_or_insert(*failed.error);
                    return true;
                }
                Err(failed) if matches!(*failed.error, Error::Limit { .. }) => {
                    self.unexamined_count += 1;
                    if self.unexamined.len() < BROKEN_LISTED_MAX {
                        self.unexamined.push((number, Skipped::one(failed.key, &failed.error)));
                    }
                }
                Err(failed) => self.add_broken(number, Skipped::one(failed.key, &failed.error)),
            }
        }
        false
    }

    fn add_broken(&mut self, number: u64, skipped: Skipped) {
        self.broken_count += skipped.samples.unwrap_or(1);
        if self.broken.len() < BROKEN_LISTED_MAX {
            self.broken.push((number, skipped));
        }
    }
}

/// Looks at samples, one after another.
struct Worker<'a> {
    source: &'a dyn Source,
    gate: &'a Gate,
    decoder: Decoder,
    /// To what an image is encoded, to see what that saves.
    encoding: Encoding,
    /// One of so many is.
    every: u64,
}

impl Worker<'_> {
    /// Every sample of a block, with its number: its facts, or why there are none.
    fn block(&mut self, block: &Block) -> Result<Vec<(u64, Result<Facts, Failed>)>> {
        let (source, gate) = (self.source, self.gate);
        let mut pass: Option<Pass<'_>> = None;
        if gate.wait(block.bytes, &mut pass).is_err() {
            let too_large = |number| (number, Err(too_large(source, number, block.bytes)));
            return Ok(block.samples.clone().map(too_large).collect());
        }
        let contents = source.read(block.samples.clone()).contents;
        let mut looked = Vec::with_capacity(contents.len());
        for (number, content) in block.samples.clone().zip(contents) {
            Error::if_memory_was_refused()?;
            let beside_bytes = block.bytes.saturating_add(source.unpacking_bytes(number));
            let facts = content.and_then(|content| source.unpack(number, content)).and_then(|sample| {
                let encoding = number.is_multiple_of(self.every).then_some(self.encoding);
                let look = Look { sample: &sample, field: &source.pipeline().source().field, encoding };
                let reserve = |bytes: u64| {
                    gate.wait(beside_bytes.saturating_add(bytes), &mut pass).map_err(|_| {
                        let problem = format!("`{}` takes {bytes} bytes of memory to decode", sample.key);
                        Error::Limit { problem, remedy: "raise `memory` (`--memory`)".to_owned() }
                    })
                };
                look.facts(number, &mut self.decoder, reserve).map_err(|problem| failed(source, number, problem))
            });
            looked.push((number, facts));
        }
        if self.decoder.capacity_bytes() > self.gate.keep_bytes() {
            self.decoder.trim();
        }
        Ok(looked)
    }
}

/// The error of a sample that is not read, because it and its neighbors take too much memory.
fn too_large(source: &dyn Source, number: u64, bytes: u64) -> Failed {
    let key = source.key(number);
    let problem =
        format!("`{key}` is read with its neighbors, which take {bytes} bytes of memory: more than half of the budget");
    Failed::new(key, Error::Limit { problem, remedy: "raise `memory` (`--memory`)".to_owned() })
}

/// What is wrong with sample number `number`, under the name of its file where it has one.
fn failed(source: &dyn Source, number: u64, problem: facts::Problem) -> Failed {
    let key = source.key(number);
    let error = match problem {
        facts::Problem::Image(problem) => {
            let path = source.folder().map_or_else(|| PathBuf::from(&key), |folder| folder.join(&key));
            Error::Format { path, problem }
        }
        facts::Problem::Other(error) => error,
    };
    Failed::new(key, error)
}

/// Puts what was found together.
fn summary(
    source: &dyn Source,
    mut found: Found,
    options: &AnalyzeOptions,
    progress: &dyn Progress,
) -> Result<DataAnalysis> {
    // Threads found it in any order, and what is shown must not depend on it.
    found.facts.sort_unstable_by_key(|facts| facts.number);
    let lost = source.lost();
    let lost_samples: u64 = lost.iter().map(|lost| lost.samples.unwrap_or(1)).sum();
    lost.into_iter().filter(|lost| lost.samples != Some(0)).for_each(|lost| found.add_broken(u64::MAX, lost));
    if found.facts.iter().any(|facts| facts.image.is_some()) {
        // Among images, what is none is not what it should be.
        let (images, others): (Vec<_>, Vec<_>) = found.facts.into_iter().partition(|facts| facts.kind != Kind::Other);
        found.facts = images;
        for other in others {
            let key = source.key(other.number);
            let reason = format!("`{key}` is not an image: its content is of no known format");
            found.add_broken(other.number, Skipped { key, reason, samples: Some(1) });
        }
    }
    for list in [&mut found.broken, &mut found.unexamined] {
        list.sort_by_key(|(number, _)| *number);
    }
    let facts = &found.facts;
    let key = |number| source.key(number);
    let duplicates = duplicates::find(facts, options.max_distance, key, || while_wanted(progress))?;
    let images = || facts.iter().filter_map(|facts| facts.image.as_deref());
    let of_images =
        |value: fn(&facts::Image) -> f64, step_min: f64| Distribution::of(images().map(value).collect(), step_min);
    Ok(DataAnalysis {
        samples: source.samples() + lost_samples,
        images: images().count() as u64,
        bytes: facts.iter().map(|facts| facts.bytes).sum(),
        broken: found.broken_count,
        broken_samples: found.broken.into_iter().map(|(_, skipped)| skipped).collect(),
        unexamined: found.unexamined_count,
        unexamined_samples: found.unexamined.into_iter().map(|(_, skipped)| skipped).collect(),
        formats: formats(facts),
        size: Distribution::of(facts.iter().map(|facts| facts.bytes as f64).collect(), 1.0),
        width: of_images(|image| f64::from(image.width), 1.0),
        height: of_images(|image| f64::from(image.height), 1.0),
        aspect_ratio: of_images(|image| f64::from(image.width) / f64::from(image.height), 0.05),
        quality: qualities(facts),
        color: colors(facts),
        turned: images().filter(|image| image.turned).count() as u64,
        classes: classes(source, facts),
        unlabeled: facts.iter().filter(|facts| facts.label.is_none()).count() as u64,
        duplicates,
        recompression: recompression(facts),
    })
}

fn formats(facts: &[Facts]) -> Vec<FormatCount> {
    let mut formats: Vec<FormatCount> = Vec::new();
    for facts in facts {
        let name = facts.kind.name();
        let at = formats.iter().position(|count| count.format == name).unwrap_or_else(|| {
            formats.push(FormatCount { format: name.to_owned(), samples: 0, bytes: 0 });
            formats.len() - 1
        });
        formats[at].samples += 1;
        formats[at].bytes += facts.bytes;
    }
    formats.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.format.cmp(&other.format)));
    formats
}

fn qualities(facts: &[Facts]) -> Option<Qualities> {
    let files = || facts.iter().filter_map(|facts| facts.image.as_deref()?.jpeg);
    Some(Qualities {
        distribution: Distribution::of(files().map(|jpeg| f64::from(jpeg.quality)).collect(), 1.0)?,
        images: files().count() as u64,
        exact: files().filter(|jpeg| jpeg.exact).count() as u64,
        progressive: files().filter(|jpeg| jpeg.progressive).count() as u64,
    })
}

/// Means over images, so that a large one does not count more than a small one: training sees both in one size.
fn colors(facts: &[Facts]) -> Option<Colors> {
    let images: Vec<&facts::Image> = facts.iter().filter_map(|facts| facts.image.as_deref()).collect();
    if images.is_empty() {
        return None;
    }
    let count = images.len() as f64;
    let mean_of = |part: fn(&facts::Image) -> [f32; 3]| -> [f64; 3] {
        std::array::from_fn(|channel| images.iter().map(|image| f64::from(part(image)[channel])).sum::<f64>() / count)
    };
    let (mean, squares) = (mean_of(|image| image.mean), mean_of(|image| image.mean_square));
    let gray = images.iter().filter(|image| image.gray).count() as u64;
    Some(Colors {
        mean,
        std: std::array::from_fn(|channel| (squares[channel] - mean[channel].powi(2)).max(0.0).sqrt()),
        gray,
        gray_share: gray as f64 / count,
        stored_gray: images.iter().filter(|image| image.channels <= 2).count() as u64,
    })
}

/// Every class that the source names, and every label that has no name.
fn classes(source: &dyn Source, facts: &[Facts]) -> Vec<ClassCount> {
    let mut counts = std::collections::BTreeMap::new();
    for label in facts.iter().filter_map(|facts| facts.label) {
        *counts.entry(label).or_insert(0_u64) += 1;
    }
    let names = source.classes();
    let mut classes: Vec<ClassCount> = (0_i64..)
        .zip(names)
        .map(|(label, name)| ClassCount { name: class_name(name), samples: counts.remove(&label).unwrap_or(0) })
        .collect();
    classes.extend(counts.into_iter().map(|(label, samples)| ClassCount { name: label.to_string(), samples }));
    classes
}

/// Files that are in no folder have a class without a name.
fn class_name(name: &str) -> String {
    if name.is_empty() { "(none)".to_owned() } else { name.to_owned() }
}

/// What the images that were encoded become says what all would.
fn recompression(facts: &[Facts]) -> Option<Recompression> {
    let tried: Vec<(u64, u64)> =
        facts.iter().filter_map(|facts| Some((facts.bytes, facts.image.as_deref()?.recompressed_bytes?))).collect();
    let before: u64 = tried.iter().map(|(before, _)| before).sum();
    let after: u64 = tried.iter().map(|(_, after)| after).sum();
    let all: u64 = facts.iter().filter(|facts| facts.kind.is_encoded_image()).map(|facts| facts.bytes).sum();
    (before > 0).then(|| {
        let share = after as f64 / before as f64;
        Recompression {
            encoding: LOWER_QUALITY.to_owned(),
            images: tried.len() as u64,
            share,
            bytes_saved: (all as f64 * (1.0 - share)) as u64,
        }
    })
}
