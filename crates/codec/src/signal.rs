//! Electrical signals: voltage and current from HDF5, CSV and raw files, and features that identify
//! appliances (non-intrusive load monitoring, NILM).
//!
//! [`read`] reads the chosen channels of a recording as `float64`; [`Recording::remove_offset`] and
//! [`Recording::calibrate`] turn counts of a converter into volts and amperes; [`NilmFeatures`] computes power, effective
//! current and its cumulative sum of a window. [`write_hdf5`] writes a recording; [`rms()`] takes the root mean square of tensors of any type.

mod calibrate;
mod csv;
mod features;
mod hdf5;
mod products;
mod raw;
mod read;
mod rms;

pub use features::{NilmFeatures, NilmPower, cumulative_sum, root_mean_square};
pub use hdf5::{Hdf5Dataset, inspect as inspect_hdf5, is_hdf5, write as write_hdf5};
pub use raw::RawElement;
pub use read::{Channel, Recording, SignalFormat, SignalOptions, read, read_within};
pub use rms::{rms, rms_dtype, rms_spec};
