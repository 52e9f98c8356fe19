//! What a running Pleach has counted: `serverStatus.pleach.workload`.

use super::described;
use super::{CommandShape, SecondRead, Traffic, is_asked, is_internal};
use crate::reader::Reader;
use crate::values::{figure, figures, share, text};
use document::op::AdminOp;
use document::{Doc, Value};

/// A field that was in fewer of the second documents is not one of those that the reads are about.
const RETURNED_SHARE: f64 = 0.1;

/// A server that counts nothing for us is no source.
pub(super) async fn read(reader: &Reader<'_>, databases: &[String], traffic: &mut Traffic) {
    let body = figures([("serverStatus", Value::Int32(1))]);
    let op = AdminOp::Extension { command: "serverStatus", db: "admin".to_owned(), body };
    let Ok(answers) = reader.admin(op).await else { return };
    let workload = answers.iter().find_map(|answer| match answer.get("pleach") {
        Some(Value::Document(section)) => match section.get("workload") {
            Some(Value::Document(workload)) => Some(workload.into_owned()),
            _ => None,
        },
        _ => None,
    });
    if let Some(workload) = workload {
        add(&workload, databases, traffic);
    }
}

pub(super) fn add(workload: &Doc<'_>, databases: &[String], traffic: &mut Traffic) {
    let mut note = "it counts since it was started, and shows no values".to_owned();
    if let Some(Value::Document(evicted)) = workload.get("evicted") {
        let (shapes, reads) = (figure(&evicted, "shapes"), figure(&evicted, "secondReads"));
        if shapes + reads > 0 {
            note.push_str(&format!("; {} rare shapes had to make room", shapes + reads));
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let seconds = figure(workload, "seconds") as f64;
    let shapes: Vec<CommandShape> = documents(workload, "shapes")
        .iter()
        .filter_map(shape)
        .filter(|shape| is_meant(databases, &shape.database, &shape.collection))
        .collect();
    let reads: Vec<SecondRead> = documents(workload, "secondReads")
        .iter()
        .filter_map(second_read)
        .filter(|read| is_meant(databases, &read.database, &read.to))
        .collect();
    let reads = reads
        .into_iter()
        .map(|read| SecondRead { fields: read.fields.clone().filter(|_| !is_whole(&read, &shapes)), ..read });
    let reads: Vec<SecondRead> = reads.collect();
    let source = traffic.source("pleach", seconds, Some(note));
    traffic.shapes.extend(shapes.into_iter().map(|shape| CommandShape { source, ..shape }));
    traffic.second_reads.extend(reads.into_iter().map(|read| SecondRead { source, ..read }));
}

/// Whether most finds by that key take whole documents: the fields that came are then not those that are wanted.
fn is_whole(read: &SecondRead, shapes: &[CommandShape]) -> bool {
    let by_key = shapes.iter().filter(|shape| {
        shape.kind == "find"
            && shape.database == read.database
            && shape.collection == read.to
            && shape.equal.contains(&read.key)
    });
    let (whole, all) = by_key.fold((0, 0), |(whole, all), shape| {
        (whole + if shape.fields.is_none() { shape.count } else { 0 }, all + shape.count)
    });
    whole * 2 > all
}

fn is_meant(databases: &[String], database: &str, collection: &str) -> bool {
    is_asked(databases, database) && !is_internal(database, collection)
}

fn shape(counted: &Doc<'_>) -> Option<CommandShape> {
    let mut shape = described::shape(counted)?;
    let inner = |name: &str, of: &str| match counted.get(name) {
        Some(Value::Document(inner)) => figure(&inner, of),
        _ => 0,
    };
    shape.count = figure(counted, "count");
    #[expect(clippy::cast_precision_loss, reason = "time")]
    let milliseconds = figure(counted, "micros") as f64 / 1_000.0;
    shape.milliseconds = milliseconds;
    shape.examined = inner("examined", "documents").max(inner("examined", "keys"));
    shape.returned = figure(counted, "returned");
    shape.written = figure(counted, "written");
    shape.bytes = inner("bytes", "out");
    Some(shape)
}

fn second_read(counted: &Doc<'_>) -> Option<SecondRead> {
    let (from, read) = (text(counted, "from"), text(counted, "read"));
    let ((database, from), (other, to)) = (from.split_once('.')?, read.split_once('.')?);
    let count = figure(counted, "count");
    let documents = figure(counted, "documents");
    let fields = match counted.get("fields") {
        Some(Value::Document(fields)) => {
            let often = |of: &str| share(figure(&fields, of), count.min(documents.max(1))) >= RETURNED_SHARE;
            fields.iter().map(|(name, _)| name.as_str().to_owned()).filter(|name| often(name)).collect()
        }
        _ => Vec::new(),
    };
    (database == other).then(|| SecondRead {
        database: database.to_owned(),
        from: from.to_owned(),
        path: Some(text(counted, "path")),
        to: to.to_owned(),
        key: text(counted, "by"),
        fields: Some(fields),
        answers: figure(counted, "answers"),
        count,
        ..SecondRead::default()
    })
}

fn documents<'d>(doc: &Doc<'d>, name: &str) -> Vec<Doc<'d>> {
    let Some(Value::Array(list)) = doc.get(name) else { return Vec::new() };
    let each = list.iter().filter_map(|item| match item {
        Value::Document(doc) => Some(doc),
        _ => None,
    });
    each.collect()
}
