//! System metrics ten times a second, and the activity of other programs, from `/proc`. If a file is missing or malformed, its figures are 0.
//!
//! Pressure-stall information is no help here: it counts this process's own waiting as well, of which a loader has much.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use forebay_plan::{Others, SystemSample};

use crate::cpu_time::process_cpu_seconds;
use crate::threads::space_for_one;

/// The system is sampled so often.
const EVERY: Duration = Duration::from_millis(100);

/// Runs `work` and samples the system meanwhile, and once more at the end.
pub(super) fn while_sampling<T>(run: u32, work: impl FnOnce() -> T) -> (T, Vec<SystemSample>) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // If no thread can be spawned for it, the run continues without.
        let thread = space_for_one().and_then(|()| Builder::new().spawn_scoped(scope, || sample_until(run, &over)));
        let result = work();
        over.store(true, Ordering::Release);
        let samples = thread.ok().and_then(|thread| {
            thread.thread().unpark();
            thread.join().ok()
        });
        (result, samples.unwrap_or_default())
    })
}

fn sample_until(run: u32, over: &AtomicBool) -> Vec<SystemSample> {
    let start = Instant::now();
    let mut before = (start, Counters::read());
    let mut samples = Vec::new();
    loop {
        let next = before.0 + EVERY;
        while !over.load(Ordering::Acquire) && Instant::now() < next {
            std::thread::park_timeout(next.saturating_duration_since(Instant::now()));
        }
        let now = (Instant::now(), Counters::read());
        let elapsed_seconds = (now.0 - before.0).as_secs_f64();
        samples.push(now.1.since(&before.1, elapsed_seconds, run, (now.0 - start).as_secs_f64()));
        if over.load(Ordering::Acquire) {
            return samples;
        }
        before = now;
    }
}

/// The cumulative activity of the machine, and this process's part of it.
pub(crate) struct Machine {
    busy_seconds: f64,
    own_seconds: f64,
    disk_bytes: f64,
    own_disk_bytes: f64,
}

impl Machine {
    pub(crate) fn now() -> Self {
        let counters = Counters::read();
        let [user, nice, system, _idle, _wait, irq, softirq, steal] = counters.cpu;
        let ticks = user + nice + system + irq + softirq + steal;
        Self {
            busy_seconds: ticks / rustix::param::clock_ticks_per_second().max(1) as f64,
            own_seconds: process_cpu_seconds(),
            disk_bytes: counters.disk_read_bytes + counters.disk_write_bytes,
            own_disk_bytes: own_disk_bytes(&fs::read_to_string("/proc/self/io").unwrap_or_default()),
        }
    }

    /// What others did in the `seconds` since `before`; `None` where the system does not say.
    pub(crate) fn since(&self, before: &Self, seconds: f64) -> Option<Others> {
        let others = |all: f64, own: f64| (all - own).max(0.0) / seconds.max(1e-9);
        (self.busy_seconds > 0.0).then(|| Others {
            cores: others(self.busy_seconds - before.busy_seconds, self.own_seconds - before.own_seconds),
            disk_bytes_per_second: others(
                self.disk_bytes - before.disk_bytes,
                self.own_disk_bytes - before.own_disk_bytes,
            ),
        })
    }
}

/// What this process has read from and written to disks, by the text of `/proc/self/io`.
fn own_disk_bytes(text: &str) -> f64 {
    let field =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map_or(0.0, |text| number(text.trim()));
    field("read_bytes:") + field("write_bytes:")
}

/// Everything that only ever grows, and the state of the memory.
#[derive(Default)]
struct Counters {
    disk_read_bytes: f64,
    disk_write_bytes: f64,
    network_read_bytes: f64,
    network_write_bytes: f64,
    cpu: [f64; 8],
    interrupts: f64,
    context_switches: f64,
    faults: f64,
    major_faults: f64,
    memory: SystemSample,
}

const SECTOR_BYTES: f64 = 512.0;

impl Counters {
    fn read() -> Self {
        let mut counters = Self::default();
        counters.read_stat(&fs::read_to_string("/proc/stat").unwrap_or_default());
        counters.read_disks(&fs::read_to_string("/proc/diskstats").unwrap_or_default());
        counters.read_network(&fs::read_to_string("/proc/net/dev").unwrap_or_default());
        counters.read_faults(&fs::read_to_string("/proc/vmstat").unwrap_or_default());
        counters.read_memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default());
        counters
    }

    fn read_stat(&mut self, text: &str) {
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("cpu") => {
                    for (time, word) in self.cpu.iter_mut().zip(words) {
                        *time = number(word);
                    }
                }
                Some("intr") => self.interrupts = words.next().map_or(0.0, number),
                Some("ctxt") => self.context_switches = words.next().map_or(0.0, number),
                _ => {}
            }
        }
    }

    fn read_disks(&mut self, text: &str) {
        for line in text.lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            // Whole disks only: partitions, loop devices and mapped devices would be counted twice.
            if let [_, _, name, _, _, read, _, _, _, written, ..] = words[..]
                && fs::exists(format!("/sys/block/{name}")).unwrap_or(false)
                && !name.starts_with("loop")
                && !name.starts_with("dm-")
            {
                self.disk_read_bytes += number(read) * SECTOR_BYTES;
                self.disk_write_bytes += number(written) * SECTOR_BYTES;
            }
        }
    }

    fn read_network(&mut self, text: &str) {
        for line in text.lines() {
            let Some((name, rest)) = line.split_once(':') else { continue };
            let words: Vec<&str> = rest.split_ascii_whitespace().collect();
            if name.trim() != "lo" && words.len() > 8 {
                self.network_read_bytes += number(words[0]);
                self.network_write_bytes += number(words[8]);
            }
        }
    }

    fn read_faults(&mut self, text: &str) {
        for line in text.lines() {
            match line.split_once(' ') {
                Some(("pgfault", count)) => self.faults = number(count),
                Some(("pgmajfault", count)) => self.major_faults = number(count),
                _ => {}
            }
        }
    }

    fn read_memory(&mut self, text: &str) {
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|line| line.split_ascii_whitespace().next()).map_or(0.0, number) as u64 * 1024
        };
        let (total, free) = (field("MemTotal"), field("MemFree"));
        let (cached, buffered) = (field("Cached"), field("Buffers"));
        self.memory.memory_used_bytes = total.saturating_sub(free + cached + buffered);
        self.memory.memory_free_bytes = free;
        self.memory.memory_cached_bytes = cached;
        self.memory.memory_buffered_bytes = buffered;
    }

    fn since(&self, before: &Self, elapsed_seconds: f64, run: u32, seconds: f64) -> SystemSample {
        let rate = |now: f64, before: f64| (now - before).max(0.0) / elapsed_seconds.max(1e-9);
        let total: f64 = self.cpu.iter().sum::<f64>() - before.cpu.iter().sum::<f64>();
        // The columns of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal.
        let share = |columns: &[usize]| {
            let ticks: f64 = columns.iter().map(|&column| self.cpu[column] - before.cpu[column]).sum();
            if total > 0.0 { (ticks / total).clamp(0.0, 1.0) } else { 0.0 }
        };
        SystemSample {
            run,
            seconds,
            disk_read_bytes_per_second: rate(self.disk_read_bytes, before.disk_read_bytes),
            disk_write_bytes_per_second: rate(self.disk_write_bytes, before.disk_write_bytes),
            network_read_bytes_per_second: rate(self.network_read_bytes, before.network_read_bytes),
            network_write_bytes_per_second: rate(self.network_write_bytes, before.network_write_bytes),
            cpu_user: share(&[0, 1]),
            cpu_system: share(&[2, 5, 6]),
            cpu_idle: share(&[3]),
            cpu_wait: share(&[4]),
            interrupts_per_second: rate(self.interrupts, before.interrupts),
            context_switches_per_second: rate(self.context_switches, before.context_switches),
            major_faults_per_second: rate(self.major_faults, before.major_faults),
            minor_faults_per_second: rate(self.faults - self.major_faults, before.faults - before.major_faults),
            ..self.memory.clone()
        }
    }
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_is_understood() {
        let mut before = Counters::default();
        before.read_stat("cpu  100 0 50 800 50 0 0 0 0 0\nintr 1000 1 2\nctxt 500\n");
        let mut after = Counters::default();
        after.read_stat("cpu  160 0 60 820 60 0 0 0 0 0\nintr 1400 1 2\nctxt 700\n");
        after.read_network("Inter-|\n face |bytes\n  lo: 9 0 0 0 0 0 0 0 9 0\neth0: 2000 1 0 0 0 0 0 0 500 1\n");
        after.read_memory("MemTotal: 100 kB\nMemFree: 40 kB\nCached: 20 kB\nBuffers: 10 kB\n");
        let sample = after.since(&before, 2.0, 3, 7.0);
        assert_eq!((sample.run, sample.seconds), (3, 7.0));
        assert!((sample.cpu_user - 0.6).abs() < 1e-9 && (sample.cpu_wait - 0.1).abs() < 1e-9);
        assert!((sample.interrupts_per_second - 200.0).abs() < 1e-9);
        assert!((sample.context_switches_per_second - 100.0).abs() < 1e-9);
        assert!((sample.network_read_bytes_per_second - 1000.0).abs() < 1e-9);
        assert_eq!(sample.memory_used_bytes, 30 * 1024);
    }

    #[test]
    fn what_others_do_is_what_this_process_does_not() {
        let before = Machine { busy_seconds: 10.0, own_seconds: 1.0, disk_bytes: 500.0, own_disk_bytes: 100.0 };
        let after = Machine { busy_seconds: 14.0, own_seconds: 4.0, disk_bytes: 900.0, own_disk_bytes: 500.0 };
        let others = after.since(&before, 2.0).unwrap();
        assert_eq!((others.cores, others.disk_bytes_per_second), (0.5, 0.0));
        let own = own_disk_bytes("rchar: 9\nread_bytes: 4096\nwrite_bytes: 10\n");
        assert!((own - 4106.0).abs() < 1e-9);
    }

    #[test]
    fn work_is_sampled_at_least_once() {
        let (result, samples) = while_sampling(1, || 5);
        assert_eq!(result, 5);
        assert!(!samples.is_empty());
    }
}
