//! What a profile leaves open is said.

use forebay_plan::{Caching, Objective, Profile, WhatIf, notices, plan};

use crate::profiles::{profile, strategy};

/// On a machine with 80 GB: files of 10 GB, of which `decoded` makes `decoded_bytes`.
fn made(decoded_bytes: u64) -> Profile {
    profile(
        100,
        vec![
            strategy("unprocessed", 0, 100, 1787.0, 10_000_000_000),
            strategy("decoded", 2, 100, 1000.0, decoded_bytes),
        ],
    )
}

#[test]
fn what_fits_in_memory_and_was_measured_without_a_cache_is_warned_of() {
    let small = made(39_000_000_000);
    let said = notices(&small).unwrap();
    assert_eq!(
        said,
        [
            "Measured with nothing cached, but the data fits in memory in every strategy (up to 39.0 GB of 80.0 GB): from the second \
          epoch on it may come from there, and another strategy may then be fastest. Measure that with `--caching system` (in \
          Python `caching=\"system\"`)."
        ]
    );
    assert_eq!(plan(&small, &Objective::default()).unwrap().notices, said);
    // Training needs memory too, so half of it is not for the data.
    let partly = notices(&made(41_000_000_000)).unwrap();
    assert!(partly[0].contains("in 1 of 2 strategies (up to 10.0 GB of 80.0 GB)"), "{partly:?}");
    let mut large = small.clone();
    large.machine.memory_bytes = 19_000_000_000;
    assert!(notices(&large).unwrap().is_empty());
}

#[test]
fn what_was_measured_with_a_cache_is_not_warned_of() {
    let mut cached = made(39_000_000_000);
    for caching in [Caching::System, Caching::Application] {
        cached.method.caching = caching;
        assert!(
            notices(&cached).unwrap().is_empty() && plan(&cached, &Objective::default()).unwrap().notices.is_empty()
        );
    }
    // A plan for another machine lists what it assumes of its memory.
    let what_if = Some(WhatIf { memory_bytes: Some(90_000_000_000), ..WhatIf::default() });
    let there = plan(&made(39_000_000_000), &Objective { what_if, ..Objective::default() }).unwrap();
    assert!(there.notices.is_empty());
}

/// Files were read from the store, and shards from the disk of `--work-dir`.
#[test]
fn data_in_a_store_was_not_measured_where_shards_were() {
    let mut far = made(41_000_000_000);
    far.method.caching = Caching::System;
    far.data.root = "s3://bucket/photos".to_owned();
    let said = notices(&far).unwrap();
    assert!(said.len() == 1 && said[0].contains("`s3://bucket/photos`"), "{said:?}");
    for part in ["on the local disk (`--work-dir`)", "each of these is a request", "`forebay plan --what-if latency=50ms`"]
    {
        assert!(said[0].contains(part), "{said:?} without {part}");
    }
    assert_eq!(plan(&far, &Objective::default()).unwrap().notices, said);
    // With that option it is said what it assumes instead.
    let what_if = Some(WhatIf { latency_seconds: Some(0.05), ..WhatIf::default() });
    assert!(plan(&far, &Objective { what_if, ..Objective::default() }).unwrap().notices.is_empty());
    // Where nothing was built, all was read from there.
    far.strategies.truncate(1);
    assert!(notices(&far).unwrap().is_empty());
}
