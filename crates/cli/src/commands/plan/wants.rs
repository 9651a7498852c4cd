//! What is wanted of a plan beyond weights and limits: a named objective, prices, another machine.

use clap::{Args, ValueEnum};
use forebay_plan::{Error as PlanError, Objective, Prices, Weights, WhatIf};

use crate::error::{Error, Result};
use forebay_storage::{parse_bytes, parse_bytes_per_second, parse_seconds};

/// Options that `plan` and `report` share.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Wants {
    /// Optimize a single criterion instead of --weights [default: throughput]
    #[arg(long, value_name = "CRITERION")]
    objective: Option<Criterion>,
    /// Predict for another machine with the cost model (comma-separated): `cores=32,read=910MB/s,memory=80GB,trainer=1200/s`,
    /// also `files=500/s` (source files), `samples=1281167`, and of an object store `latency=50ms` and `requests=3500/s`. Keys that are not
    /// given stay as measured
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = what_if)]
    what_if: Option<WhatIf>,
    /// Prices in any currency (comma-separated): `cpu_hour=0.04,gb_month=0.02,accelerator_hour=2.5`, also `request=0.0004` (1,000 requests to an
    /// object store)
    #[arg(long, value_name = "KEY=PRICE,…", value_parser = prices)]
    price: Option<Prices>,
    /// Number of epochs that the accelerator is paid for
    #[arg(long, value_name = "N", requires = "price")]
    epochs: Option<u64>,
    /// Number of months that the storage is paid for
    #[arg(long, value_name = "N", requires = "price")]
    months: Option<f64>,
}

/// One criterion alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Criterion {
    /// Highest throughput
    Throughput,
    /// Least storage
    Storage,
    /// Shortest preparation time
    Prep,
    /// Lowest cost (requires --price)
    Money,
}

impl Wants {
    /// `objective` with what was asked for here.
    pub(crate) fn objective(&self, objective: &Objective) -> Result<Objective> {
        let prices = self.price.map(|prices| self.for_how_long(prices)).transpose()?;
        if self.objective == Some(Criterion::Money) && prices.is_none() {
            return Err(Error::usage(
                "`--objective money` requires `--price`",
                "add `--price accelerator_hour=2.5,gb_month=0.02 --epochs 90 --months 6`, with your own figures",
            ));
        }
        Ok(Objective {
            weights: self.objective.map_or(objective.weights, weights),
            prices,
            what_if: self.what_if.or(objective.what_if),
            ..*objective
        })
    }

    /// The prices with how long they are paid.
    fn for_how_long(&self, prices: Prices) -> Result<Prices> {
        prices.paid_for(self.epochs, self.months).map_err(|error| match error {
            PlanError::Unpaid { price, missing } => {
                Error::usage(format!("the price of `{price}` needs `--{missing}`"), format!("pass `--{missing} N`"))
            }
            source => Error::Plan { about: String::new(), source },
        })
    }
}

fn weights(criterion: Criterion) -> Weights {
    let none = Weights { prep: 0.0, storage: 0.0, throughput: 0.0, money: 0.0 };
    match criterion {
        Criterion::Throughput => Weights { throughput: 1.0, ..none },
        Criterion::Storage => Weights { storage: 1.0, ..none },
        Criterion::Prep => Weights { prep: 1.0, ..none },
        Criterion::Money => Weights { money: 1.0, ..none },
    }
}

/// The keys and values of `key=value,key=value`, each key once.
fn pairs(text: &str) -> Result<Vec<(&str, &str)>, String> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("expected `key=value`, found `{part}`"))?;
        let (key, value) = (key.trim(), value.trim());
        if found.iter().any(|(other, _)| *other == key) {
            return Err(format!("`{key}` is given twice"));
        }
        found.push((key, value));
    }
    Ok(found)
}

fn what_if(text: &str) -> Result<WhatIf, String> {
    let mut what_if = WhatIf::default();
    for (key, value) in pairs(text)? {
        match key {
            "cores" => what_if.cores = Some(count(value)? as usize),
            "samples" => what_if.samples = Some(count(value)?),
            "memory" => what_if.memory_bytes = Some(parse_bytes(with_unit(value)?)?),
            "read" => what_if.read_bytes_per_second = Some(parse_bytes_per_second(value)?),
            "files" => what_if.files_per_second = Some(number(per_second(value))?),
            "latency" => what_if.latency_seconds = Some(parse_seconds(with_unit(value)?)?),
            "requests" => what_if.requests_per_second = Some(number(per_second(value))?),
            "trainer" => what_if.trainer_samples_per_second = Some(number(per_second(value))?),
            other => {
                let known = "cores, read, files, latency, requests, memory, trainer, samples";
                return Err(format!("unknown key `{other}`; expected {known}"));
            }
        }
    }
    Ok(what_if)
}

fn prices(text: &str) -> Result<Prices, String> {
    let mut prices = Prices::default();
    for (key, value) in pairs(text)? {
        let price = number(value)?;
        match key {
            "cpu_hour" => prices.cpu_hour = price,
            "gb_month" => prices.gb_month = price,
            "accelerator_hour" => prices.accelerator_hour = price,
            "request" => prices.request = price,
            other => {
                return Err(format!("unknown key `{other}`; expected cpu_hour, gb_month, accelerator_hour, request"));
            }
        }
    }
    Ok(prices)
}

fn per_second(value: &str) -> &str {
    value.strip_suffix("/s").unwrap_or(value).trim()
}

/// Bytes alone are too few to be meant.
fn with_unit(value: &str) -> Result<&str, String> {
    if value.ends_with(|letter: char| letter.is_ascii_digit()) {
        return Err(format!("`{value}` has no unit; write `910MB/s` for a rate, `80GB` for a size, `50ms` for a time"));
    }
    Ok(value)
}

fn count(value: &str) -> Result<u64, String> {
    value
        .parse()
        .ok()
        .filter(|count| *count > 0)
        .ok_or_else(|| format!("expected an integer of at least 1, found `{value}`"))
}

fn number(value: &str) -> Result<f64, String> {
    let number = value.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| format!("expected a number of at least 0, found `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_is_written_with_units() {
        let found = what_if("cores=32, read=910MB/s,memory=80GB,trainer=1200/s,latency=50ms").unwrap();
        let expected = WhatIf {
            cores: Some(32),
            read_bytes_per_second: Some(910e6),
            memory_bytes: Some(80_000_000_000),
            trainer_samples_per_second: Some(1200.0),
            latency_seconds: Some(0.05),
            ..WhatIf::default()
        };
        assert_eq!(found, expected);
        for wrong in [
            "",
            "cores",
            "cores=0",
            "cores=2,cores=4",
            "gpu=3",
            "read=fast",
            "read=910",
            "latency=50",
            "memory=80",
            "trainer=-1/s",
            "trainer=inf",
        ] {
            assert!(what_if(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn prices_have_names() {
        let found = prices("cpu_hour=0.04,accelerator_hour=2.5,request=0.0004").unwrap();
        assert_eq!((found.cpu_hour, found.gb_month, found.accelerator_hour, found.request), (0.04, 0.0, 2.5, 0.0004));
        assert!(prices("cpu=1").unwrap_err().contains("cpu_hour"));
    }
}
