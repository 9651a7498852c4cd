//! The planner's tests: PRESTO's published figures, the cost model by hand, properties of the ranking, and the JSON files.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is how a failure is reported, in its helpers too")]

mod advising;
mod analysis;
mod cache;
mod compression;
mod diagnosis;
mod files;
mod model;
mod notices;
mod presto;
mod profiles;
mod properties;
mod summaries;
mod what_if;
mod work;
