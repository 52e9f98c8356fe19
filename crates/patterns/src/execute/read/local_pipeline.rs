//! A pipeline run in this process over rows that come from a backend across a network.
//!
//! Few rows that all come at once are run through at once. For more, stages pull and do not wait, but the backend is waited
//! for: while a batch is made, the stages run on a thread of their own and ask for more rows by a message. Between two
//! batches no thread is held.

use crate::execute::read::others::OtherCollections;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::filter::{Filter, Node};
use document::op::Context;
use document::pipeline::{Collections, Pipeline, Role, Rows, Run, Stream, from_documents, results};
use document::{Code, Doc, Env, Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

type Interrupt = Arc<dyn Fn() -> Result<()> + Send + Sync>;

/// How many rows are asked for behind the first.
const NEXT_ROWS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// Rows of so many bytes are run through without a thread of their own.
const MAX_BYTES_WITHOUT_THREAD: usize = 256 << 10;

/// Stages, besides those that the optimiser knows, whose work is in proportion to their rows.
const PLAIN: [&str; 3] = ["$group", "$_internalPleachExpand", "$_internalPleachUnpackInOrder"];

/// The first rows of a cursor, so many if there are.
pub(super) async fn first(
    inner: &mut dyn Cursor,
    session: &mut Session,
    context: &Context,
    documents: usize,
) -> Result<Batch> {
    inner.next(session, context, BatchLimit { documents, bytes: BATCH_BYTES }).await
}

/// Runs a pipeline over `first` and what `inner` gives behind it.
pub(super) fn start(
    inner: Box<dyn Cursor>,
    first: Batch,
    pipeline: &Pipeline,
    context: &Context,
    others: Option<Arc<dyn OtherCollections>>,
) -> Result<Box<dyn Cursor>> {
    let interrupt = Arc::new(Mutex::new(context.env.interrupt.clone()));
    let current = interrupt.clone();
    let env = Env {
        interrupt: Arc::new(move || {
            let interrupt = current.lock().clone();
            interrupt()
        }),
        ..context.env.clone()
    };
    let (want, wanted) = unbounded_channel();
    let collections: Arc<dyn Collections> = match others {
        Some(_) => Arc::new(AskedFor { want: want.clone() }),
        None => Arc::new(NoOthers),
    };
    let run = Run { env, collections };
    let running = |rows| -> Result<Option<Running>> {
        Ok(Some(Running { rows: results(pipeline.start(rows, &run)?), ahead: None, ended: false }))
    };
    let bytes: usize = first.documents.iter().map(|doc| doc.as_bytes().len()).sum();
    if first.exhausted && bytes <= MAX_BYTES_WITHOUT_THREAD && is_plain(pipeline) {
        return Ok(Box::new(CompleteCursor { running: running(from_documents(first.documents))?, interrupt }));
    }
    let (supply, supplied) = unbounded_channel();
    let input = Supplied { want, supplied, batch: first.documents.into_iter(), ended: first.exhausted };
    Ok(Box::new(LocalCursor { inner, running: running(Box::new(input))?, wanted, supply, others, interrupt }))
}

/// Whether a few rows cannot become much work.
fn is_plain(pipeline: &Pipeline) -> bool {
    pipeline.stages.iter().all(|stage| match stage.role() {
        Role::Match(_) | Role::Sort(_) | Role::Skip(_) | Role::Limit(_) | Role::Transform(_) => true,
        Role::Source => false,
        Role::Other => PLAIN.contains(&stage.name()),
    })
}

fn failed() -> Error {
    Error::new(Code::CursorNotFound, "the cursor has failed")
}

/// All rows are there.
struct CompleteCursor {
    /// `None` after a failure.
    running: Option<Running>,
    /// Of the command that asked for the current batch.
    interrupt: Arc<Mutex<Interrupt>>,
}

impl Cursor for CompleteCursor {
    fn next<'a>(&'a mut self, _: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let running = self.running.take().ok_or_else(failed)?;
            *self.interrupt.lock() = context.env.interrupt.clone();
            let (running, batch) = running.batch(limit);
            let batch = batch?;
            self.running = Some(running);
            Ok(batch)
        })
    }
}

struct LocalCursor {
    inner: Box<dyn Cursor>,
    /// `None` after a failure.
    running: Option<Running>,
    wanted: UnboundedReceiver<Wanted>,
    supply: UnboundedSender<Result<Batch>>,
    /// Where stages read other collections; `None` if none does.
    others: Option<Arc<dyn OtherCollections>>,
    /// Of the command that asked for the current batch.
    interrupt: Arc<Mutex<Interrupt>>,
}

impl Cursor for LocalCursor {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let gone = |_| Error::new(Code::InternalError, "a pipeline stopped before its end");
            let running = self.running.take().ok_or_else(failed)?;
            *self.interrupt.lock() = context.env.interrupt.clone();
            let mut running = tokio::task::spawn_blocking(move || running.batch(limit));
            loop {
                tokio::select! {
                    biased;
                    made = &mut running => {
                        let (running, batch) = made.map_err(gone)?;
                        let batch = batch?;
                        self.running = Some(running);
                        return Ok(batch);
                    }
                    // If nobody takes what was wanted, the thread has ended and is met above.
                    Some(wanted) = self.wanted.recv() => match wanted {
                        Wanted::Rows => {
                            let limit = BatchLimit { documents: NEXT_ROWS, bytes: BATCH_BYTES };
                            let batch = self.inner.next(session, context, limit).await;
                            let _ = self.supply.send(batch);
                        }
                        Wanted::Other { collection, filter, reply } => {
                            let found = match &self.others {
                                Some(others) => others.read(session, context, &collection, *filter).await,
                                None => Err(unread(&collection)),
                            };
                            let _ = reply.send(found);
                        }
                    },
                }
            }
        })
    }
}

/// The running pipeline.
struct Running {
    rows: Rows,
    /// Did not fit into the last batch.
    ahead: Option<Doc<'static>>,
    ended: bool,
}

impl Running {
    fn batch(mut self, limit: BatchLimit) -> (Running, Result<Batch>) {
        let batch = self.fill(limit);
        (self, batch)
    }

    /// At least one document is given, however large.
    fn fill(&mut self, limit: BatchLimit) -> Result<Batch> {
        let (mut documents, mut bytes) = (Vec::new(), 0);
        while documents.len() < limit.documents {
            let next = match self.ahead.take() {
                Some(doc) => Some(doc),
                None if self.ended => None,
                None => self.rows.next()?,
            };
            let Some(doc) = next else {
                self.ended = true;
                break;
            };
            bytes += doc.as_bytes().len();
            if bytes > limit.bytes && !documents.is_empty() {
                self.ahead = Some(doc);
                break;
            }
            documents.push(doc);
        }
        self.rows.pause();
        Ok(Batch { documents, exhausted: self.ended && self.ahead.is_none() })
    }
}

/// Rows that are sent for when they are wanted.
struct Supplied {
    want: UnboundedSender<Wanted>,
    supplied: UnboundedReceiver<Result<Batch>>,
    batch: std::vec::IntoIter<Doc<'static>>,
    ended: bool,
}

impl Stream for Supplied {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        loop {
            if let Some(doc) = self.batch.next() {
                return Ok(Some(doc));
            }
            if self.ended {
                return Ok(None);
            }
            self.want.send(Wanted::Rows).map_err(|_| left())?;
            let batch = self.supplied.blocking_recv().ok_or_else(left)?.inspect_err(|_| self.ended = true)?;
            self.ended = batch.exhausted;
            self.batch = batch.documents.into_iter();
        }
    }

    fn pause(&mut self) {}
}

/// What the stages wait for.
enum Wanted {
    Rows,
    Other { collection: String, filter: Box<Filter>, reply: oneshot::Sender<Result<Vec<Doc<'static>>>> },
}

fn left() -> Error {
    Error::new(Code::CursorKilled, "the client has left")
}

fn unread(collection: &str) -> Error {
    Error::new(Code::InternalError, format!("'{collection}' cannot be read from here"))
}

/// Other collections, asked for by a message from the thread of the stages.
#[derive(Clone)]
struct AskedFor {
    want: UnboundedSender<Wanted>,
}

impl Collections for AskedFor {
    fn open(&self, collection: &str, pipeline: &Pipeline, env: &Env) -> Result<Rows> {
        // Conditions with variables of the pipeline are tested here.
        let mut nodes = Vec::new();
        let leading = pipeline.split().leading.filter;
        leading.root.each_required_field(&mut |path, test| {
            nodes.push(Node::Field { path: path.clone(), test: test.clone() });
        });
        let (reply, answer) = oneshot::channel();
        let filter = Box::new(Filter::from_node(Node::all_of(nodes)));
        self.want.send(Wanted::Other { collection: collection.to_owned(), filter, reply }).map_err(|_| left())?;
        let found = answer.blocking_recv().map_err(|_| left())??;
        pipeline.start(from_documents(found), &Run { env: env.clone(), collections: Arc::new(self.clone()) })
    }
}

/// Pipelines that name other collections are not run in this process, unless somebody reads these.
struct NoOthers;

impl Collections for NoOthers {
    fn open(&self, collection: &str, _: &Pipeline, _: &Env) -> Result<Rows> {
        Err(unread(collection))
    }
}
