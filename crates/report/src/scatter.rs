//! Scatter plots: one quantity on each axis, optionally with the Pareto front.

use super::lines::draw_x_axis;
use super::scale::{Axis, Quantity};
use super::svg::{Anchor, Key, Size, Svg, text_width};

/// Strategies by two figures.
pub(super) struct Scatter {
    pub(super) across: Side,
    pub(super) upwards: Side,
    /// The meaning of the colors; where they only identify a point, a name without space goes below instead.
    pub(super) keys: Vec<String>,
    /// A horizontal line, and the text above it.
    pub(super) level: Option<(f64, &'static str)>,
    pub(super) points: Vec<Dot>,
}

/// What an axis shows.
pub(super) struct Side {
    pub(super) quantity: Quantity,
    /// In words, before the unit; empty where that says enough.
    pub(super) name: &'static str,
}

pub(super) struct Dot {
    pub(super) label: String,
    pub(super) across: f64,
    pub(super) upwards: f64,
    pub(super) series: usize,
    /// Whether no other one takes less storage and is faster.
    pub(super) front: bool,
    /// Whether it is the one to look at.
    pub(super) best: bool,
    pub(super) tip: String,
}

/// From this ratio of the largest to the smallest on, small values would be on the axis.
const LOGARITHMIC_FROM: f64 = 25.0;

const AXIS_HEIGHT: f64 = 42.0;

/// An occupied rectangle: left, top, right, bottom.
type Taken = [f64; 4];

fn overlap(one: &Taken, other: &Taken) -> bool {
    one[0] < other[2] && other[0] < one[2] && one[1] < other[3] && other[1] < one[3]
}

impl Scatter {
    fn axis(&self, side: &Side, value: fn(&Dot) -> f64) -> Axis {
        let mut axis = self.scaled(side.quantity, value);
        if !side.name.is_empty() {
            axis.unit = format!("{}, {}", side.name, axis.unit);
        }
        axis
    }

    fn scaled(&self, quantity: Quantity, value: fn(&Dot) -> f64) -> Axis {
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
        let x_axis = self.axis(&self.across, |dot| dot.across);
        let y_axis = self.axis(&self.upwards, |dot| dot.upwards);
        svg.text("soft", [0.0, 9.0], Anchor::Start, &y_axis.unit);
        let top = 22.0;
        let left = y_axis.ticks.iter().map(|(_, text)| text_width(text)).fold(0.0, f64::max) + 8.0;
        let plot_width = width - left - 18.0;
        let x = |value: f64| left + x_axis.position(value) * plot_width;
        let y = |value: f64| top + height * (1.0 - y_axis.position(value));
        for (value, text) in &y_axis.ticks {
            svg.line("grid", [left, y(*value)], [left + plot_width, y(*value)]);
            svg.text("soft", [left - 6.0, y(*value) + 4.0], Anchor::End, text);
        }
        for (value, _) in &x_axis.ticks {
            svg.line("grid", [x(*value), top], [x(*value), top + height]);
        }
        svg.line("axis", [left, top + height], [left + plot_width, top + height]);
        draw_x_axis(&mut svg, &x_axis, top + height, &x, left + plot_width / 2.0);
        let positions: Vec<[f64; 2]> = self.points.iter().map(|dot| [x(dot.across), y(dot.upwards)]).collect();
        let front = self.front(&positions);
        svg.path("front", &front);
        let level = self.level.filter(|(value, _)| (y_axis.low..=y_axis.high).contains(value));
        if let Some((value, _)) = level {
            svg.path("front", &[[left, y(value)], [left + plot_width, y(value)]]);
        }
        let labels = self.labels(&positions, &front, [left, top, left + plot_width, top + height]);
        // The one to look at is on top.
        let marks = || self.points.iter().zip(&positions);
        for (dot, position) in marks().filter(|(dot, _)| !dot.best).chain(marks().filter(|(dot, _)| dot.best)) {
            svg.tip(&dot.tip, |svg| {
                svg.mark(dot.series, *position, 6.0);
                if dot.best {
                    svg.ring(*position, 11.0);
                }
            });
        }
        let mut legend = Vec::new();
        if front.len() > 1 {
            legend.push((Key::Dashes("front"), "nothing takes less storage and is faster".to_owned()));
        }
        legend.extend(level.map(|(_, what)| (Key::Dashes("front"), what.to_owned())));
        for (dot, label) in self.points.iter().zip(labels) {
            match label {
                Some((at, anchor)) => svg.text(if dot.best { "best" } else { "" }, at, anchor, &dot.label),
                None if !self.keys.is_empty() => {}
                // No space next to its mark: the name goes below instead.
                None => legend.push((Key::Series(dot.series), dot.label.clone())),
            }
        }
        legend.extend(self.keys.iter().enumerate().map(|(series, key)| (Key::Series(series), key.clone())));
        let below = top + height + AXIS_HEIGHT;
        let bottom = if legend.is_empty() { below } else { svg.legend(&legend, 0.0, below + 4.0) };
        svg.set_height(bottom);
        svg
    }

    /// The line of those that nothing beats in both.
    fn front(&self, positions: &[[f64; 2]]) -> Vec<[f64; 2]> {
        let mut front: Vec<[f64; 2]> =
            self.points.iter().zip(positions).filter(|(dot, _)| dot.front).map(|(_, position)| *position).collect();
        front.sort_by(|one, other| one[0].total_cmp(&other[0]));
        // In steps: between two points, that much storage only buys the throughput of the smaller one.
        let mut steps: Vec<[f64; 2]> = Vec::new();
        for position in front {
            if let Some(&[_, y]) = steps.last() {
                steps.push([position[0], y]);
            }
            steps.push(position);
        }
        steps
    }

    /// A free position for each name next to its mark; `None` if there is none. Important names choose first.
    fn labels(
        &self,
        positions: &[[f64; 2]],
        front: &[[f64; 2]],
        [left, top, right, bottom]: Taken,
    ) -> Vec<Option<([f64; 2], Anchor)>> {
        let mut taken: Vec<Taken> = positions.iter().map(|[x, y]| [x - 10.0, y - 10.0, x + 10.0, y + 10.0]).collect();
        let span = |one: f64, other: f64| (one.min(other) - 1.0, one.max(other) + 1.0);
        taken.extend(front.windows(2).map(|ends| {
            let ((left, right), (top, bottom)) = (span(ends[0][0], ends[1][0]), span(ends[0][1], ends[1][1]));
            [left, top, right, bottom]
        }));
        let mut found = vec![None; positions.len()];
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_by_key(|&at| (!self.points[at].best, !self.points[at].front));
        for at in order {
            let (dot, [x, y]) = (&self.points[at], positions[at]);
            // Next to a mark that is under others, a name would seem to be theirs.
            let is_near = |other: &&[f64; 2]| (other[0] - x).abs() < 9.0 && (other[1] - y).abs() < 9.0;
            if !dot.best && positions.iter().filter(is_near).count() > 1 {
                continue;
            }
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
            let space = |&([x, y], anchor): &([f64; 2], Anchor)| {
                let from = match anchor {
                    Anchor::Start => x,
                    Anchor::Middle => x - width / 2.0,
                    Anchor::End => x - width,
                };
                [from, y - 11.0, from + width, y + 3.0]
            };
            let free = |candidate: &([f64; 2], Anchor)| {
                let space = space(candidate);
                let inside =
                    space[0] >= left && space[1] >= top - 8.0 && space[2] <= right + 16.0 && space[3] <= bottom;
                inside && !taken.iter().any(|other| overlap(&space, other))
            };
            found[at] = candidates.into_iter().find(free);
            taken.extend(found[at].as_ref().map(space));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_many_strategies_do_not_collide() {
        // Fifteen as they were measured: four of them at about the same position.
        let positions = [
            (7.26, 96.1),
            (7.27, 78.3),
            (7.65, 65.7),
            (65.9, 172.0),
            (37.3, 66.3),
            (31.9, 74.7),
            (61.3, 85.5),
            (7.24, 92.7),
            (31.9, 1144.0),
            (16.9, 130.0),
            (15.2, 158.0),
            (30.7, 157.0),
            (2.93, 188.0),
            (128.0, 635.0),
            (65.3, 57.0),
        ];
        let dot = |(number, (megabytes, rate)): (usize, &(f64, f64))| Dot {
            label: format!("a-strategy+{number}"),
            across: megabytes * 1e6,
            upwards: *rate,
            series: number,
            front: number == 8 || number == 12,
            best: number == 8,
            tip: String::new(),
        };
        let side = |quantity: Quantity| Side { quantity, name: "" };
        let scatter = Scatter {
            across: side(Quantity::Bytes),
            upwards: side(Quantity::Rate),
            level: None,
            keys: Vec::new(),
            points: positions.iter().enumerate().map(dot).collect(),
        };
        for size in [Size::Wide, Size::Narrow] {
            let text = scatter.draw(size).inline("", "");
            let names: Vec<[f64; 4]> =
                text.lines().filter(|line| line.contains("a-strategy+")).filter_map(space).collect();
            assert_eq!(names.len(), positions.len(), "each has its name, next to its mark or below");
            for (at, one) in names.iter().enumerate() {
                for other in &names[..at] {
                    assert!(!overlap(one, other), "{one:?} {other:?}");
                }
            }
            assert!(text.contains("class=\"best\""), "the one to look at has its name beside it");
        }
    }

    /// The space that a text takes.
    fn space(line: &str) -> Option<Taken> {
        let number = |name: &str| line.split_once(&format!(" {name}=\""))?.1.split_once('"')?.0.parse::<f64>().ok();
        let (x, y) = (number("x")?, number("y")?);
        let words = line.split_once('>')?.1.split_once('<')?.0;
        let from = match line {
            line if line.contains("\"middle\"") => x - text_width(words) / 2.0,
            line if line.contains("\"end\"") => x - text_width(words),
            _ => x,
        };
        Some([from, y - 10.0, from + text_width(words), y + 2.0])
    }
}
