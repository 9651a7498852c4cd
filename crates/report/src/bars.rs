//! Bars: one below the other, in one panel or in several side by side; simple, in groups, or stacked. They begin at zero.

use super::palette::SERIES;
use super::scale::{Axis, Quantity};
use super::svg::{Anchor, Key, Size, Svg, shortened, text_width};

/// Panels over the same kind of rows.
pub(super) struct Bars {
    pub(super) panels: Vec<Panel>,
    pub(super) legend: Vec<(Key, String)>,
}

pub(super) struct Panel {
    /// What it shows; empty if there is only one.
    pub(super) title: String,
    pub(super) quantity: Quantity,
    pub(super) rows: Vec<Row>,
}

pub(super) struct Row {
    pub(super) label: String,
    /// Whether it is the one to look at.
    pub(super) best: bool,
    pub(super) bars: Vec<Bar>,
}

pub(super) struct Bar {
    pub(super) parts: Vec<Part>,
    /// The value in words, after the bar.
    pub(super) text: String,
    /// The least and the most that was measured.
    pub(super) spread: Option<(f64, f64)>,
    /// A value to compare with, and its name.
    pub(super) mark: Option<(f64, String)>,
}

pub(super) struct Part {
    pub(super) value: f64,
    /// Which color.
    pub(super) series: usize,
    /// What it says when it is pointed at.
    pub(super) tip: String,
}

const BAR_HEIGHT: f64 = 15.0;
const ROW_GAP: f64 = 11.0;
const LABEL_HEIGHT: f64 = 17.0;
const LABEL_WIDTH_MAX: f64 = 230.0;
const AXIS_HEIGHT: f64 = 40.0;
const TITLE_HEIGHT: f64 = 24.0;

impl Bar {
    /// A bar of one part.
    pub(super) fn simple(value: f64, series: usize, text: String, tip: String) -> Self {
        Self { parts: vec![Part { value, series, tip }], text, spread: None, mark: None }
    }

    fn sum(&self) -> f64 {
        self.parts.iter().map(|part| part.value).sum()
    }

    fn most(&self) -> f64 {
        let spread = self.spread.map_or(0.0, |(_, most)| most);
        let mark = self.mark.as_ref().map_or(0.0, |(value, _)| *value);
        self.sum().max(spread).max(mark)
    }
}

impl Panel {
    fn axis(&self, ticks: usize) -> Axis {
        let ends = self.rows.iter().flat_map(|row| &row.bars).map(Bar::most).filter(|most| most.is_finite());
        // Shares add up to 1.
        let whole = if self.quantity == Quantity::Share { 1.0 } else { 0.0 };
        let most = ends.fold(whole, f64::max);
        // It ends where the longest bar does, not on a tick: a phone has no space to give away.
        Axis::from_zero(self.quantity, most, ticks).cut(most)
    }

    /// The space that the words after the bars need.
    fn value_width(&self) -> f64 {
        let widths = self.rows.iter().flat_map(|row| &row.bars).map(|bar| text_width(&bar.text));
        widths.fold(0.0, f64::max) + 10.0
    }

    fn has_title(&self) -> bool {
        !self.title.is_empty()
    }
}

/// The position of a panel, and whether names are above their bars.
struct Frame {
    left: f64,
    width: f64,
    top: f64,
    stacked_labels: bool,
}

impl Bars {
    pub(super) fn draw(&self, size: Size) -> Svg {
        let mut svg = Svg::new(size.width(), 0.0);
        let top = if self.legend.is_empty() { 0.0 } else { svg.legend(&self.legend, 0.0, 0.0) + 8.0 };
        let bottom = match size {
            Size::Wide => self.side_by_side(&mut svg, top, size.width()),
            Size::Narrow => self.one_below_the_other(&mut svg, top, size.width()),
        };
        svg.set_height(bottom);
        svg
    }

    fn side_by_side(&self, svg: &mut Svg, top: f64, width: f64) -> f64 {
        let labels = self.panels.iter().flat_map(|panel| &panel.rows).map(|row| text_width(&row.label));
        let label_width = (labels.fold(0.0, f64::max) + 12.0).min(LABEL_WIDTH_MAX);
        let gap = 24.0;
        let count = self.panels.len().max(1) as f64;
        let each = (width - label_width - gap * (count - 1.0)) / count;
        let mut bottom = top;
        for (number, panel) in self.panels.iter().enumerate() {
            let left = label_width + number as f64 * (each + gap);
            let frame = Frame { left, width: each, top, stacked_labels: false };
            bottom = panel.draw(svg, &frame, number == 0).max(bottom);
        }
        bottom
    }

    fn one_below_the_other(&self, svg: &mut Svg, top: f64, width: f64) -> f64 {
        let mut bottom = top;
        for panel in &self.panels {
            let frame = Frame { left: 0.0, width, top: bottom, stacked_labels: true };
            bottom = panel.draw(svg, &frame, true) + 8.0;
        }
        bottom
    }
}

impl Panel {
    fn draw(&self, svg: &mut Svg, frame: &Frame, labels: bool) -> f64 {
        let mut top = frame.top;
        if self.has_title() {
            svg.text("head", [frame.left, top + 12.0], Anchor::Start, &self.title);
            top += TITLE_HEIGHT;
        }
        let plot_width = (frame.width - self.value_width()).max(60.0);
        let axis = self.axis(if plot_width > 200.0 { 5 } else { 3 });
        let x = |value: f64| frame.left + axis.position(value) * plot_width;
        let label_height = if frame.stacked_labels { LABEL_HEIGHT } else { 0.0 };
        let row_height = |row: &Row| label_height + row.bars.len() as f64 * BAR_HEIGHT + ROW_GAP;
        let bottom = top + self.rows.iter().map(row_height).sum::<f64>();
        for (value, _) in &axis.ticks {
            let class = if *value == 0.0 { "axis" } else { "grid" };
            svg.line(class, [x(*value), top], [x(*value), bottom]);
        }
        let mut y = top;
        for row in &self.rows {
            let class = if row.best { "best" } else { "" };
            let bars_height = row.bars.len() as f64 * BAR_HEIGHT;
            if frame.stacked_labels {
                svg.text(class, [frame.left + 3.0, y + 13.0], Anchor::Start, &row.label);
            } else if labels {
                let middle = y + 0.5 * (ROW_GAP + bars_height) + 4.0;
                let label = shortened(&row.label, LABEL_WIDTH_MAX - 10.0);
                svg.text(class, [frame.left - 10.0, middle], Anchor::End, &label);
            }
            let from = y + if frame.stacked_labels { label_height } else { ROW_GAP / 2.0 };
            for (number, bar) in row.bars.iter().enumerate() {
                bar.draw(svg, from + number as f64 * BAR_HEIGHT, &x, class);
            }
            y += row_height(row);
        }
        Self::draw_axis(svg, &axis, bottom, &x, frame.left + plot_width / 2.0);
        bottom + AXIS_HEIGHT
    }

    fn draw_axis(svg: &mut Svg, axis: &Axis, bottom: f64, x: &impl Fn(f64) -> f64, middle: f64) {
        for (number, (value, text)) in axis.ticks.iter().enumerate() {
            // Nothing is left of a plot on a phone.
            let anchor = if number == 0 && x(*value) < 6.0 { Anchor::Start } else { Anchor::Middle };
            svg.text("soft", [x(*value), bottom + 14.0], anchor, text);
        }
        svg.text("soft", [middle, bottom + 30.0], Anchor::Middle, &axis.unit);
    }
}

impl Bar {
    fn draw(&self, svg: &mut Svg, top: f64, x: &impl Fn(f64) -> f64, class: &str) {
        let height = BAR_HEIGHT - 2.0;
        let middle = top + height / 2.0;
        let mut from = 0.0;
        for part in &self.parts {
            let (left, right) = (x(from), x(from + part.value));
            let series = format!("c{}", part.series % SERIES);
            // Every nonzero value is visible, however small; parts of a stack must not displace each other.
            let width = if self.parts.len() == 1 { (right - left).max(1.0) } else { right - left };
            svg.tip(&part.tip, |svg| {
                svg.rect(&series, [left, top], [width, height]);
                // Thin bars are hard to point at.
                if self.parts.len() == 1 && width < 24.0 {
                    svg.rect("hit", [left, top], [24.0, height]);
                }
            });
            from += part.value;
        }
        let mut end = x(from);
        if let Some((least, most)) = self.spread {
            svg.line("spread", [x(least), middle], [x(most), middle]);
            for value in [least, most] {
                svg.line("spread", [x(value), middle - 3.0], [x(value), middle + 3.0]);
            }
            end = end.max(x(most));
        }
        if let Some((value, tip)) = &self.mark {
            let at = x(*value);
            svg.tip(tip, |svg| svg.cross([at, middle], 5.0));
            // The text belongs to the bar: it is after the mark only if there is no space before it.
            if at - 5.0 < end + text_width(&self.text) + 12.0 {
                end = end.max(at + 4.0);
            }
        }
        svg.text(class, [end + 6.0, middle + 4.0], Anchor::Start, &self.text);
    }
}
