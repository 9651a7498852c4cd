//! The index of a tar: where the members of each sample are, as DALI's `wds2idx` writes it.
//!
//! A text file named as the tar with [`TAR_INDEX_EXTENSION`] in place of its own, `shard-0.idx` beside `shard-0.tar`:
//!
//! ```text
//! v1.2 2                                            the version, how many samples
//! jpg 512 1234 a/1.jpg cls 2560 1 a/1.cls           a line for each sample; of each member: what it is,
//! jpg 3584 999 a/2.jpg cls 5120 1 a/2.cls           where its content begins, how many bytes that has, and its name
//! ```
//!
//! Version 1.1 has no names, so that nobody can tell keys by it. An index is a hint: it says nothing about which tar it is of. So whoever lists by
//! it has [`tar_members`](crate::tar_members) compare each sample with its key when it is read.

use std::fmt::Write as _;

use crate::names::name_text;
use crate::tar::{BLOCK_BYTES, GAP_BYTES_MAX, TarSample, padded_end, split_name};

/// What the name of an index has in the place of its tar's extension.
pub const TAR_INDEX_EXTENSION: &str = "idx";

/// The version that has names.
const VERSION: &str = "v1.2";
/// What comes after the last member is zeros: a few blocks, or as many as a tape wants.
const END_BYTES_MAX: u64 = 1 << 20;

/// The samples of a tar of `tar_bytes` by the index in `text`: those that [`scan_tar`](crate::scan_tar) finds, if it is that tar's. `None` where it
/// cannot be, or does not say enough: where it is cut, of version 1.1, reaches beyond the tar, leaves out more than headers, or has names that it
/// does not have as they are (with spaces or backslashes).
pub fn parse_tar_index(text: &[u8], tar_bytes: u64) -> Option<Vec<TarSample>> {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let mut head = words(lines.next()?);
    if head.next()? != VERSION.as_bytes() {
        return None;
    }
    let (count, None) = (number(head.next()?)?, head.next()) else { return None };
    let mut samples: Vec<TarSample> = Vec::new();
    let (mut found, mut end) = (0, 0);
    for line in lines {
        found += 1;
        let mut words = words(line);
        while let Some(what) = words.next() {
            let (offset, bytes, name) = (number(words.next()?)?, number(words.next()?)?, words.next()?);
            // GNU tar writes what is no ASCII with backslashes.
            if name.contains(&b'\\') || offset % BLOCK_BYTES != 0 {
                return None;
            }
            let Some((key, member)) = split_name(name) else {
                // A file that is no member: it has no extension, for which an index has all of its name.
                if what != name {
                    return None;
                }
                continue;
            };
            let member_end = padded_end(offset, bytes).filter(|&end| end <= tar_bytes)?;
            // Its header, and perhaps what says more about it, and folders.
            let gap = offset.checked_sub(end)?;
            if member != name_text(what) || !(BLOCK_BYTES..=GAP_BYTES_MAX).contains(&gap) {
                return None;
            }
            match samples.last_mut() {
                Some(last) if last.key == key => last.range.end = member_end,
                _ => samples.push(TarSample { key, range: end..member_end }),
            }
            end = member_end;
        }
    }
    let is_whole = found == count && !samples.is_empty() && (BLOCK_BYTES..=END_BYTES_MAX).contains(&(tar_bytes - end));
    is_whole.then_some(samples)
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn number(digits: &[u8]) -> Option<u64> {
    let add = |value: u64, digit: &u8| {
        digit.is_ascii_digit().then(|| value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))).flatten()
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

/// The index of a tar that is written.
#[derive(Debug, Default)]
pub struct TarIndex {
    lines: String,
    samples: u64,
    key: Option<String>,
    /// Whether there is a name that it cannot have.
    is_refused: bool,
}

impl TarIndex {
    /// An index of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next member: the key of its sample, what it is, where its content begins, and how many bytes that has.
    pub fn add(&mut self, key: &str, member: &str, offset: u64, bytes: u64) {
        let name = format!("{key}.{member}");
        self.is_refused |= name.contains(|letter: char| letter.is_whitespace() || letter == '\\');
        if self.key.as_deref() == Some(key) {
            self.lines.push(' ');
        } else {
            if self.samples > 0 {
                self.lines.push('\n');
            }
            self.samples += 1;
            self.key = Some(key.to_owned());
        }
        // Writing into a `String` cannot fail.
        let _ = write!(self.lines, "{member} {offset} {bytes} {name}");
    }

    /// The index as text. `None` where there is no sample, and where a name has a space or a backslash: its readers would take that apart.
    pub fn into_text(self) -> Option<String> {
        let is_sound = self.samples > 0 && !self.is_refused;
        is_sound.then(|| format!("{VERSION} {}\n{}\n", self.samples, self.lines))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::{TarWriter, scan_tar};

    /// A tar of samples with so many bytes in each of their members, and its index.
    fn written(samples: &[(String, Vec<usize>)]) -> (Vec<u8>, Option<String>) {
        let (mut writer, mut index) = (TarWriter::new(Vec::new()), TarIndex::new());
        for (key, members) in samples {
            for (number, &bytes) in members.iter().enumerate() {
                let member = format!("m{number}.bin");
                let offset = writer.write(key, &member, &vec![number as u8; bytes]).unwrap();
                index.add(key, &member, offset, bytes as u64);
            }
        }
        (writer.finish().unwrap(), index.into_text())
    }

    /// Written by `wds2idx` of DALI for this tar: a folder, a hidden file and a file without an extension are in there, too.
    fn with_others() -> (Vec<u8>, &'static str) {
        let mut builder = tar::Builder::new(Vec::new());
        let mut add = |name: &str, kind: tar::EntryType, bytes: usize| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(bytes as u64);
            builder.append_data(&mut header, name, &vec![7; bytes][..]).unwrap();
        };
        add("a/", tar::EntryType::Directory, 0);
        add("a/1.jpg", tar::EntryType::Regular, 600);
        add("a/.hidden", tar::EntryType::Regular, 5);
        add("a/1.cls", tar::EntryType::Regular, 1);
        add("b/", tar::EntryType::Directory, 0);
        add("b/README", tar::EntryType::Regular, 3);
        add("b/2.jpg", tar::EntryType::Regular, 512);
        let text = "v1.2 3\njpg 1024 600 a/1.jpg cls 3584 1 a/1.cls\nb/README 5120 3 b/README\njpg 6144 512 b/2.jpg\n";
        (builder.into_inner().unwrap(), text)
    }

    #[test]
    fn the_same_samples_are_found_beside_folders_and_other_files() {
        let (tar, text) = with_others();
        let scanned = scan_tar(Cursor::new(&tar), "t.tar").unwrap();
        assert_eq!(scanned.len(), 2);
        assert_eq!(parse_tar_index(text.as_bytes(), tar.len() as u64), Some(scanned));
    }

    #[test]
    fn what_does_not_fit_is_no_index() {
        let (tar, text) = with_others();
        let bytes = tar.len() as u64;
        let unfit = |text: &str| assert_eq!(parse_tar_index(text.as_bytes(), bytes), None, "{text}");
        for (from, to) in [
            ("v1.2", "v1.1"),
            ("v1.2 3", "v1.2 4"),
            ("v1.2 3", "v1.2 2"),
            ("v1.2 3", "v1.2 3 3"),
            ("v1.2 3", "v1.2 99999999999999999999"),
            ("6144", "6145"),
            ("6144", "5632000"),
            ("6144 512", "6144 18446744073709551615"),
            ("1024", "0"),
            ("a/1.jpg", "a/1 2.jpg"),
            ("a/1.jpg", r"a/\3031.jpg"),
            ("jpg 1024", "png 1024"),
            ("3584 1 a/1.cls", "3584 1"),
            ("3584", "-3584"),
        ] {
            assert!(text.contains(from));
            unfit(&text.replacen(from, to, 1));
        }
        unfit("");
        unfit("v1.2 0\n");
        let text = text.as_bytes();
        assert_eq!(parse_tar_index(text, bytes - 1024), None, "the tar was cut");
        assert_eq!(parse_tar_index(text, bytes + (2 << 20)), None, "the tar goes on");
        for length in 0..text.len() - 1 {
            let cut = parse_tar_index(&text[..length], bytes);
            assert!(cut.is_none(), "cut to {length}: {cut:?}");
        }
    }

    #[test]
    fn names_that_would_be_taken_apart_have_no_index() {
        for (key, fits) in [("a", true), ("a b", false), (r"a\b", false), ("caf\u{e9}", true)] {
            let (tar, text) = written(&[(key.to_owned(), vec![3, 700])]);
            assert_eq!(text.is_some(), fits, "{key}");
            let Some(text) = text else { continue };
            assert!(parse_tar_index(text.as_bytes(), tar.len() as u64).is_some(), "{key}");
        }
        assert_eq!(TarIndex::new().into_text(), None);
    }

    proptest! {
        /// Whatever is wrong with an index: if all of its samples are there and nothing comes after, they are those of the tar.
        #[test]
        fn an_index_that_is_wrong_never_gives_wrong_samples(at in 0_usize..40, with in prop_oneof!["[abc]/m[01].bin", "[0-9]{1,2}", "", "\n", "(512|1024|1536|2048|2560|3072|4096)"], also in 0_usize..40) {
            let keys = ["a", "b", "c"].map(|key| (key.to_owned(), vec![0, 600]));
            let (tar, text) = written(&keys);
            let text = text.unwrap();
            let mut words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
            let (at, also) = (at % words.len(), also % words.len());
            let other = words[also];
            words[at] = if with.is_empty() { other } else { with.as_str() };
            let samples = parse_tar_index(words.concat().as_bytes(), tar.len() as u64).unwrap_or_default();
            let bytes = bytes::Bytes::from(tar.clone());
            let is_there = samples.iter().all(|sample| {
                let bytes = bytes.slice(sample.range.start as usize..sample.range.end as usize);
                crate::tar_members(&bytes, &sample.key, "t.tar", 0, 0).is_ok()
            });
            let end = samples.last().map_or(0, |sample| sample.range.end as usize);
            if is_there && tar[end..].iter().all(|byte| *byte == 0) {
                prop_assert_eq!(samples, scan_tar(Cursor::new(&tar), "t.tar").unwrap());
            }
        }

        /// An index that is written says what going through the tar says; of long names, too.
        #[test]
        fn an_index_says_what_the_tar_says(keys in prop::collection::vec(("[a-c]{1,3}(/[a-z]{1,120}){0,2}", prop::collection::vec(0_usize..3000, 1..4)), 1..12)) {
            let (tar, text) = written(&keys);
            let scanned = scan_tar(Cursor::new(&tar), "t.tar").unwrap();
            prop_assert_eq!(parse_tar_index(text.unwrap().as_bytes(), tar.len() as u64), Some(scanned));
        }

        /// Whatever a text says: the samples tile the tar from its beginning, and none reaches beyond it.
        #[test]
        fn samples_lie_within_the_tar(text in "v1.2 [0-3]\n([a-c] [0-9]{1,4}[048] [0-9]{1,3} [a-c]\\.[a-c]\n?){0,4}", blocks in 0_u64..40) {
            let bytes = blocks * BLOCK_BYTES;
            let mut end = 0;
            for sample in parse_tar_index(text.as_bytes(), bytes).unwrap_or_default() {
                prop_assert!(sample.range.start == end && sample.range.end > end && sample.range.end <= bytes);
                end = sample.range.end;
            }
        }

        #[test]
        fn any_bytes_are_taken(text in prop::collection::vec(any::<u8>(), 0..300), bytes in any::<u64>()) {
            let _ = parse_tar_index(&text, bytes);
        }
    }
}
