//! The definition of taking a row apart.

use crate::{
    color,
    header::ColorTransform,
    phases::{ORDER, Phases, counts},
    sample::Sample,
};

#[inline(always)]
pub(super) fn start<S: Sample>(transform: ColorTransform, row: &[u8], width: usize, planes: &mut [Phases<S>]) {
    let counts = counts(width);
    for (phase, &count) in counts.iter().enumerate() {
        match &mut *planes {
            [first, second, third, rest @ ..] => {
                let channels = 3 + rest.len();
                let first = first.at_mut(phase, count);
                let (second, third) = (second.at_mut(phase, count), third.at_mut(phase, count));
                for index in 0..count {
                    let at = (4 * index + phase) * channels;
                    let pixel = [S::read(row, at), S::read(row, at + 1), S::read(row, at + 2)];
                    [first[index], second[index], third[index]] = color::forward(transform, pixel);
                }
                if let [fourth] = rest {
                    for (index, sample) in fourth.at_mut(phase, count).iter_mut().enumerate() {
                        *sample = S::read(row, 4 * (4 * index + phase) + 3);
                    }
                }
            }
            others => {
                let channels = others.len();
                for (channel, plane) in others.iter_mut().enumerate() {
                    for (index, sample) in plane.at_mut(phase, count).iter_mut().enumerate() {
                        *sample = S::read(row, (4 * index + phase) * channels + channel);
                    }
                }
            }
        }
    }
    for plane in planes {
        for phase in ORDER {
            plane.extend(phase, &counts);
        }
    }
}
