//! What the samples of a data set are like, as one page.

use std::fmt::Write as _;

use forebay_plan::{ClassCount, DataAnalysis, Distribution, DuplicateGroup, NextStep, units};

use super::bars::{Bar, Bars, Panel, Row};
use super::columns::{ColumnPanel, Columns};
use super::html::{code, escape, with_code};
use super::page;
use super::plots::{Figure, Grid, Plot};
use super::scale::Quantity;
use super::sections::section;

/// So many classes are drawn, half of them the largest and half the smallest.
const CLASSES_DRAWN_MAX: usize = 40;
/// The maximum number of groups of duplicates, and of broken samples, that are listed.
const LISTED_MAX: usize = 200;

/// The page of an analysis of `data`, with what to do about it.
pub fn data_page(analysis: &DataAnalysis, data: &str, steps: &[NextStep], version: &str) -> String {
    let mut body = vec![head(analysis, data, steps)];
    let plots = [sizes(analysis), dimensions(analysis), qualities(analysis), classes(analysis)];
    body.extend(plots.into_iter().flatten().map(|plot| plot.html("")));
    body.extend([colors(analysis), duplicates(analysis), broken(analysis)].into_iter().flatten());
    body.push(section("All numbers", &numbers(analysis).html()));
    page(&format!("analysis of {}", escape(data)), &body, version)
}

fn head(analysis: &DataAnalysis, data: &str, steps: &[NextStep]) -> String {
    let tile =
        |value: String, what: &str| format!("<div class=\"tile\"><b>{}</b><span>{what}</span></div>", escape(&value));
    let found = &analysis.duplicates;
    let mut tiles = vec![
        tile(units::count(analysis.samples), "samples"),
        tile(units::bytes(analysis.bytes as f64), "that could be read"),
        tile(units::count(analysis.broken), "broken samples"),
        tile(units::count(found.exact.samples), "exact duplicates"),
    ];
    if analysis.unexamined > 0 {
        tiles.push(tile(units::count(analysis.unexamined), "not examined: too large for the memory"));
    }
    if analysis.images > 0 {
        tiles.push(tile(units::count(found.near.samples), "near duplicates"));
    }
    if let Some(quality) = &analysis.quality {
        tiles.push(tile(format!("{:.0}", quality.distribution.median), "median JPEG quality"));
    }
    if let Some(ratio) = analysis.imbalance() {
        tiles.push(tile(format!("{} ×", units::number(ratio)), "the largest class over the smallest"));
    }
    let item = |step: &NextStep| {
        format!("<li>{} {}</li>\n", with_code(step.sentence.trim_end_matches([':', '.'])), code(&step.command))
    };
    let steps: String = steps.iter().map(item).collect();
    format!(
        "<header>\n<p class=\"kicker\">Analysis of {}</p>\n<h1>{} in {} {}</h1>\n<ul>\n{steps}</ul>\n<div class=\"tiles\">{}</div>\n</header>",
        code(data),
        escape(&units::counted(analysis.samples, "sample")),
        units::count(analysis.formats.len() as u64),
        if analysis.formats.len() == 1 { "format" } else { "formats" },
        tiles.concat()
    )
}

fn histogram(title: &str, quantity: Quantity, distribution: &Distribution, series: usize) -> ColumnPanel {
    let bins = distribution.histogram.clone();
    ColumnPanel { title: title.to_owned(), quantity, counted: "samples", bins, series }
}

/// Histograms, and a table of all their ranges.
fn plot(id: &'static str, title: &'static str, note: String, panels: Vec<ColumnPanel>) -> Plot {
    let rows = panels.iter().flat_map(|panel| {
        let row = |at: usize| vec![panel.title.clone(), panel.range(at), units::count(panel.bins[at].count)];
        (0..panel.bins.len()).map(row).collect::<Vec<_>>()
    });
    let grid = Grid::new(&["of", "from … to", "samples"], rows.collect(), None);
    Plot { id, title, note, figure: Figure::Columns(Columns { panels }), grid }
}

fn sizes(analysis: &DataAnalysis) -> Option<Plot> {
    let size = analysis.size.as_ref()?;
    let note = format!(
        "Half of the samples have at most {}, and 5% more than {}.",
        units::bytes(size.median),
        units::bytes(size.p95)
    );
    Some(plot("sizes", "Sizes", note, vec![histogram("Bytes of a sample", Quantity::Bytes, size, 0)]))
}

fn dimensions(analysis: &DataAnalysis) -> Option<Plot> {
    let (width, height) = (analysis.width.as_ref()?, analysis.height.as_ref()?);
    let turned = if analysis.turned == 0 {
        String::new()
    } else {
        format!(" {} turned as EXIF says.", units::counted(analysis.turned, "image"))
    };
    let pixels = |value: f64| units::count(value.round() as u64);
    let note = format!(
        "As images are shown; the medians are {} and {} pixels.{turned}",
        pixels(width.median),
        pixels(height.median)
    );
    let mut panels = vec![
        histogram("Width in pixels", Quantity::Plain("pixels"), width, 2),
        histogram("Height in pixels", Quantity::Plain("pixels"), height, 2),
    ];
    panels.extend(
        analysis.aspect_ratio.as_ref().map(|ratio| histogram("Width over height", Quantity::Plain("times"), ratio, 4)),
    );
    Some(plot("dimensions", "Dimensions", note, panels))
}

fn qualities(analysis: &DataAnalysis) -> Option<Plot> {
    let quality = analysis.quality.as_ref()?;
    let mut note = format!(
        "On libjpeg's scale, from the quantization tables: exact for {} of {}, the nearest value for the others. {} progressive.",
        units::count(quality.exact),
        units::counted(quality.images, "JPEG file"),
        units::count(quality.progressive)
    );
    if let Some(found) = &analysis.recompression {
        let saved = units::bytes(found.bytes_saved as f64);
        let _ =
            write!(note, " Stored as {}, all images together would take about {saved} less.", code(&found.encoding));
    }
    let panel = histogram("JPEG quality", Quantity::Plain("quality"), &quality.distribution, 3);
    Some(plot("qualities", "JPEG qualities", note, vec![panel]))
}

fn classes(analysis: &DataAnalysis) -> Option<Plot> {
    if analysis.classes.len() < 2 {
        return None;
    }
    let mut all: Vec<&ClassCount> = analysis.classes.iter().collect();
    all.sort_by_key(|class| std::cmp::Reverse(class.samples));
    let labeled: u64 = all.iter().map(|class| class.samples).sum();
    let share = |class: &ClassCount| units::percent(class.samples as f64 / labeled.max(1) as f64);
    let half = CLASSES_DRAWN_MAX / 2;
    let drawn = all
        .iter()
        .enumerate()
        .filter(|(at, _)| all.len() <= CLASSES_DRAWN_MAX || *at < half || *at >= all.len() - half);
    let row = |(_, class): (usize, &&ClassCount)| {
        let count = units::count(class.samples);
        let tip = format!("{}: {count}, {}", class.name, share(class));
        Row { label: class.name.clone(), best: false, bars: vec![Bar::simple(class.samples as f64, 1, count, tip)] }
    };
    let panel = Panel { title: String::new(), quantity: Quantity::Plain("samples"), rows: drawn.map(row).collect() };
    let left_out = all.len().saturating_sub(CLASSES_DRAWN_MAX);
    let mut note = format!(
        "{} classes; the largest has {} times as many samples as the smallest.",
        units::count(all.len() as u64),
        units::number(analysis.imbalance().unwrap_or(1.0))
    );
    if left_out > 0 {
        let _ = write!(note, " The {half} largest and the {half} smallest are drawn.");
    }
    if analysis.unlabeled > 0 {
        let _ = write!(note, " {} without a label.", units::counted(analysis.unlabeled, "sample"));
    }
    let table = all.iter().map(|class| vec![class.name.clone(), units::count(class.samples), share(class)]);
    Some(Plot {
        id: "classes",
        title: "Balance of classes",
        note,
        figure: Figure::Bars(Bars { panels: vec![panel], legend: Vec::new() }),
        grid: Grid::new(&["class", "samples", "share"], table.take(10_000).collect(), None),
    })
}

fn colors(analysis: &DataAnalysis) -> Option<String> {
    let color = analysis.color.as_ref()?;
    let list = |values: [f64; 3]| values.map(|value| format!("{value:.4}")).join(", ");
    let levels = color.mean.map(|value| (value * 255.0).round().clamp(0.0, 255.0) as u8);
    let [red, green, blue] = levels;
    Some(section(
        "Colors",
        &format!(
            "<p class=\"note\">Each image has the same weight, however large. Grayscale: {} of {}, {} of them stored as such.</p>\n\
             <p><svg width=\"44\" height=\"28\" role=\"img\" aria-label=\"the mean color\"><rect width=\"44\" height=\"28\" rx=\"5\" \
             fill=\"rgb({red},{green},{blue})\"/></svg></p>\n<p>For <code>normalize</code>:</p>\n\
             <p><code>mean = [{}]</code><br><code>std = [{}]</code></p>",
            units::count(color.gray),
            units::counted(analysis.images, "image"),
            units::count(color.stored_gray),
            list(color.mean),
            list(color.std)
        ),
    ))
}

fn duplicates(analysis: &DataAnalysis) -> Option<String> {
    let found = &analysis.duplicates;
    if found.groups.is_empty() {
        return None;
    }
    let row = |group: &DuplicateGroup| {
        let labels = if group.conflicting_labels { "differ" } else { "" };
        vec![group.keep.clone(), group.exact.join(", "), group.near.join(", "), labels.to_owned()]
    };
    let rows: Vec<Vec<String>> = found.groups.iter().take(LISTED_MAX).map(row).collect();
    let grid = Grid::new(&["keep", "the same bytes", "looks the same", "labels"], rows, None);
    let more = found.groups.len().saturating_sub(LISTED_MAX);
    let more = if more == 0 { String::new() } else { format!(" The first {LISTED_MAX} groups are listed.") };
    let note = format!(
        "<p class=\"note\">{} could be removed, of {}. The perceptual hashes of near duplicates differ in up to {} of 64 bits: check them before \
         removing any.{more}</p>",
        units::counted(found.exact.samples + found.near.samples, "sample"),
        units::bytes((found.exact.bytes + found.near.bytes) as f64),
        found.max_distance
    );
    Some(section("Duplicates", &format!("{note}\n{}", grid.html())))
}

fn broken(analysis: &DataAnalysis) -> Option<String> {
    if analysis.broken_samples.is_empty() {
        return None;
    }
    let item = |broken: &forebay_plan::Skipped| {
        format!("<li>{}</li>\n", with_code(broken.reason.lines().next().unwrap_or_default()))
    };
    let items: String = analysis.broken_samples.iter().take(LISTED_MAX).map(item).collect();
    let more = analysis.broken.saturating_sub(LISTED_MAX as u64);
    let more = if more == 0 { String::new() } else { format!("<p class=\"note\">and {} more</p>", units::count(more)) };
    Some(section("Broken samples", &format!("<ul>\n{items}</ul>\n{more}")))
}

fn numbers(analysis: &DataAnalysis) -> Grid {
    let quality = analysis.quality.as_ref().map(|quality| &quality.distribution);
    let of: [(&str, Option<&Distribution>, Quantity); 5] = [
        ("size", analysis.size.as_ref(), Quantity::Bytes),
        ("width", analysis.width.as_ref(), Quantity::Plain("")),
        ("height", analysis.height.as_ref(), Quantity::Plain("")),
        ("width over height", analysis.aspect_ratio.as_ref(), Quantity::Plain("")),
        ("JPEG quality", quality, Quantity::Plain("")),
    ];
    let row = |(name, distribution, quantity): (&str, Option<&Distribution>, Quantity)| {
        let Distribution { min, p5, median, mean, p95, max, .. } = distribution?;
        let cells = [min, p5, median, mean, p95, max].map(|value| quantity.text(*value));
        Some(std::iter::once(name.to_owned()).chain(cells).collect::<Vec<String>>())
    };
    Grid::new(&["", "least", "5 %", "median", "mean", "95 %", "most"], of.into_iter().filter_map(row).collect(), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn analysis() -> DataAnalysis {
        let distribution = |values: &[f64]| Distribution::of(values.to_vec(), 1.0);
        let found = serde_json::json!({
            "samples": 9, "images": 8, "bytes": 800_000, "broken": 1,
            "broken_samples": [{"key": "<x>.jpg", "reason": "`<x>.jpg` cannot be decoded: it ends\nhint: no", "samples": 1}],
            "formats": [{"format": "jpeg", "samples": 8, "bytes": 800_000}],
            "size": distribution(&[1e5, 2e5, 9e5]), "width": distribution(&[300.0, 400.0]), "height": distribution(&[300.0]),
            "aspect_ratio": distribution(&[1.0, 1.33]),
            "quality": {"distribution": distribution(&[75.0, 96.0]), "images": 8, "exact": 7, "progressive": 0},
            "color": {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.2, 0.2], "gray": 1, "gray_share": 0.125, "stored_gray": 0},
            "turned": 2, "classes": [{"name": "<cat>", "samples": 6}, {"name": "dog", "samples": 2}], "unlabeled": 0,
            "duplicates": {
                "max_distance": 4, "exact": {"groups": 1, "samples": 1, "bytes": 1000}, "near": {"groups": 0, "samples": 0, "bytes": 0},
                "conflicting_labels": 1, "groups": [{"keep": "a.jpg", "exact": ["b.jpg"], "near": [], "conflicting_labels": true}],
            },
            "recompression": {"encoding": "jpeg-75", "images": 8, "share": 0.5, "bytes_saved": 400_000},
        });
        serde_json::from_value(found).expect("an analysis")
    }

    #[test]
    fn an_analysis_is_a_page_of_histograms_and_lists() {
        let steps = analysis().next_steps("photos/", forebay_plan::DataKind::Folder);
        let page = data_page(&analysis(), "photos/", &steps, "1.2.3");
        for id in ["sizes", "dimensions", "qualities", "classes"] {
            assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
        }
        assert!(
            page.contains("forebay analyze photos/ --list broken") && page.contains("mean = [0.5000, 0.4000, 0.3000]")
        );
        assert!(
            page.contains("&lt;x&gt;.jpg") && !page.contains("<x>") && !page.contains("<cat>"),
            "names are escaped"
        );
        assert!(!page.contains("hint: no"), "the first line of a reason");
        assert!(!page.contains("http:") && !page.contains("https:"), "nothing is loaded");
    }

    #[test]
    fn what_was_not_found_is_not_drawn() {
        let mut analysis = analysis();
        analysis.classes.clear();
        (analysis.quality, analysis.width, analysis.color) = (None, None, None);
        analysis.duplicates.groups.clear();
        analysis.broken_samples.clear();
        let page = data_page(&analysis, "sounds/", &[], "1.2.3");
        assert!(page.contains("id=\"sizes\""));
        for part in ["id=\"dimensions\"", "id=\"qualities\"", "id=\"classes\"", ">Duplicates<", ">Broken", "normalize"]
        {
            assert!(!page.contains(part), "{part}");
        }
    }
}
