//! MongoDB's structured log: the lines that say "Slow query". Read line by line; a line of any length costs a bounded amount of memory.

use super::followed::Followed;
use super::operation::Operation;
use super::table::Table;
use super::{Traffic, is_asked};
use crate::options::{Cancel, Log};
use crate::values::text;
use document::{Doc, Value};
use std::io::{BufRead, Read};

/// A longer line is none of MongoDB's, which cuts what it logs.
const LINE: usize = 256 << 10;
/// What the lines have that matter.
const SLOW: &[u8] = b"\"Slow query\"";
/// It stands before the attributes, which are long.
const HEAD: usize = 256;
/// How every line begins.
const TIME: &[u8] = b"{\"t\":{\"$date\":\"";

#[derive(Default)]
pub(super) struct Seen {
    table: Table,
    followed: Followed,
    lines: u64,
    /// Lines that are no JSON: an older log, or the last line of one that is being written.
    unreadable: u64,
    /// The log goes on behind what was read.
    stopped: bool,
    /// When its first line and its last were written: the time that it covers, however few operations were slow.
    first: Option<i64>,
    last: Option<i64>,
}

/// Reads a log, as far as it can be read.
pub(super) fn read(log: &Log, databases: &[String], cancel: &Cancel, traffic: &mut Traffic) {
    let name = format!("log {}", log.name);
    let reading = (log.open)().and_then(|mut lines| seen(&mut *lines, databases, cancel));
    let seen = match reading {
        Ok(seen) => seen,
        Err(error) => {
            traffic.source(name, 0.0, Some(format!("not read: {error}")));
            return;
        }
    };
    let source = traffic.source(name, seen.seconds(), Some(note(&seen)));
    traffic.shapes.extend(seen.table.finish(source));
    traffic.second_reads.extend(seen.followed.finish(source));
}

fn note(seen: &Seen) -> String {
    if seen.unreadable * 2 > seen.lines {
        return "it is no structured log of MongoDB, as versions from 4.4 on write".to_owned();
    }
    let mut note = "it sees slow operations only (slowms)".to_owned();
    if seen.table.is_empty() {
        note = "it has no slow operations of these databases".to_owned();
    }
    if seen.unreadable > 0 {
        note.push_str(&format!("; {} lines could not be read", seen.unreadable));
    }
    if seen.stopped {
        note.push_str("; it was not read to its end");
    }
    note
}

pub(super) fn seen(lines: &mut (dyn BufRead + Send), databases: &[String], cancel: &Cancel) -> std::io::Result<Seen> {
    let mut seen = Seen::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        // One byte more than a line may have tells that it is too long.
        let taken = (&mut *lines).take(LINE as u64 + 1).read_until(b'\n', &mut line)?;
        if taken == 0 {
            return Ok(seen);
        }
        seen.lines += 1;
        if line.len() > LINE && line.last() != Some(&b'\n') {
            seen.unreadable += 1;
            skip_line(lines)?;
            continue;
        }
        seen.line(&line, databases);
        if seen.lines.is_multiple_of(1_000) && cancel.is_set() {
            seen.stopped = true;
            return Ok(seen);
        }
    }
}

/// What is left of a line.
fn skip_line(lines: &mut (dyn BufRead + Send)) -> std::io::Result<()> {
    loop {
        let buffered = lines.fill_buf()?;
        if buffered.is_empty() {
            return Ok(());
        }
        let end = buffered.iter().position(|byte| *byte == b'\n');
        let length = end.map_or(buffered.len(), |end| end + 1);
        lines.consume(length);
        if end.is_some() {
            return Ok(());
        }
    }
}

impl Seen {
    fn seconds(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "seconds of a log")]
        match (self.first, self.last) {
            (Some(first), Some(last)) => (last - first).max(0) as f64 / 1_000.0,
            _ => self.table.seconds(),
        }
    }

    #[cfg(test)]
    pub(super) fn into_shapes(self) -> Vec<super::CommandShape> {
        self.table.finish(0)
    }

    fn line(&mut self, line: &[u8], databases: &[String]) {
        if line.trim_ascii().is_empty() {
            self.lines -= 1;
            return;
        }
        if !line.trim_ascii_start().starts_with(b"{") {
            self.unreadable += 1;
            return;
        }
        if let Some(at) = time(line) {
            self.first = self.first.or(Some(at));
            self.last = Some(at);
        }
        let head = line.get(..HEAD).unwrap_or(line);
        if !head.windows(SLOW.len()).any(|part| part == SLOW) {
            return;
        }
        let Some(doc) = document(line) else {
            self.unreadable += 1;
            return;
        };
        let Some(Value::Document(attributes)) = doc.get("attr") else { return };
        let at = match doc.get("t") {
            Some(Value::DateTime(at)) => at,
            _ => 0,
        };
        let operation = Operation::of_line(&attributes, &text(&doc, "ctx"), at);
        if let Some(operation) = operation.filter(|operation| is_asked(databases, &operation.database)) {
            self.table.add(&operation);
            self.followed.see(&operation);
        }
    }
}

/// When a line was written, without reading the rest of it.
fn time(line: &[u8]) -> Option<i64> {
    let rest = line.strip_prefix(TIME)?;
    let end = rest.iter().take(40).position(|byte| *byte == b'"')?;
    let text = std::str::from_utf8(rest.get(..end)?).ok()?;
    Some(bson::DateTime::parse_rfc3339_str(text).ok()?.timestamp_millis())
}

/// A line of extended JSON.
fn document(line: &[u8]) -> Option<Doc<'static>> {
    let json: serde_json::Value = serde_json::from_slice(line).ok()?;
    match bson::Bson::try_from(json).ok()? {
        bson::Bson::Document(doc) => Some(Doc::from(doc)),
        _ => None,
    }
}
