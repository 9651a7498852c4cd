//! The work on a sample in every epoch, and what the threads spent their time on.

use forebay_plan::{Stats, StrategyProfile, Work, WorkPart, units, watched, work};

use super::super::bars::{Bar, Bars, Panel, Part};
use super::super::html::escape;
use super::super::scale::Quantity;
use super::super::svg::Key;
use super::{Figure, Plot, Subject, or_dash};

/// The color of work that belongs to no step.
const OTHER_SERIES: usize = 6;

/// The color of waiting for each other.
const WAITING_SERIES: usize = 6;

/// An activity of a thread: its name, its color, and where to find its time.
type Doing = (&'static str, usize, fn(&Stats) -> f64);

const WORKERS: [Doing; 3] = [
    ("working", 1, |stats| stats.work_seconds),
    ("waiting for bytes", WAITING_SERIES, |stats| stats.data_wait_seconds),
    ("waiting for a free batch", 4, |stats| stats.batch_wait_seconds),
];

const READERS: [Doing; 2] = [
    ("reading", 0, |stats| stats.read_seconds),
    ("waiting for space", WAITING_SERIES, |stats| stats.read_wait_seconds),
];

impl Subject<'_> {
    /// The CPU time that sentences speak of, by what it goes into.
    pub(super) fn steps(&self) -> Plot {
        let profile = self.profile;
        let name = |part: WorkPart| part.name(profile);
        let all: Vec<(&StrategyProfile, Vec<Work>)> =
            profile.strategies.iter().map(|strategy| (strategy, work(profile, strategy))).collect();
        let sum = |parts: &[Work]| parts.iter().map(|part| part.cpu_seconds).sum::<f64>();
        let row = |(strategy, parts): &(&StrategyProfile, Vec<Work>)| {
            let part = |one: &Work| Part {
                value: one.cpu_seconds,
                series: part_series(one.part),
                tip: format!("{}: {} {}", strategy.name, name(one.part), units::seconds(one.cpu_seconds)),
            };
            let text = units::seconds(sum(parts));
            let parts = parts.iter().map(part).collect();
            self.row(&strategy.name, vec![Bar { parts, text, spread: None, mark: None }])
        };
        // Each part that any strategy has, in the order of the pipeline.
        let steps = (1..profile.steps.len()).map(WorkPart::Step);
        let parts: Vec<WorkPart> = [WorkPart::Deserialize, WorkPart::Collate].into_iter().chain(steps).collect();
        let seconds =
            |work: &[Work], part: WorkPart| work.iter().find(|one| one.part == part).map(|one| one.cpu_seconds);
        let parts: Vec<WorkPart> =
            parts.into_iter().filter(|part| all.iter().any(|(_, work)| seconds(work, *part).is_some())).collect();
        let cells = all.iter().map(|(strategy, work)| {
            let parts = parts.iter().map(|part| or_dash(seconds(work, *part), units::seconds));
            let first = [strategy.name.clone(), units::seconds(sum(work))];
            first.into_iter().chain(parts).collect()
        });
        let head = ["strategy", "together"].into_iter().chain(parts.iter().map(|part| name(*part)));
        Plot {
            id: "steps",
            title: "Work per sample, every epoch",
            note: "CPU time per sample, on one thread, that each strategy spends in every epoch. Fused steps take less time \
                   than separate ones; their time is divided here in proportion to what each takes alone."
                .to_owned(),
            figure: Figure::Bars(Bars {
                panels: vec![Panel {
                    title: String::new(),
                    quantity: Quantity::Seconds,
                    rows: all.iter().map(row).collect(),
                }],
                legend: parts.iter().map(|part| (Key::Block(part_series(*part)), name(*part).to_owned())).collect(),
            }),
            grid: self.grid(&head.collect::<Vec<_>>(), cells.collect()),
        }
    }

    /// What readers and workers did with their time; `None` where nobody watched them.
    pub(super) fn threads(&self) -> Option<Plot> {
        let watched = |strategy: &StrategyProfile| Some((strategy.name.clone(), watched(self.profile, strategy)?));
        let all: Vec<(String, Stats)> = self.profile.strategies.iter().filter_map(watched).collect();
        if all.is_empty() {
            return None;
        }
        let cores = self.profile.machine.cores;
        let panel = |title: &str, who: &str, doings: &[Doing]| {
            let row = |(strategy, stats): &(String, Stats)| {
                let part = |(what, series, seconds): &Doing| {
                    let value = stats.share(seconds(stats));
                    Part { value, series: *series, tip: format!("{strategy}: {who} {what} {}", units::percent(value)) }
                };
                let text = doings.first().map_or(0.0, |(_, _, seconds)| stats.share(seconds(stats)));
                let parts = doings.iter().map(part).collect();
                self.row(strategy, vec![Bar { parts, text: units::percent(text), spread: None, mark: None }])
            };
            Panel { title: title.to_owned(), quantity: Quantity::Share, rows: all.iter().map(row).collect() }
        };
        let row = |(strategy, stats): &(String, Stats)| {
            let doings = WORKERS.iter().chain(&READERS).map(|(_, _, seconds)| stats.share(seconds(stats)));
            let shares = doings.chain([stats.consumer_wait_share(), stats.cores_share(cores)]).map(units::percent);
            std::iter::once(strategy.clone()).chain(shares).collect()
        };
        let chosen = all.iter().find(|(strategy, _)| self.is_chosen(strategy));
        let seen = chosen.map_or_else(String::new, |(strategy, stats)| {
            format!(" <code>{}</code> was {}.", escape(strategy), escape(&stats.sentence(cores)))
        });
        Some(Plot {
            id: "threads",
            title: "What the threads did",
            note: format!(
                "The share of their time that the loader\u{2019}s readers and workers spent on it, in the median run: threads that wait \
                 are not the bottleneck.{seen}"
            ),
            figure: Figure::Bars(Bars {
                panels: vec![panel("Workers", "workers", &WORKERS), panel("Readers", "readers", &READERS)],
                legend: vec![
                    (Key::Block(1), "workers: working".to_owned()),
                    (Key::Block(0), "readers: reading".to_owned()),
                    (Key::Block(WAITING_SERIES), "waiting for each other".to_owned()),
                    (Key::Block(4), "waiting for the consumer".to_owned()),
                ],
            }),
            grid: self.grid(
                &[
                    "strategy",
                    "workers busy",
                    "waiting for bytes",
                    "waiting for a batch",
                    "readers reading",
                    "waiting for space",
                    "consumer waiting",
                    "cores used",
                ],
                all.iter().map(row).collect(),
            ),
        })
    }
}

/// The colors of steps leave out the gray of other work.
fn part_series(part: WorkPart) -> usize {
    match part {
        WorkPart::Deserialize | WorkPart::Collate => OTHER_SERIES,
        WorkPart::Step(step) => [0, 1, 2, 3, 4, 5, 7][step % 7],
    }
}
