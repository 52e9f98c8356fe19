//! What a backend across a network promises about flights: all of one is done or nothing is, also when the line is cut at any
//! byte of it.

use crate::words::{Place, context, new_session};
use bson::{Document, doc};
use document::backend::{Backend, Claim, FenceKey, FenceVersion, Flight, Landed, Leg, Mode, Session};
use document::op::{UpdateOp, UpdateStatement, WriteOp};
use document::update::Update;
use document::{Error, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A child, and one more on its parent: by an operator or by a pipeline.
fn legs(place: &Place, child: &str, parent: i32, pipeline: bool, must_match: bool) -> Vec<Leg> {
    let child = place.insert(vec![doc! { "_id": child }], true);
    let change = match pipeline {
        false => Value::from(bson::bson!({ "$inc": { "n": 1 } })),
        true => Value::from(bson::bson!([{ "$set": { "n": { "$add": ["$n", 1] } } }])),
    };
    let update = Update::parse(&change, &[], &mut document::pipeline::expr::Names::new()).unwrap();
    let filter = document::filter::Filter::equality("_id", &Value::Int32(parent));
    let statement = UpdateStatement { filter, update, multi: false, upsert: false, hint: None };
    let count = WriteOp::Update(UpdateOp::of(place.ns.clone(), vec![statement]));
    vec![Leg { op: child, must_match: false }, Leg { op: count, must_match }]
}

fn claim(place: &Place, session: [u8; 16], number: i64) -> Claim {
    Claim { session, number, statements: vec![0], n: 1, db: place.ns.db.clone() }
}

async fn fly(place: &Place, legs: Vec<Leg>, claims: Vec<Claim>) -> Result<Landed, Error> {
    let mut session = Session::default();
    let context = context();
    place.backend.begin(&mut session, &context).await?;
    let guarded = !claims.is_empty();
    let pipelining = place.backend.pipelining().unwrap();
    pipelining.fly(&mut session, &context, Flight { legs, claims, guarded }, None).await
}

async fn all(place: &Place) -> Vec<Document> {
    place.find(&mut Session::default(), doc! {}).await
}

/// Done as a whole, or refused as a whole with the reason.
pub(crate) async fn whole_or_not(backend: Arc<dyn Backend>, db: &str) {
    let place = Place::new(backend, db);
    testing::prepare(&*place.backend, db).await;
    place.must(place.insert(vec![doc! { "_id": 1, "n": 0 }], true)).await;
    let client = new_session();
    for (at, pipeline) in [false, true].into_iter().enumerate() {
        let number = i64::try_from(at).unwrap() + 1;
        let (first, second) = (format!("a{at}"), format!("b{at}"));
        let landed = fly(&place, legs(&place, &first, 1, pipeline, true), vec![claim(&place, client, number)]).await;
        assert!(matches!(&landed, Ok(Landed::Done(done)) if done.iter().all(|done| done.n == 1)), "{landed:?}");
        let before = all(&place).await;
        let landed = fly(&place, legs(&place, &first, 1, pipeline, true), vec![]).await;
        assert!(matches!(landed, Ok(Landed::Failed { leg: 0, index: 0, .. })), "{landed:?}");
        let landed = fly(&place, legs(&place, &second, 9, pipeline, true), vec![]).await;
        assert!(matches!(landed, Ok(Landed::Unmatched { leg: 1, index: 0, .. })), "{landed:?}");
        let landed = fly(&place, legs(&place, &second, 1, pipeline, true), vec![claim(&place, client, number)]).await;
        assert!(matches!(landed, Ok(Landed::Claimed { claim: 0 })), "{landed:?}");
        assert_eq!(all(&place).await, before);
        let landed = fly(&place, legs(&place, &second, 9, pipeline, false), vec![]).await;
        assert!(matches!(&landed, Ok(Landed::Done(done)) if done[1].n == 0), "{landed:?}");
    }
    assert_eq!(place.find(&mut Session::default(), doc! { "_id": 1 }).await, [doc! { "_id": 1, "n": 2 }]);
}

/// What was read at a version of its fence is relied on until somebody has had the fence to himself; also where the fences went
/// with their database and were made again.
pub(crate) async fn at_a_version(backend: Arc<dyn Backend>, db: &str) {
    let place = Place::new(backend.clone(), db);
    testing::prepare(&*backend, db).await;
    let (pipelining, context, key) = (backend.pipelining().unwrap(), context(), FenceKey::new(db, *b"a key"));
    let exclusive = async || {
        let mut session = Session::default();
        backend.begin(&mut session, &context).await.unwrap();
        backend.fences(&mut session, &[(key.clone(), Mode::Exclusive)]).await.unwrap();
        session.transaction.take().unwrap().commit(&context).await.unwrap();
    };
    let version = async || {
        let mut session = Session::default();
        backend.begin(&mut session, &context).await.unwrap();
        let versions = pipelining.versions(&mut session, &context, std::slice::from_ref(&key)).await.unwrap();
        assert_eq!(versions.len(), 1);
        versions[0]
    };
    let fly_at = async |version: FenceVersion, id: i32| {
        let mut session = Session::default();
        backend.begin(&mut session, &context).await.unwrap();
        pipelining.fence_at(&mut session, &key, version).await.unwrap();
        let legs = vec![Leg { op: place.insert(vec![doc! { "_id": id }], true), must_match: false }];
        pipelining.fly(&mut session, &context, Flight { legs, claims: vec![], guarded: false }, None).await
    };
    assert_eq!(version().await, None, "nobody has had it");
    exclusive().await;
    let first = version().await.unwrap();
    for id in 1..=3 {
        let landed = fly_at(first, id).await;
        assert!(matches!(landed, Ok(Landed::Done(_))), "{landed:?}");
    }
    exclusive().await;
    let second = version().await.unwrap();
    assert_ne!(first, second);
    let landed = fly_at(first, 4).await;
    assert!(matches!(landed, Ok(Landed::Outdated)), "{landed:?}");
    let landed = fly_at(second, 5).await;
    assert!(matches!(landed, Ok(Landed::Done(_))), "{landed:?}");

    // An exclusive pass that is not committed yet is in the way; nothing is relied on beside it.
    let mut changing = Session::default();
    backend.begin(&mut changing, &context).await.unwrap();
    backend.fences(&mut changing, &[(key.clone(), Mode::Exclusive)]).await.unwrap();
    let error = fly_at(second, 6).await.unwrap_err();
    assert_eq!(error.code(), document::Code::WriteConflict, "{error:?}");
    changing.transaction.take().unwrap().commit(&context).await.unwrap();
    let landed = fly_at(second, 6).await;
    assert!(matches!(landed, Ok(Landed::Outdated)), "{landed:?}");
    let ids: Vec<i32> = all(&place).await.iter().map(|doc| doc.get_i32("_id").unwrap()).collect();
    assert_eq!(ids, [1, 2, 3, 5]);

    let drop = document::op::AdminOp::DropDatabase { db: db.into() };
    backend.admin(&mut Session::default(), &context, drop).await.unwrap();
    let landed = fly_at(second, 7).await;
    assert!(matches!(landed, Ok(Landed::Outdated)), "{landed:?}");
}

/// A way to a server that ends after so many more bytes to it, or back from it.
struct Cut {
    port: u16,
    there: Arc<AtomicI64>,
    back: Arc<AtomicI64>,
}

impl Cut {
    async fn to(server: String) -> Cut {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (there, back) = (Arc::new(AtomicI64::new(i64::MAX)), Arc::new(AtomicI64::new(i64::MAX)));
        let left = (there.clone(), back.clone());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                let ((from, to), (back_from, back_to)) = (client.into_split(), server.into_split());
                let (there, back) = left.clone();
                tokio::spawn(async move {
                    tokio::select! {
                        () = pass(from, back_to, &there) => {}
                        () = pass(back_from, to, &back) => {}
                    }
                });
            }
        });
        Cut { port, there, back }
    }
}

async fn pass(mut from: impl AsyncReadExt + Unpin, mut to: impl AsyncWriteExt + Unpin, left: &AtomicI64) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let length = i64::try_from(read).unwrap();
        let before = left.fetch_sub(length, Ordering::SeqCst);
        if before < length {
            let _ = to.write_all(&buffer[..usize::try_from(before.max(0)).unwrap()]).await;
            // What arrived is worked on before anybody asks about it; and the way is whole again.
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            left.store(i64::MAX, Ordering::SeqCst);
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// A line that is cut within a flight: the child and its parent's count agree, and so does what was answered.
pub(crate) async fn cut_anywhere(uri: &str, db: &str) {
    let server = uri.trim_start_matches("mongodb://").split('/').next().unwrap().to_owned();
    let cut = Cut::to(server).await;
    let through = format!("mongodb://127.0.0.1:{}/?directConnection=true", cut.port);
    let place = Place::new(Arc::new(crate::open(&through).await), db);
    testing::prepare(&*place.backend, db).await;
    place.must(place.insert(vec![doc! { "_id": 0 }], true)).await;
    let client = new_session();
    let mut number = 0;
    let mut seen = [0; 3];
    for back in [false, true] {
        for at in (1..1200).step_by(83) {
            for claims in [false, true] {
                number += 1;
                place.must(place.insert(vec![doc! { "_id": number, "n": 0 }], true)).await;
                let child = format!("child of {number}");
                // The line that will be flown on is there already.
                all(&place).await;
                if back { &cut.back } else { &cut.there }.store(at, Ordering::SeqCst);
                let claims = claims.then(|| claim(&place, client, i64::from(number))).into_iter().collect();
                let landed = fly(&place, legs(&place, &child, number, false, true), claims).await;
                cut.there.store(i64::MAX, Ordering::SeqCst);
                cut.back.store(i64::MAX, Ordering::SeqCst);
                let mut rows = Vec::new();
                for id in [bson::Bson::from(number), child.into()] {
                    // A line that broke behind the flight is opened again by the next command.
                    rows.push(found(&place, doc! { "_id": id }).await);
                }
                let counted = rows[0][0].get_i32("n").unwrap();
                assert_eq!(counted, i32::try_from(rows[1].len()).unwrap(), "cut at {at}, back {back}: half a write");
                match landed {
                    Ok(Landed::Done(_)) => assert_eq!(counted, 1, "cut at {at}, back {back}: said to be done"),
                    Ok(other) => panic!("cut at {at}, back {back}: {other:?}"),
                    Err(error) if error.labels().contains(&"TransientTransactionError") => {
                        assert_eq!(counted, 0, "cut at {at}, back {back}: said not to be done: {error:?}");
                    }
                    Err(error) => assert!(error.labels().contains(&"UnknownTransactionCommitResult"), "{error:?}"),
                }
                seen[usize::try_from(counted).unwrap()] += 1;
            }
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "cuts on both sides of the commit: {seen:?}");
}

async fn found(place: &Place, filter: Document) -> Vec<Document> {
    for _ in 0..20 {
        let op = document::op::ReadOp::Find(place.find_op(filter.clone()));
        if let Ok(rows) = place.rows(&mut Session::default(), op, 10).await {
            return rows.concat();
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the server is gone");
}
