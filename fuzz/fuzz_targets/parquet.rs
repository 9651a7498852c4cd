//! Parquet files: footers, pages and the values in them. What is read twice is the same, and no more rows come than the footer says.
#![no_main]

use bytes::Bytes;
use forebay_pipeline::Predicate;
use forebay_record::parquet::{Metadata, read_column};
use forebay_record::rows_max;
use libfuzzer_sys::fuzz_target;

/// Files that say to have more are left out: the time is for other things.
const ROWS_MAX: u64 = 1 << 12;

fuzz_target!(|file: &[u8]| {
    if let Ok(text) = std::str::from_utf8(file) {
        let _ = Predicate::parse(text);
    }
    // As a page and as a footer, too, which mutations rarely keep in place: the footer's length is made right.
    let mut ended = b"PAR1".to_vec();
    ended.extend_from_slice(file);
    ended.extend_from_slice(&(file.len() as u32).to_le_bytes());
    ended.extend_from_slice(b"PAR1");
    for file in [file, &ended] {
        let shared = Bytes::copy_from_slice(file);
        let Ok(metadata) = Metadata::read(&shared, "some.parquet") else { continue };
        assert!(metadata.rows <= rows_max(file.len() as u64));
        if metadata.rows > ROWS_MAX {
            continue;
        }
        for column in &metadata.columns {
            let cells = read_column(&shared, &metadata, column, "some.parquet");
            let again = read_column(&file, &metadata, column, "some.parquet");
            assert_eq!(cells.is_ok(), again.is_ok());
            if let Ok(cells) = cells {
                assert_eq!(cells.len() as u64, metadata.rows);
                assert!(column.is_readable());
            }
        }
    }
});
