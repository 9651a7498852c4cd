//! The values of a column's buffers.

use std::ops::Range;

use super::rows::Reading;
use super::schema::{Layout, Level};
use super::{Cell, ColumnType, Fault, Input, Parsed, damaged, reserved};

/// `count` bits from bit `start` on, the lowest of a byte first.
pub(super) fn bits(bytes: &[u8], start: usize, count: usize) -> Parsed<Vec<bool>> {
    if bytes.len() < (start + count).div_ceil(8) {
        return Err(Fault::Cut);
    }
    let mut bits = reserved(count)?;
    bits.extend((start..start + count).map(|index| bytes[index / 8] >> (index % 8) & 1 == 1));
    Ok(bits)
}

/// Numbers, of `width` bytes each.
pub(super) struct Numbers<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) kind: ColumnType,
    pub(super) width: u32,
}

impl Numbers<'_> {
    pub(super) fn len(&self) -> usize {
        self.bytes.len() / self.width as usize
    }

    /// As they are, or those from 0 on where their type says so; those that take all of 64 bits are below 0.
    pub(super) fn ints(&self) -> impl Iterator<Item = i64> + '_ {
        let (width, unsigned) = (self.width as usize, matches!(self.kind, ColumnType::Uint(_)));
        self.bytes.chunks_exact(width).map(move |number| {
            let mut wide = [0; 8];
            wide[..width].copy_from_slice(number);
            let unused = 64 - 8 * width as u32;
            let shifted = i64::from_le_bytes(wide) << unused;
            if unsigned { (shifted as u64 >> unused) as i64 } else { shifted >> unused }
        })
    }

    fn cells(&self) -> Parsed<Vec<Cell>> {
        let mut cells = reserved(self.len())?;
        match self.kind {
            ColumnType::Float(32) => {
                cells.extend(
                    self.bytes.as_chunks().0.iter().map(|number| Cell::Float(f32::from_le_bytes(*number).into())),
                );
            }
            ColumnType::Float(_) => {
                cells.extend(self.bytes.as_chunks().0.iter().map(|number| Cell::Float(f64::from_le_bytes(*number))));
            }
            ColumnType::Uint(64) => {
                for number in self.ints() {
                    if number < 0 {
                        return damaged(format!(
                            "a value is {}, which is more than 64 bits with a sign hold",
                            number as u64
                        ));
                    }
                    cells.push(Cell::Int(number));
                }
            }
            _ => cells.extend(self.ints().map(Cell::Int)),
        }
        Ok(cells)
    }
}

/// The values of some rows of a field; where it has a dictionary, their numbers.
pub(super) fn values<I: Input>(
    reading: &Reading<'_, I>,
    level: Level,
    rows: Range<u64>,
    present: Option<&[bool]>,
) -> Result<Vec<Cell>, I::Error> {
    let column = reading.column;
    let wrong = |fault: Fault| reading.wrong(fault);
    let is_there = |index: usize| present.is_none_or(|present| present[index]);
    let count = (rows.end - rows.start) as usize;
    let mut cells = match (column.dictionary, column.layout) {
        (None, Layout::Bits) => reading.bits(level, 1, &rows)?.into_iter().map(Cell::Bool).collect(),
        (None, Layout::Fixed(width)) if column.kind == ColumnType::Binary => {
            let bytes = reading.elements(level, 1, width, &rows)?;
            let width = width as usize;
            (0..count).map(|index| Cell::Bytes(bytes.slice(index * width..(index + 1) * width))).collect()
        }
        (None, Layout::Offsets(width)) => {
            let starts = reading.offsets(level, width, &rows)?;
            let (Some(&first), Some(&last)) = (starts.first(), starts.last()) else { return Err(wrong(Fault::Cut)) };
            let bytes = reading.buffer(level, 2, first..last)?;
            let slice = |pair: &[u64]| Cell::Bytes(bytes.slice((pair[0] - first) as usize..(pair[1] - first) as usize));
            starts.windows(2).map(slice).collect()
        }
        (None, Layout::Views) => views(reading, level, &rows, is_there)?,
        (None, Layout::Fixed(width)) => numbers(reading, level, column.kind, width, &rows, is_there)?,
        (Some(encoding), _) => numbers(reading, level, encoding.index, encoding.index_bytes, &rows, is_there)?,
    };
    if let Some(present) = present {
        cells.iter_mut().zip(present).filter(|(_, present)| !**present).for_each(|(cell, _)| *cell = Cell::Null);
    }
    Ok(cells)
}

fn numbers<I: Input>(
    reading: &Reading<'_, I>,
    level: Level,
    kind: ColumnType,
    width: u32,
    rows: &Range<u64>,
    is_there: impl Fn(usize) -> bool,
) -> Result<Vec<Cell>, I::Error> {
    let mut bytes = reading.elements(level, 1, width, rows)?;
    if kind == ColumnType::Uint(64) {
        // What is not there may be anything.
        let mut known = bytes.to_vec();
        let absent = known.as_chunks_mut::<8>().0.iter_mut().enumerate().filter(|(index, _)| !is_there(*index));
        absent.for_each(|(_, number)| *number = [0; 8]);
        bytes = known.into();
    }
    Numbers { bytes: &bytes, kind, width }.cells().map_err(|fault| reading.wrong(fault))
}

/// A value of up to so many bytes lies in its view.
const INLINE_BYTES: u64 = 12;

/// What lies between two values that are wanted is read with them if it is no more.
const GAP_BYTES_MAX: u64 = 64 << 10;

/// Where a value lies that is not in its view.
struct Long {
    row: usize,
    buffer: usize,
    range: Range<u64>,
}

/// Values whose views have their length, and either their bytes or in which buffer they lie and where. Neighbors there are read together.
fn views<I: Input>(
    reading: &Reading<'_, I>,
    level: Level,
    rows: &Range<u64>,
    is_there: impl Fn(usize) -> bool,
) -> Result<Vec<Cell>, I::Error> {
    let views = reading.elements(level, 1, 16, rows)?;
    let mut cells: Vec<Cell> = reserved(views.len() / 16).map_err(|fault| reading.wrong(fault))?;
    let mut long: Vec<Long> = Vec::new();
    for (row, view) in views.as_chunks::<16>().0.iter().enumerate() {
        let [length, _, buffer, offset] =
            [0, 4, 8, 12].map(|at| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]));
        cells.push(Cell::Null);
        if !is_there(row) {
            continue;
        }
        if u64::from(length) <= INLINE_BYTES {
            let start = 16 * row + 4;
            cells[row] = Cell::Bytes(views.slice(start..start + length as usize));
            continue;
        }
        let range = u64::from(offset)..u64::from(offset) + u64::from(length);
        long.push(Long { row, buffer: buffer as usize, range });
    }
    long.sort_by_key(|long| (long.buffer, long.range.start));
    // A compressed buffer is inflated once for all of its values.
    let gap_bytes_max = if reading.batch.is_compressed() { u64::MAX } else { GAP_BYTES_MAX };
    let held = reading.batch.views.get(level.views).copied().unwrap_or_default();
    let mut rest = &long[..];
    while let Some(first) = rest.first() {
        if first.buffer as u64 >= held {
            let problem = format!("a view names buffer {} of {held}", first.buffer);
            return Err(reading.wrong(Fault::Damaged(problem)));
        }
        let mut end = first.range.end;
        let together = |next: &&Long| {
            let follows = next.buffer == first.buffer && next.range.start <= end.saturating_add(gap_bytes_max);
            if follows {
                end = end.max(next.range.end);
            }
            follows
        };
        let count = rest.iter().take_while(together).count();
        let bytes = reading.buffer(level, 2 + first.buffer, first.range.start..end)?;
        let (run, after) = rest.split_at(count);
        for Long { row, range, .. } in run {
            let start = (range.start - first.range.start) as usize;
            cells[*row] = Cell::Bytes(bytes.slice(start..start + (range.end - range.start) as usize));
        }
        rest = after;
    }
    Ok(cells)
}
