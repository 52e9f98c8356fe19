//! Short words for what the scripts' tests do with the backend.

use crate::mongo::ScriptedMongo;
use crate::step::{Step, expect};
use bson::{Bson, Document, doc};
use document::backend::{
    Backend, Batch, BatchLimit, Claim, Cursor, FenceKey, Flight, Joined, Landed, Leg, Mode, Remote, Session,
};
use document::op::{Capture, Context, Namespace, ReadOp, WriteOp, Written};
use document::{Error, Result};
use pleach_upstream::{Upstream, Uri};
use std::time::{Duration, Instant};
pub(crate) use testing::context;

pub(crate) const TRANSIENT: &str = "TransientTransactionError";
pub(crate) const RETRYABLE: &str = "RetryableWriteError";
pub(crate) const UNKNOWN: &str = "UnknownTransactionCommitResult";

pub(crate) const CLIENT: [u8; 16] = [7; 16];

pub(crate) async fn open(uri: &str) -> Result<Upstream> {
    Upstream::open(Uri::parse(uri).unwrap()).await
}

/// Why the backend cannot be opened. On a busy machine a server may be heard too late: it is asked a few times for this reason.
pub(crate) async fn refusal(uri: &str, reason: &str) -> Error {
    for _ in 0..9 {
        let error = open(uri).await.err().unwrap();
        if error.message().contains(reason) {
            return error;
        }
    }
    open(uri).await.err().unwrap()
}

/// A primary with this script, and the backend that is connected to it.
pub(crate) async fn with_script(steps: impl IntoIterator<Item = Step>) -> (ScriptedMongo, Upstream) {
    let mongo = ScriptedMongo::primary().await;
    mongo.script(steps);
    let upstream = open(&mongo.uri()).await.unwrap();
    (mongo, upstream)
}

/// As [`with_script`], where fences and retry records of `shop` are known to be there.
pub(crate) async fn with_fences(steps: impl IntoIterator<Item = Step>) -> (ScriptedMongo, Upstream) {
    let (mongo, upstream) = with_script(preparing()).await;
    upstream.prepare(&mut Session::default(), "shop").await.unwrap();
    mongo.played().await;
    mongo.script(steps);
    (mongo, upstream)
}

/// The commands that find out that a database has its fences.
pub(crate) fn preparing() -> [Step; 2] {
    [
        expect("count").on("shop").with(doc! { "count": "pleach.fences" }).answer(doc! { "n": 8192 }),
        expect("createIndexes"),
    ]
}

pub(crate) fn orders() -> Namespace {
    Namespace::new("shop", "orders")
}

pub(crate) fn insert(id: impl Into<Bson>) -> WriteOp {
    testing::insert(orders(), vec![doc! { "_id": id }])
}

/// Counts `n` of an order up.
pub(crate) fn increment(id: i32) -> WriteOp {
    testing::update(orders(), doc! { "_id": { "$eq": id } }, doc! { "$inc": { "n": 1 } }, &[])
}

pub(crate) fn all_orders() -> ReadOp {
    ReadOp::Find(testing::find(orders(), doc! {}))
}

pub(crate) async fn write(upstream: &Upstream, session: &mut Session, op: WriteOp) -> Result<Written> {
    upstream.write(session, &context(), &op, &Capture::Nothing).await
}

/// Writes and captures what changed.
pub(crate) async fn capture(upstream: &Upstream, session: &mut Session, op: WriteOp) -> Result<Written> {
    upstream.write(session, &context(), &op, &Capture::Everything).await
}

pub(crate) async fn next(cursor: &mut dyn Cursor, documents: usize) -> Result<Batch> {
    cursor.next(&mut Session::default(), &context(), BatchLimit { documents, bytes: 1 << 20 }).await
}

/// Begins a transaction of the backend's own.
pub(crate) async fn begin(upstream: &Upstream) -> Session {
    begin_in(upstream, Session::default()).await
}

pub(crate) async fn begin_in(upstream: &Upstream, mut session: Session) -> Session {
    upstream.begin(&mut session, &context()).await.unwrap();
    session
}

/// A statement of a client's transaction on the client's own line.
pub(crate) fn joined(upstream: &Upstream, number: i64, first: bool) -> Session {
    Session {
        id: Some(CLIENT),
        joined: Some(Joined { number, first }),
        relay: Some(upstream.connect()),
        ..Session::default()
    }
}

pub(crate) async fn commit(session: &mut Session) -> Result<()> {
    commit_with(session, &context()).await
}

pub(crate) async fn commit_with(session: &mut Session, context: &Context) -> Result<()> {
    session.transaction.take().unwrap().commit(context).await
}

/// The client's `maxTimeMS`.
pub(crate) fn within(milliseconds: u64) -> Context {
    Context { deadline: Some(Instant::now() + Duration::from_millis(milliseconds)), ..context() }
}

pub(crate) async fn fence(upstream: &Upstream, session: &mut Session, key: &str, mode: Mode) -> Result<()> {
    upstream.fences(session, &[(FenceKey::new("shop", key), mode)]).await
}

pub(crate) fn leg(op: WriteOp) -> Leg {
    Leg { op, must_match: false }
}

/// The claim of a client's write of one statement.
pub(crate) fn claim(number: i64) -> Claim {
    Claim { session: CLIENT, number, statements: vec![0], n: 1, db: "shop".into() }
}

/// Sends a plan in one go.
pub(crate) async fn send(
    upstream: &Upstream,
    session: &mut Session,
    legs: Vec<Leg>,
    claims: Vec<Claim>,
) -> Result<Landed> {
    let guarded = !claims.is_empty();
    let flight = Flight { legs, claims, guarded };
    upstream.pipelining().unwrap().fly(session, &context(), flight, None).await
}

/// Code and labels.
pub(crate) fn code_and_labels(error: &Error) -> (i32, Vec<&str>) {
    (error.code().number(), error.labels().to_vec())
}

pub(crate) fn cursor(id: i64, batch: &str, ids: &[i32]) -> Document {
    let rows: Vec<Document> = ids.iter().map(|id| doc! { "_id": id }).collect();
    doc! { "cursor": { "id": id, "ns": "shop.orders", batch: rows } }
}

pub(crate) fn ids(batch: &Batch) -> Vec<i32> {
    let id = |doc| Document::try_from(doc).unwrap().get_i32("_id").unwrap();
    batch.documents.iter().map(id).collect()
}

/// Waits for what happens by itself, soon.
pub(crate) async fn until(happened: impl Fn() -> bool) {
    let waiting = async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap();
}
