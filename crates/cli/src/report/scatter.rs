//! Points: storage across, throughput upwards, with the front of those that nothing beats in both.

use super::lines::draw_x_axis;
use super::scale::{Axis, Quantity};
use super::svg::{Anchor, Key, Size, Svg, text_width};

/// Strategies by storage and throughput.
pub(super) struct Scatter {
    pub(super) points: Vec<Dot>,
}

pub(super) struct Dot {
    pub(super) label: String,
    pub(super) storage_bytes: f64,
    pub(super) samples_per_second: f64,
    pub(super) series: usize,
    /// Whether no other keeps less and is faster.
    pub(super) front: bool,
    /// Whether it is the one to look at.
    pub(super) best: bool,
    pub(super) tip: String,
}

/// From this ratio of the largest to the smallest on, small values would lie on the axis.
const LOGARITHMIC_FROM: f64 = 25.0;

const AXIS_HEIGHT: f64 = 42.0;

/// A rectangle that is taken: left, top, right, bottom.
type Taken = [f64; 4];

impl Scatter {
    fn axis(&self, quantity: Quantity, value: fn(&Dot) -> f64) -> Axis {
        let values = || self.points.iter().map(value);
        let most = values().fold(0.0, f64::max);
        let least = values().fold(f64::INFINITY, f64::min);
        if least > 0.0 && most / least > LOGARITHMIC_FROM {
            Axis::logarithmic(quantity, least, most)
        } else {
            Axis::from_zero(quantity, most, 5)
        }
    }

    pub(super) fn draw(&self, size: Size) -> Svg {
        let (width, height) = (size.width(), if size == Size::Wide { 340.0 } else { 280.0 });
        let mut svg = Svg::new(width, 0.0);
        let mut x_axis = self.axis(Quantity::Bytes, |dot| dot.storage_bytes);
        x_axis.unit = format!("storage for all samples, {}", x_axis.unit);
        let y_axis = self.axis(Quantity::Rate, |dot| dot.samples_per_second);
        svg.text("soft", [0.0, 9.0], Anchor::Start, &y_axis.unit);
        let top = 22.0;
        let left = y_axis.ticks.iter().map(|(_, text)| text_width(text)).fold(0.0, f64::max) + 8.0;
        let plot_width = width - left - 18.0;
        let x = |value: f64| left + x_axis.place(value) * plot_width;
        let y = |value: f64| top + height * (1.0 - y_axis.place(value));
        for (value, text) in &y_axis.ticks {
            svg.line("grid", [left, y(*value)], [left + plot_width, y(*value)]);
            svg.text("soft", [left - 6.0, y(*value) + 4.0], Anchor::End, text);
        }
        for (value, _) in &x_axis.ticks {
            svg.line("grid", [x(*value), top], [x(*value), top + height]);
        }
        svg.line("axis", [left, top + height], [left + plot_width, top + height]);
        draw_x_axis(&mut svg, &x_axis, top + height, &x, left + plot_width / 2.0);
        let places: Vec<[f64; 2]> =
            self.points.iter().map(|dot| [x(dot.storage_bytes), y(dot.samples_per_second)]).collect();
        let front = self.front(&places);
        svg.path("front", &front);
        let labels = self.labels(&places, &front, [left, top, left + plot_width, top + height]);
        for (dot, place) in self.points.iter().zip(&places) {
            svg.tip(&dot.tip, |svg| {
                svg.mark(dot.series, *place, 6.0);
                if dot.best {
                    svg.ring(*place, 11.0);
                }
            });
        }
        let mut legend = Vec::new();
        if front.len() > 1 {
            legend.push((Key::Dashes("front"), "nothing keeps less and is faster".to_owned()));
        }
        if let Some(labels) = labels {
            for (dot, (at, anchor)) in self.points.iter().zip(labels) {
                svg.text(if dot.best { "best" } else { "" }, at, anchor, &dot.label);
            }
        } else {
            // No room for all names: they stand below instead.
            legend.extend(self.points.iter().map(|dot| (Key::Series(dot.series), dot.label.clone())));
        }
        let below = top + height + AXIS_HEIGHT;
        let bottom = if legend.is_empty() { below } else { svg.legend(&legend, 0.0, below + 4.0) };
        svg.set_height(bottom);
        svg
    }

    /// The line of those that nothing beats in both.
    fn front(&self, places: &[[f64; 2]]) -> Vec<[f64; 2]> {
        let mut front: Vec<[f64; 2]> =
            self.points.iter().zip(places).filter(|(dot, _)| dot.front).map(|(_, place)| *place).collect();
        front.sort_by(|one, other| one[0].total_cmp(&other[0]));
        // In steps: between two points, so much storage buys only what the smaller gives.
        let mut steps: Vec<[f64; 2]> = Vec::new();
        for place in front {
            if let Some(&[_, y]) = steps.last() {
                steps.push([place[0], y]);
            }
            steps.push(place);
        }
        steps
    }

    /// A place for each name beside its mark where nothing else is; `None` where one finds none.
    fn labels(
        &self,
        places: &[[f64; 2]],
        front: &[[f64; 2]],
        [left, top, right, bottom]: Taken,
    ) -> Option<Vec<([f64; 2], Anchor)>> {
        let mut taken: Vec<Taken> = places.iter().map(|[x, y]| [x - 10.0, y - 10.0, x + 10.0, y + 10.0]).collect();
        let span = |one: f64, other: f64| (one.min(other) - 1.0, one.max(other) + 1.0);
        taken.extend(front.windows(2).map(|ends| {
            let ((left, right), (top, bottom)) = (span(ends[0][0], ends[1][0]), span(ends[0][1], ends[1][1]));
            [left, top, right, bottom]
        }));
        let mut found = Vec::new();
        for (dot, &[x, y]) in self.points.iter().zip(places) {
            let width = text_width(&dot.label);
            let candidates = [
                ([x + 15.0, y + 4.0], Anchor::Start),
                ([x - 15.0, y + 4.0], Anchor::End),
                ([x, y - 16.0], Anchor::Middle),
                ([x, y + 25.0], Anchor::Middle),
                ([x + 12.0, y - 13.0], Anchor::Start),
                ([x + 12.0, y + 21.0], Anchor::Start),
                ([x - 12.0, y - 13.0], Anchor::End),
                ([x - 12.0, y + 21.0], Anchor::End),
            ];
            let room = |&([x, y], anchor): &([f64; 2], Anchor)| {
                let from = match anchor {
                    Anchor::Start => x,
                    Anchor::Middle => x - width / 2.0,
                    Anchor::End => x - width,
                };
                [from, y - 11.0, from + width, y + 3.0]
            };
            let free = |candidate: &([f64; 2], Anchor)| {
                let [a, b, c, d] = room(candidate);
                let inside = a >= left && b >= top - 8.0 && c <= right + 16.0 && d <= bottom;
                inside && !taken.iter().any(|[e, f, g, h]| a < *g && *e < c && b < *h && *f < d)
            };
            let chosen = candidates.into_iter().find(free)?;
            taken.push(room(&chosen));
            found.push(chosen);
        }
        Some(found)
    }
}
