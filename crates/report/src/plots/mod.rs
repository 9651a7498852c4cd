//! The plots: what each shows, with the table of the same numbers.

mod choices;
mod compared;
mod compression;
mod mix;
mod single;
mod system;
mod work;

use forebay_plan::{Analysis, Comparison, Plan, Profile};

use super::bars::Bars;
use super::columns::Columns;
use super::html::escape;
use super::lines::Lines;
use super::scatter::Scatter;
use super::svg::{Size, Svg};
use super::triangles::Triangles;

pub(super) use compression::{Gain, gains};

/// One plot.
pub(super) struct Plot {
    /// Its name in file names and links.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// What it shows and how to read it, as HTML.
    pub(super) note: String,
    pub(super) figure: Figure,
    pub(super) grid: Grid,
}

/// What is drawn.
pub(super) enum Figure {
    Scatter(Scatter),
    Bars(Bars),
    Lines(Lines),
    Triangles(Triangles),
    Columns(Columns),
}

/// The numbers of a plot: headings, and rows of which the first cell is a name.
pub(super) struct Grid {
    pub(super) head: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// The name whose row is marked.
    pub(super) best: Option<String>,
}

/// What the plots of one pipeline are made of.
pub(super) struct Subject<'a> {
    pub(super) profile: &'a Profile,
    pub(super) analysis: &'a Analysis,
    pub(super) plan: &'a Plan,
    pub(super) comparison: &'a Comparison,
    /// All strategies of all profiles, in the order of their colors.
    pub(super) names: &'a [String],
}

impl Figure {
    pub(super) fn draw(&self, size: Size) -> Svg {
        match self {
            Self::Scatter(scatter) => scatter.draw(size),
            Self::Bars(bars) => bars.draw(size),
            Self::Lines(lines) => lines.draw(size),
            Self::Triangles(triangles) => triangles.draw(size),
            Self::Columns(columns) => columns.draw(size),
        }
    }
}

impl Grid {
    pub(super) fn new(head: &[&str], rows: Vec<Vec<String>>, best: Option<String>) -> Self {
        Self { head: head.iter().map(|heading| (*heading).to_owned()).collect(), rows, best }
    }

    pub(super) fn html(&self) -> String {
        let head = self
            .head
            .iter()
            .map(|heading| format!("<th scope=\"col\">{}</th>", escape(heading)))
            .collect::<Vec<_>>()
            .concat();
        let row = |row: &Vec<String>| {
            let (name, cells) = row.split_first().map_or(("", &[][..]), |(name, cells)| (name.as_str(), cells));
            let best = if self.best.as_deref() == Some(name) { " class=\"best\"" } else { "" };
            let cells = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect::<Vec<_>>().concat();
            format!("<tr{best}><th scope=\"row\">{}</th>{cells}</tr>\n", escape(name))
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>"
        )
    }
}

impl Plot {
    /// The plot as a section of the page, whose ids begin with `prefix`.
    pub(super) fn html(&self, prefix: &str) -> String {
        let [wide, narrow] = [(Size::Wide, "wide"), (Size::Narrow, "narrow")]
            .map(|(size, class)| self.figure.draw(size).inline(class, self.title));
        format!(
            "<section id=\"{prefix}{}\">\n<h2>{}</h2>\n<p class=\"note\">{}</p>\n<figure>\n{wide}\n{narrow}\n</figure>\n\
             <details><summary>The same as a table</summary>\n{}\n</details>\n</section>",
            self.id,
            self.title,
            self.note,
            self.grid.html()
        )
    }
}

impl Subject<'_> {
    /// Which color and mark a strategy has, in all plots.
    fn series(&self, strategy: &str) -> usize {
        self.names.iter().position(|name| name == strategy).unwrap_or(self.names.len())
    }

    fn is_by_money(&self) -> bool {
        self.plan.weights.money > 0.0
    }

    fn is_chosen(&self, strategy: &str) -> bool {
        self.plan.chosen == strategy
    }

    /// A table whose marked row is the choice.
    fn grid(&self, head: &[&str], rows: Vec<Vec<String>>) -> Grid {
        Grid::new(head, rows, Some(self.plan.chosen.clone()))
    }

    /// The plots of what was chosen by, where that is money, and of what the profiles differ in, or the strategies of one are kept in.
    pub(super) fn varied(&self) -> Vec<Plot> {
        let all = [
            self.money().filter(|_| self.is_by_money()),
            self.caching(),
            self.speed_up(),
            self.sample_counts(),
            self.sample_sizes(),
            self.shuffles(),
            self.compression_gains(),
            self.compression_speeds(),
            self.encodings(),
        ];
        all.into_iter().flatten().collect()
    }

    /// All other plots that the measurements allow, in the order of the page.
    pub(super) fn others(&self) -> Vec<Plot> {
        let mix = self.mix();
        let all = [
            Some(self.storage_throughput()),
            Some(self.throughput()),
            Some(self.effort()),
            mix.as_ref().map(mix::Mixed::rates),
            mix.as_ref().and_then(mix::Mixed::utilization),
            self.forecast(),
            self.money().filter(|_| !self.is_by_money()),
            Some(self.steps()),
            self.threads(),
            self.system(),
        ];
        all.into_iter().flatten().collect()
    }
}

/// A dash if there is no value.
pub(super) fn or_dash<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), text)
}
