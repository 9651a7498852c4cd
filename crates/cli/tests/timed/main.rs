//! Whole runs of the program whose rates are measured by the real clock: a binary of its own, since Cargo runs one binary after the other, so that
//! nothing else of ours runs beside these tests.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::panic::{RefUnwindSafe, catch_unwind};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

mod diagnosing;
mod presto;
#[expect(dead_code, reason = "the other binary uses the rest of it")]
#[path = "../it/support.rs"]
mod support;

/// Machines are used by others, too: what is true of rates shows in one of some tries. All tests have their first try at the same time, since they
/// wait most of it for storage that is made slow; the others each test has alone, the later ones after a pause in which others may come to an end.
fn in_one_of_some_tries(holds: impl Fn() + RefUnwindSafe) {
    const PAUSES_SECONDS: [u64; 5] = [0, 5, 10, 20, 40];
    static ALONE: RwLock<()> = RwLock::new(());
    let holds = || catch_unwind(&holds).is_ok();
    let holds_beside_others = || {
        let _others = ALONE.read().unwrap_or_else(PoisonError::into_inner);
        holds()
    };
    let holds_after = |seconds: u64| {
        let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
        std::thread::sleep(Duration::from_secs(seconds));
        holds()
    };
    assert!(holds_beside_others() || PAUSES_SECONDS.into_iter().any(holds_after), "what failed is above");
}
