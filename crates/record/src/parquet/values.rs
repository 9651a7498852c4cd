//! The values of a page.

use bytes::Bytes;

use super::delta;
use super::hybrid::{self, width_of};
use super::page::{Page, PageEntry, RLE, encoding_name};
use super::schema::{Column, Physical};
use super::{Cell, ColumnType, Fault, Parsed, damaged, reserved};

const PLAIN: i64 = 0;
const PLAIN_DICTIONARY: i64 = 2;
const DELTA_BINARY_PACKED: i64 = 5;
const DELTA_LENGTH_BYTE_ARRAY: i64 = 6;
const DELTA_BYTE_ARRAY: i64 = 7;
const RLE_DICTIONARY: i64 = 8;
const BYTE_STREAM_SPLIT: i64 = 9;

/// The values of a dictionary.
pub(super) fn dictionary(entry: &PageEntry, page: &Page, column: &Column) -> Parsed<Vec<Cell>> {
    if !matches!(entry.encoding, PLAIN | PLAIN_DICTIONARY) {
        return Err(unsupported(entry.encoding));
    }
    // Each takes at least a bit, so that a page bounds them.
    if entry.values > page.body.len() as u64 * 8 {
        return Err(Fault::Cut);
    }
    plain(&page.body, 0, entry.values as usize, column)
}

fn unsupported(encoding: i64) -> Fault {
    let hint = "write the file again, with a plain encoding for this column";
    Fault::Unsupported("an encoding of Parquet", encoding_name(encoding), hint)
}

/// The cells of a page: one for each value of a column, and of lists one for each list that begins in it.
///
/// What a page has of a list that began in the one before comes first, in a list of its own: the number of such lists, 0 or 1, is given.
pub(super) fn cells(
    entry: &PageEntry,
    page: &Page,
    column: &Column,
    dictionary: Option<&[Cell]>,
) -> Parsed<(Vec<Cell>, bool)> {
    let count = usize::try_from(entry.values).map_err(|_| Fault::Cut)?;
    let (repetitions, definitions, start) = levels(page, column, count)?;
    let there =
        definitions.as_ref().map_or(count, |levels| levels.iter().filter(|level| **level == column.defined).count());
    let values = values(entry.encoding, &page.body, start, there, column, dictionary)?;
    if let Some(repetitions) = repetitions {
        return lists(&repetitions, definitions.as_deref().unwrap_or_default(), values, column);
    }
    let Some(definitions) = definitions else { return Ok((values, false)) };
    if there == count {
        return Ok((values, false));
    }
    let mut values = values.into_iter();
    let mut cells = reserved(count)?;
    for level in definitions {
        cells.push(if level == column.defined { values.next().unwrap_or(Cell::Null) } else { Cell::Null });
    }
    Ok((cells, false))
}

/// The levels of repetition and definition of `count` values, where a column has such, and where values begin.
type Levels = (Option<Vec<u32>>, Option<Vec<u32>>, usize);

fn levels(page: &Page, column: &Column, count: usize) -> Parsed<Levels> {
    let body = &page.body[..];
    let mut at = 0;
    let mut take = |largest: u32, stated: Option<u64>| -> Parsed<Option<Vec<u32>>> {
        let length = match stated {
            Some(length) => usize::try_from(length).map_err(|_| Fault::Cut)?,
            None if largest == 0 => return Ok(None),
            None => {
                let length = body[at..].first_chunk::<4>().ok_or(Fault::Cut)?;
                at += 4;
                u32::from_le_bytes(*length) as usize
            }
        };
        let end = at.checked_add(length).ok_or(Fault::Cut)?;
        let bytes = body.get(at..end).ok_or(Fault::Cut)?;
        at = end;
        if largest == 0 {
            return Ok(None);
        }
        let levels = hybrid::decode(bytes, width_of(largest), count)?;
        match levels.iter().find(|level| **level > largest) {
            Some(level) => damaged(format!("a level is {level}, and the largest there is {largest}")),
            None => Ok(Some(levels)),
        }
    };
    let repetitions = take(column.lists, page.levels.map(|(repetition, _)| repetition))?;
    let definitions = take(column.defined, page.levels.map(|(_, definition)| definition))?;
    Ok((repetitions, definitions, at))
}

/// The lists of a page of a column with one.
fn lists(repetitions: &[u32], definitions: &[u32], values: Vec<Cell>, column: &Column) -> Parsed<(Vec<Cell>, bool)> {
    let mut values = values.into_iter();
    let mut cells: Vec<Cell> = Vec::new();
    let goes_on = repetitions.first().is_some_and(|repetition| *repetition > 0);
    let is_float = matches!(column.kind, ColumnType::Float(_));
    let (mut ints, mut floats) = (Vec::new(), Vec::new());
    // Whether the list that was begun is there; nothing while there is none.
    let mut begun = None;
    let finish = |is_there: bool, ints: &mut Vec<i64>, floats: &mut Vec<f64>| {
        if !is_there {
            Cell::Null
        } else if is_float {
            Cell::Floats(std::mem::take(floats).into())
        } else {
            Cell::Ints(std::mem::take(ints).into())
        }
    };
    for (&repetition, &definition) in repetitions.iter().zip(definitions) {
        if repetition == 0 || begun.is_none() {
            cells.extend(begun.map(|is_there| finish(is_there, &mut ints, &mut floats)));
            // One level below its elements a list is there, and empty; further below it is not there.
            begun = Some(definition + 1 >= column.element);
        }
        if definition < column.element {
            continue;
        }
        match if definition == column.defined { values.next() } else { None } {
            Some(Cell::Int(number)) => ints.push(number),
            Some(Cell::Bool(is)) => ints.push(i64::from(is)),
            Some(Cell::Float(number)) => floats.push(number),
            _ => return damaged("a list has an element that is not there"),
        }
    }
    cells.extend(begun.map(|is_there| finish(is_there, &mut ints, &mut floats)));
    Ok((cells, goes_on))
}

/// `count` values that lie at `start` of `body`.
fn values(
    encoding: i64,
    body: &Bytes,
    start: usize,
    count: usize,
    column: &Column,
    dictionary: Option<&[Cell]>,
) -> Parsed<Vec<Cell>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let rest = body.get(start..).ok_or(Fault::Cut)?;
    match (encoding, column.physical) {
        (PLAIN, _) => plain(body, start, count, column),
        (PLAIN_DICTIONARY | RLE_DICTIONARY, _) => {
            let Some(dictionary) = dictionary else { return damaged("its dictionary is missing") };
            let (width, indexes) = rest.split_first().ok_or(Fault::Cut)?;
            let indexes = hybrid::decode(indexes, u32::from(*width), count)?;
            let mut cells = reserved(count)?;
            for index in indexes {
                let Some(cell) = dictionary.get(index as usize) else {
                    return damaged(format!("it names value {index} of a dictionary of {}", dictionary.len()));
                };
                cells.push(cell.clone());
            }
            Ok(cells)
        }
        (RLE, Physical::Boolean) => {
            let (length, rest) = rest.split_first_chunk::<4>().ok_or(Fault::Cut)?;
            let bytes = rest.get(..u32::from_le_bytes(*length) as usize).ok_or(Fault::Cut)?;
            let numbers = hybrid::decode(bytes, 1, count)?;
            Ok(numbers.into_iter().map(|number| Cell::Bool(number == 1)).collect())
        }
        (DELTA_BINARY_PACKED, Physical::Int32 | Physical::Int64) => {
            let (numbers, _) = delta::ints(rest, count)?;
            // Of 32 bits, differences wrap at 32.
            let narrow = column.physical == Physical::Int32;
            let number = |number: i64| whole(if narrow { i64::from(number as i32) } else { number }, column);
            numbers.into_iter().map(number).collect()
        }
        (DELTA_LENGTH_BYTE_ARRAY, Physical::Bytes) => {
            Ok(delta::lengths(body, start, count)?.into_iter().map(Cell::Bytes).collect())
        }
        (DELTA_BYTE_ARRAY, Physical::Bytes) => {
            Ok(delta::prefixes(body, start, count)?.into_iter().map(Cell::Bytes).collect())
        }
        (DELTA_BYTE_ARRAY, Physical::Fixed(length)) => {
            let texts = delta::prefixes(body, start, count)?;
            match texts.iter().find(|text| text.len() != length as usize) {
                Some(text) => damaged(format!("a value has {} bytes, not {length}", text.len())),
                None => Ok(texts.into_iter().map(Cell::Bytes).collect()),
            }
        }
        (BYTE_STREAM_SPLIT, physical) => {
            let width = match physical {
                Physical::Int32 | Physical::Float => 4,
                Physical::Int64 | Physical::Double => 8,
                Physical::Fixed(length) => length as usize,
                _ => return Err(unsupported(encoding)),
            };
            let length = width.checked_mul(count).filter(|length| *length <= rest.len()).ok_or(Fault::Cut)?;
            let mut joined = reserved(length)?;
            for index in 0..count {
                joined.extend((0..width).map(|byte| rest[byte * count + index]));
            }
            plain(&joined.into(), 0, count, column)
        }
        (other, _) => Err(unsupported(other)),
    }
}

/// `count` values at `start` of `body`, one after the other.
fn plain(body: &Bytes, start: usize, count: usize, column: &Column) -> Parsed<Vec<Cell>> {
    let rest = body.get(start..).ok_or(Fault::Cut)?;
    let fixed = |width: usize| {
        let length = width.checked_mul(count).ok_or(Fault::Cut)?;
        rest.get(..length).ok_or(Fault::Cut)
    };
    let mut cells = reserved(if column.physical == Physical::Bytes { count.min(rest.len() / 4) } else { count })?;
    match column.physical {
        Physical::Boolean => {
            let bits = rest.get(..count.div_ceil(8)).ok_or(Fault::Cut)?;
            cells.extend((0..count).map(|index| Cell::Bool(bits[index / 8] >> (index % 8) & 1 == 1)));
        }
        Physical::Int32 => {
            for number in fixed(4)?.as_chunks().0 {
                cells.push(whole(i64::from(i32::from_le_bytes(*number)), column)?);
            }
        }
        Physical::Int64 => {
            for number in fixed(8)?.as_chunks().0 {
                cells.push(whole(i64::from_le_bytes(*number), column)?);
            }
        }
        Physical::Float => {
            cells.extend(fixed(4)?.as_chunks().0.iter().map(|number| Cell::Float(f32::from_le_bytes(*number).into())));
        }
        Physical::Double => {
            cells.extend(fixed(8)?.as_chunks().0.iter().map(|number| Cell::Float(f64::from_le_bytes(*number))));
        }
        Physical::Bytes => {
            let mut at = start;
            for _ in 0..count {
                let length = body.get(at..).and_then(|rest| rest.first_chunk::<4>()).ok_or(Fault::Cut)?;
                let begin = at + 4;
                let end = begin.checked_add(u32::from_le_bytes(*length) as usize).filter(|end| *end <= body.len());
                at = end.ok_or(Fault::Cut)?;
                cells.push(Cell::Bytes(body.slice(begin..at)));
            }
        }
        Physical::Fixed(length) => {
            let length = length as usize;
            fixed(length)?;
            cells.extend((0..count).map(|index| {
                let begin = start + index * length;
                Cell::Bytes(body.slice(begin..begin + length))
            }));
        }
        Physical::Int96 => {
            return Err(Fault::Unsupported("a type of Parquet", "int96".to_owned(), "write timestamps as int64"));
        }
    }
    Ok(cells)
}

/// A whole number, by the sign that its column has.
fn whole(number: i64, column: &Column) -> Parsed<Cell> {
    match column.kind {
        ColumnType::Uint(64) if number < 0 => {
            damaged(format!("a value is {}, which is more than 64 bits with a sign hold", number as u64))
        }
        ColumnType::Uint(_) if column.physical == Physical::Int32 => Ok(Cell::Int(i64::from(number as u32))),
        _ => Ok(Cell::Int(number)),
    }
}
