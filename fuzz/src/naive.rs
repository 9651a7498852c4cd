//! Second readers of the record formats, written from their specifications to be read at a glance, and as slow as may be. They
//! share no code with the crates that they are compared with.

use std::collections::BTreeMap;

/// CRC-32C, bit by bit.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum: u32, _| (sum >> 1) ^ if sum & 1 == 0 { 0 } else { 0x82F6_3B78 })
    })
}

fn masked(bytes: &[u8]) -> u32 {
    let sum = crc32c(bytes);
    ((sum >> 15) | (sum << 17)).wrapping_add(0xa282_ead8)
}

fn number32(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

fn number64(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// The records of a shard from its start to its end or first damage, and whether it came to the end.
pub fn tfrecords(mut shard: &[u8], max_record_bytes: u64) -> (Vec<&[u8]>, bool) {
    let mut records = Vec::new();
    while !shard.is_empty() {
        if shard.len() < 16 || number32(&shard[8..12]) != masked(&shard[..8]) {
            return (records, false);
        }
        let length = number64(&shard[..8]);
        if length > max_record_bytes || length > (shard.len() - 16) as u64 {
            return (records, false);
        }
        let end = 12 + length as usize;
        if number32(&shard[end..end + 4]) != masked(&shard[12..end]) {
            return (records, false);
        }
        records.push(&shard[12..end]);
        shard = &shard[end + 4..];
    }
    (records, true)
}

/// A feature of an Example.
#[derive(Debug, Clone, PartialEq)]
pub enum List {
    /// `bytes_list`
    Bytes(Vec<Vec<u8>>),
    /// `float_list`, as bits, since a float may equal nothing
    Float(Vec<u32>),
    /// `int64_list`
    Int64(Vec<i64>),
    /// None of them.
    Unset,
}

/// A field of a protobuf message: its number, and its value.
enum Field {
    Varint(u32, u64),
    Bytes(u32, Vec<u8>),
    Fixed32(u32, u32),
    Other,
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value: u64 = 0;
    for index in 0..10 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(7 * index).unwrap_or(0);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

fn fields(mut message: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = u32::try_from(varint(&mut message)?).ok()?;
        let number = tag >> 3;
        if number == 0 {
            return None;
        }
        fields.push(match tag & 7 {
            0 => Field::Varint(number, varint(&mut message)?),
            1 => take(&mut message, 8).map(|_| Field::Other)?,
            2 => {
                let length = varint(&mut message)?;
                Field::Bytes(number, take(&mut message, length)?.to_vec())
            }
            5 => Field::Fixed32(number, number32(take(&mut message, 4)?)),
            _ => return None,
        });
    }
    Some(fields)
}

/// The features of an Example by name; `None` if it is none. Of features of one name the last counts.
pub fn example(record: &[u8]) -> Option<BTreeMap<String, List>> {
    let mut found = BTreeMap::new();
    for field in fields(record)? {
        let Field::Bytes(1, features) = field else { continue };
        for field in fields(&features)? {
            let Field::Bytes(1, entry) = field else { continue };
            let (mut name, mut value, mut values) = (String::new(), List::Unset, 0);
            for field in fields(&entry)? {
                match field {
                    Field::Bytes(1, bytes) => name = String::from_utf8(bytes).ok()?,
                    Field::Bytes(2, bytes) => (value, values) = (feature(&bytes)?, values + 1),
                    _ => {}
                }
            }
            // Two values of one entry would have to be merged: ours refuses that, and says so.
            if values > 1 {
                return None;
            }
            found.insert(name, value);
        }
    }
    Some(found)
}

/// Members of the `oneof`: one of another kind replaces, one of the same kind goes on.
fn feature(message: &[u8]) -> Option<List> {
    let mut list = List::Unset;
    for field in fields(message)? {
        match field {
            Field::Bytes(1, values) => {
                let mut all = if let List::Bytes(all) = list { all } else { Vec::new() };
                for field in fields(&values)? {
                    if let Field::Bytes(1, bytes) = field {
                        all.push(bytes);
                    }
                }
                list = List::Bytes(all);
            }
            Field::Bytes(2, values) => {
                let mut all = if let List::Float(all) = list { all } else { Vec::new() };
                for field in fields(&values)? {
                    match field {
                        Field::Fixed32(1, bits) => all.push(bits),
                        Field::Bytes(1, packed) if packed.len() % 4 == 0 => all.extend(packed.chunks(4).map(number32)),
                        Field::Bytes(1, _) => return None,
                        _ => {}
                    }
                }
                list = List::Float(all);
            }
            Field::Bytes(3, values) => {
                let mut all = if let List::Int64(all) = list { all } else { Vec::new() };
                for field in fields(&values)? {
                    match field {
                        Field::Varint(1, value) => all.push(value as i64),
                        Field::Bytes(1, packed) => {
                            let mut packed = &packed[..];
                            while !packed.is_empty() {
                                all.push(varint(&mut packed)? as i64);
                            }
                        }
                        _ => {}
                    }
                }
                list = List::Int64(all);
            }
            _ => {}
        }
    }
    Some(list)
}

/// The lines of a list of so many numbers; `None` if one is something else. Blank lines say nothing.
pub fn numbers(text: &[u8], count: usize) -> Option<Vec<Vec<u64>>> {
    let mut lines = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let line: Option<Vec<u64>> = words.map(|word| decimal(word)).collect();
        match line? {
            line if line.is_empty() => {}
            line if line.len() == count => lines.push(line),
            _ => return None,
        }
    }
    Some(lines)
}

/// Digits and nothing else.
fn decimal(word: &[u8]) -> Option<u64> {
    word.iter().try_fold(0_u64, |number, &byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// The files of a tar that has no extensions: names and contents. `None` if it is none, or has any.
pub fn tar(mut archive: &[u8]) -> Option<Vec<(Vec<u8>, &[u8])>> {
    let mut files = Vec::new();
    // The first block of zeros is the end.
    while let Some((head, rest)) = archive.split_at_checked(512).filter(|(head, _)| head.iter().any(|&byte| byte != 0)) {
        let octal = |field: &[u8]| {
            let digits = field.split(|&byte| byte == 0).next()?.trim_ascii();
            let plain = digits.iter().all(|byte| matches!(byte, b'0'..=b'7'));
            plain.then(|| digits.iter().fold(0, |number: u64, digit| number * 8 + u64::from(digit - b'0')))
        };
        let sum: u64 = (0..512).map(|at| if (148..156).contains(&at) { 32 } else { u64::from(head[at]) }).sum();
        if octal(&head[148..156])? != sum || !matches!(head[156], 0 | b'0' | b'5') {
            return None;
        }
        let size = usize::try_from(octal(&head[124..136])?).ok()?;
        let text = |field: &[u8]| field.iter().copied().take_while(|&byte| byte != 0).collect::<Vec<u8>>();
        let mut name = text(&head[..100]);
        let prefix = text(&head[345..500]);
        if !prefix.is_empty() {
            // Only POSIX's own kind has a prefix there.
            if &head[257..265] != b"ustar\x0000" {
                return None;
            }
            name = [prefix, b"/".to_vec(), name].concat();
        }
        let content = rest.get(..size)?;
        archive = rest.get(size.next_multiple_of(512)..)?;
        if head[156] != b'5' {
            files.push((name, content));
        }
    }
    Some(files)
}
