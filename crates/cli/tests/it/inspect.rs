//! `inspect` of every format that is read, and of what is not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::data::data_folder;
use crate::support::{assert_keys, files, forebay, workspace};

/// Files of a domain, in `name` below `here`; the first of them.
fn made(here: &Path, domain: &str, extension: &str) -> PathBuf {
    forebay(here, &format!("demo --domain {domain} --data-only --samples 3 --folder {domain}")).text();
    let is = |path: &PathBuf| path.extension().is_some_and(|found| found == extension);
    let (first, _) = files(&here.join(domain)).into_iter().find(|(path, _)| is(path)).unwrap();
    Path::new(domain).join(first)
}

fn found(here: &Path, path: &Path, kind: &str) -> Value {
    let found = forebay(here, &format!("inspect {} --json", path.display())).json();
    assert_eq!(found["kind"], kind, "{found}");
    assert_eq!(found["bytes"], fs::metadata(here.join(path)).unwrap().len());
    let text = forebay(here, &format!("inspect {}", path.display()));
    assert!(text.text().contains(path.to_str().unwrap()), "{text:?}");
    found
}

#[test]
fn audio() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (format, lossless) in [("flac", true), ("mp3", false)] {
        let path = made(here, format, format);
        let found = found(here, &path, "audio");
        assert_keys(&found, "path format bytes sample_rate channels samples seconds verified problems");
        assert_eq!((&found["format"], &found["channels"]), (&json!(format), &json!(1)));
        let samples = found["samples"].as_f64().unwrap();
        let seconds = found["seconds"].as_f64().unwrap();
        assert!((samples / found["sample_rate"].as_f64().unwrap() - seconds).abs() < 1e-9 && seconds > 0.5, "{found}");
        let verified = forebay(here, &format!("inspect {} --verify", path.display()));
        assert!(verified.text().contains("every sample could be decoded"), "{verified:?}");
        // What was decoded is as long as the header says.
        let json = forebay(here, &format!("inspect {} --verify --json", path.display())).json();
        assert_eq!(json["samples"], found["samples"]);
        let whole = fs::read(here.join(&path)).unwrap();
        let cut = here.join(format!("cut.{format}"));
        fs::write(&cut, &whole[..whole.len() / 2 + 7]).unwrap();
        let damaged = forebay(here, &format!("inspect cut.{format} --verify"));
        assert_eq!(damaged.code, Some(1));
        assert!(damaged.stdout.contains("\nProblems\n- "), "{damaged:?}");
        // The frames of an MP3 are all looked at; of a FLAC only its header is.
        assert_eq!(forebay(here, &format!("inspect cut.{format}")).code, Some(i32::from(!lossless)));
    }
}

#[test]
fn arrays() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let path = made(here, "synthetic", "npy");
    let found_npy = found(here, &path, "arrays");
    assert_eq!((&found_npy["format"], &found_npy["arrays"][0]["dtype"]), (&json!("npy"), &json!("float32")));
    let elements: u64 =
        found_npy["arrays"][0]["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap()).product();
    assert_eq!(elements, 40_000);
    let content = fs::read(here.join(&path)).unwrap();
    fs::write(here.join("cut.npy"), &content[..content.len() - 4]).unwrap();
    let cut = forebay(here, "inspect cut.npy");
    assert!(cut.error(1).starts_with("error: `cut.npy` is damaged: float32["), "{cut:?}");
    let strange = String::from_utf8_lossy(&content[..128]).replace("'<f4'", "'<c8'");
    fs::write(here.join("strange.npy"), [&b"\x93"[..], &strange.as_bytes()["\u{fffd}".len()..]].concat()).unwrap();
    let strange = forebay(here, "inspect strange.npy");
    assert!(strange.error(1).contains("elements of type `<c8` is not supported"), "{strange:?}");

    let path = made(here, "nilm", "hdf5");
    let found_hdf5 = found(here, &path, "arrays");
    let arrays = found_hdf5["arrays"].as_array().unwrap();
    let names: Vec<&str> = arrays.iter().map(|array| array["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"voltage") && names.contains(&"current1"), "{found_hdf5}");
    assert!(arrays.iter().all(|array| array["shape"][0].as_u64().unwrap() > 1000), "{found_hdf5}");

    let mut idx = vec![0, 0, 0x0B, 2, 0, 0, 0, 3, 0, 0, 0, 5];
    idx.extend_from_slice(&[7; 30]);
    fs::write(here.join("train-images-idx2-short"), &idx).unwrap();
    let found_idx = found(here, Path::new("train-images-idx2-short"), "arrays");
    assert_eq!(found_idx["arrays"], json!([{"name": "", "dtype": "int16", "shape": [3, 5]}]));
    assert!(found_idx["notices"][0].as_str().unwrap().contains("no pipeline reads IDX"));
    // One byte less, and it is none.
    fs::write(here.join("short-idx"), &idx[..41]).unwrap();
    assert!(forebay(here, "inspect short-idx").error(2).contains("` is unknown"));
}

#[test]
fn pages_and_texts() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let path = made(here, "nlp", "html");
    let page = found(here, &path, "text");
    assert_eq!(page["format"], "html");
    assert!(page["words"].as_u64().unwrap() > 20 && page["letters"].as_u64() > page["words"].as_u64(), "{page}");
    fs::write(here.join("page"), "\u{feff}\n<!DOCTYPE html><title>no</title><p>one two <b>three</b></p>").unwrap();
    let page = found(here, Path::new("page"), "text");
    assert_eq!((&page["format"], &page["words"]), (&json!("html"), &json!(3)));
    fs::write(here.join("table.csv"), "a,b\n1,2\n3,4").unwrap();
    let table = found(here, Path::new("table.csv"), "text");
    assert_eq!((&table["format"], &table["lines"], &table["words"]), (&json!("text"), &json!(3), &Value::Null));
    // A page that was saved as a picture is none.
    fs::write(here.join("page.jpg"), "404 not found").unwrap();
    assert!(forebay(here, "inspect page.jpg").error(2).contains("` is unknown"));
}

#[test]
fn shards() {
    let folder = workspace(9);
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy concatenated --shards 2 -o dataset").text();
    forebay(here, "export dataset tars").text();
    let tar = found(here, Path::new("tars/shard-000000.tar"), "tar");
    let samples = tar["samples"].as_u64().unwrap();
    assert!((1..9).contains(&samples), "{tar}");
    let members = tar["members"].as_array().unwrap();
    let counts: Vec<_> =
        members.iter().map(|member| (member["name"].as_str().unwrap(), member["files"].as_u64().unwrap())).collect();
    assert_eq!(counts, [("cls", samples), ("jpg", samples)]);
    let whole = fs::read(here.join("tars/shard-000000.tar")).unwrap();
    fs::write(here.join("cut.tar"), &whole[..whole.len() / 2]).unwrap();
    let cut = forebay(here, "inspect cut.tar");
    assert_eq!(cut.code, Some(1));
    assert!(cut.stdout.contains("\nProblems\n- "), "{cut:?}");
    fs::write(here.join("some.tar.gz"), [0x1F, 0x8B, 8, 0]).unwrap();
    assert!(forebay(here, "inspect some.tar.gz").error(2).contains("is compressed"));
    let index = found(here, Path::new("dataset/shard-00000.tfrecord.idx"), "index");
    assert_eq!(index["shard_bytes"], fs::metadata(here.join("dataset/shard-00000.tfrecord")).unwrap().len());
    fs::remove_file(here.join("dataset/dataset.json")).unwrap();
    let shards = forebay(here, "inspect tars --json").json();
    assert_eq!(
        (&shards["kind"], &shards["formats"][0]["format"], &shards["formats"][0]["files"]),
        (&json!("files"), &json!("tar"), &json!(2))
    );
    assert_eq!((&shards["formats"][1]["format"], &shards["files"]), (&json!("index"), &json!(4)));
    let index = found(here, Path::new("tars/shard-000000.idx"), "index");
    assert_eq!((&index["records"], &index["shard_bytes"]), (&json!(samples), &json!(whole.len())));
    fs::write(here.join("tars/shard-000000.tar"), &whole[..whole.len() / 2]).unwrap();
    assert!(forebay(here, "inspect tars/shard-000000.idx").error(1).contains("is not an index"));
    fs::write(here.join("tars/shard-000000.tar"), &whole).unwrap();
    assert_eq!(shards["formats"][0]["first"], format!("{samples} samples of cls, jpg"));
}

#[test]
fn what_is_not_read_is_named() {
    let folder = workspace(3);
    let here = folder.path();
    for (name, content, what) in [
        ("a.gif", &b"GIF89a\x01\0\x01\0"[..], "gif: GIF is not supported\nhint: convert the file to JPEG"),
        ("a.jpg", b"GIF89a\x01\0\x01\0", "gif: GIF is not supported"),
        ("a.tiff", b"II*\0\x08\0\0\0", "tiff: TIFF is not supported"),
        ("a.wav", b"RIFF\x24\0\0\0WAVEfmt ", "wav data is truncated at byte `16`"),
        ("a.ogg", b"OggS\0\x02", "ogg: this format is not supported\nhint: convert the file to FLAC, MP3 or WAV"),
    ] {
        fs::write(here.join(name), content).unwrap();
        let refused = forebay(here, &format!("inspect {name}"));
        assert!(refused.error(1).starts_with(&format!("error: `{name}`: {what}")), "{refused:?}");
    }
    fs::write(here.join("empty.flac"), "").unwrap();
    assert!(forebay(here, "inspect empty.flac").error(1).contains("`empty.flac` is empty"));
    fs::copy(here.join("a.gif"), here.join("photos/a.gif")).unwrap();
    fs::write(here.join("photos/notes.txt"), "not an image").unwrap();
    let found = forebay(here, "inspect photos");
    assert!(
        found.text().contains("images    3\n") && found.stdout.contains("not read  gif: no pipeline reads them"),
        "{found:?}"
    );
    let json = forebay(here, "inspect photos --json").json();
    assert_eq!((&json["kind"], &json["problems"]), (&json!("images"), &json!([])));
    let supported: Vec<_> = json["formats"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["format"].as_str().unwrap(), one["supported"] == true))
        .collect();
    assert_eq!(supported, [("jpeg", true), ("text", true), ("gif", false)]);
}

#[test]
fn nothing_is_called_damaged_or_whole_that_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let text = |letter: fn(u16) -> [u8; 2]| "\u{feff}a text\n".encode_utf16().flat_map(letter).collect::<Vec<_>>();
    for (name, content) in [("little.txt", text(u16::to_le_bytes)), ("big.txt", text(u16::to_be_bytes))] {
        fs::write(here.join(name), content).unwrap();
        // Its first two bytes pass for the start of MPEG audio.
        assert_eq!(forebay(here, &format!("inspect {name} --json")).json()["format"], "text", "{name}");
    }
    let wave = [
        &b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\x08\0\0\0"[..],
        &[0; 8],
    ]
    .concat();
    fs::write(here.join("whole.wav"), &wave).unwrap();
    assert_eq!(forebay(here, "inspect whole.wav --json").json()["samples"], 4);
    fs::write(here.join("cut.wav"), &wave[..wave.len() - 4]).unwrap();
    let cut = forebay(here, "inspect cut.wav");
    assert!(cut.stdout.contains("ends after `4` of `8` bytes"), "{cut:?}");
    assert!(cut.stderr.starts_with("error: `cut.wav` is damaged: 1 problem found"), "{cut:?}");
    // An array that cannot be read is as whole as any.
    fs::create_dir(here.join("arrays")).unwrap();
    let header = b"\x93NUMPY\x01\0v\0{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }";
    fs::write(here.join("arrays/big.npy"), [&header[..], &[b' '; 60], b"\n\0\0\0\0"].concat()).unwrap();
    let foreign = forebay(here, "inspect arrays");
    assert!(foreign.stderr.starts_with("error: `arrays` has 1 problem\n"), "{foreign:?}");
}

#[test]
fn a_folder_of_everything_and_of_links_that_lead_nowhere() {
    let folder = workspace(4);
    let here = folder.path();
    for (domain, extension) in
        [("flac", "flac"), ("mp3", "mp3"), ("nlp", "html"), ("synthetic", "npy"), ("nilm", "hdf5")]
    {
        let path = made(here, domain, extension);
        fs::copy(here.join(&path), here.join("photos").join(path.file_name().unwrap())).unwrap();
    }
    symlink("gone.jpg", here.join("photos/dangling.jpg")).unwrap();
    symlink("loop", here.join("photos/loop")).unwrap();
    symlink("nowhere/at/all", here.join("photos/folder")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(here.join("photos/pipe.jpg")).status();
    assert!(status.unwrap().success());
    for arguments in ["inspect photos --json", "inspect photos --verify --json"] {
        let ran = forebay(here, arguments);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&found["kind"], &found["dangling_links"]), (&json!("files"), &json!(2)), "{found}");
        let formats = found["formats"].as_array().unwrap();
        let names: std::collections::BTreeSet<_> = formats.iter().map(|one| one["format"].as_str().unwrap()).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["flac", "hdf5", "html", "jpeg", "mp3", "npy"], "{found}");
        assert!(formats.iter().all(|one| !one["first"].as_str().unwrap().is_empty()), "{found}");
        let problems = found["problems"].to_string();
        assert!(problems.contains("`dangling.jpg` is a link that leads nowhere: to `gone.jpg`"), "{problems}");
        assert!(problems.contains("loop"), "{problems}");
    }
    let text = forebay(here, "inspect photos");
    assert!(text.stdout.contains("links   2 lead nowhere\n"), "{text:?}");
    assert!(text.stdout.contains("flac") && text.stdout.contains(" Hz, 1 channel, "), "{text:?}");
}

/// Every prefix of every format, and what follows it scrambled: an answer or an error, soon.
#[test]
fn strange_files_come_to_an_end() {
    let folder = workspace(1);
    let here = folder.path();
    forebay(here, "build cv --data photos --strategy concatenated --shards 1 -o dataset").text();
    forebay(here, "export dataset tars").text();
    let mut seeds = vec![PathBuf::from("tars/shard-000000.tar"), PathBuf::from("dataset/shard-00000.tfrecord")];
    for (domain, extension) in
        [("flac", "flac"), ("mp3", "mp3"), ("nlp", "html"), ("synthetic", "npy"), ("nilm", "hdf5")]
    {
        seeds.push(made(here, domain, extension));
    }
    for seed in seeds {
        let whole = fs::read(here.join(&seed)).unwrap();
        let extension = seed.extension().unwrap().to_str().unwrap();
        for cut in [1, 5, 11, 100, 511, 600, 3000] {
            let scrambled: Vec<u8> =
                whole[cut.min(whole.len())..].iter().map(|byte| byte ^ 0x5A).take(100_000).collect();
            for (rest, name) in [(&b""[..], "cut"), (&scrambled, "scrambled")] {
                let file = format!("{name}.{extension}");
                fs::write(here.join(&file), [&whole[..cut.min(whole.len())], rest].concat()).unwrap();
                let begun = Instant::now();
                let ran = forebay(here, &format!("inspect {file}"));
                assert!(
                    matches!(ran.code, Some(0..=2)) && !ran.stderr.contains("panicked"),
                    "{seed:?} {cut} {name}: {ran:?}"
                );
                assert!(begun.elapsed() < Duration::from_secs(20), "{seed:?} {cut} {name}");
            }
        }
    }
}

/// Files of other people.
#[test]
fn real_files() {
    let Some(data) = data_folder("") else { return };
    for (name, kind) in [
        ("audio-flac", "audio"),
        ("audio-mp3", "audio"),
        ("text-html", "text"),
        ("golden", "arrays"),
        ("images-jpeg", "image"),
    ] {
        let wanted = ["flac", "mp3", "html", "npy", "jpg"];
        let is = |path: &&PathBuf| path.extension().is_some_and(|found| wanted.iter().any(|one| found == *one));
        let found = files_below(&data.join(name));
        for path in found.iter().filter(is).filter(|path| !path.to_string_lossy().contains("conformance")).take(12) {
            let ran = forebay(&data, &format!("inspect {} --json", path.display()));
            // Test benches have files that nobody reads; their errors name them.
            if ran.code == Some(0) {
                assert_eq!(ran.json()["kind"], kind, "{path:?}");
            } else {
                assert!(ran.stderr.contains(path.file_name().unwrap().to_str().unwrap()), "{ran:?}");
            }
        }
        let folder = forebay(&data, &format!("inspect {name} --json"));
        let folder: Value = serde_json::from_str(&folder.stdout).unwrap();
        assert!(folder["files"].as_u64().unwrap() > 0, "{folder}");
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn a_parquet_file_shows_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let whole = include_bytes!("../../../record/tests/golden/parquet/snappy.parquet");
    fs::write(here.join("some.parquet"), whole).unwrap();
    let parquet = found(here, Path::new("some.parquet"), "parquet");
    assert_eq!((parquet["rows"].as_u64(), parquet["row_groups"].as_u64()), (Some(24), Some(3)));
    let columns = parquet["columns"].as_array().unwrap();
    assert!(columns.iter().any(|column| column["name"] == "image.bytes" && column["type"] == "binary"), "{parquet}");
    assert!(columns.iter().any(|column| column["name"] == "boxes" && column["supported"] == false), "{parquet}");
    let shown = forebay(here, "inspect some.parquet --verify");
    assert!(shown.text().contains("list<list<float32>> (not read)"), "{shown:?}");
    fs::write(here.join("cut.parquet"), &whole[..whole.len() - 5]).unwrap();
    let cut = forebay(here, "inspect cut.parquet");
    assert_eq!(cut.code, Some(1));
    assert!(cut.stdout.contains("does") && cut.stderr.starts_with("error: `cut.parquet` is damaged: "), "{cut:?}");
}

#[test]
fn an_arrow_file_shows_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let whole = include_bytes!("../../../record/tests/golden/arrow/unread.arrow");
    fs::write(here.join("some.arrow"), whole).unwrap();
    let stream = found(here, Path::new("some.arrow"), "arrow");
    assert_eq!((stream["rows"].as_u64(), stream["batches"].as_u64()), (Some(24), Some(1)));
    assert_eq!(stream["format"], "stream");
    let columns = stream["columns"].as_array().unwrap();
    assert!(columns.iter().any(|column| column["name"] == "id" && column["bytes"] == 192), "{stream}");
    assert!(columns.iter().any(|column| column["name"] == "time" && column["supported"] == false), "{stream}");
    let shown = forebay(here, "inspect some.arrow --verify");
    assert!(shown.text().contains("list<list<float32>> (not read)"), "{shown:?}");
    let lz4 = include_bytes!("../../../record/tests/golden/arrow/lz4.arrow");
    fs::write(here.join("some.feather"), lz4).unwrap();
    assert_eq!(found(here, Path::new("some.feather"), "arrow")["format"], "file");
    fs::write(here.join("cut.arrow"), &whole[..whole.len() - 8]).unwrap();
    let cut = forebay(here, "inspect cut.arrow");
    assert_eq!(cut.code, Some(1));
    assert!(cut.stderr.starts_with("error: `cut.arrow` is damaged: "), "{cut:?}");
}
