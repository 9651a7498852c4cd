//! Line plots: the parameter on the x axis, the result on the y axis from zero, a line for each series.

use super::palette::SERIES;
use super::scale::{Axis, Quantity};
use super::svg::{Anchor, Key, Size, Svg, text_width};

/// Panels with lines of the same series.
pub(super) struct Lines {
    pub(super) panels: Vec<LinePanel>,
    pub(super) legend: Vec<(Key, String)>,
}

pub(super) struct LinePanel {
    /// What it shows; empty if there is only one.
    pub(super) title: String,
    pub(super) x: Across,
    pub(super) y: Quantity,
    pub(super) lines: Vec<Trace>,
    /// Whether to draw the ideal: a speed-up equal to the number of threads.
    pub(super) ideal: bool,
    /// Whether each point has a mark with its value as the tooltip; with many points, the line has one tooltip.
    pub(super) marks: bool,
}

/// The axis that goes across.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Across {
    /// Ticks at the values, at equal ratios; with a name.
    Values(Quantity, &'static str),
    /// A number from zero, with a name.
    Number(&'static str),
    /// Time from zero.
    Seconds,
    /// A share, from 0 to 1.
    Share,
}

pub(super) struct Trace {
    pub(super) series: usize,
    /// The position, and the text there.
    pub(super) points: Vec<(f64, f64, String)>,
    /// The tooltip of the line.
    pub(super) tip: String,
    /// How it is emphasized among the others.
    pub(super) weight: Weight,
}

/// How a line is emphasized among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    /// As all do.
    Even,
    /// The one to look at, above the others.
    Strong,
    /// One of the others.
    Faint,
}

impl Weight {
    fn class(self) -> &'static str {
        match self {
            Self::Even => "trace",
            Self::Strong => "trace strong",
            Self::Faint => "trace faint",
        }
    }
}

const PLOT_HEIGHT: f64 = 210.0;
const AXIS_HEIGHT: f64 = 42.0;
const TITLE_HEIGHT: f64 = 24.0;

impl Lines {
    pub(super) fn draw(&self, size: Size) -> Svg {
        let width = size.width();
        let mut svg = Svg::new(width, 0.0);
        let mut top = if self.legend.is_empty() { 0.0 } else { svg.legend(&self.legend, 0.0, 0.0) + 8.0 };
        let columns = if size == Size::Wide && self.panels.len() > 1 { 2 } else { 1 };
        let gap = 36.0;
        let each = (width - gap * (columns as f64 - 1.0)) / columns as f64;
        for row in self.panels.chunks(columns) {
            for (column, panel) in row.iter().enumerate() {
                panel.draw(&mut svg, column as f64 * (each + gap), top, each);
            }
            let title = if row.iter().any(|panel| !panel.title.is_empty()) { TITLE_HEIGHT } else { 0.0 };
            top += title + 18.0 + PLOT_HEIGHT + AXIS_HEIGHT + 10.0;
        }
        svg.set_height(top);
        svg
    }
}

impl LinePanel {
    fn axes(&self) -> (Axis, Axis) {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let xs: Vec<f64> = points().map(|(x, ..)| *x).collect();
        let x_most = xs.iter().copied().fold(0.0, f64::max);
        let x_axis = match self.x {
            Across::Values(quantity, name) => Axis::at_values(&xs, quantity, name),
            Across::Number(name) => Axis::from_zero(Quantity::Plain(name), x_most, 5),
            Across::Seconds => Axis::from_zero(Quantity::Seconds, x_most, 5),
            Across::Share => Axis::from_zero(Quantity::Share, 1.0, 5),
        };
        let least = xs.iter().copied().fold(f64::INFINITY, f64::min);
        let ideal = if self.ideal { x_most / least } else { 0.0 };
        let y_most = points().map(|(_, y, _)| *y).fold(ideal, f64::max);
        (x_axis, Axis::from_zero(self.y, y_most, 5))
    }

    fn draw(&self, svg: &mut Svg, left: f64, top: f64, width: f64) {
        let (x_axis, y_axis) = self.axes();
        let mut top = top;
        if !self.title.is_empty() {
            svg.text("head", [left, top + 12.0], Anchor::Start, &self.title);
            top += TITLE_HEIGHT;
        }
        svg.text("soft", [left, top + 8.0], Anchor::Start, &y_axis.unit);
        top += 18.0;
        let tick_width = y_axis.ticks.iter().map(|(_, text)| text_width(text)).fold(0.0, f64::max) + 8.0;
        let (plot_left, plot_width) = (left + tick_width, width - tick_width - 14.0);
        // Marks at the ends must not overlap the numbers next to the plot.
        let inset = if self.marks { 12.0 } else { 0.0 };
        let x = |value: f64| plot_left + inset + x_axis.position(value) * (plot_width - 2.0 * inset);
        let y = |value: f64| top + PLOT_HEIGHT * (1.0 - y_axis.position(value));
        for (value, text) in &y_axis.ticks {
            let class = if *value == 0.0 { "axis" } else { "grid" };
            svg.line(class, [plot_left, y(*value)], [plot_left + plot_width, y(*value)]);
            svg.text("soft", [plot_left - 6.0, y(*value) + 4.0], Anchor::End, text);
        }
        draw_x_axis(svg, &x_axis, top + PLOT_HEIGHT, &x, plot_left + plot_width / 2.0);
        if self.ideal {
            let (least, most) = (x_axis.low, x_axis.high);
            // Straight in numbers, curved where ratios are equal: drawn in short pieces.
            let piece = |step: u32| least * (most / least).powf(f64::from(step) / 24.0);
            let points: Vec<[f64; 2]> = (0..=24).map(piece).map(|at| [x(at), y(at / least)]).collect();
            svg.path("ideal", &points);
        }
        // What is drawn last is on top.
        let is_strong = |line: &&Trace| line.weight == Weight::Strong;
        for line in self.lines.iter().filter(|line| !is_strong(line)).chain(self.lines.iter().filter(is_strong)) {
            self.draw_line(svg, line, &x, &y);
        }
    }

    fn draw_line(&self, svg: &mut Svg, line: &Trace, x: &impl Fn(f64) -> f64, y: &impl Fn(f64) -> f64) {
        let class = format!("{} c{}", line.weight.class(), line.series % SERIES);
        let points: Vec<[f64; 2]> = line.points.iter().map(|(at, value, _)| [x(*at), y(*value)]).collect();
        if self.marks {
            svg.path(&class, &points);
            for ((_, _, tip), position) in line.points.iter().zip(&points) {
                svg.tip(tip, |svg| svg.mark(line.series, *position, 4.5));
            }
            return;
        }
        svg.tip(&line.tip, |svg| {
            svg.path(&class, &points);
            if let Some(last) = points.last() {
                svg.mark(line.series, *last, if line.weight == Weight::Strong { 5.0 } else { 3.5 });
            }
        });
    }
}

/// Ticks and unit below the plot; a tick without space for its text has none.
pub(super) fn draw_x_axis(svg: &mut Svg, axis: &Axis, bottom: f64, x: &impl Fn(f64) -> f64, middle: f64) {
    let mut free_from = f64::NEG_INFINITY;
    for (value, text) in &axis.ticks {
        svg.line("axis", [x(*value), bottom], [x(*value), bottom + 4.0]);
        let half = text_width(text) / 2.0;
        if x(*value) - half >= free_from {
            svg.text("soft", [x(*value), bottom + 17.0], Anchor::Middle, text);
            free_from = x(*value) + half + 8.0;
        }
    }
    svg.text("soft", [middle, bottom + 34.0], Anchor::Middle, &axis.unit);
}
