//! How much processor time threads use.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What the thread that asked had used of the processor by then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadTime {
    /// In user code and in the kernel.
    pub(crate) processor: Duration,
    /// In the kernel, in steps of 10 ms; `None` where the system does not say.
    pub(crate) system: Option<Duration>,
}

impl ThreadTime {
    pub(crate) fn now() -> Self {
        Self { processor: thread_time(), system: fs::read_to_string(STAT).ok().and_then(|text| system(&text)) }
    }
}

const STAT: &str = "/proc/thread-self/stat";

/// The index of the time in the kernel, counted from the field after the name of the thread.
const SYSTEM_FIELD: usize = 12;

/// The time in the kernel by the text of [`STAT`].
fn system(text: &str) -> Option<Duration> {
    // A name may have anything in it, parentheses too.
    let (_, fields) = text.rsplit_once(')')?;
    let ticks: u64 = fields.split_ascii_whitespace().nth(SYSTEM_FIELD)?.parse().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second().max(1) as f64))
}

fn thread_time() -> Duration {
    time_of(ClockId::ThreadCPUTime)
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Seconds of processor time that this thread has used.
pub(crate) fn thread_cpu_seconds() -> f64 {
    thread_time().as_secs_f64()
}

/// Seconds of processor time that all threads of this process have used.
pub(crate) fn process_cpu_seconds() -> f64 {
    time_of(ClockId::ProcessCPUTime).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_share_is_found_whatever_the_thread_is_called() {
        let text = "17 (a) b 3) R 1 2 3 4 5 6 7 8 9 10 40 250 0 0 20 0 1 0";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert!((system(text).unwrap().as_secs_f64() - 250.0 / ticks).abs() < 1e-9);
        assert_eq!(system("nonsense"), None);
    }

    #[test]
    fn time_goes_on() {
        let before = ThreadTime::now();
        while thread_time() < before.processor + Duration::from_millis(3) {}
        assert!(ThreadTime::now().processor > before.processor);
    }
}
