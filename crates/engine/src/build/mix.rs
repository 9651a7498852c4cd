//! Building a data set in several formats: each is a data set by itself, of the samples that are its own.
//!
//! The format of each sample follows from the seed, and every class has each format in proportion to its share. An interrupted build resumes
//! with the format where it was, as any build does; the manifest of the mix is written when all of them are complete.

use std::sync::Arc;

use forebay_pipeline::{Pipeline, Random, Strategy};
use forebay_storage::{Folder, Storage};

use super::claim::{names_in, remove};
use super::identity::Identity;
use super::journal::{JOURNAL_FOLDER, Journal, Opened};
use super::{Build, BuildOptions};
use crate::data::{
    Listing, MIX_FILE, MIX_FORMATS_MAX, MixEntry, MixManifest, ShardEntry, Skipped, checksum, digit, folder_name,
    folder_number,
};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::spread::Turns;

/// What to build in several formats.
#[derive(Clone)]
pub struct MixBuild {
    /// The pipeline.
    pub pipeline: Pipeline,
    /// The formats, and the share of samples that each is to have. Shares are weighed against each other.
    pub formats: Vec<(Strategy, f64)>,
    /// Decides which sample is in which format.
    pub seed: u64,
    /// The samples.
    pub listing: Arc<Listing>,
    /// Where their files are read from.
    pub storage: Arc<dyn Storage>,
}

/// What a build of several formats did.
#[derive(Debug, Clone, PartialEq)]
pub struct MixReport {
    /// The manifest that was written.
    pub manifest: MixManifest,
    /// How many shards there are.
    pub shards: usize,
    /// How many of them were there already.
    pub shards_reused: usize,
}

impl MixBuild {
    /// Builds the data set in the folder `output`, or resumes a build that was interrupted there. The shards that `options` asks for are shared
    /// by the formats.
    pub fn run(&self, output: impl Into<Folder>, options: &BuildOptions, progress: &dyn Progress) -> Result<MixReport> {
        let output = output.into();
        let weights = self.shares()?;
        let counts = apportion(&weights, self.listing.len() as u64);
        let assigned = assign(&self.listing, &counts, self.seed);
        let parts = self.parts(&counts, &assigned, options)?;
        let identity = self.identity(&parts)?;
        prepare(&output, &identity, &parts, options)?;
        let (mut shards, mut shards_reused) = (0, 0);
        let mut entries = Vec::new();
        let mut skipped: Vec<Skipped> = Vec::new();
        let mut lost = vec![false; assigned.len()];
        for (number, (build, options)) in parts.iter().enumerate() {
            let folder = output.folder(folder_name(number));
            let report = build.run(folder.clone(), options, progress)?;
            shards += report.manifest.shards.len();
            shards_reused += report.shards_reused;
            entries.push(MixEntry {
                strategy: build.strategy.to_string(),
                share: weights[number],
                folder: folder_name(number),
                samples: report.manifest.samples,
                bytes: report.manifest.bytes,
                shards: report.manifest.shards.len() as u64,
                manifest_xxh3: MixManifest::checksum_of(&folder)?,
            });
            note_lost(&mut lost, &assigned, number, &report.manifest.shards)?;
            skipped.extend(report.manifest.skipped_samples);
        }
        // Samples that were skipped are in no format, and those after them move up.
        let kept = assigned.iter().zip(&lost).filter(|(_, lost)| !**lost);
        let assignment = kept.map(|(&format, _)| digit(format)).collect();
        let manifest = self.manifest(identity, entries, assignment, skipped)?;
        manifest.write(&output)?;
        Ok(MixReport { manifest, shards, shards_reused })
    }

    /// The shares of the formats, which add up to 1.
    fn shares(&self) -> Result<Vec<f64>> {
        let usage = |problem: String, remedy: &str| Err(Error::Usage { problem, remedy: remedy.to_owned() });
        let sum: f64 = self.formats.iter().map(|(_, share)| share).sum();
        if self.formats.is_empty() || self.formats.len() > MIX_FORMATS_MAX {
            let problem = format!("a mix of {} formats", self.formats.len());
            return usage(problem, &format!("name between 1 and {MIX_FORMATS_MAX}"));
        }
        let is_share = |share: f64| share.is_finite() && share > 0.0;
        if !self.formats.iter().all(|(_, share)| is_share(*share)) || !sum.is_finite() {
            return usage("a share of a mix is not above 0".to_owned(), "omit formats with a share of 0");
        }
        for (number, (strategy, _)) in self.formats.iter().enumerate() {
            if self.formats[..number].iter().any(|(other, _)| other == strategy) {
                return usage(format!("the mix names `{strategy}` twice"), "give it one share");
            }
            if let Some(step) = strategy.offline(&self.pipeline).iter().find(|step| step.action.changes_count()) {
                let problem = format!(
                    "`{strategy}` cannot be part of a mix: step `{}` changes the number of samples, which a mix does not support",
                    step.name
                );
                return usage(problem, "mix formats of a split before that step");
            }
        }
        Ok(self.formats.iter().map(|(_, share)| share / sum).collect())
    }

    /// The build of each format, and how it is done.
    fn parts(&self, counts: &[u64], assigned: &[usize], options: &BuildOptions) -> Result<Vec<(Build, BuildOptions)>> {
        if let Some(at) = counts.iter().position(|count| *count == 0) {
            return Err(Error::Usage {
                problem: format!(
                    "the share of `{}` is so small that none of {} samples gets this format",
                    self.formats[at].0,
                    self.listing.len()
                ),
                remedy: "leave it out, or give it a larger share".to_owned(),
            });
        }
        let total = counts.iter().sum::<u64>().max(1);
        let part = |(number, (strategy, _)): (usize, &(Strategy, f64))| {
            let mut mine = assigned.iter().map(|format| *format == number);
            let listing = Listing::clone(&self.listing).part(|| mine.next().unwrap_or(false), number == 0);
            let shards = (options.shards as u64 * counts[number]).div_ceil(total).clamp(1, counts[number]);
            let build = Build {
                pipeline: self.pipeline.clone(),
                strategy: strategy.clone(),
                listing: Arc::new(listing),
                storage: Arc::clone(&self.storage),
            };
            (build, BuildOptions { shards: shards as usize, ..options.clone() })
        };
        Ok(self.formats.iter().enumerate().map(part).collect())
    }

    fn identity(&self, parts: &[(Build, BuildOptions)]) -> Result<String> {
        let mut all = format!("{} {} {}", MixManifest::FORMAT, MixManifest::VERSION, self.seed);
        for (build, options) in parts {
            all.push(' ');
            all.push_str(&Identity::of(build, options)?.digest);
        }
        Ok(checksum(all.as_bytes()))
    }

    fn manifest(
        &self,
        identity: String,
        formats: Vec<MixEntry>,
        assignment: String,
        skipped: Vec<Skipped>,
    ) -> Result<MixManifest> {
        let pipeline = self.pipeline.to_spec().ok_or_else(|| Error::internal("a pipeline without a text was built"))?;
        Ok(MixManifest {
            format: MixManifest::FORMAT.to_owned(),
            version: MixManifest::VERSION,
            forebay: env!("CARGO_PKG_VERSION").to_owned(),
            pipeline,
            identity,
            seed: self.seed,
            samples: formats.iter().map(|entry| entry.samples).sum(),
            bytes: formats.iter().map(|entry| entry.bytes).sum(),
            classes: self.listing.classes().to_vec(),
            formats,
            assignment,
            skipped_samples: skipped,
        })
    }
}

/// Notes which samples of the listing are not in the `shards` of format number `format`, which number those that are their own.
fn note_lost(lost: &mut [bool], assigned: &[usize], format: usize, shards: &[ShardEntry]) -> Result<()> {
    let mine: Vec<usize> = (0..assigned.len()).filter(|&number| assigned[number] == format).collect();
    for &number in shards.iter().flat_map(|shard| &shard.skipped_numbers) {
        let there = usize::try_from(number).ok().and_then(|number| mine.get(number)).copied();
        let there = there.ok_or_else(|| Error::internal("a sample was skipped that the format does not have"))?;
        lost[there] = true;
    }
    Ok(())
}

/// How many of `samples` each share is: integers, the largest remainders rounded up.
fn apportion(shares: &[f64], samples: u64) -> Vec<u64> {
    let exact: Vec<f64> = shares.iter().map(|share| share * samples as f64).collect();
    let mut counts: Vec<u64> = exact.iter().map(|exact| exact.floor() as u64).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|&one, &other| exact[other].fract().total_cmp(&exact[one].fract()));
    let missing = samples.saturating_sub(counts.iter().sum());
    order.into_iter().cycle().take(missing as usize).for_each(|at| counts[at] += 1);
    counts
}

/// The format of each sample: drawn at random, but so that each class has as much of every format as its share.
fn assign(listing: &Listing, counts: &[u64], seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..listing.len()).collect();
    Random::from_parts(&[seed]).shuffle(&mut order);
    // Stable: within a class the order stays random. What is left of one class is carried to the next.
    order.sort_by_key(|&number| listing.entries()[number].class());
    let mut turns = Turns::new(counts, Random::from_parts(&[seed, 1]).unit());
    let mut assigned = vec![0; listing.len()];
    for number in order {
        assigned[number] = turns.next();
    }
    assigned
}

const REPLACE: &str = "choose another folder, or pass --overwrite to replace what Forebay built there";

/// Sees to it that nothing is in the folder but what this mix has, or what it may replace.
fn prepare(output: &Folder, identity: &str, parts: &[(Build, BuildOptions)], options: &BuildOptions) -> Result<()> {
    let taken = |by: &str, remedy: &str| {
        let problem = format!("the folder `{}` holds {by}", output.path().display());
        Err(Error::Usage { problem, remedy: remedy.to_owned() })
    };
    output.storage().make_folder(output.path())?;
    let names = names_in(output)?;
    let is_ours =
        |name: &String| folder_number(name).is_some() || name.strip_suffix(".partial").unwrap_or(name) == MIX_FILE;
    if names.iter().any(|name| name == JOURNAL_FOLDER || name == crate::data::MANIFEST_FILE) {
        return taken("a data set in one format", "choose another folder");
    }
    if let Some(other) = names.iter().find(|name| !is_ours(name)) {
        return taken(
            &format!("`{other}`, which is not part of a data set in several formats"),
            "choose another folder",
        );
    }
    let is_whole = names.iter().any(|name| name == MIX_FILE);
    if is_whole && !options.overwrite {
        match MixManifest::read(output) {
            Ok(Some(found)) if found.identity == identity => {}
            Ok(_) => return taken("another data set in several formats", REPLACE),
            Err(error) => return taken(&format!("a damaged data set in several formats ({error})"), REPLACE),
        }
    }
    let left_over: Vec<&String> =
        names.iter().filter(|name| folder_number(name).is_some_and(|number| number >= parts.len())).collect();
    if let (Some(name), false) = (left_over.first(), options.overwrite) {
        return taken(&format!("`{name}`, which is of another mix"), REPLACE);
    }
    if options.overwrite {
        // From now on it is incomplete.
        remove(output, MIX_FILE)?;
        for name in left_over {
            clear(&output.folder(name), &parts[0], options)?;
        }
    }
    Ok(())
}

/// Removes a data set that is in the way, and nothing else.
fn clear(folder: &Folder, (build, part_options): &(Build, BuildOptions), options: &BuildOptions) -> Result<()> {
    let identity = Identity::of(build, part_options)?;
    if let Opened::Unfinished(journal) = Journal::open(folder.clone(), identity, options.on_error, true)? {
        journal.remove()?;
    }
    Ok(folder.storage().remove_folder(folder.path())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_whole_numbers() {
        assert_eq!(apportion(&[0.3, 0.7], 10), [3, 7]);
        assert_eq!(apportion(&[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0], 10).iter().sum::<u64>(), 10);
        assert_eq!(apportion(&[0.999, 0.001], 10), [10, 0]);
        assert_eq!(apportion(&[1.0], 7), [7]);
    }
}
