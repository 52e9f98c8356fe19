//! All reads of the advisor: each bounded, each ended when it is told to stop. Nothing here writes.

use crate::options::{Cancel, Options};
use document::backend::{Backend, BatchLimit, Session};
use document::filter::Filter;
use document::op::{AdminOp, Aggregate, Context, Find, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Doc, Result};
use std::time::{Duration, Instant};

/// What is taken of a cursor at once.
const BATCH: BatchLimit = BatchLimit { documents: 1_000, bytes: 4 << 20 };

/// One read that is not answered within this time is given up: the server has other work.
const LONGEST_READ: Duration = Duration::from_secs(60);

/// How much of an answer is taken.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    pub documents: u64,
    pub bytes: u64,
}

impl Bound {
    pub fn documents(documents: u64) -> Bound {
        Bound { documents, bytes: 8 << 20 }
    }
}

/// The backend, and what bounds reads of it.
pub struct Reader<'b> {
    backend: &'b dyn Backend,
    context: Context,
    pub cancel: Cancel,
}

impl<'b> Reader<'b> {
    pub fn new(backend: &'b dyn Backend, context: Context, options: &Options) -> Reader<'b> {
        Reader { backend, context, cancel: options.cancel.clone() }
    }

    /// Milliseconds since 1970.
    pub fn now(&self) -> i64 {
        self.context.env.now
    }

    /// Gives each document to `visit` until it says stop, and says whether the answer was seen to its end.
    pub async fn each(&self, op: ReadOp, visit: &mut (dyn FnMut(Doc<'static>) -> bool + Send)) -> Result<bool> {
        let context = Context { deadline: Some(Instant::now() + LONGEST_READ), ..self.context.clone() };
        let mut session = Session::default();
        let mut cursor = self.backend.read(&mut session, &context, op).await?;
        loop {
            let batch = cursor.next(&mut session, &context, BATCH).await?;
            for doc in batch.documents {
                if !visit(doc) {
                    return Ok(false);
                }
            }
            if batch.exhausted {
                return Ok(true);
            }
            if self.cancel.is_set() {
                return Ok(false);
            }
        }
    }

    /// The documents of an answer, up to a bound.
    pub async fn some(&self, op: ReadOp, bound: Bound) -> Result<Vec<Doc<'static>>> {
        let (mut all, mut bytes) = (Vec::new(), 0);
        self.each(op, &mut |doc| {
            bytes += doc.as_bytes().len() as u64;
            all.push(own(&doc));
            (all.len() as u64) < bound.documents && bytes < bound.bytes
        })
        .await?;
        Ok(all)
    }

    pub async fn find(&self, find: Find, bound: Bound) -> Result<Vec<Doc<'static>>> {
        let limit = Some(find.limit.unwrap_or(u64::MAX).min(bound.documents));
        self.some(ReadOp::Find(Find { limit, ..find }), bound).await
    }

    /// The documents that match, by a filter as it is written in a query.
    pub async fn matching(&self, ns: &Namespace, filter: &Doc<'_>, bound: Bound) -> Result<Vec<Doc<'static>>> {
        let filter = Filter::parse(filter, &mut Names::new())?;
        self.find(Find::matching(ns.clone(), filter), bound).await
    }

    /// What the stages give. They must not write.
    pub async fn aggregate(&self, ns: &Namespace, stages: &Array<'_>, bound: Bound) -> Result<Vec<Doc<'static>>> {
        self.some(aggregate(ns, stages)?, bound).await
    }

    pub async fn admin(&self, op: AdminOp) -> Result<Vec<Doc<'static>>> {
        self.backend.admin(&mut Session::default(), &self.context, op).await
    }
}

pub fn aggregate(ns: &Namespace, stages: &Array<'_>) -> Result<ReadOp> {
    let pipeline = Pipeline::parse(stages, &mut Names::new())?;
    Ok(ReadOp::Aggregate(Aggregate {
        ns: ns.clone(),
        collectionless: false,
        pipeline,
        hint: None,
        allow_disk_use: true,
        collation: None,
    }))
}

/// A document with bytes of its own: one that shares those of its batch would keep all of them.
pub fn own(doc: &Doc<'_>) -> Doc<'static> {
    Doc::trusted(doc.as_bytes()).into_owned()
}
