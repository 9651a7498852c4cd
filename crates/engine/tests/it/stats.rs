//! What the threads of a loader did with their time: who waits is who does not bind.

use std::sync::Arc;
use std::time::Duration;

use forebay_engine::StorageChoice;
use forebay_engine::load::{LoadOptions, Stats};
use forebay_engine::source::{Shards, Source};
use forebay_pipeline::{Action, FieldType, Needs, Output, Pipeline, Scope, Step, StepError, Transform, ValueView};
use forebay_plan::Bound;
use rustix::time::{ClockId, clock_gettime};

use crate::support::{SMALL, built, photos, pipeline, shards, start};

/// One thread, so that a busy machine changes little.
fn stats_of(source: Arc<dyn Source>, batch_size: usize, each_batch: Duration) -> Stats {
    let options = LoadOptions { threads: 1, batch_size, ..LoadOptions::default() };
    let mut epoch = start(source, options, 0).unwrap();
    for batch in epoch.by_ref() {
        batch.unwrap();
        std::thread::sleep(each_batch);
    }
    epoch.stats()
}

/// Passes pictures on after so much CPU time.
#[derive(Debug)]
struct Slow(Duration);

/// How much of a core this thread has used.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Transform for Slow {
    fn output_type(&self, input: &FieldType) -> Result<FieldType, Needs> {
        Ok(input.clone())
    }

    fn run(&self, input: ValueView<'_>, output: &mut Output<'_>, _scope: &mut Scope) -> Result<(), StepError> {
        let begun = thread_time();
        while thread_time().saturating_sub(begun) < self.0 {
            // In user code: asking for the time is the kernel's work.
            (0..1000).for_each(|_| std::hint::spin_loop());
        }
        let ValueView::Tensor(view) = input else { unreachable!("the step before decodes") };
        output.tensor(view.spec)?.data.copy_from_slice(view.data);
        Ok(())
    }
}

#[test]
fn a_slow_storage_lets_workers_wait_for_bytes() {
    let photos = photos(64);
    let (_output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 2);
    let slow: StorageChoice = "custom:read=400KB/s,seek=20ms".parse().unwrap();
    let stats = stats_of(Arc::new(Shards::new(dataset, slow.open(0).unwrap())), 8, Duration::ZERO);
    assert_eq!(stats.samples, 64);
    assert!(stats.bytes_read > 0 && stats.data_wait_seconds > stats.work_seconds, "{stats:?}");
    assert!(stats.read_seconds > 0.5 * stats.seconds, "{stats:?}");
    assert_eq!(stats.bound_by(64), Bound::Storage, "{stats:?}");
}

#[test]
fn slow_steps_keep_workers_busy() {
    let photos = photos(64);
    let whole = pipeline(SMALL);
    let mut steps = whole.steps().to_vec();
    steps.push(Step {
        name: "slow".to_owned(),
        stage: "slowed".to_owned(),
        fields: vec!["image".to_owned()],
        action: Action::Transform(Arc::new(Slow(Duration::from_millis(4)))),
        spec: None,
    });
    let slowed = Pipeline::new("slow", whole.source().clone(), steps).unwrap();
    let stats = stats_of(crate::support::files(&slowed, photos.path()), 8, Duration::ZERO);
    assert!(stats.share(stats.work_seconds) > 0.7, "{stats:?}");
    assert!(stats.user_seconds > 0.1 && stats.consumer_wait_seconds > 0.5 * stats.seconds, "{stats:?}");
    assert_eq!(stats.bound_by(1), Bound::Cpu, "{stats:?}");
}

#[test]
fn a_slow_consumer_lets_workers_wait_for_a_free_batch() {
    let photos = photos(96);
    let (_output, dataset) = built(&pipeline(SMALL), "resized", photos.path(), 2);
    // So many batches that those which are made while the first is taken are few beside them.
    let stats = stats_of(shards(&dataset), 2, Duration::from_millis(40));
    assert!(stats.batch_wait_seconds > 0.5 * stats.seconds, "{stats:?}");
    assert_eq!(stats.bound_by(64), Bound::Trainer, "{stats:?}");
}
