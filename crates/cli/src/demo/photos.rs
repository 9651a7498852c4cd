//! The data set of the demo: `photos/<class>/<number>.jpg`.

use std::path::Path;

use forebay_codec::image::{Encoding, Subsampling, encode};
use forebay_codec::{DType, TensorSpec, TensorView};
use forebay_engine::Progress;
use forebay_pipeline::Random;

use super::noise::{Noise, smooth_step};
use super::scenes::{Kind, Scene};
use crate::error::{Error, Result};

/// Width and height, as photographs in the wild have them: mostly 500 pixels on the longer side, some upright.
const SIZES: [(usize, usize); 6] = [(500, 375), (500, 375), (500, 333), (375, 500), (480, 360), (500, 400)];

/// What cameras and ImageNet use.
const QUALITY: u8 = 90;

/// Writes `count` pictures, the same for the same seed, and returns how many bytes they have.
pub(crate) fn write_set(folder: &Path, count: u64, seed: u64, progress: &dyn Progress) -> Result<u64> {
    for kind in Kind::ALL {
        let class = folder.join(kind.name());
        std::fs::create_dir_all(&class).map_err(Error::io("create the folder", &class))?;
    }
    progress.begin("making pictures", count);
    let mut bytes = 0;
    for number in 0..count {
        let kind = Kind::ALL[number as usize % Kind::ALL.len()];
        let path = folder.join(kind.name()).join(format!("{number:05}.jpg"));
        let file = photo(kind, seed, number).map_err(|source| Error::Picture { path: path.clone(), source })?;
        std::fs::write(&path, &file).map_err(Error::io("write the picture", &path))?;
        bytes += file.len() as u64;
        progress.advance(1);
    }
    progress.end();
    Ok(bytes)
}

/// Picture number `number` as a JPEG file.
fn photo(kind: Kind, seed: u64, number: u64) -> forebay_codec::Result<Vec<u8>> {
    let mut random = Random::from_parts(&[seed, number]);
    let (width, height) = SIZES[random.below(SIZES.len())];
    let aspect = width as f32 / height as f32;
    let scene = Scene::new(kind, &mut random, aspect);
    let camera = Camera {
        exposure: random.between(0.9, 1.1) as f32,
        grain: random.between(0.035, 0.085) as f32,
        noise: Noise::new(random.bits()),
    };
    let mut pixels = Vec::with_capacity(width * height * 3);
    for row in 0..height {
        let y = row as f32 / height as f32;
        for column in 0..width {
            let x = column as f32 / height as f32;
            let colour = scene.colour(x, y);
            let corner = (x / aspect - 0.5).powi(2) + (y - 0.5).powi(2);
            let light = camera.exposure * (1.0 - 0.35 * smooth_step(0.15, 0.5, corner));
            for (channel, value) in colour.into_iter().enumerate() {
                pixels.push(camera.expose(value * light, column, row, channel));
            }
        }
    }
    let picture = TensorView { spec: TensorSpec::new(DType::U8, &[height, width, 3]), data: &pixels };
    encode(picture, &Encoding::Jpeg { quality: QUALITY, subsampling: Subsampling::Both, progressive: false })
}

/// How the scene becomes pixels.
struct Camera {
    exposure: f32,
    /// The strength of the sensor's noise.
    grain: f32,
    noise: Noise,
}

impl Camera {
    fn expose(&self, light: f32, column: usize, row: usize, channel: usize) -> u8 {
        let at = |turn: i32| self.noise.lattice(column as i32 * 3 + channel as i32, row as i32 * 2 + turn);
        // The sum of two even draws is a triangle: near enough to a sensor's noise.
        let grain = (at(0) + at(1) - 1.0) * self.grain;
        ((light + grain).clamp(0.0, 1.0) * 255.0 + 0.5) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_picture() {
        let one = photo(Kind::Hills, 1, 3).unwrap();
        assert_eq!(one, photo(Kind::Hills, 1, 3).unwrap());
        assert_ne!(one, photo(Kind::Hills, 2, 3).unwrap());
    }

    #[test]
    fn pictures_are_as_large_as_photographs() {
        for (number, kind) in Kind::ALL.into_iter().enumerate() {
            let bytes = photo(kind, 1, number as u64).unwrap().len();
            assert!((30_000..160_000).contains(&bytes), "{kind:?}: {bytes}");
        }
    }
}
