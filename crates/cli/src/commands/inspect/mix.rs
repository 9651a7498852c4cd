//! A data set that `forebay build --mix` made.

use std::path::{Path, PathBuf};

use forebay_engine::StorageChoice;
use forebay_engine::data::{Dataset, Skipped};
use forebay_engine::load::OnError;
use forebay_engine::source::{Mixed, Source};
use forebay_plan::units;
use serde::Serialize;

use super::show_problems;
use crate::error::Result;
use crate::output::{Align, Page, Table};

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    pipeline: String,
    samples: u64,
    bytes: u64,
    /// What decided which sample is in which format.
    seed: u64,
    formats: Vec<Format>,
    classes: Vec<String>,
    skipped: u64,
    identity: String,
    forebay: String,
    verified: bool,
    pub(super) problems: Vec<String>,
}

/// One format of it.
#[derive(Debug, Serialize)]
struct Format {
    strategy: String,
    share: f64,
    folder: String,
    samples: u64,
    bytes: u64,
    shards: u64,
}

pub(super) fn inspect(path: &Path, verify: bool) -> Result<Found> {
    // To verify is to find all that is wrong, and not to end at the first.
    let on_error = if verify { OnError::Skip } else { OnError::Fail };
    let mixed = Mixed::open(path, &StorageChoice::Local.open(0)?, on_error)?;
    let manifest = mixed.manifest();
    let mut problems = Vec::new();
    if verify {
        for (shards, entry) in mixed.formats().iter().zip(&manifest.formats) {
            let dataset: &Dataset = shards.dataset();
            for shard in 0..dataset.manifest().shards.len() {
                let named = |problem: String| format!("{}/{problem}", entry.folder);
                problems.extend(dataset.verify_shard(shard)?.into_iter().map(named));
            }
        }
    }
    let format = |entry: &forebay_engine::data::MixEntry| Format {
        strategy: entry.strategy.clone(),
        share: entry.share,
        folder: entry.folder.clone(),
        samples: entry.samples,
        bytes: entry.bytes,
        shards: entry.shards,
    };
    Ok(Found {
        path: path.to_owned(),
        pipeline: mixed.pipeline().name().to_owned(),
        samples: manifest.samples,
        bytes: manifest.bytes,
        seed: manifest.seed,
        formats: manifest.formats.iter().map(format).collect(),
        classes: manifest.classes.clone(),
        skipped: Skipped::count(&manifest.skipped_samples),
        identity: manifest.identity.clone(),
        forebay: manifest.forebay.clone(),
        verified: verify,
        problems,
    })
}

impl Found {
    pub(super) fn show(&self, page: &mut Page) {
        let mut facts = vec![
            ("data set", self.path.display().to_string()),
            ("pipeline", self.pipeline.clone()),
            ("samples", units::count(self.samples)),
            ("size", units::bytes(self.bytes as f64)),
            ("classes", units::count(self.classes.len() as u64)),
            ("seed", self.seed.to_string()),
        ];
        if self.skipped > 0 {
            facts.push(("left out", format!("{} that could not be processed", units::counted(self.skipped, "sample"))));
        }
        facts.push(("built by", format!("forebay {}", self.forebay)));
        if self.verified {
            let state = if self.problems.is_empty() { "every byte is as it was built" } else { "damaged" };
            facts.push(("verified", state.to_owned()));
        }
        page.facts(&facts);
        page.gap();
        let columns = [("format", Align::Left), ("share", Align::Right), ("samples", Align::Right)];
        let more = [("size", Align::Right), ("shards", Align::Right), ("folder", Align::Left)];
        let mut table = Table::new(&[&columns[..], &more[..]].concat());
        for format in &self.formats {
            let cells = [
                format.strategy.clone(),
                units::percent(format.share),
                units::count(format.samples),
                units::bytes(format.bytes as f64),
                units::count(format.shards),
                format.folder.clone(),
            ];
            table.row(cells, false);
        }
        page.table(&table);
        show_problems(page, &self.problems);
    }
}
