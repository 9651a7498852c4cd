//! The similarity of two images: the loss of an encoding.
//!
//! PSNR is taken over all samples. SSIM (Wang et al., 2004) and MS-SSIM (Wang et al., 2003) are taken of the brightness, with the Gaussian window
//! of 11 pixels and the constants of these papers; the mean is over the windows that lie within the picture.

use crate::error::{Error, Result};
use crate::tensor::{DType, TensorView};

/// The similarity of two images.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Similarity {
    /// The peak signal-to-noise ratio in decibels; infinite where all samples are the same.
    pub psnr: f64,
    /// The structural similarity, 1 where all samples are the same; `None` where a side has fewer than 11 pixels.
    pub ssim: Option<f64>,
    /// The same over five scales, which agrees better with people; `None` where a side has fewer than 176 pixels, too few for five.
    pub ms_ssim: Option<f64>,
}

/// The Gaussian window: its size in pixels, and its standard deviation.
const WINDOW: usize = 11;
const SIGMA: f32 = 1.5;
/// (0.01 · 255)² and (0.03 · 255)², which stabilize the quotients for dark and flat areas.
const C1: f32 = 6.5025;
const C2: f32 = 58.5225;
/// The weights of the five scales, finest first (Wang et al., 2003).
const SCALE_WEIGHTS: [f64; 5] = [0.0448, 0.2856, 0.3001, 0.2363, 0.1333];

/// Compares two images `[height, width, channels]` of `uint8` and the same shape, of 1 or 3 channels, or of 4 whose last, alpha, is compared only in `psnr`.
///
/// ```
/// use forebay_codec::Tensor;
/// use forebay_codec::image::similarity;
///
/// let one = Tensor::from_elements(&[16, 16, 1], &[100_u8; 256]).expect("256 samples fit the shape");
/// let other = Tensor::from_elements(&[16, 16, 1], &[110_u8; 256]).expect("256 samples fit the shape");
/// let near = similarity(one.view(), other.view())?;
/// assert!((near.psnr - 28.13).abs() < 0.01);  // 10 log10(255² / 10²)
/// assert!(similarity(one.view(), one.view())?.ssim == Some(1.0));
/// # Ok::<(), forebay_codec::Error>(())
/// ```
pub fn similarity(one: TensorView<'_>, other: TensorView<'_>) -> Result<Similarity> {
    let (Some((height, width, channels @ 1..=4)), true, DType::U8) =
        (one.spec.as_picture(), one.spec == other.spec, one.spec.dtype)
    else {
        return Err(Error::usage("these cannot be compared", "two images of uint8 and one shape", other.spec));
    };
    let squares = one.data.iter().zip(other.data).map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum::<u64>();
    let psnr = 10.0 * (255.0_f64.powi(2) * one.data.len() as f64 / squares as f64).log10();
    let planes = (brightness(one.data, channels, (width, height)), brightness(other.data, channels, (width, height)));
    let (ssim, ms_ssim) = scales(planes);
    // What is the same is so to the last digit, however sums were rounded.
    let [ssim, ms_ssim] = [ssim, ms_ssim].map(|alike| if squares == 0 { alike.map(|_| 1.0) } else { alike });
    Ok(Similarity { psnr, ssim, ms_ssim })
}

/// One number for each pixel.
struct Plane {
    width: usize,
    height: usize,
    samples: Vec<f32>,
}

/// ITU-R BT.601 luma.
fn brightness(data: &[u8], channels: usize, (width, height): (usize, usize)) -> Plane {
    let luma = |pixel: &[u8]| match *pixel {
        [red, green, blue, ..] => 0.299 * f32::from(red) + 0.587 * f32::from(green) + 0.114 * f32::from(blue),
        [gray, ..] => f32::from(gray),
        [] => 0.0,
    };
    Plane { width, height, samples: data.chunks_exact(channels).map(luma).collect() }
}

/// SSIM at full size, and MS-SSIM.
fn scales((mut one, mut other): (Plane, Plane)) -> (Option<f64>, Option<f64>) {
    let (mut ssim, mut product) = (None, 1.0);
    for (scale, weight) in SCALE_WEIGHTS.into_iter().enumerate() {
        let Some((whole, contrast)) = mean_ssim(&one, &other) else { return (ssim, None) };
        ssim.get_or_insert(whole);
        let last = scale + 1 == SCALE_WEIGHTS.len();
        // Brightness counts at the coarsest scale only. What is negative there is as far as can be.
        product *= if last { whole } else { contrast }.max(0.0).powf(weight);
        if !last {
            (one, other) = (halved(&one), halved(&other));
        }
    }
    (ssim, Some(product))
}

/// The mean over all windows: of the full measure, and of contrast and structure alone.
fn mean_ssim(one: &Plane, other: &Plane) -> Option<(f64, f64)> {
    if one.width < WINDOW || one.height < WINDOW {
        return None;
    }
    let products = |a: &Plane, b: &Plane| a.samples.iter().zip(&b.samples).map(|(a, b)| a * b).collect::<Vec<f32>>();
    let blurred = |samples: &[f32]| blur(samples, one.width, one.height);
    let [mean_a, mean_b] = [&one.samples, &other.samples].map(|samples| blurred(samples));
    let [aa, bb, ab] = [(one, one), (other, other), (one, other)].map(|(a, b)| blurred(&products(a, b)));
    let (mut whole, mut contrast) = (0.0, 0.0);
    for at in 0..mean_a.len() {
        let (a, b) = (mean_a[at], mean_b[at]);
        let (variances, covariance) = (aa[at] - a * a + bb[at] - b * b, ab[at] - a * b);
        let structure = (2.0 * covariance + C2) / (variances + C2);
        contrast += f64::from(structure);
        whole += f64::from(structure * (2.0 * a * b + C1) / (a * a + b * b + C1));
    }
    let count = mean_a.len() as f64;
    Some((whole / count, contrast / count))
}

/// The Gaussian mean of every window that lies within.
fn blur(samples: &[f32], width: usize, height: usize) -> Vec<f32> {
    let middle = (WINDOW / 2) as f32;
    let bell: [f32; WINDOW] = std::array::from_fn(|at| (-(at as f32 - middle).powi(2) / (2.0 * SIGMA * SIGMA)).exp());
    let sum: f32 = bell.iter().sum();
    let bell = bell.map(|weight| weight / sum);
    let across = width - WINDOW + 1;
    let mut rows = vec![0.0_f32; across * height];
    for (to, row) in rows.chunks_exact_mut(across).zip(samples.chunks_exact(width)) {
        for (offset, weight) in bell.iter().enumerate() {
            to.iter_mut().zip(&row[offset..]).for_each(|(to, sample)| *to += weight * sample);
        }
    }
    let down = height - WINDOW + 1;
    let mut blurred = vec![0.0_f32; across * down];
    for (y, to) in blurred.chunks_exact_mut(across).enumerate() {
        for (offset, weight) in bell.iter().enumerate() {
            let row = &rows[(y + offset) * across..][..across];
            to.iter_mut().zip(row).for_each(|(to, sample)| *to += weight * sample);
        }
    }
    blurred
}

/// Half the side, each pixel the mean of four; a last odd row or column is left out.
fn halved(plane: &Plane) -> Plane {
    let (width, height) = (plane.width / 2, plane.height / 2);
    let at = |x: usize, y: usize| plane.samples[y * plane.width + x];
    let mean = |x: usize, y: usize| (at(x, y) + at(x + 1, y) + at(x, y + 1) + at(x + 1, y + 1)) / 4.0;
    let samples = (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).map(|(x, y)| mean(2 * x, 2 * y)).collect();
    Plane { width, height, samples }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    fn picture(side: usize, noise: usize) -> Tensor {
        let sample = |at: usize| (at % side * 255 / side).wrapping_add(at * 7919 % (noise + 1)) as u8;
        let pixels: Vec<u8> = (0..side * side).flat_map(|at| [sample(at), sample(at / 2), 90]).collect();
        Tensor::from_elements(&[side, side, 3], &pixels).expect("it fits")
    }

    #[test]
    fn more_noise_is_less_alike() {
        let clean = picture(200, 0);
        let same = similarity(clean.view(), clean.view()).expect("they can be compared");
        assert_eq!((same.psnr, same.ssim, same.ms_ssim), (f64::INFINITY, Some(1.0), Some(1.0)));
        let measured = [4, 16, 64].map(|noise| similarity(clean.view(), picture(200, noise).view()).expect("compared"));
        for pair in measured.windows(2) {
            assert!(pair[0].psnr > pair[1].psnr);
            assert!(pair[0].ssim > pair[1].ssim);
            assert!(pair[0].ms_ssim > pair[1].ms_ssim);
        }
    }

    #[test]
    fn small_and_other_pictures() {
        let small = similarity(picture(8, 0).view(), picture(8, 3).view()).expect("compared");
        assert_eq!((small.ssim, small.ms_ssim), (None, None));
        assert!(similarity(picture(8, 0).view(), picture(9, 0).view()).is_err());
        assert_eq!(similarity(picture(170, 0).view(), picture(170, 3).view()).expect("compared").ms_ssim, None);
    }
}
