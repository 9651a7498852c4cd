//! Rows out of batches.

use std::io::Read;
use std::ops::Range;

use bytes::Bytes;

use super::file::ArrowFile;
use super::message::{Batch, Codec};
use super::schema::{Column, Level, LevelKind};
use super::values::{Numbers, bits, values};
use super::{BUFFER_BYTES_MAX, Cell, ColumnType, FORMAT, Fault, Input, Parsed, damaged, reserved};
use crate::columns::unreadable;
use crate::compression::{Framing, inflate_framed, is_lz4_like_ours};
use crate::error::Error;

/// Reads some rows of a column in a batch, which are numbered from the first of the batch. `dictionary` are the values of the column's dictionary
/// there, if it has one ([`read_dictionary`]).
pub fn read_rows<I: Input>(
    input: &I,
    (column, batch): (&Column, &Batch),
    rows: Range<u64>,
    dictionary: Option<&[Cell]>,
    shard: &str,
) -> Result<Vec<Cell>, I::Error> {
    refuse_unreadable(column, shard)?;
    let reading = Reading { input, batch, column, shard };
    if rows.end > batch.rows || rows.start > rows.end {
        let problem = format!("rows {} to {} are not among its {}", rows.start, rows.end, batch.rows);
        return Err(reading.wrong(Fault::Damaged(problem)));
    }
    let Some(encoding) = column.dictionary else { return reading.cells(rows) };
    let numbers = reading.cells(rows)?;
    let values = dictionary.unwrap_or_default();
    let value = |cell: Cell| match cell {
        Cell::Int(number) => match usize::try_from(number).ok().and_then(|number| values.get(number)) {
            Some(value) => Ok(value.clone()),
            None => {
                damaged(format!("it names value {number} of dictionary {}, which has {}", encoding.id, values.len()))
            }
        },
        _ => Ok(Cell::Null),
    };
    numbers.into_iter().map(value).collect::<Parsed<_>>().map_err(|fault| reading.wrong(fault))
}

/// Reads the values of the dictionary that a column has in a batch; none where it has no dictionary.
pub fn read_dictionary<I: Input>(
    input: &I,
    file: &ArrowFile,
    (column, batch): (&Column, &Batch),
    shard: &str,
) -> Result<Option<Vec<Cell>>, I::Error> {
    if column.dictionary.is_none() {
        return Ok(None);
    }
    refuse_unreadable(column, shard)?;
    let of_values = column.of_dictionary();
    let mut all = Vec::new();
    for number in file.values_of(column, batch) {
        let batch = &file.dictionaries[number].batch;
        let reading = Reading { input, batch, column: &of_values, shard };
        all.append(&mut reading.cells(0..batch.rows)?);
    }
    Ok(Some(all))
}

/// How many bytes the buffers of a column have in a batch, inflated.
pub fn inflated_bytes<I: Input>(input: &I, (column, batch): (&Column, &Batch), shard: &str) -> Result<u64, I::Error> {
    let reading = Reading { input, batch, column, shard };
    let mut bytes = 0_u64;
    for (start, length) in batch.of_column(column) {
        let stated = if batch.is_compressed() && length >= 8 {
            let head = input.read(batch.offset + start, 8)?;
            let head = head.first_chunk::<8>().ok_or_else(|| reading.wrong(Fault::Cut))?;
            u64::try_from(i64::from_le_bytes(*head)).unwrap_or(length)
        } else {
            length
        };
        bytes = bytes.saturating_add(stated);
    }
    Ok(bytes)
}

/// Reads all of a column, row by row, of the whole file.
pub fn read_column<I: Input>(input: &I, file: &ArrowFile, column: &Column, shard: &str) -> Result<Vec<Cell>, I::Error> {
    let mut all = Vec::new();
    let mut dictionary: Option<(Option<usize>, Option<Vec<Cell>>)> = None;
    for batch in &file.batches {
        let number = file.dictionary_number(column, batch);
        let values = match &mut dictionary {
            Some((known, values)) if *known == number => values,
            slot => &mut slot.insert((number, read_dictionary(input, file, (column, batch), shard)?)).1,
        };
        all.append(&mut read_rows(input, (column, batch), 0..batch.rows, values.as_deref(), shard)?);
    }
    Ok(all)
}

/// An error if a column's values cannot be read here, which names it and its type.
pub fn refuse_unreadable(column: &Column, shard: &str) -> Result<(), Error> {
    if column.is_readable() { Ok(()) } else { Err(unreadable(&column.name, &column.type_name(), shard)) }
}

/// A column of a batch that is being read.
pub(super) struct Reading<'a, I> {
    pub(super) input: &'a I,
    pub(super) batch: &'a Batch,
    pub(super) column: &'a Column,
    shard: &'a str,
}

/// Which lists there are, and where the elements of each begin behind those of the first; one more is where the last ends.
struct Lists {
    present: Option<Vec<bool>>,
    starts: Vec<u64>,
}

impl<I: Input> Reading<'_, I> {
    pub(super) fn wrong(&self, fault: Fault) -> I::Error {
        fault.at(FORMAT, self.shard, self.batch.offset, &self.column.name).into()
    }

    /// The values of some rows; where the column has a dictionary, their numbers.
    fn cells(&self, rows: Range<u64>) -> Result<Vec<Cell>, I::Error> {
        let Some((own, above)) = self.column.path.split_last() else { return Err(self.wrong(Fault::Cut)) };
        // What is above all others has as many values as there are rows.
        let top = above.first().unwrap_or(own);
        let found = self.batch.nodes.get(top.node).map_or(0, |(values, _)| *values);
        if found != self.batch.rows {
            let problem = format!("it has {found} values in a batch of {} rows", self.batch.rows);
            return Err(self.wrong(Fault::Damaged(problem)));
        }
        let mut rows = rows;
        let (mut present, mut lists): (Option<Vec<bool>>, Option<Lists>) = (None, None);
        for level in above {
            present = self.present(*level, &rows, present)?;
            let starts = match level.kind {
                LevelKind::Structure | LevelKind::Values => continue,
                LevelKind::List(bytes) => self.offsets(*level, bytes, &rows)?,
                LevelKind::FixedList(count) => self.steps(count, &rows)?,
            };
            rows = match (starts.first(), starts.last()) {
                (Some(first), Some(last)) => *first..*last,
                _ => 0..0,
            };
            lists = Some(Lists { present: present.take(), starts });
        }
        present = self.present(*own, &rows, present)?;
        let cells = values(self, *own, rows, present.as_deref())?;
        match lists {
            Some(lists) => lists.cells(&cells, self.column.kind).map_err(|fault| self.wrong(fault)),
            None => Ok(cells),
        }
    }

    /// Which values of a field are there, together with which of those above it are; none where all are.
    fn present(
        &self,
        level: Level,
        rows: &Range<u64>,
        above: Option<Vec<bool>>,
    ) -> Result<Option<Vec<bool>>, I::Error> {
        let Some((values, missing)) = self.batch.nodes.get(level.node) else {
            return Err(self.wrong(Fault::Damaged("the batch has too few columns".to_owned())));
        };
        if *values < rows.end {
            let problem = format!("it has {values} values where {} are wanted", rows.end);
            return Err(self.wrong(Fault::Damaged(problem)));
        }
        // A negative number is one that nobody knows.
        let has_bits = self.batch.buffer(level, 0).is_some_and(|(_, length)| length > 0);
        if *missing == 0 || rows.is_empty() || (*missing < 0 && !has_bits) {
            return Ok(above);
        }
        let own = self.bits(level, 0, rows)?;
        Ok(Some(match above {
            Some(mut above) => {
                above.iter_mut().zip(own).for_each(|(above, own)| *above &= own);
                above
            }
            None => own,
        }))
    }

    /// Bits of a buffer of a field.
    pub(super) fn bits(&self, level: Level, number: usize, rows: &Range<u64>) -> Result<Vec<bool>, I::Error> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let start = rows.start / 8 * 8;
        let bytes = self.buffer(level, number, start / 8..rows.end.div_ceil(8))?;
        bits(&bytes, (rows.start - start) as usize, (rows.end - rows.start) as usize).map_err(|fault| self.wrong(fault))
    }

    /// The offsets of some values in a buffer of such of `bytes` bytes: one more than there are values, none below the one before it.
    pub(super) fn offsets(&self, level: Level, bytes: u32, rows: &Range<u64>) -> Result<Vec<u64>, I::Error> {
        // A batch without rows may have none.
        if rows.is_empty() {
            return Ok(vec![0]);
        }
        let buffer = self.elements(level, 1, bytes, &(rows.start..rows.end + 1))?;
        let numbers = Numbers { bytes: &buffer, kind: ColumnType::Int(0), width: bytes };
        let mut starts: Vec<u64> = reserved(numbers.len()).map_err(|fault| self.wrong(fault))?;
        for number in numbers.ints() {
            let start = u64::try_from(number).ok().filter(|start| starts.last().is_none_or(|last| last <= start));
            let problem = || Fault::Damaged(format!("an offset is {number}, below the one before it"));
            starts.push(start.ok_or_else(|| self.wrong(problem()))?);
        }
        Ok(starts)
    }

    /// The same of lists that all have as many elements.
    fn steps(&self, count: u32, rows: &Range<u64>) -> Result<Vec<u64>, I::Error> {
        let step = |row: u64| row.checked_mul(count.into()).ok_or(Fault::Cut);
        (rows.start..=rows.end).map(step).collect::<Parsed<_>>().map_err(|fault| self.wrong(fault))
    }

    /// Elements of `bytes` bytes each of a buffer of a field.
    pub(super) fn elements(
        &self,
        level: Level,
        number: usize,
        bytes: u32,
        rows: &Range<u64>,
    ) -> Result<Bytes, I::Error> {
        let place = |row: u64| row.checked_mul(bytes.into()).ok_or_else(|| self.wrong(Fault::Cut));
        self.buffer(level, number, place(rows.start)?..place(rows.end)?)
    }

    /// A part of a buffer of a field, or of what it inflates to.
    pub(super) fn buffer(&self, level: Level, number: usize, range: Range<u64>) -> Result<Bytes, I::Error> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let Some((start, length)) = self.batch.buffer(level, number) else {
            return Err(self.wrong(Fault::Damaged("the batch has too few buffers".to_owned())));
        };
        let offset = self.batch.offset + start;
        let too_short = |length: u64| {
            let problem = format!("a buffer has {length} bytes, but {} are wanted", range.end);
            Err(self.wrong(Fault::Damaged(problem)))
        };
        let Some(codec) = self.batch.codec else {
            if range.end > length {
                return too_short(length);
            }
            return self.input.read(offset + range.start, (range.end - range.start) as usize);
        };
        let stored = self.input.read(offset, length as usize)?;
        let inflated = inflated(&stored, codec).map_err(|fault| self.wrong(fault))?;
        if range.end > inflated.len() as u64 {
            return too_short(inflated.len() as u64);
        }
        Ok(inflated.slice(range.start as usize..range.end as usize))
    }
}

/// Zstandard has no bound of its own: a buffer may inflate to so many bytes in any case, and to so many times what it takes.
const ZSTD_BYTES_MIN: u64 = 64 << 20;
const ZSTD_INFLATION_MAX: u64 = 1000;
const LZ4_INFLATION_MAX: u64 = 256;

/// What a compressed buffer inflates to, whose first eight bytes say how much that is; -1: it is not compressed.
fn inflated(stored: &Bytes, codec: Codec) -> Parsed<Bytes> {
    let Some((length, content)) = stored.split_first_chunk::<8>() else { return Err(Fault::Cut) };
    let length = match i64::from_le_bytes(*length) {
        -1 => return Ok(stored.slice(8..)),
        length => u64::try_from(length).map_err(|_| Fault::Damaged(format!("a buffer inflates to {length} bytes")))?,
    };
    let (name, framing, most) = match codec {
        Codec::Lz4 => ("LZ4", Framing::Lz4, (content.len() as u64).saturating_mul(LZ4_INFLATION_MAX)),
        Codec::Zstd => {
            let most = (content.len() as u64).saturating_mul(ZSTD_INFLATION_MAX);
            ("ZSTD", Framing::Zstd, most.max(ZSTD_BYTES_MIN))
        }
    };
    if length > BUFFER_BYTES_MAX {
        return Err(Fault::Limit("the size of a buffer", length, BUFFER_BYTES_MAX));
    }
    if length > most {
        return damaged(format!("{} bytes of {name} cannot inflate to {length}", content.len()));
    }
    let mut body = reserved(length as usize)?;
    body.resize(length as usize, 0);
    let given = match codec {
        Codec::Lz4 if !is_lz4_like_ours(content) => linked_lz4(content, &mut body),
        _ => inflate_framed(content, framing, &mut body),
    };
    match given {
        Ok(given) if given as u64 == length => Ok(body.into()),
        Ok(given) => damaged(format!("a buffer of {name} gives {given} bytes, not {length}")),
        Err(problem) => damaged(format!("a buffer of {name} is damaged: {problem}")),
    }
}

/// Fills `body` from a frame of LZ4 of another kind than ours, whose blocks refer to each other, say; how many bytes there were.
fn linked_lz4(content: &[u8], body: &mut [u8]) -> Result<usize, String> {
    let mut given = 0;
    let mut stream = lz4::Decoder::new(content).map_err(|error| error.to_string())?;
    while given < body.len() {
        match stream.read(&mut body[given..]).map_err(|error| error.to_string())? {
            0 => return Ok(given),
            more => given += more,
        }
    }
    match stream.read(&mut [0]).map_err(|error| error.to_string())? {
        0 => Ok(given),
        _ => Err(format!("it gives more than {given} bytes")),
    }
}

impl Lists {
    /// The lists of these elements.
    fn cells(self, elements: &[Cell], kind: ColumnType) -> Parsed<Vec<Cell>> {
        let first = self.starts.first().copied().unwrap_or_default();
        let mut cells = reserved(self.starts.len())?;
        for (number, pair) in self.starts.windows(2).enumerate() {
            if self.present.as_ref().is_some_and(|present| !present[number]) {
                cells.push(Cell::Null);
                continue;
            }
            let elements = elements.get((pair[0] - first) as usize..(pair[1] - first) as usize).ok_or(Fault::Cut)?;
            cells.push(if matches!(kind, ColumnType::Float(_)) {
                let float = |cell: &Cell| if let Cell::Float(number) = cell { Some(*number) } else { None };
                Cell::Floats(elements.iter().map(|cell| float(cell).ok_or_else(missing)).collect::<Parsed<_>>()?)
            } else {
                let int = |cell: &Cell| match cell {
                    Cell::Int(number) => Some(*number),
                    Cell::Bool(is) => Some(i64::from(*is)),
                    _ => None,
                };
                Cell::Ints(elements.iter().map(|cell| int(cell).ok_or_else(missing)).collect::<Parsed<_>>()?)
            });
        }
        Ok(cells)
    }
}

fn missing() -> Fault {
    Fault::Damaged("a list has an element that is not there".to_owned())
}
