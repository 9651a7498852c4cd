//! A data set that `forebay build` made.

use std::path::{Path, PathBuf};

use forebay_engine::data::{Dataset, ShardEntry, Skipped};
use forebay_engine::load::OnError;
use forebay_pipeline::{FieldEncoding, Split};
use forebay_plan::units;
use serde::Serialize;

use super::features::RecordFound;
use super::show_problems;
use crate::error::{Error, Result};
use crate::output::Page;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    pipeline: String,
    strategy: String,
    split: Split,
    /// The fields that are stored encoded.
    encodings: Vec<FieldEncoding>,
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
    // To verify is to find all that is wrong, and not to end at the first.
    let dataset = Dataset::open_on_error(path, if verify { OnError::Skip } else { OnError::Fail })?;
    let manifest = dataset.manifest();
    let strategy = &manifest.strategy;
    let (online_steps, _) = strategy.online(dataset.pipeline());
    let mut problems = Vec::new();
    if verify {
        for shard in 0..manifest.shards.len() {
            problems.extend(dataset.verify_shard(shard)?);
        }
    }
    Ok(Found {
        path: path.to_owned(),
        pipeline: manifest.pipeline.name.clone(),
        strategy: strategy.to_string(),
        split: strategy.split.clone(),
        encodings: manifest.encodings.clone(),
        samples: manifest.samples,
        bytes: manifest.bytes,
        shards: manifest.shards.clone(),
        classes: manifest.classes.clone(),
        skipped: Skipped::count(&manifest.skipped_samples),
        online_steps: online_steps.into_iter().map(|step| step.name).collect(),
        schema: dataset.stored_schema().to_string(),
        identity: manifest.identity.clone(),
        forebay: manifest.forebay.clone(),
        verified: verify,
        problems,
        record: record.map(|number| read_record(&dataset, number)).transpose()?,
    })
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
            format!("there is no record {number}: the data set has {}", units::counted(manifest.samples, "sample")),
            "records are counted from 0",
        )
    })?;
    let within = number - dataset.first_sample(shard);
    let path = dataset.shard_path(shard);
    let record = dataset.record_of(shard, within as usize);
    let Some(location) = dataset.index(shard)?.get(record) else {
        return Err(Error::Format { path, problem: format!("has no record {within} in its index") });
    };
    let storage = forebay_engine::StorageChoice::Local.open(0)?;
    let open = storage.open(&path).map_err(forebay_engine::Error::from)?;
    let extent = dataset.read_extent(&*open, shard, record..record + 1)?;
    let from = (location.offset - extent.offset) as usize;
    let frame = extent.frames.slice(from..from + location.length as usize);
    let record = dataset.payload(shard, record, &frame)?;
    Ok(RecordFound::new(&manifest.shards[shard].file, within, location.offset, &record))
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
        if !self.encodings.is_empty() {
            let encodings: Vec<String> = self.encodings.iter().map(ToString::to_string).collect();
            facts.insert(3, ("encoded", encodings.join("; ")));
        }
        if !self.classes.is_empty() {
            const SHOWN_MAX: usize = 12;
            let more = if self.classes.len() > SHOWN_MAX { ", …" } else { "" };
            let names: Vec<&str> = self.classes.iter().take(SHOWN_MAX).map(String::as_str).collect();
            facts.push(("classes", format!("{}: {}{more}", units::count(self.classes.len() as u64), names.join(", "))));
        }
        if self.skipped > 0 {
            facts.push(("left out", format!("{} that could not be processed", units::counted(self.skipped, "sample"))));
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
