//! Arrow's files and streams: their messages, and the values in batches. What is read twice is the same, row by row too, and no more rows come than
//! the messages say.
#![no_main]

use bytes::Bytes;
use forebay_fuzz::structure;
use forebay_record::arrow::{ArrowFile, inflated_bytes, read_column, read_dictionary, read_rows};
use forebay_record::rows_max;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

/// Files that say to have more are left out: the time is for other things.
const ROWS_MAX: u64 = 1 << 10;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    structure::mutate::<structure::Arrow>(data, size, max_size, seed)
});

fuzz_target!(|file: &[u8]| {
    let shared = Bytes::copy_from_slice(file);
    let Ok(found) = ArrowFile::read(&shared, "some.arrow") else { return };
    assert!(found.rows <= rows_max(file.len() as u64));
    if found.rows > ROWS_MAX {
        return;
    }
    for column in &found.columns {
        let cells = read_column(&shared, &found, column, "some.arrow");
        let again = read_column(&file, &found, column, "some.arrow");
        assert_eq!(cells.is_ok(), again.is_ok());
        let Ok(cells) = cells else { continue };
        assert_eq!(cells.len() as u64, found.rows);
        assert!(column.is_readable() || found.batches.is_empty());
        for batch in &found.batches {
            let extent = found.extent(column, batch);
            assert!(extent.start >= batch.offset && extent.end <= batch.offset + batch.bytes);
            assert!(found.lead(column, batch).end <= extent.end);
            inflated_bytes(&shared, (column, batch), "some.arrow").expect("buffers that were read");
            let values = read_dictionary(&shared, &found, (column, batch), "some.arrow").expect("values that were read");
            // Half of its rows, from the middle.
            let rows = batch.rows / 4..batch.rows - batch.rows / 4;
            let some = read_rows(&shared, (column, batch), rows.clone(), values.as_deref(), "some.arrow");
            let start = (batch.first_row + rows.start) as usize;
            let some = some.expect("rows that were read").into_iter().map(|cell| format!("{cell:?}"));
            assert!(some.eq(cells[start..][..(rows.end - rows.start) as usize].iter().map(|cell| format!("{cell:?}"))));
        }
    }
});
