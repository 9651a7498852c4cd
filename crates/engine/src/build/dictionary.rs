//! The dictionary that the records of a data set are compressed with, where its strategy says so.
//!
//! It is trained before any shard is written, on what the first samples of the listing become: so it depends on neither threads nor shards,
//! and a build that is resumed after a kill trains the same one again.

use std::sync::atomic::AtomicBool;

use forebay_record::Dictionary;

use super::journal::Journal;
use super::shard::ShardWriter;
use super::{Build, BuildOptions};
use crate::data::{DICTIONARY_FILE, checksum};
use crate::error::Result;
use crate::memory::Gate;
use crate::progress::Progress;

/// A dictionary, and its checksum.
pub(super) struct Trained {
    pub(super) dictionary: Dictionary,
    pub(super) xxh3: String,
}

impl Trained {
    /// Trains the dictionary of `build`, if it has one, and writes it into the folder of the data set.
    pub(super) fn new(
        build: &Build,
        options: &BuildOptions,
        journal: &Journal,
        progress: &dyn Progress,
    ) -> Result<Option<Self>> {
        if !build.strategy.format.compression.is_some_and(|compression| compression.has_dictionary()) {
            return Ok(None);
        }
        let (gate, stop) = (Gate::new(options.memory_bytes, 1), AtomicBool::new(false));
        let writer = ShardWriter::new(build, 0, options.on_error, (&stop, progress, &gate));
        Self::by(writer, journal).map(Some)
    }

    /// Trains one on the first records that `writer` makes.
    pub(super) fn by(mut writer: ShardWriter<'_>, journal: &Journal) -> Result<Self> {
        let records = writer.first_records(Dictionary::TRAINING_BYTES)?;
        let dictionary = Dictionary::train(records.iter().map(|record| &**record))?;
        journal.check_ours()?;
        journal.write(&journal.output().file(DICTIONARY_FILE), dictionary.bytes())?;
        let xxh3 = checksum(dictionary.bytes());
        Ok(Self { dictionary, xxh3 })
    }
}
