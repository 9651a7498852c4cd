//! A build in parts, on as many machines as there are.
//!
//! A shard is an extent of the listing, and its bytes follow from what is built: so any machine may build any shard, at any time, twice or at the
//! same time as another. [`Build::prepare`] writes the listing down, which all read then. [`Build::run_part`] builds some of the shards and leaves
//! a note for each, which only the first can leave: who comes later and finds the same there is done, and who finds another is told so.
//! [`Build::finish`] looks whether all notes are there and writes the manifest. There are no locks and no coordinator. If another process finishes
//! the build in the meantime, the manifest exists, and that is success. If another build is prepared in the folder in the meantime, that is an error, and
//! nothing that was written counts (`journal.rs`).

use std::collections::HashSet;
use std::str::FromStr;

use forebay_error::ErrorKind;
use forebay_pipeline::Source;
use forebay_pipeline::steps::prepare_files;
use forebay_storage::Folder;

use super::claim::{names_in, remove, whole_name};
use super::dictionary::Trained;
use super::identity::Identity;
use super::journal::{BUILD_FILE, JOURNAL_FOLDER, Journal, LISTING_FILE, Opened, ShardDone, read_sealed, shard_name};
use super::{Build, BuildOptions, BuildReport};
use crate::data::{DICTIONARY_FILE, Dataset, Listing, MANIFEST_FILE, Manifest, Reach, Skipped};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::progress::Progress;

/// A listing of more is not read.
const LISTING_BYTES_MAX: u64 = 1 << 36;

/// Which part of a build: `3/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    number: usize,
    of: usize,
}

impl Part {
    /// Part `number`, counted from 1, of `of`.
    pub fn new(number: usize, of: usize) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of })
    }

    /// Whether shard number `shard` belongs to it: they take turns.
    fn has(self, shard: usize) -> bool {
        shard % self.of == self.number - 1
    }
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let part = text.split_once('/').and_then(|(number, of)| Self::new(number.parse().ok()?, of.parse().ok()?));
        part.ok_or_else(|| "expected the part, counted from 1, and how many there are, e.g. `3/16`".to_owned())
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.number, self.of)
    }
}

/// A prepared build, for running a part of it.
#[derive(Debug)]
pub struct Prepared {
    /// The samples as they were listed then.
    pub listing: Listing,
    /// The number of shards to build.
    pub shards: usize,
}

/// What running a part did.
#[derive(Debug, Clone, PartialEq)]
pub struct PartReport {
    /// How many shards belong to it.
    pub shards: usize,
    /// How many of those were there already.
    pub shards_reused: usize,
    /// How many samples they have, and bytes.
    pub samples: u64,
    /// How many bytes.
    pub bytes: u64,
    /// How many samples were skipped.
    pub skipped: u64,
}

impl Prepared {
    /// The build that was prepared in the folder `output`, of the files in `root`; `None` if the data set is finished already.
    pub fn find(
        output: impl Into<Folder>,
        source: &Source,
        root: impl Into<Folder>,
        reach: Reach,
    ) -> Result<Option<Self>> {
        let output = output.into();
        let journal = output.folder(JOURNAL_FOLDER);
        let Some(identity) = read_sealed::<Identity>(&journal, BUILD_FILE)? else {
            if output.storage().is_taken(&output.file(MANIFEST_FILE))? {
                return Ok(None);
            }
            return Err(not_prepared(&output));
        };
        let path = journal.file(LISTING_FILE);
        let text = match output.storage().read_file(&path, LISTING_BYTES_MAX) {
            // Somebody may have finished it just now.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let is_whole = whole(&output, &identity).is_some();
                return if is_whole { Ok(None) } else { Err(not_prepared(&output)) };
            }
            text => text?,
        };
        let listing = Listing::thaw(&text, &path, source, root.into(), reach)?;
        Ok(Some(Self { listing, shards: identity.shards() }))
    }
}

/// The manifest in `output`, if it has the complete data set of this identity.
fn whole(output: &Folder, identity: &Identity) -> Option<Manifest> {
    let manifest = Dataset::open(output.clone()).ok()?.manifest().clone();
    (manifest.identity == identity.digest).then_some(manifest)
}

fn not_prepared(output: &Folder) -> Error {
    Error::Usage {
        problem: format!("no build was prepared in `{}`", output.path().display()),
        remedy: "run the same command with `--prepare` first, once".to_owned(),
    }
}

impl Build {
    /// Writes down what is to be built in the folder `output`, for parts to build. Once more is no harm; another build there is an error,
    /// unless it is to be replaced. What it is to be is returned where it is finished already.
    pub fn prepare(&self, output: impl Into<Folder>, options: &BuildOptions) -> Result<Option<Manifest>> {
        self.check(options)?;
        let frozen = self.listing.freeze()?;
        let identity = Identity::of(self, options)?;
        let journal = match Journal::open(output.into(), identity, options.on_error, options.overwrite)? {
            Opened::Finished(manifest) => return Ok(Some(*manifest)),
            Opened::Unfinished(journal) => journal,
        };
        if let Some(resume) = &options.resume {
            journal.note_command(resume)?;
        }
        journal.write_listing(&frozen)?;
        Ok(None)
    }

    /// Builds the shards of `part` in the folder `output`, for which it was [prepared](Self::prepare). The listing is that of [`Prepared`].
    pub fn run_part(
        &self,
        output: impl Into<Folder>,
        options: &BuildOptions,
        part: Part,
        progress: &dyn Progress,
    ) -> Result<PartReport> {
        self.check(options)?;
        let _files = prepare_files(self.pipeline.steps())?;
        let (output, identity) = (output.into(), Identity::of(self, options)?);
        let mine: Vec<usize> = (0..options.shards).filter(|&shard| part.has(shard)).collect();
        let done = Journal::join(output.clone(), identity.clone(), options.on_error).and_then(|journal| {
            let done = self.try_part(&journal, options, (part, &mine), progress);
            done.map_err(|error| journal.explain(error))
        });
        or_whole(done, (&output, &identity), options, |manifest| self.part_of(&manifest, &mine, options))
    }

    fn try_part(
        &self,
        journal: &Journal,
        options: &BuildOptions,
        (part, mine): (Part, &[usize]),
        progress: &dyn Progress,
    ) -> Result<PartReport> {
        let trained = Trained::new(self, options, journal, progress)?;
        let dictionary_xxh3 = trained.as_ref().map(|trained| trained.xxh3.as_str());
        let mut done: Vec<Option<ShardDone>> = Vec::with_capacity(mine.len());
        for &shard in mine {
            let noted = journal.noted(shard, progress)?;
            done.push(noted.filter(|noted| noted.dictionary_xxh3.as_deref() == dictionary_xxh3));
        }
        let shards_reused = done.iter().flatten().count();
        progress
            .begin(&format!("part {part}"), mine.iter().map(|&shard| self.range(shard, options).len() as u64).sum());
        let missing: Vec<usize> =
            mine.iter().zip(&done).filter(|(_, done)| done.is_none()).map(|(shard, _)| *shard).collect();
        let kept = mine.iter().zip(&done).filter(|(_, done)| done.is_some());
        progress.advance(kept.map(|(&shard, _)| self.range(shard, options).len() as u64).sum());
        let dictionary = trained.as_ref().map(|trained| &trained.dictionary);
        let built = self.build_shards((journal, dictionary), &missing, options, progress)?;
        progress.end();
        let all: Vec<&ShardDone> = done.iter().flatten().chain(built.iter().map(|(_, done)| done)).collect();
        Ok(PartReport {
            shards: mine.len(),
            shards_reused,
            samples: all.iter().map(|done| done.entry.samples).sum(),
            bytes: all.iter().map(|done| done.entry.bytes).sum(),
            skipped: all.iter().map(|done| Skipped::count(&done.skipped)).sum(),
        })
    }

    /// Writes the manifest of a build all of whose parts were run. An error names the shards that are missing.
    pub fn finish(
        &self,
        output: impl Into<Folder>,
        options: &BuildOptions,
        progress: &dyn Progress,
    ) -> Result<BuildReport> {
        self.check(options)?;
        let (output, identity) = (output.into(), Identity::of(self, options)?);
        let done = Journal::join(output.clone(), identity.clone(), options.on_error).and_then(|journal| {
            let done = self.try_finish(&journal, options, progress);
            done.map_err(|error| journal.explain(error))
        });
        or_whole(done, (&output, &identity), options, |manifest| BuildReport { shards_reused: 0, manifest })
    }

    fn try_finish(&self, journal: &Journal, options: &BuildOptions, progress: &dyn Progress) -> Result<BuildReport> {
        let mut done = Vec::with_capacity(options.shards);
        let mut missing = Vec::new();
        for shard in 0..options.shards {
            match journal.noted(shard, progress)? {
                Some(noted) => done.push(noted),
                None => missing.push(shard),
            }
        }
        if !missing.is_empty() {
            return Err(unbuilt(&missing, options.shards));
        }
        let dictionary_xxh3 = done.first().and_then(|shard| shard.dictionary_xxh3.clone());
        if let Some(other) = done.iter().position(|shard| shard.dictionary_xxh3 != dictionary_xxh3) {
            return Err(Error::Usage {
                problem: format!("shard {other} was compressed with another dictionary than shard 0"),
                remedy: "build it again with `--overwrite --prepare`, and the parts after it".to_owned(),
            });
        }
        let mut manifest = self.manifest(journal, done)?;
        manifest.dictionary_xxh3 = dictionary_xxh3;
        journal.finish(&manifest)?;
        remove_partial(journal.output())?;
        Ok(BuildReport { shards_reused: 0, manifest })
    }

    /// The shards `mine` of a data set that is finished.
    fn part_of(&self, manifest: &Manifest, mine: &[usize], options: &BuildOptions) -> PartReport {
        let entries = || mine.iter().filter_map(|&shard| manifest.shards.get(shard));
        let numbers = mine.iter().flat_map(|&shard| self.range(shard, options));
        let keys: HashSet<&str> = numbers.map(|number| &*self.listing.entries()[number].key).collect();
        let skipped = manifest.skipped_samples.iter().filter(|skipped| keys.contains(&*skipped.key)).cloned();
        PartReport {
            shards: mine.len(),
            shards_reused: mine.len(),
            samples: entries().map(|shard| shard.samples).sum(),
            bytes: entries().map(|shard| shard.bytes).sum(),
            skipped: Skipped::count(&skipped.collect::<Vec<_>>()),
        }
    }
}

/// What was done; or `report` of the data set where that failed only because somebody else finished it meanwhile, and took the notes away.
fn or_whole<T>(
    done: Result<T>,
    (output, identity): (&Folder, &Identity),
    options: &BuildOptions,
    report: impl FnOnce(Manifest) -> T,
) -> Result<T> {
    let error = match done {
        Err(error) if !error.ends() => error,
        done => return done,
    };
    let is_wanted = |manifest: &Manifest| options.on_error == OnError::Skip || manifest.skipped_samples.is_empty();
    whole(output, identity).filter(is_wanted).map(report).ok_or(error)
}

/// Removes what parts that were killed left of shards.
fn remove_partial(output: &Folder) -> Result<()> {
    for name in names_in(output)? {
        let whole = whole_name(&name);
        if whole != name && (whole.starts_with("shard-") || whole == DICTIONARY_FILE) {
            remove(output, &name)?;
        }
    }
    Ok(())
}

fn unbuilt(missing: &[usize], shards: usize) -> Error {
    const NAMED_MAX: usize = 10;
    let named: Vec<String> = missing.iter().take(NAMED_MAX).map(|&shard| shard_name(shard)).collect();
    let more =
        if missing.len() > NAMED_MAX { format!(" and {} more", missing.len() - NAMED_MAX) } else { String::new() };
    Error::Usage {
        problem: format!("{} of {shards} shards are not built: {}{more}", missing.len(), named.join(", ")),
        remedy: format!(
            "run the parts that failed again: with `--part I/N`, shard {} belongs to part {} modulo N",
            missing[0],
            missing[0] + 1
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_disjoint_and_all() {
        for of in 1..20 {
            let parts: Vec<Part> = (1..=of).map(|number| format!("{number}/{of}").parse().expect("a part")).collect();
            for shard in 0..50 {
                assert_eq!(parts.iter().filter(|part| part.has(shard)).count(), 1);
            }
        }
        for wrong in ["0/4", "5/4", "3", "a/b", "1/0", ""] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
    }
}
