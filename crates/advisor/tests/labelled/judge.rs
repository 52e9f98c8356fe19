//! Puts a labelled set into a store of its own, asks the advisor, and compares what it says with the labels.

use bson::{Document, doc};
use document::backend::{Backend, Session};
use document::op::{AdminOp, Capture, Context, Namespace};
use document::{Doc, Env};
use pleach_advisor::{Options, Report, Unwatched, advise};
use testing::labelled::{NOW, Score, Seen, Set};
use testing::{Opened, World, insert};

/// So many documents are inserted at once.
const BATCH: usize = 2_000;

/// A set in its store, and what was said about it.
pub(crate) struct Judged {
    pub(crate) world: World,
    pub(crate) report: Report,
    /// How many there are in it.
    pub(crate) documents: usize,
}

pub(crate) fn context() -> Context {
    let context = testing::context();
    Context { env: Env { now: NOW, ..context.env }, ..context }
}

/// Stores the set, looks at it, and adds to the score.
pub(crate) async fn judge(set: Set, options: &Options, score: &mut Score) -> Judged {
    let Set { name, collections, unique, indexes, labels } = set;
    let world = World::on(Opened::engine(), "shop");
    let mut documents = 0;
    for (collection, made) in collections {
        let mut made = made.peekable();
        while made.peek().is_some() {
            let batch: Vec<Document> = made.by_ref().take(BATCH).collect();
            documents += batch.len();
            let op = insert(world.ns(&collection), batch);
            let inner = world.inner();
            let written = inner.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
            assert!(written.errors.is_empty(), "{name}: {:?}", written.errors);
        }
    }
    let all = unique.iter().map(|it| (it, true)).chain(indexes.iter().map(|it| (it, false)));
    for ((collection, field), is_unique) in all {
        index(&**world.inner(), world.ns(collection), field, is_unique).await;
    }
    let report = advise(&world.front, &context(), options, &Unwatched).await.unwrap();
    let seen: Vec<Seen> = report.findings.iter().map(seen).collect();
    score.add(&name, &labels, &seen);
    for finding in &report.findings {
        if let Some(text) = &finding.declaration {
            let checked = patterns::declare::from_yaml("proposed", text);
            assert!(checked.declaration.is_some(), "{name}\n{text}\n{:?}", checked.findings);
        }
    }
    Judged { world, report, documents }
}

fn seen(finding: &pleach_advisor::Finding) -> Seen {
    Seen {
        symptom: finding.symptom.to_owned(),
        collection: finding.collection.clone(),
        field: finding.field.clone(),
        severity: finding.severity.name().to_owned(),
    }
}

async fn index(backend: &dyn Backend, ns: Namespace, field: &str, is_unique: bool) {
    let spec = doc! { "name": format!("{field}_1"), "key": { field: 1 }, "unique": is_unique };
    let op = AdminOp::CreateIndexes { ns, indexes: vec![Doc::from(spec)] };
    backend.admin(&mut Session::default(), &context(), op).await.unwrap();
}
