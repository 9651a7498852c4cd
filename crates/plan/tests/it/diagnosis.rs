//! Diagnosed stalls are those that were constructed, and what-ifs follow the slower half.

use forebay_plan::{Bound, Measured, Rate, Resource, Scaling, Stalls, Stats, diagnose, what_if};
use proptest::prelude::*;

/// An ideal loader: everything overlaps, and the slowest decides.
fn ideal(trainer: f64, prepare: f64, fetch: f64) -> Measured {
    Measured {
        trainer: Rate::exactly(trainer),
        warm: Some(Rate::exactly(trainer.min(prepare))),
        cold: Rate::exactly(trainer.min(prepare).min(fetch)),
        prep: Some(Rate::exactly(prepare)),
        scaling: None,
        fetch: Some(Rate::exactly(fetch)),
        threads: Some(2),
        data_bytes: Some(10_000_000_000),
        memory_bytes: Some(8_000_000_000),
    }
}

#[test]
fn shares_are_those_of_the_time() {
    // Of each second, storage lets 100 samples through. Training them takes 0.25 s, preparing them 0.5 s.
    let found = diagnose(&ideal(400.0, 200.0, 100.0)).unwrap();
    assert_eq!(found.stalls, Stalls { wait_share: 0.75, prep_stall_share: Some(0.25), fetch_stall_share: Some(0.5) });
    assert_eq!((found.bound_by, found.cores_needed), (Bound::Storage, Some(4)));
    assert_eq!(found.sentences[0], "your accelerator waits 75 % of the time: 25 % for preparation, 50 % for storage");
    let bound = |trainer, prepare, fetch| diagnose(&ideal(trainer, prepare, fetch)).unwrap().bound_by;
    assert_eq!(bound(400.0, 200.0, 1000.0), Bound::Cpu);
    assert_eq!(bound(100.0, 200.0, 1000.0), Bound::Trainer);
    let together = Measured { warm: None, prep: None, fetch: None, ..ideal(400.0, 200.0, 100.0) };
    let together = diagnose(&together).unwrap();
    assert_eq!((together.bound_by, together.what_ifs.len()), (Bound::Unknown, 0));
    assert_eq!(together.sentences[0], "your accelerator waits 75 % of the time for data");
}

#[test]
fn only_the_slower_half_helps() {
    let fetch_bound = ideal(400.0, 200.0, 100.0);
    let rate = |resource, amount| what_if(&fetch_bound, resource, amount).unwrap().rate.samples_per_second;
    let expected = [
        (Resource::Cores, 4.0, 100.0),
        (Resource::Disk, 2.0, 200.0),
        (Resource::Disk, 4.0, 200.0),
        (Resource::Memory, 0.25, 100.0 / 0.75),
        (Resource::Memory, 1.0, 200.0),
    ];
    for (resource, amount, wanted) in expected {
        assert!((rate(resource, amount) - wanted).abs() < 1e-9, "{resource:?} {amount}");
    }
    let best = diagnose(&fetch_bound).unwrap().sentences.pop().unwrap();
    assert_eq!(
        best,
        "5.00 GB of memory for data would give 200 samples/s (190 to 210), and leave 50 % of the time waiting"
    );
}

#[test]
fn more_cores_give_what_more_threads_gave() {
    // Two threads prepare 200; without anything done one after another, one would 100.
    let with = |threads, rate| Measured {
        scaling: Some(Scaling { threads, prep: Rate::exactly(rate) }),
        ..ideal(1000.0, 200.0, 1e6)
    };
    let cores = |measured: &Measured, count| what_if(measured, Resource::Cores, count).unwrap().rate.samples_per_second;
    for (threads, rate, of_four, of_eight, needed) in [
        // A tenth is done one after another: 2 / 1.1 of one thread, 4 / 1.3, 8 / 1.7.
        (4, 200.0 * (4.0 / 1.3) / (2.0 / 1.1), 338.46, 517.65, Some(90)),
        (1, 110.0, 338.46, 517.65, Some(90)),
        // As many times the threads, as many times the samples; more than that is noise.
        (4, 400.0, 400.0, 800.0, Some(10)),
        (4, 500.0, 400.0, 800.0, Some(10)),
        (1, 80.0, 400.0, 800.0, Some(10)),
        // More threads give nothing.
        (4, 200.0, 200.0, 200.0, None),
        (4, 150.0, 200.0, 200.0, None),
        // The same number says nothing of others.
        (2, 150.0, 400.0, 800.0, Some(10)),
    ] {
        let measured = with(threads, rate);
        let found = (cores(&measured, 4.0), cores(&measured, 8.0));
        assert!((found.0 - of_four).abs() < 0.01 && (found.1 - of_eight).abs() < 0.01, "{threads} {rate}: {found:?}");
        assert_eq!(diagnose(&measured).unwrap().cores_needed, needed, "{threads} {rate}");
    }
    assert_eq!(
        [(1, 2), (2, 2), (1, 1), (2, 8), (3, 4)].map(|(threads, cores)| Scaling::threads_to_compare(threads, cores)),
        [Some(2), Some(1), None, Some(4), Some(4)]
    );
}

#[test]
fn a_running_loader_tells_the_same() {
    // As in the first test, for ten seconds on two threads.
    let stats = Stats {
        seconds: 10.0,
        threads: 2,
        samples: 1000,
        work_seconds: 10.0,
        data_wait_seconds: 10.0,
        consumer_wait_seconds: 7.5,
        ..Stats::default()
    };
    let found = Stalls::live(&stats);
    assert!((found.wait_share - 0.75).abs() < 1e-9, "{found:?}");
    assert!((found.prep_stall_share.unwrap() - 0.25).abs() < 1e-9, "{found:?}");
    assert_eq!(Stalls::live(&Stats::default()), Stalls::default());
}

#[test]
fn what_is_no_rate_is_refused() {
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = diagnose(&ideal(wrong, 200.0, 100.0)).unwrap_err().to_string();
        assert!(error.contains("`trainer`"), "{error}");
    }
}

#[test]
fn parts_give_a_rate_and_its_spread() {
    let rate = Rate::of_parts(&[(10.0, 1.0), (20.0, 1.0), (30.0, 2.0)]).unwrap();
    assert_eq!((rate.samples_per_second, rate.min_samples_per_second, rate.max_samples_per_second), (15.0, 10.0, 20.0));
    assert_eq!(Rate::of_parts(&[]), None);
}

proptest! {
    #[test]
    fn shares_add_up(trainer in 1.0_f64..1e6, prepare in 1.0_f64..1e6, fetch in 1.0_f64..1e6) {
        let found = diagnose(&ideal(trainer, prepare, fetch)).unwrap();
        let Stalls { wait_share, prep_stall_share, fetch_stall_share } = found.stalls;
        let (prep, fetch) = (prep_stall_share.unwrap(), fetch_stall_share.unwrap());
        prop_assert!((wait_share - prep - fetch).abs() < 1e-9);
        prop_assert!(prep >= 0.0 && fetch >= 0.0 && wait_share < 1.0);
        for outlook in &found.what_ifs {
            let rate = outlook.rate;
            prop_assert!(rate.min_samples_per_second <= rate.samples_per_second);
            prop_assert!(rate.samples_per_second <= rate.max_samples_per_second);
            prop_assert!(outlook.stalls.wait_share <= wait_share + 1e-9);
        }
    }
}
