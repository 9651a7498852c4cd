use proptest::prelude::*;

use super::*;

fn format(name: &str, bytes: f64, cpu_seconds: f64) -> MixFormat {
    MixFormat { format: name.to_owned(), bytes, cpu_seconds, lossy: false }
}

fn limits() -> MixLimits {
    MixLimits {
        samples: 1000,
        read_bytes_per_second: 1e8,
        cores: 2.0,
        buffer_bytes: 0,
        max_storage_bytes: None,
        max_lossy_share: 1.0,
        trainer_samples_per_second: None,
    }
}

/// Two formats that each leave half of the machine idle.
#[test]
fn opposing_formats_are_mixed_until_both_are_busy() {
    // PNG alone: 100/s by the CPU, 200/s by the disk. Raw alone: 100/s by the disk.
    let formats = [format("png", 5e5, 0.02), format("raw", 1e6, 0.0)];
    let mixed = mix(&formats, &limits()).unwrap();
    // x·0.02 / 2 = (x·5e5 + (1-x)·1e6) / 1e8, so x = 2/3.
    assert!((mixed.shares[0].share - 2.0 / 3.0).abs() < 1e-6, "{mixed:?}");
    assert!((mixed.predicted_samples_per_second - 150.0).abs() < 1e-3, "{mixed:?}");
    assert_eq!(mixed.bound_by, [MixBound::Storage, MixBound::Cpu]);
    assert_eq!(mixed.sweep.len(), 11);
    let rates = mixed.rates.unwrap();
    assert!((rates.cpu_utilization - 1.0).abs() < 1e-6 && (rates.storage_utilization - 1.0).abs() < 1e-6);
}

#[test]
fn storage_that_no_format_fits_into_is_named() {
    let formats = [format("png", 5e5, 0.02), format("raw", 1e6, 0.0)];
    let found = mix(&formats, &MixLimits { max_storage_bytes: Some(400_000_000), ..limits() });
    assert_eq!(
        found.unwrap_err().to_string(),
        "`max_storage` is `400 MB`, but must be enough for all samples in the smallest format"
    );
    assert!(mix(&formats, &MixLimits { max_storage_bytes: Some(500_000_000), ..limits() }).is_ok());
}

/// Nothing could be built of it.
#[test]
fn a_share_of_less_than_a_sample_is_none() {
    let formats = [format("png", 5e5, 0.02), format("raw", 1e6, 0.0)];
    let of_samples = |samples: u64| mix(&formats, &MixLimits { samples, ..limits() }).unwrap().shares;
    assert_eq!(of_samples(2), [MixShare { format: "png".into(), share: 1.0 }]);
    assert_eq!(of_samples(4).len(), 2);
}

#[test]
fn limits_are_kept() {
    let formats =
        [format("png", 5e5, 0.02), format("raw", 1e6, 0.0), MixFormat { lossy: true, ..format("jpeg", 1e5, 0.004) }];
    let fastest = mix(&formats, &limits()).unwrap();
    let lossless = mix(&formats, &MixLimits { max_lossy_share: 0.0, ..limits() }).unwrap();
    assert!(lossless.shares.iter().all(|share| share.format != "jpeg"));
    assert!(fastest.predicted_samples_per_second > 2.0 * lossless.predicted_samples_per_second);
    let some = mix(&formats, &MixLimits { max_lossy_share: 0.25, ..limits() }).unwrap();
    assert!(some.bound_by.contains(&MixBound::LossyShare), "{some:?}");
    let jpeg = some.shares.iter().find(|share| share.format == "jpeg").unwrap();
    assert!((jpeg.share - 0.25).abs() < 1e-6);
    let small = MixLimits { max_lossy_share: 0.0, max_storage_bytes: Some(600_000_000), ..limits() };
    let small = mix(&formats, &small).unwrap();
    assert!(small.bound_by.contains(&MixBound::Capacity), "{small:?}");
    let bytes: f64 = small.shares.iter().map(|share| if share.format == "png" { 5e5 } else { 1e6 } * share.share).sum();
    assert!((bytes - 6e5).abs() < 1.0);
    let slow = mix(&formats, &MixLimits { trainer_samples_per_second: Some(50.0), ..limits() }).unwrap();
    assert_eq!((slow.predicted_samples_per_second, &slow.bound_by[..]), (50.0, &[MixBound::Trainer][..]));
    // Where nothing fits there is no answer.
    let none = MixLimits { max_storage_bytes: Some(1000), ..limits() };
    assert!(mix(&formats, &none).is_err());
    assert!(mix(&[], &limits()).is_err());
}

#[test]
fn what_stays_in_memory_is_not_read() {
    let formats = [format("png", 5e5, 0.0), format("raw", 1e6, 0.0)];
    // Half of the smaller ones with what each takes in addition, and what stays free of the buffer.
    let buffer_bytes = (500.0 * (5e5 + STORED_ENTRY_BYTES as f64) / (1.0 - BUFFER_SPARE)).round() as u64;
    let half = mix(&formats, &MixLimits { buffer_bytes, ..limits() }).unwrap();
    assert!((half.predicted_samples_per_second - 400.0).abs() < 1e-3, "{half:?}");
    assert!((half.hit_ratio - 0.5).abs() < 1e-6);
}

/// A sample takes more of a buffer than its own bytes: of a few tokens that is most of it.
#[test]
fn small_samples_take_more_of_a_buffer_than_their_bytes() {
    let formats = [format("tokens", 100.0, 1e-5), format("text", 60.0, 3e-5)];
    let limits = MixLimits { samples: 1_000_000, buffer_bytes: 100_000_000, read_bytes_per_second: 5e6, ..limits() };
    let tokens = mix_of(&formats, &[1.0, 0.0], &limits).unwrap();
    // 99.2 MB of 292 MB, where 100 MB of samples seem to fit.
    assert!((tokens.hit_ratio - 0.3398).abs() < 1e-3, "{}", tokens.hit_ratio);
    assert!((tokens.predicted_samples_per_second - 5e6 / 100.0 / (1.0 - tokens.hit_ratio)).abs() < 1.0, "{tokens:?}");
    // What is read is not linear in the shares then; the program finds the best ones all the same.
    let found = mix(&formats, &limits).unwrap();
    assert_eq!(found.bound_by, [MixBound::Storage, MixBound::Cpu], "{found:?}");
    for part in 0..=1000 {
        let share = f64::from(part) / 1000.0;
        let there = rates(&formats, &[share, 1.0 - share], &limits).samples_per_second;
        assert!(there <= found.predicted_samples_per_second * (1.0 + 1e-6), "{share}: {there} and {found:?}");
    }
}

/// All three ways keep to the limits, or say that nothing does.
#[test]
fn search_and_sweep_keep_to_the_limits() {
    let formats = [format("png", 5e5, 0.02), format("raw", 1e6, 0.0)];
    let jpeg = MixFormat { lossy: true, ..format("jpeg", 1e5, 0.004) };
    // Without limits: a third raw, and all of it JPEG.
    let small = MixLimits { max_storage_bytes: Some(610_000_000), ..limits() };
    let some = MixLimits { max_lossy_share: 0.25, ..limits() };
    for mode in [MixMode::Search, MixMode::Sweep] {
        let found = mix_by(mode, &formats, &small).unwrap();
        let raw = found.shares.iter().find(|share| share.format == "raw").unwrap();
        assert!((raw.share - 0.2).abs() < 1e-9, "{mode:?}: {found:?}");
        assert!(found.sweep[..=2].iter().all(|rates| rates.within_limits));
        assert!(found.sweep[3..].iter().all(|rates| !rates.within_limits));
        let found = mix_by(mode, &[formats[1].clone(), jpeg.clone()], &some).unwrap();
        let lossy = found.shares.iter().find(|share| share.format == "jpeg").unwrap();
        assert!((lossy.share - 0.2).abs() < 1e-9, "{mode:?}: {found:?}");
        let none = MixLimits { max_storage_bytes: Some(400_000_000), ..limits() };
        let error = mix_by(mode, &formats, &none).unwrap_err().to_string();
        assert!(error.contains("none of 11 ratios of `png` and `raw`"), "{error}");
    }
}

/// Where `limits` have a capacity between that of `small` and that of `large`, as far as `capacity` says.
fn with_capacity(limits: MixLimits, small: f64, large: f64, capacity: f64) -> MixLimits {
    let bytes = (small + (large - small) * capacity) * limits.samples as f64;
    MixLimits { max_storage_bytes: Some(bytes as u64 + 1), ..limits }
}

proptest! {
    /// Search and sweep find the same, and the linear program what no tenth is better than. All of them within the limits.
    #[test]
    fn the_three_ways_agree(
        small in 50.0..1e6_f64, large in 1.01..20.0_f64, slow in 1e-4..0.1_f64, fast in 0.0..0.9_f64,
        bandwidth in 1e6..1e10_f64, cores in 1.0..64.0_f64, buffer in 0.0..0.95_f64,
        capacity in prop::option::of(0.0..1.2_f64), lossy_share in 0.0..1.0_f64, lossy in prop::option::of(any::<bool>()),
    ) {
        let encoded = MixFormat { lossy: lossy == Some(true), ..format("encoded", small, slow) };
        let raw = MixFormat { lossy: lossy == Some(false), ..format("raw", small * large, slow * fast) };
        let limits = MixLimits {
            samples: 100_000,
            read_bytes_per_second: bandwidth,
            cores,
            buffer_bytes: (buffer * small * 1e5) as u64,
            max_lossy_share: lossy_share,
            ..limits()
        };
        let limits = capacity.map_or(limits, |capacity| with_capacity(limits, small, small * large, capacity));
        let ratios = sweep(&encoded, &raw, &limits);
        let Some(parts) = parts_within_limits(&ratios) else {
            prop_assert!(mix_by(MixMode::Search, &[encoded, raw], &limits).is_err());
            return Ok(());
        };
        let within = || ratios.iter().filter(|rates| rates.within_limits);
        prop_assert_eq!(within().count(), parts.clone().count());
        let best = within().map(|rates| rates.samples_per_second).fold(0.0, f64::max);
        let rates = |part: u32| {
            let rates = &ratios[part as usize];
            Ok::<_, ()>((rates.load.unwrap_or(f64::INFINITY), rates.decode.unwrap_or(f64::INFINITY)))
        };
        let found = search(parts, rates).unwrap();
        prop_assert!(ratios[found as usize].samples_per_second >= best * (1.0 - 1e-9));
        let mixed = mix(&[encoded.clone(), raw.clone()], &limits).unwrap();
        let predicted = mixed.predicted_samples_per_second;
        prop_assert!(predicted >= best * (1.0 - 1e-6), "{predicted} and {best}");
        // It lies within a tenth of the best ratio.
        let share = mixed.shares.iter().find(|share| share.format == "raw").map_or(0.0, |share| share.share);
        prop_assert!((share - f64::from(found) / 10.0).abs() <= 0.1 + 1e-6, "{share} and {found}");
        prop_assert!(mixed.shares.len() <= 2 && !mixed.bound_by.is_empty());
        // In either order.
        let [searched, swept] = [(MixMode::Search, [&encoded, &raw]), (MixMode::Sweep, [&raw, &encoded])]
            .map(|(mode, pair)| mix_by(mode, &pair.map(Clone::clone), &limits).unwrap());
        prop_assert!(mixed.rates.as_ref().is_some_and(|rates| rates.within_limits), "{mixed:?}");
        for one in [searched, swept] {
            prop_assert!(one.rates.as_ref().is_some_and(|rates| rates.within_limits), "{one:?}");
            prop_assert!((one.predicted_samples_per_second / best - 1.0).abs() < 1e-9, "{one:?} and {best}");
        }
    }

    /// No mix that was drawn is better than the linear program's, and it needs few formats.
    #[test]
    fn nothing_drawn_is_better(
        costs in prop::collection::vec((1e4..1e7_f64, 0.0..0.05_f64, any::<bool>()), 1..7),
        weights in prop::collection::vec(prop::collection::vec(0.0..1.0_f64, 6), 20),
        lossy_share in 0.0..1.0_f64,
    ) {
        let formats: Vec<MixFormat> = costs
            .iter()
            .enumerate()
            // The first is lossless, so that there is an answer.
            .map(|(number, &(bytes, cpu_seconds, lossy))| MixFormat {
                format: number.to_string(), bytes, cpu_seconds, lossy: lossy && number > 0,
            })
            .collect();
        let limits = MixLimits { max_lossy_share: lossy_share, buffer_bytes: 5_000_000, ..limits() };
        let mixed = mix(&formats, &limits).unwrap();
        prop_assert!(mixed.shares.len() <= 3);
        prop_assert!((mixed.shares.iter().map(|share| share.share).sum::<f64>() - 1.0).abs() < 1e-6);
        for weights in weights {
            let sum: f64 = weights[..formats.len()].iter().sum();
            let shares: Vec<f64> = weights[..formats.len()].iter().map(|weight| weight / sum).collect();
            let lossy: f64 = formats.iter().zip(&shares).filter(|(format, _)| format.lossy).map(|(_, share)| share).sum();
            let drawn = rates(&formats, &shares, &limits).samples_per_second;
            prop_assert!(lossy > lossy_share || drawn <= mixed.predicted_samples_per_second * (1.0 + 1e-6));
        }
    }
}
