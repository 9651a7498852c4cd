//! Arrays of numbers: NumPy's files, HDF5, and IDX as MNIST's files are. Their shapes and types, not their numbers.

use std::path::{Path, PathBuf};

use forebay_codec::{npy, signal};
use forebay_plan::units;
use serde::Serialize;

use super::sort::Sort;
use super::{FILE_BYTES_MAX, read_up_to};
use crate::error::{Error, Result};
use crate::output::{Align, Page, Table};

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    #[serde(serialize_with = "crate::output::as_text::path")]
    path: PathBuf,
    format: &'static str,
    bytes: u64,
    arrays: Vec<Array>,
    /// Whether there are more than are listed.
    more: bool,
    /// What to know about it.
    notices: Vec<&'static str>,
}

/// One array.
#[derive(Debug, Serialize)]
struct Array {
    /// Empty where the file holds one that has no name.
    name: String,
    dtype: String,
    shape: Vec<u64>,
}

/// So many data sets of an HDF5 file are listed.
const ARRAYS_MAX: usize = 1000;

/// The header of a NumPy file is no longer than this, by far.
const NPY_HEAD_BYTES: u64 = 1 << 20;

/// Looks into a file that is NPY, HDF5 or IDX.
pub(super) fn inspect(path: &Path, sort: Sort, bytes: u64) -> Result<Found> {
    let failed = |source| Error::Codec { path: path.to_owned(), source };
    let (mut more, mut notices) = (false, Vec::new());
    let arrays = match sort {
        Sort::Npy => {
            let (spec, start) = npy::inspect(&read_up_to(path, NPY_HEAD_BYTES)?).map_err(failed)?;
            let (expected, found) = (spec.bytes() as u64, bytes.saturating_sub(start as u64));
            if expected != found {
                let problem = format!("is damaged: {spec} takes {expected} bytes, but {found} follow its header");
                return Err(Error::Format { path: path.to_owned(), problem });
            }
            let shape = spec.shape.dims().iter().map(|&dim| dim as u64).collect();
            vec![Array { name: String::new(), dtype: spec.dtype.to_string(), shape }]
        }
        Sort::Hdf5 => {
            if bytes > FILE_BYTES_MAX {
                let problem = format!("has {bytes} bytes; of HDF5 no more than {FILE_BYTES_MAX} are read");
                return Err(Error::Format { path: path.to_owned(), problem });
            }
            let found = signal::inspect_hdf5(read_up_to(path, FILE_BYTES_MAX)?, ARRAYS_MAX).map_err(failed)?;
            more = found.1;
            let array = |found: signal::Hdf5Dataset| Array { name: found.name, dtype: found.dtype, shape: found.shape };
            found.0.into_iter().map(array).collect()
        }
        _ => {
            notices.push("no pipeline reads IDX as it is: write its arrays as .npy files, or its images as .png");
            let header = IdxHeader::parse(&read_up_to(path, NPY_HEAD_BYTES)?);
            header.into_iter().map(IdxHeader::array).collect()
        }
    };
    Ok(Found { path: path.to_owned(), format: sort.name(), bytes, arrays, more, notices })
}

impl Array {
    /// `voltage int16[1000]`.
    fn describe(&self) -> String {
        let space = if self.name.is_empty() { "" } else { " " };
        let dims: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        format!("{}{space}{}[{}]", self.name, self.dtype, dims.join(", "))
    }
}

impl Found {
    /// In a few words.
    pub(super) fn brief(&self) -> String {
        const SHOWN_MAX: usize = 3;
        let more = if self.more || self.arrays.len() > SHOWN_MAX { ", …" } else { "" };
        let shown: Vec<String> = self.arrays.iter().take(SHOWN_MAX).map(Array::describe).collect();
        format!("{}{more}", shown.join(", "))
    }

    pub(super) fn show(&self, page: &mut Page) {
        const SHOWN_MAX: usize = 40;
        let one = match &*self.arrays {
            [one] if one.name.is_empty() => Some(one.describe()),
            _ => None,
        };
        let mut facts = vec![
            ("array", self.path.display().to_string()),
            ("format", self.format.to_owned()),
            ("bytes", units::bytes(self.bytes as f64)),
        ];
        facts.extend(one.clone().map(|one| ("holds", one)));
        facts.extend(self.notices.iter().map(|&notice| ("note", notice.to_owned())));
        page.facts(&facts);
        if one.is_some() {
            return;
        }
        page.gap();
        let mut table = Table::new(&[("data set", Align::Left), ("type", Align::Left), ("shape", Align::Left)]);
        for array in self.arrays.iter().take(SHOWN_MAX) {
            table.row([array.name.clone(), array.dtype.clone(), format!("{:?}", array.shape)], false);
        }
        page.table(&table);
        if self.more || self.arrays.len() > SHOWN_MAX {
            page.line("and more");
        }
    }
}

/// The header of an IDX file: two zeros, the type of its elements, how many dimensions, and each of them (big endian).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdxHeader {
    dtype: &'static str,
    element_bytes: u64,
    shape: Vec<u64>,
}

impl IdxHeader {
    pub(super) fn parse(head: &[u8]) -> Option<Self> {
        let &[0, 0, code, rank, ref rest @ ..] = head else { return None };
        let (dtype, element_bytes) = match code {
            0x08 => ("uint8", 1),
            0x09 => ("int8", 1),
            0x0B => ("int16", 2),
            0x0C => ("int32", 4),
            0x0D => ("float32", 4),
            0x0E => ("float64", 8),
            _ => return None,
        };
        let dims = rest.get(..4 * usize::from(rank)).filter(|dims| !dims.is_empty())?;
        let shape = dims.as_chunks::<4>().0.iter().map(|&dim| u64::from(u32::from_be_bytes(dim))).collect();
        Some(Self { dtype, element_bytes, shape })
    }

    /// How long the file must be.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        let elements = self.shape.iter().try_fold(self.element_bytes, |product, &dim| product.checked_mul(dim))?;
        elements.checked_add(4 + 4 * self.shape.len() as u64)
    }

    fn array(self) -> Array {
        Array { name: String::new(), dtype: self.dtype.to_owned(), shape: self.shape }
    }
}
