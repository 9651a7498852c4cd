//! Bar charts of plain HTML, which keep their text readable on a phone.

use std::fmt::Write as _;

use super::html::escape;

/// One bar.
pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    /// The value in words.
    pub(super) text: String,
    /// The least and the most that was measured.
    pub(super) spread: Option<(f64, f64)>,
    /// A value to compare with.
    pub(super) mark: Option<f64>,
    /// Whether it is the one to look at.
    pub(super) best: bool,
}

/// The bars, one below the other; `class` decides their colour.
pub(super) fn bars(bars: &[Bar], class: &str) -> String {
    let ends = bars.iter().flat_map(|bar| [Some(bar.value), bar.mark, bar.spread.map(|(_, most)| most)]);
    let longest = ends.flatten().filter(|value| value.is_finite()).fold(0.0, f64::max);
    let share = |value: f64| if longest > 0.0 { (value / longest * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    let mut html = format!("<div class=\"bars {class}\" role=\"list\">\n");
    for bar in bars {
        let best = if bar.best { " best" } else { "" };
        let mut track = format!("<i class=\"fill\" style=\"width:{:.2}%\"></i>", share(bar.value));
        if let Some((least, most)) = bar.spread {
            let (from, to) = (share(least), share(most));
            // Writing into a `String` cannot fail.
            let _ = write!(track, "<i class=\"spread\" style=\"left:{from:.2}%;width:{:.2}%\"></i>", to - from);
        }
        if let Some(mark) = bar.mark {
            let _ = write!(track, "<i class=\"mark\" style=\"left:{:.2}%\"></i>", share(mark));
        }
        let _ = writeln!(
            html,
            "<div class=\"row{best}\" role=\"listitem\"><span class=\"label\">{}</span><span class=\"track\">{track}</span>\
             <span class=\"value\">{}</span></div>",
            escape(&bar.label),
            escape(&bar.text)
        );
    }
    html.push_str("</div>");
    html
}
