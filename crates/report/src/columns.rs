//! Histograms: a column for each range of values, as high as there are values in it.

use forebay_plan::{Bin, units};

use super::palette::SERIES;
use super::scale::{Axis, Quantity};
use super::svg::{Anchor, Size, Svg, text_width};

/// Histograms, two next to each other if there is space.
pub(super) struct Columns {
    pub(super) panels: Vec<ColumnPanel>,
}

pub(super) struct ColumnPanel {
    /// What is counted.
    pub(super) title: String,
    /// What values are.
    pub(super) quantity: Quantity,
    /// What is counted: `images`.
    pub(super) counted: &'static str,
    pub(super) bins: Vec<Bin>,
    /// Which color.
    pub(super) series: usize,
}

const PLOT_HEIGHT: f64 = 150.0;
const AXIS_HEIGHT: f64 = 26.0;
const TITLE_HEIGHT: f64 = 24.0;

impl Columns {
    pub(super) fn draw(&self, size: Size) -> Svg {
        let width = size.width();
        let mut svg = Svg::new(width, 0.0);
        let columns = if size == Size::Wide && self.panels.len() > 1 { 2 } else { 1 };
        let gap = 36.0;
        let each = (width - gap * (columns as f64 - 1.0)) / columns as f64;
        let mut top = 0.0;
        for row in self.panels.chunks(columns) {
            for (column, panel) in row.iter().enumerate() {
                panel.draw(&mut svg, column as f64 * (each + gap), top, each);
            }
            top += TITLE_HEIGHT + PLOT_HEIGHT + AXIS_HEIGHT + 14.0;
        }
        svg.set_height(top);
        svg
    }
}

impl ColumnPanel {
    fn draw(&self, svg: &mut Svg, left: f64, top: f64, width: f64) {
        svg.text("head", [left, top + 12.0], Anchor::Start, &self.title);
        svg.text("soft", [left + width, top + 12.0], Anchor::End, self.counted);
        let top = top + TITLE_HEIGHT;
        let most = self.bins.iter().map(|bin| bin.count).max().unwrap_or(0);
        let y_axis = Axis::from_zero(Quantity::Plain(self.counted), most.max(1) as f64, 3);
        let tick_width = y_axis.ticks.iter().map(|(_, text)| text_width(text)).fold(0.0, f64::max) + 8.0;
        let (plot_left, plot_width) = (left + tick_width, width - tick_width);
        let y = |value: f64| top + PLOT_HEIGHT * (1.0 - y_axis.position(value));
        for (value, text) in &y_axis.ticks {
            let class = if *value == 0.0 { "axis" } else { "grid" };
            svg.line(class, [plot_left, y(*value)], [plot_left + plot_width, y(*value)]);
            svg.text("soft", [plot_left - 6.0, y(*value) + 4.0], Anchor::End, text);
        }
        let each = plot_width / self.bins.len().max(1) as f64;
        for (at, bin) in self.bins.iter().enumerate() {
            let x = plot_left + at as f64 * each;
            svg.tip(&self.tip(at), |svg| {
                if bin.count > 0 {
                    // Every nonzero count is visible, however small.
                    let height = (y(0.0) - y(bin.count as f64)).max(1.0);
                    svg.rect(
                        &format!("c{}", self.series % SERIES),
                        [x + 0.5, y(0.0) - height],
                        [(each - 1.0).max(1.0), height],
                    );
                }
                svg.rect("hit", [x, top], [each, PLOT_HEIGHT]);
            });
        }
        self.draw_edges(svg, plot_left, each, top + PLOT_HEIGHT);
    }

    /// The starts of the ranges, as far as there is space for them.
    fn draw_edges(&self, svg: &mut Svg, left: f64, each: f64, bottom: f64) {
        let mut free_from = f64::NEG_INFINITY;
        for (at, bin) in self.bins.iter().enumerate() {
            let (x, text) = (left + at as f64 * each, self.text(bin.from));
            let half = text_width(&text) / 2.0;
            if x - half >= free_from {
                svg.line("axis", [x, bottom], [x, bottom + 4.0]);
                svg.text("soft", [x, bottom + 17.0], Anchor::Middle, &text);
                free_from = x + half + 10.0;
            }
        }
    }

    /// A value as text, without decimals if it is an integer.
    fn text(&self, value: f64) -> String {
        let is_whole = matches!(self.quantity, Quantity::Plain(_)) && value.fract() == 0.0;
        if is_whole { units::count(value as u64) } else { self.quantity.text(value) }
    }

    /// A range in words, and how many are in it.
    fn tip(&self, at: usize) -> String {
        format!("{}: {} {}", self.range(at), units::count(self.bins[at].count), self.counted)
    }

    /// A range in words.
    pub(super) fn range(&self, at: usize) -> String {
        let bin = &self.bins[at];
        let text = |value| self.text(value);
        if at + 1 == self.bins.len() && at > 0 && bin.to - bin.from > 1.5 * (self.bins[0].to - self.bins[0].from) {
            format!("{} and more, up to {}", text(bin.from), text(bin.to))
        } else {
            format!("{} to {}", text(bin.from), text(bin.to))
        }
    }
}
