//! The tables of `dense`: which table each context uses, and the frequencies of each table.
//!
//! A context is a byte plane, a kind of phase (0, 2, odd) and one of eight levels of activity. The model is written once per
//! image, before the strips.

use crate::{
    error::{Error, Result},
    kernel::{
        predict::Activity,
        rans::{ESCAPE, SLOTS, entry},
    },
};

/// Levels of activity.
pub(crate) const LEVELS: usize = 8;
/// Contexts of one plane: three kinds of phase, eight levels each.
pub(crate) const CONTEXTS: usize = 3 * LEVELS;
/// The most tables that a file may have.
pub(crate) const TABLES_MAX: usize = 64;

/// The kind of a phase.
pub(crate) fn kind(phase: usize) -> usize {
    [0, 2, 1, 2][phase]
}

/// Frequencies of a table; they sum to [`SLOTS`]. The last is the escape's.
pub(crate) type Frequencies = [u16; 256];

/// Tables ready for decoding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// [`SLOTS`] entries per table.
    pub(crate) entries: Vec<u32>,
    /// The table of each context, plane after plane.
    pub(crate) map: Vec<u8>,
    /// By how much each channel's activity is shifted (16 bits).
    pub(crate) shifts: Vec<u8>,
}

impl Model {
    /// Reads a model. `offset` is where its bytes lie in the file.
    pub(crate) fn read(&mut self, bytes: &[u8], offset: usize, channels: usize, depth_bytes: usize) -> Result<()> {
        let mut reader = Reader { bytes, offset, position: 0 };
        let tables = usize::from(reader.byte()?);
        if tables == 0 || tables > TABLES_MAX {
            return Err(reader.error("number of tables", TABLES_MAX as u64, tables as u64));
        }
        self.shifts.clear();
        for _ in 0..channels {
            let shift = reader.byte()?;
            let largest = if depth_bytes == 1 { 0 } else { 15 };
            if shift > largest {
                return Err(reader.error("activity shift", u64::from(largest), u64::from(shift)));
            }
            self.shifts.push(shift);
        }
        self.map.clear();
        for _ in 0..channels * depth_bytes * CONTEXTS {
            let table = reader.byte()?;
            if usize::from(table) >= tables {
                return Err(reader.error("table of a context", tables as u64 - 1, u64::from(table)));
            }
            self.map.push(table);
        }
        self.entries.clear();
        for _ in 0..tables {
            self.read_table(&mut reader)?;
        }
        if reader.position != bytes.len() {
            return Err(reader.error("model bytes", reader.position as u64, bytes.len() as u64));
        }
        Ok(())
    }

    fn read_table(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let symbols = usize::from(reader.byte()?);
        let mut nibbles = Nibbles { held: None };
        let start = self.entries.len();
        for index in 0..=symbols {
            // The escape comes first, then symbols 0, 1, ….
            let symbol = if index == 0 { ESCAPE } else { (index - 1) as u8 };
            let frequency = nibbles.read(reader)?;
            if self.entries.len() - start + frequency as usize > SLOTS {
                return Err(reader.error("sum of frequencies", SLOTS as u64, u64::from(frequency)));
            }
            self.entries.extend((0..frequency).map(|slot| entry(symbol, frequency, slot)));
        }
        let slots = self.entries.len() - start;
        if slots != SLOTS {
            return Err(reader.error("sum of frequencies", SLOTS as u64, slots as u64));
        }
        Ok(())
    }

    /// The tables for a phase of a byte plane.
    pub(crate) fn activity(&self, plane: usize, phase: usize) -> Activity {
        let start = plane * CONTEXTS + kind(phase) * LEVELS;
        let tables = std::array::from_fn(|level| self.map[start + level]);
        Activity { tables, shift: u32::from(self.shifts[plane % self.shifts.len()]) }
    }
}

/// A model to be written.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) map: Vec<u8>,
    pub(crate) shifts: Vec<u8>,
    pub(crate) tables: Vec<Frequencies>,
}

impl Draft {
    /// The bytes that [`Model::read`] reads.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut bytes = vec![self.tables.len() as u8];
        bytes.extend_from_slice(&self.shifts);
        bytes.extend_from_slice(&self.map);
        for table in &self.tables {
            let symbols = table[..255].iter().rposition(|&frequency| frequency > 0).map_or(0, |last| last + 1);
            bytes.push(symbols as u8);
            let mut half: Option<u8> = None;
            for &frequency in std::iter::once(&table[255]).chain(&table[..symbols]) {
                let mut rest = frequency;
                loop {
                    let nibble = (rest & 7) as u8 | u8::from(rest > 7) << 3;
                    match half.take() {
                        Some(low) => bytes.push(low | nibble << 4),
                        None => half = Some(nibble),
                    }
                    rest >>= 3;
                    if rest == 0 {
                        break;
                    }
                }
            }
            bytes.extend(half);
        }
        bytes
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    position: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8> {
        let byte = self.bytes.get(self.position).copied();
        self.position += 1;
        byte.ok_or_else(|| self.error("model bytes", self.position as u64, self.bytes.len() as u64))
    }

    fn error(&self, what: &'static str, expected: u64, found: u64) -> Error {
        Error::Format { what, offset: (self.offset + self.position) as u64, expected, found }
    }
}

/// Numbers in nibbles: three bits each, the fourth says that more follow, the lowest bits first.
struct Nibbles {
    held: Option<u8>,
}

impl Nibbles {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<u32> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let nibble = if let Some(held) = self.held.take() {
                held
            } else {
                let byte = reader.byte()?;
                self.held = Some(byte >> 4);
                byte & 15
            };
            value |= u32::from(nibble & 7) << shift;
            shift += 3;
            if nibble & 8 == 0 {
                return Ok(value);
            }
            if shift > 9 {
                return Err(reader.error("frequency", SLOTS as u64, u64::from(value)));
            }
        }
    }
}
