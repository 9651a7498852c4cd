//! Recompressing: smaller, never better, and nothing the second time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, Metadata, encode, jpeg_quality};
use forebay_engine::Progress;
use forebay_engine::data::Dataset;
use forebay_engine::load::OnError;
use forebay_engine::recompress::{Outcome, RecompressOptions, lossy_encodings, recompress};
use forebay_engine::source::{Shards, Source};
use forebay_pipeline::{Sample, Value};

use crate::support::{build, local, pipeline};

fn options(encodings: &[&str]) -> RecompressOptions {
    RecompressOptions {
        encodings: encodings.iter().map(|name| name.parse().unwrap()).collect(),
        verify: true,
        metrics: true,
        overwrite: false,
        threads: 2,
        on_error: OnError::Fail,
        memory_bytes: 1 << 30,
    }
}

fn picture(seed: u32) -> Tensor {
    let mut state = seed;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 28
    };
    let pixels: Vec<u8> = (0..200 * 180 * 3_u32).map(|at| ((at / 3 % 180) + (at / 540) / 2 + noise()) as u8).collect();
    Tensor::from_elements(&[200, 180, 3], &pixels).unwrap()
}

fn file(seed: u32, encoding: &str) -> Vec<u8> {
    encode(picture(seed).view(), &encoding.parse::<Encoding>().unwrap()).unwrap()
}

fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for class in fs::read_dir(folder).unwrap() {
        for entry in fs::read_dir(class.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.strip_prefix(folder).unwrap().display().to_string(), fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn qualities_fall_labels_and_metadata_stay_and_twice_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("photos");
    let class = input.join("ant");
    fs::create_dir_all(&class).unwrap();
    let metadata = Metadata { exif: Some(b"MM\0\x2A\0\0\0\x08\0\0".to_vec()), icc: Some(vec![3; 500]) };
    fs::write(class.join("high.jpeg"), metadata.write(file(1, "jpeg-95")).unwrap()).unwrap();
    fs::write(class.join("low.jpg"), file(2, "jpeg-40")).unwrap();
    fs::write(class.join("plain.png"), file(3, "png")).unwrap();
    fs::write(class.join("lossy.webp"), file(4, "webp-60")).unwrap();
    fs::write(class.join("boxes.json"), "{}").unwrap();
    let (out, asked) = (folder.path().join("out"), options(&["jpeg-75", "jpeg-30", "webp-50"]));
    let done = recompress(&input, &out, &asked, &()).unwrap();
    assert_eq!((done.images.len(), done.others), (12, 1));
    let of = |key: &str, encoding: &str| {
        done.images.iter().find(|image| image.key.ends_with(key) && image.encoding == encoding).unwrap().clone()
    };
    let high = [of("high.jpeg", "jpeg-75"), of("high.jpeg", "jpeg-30")];
    assert!(high.iter().all(|image| image.outcome == Outcome::Encoded && image.source_quality == Some(95)));
    assert!(high[0].bytes_out > high[1].bytes_out);
    assert!(high[0].psnr > high[1].psnr && high[0].ssim > high[1].ssim && high[0].ms_ssim > high[1].ms_ssim);
    assert_eq!(of("low.jpg", "jpeg-75").outcome, Outcome::Copied);
    assert_eq!(of("low.jpg", "jpeg-30").outcome, Outcome::Encoded);
    assert_eq!(of("lossy.webp", "webp-50").outcome, Outcome::Copied);
    assert_eq!(of("plain.png", "webp-50").outcome, Outcome::Encoded);
    let written = content(&out.join("jpeg-75"));
    let names: Vec<&str> = written.keys().map(String::as_str).collect();
    assert_eq!(names, ["ant/boxes.json", "ant/high.jpeg", "ant/lossy.webp", "ant/low.jpg", "ant/plain.jpg"]);
    assert_eq!(jpeg_quality(&written["ant/high.jpeg"]).unwrap().quality, 75);
    assert_eq!(Metadata::read(&written["ant/high.jpeg"]), metadata);
    assert_eq!(Metadata::read(&fs::read(out.join("webp-50/ant/high.jpeg").with_extension("webp")).unwrap()), metadata);
    // Again: what is there is kept.
    let again = recompress(&input, &out, &asked, &()).unwrap();
    assert!(again.images.iter().all(|image| image.outcome == Outcome::Reused));
    // And of what came out the same comes out.
    let second = recompress(&out.join("jpeg-75"), &folder.path().join("second"), &options(&["jpeg-75"]), &()).unwrap();
    assert!(second.images.iter().all(|image| image.outcome == Outcome::Copied));
    assert_eq!(content(&folder.path().join("second/jpeg-75")), written);
}

/// What other programs leave beside images: names that end as those of unfinished files did, and large files.
#[test]
fn whatever_lies_beside_images_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("photos"), folder.path().join("smaller"));
    fs::create_dir_all(input.join("a")).unwrap();
    for seed in 0..40 {
        fs::write(input.join(format!("a/{seed:02}.jpg")), file(seed, "jpeg-60")).unwrap();
        fs::write(input.join(format!("a/{seed:02}.jpg.partial")), format!("an unfinished download {seed}")).unwrap();
    }
    fs::write(input.join("a/odd\\xff name.txt"), "text").unwrap();
    let large: Vec<u8> = (0..(5_usize << 20) + 77).map(|at| (at % 251) as u8).collect();
    fs::write(input.join("a/video.mp4"), large).unwrap();
    // As a run leaves it that was killed in that folder.
    fs::write(input.join("a/.forebay-00.jpg.partial"), "half").unwrap();
    let options = RecompressOptions { memory_bytes: 4 << 20, metrics: false, ..options(&["jpeg-99"]) };
    let found = recompress(&input, &output, &options, &()).unwrap();
    assert_eq!((found.images.len(), found.others), (40, 42));
    let mut expected = content(&input);
    expected.remove("a/.forebay-00.jpg.partial");
    assert!(content(&output.join("jpeg-99")) == expected, "every file has its own bytes");

    // What is there already is looked at, too.
    for (name, says) in [("a/video.mp4", "video.mp4"), ("a/07.jpg", "07.jpg"), ("a/07.jpg.partial", "07.jpg.partial")] {
        let path = output.join("jpeg-99").join(name);
        let before = fs::read(&path).unwrap();
        let mut after = before.clone();
        *after.last_mut().unwrap() ^= 1;
        fs::write(&path, &after).unwrap();
        let error = recompress(&input, &output, &options, &()).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("hint: "), "{error}");
        fs::write(&path, &before).unwrap();
    }
    assert!(recompress(&input, &output, &options, &()).is_ok());
    assert_eq!(lossy_encodings("jpeg", &[50, 75, 50]).unwrap().len(), 2, "twice is once");
}

#[test]
fn names_that_meet_and_folders_within_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("photos");
    fs::create_dir_all(&input).unwrap();
    fs::write(input.join("a.jpg"), file(1, "jpeg-90")).unwrap();
    assert!(recompress(&input, &input.join("out"), &options(&["jpeg-75"]), &()).is_err());
    assert!(recompress(&input, &folder.path().join("out"), &options(&["png"]), &()).is_err());
    fs::write(input.join("a.png"), file(1, "png")).unwrap();
    let error = recompress(&input, &folder.path().join("out"), &options(&["jpeg-75"]), &()).unwrap_err();
    assert!(error.to_string().contains("would both become"), "{error}");
}

/// Every sample of a data set, in order.
fn samples(folder: &Path) -> Vec<Sample> {
    let source = Shards::new(Arc::new(Dataset::open(folder).unwrap()), local());
    let sample = |number: u64| source.unpack(number, source.read(number..number + 1).contents.pop().unwrap().unwrap());
    (0..source.samples()).map(|number| sample(number).unwrap()).collect()
}

fn bytes_of(sample: &Sample) -> &[u8] {
    match sample.field("image") {
        Some(Value::Bytes(bytes)) => bytes,
        other => panic!("no bytes: {other:?}"),
    }
}

fn label(sample: &Sample) -> i64 {
    match sample.field("label") {
        Some(Value::Int(label)) => *label,
        other => panic!("no label: {other:?}"),
    }
}

/// Ends the work after so many samples.
struct EndsAfter(AtomicU64);

impl Progress for EndsAfter {
    fn advance(&self, samples: u64) {
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(samples)));
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn data_sets_keep_labels_and_keys_and_twice_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let photos = folder.path().join("photos");
    for (class, seeds) in [("ant", 0..7), ("bee", 7..12)] {
        fs::create_dir_all(photos.join(class)).unwrap();
        for seed in seeds {
            fs::write(photos.join(class).join(format!("{seed}.jpg")), file(seed, "jpeg-90")).unwrap();
        }
    }
    let pipeline = pipeline("name = \"p\"\n[[step]]\nop = \"decode\"\n[[step]]\nop = \"resize\"\nsize = 100\n");
    let mut asked = options(&["jpeg-40"]);
    asked.metrics = false;
    for (strategy, becomes) in [
        ("concatenated", "concatenated"),
        ("concatenated+zstd-3", "concatenated+zstd-3"),
        ("concatenated+zstd-3-record", "concatenated+zstd-3-record"),
        ("concatenated+pcr", "concatenated+pcr"),
        ("resized+png", "resized+jpeg-40"),
        ("resized", "resized+jpeg-40"),
    ] {
        let input = folder.path().join(strategy);
        build(&pipeline, strategy, &photos, local()).run(&*input, &crate::support::options(3), &()).unwrap();
        let out = folder.path().join(format!("{strategy}-smaller"));
        let done = recompress(&input, &out, &asked, &()).unwrap();
        let variant = &done.variants[0];
        assert_eq!((variant.images, variant.encoded, variant.reused), (12, 12, 0), "{strategy}");
        assert!(variant.bytes_out < variant.bytes_in, "{strategy}: {variant:?}");
        let written = Dataset::open(&*out.join("jpeg-40")).unwrap();
        assert_eq!(written.manifest().strategy.to_string(), becomes);
        let (before, after) = (samples(&input), samples(&out.join("jpeg-40")));
        for (one, other) in before.iter().zip(&after) {
            assert_eq!((&one.key, label(one)), (&other.key, label(other)));
            assert_eq!(jpeg_quality(bytes_of(other)).unwrap().quality, 40, "{strategy}");
        }
        // What is there is kept, and of what came out the same comes out.
        assert_eq!(recompress(&input, &out, &asked, &()).unwrap().variants[0].reused, 12);
        let second = folder.path().join(format!("{strategy}-second"));
        let again = recompress(&out.join("jpeg-40"), &second, &asked, &()).unwrap();
        assert_eq!(again.variants[0].copied, 12, "{strategy}");
        let twice: Vec<_> = samples(&second.join("jpeg-40")).iter().map(|sample| bytes_of(sample).to_vec()).collect();
        assert_eq!(twice, after.iter().map(|sample| bytes_of(sample).to_vec()).collect::<Vec<_>>(), "{strategy}");
    }
}

#[test]
fn a_data_set_that_was_interrupted_ends_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let photos = folder.path().join("photos/ant");
    fs::create_dir_all(&photos).unwrap();
    for seed in 0..9 {
        fs::write(photos.join(format!("{seed}.jpg")), file(seed, "jpeg-90")).unwrap();
    }
    let pipeline = pipeline("name = \"p\"\n[[step]]\nop = \"decode\"\n");
    let input = folder.path().join("dataset");
    build(&pipeline, "concatenated", &folder.path().join("photos"), local())
        .run(&*input, &crate::support::options(3), &())
        .unwrap();
    let mut asked = RecompressOptions { threads: 1, metrics: false, ..options(&["jpeg-50"]) };
    let whole = folder.path().join("whole");
    recompress(&input, &whole, &asked, &()).unwrap();
    let stopped = folder.path().join("stopped");
    let error = recompress(&input, &stopped, &asked, &EndsAfter(AtomicU64::new(5))).unwrap_err();
    assert_eq!(error.to_string(), "canceled");
    let done = recompress(&input, &stopped, &asked, &()).unwrap();
    assert_eq!((done.variants[0].reused, done.variants[0].encoded), (3, 6), "the first shard was whole");
    let manifest = |folder: &Path| fs::read_to_string(folder.join("jpeg-50/dataset.json")).unwrap();
    assert_eq!(manifest(&stopped), manifest(&whole));
    asked.metrics = true;
    let refused = recompress(&input, &folder.path().join("none"), &asked, &()).unwrap_err();
    assert!(refused.to_string().contains("--metrics"), "{refused}");
    let mut floats = options(&["jpeg-50"]);
    floats.metrics = false;
    let centered = crate::support::pipeline(crate::support::SMALL);
    let output = folder.path().join("floats");
    build(&centered, "pixel-centered", &folder.path().join("photos"), local())
        .run(&*output, &crate::support::options(2), &())
        .unwrap();
    let refused = recompress(&output, &folder.path().join("none"), &floats, &()).unwrap_err();
    assert!(refused.to_string().contains("cannot be stored as jpeg-50"), "{refused}");
}
