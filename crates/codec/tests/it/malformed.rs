//! Broken and hostile files: nothing panics, hangs, or allocates more than the limits say.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use forebay_codec::image::{Channels, DecodeOptions, Decoder, Depth, Limits, Scale};
use forebay_codec::{Error, Result, Tensor};

use crate::allocation::peak_bytes;
use crate::data;
use crate::pictures::spec_of;

/// The folders of images; the others hold audio and bare deflate streams.
const FOLDERS: [&str; 12] = [
    "go-fuzz-gif",
    "go-fuzz-jpeg",
    "go-fuzz-png",
    "go-fuzz-webp",
    "image-png-fuzz",
    "image-rs-regression",
    "jpeg-decoder-crashtest",
    "libjpeg-turbo-afl",
    "pngsuite",
    "wild-wrong-extension",
    "zune-fuzz-jpeg",
    "zune-fuzz-png",
];

const LIMITS: Limits = Limits { max_pixels: 1 << 24, max_bytes: 1 << 27 };

/// What this thread's Rust code may hold at once: the limit, what comes beside it, and the buffers of a few rows.
const HELD_BYTES_MAX: usize = LIMITS.max_bytes + Limits::FIXED_BYTES + (1 << 20);

/// No file here takes a tenth of a second when the machine is idle.
const FILE_SECONDS_MAX: Duration = Duration::from_secs(20);

/// How many files that Pillow decodes are refused, and why. Each refusal is the documented policy:
/// what Pillow shows of the damaged ones is wrong or gray in part, and `allow_truncated` shows the same.
const REFUSED: [(&str, &str, usize); 13] = [
    ("go-fuzz-gif", "unsupported", 20),
    ("go-fuzz-jpeg", "damaged", 2),
    // The end chunk is missing.
    ("go-fuzz-png", "truncated", 3),
    ("image-rs-regression", "unsupported", 1),
    ("jpeg-decoder-crashtest", "damaged", 7),
    ("libjpeg-turbo-afl", "damaged", 7),
    ("libjpeg-turbo-afl", "truncated", 1),
    // The checksum of the pixels is wrong.
    ("pngsuite", "damaged", 1),
    ("wild-wrong-extension", "unsupported", 5),
    ("zune-fuzz-jpeg", "damaged", 5),
    ("zune-fuzz-jpeg", "truncated", 1),
    // 3072 × 11808 pixels, more than this test allows.
    ("zune-fuzz-jpeg", "limit", 1),
    ("zune-fuzz-png", "damaged", 1),
];

fn options() -> [DecodeOptions; 4] {
    let plain = DecodeOptions { limits: LIMITS, ..DecodeOptions::default() };
    let partial = DecodeOptions { allow_truncated: true, ..plain.clone() };
    let stored = DecodeOptions { channels: Channels::AsStored, depth: Depth::AsStored, ..partial.clone() };
    let small = DecodeOptions { channels: Channels::Gray, scale: Scale::Quarter, ..partial.clone() };
    [plain, partial, stored, small]
}

/// Decodes one file in every way, within the bounds; returns the plain and the partial result.
fn decode_bounded(decoder: &mut Decoder, path: &Path, bytes: &[u8]) -> [Result<Tensor>; 2] {
    let started = Instant::now();
    let [plain, partial, ..] = options().map(|options| {
        let ((spec, result), peak) = peak_bytes(|| (spec_of(bytes, &options), decoder.decode(bytes, &options)));
        assert!(peak <= HELD_BYTES_MAX, "{} took {peak} bytes", path.display());
        if let Ok(tensor) = &result {
            assert_eq!(Some(tensor.spec()), spec.ok().as_ref(), "{}", path.display());
        }
        result
    });
    let elapsed = started.elapsed();
    assert!(elapsed < FILE_SECONDS_MAX, "{} took {elapsed:?}", path.display());
    [plain, partial]
}

fn reason(error: &Error) -> &'static str {
    match error {
        Error::Format { truncated: true, .. } => "truncated",
        Error::Format { .. } => "damaged",
        Error::Unsupported { .. } => "unsupported",
        Error::Limit { .. } => "limit",
        _ => "usage",
    }
}

#[test]
fn malformed_pictures_are_refused_within_bounds() {
    let Some(root) = data::folder("malformed") else { return };
    let expected = std::fs::read_to_string(root.join("EXPECT.tsv")).unwrap();
    let fields = expected.lines().skip(1).map(|line| line.split('\t'));
    let verdicts: HashMap<&str, &str> =
        fields.filter_map(|mut fields| Some((fields.next()?, fields.next()?))).collect();
    let mut decoder = Decoder::new();
    let mut refused = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for folder in FOLDERS {
        for path in data::files(&root.join(folder)) {
            let bytes = std::fs::read(&path).unwrap();
            let [plain, partial] = decode_bounded(&mut decoder, &path, &bytes);
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap();
            let Err(error) = plain else {
                *counts.entry("decoded").or_default() += 1;
                continue;
            };
            *counts.entry(reason(&error)).or_default() += 1;
            assert_ne!(reason(&error), "usage", "{name}: {error}");
            *counts.entry("accepted in part").or_default() += usize::from(partial.is_ok());
            if verdicts.get(name) == Some(&"ok") {
                *refused.entry((folder, reason(&error))).or_insert(0) += 1;
                let recoverable = matches!(reason(&error), "damaged" | "truncated");
                assert_eq!(partial.is_ok(), recoverable, "{name}: {error}");
            }
        }
    }
    eprintln!("malformed images: {counts:?}");
    let table: BTreeMap<_, _> = REFUSED.iter().map(|&(folder, why, count)| ((folder, why), count)).collect();
    assert_eq!(refused, table);
}
