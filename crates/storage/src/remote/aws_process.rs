//! Keys that a program prints: the `credential_process` of a profile, as the AWS tools have it.
//!
//! The program belongs to whoever wrote the profile. It prints JSON (<https://docs.aws.amazon.com/sdkref/latest/guide/feature-process-credentials.html>):
//!
//! ```text
//! {"Version": 1, "AccessKeyId": "…", "SecretAccessKey": "…", "SessionToken": "…", "Expiration": "2026-11-18T12:00:00Z"}
//! ```
//!
//! Nothing that it prints is ever repeated, and neither is its command: both may have secrets.

use std::fmt;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use chrono::DateTime;
use object_store::aws::AwsCredential;
use object_store::{CredentialProvider, Error, Result};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::aws_profile::Profile;
use super::failure::with_hint;
use super::keys::Secret;
use crate::error::WithHint;

/// How long it may take, and how much it may print: as other tools have it, the second with some to spare.
const TIME_MAX: Duration = Duration::from_mins(1);
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// How often it is looked whether it is done.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// So long before keys expire the next ones are asked for.
const RENEW_BEFORE: Duration = Duration::from_mins(5);
/// How long it is left alone when it failed: many threads may want keys.
const REST: Duration = Duration::from_secs(10);

/// The keys that a program prints, and prints anew before they expire.
#[derive(Clone)]
pub(super) struct ProcessKeys {
    inner: Arc<Inner>,
}

struct Inner {
    profile: Profile,
    command: String,
    time_max: Duration,
    /// Held while it runs: others who need keys wait for these.
    running: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    keys: Option<Printed>,
    /// No sooner than this it is run again.
    renew: Option<SystemTime>,
    /// What it came to the last time, if that was nothing.
    failed: Option<(Instant, WithHint)>,
}

/// What the program printed.
#[derive(Clone)]
struct Printed {
    keys: Arc<AwsCredential>,
    /// For good, where it does not say.
    until: Option<SystemTime>,
}

impl ProcessKeys {
    /// `None` where the profile names no program. It is not run before its keys are needed.
    pub(super) fn of(profile: &Profile) -> Option<Self> {
        let command = profile.process()?;
        let profile = profile.clone();
        let (running, state) = (Mutex::default(), Mutex::default());
        Some(Self { inner: Arc::new(Inner { profile, command, time_max: TIME_MAX, running, state }) })
    }
}

impl fmt::Debug for ProcessKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ProcessKeys").finish_non_exhaustive()
    }
}

#[async_trait]
impl CredentialProvider for ProcessKeys {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>> {
        if let Some(keys) = self.inner.lock().fresh() {
            return Ok(keys);
        }
        let inner = Arc::clone(&self.inner);
        // The threads of the runtime move the bytes of everybody else.
        let got = tokio::task::spawn_blocking(move || inner.renewed()).await;
        let failed = |source| Error::Generic { store: "S3", source };
        got.map_err(|error| failed(error.into()))?.map_err(|said| failed(said.into()))
    }
}

impl Inner {
    /// Usable keys: the current ones, or new ones.
    fn renewed(&self) -> std::result::Result<Arc<AwsCredential>, WithHint> {
        let _running = match self.running.try_lock() {
            Ok(running) => running,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                // Another thread is renewing them. The current ones are still valid.
                if let Some(keys) = self.lock().valid() {
                    return Ok(keys);
                }
                self.running.lock().unwrap_or_else(PoisonError::into_inner)
            }
        };
        {
            let state = self.lock();
            if let Some(keys) = state.fresh() {
                return Ok(keys);
            }
            if let Some((_, said)) = state.failed.as_ref().filter(|(when, _)| when.elapsed() < REST) {
                return state.valid().ok_or_else(|| said.clone());
            }
        }
        let printed = run(&self.command, self.time_max).and_then(|output| parse(&output));
        let mut state = self.lock();
        match printed {
            Ok(printed) => {
                state.renew = printed.renew(SystemTime::now());
                state.failed = None;
                Ok(Arc::clone(&state.keys.insert(printed).keys))
            }
            Err(why) => {
                let said = self.say(&why);
                state.failed = Some((Instant::now(), said.clone()));
                state.valid().ok_or(said)
            }
        }
    }

    fn say(&self, why: &str) -> WithHint {
        let said = format!("the `credential_process` of profile `{}` {why}", self.profile.shown());
        with_hint(said, "run its command (see ~/.aws/config) in a terminal: it may ask you to sign in")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // It is consistent between any two statements, so a panic elsewhere does not spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Keys that need not be renewed yet.
    fn fresh(&self) -> Option<Arc<AwsCredential>> {
        self.valid().filter(|_| self.renew.is_none_or(|renew| SystemTime::now() < renew))
    }

    /// Keys that did not expire yet.
    fn valid(&self) -> Option<Arc<AwsCredential>> {
        let printed = self.keys.as_ref()?;
        let is_valid = printed.until.is_none_or(|until| SystemTime::now() < until);
        is_valid.then(|| Arc::clone(&printed.keys))
    }
}

impl Printed {
    /// When to ask for the next ones: some time before the end. A program that keeps keys gives the same ones again until then, and is not run for
    /// every request of their last minutes.
    fn renew(&self, now: SystemTime) -> Option<SystemTime> {
        let left = self.until?.duration_since(now).unwrap_or_default();
        Some(now + left.saturating_sub(RENEW_BEFORE).max(left / 2))
    }
}

/// What the program prints, if it succeeds in time.
fn run(command: &str, time_max: Duration) -> std::result::Result<Vec<u8>, String> {
    let deadline = Instant::now() + time_max;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // In a process group of its own, so that all of it can be killed.
    let child = shell.process_group(0).spawn().map_err(|error| format!("cannot be run: {error}"))?;
    let mut running = Running { child, is_over: false };
    let (status, output) = running.output(deadline).map_err(|error| match error.kind() {
        io::ErrorKind::TimedOut => format!("does not end within {} s", time_max.as_secs()),
        io::ErrorKind::FileTooLarge => format!("prints more than {OUTPUT_BYTES_MAX} bytes"),
        _ => format!("cannot be read from: {error}"),
    })?;
    if status.success() { Ok(output) } else { Err(format!("failed ({status})")) }
}

/// A program that is ended when this is dropped, with everything that it started, unless it came to its end.
struct Running {
    child: Child,
    is_over: bool,
}

impl Running {
    /// How it ended, and what it printed until then. (What it started in the background may go on.)
    fn output(&mut self, deadline: Instant) -> io::Result<(ExitStatus, Vec<u8>)> {
        let mut pipe = self.child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let mut output = Vec::new();
        loop {
            // Looked at before what it printed is taken, so that nothing is printed later.
            let ended = self.child.try_wait()?;
            self.is_over = ended.is_some();
            match (&mut pipe).take((OUTPUT_BYTES_MAX + 1 - output.len()) as u64).read_to_end(&mut output) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ if output.len() > OUTPUT_BYTES_MAX => return Err(io::ErrorKind::FileTooLarge.into()),
                _ => {}
            }
            if let Some(status) = ended {
                return Ok((status, output));
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// The keys in what was printed.
fn parse(output: &[u8]) -> std::result::Result<Printed, String> {
    // What serde says of it may repeat parts of it.
    let found: Value = serde_json::from_slice(output)
        .map_err(|error| format!("prints no JSON (line {}, column {})", error.line(), error.column()))?;
    if found.get("Version").and_then(Value::as_u64) != Some(1) {
        return Err("does not print `\"Version\": 1`".to_owned());
    }
    let text = |name: &str| found.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let needed = |name: &str| text(name).ok_or_else(|| format!("prints no `{name}`"));
    let (key_id, secret_key) = (needed("AccessKeyId")?, needed("SecretAccessKey")?);
    let keys = AwsCredential { key_id, secret_key, token: text("SessionToken") };
    keys.keep();
    let until = match found.get("Expiration") {
        None | Some(Value::Null) => None,
        Some(_) => Some(
            text("Expiration").and_then(|time| parse_time(&time)).ok_or("prints an `Expiration` that is no time")?,
        ),
    };
    if until.is_some_and(|until| until <= SystemTime::now()) {
        return Err("prints keys that have expired".to_owned());
    }
    Ok(Printed { keys: Arc::new(keys), until })
}

fn parse_time(text: &str) -> Option<SystemTime> {
    let milliseconds = DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis();
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_or_refused_without_repeating_it() {
        let keys = r#""AccessKeyId": "ASIAPRINTED00001", "SecretAccessKey": "hunter22""#;
        let printed = |text: &str| parse(text.as_bytes());
        let good = printed(&format!(r#"{{"Version": 1, {keys}, "SessionToken": "token22", "More": []}}"#));
        let good = good.map(|printed| (printed.keys.token.clone(), printed.until)).ok();
        assert_eq!(good, Some((Some("token22".to_owned()), None)));
        let timed = printed(&format!(r#"{{"Version": 1, {keys}, "Expiration": "2099-01-01T01:00:00.5+01:00"}}"#));
        let until = SystemTime::UNIX_EPOCH + Duration::from_millis(4_070_908_800_500);
        assert_eq!(timed.ok().and_then(|printed| printed.until), Some(until));
        for (text, expected) in [
            ("hunter22".to_owned(), "prints no JSON (line 1, column 1)"),
            (format!("{{{keys}}}"), "does not print `\"Version\": 1`"),
            (format!(r#"{{"Version": "hunter22", {keys}}}"#), "does not print `\"Version\": 1`"),
            (r#"{"Version": 1, "AccessKeyId": "hunter22"}"#.to_owned(), "prints no `SecretAccessKey`"),
            (
                format!(r#"{{"Version": 1, {keys}, "Expiration": "hunter22"}}"#),
                "prints an `Expiration` that is no time",
            ),
            (
                format!(r#"{{"Version": 1, {keys}, "Expiration": "2001-01-01T00:00:00Z"}}"#),
                "prints keys that have expired",
            ),
        ] {
            assert_eq!(printed(&text).err().as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_program_ends_in_bounded_time_and_output() {
        let said = |command: &str| run(command, Duration::from_secs(1)).map(|output| output.len());
        assert_eq!(said("printf 12345; echo secret >&2"), Ok(5));
        assert_eq!(said(&format!("head -c {OUTPUT_BYTES_MAX} /dev/zero")), Ok(OUTPUT_BYTES_MAX));
        assert_eq!(said("echo secret >&2; exit 3"), Err("failed (exit status: 3)".to_owned()));
        let begun = Instant::now();
        // Of one that starts others, all are ended.
        assert_eq!(said("sleep 100 | sleep 100"), Err("does not end within 1 s".to_owned()));
        assert_eq!(said("cat /dev/zero"), Err("prints more than 65536 bytes".to_owned()));
        // What it leaves behind is not waited for, though it could print more.
        assert_eq!(said("sleep 20 & printf x"), Ok(1));
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }

    #[test]
    fn keys_are_renewed_before_they_expire() {
        let now = SystemTime::now();
        let renewed = |left: u64| {
            let keys = Arc::new(AwsCredential { key_id: String::new(), secret_key: String::new(), token: None });
            let printed = Printed { keys, until: Some(now + Duration::from_secs(left)) };
            printed.renew(now).and_then(|renew| renew.duration_since(now).ok()).map(|after| after.as_secs())
        };
        assert_eq!([3600, 600, 60, 0].map(renewed), [Some(3300), Some(300), Some(30), Some(0)]);
    }
}
