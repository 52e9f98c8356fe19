//! A document is read, and then another one that it refers to, in much of the reads: the fields that are wanted can stand beside the
//! reference.

mod ways;

use super::Symptom;
use crate::declare::{self, reference};
use crate::kept::references::references;
use crate::report::{Against, Finding, Severity, grouped};
use crate::survey::Survey;
use crate::thresholds::{
    COPY_BYTES, COPY_SHARE, FEW_FIELDS, READS_PER_CHANGE, SECOND_READ_RUNS, SECOND_READ_SHARE, SECOND_READS_AN_HOUR,
};
use crate::values::{at, count, figures, list, measure, share};
use document::{DocWriter, Result, Value};
use ways::Way;

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "second_read",
    pattern: "extended_reference",
    help: "A second read fetches a few fields of a referenced document.",
    looks_at: "The `$lookup`s by a reference, and reads by ids of the answer before on one connection, also several ids at once (populate): in over 20 % of the reads of a collection, or over 100 an hour of few fields.",
    reasons_against: "The source changes more than once per 10 reads of the copies; the copied fields are over 1 KB or 25 % of the document; most references lead nowhere.",
    find: |survey| Box::pin(find(survey)),
};

/// A copy so small never matters.
const SMALL: f64 = 64.0;
/// A copy of more fields is none of a few.
const MOST_FIELDS: usize = 16;
/// How late a copy may be whose source changes often.
const LAG: &str = "5s";

async fn find<'a>(survey: &'a Survey<'a>) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for way in ways::all(survey).await? {
        found.extend(of_way(survey, &way));
    }
    Ok(found)
}

/// How often, by the source that shows it most clearly.
struct Often {
    source: usize,
    /// Reads of the host that were followed by another, and all of them.
    followed: u64,
    reads: u64,
    an_hour: Option<f64>,
    severity: Severity,
}

impl Often {
    fn of(survey: &Survey<'_>, way: &Way, has_few_fields: bool) -> Option<Often> {
        let each = way.by_source.iter().map(|(source, seen)| {
            let reads = survey.traffic.reads_of(*source, survey.database, way.host.name()).max(seen.followed);
            let an_hour = survey.traffic.an_hour(*source, seen.reads);
            let by_share = Severity::by(share(seen.followed, reads), SECOND_READ_SHARE);
            let by_hour = an_hour.filter(|_| has_few_fields).map(|hour| Severity::by(hour, SECOND_READS_AN_HOUR));
            let severity = match seen.followed >= SECOND_READ_RUNS {
                true => by_share.max(by_hour.unwrap_or_default()),
                false => Severity::Note,
            };
            Often { source: *source, followed: seen.followed, reads, an_hour, severity }
        });
        each.max_by(|one, other| one.severity.cmp(&other.severity).then(one.followed.cmp(&other.followed)))
    }
}

fn of_way(survey: &Survey<'_>, way: &Way) -> Option<Finding> {
    let (host, to) = (way.host, way.to);
    let is_whole = way.fields.is_none();
    let fields = if is_whole { that_fit(way, wanted(way)?) } else { wanted(way)? };
    let often = Often::of(survey, way, fields.len() <= FEW_FIELDS)?;
    // A few among very many are not worth a word.
    let is_faint = often.followed < SECOND_READ_RUNS || share(often.followed, often.reads) < SECOND_READ_SHARE / 10.0;
    if often.severity == Severity::Note && is_faint {
        return None;
    }
    if is_kept(survey, way, &fields) {
        return None;
    }
    let name = reference::copy_name(host, &way.relation);
    #[expect(clippy::cast_precision_loss, reason = "a size")]
    let (copy, before) = (copy_bytes(way, &fields), host.statistics.average() as f64);
    let changes = survey.traffic.of(survey.database, to.name()).filter(|shape| shape.source == often.source);
    let changes = changes.filter(|shape| shape.changes_any(&fields)).map(|shape| shape.writes()).sum::<u64>();
    let mut finding = Finding::new(&SYMPTOM, &host.ns, &way.relation.path);
    finding.severity = often.severity;
    finding.confidence = way.sure * if is_whole { 0.85 } else { 1.0 };
    let listed = shown(&fields);
    finding.verdict = match often.severity {
        Severity::Note => format!("some reads of {} are followed by one of {}", host.name(), to.name()),
        _ => format!(
            "reads of {} fetch {listed} of {} as well: keep a copy beside `{}`",
            host.name(),
            to.name(),
            way.relation.path
        ),
    };
    let source = survey.traffic.sources.get(often.source).map(|source| &*source.name).unwrap_or_default();
    finding.shown = vec![
        format!(
            "{} of {} reads of {} ({:.0} %) also read {} by its {}",
            grouped(often.followed),
            grouped(often.reads),
            host.name(),
            100.0 * share(often.followed, often.reads),
            to.name(),
            way.relation.key
        ),
        match often.an_hour {
            Some(hour) => format!("{} an hour, by {source}", grouped(rounded(hour))),
            None => format!("seen by {source}, for too short a time to say how many an hour"),
        },
        format!("{listed}: {copy:.0} bytes beside {before:.0} of a document"),
    ];
    let mut evidence = vec![
        ("reads", count(often.reads)),
        ("followed", count(often.followed)),
        ("share", measure(share(often.followed, often.reads))),
    ];
    if let Some(hour) = often.an_hour {
        evidence.push(("an_hour", measure(hour)));
    }
    evidence.extend([
        ("source", Value::string(source.to_owned())),
        ("lookups", count(way.lookups())),
        ("from", Value::string(to.name().to_owned())),
        ("key", Value::string(way.relation.key.clone())),
        ("fields", list(fields.iter().map(|field| Value::string(field.clone())))),
        ("whole_documents", Value::Bool(is_whole)),
        ("copy_bytes", measure(copy)),
        ("changes", count(changes)),
        ("dangling", measure(way.relation.dangling())),
        ("examples", list(host.sample.iter().take(3).filter_map(|doc| doc.get("_id")))),
    ]);
    finding.evidence = figures(evidence);
    let changes_often = share(changes, often.followed) * READS_PER_CHANGE > 1.0;
    let lag = changes_often.then_some(LAG);
    finding.declaration = reference::copy_rule(survey.database, host, &way.relation, &name, &fields, lag);
    finding.gain = figures([
        ("reads_now", measure(1.0 + share(way.reads(often.source), often.followed))),
        ("reads_then", count(1)),
        ("document_bytes_now", measure(before)),
        ("document_bytes_then", measure(before + copy)),
    ]);
    Some(finding.weighed(against(way, &often, changes, copy, before)))
}

/// The fields to copy: those that were returned, or all that the documents have. Empty if only the `_id` is wanted.
fn wanted(way: &Way) -> Option<Vec<String>> {
    let shape = &way.to.shape;
    let is_there = |field: &String| shape.path(field).is_some_and(|facts| !facts.in_array);
    let mut fields: Vec<String> = match &way.fields {
        Some(fields) => fields.iter().filter(|field| is_there(field)).cloned().collect(),
        None => shape.below("").map(|facts| facts.path.clone()).collect(),
    };
    fields.retain(|field| field != "_id" && *field != way.relation.key && !field.starts_with("_pleach"));
    // `address` has `address.city`.
    let all = fields.clone();
    fields.retain(|field| {
        !all.iter().any(|outer| field.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with('.')))
    });
    (!fields.is_empty()).then_some(fields)
}

/// Of whole documents nobody knows which fields are used: those that fit beside the reference, in their order. All of them if they fit,
/// or if there is far too much of them.
fn that_fit(way: &Way, all: Vec<String>) -> Vec<String> {
    #[expect(clippy::cast_precision_loss, reason = "a size")]
    let (most, room) = (COPY_BYTES as f64, way.host.statistics.average() as f64 * COPY_SHARE);
    let whole = copy_bytes(way, &all);
    if whole <= SMALL.max(room) || whole > most {
        return all;
    }
    let mut chosen: Vec<String> = Vec::new();
    for field in &all {
        chosen.push(field.clone());
        if copy_bytes(way, &chosen) > SMALL.max(room) {
            chosen.pop();
        }
    }
    if chosen.is_empty() { all } else { chosen }
}

fn against(way: &Way, often: &Often, changes: u64, copy: f64, before: f64) -> Vec<Against> {
    let mut all = Vec::new();
    if share(changes, often.followed) * READS_PER_CHANGE > 1.0 {
        let words = match changes > often.followed {
            true => "these fields of the source change more often than the copies would be read",
            false => "these fields of the source change more than once per 10 reads of the copies",
        };
        let figures = figures([("changes", count(changes)), ("reads", count(often.followed))]);
        all.push(Against::new(words, figures).outweighing());
    }
    #[expect(clippy::cast_precision_loss, reason = "a size")]
    let most = COPY_BYTES as f64;
    if copy > most || (copy > SMALL && copy > COPY_SHARE * before) {
        let reason = format!("the copied fields are {copy:.0} bytes, the document that would hold them {before:.0}");
        all.push(Against::new(reason, figures([("copy", measure(copy)), ("document", measure(before))])).outweighing());
    }
    if way.relation.dangling() > 0.5 {
        let figures = figures([("dangling", measure(way.relation.dangling()))]);
        all.push(Against::new("most references lead to no document", figures).outweighing());
    }
    if way.fields.is_none() {
        let reason = "the reads take whole documents: which of the fields are used, the traffic does not say; copy those that you show";
        all.push(Against::new(reason, figures([])));
    }
    all
}

/// Whether a rule that is in force keeps such a copy: reads that go on are those of clients that do not use it yet.
fn is_kept(survey: &Survey<'_>, way: &Way, fields: &[String]) -> bool {
    survey.rules.iter().any(|rule| {
        rule.kept_of(way.host.name()).is_some()
            && rule.names(&[way.to.name(), &way.relation.path])
            && fields.iter().all(|field| rule.names(&[field]))
    })
}

/// The bytes that the copies add to a document, on average.
fn copy_bytes(way: &Way, fields: &[String]) -> f64 {
    let of_source = |doc: &document::Doc<'static>| {
        let mut copy = DocWriter::new();
        for field in fields {
            if let Some(value) = at(doc, field) {
                copy.append(field.rsplit('.').next().unwrap_or(field), &value);
            }
        }
        copy.finish().as_bytes().len() as u64
    };
    let bytes: u64 = way.to.sample.iter().map(of_source).sum();
    let one = share(bytes, way.to.sample.len() as u64);
    let references = references(&way.host.sample, &way.relation, usize::MAX).len() as u64;
    one * if way.relation.is_many { share(references, way.host.sample.len() as u64) } else { 1.0 }
}

fn shown(fields: &[String]) -> String {
    match fields.len() > MOST_FIELDS / 2 {
        true => format!("{} fields", fields.len()),
        false => declare::words(fields.iter().map(String::as_str)),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate for people")]
fn rounded(rate: f64) -> u64 {
    rate.max(0.0).round() as u64
}
