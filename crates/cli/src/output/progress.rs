//! Progress on standard error: a bar where that is a terminal, else a line now and then.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use forebay_engine::Progress;
use forebay_plan::units;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Style, visible};
use crate::interrupt::{Working, is_interrupted};

/// Without a terminal, progress is said no more often than this: enough for a log, and silent in short runs.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The bars of one command, one after another.
pub(crate) struct Bars {
    terminal: bool,
    colors: bool,
    current: Mutex<Option<Current>>,
    /// Whoever shows progress also asks whether it is still wanted.
    _working: Working,
}

struct Current {
    what: String,
    samples: u64,
    done: u64,
    begun: Instant,
    said: Instant,
    bar: Option<ProgressBar>,
}

impl Bars {
    pub(super) fn new(terminal: bool, colors: bool) -> Self {
        Self { terminal, colors, current: Mutex::new(None), _working: Working::begin() }
    }

    fn current(&self) -> MutexGuard<'_, Option<Current>> {
        // A panic elsewhere must not hide itself behind a second one here.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bar(&self, samples: u64) -> ProgressBar {
        let color = if self.colors { ".green" } else { "" };
        let template =
            format!("{{prefix:>22}} {{bar:24{color}}} {{human_pos}}/{{human_len}} {{per_sec}} {{eta:>4}} left");
        // The template is fixed, so it cannot fail; the fallback is the plain one.
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        let rate = |state: &indicatif::ProgressState, text: &mut dyn std::fmt::Write| {
            let _ = write!(text, "{}/s", units::number(state.per_sec()));
        };
        let style = style.with_key("per_sec", rate).progress_chars("━╸ ");
        ProgressBar::with_draw_target(Some(samples), ProgressDrawTarget::stderr()).with_style(style)
    }

    fn say(&self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{}", Style::Faint.paint(&visible(text), self.colors));
    }
}

impl Progress for Bars {
    fn begin(&self, what: &str, samples: u64) {
        let bar = self.terminal.then(|| self.bar(samples).with_prefix(visible(what).into_owned()));
        let now = Instant::now();
        *self.current() = Some(Current { what: what.to_owned(), samples, done: 0, begun: now, said: now, bar });
    }

    fn advance(&self, samples: u64) {
        let mut current = self.current();
        let Some(current) = current.as_mut() else { return };
        current.done += samples;
        if let Some(bar) = &current.bar {
            bar.inc(samples);
        } else if current.said.elapsed() >= LINE_EVERY {
            current.said = Instant::now();
            let rate = current.done as f64 / current.begun.elapsed().as_secs_f64();
            let left = (current.samples.saturating_sub(current.done)) as f64 / rate;
            let [done, all] = [current.done, current.samples].map(units::count);
            let [rate, left] = [units::number(rate), units::seconds(left)];
            self.say(&format!("{}: {done} of {all} samples, {rate} samples/s, {left} left", current.what));
        }
    }

    fn end(&self) {
        if let Some(bar) = self.current().take().and_then(|current| current.bar) {
            bar.finish_and_clear();
        }
    }

    fn is_cancelled(&self) -> bool {
        is_interrupted()
    }

    fn note(&self, message: &str) {
        match self.current().as_ref().and_then(|current| current.bar.as_ref()) {
            Some(bar) => bar.suspend(|| self.say(message)),
            None => self.say(message),
        }
    }
}

impl Drop for Bars {
    /// Work that failed does not end its bar.
    fn drop(&mut self) {
        self.end();
    }
}
