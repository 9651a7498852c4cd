//! Sparse tensors: zeros that are counted, zeros that are marked, and runs of equal elements.
//!
//! ```text
//! sparse             { zeros (varint)   others (varint)   the others }
//! sparse by a mask   a bit for each element, from the lowest: whether it is another than zero   the others
//! rle                { how many (varint)   the element }
//! ```
//!
//! Zero is the element whose bits are all zero: `-0.0` is another one, and comes back as itself.

use super::bits::{Bits, Cursor, FORMAT, write_varint};
use crate::error::{Error, Result};
use crate::memory;

/// A pair of counts takes two bytes for the most part: shorter runs of zero bytes are stored as they are.
const ZERO_BYTES_MIN: usize = 3;

pub(super) fn count_zeros<T: Bits>(data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let zeros_min = ZERO_BYTES_MIN.div_ceil(T::BYTES);
    let total = data.len() / T::BYTES;
    let is_zero = |index: usize| T::read(&data[index * T::BYTES..]) == T::ZERO;
    let mut at = 0;
    while at < total {
        let zeros = (at..total).take_while(|&index| is_zero(index)).count();
        let first = at + zeros;
        // The others go on until there are enough zeros again, or to the end.
        let (mut end, mut zeros_seen) = (first, 0);
        while end + zeros_seen < total && zeros_seen < zeros_min {
            if is_zero(end + zeros_seen) {
                zeros_seen += 1;
            } else {
                end += zeros_seen + 1;
                zeros_seen = 0;
            }
        }
        let others = &data[first * T::BYTES..end * T::BYTES];
        memory::reserve(&mut out, 20 + others.len())?;
        write_varint(zeros as u64, &mut out);
        write_varint((end - first) as u64, &mut out);
        out.extend_from_slice(others);
        at = end;
    }
    Ok(out)
}

pub(super) fn fill_zeros<T: Bits>(payload: &[u8], out: &mut [u8]) -> Result<()> {
    let mut cursor = Cursor::new(payload);
    let mut rest = out;
    while !rest.is_empty() {
        let offset = cursor.offset();
        let (zeros, others) = (cursor.varint("a count of zeros")?, cursor.varint("a count of others")?);
        let space = rest.len() / T::BYTES;
        if (zeros, others) == (0, 0) || zeros > space || others > space - zeros {
            let problem = format!("{zeros} zeros and {others} others, where {space} elements are left");
            return Err(Error::format_at(FORMAT, problem, offset));
        }
        let (gap, after) = rest.split_at_mut(zeros * T::BYTES);
        gap.fill(0);
        let (to, after) = after.split_at_mut(others * T::BYTES);
        to.copy_from_slice(cursor.take(to.len(), "elements")?);
        rest = after;
    }
    ended(&cursor)
}

pub(super) fn mark_zeros<T: Bits>(data: &[u8]) -> Result<Vec<u8>> {
    let mask_bytes = (data.len() / T::BYTES).div_ceil(8);
    let mut out = memory::zeroed(mask_bytes)?;
    for (index, element) in data.chunks_exact(T::BYTES).enumerate() {
        if T::read(element) != T::ZERO {
            out[index / 8] |= 1 << (index % 8);
            memory::reserve(&mut out, T::BYTES)?;
            out.extend_from_slice(element);
        }
    }
    Ok(out)
}

pub(super) fn place_others<T: Bits>(payload: &[u8], out: &mut [u8]) -> Result<()> {
    let mut cursor = Cursor::new(payload);
    let elements = out.len() / T::BYTES;
    let mask = cursor.take(elements.div_ceil(8), "the mask")?;
    if !elements.is_multiple_of(8) && mask.last().is_some_and(|last| last >> (elements % 8) != 0) {
        return Err(Error::format_at(FORMAT, "the mask marks more elements than there are", cursor.offset()));
    }
    for (&marks, group) in mask.iter().zip(out.chunks_mut(8 * T::BYTES)) {
        if marks == 0 {
            group.fill(0);
            continue;
        }
        let mut others = cursor.take(marks.count_ones() as usize * T::BYTES, "elements")?.chunks_exact(T::BYTES);
        for (bit, to) in group.chunks_exact_mut(T::BYTES).enumerate() {
            match (marks >> bit & 1 == 1).then(|| others.next()).flatten() {
                Some(element) => to.copy_from_slice(element),
                None => to.fill(0),
            }
        }
    }
    ended(&cursor)
}

pub(super) fn count_runs<T: Bits>(data: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut elements = data.chunks_exact(T::BYTES).map(T::read).peekable();
    while let Some(element) = elements.next() {
        let mut count = 1;
        while elements.next_if_eq(&element).is_some() {
            count += 1;
        }
        memory::reserve(&mut out, 10 + T::BYTES)?;
        write_varint(count, &mut out);
        out.extend_from_slice(&element.wide().to_le_bytes()[..T::BYTES]);
    }
    Ok(out)
}

pub(super) fn fill_runs<T: Bits>(payload: &[u8], out: &mut [u8]) -> Result<()> {
    let mut cursor = Cursor::new(payload);
    let mut rest = out;
    while !rest.is_empty() {
        let offset = cursor.offset();
        let count = cursor.varint("the length of a run")?;
        let element = cursor.take(T::BYTES, "an element")?;
        let space = rest.len() / T::BYTES;
        if count == 0 || count > space {
            let problem = format!("a run of {count} elements, where {space} are left");
            return Err(Error::format_at(FORMAT, problem, offset));
        }
        let (run, after) = rest.split_at_mut(count * T::BYTES);
        run.chunks_exact_mut(T::BYTES).for_each(|to| to.copy_from_slice(element));
        rest = after;
    }
    ended(&cursor)
}

fn ended(cursor: &Cursor<'_>) -> Result<()> {
    if cursor.rest.is_empty() {
        return Ok(());
    }
    Err(Error::format_at(FORMAT, "there are bytes after the last element", cursor.offset()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_cost_next_to_nothing() {
        let mut numbers = vec![0_u32; 100_000];
        (numbers[7], numbers[8], numbers[50_000]) = (1, 2, 3);
        let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let counted = count_zeros::<u32>(&data).expect("memory");
        assert!(counted.len() < 32, "{}", counted.len());
        let marked = mark_zeros::<u32>(&data).expect("memory");
        assert_eq!(marked.len(), 12_500 + 12);
        let runs = count_runs::<u32>(&data).expect("memory");
        assert!(runs.len() < 50, "{}", runs.len());
        let mut back = vec![1; data.len()];
        fill_zeros::<u32>(&counted, &mut back).expect("as it was written");
        assert_eq!(back, data);
        back.fill(1);
        place_others::<u32>(&marked, &mut back).expect("as it was written");
        assert_eq!(back, data);
        back.fill(1);
        fill_runs::<u32>(&runs, &mut back).expect("as it was written");
        assert_eq!(back, data);
    }
}
