//! Pictures from one format to another.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use forebay_codec::Tensor;
use forebay_codec::image::{Channels, DecodeOptions, Decoder, Depth, Encoding, Format, encode};
use forebay_engine::convert::{Conversion, ConvertOptions};
use forebay_engine::load::OnError;

use crate::support::{photo, photos};

fn options(encoding: &str) -> ConvertOptions {
    ConvertOptions {
        encoding: encoding.parse().unwrap(),
        depth: Depth::AsStored,
        verify: false,
        overwrite: false,
        threads: 2,
        memory_bytes: 1 << 30,
        on_error: OnError::Fail,
    }
}

fn decode(bytes: &[u8]) -> Tensor {
    let options = DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..DecodeOptions::default() };
    Decoder::new().decode(bytes, &options).unwrap()
}

/// The pixels of every picture below `folder`, by its name without extension.
fn pixels(folder: &Path) -> BTreeMap<String, Tensor> {
    let mut found = BTreeMap::new();
    for class in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        for path in fs::read_dir(class).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.strip_prefix(folder).unwrap().with_extension("").display().to_string();
            found.insert(name, decode(&fs::read(&path).unwrap()));
        }
    }
    found
}

fn deep_picture() -> Tensor {
    let samples: Vec<u16> = (0..20 * 30 * 3).map(|index| index * 36 + 5).collect();
    Tensor::from_elements(&[20, 30, 3], &samples).unwrap()
}

#[test]
fn a_tree_goes_there_and_back_with_the_same_pixels() {
    let folder = photos(12);
    let expected = pixels(folder.path());
    let other = tempfile::tempdir().unwrap();
    let mut from = folder.path().to_owned();
    for encoding in ["l3-fast", "png-fast", "l3-dense", "qoi", "l3-classic", "webp-lossless", "bmp", "pnm"] {
        let to = other.path().join(encoding);
        let options = ConvertOptions { verify: true, ..options(encoding) };
        let conversion = Conversion::of_folder(&from, &to, options.encoding.format()).unwrap();
        let done = conversion.run(&options, &()).unwrap();
        assert_eq!((done.converted, done.reused, done.largest_difference), (12, 0, Some(0)), "{encoding}");
        assert_eq!(pixels(&to), expected, "{encoding}");
        from = to;
    }
    let lossy = ConvertOptions { verify: true, ..options("jpeg-60") };
    let conversion = Conversion::of_folder(&from, &other.path().join("lossy"), Format::Jpeg).unwrap();
    assert!(conversion.run(&lossy, &()).unwrap().largest_difference.unwrap() > 0);
}

#[test]
fn what_is_there_is_kept_and_checked() {
    let folder = photos(6);
    let other = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("notes.txt"), "not an image").unwrap();
    let run = |options: &ConvertOptions| {
        Conversion::of_folder(folder.path(), other.path(), Format::L3).unwrap().run(options, &())
    };
    let first = run(&options("l3-fast")).unwrap();
    assert_eq!((first.converted, first.ignored, first.skipped_samples.len()), (6, 1, 0));
    // As a killed run leaves it: one picture is missing, and half of it lies beside.
    let gone = other.path().join("ant/0000.l3");
    let whole = fs::read(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    fs::write(other.path().join("ant/.forebay-0000.l3.partial"), &whole[..20]).unwrap();
    let again = run(&options("l3-fast")).unwrap();
    assert_eq!((again.converted, again.reused), (1, 5));
    assert_eq!((again.bytes_in, again.bytes_out), (first.bytes_in, first.bytes_out));
    assert_eq!(fs::read(&gone).unwrap(), whole);
    assert!(!other.path().join("ant/.forebay-0000.l3.partial").exists());
    // Another picture in its place is found, and replaced on request.
    fs::copy(other.path().join("bee/0001.l3"), &gone).unwrap();
    assert!(run(&options("l3-fast")).is_ok());
    let verify = ConvertOptions { verify: true, ..options("l3-fast") };
    let message = run(&verify).unwrap_err().to_string();
    assert!(message.contains("0000.l3` does not hold the pixels of `"), "{message}");
    let done = run(&ConvertOptions { overwrite: true, ..verify }).unwrap();
    assert_eq!((done.converted, done.reused), (6, 0));
    assert_eq!(fs::read(&gone).unwrap(), whole);
}

#[test]
fn broken_pictures_end_the_work_or_are_skipped() {
    let folder = photos(5);
    let other = tempfile::tempdir().unwrap();
    let broken = folder.path().join("ant/broken.jpg");
    fs::write(&broken, &photo(1)[..300]).unwrap();
    let conversion = Conversion::of_folder(folder.path(), other.path(), Format::L3).unwrap();
    let message = conversion.run(&options("l3-fast"), &()).unwrap_err().to_string();
    assert!(message.contains("ant/broken.jpg` cannot be decoded: jpeg data is truncated at byte "), "{message}");
    let skip = ConvertOptions { on_error: OnError::Skip, ..options("l3-fast") };
    let done = conversion.run(&skip, &()).unwrap();
    assert_eq!((done.converted + done.reused, done.skipped_samples.len()), (5, 1));
    assert_eq!(done.skipped_samples[0].key, "ant/broken.jpg");
    assert!(!other.path().join("ant/broken.l3").exists());
    let alone = Conversion::of_file(&broken, &other.path().join("alone.l3"));
    assert!(alone.run(&skip, &()).unwrap_err().to_string().contains("not one image"));
}

#[test]
fn sixteen_bits_and_alpha_are_not_lost_silently() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("deep.png"), folder.path().join("out"));
    let png: Encoding = "png".parse().unwrap();
    fs::write(&input, encode(deep_picture().view(), &png).unwrap()).unwrap();
    let run = |options: &ConvertOptions| Conversion::of_file(&input, &output).run(options, &());
    for encoding in ["l3-fast", "l3-dense", "l3-classic", "pnm"] {
        run(&ConvertOptions { overwrite: true, verify: true, ..options(encoding) }).unwrap();
        assert_eq!(decode(&fs::read(&output).unwrap()), deep_picture(), "{encoding}");
    }
    let overwrite = ConvertOptions { overwrite: true, verify: true, ..options("qoi") };
    let message = run(&overwrite).unwrap_err().to_string();
    assert!(message.contains("has 16 bits per sample, and qoi holds 8\nhint: "), "{message}");
    run(&ConvertOptions { depth: Depth::Eight, ..overwrite }).unwrap();
    let high: Vec<u8> =
        deep_picture().data().as_chunks::<2>().0.iter().map(|&pair| (u16::from_ne_bytes(pair) >> 8) as u8).collect();
    assert_eq!(&decode(&fs::read(&output).unwrap()).data()[..], high);

    let alpha = Tensor::from_elements(&[1, 2, 2], &[1_u8, 0, 2, 255]).unwrap();
    fs::write(&input, encode(alpha.view(), &png).unwrap()).unwrap();
    let message = run(&ConvertOptions { overwrite: true, ..options("jpeg-90") }).unwrap_err().to_string();
    assert!(
        message.contains("cannot be stored as jpeg-90: ") && message.contains("\nhint: choose a format"),
        "{message}"
    );
    let done = run(&ConvertOptions { overwrite: true, verify: true, ..options("qoi") }).unwrap();
    assert_eq!(done.largest_difference, Some(0), "gray is compared with the colors it became");
}

#[test]
fn photos_are_turned_upright() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("turned.jpg"), folder.path().join("upright.l3"));
    let plain = photo(3);
    let mut turned = plain[..2].to_vec();
    // An EXIF block that says 6: turn a quarter clockwise.
    turned.extend(b"\xFF\xE1\x00\x22Exif\0\0MM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0");
    turned.extend(&plain[2..]);
    fs::write(&input, &turned).unwrap();
    let options = ConvertOptions { verify: true, ..options("l3-dense") };
    Conversion::of_file(&input, &output).run(&options, &()).unwrap();
    let upright = decode(&fs::read(&output).unwrap());
    assert_eq!(upright, decode(&turned));
    assert_eq!(upright.spec().shape.dims()[0], decode(&plain).spec().shape.dims()[1]);
}

#[test]
fn folders_that_cannot_work_are_refused() {
    let folder = photos(3);
    let error = |output: &Path| Conversion::of_folder(folder.path(), output, Format::L3).unwrap_err().to_string();
    for inside in [folder.path().to_owned(), folder.path().join("l3"), folder.path().join("ant/../new/l3")] {
        assert!(error(&inside).contains("is within `"), "{}", error(&inside));
    }
    let other = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("ant/0000.png"), photo(2)).unwrap();
    assert!(error(other.path()).starts_with("`ant/0000.jpg` and `ant/0000.png` would both become `"));
    assert!(error(&folder.path().join("ant/0000.png")).contains("is a file"));
    let empty = tempfile::tempdir().unwrap();
    fs::write(empty.path().join("notes.txt"), "nothing").unwrap();
    let message = Conversion::of_folder(empty.path(), other.path(), Format::L3).unwrap_err().to_string();
    assert!(message.contains("there are no images below `"), "{message}");
}
