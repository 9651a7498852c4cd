//! A file, or a stream in a file: its columns, and where its batches lie.

use std::collections::HashSet;
use std::ops::Range;

use super::flatbuffer::Table;
use super::message::{Batch, Header, Message};
use super::schema::{Column, Level, Schema};
use super::{FORMAT, Fault, Input, MAGIC, Parsed, damaged, rows_max};

/// The longest text about a batch that is read, without its buffers: that of a million of these.
pub const MESSAGE_BYTES_MAX: u64 = 64 << 20;

/// The footer's length and what a file ends with.
const END_BYTES: u64 = 10;

/// Where the first message of a file begins.
const START_BYTES: u64 = 8;

/// The mark of a stream's end, and what may come after it: what fills the last block, say.
const AFTER_END_BYTES_MAX: u64 = 64;

/// What the first version of Feather begins with, which has nothing to do with Arrow's format.
const FEATHER_1: &[u8; 4] = b"FEA1";

/// What a file says of itself.
#[derive(Debug, Clone)]
pub struct ArrowFile {
    /// The columns.
    pub columns: Vec<Column>,
    /// The batches, in order.
    pub batches: Vec<Batch>,
    /// How many rows there are.
    pub rows: u64,
    /// What the file's writer wrote down besides: names and texts.
    pub notes: Vec<(String, String)>,
    /// Whether it is a stream: without the list of its messages that a file ends with.
    pub is_stream: bool,
    pub(super) dictionaries: Vec<Values>,
}

/// Values of a dictionary.
#[derive(Debug, Clone)]
pub(super) struct Values {
    id: i64,
    /// Whether they come behind those that there are, or in their place.
    is_delta: bool,
    pub(super) batch: Batch,
}

impl ArrowFile {
    /// Finds the columns and batches of `input`, which errors call `shard`: by its messages, without their buffers.
    pub fn read<I: Input>(input: &I, shard: &str) -> Result<Self, I::Error> {
        let size = input.size();
        let wrong = |fault: Fault, offset| I::Error::from(fault.at(FORMAT, shard, offset, "its messages"));
        let head = input.read(0, size.min(START_BYTES) as usize)?;
        if head.starts_with(FEATHER_1) {
            let hint = "write it again with a library of today, which writes version 2";
            let fault = Fault::Unsupported("a version of Feather", "version 1".to_owned(), hint);
            return Err(wrong(fault, 0));
        }
        let mut found = Found { size, ..Found::default() };
        let is_stream = !head.starts_with(MAGIC);
        if is_stream {
            found.stream(input, shard)?;
        } else {
            found.file(input, shard)?;
        }
        found.finish(is_stream).map_err(|fault| wrong(fault, 0))
    }

    /// The column `name`, or the bytes of the structure of that name, as Hugging Face keeps pictures and sounds.
    pub fn column(&self, name: &str) -> Option<&Column> {
        let find = |name: &str| self.columns.iter().find(|column| column.name == name);
        find(name).or_else(|| find(&format!("{name}.bytes")))
    }

    /// Where the buffers of a column lie in the file, from the first to the last; without those of fields that it is in.
    pub fn extent(&self, column: &Column, batch: &Batch) -> Range<u64> {
        let mut range: Option<Range<u64>> = None;
        for (start, length) in batch.of_column(column).iter().filter(|(_, length)| *length > 0) {
            let (start, end) = (batch.offset + start, batch.offset + start + length);
            range = Some(range.map_or(start..end, |range| range.start.min(start)..range.end.max(end)));
        }
        range.unwrap_or(batch.offset..batch.offset)
    }

    /// Where of these buffers those lie that say which values are there and where: all before the values, of a column of text or bytes.
    pub fn lead(&self, column: &Column, batch: &Batch) -> Range<u64> {
        let extent = self.extent(column, batch);
        let values =
            column.path.last().and_then(|level| batch.buffer(*level, 2)).map(|(start, _)| batch.offset + start);
        extent.start..values.filter(|start| extent.contains(start)).unwrap_or(extent.start)
    }

    /// Which messages have the values of the dictionary that a column has in a batch: the numbers of the messages, of which the last one tells them from
    /// those of other batches. None where the column has no dictionary, or there are no values of it.
    pub(super) fn values_of(&self, column: &Column, batch: &Batch) -> Vec<usize> {
        let Some(encoding) = column.dictionary else { return Vec::new() };
        let mut messages = Vec::new();
        for (number, values) in self.dictionaries.iter().enumerate().take(batch.dictionaries) {
            if values.id != encoding.id {
                continue;
            }
            if !values.is_delta {
                messages.clear();
            }
            messages.push(number);
        }
        messages
    }

    /// What tells the dictionary that a column has in a batch from those that it has in others; none where it has none.
    pub fn dictionary_number(&self, column: &Column, batch: &Batch) -> Option<usize> {
        column.dictionary?;
        Some(self.values_of(column, batch).last().map_or(0, |number| number + 1))
    }
}

impl Batch {
    /// Buffer number `number` of those of a field.
    pub(super) fn buffer(&self, level: Level, number: usize) -> Option<(u64, u64)> {
        self.buffers.get(self.place(level)?.checked_add(number)?).copied()
    }

    /// The number of the first buffer of a field.
    pub(super) fn place(&self, level: Level) -> Option<usize> {
        let views = self.views.get(..level.views)?.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count))?;
        level.buffer.checked_add(usize::try_from(views).ok()?)
    }

    /// The buffers of a column's own field.
    pub(super) fn of_column(&self, column: &Column) -> Vec<(u64, u64)> {
        let Some(level) = column.path.last() else { return Vec::new() };
        let views = self.views.get(level.views).copied().unwrap_or(0);
        // Of views, a batch says how many there are.
        let count = (column.buffers() as u64).saturating_add(if column.has_views() { views } else { 0 });
        let count = count.min(self.buffers.len() as u64) as usize;
        (0..count).filter_map(|number| self.buffer(*level, number)).collect()
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    size: u64,
    schema: Option<Schema>,
    batches: Vec<Batch>,
    dictionaries: Vec<Values>,
    rows: u64,
}

impl Found {
    /// Message by message.
    fn stream<I: Input>(&mut self, input: &I, shard: &str) -> Result<(), I::Error> {
        let (mut at, end) = (0, self.size);
        loop {
            let wrong = |fault: Fault| fault.at(FORMAT, shard, at, "a message");
            let Some(message) = Message::read(input, at, end)?.map_err(wrong)? else {
                // A damaged length may pass for the end.
                if end - at > AFTER_END_BYTES_MAX {
                    let problem = format!("{} bytes come after the mark of its end", end - at);
                    return Err(wrong(Fault::Damaged(problem)).into());
                }
                break;
            };
            let next = self.take(&message, end).map_err(wrong)?;
            at = next;
        }
        Ok(())
    }

    /// By the footer of a file.
    fn file<I: Input>(&mut self, input: &I, shard: &str) -> Result<(), I::Error> {
        let size = self.size;
        let wrong = |fault: Fault, offset| I::Error::from(fault.at(FORMAT, shard, offset, "its footer"));
        let too_short = || Fault::Damaged(format!("it has {size} bytes, too few for one"));
        let end = size.checked_sub(END_BYTES).filter(|end| *end >= START_BYTES).ok_or_else(|| wrong(too_short(), 0))?;
        let tail = input.read(end, END_BYTES as usize)?;
        let Some((length, magic)) = tail.split_first_chunk::<4>() else { return Err(wrong(Fault::Cut, end)) };
        if magic != MAGIC {
            let problem = "it does not end with `ARROW1`: it was cut, or is still being written";
            return Err(wrong(Fault::Damaged(problem.to_owned()), end));
        }
        let length = u64::from(u32::from_le_bytes(*length));
        if length > MESSAGE_BYTES_MAX {
            return Err(wrong(Fault::Limit("the footer's length", length, MESSAGE_BYTES_MAX), end));
        }
        let Some(start) = end.checked_sub(length).filter(|start| *start >= START_BYTES) else {
            return Err(wrong(Fault::Damaged(format!("it says to have {length} bytes of {size}")), end));
        };
        let footer = input.read(start, length as usize)?;
        let (dictionaries, batches) = self.footer(&footer).map_err(|fault| wrong(fault, start))?;
        for blocks in [dictionaries, batches] {
            let mut after = START_BYTES;
            for at in blocks {
                let wrong = |fault: Fault| fault.at(FORMAT, shard, at, "a message");
                // A file could name the same message again and again.
                if at < after {
                    return Err(
                        wrong(Fault::Damaged("it comes before the one that was named before it".to_owned())).into()
                    );
                }
                let message = Message::read(input, at, start)?.map_err(wrong)?;
                let message = message.ok_or_else(|| wrong(Fault::Damaged("there is no message".to_owned())))?;
                after = self.take(&message, start).map_err(wrong)?;
            }
        }
        // Those of a file count for all of its batches, wherever they lie, so that one cannot be replaced.
        let mut begun = HashSet::new();
        if let Some(twice) = self.dictionaries.iter().find(|values| !values.is_delta && !begun.insert(values.id)) {
            return Err(wrong(Fault::Damaged(format!("it has dictionary {} twice", twice.id)), start));
        }
        for batch in &mut self.batches {
            batch.dictionaries = self.dictionaries.len();
        }
        Ok(())
    }

    /// Reads the schema of a footer; where the messages of dictionaries and of batches lie.
    fn footer(&mut self, footer: &[u8]) -> Parsed<(Vec<u64>, Vec<u64>)> {
        let table = Table::root(footer)?;
        let Some(schema) = table.table(1)? else { return damaged("it has no columns") };
        self.schema = Some(Schema::parse(schema, table.short(0)?, footer.len())?);
        // An offset, a length with four bytes behind it, and the length of the body, which the message has, too.
        let blocks = |field| -> Parsed<Vec<u64>> {
            let offset = |block: &[u8; 24]| u64::from_le_bytes(block.as_chunks::<8>().0[0]);
            Ok(table.structures::<24>(field)?.iter().map(offset).collect())
        };
        Ok((blocks(2)?, blocks(3)?))
    }

    /// Notes what a message has; where the next one begins.
    fn take(&mut self, message: &Message, end: u64) -> Parsed<u64> {
        let (header, after) = message.header(end)?;
        if self.schema.is_none() && !matches!(header, Header::Schema(..)) {
            return damaged("it does not begin with its columns");
        }
        match header {
            Header::Schema(..) if self.schema.is_some() => return damaged("it names its columns twice"),
            Header::Schema(schema, version) => self.schema = Some(Schema::parse(schema, version, message.about.len())?),
            Header::Dictionary { id, is_delta, batch } => {
                let is_known = |schema: &Schema| schema.has_others || schema.dictionaries.contains(&id);
                if !self.schema.as_ref().is_some_and(is_known) {
                    return damaged(format!("it has values of dictionary {id}, which no column has"));
                }
                self.count(batch.rows)?;
                self.dictionaries.push(Values { id, is_delta, batch });
            }
            Header::Batch(mut batch) => {
                self.count(batch.rows)?;
                batch.dictionaries = self.dictionaries.len();
                self.batches.push(batch);
            }
        }
        Ok(after)
    }

    /// Counts rows, of which a file of this size cannot have any number.
    fn count(&mut self, rows: u64) -> Parsed<()> {
        self.rows = self.rows.saturating_add(rows);
        let most = rows_max(self.size);
        if self.rows > most {
            return Err(Fault::Limit("the number of rows for a file of this size", self.rows, most));
        }
        Ok(())
    }

    fn finish(mut self, is_stream: bool) -> Parsed<ArrowFile> {
        let Some(Schema { columns, notes, .. }) = self.schema else { return damaged("it does not say its columns") };
        let mut rows = 0;
        for batch in &mut self.batches {
            batch.first_row = rows;
            rows += batch.rows;
        }
        let (batches, dictionaries) = (self.batches, self.dictionaries);
        Ok(ArrowFile { columns, batches, rows, notes, is_stream, dictionaries })
    }
}
