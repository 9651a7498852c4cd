//! The report: profiles as one self-contained HTML page, and its plots as SVG files. A study of training, and an analysis
//! of data, have similar pages.
//!
//! Profiles are grouped by pipeline. The recommendation for a pipeline is based on its first profile; the others are compared with
//! it if they differ in one setting: caching, the number of threads, or the number or size of samples.

#![forbid(unsafe_code)]

mod bars;
mod columns;
mod data;
mod html;
mod lines;
mod palette;
mod plots;
mod scale;
mod scatter;
mod sections;
mod study;
mod svg;
mod triangles;

use forebay_plan::{Analysis, Comparison, Objective, Plan, Profile, Result, analyze, compare, plan};

use html::{code, escape};
use plots::{Gain, Plot, Subject};
use svg::Size;

pub use data::data_page;
pub use study::{Study, StudyEpoch, StudyRow};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Some profiles, analyzed and ready to be drawn.
pub struct Report<'a> {
    groups: Vec<Group<'a>>,
    finding: Option<Finding<'a>>,
}

/// The question that profiles were measured for, and the answer.
pub struct Finding<'a> {
    /// Which experiment.
    pub experiment: &'a str,
    /// What was found, in words: the answer first.
    pub remarks: &'a [String],
}

/// The profiles of one pipeline.
struct Group<'a> {
    profiles: Vec<&'a Profile>,
    analysis: Analysis,
    plan: Plan,
    comparison: Comparison,
    names: Vec<String>,
}

impl<'a> Report<'a> {
    /// Analyzes `profiles` by `objective`; fails where planning does.
    pub fn new(profiles: &'a [Profile], objective: &Objective) -> Result<Self> {
        let mut by_pipeline: Vec<Vec<&Profile>> = Vec::new();
        for profile in profiles {
            let same = |group: &&mut Vec<&Profile>| group[0].pipeline.name == profile.pipeline.name;
            match by_pipeline.iter_mut().find(same) {
                Some(group) => group.push(profile),
                None => by_pipeline.push(vec![profile]),
            }
        }
        let groups = by_pipeline.into_iter().map(|profiles| Group::new(profiles, objective)).collect::<Result<_>>()?;
        Ok(Self { groups, finding: None })
    }

    /// The same for an experiment: its findings come before the recommendation.
    #[must_use]
    pub fn of_experiment(mut self, finding: Finding<'a>) -> Self {
        self.finding = Some(finding);
        self
    }

    /// The page.
    pub fn page(&self) -> String {
        let titles: Vec<String> = self.groups.iter().map(|group| escape(&group.title())).collect();
        let several = self.groups.len() > 1;
        let mut body: Vec<String> = self.finding.iter().map(sections::finding).collect();
        if several {
            body.push(self.overview());
            body.extend(self.all_gains().map(|plot| plot.html("all-")));
        }
        for (number, group) in self.groups.iter().enumerate() {
            let prefix = if several { format!("pipeline-{}-", number + 1) } else { String::new() };
            body.push(group.html(&prefix, self.finding.is_some()));
        }
        let version = self.groups.first().map_or("", |group| group.profiles[0].forebay.as_str());
        let titles: Vec<String> = self.finding.iter().map(|found| escape(found.experiment)).chain(titles).collect();
        page(&titles.join("; "), &body, version)
    }

    /// Every plot as a file: its name and its text.
    pub fn plots(&self) -> Vec<(String, String)> {
        let several = self.groups.len() > 1;
        let mut files = Vec::new();
        for (number, group) in self.groups.iter().enumerate() {
            let subject = group.subject();
            for plot in subject.varied().into_iter().chain(subject.others()) {
                // By number: a pipeline file chooses names, and must not choose paths.
                let prefix = if several { format!("{}-", number + 1) } else { String::new() };
                let label = format!("{}: {}", plot.title, group.title());
                files.push((format!("{prefix}{}.svg", plot.id), plot.figure.draw(Size::Wide).file(&label)));
            }
        }
        files
    }

    /// What compressions gain in all pipelines together, where an experiment is about that.
    fn all_gains(&self) -> Option<Plot> {
        self.finding.as_ref().filter(|finding| finding.experiment == "compression")?;
        let mut all = Vec::new();
        for group in &self.groups {
            let name = &group.plan.pipeline.name;
            let of_group = group.subject().gains().into_iter();
            all.extend(of_group.map(|gain| Gain {
                label: format!("{name} {}", gain.label),
                key: name.clone(),
                best: false,
                ..gain
            }));
        }
        plots::gains(
            &all,
            "Every pipeline, split and compression; each pipeline has a color. Right is smaller, up is faster, and above the line the \
             split is loaded faster compressed than as it is."
                .to_owned(),
        )
    }

    /// One line for each pipeline, where there are several.
    fn overview(&self) -> String {
        let item = |(number, group): (usize, &Group)| {
            format!(
                "<li><a href=\"#pipeline-{}-top\">{}</a>: keep {}, {}</li>\n",
                number + 1,
                code(&group.plan.pipeline.name),
                code(&group.plan.chosen),
                escape(&group.headline())
            )
        };
        let items: String = self.groups.iter().enumerate().map(item).collect();
        format!("<header>\n<h1>{} pipelines</h1>\n<ul>\n{items}</ul>\n</header>", self.groups.len())
    }
}

/// A page of these parts; `title` is HTML.
fn page(title: &str, body: &[String], version: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Forebay: {title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n\
         <button id=\"theme\" type=\"button\" hidden>Theme</button>\n<main>\n{}\n</main>\n\
         <footer>Made by forebay {}. This page is self-contained: nothing is loaded from elsewhere.</footer>\n\
         <div id=\"tooltip\" aria-hidden=\"true\" hidden></div>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        palette::page_style(),
        body.join("\n"),
        escape(version),
    )
}

impl<'a> Group<'a> {
    fn new(profiles: Vec<&'a Profile>, objective: &Objective) -> Result<Self> {
        // A group has at least the profile that it was made for.
        let first = profiles[0];
        let mut names: Vec<String> = Vec::new();
        for strategy in profiles.iter().flat_map(|profile| &profile.strategies) {
            if !names.contains(&strategy.name) {
                names.push(strategy.name.clone());
            }
        }
        Ok(Self {
            analysis: analyze(first, objective)?,
            plan: plan(first, objective)?,
            comparison: compare(&profiles)?,
            profiles,
            names,
        })
    }

    fn title(&self) -> String {
        format!("{} on {}", self.plan.pipeline.name, self.plan.storage)
    }

    fn subject(&self) -> Subject<'_> {
        let (profile, analysis, plan) = (self.profiles[0], &self.analysis, &self.plan);
        Subject { profile, analysis, plan, comparison: &self.comparison, names: &self.names }
    }

    /// Where an `experiment` found something, that is what the page is about, and the recommendation comes after the plots of what it
    /// varied.
    fn html(&self, prefix: &str, experiment: bool) -> String {
        let subject = self.subject();
        let [varied, others] = [subject.varied(), subject.others()]
            .map(|plots| plots.iter().map(|plot| plot.html(prefix)).collect::<Vec<_>>());
        let recommendation = vec![sections::recommendation(self, prefix, experiment)];
        let mut parts =
            if experiment { [varied, recommendation, others] } else { [recommendation, varied, others] }.concat();
        parts.push(sections::binding(&self.plan));
        parts.extend(sections::compressions(&self.plan));
        parts.push(sections::numbers(&self.analysis, &self.plan));
        parts.push(sections::steps(self.profiles[0]));
        parts.push(sections::method(&self.profiles));
        parts.join("\n")
    }
}
