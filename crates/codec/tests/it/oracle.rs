//! The same pixels as the established tools give: Pillow, and `imagecodecs` (libpng) for 16-bit color.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use forebay_codec::image::{Channels, DecodeOptions, Decoder, Depth, Format, encode};
use forebay_codec::{DType, Tensor};

use crate::data;
use crate::pictures::{encodings, picture};
use crate::variants;

/// The folders whose every image is compared.
const FOLDERS: [&str; 7] =
    ["codec", "kodak", "images-jpeg", "images-jpeg-large", "images-png-hd", "images-png-neverjpeg", "images-png-512"];

/// Pillow brings another version of libjpeg-turbo: its color conversion may round differently by one or two levels.
const JPEG_DIFFERENCE_MAX: u8 = 2;

/// One image as the oracle decoded it, or why it did not.
struct Record {
    shape: [usize; 3],
    sample_bytes: usize,
    data: Vec<u8>,
    skipped: Option<String>,
}

struct Oracle {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

/// An interpreter with Pillow, or `None` with a printed reason.
fn python() -> Option<PathBuf> {
    let python =
        std::env::var_os("FOREBAY_PYTHON").map_or_else(|| data::workspace().join(".venv/bin/python"), PathBuf::from);
    let works = Command::new(&python).args(["-c", "import numpy, PIL"]).stderr(Stdio::null()).status();
    if works.is_ok_and(|status| status.success()) {
        return Some(python);
    }
    eprintln!("skipped: `{}` cannot import numpy and PIL; set FOREBAY_PYTHON to one that can", python.display());
    None
}

impl Oracle {
    fn start() -> Option<Self> {
        let python = python()?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/oracle.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the interpreter just ran");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Some(Self { child, output })
    }

    /// The image as upright 8-bit RGB and as stored.
    fn decode(&mut self, path: &Path) -> [Record; 2] {
        writeln!(self.child.stdin.as_mut().unwrap(), "{}", path.display()).unwrap();
        [self.record(), self.record()]
    }

    fn record(&mut self) -> Record {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| fields[index].parse::<usize>().unwrap();
        let mut data = vec![0; number(5)];
        self.output.read_exact(&mut data).unwrap();
        let skipped = (fields[0] == "skip").then(|| String::from_utf8_lossy(&data).into_owned());
        Record { shape: [number(1), number(2), number(3)], sample_bytes: number(4), data, skipped }
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The largest difference of two samples.
fn difference(ours: &Tensor, theirs: &Record) -> u32 {
    let dtype = if theirs.sample_bytes == 2 { DType::U16 } else { DType::U8 };
    assert_eq!((ours.spec().shape.dims(), ours.spec().dtype), (&theirs.shape[..], dtype));
    let pairs = ours.data().iter().zip(&theirs.data);
    if dtype == DType::U8 {
        return u32::from(pairs.map(|(&a, &b)| a.abs_diff(b)).max().unwrap_or(0));
    }
    u32::from(ours.data()[..] != theirs.data[..])
}

#[derive(Default)]
struct Tally {
    exact: usize,
    near: usize,
    skipped: usize,
    failures: Vec<String>,
}

impl Tally {
    fn compare(&mut self, decoder: &mut Decoder, path: &Path, oracle: &mut Oracle) {
        let bytes = std::fs::read(path).unwrap();
        let upright = DecodeOptions::default();
        let stored = DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..upright.clone() };
        for (options, theirs) in [upright, stored].iter().zip(oracle.decode(path)) {
            if let Some(reason) = theirs.skipped {
                eprintln!("skipped: {}: {reason}", path.display());
                self.skipped += 1;
                continue;
            }
            let ours = match decoder.decode(&bytes, options) {
                Ok(ours) => ours,
                Err(error) => {
                    self.failures.push(format!("{}: {error}", path.display()));
                    continue;
                }
            };
            let lossy = Format::detect(&bytes) == Some(Format::Jpeg);
            match difference(&ours, &theirs) {
                0 => self.exact += 1,
                1..=2 if lossy => self.near += 1,
                other => self.failures.push(format!("{}: {:?} differs by {other}", path.display(), options.channels)),
            }
        }
    }

    fn finish(self, what: &str) {
        let Self { exact, near, skipped, failures } = self;
        eprintln!("{what}: {exact} exact, {near} within {JPEG_DIFFERENCE_MAX}, {skipped} without oracle");
        assert!(failures.is_empty(), "{}", failures.join("\n"));
        assert!(exact + near > 0);
    }
}

/// The only case where Pillow is not followed; see `docs/formats/images.md`.
#[test]
fn pillow_clips_sixteen_bit_gray_and_we_scale_it() {
    const SCRIPT: &str = "import sys; import numpy as np; from PIL import Image; \
        print(*np.asarray(Image.open(sys.argv[1]).convert('L')).ravel())";
    let values = [0_u16, 255, 256, 1000, 32_768, 65_535];
    let deep = Tensor::from_elements(&[1, values.len(), 1], &values).unwrap();
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, extension) in [("png", "png"), ("pnm", "pgm")] {
        let file = encode(deep.view(), &name.parse().unwrap()).unwrap();
        let options = DecodeOptions { channels: Channels::Gray, ..DecodeOptions::default() };
        assert_eq!(&Decoder::new().decode(&file, &options).unwrap().data()[..], [0, 0, 1, 3, 128, 255]);
        let path = folder.path().join("deep").with_extension(extension);
        std::fs::write(&path, file).unwrap();
        let output = Command::new(&python).args(["-c", SCRIPT]).arg(&path).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0 255 255 255 255 255", "{name}");
    }
}

#[test]
fn real_pictures_decode_to_the_same_pixels() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mut decoder = Decoder::new();
    for name in FOLDERS {
        let Some(folder) = data::folder(name) else { return };
        let mut tally = Tally::default();
        for path in data::files(&folder) {
            // Folders hold label tables and notes as well.
            if Format::detect(&std::fs::read(&path).unwrap()).is_some() {
                tally.compare(&mut decoder, &path, &mut oracle);
            }
        }
        tally.finish(name);
    }
}

#[test]
fn generated_pictures_decode_to_the_same_pixels() {
    let Some(mut oracle) = Oracle::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut decoder = Decoder::new();
    let mut tally = Tally::default();
    for channels in 1..=4 {
        let original = picture(37, 23, channels, false, channels as u32);
        for (index, encoding) in encodings().into_iter().enumerate() {
            // Pillow knows no L3.
            if encoding.format() == Format::L3 {
                continue;
            }
            let Ok(file) = encode(original.view(), &encoding) else { continue };
            let path = folder.path().join(format!("{channels}-{index}.{}", encoding.format().extension()));
            std::fs::write(&path, file).unwrap();
            tally.compare(&mut decoder, &path, &mut oracle);
        }
    }
    for (name, file) in variants::files() {
        let path = folder.path().join(name);
        std::fs::write(&path, file).unwrap();
        tally.compare(&mut decoder, &path, &mut oracle);
    }
    tally.finish("generated");
}
