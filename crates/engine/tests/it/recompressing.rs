//! Recompressing: smaller, never better, and nothing the second time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use forebay_codec::Tensor;
use forebay_codec::image::{Encoding, Metadata, encode, jpeg_quality};
use forebay_engine::load::OnError;
use forebay_engine::recompress::{Outcome, RecompressOptions, recompress};

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
    assert!(again.images.iter().all(|image| image.outcome == Outcome::Kept));
    // And of what came out the same comes out.
    let second = recompress(&out.join("jpeg-75"), &folder.path().join("second"), &options(&["jpeg-75"]), &()).unwrap();
    assert!(second.images.iter().all(|image| image.outcome == Outcome::Copied));
    assert_eq!(content(&folder.path().join("second/jpeg-75")), written);
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
