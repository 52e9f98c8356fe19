//! Old documents that clients have read, by their `_id`s: they are written back in the newest version afterwards (SEMANTICS R19).
//! It is only a hint: what does not fit is forgotten, and the background migration finds it.

use document::Value;
use document::op::Namespace;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// So many are remembered.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct SeenOld {
    ids: Mutex<Vec<(Namespace, Value<'static>)>>,
    pub(crate) came: Notify,
}

impl SeenOld {
    pub(crate) fn note(&self, ns: &Namespace, id: Value<'static>) {
        let mut ids = self.ids.lock();
        if ids.len() < MOST {
            ids.push((ns.clone(), id));
            drop(ids);
            self.came.notify_one();
        }
    }

    /// All of them, by collection; they are forgotten.
    pub(crate) fn take(&self) -> Vec<(Namespace, Vec<Value<'static>>)> {
        let mut by_collection: Vec<(Namespace, Vec<Value<'static>>)> = Vec::new();
        for (ns, id) in std::mem::take(&mut *self.ids.lock()) {
            match by_collection.iter_mut().find(|(other, _)| *other == ns) {
                Some((_, ids)) => ids.push(id),
                None => by_collection.push((ns, vec![id])),
            }
        }
        by_collection
    }
}
