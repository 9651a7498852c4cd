//! `convert`, `inspect` of L3 files, and L3 as a way to keep pictures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use forebay_codec::Tensor;
use forebay_codec::image::{Channels, DecodeOptions, Decoder, Depth, encode};

use crate::support::{Ran, assert_keys, files, forebay, shape, workspace};

fn decode(bytes: &[u8]) -> Tensor {
    let options = DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..DecodeOptions::default() };
    Decoder::new().decode(bytes, &options).unwrap()
}

/// The pixels of every picture below `folder`, by its path without extension.
fn pixels(folder: &Path) -> BTreeMap<PathBuf, Tensor> {
    files(folder).into_iter().map(|(path, bytes)| (path.with_extension(""), decode(&bytes))).collect()
}

/// One of the pictures, as `photo.jpg` in the folder.
fn photo(folder: &Path) -> Vec<u8> {
    let (_, bytes) = files(&folder.join("photos")).pop_first().unwrap();
    fs::write(folder.join("photo.jpg"), &bytes).unwrap();
    bytes
}

fn read(folder: &Path, name: &str) -> Tensor {
    decode(&fs::read(folder.join(name)).unwrap())
}

#[test]
fn one_picture_through_every_format_and_back() {
    let folder = workspace(1);
    let here = folder.path();
    let expected = decode(&photo(here));
    let mut from = "photo.jpg".to_owned();
    for (to, options) in [
        ("a.l3", ""),
        ("b.png", ""),
        ("c.l3", "--mode dense"),
        ("d.qoi", ""),
        ("e.l3", "--to l3-classic"),
        ("f.webp", ""),
        ("g.bmp", ""),
        ("deep/down/h.ppm", ""),
        ("i.png", "--to png-fast"),
    ] {
        let ran = forebay(here, &format!("convert {from} {to} {options} --verify"));
        assert!(ran.text().contains("verified  all pixels are identical\n"), "{ran:?}");
        assert_eq!(read(here, to), expected, "{to}");
        from = to.to_owned();
    }
    let text = forebay(here, "convert photo.jpg again.l3");
    assert_eq!(
        shape(text.text()).replace(" ms,", " s,"),
        "output again.l# (l#-fast)\nimages # converted\nsize # kB to # kB (# %)\n\
         time # s, # MB/s of pixels\n"
    );
    let small = forebay(here, "convert photo.jpg small.jpg --quality 20 --verify");
    assert!(small.text().contains("verified  samples differ by up to "), "{small:?}");
    assert!(fs::metadata(here.join("small.jpg")).unwrap().len() < fs::metadata(here.join("photo.jpg")).unwrap().len());
    let json = forebay(here, "convert photo.jpg q.webp --quality 80 --verify --json").json();
    assert_eq!((&json["encoding"], &json["lossless"]), (&"webp-80".into(), &false.into()));
    assert!(json["largest_difference"].as_u64().unwrap() > 0);
}

#[test]
fn a_folder_there_and_back() {
    let folder = workspace(12);
    let here = folder.path();
    fs::write(here.join("photos/notes.txt"), "not an image").unwrap();
    let done = forebay(here, "convert photos l3 --mode dense --verify --threads 2 --json").json();
    assert_keys(
        &done,
        "input output encoding lossless files converted reused skipped ignored animated bytes_in bytes_out ratio \
         pixel_bytes seconds pixel_bytes_per_second verified largest_difference skipped_samples",
    );
    assert_eq!((&done["converted"], &done["reused"], &done["ignored"]), (&12.into(), &0.into(), &1.into()));
    assert_eq!((&done["encoding"], &done["largest_difference"]), (&"l3-dense".into(), &0.into()));
    fs::remove_file(here.join("photos/notes.txt")).unwrap();
    assert_eq!(pixels(&here.join("l3")), pixels(&here.join("photos")));
    let (first, _) = files(&here.join("l3")).pop_first().unwrap();
    fs::remove_file(here.join("l3").join(first)).unwrap();
    let again = forebay(here, "convert photos l3 --mode dense");
    assert!(again.text().contains("images  1 converted, 11 reused\n"), "{again:?}");
    forebay(here, "convert l3 png --to png-fast --verify").text();
    assert_eq!(pixels(&here.join("png")), pixels(&here.join("photos")));
    assert!(files(&here.join("l3")).keys().all(|path| path.extension().unwrap() == "l3"), "no temporary file stays");
    // What was converted can be trained from as it is.
    let loaded = forebay(here, "load cv --data l3 --json").json();
    assert_eq!(loaded["samples"], 12);
}

/// Whatever the format keeps of how it was written: all qualities, modes and efforts are told apart.
#[test]
fn what_was_written_otherwise_is_not_kept() {
    let folder = workspace(3);
    let here = folder.path();
    for (before, after) in [
        ("l3-dense", "l3-fast"),
        ("jpeg-90", "jpeg-91"),
        ("l3-fast", "l3-fast-rows-16"),
        ("webp-80", "webp-60"),
        ("webp-lossless", "webp-80"),
        ("png-fast", "png"),
    ] {
        forebay(here, &format!("convert photos {before} --to {before}")).text();
        let written = files(&here.join(before));
        let (last, _) = written.last_key_value().unwrap();
        // Nothing is written beside what is refused, either.
        fs::remove_file(here.join(before).join(last)).unwrap();
        let left = files(&here.join(before));
        let refused = forebay(here, &format!("convert photos {before} --to {after}"));
        let (first, _) = left.first_key_value().unwrap();
        let message = format!(
            "error: `{before}/{}` and 1 more already exist, and were not written as `{after}`\nhint: pass ",
            first.display()
        );
        assert!(refused.error(2).starts_with(&message) && refused.stderr.contains("--overwrite"), "{refused:?}");
        assert_eq!(files(&here.join(before)), left);
        let kept = forebay(here, &format!("convert photos {before} --to {before}"));
        assert!(kept.text().contains("images  1 converted, 2 reused\n"), "{kept:?}");
        assert_eq!(files(&here.join(before)), written);
        let anew = forebay(here, &format!("convert photos {before} --to {after} --overwrite"));
        assert!(anew.text().contains("images  3 converted\n"), "{anew:?}");
        forebay(here, &format!("convert photos {before} --to {after}")).text();
        // An overwrite that was stopped: the first are new, the last is old.
        fs::write(here.join(before).join(last), &written[last]).unwrap();
        let refused = forebay(here, &format!("convert photos {before} --to {after}"));
        assert!(
            refused.error(2).starts_with(&format!("error: `{before}/{}` already exists", last.display())),
            "{refused:?}"
        );
    }
    // What a power failure may leave is no picture.
    forebay(here, "convert photos qoi --to qoi").text();
    let (first, _) = files(&here.join("qoi")).pop_first().unwrap();
    fs::write(here.join("qoi").join(first), "").unwrap();
    let refused = forebay(here, "convert photos qoi --to qoi");
    assert!(refused.error(2).contains("was not written as `qoi`"), "{refused:?}");
}

#[test]
fn requests_that_cannot_be_met() {
    let folder = workspace(1);
    let here = folder.path();
    photo(here);
    forebay(here, "convert photo.jpg photo.l3").text();
    let refused = |arguments: &str, message: &str| {
        let ran = forebay(here, arguments);
        assert!(ran.error(2).starts_with(message), "{arguments}: {ran:#?}");
    };
    refused("convert photo.jpg photo.l3", "error: `photo.l3` exists already\nhint: pass `--overwrite`");
    refused(
        "convert photo.jpg photo.gif",
        "error: `photo.gif` has no extension of a format that Forebay writes\nhint: ",
    );
    refused("convert photo.jpg photo", "error: `photo` has no extension of a format");
    refused("convert photo.jpg photo.pbm", "error: `photo.pbm` has no extension of a format");
    refused(
        "convert photo.jpg a.png --mode fast",
        "error: the extension of `a.png` is for png, but `l3-fast` is l3\nhint: ",
    );
    refused("convert photo.jpg a.l3 --quality 90", "error: l3 is lossless and has no quality\nhint: ");
    refused(
        "convert photo.jpg a.png --strip-rows 16",
        "error: the extension of `a.png` is for png, but `l3-fast-rows-16`",
    );
    refused(
        "convert photo.jpg a.l3 --mode classic --strip-rows 16",
        "error: the strips of L3 classic are as high as its patches\nhint: omit `--strip-rows`",
    );
    forebay(here, "convert photo.jpg strips.l3 --mode dense --strip-rows 16 --verify").text();
    assert_eq!(forebay(here, "inspect strips.l3 --json").json()["l3"]["strip_rows"], 16);
    refused("convert photo.jpg photos", "error: `photos` is a folder\nhint: name the image: `photos/photo.l3`");
    let before = fs::read(here.join("photo.l3")).unwrap();
    forebay(here, "convert photo.jpg photo.l3 --mode dense --overwrite").text();
    assert_ne!(fs::read(here.join("photo.l3")).unwrap(), before);

    let samples: Vec<u16> = (0..40 * 30).map(|index| index * 54).collect();
    let deep = Tensor::from_elements(&[40, 30, 1], &samples).unwrap();
    fs::write(here.join("deep.png"), encode(deep.view(), &"png".parse().unwrap()).unwrap()).unwrap();
    refused("convert deep.png deep.qoi", "error: `deep.png` has 16 bits per sample, and qoi holds 8\nhint: ");
    forebay(here, "convert deep.png deep.qoi --depth 8 --verify").text();
    forebay(here, "convert deep.png deep.l3 --verify").text();
    assert_eq!(read(here, "deep.l3"), deep);
}

#[test]
fn damaged_pictures_are_named() {
    let folder = workspace(4);
    let here = folder.path();
    photo(here);
    forebay(here, "convert photo.jpg whole.l3 --mode dense").text();
    let whole = fs::read(here.join("whole.l3")).unwrap();
    fs::write(here.join("cut.l3"), &whole[..whole.len() / 2]).unwrap();
    let failed = forebay(here, "convert cut.l3 cut.png");
    assert!(
        failed.error(1).starts_with("error: `cut.l3` cannot be decoded: l3 data is truncated at byte `"),
        "{failed:?}"
    );
    assert!(!here.join("cut.png").exists() && !here.join(".forebay-cut.png.partial").exists());

    fs::copy(here.join("cut.l3"), here.join("photos/cut.l3")).unwrap();
    let failed = forebay(here, "convert photos out --to png-fast");
    assert!(failed.error(1).contains("photos/cut.l3` cannot be decoded"), "{failed:?}");
    assert!(failed.stderr.contains("\nhint: pass --on-error skip to skip and list such images"), "{failed:?}");
    let skipped = forebay(here, "convert photos out --to png-fast --on-error skip");
    assert!(skipped.text().contains("1 sample was skipped\n- `photos/cut.l3` cannot be decoded"), "{skipped:?}");
    assert_eq!(files(&here.join("out")).len(), 4);
}

fn problems(ran: &Ran) -> (&str, Option<i32>) {
    (ran.stdout.split("\nProblems\n").nth(1).unwrap_or(""), ran.code)
}

#[test]
fn an_l3_is_inspected() {
    let folder = workspace(1);
    let here = folder.path();
    // Of several strips.
    let pixels: Vec<u8> =
        (0..600 * 700 * 3_u32).map(|index| (index / 3 % 700 / 4 + index % 7919 * 31 % 5) as u8).collect();
    let picture = Tensor::from_elements(&[600, 700, 3], &pixels).unwrap();
    for mode in ["fast", "dense", "classic"] {
        let name = format!("{mode}.l3");
        let file = encode(picture.view(), &format!("l3-{mode}").parse().unwrap()).unwrap();
        fs::write(here.join(&name), &file).unwrap();
        let found = forebay(here, &format!("inspect {name} --verify"));
        for line in [
            "format       l3\n",
            &format!("mode         {mode}\n"),
            "colors       transform ",
            "predictor    ",
            " bits per pixel\n",
        ] {
            assert!(found.text().contains(line), "{line}: {found:?}");
        }
        assert!(
            found.stdout.ends_with("verified     every checksum is right, every pixel could be decoded\n"),
            "{found:?}"
        );
        let json = forebay(here, &format!("inspect {name} --json")).json();
        assert_keys(&json["l3"], "mode released_layout color_transform predictor strip_rows strips");
        let strips = json["l3"]["strips"].as_array().unwrap();
        assert!(strips.len() >= 3 && strips.iter().all(|strip| strip["bytes"].as_u64().unwrap() > 0));

        let mut damaged = file;
        let offset = damaged.len() - 64 - 5;
        damaged[offset] ^= 1;
        fs::write(here.join(&name), damaged).unwrap();
        let found = forebay(here, &format!("inspect {name} --verify"));
        let (listed, code) = problems(&found);
        assert_eq!((code, listed.lines().filter(|line| line.starts_with("- ")).count()), (Some(1), 1), "{found:?}");
        assert!(shape(listed).contains(&format!("checksum of strip `{}` is", "#")), "{found:?}");
    }
    photo(here);
    assert_eq!(forebay(here, "inspect photo.jpg --json").json()["l3"], serde_json::Value::Null);
}

#[test]
fn pictures_can_be_kept_as_l3() {
    let folder = workspace(10);
    let here = folder.path();
    let mut loads = Vec::new();
    for strategy in ["decoded", "decoded+l3-fast", "decoded+l3-dense", "resized+l3-dense"] {
        let built =
            forebay(here, &format!("build cv --data photos --strategy {strategy} --shards 2 -o {strategy} --json"));
        let loaded = forebay(here, &format!("load {strategy} --batch-size 5 --json")).json();
        assert_eq!(loaded["strategy"], strategy);
        loads.push((loaded["samples"].clone(), loaded["skipped"].clone(), loaded["batch"].clone()));
        if strategy != "decoded" {
            let bytes = built.json()["bytes"].as_u64().unwrap();
            let raw: u64 = files(&here.join("decoded")).values().map(|file| file.len() as u64).sum();
            assert!(bytes < raw, "{strategy}");
        }
    }
    assert!(loads.iter().all(|load| *load == loads[0]), "{loads:?}");
    let profile = forebay(
        here,
        "profile cv --data photos --seconds 0 --samples 6 --runs 1 --encoding l3-fast --encoding l3-dense --json",
    );
    let strategies = profile.json();
    let names: Vec<&str> =
        strategies["strategies"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    for name in ["decoded+l3-fast", "decoded+l3-dense", "resized+l3-fast", "resized+l3-dense"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(strategies["strategies"].as_array().unwrap().iter().all(|one| one["lossy"] == false));
}
