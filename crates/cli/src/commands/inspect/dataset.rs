//! A data set that `forebay build` made.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use forebay_engine::data::{Dataset, ShardEntry};
use forebay_pipeline::Split;
use forebay_plan::units;
use forebay_record::{INDEX_SUFFIX, OnDamage, Options, Origin, Reader, parse_indexed};
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::features::RecordFound;
use super::show_problems;
use crate::commands::profile::counted;
use crate::error::{Error, Result};
use crate::output::Page;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    path: PathBuf,
    pipeline: String,
    strategy: String,
    split: Split,
    samples: u64,
    bytes: u64,
    shards: Vec<ShardEntry>,
    classes: Vec<String>,
    skipped: u64,
    /// Steps that loading does.
    online_steps: Vec<String>,
    /// What a stored sample is.
    schema: String,
    identity: String,
    forebay: String,
    verified: bool,
    pub(super) problems: Vec<String>,
    record: Option<RecordFound>,
}

pub(super) fn inspect(path: &Path, verify: bool, record: Option<u64>) -> Result<Found> {
    let dataset = Dataset::open(path)?;
    let manifest = dataset.manifest();
    let strategy = &manifest.strategy;
    let (online_steps, _) = strategy.online(dataset.pipeline());
    let mut problems = Vec::new();
    if verify {
        for shard in 0..manifest.shards.len() {
            verify_shard(&dataset, shard, &mut problems)?;
        }
    }
    Ok(Found {
        path: path.to_owned(),
        pipeline: manifest.pipeline.name.clone(),
        strategy: strategy.to_string(),
        split: strategy.split.clone(),
        samples: manifest.samples,
        bytes: manifest.bytes,
        shards: manifest.shards.clone(),
        classes: manifest.classes.clone(),
        skipped: manifest.skipped.len() as u64,
        online_steps: online_steps.into_iter().map(|step| step.name).collect(),
        schema: dataset.stored_schema().to_string(),
        identity: manifest.identity.clone(),
        forebay: manifest.forebay.clone(),
        verified: verify,
        problems,
        record: record.map(|number| read_record(&dataset, number)).transpose()?,
    })
}

/// Reads a shard from front to back, and compares it with what the manifest and the index say.
fn verify_shard(dataset: &Dataset, shard: usize, problems: &mut Vec<String>) -> Result<()> {
    let entry = &dataset.manifest().shards[shard];
    let path = dataset.shard_path(shard);
    let file = File::open(&path).map_err(Error::io("open the shard", &path))?;
    let mut hashing = HashingRead { inner: file, hash: Xxh3::new() };
    let options = Options { on_damage: OnDamage::Skip, ..Options::default() };
    let mut reader = Reader::new(&mut hashing, &entry.file, options)?;
    if let Ok(index) = dataset.index(shard) {
        reader = reader.with_index(index.clone());
    }
    let (mut records, mut misplaced) = (0, 0);
    while let Some(record) = reader.next_record()? {
        let expected = dataset.index(shard).ok().and_then(|index| index.get(record.number as usize));
        misplaced += u64::from(expected.is_some_and(|expected| expected != record.location));
        records += 1;
    }
    problems.extend(reader.report().entries().iter().map(|damage| damage.error.to_string()));
    drop(reader);
    let rest = io::copy(&mut hashing, &mut io::sink()).map_err(Error::io("read the shard", &path))?;
    let mut say = |what: &str, expected: &str, found: &str| {
        problems.push(format!("`{}` has {what} `{found}`, but the manifest says `{expected}`", entry.file));
    };
    if records != entry.samples {
        say("records", &entry.samples.to_string(), &records.to_string());
    }
    let sum = format!("{:016x}", hashing.hash.digest());
    if sum != entry.xxh3 {
        say("checksum", &entry.xxh3, &sum);
    }
    if rest > 0 {
        problems.push(format!("`{}` has {rest} bytes after its last record", entry.file));
    }
    match dataset.index(shard) {
        Err(error) => problems.push(error.to_string()),
        Ok(_) if misplaced > 0 => {
            problems.push(format!("`{}{INDEX_SUFFIX}` misplaces {misplaced} records", entry.file));
        }
        Ok(_) => {}
    }
    Ok(())
}

fn read_record(dataset: &Dataset, number: u64) -> Result<RecordFound> {
    let manifest = dataset.manifest();
    let shards = 0..manifest.shards.len();
    let holds = |&shard: &usize| {
        let first = dataset.first_sample(shard);
        (first..first + manifest.shards[shard].samples).contains(&number)
    };
    let shard = shards.into_iter().find(holds).ok_or_else(|| {
        Error::usage(
            format!("there is no record {number}: the data set has {}", counted(manifest.samples, "sample")),
            "records are counted from 0",
        )
    })?;
    let within = number - dataset.first_sample(shard);
    let path = dataset.shard_path(shard);
    let Some(location) = dataset.index(shard)?.get(within as usize) else {
        return Err(Error::Format { path, problem: format!("has no record {within} in its index") });
    };
    let storage = forebay_engine::StorageChoice::Local.open(0)?;
    let open = storage.open(&path).map_err(forebay_engine::Error::from)?;
    let stretch = dataset.read_stretch(&*open, shard, within as usize..within as usize + 1)?;
    let shard = &manifest.shards[shard].file;
    let origin = Origin { shard, record: within, offset: stretch.offset };
    let record = parse_indexed(&stretch.frames, location, origin, true)?;
    Ok(RecordFound::new(shard, within, location.offset, &record))
}

/// Takes the checksum of what is read.
struct HashingRead {
    inner: File,
    hash: Xxh3,
}

impl Read for HashingRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

impl Found {
    pub(super) fn show(&self, page: &mut Page) {
        let mut facts = vec![
            ("data set", self.path.display().to_string()),
            ("pipeline", self.pipeline.clone()),
            ("keeps", format!("{} ({})", self.strategy, self.schema)),
            (
                "every epoch",
                if self.online_steps.is_empty() { "nothing".to_owned() } else { self.online_steps.join(", ") },
            ),
            ("samples", units::count(self.samples)),
            ("size", units::bytes(self.bytes as f64)),
            ("shards", units::count(self.shards.len() as u64)),
        ];
        if !self.classes.is_empty() {
            const SHOWN_MAX: usize = 12;
            let more = if self.classes.len() > SHOWN_MAX { ", …" } else { "" };
            let names: Vec<&str> = self.classes.iter().take(SHOWN_MAX).map(String::as_str).collect();
            facts.push(("classes", format!("{}: {}{more}", units::count(self.classes.len() as u64), names.join(", "))));
        }
        if self.skipped > 0 {
            facts.push(("left out", format!("{} that could not be processed", counted(self.skipped, "sample"))));
        }
        facts.push(("built by", format!("forebay {}", self.forebay)));
        if self.verified {
            let state = if self.problems.is_empty() { "every byte is as it was built" } else { "damaged" };
            facts.push(("verified", state.to_owned()));
        }
        page.facts(&facts);
        if let Some(record) = &self.record {
            record.show(page);
        }
        show_problems(page, &self.problems);
    }
}
