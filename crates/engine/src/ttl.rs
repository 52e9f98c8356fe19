//! Expiry: documents whose date in a TTL index is past are deleted through the ordinary write path, or through the layer
//! around the engine, if there is one, so that it sees these deletes too (SEMANTICS R7). One thread.

use crate::catalog::{Collection, Index};
use crate::engine::{Engine, Inner};
use crate::write;
use document::backend::{Backend, Session};
use document::filter::{Filter, Node, Test};
use document::op::{Capture, Context, Delete, DeleteStatement, Durability, Hint, ReadConcern, Sent, WriteOp};
use document::{Code, Env, Error, Result, Value};
use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[derive(Default)]
pub(crate) struct Ttl {
    stop: Arc<Stop>,
    /// Whom expired documents are deleted through.
    through: Mutex<Option<Weak<dyn Backend>>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

#[derive(Default)]
struct Stop {
    asked: Mutex<bool>,
    wake: Condvar,
}

impl Engine {
    /// From now on expired documents are deleted through `layer`.
    pub fn expire_through(&self, layer: Weak<dyn Backend>) {
        *self.inner.ttl.through.lock() = Some(layer);
    }
}

impl Ttl {
    pub(crate) fn start(&self, inner: &Arc<Inner>) -> Result<()> {
        let (weak, stop, period) = (Arc::downgrade(inner), self.stop.clone(), inner.options.ttl_period);
        let failed = |error: std::io::Error| Error::new(Code::InternalError, format!("no thread for expiry: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name("expiry".to_owned())
            .spawn(move || run(&weak, &stop, period, &runtime))
            .map_err(failed)?;
        *self.thread.lock() = Some(thread);
        Ok(())
    }

    pub(crate) fn stop(&self) {
        *self.stop.asked.lock() = true;
        self.stop.wake.notify_all();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _panicked = thread.join();
        }
    }
}

fn run(inner: &Weak<Inner>, stop: &Arc<Stop>, period: Duration, runtime: &tokio::runtime::Runtime) {
    loop {
        {
            let mut asked = stop.asked.lock();
            if !*asked {
                stop.wake.wait_for(&mut asked, period);
            }
            if *asked {
                return;
            }
        }
        let Some(inner) = inner.upgrade() else { return };
        let engine = Engine { inner };
        if let Err(error) = runtime.block_on(pass(&engine, stop)) {
            tracing::warn!(%error, "expired documents could not be deleted");
        }
    }
}

/// Deletes what is expired now in all collections; gives how many documents that were.
async fn pass(engine: &Engine, stop: &Arc<Stop>) -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    let context = context(now, stop.clone());
    let mut deleted = 0;
    for collection in engine.catalog().all() {
        for index in &collection.indexes {
            if let (Some(seconds), true) = (index.expire_after, index.ready && index.text.is_none()) {
                let before = now.saturating_sub(seconds.saturating_mul(1_000));
                // What one collection cannot do must not keep others from it.
                match expire(engine, &context, collection, index, before).await {
                    Ok(count) => deleted += count,
                    Err(error) if error.code() == Code::InterruptedAtShutdown => return Err(error),
                    Err(error) => {
                        tracing::warn!(%error, collection = %collection.ns, "expired documents could not be deleted");
                    }
                }
            }
        }
    }
    Ok(deleted)
}

async fn expire(
    engine: &Engine,
    context: &Context,
    collection: &Arc<Collection>,
    index: &Arc<Index>,
    before: i64,
) -> Result<u64> {
    let Some(key) = index.keys.first() else { return Ok(0) };
    let expired = Node::Field { path: key.path.clone(), test: Test::Lt(Value::DateTime(before)) };
    let filter = Filter::from_node(expired);
    let filter = match &index.partial {
        Some(partial) => filter.and(partial.clone()),
        None => filter,
    };
    let hint = (!index.hidden && &*index.name != "_id_").then(|| Hint::Name(index.name.to_string()));
    let op = WriteOp::Delete(Delete::of(collection.ns.clone(), vec![DeleteStatement { filter, multi: true, hint }]));
    let layer = engine.inner.ttl.through.lock().as_ref().and_then(Weak::upgrade);
    let written = match layer {
        Some(layer) => layer.write(&mut Session::default(), context, &op, &Capture::Nothing).await?,
        None => write::write(engine, &mut Session::default(), context, &op, &Capture::Nothing).await?,
    };
    match written.errors.into_iter().next() {
        Some(failed) => Err(failed.error),
        None => Ok(written.n),
    }
}

fn context(now: i64, stop: Arc<Stop>) -> Context {
    let interrupt = move || match *stop.asked.lock() {
        true => Err(Error::new(Code::InterruptedAtShutdown, "interrupted at shutdown")),
        false => Ok(()),
    };
    Context {
        env: Env { now, interrupt: Arc::new(interrupt), ..Env::fixed() },
        read_concern: ReadConcern::Local,
        durability: Durability::Relaxed,
        deadline: None,
        sent: Sent { expiry: true, ..Sent::default() },
    }
}
