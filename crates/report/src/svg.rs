//! SVG by hand: a few shapes, texts, and marks with tooltips.

use std::fmt::Write as _;

use super::html::escape;
use super::palette;

/// How wide a plot is drawn. Text keeps its size, so a phone needs a plot of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Size {
    /// A page on a desk.
    Wide,
    /// A phone.
    Narrow,
}

impl Size {
    pub(super) fn width(self) -> f64 {
        match self {
            Self::Wide => 820.0,
            Self::Narrow => 340.0,
        }
    }
}

/// The side of a point that its text is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A plot.
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// About how wide a text is: the letters of the usual fonts take a little more than half their height.
pub(super) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.7
}

/// `text` where it is no wider than `width`, otherwise its two ends.
pub(super) fn shortened(text: &str, width: f64) -> String {
    let letters: Vec<char> = text.chars().collect();
    let fitting = (width / text_width("x")) as usize;
    if letters.len() <= fitting {
        return text.to_owned();
    }
    let kept = fitting.saturating_sub(1);
    let (first, last) = (kept - kept / 2, kept / 2);
    letters[..first].iter().chain(&['…']).chain(&letters[letters.len() - last..]).collect()
}

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Space for what comes below.
    pub(super) fn set_height(&mut self, height: f64) {
        self.height = height;
    }

    fn add(&mut self, arguments: std::fmt::Arguments) {
        // Writing into a `String` cannot fail.
        let _ = self.body.write_fmt(arguments);
        self.body.push('\n');
    }

    pub(super) fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        self.add(format_args!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    pub(super) fn rect(&mut self, class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        self.add(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    pub(super) fn path(&mut self, class: &str, points: &[[f64; 2]]) {
        if points.len() < 2 {
            return;
        }
        let step = |(at, [x, y]): (usize, &[f64; 2])| format!("{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
        let steps = points.iter().enumerate().map(step).collect::<Vec<_>>().join(" ");
        self.add(format_args!(r#"<path class="{class}" d="{steps}"/>"#));
    }

    pub(super) fn polygon(&mut self, class: &str, points: &[[f64; 2]]) {
        let points = points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ");
        self.add(format_args!(r#"<polygon class="{class}" points="{points}"/>"#));
    }

    pub(super) fn text(&mut self, class: &str, [x, y]: [f64; 2], anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.add(format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#));
    }

    /// The mark of series `number`: its color, and one of several shapes, so that series do not differ by color alone.
    pub(super) fn mark(&mut self, number: usize, [x, y]: [f64; 2], radius: f64) {
        let class = format!("c{}", number % palette::SERIES);
        // With eight colors and five shapes a pair comes again after forty.
        let (r, d) = (radius, radius * 1.25);
        let steps = match number % 5 {
            0 => {
                self.add(format_args!(r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{r:.1}"/>"#));
                return;
            }
            1 => vec![[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]],
            2 => vec![[x, y - d], [x + d, y + r], [x - d, y + r]],
            3 => vec![[x, y - d], [x + d, y], [x, y + d], [x - d, y]],
            _ => vec![[x - d, y - r], [x + d, y - r], [x, y + d]],
        };
        self.polygon(&class, &steps);
    }

    pub(super) fn ring(&mut self, [x, y]: [f64; 2], radius: f64) {
        self.add(format_args!(r#"<circle class="ring" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"/>"#));
    }

    pub(super) fn cross(&mut self, [x, y]: [f64; 2], radius: f64) {
        let d = radius;
        self.add(format_args!(
            r#"<polygon class="mark" points="{x:.1},{:.1} {:.1},{y:.1} {x:.1},{:.1} {:.1},{y:.1}"/>"#,
            y - d,
            x + d,
            y + d,
            x - d
        ));
    }

    /// What `draw` draws, as one thing that can be reached with the keyboard and says `tip`.
    pub(super) fn tip(&mut self, tip: &str, draw: impl FnOnce(&mut Self)) {
        let tip = escape(tip);
        self.add(format_args!(r#"<g class="tip" tabindex="0" role="img" aria-label="{tip}"><title>{tip}</title>"#));
        draw(self);
        self.body.push_str("</g>\n");
    }

    /// As part of a page; `class` says on which screens it is shown.
    pub(super) fn inline(&self, class: &str, label: &str) -> String {
        format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {:.0} {:.0}\" role=\"group\" aria-label=\"{}\">\n{}</svg>",
            self.width,
            self.height,
            escape(label),
            self.body
        )
    }

    /// As a separate file.
    pub(super) fn file(&self, label: &str) -> String {
        let (width, height) = (self.width + 32.0, self.height + 32.0);
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-16 -16 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"group\" aria-label=\"{label}\">\n<title>{label}</title>\n\
             <style>\n{}</style>\n<rect class=\"ground\" x=\"-16\" y=\"-16\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n\
             {}</svg>\n",
            palette::file_style(),
            self.body,
            label = escape(label),
        )
    }

    /// A row of names with their marks from `top` on, broken into lines where the plot ends; where it ends.
    pub(super) fn legend(&mut self, items: &[(Key, String)], left: f64, top: f64) -> f64 {
        let (mut x, mut y) = (left, top + 10.0);
        for (key, label) in items {
            let needed = 26.0 + text_width(label);
            if x > left && x + needed > self.width {
                (x, y) = (left, y + 20.0);
            }
            match key {
                Key::Series(number) => self.mark(*number, [x + 6.0, y], 4.5),
                Key::Block(number) => self.rect(&format!("c{}", number % palette::SERIES), [x, y - 6.0], [12.0, 12.0]),
                Key::Dashes(class) => self.line(class, [x - 2.0, y], [x + 14.0, y]),
                Key::Cross => self.cross([x + 6.0, y], 4.5),
                Key::Spread => self.line("spread", [x - 1.0, y], [x + 13.0, y]),
            }
            self.text("", [x + 18.0, y + 4.0], Anchor::Start, label);
            x += needed + 10.0;
        }
        y + 14.0
    }
}

/// The symbol before a name in a legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// The mark of a series.
    Series(usize),
    /// A block of its color.
    Block(usize),
    /// A dashed line of this class.
    Dashes(&'static str),
    /// A prediction.
    Cross,
    /// From the least to the most.
    Spread,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("resized", 100.0), "resized");
        let short = shortened("a-step-with-a-very-long-name+l3-dense+gzip-9", 140.0);
        assert_eq!(short, "a-step-wit…se+gzip-9");
        assert!(text_width(&short) <= 141.0);
        assert_eq!(shortened("ab", 0.0), "…");
    }
}
