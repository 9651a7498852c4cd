//! Whole numbers as differences from the one before, and texts as what they add to the one before.

use bytes::Bytes;

use super::hybrid::bits_at;
use super::thrift::{varint, zigzag};
use super::{Fault, Parsed, damaged, reserved};

/// Blocks of more numbers than this are no writer's.
const BLOCK_VALUES_MAX: u64 = 1 << 20;

/// What the texts of a page may become, which a few bytes could make without end.
const TEXTS_BYTES_MAX: u64 = 256 << 20;

/// `count` numbers that `bytes` begins with, and what follows them (`DELTA_BINARY_PACKED`).
pub(super) fn ints(bytes: &[u8], count: usize) -> Parsed<(Vec<i64>, &[u8])> {
    let (block_values, rest) = varint(bytes)?;
    let (parts, rest) = varint(rest)?;
    let (total, rest) = varint(rest)?;
    let (first, mut rest) = varint(rest)?;
    let part_values = block_values.checked_div(parts).unwrap_or(0);
    if block_values == 0
        || block_values > BLOCK_VALUES_MAX
        || part_values == 0
        || !part_values.is_multiple_of(8)
        || part_values * parts != block_values
    {
        return damaged(format!("a block has {block_values} numbers in {parts} parts"));
    }
    if total != count as u64 {
        return damaged(format!("it has {total} numbers, not {count}"));
    }
    let mut numbers = reserved(count)?;
    let mut last = zigzag(first);
    if count > 0 {
        numbers.push(last);
    }
    while numbers.len() < count {
        let (smallest, after) = varint(rest)?;
        let smallest = zigzag(smallest);
        let (widths, after) = after.split_at_checked(parts as usize).ok_or(Fault::Cut)?;
        rest = after;
        for &width in widths {
            let wanted = (count - numbers.len()).min(part_values as usize);
            if wanted == 0 {
                break;
            }
            if width > 64 {
                return damaged(format!("differences have {width} bits"));
            }
            // The last part may be cut behind the last number.
            let packed = (part_values as usize * width as usize).div_ceil(8);
            let needed = (wanted * width as usize).div_ceil(8);
            if rest.len() < needed {
                return Err(Fault::Cut);
            }
            let (packed, after) = rest.split_at(packed.min(rest.len()));
            rest = after;
            for index in 0..wanted {
                let difference = bits_at(packed, index * width as usize, u32::from(width)) as i64;
                last = last.wrapping_add(smallest).wrapping_add(difference);
                numbers.push(last);
            }
        }
    }
    Ok((numbers, rest))
}

/// `count` texts, whose lengths come first (`DELTA_LENGTH_BYTE_ARRAY`).
pub(super) fn lengths(page: &Bytes, start: usize, count: usize) -> Parsed<Vec<Bytes>> {
    let (lengths, rest) = ints(&page[start..], count)?;
    let mut at = page.len() - rest.len();
    let mut texts = reserved(count)?;
    for length in lengths {
        let end = usize::try_from(length).ok().and_then(|length| at.checked_add(length));
        let end = end.filter(|end| *end <= page.len()).ok_or(Fault::Cut)?;
        texts.push(page.slice(at..end));
        at = end;
    }
    Ok(texts)
}

/// `count` texts, each of which begins like the one before (`DELTA_BYTE_ARRAY`).
pub(super) fn prefixes(page: &Bytes, start: usize, count: usize) -> Parsed<Vec<Bytes>> {
    let (shared, rest) = ints(&page[start..], count)?;
    let suffixes = lengths(page, page.len() - rest.len(), count)?;
    let mut texts: Vec<Bytes> = reserved(count)?;
    let mut made = 0;
    for (shared, suffix) in shared.into_iter().zip(suffixes) {
        let before = texts.last().map_or(&[][..], |text| &text[..]);
        let prefix = usize::try_from(shared).ok().and_then(|shared| before.get(..shared));
        let prefix =
            prefix.ok_or_else(|| Fault::Damaged(format!("a text shares {shared} bytes with the one before")))?;
        if prefix.is_empty() {
            texts.push(suffix);
            continue;
        }
        made += (prefix.len() + suffix.len()) as u64;
        if made > TEXTS_BYTES_MAX {
            return Err(Fault::Limit("the size of the texts of a page", made, TEXTS_BYTES_MAX));
        }
        let mut text = reserved(prefix.len() + suffix.len())?;
        text.extend_from_slice(prefix);
        text.extend_from_slice(&suffix);
        texts.push(text.into());
    }
    Ok(texts)
}
