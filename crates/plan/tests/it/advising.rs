//! Advice: each sentence with its number, and the commands that follow.

use forebay_plan::{AdviceOptions, LowerQuality, Profile, advise};

use crate::profiles::{presto_cv, profile, strategy};

fn options(share: f64) -> AdviceOptions {
    AdviceOptions {
        memory_bytes: 8_000_000_000,
        lossy: true,
        lower_quality: Some(LowerQuality { quality: 75, share, images: 32 }),
        ..AdviceOptions::default()
    }
}

/// Files and records on a disk that binds: 114 kB each at 20 MB/s.
fn on_a_slow_disk() -> Profile {
    let mut found = profile(100_000, Vec::new());
    found.storage.sequential_bytes_per_second = 20e6;
    for (name, position, rate) in [("unprocessed", 0, 100.0), ("concatenated", 1, 174.0)] {
        let mut measured = strategy(name, position, 100_000, rate, 11_466_100_000);
        measured.online_cpu_seconds = 0.0084;
        found.strategies.push(measured);
    }
    found
}

fn quality(advice: &forebay_plan::Advice) -> &str {
    &advice.answers.iter().find(|answer| answer.about == "quality").unwrap().sentence
}

#[test]
fn where_storage_binds_and_quality_may_be_lost_files_are_recompressed_first() {
    let profile = on_a_slow_disk();
    let advice = advise(&profile, &options(0.4)).unwrap();
    assert_eq!(advice.recompress.map(|found| found.quality), Some(75));
    // 20 MB/s over 0.4 of 114,661 bytes.
    assert!((advice.samples_per_second - 436.1).abs() < 1.0, "{}", advice.samples_per_second);
    assert_eq!(
        quality(&advice),
        "at JPEG quality 75 the files would take 40 % of their size, 4.59 GB (estimated from 32 images), and records of \
         them should give 436 samples/s instead of 174 samples/s: recompress them first"
    );
    let commands = advice.commands("imagenet", "photos/", &options(0.4));
    assert_eq!(commands[0], "forebay recompress photos/ smaller/ --quality 75");
    assert_eq!(commands[1], "forebay build imagenet --data smaller/jpeg-75 --strategy concatenated -o dataset/");
    // 4.59 GB fit into the memory that 11.5 GB do not fit into.
    assert_eq!(advice.cache, "decoded:8GB");
}

#[test]
fn where_it_would_not_help_quality_is_kept() {
    let advice = advise(&on_a_slow_disk(), &options(0.95)).unwrap();
    assert!(advice.recompress.is_none() && quality(&advice).ends_with("keep the quality"), "{}", quality(&advice));
    let fast = advise(&presto_cv(), &options(0.3)).unwrap();
    assert_eq!((fast.recompress, fast.strategy.as_str()), (None, "resized"));
    let enough = AdviceOptions { trainer_samples_per_second: Some(100.0), ..options(0.4) };
    let advice = advise(&on_a_slow_disk(), &enough).unwrap();
    assert!(
        advice.recompress.is_none() && quality(&advice).starts_with("there is no need to lose quality"),
        "{}",
        quality(&advice)
    );
    let lossless = AdviceOptions { lossy: false, ..options(0.4) };
    assert!(advise(&on_a_slow_disk(), &lossless).unwrap().recompress.is_none());
}
