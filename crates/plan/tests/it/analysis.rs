//! The analysis of PRESTO's published figures, comparisons of profiles, and the table of everything.

use forebay_plan::{Caching, Cell, Objective, Profile, analyze, compare, pareto_front, table};

use crate::profiles::{close, presto_cv, strategy, weights};

fn flags(profile: &Profile, flag: fn(&forebay_plan::Analyzed) -> bool) -> Vec<bool> {
    analyze(profile, &Objective::default()).unwrap().strategies.iter().map(flag).collect()
}

#[test]
fn the_front_of_presto_is_unprocessed_concatenated_and_resized() {
    // Decoded and pixel-centered are larger, slower and longer to prepare than concatenated.
    let expected = [true, true, false, true, false];
    assert_eq!(flags(&presto_cv(), |one| one.pareto), expected);
    assert_eq!(flags(&presto_cv(), |one| one.pareto_storage_throughput), expected);
    // Without its preparation time, a strategy may be on the one front and not on the other.
    let mut quick = presto_cv();
    quick.strategies[2].prep_seconds = 1.0;
    assert_eq!(flags(&quick, |one| one.pareto), [true, true, true, true, false]);
    assert_eq!(flags(&quick, |one| one.pareto_storage_throughput), expected);
}

#[test]
fn equal_points_are_both_on_the_front() {
    assert_eq!(pareto_front(&[[1.0, 1.0], [1.0, 1.0], [2.0, 1.0]]), [true, true, false]);
    assert_eq!(pareto_front::<3>(&[]), [false; 0]);
}

#[test]
fn ranks_and_normalized_criteria_are_those_of_the_ranking() {
    let objective = Objective { weights: weights(0.0, 1.0, 1.0), ..Objective::default() };
    let analysis = analyze(&presto_cv(), &objective).unwrap();
    let ranks: Vec<_> = analysis.strategies.iter().map(|one| one.rank).collect();
    assert_eq!(ranks, [3, 2, 4, 1, 5]);
    let resized = analysis.strategies[3].ranked.normalized.unwrap();
    assert!(close(resized.storage, 1_041_644.0 / 1_242_041.0) && close(resized.throughput, 1.0));
    assert!(close(resized.prep, 5.0 / 18.0) && close(resized.money, 1.0));
}

#[test]
fn bandwidth_over_bytes_is_the_most_that_storage_allows() {
    let analysis = analyze(&presto_cv(), &Objective::default()).unwrap();
    let resized = &analysis.strategies[3];
    assert!(close(resized.storage_samples_per_second.unwrap(), 910e6 / (347_297e6 / 1_281_167.0)));
    // 0.1 ms of 0.4 ms.
    assert!(close(resized.deserialize_share.unwrap(), 0.25));
    assert_eq!(analysis.strategies[0].deserialize_share, Some(0.0));
}

#[test]
fn an_encoded_strategy_is_held_against_the_plain_one() {
    let mut profile = presto_cv();
    // PRESTO's ZLIB on pixel-centered: 72.7 % saved, 1.91 times the throughput.
    let mut packed = strategy("pixel-centered+zlib", 4, 1_281_167, 576.0 * 1.91, 379_181_000_000);
    packed.split = profile.strategies[4].split.clone();
    packed.prep_seconds = 27_000.0;
    profile.strategies.push(packed);
    let analysis = analyze(&profile, &Objective::default()).unwrap();
    let packed = analysis.strategies.last().unwrap();
    assert_eq!(packed.plain.as_deref(), Some("pixel-centered"));
    assert!((packed.space_saving.unwrap() - 0.727).abs() < 1e-4);
    assert!(close(packed.throughput_factor.unwrap(), 1.91) && close(packed.prep_factor.unwrap(), 1.5));
    assert!(analysis.strategies[..5].iter().all(|one| one.plain.is_none()));
}

fn with(threads: usize, caching: Caching, samples: u64, factor: f64) -> Profile {
    let mut profile = presto_cv();
    profile.method.threads = threads;
    profile.method.caching = caching;
    profile.method.sample_count = samples;
    for run in profile.strategies.iter_mut().flat_map(|strategy| &mut strategy.runs) {
        run.seconds /= factor;
    }
    profile
}

#[test]
fn profiles_are_compared_where_they_differ_in_one_thing() {
    let all = [
        with(8, Caching::None, 8000, 1.0),
        with(8, Caching::System, 8000, 3.0),
        with(8, Caching::Application, 8000, 4.0),
        with(4, Caching::None, 8000, 0.6),
        with(1, Caching::None, 8000, 0.25),
        with(8, Caching::None, 500, 0.5),
    ];
    let comparison = compare(&all.iter().collect::<Vec<_>>()).unwrap();
    let caching = comparison.caching.unwrap();
    assert_eq!((caching.threads, caching.sample_count, caching.rows.len()), (8, 8000, 5));
    let resized = &caching.rows[3];
    let rates = [resized.none, resized.system, resized.application].map(Option::unwrap);
    assert!(close(rates[0], 1789.0) && close(rates[1], 3.0 * 1789.0) && close(rates[2], 4.0 * 1789.0));
    assert!(close(resized.deserialize_share.unwrap(), 0.25));

    assert_eq!(comparison.threads.len(), 1, "only without caching do threads vary");
    let line = &comparison.threads[0].lines[3];
    let points: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x, point.y)).collect();
    assert_eq!(points.iter().map(|point| point.0).collect::<Vec<_>>(), [1.0, 4.0, 8.0]);
    assert!(close(points[0].1, 1.0) && close(points[1].1, 2.4) && close(points[2].1, 4.0));

    let counts = comparison.sample_counts.unwrap();
    assert_eq!((counts.threads, counts.lines[0].points.len()), (Some(8), 2));
    assert!(close(counts.lines[3].points[0].y, 1789.0 / 2.0));
    assert_eq!(comparison.sample_sizes, None);
}

#[test]
fn larger_samples_are_compared_by_bytes_per_second() {
    let mut large = presto_cv();
    large.data.root = "large".to_owned();
    large.data.bytes *= 4;
    for strategy in &mut large.strategies {
        strategy.bytes_per_sample *= 4.0;
    }
    let small = presto_cv();
    let sizes = compare(&[&large, &small]).unwrap().sample_sizes.unwrap();
    let points = &sizes.lines[3].points;
    assert!(points[0].x < points[1].x && close(points[1].y, 4.0 * points[0].y));
    assert_eq!(compare(&[&small]).unwrap(), forebay_plan::Comparison::default());
}

#[test]
fn the_table_has_a_row_for_each_strategy_of_each_profile() {
    let (one, other) = (presto_cv(), with(4, Caching::System, 500, 1.0));
    let table = table(&[&one, &other], &Objective::default()).unwrap();
    assert_eq!(table.rows.len(), 10);
    let at = |name: &str| table.columns.iter().position(|column| column.name == name).unwrap();
    assert_eq!(table.rows[5][at("threads")], Some(Cell::Whole(4)));
    assert_eq!(table.rows[3][at("split.name")], Some(Cell::Text("resized".to_owned())));
    assert_eq!(table.rows[3][at("pareto")], Some(Cell::Flag(true)));
    let csv = table.to_csv();
    let lines: Vec<&str> = csv.split("\r\n").collect();
    assert!(
        lines[0].starts_with("profile,pipeline,storage,caching,threads,shards,sample_count,samples_total,strategy,")
    );
    assert_eq!((lines.len(), lines[11]), (12, ""));
    assert!(csv.contains("\"CPU-bound: 8.40 ms of work per sample, most of it decode, on 8 threads"), "{csv}");
}

#[test]
fn parquet_is_what_other_readers_read() {
    let table = forebay_plan::Table {
        columns: ["word", "count", "share", "flag"].map(|name| forebay_plan::Column { name: name.to_owned() }).to_vec(),
        rows: vec![
            vec![
                Some(Cell::Text("ä,b".to_owned())),
                Some(Cell::Whole(-3)),
                Some(Cell::Whole(1)),
                Some(Cell::Flag(true)),
            ],
            vec![None, Some(Cell::Whole(1 << 40)), Some(Cell::Number(0.25)), None],
        ],
    };
    let file = table.to_parquet();
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    let length = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().unwrap()) as usize;
    assert!(length < file.len() - 12);
    // The bytes that pyarrow 26.0.1 read back as this table; the footer also has our version, which may change.
    let pages = file[..file.len() - 8 - length].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    assert_eq!(pages, PAGES);
}

const PAGES: &str = "504152311500152015202c15041500150615060000040000000201020004000000c3a42c621500152c152c2c1504150015061506000002\
                     0000000401fdffffffffffffff00000000000100001500152c152c2c15041500150615060000020000000401000000000000f03f00\
                     0000000000d03f1500151215122c15041500150615060000040000000201020001";
