//! What the fuzz targets share.
//!
//! - [`structure`]: mutations that know a format's parts, so that they get past its lengths and checksums.
//! - [`naive`]: second readers of our record formats, as simple as can be, to compare with.
//! - [`libjpeg`]: the bare library, every warning counted, to compare with.

pub mod libjpeg;
pub mod naive;
pub mod structure;
