//! Existing outputs: they are reused only if they have the requested encoding.
//!
//! A folder of images has no record of how they were encoded, and none is added: the images themselves show it. The
//! header of an L3 has its mode, and the tables of a JPEG its quality; of a PNG and a WebP the first and the last that are there are
//! encoded once more and compared. (The last too: where an `overwrite` was stopped, the first are new and the last are old.)

use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_codec::image::Encoding;
use forebay_storage::Storage;

use super::picture::Worker;
use super::{Conversion, ConvertOptions, Pair};
use crate::data::FILE_BYTES_MAX;
use crate::error::{Error, Result};
use crate::progress::{Progress, while_wanted};
use crate::sync::Mutex;
use crate::threads::share;

/// Refuses outputs that were not written with these options, before anything is written.
pub(super) fn check(
    conversion: &Conversion,
    options: &ConvertOptions,
    worker: &mut Worker<'_>,
    threads: usize,
    progress: &dyn Progress,
) -> Result<()> {
    let pairs = &conversion.pairs;
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let storage = worker.storage();
    let work = || {
        while !progress.is_cancelled() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(pair) = pairs.get(number) else { return };
            let made = was_made(pair, options.encoding, storage);
            if !matches!(made, Ok(Made::NotThere)) {
                found.lock().push((number, made));
            }
        }
    };
    std::thread::scope(|scope| share(scope, threads, "convert", &work))?;
    while_wanted(progress)?;
    let mut found = found.into_inner();
    found.sort_unstable_by_key(|(number, _)| *number);
    let (mut others, mut unknown) = (Vec::new(), Vec::new());
    for (number, made) in found {
        match made? {
            Made::Otherwise => others.push(&pairs[number]),
            Made::Unknown => unknown.push(&pairs[number]),
            Made::NotThere | Made::AsAsked => {}
        }
    }
    if let ([first, .., last] | [first @ last], true) = (&*unknown, others.is_empty()) {
        for pair in [first, last].into_iter().take(unknown.len()) {
            if !is_what_comes_of_it(pair, worker)? {
                others.push(pair);
            }
        }
    }
    match &*others {
        [] => Ok(()),
        [first, rest @ ..] => Err(refusal(first, rest.len(), options.encoding)),
    }
}

/// What is known of an output.
enum Made {
    NotThere,
    AsAsked,
    Otherwise,
    /// There, but its header does not say how it was made.
    Unknown,
}

fn was_made(pair: &Pair, encoding: Encoding, storage: &dyn Storage) -> Result<Made> {
    if storage.status(&pair.output)?.is_none() {
        return Ok(Made::NotThere);
    }
    let file = storage.open(&pair.output)?;
    let head = file.read(0, file.size().min(Encoding::HEAD_BYTES as u64) as usize)?;
    let made = encoding.made(&head).map_err(|error| Error::internal(&error.to_string()))?;
    Ok(match made {
        Some(true) => Made::AsAsked,
        Some(false) => Made::Otherwise,
        None => Made::Unknown,
    })
}

/// Whether the output has the bytes that encoding its image gives now. If the image cannot be read, that is unknown, and it is reused.
fn is_what_comes_of_it(pair: &Pair, worker: &mut Worker<'_>) -> Result<bool> {
    let Ok(file) = worker.encoded(pair) else { return Ok(true) };
    let there = worker.storage().read_file(&pair.output, FILE_BYTES_MAX)?;
    Ok(*there == *file)
}

fn refusal(first: &Pair, more: usize, encoding: Encoding) -> Error {
    let name = first.output.display();
    let problem = match more {
        0 => format!("`{name}` already exists, and was not written as `{encoding}`"),
        more => format!("`{name}` and {more} more already exist, and were not written as `{encoding}`"),
    };
    let remedy = "pass `overwrite` (`--overwrite`) to write them again, or choose another folder; with the mode or quality that \
                  they have, they are reused";
    Error::Usage { problem, remedy: remedy.to_owned() }
}
