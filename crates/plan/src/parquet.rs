//! A table as a Parquet file: the few structures that a small table needs, written by hand.
//!
//! ```text
//! "PAR1" | column 1: page header, page | column 2 … | footer: schema, where the columns are | u32 footer length | "PAR1"
//! ```
//!
//! One row group, one page (version 1) for each column, plain values without compression, every column optional. Headers and
//! footer are Thrift structures in its compact protocol; the numbers of their fields are those of `parquet.thrift` in the
//! Apache Parquet format, version 2.

use crate::export::{Cell, Table};

const MAGIC: &[u8; 4] = b"PAR1";

/// How values are stored (`Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag = 0,
    Whole = 2,
    Number = 5,
    Text = 6,
}

/// `Encoding` and `FieldRepetitionType`.
const PLAIN: i64 = 0;
const RUN_LENGTH: i64 = 3;
const OPTIONAL: i64 = 1;

/// A Thrift structure in the compact protocol, field after field in ascending order.
#[derive(Default)]
struct Struct {
    bytes: Vec<u8>,
    last_field: u8,
}

impl Struct {
    fn header(&mut self, field: u8, kind: u8) {
        // Fields here are never 15 apart, so the difference always fits.
        self.bytes.push((field - self.last_field) << 4 | kind);
        self.last_field = field;
    }

    fn int32(mut self, field: u8, value: i64) -> Self {
        self.header(field, 5);
        zigzag(&mut self.bytes, value);
        self
    }

    fn int64(mut self, field: u8, value: usize) -> Self {
        self.header(field, 6);
        zigzag(&mut self.bytes, value as i64);
        self
    }

    fn text(mut self, field: u8, text: &str) -> Self {
        self.header(field, 8);
        self.bytes.extend(binary(text));
        self
    }

    fn nested(mut self, field: u8, inner: Self) -> Self {
        self.header(field, 12);
        self.bytes.extend(inner.end());
        self
    }

    fn list(mut self, field: u8, element: u8, items: &[Vec<u8>]) -> Self {
        self.header(field, 9);
        if items.len() < 15 {
            self.bytes.push((items.len() as u8) << 4 | element);
        } else {
            self.bytes.push(0xf0 | element);
            varint(&mut self.bytes, items.len() as u64);
        }
        self.bytes.extend(items.concat());
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn zigzag(bytes: &mut Vec<u8>, value: i64) {
    varint(bytes, ((value << 1) ^ (value >> 63)) as u64);
}

fn binary(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint(&mut bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
    bytes
}

fn int_item(value: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    zigzag(&mut bytes, value);
    bytes
}

/// The type of a column: that of its values, or text if they differ in more than being integers.
fn kind(cells: &[&Option<Cell>]) -> Kind {
    let mut found: Option<Kind> = None;
    for cell in cells.iter().copied().flatten() {
        let kind = match cell {
            Cell::Text(_) => Kind::Text,
            Cell::Whole(_) => Kind::Whole,
            Cell::Number(_) => Kind::Number,
            Cell::Flag(_) => Kind::Flag,
        };
        found = match (found, kind) {
            (None, kind) => Some(kind),
            (Some(before), kind) if before == kind => found,
            (Some(Kind::Whole | Kind::Number), Kind::Whole | Kind::Number) => Some(Kind::Number),
            _ => return Kind::Text,
        };
    }
    found.unwrap_or(Kind::Text)
}

/// One page: which cells have a value, then these values.
fn page(kind: Kind, cells: &[&Option<Cell>]) -> Vec<u8> {
    let mut levels = Vec::new();
    for run in cells.chunk_by(|one, other| one.is_some() == other.is_some()) {
        varint(&mut levels, (run.len() as u64) << 1);
        levels.push(u8::from(run[0].is_some()));
    }
    let mut bytes = (levels.len() as u32).to_le_bytes().to_vec();
    bytes.extend(levels);
    let present = cells.iter().copied().flatten();
    if kind == Kind::Flag {
        let flags: Vec<bool> = present.map(|cell| *cell == Cell::Flag(true)).collect();
        let packed = |eight: &[bool]| eight.iter().enumerate().map(|(bit, flag)| u8::from(*flag) << bit).sum::<u8>();
        bytes.extend(flags.chunks(8).map(packed));
        return bytes;
    }
    for cell in present {
        match (kind, cell) {
            (Kind::Whole, Cell::Whole(value)) => bytes.extend(value.to_le_bytes()),
            (Kind::Number, Cell::Whole(value)) => bytes.extend((*value as f64).to_le_bytes()),
            (Kind::Number, Cell::Number(value)) => bytes.extend(value.to_le_bytes()),
            (_, cell) => {
                let text = cell.text();
                bytes.extend((text.len() as u32).to_le_bytes());
                bytes.extend(text.as_bytes());
            }
        }
    }
    bytes
}

impl Table {
    /// The table as a Parquet file.
    pub fn to_parquet(&self) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        let rows = self.rows.len();
        let mut schema = vec![Struct::default().text(4, "table").int32(5, self.columns.len() as i64).end()];
        let mut chunks = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let cells: Vec<&Option<Cell>> = self.rows.iter().map(|row| &row[at]).collect();
            let kind = kind(&cells);
            let page = page(kind, &cells);
            let page_bytes = page.len() as i64;
            let data_header =
                Struct::default().int32(1, rows as i64).int32(2, PLAIN).int32(3, RUN_LENGTH).int32(4, RUN_LENGTH);
            let header = Struct::default().int32(1, 0).int32(2, page_bytes).int32(3, page_bytes).nested(5, data_header);
            let offset = file.len();
            file.extend(header.end());
            file.extend(page);
            let bytes = file.len() - offset;
            let element = Struct::default().int32(1, kind as i64).int32(3, OPTIONAL).text(4, &column.name);
            // Words are UTF-8 (`ConvertedType` 0).
            schema.push(if kind == Kind::Text { element.int32(6, 0) } else { element }.end());
            let described = Struct::default()
                .int32(1, kind as i64)
                .list(2, 5, &[int_item(PLAIN), int_item(RUN_LENGTH)])
                .list(3, 8, &[binary(&column.name)])
                .int32(4, 0)
                .int64(5, rows)
                .int64(6, bytes)
                .int64(7, bytes)
                .int64(9, offset);
            chunks.push(Struct::default().int64(2, offset).nested(3, described).end());
        }
        let group = Struct::default().list(1, 12, &chunks).int64(2, file.len() - MAGIC.len()).int64(3, rows).end();
        let footer = Struct::default()
            .int32(1, 1)
            .list(2, 12, &schema)
            .int64(3, rows)
            .list(4, 12, &[group])
            .text(6, concat!("forebay ", env!("CARGO_PKG_VERSION")))
            .end();
        file.extend(&footer);
        file.extend((footer.len() as u32).to_le_bytes());
        file.extend(MAGIC);
        file
    }
}
