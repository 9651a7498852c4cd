//! Recompressing a data set that was built: each encoding becomes a separate data set.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_storage::{Folder, Storage};

use super::{RecompressOptions, Recompressed, RecompressedVariant};
use crate::build::{BuildOptions, Recode};
use crate::data::{Dataset, MIX_FILE};
use crate::error::{Error, Result};
use crate::load::OnError;
use crate::progress::Progress;

/// Recompresses the images of the data set in the folder `input`.
pub(super) fn recompress_dataset(
    input: &Path,
    output: &Path,
    options: &RecompressOptions,
    storage: &Arc<dyn Storage>,
    progress: &dyn Progress,
) -> Result<Recompressed> {
    if options.metrics {
        return Err(Error::Usage {
            problem: format!("`{}` is a data set, whose images are not compared one by one", input.display()),
            remedy: "omit `metrics` (`--metrics`), or recompress the folder of its source files".to_owned(),
        });
    }
    let folder = |path: &Path| Folder::new(Arc::clone(storage), path);
    if storage.is_taken(&input.join(MIX_FILE))? {
        return Err(Error::Usage {
            problem: format!("`{}` is a data set in several formats", input.display()),
            remedy: format!("recompress one of them, such as `{}/format-00`", input.display()),
        });
    }
    let dataset = Arc::new(Dataset::open_on_error(folder(input), options.on_error)?);
    let before = dataset.manifest();
    let build = BuildOptions {
        threads: options.threads.max(1),
        shards: before.shards.len(),
        on_error: options.on_error,
        overwrite: options.overwrite,
        resume: None,
        memory_bytes: options.memory_bytes,
    };
    let mut all = Recompressed::default();
    for &encoding in &options.encodings {
        let recode = Recode::new(Arc::clone(&dataset), Arc::clone(storage), encoding)?;
        let to = output.join(encoding.to_string());
        let manifest = recode.run(folder(&to), &build, progress)?.manifest;
        if options.verify {
            verify(folder(&to))?;
        }
        let (encoded, copied) = (recode.encoded.load(Ordering::Relaxed), recode.copied.load(Ordering::Relaxed));
        all.variants.push(RecompressedVariant {
            images: manifest.samples,
            encoded,
            copied,
            reused: manifest.samples.saturating_sub(encoded + copied),
            ..RecompressedVariant::of_sizes(&encoding.to_string(), before.bytes, manifest.bytes)
        });
        all.skipped_samples.extend(manifest.skipped_samples.into_iter().skip(before.skipped_samples.len()));
    }
    Ok(all)
}

/// Reads all of a data set back.
fn verify(folder: Folder) -> Result<()> {
    let dataset = Dataset::open_on_error(folder, OnError::Skip)?;
    for shard in 0..dataset.manifest().shards.len() {
        if let Some(problem) = dataset.verify_shard(shard)?.into_iter().next() {
            return Err(Error::Format { path: dataset.shard_path(shard), problem });
        }
    }
    Ok(())
}
