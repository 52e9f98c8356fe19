//! The counters as documents: `serverStatus.pleach.workload`.

use super::second_reads::SecondRead;
use super::shapes::Shape;
use super::{SHAPES, Workload};
use crate::identity;
use document::{Doc, DocWriter, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn long(counter: &AtomicU64) -> i64 {
    i64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(i64::MAX)
}

impl Workload {
    /// Everything that was counted, as far as `shown` allows a collection: what took longest is first.
    pub(crate) fn report(&self, shown: &dyn Fn(&str) -> bool) -> Doc<'static> {
        let mut writer = DocWriter::new();
        let seconds = (identity::milliseconds() - self.since).max(0) / 1000;
        writer.append("since", &Value::DateTime(self.since)).append("seconds", &Value::Int64(seconds));
        writer.append("limit", &Value::Int64(i64::try_from(SHAPES).unwrap_or_default()));
        writer.start_document("evicted");
        for (name, count) in [("shapes", self.shapes.evicted()), ("secondReads", self.second_reads.evicted())] {
            writer.append(name, &Value::Int64(i64::try_from(count).unwrap_or(i64::MAX)));
        }
        writer.end();
        let mut shapes: Vec<Arc<Shape>> = self.shapes.all();
        shapes.retain(|shape| shown(&shape.namespace));
        shapes.sort_by_key(|shape| std::cmp::Reverse(shape.nanoseconds.load(Ordering::Relaxed)));
        writer.start_array("shapes");
        for (index, shape) in shapes.iter().enumerate() {
            writer.start_document_at(index);
            of_shape(&mut writer, shape);
            writer.end();
        }
        writer.end();
        let mut reads: Vec<Arc<SecondRead>> = self.second_reads.all();
        reads.retain(|read| shown(&read.from) && shown(&read.read));
        reads.sort_by_key(|read| std::cmp::Reverse(read.count.load(Ordering::Relaxed)));
        writer.start_array("secondReads");
        for (index, read) in reads.iter().enumerate() {
            writer.start_document_at(index);
            of_second_read(&mut writer, read);
            writer.end();
        }
        writer.end();
        writer.finish()
    }
}

fn of_shape(writer: &mut DocWriter, shape: &Shape) {
    for (name, value) in shape.described.iter() {
        writer.append(name.as_str(), &value);
    }
    writer.append("count", &Value::Int64(long(&shape.count))).append("errors", &Value::Int64(long(&shape.errors)));
    writer.append("micros", &Value::Int64(long(&shape.nanoseconds) / 1000));
    writer.append("maxMicros", &Value::Int64(long(&shape.longest) / 1000));
    writer.start_document("examined");
    writer.append("documents", &Value::Int64(long(&shape.documents))).append("keys", &Value::Int64(long(&shape.keys)));
    writer.end();
    writer.append("returned", &Value::Int64(long(&shape.returned)));
    writer.append("written", &Value::Int64(long(&shape.written)));
    writer.start_document("bytes");
    writer.append("in", &Value::Int64(long(&shape.bytes_in))).append("out", &Value::Int64(long(&shape.bytes_out)));
    writer.end();
}

fn of_second_read(writer: &mut DocWriter, read: &SecondRead) {
    writer.append("from", &Value::from(&*read.from)).append("path", &Value::from(&*read.path));
    writer.append("read", &Value::from(&*read.read)).append("by", &Value::from("_id"));
    writer.append("answers", &Value::Int64(long(&read.answers))).append("count", &Value::Int64(long(&read.count)));
    writer.append("documents", &Value::Int64(long(&read.documents)));
    writer.append("bytes", &Value::Int64(long(&read.bytes)));
    let fields = read.fields.lock();
    writer.start_document("fields");
    for (name, count) in &fields.names {
        writer.append(name, &Value::Int64(i64::try_from(*count).unwrap_or(i64::MAX)));
    }
    writer.end();
}
