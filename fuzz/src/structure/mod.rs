//! Mutation by parts: a file is taken apart, one part is changed, and the file is put together again with lengths and
//! checksums that are right. What a plain mutation gives is refused at the first checksum, so that it tests little behind it.

mod arrow;
mod flac;
mod jpeg;
mod l3;
mod packed_tar;
mod png;
mod riff;
mod tar;
mod tfrecord;

pub use arrow::Arrow;
pub use flac::Flac;
pub use jpeg::Jpeg;
pub use l3::L3;
pub use packed_tar::{INFLATED_BYTES_MAX, PackedTar, unpack};
pub use png::{Png, PngRows};
pub use riff::Riff;
pub use tar::Tar;
pub use tfrecord::TfRecord;

use libfuzzer_sys::fuzzer_mutate;

/// A part of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// What it is: a marker, a chunk's name, a header without its checksum. Of a fixed length.
    pub kind: Vec<u8>,
    /// What it holds, of any length.
    pub content: Vec<u8>,
}

impl Part {
    fn new(kind: &[u8], content: &[u8]) -> Self {
        Self { kind: kind.to_vec(), content: content.to_vec() }
    }
}

/// A format as parts.
pub trait Structure {
    /// The parts of a file; `None` if it is of another format.
    fn split(file: &[u8]) -> Option<Vec<Part>>;
    /// A file of these parts.
    fn join(parts: &[Part]) -> Vec<u8>;
}

/// Draws for one mutation (`SplitMix64`).
pub struct Random(u64);

impl Random {
    /// The draws that follow from libFuzzer's seed.
    pub fn new(seed: u32) -> Self {
        Self(u64::from(seed))
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

/// Mutates the first `size` bytes of `data` as a file of this structure; returns the new size.
///
/// Every fourth time, and whatever is of another format, it does as libFuzzer does: wrong checksums and lengths are wanted, too.
pub fn mutate<S: Structure>(data: &mut [u8], size: usize, size_max: usize, seed: u32) -> usize {
    let mut random = Random::new(seed);
    let parts = if random.below(4) == 0 { None } else { S::split(&data[..size]) };
    let Some(mut parts) = parts.filter(|parts| !parts.is_empty()) else {
        return fuzzer_mutate(data, size, size_max);
    };
    change(&mut parts, size_max.saturating_sub(size), &mut random);
    let file = S::join(&parts);
    if file.is_empty() || file.len() > size_max {
        return fuzzer_mutate(data, size, size_max);
    }
    data[..file.len()].copy_from_slice(&file);
    file.len()
}

fn change(parts: &mut Vec<Part>, space: usize, random: &mut Random) {
    let (chosen, other) = (choose(parts, random), random.below(parts.len()));
    match random.below(12) {
        0 => drop(parts.remove(chosen)),
        1 => parts.insert(other, parts[chosen].clone()),
        2 => parts.swap(chosen, other),
        3 => parts[chosen].content = parts[other].content.clone(),
        4 | 5 if !parts[chosen].kind.is_empty() => {
            let kind = &mut parts[chosen].kind;
            let length = kind.len();
            fuzzer_mutate(kind, length, length);
        }
        _ => {
            let content = &mut parts[chosen].content;
            let length = content.len();
            content.resize(length + space.clamp(1, 256), 0);
            let most = content.len();
            let length = fuzzer_mutate(content, length, most);
            content.truncate(length);
        }
    }
}

/// Small parts as often as large ones, half of the time; otherwise every byte as often as another.
fn choose(parts: &[Part], random: &mut Random) -> usize {
    let bytes: usize = parts.iter().map(|part| part.content.len()).sum();
    if bytes == 0 || random.below(2) == 0 {
        return random.below(parts.len());
    }
    let mut at = random.below(bytes);
    for (index, part) in parts.iter().enumerate() {
        match at.checked_sub(part.content.len()) {
            Some(rest) => at = rest,
            None => return index,
        }
    }
    0
}
