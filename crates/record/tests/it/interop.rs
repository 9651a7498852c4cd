//! TensorFlow reads what is written here, and what TensorFlow writes is read here. What it wrote once is in the golden files; this is for those
//! who have it: `FOREBAY_TENSORFLOW` names a Python that can import it, as `make test-tensorflow` does, which installs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_record::{Options, Reader, ShardCompressor, Writer};

/// Reads shards, and writes each of them again as TensorFlow compresses it. The arguments are names of files, each with its compression before it.
const SCRIPT: &str = "
import hashlib, sys
import tensorflow as tf
for compression, path in zip(sys.argv[1::2], sys.argv[2::2]):
    records = [record.numpy() for record in tf.data.TFRecordDataset(path, compression_type=compression)]
    print(hashlib.sha256(b''.join(records)).hexdigest(), len(records))
    with tf.io.TFRecordWriter(path + '.theirs', tf.io.TFRecordOptions(compression_type=compression)) as writer:
        for record in records:
            writer.write(record)
";

/// A Python that has TensorFlow. One that was named must have it; otherwise none is needed.
fn tensorflow() -> Option<PathBuf> {
    let named = std::env::var_os("FOREBAY_TENSORFLOW");
    let python = PathBuf::from(named.clone().unwrap_or("python3".into()));
    let imports = Command::new(&python).args(["-c", "import tensorflow"]).output();
    if imports.as_ref().is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    assert!(
        named.is_none(),
        "`{}`, which FOREBAY_TENSORFLOW names, cannot import tensorflow: {imports:?}",
        python.display()
    );
    eprintln!("skipped: `{}` cannot import tensorflow; `make test-tensorflow` installs it", python.display());
    None
}

fn write(path: &Path, name: &str, records: &[Vec<u8>]) {
    let mut writer = Writer::new(ShardCompressor::new(Vec::new(), name.parse().unwrap()).unwrap());
    for record in records {
        writer.write(record).unwrap();
        writer.output().end_record().unwrap();
    }
    std::fs::write(path, writer.finish().unwrap().finish().unwrap().0).unwrap();
}

#[test]
fn tensorflow_reads_ours_and_we_read_its() {
    use sha2::{Digest, Sha256};

    let Some(python) = tensorflow() else { return };
    let records: Vec<Vec<u8>> =
        (0..400_u32).map(|number| (0..9_000 + number).map(|at| (at * number / 50) as u8).collect()).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut arguments: Vec<PathBuf> = Vec::new();
    for algorithm in ["gzip", "zlib"] {
        for form in ["6", "1", "6-filtered", "6-huffman-only", "6-rle", "6-fixed", "9-window-10-memory-1"] {
            for scope in ["block", "stream"] {
                let name = format!("{algorithm}-{form}-{scope}");
                let path = folder.path().join(&name);
                write(&path, &name, &records);
                arguments.extend([algorithm.to_uppercase().into(), path]);
            }
        }
    }
    let output = Command::new(python).args(["-c", SCRIPT]).args(&arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let digits: Vec<String> = Sha256::digest(records.concat()).iter().map(|byte| format!("{byte:02x}")).collect();
    let digest = digits.concat();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().count(), arguments.len() / 2);
    assert!(said.lines().all(|line| line == format!("{digest} 400")), "{said}");
    for path in arguments.iter().skip(1).step_by(2) {
        let theirs = std::fs::read(path.with_extension("theirs")).unwrap();
        let read = Reader::new(&theirs[..], "theirs", Options::default()).unwrap();
        assert!(read.map(|record| record.unwrap().data).eq(records.iter().map(|record| &record[..])), "{path:?}");
    }
}
