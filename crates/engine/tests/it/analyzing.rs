//! Analyzing: the same of files, shards and data sets, and whatever is wrong with them is found.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use forebay_codec::Tensor;
use forebay_codec::image::{DecodeOptions, Decoder, Encoding, encode};
use forebay_engine::analyze::{AnalyzeOptions, DISTANCE_DEFAULT, analyze, kind_of, lower_quality, open_data};
use forebay_engine::load::OnError;
use forebay_plan::DataAnalysis;
use forebay_record::{Feature, ShardCompressor, TarWriter, Writer, encode_example};

use crate::data::data_folder;
use crate::support::{built, local, photos, pipeline};

fn options() -> AnalyzeOptions {
    AnalyzeOptions { threads: 2, on_error: OnError::Skip, memory_bytes: 1 << 28, max_distance: DISTANCE_DEFAULT }
}

fn analyzed(data: &Path) -> DataAnalysis {
    analyze(&*open_data(data, &local(), OnError::Skip).unwrap(), &options(), &()).unwrap()
}

/// Soft spots of light, another scene for each seed.
fn scene(seed: usize, side: usize) -> Tensor {
    let place = |at: usize, factor: usize| ((seed * 7919 + at * factor * 31) % 97) as f64 / 97.0;
    let level = |x: f64, y: f64, channel: usize| {
        let spot = |at: usize| {
            let distance = (x - place(at, 13)).powi(2) + (y - place(at, 29)).powi(2);
            (place(at, 41 + channel) - 0.4) * (-distance * 30.0).exp()
        };
        (110.0 + 150.0 * (1..12).map(spot).sum::<f64>()).clamp(0.0, 255.0) as u8
    };
    let at = |index: usize| (index % side) as f64 / side as f64;
    let pixels =
        (0..side * side).flat_map(|index| [0, 1, 2].map(|channel| level(at(index), at(index / side), channel)));
    Tensor::from_elements(&[side, side, 3], &pixels.collect::<Vec<u8>>()).unwrap()
}

fn file(seed: usize, side: usize, encoding: &str) -> Vec<u8> {
    encode(scene(seed, side).view(), &encoding.parse::<Encoding>().unwrap()).unwrap()
}

/// Two classes; a copy, a smaller copy of lower quality in the other class, a gray image, and two that are broken.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    for seed in 0..6 {
        write(&format!("cat/{seed}.jpg"), &file(seed, 160, "jpeg-92"));
    }
    write("cat/again.jpg", &file(3, 160, "jpeg-92"));
    write("dog/small.jpg", &file(4, 90, "jpeg-50"));
    let gray: Vec<u8> = (0..64 * 48).map(|at| (at % 64 * 3 + at / 200) as u8).collect();
    let gray = Tensor::from_elements(&[48, 64, 1], &gray).unwrap();
    write("dog/gray.png", &encode(gray.view(), &"png".parse::<Encoding>().unwrap()).unwrap());
    let whole = file(9, 160, "jpeg-92");
    write("dog/cut.jpg", &whole[..whole.len() / 2]);
    write("dog/page.jpg", b"<html>not found</html>");
    write("dog/notes.txt", b"no image, and no name of one");
    folder
}

#[test]
fn everything_about_a_folder_is_found() {
    let folder = folder();
    let found = analyzed(folder.path());
    assert_eq!((found.samples, found.images, found.broken), (11, 9, 2));
    let keys: Vec<&str> = found.broken_samples.iter().map(|broken| broken.key.as_str()).collect();
    assert_eq!(keys, ["dog/cut.jpg", "dog/page.jpg"]);
    assert!(found.broken_samples[1].reason.contains("is not an image"), "{:?}", found.broken_samples);
    let formats: Vec<(&str, u64)> = found.formats.iter().map(|count| (count.format.as_str(), count.samples)).collect();
    assert_eq!(formats, [("jpeg", 8), ("png", 1)]);
    let classes: Vec<(&str, u64)> = found.classes.iter().map(|class| (class.name.as_str(), class.samples)).collect();
    assert_eq!((classes, found.unlabeled), (vec![("cat", 7), ("dog", 2)], 0));
    let duplicates = &found.duplicates;
    assert_eq!((duplicates.exact.samples, duplicates.near.samples, duplicates.conflicting_labels), (1, 1, 1));
    let pairs: Vec<_> =
        duplicates.groups.iter().map(|group| (group.keep.as_str(), &group.exact[..], &group.near[..])).collect();
    let (again, small) = (["cat/again.jpg".to_owned()], ["dog/small.jpg".to_owned()]);
    // Of two that are the same the first is kept, and `again` comes after `3`.
    assert_eq!(pairs, [("cat/3.jpg", &again[..], &[][..]), ("cat/4.jpg", &[][..], &small[..])]);
    let quality = found.quality.as_ref().unwrap();
    assert_eq!(
        (quality.images, quality.exact, quality.distribution.min, quality.distribution.median),
        (8, 8, 50.0, 92.0)
    );
    let (width, height) = (found.width.as_ref().unwrap(), found.height.as_ref().unwrap());
    assert_eq!((width.min, width.max, height.min), (64.0, 160.0, 48.0));
    let color = found.color.as_ref().unwrap();
    assert_eq!((color.gray, color.stored_gray), (1, 1));
    let source = open_data(folder.path(), &local(), OnError::Skip).unwrap();
    let steps = found.next_steps("photos", kind_of(&*source));
    assert_eq!(steps.len(), 4, "{steps:?}");
    assert!(steps[3].command.starts_with("forebay recompress photos smaller/ --quality 75"), "{steps:?}");
    // What is found does not depend on threads.
    let one = AnalyzeOptions { threads: 1, ..options() };
    assert_eq!(analyze(&*source, &one, &()).unwrap(), found);
    let error = analyze(&*source, &AnalyzeOptions { on_error: OnError::Fail, ..one }, &()).unwrap_err();
    assert!(error.to_string().contains("cut.jpg"), "{error}");
}

/// Every image counts the same, and its pixels are all counted: against the plain sums.
#[test]
fn means_and_deviations_are_those_of_all_pixels() {
    let photos = photos(12);
    let found = analyzed(photos.path()).color.unwrap();
    let (mut sums, mut squares) = ([0.0; 3], [0.0; 3]);
    for class in ["ant", "bee", "cat"] {
        for entry in fs::read_dir(photos.path().join(class)).unwrap() {
            let content = fs::read(entry.unwrap().path()).unwrap();
            let picture = Decoder::new().decode(&content, &DecodeOptions::default()).unwrap();
            for (at, level) in picture.data().iter().enumerate() {
                let (level, pixels) = (f64::from(*level) / 255.0, (picture.data().len() / 3) as f64);
                sums[at % 3] += level / pixels / 12.0;
                squares[at % 3] += level * level / pixels / 12.0;
            }
        }
    }
    for channel in 0..3 {
        assert!((found.mean[channel] - sums[channel]).abs() < 1e-6);
        let std = (squares[channel] - sums[channel] * sums[channel]).sqrt();
        assert!((found.std[channel] - std).abs() < 1e-6);
    }
}

/// What the samples are is the same, whatever they lie in; only their names differ.
#[test]
fn shards_and_data_sets_are_as_the_files() {
    let photos = photos(40);
    let files = analyzed(photos.path());
    let same = |found: &DataAnalysis| {
        assert_eq!((found.samples, found.images, found.broken), (40, 40, 0));
        assert_eq!((&found.size, &found.width, &found.height), (&files.size, &files.width, &files.height));
        assert_eq!((&found.quality, found.bytes), (&files.quality, files.bytes));
        assert_eq!(found.duplicates.exact, files.duplicates.exact);
    };
    let pipeline = pipeline("name = \"all\"\n[[step]]\nop = \"decode\"\n");
    for strategy in ["concatenated", "concatenated+zstd-3"] {
        let (dataset, _) = built(&pipeline, strategy, photos.path(), 3);
        let found = analyzed(dataset.path());
        same(&found);
        assert_eq!(found.classes, files.classes);
    }
    let (decoded, _) = built(&pipeline, "decoded", photos.path(), 3);
    let found = analyzed(decoded.path());
    assert_eq!((found.images, &found.width), (40, &files.width));
    assert_eq!((found.formats[0].format.as_str(), found.quality), ("tensor", None));
    let (one, other) = (found.color.unwrap().mean, files.color.clone().unwrap().mean);
    assert!(one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-9));

    let tars = tempfile::tempdir().unwrap();
    let (mut tar, mut records) = (TarWriter::new(Vec::new()), Writer::new(Vec::new()));
    let mut number = 0;
    for class in ["ant", "bee", "cat"] {
        for entry in fs::read_dir(photos.path().join(class)).unwrap() {
            let content = fs::read(entry.unwrap().path()).unwrap();
            tar.write(&format!("{number:04}"), "jpg", &content).unwrap();
            records.write(&encode_example(&[("image/encoded", Feature::Bytes(&[&content]))]).unwrap()).unwrap();
            number += 1;
        }
    }
    let (tar, records) = (tar.finish().unwrap(), records.finish().unwrap());
    fs::write(tars.path().join("a.tar"), &tar).unwrap();
    same(&analyzed(tars.path()));
    same(&analyzed(&tars.path().join("a.tar")));
    let shards = tempfile::tempdir().unwrap();
    let mut compressor = ShardCompressor::new(Vec::new(), "gzip-6".parse().unwrap()).unwrap();
    compressor.write_all(&records).unwrap();
    fs::write(shards.path().join("a.tfrecord.gz"), compressor.finish().unwrap().0).unwrap();
    same(&analyzed(shards.path()));
    // A tar that was cut short: what is before the damage, and that there is some.
    fs::write(tars.path().join("a.tar"), &tar[..tar.len() / 2]).unwrap();
    let cut = analyzed(tars.path());
    assert!(cut.images > 5 && cut.broken > 0, "{cut:?}");
}

#[test]
fn nothing_to_analyze_is_said_and_large_images_need_memory() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "no images").unwrap();
    let error = open_data(folder.path(), &local(), OnError::Skip).err().unwrap();
    assert!(error.to_string().contains("holds no images"), "{error}");
    fs::write(folder.path().join("large.png"), file(1, 1200, "png")).unwrap();
    let source = open_data(folder.path(), &local(), OnError::Skip).unwrap();
    let little = AnalyzeOptions { memory_bytes: 6 << 20, ..options() };
    let found = analyze(&*source, &little, &()).unwrap();
    // Nobody knows whether it is broken.
    assert_eq!((found.images, found.broken, found.unexamined), (0, 0, 1));
    assert!(found.unexamined_samples[0].reason.contains("memory"), "{found:?}");
    let far = AnalyzeOptions { max_distance: 17, ..options() };
    assert!(analyze(&*source, &far, &()).unwrap_err().to_string().contains("--distance"));
}

#[test]
fn a_lower_quality_is_measured_on_some_images() {
    let folder = folder();
    let source = open_data(folder.path(), &local(), OnError::Skip).unwrap();
    let found = lower_quality(&*source, 75, 100).unwrap().unwrap();
    assert_eq!(found.images, 9, "all that can be read");
    assert!(found.share > 0.2 && found.share < 0.9, "{found:?}");
    assert!(lower_quality(&*source, 100, 100).unwrap().unwrap().share > 0.999, "nothing is raised");
}

#[test]
fn photographs_are_not_taken_for_each_other() {
    let Some(folder) = data_folder("kodak") else { return };
    let found = analyzed(&folder);
    assert!(found.images > 0, "{found:?}");
    assert_eq!(found.duplicates.near.samples, 0, "{:?}", found.duplicates);
}
