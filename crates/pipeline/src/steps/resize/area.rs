//! Area resizing: each output pixel is the mean of the area it covers, counting the fractions of pixels at its edges.
//! (The resize library's box filter counts whole pixels only; `OpenCV`'s `INTER_AREA` is what people mean by "area".)

use forebay_codec::{TensorMut, TensorView};

use crate::error::StepError;

/// The input elements one output element covers, with their weights, which sum to 1.
struct Cover {
    first: usize,
    weights: Vec<f32>,
}

fn cover(output: usize, input: usize) -> Vec<Cover> {
    let scale = input as f64 / output as f64;
    (0..output)
        .map(|index| {
            let (start, end) = (index as f64 * scale, ((index + 1) as f64 * scale).min(input as f64));
            let first = (start as usize).min(input - 1);
            let last = ((end.ceil() as usize).max(first + 1)).min(input);
            let weights = (first..last)
                .map(|at| ((end.min((at + 1) as f64) - start.max(at as f64)).max(0.0) / (end - start)) as f32)
                .collect();
            Cover { first, weights }
        })
        .collect()
}

pub(super) fn resize(view: TensorView<'_>, mut output: TensorMut<'_>, scratch: &mut Vec<f32>) -> Result<(), StepError> {
    let unfit = StepError::Unfit { found: view.spec, expected: "an image in uint8, uint16 or float32" };
    let (&[height, width, channels], &[out_height, out_width, _]) = (view.spec.shape.dims(), output.spec.shape.dims())
    else {
        return Err(unfit);
    };
    let (rows, columns) = (cover(out_height, height), cover(out_width, width));
    let row_elements = width * channels;
    let mut sum = vec![0.0_f32; row_elements];
    for (out_row, rows) in rows.iter().enumerate() {
        sum.fill(0.0);
        for (index, &weight) in rows.weights.iter().enumerate() {
            let range = (rows.first + index) * row_elements..(rows.first + index + 1) * row_elements;
            if let Some(bytes) = view.elements::<u8>() {
                sum.iter_mut().zip(&bytes[range]).for_each(|(sum, &value)| *sum += weight * f32::from(value));
            } else if let Some(words) = view.elements::<u16>() {
                sum.iter_mut().zip(&words[range]).for_each(|(sum, &value)| *sum += weight * f32::from(value));
            } else if let Some(floats) = view.elements_or_copy::<f32>(scratch) {
                sum.iter_mut().zip(&floats[range]).for_each(|(sum, &value)| *sum += weight * value);
            } else {
                return Err(unfit);
            }
        }
        for (out_column, columns) in columns.iter().enumerate() {
            for channel in 0..channels {
                let covered = sum[columns.first * channels + channel..].iter().step_by(channels);
                let value: f32 = covered.zip(&columns.weights).map(|(value, weight)| value * weight).sum();
                store(&mut output, (out_row * out_width + out_column) * channels + channel, value);
            }
        }
    }
    Ok(())
}

/// Stores one element, rounded to nearest for whole numbers.
fn store(output: &mut TensorMut<'_>, index: usize, value: f32) {
    if let Some(bytes) = output.elements_mut::<u8>() {
        bytes[index] = value.round_ties_even() as u8;
    } else if let Some(words) = output.elements_mut::<u16>() {
        words[index] = value.round_ties_even() as u16;
    } else if let Some(floats) = output.elements_mut::<f32>() {
        floats[index] = value;
    }
}
