//! Triangles: three shares of something, each from the center to a corner, next to those of others (as Liquid draws utilization).

use super::palette::SERIES;
use super::svg::{Anchor, Size, Svg, shortened};

/// Triangles next to each other.
pub(super) struct Triangles {
    /// The meaning of the corners: the upper one, the left one and the right one.
    pub(super) corners: [&'static str; 3],
    pub(super) panels: Vec<Triangle>,
}

pub(super) struct Triangle {
    pub(super) title: String,
    pub(super) series: usize,
    /// From 0 to 1, in the order of the corners, and the text there.
    pub(super) shares: [(f64, String); 3],
    pub(super) tip: String,
    /// Whether it is the one to look at.
    pub(super) best: bool,
}

/// From the middle to a corner.
const RADIUS: f64 = 78.0;
/// Above the upper corner: the title, and the meaning of the corner.
const HEAD: f64 = 44.0;
/// Below the lower corners.
const FOOT: f64 = 40.0;
const HEIGHT: f64 = HEAD + 1.5 * RADIUS + FOOT;

/// The corners from the middle: up, left and right, 120 degrees apart.
const DIRECTIONS: [[f64; 2]; 3] = [[0.0, -1.0], [-0.866_025_4, 0.5], [0.866_025_4, 0.5]];

impl Triangles {
    pub(super) fn draw(&self, size: Size) -> Svg {
        let columns = if size == Size::Wide { self.panels.len().clamp(1, 3) } else { 1 };
        let each = size.width() / columns as f64;
        let mut svg = Svg::new(size.width(), 0.0);
        for (number, panel) in self.panels.iter().enumerate() {
            let (row, column) = (number / columns, number % columns);
            let middle = [(column as f64 + 0.5) * each, row as f64 * HEIGHT + HEAD + RADIUS];
            self.draw_panel(&mut svg, panel, middle, each);
        }
        svg.set_height(self.panels.len().div_ceil(columns) as f64 * HEIGHT);
        svg
    }

    fn draw_panel(&self, svg: &mut Svg, panel: &Triangle, [x, y]: [f64; 2], width: f64) {
        let at = |corner: usize, share: f64| {
            let [across, down] = DIRECTIONS[corner];
            [x + across * RADIUS * share, y + down * RADIUS * share]
        };
        let class = if panel.best { "best" } else { "head" };
        svg.text(class, [x, y - RADIUS - HEAD + 12.0], Anchor::Middle, &shortened(&panel.title, width - 12.0));
        for step in 1..=4 {
            let share = f64::from(step) / 4.0;
            let class = if step == 4 { "axis" } else { "grid" };
            for corner in 0..3 {
                svg.line(class, at(corner, share), at((corner + 1) % 3, share));
            }
        }
        for corner in 0..3 {
            svg.line("grid", [x, y], at(corner, 1.0));
        }
        svg.tip(&panel.tip, |svg| {
            let points = [0, 1, 2].map(|corner| at(corner, panel.shares[corner].0.clamp(0.0, 1.0)));
            svg.polygon(&format!("area c{}", panel.series % SERIES), &points);
            for point in points {
                svg.mark(panel.series, point, 3.5);
            }
        });
        for (corner, name) in self.corners.iter().enumerate() {
            let [left, top] = at(corner, 1.0);
            // Above the upper corner, below the others.
            let top = if corner == 0 { top - 10.0 } else { top + 17.0 };
            let text = format!("{name} {}", panel.shares[corner].1);
            svg.text("soft", [left, top], Anchor::Middle, &text);
        }
    }
}
