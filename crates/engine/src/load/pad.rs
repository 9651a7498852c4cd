//! Padding: tensors that differ in shape become one buffer.

use bytes::BytesMut;
use forebay_codec::{DType, Shape, Tensor, TensorSpec};

use super::batch::Column;
use super::batcher::out_of_memory;
use super::pool::Pool;
use crate::error::{Error, Result};

/// One buffer of `tensors`, each in the front corner of a tensor of the largest size, and the shapes that they had; `None`
/// where they differ in rank, or there is none.
pub(super) fn pad(tensors: &[Tensor], value: f64, pool: Option<&Pool>) -> Option<Result<(Column, Column)>> {
    let first = tensors.first()?.spec();
    let rank = first.shape.dims().len();
    if tensors.iter().any(|tensor| tensor.spec().shape.dims().len() != rank) {
        return None;
    }
    let largest: Vec<usize> = (0..rank)
        .map(|axis| tensors.iter().map(|tensor| tensor.spec().shape.dims()[axis]).max().unwrap_or(0))
        .collect();
    let spec = TensorSpec { dtype: first.dtype, shape: Shape::try_new(&largest)? };
    let bytes = spec.bytes().checked_mul(tensors.len())?;
    Some(padded(tensors, value, spec, bytes, pool))
}

fn padded(
    tensors: &[Tensor],
    value: f64,
    spec: TensorSpec,
    bytes: usize,
    pool: Option<&Pool>,
) -> Result<(Column, Column)> {
    let limit = pool.map_or(usize::MAX, |pool| pool.padded_bytes_max);
    if bytes > limit {
        return Err(Error::Limit {
            problem: format!(
                "{} tensors padded to {spec} take {bytes} bytes, but the memory budget has {limit} for a batch",
                tensors.len()
            ),
            remedy: "make batches or tensors smaller, raise `memory`, or do without padding".to_owned(),
        });
    }
    let rank = spec.shape.dims().len();
    let take = |bytes| {
        let taken = pool.map_or_else(|| Ok(BytesMut::zeroed(bytes)), |pool| pool.take(bytes));
        taken.map_err(|error| out_of_memory(&error))
    };
    let mut data = take(bytes)?;
    fill(&mut data, spec.dtype, value);
    for (tensor, slot) in tensors.iter().zip(data.chunks_exact_mut(spec.bytes().max(1))) {
        copy(tensor.data(), tensor.spec().shape.dims(), slot, spec.shape.dims(), spec.dtype.bytes());
    }
    let shapes = tensors.iter().flat_map(|tensor| tensor.spec().shape.dims().iter().map(|&dim| dim as i64));
    let shapes: Vec<u8> = shapes.flat_map(i64::to_le_bytes).collect();
    let mut shapes_data = take(shapes.len())?;
    shapes_data.copy_from_slice(&shapes);
    let shapes = Column::Dense { spec: TensorSpec::new(DType::I64, &[rank]), data: shapes_data };
    Ok((Column::Dense { spec, data }, shapes))
}

/// Fills with `value` as the nearest element of its type.
fn fill(data: &mut [u8], dtype: DType, value: f64) {
    let mut bytes = [0; 8];
    let element = &mut bytes[..dtype.bytes()];
    dtype.write(value, element);
    data.chunks_exact_mut(element.len()).for_each(|to| to.copy_from_slice(element));
}

/// Copies a row-major array into the front corner of a larger one.
fn copy(from: &[u8], from_dims: &[usize], to: &mut [u8], to_dims: &[usize], element_bytes: usize) {
    match (from_dims, to_dims) {
        ([from_first, from_rest @ ..], [_, to_rest @ ..]) if from_rest == to_rest => {
            let bytes = from_first * from_rest.iter().product::<usize>() * element_bytes;
            to[..bytes].copy_from_slice(&from[..bytes]);
        }
        ([from_first, from_rest @ ..], [_, to_rest @ ..]) => {
            let from_bytes = from_rest.iter().product::<usize>() * element_bytes;
            let to_bytes = to_rest.iter().product::<usize>() * element_bytes;
            for index in 0..*from_first {
                let part = &from[index * from_bytes..(index + 1) * from_bytes];
                copy(part, from_rest, &mut to[index * to_bytes..(index + 1) * to_bytes], to_rest, element_bytes);
            }
        }
        _ => to[..element_bytes].copy_from_slice(&from[..element_bytes]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_stand_in_the_front_corner() {
        let a = Tensor::from_elements(&[1, 2], &[1.0_f32, 2.0]).unwrap();
        let b = Tensor::from_elements(&[2, 1], &[3.0_f32, 4.0]).unwrap();
        let empty = Tensor::from_elements::<f32>(&[0, 2], &[]).unwrap();
        let Some(Ok((Column::Dense { spec, data }, Column::Dense { data: shapes, .. }))) =
            pad(&[a, b, empty], -1.0, None)
        else {
            panic!("no dense columns");
        };
        assert_eq!(spec.shape.dims(), [2, 2]);
        let numbers: Vec<f32> =
            data.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(numbers, [1.0, 2.0, -1.0, -1.0, 3.0, -1.0, 4.0, -1.0, -1.0, -1.0, -1.0, -1.0]);
        let shapes: Vec<i64> =
            shapes.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(shapes, [1, 2, 2, 1, 0, 2]);
    }

    #[test]
    fn ranks_that_differ_are_left_alone() {
        let a = Tensor::from_elements(&[1], &[1_u8]).unwrap();
        let b = Tensor::from_elements(&[1, 1], &[1_u8]).unwrap();
        assert!(pad(&[a, b], 0.0, None).is_none());
        assert!(pad(&[], 0.0, None).is_none());
    }

    #[test]
    fn padding_does_not_overdraw_the_budget() {
        let wide = Tensor::from_elements(&[1, 1000], &[1_u8; 1000]).unwrap();
        let high = Tensor::from_elements(&[1000, 1], &[1_u8; 1000]).unwrap();
        let pool = Pool::alone(0, 1_999_999);
        let Some(Err(error)) = pad(&[wide, high], 0.0, Some(&pool)) else { panic!("2 MB are no error") };
        assert!(error.to_string().starts_with("2 tensors padded to uint8[1000, 1000] take 2000000 bytes"), "{error}");
    }
}
