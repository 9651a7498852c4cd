//! The table, with what is needed to judge and to repeat it.

use std::{fmt::Write, ops::Range};

use crate::{
    peers::REFERENCE,
    pictures::{Picture, SETS},
    threads::Threads,
};

/// What was measured of one codec, set by set.
pub struct Row {
    pub name: String,
    pub encodes: bool,
    pub bytes: Vec<usize>,
    pub encode_seconds: Vec<Vec<f64>>,
    pub decode_seconds: Vec<Vec<f64>>,
}

impl Row {
    pub fn new(name: String, encodes: bool, sets: usize) -> Self {
        let times = vec![Vec::new(); sets];
        Self { name, encodes, bytes: vec![0; sets], encode_seconds: times.clone(), decode_seconds: times }
    }
}

/// The middle one.
pub fn median(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The median over repetitions of the sum over sets.
fn total(times: &[Vec<f64>]) -> f64 {
    let repetitions = times.first().map_or(0, Vec::len);
    median(&(0..repetitions).map(|repetition| times.iter().map(|set| set[repetition]).sum()).collect::<Vec<f64>>())
}

/// The whole page.
pub fn write(
    sets: &[Vec<Picture>],
    rows: &[Row],
    levels: &[Row],
    (wide, wide_rows): (&[Vec<Picture>], &[Row]),
    threads: &[Threads],
) -> String {
    let pixels: Vec<f64> = sets.iter().map(|set| set.iter().map(|p| p.pixels.len() as f64).sum()).collect();
    let png: Vec<f64> = sets.iter().map(|set| set.iter().map(|p| p.png.len() as f64).sum()).collect();
    let reference = reference(rows);
    let mut page = String::from("# L3 compared with other formats\n\n");
    machine(&mut page);
    page.push_str(
        "Every codec decodes the same images on one thread, turn by turn within each round; figures are medians over the \
         rounds. MB/s are 10^6 bytes of pixels. Sizes are relative to the PNG files; for `images-jpeg`, whose pixels are \
         decoded JPEGs, to what the `png` crate makes of them with its default (Balanced) compression, which is within half \
         a percent of Pillow's level 6. L3 verifies its checksums. `× png` is decoding speed relative to the `png` crate \
         on the PNG files.\n\n## All images together\n\n",
    );
    page.push_str("| codec | size / PNG | encode MB/s | decode MB/s | × png |\n|---|---|---|---|---|\n");
    let all: f64 = pixels.iter().sum();
    for row in rows {
        let size = row.bytes.iter().sum::<usize>() as f64 / png.iter().sum::<f64>();
        let encode = if row.encodes { format!("{:.0}", all / total(&row.encode_seconds) / 1e6) } else { "".into() };
        let decode = all / total(&row.decode_seconds) / 1e6;
        let ratio = total(&reference.decode_seconds) / total(&row.decode_seconds);
        let _ = writeln!(page, "| {} | {size:.3} | {encode} | {decode:.0} | {ratio:.2} |", row.name);
    }
    page.push_str("\n## Set by set: size / PNG, decode MB/s, × png\n\n| codec |");
    for ((name, pictures), pixels) in SETS.iter().zip(sets).zip(&pixels) {
        let _ = write!(page, " {name} ({} images, {:.0} MB) |", pictures.len(), pixels / 1e6);
    }
    page.push_str("\n|---|---|---|---|---|\n");
    for row in rows {
        let _ = write!(page, "| {} |", row.name);
        for set in 0..sets.len() {
            let seconds = median(&row.decode_seconds[set]);
            let _ = write!(
                page,
                " {:.3}, {:.0}, {:.2} |",
                row.bytes[set] as f64 / png[set],
                pixels[set] / seconds / 1e6,
                median(&reference.decode_seconds[set]) / seconds
            );
        }
        page.push('\n');
    }
    page.push_str(
        "\n## Kernels, by force\n\nIn a run of their own, again turn by turn with the `png` crate. The photos are `kodak` and `images-png-hd` (2048 \
         pixels wide), together.\n\n",
    );
    kernels(&mut page, sets, levels, &[("photos", 0..2), ("all images", 0..sets.len())]);
    page.push_str(
        "\n## 16 bits\n\nThe photos again, made 16 bits wide: sums of four neighbors, and noise in the lowest six bits. The PNG files are the `png` \
         crate's with its default compression.\n\n",
    );
    kernels(&mut page, wide, wide_rows, &[("photos", 0..2)]);
    page.push_str("\n## Threads: strips of a 2048×1024 image\n\n| mode | strips | one thread, ms | two threads, ms | × |\n|---|---|---|---|---|\n");
    for Threads { mode, strips, one_seconds, two_seconds } in threads {
        let (one, two) = (one_seconds * 1e3, two_seconds * 1e3);
        let _ = writeln!(page, "| {} | {strips} | {one:.3} | {two:.3} | {:.2} |", mode.name(), one / two);
    }
    page
}

/// What all is measured by.
fn reference(rows: &[Row]) -> &Row {
    rows.iter().find(|row| row.name == REFERENCE).expect("it is measured")
}

/// A table of kernels, over some ranges of the sets.
fn kernels(page: &mut String, sets: &[Vec<Picture>], rows: &[Row], parts: &[(&str, Range<usize>)]) {
    page.push_str("| codec |");
    for (name, _) in parts {
        let _ = write!(page, " {name}: size / PNG | encode MB/s | decode MB/s | × png |");
    }
    let _ = writeln!(page, "\n|---|{}", "---|---|---|---|".repeat(parts.len()));
    for row in rows {
        let _ = write!(page, "| {} |", row.name);
        for (_, part) in parts {
            let sum = |of: &dyn Fn(&Picture) -> usize| sets[part.clone()].iter().flatten().map(of).sum::<usize>() as f64;
            let (pixels, png) = (sum(&|picture| picture.pixels.len()), sum(&|picture| picture.png.len()));
            let size = row.bytes[part.clone()].iter().sum::<usize>() as f64 / png;
            let rate = |seconds: &[Vec<f64>]| pixels / total(&seconds[part.clone()]) / 1e6;
            let encode = if row.encodes { format!("{:.0}", rate(&row.encode_seconds)) } else { String::new() };
            let (decode, png) = (rate(&row.decode_seconds), rate(&reference(rows).decode_seconds));
            let _ = write!(page, " {size:.3} | {encode} | {decode:.0} | {:.2} |", decode / png);
        }
        page.push('\n');
    }
}

/// The CPU, the versions and the command.
fn machine(page: &mut String) {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")?.split(':').nth(1));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let level = forebay_l3::Level::detect().name();
    let _ = writeln!(
        page,
        "Regenerate with `make bench-l3`. CPU: {}, {cores} cores, L3 kernel `{level}`.\n",
        model.unwrap_or("unknown").trim()
    );
    let wanted = [
        "png",
        "zune-png",
        "spng",
        "spng-sys",
        "rapid-qoi",
        "libwebp-sys",
        "zune-jpegxl",
        "jxl",
        "zstd-sys",
        "lz4_flex",
    ];
    let mut versions = Vec::new();
    let mut lines = include_str!("../Cargo.lock").lines();
    while let Some(line) = lines.next() {
        let name = line.strip_prefix("name = ").map(|name| name.trim_matches('"'));
        let version = lines.clone().next().and_then(|line| line.strip_prefix("version = "));
        if let (Some(name), Some(version)) = (name.filter(|name| wanted.contains(name)), version) {
            versions.push(format!("{name} {}", version.trim_matches('"')));
        }
    }
    let _ = writeln!(page, "Versions: {}.\n", versions.join(", "));
}
