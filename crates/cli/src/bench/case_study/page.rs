//! What a run found out, as one HTML file that needs nothing else.

use super::layout::Layout;
use super::outcome::{Outcome, Row};
use super::plot::{Bar, Group, Plot, escaped};
use super::tables;

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5c6675; --paper: #ffffff; --line: #d8dde5;
  --c0: #8a93a3; --c1: #c98a2b; --c2: #1f8a5b; --c3: #3b6fd4; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --paper: #14171c; --line: #323945;
  --c0: #8f99aa; --c1: #e0a64b; --c2: #42bd86; --c3: #79a3f2; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 2rem 0; } figcaption { font-weight: 600; margin-bottom: .5rem; } small { color: var(--soft); font-weight: 400; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; } svg text.value { fill: var(--soft); font-size: 12px; }
.c0 { fill: var(--c0); background: var(--c0); } .c1 { fill: var(--c1); background: var(--c1); }
.c2 { fill: var(--c2); background: var(--c2); } .c3 { fill: var(--c3); background: var(--c3); }
.legend span { display: inline-block; margin-right: 1.5rem; } .legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
pre { overflow-x: auto; font-size: 13px; border: 1px solid var(--line); border-radius: 6px; padding: 1rem; }
";

pub(crate) fn page(outcome: &Outcome) -> String {
    let places = places(outcome);
    let legend: String = places
        .iter()
        .enumerate()
        .map(|(at, place)| format!("<span><i class=\"c{at}\"></i>{}</span>", escaped(place)))
        .collect();
    let plot = |title: &str, unit: &'static str, digits: usize, value: &dyn Fn(&Row) -> f64| {
        Plot { title: title.to_owned(), unit, digits, groups: groups(outcome, &places, value) }.svg()
    };
    let plots = [
        plot("On disk, index included", "bytes per event", 1, &|row| outcome.per_event(row.sizes.disk)),
        plot("Data, not compressed", "bytes per event", 1, &|row| outcome.per_event(row.sizes.data)),
        plot("Load, batches of 250 upserts", "events per second", 0, &|row| row.loaded.per_second()),
        plot("Reports, five ranges each", "reports per second", 0, &|row| row.reported.per_second()),
        plot("Time of a report, nine in ten within", "ms", 1, &|row| row.reported.requests.percentile(90)),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Pleach: the case study</title>\
         <style>{STYLE}</style></head><body>\n<h1>The case study, reproduced</h1>\n\
         <p>The same {} events in each layout; every report was compared with sums over the raw events.</p>\n\
         <p class=\"legend\">{legend}</p>\n{}\n<h2>All figures</h2>\n<pre>{}</pre>\n</body></html>\n",
        crate::ask::grouped(i64::try_from(outcome.events).unwrap_or(i64::MAX)),
        plots.concat(),
        escaped(&tables::render(outcome))
    )
}

/// What colours stand for, in the order of the rows.
fn places(outcome: &Outcome) -> Vec<String> {
    let mut places: Vec<String> = Vec::new();
    for row in &outcome.rows {
        let place = row.subject.where_and_how();
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn groups(outcome: &Outcome, places: &[String], value: &dyn Fn(&Row) -> f64) -> Vec<Group> {
    let group = |layout: Layout| {
        let bars = outcome.rows.iter().filter(|row| row.subject.layout == layout).map(|row| {
            let name = row.subject.where_and_how();
            Bar { colour: places.iter().position(|place| *place == name).unwrap_or_default(), name, value: value(row) }
        });
        Group { name: layout.name().to_owned(), bars: bars.collect() }
    };
    Layout::ALL.into_iter().map(group).filter(|group| !group.bars.is_empty()).collect()
}
