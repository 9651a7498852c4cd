//! Parquet files: those that pyarrow wrote (`tests/golden/parquet/make.py`), whole and damaged.

use bytes::Bytes;

use forebay_record::parquet::{Metadata, read_column};
use forebay_record::{Cell, ColumnType, Error};

use crate::support::Random;

const ROWS: u64 = 24;

const FILES: [(&str, &[u8]); 5] = [
    ("snappy", include_bytes!("../golden/parquet/snappy.parquet")),
    ("zstd", include_bytes!("../golden/parquet/zstd.parquet")),
    ("gzip", include_bytes!("../golden/parquet/gzip.parquet")),
    ("lz4", include_bytes!("../golden/parquet/lz4.parquet")),
    ("none", include_bytes!("../golden/parquet/none.parquet")),
];

/// What row `i` of a column must be: the script's formulas.
pub(crate) fn expected(column: &str, i: u64) -> Cell {
    let bytes = |bytes: Vec<u8>| Cell::Bytes(bytes.into());
    let unless = |null: bool, cell: Cell| if null { Cell::Null } else { cell };
    let number = i as f64;
    match column {
        "id" => Cell::Int(i as i64 * 7 - 100),
        "small" => unless(i % 6 == 5, Cell::Int(i as i64 % 5)),
        "large" => Cell::Int(4_000_000_000 + i as i64),
        "flag" => Cell::Bool(i.is_multiple_of(3)),
        "ratio" => unless(i % 10 == 9, Cell::Float(number / 8.0)),
        "exact" => Cell::Float(number / 3.0),
        "text" => unless(i % 7 == 6, bytes(format!("text é {}", i / 4).into())),
        "image.bytes" => unless(i % 13 == 12, bytes(vec![i as u8; i as usize % 11])),
        "image.path" => unless(i % 13 == 12, bytes(format!("{i}.png").into())),
        "floats" => unless(i % 9 == 8, Cell::Floats((0..i % 4).map(|k| number + k as f64 / 2.0).collect())),
        "ints" => Cell::Ints((0..i % 3).map(|k| (i * k) as i64).collect()),
        "fixed" => bytes(vec![i as u8, i as u8 + 1, i as u8 + 2]),
        other => panic!("no column {other}"),
    }
}

fn read(file: &[u8]) -> Result<Vec<(String, Vec<Cell>)>, Error> {
    let file = Bytes::copy_from_slice(file);
    let metadata = Metadata::read(&file, "some.parquet")?;
    let columns = metadata.columns.iter().filter(|column| column.is_readable());
    columns.map(|column| Ok((column.name.clone(), read_column(&file, &metadata, column, "some.parquet")?))).collect()
}

#[test]
fn what_pyarrow_wrote_is_read() {
    for (name, file) in FILES {
        let columns = read(file).unwrap();
        assert!(columns.len() >= 4, "{name}");
        for (column, cells) in columns {
            let expected: Vec<Cell> = (0..ROWS).map(|row| expected(&column, row)).collect();
            assert_eq!(cells, expected, "{name} {column}");
        }
    }
}

#[test]
fn columns_have_names_and_types() {
    let file = Bytes::from_static(FILES[0].1);
    let metadata = Metadata::read(&file, "some.parquet").unwrap();
    let types: Vec<(String, String)> =
        metadata.columns.iter().map(|column| (column.name.clone(), column.type_name())).collect();
    let types: Vec<(&str, &str)> = types.iter().map(|(name, kind)| (name.as_str(), kind.as_str())).collect();
    assert_eq!(
        types,
        [
            ("id", "int64"),
            ("small", "int32"),
            ("large", "uint32"),
            ("flag", "bool"),
            ("ratio", "float32"),
            ("exact", "float64"),
            ("text", "string"),
            ("image.bytes", "binary"),
            ("image.path", "string"),
            ("floats", "list<float32>"),
            ("ints", "list<int64>"),
            ("fixed", "binary"),
            ("boxes", "list<list<float32>>"),
            ("time", "timestamp"),
        ]
    );
    assert_eq!(metadata.column("image").unwrap().name, "image.bytes");
    assert_eq!(metadata.column("image").unwrap().kind, ColumnType::Binary);
    assert_eq!((metadata.rows, metadata.row_groups.len()), (ROWS, 3));
    for name in ["boxes", "time"] {
        let column = metadata.column(name).unwrap();
        let error = read_column(&file, &metadata, column, "some.parquet").unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains(&format!("`{name}: {}`", column.type_name())), "{error}");
    }
}

#[test]
fn what_is_no_parquet_is_refused() {
    for file in [&b""[..], b"PAR1", b"PAR1PAR1", b"PAR1\0\0\0\0PAR1", &[0; 100], b"PAR1\xFF\xFF\xFF\x7FPAR1"] {
        assert!(read(file).is_err(), "{file:?}");
    }
    let mut encrypted = FILES[0].1.to_vec();
    let end = encrypted.len() - 1;
    encrypted[end] = b'E';
    assert!(matches!(read(&encrypted), Err(Error::Unsupported { .. })));
}

/// Whatever becomes of a file, it is an error, or rows come out of it, as many as it says: never a panic, a loop, or memory without end. With
/// checksums over the pages, no value is another one unless the footer or a header was hit.
#[test]
fn damaged_files_are_errors_or_rows() {
    for (name, file) in FILES {
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

/// A byte of a page with a checksum: every flip in it is found.
#[test]
fn checksums_of_pages_are_looked_at() {
    let (_, file) = FILES[2];
    let metadata = Metadata::read(&Bytes::from_static(file), "some.parquet").unwrap();
    let column = metadata.column("id").unwrap();
    let chunk = metadata.row_groups[0].chunk(column);
    // The last page of the chunk ends with it.
    let last = (chunk.offset + chunk.length - 1) as usize;
    let mut flipped = file.to_vec();
    flipped[last] ^= 1;
    let error = read(&flipped).unwrap_err().to_string();
    assert!(error.contains("id") && error.contains("checksum"), "{error}");
}
