//! `NumPy`'s file format for one array (`.npy`), in which `WebDataset` stores tensors.
//!
//! Versions 1 to 3, little endian, C order, of the element types that a [`Tensor`] has.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::tensor::{DType, Shape, Tensor, TensorSpec, TensorView};

const NAME: &str = "NPY";
const MAGIC: &[u8] = b"\x93NUMPY";
const HINT: &str = "save it with numpy.save in C order, as a plain little-endian array of numbers";

/// The array in `file`; its elements share the file's memory.
pub fn decode(file: impl Into<Bytes>) -> Result<Tensor> {
    let file = file.into();
    let (spec, start) = locate(&file)?;
    let found = file.len() - start;
    Tensor::new(spec, file.slice(start..)).ok_or_else(|| too_long(&spec, found))
}

/// The array in `file`, borrowed.
pub fn view(file: &[u8]) -> Result<TensorView<'_>> {
    let (spec, start) = locate(file)?;
    let data = &file[start..];
    if data.len() == spec.bytes() { Ok(TensorView { spec, data }) } else { Err(too_long(&spec, data.len())) }
}

fn too_long(spec: &TensorSpec, found: usize) -> Error {
    Error::format(NAME, format!("{spec} takes {} bytes, but {found} follow its header", spec.bytes()))
}

/// What the array is, and where its elements begin; at least as many follow as there must be.
fn locate(file: &[u8]) -> Result<(TensorSpec, usize)> {
    let (spec, start) = inspect(file)?;
    if file.len() - start < spec.bytes() {
        return Err(Error::truncated(NAME, "it has fewer elements than its shape says", file.len()));
    }
    Ok((spec, start))
}

/// Whether a file that begins with `head` is one.
pub fn begins(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// What the array is whose file begins with `file`, and where its elements begin.
pub fn inspect(file: &[u8]) -> Result<(TensorSpec, usize)> {
    let cut = || Error::truncated(NAME, "it ends within the header", file.len());
    if !begins(file) {
        return Err(Error::format(NAME, "it does not begin as one"));
    }
    let version = *file.get(6).ok_or_else(cut)?;
    let (start, length): (usize, usize) = match version {
        1 => (10, usize::from(u16::from_le_bytes(*file.get(8..).and_then(|rest| rest.first_chunk()).ok_or_else(cut)?))),
        2 | 3 => (12, u32::from_le_bytes(*file.get(8..).and_then(|rest| rest.first_chunk()).ok_or_else(cut)?) as usize),
        _ => return Err(Error::unsupported(NAME, format!("version {version}"), HINT)),
    };
    let header = start.checked_add(length).and_then(|end| file.get(start..end)).ok_or_else(cut)?;
    Ok((parse_header(&String::from_utf8_lossy(header))?, start + length))
}

/// The header is a Python dictionary: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
fn parse_header(header: &str) -> Result<TensorSpec> {
    let value = |key: &str| {
        let (_, rest) = header.split_once(&format!("'{key}'"))?;
        rest.trim_start().strip_prefix(':').map(str::trim_start)
    };
    let malformed = || Error::format(NAME, "the header does not describe an array");
    if !value("fortran_order").ok_or_else(malformed)?.starts_with("False") {
        return Err(Error::unsupported(NAME, "an array in Fortran order", HINT));
    }
    let descr = value("descr").and_then(|text| text.strip_prefix('\'')).and_then(|text| text.split_once('\''));
    let descr = descr.ok_or_else(malformed)?.0;
    let dtype = DType::ALL.into_iter().find(|&dtype| self::descr(dtype) == descr);
    let dtype = dtype.ok_or_else(|| Error::unsupported(NAME, format!("elements of type `{descr}`"), HINT))?;
    let shape = value("shape").and_then(|text| text.strip_prefix('(')).and_then(|text| text.split_once(')'));
    let dims = shape.ok_or_else(malformed)?.0.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    let dims: Vec<usize> = dims.map(|dim| dim.parse().map_err(|_| malformed())).collect::<Result<_>>()?;
    let shape = Shape::try_new(&dims).ok_or_else(|| Error::unsupported(NAME, format!("the shape {dims:?}"), HINT))?;
    if shape.elements().checked_mul(dtype.bytes()).is_none() {
        return Err(malformed());
    }
    Ok(TensorSpec { dtype, shape })
}

/// An array as a file.
pub fn encode(array: TensorView<'_>) -> Vec<u8> {
    let dims: Vec<String> = array.spec.shape.dims().iter().map(|dim| format!("{dim},")).collect();
    let text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr(array.spec.dtype), dims.join(" "));
    // The elements begin at a multiple of 64, after a line's end.
    let header = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut file = Vec::with_capacity(10 + header + array.data.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&[1, 0]);
    file.extend_from_slice(&(header as u16).to_le_bytes());
    file.extend_from_slice(text.as_bytes());
    file.resize(10 + header - 1, b' ');
    file.push(b'\n');
    file.extend_from_slice(array.data);
    file
}

/// The type as `NumPy` describes it.
const fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::F16 => "<f2",
        // NumPy has none of its own: so it writes those of `ml_dtypes`.
        DType::BF16 => "<V2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_and_rank_comes_back() {
        for dtype in DType::ALL {
            for dims in [&[][..], &[0], &[3], &[2, 3], &[1, 2, 3, 4]] {
                let spec = TensorSpec::new(dtype, dims);
                let data: Vec<u8> = (0..spec.bytes()).map(|index| index as u8).collect();
                let file = encode(TensorView { spec, data: &data });
                assert_eq!((file.len() - data.len()) % 64, 0);
                let back = decode(file).unwrap();
                assert_eq!((*back.spec(), &back.data()[..]), (spec, &data[..]));
            }
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        let spec = TensorSpec::new(DType::F32, &[2]);
        let file = encode(TensorView { spec, data: &[0; 8] });
        for end in 0..file.len() {
            assert!(decode(file[..end].to_vec()).is_err(), "{end}");
        }
        for offset in 0..file.len() {
            let mut damaged = file.clone();
            damaged[offset] ^= 0x11;
            let _ = decode(damaged);
        }
        let huge = String::from_utf8_lossy(&file).replace("(2,)", "(99999999999999999999,)");
        assert!(decode(huge.into_bytes()).is_err());
    }
}
