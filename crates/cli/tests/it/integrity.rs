//! Damage through the program: found, named, and skipped where that was asked for.

use std::path::Path;

use crate::support::{forebay, workspace};

fn built(photos: usize, shards: usize) -> tempfile::TempDir {
    let folder = workspace(photos);
    let arguments = format!("build cv --data photos --strategy resized -o dataset --shards {shards}");
    forebay(folder.path(), &arguments).text();
    assert!(forebay(folder.path(), "inspect dataset --verify").text().contains("every byte is as it was built"));
    folder
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn an_edited_manifest_is_refused() {
    let folder = built(8, 1);
    let here = folder.path();
    let manifest = here.join("dataset/dataset.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("\"size\": 224"), "{text}");
    std::fs::write(&manifest, text.replace("\"size\": 224", "\"size\": 225")).unwrap();
    for command in ["inspect dataset --verify", "inspect dataset", "load dataset", "load dataset --on-error skip"] {
        let ran = forebay(here, command);
        let error = ran.error(1);
        assert!(error.contains("dataset.json` has checksum `"), "{error}");
        assert!(error.contains("hint: restore it, or build the data set again with `--overwrite`"), "{error}");
    }
    std::fs::write(&manifest, text.replace("\"version\": 2", "\"version\": 1")).unwrap();
    let error = forebay(here, "load dataset");
    assert!(
        error.error(1).contains("version 1") && error.stderr.contains("hint: build the data set again"),
        "{error:?}"
    );
}

#[test]
fn damaged_shards_fail_or_are_skipped_by_name() {
    let folder = built(12, 3);
    let here = folder.path();
    std::fs::remove_file(here.join("dataset/shard-00001.tfrecord")).unwrap();
    std::fs::write(here.join("dataset/shard-00002.tfrecord.idx"), "").unwrap();
    assert!(forebay(here, "load dataset").error(1).contains("shard-00001.tfrecord"));
    let loaded = forebay(here, "load dataset --on-error skip");
    let page = loaded.text();
    assert!(page.contains("4 samples were skipped\n"), "{page}");
    assert!(page.contains("- 4 samples: cannot open") && page.contains("- no samples: `"), "{page}");
    let json = forebay(here, "load dataset --on-error skip --json").json();
    assert_eq!((&json["samples"], &json["skipped"]), (&8.into(), &4.into()), "{json:#}");
    let listed = json["skipped_samples"].as_array().unwrap();
    let lost = listed.iter().find(|skipped| skipped["key"] == "shard-00001.tfrecord").unwrap();
    assert_eq!(lost["samples"], 4);
    let found = forebay(here, "inspect dataset --verify");
    assert_eq!(found.code, Some(1));
    assert!(
        found.stdout.contains("shard-00001.tfrecord`") && found.stdout.contains("shard-00002.tfrecord.idx"),
        "{found:?}"
    );

    for shard in [0, 2] {
        edit(&here.join(format!("dataset/shard-0000{shard}.tfrecord")), |bytes| bytes.truncate(7));
    }
    let nothing = forebay(here, "load dataset --on-error skip");
    assert!(
        nothing.error(1).contains("not one of 12 samples could be read and processed; the first, `shard-0000"),
        "{nothing:?}"
    );
}

#[test]
fn a_shard_over_another_does_not_load_twice() {
    let folder = built(8, 2);
    let here = folder.path();
    let shard = |number| here.join(format!("dataset/shard-0000{number}.tfrecord"));
    let bytes = [0, 1].map(|number| std::fs::metadata(shard(number)).unwrap().len());
    std::fs::copy(shard(0), shard(1)).unwrap();
    if bytes[0] < bytes[1] {
        edit(&shard(1), |content| content.resize(bytes[1] as usize, 0));
    }
    edit(&shard(1), |content| content.truncate(bytes[1] as usize));
    assert!(forebay(here, "load dataset").error(1).contains("shard-00001.tfrecord"));
    let json = forebay(here, "load dataset --on-error skip --json").json();
    assert_eq!((&json["samples"], &json["skipped"]), (&4.into(), &4.into()), "{json:#}");
    assert_eq!(forebay(here, "inspect dataset --verify").code, Some(1));
}

#[test]
fn a_cut_tar_fails_or_is_skipped() {
    let folder = built(8, 2);
    let here = folder.path();
    forebay(here, "export dataset tars").text();
    let pipeline = "name = \"tars\"\n[source]\nformat = \"tar\"\nfield = \"cls\"\n[[source.fields]]\nfield = \"cls\"\nfrom = \"cls\"\ntype = \"int\"\n";
    std::fs::write(here.join("tars.toml"), pipeline).unwrap();
    assert_eq!(forebay(here, "load tars.toml --data tars --json").json()["samples"], 8);
    let tar = here.join("tars/shard-000000.tar");
    edit(&tar, |bytes| bytes.truncate(bytes.len() / 2));
    let failed = forebay(here, "load tars.toml --data tars");
    assert!(failed.error(1).contains("the tar is damaged"), "{failed:?}");
    assert!(failed.stderr.contains("hint: pass --on-error skip"), "{failed:?}");
    let json = forebay(here, "load tars.toml --data tars --on-error skip --json").json();
    let samples = json["samples"].as_u64().unwrap();
    assert!((4..8).contains(&samples), "{json:#}");
    assert!(json["skipped_samples"][0]["samples"].is_null(), "{json:#}");
    let json =
        forebay(here, "build tars.toml --data tars --on-error skip --strategy concatenated -o again --json").json();
    assert_eq!((&json["samples"], &json["skipped"]), (&samples.into(), &1.into()), "{json:#}");
}
