//! Money: what a strategy costs to prepare, to store and to train from.
//!
//! ```text
//! preparation = preparation hours x cores that prepare x price of a core's hour
//! storage     = GB stored x months x price of a GB's month
//! training    = epochs x hours of an epoch x price of an accelerator's hour
//! requests    = epochs x requests of an epoch / 1000 x price of a thousand requests
//! ```
//!
//! A core is paid for as long as preparing takes, busy or not. The cores that feed the accelerator every epoch are assumed to be part
//! of its price, as they are if both are rented together. Storage is what the strategy stores; if the source
//! files are kept as well, they cost the same whatever is chosen. Amounts are in the currency of the prices.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Prices, and for how long they are paid.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Prices {
    /// An hour of one core.
    pub cpu_hour: f64,
    /// A month of a GB (10^9 bytes) on storage.
    pub gb_month: f64,
    /// An hour of the accelerators that train together.
    pub accelerator_hour: f64,
    /// A thousand requests that read from an object store.
    pub request: f64,
    /// How many epochs are trained.
    pub epochs: u64,
    /// For how many months the data is stored.
    pub months: f64,
}

/// What one strategy costs, in the currency of the prices.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The cores, while they prepare.
    pub prep: f64,
    /// The storage, for all months.
    pub storage: f64,
    /// The accelerators, for all epochs.
    pub training: f64,
    /// The requests, for all epochs.
    #[serde(default)]
    pub requests: f64,
    /// All of them together.
    pub total: f64,
}

impl Prices {
    /// These prices, with for how long they are paid: `epochs` of the accelerators, `months` of the storage. Fails where
    /// something has a price and nothing says for how long, since it would count for nothing.
    pub fn paid_for(self, epochs: Option<u64>, months: Option<f64>) -> Result<Self> {
        for (price, name, missing, given) in [
            (self.accelerator_hour, "accelerator_hour", "epochs", epochs.is_some()),
            (self.request, "request", "epochs", epochs.is_some()),
            (self.gb_month, "gb_month", "months", months.is_some()),
        ] {
            if price > 0.0 && !given {
                return Err(Error::Unpaid { price: name, missing });
            }
        }
        Ok(Self { epochs: epochs.unwrap_or(0), months: months.unwrap_or(0.0), ..self })
    }

    pub(crate) fn check(&self) -> Result<()> {
        let amounts = [
            ("cpu_hour", self.cpu_hour),
            ("gb_month", self.gb_month),
            ("accelerator_hour", self.accelerator_hour),
            ("request", self.request),
            ("months", self.months),
        ];
        for (name, amount) in amounts {
            // The upper bound keeps products finite, so that JSON can represent them.
            if !(0.0..=1e30).contains(&amount) {
                return Err(Error::Argument {
                    name,
                    found: amount.to_string(),
                    expected: "a finite number, 0 or more",
                });
            }
        }
        Ok(())
    }

    /// The cost of a strategy from its preparation time on `cores` cores, its storage, and its seconds and requests per epoch.
    pub fn cost(
        &self,
        prep_seconds: f64,
        cores: usize,
        storage_bytes: u64,
        (epoch_seconds, epoch_requests): (f64, f64),
    ) -> Cost {
        const HOUR_SECONDS: f64 = 3600.0;
        let finite = |amount: f64| amount.min(f64::MAX / 5.0);
        let prep = finite(prep_seconds / HOUR_SECONDS * cores as f64 * self.cpu_hour);
        let storage = finite(storage_bytes as f64 / 1e9 * self.months * self.gb_month);
        let training = finite(self.epochs as f64 * (epoch_seconds / HOUR_SECONDS) * self.accelerator_hour);
        let requests = finite(self.epochs as f64 * (epoch_requests / 1000.0) * self.request);
        Cost { prep, storage, training, requests, total: prep + storage + training + requests }
    }
}
