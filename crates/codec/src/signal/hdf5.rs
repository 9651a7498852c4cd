//! Recordings in HDF5, read by `hdf5-pure`.

use hdf5_pure::{AttrValue, DType, Dataset, Error as HdfError, File, FileBuilder, FormatError};

use super::read::{Channel, Recording, SignalOptions, check_limit};
use crate::memory::{self, MemoryGate};
use crate::{Error, Result};

const FORMAT: &str = "hdf5";
/// The attribute of a data set that says what its numbers must be multiplied by.
const FACTOR: &str = "calibration_factor";
/// A chunk is decompressed as a unit; HDF5 itself allows up to 4 GiB.
const CHUNK_BYTES_MAX: u64 = 1 << 26;

/// Whether these bytes begin like HDF5.
pub fn is_hdf5(bytes: &[u8]) -> bool {
    hdf5_pure::is_hdf5_bytes(bytes)
}

pub(super) fn read(bytes: &[u8], options: &SignalOptions, gate: MemoryGate<'_>) -> Result<Recording> {
    if !is_hdf5(bytes) {
        return Err(Error::format(FORMAT, "it does not start like HDF5"));
    }
    memory::ask(gate, bytes.len())?;
    let file = File::from_bytes(memory::copied(bytes)?).map_err(|error| failure(error, "the file"))?;
    let mut recording = Recording { channels: Vec::new(), factors: Vec::new() };
    for channel in &options.channels {
        let Channel::Name(name) = channel else {
            return Err(Error::usage("HDF5 does not number its data sets", "the name of one", channel));
        };
        let dataset = file.dataset(name).map_err(|error| match error {
            HdfError::Format(FormatError::PathNotFound(_)) => missing(&file, name),
            error => failure(error, name),
        })?;
        let bytes = check_size(&dataset, name, options)?;
        memory::ask(gate, usize::try_from(bytes).unwrap_or(usize::MAX))?;
        recording.channels.push(dataset.read_f64().map_err(|error| failure(error, name))?);
        recording.factors.push(factor(&dataset, name)?);
    }
    Ok(recording)
}

/// A data set of an HDF5 file, without its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hdf5Dataset {
    /// Its name, with `/` between groups.
    pub name: String,
    /// The type of its elements, as messages have it: `i16`.
    pub dtype: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
}

/// The data sets of a file: no more than `count_max`, and none in groups deeper than a few, so that cycles of groups
/// end. Also returns whether there are more.
pub fn inspect(file: Vec<u8>, count_max: usize) -> Result<(Vec<Hdf5Dataset>, bool)> {
    const DEPTH_MAX: usize = 8;
    if !is_hdf5(&file) {
        return Err(Error::format(FORMAT, "it does not start like HDF5"));
    }
    let file = File::from_bytes(file).map_err(|error| failure(error, "the file"))?;
    let (mut found, mut more) = (Vec::new(), false);
    // Each group counts as much as a data set: there may be many that hold none.
    let (mut groups, mut left) = (vec![(String::new(), 0)], count_max);
    while let Some((path, depth)) = groups.pop() {
        let name = |child: &str| if path.is_empty() { child.to_owned() } else { format!("{path}/{child}") };
        let group =
            if path.is_empty() { file.root() } else { file.group(&path).map_err(|error| failure(error, &path))? };
        for child in sorted(group.datasets().map_err(|error| failure(error, &path))?) {
            if left == 0 {
                return Ok((found, true));
            }
            left -= 1;
            let name = name(&child);
            let dataset = file.dataset(&name).map_err(|error| failure(error, &name))?;
            let dtype = dataset.dtype().map_err(|error| failure(error, &name))?.to_string();
            let shape = dataset.shape().map_err(|error| failure(error, &name))?;
            found.push(Hdf5Dataset { name, dtype, shape });
        }
        let children = sorted(group.groups().map_err(|error| failure(error, &path))?);
        more |= depth == DEPTH_MAX && !children.is_empty();
        for child in children.iter().rev().filter(|_| depth < DEPTH_MAX) {
            if left == 0 {
                return Ok((found, true));
            }
            left -= 1;
            groups.push((name(child), depth + 1));
        }
    }
    Ok((found, more))
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Writes channels of counts, each with its name and what a count is worth: a data set each with the attribute `calibration_factor`, in
/// chunks that are shuffled and compressed with gzip, which every HDF5 reads.
pub fn write(channels: &[(&str, &[i16], f64)]) -> Result<Vec<u8>> {
    const CHUNK: usize = 1 << 14;
    let mut file = FileBuilder::new();
    for (name, counts, factor) in channels {
        let chunk = counts.len().clamp(1, CHUNK) as u64;
        let dataset = file.create_dataset(name).with_i16_data(counts).with_shape(&[counts.len() as u64]);
        dataset.with_chunks(&[chunk]).with_shuffle().with_deflate(4).set_attr(FACTOR, AttrValue::F64(*factor));
    }
    file.finish().map_err(|error| failure(error, "the file"))
}

/// Refuses what is not one row of numbers, or would take too much memory, before anything is read. How many bytes reading it takes.
fn check_size(dataset: &Dataset, name: &str, options: &SignalOptions) -> Result<u64> {
    let shape = dataset.shape().map_err(|error| failure(error, name))?;
    let dtype = dataset.dtype().map_err(|error| failure(error, name))?;
    let is_signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    let is_unsigned = matches!(dtype, DType::U8 | DType::U16 | DType::U32 | DType::U64);
    if !is_signed && !is_unsigned && !matches!(dtype, DType::F32 | DType::F64) {
        let feature = format!("data set `{name}`, whose elements are `{dtype}`,");
        return Err(Error::unsupported(FORMAT, feature, "store integers, or float32 or float64"));
    }
    // Rows and columns of 1 are how some programs write one dimension.
    if shape.iter().filter(|&&dim| dim != 1).count() > 1 {
        let feature = format!("data set `{name}` of the shape `{shape:?}`");
        return Err(Error::unsupported(FORMAT, feature, "store each channel as a data set of one dimension"));
    }
    let samples = shape.iter().fold(1, |product: u64, &dim| product.saturating_mul(dim));
    check_limit(samples, options)?;
    let chunk = dataset.chunk_shape().map_err(|error| failure(error, name))?.unwrap_or_default();
    let element_bytes = dataset.element_size().map_err(|error| failure(error, name))?;
    let chunk_bytes = chunk.iter().fold(element_bytes, |product, &dim| product.saturating_mul(dim));
    if chunk_bytes > CHUNK_BYTES_MAX {
        return Err(Error::Limit { what: "bytes of a chunk of HDF5", found: chunk_bytes, limit: CHUNK_BYTES_MAX });
    }
    // The library has the elements as they are stored, then as float64, and a chunk before and after it is unpacked.
    let each = element_bytes.saturating_add(size_of::<f64>() as u64);
    Ok(samples.saturating_mul(each).saturating_add(2 * chunk_bytes))
}

fn factor(dataset: &Dataset, name: &str) -> Result<f64> {
    let attributes = dataset.attrs().map_err(|error| failure(error, name))?;
    let Some(value) = attributes.get(FACTOR) else { return Ok(1.0) };
    let factor = match value {
        AttrValue::F64(factor) => Some(*factor),
        AttrValue::F32(factor) => Some(f64::from(*factor)),
        AttrValue::I64(factor) => Some(*factor as f64),
        AttrValue::I32(factor) => Some(f64::from(*factor)),
        AttrValue::F64Array(factors) => factors.first().copied(),
        AttrValue::F32Array(factors) => factors.first().copied().map(f64::from),
        _ => None,
    };
    let no_number = || Error::format(FORMAT, format!("the attribute `{FACTOR}` of data set `{name}` is not a number"));
    factor.filter(|factor| factor.is_finite()).ok_or_else(no_number)
}

fn missing(file: &File, name: &str) -> Error {
    let mut names = file.root().datasets().unwrap_or_default();
    names.sort();
    let names: String = names.join(", ").chars().take(200).collect();
    Error::usage("there is no such data set", format!("one of the file (at its root: {names})"), name)
}

fn failure(error: HdfError, what: &str) -> Error {
    match error {
        HdfError::Format(FormatError::UnsupportedFilter(filter)) => Error::unsupported(
            FORMAT,
            format!("the filter `{filter:?}` of data set `{what}`"),
            "write the data set with gzip, or without compression",
        ),
        HdfError::Format(
            error @ (FormatError::UnsupportedVersion(_)
            | FormatError::UnsupportedMessage(_)
            | FormatError::UnsupportedFileSpaceInfoVersion(_)
            | FormatError::UnsupportedFilteredHeapObject
            | FormatError::UnsupportedVirtualLayout
            | FormatError::UnsupportedExternalStorage
            | FormatError::UnsupportedSohmReference
            | FormatError::UnsupportedZfp(_)
            | FormatError::UnsupportedFillValueVersion(_)),
        ) => Error::unsupported(
            FORMAT,
            format!("what `{what}` asks for ({error})"),
            "write the file for earlier versions of HDF5 (in h5py: libver=\"earliest\"), with plain data sets",
        ),
        HdfError::Format(FormatError::InvalidLayoutVersion(version)) => Error::unsupported(
            FORMAT,
            format!("layout version `{version}` of data set `{what}`"),
            "write the file for earlier versions of HDF5 (in h5py: libver=\"earliest\")",
        ),
        error => Error::Format {
            format: FORMAT,
            problem: format!("`{what}` cannot be read: {error}").into(),
            offset: None,
            truncated: false,
            source: Some(Box::new(error)),
        },
    }
}
