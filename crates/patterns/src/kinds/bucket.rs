//! Bucket: readings of one series and period in one stored document.

use super::{Pattern, Status};

pub(super) const PATTERN: Pattern = Pattern {
    name: "bucket",
    title: "Bucket",
    help: "Stores many small time-series documents as few larger ones; clients still see one document per reading.",
    problem: "Millions of tiny documents: more index and overhead than data.",
    mechanism: "A reading is added to the open bucket of its series and period; the declared name is a view that gives single readings.",
    symptom: "Very many small documents with a series and a time, mostly inserted in order and read by ranges of time.",
    when_not: "Readings are mostly read or changed one by one by their own id.",
    example: "sensor_data:\n  bucket: { time: ts, by: [sensorId], every: hour, at_most: 60 }",
    status: Status::NotYet,
};
