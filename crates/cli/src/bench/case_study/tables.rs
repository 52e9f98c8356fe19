//! What a run found out, for the terminal.

use super::compare::Comparison;
use super::outcome::{Outcome, ratio};
use crate::ask::grouped;
use crate::table::table;

/// How the sizes were found.
const SIZES: &str = "\
Bytes. Data is BSON, disk is compressed and has the indexes in it. MongoDB: collStats after a checkpoint, without its log of writes.
Embedded: all files after `compact` and a clean stop, the log among them; documents are kept in the order of _id, which needs no index.
";

pub(crate) fn render(outcome: &Outcome) -> String {
    let mut out = format!(
        "{} events of {} users, 2010-01-01 to 2020-01-01, seed {}; {} clients\n",
        count(outcome.events),
        count(u64::from(outcome.users)),
        outcome.seed,
        outcome.clients
    );
    outcome.servers.iter().for_each(|line| out.push_str(&format!("{line}\n")));
    for part in
        [sizes(outcome), speeds(outcome), compared(outcome), ingest(outcome), one_day(outcome), estimates(outcome)]
    {
        if !part.is_empty() {
            out.push_str(&format!("\n{part}"));
        }
    }
    let wrong = outcome.wrong();
    match wrong.is_empty() {
        true => out
            .push_str("\nEvery report was the sum over the raw events, and every document as large as they make it.\n"),
        false => wrong.iter().for_each(|line| out.push_str(&format!("\nwrong: {line}\n"))),
    }
    out
}

fn sizes(outcome: &Outcome) -> String {
    let rows = outcome.rows.iter().map(|row| {
        let sizes = &row.sizes;
        vec![
            row.subject.where_and_how(),
            row.subject.layout.name().to_owned(),
            row.subject.layout.version().to_owned(),
            count(sizes.documents),
            format!("{:.1}", ratio(sizes.data, sizes.documents)),
            format!("{:.1}", outcome.per_event(sizes.data)),
            format!("{:.1}", outcome.per_event(sizes.index)),
            format!("{:.1}", outcome.per_event(sizes.disk)),
            sizes.log.map_or_else(|| "-".to_owned(), |log| format!("{:.1}", ratio(log, 1 << 20))),
        ]
    });
    let headings =
        ["where", "layout", "as", ">documents", ">bytes each", ">data/event", ">index/event", ">disk/event", ">log MB"];
    format!("{}{SIZES}", table(&headings, rows.collect()))
}

fn speeds(outcome: &Outcome) -> String {
    let rows = outcome.rows.iter().map(|row| {
        let (batches, requests) = (&row.loaded.batches, &row.reported.requests);
        vec![
            row.subject.where_and_how(),
            row.subject.layout.name().to_owned(),
            rate(row.loaded.per_second()),
            milliseconds(batches.percentile(50)),
            milliseconds(batches.percentile(90)),
            rate(row.reported.per_second()),
            milliseconds(requests.percentile(50)),
            milliseconds(requests.percentile(90)),
        ]
    });
    let headings =
        ["where", "layout", ">events/s", ">batch p50 ms", ">p90 ms", ">reports/s", ">report p50 ms", ">p90 ms"];
    table(&headings, rows.collect())
}

fn compared(outcome: &Outcome) -> String {
    let row = |comparison: &Comparison| {
        let figures =
            comparison.figures().map(|times| times.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}")));
        std::iter::once(comparison.layout.name().to_owned()).chain(figures).collect()
    };
    let rows: Vec<Vec<String>> = Comparison::all(outcome).iter().map(row).collect();
    let headings = [
        "declared, times as fast as by hand",
        ">load: embedded / MongoDB",
        ">reports: embedded / embedded",
        ">load: in front / MongoDB",
        ">reports: in front / MongoDB",
    ];
    if rows.is_empty() { String::new() } else { table(&headings, rows) }
}

fn ingest(outcome: &Outcome) -> String {
    let events = outcome.rows.iter().filter_map(|row| {
        let what = format!("events, {}", row.subject.layout.name());
        row.ingest.as_ref().map(|ingest| (row.subject.where_and_how(), what, ingest))
    });
    let readings = outcome.readings.iter().map(|(place, readings)| {
        (format!("{}, declared", place.name()), "readings, day buckets".to_owned(), &readings.ingest)
    });
    let row = |(place, what, ingest): (String, String, &super::ingest::Ingest)| {
        vec![place, what, rate(ingest.single), rate(ingest.batched), format!("{:.1}", ingest.ratio())]
    };
    let rows: Vec<Vec<String>> = events.chain(readings).map(row).collect();
    match rows.is_empty() {
        true => String::new(),
        false => table(&["one client", "writes", ">one at a time/s", ">250 at a time/s", ">times"], rows),
    }
}

fn one_day(outcome: &Outcome) -> String {
    let mut out = String::new();
    for (place, readings) in &outcome.readings {
        out.push_str(&format!(
            "{}: a year of {} readings is {} day buckets; one day of one sensor is {} readings and touched {} of them (explain)\n",
            place.name(),
            count(readings.readings),
            count(readings.buckets),
            readings.found,
            readings.touched
        ));
    }
    out
}

fn estimates(outcome: &Outcome) -> String {
    let rows = outcome.estimates.iter().map(|estimate| {
        let bytes = [estimate.bson_4k, estimate.bson_32k, estimate.columns_4k, estimate.columns_32k];
        let mut row = vec![estimate.layout.name().to_owned()];
        row.extend(bytes.map(|bytes| format!("{:.1}", outcome.per_event(bytes))));
        row
    });
    let headings = ["estimated bytes/event", ">BSON, 4K blocks", ">32K", ">columns, 4K blocks", ">32K"];
    match outcome.estimates.is_empty() {
        true => String::new(),
        false => format!(
            "{}An estimate, made in memory: LZ4 blocks of records as BSON (as stored now) and as columns (not built).\n",
            table(&headings, rows.collect())
        ),
    }
}

fn count(number: u64) -> String {
    grouped(i64::try_from(number).unwrap_or(i64::MAX))
}

#[expect(clippy::cast_possible_truncation, reason = "a rate for people")]
fn rate(per_second: f64) -> String {
    grouped(per_second.round() as i64)
}

fn milliseconds(time: f64) -> String {
    format!("{time:.1}")
}
