//! Measuring: what is counted, and when it stops.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_storage::probe::{self, Rates, ReadSample};
use forebay_storage::{LocalStorage, Storage, Throttle, ThrottledStorage};

fn soon() -> Instant {
    Instant::now() + Duration::from_mins(1)
}

fn files(folder: &Path, sizes: &[usize]) -> Vec<PathBuf> {
    let name = |index: usize| folder.join(format!("{index}"));
    sizes
        .iter()
        .enumerate()
        .map(|(index, &size)| {
            std::fs::write(name(index), vec![index as u8; size]).unwrap();
            name(index)
        })
        .collect()
}

#[test]
fn everything_is_read_once_before_a_late_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let paths = files(folder.path(), &[1_000_000, 0, 10, 9_000_000]);
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    for storage in [LocalStorage::buffered(), LocalStorage::direct()] {
        let sample = probe::read_sequential(&storage, paths[0], 300_000, soon()).unwrap();
        assert_eq!((sample.bytes, sample.operations, sample.latencies.operations()), (1_000_000, 4, 4));
        let sample = probe::read_random(&storage, paths[0], 4096, 1, soon()).unwrap();
        assert_eq!((sample.bytes, sample.operations), (244 * 4096, 244), "whole blocks only");
        let sample = probe::read_files(&storage, &paths, soon()).unwrap();
        assert_eq!((sample.bytes, sample.operations), (10_000_010, 4));
        assert!(sample.elapsed_seconds > 0.0);
    }
}

#[test]
fn a_deadline_ends_each_probe() {
    let folder = tempfile::tempdir().unwrap();
    let paths = files(folder.path(), &[4_000_000, 1000, 1000]);
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let throttle = Throttle::parse("custom:read=1MB/s,seek=20ms").unwrap();
    let storage = ThrottledStorage::new(Arc::new(LocalStorage::buffered()), throttle).unwrap();
    let shortly = || Instant::now() + Duration::from_millis(50);
    let samples = [
        probe::read_sequential(&storage, paths[0], 10_000, shortly()).unwrap(),
        probe::read_random(&storage, paths[0], 10_000, 0, shortly()).unwrap(),
    ];
    for sample in samples {
        assert!((1..=6).contains(&sample.operations), "{}", sample.operations);
        assert!((0.05..20.0).contains(&sample.elapsed_seconds), "{}", sample.elapsed_seconds);
    }
    assert_eq!(probe::read_files(&storage, &paths[1..], Instant::now()).unwrap().operations, 0);
}

#[test]
fn a_throttled_storage_shows_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let paths = files(folder.path(), &[10_000; 10]);
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let throttle = Throttle::parse("custom:read=10MB/s,seek=9ms").unwrap();
    let storage = ThrottledStorage::new(Arc::new(LocalStorage::buffered()), throttle).unwrap();
    let rates = probe::read_files(&storage, &paths, soon()).unwrap().rates();
    // 9 ms + 1 ms per file, so 100 files and 1 MB a second, or fewer on a busy machine.
    assert!((1.0..102.0).contains(&rates.iops), "{rates:?}");
    assert!((0.01e6..1.02e6).contains(&rates.bytes_per_second), "{rates:?}");
    assert!(rates.latency.p50_seconds > 0.0085, "{rates:?}");
}

#[test]
fn samples_of_threads_add_up() {
    let mut merged = ReadSample::default();
    for elapsed_seconds in [2.0, 1.0] {
        let mut sample = ReadSample { bytes: 3_000_000, operations: 10, elapsed_seconds, ..ReadSample::default() };
        sample.latencies.record(Duration::from_millis(5));
        merged.merge(&sample);
    }
    let rates = merged.rates();
    assert!((rates.bytes_per_second - 3e6).abs() < 1e-3 && (rates.iops - 10.0).abs() < 1e-9, "{rates:?}");
    assert_eq!(merged.latencies.operations(), 2);
    let json = serde_json::to_string(&rates).unwrap();
    assert!(json.starts_with(r#"{"bytes_per_second":3000000.0,"iops":10.0,"latency":{"p50_seconds":0.005"#), "{json}");
    assert_eq!(serde_json::from_str::<Rates>(&json).unwrap(), rates);
    assert!(ReadSample::default().rates().iops.abs() < f64::EPSILON, "no time, no rate");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = &files(folder.path(), &[10])[0];
    let storage: &dyn Storage = &LocalStorage::buffered();
    assert!(probe::read_sequential(storage, path, 0, soon()).is_err());
    assert!(probe::read_random(storage, path, 0, 0, soon()).is_err());
    assert_eq!(probe::read_random(storage, path, 11, 0, soon()).unwrap().operations, 0);
    assert!(probe::read_files(storage, &[&folder.path().join("absent")], soon()).is_err());
    assert!(probe::memory_bandwidth(0, 1).is_err());
    assert!(probe::memory_bandwidth(1, 0).is_err());
    let error = probe::memory_bandwidth(usize::MAX, 1).unwrap_err();
    assert!(error.to_string().contains("hint: measure with a smaller buffer"), "{error}");
}

#[test]
fn memory_is_faster_than_nothing() {
    let bytes_per_second = probe::memory_bandwidth(8 << 20, 3).unwrap();
    assert!(bytes_per_second > 1e7 && bytes_per_second < 1e13, "{bytes_per_second}");
}
