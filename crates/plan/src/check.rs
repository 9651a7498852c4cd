//! Reading profiles and plans, and refusing what no measurement can have given.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::profile::{Caching, Profile, Runs, StrategyProfile};

/// Larger than any possible time, size or rate. This bound keeps sums, squares and quotients of measurements finite.
const AMOUNT_MAX: f64 = 1e30;

/// No clock that measures runs is finer.
const RUN_SECONDS_MIN: f64 = 1e-9;

/// No format makes more of its input than this says.
const RATIO_MIN: f64 = 1e-6;

const MEASURE_AGAIN: &str = "measure it again with `forebay profile`";

impl Profile {
    /// A profile from the text of `profile.json`. A layout of another version is refused.
    pub fn parse(text: &str) -> Result<Self> {
        parse("profile", Self::VERSION, text)
    }

    /// The text of `profile.json`.
    pub fn to_json(&self) -> Result<String> {
        to_json("profile", self)
    }

    /// Checks that every number is one that a measurement can give: counts that fit the pipeline, finite times and rates
    /// that are not negative, and at least one run of each strategy unless none was meant to be. Planning does this first.
    pub fn check(&self) -> Result<()> {
        if self.version != Self::VERSION {
            return Err(version_error("profile", Self::VERSION, u64::from(self.version)));
        }
        let steps = self.pipeline.steps.len() + 1;
        require(self.steps.len() == steps, "steps", &self.steps.len(), "one cost for reading and one per step")?;
        require(self.method.sample_count > 0, "method.sample_count", &0, "1 or more")?;
        require(!self.strategies.is_empty(), "strategies", &"[]", "at least one strategy")?;
        amount("method.seconds", self.method.seconds)?;
        amount("machine.memory_bytes_per_second", self.machine.memory_bytes_per_second)?;
        amount("storage.sequential_bytes_per_second", self.storage.sequential_bytes_per_second)?;
        amount("storage.stream_bytes_per_second", self.storage.stream_bytes_per_second)?;
        amount("storage.cpu_seconds_per_byte", self.storage.cpu_seconds_per_byte)?;
        amount("storage.files_per_second", self.storage.files_per_second)?;
        amount("storage.file_bytes", self.storage.file_bytes)?;
        for step in &self.steps {
            amount(&format!("steps.{}.cpu_seconds", step.name), step.cpu_seconds)?;
            amount(&format!("steps.{}.bytes_out", step.name), step.bytes_out)?;
        }
        for (number, strategy) in self.strategies.iter().enumerate() {
            let twin = self.strategies[..number].iter().any(|other| other.name == strategy.name);
            require(!twin, "strategies", &strategy.name, "a list of strategies with different names")?;
            self.check_strategy(strategy)?;
        }
        for cost in &self.compressions {
            let field = |name: &str| format!("compressions.{}.{name}", cost.strategy);
            let ratio = (RATIO_MIN..=AMOUNT_MAX).contains(&cost.ratio);
            require(ratio, &field("ratio"), &cost.ratio, "above 0, and finite")?;
            amount(&field("compress_bytes_per_second"), cost.compress_bytes_per_second)?;
            amount(&field("decompress_bytes_per_second"), cost.decompress_bytes_per_second)?;
            let share = (0.0..=1.0).contains(&cost.reader_share);
            require(share, &field("reader_share"), &cost.reader_share, "from 0 to 1")?;
        }
        Ok(())
    }

    fn check_strategy(&self, strategy: &StrategyProfile) -> Result<()> {
        let field = |name: &str| format!("strategies.{}.{name}", strategy.name);
        let position = strategy.split.position;
        require(position <= self.steps.len(), &field("split.position"), &position, "within the pipeline")?;
        amount(&field("bytes_per_sample"), strategy.bytes_per_sample)?;
        amount(&field("prep_seconds"), strategy.prep_seconds)?;
        amount(&field("deserialize_cpu_seconds"), strategy.deserialize_cpu_seconds)?;
        amount(&field("online_cpu_seconds"), strategy.online_cpu_seconds)?;
        for (name, alone) in [("reading", strategy.reading), ("working", strategy.working)] {
            let Some(alone) = alone else { continue };
            let figures = [
                ("samples_per_second", alone.samples_per_second),
                ("min_samples_per_second", alone.min_samples_per_second),
                ("max_samples_per_second", alone.max_samples_per_second),
                ("cpu_seconds", alone.cpu_seconds),
            ];
            for (figure, value) in figures {
                amount(&field(&format!("{name}.{figure}")), value)?;
            }
        }
        for run in &strategy.runs {
            let right = (RUN_SECONDS_MIN..=AMOUNT_MAX).contains(&run.seconds);
            require(right, &field("runs.seconds"), &run.seconds, "a nanosecond or more, and finite")?;
            require(run.passes > 0, &field("runs.passes"), &0, "1 or more")?;
            amount(&field("runs.others.cores"), run.others.map_or(0.0, |others| others.cores))?;
        }
        let runs = strategy.runs.len();
        // Of one that is only promising by the costs of its compression, the cost model speaks.
        if runs == 0 && self.compression_cost(&strategy.name).is_some() {
            return Ok(());
        }
        match (self.method.runs, self.method.caching) {
            (Runs::None | Runs::Fast, _) => Ok(()),
            (Runs::Each(_), Caching::System) if runs < 2 => Err(Error::Value {
                field: field("runs"),
                found: format!("{runs} runs"),
                expected: "2 runs or more, since the first run of system caching fills the page cache",
                hint: "profile with `--runs 2` or more",
            }),
            _ => require(runs > 0, &field("runs"), &"[]", "at least one run"),
        }
    }
}

/// A file of this crate from its text, once its version is known to be readable.
pub(crate) fn parse<T: DeserializeOwned>(what: &'static str, expected: u32, text: &str) -> Result<T> {
    /// The one key that every version has, and those that distinguish a plan from a profile.
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
        chosen: Option<IgnoredAny>,
        strategies: Option<IgnoredAny>,
    }
    let json_error = |source| Error::Json { what, source };
    let Versioned { version: found, chosen, strategies } = serde_json::from_str(text).map_err(json_error)?;
    match (what, chosen, strategies) {
        ("profile", Some(_), None) => return Err(Error::Other { wanted: what, found: "plan" }),
        ("plan", None, Some(_)) => return Err(Error::Other { wanted: what, found: "profile" }),
        _ => {}
    }
    if found != u64::from(expected) {
        return Err(version_error(what, expected, found));
    }
    serde_json::from_str(text).map_err(json_error)
}

pub(crate) fn to_json<T: Serialize>(what: &'static str, value: &T) -> Result<String> {
    let mut text = serde_json::to_string_pretty(value).map_err(|source| Error::Write { what, source })?;
    text.push('\n');
    Ok(text)
}

fn version_error(what: &'static str, expected: u32, found: u64) -> Error {
    Error::Version { what, expected, found }
}

fn amount(field: &str, value: f64) -> Result<()> {
    require((0.0..=AMOUNT_MAX).contains(&value), field, &value, "0 or more, and finite")
}

fn require(right: bool, field: &str, found: &impl ToString, expected: &'static str) -> Result<()> {
    if right {
        return Ok(());
    }
    Err(Error::Value { field: field.to_owned(), found: found.to_string(), expected, hint: MEASURE_AGAIN })
}
