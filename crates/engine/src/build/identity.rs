//! The identity of a build: what decides the bytes that come out.

use std::io::ErrorKind;

use forebay_pipeline::steps::named_files;
use forebay_pipeline::{PipelineSpec, Strategy};
use forebay_storage::{LocalStorage, Storage};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::{Build, BuildOptions};
use crate::data::{LabelValue, Manifest, checksum, digits};
use crate::error::{Error, Result};

/// What is built, in parts, so that a message can say what has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Of all the rest.
    pub(super) digest: String,
    pipeline: String,
    strategy: String,
    shards: usize,
    /// Names, sizes, times of modification and labels of the source's files, and of the vocabularies and tables that offline steps name.
    files: String,
    /// The layout and the version that writes it.
    format: String,
}

impl Identity {
    /// The identity of `build` with these options. What happens to damaged samples is no part of it: it does not change
    /// what becomes of the others.
    pub(super) fn of(build: &Build, options: &BuildOptions) -> Result<Self> {
        let spec = build.pipeline.to_spec().ok_or_else(|| Error::Usage {
            problem: format!("pipeline `{}` has a step that was made in code", build.pipeline.name()),
            remedy: "build a pipeline whose steps all have a name".to_owned(),
        })?;
        Ok(Self::new(&spec, build.strategy.to_string(), options.shards, files_checksum(build)?))
    }

    /// The identity of what is made of the data set with this manifest, as `strategy`, with its images encoded again as `encoding`.
    pub(super) fn recoded(manifest: &Manifest, strategy: &Strategy, encoding: &str) -> Self {
        let from = checksum(format!("{} {encoding}", manifest.identity).as_bytes());
        Self::new(&manifest.pipeline, strategy.to_string(), manifest.shards.len(), from)
    }

    fn new(spec: &PipelineSpec, strategy: String, shards: usize, files: String) -> Self {
        let mut identity = Self {
            digest: String::new(),
            pipeline: checksum(spec_text(spec).as_bytes()),
            strategy,
            shards,
            files,
            format: format!("{}-{} by {}", Manifest::FORMAT, Manifest::VERSION, env!("CARGO_PKG_VERSION")),
        };
        let Self { pipeline, strategy, shards, files, format, .. } = &identity;
        identity.digest = checksum(format!("{pipeline} {strategy} {shards} {files} {format}").as_bytes());
        identity
    }

    /// What is stored.
    pub(super) fn strategy(&self) -> &str {
        &self.strategy
    }

    /// The number of shards to build.
    pub(super) fn shards(&self) -> usize {
        self.shards
    }

    /// In what this differs from `other`, in words.
    pub(super) fn differences(&self, other: &Self) -> String {
        let parts = [
            (self.pipeline != other.pipeline, "another pipeline".to_owned()),
            (self.strategy != other.strategy, format!("strategy `{}`, not `{}`", other.strategy, self.strategy)),
            (self.shards != other.shards, format!("{} shards, not {}", other.shards, self.shards)),
            (self.files != other.files, "source files that were added, removed or changed since".to_owned()),
            (self.format != other.format, format!("format `{}`, not `{}`", other.format, self.format)),
        ];
        let different: Vec<String> = parts.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what).collect();
        different.join(", ")
    }
}

fn spec_text(spec: &PipelineSpec) -> String {
    serde_json::to_string(spec).expect("a pipeline's spec has text keys and plain values")
}

fn files_checksum(build: &Build) -> Result<String> {
    let mut hash = Xxh3::new();
    for class in build.listing.classes() {
        hash.update(class.as_bytes());
        hash.update(&[0]);
    }
    for file in build.listing.entries() {
        hash.update(file.key.as_bytes());
        hash.update(&[0]);
        hash.update(&file.bytes.to_le_bytes());
        hash.update(&LabelValue::identity(file.label));
        hash.update(&file.version.0.to_le_bytes());
    }
    for path in named_files(build.strategy.offline(&build.pipeline))? {
        // These are files of this machine, wherever the samples are.
        let found = LocalStorage::buffered().status(&path)?;
        let found = found.ok_or_else(|| Error::io("open", &path)(ErrorKind::NotFound.into()))?;
        hash.update(&found.bytes.to_le_bytes());
        hash.update(&found.version.0.to_le_bytes());
    }
    Ok(digits(hash.digest()))
}
