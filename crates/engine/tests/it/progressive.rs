//! Progressive records: every prefix is a picture, the whole is the source, and what is read follows from what is asked for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use forebay_codec::image::{DecodeOptions, Decoder, SCAN_GROUPS};
use forebay_engine::data::Dataset;
use forebay_engine::load::{Column, LoadOptions, OnError, Shuffle};
use forebay_engine::source::{Shards, Source};
use forebay_pipeline::Strategy;
use forebay_storage::{Clock, Storage, Throttle, ThrottledStorage};

use crate::support::{SMALL, built, local, photo, photos, pipeline, shards, start};

/// Files as they are.
const FILES: &str = "name = \"files\"\n[[step]]\nop = \"decode\"\n";

fn with_scans(dataset: &Arc<Dataset>, scans: u64) -> Arc<dyn Source> {
    Arc::new(Shards::new(Arc::clone(dataset), local()).with_scans(scans).unwrap())
}

/// The pictures of an epoch and their keys, in order, and how many bytes were read.
fn load(source: Arc<dyn Source>, shuffle: Shuffle) -> (Vec<(String, Vec<u8>)>, u64) {
    let options = LoadOptions { batch_size: 5, threads: 2, shuffle, seed: 3, ..LoadOptions::default() };
    let mut epoch = start(source, options, 0).unwrap();
    let mut found = Vec::new();
    for batch in epoch.by_ref() {
        let batch = batch.unwrap();
        let pictures: Vec<Vec<u8>> = match batch.column("image") {
            Some(Column::Ragged(tensors)) => tensors.iter().map(|tensor| tensor.data().to_vec()).collect(),
            Some(Column::Dense { data, .. }) => data.chunks(data.len() / batch.len()).map(<[u8]>::to_vec).collect(),
            _ => panic!("no pictures"),
        };
        found.extend(batch.keys.iter().map(ToString::to_string).zip(pictures));
    }
    (found, epoch.bytes_read())
}

#[test]
fn all_scans_give_the_pixels_of_the_files_and_few_take_fewer_bytes() {
    let photos = photos(67);
    let pipeline = pipeline(FILES);
    let (_files, plain) = built(&pipeline, "concatenated", photos.path(), 3);
    let (_output, dataset) = built(&pipeline, "concatenated+pcr", photos.path(), 3);
    assert!((0..3).all(|shard| dataset.verify_shard(shard).unwrap().is_empty()));
    for shuffle in [Shuffle::No, Shuffle::Window { bytes: 1 << 20 }] {
        let (whole, bytes) = load(shards(&dataset), shuffle);
        let sorted = |mut samples: Vec<(String, Vec<u8>)>| {
            samples.sort();
            samples
        };
        assert_eq!(sorted(whole.clone()), sorted(load(shards(&plain), shuffle).0));
        assert_eq!(bytes, dataset.manifest().bytes);
        let mut last = 0;
        for scans in 1..=SCAN_GROUPS as u64 {
            let (pictures, bytes) = load(with_scans(&dataset, scans), shuffle);
            assert!(bytes > last, "{scans} groups read {bytes} bytes");
            assert_eq!(bytes, offsets(&dataset, scans), "{scans} groups");
            last = bytes;
            let keys = |samples: &[(String, Vec<u8>)]| samples.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
            assert_eq!(keys(&pictures), keys(&whole), "the order does not depend on how much is read");
            assert_eq!(pictures == whole, scans == SCAN_GROUPS as u64, "{scans} groups");
        }
        assert_eq!(last, dataset.manifest().bytes);
    }
}

/// What the index says of the first groups of all samples.
fn offsets(dataset: &Dataset, scans: u64) -> u64 {
    let mut bytes = 0;
    for (shard, entry) in dataset.manifest().shards.iter().enumerate() {
        let (layout, index) = (entry.scans.unwrap(), dataset.index(shard).unwrap());
        let mut record = 0;
        let mut left = entry.samples;
        while left > 0 {
            let here = left.min(layout.chunk_samples);
            bytes += (record..record + here * scans).map(|at| index.get(at as usize).unwrap().length).sum::<u64>();
            record += here * layout.groups;
            left -= here;
        }
    }
    bytes
}

#[test]
fn what_is_no_jpeg_and_what_is_damaged_is_kept_as_it_is() {
    let photos = photos(4);
    let picture = Decoder::new().decode(&photo(9), &DecodeOptions::default()).unwrap();
    let png = forebay_codec::image::encode(picture.view(), &"png".parse().unwrap()).unwrap();
    std::fs::write(photos.path().join("ant/9.png"), &png).unwrap();
    let (_output, dataset) = built(&pipeline(FILES), "concatenated+pcr", photos.path(), 1);
    let (found, _) = load(with_scans(&dataset, 1), Shuffle::No);
    let (_, pixels) = found.iter().find(|(key, _)| key.ends_with("9.png")).unwrap();
    assert_eq!(pixels, picture.data());
}

#[test]
fn what_cannot_be_asked_for() {
    let photos = photos(6);
    let small = pipeline(SMALL);
    let (_output, plain) = built(&small, "concatenated", photos.path(), 1);
    let refused = Shards::new(plain, local()).with_scans(2).err().unwrap().to_string();
    assert!(refused.contains("no progressive records"), "{refused}");
    let (_output, dataset) = built(&small, "concatenated+pcr", photos.path(), 1);
    for scans in [0, 11] {
        assert!(Shards::new(Arc::clone(&dataset), local()).with_scans(scans).is_err());
    }
    for name in ["concatenated+pcr+gzip", "decoded+pcr", "concatenated+pcr+pcr", "unprocessed+pcr"] {
        assert!(Strategy::parse(&small, name).is_err(), "{name}");
    }
    assert_eq!(Strategy::parse(&small, "concatenated+pcr").unwrap().to_string(), "concatenated+pcr");
}

/// A clock on which waiting takes no time: what is read has the time that the storage is said to take, and nothing else has any.
#[derive(Debug, Default)]
struct ReadingClock(Mutex<Duration>);

impl Clock for ReadingClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn sleep_until(&self, deadline: Duration) {
        let mut now = self.0.lock().unwrap();
        *now = deadline.max(*now);
    }
}

/// On a storage that gives so many bytes a second, fewer bytes are more samples.
#[test]
fn throughput_rises_as_bytes_fall() {
    let folder = tempfile::tempdir().unwrap();
    let class = folder.path().join("noise");
    std::fs::create_dir_all(&class).unwrap();
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    for number in 0..24 {
        let pixels: Vec<u8> = (0..160 * 160 * 3).map(|_| next()).collect();
        let picture = forebay_codec::Tensor::from_elements(&[160, 160, 3], &pixels).unwrap();
        let file = forebay_codec::image::encode(picture.view(), &"jpeg-90".parse().unwrap()).unwrap();
        std::fs::write(class.join(format!("{number}.jpg")), file).unwrap();
    }
    let (output, _dataset) = built(&pipeline(FILES), "concatenated+pcr", folder.path(), 1);
    let mut last = 0.0;
    for scans in [10, 5, 2, 1] {
        let (clock, throttle) = (Arc::new(ReadingClock::default()), Throttle::parse("custom:read=1MB/s").unwrap());
        let storage = Arc::new(ThrottledStorage::with_clock(local(), throttle, clock.clone()).unwrap());
        let source = Shards::open(output.path(), storage.clone(), OnError::Fail).unwrap();
        let (found, bytes) = load(Arc::new(source.with_scans(scans).unwrap()), Shuffle::No);
        let seconds = clock.now().as_secs_f64();
        // The tables of the data set as well.
        let all_bytes = storage.device_bytes_read().unwrap();
        assert!((bytes..bytes + 10_000).contains(&all_bytes), "{bytes} bytes of samples, {all_bytes} in all");
        assert!((seconds - all_bytes as f64 / 1e6).abs() < 1e-6, "{all_bytes} bytes in {seconds} s");
        let throughput = found.len() as f64 / seconds;
        eprintln!("{scans} groups: {bytes} bytes, {throughput:.0} samples/s");
        assert!(throughput > last, "{scans} groups: {throughput} samples/s after {last}");
        last = throughput;
    }
}
