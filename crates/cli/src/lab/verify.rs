//! `--verify`: what was predicted, measured again on the data itself after `apply`.

use super::source::Opened;
use super::text;
use crate::options::TargetOptions;
use crate::report::{self, Code, Failure, Verdict};
use bson::doc;
use lab::ledger::{Compared, Ledger, Prediction};
use lab::line::Rows;
use lab::measure::{self, Bytes, Spread};
use lab::store::Candidate;
use std::time::Duration;

/// The time as it is kept in the ledger.
pub(super) fn now() -> String {
    bson::DateTime::now().try_to_rfc3339_string().unwrap_or_default()
}

/// Compares the newest predictions of these candidates with the data.
pub(crate) fn verify(
    target: &TargetOptions,
    database: &str,
    candidates: &[Candidate],
    json: bool,
) -> Result<Verdict, Failure> {
    let ledger = Ledger::of(std::path::Path::new("."));
    let unreadable = |error: std::io::Error| {
        Failure::of(Code::Word("file"), format!("cannot read {}: {error}", ledger.path().display()))
    };
    let mut predictions = Vec::new();
    for candidate in candidates {
        let name = &candidate.name;
        let found = ledger.prediction(database, name, &candidate.canonical(database)).map_err(unreadable)?;
        if found.as_ref().is_some_and(|found| !found.is_same) {
            report::note(&format!("note: {name} has changed since it was measured: the prediction is of other rules"));
        }
        predictions.push(found.ok_or_else(|| {
            let path = ledger.path().display();
            Failure::of(Code::Word("file"), format!("the ledger {path} has no prediction of {name} for database {database}"))
                .hint("run `pleach lab` with the same --declare before `pleach apply`, and --verify in the same folder afterwards; `pleach lab --history` lists what was measured")
        })?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    let compared = runtime.block_on(async {
        let opened = Opened::open(target).await?;
        if !opened.is_mongodb {
            report::note(
                "note: an embedded store has on disk what was overwritten too, until its collections are compacted",
            );
        }
        let mut all = Vec::new();
        for prediction in &predictions {
            match compared(&opened, database, prediction).await {
                Ok(figures) => all.extend(figures),
                Err(failure) => {
                    opened.close().await;
                    return Err(failure);
                }
            }
        }
        opened.close().await;
        Ok(all)
    });
    runtime.shutdown_timeout(Duration::from_secs(2));
    let compared = compared?;
    let list: serde_json::Value = compared.iter().map(Compared::json).collect();
    if let Err(error) = ledger.verified(&now(), database, &list) {
        report::note(&format!("warning: the ledger {} cannot be written: {error}", ledger.path().display()));
    }
    match json {
        true => report::json(&serde_json::json!({ "verify": list })),
        false => report::text(&text::compared(&compared, &predictions)),
    }
    Ok(Verdict::Fine)
}

async fn compared(opened: &Opened, database: &str, prediction: &Prediction) -> Result<Vec<Compared>, Failure> {
    let (mut documents, mut bytes, mut spread) = (0.0, Bytes::default(), Spread::default());
    let mut filled = 0;
    for name in &prediction.collections {
        let measured = measure::statistics(&opened.stored, database, name).await?;
        filled += usize::from(measured.documents > 0.0);
        documents += measured.documents;
        bytes.data += measured.bytes.data;
        bytes.indexes += measured.bytes.indexes;
        bytes.disk += measured.bytes.disk;
        // Sizes are grouped where the documents are: a line for each size comes back.
        let pipeline = vec![doc! { "$group": { "_id": { "$bsonSize": "$$ROOT" }, "n": { "$sum": 1 } } }];
        let command = doc! { "aggregate": &**name, "pipeline": pipeline, "allowDiskUse": true, "cursor": {} };
        let mut rows = Rows::open(&opened.stored, database, command).await?;
        while let Some(row) = rows.next().await? {
            let row = bson::Document::try_from(&row)?;
            let (size, count) = (lab::line::number(&row, "_id"), lab::line::number(&row, "n"));
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are whole")]
            spread.add(size as u64, count);
        }
    }
    if filled < prediction.collections.len() {
        report::note(&format!(
            "note: of the collections that {} would have ({}), some are missing or empty: is it applied?",
            prediction.candidate,
            prediction.collections.join(", ")
        ));
    }
    let real = |figure: &str| match figure {
        "documents" => Some(documents),
        "bytes.data" => Some(bytes.data),
        "bytes.indexes" => Some(bytes.indexes),
        "bytes.disk" => Some(bytes.disk),
        "document.average" => Some(if documents > 0.0 { bytes.data / documents } else { 0.0 }),
        #[expect(clippy::cast_precision_loss, reason = "a size")]
        "document.p99" => Some(spread.quantile(0.99) as f64),
        _ => None,
    };
    let one = |(figure, predicted): &(String, f64)| {
        let candidate = prediction.candidate.clone();
        Some(Compared { candidate, figure: figure.clone(), predicted: *predicted, real: real(figure)? })
    };
    // In the order in which they are shown elsewhere.
    let order = ["documents", "bytes.data", "bytes.indexes", "bytes.disk", "document.average", "document.p99"];
    let mut all: Vec<Compared> = prediction.figures.iter().filter_map(one).collect();
    all.sort_by_key(|compared| order.iter().position(|name| *name == compared.figure));
    Ok(all)
}
