//! The work on a sample, by its parts: what plots show and what sentences say is the same.

use forebay_plan::{Caching, Objective, Profile, StrategyProfile, Work, WorkPart, plan, units, watched, work};

use crate::profiles::{close, presto_cv, profile, strategy};

fn sum(parts: &[Work]) -> f64 {
    parts.iter().map(|part| part.cpu_seconds).sum()
}

/// Centering and cropping take 109 µs one by one, and 53 µs as one loop.
fn fused() -> (Profile, StrategyProfile) {
    let kept = StrategyProfile {
        deserialize_cpu_seconds: 7e-6,
        online_cpu_seconds: 46e-6,
        ..strategy("resized", 3, 100, 2000.0, 20_000_000)
    };
    let mut profile = profile(100, vec![kept.clone()]);
    for (step, seconds) in profile.steps.iter_mut().zip([5e-5, 4e-3, 1e-3, 80e-6, 29e-6]) {
        step.cpu_seconds = seconds;
    }
    // So fast a storage that the processor binds.
    profile.storage.sequential_bytes_per_second = 1e12;
    (profile, kept)
}

#[test]
fn fused_steps_are_drawn_as_they_run() {
    let (profile, kept) = fused();
    let parts = work(&profile, &kept);
    let names: Vec<WorkPart> = parts.iter().map(|part| part.part).collect();
    assert_eq!(names, [WorkPart::Deserialize, WorkPart::Step(3), WorkPart::Step(4)]);
    assert!(close(sum(&parts), 53e-6), "{parts:?}");
    assert!(close(parts[1].cpu_seconds / parts[2].cpu_seconds, 80.0 / 29.0), "shared out as each takes alone");
    let sentence = &plan(&profile, &Objective::default()).unwrap().ranking[0].sentence;
    let said = format!("{} of work per sample", units::seconds(sum(&parts)));
    assert!(sentence.contains(&said), "`{said}` in: {sentence}");
}

#[test]
fn only_what_is_done_every_epoch_is_work() {
    let (mut profile, kept) = fused();
    profile.method.caching = Caching::Application;
    assert!(close(sum(&work(&profile, &kept)), 46e-6), "what is cached was deserialized before");
    profile.method.caching = Caching::None;
    for step in &mut profile.steps {
        step.cpu_seconds = 0.0;
    }
    let parts = work(&profile, &kept);
    assert_eq!(parts[1], Work { part: WorkPart::Collate, cpu_seconds: parts[1].cpu_seconds });
    assert!(close(sum(&parts), 53e-6));
    // Readers read, so that it is no worker's.
    let profile = presto_cv();
    let files = profile.strategies.iter().find(|strategy| strategy.split.keeps_files()).unwrap();
    assert!(work(&profile, files).iter().all(|part| part.part != WorkPart::Step(0)));
    assert_eq!(watched(&profile, files), None, "nobody watched its threads");
}
