//! The read that a symptom is about, as it is written without the rule and with it.

use super::figures::aggregate;
use crate::target::Target;
use bson::{Bson, Document, doc};
use document::op::Namespace;
use patterns::rule::Rule;

/// So many documents are read, one read each: enough for a median.
const READS: usize = 50;

/// An aggregation: its collection and its stages.
type Reading = (Namespace, Vec<Document>);

/// Reads of some documents, one each.
pub(super) struct Read {
    /// What is read, in words.
    pub(super) name: String,
    pub(super) before: Vec<Reading>,
    pub(super) after: Vec<Reading>,
}

/// None where the symptom is about no read, or the collection has no documents.
pub(super) async fn of(target: &Target, rule: &Rule, examples: &[Bson]) -> Option<Read> {
    match rule.pattern {
        "extended_reference" => of_link(target, rule, |rule, id| {
            let (from, local, foreign) = linked(rule)?;
            Some((rule.host.clone(), vec![
                doc! { "$match": { "_id": id } },
                doc! { "$lookup": { "from": from, "localField": local, "foreignField": foreign, "as": rule.field.dotted() } },
            ]))
        })
        .await
        .map(|read| Read { name: format!("one of {} with its {}", rule.host.collection, rule.field), ..read }),
        "computed" if rule.link().is_some_and(|link| link.local.path.dotted() == "_id") => of_link(target, rule, |rule, id| {
            let (source, foreign) = (rule.link()?.source.clone(), rule.link()?.foreign.path()?.path.dotted());
            Some((source, vec![doc! { "$match": { foreign: id } }, doc! { "$group": { "_id": null, "n": { "$sum": 1 } } }]))
        })
        .await
        .map(|read| Read { name: format!("{} of one of {}", rule.field, rule.host.collection), ..read }),
        "subset" | "outlier" => of_documents(target, rule, examples).await,
        "bucket" => of_series(target, rule).await,
        _ => None,
    }
}

/// Before: as `without` says. After: the host alone, which has it.
async fn of_link(target: &Target, rule: &Rule, without: impl Fn(&Rule, Bson) -> Option<Reading>) -> Option<Read> {
    let ids = some_ids(target, rule).await?;
    let before: Option<Vec<Reading>> = ids.iter().map(|id| without(rule, id.clone())).collect();
    Some(Read { name: String::new(), before: before?, after: ids.into_iter().map(|id| one(rule, id)).collect() })
}

/// The same read, whose documents become smaller: those that showed the symptom, or some.
async fn of_documents(target: &Target, rule: &Rule, examples: &[Bson]) -> Option<Read> {
    let ids = match examples {
        [] => some_ids(target, rule).await?,
        some => some.iter().take(READS).cloned().collect(),
    };
    let readings: Vec<Reading> = ids.into_iter().map(|id| one(rule, id)).collect();
    Some(Read { name: format!("one of {}", rule.host.collection), before: readings.clone(), after: readings })
}

/// The same read: all of one series, counted.
async fn of_series(target: &Target, rule: &Rule) -> Option<Read> {
    let declared = Document::try_from(&rule.declaration).ok()?;
    let bucket = declared.get_document("collections").ok()?.get_document(&*rule.host.collection).ok()?;
    let by = bucket.get_document("bucket").ok()?.get_array("by").ok()?;
    let names: Vec<&str> = by
        .iter()
        .filter_map(|by| match by {
            Bson::String(name) => Some(&**name),
            Bson::Document(by) => by.get_str("field").ok(),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return None;
    }
    let some = sample(target, rule, doc! { "$limit": 100_000 }).await?;
    let series = |found: &Document| -> Option<Document> {
        names.iter().map(|name| Some(((*name).to_owned(), found.get(name)?.clone()))).collect()
    };
    let readings: Vec<Reading> = some
        .iter()
        .filter_map(series)
        .map(|series| {
            let stages = vec![doc! { "$match": series }, doc! { "$group": { "_id": null, "n": { "$sum": 1 } } }];
            (rule.host.clone(), stages)
        })
        .collect();
    let name = format!("all of one {} in {}", names.join(", "), rule.host.collection);
    (!readings.is_empty()).then(|| Read { name, before: readings.clone(), after: readings })
}

fn one(rule: &Rule, id: Bson) -> Reading {
    (rule.host.clone(), vec![doc! { "$match": { "_id": id } }])
}

/// The source and both sides of a link, where each is a path.
fn linked(rule: &Rule) -> Option<(String, String, String)> {
    let link = rule.link()?;
    Some((link.source.collection.to_string(), link.local.path.dotted(), link.foreign.path()?.path.dotted()))
}

async fn some_ids(target: &Target, rule: &Rule) -> Option<Vec<Bson>> {
    let found = sample(target, rule, doc! { "$project": { "_id": 1 } }).await?;
    let ids: Vec<Bson> = found.into_iter().filter_map(|mut doc| doc.remove("_id")).collect();
    (!ids.is_empty()).then_some(ids)
}

/// Some documents of the host at random. One that cannot be read is as one without documents.
async fn sample(target: &Target, rule: &Rule, stage: Document) -> Option<Vec<Document>> {
    let size = i64::try_from(READS).ok()?;
    let found = aggregate(target, &rule.host, &[doc! { "$sample": { "size": size } }, stage]).await.ok()?;
    found.iter().map(|doc| Document::try_from(doc).ok()).collect()
}
