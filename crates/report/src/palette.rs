//! The colors: each with its light and its dark form, for the page and for plots on their own.

/// A color's name, and its value on light and on dark ground.
const COLORS: &[(&str, &str, &str)] = &[
    ("paper", "#f6f7f9", "#12161c"),
    ("card", "#ffffff", "#1a2029"),
    ("ink", "#1b2430", "#e6eaf0"),
    ("soft", "#566171", "#a3afbd"),
    ("line", "#dfe4ea", "#323c49"),
    ("best", "#0b6e4a", "#4fd39d"),
    ("tint", "#e6f4ee", "#17332a"),
    // The series: Okabe and Ito's set, which people with any color vision can distinguish, without its yellow, which is lost on
    // white. The dark forms are lighter, in the same order of hues.
    ("c0", "#0072b2", "#56a9e6"),
    ("c1", "#d55e00", "#ff8f52"),
    ("c2", "#009e73", "#2fc79b"),
    ("c3", "#b8559a", "#e59ccb"),
    ("c4", "#c98500", "#f2b632"),
    ("c5", "#3fa2dd", "#a5dcff"),
    ("c6", "#6b6f76", "#b3bac4"),
    ("c7", "#7d4b1e", "#cf9f6f"),
];

/// The number of series with distinct colors. After that, colors repeat with other marks.
pub(super) const SERIES: usize = 8;

/// What plots need, on the page and on their own.
const PLOT: &str = "\
svg text { fill: var(--ink); font: 12px system-ui, -apple-system, \"Segoe UI\", Roboto, \"Helvetica Neue\", sans-serif; }
svg text.soft { fill: var(--soft); }
svg text.best { fill: var(--best); font-weight: 650; }
svg text.head { font-weight: 600; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .front { fill: none; stroke: var(--best); stroke-width: 1.5; stroke-dasharray: 5 4; }
svg .ideal { fill: none; stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 2 4; }
svg .spread { stroke: var(--ink); stroke-width: 1.5; }
svg .mark { stroke: var(--ink); stroke-width: 1.5; fill: var(--card); }
svg .ring { fill: none; stroke: var(--best); stroke-width: 2; }
svg .trace { fill: none; stroke-width: 2; stroke-linejoin: round; }
svg .trace.strong { stroke-width: 3.5; }
svg .trace.faint { stroke-width: 1.2; stroke-opacity: 0.55; }
svg .area { fill-opacity: 0.25; stroke-width: 2; stroke-linejoin: round; }
svg .ground { fill: var(--card); }
svg .hit { fill: transparent; stroke: none; }
";

fn values(dark: bool) -> String {
    let value = |(name, light, night): &(&str, &str, &str)| format!("--{name}:{};", if dark { night } else { light });
    COLORS.iter().map(value).collect()
}

/// The style of plots: their classes, and the color of each series.
fn plot_rules() -> String {
    let series = |at: usize| {
        format!("svg .c{at} {{ fill: var(--c{at}); stroke: var(--c{at}); }} svg .trace.c{at} {{ fill: none; }}\n")
    };
    PLOT.to_owned() + &(0..SERIES).map(series).collect::<String>()
}

/// The style of a page on which `data-theme` overrides what the system prefers.
pub(super) fn page_style() -> String {
    let (light, dark) = (values(false), values(true));
    format!(
        ":root {{ color-scheme: light; {light} }}\n\
         @media (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark} }} }}\n\
         :root[data-theme=light] {{ color-scheme: light; {light} }}\n\
         :root[data-theme=dark] {{ color-scheme: dark; {dark} }}\n{}",
        plot_rules()
    )
}

/// The style of a plot in a separate file.
pub(super) fn file_style() -> String {
    let (light, dark) = (values(false), values(true));
    format!("svg {{ {light} }}\n@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}\n{}", plot_rules())
}
