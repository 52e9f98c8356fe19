//! What a run, a comparison and the ledger say, as text for people.

use crate::ask::grouped;
use crate::report::{self, Code, Failure, Verdict};
use crate::table::{folded, table};
use lab::bottleneck::{Bottleneck, shown};
use lab::ledger::{Compared, Ledger, Prediction};
use lab::outcome::{Outcome, Row};
use serde_json::Value;

pub(super) fn outcome(outcome: &Outcome) -> String {
    let mut out = format!(
        "{} of {} documents of {} sampled, seed {}\n\n",
        count(outcome.sampled as f64),
        count(outcome.of as f64),
        outcome.database,
        outcome.seed
    );
    let headings = ["candidate", ">documents", ">data", ">indexes", ">on disk", ">error", ">avg", ">p99"];
    out.push_str("The whole would take\n");
    out.push_str(&table(&headings, outcome.rows.iter().map(sizes).collect()));
    out.push_str("\nThe mix, one client\n");
    let rows = outcome.rows.iter().flat_map(speeds).collect();
    out.push_str(&table(&["operation", "candidate", ">per second", ">p50 ms", ">p99 ms"], rows));
    out.push_str("\nBeneath one client write\n");
    let beneath = |row: &Row| {
        let at = Bottleneck::of(row.full, outcome.memory).name().to_owned();
        vec![row.name.clone(), format!("{:.1}", row.speed.statements), shown(row.speed.bytes), at]
    };
    out.push_str(&table(
        &["candidate", ">statements", ">written", "bottleneck"],
        outcome.rows.iter().map(beneath).collect(),
    ));
    out.push('\n');
    for sentence in outcome.moves().because().split("; ") {
        out.push_str(&folded("- ", sentence));
    }
    for note in &outcome.notes {
        out.push_str(&folded("note: ", note));
    }
    out.push_str(
        "\nAfter `pleach apply`, `pleach lab --verify` with the same --declare compares this with the data.\n",
    );
    out
}

fn sizes(row: &Row) -> Vec<String> {
    vec![
        row.name.clone(),
        count(row.sizes.full_documents.total),
        shown(row.full.data),
        shown(row.full.indexes),
        shown(row.full.disk),
        format!("±{:.2} %", row.error * 100.0),
        format!("{:.1} B", row.sizes.average()),
        format!("{} B", row.sizes.spread.quantile(0.99)),
    ]
}

fn speeds(row: &Row) -> Vec<Vec<String>> {
    let timed = row.speed.reads.iter().chain(&row.speed.writes);
    let line = |timed: &lab::rounds::Timed| {
        vec![
            timed.name.clone(),
            row.name.clone(),
            count(timed.per_second()),
            format!("{:.3}", timed.quantile(0.5)),
            format!("{:.3}", timed.quantile(0.99)),
        ]
    };
    timed.map(line).collect()
}

#[expect(clippy::cast_possible_truncation, reason = "a number for people")]
fn count(number: f64) -> String {
    grouped(number.round() as i64)
}

pub(super) fn compared(compared: &[Compared], predictions: &[Prediction]) -> String {
    let mut out = String::new();
    for prediction in predictions {
        out.push_str(&format!(
            "{}: predicted {}, within {:.2} %\n",
            prediction.candidate,
            prediction.at,
            prediction.error * 100.0
        ));
    }
    out.push('\n');
    let line = |one: &Compared| {
        let number = |value: f64| if one.figure.starts_with("bytes") { shown(value) } else { format!("{value:.1}") };
        vec![
            one.candidate.clone(),
            one.figure.clone(),
            number(one.predicted),
            number(one.real),
            format!("{:+.2} %", one.off() * 100.0),
        ]
    };
    out.push_str(&table(&["candidate", "figure", ">predicted", ">real", ">off"], compared.iter().map(line).collect()));
    out
}

/// `--history`: the ledger, oldest first.
pub(crate) fn history(json: bool) -> Result<Verdict, Failure> {
    let ledger = Ledger::of(std::path::Path::new("."));
    let (entries, broken) = ledger.entries().map_err(|error| {
        Failure::of(Code::Word("file"), format!("cannot read {}: {error}", ledger.path().display()))
            .hint("the ledger is one line of JSON for each run; the folder of the run holds it")
    })?;
    if broken > 0 {
        let lines = if broken == 1 { "a line".to_owned() } else { format!("{broken} lines") };
        report::note(&format!("note: {lines} of {} cannot be read, and the others are shown", ledger.path().display()));
    }
    match json {
        true => report::json(&serde_json::json!({ "history": entries })),
        false if entries.is_empty() => report::text(&format!("{} has no runs yet\n", ledger.path().display())),
        false => {
            let rows = entries.iter().flat_map(rows_of).collect();
            let headings = ["when", "database", "candidate", ">data", ">indexes", "what"];
            report::text(&table(&headings, rows));
        }
    }
    Ok(Verdict::Fine)
}

fn rows_of(entry: &Value) -> Vec<Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let bytes = |value: &Value| value.as_f64().map(shown).unwrap_or_default();
    let database = text(&entry["database"]);
    // The day and the minute are enough; nothing in it may be broken at the end of a line.
    let when = text(&entry["at"]).chars().take(16).collect::<String>().replace('T', " ");
    if let Some(candidates) = entry["candidates"].as_array() {
        let row = |candidate: &Value| {
            let full = &candidate["full_size"];
            let part = |name: &str| full.pointer(name).map(bytes).unwrap_or_default();
            let error = full["error"].as_f64().unwrap_or_default() * 100.0;
            vec![
                when.clone(),
                database.clone(),
                text(&candidate["name"]),
                part("/bytes/data"),
                part("/bytes/indexes"),
                format!("predicted ±{error:.1} %"),
            ]
        };
        return candidates.iter().map(row).collect();
    }
    let figures = entry["verify"].as_array().into_iter().flatten();
    let data = figures.filter(|figure| figure["figure"] == "bytes.data");
    data.map(|figure| {
        let off = figure["off"].as_f64().unwrap_or_default() * 100.0;
        let (candidate, real) = (text(&figure["candidate"]), bytes(&figure["real"]));
        let indexes = figure_of(entry, &candidate, "bytes.indexes");
        vec![when.clone(), database.clone(), candidate, real, bytes(&indexes), format!("real, off {off:+.1} %")]
    })
    .collect()
}

/// What a comparison found of one figure.
fn figure_of(entry: &Value, candidate: &str, figure: &str) -> Value {
    let all = entry["verify"].as_array().into_iter().flatten();
    let mut fitting = all.filter(|row| row["candidate"] == candidate && row["figure"] == figure);
    fitting.next().map(|row| row["real"].clone()).unwrap_or_default()
}
