//! The content of the images: five kinds of scenes, each a class of the data set.

use forebay_pipeline::Random;

use super::noise::{Noise, mix, smooth_step};

/// Red, green and blue, each 0 to 1.
pub(super) type Color = [f32; 3];

/// A kind of scene. Its name is the name of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    City,
    Coast,
    Forest,
    Hills,
    Meadow,
}

impl Kind {
    pub(super) const ALL: [Self; 5] = [Self::City, Self::Coast, Self::Forest, Self::Hills, Self::Meadow];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::City => "city",
            Self::Coast => "coast",
            Self::Forest => "forest",
            Self::Hills => "hills",
            Self::Meadow => "meadow",
        }
    }
}

/// One scene, seen through a frame one high and `aspect` wide; `y` grows downwards.
pub(super) struct Scene {
    kind: Kind,
    noise: Noise,
    detail: Noise,
    horizon: f32,
    sun: (f32, f32),
    /// 0 at noon, 1 at dusk.
    dusk: f32,
    /// Trunks, or buildings: left edge, right edge, top.
    uprights: Vec<(f32, f32, f32)>,
    flowers: Vec<Flower>,
}

struct Flower {
    x: f32,
    y: f32,
    radius: f32,
    color: Color,
}

fn blend(one: Color, other: Color, share: f32) -> Color {
    std::array::from_fn(|channel| mix(one[channel], other[channel], share))
}

fn scaled(color: Color, by: f32) -> Color {
    color.map(|channel| channel * by)
}

impl Scene {
    pub(super) fn new(kind: Kind, random: &mut Random, aspect: f32) -> Self {
        let mut between = |low: f64, high: f64| random.between(low, high) as f32;
        let horizon = match kind {
            Kind::Coast => between(0.38, 0.55),
            Kind::Meadow => between(0.28, 0.45),
            Kind::Forest => between(0.78, 0.92),
            Kind::City | Kind::Hills => between(0.45, 0.6),
        };
        let sun = (between(0.1, 0.9) * aspect, between(0.08, 0.3));
        let dusk = if kind == Kind::City { between(0.5, 1.0) } else { between(0.0, 0.6) };
        let mut uprights = Vec::new();
        let mut left = between(-0.15, 0.05);
        while left < aspect && matches!(kind, Kind::City | Kind::Forest) {
            let (width, gap) = match kind {
                Kind::City => (between(0.07, 0.2), between(-0.02, 0.03)),
                _ => (between(0.015, 0.07), between(0.03, 0.25)),
            };
            uprights.push((left, left + width, between(0.12, 0.62)));
            left += width + gap;
        }
        let palette = [[0.95, 0.85, 0.2], [0.9, 0.25, 0.25], [0.95, 0.95, 0.92], [0.6, 0.35, 0.85]];
        let count = if kind == Kind::Meadow { 90 } else { 0 };
        let flowers = (0..count).map(|_| {
            let near = between(0.0, 1.0);
            let y = mix(horizon + 0.04, 1.0, near);
            let color = palette[between(0.0, 3.999) as usize];
            Flower { x: between(0.0, 1.0) * aspect, y, radius: mix(0.004, 0.022, near), color }
        });
        let flowers = flowers.collect();
        Self {
            kind,
            horizon,
            sun,
            dusk,
            uprights,
            flowers,
            noise: Noise::new(random.bits()),
            detail: Noise::new(random.bits()),
        }
    }

    /// What is seen at a point.
    pub(super) fn color(&self, x: f32, y: f32) -> Color {
        match self.kind {
            Kind::City => self.city(x, y),
            Kind::Coast => self.coast(x, y),
            Kind::Forest => self.forest(x, y),
            Kind::Hills => self.hills(x, y),
            Kind::Meadow => self.meadow(x, y),
        }
    }

    fn sky(&self, x: f32, y: f32) -> Color {
        let zenith = blend([0.18, 0.42, 0.78], [0.10, 0.12, 0.32], self.dusk);
        let low = blend([0.74, 0.86, 0.95], [0.98, 0.58, 0.32], self.dusk);
        let clear = blend(zenith, low, (y / self.horizon).clamp(0.0, 1.0).powf(0.8));
        let cloud = smooth_step(0.46, 0.74, self.noise.fractal(x * 2.4, y * 6.0, 5));
        let lit = blend([0.97, 0.97, 0.98], [0.95, 0.62, 0.52], self.dusk);
        let shade = self.detail.fractal(x * 5.0, y * 11.0, 3);
        let clouded = blend(clear, scaled(lit, 0.72 + 0.35 * shade), cloud * 0.85);
        let away = ((x - self.sun.0).powi(2) + (y - self.sun.1).powi(2)).sqrt();
        blend(clouded, [1.0, 0.95, 0.82], (-away * 9.0).exp() * 0.9)
    }

    fn hills(&self, x: f32, y: f32) -> Color {
        const LAYERS: i32 = 5;
        let haze = blend([0.70, 0.80, 0.90], [0.90, 0.62, 0.48], self.dusk);
        // The nearest layer hides the others, so it is asked first.
        for layer in (0..LAYERS).rev() {
            let near = layer as f32 / (LAYERS - 1) as f32;
            let rise = self.noise.fractal(x * (1.2 + near * 1.4), layer as f32 * 9.7, 6) - 0.5;
            let ridge = self.horizon - 0.12 + near * 0.42 + rise * mix(0.34, 0.2, near);
            if y > ridge {
                let fine = mix(18.0, 80.0, near);
                let texture = self.detail.fractal(x * fine, y * fine * 1.6, 5);
                let ground = blend([0.12, 0.22, 0.08], [0.52, 0.50, 0.24], texture);
                let lit = scaled(ground, 0.55 + 1.0 * self.detail.fractal(x * 4.0, (y - ridge) * 14.0, 4));
                return blend(haze, lit, 0.25 + 0.75 * near);
            }
        }
        self.sky(x, y)
    }

    fn coast(&self, x: f32, y: f32) -> Color {
        if y < self.horizon {
            return self.sky(x, y);
        }
        let shore = 0.84 + 0.10 * (self.noise.fractal(x * 1.7, 3.3, 4) - 0.5);
        let near = (y - self.horizon) / (shore - self.horizon);
        if y > shore {
            let grain = self.detail.fractal(x * 130.0, y * 130.0, 3);
            let ripple = self.noise.fractal(x * 9.0, y * 40.0, 4);
            let sand = blend([0.62, 0.50, 0.34], [0.90, 0.80, 0.60], 0.45 * grain + 0.55 * ripple);
            return blend([0.38, 0.31, 0.22], sand, smooth_step(0.0, 0.07, y - shore));
        }
        // Waves seem larger the nearer they are.
        let depth = 0.06 + near;
        let wave = self.detail.fractal(x * 16.0 / depth, y * 22.0 / depth, 5);
        let deep = blend([0.04, 0.20, 0.34], [0.12, 0.46, 0.50], near);
        let water = blend(scaled(deep, 0.6 + 0.8 * wave), self.sky(x, self.horizon * 0.6), 0.32 * (1.0 - near));
        let glitter = smooth_step(0.6, 0.72, wave) * (-(x - self.sun.0).abs() * 5.0).exp();
        let foam = smooth_step(0.55, 0.7, wave) * smooth_step(0.82, 1.0, near);
        blend(water, [1.0, 0.97, 0.9], (glitter * 0.9).max(foam))
    }

    fn forest(&self, x: f32, y: f32) -> Color {
        let bend = 0.012 * (self.noise.at(x * 2.0, y * 5.0) - 0.5);
        for &(left, right, top) in self.uprights.iter().rev() {
            let across = (x + bend - left) / (right - left);
            if (0.0..1.0).contains(&across) && y < self.horizon + top * 0.12 {
                let bark = self.detail.fractal(x * 90.0, y * 14.0, 4);
                let round = (across * std::f32::consts::PI).sin();
                let near = smooth_step(0.01, 0.07, right - left);
                let brown = scaled(blend([0.10, 0.08, 0.06], [0.46, 0.37, 0.27], bark), 0.3 + 0.9 * round);
                return blend([0.30, 0.36, 0.24], brown, 0.35 + 0.65 * near);
            }
        }
        let drift = self.noise.fractal(x * 3.0, y * 3.0, 3);
        let leaves = self.detail.fractal((x + drift * 0.15) * 36.0, (y + drift * 0.15) * 36.0, 5);
        let light = smooth_step(0.3, 0.75, self.noise.fractal(x * 2.0 + 40.0, y * 1.4, 3));
        if y > self.horizon {
            let litter = blend([0.16, 0.10, 0.05], [0.58, 0.40, 0.20], leaves);
            return scaled(litter, 0.5 + 0.7 * light);
        }
        let leaf = blend([0.03, 0.09, 0.03], [0.46, 0.62, 0.16], smooth_step(0.3, 0.72, leaves));
        let gap = smooth_step(0.60, 0.68, leaves) * light * (1.0 - y);
        blend(scaled(leaf, 0.45 + 0.9 * light), [0.92, 0.96, 0.85], gap)
    }

    fn meadow(&self, x: f32, y: f32) -> Color {
        let edge = self.horizon + 0.05 * (self.noise.fractal(x * 2.2, 7.7, 4) - 0.5);
        if y < edge {
            let crowns = edge - 0.10 * smooth_step(0.42, 0.62, self.noise.fractal(x * 7.0, 1.5, 3));
            if y < crowns {
                return self.sky(x, y);
            }
            return scaled([0.20, 0.32, 0.14], 0.4 + 1.0 * self.detail.fractal(x * 40.0, y * 40.0, 4));
        }
        for flower in &self.flowers {
            let (across, down) = (x - flower.x, y - flower.y);
            let away = (across * across + down * down).sqrt() / flower.radius;
            if away < 1.0 {
                let petal = 0.7 + 0.4 * self.detail.at(x * 300.0, y * 300.0);
                return if away < 0.35 { [0.75, 0.55, 0.1] } else { scaled(flower.color, petal) };
            }
        }
        let near = (y - edge) / (1.0 - edge);
        let depth = 0.15 + near;
        let blades = self.detail.fractal(x * 70.0 / depth, y * 16.0 / depth, 4);
        let patch = self.noise.fractal(x * 3.0, y * 8.0, 3);
        let grass = blend([0.08, 0.20, 0.04], [0.60, 0.70, 0.22], 0.65 * blades + 0.35 * patch);
        blend([0.66, 0.74, 0.56], grass, 0.35 + 0.65 * smooth_step(0.0, 0.4, near))
    }

    fn city(&self, x: f32, y: f32) -> Color {
        if y > 0.86 {
            let wet = self.noise.fractal(x * 6.0, y * 30.0, 4);
            let lamps = smooth_step(0.62, 0.8, self.detail.fractal(x * 14.0, y * 3.0, 3));
            return blend(scaled([0.20, 0.20, 0.24], 0.5 + wet), [0.98, 0.75, 0.4], lamps * 0.7);
        }
        for (number, &(left, right, top)) in self.uprights.iter().enumerate().rev() {
            if (left..right).contains(&x) && y > top {
                return self.wall(number as i32, x - left, y - top, right - left);
            }
        }
        self.sky(x, y)
    }

    fn wall(&self, building: i32, across: f32, down: f32, width: f32) -> Color {
        let tone = self.noise.lattice(building, 1);
        let stone = blend([0.30, 0.27, 0.26], [0.58, 0.50, 0.44], tone);
        let rough = self.detail.fractal(across * 120.0, down * 120.0, 3);
        let wall = scaled(stone, mix(0.9, 0.45, self.dusk) * (0.7 + 0.5 * rough));
        let (column, row) = (across / 0.021, down / 0.032);
        let (inner, upper) = (column.fract(), row.fract());
        let is_window = (0.25..0.75).contains(&inner) && (0.3..0.8).contains(&upper) && across < width - 0.01;
        if !is_window {
            return wall;
        }
        let chance = self.noise.lattice(building * 64 + column as i32, 100 + row as i32);
        if chance < 0.45 * self.dusk {
            return scaled([1.0, 0.82, 0.48], 0.7 + 0.4 * rough);
        }
        blend([0.10, 0.13, 0.18], [0.45, 0.55, 0.66], (1.0 - self.dusk) * upper)
    }
}
