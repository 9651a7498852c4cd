//! Damaged files: what is accepted has the library's pixels.

use proptest::prelude::*;

use crate::library::compare;
use crate::made::{KINDS, Made, compress};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pictures_of_any_shape(
        kind in 0..KINDS.len(), width in 1usize..90, height in 1usize..40, parts in 1usize..9,
        filters in prop::collection::vec(0u8..5, 1..12), seed: u32,
    ) {
        let made = Made { parts, ..Made::new(width, height, KINDS[kind]) };
        prop_assert!(compare(&made.file(&made.rows(&filters, seed)), "a valid file"));
    }

    #[test]
    fn changed_bytes(at: prop::sample::Index, to: u8, kind in 0..KINDS.len(), seed: u32) {
        let made = Made::new(13, 9, KINDS[kind]);
        let mut file = made.file(&made.rows(&[4, 1, 2], seed));
        let at = at.index(file.len());
        file[at] = to;
        compare(&file, "a changed byte");
    }

    #[test]
    fn changed_rows_whose_checksums_are_right(at: prop::sample::Index, to: u8, seed: u32) {
        let made = Made::new(13, 9, (2, 8));
        let mut rows = made.rows(&[4, 1, 2], seed);
        let at = at.index(rows.len());
        rows[at] = to;
        let accepted = compare(&made.file(&rows), "a changed row");
        prop_assert_eq!(accepted, at % 40 != 0 || to < 5);
    }

    #[test]
    fn changed_codes_whose_chunk_is_right(at: prop::sample::Index, to: u8, seed: u32) {
        let made = Made::new(13, 9, (2, 8));
        let mut compressed = compress(&made.rows(&[4, 1, 2], seed));
        let at = at.index(compressed.len());
        compressed[at] = to;
        compare(&made.file_of(&compressed), "a changed code");
    }
}
