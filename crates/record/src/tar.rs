//! Tar shards as `WebDataset` keeps them: the members of a sample follow each other, and share their name up to the first dot
//! of its last part, which is the sample's key; the rest of the name says what a member is.
//!
//! ```text
//! n01440764/7.jpg      key `n01440764/7`, member `jpg`
//! n01440764/7.cls      key `n01440764/7`, member `cls`
//! n01440764/8.jpg      the next sample
//! ```

use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use bytes::Bytes;
use tar::{Archive, EntryType, Header, PaxExtensions};

use crate::error::{Error, ErrorLocation, FormatFault, Result};
use crate::names::name_text;
use crate::remembered::Remembered;
use crate::tar_index::TAR_INDEX_EXTENSION;

/// Blocks of a tar are so long.
pub(crate) const BLOCK_BYTES: u64 = 512;
/// What lies between two samples (folders, files that are no members) belongs to the one behind it, up to so much with its header: so samples are read
/// in one piece where they follow each other, and where they lie follows from where their members are.
pub(crate) const GAP_BYTES_MAX: u64 = 64 << 10;

/// Where a sample lies in a tar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TarSample {
    /// Its key.
    pub key: String,
    /// Its members with their headers, and small things that lie before them.
    pub range: Range<u64>,
}

/// Finds the samples of a tar by its headers; members are skipped, not read.
pub fn scan_tar<R: Read + Seek>(input: R, shard: &str) -> Result<Vec<TarSample>> {
    let (samples, damage) = salvage_tar(input, shard)?;
    damage.map_or(Ok(samples), Err)
}

/// Finds the samples of a tar that may be damaged: those before the first damage, and the damage. Where that may have cost
/// a member of the last sample before it, the sample is left out. What comes after is not looked for: a member may be a tar itself.
pub fn salvage_tar<R: Read + Seek>(input: R, shard: &str) -> Result<(Vec<TarSample>, Option<Error>)> {
    survey_tar(input, shard, &mut |_, _| {})
}

/// The same; `seen` is told what each member is and how many bytes it has, also of a sample that is left out.
pub fn survey_tar<R: Read + Seek>(
    input: R,
    shard: &str,
    seen: &mut dyn FnMut(&str, u64),
) -> Result<(Vec<TarSample>, Option<Error>)> {
    // Its headers are gone through twice, and what is far away or compressed is to be read once.
    let mut input = Remembered::new(input);
    let length = input.seek(SeekFrom::End(0)).map_err(|source| io(shard, source))?;
    input.rewind().map_err(|source| io(shard, source))?;
    let obstacle = find_obstacle(&mut input, shard)?;
    input.rewind().map_err(|source| io(shard, source))?;
    let mut archive = Archive::new(input);
    let mut samples = Vec::new();
    let damage = match scan_members(&mut archive, length, shard, obstacle, &mut samples, seen) {
        Err(damage) => Some(damage),
        Ok(end) => {
            let problem = check_end(archive.into_inner(), end).map_err(|source| io(shard, source))?;
            problem.map(|problem| {
                samples.pop();
                format(shard, Some(samples.len() as u64), end, problem.to_owned())
            })
        }
    };
    Ok((samples, damage))
}

/// What says more about the next member (its name, its attributes) is read whole, and is at most so long.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;

/// What the attributes of a member that is kept as a map of its holes begin with.
const SPARSE: &[u8] = b"GNU.sparse.";

/// Something in a tar that cannot be passed: its offset, and why.
type Obstacle = (u64, Error);

/// The first file that is kept as a map of its holes, or name that would take much memory. What is damaged is left to others.
fn find_obstacle<R: Read + Seek>(input: &mut R, shard: &str) -> Result<Option<Obstacle>> {
    let mut archive = Archive::new(input);
    let location = |at| ErrorLocation { shard: Some(shard.into()), record: None, offset: Some(at) };
    let entries = archive.entries_with_seek().map_err(|source| io(shard, source))?.raw(true);
    for mut entry in entries.map_while(std::result::Result::ok) {
        let (kind, at) = (entry.header().entry_type(), entry.raw_header_position());
        let says_more = matches!(
            kind,
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader | EntryType::XGlobalHeader
        );
        if says_more && entry.size() > EXTENSION_BYTES_MAX {
            let what = "bytes of a name or of attributes in a tar";
            let (limit, found) = (EXTENSION_BYTES_MAX, entry.size());
            return Ok(Some((at, Error::Limit { location: location(at), what, limit, found, hint: "" })));
        }
        let mut attributes = Vec::new();
        if kind == EntryType::XHeader && entry.read_to_end(&mut attributes).is_err() {
            return Ok(None);
        }
        if kind == EntryType::GNUSparse || attributes.windows(SPARSE.len()).any(|window| window == SPARSE) {
            let what = "a member that is kept as a map of its holes";
            let (found, hint) =
                (name_text(&entry.path_bytes()).into(), "write the tar again without `-S` (`--sparse`)");
            return Ok(Some((at, Error::Unsupported { location: location(at), what, found, hint })));
        }
    }
    Ok(None)
}

/// Adds the samples of a tar of `length` bytes; where its members end. After an error, every sample that was added is whole.
fn scan_members<R: Read + Seek>(
    archive: &mut Archive<R>,
    length: u64,
    shard: &str,
    mut obstacle: Option<Obstacle>,
    samples: &mut Vec<TarSample>,
    seen: &mut dyn FnMut(&str, u64),
) -> Result<u64> {
    let mut end = 0;
    if let Some((_, error)) = obstacle.take_if(|(at, _)| *at == 0) {
        return Err(error);
    }
    for entry in archive.entries_with_seek().map_err(|source| io(shard, source))? {
        let entry = entry.map_err(|source| {
            samples.pop();
            format(shard, Some(samples.len() as u64), end, source.to_string())
        })?;
        let start = end;
        let path = entry.path_bytes();
        let name = entry.header().entry_type().is_file().then(|| split_name(&path)).flatten();
        let Some(member_end) = padded_end(entry.raw_file_position(), entry.size()).filter(|&end| end <= length) else {
            samples.pop_if(|last| name.as_ref().is_none_or(|(key, _)| last.key == *key));
            return Err(format(shard, Some(samples.len() as u64), start, "it ends within a member".to_owned()));
        };
        end = member_end;
        let content = entry.raw_file_position();
        let key = name.map(|(key, member)| {
            seen(&member, entry.size());
            key
        });
        match (key, samples.last_mut()) {
            (None, _) => {}
            (Some(key), Some(last)) if last.key == key => last.range.end = end,
            (Some(key), last) => {
                let before = last.map_or(0, |last| last.range.end);
                let start = if content - before <= GAP_BYTES_MAX { before } else { start };
                samples.push(TarSample { key, range: start..end });
            }
        }
        if let Some((_, error)) = obstacle.take_if(|(at, _)| *at <= end) {
            // What comes may have been a member of the last sample.
            samples.pop();
            return Err(error);
        }
    }
    Ok(end)
}

/// What is wrong with the end of a tar whose members end at `end`. A tar ends with blocks of zeros: without any it was cut
/// between two members, and with something after them there are more members that nobody would read.
fn check_end<R: Read + Seek>(mut input: R, end: u64) -> std::io::Result<Option<&'static str>> {
    input.seek(SeekFrom::Start(end))?;
    let mut block = [0; BLOCK_BYTES as usize];
    let mut found = 0;
    loop {
        let read = input.read(&mut block)?;
        found += read as u64;
        if block[..read].iter().any(|&byte| byte != 0) {
            return Ok(Some("it goes on after its end: a header was erased, or several tars were joined"));
        }
        if read == 0 {
            return Ok((found < BLOCK_BYTES).then_some("it has no end: it was cut, or not written to its end"));
        }
    }
}

/// The members of the sample whose bytes are `sample`: what each is, and its content, which shares the sample's memory. Two
/// members of one name are an error.
///
/// Where it lies was found out before, perhaps by an [index](crate::parse_tar_index), which may be another tar's. So it is an error if anything but
/// whole members of the sample `key` is there.
pub fn tar_members(sample: &Bytes, key: &str, shard: &str, number: u64, offset: u64) -> Result<Vec<(String, Bytes)>> {
    let changed = |problem: String| {
        let index = format!("{}.{TAR_INDEX_EXTENSION}", shard.strip_suffix(".tar").unwrap_or(shard));
        let fault = FormatFault::TarSample { key: key.into(), problem: problem.into(), index: index.into() };
        Error::Format {
            location: ErrorLocation { shard: Some(shard.into()), record: Some(number), offset: Some(offset) },
            fault,
        }
    };
    let mut archive = Archive::new(Cursor::new(&sample[..]));
    let mut members = Vec::new();
    let mut end = 0;
    for entry in archive.entries_with_seek().map_err(|source| changed(source.to_string()))? {
        let mut entry = entry.map_err(|source| changed(source.to_string()))?;
        let (start, bytes) = (entry.raw_file_position(), entry.size());
        let entry_end = padded_end(start, bytes)
            .filter(|&end| end <= sample.len() as u64)
            .ok_or_else(|| changed("it ends within a member".to_owned()))?;
        let path = entry.path_bytes().into_owned();
        let Some((of, member)) = entry.header().entry_type().is_file().then(|| split_name(&path)).flatten() else {
            if entry.header().entry_type() == EntryType::GNUSparse {
                return Err(changed(format!("`{}` is kept as a map of its holes", name_text(&path))));
            }
            continue;
        };
        if of != key {
            return Err(changed(format!("`{}` is there", name_text(&path))));
        }
        let mut attributes = entry.pax_extensions().map_err(|source| changed(source.to_string()))?;
        let is_sparse = |attributes: &mut PaxExtensions<'_>| {
            attributes.flatten().any(|attribute| attribute.key_bytes().starts_with(SPARSE))
        };
        if attributes.as_mut().is_some_and(is_sparse) {
            return Err(changed(format!("`{}` is kept as a map of its holes", name_text(&path))));
        }
        // As WebDataset does: which of the two is meant nobody knows. Small and large letters are the same to both.
        if members.iter().any(|(other, _): &(String, Bytes)| other.eq_ignore_ascii_case(&member)) {
            let at = offset + entry.raw_header_position();
            return Err(format(shard, Some(number), at, format!("the sample has two members `{member}`")));
        }
        members.push((member, sample.slice(start as usize..(start + bytes) as usize)));
        end = entry_end;
    }
    match end {
        _ if members.is_empty() => Err(changed("nothing of it is there".to_owned())),
        end if end < sample.len() as u64 => Err(changed("a part of it is not there".to_owned())),
        _ => Ok(members),
    }
}

pub(crate) fn padded_end(start: u64, bytes: u64) -> Option<u64> {
    start.checked_add(bytes)?.checked_next_multiple_of(BLOCK_BYTES)
}

/// Key and member of a name; `None` if it has no dot, or begins with one. Different names give different texts.
pub(crate) fn split_name(mut path: &[u8]) -> Option<(String, String)> {
    while let Some(rest) = path.strip_prefix(b"./") {
        path = rest;
    }
    let last = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dot = last + path[last..].iter().position(|&byte| byte == b'.')?;
    (dot > last).then(|| (name_text(&path[..dot]).into_owned(), name_text(&path[dot + 1..]).into_owned()))
}

fn io(shard: &str, source: std::io::Error) -> Error {
    Error::Io {
        action: "read",
        location: ErrorLocation { shard: Some(shard.into()), ..ErrorLocation::default() },
        source,
    }
}

fn format(shard: &str, record: Option<u64>, offset: u64, problem: String) -> Error {
    let location = ErrorLocation { shard: Some(shard.into()), record, offset: Some(offset) };
    Error::Format { location, fault: FormatFault::Tar { problem: problem.into() } }
}

/// Writes a tar of samples.
pub struct TarWriter<W: Write> {
    builder: tar::Builder<Counted<W>>,
}

/// An output, and how many bytes went there.
struct Counted<W>(W, u64);

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let written = self.0.write(buffer)?;
        self.1 += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> TarWriter<W> {
    /// Writes to `output`.
    pub fn new(output: W) -> Self {
        Self { builder: tar::Builder::new(Counted(output, 0)) }
    }

    /// Adds a member of the sample `key`. The members of a sample must follow each other, and keys have no dot in their last
    /// part: [`tar_key`] makes one of any text. Gives where its content begins, as an [index](crate::TarIndex) has it.
    pub fn write(&mut self, key: &str, member: &str, content: &[u8]) -> Result<u64> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        // The same samples always give the same bytes.
        header.set_mtime(0);
        let path = format!("{key}.{member}");
        self.builder.append_data(&mut header, path, content).map_err(write_failed)?;
        Ok(self.builder.get_ref().1 - (content.len() as u64).next_multiple_of(BLOCK_BYTES))
    }

    /// Ends the tar, and gives the output back.
    pub fn finish(self) -> Result<W> {
        self.builder.into_inner().map(|output| output.0).map_err(write_failed)
    }
}

fn write_failed(source: std::io::Error) -> Error {
    Error::Io { action: "write", location: ErrorLocation::default(), source }
}

/// A key that can be told from the member's name: without a leading slash or `..`, and without a dot in its last part, where
/// an extension is cut off and other dots become underscores. Different texts may give the same key.
pub fn tar_key(key: &str) -> String {
    let parts: Vec<&str> = key.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
    let Some((last, folders)) = parts.split_last() else { return "_".to_owned() };
    let is_extension = |end: &str| end.len() <= 5 && end.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let cut = last.rsplit_once('.').filter(|(_, end)| is_extension(end));
    let stem = cut.map_or(*last, |(stem, _)| stem).trim_start_matches('.');
    let stem = if stem.is_empty() { last.trim_start_matches('.') } else { stem }.replace('.', "_");
    folders.iter().copied().chain(std::iter::once(&*stem)).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a member is, and its content.
    type Member<'a> = (&'a str, &'a [u8]);

    fn written(samples: &[(&str, &[Member<'_>])]) -> Vec<u8> {
        let mut writer = TarWriter::new(Vec::new());
        for (key, members) in samples {
            for (member, content) in *members {
                writer.write(key, member, content).unwrap();
            }
        }
        writer.finish().unwrap()
    }

    #[test]
    fn samples_are_found_and_taken_apart() {
        let long = "f/".repeat(90) + "name";
        let tar = written(&[
            ("a/1", &[("jpg", &[1; 700]), ("cls", b"7")]),
            (&long, &[("seg.png", &[2; 3]), ("json", b"{}")]),
            ("b", &[("txt", b"")]),
        ]);
        let samples = scan_tar(Cursor::new(&tar), "t.tar").unwrap();
        assert_eq!(samples.iter().map(|sample| sample.key.as_str()).collect::<Vec<_>>(), ["a/1", &long, "b"]);
        let tar = Bytes::from(tar);
        let members = |number: usize| {
            let range = &samples[number].range;
            let bytes = tar.slice(range.start as usize..range.end as usize);
            tar_members(&bytes, &samples[number].key, "t.tar", number as u64, range.start).unwrap()
        };
        assert_eq!(members(0), [("jpg".into(), Bytes::from(vec![1; 700])), ("cls".into(), Bytes::from_static(b"7"))]);
        assert_eq!(members(1)[0], ("seg.png".into(), Bytes::from(vec![2; 3])));
        assert_eq!(members(2), [("txt".into(), Bytes::new())]);
    }

    #[test]
    fn damage_is_named_and_never_panics() {
        let tar = written(&[("a", &[("jpg", &[1; 700])]), ("b", &[("jpg", &[2; 700])])]);
        let error = scan_tar(Cursor::new(&tar[..2200]), "t.tar").unwrap_err().to_string();
        assert!(error.contains("`t.tar`") && error.contains("within a member"), "{error}");
        assert!(scan_tar(Cursor::new(&tar), "t.tar").is_ok());
        for at in 0..tar.len().min(2000) {
            let mut damaged = tar.clone();
            damaged[at] ^= 0x55;
            if let Ok(samples) = scan_tar(Cursor::new(&damaged), "t.tar") {
                for sample in samples {
                    let range = sample.range.start as usize..sample.range.end as usize;
                    let _ = tar_members(&Bytes::copy_from_slice(&damaged[range]), &sample.key, "t.tar", 0, 0);
                }
            }
        }
    }

    /// Cut anywhere, or with any block erased: what is found is whole and the same, and what is lost is said to be.
    #[test]
    fn what_is_whole_is_salvaged() {
        let tar = written(&[
            ("a", &[("jpg", &[1; 700]), ("cls", b"1")]),
            ("b", &[("jpg", &[2; 100]), ("cls", b"2")]),
            ("c", &[("jpg", &[3; 900]), ("cls", b"3")]),
        ]);
        let whole = scan_tar(Cursor::new(&tar), "t.tar").unwrap();
        let check = |damaged: &[u8], what: &str| {
            let (samples, damage) = salvage_tar(Cursor::new(damaged), "t.tar").unwrap();
            assert!(samples.len() == whole.len() || damage.is_some(), "{what}: loss in silence");
            assert_eq!(samples, whole[..samples.len()], "{what}");
            samples.len()
        };
        let mut counts = Vec::new();
        for length in 0..tar.len() {
            counts.push(check(&tar[..length], &format!("cut to {length}")));
        }
        assert!(counts.is_sorted() && counts.contains(&1) && counts.contains(&2), "{counts:?}");
        for header in [0, 1536, 2560, 3584, 4608, 6144] {
            let mut erased = tar.clone();
            erased[header..header + 512].fill(0);
            let left = check(&erased, &format!("erased at {header}"));
            assert!(left < 3, "erased at {header}");
        }
        let joined = [&tar[..], &tar[..]].concat();
        let error = scan_tar(Cursor::new(joined), "t.tar").unwrap_err().to_string();
        assert!(error.contains("goes on after its end"), "{error}");
    }

    #[test]
    fn two_members_of_one_name_are_refused_with_their_place() {
        for names in [["jpg", "jpg"], ["jpg", "JPG"]] {
            let tar = written(&[
                ("a", &[("cls", b"1"), (names[0], &[1; 700]), (names[1], &[2; 700])]),
                ("b", &[("jpg", b"")]),
            ]);
            let samples = scan_tar(Cursor::new(&tar), "t.tar").unwrap();
            assert_eq!(samples.len(), 2, "the others can be read");
            let range = samples[0].range.start as usize..samples[0].range.end as usize;
            let error =
                tar_members(&Bytes::from(tar).slice(range), "a", "t.tar", 0, samples[0].range.start).unwrap_err();
            let error = error.to_string();
            // Two members of one block each and one of two, and their headers, are before it.
            let location = format!("byte {}", 512 * (2 + 3));
            assert!(error.contains("`t.tar`") && error.contains(names[1]) && error.contains(&location), "{error}");
        }
    }

    /// As an index of another tar has it, or a tar that was changed since it was listed.
    #[test]
    fn what_is_not_the_sample_is_refused() {
        let tar = Bytes::from(written(&[
            ("a", &[("jpg", &[1; 700]), ("cls", b"1")]),
            ("b", &[("jpg", &[2; 100]), ("cls", b"2")]),
        ]));
        let samples = scan_tar(Cursor::new(&tar), "t.tar").unwrap();
        let ends = samples[1].range.end as usize;
        let (mut right, whole) = (Vec::new(), samples[0].range.end as usize);
        for start in (0..ends).step_by(512) {
            for end in (start..=tar.len()).step_by(512) {
                for key in ["a", "b", "c"] {
                    match tar_members(&tar.slice(start..end), key, "t.tar", 0, start as u64) {
                        Ok(members) => right.push((key, start, end, members.len())),
                        Err(error) => {
                            let error = error.to_string();
                            assert!(
                                error.contains("`t.tar`") && error.contains("`t.idx`") && error.contains(key),
                                "{error}"
                            );
                        }
                    }
                }
            }
        }
        // Its members one by one, too: those an index may have as samples only of a tar that has them so.
        let (first, second) = (("a", 0, whole, 2), ("b", whole, ends, 2));
        assert!(right.contains(&first) && right.contains(&second), "{right:?}");
        let alone =
            [("a", 0, 1536, 1), ("a", 1536, whole, 1), ("b", whole, whole + 1024, 1), ("b", whole + 1024, ends, 1)];
        assert!(right.iter().all(|found| alone.contains(found) || *found == first || *found == second), "{right:?}");
    }

    #[test]
    fn members_with_holes_and_endless_names_are_refused() {
        let with = |kind: EntryType, content: &[u8], size: u64| {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(size);
            header.set_path("0.jpg").unwrap();
            header.set_cksum();
            builder.append(&header, content).unwrap();
            let mut header = Header::new_gnu();
            header.set_size(0);
            builder.append_data(&mut header, "1.jpg", &b""[..]).unwrap();
            builder.into_inner().unwrap()
        };
        let error = |tar: Vec<u8>| scan_tar(Cursor::new(tar), "t.tar").unwrap_err();
        for (kind, content) in [(EntryType::GNUSparse, &b"holes"[..]), (EntryType::XHeader, b"22 GNU.sparse.major=1\n")]
        {
            let found = error(with(kind, content, content.len() as u64));
            assert_eq!(found.kind(), forebay_error::ErrorKind::Unsupported, "{found}");
            assert!(found.to_string().contains("0.jpg") && found.to_string().contains("`t.tar`"), "{found}");
        }
        let name = vec![b'x'; EXTENSION_BYTES_MAX as usize + 1];
        let found = error(with(EntryType::GNULongName, &name, name.len() as u64));
        assert_eq!(found.kind(), forebay_error::ErrorKind::Limit, "{found}");
        // The same of which nothing is there: a hole in the file.
        let found = error(with(EntryType::GNULongName, &[], 3 << 30));
        assert_eq!(found.kind(), forebay_error::ErrorKind::Limit, "{found}");
        assert_eq!(scan_tar(Cursor::new(with(EntryType::XHeader, b"", 0)), "t.tar").unwrap().len(), 1);
        // What comes before it can be had.
        let before = written(&[("a", &[("jpg", &[1; 700])]), ("b", &[("jpg", &[2; 100])])]);
        let ends = scan_tar(Cursor::new(&before), "t.tar").unwrap()[1].range.end as usize;
        let mixed = [&before[..ends], &with(EntryType::GNUSparse, b"holes", 5)[..]].concat();
        let (samples, damage) = salvage_tar(Cursor::new(mixed), "t.tar").unwrap();
        assert!(samples.len() == 1 && damage.is_some(), "{samples:?} {damage:?}");
    }

    #[test]
    fn names_that_are_no_text_stay_apart() {
        assert_eq!(split_name(b"./caf\xE9/1.jpg"), Some((r"caf\xE9/1".to_owned(), "jpg".to_owned())));
        assert_ne!(split_name(b"caf\xE9.jpg"), split_name(b"caf\xE8.jpg"));
        assert_ne!(split_name(b"caf\xE9.jpg"), split_name(br"caf\xE9.jpg"));
        assert_eq!(split_name(b".hidden"), None);
    }

    #[test]
    fn keys_are_made_safe() {
        assert_eq!(tar_key("cats/1.jpg"), "cats/1");
        assert_eq!(tar_key("../x/a.b.jpg"), "x/a_b");
        assert_eq!(tar_key("/.hidden"), "hidden");
        assert_eq!(tar_key("train.tfrecord:7"), "train_tfrecord:7");
        assert_eq!(tar_key(""), "_");
    }
}
