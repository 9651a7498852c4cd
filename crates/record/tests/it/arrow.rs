//! Arrow's files and streams: those that pyarrow wrote (`tests/golden/arrow/make.py`), whole and damaged.

use bytes::Bytes;
use forebay_record::arrow::{ArrowFile, Batch, Column, inflated_bytes, read_column, read_dictionary, read_rows};
use forebay_record::{Cell, Error, Input};
use proptest::prelude::{any, prop_assert_eq, proptest};

use crate::support::Random;

const ROWS: u64 = 24;

const STREAM: &[u8] = include_bytes!("../golden/arrow/stream.arrow");
const UNREAD: &[u8] = include_bytes!("../golden/arrow/unread.arrow");
const REPLACED: &[u8] = include_bytes!("../golden/arrow/replaced.arrow");
const DELTA: &[u8] = include_bytes!("../golden/arrow/delta.arrow");

const FILES: [(&str, &[u8]); 8] = [
    ("stream", STREAM),
    ("old", include_bytes!("../golden/arrow/old.arrow")),
    ("file", include_bytes!("../golden/arrow/file.arrow")),
    ("lz4", include_bytes!("../golden/arrow/lz4.arrow")),
    ("zstd", include_bytes!("../golden/arrow/zstd.arrow")),
    ("views", include_bytes!("../golden/arrow/views.arrow")),
    ("views-zstd", include_bytes!("../golden/arrow/views-zstd.arrow")),
    ("unread", UNREAD),
];

/// What row `i` of a column must be: the script's formulas, where they are not those of the Parquet files.
fn expected(column: &str, i: u64) -> Cell {
    let bytes = |bytes: Vec<u8>| Cell::Bytes(bytes.into());
    let unless = |null: bool, cell: Cell| if null { Cell::Null } else { cell };
    let number = i as f64;
    match column {
        "byte" => Cell::Int(i as i64 - 12),
        "short" => Cell::Int(65_000 + i as i64),
        "whole" => unless(i % 6 == 5, Cell::Int(i as i64)),
        "text" | "large_text" => {
            unless(i % 7 == 6, bytes(format!("text é {}", i / 4).repeat(1 + i as usize % 3).into()))
        }
        "flags" => Cell::Ints((0..i % 3).map(|k| i64::from(k == i % 3)).collect()),
        "box" => unless(i % 9 == 8, Cell::Floats([number, number + 0.5, 2.0 * number].into())),
        "tag" => unless(i % 6 == 5, bytes(format!("tag {}", i % 4).into())),
        "code" => Cell::Int(i as i64 % 3 * 100),
        "blob" => unless(i % 5 == 4, bytes(vec![i as u8; i as usize * 3])),
        other => crate::parquet::expected(other, i),
    }
}

fn open(file: &[u8]) -> Result<(Bytes, ArrowFile), Error> {
    let file = Bytes::copy_from_slice(file);
    let found = ArrowFile::read(&file, "some.arrow")?;
    Ok((file, found))
}

fn read(file: &[u8]) -> Result<Vec<(String, Vec<Cell>)>, Error> {
    let (file, found) = open(file)?;
    let columns = found.columns.iter().filter(|column| column.is_readable());
    columns.map(|column| Ok((column.name.clone(), read_column(&file, &found, column, "some.arrow")?))).collect()
}

#[test]
fn what_pyarrow_wrote_is_read() {
    for (name, file) in FILES {
        let columns = read(file).unwrap();
        assert!(columns.len() >= 2, "{name}");
        for (column, cells) in columns {
            if name == "unread" && !["id", "text", "ratio", "exact"].contains(&&*column) {
                continue;
            }
            let expected: Vec<Cell> = (0..ROWS).map(|row| expected(&column, row)).collect();
            assert_eq!(cells, expected, "{name} {column}");
        }
    }
}

#[test]
fn columns_have_names_and_types() {
    let types = |file: &[u8]| -> Vec<(String, String)> {
        let found = open(file).unwrap().1;
        found.columns.iter().map(|column| (column.name.clone(), column.type_name())).collect()
    };
    let stream = types(STREAM);
    let stream: Vec<(&str, &str)> = stream.iter().map(|(name, kind)| (name.as_str(), kind.as_str())).collect();
    assert_eq!(
        stream,
        [
            ("id", "int64"),
            ("small", "int32"),
            ("large", "uint32"),
            ("byte", "int8"),
            ("short", "uint16"),
            ("whole", "uint64"),
            ("flag", "bool"),
            ("ratio", "float32"),
            ("exact", "float64"),
            ("text", "string"),
            ("large_text", "string"),
            ("blob", "binary"),
            ("image.bytes", "binary"),
            ("image.path", "string"),
            ("floats", "list<float32>"),
            ("ints", "list<int64>"),
            ("flags", "list<bool>"),
            ("box", "list<float64>"),
            ("fixed", "binary"),
            ("tag", "dictionary of string"),
            ("code", "dictionary of int64"),
        ]
    );
    let (_, found) = open(STREAM).unwrap();
    assert_eq!(found.column("image").unwrap().name, "image.bytes");
    assert_eq!((found.rows, found.batches.len(), found.is_stream), (ROWS, 3, true));
    let unread = types(UNREAD);
    let named = |wanted: &str| unread.iter().find(|(name, _)| name == wanted).unwrap().1.as_str();
    assert_eq!([named("boxes"), named("time"), named("nothing")], ["list<list<float32>>", "timestamp", "null"]);
    assert_eq!(named("half"), "float16");
    assert!(unread.iter().any(|(_, kind)| kind == "union") && unread.iter().any(|(_, kind)| kind == "run_end_encoded"));
    let (file, found) = open(UNREAD).unwrap();
    for column in found.columns.iter().filter(|column| !column.is_readable()) {
        let error = read_column(&file, &found, column, "some.arrow").unwrap_err();
        assert!(error.to_string().contains(&format!("`{}: {}`", column.name, column.type_name())), "{error}");
    }
}

#[test]
fn dictionaries_of_a_stream_are_replaced_and_grow() {
    let word = |word: &str| Cell::Bytes(Bytes::copy_from_slice(word.as_bytes()));
    let mut expected: Vec<Cell> = "abaabccabcd".chars().map(|letter| word(&letter.to_string())).collect();
    expected.push(Cell::Null);
    for file in [REPLACED, DELTA] {
        assert_eq!(read(file).unwrap(), [("tag".to_owned(), expected.clone())]);
    }
}

/// Counts what is read.
struct Counted<'a>(&'a Bytes, std::cell::Cell<u64>);

impl Input for Counted<'_> {
    type Error = Error;

    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&self, offset: u64, length: usize) -> Result<Bytes, Error> {
        self.1.set(self.1.get() + length as u64);
        self.0.read(offset, length)
    }
}

fn rows(
    input: &impl Input<Error = Error>,
    found: &ArrowFile,
    (column, batch): (&Column, &Batch),
    rows: std::ops::Range<u64>,
) -> Vec<Cell> {
    let dictionary = read_dictionary(input, found, (column, batch), "some.arrow").unwrap();
    read_rows(input, (column, batch), rows, dictionary.as_deref(), "some.arrow").unwrap()
}

#[test]
fn only_what_is_wanted_is_read() {
    let (file, found) = open(STREAM).unwrap();
    let column = found.column("blob").unwrap();
    let batch = &found.batches[1];
    let counted = Counted(&file, std::cell::Cell::new(0));
    // Row 15 has 45 bytes; besides, two offsets of eight bytes and a byte of what is there.
    assert_eq!(rows(&counted, &found, (column, batch), 5..6), [Cell::Bytes(vec![15; 45].into())]);
    assert_eq!(counted.1.get(), 45 + 16 + 1);
    let counted = Counted(&file, std::cell::Cell::new(0));
    ArrowFile::read(&counted, "some.arrow").unwrap();
    let bodies: u64 = found.batches.iter().map(|batch| batch.bytes).sum();
    assert!(counted.1.get() <= file.size() - bodies, "{} of {}", counted.1.get(), file.size());
}

#[test]
fn buffers_say_what_they_inflate_to() {
    let sizes = |file: &[u8]| -> Vec<u64> {
        let (file, found) = open(file).unwrap();
        let column = found.column("exact").unwrap();
        found.batches.iter().map(|batch| inflated_bytes(&file, (column, batch), "some.arrow").unwrap()).collect()
    };
    for (name, file) in [FILES[3], FILES[4]] {
        assert_eq!(sizes(file), [80, 80, 32], "{name}");
    }
}

proptest! {
    /// Some rows are the same as these rows of all.
    #[test]
    fn any_rows_of_any_column(file in 0..FILES.len(), column in any::<usize>(), batch in any::<usize>(), ends in any::<(u64, u64)>()) {
        let (file, found) = open(FILES[file].1).unwrap();
        let readable: Vec<&Column> = found.columns.iter().filter(|column| column.is_readable()).collect();
        let column = readable[column % readable.len()];
        let batch = &found.batches[batch % found.batches.len()];
        let ends = [ends.0 % (batch.rows + 1), ends.1 % (batch.rows + 1)];
        let (start, end) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        let all = read_column(&file, &found, column, "some.arrow").unwrap();
        let wanted = (batch.first_row + start) as usize..(batch.first_row + end) as usize;
        prop_assert_eq!(&rows(&file, &found, (column, batch), start..end)[..], &all[wanted]);
    }
}

#[test]
fn what_is_no_arrow_is_refused() {
    let mut big = b"ARROW1\0\0".to_vec();
    big.extend([0xFF; 12]);
    big.extend(b"ARROW1");
    for file in [&b""[..], b"ARROW1", b"ARROW1\0\0ARROW1", &[0; 100], &[0xFF; 100], b"PAR1 and more", &big] {
        assert!(read(file).is_err(), "{file:?}");
    }
    assert!(matches!(read(b"FEA1 and more"), Err(Error::Unsupported { .. })));
    let error = read(b"PAR1 and more").unwrap_err().to_string();
    assert!(error.contains("does not begin as Arrow's"), "{error}");
    // Without the mark of its end a stream may have lost rows.
    let error = read(&STREAM[..STREAM.len() - 8]).unwrap_err().to_string();
    assert!(error.contains("without the mark of its end"), "{error}");
}

/// Whatever becomes of a file, it is an error, or rows come out of it, as many as it says: never a panic, a loop, or memory without end.
#[test]
fn damaged_files_are_errors_or_rows() {
    for (name, file) in FILES.into_iter().chain([("replaced", REPLACED), ("delta", DELTA)]) {
        for length in (0..file.len()).step_by(7) {
            assert!(read(&file[..length]).is_err(), "{name} cut to {length}");
        }
        for seed in 0..1500 {
            let mut random = Random(seed);
            let mut mutant = file.to_vec();
            for _ in 0..=random.below(3) {
                let at = random.below(mutant.len());
                match random.below(4) {
                    0 => mutant[at] ^= 1 << random.below(8),
                    1 => mutant[at] = [0, 1, 0x7F, 0x80, 0xFF][random.below(5)],
                    2 => drop(mutant.remove(at)),
                    _ => mutant.insert(at, random.next() as u8),
                }
            }
            let Ok(columns) = read(&mutant) else { continue };
            for (column, cells) in columns {
                assert!(cells.len() <= 1 << 20, "{name} {column} {seed}");
            }
        }
    }
}
