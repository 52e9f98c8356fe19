//! What a run found out, as data: JSON, tables, the page and the ledger are made from it.

use crate::bottleneck::Moves;
use crate::measure::{Bytes, Sizes};
use crate::rounds::{Speed, Timed};
use serde_json::{Value, json};

/// One candidate, measured.
pub struct Row {
    pub name: String,
    /// Its rules, by which `--verify` finds it again.
    pub declaration: Value,
    pub sizes: Sizes,
    pub speed: Speed,
    /// What the whole would take.
    pub full: Bytes,
    /// The share by which its documents and data may differ.
    pub error: f64,
    /// The same for each part.
    pub errors: Bytes,
}

pub struct Outcome {
    pub database: String,
    pub rows: Vec<Row>,
    /// Documents of the sample and of the whole.
    pub sampled: u64,
    pub of: u64,
    pub seed: u64,
    pub memory: f64,
    pub is_snapshot: bool,
    /// What could not be measured as it is, in words.
    pub notes: Vec<String>,
}

impl Outcome {
    pub fn moves(&self) -> Moves<'_> {
        Moves { memory: self.memory, layouts: self.rows.iter().map(|row| (&*row.name, row.full)).collect() }
    }

    pub fn json(&self) -> Value {
        let moves = self.moves();
        json!({
            "candidates": self.rows.iter().map(Row::json).collect::<Vec<_>>(),
            "sample": { "documents": self.sampled, "of": self.of, "seed": self.seed, "snapshot": self.is_snapshot },
            "notes": self.notes,
            "bottleneck": { "before": moves.before().name(), "after": moves.after().name(), "because": moves.because() },
        })
    }
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "documents": whole(self.sizes.documents()),
            "bytes": bytes(self.sizes.bytes()),
            "document": { "average": rounded(self.sizes.average(), 2), "p99": self.sizes.spread.quantile(0.99) },
            "reads": self.speed.reads.iter().map(timed).collect::<Vec<_>>(),
            "writes": self.speed.writes.iter().map(timed).collect::<Vec<_>>(),
            "amplification": { "statements": rounded(self.speed.statements, 2), "bytes": rounded(self.speed.bytes, 0) },
            "full_size": { "bytes": bytes(self.full), "error": rounded(self.error, 6), "errors": shares(self.errors) },
        })
    }

    /// The figures that `--verify` measures again, by name.
    pub fn figures(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("documents", self.sizes.full_documents.total),
            ("bytes.data", self.full.data),
            ("bytes.indexes", self.full.indexes),
            ("bytes.disk", self.full.disk),
            ("document.average", self.sizes.average()),
            ("document.p99", self.sizes.spread.quantile(0.99) as f64),
        ]
    }
}

fn timed(timed: &Timed) -> Value {
    json!({
        "name": timed.name,
        "per_second": rounded(timed.per_second(), 1),
        "p50_ms": rounded(timed.quantile(0.5), 3),
        "p99_ms": rounded(timed.quantile(0.99), 3),
    })
}

fn bytes(bytes: Bytes) -> Value {
    json!({ "data": whole(bytes.data), "indexes": whole(bytes.indexes), "disk": whole(bytes.disk) })
}

fn shares(errors: Bytes) -> Value {
    let [data, indexes, disk] = [errors.data, errors.indexes, errors.disk].map(|share| rounded(share, 6));
    json!({ "data": data, "indexes": indexes, "disk": disk })
}

fn whole(number: f64) -> u64 {
    number.round().max(0.0) as u64
}

pub fn rounded(number: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (number * scale).round() / scale
}
