//! Handles Ctrl-C, a closed terminal and SIGTERM: the work is cancelled, temporary files are removed, and the program says so.
//!
//! While there is no work that could clean up, a signal does what it always does. The second one ends the program at once.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// What the handlers know.
struct Flags {
    /// Whether nothing is at work that would see the signal.
    idle: Arc<AtomicBool>,
    /// Whether there was one.
    interrupted: Arc<AtomicBool>,
    /// Which.
    signal: Arc<AtomicUsize>,
}

static FLAGS: LazyLock<Flags> = LazyLock::new(|| Flags {
    idle: Arc::new(AtomicBool::new(true)),
    interrupted: Arc::new(AtomicBool::new(false)),
    signal: Arc::new(AtomicUsize::new(SIGINT as usize)),
});

/// Shells call a program that a signal ended by this and the signal's number.
const EXIT_BASE: i32 = 128;

/// Sees to the signals from now on. The handlers of a signal run in the order in which they are registered here.
pub(crate) fn install() -> io::Result<()> {
    let hang_up = if ignores(SIGHUP) { None } else { Some(SIGHUP) };
    for signal in [SIGINT, SIGTERM].into_iter().chain(hang_up) {
        flag::register_conditional_default(signal, Arc::clone(&FLAGS.idle))?;
        flag::register_conditional_shutdown(signal, EXIT_BASE + signal, Arc::clone(&FLAGS.interrupted))?;
        flag::register_usize(signal, Arc::clone(&FLAGS.signal), signal as usize)?;
        flag::register(signal, Arc::clone(&FLAGS.interrupted))?;
    }
    Ok(())
}

/// Whether the parent process wants a signal ignored, as `nohup` does.
fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

/// Work that asks [`is_interrupted`] now and then, for as long as this is held.
pub(crate) struct Working(());

impl Working {
    pub(crate) fn begin() -> Self {
        FLAGS.idle.store(false, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        FLAGS.idle.store(true, Ordering::SeqCst);
    }
}

/// Whether the user wants no more.
pub(crate) fn is_interrupted() -> bool {
    FLAGS.interrupted.load(Ordering::Relaxed)
}

/// The exit code of a program that a signal ended: 130 after Ctrl-C.
pub(crate) fn exit_code() -> u8 {
    (EXIT_BASE as usize + FLAGS.signal.load(Ordering::Relaxed)) as u8
}
