//! Which cache is chosen, by hand.

use forebay_plan::{CacheChoice, CacheSubject, Profile, cached_stage, choose_cache};

use crate::profiles::{profile, strategy};

const SAMPLES: u64 = 1000;
const STORED: u64 = SAMPLES * 114_661;

/// Files in records, 0.1 ms to take apart and 8.3 ms of steps on 8 cores, from storage of so many bytes per second.
fn measured(read_bytes_per_second: f64) -> Profile {
    let mut files = strategy("concatenated", 1, SAMPLES, 100.0, STORED);
    files.deserialize_cpu_seconds = 0.000_1;
    files.online_cpu_seconds = 0.008_3;
    let mut decoded = strategy("decoded", 2, SAMPLES, 100.0, SAMPLES * 657_590);
    decoded.online_cpu_seconds = 0.002_3;
    let mut profile = profile(SAMPLES, vec![files, decoded]);
    profile.storage.sequential_bytes_per_second = read_bytes_per_second;
    profile
}

fn subject(budget_bytes: u64) -> CacheSubject {
    CacheSubject {
        formats: vec![("concatenated".to_owned(), 1.0)],
        samples: SAMPLES,
        stored_bytes: STORED,
        budget_bytes,
        stored_name: "liquid",
        can_keep_decoded: true,
    }
}

fn chosen(read_bytes_per_second: f64, subject: &CacheSubject) -> (CacheChoice, String) {
    choose_cache(&measured(read_bytes_per_second), subject).unwrap()
}

#[test]
fn where_storage_binds_samples_are_kept_as_they_are_stored() {
    // 174 samples/s from 20 MB/s; 30 % in memory leave 70 % to read.
    let (choice, sentence) = chosen(20e6, &subject(STORED * 3 / 10));
    assert_eq!(choice, CacheChoice::Stored);
    let expected = "with 30 % of the samples as they are stored in memory (34.4 MB of 115 MB), the disk gives 249 samples/s; the disk gives \
                    174 samples/s without a cache (profiled on `ceph-hdd`)";
    assert_eq!(sentence, expected);
}

#[test]
fn where_the_processor_binds_what_was_worked_on_is_kept() {
    let (choice, sentence) = chosen(910e6, &subject(300_000_000));
    assert_eq!(choice, CacheChoice::Decoded, "{sentence}");
    // 8.1 of 8.4 ms are done before.
    for part in ["all of the samples after `resize`", "the CPU does 952 samples/s without a cache", "`liquid`, all of"]
    {
        assert!(sentence.contains(part), "{sentence}");
    }
    // Without space for more than a part of the files, no cache of any kind helps.
    let (choice, sentence) = chosen(910e6, &subject(STORED / 4));
    assert_eq!(choice, CacheChoice::None, "{sentence}");
    assert!(sentence.contains("the CPU does 952 samples/s without a cache"), "{sentence}");
    // Where a step makes several samples of one, nothing else can be kept.
    let (choice, _) = chosen(910e6, &CacheSubject { can_keep_decoded: false, ..subject(300_000_000) });
    assert_eq!(choice, CacheChoice::None);
}

/// In memory a few tokens take three times their bytes: what seems to hold all of them holds a third.
#[test]
fn small_samples_take_more_of_a_budget_than_their_bytes() {
    let mut tokens = strategy("concatenated", 1, SAMPLES, 100.0, SAMPLES * 100);
    (tokens.deserialize_cpu_seconds, tokens.online_cpu_seconds) = (1e-6, 1e-6);
    let mut profile = profile(SAMPLES, vec![tokens]);
    profile.storage.sequential_bytes_per_second = 1e5;
    let small = CacheSubject { stored_bytes: SAMPLES * 100, can_keep_decoded: false, ..subject(SAMPLES * 100) };
    let (choice, sentence) = choose_cache(&profile, &small).unwrap();
    assert_eq!(choice, CacheChoice::Stored, "{sentence}");
    assert!(sentence.contains("34 % of the samples as they are stored in memory (100 kB of 292 kB)"), "{sentence}");
}

#[test]
fn formats_of_a_mix_are_averaged() {
    let formats = vec![("concatenated".to_owned(), 0.5), ("decoded".to_owned(), 0.5)];
    let stored_bytes = SAMPLES / 2 * (114_661 + 657_590);
    let mixed = CacheSubject { formats, stored_bytes, can_keep_decoded: false, ..subject(stored_bytes / 2) };
    // Half of 386 kB at 20 MB/s: 52 samples/s, twice as many with half of them in memory.
    let (choice, sentence) = chosen(20e6, &mixed);
    assert_eq!(choice, CacheChoice::Stored);
    assert!(
        sentence.contains("the disk gives 104 samples/s") && sentence.contains("51.8 samples/s without"),
        "{sentence}"
    );
    let unknown = CacheSubject { formats: vec![("resized".to_owned(), 1.0)], ..mixed };
    assert!(choose_cache(&measured(20e6), &unknown).unwrap_err().to_string().contains("without `resized`"));
}

#[test]
fn the_furthest_stage_that_fits_is_chosen() {
    // A file, its pixels, these resized, and as floats.
    let bytes = [100, 900, 200, 800];
    for (limit, expected) in [(10_000, 3), (800, 3), (799, 2), (200, 2), (199, 0), (100, 0), (1, 0)] {
        assert_eq!(cached_stage(&bytes, limit), expected, "{limit}");
    }
    assert_eq!((cached_stage(&[900, 200, 800], 100), cached_stage(&[50, 50], 10), cached_stage(&[], 10)), (1, 1, 0));
}
