//! How fast a simulated storage is: the figures, the presets, and how they are written on a command line.

use serde::{Deserialize, Serialize};

use crate::quantity::{parse_bytes_per_second, parse_seconds};
use crate::{Error, Result};

/// One million bytes, the MB of storage makers, of `fio` and of the papers.
const MEGABYTE: f64 = 1e6;

/// The figures of a storage that is slower than the real one.
///
/// A *stream* is one read in progress, so a thread that reads without pause is one stream. A *seek* happens at the first
/// read of an opened file and whenever a read does not continue where the previous read of that open file ended.
///
/// - A stream gets at most `stream_bytes_per_second`; all together get at most `total_bytes_per_second`.
/// - A seek takes `seek_seconds`; all together start at most `seeks_per_second` seeks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Throttle {
    /// The name of a preset, or the full `custom:` text; [`Throttle::parse`] accepts it.
    pub name: String,
    /// The most that one stream gets.
    pub stream_bytes_per_second: f64,
    /// The most that all streams together get.
    pub total_bytes_per_second: f64,
    /// How long a seek takes.
    pub seek_seconds: f64,
    /// How many seeks all streams together may start per second; `None` for any number.
    pub seeks_per_second: Option<f64>,
}

impl Throttle {
    /// The names that [`Throttle::preset`] knows.
    pub const PRESETS: [&'static str; 3] = ["hdd", "ssd", "ceph-hdd"];

    /// The figures of a known kind of storage.
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "hdd" => Some(hard_disk()),
            "ssd" => Some(solid_state_disk()),
            "ceph-hdd" => Some(ceph_on_hard_disks()),
            _ => None,
        }
    }

    /// Reads the name of a preset, or figures such as `custom:read=200MB/s,stream=100MB/s,seek=8ms,iops=120`.
    ///
    /// `read` is for all streams together and must be given; `stream` is the same unless given, `seek` is 0 and `iops` has
    /// no limit. Rates take `B/s`, `kB/s`, `MB/s`, `GB/s`, `KiB/s`, `MiB/s`, `GiB/s`; times `s`, `ms`, `us`: see [`crate::parse_bytes`].
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some(preset) = Self::preset(text) {
            return Ok(preset);
        }
        let refuse = |reason: String| Error::Throttle {
            text: text.to_owned(),
            reason,
            hint: format!(
                "one of `{}`, or `custom:read=200MB/s,stream=100MB/s,seek=8ms,iops=120`",
                Self::PRESETS.join("`, `")
            ),
        };
        let Some(settings) = text.strip_prefix("custom:") else {
            return Err(refuse("there is no such preset".to_owned()));
        };
        let throttle = parse_settings(text, settings).map_err(refuse)?;
        throttle.check()?;
        Ok(throttle)
    }

    /// Refuses figures that are not numbers or so extreme that a read would never end.
    pub fn check(&self) -> Result<()> {
        let range = |name, value: f64, allowed: std::ops::RangeInclusive<f64>, expected| {
            if allowed.contains(&value) {
                Ok(())
            } else {
                Err(Error::Argument { name, found: value.to_string(), expected })
            }
        };
        let rate = "from 1 to 1e15 bytes per second";
        range("stream_bytes_per_second", self.stream_bytes_per_second, 1.0..=1e15, rate)?;
        range("total_bytes_per_second", self.total_bytes_per_second, 1.0..=1e15, rate)?;
        range("seek_seconds", self.seek_seconds, 0.0..=60.0, "from 0 to 60 seconds")?;
        let seeks = self.seeks_per_second.unwrap_or(1.0);
        range("seeks_per_second", seeks, 0.01..=1e9, "from 0.01 to 1e9 per second")
    }
}

/// The storage cluster of PRESTO (Isenko et al. 2022, section 3.3 and Table 3: `fio`, 4 KB blocks, page cache dropped):
/// `CephFS` on hard disks behind 10 Gb/s.
///
/// | threads | files per thread | MB/s | used for                                         |
/// |---------|------------------|------|--------------------------------------------------|
/// | 1       | 1 of 5 GB        | 219  | the rate of one stream                           |
/// | 8       | 1 of 5 GB        | 910  | the rate of all streams (8 × 219 would be 1752)  |
/// | 1       | 5000 of 0.2 MB   | 6.6  | the time of a seek                               |
/// | 8       | 5000 of 0.2 MB   | 40.4 | the seeks per second                             |
///
/// One thread reads a file in 0.2 MB / 6.6 MB/s = 30.3 ms, of which 0.2 MB / 219 MB/s = 0.9 ms are transfer: a seek
/// takes the other 29.4 ms. Eight threads read 40.4 / 0.2 = 202 files per second, less than the 8 / 30.3 ms = 264 that the time
/// of a seek alone would allow, so 202 is the cap.
///
/// The table's latency column (4–10 µs for every row) is that of the single 4 KB read, nearly all of which read-ahead serves.
/// It says nothing about seeks and is not used.
fn ceph_on_hard_disks() -> Throttle {
    const STREAM: f64 = 219.0 * MEGABYTE;
    const FILE_BYTES: f64 = 0.2 * MEGABYTE;
    Throttle {
        name: "ceph-hdd".to_owned(),
        stream_bytes_per_second: STREAM,
        total_bytes_per_second: 910.0 * MEGABYTE,
        seek_seconds: FILE_BYTES / (6.6 * MEGABYTE) - FILE_BYTES / STREAM,
        seeks_per_second: Some(40.4 * MEGABYTE / FILE_BYTES),
    }
}

/// One 7200 rpm SATA disk: an assumption, not a measurement. The figures are what Seagate states for the Barracuda 7200.14
/// (156 MB/s on average over the platter, 8.5 ms average seek) plus half a turn, 60 s / 7200 / 2 = 4.2 ms. There is
/// one arm, so seeks queue up; that a disk reorders its queue to save some of them is left out.
fn hard_disk() -> Throttle {
    const SEEK_SECONDS: f64 = 0.0085 + 60.0 / 7200.0 / 2.0;
    Throttle {
        name: "hdd".to_owned(),
        stream_bytes_per_second: 156.0 * MEGABYTE,
        total_bytes_per_second: 156.0 * MEGABYTE,
        seek_seconds: SEEK_SECONDS,
        seeks_per_second: Some(1.0 / SEEK_SECONDS),
    }
}

/// One SATA solid-state disk: an assumption, not a measurement. The figures are what Samsung states for the 860 EVO:
/// 550 MB/s in sequence; 10,000 random reads per second one at a time, hence 0.1 ms each; 98,000 with 32 in flight.
fn solid_state_disk() -> Throttle {
    Throttle {
        name: "ssd".to_owned(),
        stream_bytes_per_second: 550.0 * MEGABYTE,
        total_bytes_per_second: 550.0 * MEGABYTE,
        seek_seconds: 0.0001,
        seeks_per_second: Some(98_000.0),
    }
}

/// Reads what follows `custom:`. The error is the reason alone.
fn parse_settings(name: &str, settings: &str) -> std::result::Result<Throttle, String> {
    let [mut read, mut stream, mut seek, mut iops] = [None; 4];
    for setting in settings.split(',') {
        let Some((key, value)) = setting.split_once('=') else {
            return Err(format!("`{setting}` is not of the form `key=value`"));
        };
        let (key, value) = (key.trim(), value.trim());
        let (slot, figure) = match key {
            "read" => (&mut read, parse_bytes_per_second(value)),
            "stream" => (&mut stream, parse_bytes_per_second(value)),
            "seek" => (&mut seek, parse_time(value)),
            "iops" => (&mut iops, parse_count(value)),
            _ => return Err(format!("there is no setting `{key}`; there are `read`, `stream`, `seek` and `iops`")),
        };
        if slot.replace(figure?).is_some() {
            return Err(format!("`{key}` is given twice"));
        }
    }
    let total = read.ok_or("`read`, the rate of all streams together, is missing")?;
    Ok(Throttle {
        name: name.to_owned(),
        stream_bytes_per_second: stream.unwrap_or(total),
        total_bytes_per_second: total,
        seek_seconds: seek.unwrap_or(0.0),
        seeks_per_second: iops,
    })
}

/// A time with its unit: seconds alone are too many to be meant.
fn parse_time(text: &str) -> std::result::Result<f64, String> {
    if text.ends_with(|letter: char| letter.is_ascii_digit()) {
        return Err(format!("`{text}` has no unit; write a time like `8ms`"));
    }
    parse_seconds(text)
}

fn parse_count(text: &str) -> std::result::Result<f64, String> {
    text.parse().ok().filter(|count: &f64| count.is_finite()).ok_or_else(|| format!("`{text}` is not a number"))
}
