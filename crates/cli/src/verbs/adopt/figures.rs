//! What the collections of a rule take, and what the read costs that the symptom is about: before, and in the same way after.

use super::reads::{self, Read};
use crate::ask::{grouped, number};
use crate::compose;
use crate::table::table;
use crate::target::Target;
use bson::Document;
use document::backend::{BatchLimit, Session};
use document::op::{AdminOp, Aggregate, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Doc, Result};
use patterns::rule::Rule;
use serde_json::{Value, json};
use std::time::Instant;

/// What is taken of an answer at once.
const BATCH: BatchLimit = BatchLimit { documents: 1_000, bytes: 4 << 20 };

#[derive(Default)]
pub(super) struct Figures {
    collections: Vec<Size>,
    read: Option<ReadCost>,
}

/// What `collStats` says of a collection.
struct Size {
    name: String,
    documents: i64,
    bytes: i64,
    index_bytes: i64,
}

/// The typical one of some reads.
struct ReadCost {
    name: String,
    milliseconds: f64,
    documents: f64,
    bytes: f64,
}

/// What of the rules' data is measured: the same before and after.
pub(super) struct Measures {
    collections: Vec<Namespace>,
    read: Option<Read>,
}

impl Measures {
    /// Chosen while the data is as it was. What this user may not read is left out.
    pub(super) async fn choose(target: &Target, rules: &[&Rule], examples: &[bson::Bson]) -> Measures {
        let mut collections: Vec<Namespace> = Vec::new();
        for namespace in rules.iter().flat_map(|rule| rule.namespaces()) {
            if !collections.contains(namespace) {
                collections.push(namespace.clone());
            }
        }
        let read = match rules.first() {
            Some(rule) => reads::of(target, rule, examples).await,
            None => None,
        };
        Measures { collections, read }
    }

    pub(super) async fn before(&self, target: &Target) -> Figures {
        self.take(target, self.read.as_ref().map(|read| &read.before)).await
    }

    pub(super) async fn after(&self, target: &Target) -> Figures {
        self.take(target, self.read.as_ref().map(|read| &read.after)).await
    }

    async fn take(&self, target: &Target, pipelines: Option<&Vec<(Namespace, Vec<Document>)>>) -> Figures {
        let mut figures = Figures::default();
        for namespace in &self.collections {
            figures.collections.extend(size(target, namespace).await);
        }
        if let (Some(read), Some(pipelines)) = (&self.read, pipelines) {
            figures.read = cost(target, &read.name, pipelines).await;
        }
        figures
    }
}

/// None for a view, and for a collection that is not there.
async fn size(target: &Target, namespace: &Namespace) -> Option<Size> {
    let op = AdminOp::CollStats { ns: namespace.clone(), scale: 1 };
    let answers = target.backend().admin(&mut Session::default(), &compose::new_context(), op).await.ok()?;
    let mut all = Document::new();
    for answer in &answers {
        all.extend(Document::try_from(answer).ok()?);
    }
    let whole = |name: &str| match all.get(name) {
        #[expect(clippy::cast_possible_truncation, reason = "a number of bytes")]
        Some(bson::Bson::Double(number)) => *number as i64,
        _ => number(&all, name),
    };
    let (documents, bytes) = (whole("count"), whole("size"));
    let index_bytes = whole("totalIndexSize");
    let is_there = documents > 0 || bytes > 0;
    is_there.then(|| Size { name: namespace.collection.to_string(), documents, bytes, index_bytes })
}

/// The median of the reads; `None` if one of them fails.
async fn cost(target: &Target, name: &str, pipelines: &[(Namespace, Vec<Document>)]) -> Option<ReadCost> {
    let (mut times, mut documents, mut bytes) = (Vec::new(), 0_usize, 0_usize);
    for (namespace, stages) in pipelines {
        let began = Instant::now();
        let found = aggregate(target, namespace, stages).await.ok()?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        documents += found.len();
        bytes += found.iter().map(|doc| doc.as_bytes().len()).sum::<usize>();
    }
    times.sort_by(f64::total_cmp);
    let milliseconds = *times.get(times.len() / 2)?;
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    let each = |all: usize| all as f64 / times.len() as f64;
    Some(ReadCost { name: name.to_owned(), milliseconds, documents: each(documents), bytes: each(bytes) })
}

/// What the stages give, which must not write.
pub(super) async fn aggregate(target: &Target, ns: &Namespace, stages: &[Document]) -> Result<Vec<Doc<'static>>> {
    let stages: Vec<document::Value<'static>> =
        stages.iter().map(|stage| document::Value::Document(Doc::from(stage))).collect();
    let stages: Array<'static> = stages.into_iter().collect();
    let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
    let op = ReadOp::Aggregate(Aggregate {
        ns: ns.clone(),
        collectionless: false,
        pipeline,
        hint: None,
        allow_disk_use: true,
        collation: None,
    });
    let (backend, context, mut session) = (target.backend(), compose::new_context(), Session::default());
    let mut cursor = backend.read(&mut session, &context, op).await?;
    let mut all = Vec::new();
    loop {
        let batch = cursor.next(&mut session, &context, BATCH).await?;
        all.extend(batch.documents);
        if batch.exhausted {
            return Ok(all);
        }
    }
}

impl Figures {
    pub(super) fn to_json(&self) -> Value {
        let collections: Vec<Value> = self
            .collections
            .iter()
            .map(|size| {
                json!({ "collection": size.name, "documents": size.documents, "bytes": size.bytes, "index_bytes": size.index_bytes })
            })
            .collect();
        let read = self.read.as_ref().map(|read| {
            json!({ "name": read.name, "ms": read.milliseconds, "documents": read.documents, "bytes": read.bytes })
        });
        json!({ "collections": collections, "read": read })
    }
}

/// Both beside each other.
pub(super) fn compared(before: &Figures, after: &Figures) -> String {
    let mut names: Vec<&str> = Vec::new();
    for size in before.collections.iter().chain(&after.collections) {
        if !names.contains(&&*size.name) {
            names.push(&size.name);
        }
    }
    let mut rows = Vec::new();
    for name in names {
        let of = |figures: &'_ Figures, figure: fn(&Size) -> i64| {
            let size = figures.collections.iter().find(|size| size.name == name);
            size.map_or_else(|| "–".to_owned(), |size| grouped(figure(size)))
        };
        for (what, figure) in [
            ("documents", (|size| size.documents) as fn(&Size) -> i64),
            ("bytes", |size| size.bytes),
            ("index bytes", |size| size.index_bytes),
        ] {
            rows.push(vec![name.to_owned(), what.to_owned(), of(before, figure), of(after, figure)]);
        }
    }
    let read = before.read.as_ref().or(after.read.as_ref()).map(|read| read.name.clone());
    if let Some(name) = read {
        let of = |figures: &Figures, figure: fn(&ReadCost) -> String| {
            figures.read.as_ref().map_or_else(|| "–".to_owned(), figure)
        };
        for (what, figure) in [
            ("ms (median)", (|read| format!("{:.2}", read.milliseconds)) as fn(&ReadCost) -> String),
            ("bytes", |read| format!("{:.0}", read.bytes)),
        ] {
            rows.push(vec![name.clone(), what.to_owned(), of(before, figure), of(after, figure)]);
        }
    }
    table(&["", "", ">before", ">after"], rows)
}
