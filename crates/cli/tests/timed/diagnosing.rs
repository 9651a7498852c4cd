//! Diagnosed stalls are those that were constructed.

use crate::in_one_of_some_tries;
use crate::support::{assert_keys, forebay, workspace};

/// How far a diagnosed share may be from the constructed one.
const POINTS: f64 = 0.05;

/// Trainers that sleep and a storage that is throttled: whatever else the machine does, their rates are known. There is only a crop to
/// prepare, which is far faster than both.
#[test]
fn diagnosed_stalls_are_the_constructed_ones() {
    in_one_of_some_tries(|| {
        let folder = workspace(24);
        let here = folder.path();
        let built = forebay(here, "build cv --data photos --strategy pixel-centered -o dataset --json").json();
        let sample_bytes = built["bytes"].as_f64().unwrap() / built["samples"].as_f64().unwrap();
        for (trainer, fetch) in [(100.0, 50.0), (100.0, 75.0), (50.0, 200.0)] {
            let read = fetch * sample_bytes / 1e6;
            let command = format!(
                "diagnose dataset --trainer {trainer} --storage custom:read={read}MB/s --batch-size 2 --seconds 1.5 --threads 2 --json"
            );
            let found = forebay(here, &command).json();
            assert_keys(
                &found,
                "source strategy storage threads measured wait_share prep_stall_share fetch_stall_share bound_by cores_needed \
             what_ifs sentences next",
            );
            let share = |name: &str| found[name].as_f64().unwrap();
            let constructed = 1.0 - f64::min(fetch / trainer, 1.0);
            assert!((share("fetch_stall_share") - constructed).abs() < POINTS, "{constructed}: {found:#}");
            assert!(share("prep_stall_share") < POINTS, "{found:#}");
            assert_eq!(found["bound_by"], if fetch < trainer { "storage" } else { "trainer" }, "{found:#}");
            // Twice the disk is what a disk of twice the rate gives.
            let disk = found["what_ifs"].as_array().unwrap().iter().find(|one| one["resource"] == "disk").unwrap();
            let (promised, true_rate) = (disk["samples_per_second"].as_f64().unwrap(), f64::min(2.0 * fetch, trainer));
            assert!((promised / true_rate - 1.0).abs() < 0.1, "{promised} {true_rate}: {found:#}");
        }
    });
}
