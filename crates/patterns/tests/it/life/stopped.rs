//! Stopped at every step: an apply, a change and a drop go on from wherever they were cut off.

use super::village::{COUNT, SUM, Village, declared};
use crate::harness::{context, insert, run};
use bson::doc;
use document::backend::{Abilities, Answer, Backend, Cursor, FenceKey, Mode, Session, Transaction};
use document::op::{AdminOp, Capture, Context, Explained, ReadOp, Verbosity, WriteOp, Written};
use document::{Code, Doc, Error, Result};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Answers so many operations and then none; the one where it ends is done or not, as chance has it in a crash.
struct Dying {
    inner: Arc<dyn Backend>,
    left: Arc<AtomicI64>,
}

fn dead() -> Error {
    Error::new(Code::InterruptedAtShutdown, "the process was killed")
}

fn live(left: &AtomicI64) -> Result<()> {
    if left.fetch_sub(1, Ordering::Relaxed) > 0 { Ok(()) } else { Err(dead()) }
}

impl Backend for Dying {
    fn abilities(&self) -> Abilities {
        self.inner.abilities()
    }
    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            self.inner.begin(session, context).await?;
            let left = self.left.clone();
            session.transaction =
                session.transaction.take().map(|inner| -> Box<dyn Transaction> { Box::new(Mortal { inner, left }) });
            Ok(())
        })
    }
    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        self.inner.read(session, context, op)
    }
    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written> {
        Box::pin(async move {
            live(&self.left)?;
            let written = self.inner.write(session, context, op, capture).await?;
            live(&self.left)?;
            Ok(written)
        })
    }
    fn fence<'a>(&'a self, session: &'a mut Session, key: &'a FenceKey, mode: Mode) -> Answer<'a, ()> {
        self.inner.fence(session, key, mode)
    }
    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        self.inner.explain(session, context, op, verbosity)
    }
    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        Box::pin(async move {
            live(&self.left)?;
            self.inner.admin(session, context, op).await
        })
    }
    fn cluster_time(&self) -> u64 {
        self.inner.cluster_time()
    }
}

struct Mortal {
    inner: Box<dyn Transaction>,
    left: Arc<AtomicI64>,
}

impl Transaction for Mortal {
    fn commit<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            live(&self.left)?;
            self.inner.commit(context).await?;
            live(&self.left)
        })
    }
    fn abort(self: Box<Self>) {
        self.inner.abort();
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self.inner.as_any_mut()
    }
}

/// One life that is cut off after so many operations: applies, changes and drops as far as it comes.
async fn cut_off(folder: tempfile::TempDir, after: i64) -> (tempfile::TempDir, bool) {
    let left = Arc::new(AtomicI64::new(after));
    let killer = left.clone();
    // A store that dies while it is being opened has done nothing yet.
    let path = folder;
    let village = Village::open(path, |inner| Arc::new(Dying { inner, left: killer })).await;
    let village = match village {
        Ok(village) => village,
        Err(_) => return (tempfile::tempdir().unwrap(), false),
    };
    let all = async {
        village.apply(COUNT).await?;
        let write = insert("reviews", vec![doc! { "productId": 1, "n": 5, "kind": "good" }]);
        village.layer.write(&mut Session::default(), &context(), &write, &Capture::Nothing).await?;
        village.apply(&COUNT.replace("by: productId", "by: productId, where: { kind: good }")).await?;
        village.ask("apply", doc! { "declaration": declared(SUM), "remove": true, "with_data": true }).await?;
        Ok::<_, Error>(())
    };
    let finished = all.await.is_ok();
    left.store(0, Ordering::Relaxed);
    (village.close().await, finished)
}

#[test]
fn whatever_was_cut_off_goes_on_from_the_catalog() {
    run(async {
        let mut tried = 0;
        // Every third step: opening a store takes its time, and neighbouring steps differ little.
        for after in (5..).step_by(3) {
            let village = Village::new().await;
            village.fill(6, 20).await;
            let (folder, finished) = cut_off(village.close().await, after).await;
            let village = Village::open(folder, |backend| backend).await.unwrap();
            // Clients write before anything goes on.
            if !village.find("products", doc! {}).await.is_empty() {
                village.write(insert("reviews", vec![doc! { "productId": 2, "n": 7, "kind": "good" }])).await;
            }
            village.life.settle("shop").await.unwrap();
            for (rule, state) in village.states().await {
                assert_eq!(state, "on", "{rule} after {after}");
            }
            village.assert_clean().await;
            village
                .ask("apply", doc! { "declaration": declared(SUM), "remove": true, "with_data": true })
                .await
                .unwrap();
            village.assert_clean().await;
            for product in village.find("products", doc! {}).await {
                assert!(!product.contains_key("reviewCount"), "{product} after {after}");
            }
            village.close().await;
            tried += 1;
            if finished {
                break;
            }
        }
        assert!(tried > 8, "{tried}");
    });
}
