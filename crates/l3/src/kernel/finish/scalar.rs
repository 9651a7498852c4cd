//! The definition of finishing a row.

use crate::{
    color,
    header::ColorTransform,
    phases::{Phases, counts},
    sample::Sample,
};

pub(super) fn finish1(plane: &Phases<u8>, out: &mut [u8]) {
    finish(ColorTransform::None, std::slice::from_ref(plane), out.len(), out);
}

pub(super) fn finish3(transform: ColorTransform, planes: [&Phases<u8>; 3], out: &mut [u8]) {
    finish(transform, &planes, out.len() / 3, out);
}

pub(super) fn finish4(transform: ColorTransform, planes: [&Phases<u8>; 4], out: &mut [u8]) {
    finish(transform, &planes, out.len() / 4, out);
}

/// Any depth, any number of planes.
pub(super) fn finish<S: Sample>(
    transform: ColorTransform,
    planes: &[impl std::borrow::Borrow<Phases<S>>],
    width: usize,
    out: &mut [u8],
) {
    let channels = planes.len();
    let counts = counts(width);
    for (phase, &count) in counts.iter().enumerate() {
        let mut rows: [&[S]; 4] = [&[]; 4];
        for (row, plane) in rows.iter_mut().zip(planes) {
            *row = plane.borrow().at(phase, 0, count);
        }
        for index in 0..count {
            let [first, second, third, fourth] = rows.map(|row| row.get(index).copied().unwrap_or_default());
            let [red, green, blue] = color::inverse(transform, [first, second, third]);
            for (channel, sample) in [red, green, blue, fourth].into_iter().take(channels).enumerate() {
                sample.write(out, (4 * index + phase) * channels + channel);
            }
        }
    }
}
