//! The report as one HTML file that needs nothing else: no script, no font, no link. Colours follow the reader's light or dark.

use crate::bottleneck::{Bottleneck, shown};
use crate::outcome::{Outcome, Row};
use crate::rounds::Timed;
use std::fmt::Write as _;

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5c6675; --paper: #ffffff; --line: #d8dde5;
  --c0: #3b6fd4; --c1: #c98a2b; --c2: #1f8a5b; --c3: #8a5bc2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #9aa4b5; --paper: #14171c; --line: #323945;
  --c0: #79a3f2; --c1: #e0a64b; --c2: #42bd86; --c3: #b48be6; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 2rem 0; } figcaption { font-weight: 600; margin-bottom: .5rem; } small { color: var(--soft); font-weight: 400; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; } svg text.value { fill: var(--soft); font-size: 12px; }
.c0 { fill: var(--c0); background: var(--c0); } .c1 { fill: var(--c1); background: var(--c1); }
.c2 { fill: var(--c2); background: var(--c2); } .c3 { fill: var(--c3); background: var(--c3); }
.bar { stroke: var(--ink); stroke-width: 1.5; } .axis { stroke: var(--line); }
.legend span { display: inline-block; margin-right: 1.5rem; } .legend i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
";

const WIDTH: f64 = 900.0;
const LEFT: f64 = 220.0;
const RIGHT: f64 = 150.0;
const BAR: f64 = 18.0;

pub fn page(outcome: &Outcome) -> String {
    let plots = [parts(outcome), extrapolated(outcome), latencies(outcome)].concat();
    let moves = outcome.moves();
    let notes: String = outcome.notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect();
    let notes = if notes.is_empty() { notes } else { format!("<h2>Notes</h2>\n<ul>{notes}</ul>\n") };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>pleach lab: {name}</title>\
         <style>{STYLE}</style></head><body>\n<h1>Layouts of {name}, measured</h1>\n\
         <p>{} of {} documents were sampled (seed {}); each candidate was built of them and measured in one run.</p>\n\
         <h2>Where the bottleneck is</h2>\n<p>{}.</p>\n{}\n{plots}<h2>All figures</h2>\n{}{}{notes}</body></html>\n",
        outcome.sampled,
        outcome.of,
        outcome.seed,
        escaped(&capital(&moves.because())),
        bottlenecks(outcome),
        table(outcome),
        speeds(outcome),
        name = escaped(&outcome.database),
    )
}

/// Bytes by part: of the documents, of indexes, on disk.
fn parts(outcome: &Outcome) -> String {
    let legend = "<p class=\"legend\"><span><i class=\"c0\"></i>data</span><span><i class=\"c1\"></i>indexes</span><span><i class=\"c2\"></i>data on disk, compressed</span></p>\n";
    let of = |row: &Row| [row.full.data, row.full.indexes, row.full.disk];
    let largest = outcome.rows.iter().flat_map(of).fold(0.0, f64::max);
    let (mut body, mut y) = (String::new(), 6.0);
    for row in &outcome.rows {
        label(&mut body, &row.name, y + BAR * 1.5 + 4.0);
        for (at, (value, part)) in of(row).into_iter().zip(["data", "indexes", "on disk"]).enumerate() {
            bar(&mut body, y, at, value, largest, &shown(value), &format!("{}, {part}", row.name));
            y += BAR;
        }
        y += 12.0;
    }
    figure("Bytes of the whole, by part", "", legend, &body, y)
}

/// What the whole would take, with the error of that.
fn extrapolated(outcome: &Outcome) -> String {
    let largest = outcome.rows.iter().map(|row| row.full.data * (1.0 + row.error)).fold(0.0, f64::max);
    let (mut body, mut y) = (String::new(), 6.0);
    for row in &outcome.rows {
        label(&mut body, &row.name, y + 13.0);
        let said = format!("{} ± {:.2} %", shown(row.full.data), row.error * 100.0);
        bar(&mut body, y, 0, row.full.data, largest, &said, &row.name);
        let ends = [1.0 - row.error, 1.0 + row.error].map(|times| position(row.full.data * times, largest));
        let middle = y + BAR / 2.0 - 1.5;
        let _ = writeln!(
            body,
            r#"<path class="bar" fill="none" d="M{:.1} {middle:.1}H{:.1}M{:.1} {:.1}V{:.1}M{:.1} {:.1}V{:.1}"/>"#,
            ends[0],
            ends[1],
            ends[0],
            middle - 5.0,
            middle + 5.0,
            ends[1],
            middle - 5.0,
            middle + 5.0
        );
        y += BAR + 10.0;
    }
    figure(
        "Data bytes of the whole, with the error of the sample",
        "19 times in 20 the truth lies within",
        "",
        &body,
        y,
    )
}

/// How long operations take: a curve of quantiles for each operation and candidate.
fn latencies(outcome: &Outcome) -> String {
    let legend: String = outcome
        .rows
        .iter()
        .enumerate()
        .map(|(at, row)| format!("<span><i class=\"c{}\"></i>{}</span>", at % 4, escaped(&row.name)))
        .collect();
    let legend = format!("<p class=\"legend\">{legend}</p>\n");
    let names = outcome.rows.first().map(|row| operations(row).map(|timed| timed.name.clone()).collect::<Vec<_>>());
    let mut plots = String::new();
    for (at, name) in names.unwrap_or_default().iter().enumerate() {
        let curves: Vec<&Timed> = outcome.rows.iter().filter_map(|row| operations(row).nth(at)).collect();
        plots.push_str(&curves_of(name, &curves, &legend));
    }
    plots
}

fn operations(row: &Row) -> impl Iterator<Item = &Timed> {
    row.speed.reads.iter().chain(&row.speed.writes)
}

fn curves_of(name: &str, curves: &[&Timed], legend: &str) -> String {
    const HEIGHT: f64 = 160.0;
    let largest = curves.iter().map(|timed| timed.quantile(0.99)).fold(0.0, f64::max);
    if largest <= 0.0 {
        return String::new();
    }
    let mut body = format!("<path class=\"axis\" fill=\"none\" d=\"M{LEFT} 8V{HEIGHT}H{:.0}\"/>\n", WIDTH - RIGHT);
    for share in [0.0, 0.5, 0.9, 0.99] {
        let y = HEIGHT - share / 0.99 * (HEIGHT - 12.0);
        let _ = writeln!(
            body,
            r#"<text x="{:.0}" y="{:.0}" text-anchor="end" class="value">{:.0} %</text>"#,
            LEFT - 8.0,
            y + 4.0,
            share * 100.0
        );
    }
    for (at, timed) in curves.iter().enumerate().filter(|(_, timed)| !timed.times.is_empty()) {
        let points: Vec<String> = (1..=99)
            .map(|percent| {
                let share = f64::from(percent) / 100.0;
                let y = HEIGHT - share / 0.99 * (HEIGHT - 12.0);
                format!("{:.1} {y:.1}", position(timed.quantile(share), largest))
            })
            .collect();
        let _ = writeln!(
            body,
            r#"<path fill="none" style="fill:none;stroke:var(--c{});stroke-width:2{}" d="M{}"><title>p50 {:.3} ms, p99 {:.3} ms</title></path>"#,
            at % 4,
            // More candidates than colours: their curves are dashed.
            if at < 4 { "" } else { ";stroke-dasharray:6 4" },
            points.join("L"),
            timed.quantile(0.5),
            timed.quantile(0.99)
        );
    }
    let _ = writeln!(
        body,
        r#"<text x="{:.0}" y="{:.0}" class="value">{largest:.2} ms</text>"#,
        WIDTH - RIGHT + 6.0,
        HEIGHT + 4.0
    );
    figure(&format!("Latency: {name}"), "share of operations that took at most so long", legend, &body, HEIGHT + 20.0)
}

fn bottlenecks(outcome: &Outcome) -> String {
    let rows = outcome.rows.iter().map(|row| {
        let at = Bottleneck::of(row.full, outcome.memory).name();
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{at}</td></tr>\n",
            escaped(&row.name),
            shown(row.full.data),
            shown(row.full.indexes)
        )
    });
    let rows: String = rows.collect();
    format!(
        "<table><tr><th>candidate</th><th>working set of data</th><th>of indexes</th><th>bottleneck with {}</th></tr>\n{rows}</table>\n",
        shown(outcome.memory)
    )
}

fn table(outcome: &Outcome) -> String {
    let rows = outcome.rows.iter().map(|row| {
        format!(
            "<tr><td>{}</td><td>{:.0}</td><td>{:.1}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2} %</td><td>{:.1}</td><td>{:.0}</td></tr>\n",
            escaped(&row.name),
            row.sizes.full_documents.total,
            row.sizes.average(),
            row.sizes.spread.quantile(0.99),
            shown(row.full.data),
            shown(row.full.indexes),
            shown(row.full.disk),
            row.error * 100.0,
            row.speed.statements,
            row.speed.bytes
        )
    });
    let rows: String = rows.collect();
    format!(
        "<table><tr><th>candidate</th><th>documents</th><th>average B</th><th>p99 B</th><th>data</th><th>indexes</th><th>on disk</th><th>error</th><th>statements per write</th><th>bytes per write</th></tr>\n{rows}</table>\n"
    )
}

fn speeds(outcome: &Outcome) -> String {
    let mut rows = String::new();
    for row in &outcome.rows {
        for timed in operations(row) {
            let _ = writeln!(
                rows,
                "<tr><td>{}</td><td>{}</td><td>{:.0}</td><td>{:.3}</td><td>{:.3}</td></tr>",
                escaped(&row.name),
                escaped(&timed.name),
                timed.per_second(),
                timed.quantile(0.5),
                timed.quantile(0.99)
            );
        }
    }
    format!(
        "<table><tr><th>candidate</th><th>operation</th><th>per second</th><th>p50 ms</th><th>p99 ms</th></tr>\n{rows}</table>\n"
    )
}

fn figure(title: &str, unit: &str, legend: &str, body: &str, height: f64) -> String {
    let (title, unit) = (escaped(title), escaped(unit));
    format!(
        "<figure><figcaption>{title} <small>{unit}</small></figcaption>\n{legend}\
         <svg viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" aria-label=\"{title}\">\n{body}</svg></figure>\n"
    )
}

/// The name left of a bar; a long one is cut, and whole where the pointer rests.
fn label(body: &mut String, name: &str, y: f64) {
    const LONGEST: usize = 26;
    let shown: String = match name.chars().count() > LONGEST {
        true => name.chars().take(LONGEST - 1).chain(['…']).collect(),
        false => name.to_owned(),
    };
    let _ = writeln!(
        body,
        r#"<text x="{:.0}" y="{y:.0}" text-anchor="end">{}<title>{}</title></text>"#,
        LEFT - 10.0,
        escaped(&shown),
        escaped(name)
    );
}

fn bar(body: &mut String, y: f64, colour: usize, value: f64, largest: f64, said: &str, title: &str) {
    let end = position(value, largest);
    let _ = writeln!(
        body,
        r#"<rect x="{LEFT:.0}" y="{y:.0}" width="{:.1}" height="{:.0}" class="c{colour}"><title>{}: {}</title></rect><text x="{:.1}" y="{:.0}" class="value">{}</text>"#,
        end - LEFT,
        BAR - 3.0,
        escaped(title),
        escaped(said),
        end + 8.0,
        y + BAR - 6.0,
        escaped(said)
    );
}

fn position(value: f64, largest: f64) -> f64 {
    let share = if largest > 0.0 { (value / largest).clamp(0.0, 1.0) } else { 0.0 };
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Text as HTML holds it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Bytes, Sizes};
    use crate::rounds::Speed;

    #[test]
    fn the_page_stands_alone_and_shows_every_candidate() {
        let row = |name: &str, data: f64| {
            let timed = Timed { name: "order <page>".to_owned(), times: vec![0.5, 1.0, 2.0], failed: None };
            let speed = Speed { reads: vec![timed], ..Speed::default() };
            let full = Bytes { data, indexes: data / 10.0, disk: data / 3.0 };
            Row {
                name: name.to_owned(),
                declaration: serde_json::Value::Null,
                sizes: Sizes::default(),
                speed,
                full,
                error: 0.015,
                errors: Bytes::default(),
            }
        };
        let outcome = Outcome {
            database: "shop".to_owned(),
            rows: vec![row("now", 2e9), row("a<b", 1e9), row("'\"&<script>alert(1)</script> a very long name", 1e9)],
            sampled: 10,
            of: 100,
            seed: 1,
            memory: 1e9,
            is_snapshot: true,
            notes: vec!["an index is missing".to_owned()],
        };
        let page = page(&outcome);
        for part in [
            "a&lt;b",
            "order &lt;page&gt;",
            "1.50 %",
            "prefers-color-scheme: dark",
            "an index is missing",
            "stroke:var(--c1)",
            "alert(1)&lt;/scri…",
            "&#39;&quot;&amp;&lt;script&gt;alert(1)",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        for outside in ["http://", "https://", "<script", "<link", "src="] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("<svg").count(), 3);
    }
}
