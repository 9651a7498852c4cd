//! What the threads of an epoch do with their time: who waits for whom, how long, and how much processor time they take.
//!
//! Waiting is timed only where somebody does wait, so it costs nothing where nobody does; processor time is looked up
//! [every so often](LOOK_UP).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use forebay_plan::Stats;

use crate::cpu_time::ThreadTime;

/// How often a thread adds its processor time.
const LOOK_UP: Duration = Duration::from_millis(50);

/// Where the time went, added up over threads.
pub(super) struct Activity {
    begun: Instant,
    /// When the last batch was taken, counted from the beginning.
    taken: Clock,
    pub(super) read: Clock,
    pub(super) read_wait: Clock,
    /// Workers', the wait for a free batch included: that is within the work on a sample.
    pub(super) work: Clock,
    pub(super) data_wait: Clock,
    pub(super) batch_wait: Clock,
    pub(super) consumer_wait: Clock,
    processor: Clock,
    system: Clock,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            begun: Instant::now(),
            taken: Clock::default(),
            read: Clock::default(),
            read_wait: Clock::default(),
            work: Clock::default(),
            data_wait: Clock::default(),
            batch_wait: Clock::default(),
            consumer_wait: Clock::default(),
            processor: Clock::default(),
            system: Clock::default(),
        }
    }

    /// Notes that the consumer got what it asked for.
    pub(super) fn note_taken(&self) {
        self.taken.set(self.begun.elapsed());
    }

    /// The account of the thread that asks, which it keeps while it works.
    pub(super) fn of_thread(&self) -> ThreadActivity<'_> {
        ThreadActivity { activity: self, counted: ThreadTime::now(), next: Instant::now() + LOOK_UP }
    }

    /// What `threads` workers and `readers` readers did. Where there are more readers than workers, their times count as those of as many.
    pub(super) fn stats(&self, (threads, readers): (usize, usize), samples: u64, bytes_read: u64) -> Stats {
        let of_readers = threads as f64 / readers.max(1) as f64;
        let (processor, system, batch_wait) =
            (self.processor.seconds(), self.system.seconds(), self.batch_wait.seconds());
        Stats {
            seconds: self.taken.seconds(),
            threads,
            samples,
            bytes_read,
            read_seconds: self.read.seconds() * of_readers,
            read_wait_seconds: self.read_wait.seconds() * of_readers,
            work_seconds: (self.work.seconds() - batch_wait).max(0.0),
            data_wait_seconds: self.data_wait.seconds(),
            batch_wait_seconds: batch_wait,
            consumer_wait_seconds: self.consumer_wait.seconds(),
            user_seconds: (processor - system).max(0.0),
            system_seconds: system.min(processor),
        }
    }
}

/// The account of one thread.
pub(super) struct ThreadActivity<'a> {
    activity: &'a Activity,
    counted: ThreadTime,
    next: Instant,
}

impl ThreadActivity<'_> {
    /// Does `work` on the clock `clock`.
    pub(super) fn timed<T>(&mut self, clock: fn(&Activity) -> &Clock, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        let now = Instant::now();
        clock(self.activity).add(now - begun);
        if now >= self.next {
            self.next = now + LOOK_UP;
            self.count();
        }
        result
    }

    /// Adds the processor time since the last look.
    fn count(&mut self) {
        let now = ThreadTime::now();
        self.activity.processor.add(now.processor.saturating_sub(self.counted.processor));
        if let (Some(now), Some(before)) = (now.system, self.counted.system) {
            self.activity.system.add(now.saturating_sub(before));
        }
        // Where the system did not say, the next look counts from the last that it did.
        self.counted = ThreadTime { system: now.system.or(self.counted.system), ..now };
    }
}

impl Drop for ThreadActivity<'_> {
    fn drop(&mut self) {
        self.count();
    }
}

/// Adds up time.
#[derive(Debug, Default)]
pub(super) struct Clock(AtomicU64);

impl Clock {
    pub(super) fn add(&self, time: Duration) {
        self.0.fetch_add(nanoseconds(time), Ordering::Relaxed);
    }

    /// Does `wait` and adds the time that it takes.
    pub(super) fn timed<T>(&self, wait: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = wait();
        self.add(begun.elapsed());
        result
    }

    fn set(&self, time: Duration) {
        self.0.store(nanoseconds(time), Ordering::Relaxed);
    }

    fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 * 1e-9
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
