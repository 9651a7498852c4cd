//! Electrical signals: voltage and current from HDF5, CSV and raw files, and what is computed of them to tell appliances
//! apart (non-intrusive load monitoring, NILM).
//!
//! [`read`] reads the chosen channels of a recording as `float64`; [`Recording::remove_offset`] and
//! [`Recording::calibrate`] turn counts of a converter into volts and amperes; [`NilmFeatures`] makes power, effective
//! current and its cumulative sum of a window.

mod calibrate;
mod csv;
mod features;
mod hdf5;
mod raw;
mod read;

pub use features::{NilmFeatures, NilmPower, cumulative_sum, root_mean_square};
pub use raw::RawElement;
pub use read::{Channel, Recording, SignalFormat, SignalOptions, read};
