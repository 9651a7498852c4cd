//! Reading all of a data set, to find damage.

use forebay_record::{ErrorLocation, INDEX_SUFFIX, OnDamage, Options, masked_crc32c};

use super::Dataset;
use super::tables::{Tables, read_shard, stream_of};
use crate::error::{Error, Result};

impl Dataset {
    /// Reads shard number `shard` and all that lies beside it from front to back; what is wrong with them, in words. Fails where
    /// the system does not let it read.
    ///
    /// The manifest has been checked when the data set was opened.
    pub fn verify_shard(&self, shard: usize) -> Result<Vec<String>> {
        let entry = &self.manifest().shards[shard];
        let path = self.shard_path(shard);
        let mut problems = Vec::new();
        if let Err(error) = self.check_size(shard) {
            problems.push(error.to_string());
            if matches!(error, Error::Io { .. } | Error::Storage(_)) {
                return Ok(problems);
            }
        }
        // Not those that may have been made again.
        let tables = Tables::read(self.storage(), &path, entry, self.compression())
            .inspect_err(|error| problems.push(error.to_string()))
            .ok();
        let compression = stream_of(self.compression());
        let options = Options { on_damage: OnDamage::Skip, compression, ..Options::default() };
        let (mut records, mut misplaced, mut others, mut damaged) = (0, 0, 0, None);
        let index = tables.as_ref().map(|tables| tables.index.clone());
        let pass = read_shard(self.storage(), &path, entry, options, index, |record| {
            records += 1;
            if let Some(tables) = &tables {
                // By offset and not by number, which damage may have changed.
                match tables.index.find(record.location) {
                    None => misplaced += 1,
                    Some(number) => {
                        others += u64::from(tables.checksums.get(number) != Some(masked_crc32c(&record.data)));
                        let error_location = || ErrorLocation {
                            shard: Some(entry.file.as_str().into()),
                            record: Some(number as u64),
                            offset: Some(record.location.offset),
                        };
                        let inflated = self.inflated(tables, number, record.data.clone(), error_location);
                        damaged = damaged.take().or(inflated.err().map(|error| error.to_string()));
                    }
                }
            }
            Ok(())
        });
        let pass = match pass {
            Ok(pass) => pass,
            // What is not even read as a shard.
            Err(Error::Record(error)) => {
                problems.push(error.to_string());
                return Ok(problems);
            }
            Err(error) => return Err(error),
        };
        problems.extend(pass.problems);
        problems.extend(damaged);
        let mut say = |what: &str, expected: &str, found: &str| {
            problems.push(format!("`{}` has {what} `{found}`, but the manifest says `{expected}`", entry.file));
        };
        if records != entry.records() {
            say("records", &entry.records().to_string(), &records.to_string());
        }
        if pass.checksum != entry.xxh3 {
            say("checksum", &entry.xxh3, &pass.checksum);
        }
        if pass.rest > 0 {
            problems.push(format!("`{}` has {} bytes after its last record", entry.file, pass.rest));
        }
        if misplaced > 0 {
            problems.push(format!("`{}{INDEX_SUFFIX}` misplaces {misplaced} records", entry.file));
        }
        if others > 0 {
            problems.push(format!("`{}` has {others} records that do not belong in their place", entry.file));
        }
        Ok(problems)
    }
}
