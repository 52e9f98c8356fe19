//! Rows of a cursor into a reply, and what is left of it into the registry.

use crate::cursors::OpenCursor;
use crate::dispatch::Call;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::op::{Context, ReadConcern, ReadOp};
use document::raw::kind;
use document::{Code, Doc, Error, Result, Value};
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// How many documents the first batch has unless the client says otherwise.
const FIRST_BATCH: usize = 101;

/// How many bytes of documents go into one reply.
const MAX_BYTES: usize = wire::limits::MAX_DOCUMENT;

/// What an array element takes besides its document: a type byte, the digits of its index, a NUL.
const ELEMENT: usize = 10;

/// What errors of a pipeline that is running begin with …
pub(crate) const AGGREGATING: &str = "PlanExecutor error during aggregation :: caused by :: ";
/// … and those of a find.
pub(crate) const FINDING: &str = "Executor error during find command :: caused by :: ";
const GETTING_MORE: &str = "Executor error during getMore :: caused by :: ";

/// How the first batch of a cursor is made.
#[derive(Default)]
pub(crate) struct First {
    /// What errors begin with.
    pub(crate) doing: &'static str,
    pub(crate) namespace: String,
    pub(crate) size: Option<u64>,
    /// The cursor ends with this batch, whatever is left.
    pub(crate) single: bool,
    /// Rows after which the backend has nothing left: the cursor is closed with the last of them.
    pub(crate) limit: Option<u64>,
    pub(crate) never_expires: bool,
}

/// Opens the cursor of a command that only reads.
pub(crate) async fn open(call: &mut Call<'_>, op: ReadOp) -> Result<Box<dyn Cursor>> {
    let cursor = call.server.backend.read(&mut call.session, &call.context, op).await;
    cursor.inspect_err(|error| call.source_moved = is_moved(error))
}

/// The first rows of a command that only reads.
async fn first_rows(call: &mut Call<'_>, cursor: &mut dyn Cursor, limit: BatchLimit) -> Result<Batch> {
    let batch = cursor.next(&mut call.session, &call.context, limit).await;
    batch.inspect_err(|error| call.source_moved = is_moved(error))
}

/// Whether the collection was renamed or dropped while it was read.
fn is_moved(error: &Error) -> bool {
    error.code() == Code::QueryPlanKilled
}

/// Writes `cursor: { firstBatch, id, ns }`; keeps the cursor if it has more.
pub(crate) async fn first(call: &mut Call<'_>, mut cursor: Box<dyn Cursor>, how: First) -> Result<()> {
    let size = how.size.map_or(FIRST_BATCH, |size| usize::try_from(size).unwrap_or(usize::MAX));
    let batch = if size == 0 {
        Batch::default()
    } else {
        let limit = BatchLimit { documents: size, bytes: MAX_BYTES };
        first_rows(call, &mut *cursor, limit).await.map_err(|error| error.context(how.doing))?
    };
    let returned = u64::try_from(batch.documents.len()).unwrap_or(u64::MAX);
    let mut open = OpenCursor {
        id: 0,
        namespace: how.namespace,
        owner: call.owner(),
        cursor,
        exhausted: batch.exhausted || how.limit.is_some_and(|limit| returned >= limit),
        pending: batch.documents.into(),
        read_concern: call.context.read_concern,
        never_expires: how.never_expires,
        told: None,
    };
    call.reply.fields().start_document("cursor");
    write_rows(call, "firstBatch", &mut open);
    let read_at = read_at(call);
    if how.single || is_done(&open) {
        write_end(call, 0, &open.namespace);
    } else {
        let namespace = open.namespace.clone();
        open.told = call.server.backend.cursor_open(&namespace);
        let id = call.server.cursors.open(open);
        write_end(call, id, &namespace);
    }
    let fields = call.reply.fields();
    if let Some(time) = read_at {
        fields.append("atClusterTime", &Value::Timestamp(time));
    }
    fields.end();
    Ok(())
}

/// The `atClusterTime` of a read outside a transaction that asks for a snapshot: what a server behind said, else the time that we
/// read at.
pub(crate) fn read_at(call: &Call<'_>) -> Option<u64> {
    if call.context.read_concern != ReadConcern::Snapshot || call.session.transaction.is_some() {
        return None;
    }
    let told = call.context.sent.read_at.as_ref().map_or(0, |told| told.load(Ordering::Relaxed));
    Some(if told == 0 { call.context.env.cluster_time } else { told })
}

/// Writes `cursor: { nextBatch, id, ns }` for a getMore; gives the cursor back if it has more.
pub(crate) async fn next(call: &mut Call<'_>, mut open: Box<OpenCursor>, size: Option<u64>) -> Result<()> {
    let documents =
        size.filter(|size| *size > 0).map_or(usize::MAX, |size| usize::try_from(size).unwrap_or(usize::MAX));
    call.context.read_concern = open.read_concern;
    if !open.exhausted && open.pending.len() < documents {
        let room = open.pending.iter().map(|doc| doc.as_bytes().len()).sum::<usize>();
        let limit = BatchLimit { documents: documents - open.pending.len(), bytes: MAX_BYTES.saturating_sub(room) };
        if limit.bytes > 0 {
            let result = open.cursor.next(&mut call.session, &call.context, limit).await;
            match result {
                Ok(batch) => {
                    open.exhausted = batch.exhausted;
                    open.pending.extend(batch.documents);
                }
                Err(error) => {
                    call.server.cursors.kill(open.id);
                    // What a cursor reads has gone: MongoDB says so without more words.
                    return Err(if is_moved(&error) { error } else { error.context(GETTING_MORE) });
                }
            }
        }
    }
    call.reply.fields().start_document("cursor");
    write_rows(call, "nextBatch", &mut open);
    let namespace = open.namespace.clone();
    let id = if is_done(&open) {
        call.server.cursors.kill(open.id);
        0
    } else {
        let id = open.id;
        call.server.cursors.give_back(open);
        id
    };
    call.reply.fields().append("id", &Value::Int64(id)).append("ns", &Value::from(namespace)).end();
    Ok(())
}

fn write_end(call: &mut Call<'_>, id: i64, namespace: &str) {
    call.reply.fields().append("id", &Value::Int64(id)).append("ns", &Value::from(namespace));
}

fn is_done(open: &OpenCursor) -> bool {
    open.exhausted && open.pending.is_empty()
}

/// Copies rows into the reply, once, as far as they fit; at least one.
fn write_rows(call: &mut Call<'_>, name: &str, open: &mut OpenCursor) {
    let fields = call.reply.fields();
    fields.start_array(name);
    let start = fields.len();
    let mut index = 0;
    while let Some(doc) = open.pending.front() {
        let bytes = doc.as_bytes();
        if index > 0 && fields.len() - start + bytes.len() + ELEMENT > MAX_BYTES {
            break;
        }
        fields.append_raw_at(index, kind::DOCUMENT, bytes);
        open.pending.pop_front();
        index += 1;
    }
    fields.end();
}

/// Writes the reply of a command that lists things: `cursor: { id, ns, firstBatch }`.
pub(crate) fn list(call: &mut Call<'_>, namespace: String, documents: Vec<Doc<'static>>, size: Option<u64>) {
    let mut rest: VecDeque<Doc<'static>> = documents.into();
    let size = size.map_or(usize::MAX, |size| usize::try_from(size).unwrap_or(usize::MAX));
    let (mut shown, mut bytes) = (0, 0);
    for doc in rest.iter().take(size) {
        bytes += doc.as_bytes().len() + ELEMENT;
        if shown > 0 && bytes > MAX_BYTES {
            break;
        }
        shown += 1;
    }
    let later = rest.split_off(shown);
    // As in MongoDB, a batch of size 0 leaves the cursor open even if there is nothing.
    let id = if later.is_empty() && size > 0 {
        0
    } else {
        call.server.cursors.open(OpenCursor {
            id: 0,
            namespace: namespace.clone(),
            owner: call.owner(),
            cursor: Box::new(Listed),
            pending: later,
            exhausted: true,
            read_concern: ReadConcern::Local,
            never_expires: false,
            told: None,
        })
    };
    let fields = call.reply.fields();
    fields.start_document("cursor");
    fields.append("id", &Value::Int64(id)).append("ns", &Value::from(namespace));
    fields.start_array("firstBatch");
    for (index, doc) in rest.iter().enumerate() {
        fields.append_raw_at(index, kind::DOCUMENT, doc.as_bytes());
    }
    fields.end().end();
}

/// The cursor of a list that is already there, in `pending`.
struct Listed;

impl Cursor for Listed {
    fn next<'a>(&'a mut self, _: &'a mut Session, _: &'a Context, _: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(std::future::ready(Ok(Batch { documents: Vec::new(), exhausted: true })))
    }
}

/// The one document that a count or distinct answers with.
pub(crate) async fn only(call: &mut Call<'_>, op: ReadOp) -> Result<Doc<'static>> {
    let mut cursor = open(call, op).await?;
    let limit = BatchLimit { documents: 1, bytes: usize::MAX };
    let batch = first_rows(call, &mut *cursor, limit).await?;
    Ok(batch.documents.into_iter().next().unwrap_or_else(Doc::empty))
}
