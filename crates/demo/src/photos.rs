//! Images that look and compress like photographs.

use forebay_codec::image::{Encoding, PngEffort, Subsampling, encode};
use forebay_codec::{DType, TensorSpec, TensorView};
use forebay_pipeline::Random;

use super::noise::{Noise, mix, smooth_step};
use super::scenes::{Kind, Scene};

/// Width and height, as photographs in the wild have them: mostly 500 pixels on the longer side, some upright.
const SIZES: [(usize, usize); 6] = [(500, 375), (500, 375), (500, 333), (375, 500), (480, 360), (500, 400)];

/// Like the images of Cube++.
const LARGE: (usize, usize) = (2592, 1728);

/// A lens and a sensor of this size see no finer: the scene is drawn at half the size, which takes a quarter of the time.
const LARGE_SCALE: usize = 2;

/// What cameras and ImageNet use.
const QUALITY: u8 = 90;

/// The file format of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Film {
    /// As ImageNet's: small, as JPEG.
    Small,
    /// As Cube++'s: large, as JPEG.
    LargeJpeg,
    /// As Cube++'s: large, as PNG of 16 bit.
    LargePng,
}

/// Image number `number` as a file.
pub(super) fn photo(kind: Kind, film: Film, seed: u64, number: u64) -> forebay_codec::Result<Vec<u8>> {
    let mut random = Random::from_parts(&[seed, number]);
    let ((width, height), scale) = match film {
        Film::Small => (SIZES[random.below(SIZES.len())], 1),
        Film::LargeJpeg | Film::LargePng => (LARGE, LARGE_SCALE),
    };
    let aspect = width as f32 / height as f32;
    let scene = Scene::new(kind, &mut random, aspect);
    // A large sensor is less noisy.
    let quiet = if film == Film::Small { 1.0 } else { 0.08 };
    let camera = Camera {
        exposure: random.between(0.9, 1.1) as f32,
        grain: random.between(0.035, 0.085) as f32 * quiet,
        noise: Noise::new(random.bits()),
    };
    let view = Seen::new(&scene, width / scale, height / scale, camera.exposure);
    let mut pixels = Vec::with_capacity(width * height * 3);
    for row in 0..height {
        for column in 0..width {
            let light = view.light(column, row, scale);
            for (channel, light) in light.into_iter().enumerate() {
                pixels.push(camera.expose(light, column, row, channel));
            }
        }
    }
    develop(&pixels, height, width, film)
}

fn develop(pixels: &[f32], height: usize, width: usize, film: Film) -> forebay_codec::Result<Vec<u8>> {
    let dims = [height, width, 3];
    if film == Film::LargePng {
        // The converter of a camera has 14 bits.
        let deep = |value: &f32| (((value * 16_383.0 + 0.5) as u16) << 2).to_le_bytes();
        let data: Vec<u8> = pixels.iter().flat_map(deep).collect();
        let picture = TensorView { spec: TensorSpec::new(DType::U16, &dims), data: &data };
        return encode(picture, &Encoding::Png { effort: PngEffort::Fast });
    }
    let data: Vec<u8> = pixels.iter().map(|value| (value * 255.0 + 0.5) as u8).collect();
    let picture = TensorView { spec: TensorSpec::new(DType::U8, &dims), data: &data };
    encode(picture, &Encoding::Jpeg { quality: QUALITY, subsampling: Subsampling::Both, progressive: false })
}

/// The light that falls onto the film.
struct Seen {
    width: usize,
    height: usize,
    light: Vec<[f32; 3]>,
}

impl Seen {
    fn new(scene: &Scene, width: usize, height: usize, exposure: f32) -> Self {
        let aspect = width as f32 / height as f32;
        let mut light = Vec::with_capacity(width * height);
        for row in 0..height {
            let y = row as f32 / height as f32;
            for column in 0..width {
                let x = column as f32 / height as f32;
                let corner = (x / aspect - 0.5).powi(2) + (y - 0.5).powi(2);
                let brightness = exposure * (1.0 - 0.35 * smooth_step(0.15, 0.5, corner));
                light.push(scene.color(x, y).map(|value| value * brightness));
            }
        }
        Self { width, height, light }
    }

    /// The light of a pixel of the image, which is `scale` times as large.
    fn light(&self, column: usize, row: usize, scale: usize) -> [f32; 3] {
        let (left, top) = (column / scale, row / scale);
        let at =
            |column: usize, row: usize| self.light[row.min(self.height - 1) * self.width + column.min(self.width - 1)];
        let here = at(left, top);
        if scale == 1 {
            return here;
        }
        let (across, down) = ((column % scale) as f32 / scale as f32, (row % scale) as f32 / scale as f32);
        let (right, below, beyond) = (at(left + 1, top), at(left, top + 1), at(left + 1, top + 1));
        std::array::from_fn(|channel| {
            let upper = mix(here[channel], right[channel], across);
            mix(upper, mix(below[channel], beyond[channel], across), down)
        })
    }
}

/// How the scene becomes pixels.
struct Camera {
    exposure: f32,
    /// The strength of the sensor's noise.
    grain: f32,
    noise: Noise,
}

impl Camera {
    /// A pixel of 0 to 1.
    fn expose(&self, light: f32, column: usize, row: usize, channel: usize) -> f32 {
        let at = |turn: i32| self.noise.lattice(column as i32 * 3 + channel as i32, row as i32 * 2 + turn);
        // The sum of two even draws is a triangle: near enough to a sensor's noise.
        let grain = (at(0) + at(1) - 1.0) * self.grain;
        (light + grain).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use forebay_codec::image::EncodedImage;

    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_picture() {
        let one = photo(Kind::Hills, Film::Small, 1, 3).unwrap();
        assert_eq!(one, photo(Kind::Hills, Film::Small, 1, 3).unwrap());
        assert_ne!(one, photo(Kind::Hills, Film::Small, 2, 3).unwrap());
    }

    #[test]
    fn pictures_are_as_large_as_photographs() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let bytes = photo(kind, Film::Small, 1, number as u64).unwrap().len();
            assert!((30_000..160_000).contains(&bytes), "{kind:?}: {bytes}");
        }
        // Cube++ has 0.52 MB and 17 MB.
        for (film, bits, range) in
            [(Film::LargeJpeg, 8, 200_000..1_500_000), (Film::LargePng, 16, 12_000_000..24_000_000)]
        {
            let file = photo(Kind::Coast, film, 1, 0).unwrap();
            let opened = EncodedImage::open(&file).unwrap();
            let header = opened.header();
            assert_eq!((header.width, header.height), LARGE);
            assert_eq!(header.bits, bits);
            assert!(range.contains(&file.len()), "{film:?}: {}", file.len());
        }
    }
}
