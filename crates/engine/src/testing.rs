//! Collections made for tests: documents and index entries laid over an empty store.

use crate::catalog::{Collection, CollectionId, Content, Index, Life};
use crate::index;
use crate::store::keys::{PREFIX, document_key, record};
use crate::store::{Space, Store, StoreOptions};
use crate::transaction::snapshot::{Overlay, ReadSnapshot};
use bson::doc;
use document::filter::Filter;
use document::op::Namespace;
use document::pipeline::expr::Names;
use document::{Doc, Env, Value};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// One store for all tests; what they write stays in their overlays.
fn store() -> &'static (tempfile::TempDir, Store, Space) {
    static STORE: OnceLock<(tempfile::TempDir, Store, Space)> = OnceLock::new();
    STORE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), StoreOptions::default()).unwrap();
        let space = store.space("test").unwrap();
        (folder, store, space)
    })
}

/// A collection of the given documents with an index for each given specification (`key` and options).
pub(crate) fn collection(indexes: &[bson::Document], docs: &[bson::Document]) -> (Arc<Collection>, ReadSnapshot) {
    let (_, store, space) = store();
    let mut all = vec![Arc::new(Index::on_id())];
    for (at, spec) in indexes.iter().enumerate() {
        let mut spec = spec.clone();
        if !spec.contains_key("name") {
            let keys = spec.get_document("key").unwrap();
            let name: Vec<String> = keys.iter().map(|(name, way)| format!("{name}_{way}")).collect();
            spec.insert("name", name.join("_"));
        }
        let id = u32::try_from(at + 1).unwrap();
        all.push(Arc::new(Index::from_spec(id, Doc::from(spec), true).unwrap()));
    }
    let collection = Collection {
        id: CollectionId(1),
        ns: Namespace::new("db", "c"),
        uuid: [0; 16],
        options: Doc::empty(),
        validation: None,
        indexes: all,
        content: Content::Stored(space.clone()),
        life: Arc::new(Life::default()),
    };
    let mut overlay = Overlay::default();
    for doc in docs {
        insert(&collection, &mut overlay, doc);
    }
    (Arc::new(collection), ReadSnapshot::with_overlay(store.snapshot(), overlay))
}

fn insert(collection: &Collection, overlay: &mut Overlay, doc: &bson::Document) {
    let doc = Doc::from(doc);
    let space = collection.space().unwrap();
    let key = document_key(&doc.get("_id").unwrap_or(Value::Null));
    overlay.put(space, key.clone(), record(&doc));
    collection.life.documents.fetch_add(1, Ordering::Relaxed);
    for index in collection.secondary() {
        let entries = index::entries(index, &doc, &key[PREFIX..], &Env::fixed()).unwrap();
        index.mark_multikey(&entries.marks);
        for entry in entries.entries {
            overlay.put(space, entry.key, entry.value);
        }
    }
}

pub(crate) fn filter(source: bson::Document) -> Filter {
    Filter::parse(&Doc::from(source), &mut Names::new()).unwrap()
}

/// An index specification of nothing but keys.
pub(crate) fn keys(keys: bson::Document) -> bson::Document {
    doc! { "key": keys }
}
