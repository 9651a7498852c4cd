//! `tf.image.resize` to the last bit: bilinear, half-pixel centers, no antialiasing, single precision, truncated to bytes.
//! Slower than the library's filters, and for those who need TensorFlow's pixels.

use forebay_codec::{TensorMut, TensorView};

use crate::error::StepError;

/// One output coordinate: the two input elements it lies between, and how far towards the second.
#[derive(Clone, Copy)]
struct Between {
    lower: usize,
    upper: usize,
    fraction: f32,
}

fn between(output: usize, input: usize) -> Vec<Between> {
    let scale = input as f32 / output as f32;
    (0..output)
        .map(|index| {
            let at = (index as f32 + 0.5) * scale - 0.5;
            let floor = at.floor();
            Between {
                lower: floor.max(0.0) as usize,
                upper: (at.ceil().max(0.0) as usize).min(input - 1),
                fraction: at - floor,
            }
        })
        .collect()
}

pub(super) fn resize(view: TensorView<'_>, mut output: TensorMut<'_>, scratch: &mut Vec<f32>) -> Result<(), StepError> {
    let unfit = StepError::Unfit { found: view.spec, expected: "an image in uint8 or float32" };
    let (&[height, width, channels], &[out_height, out_width, _]) = (view.spec.shape.dims(), output.spec.shape.dims())
    else {
        return Err(unfit);
    };
    let (rows, columns) = (between(out_height, height), between(out_width, width));
    if let Some(bytes) = view.elements::<u8>() {
        let input =
            |row: usize, column: usize, channel: usize| f32::from(bytes[(row * width + column) * channels + channel]);
        let mut out = output.data.iter_mut();
        interpolate(&rows, &columns, channels, input, |value| *out.next().expect("as long as its spec") = value as u8);
        return Ok(());
    }
    let floats = view.elements_or_copy::<f32>(scratch).ok_or(unfit)?;
    let unfit = StepError::Unfit { found: output.spec, expected: "an aligned float32 output" };
    let mut out = output.elements_mut::<f32>().ok_or(unfit)?.iter_mut();
    let input = |row: usize, column: usize, channel: usize| floats[(row * width + column) * channels + channel];
    interpolate(&rows, &columns, channels, input, |value| *out.next().expect("as long as its spec") = value);
    Ok(())
}

fn interpolate(
    rows: &[Between],
    columns: &[Between],
    channels: usize,
    input: impl Fn(usize, usize, usize) -> f32,
    mut put: impl FnMut(f32),
) {
    for row in rows {
        for column in columns {
            for channel in 0..channels {
                let (top_left, top_right) =
                    (input(row.lower, column.lower, channel), input(row.lower, column.upper, channel));
                let (bottom_left, bottom_right) =
                    (input(row.upper, column.lower, channel), input(row.upper, column.upper, channel));
                let top = top_left + (top_right - top_left) * column.fraction;
                let bottom = bottom_left + (bottom_right - bottom_left) * column.fraction;
                put(top + (bottom - top) * row.fraction);
            }
        }
    }
}
