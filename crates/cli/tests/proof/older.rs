//! Documents as older clients have left them: stored in an older version, behind Pleach's back.

use bson::{Bson, Document, doc};
use document::backend::Session;
use document::op::{Capture, Namespace, ReadOp};
use document::{Doc, Env};
use patterns::rule::Lens;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use std::collections::BTreeMap;
use std::sync::Arc;
use testing::World;

/// Makes a document of each collection with versions an older one: what it is to clients stays the same.
pub(crate) async fn one_each(world: &World, random: &mut StdRng) {
    for (ns, lens) in free(world) {
        let stored = current(world, &ns, &lens).await;
        let version = random.random_range(1..lens.newest());
        if let Some(document) = stored.choose(random) {
            make_older(world, &ns, &lens, document, version).await;
        }
    }
}

/// The same with all documents.
pub(crate) async fn all(world: &World) {
    for (ns, lens) in free(world) {
        for (at, document) in current(world, &ns, &lens).await.iter().enumerate() {
            let version = i32::try_from(at).unwrap() % (lens.newest() - 1) + 1;
            make_older(world, &ns, &lens, document, version).await;
        }
    }
}

pub(crate) fn lenses(world: &World) -> Vec<(Namespace, Arc<Lens>)> {
    let rules = world.layer.rules();
    rules.all().iter().filter_map(|kept| Some((kept.rule.host.clone(), kept.rule.lens()?.clone()))).collect()
}

/// The same with all documents of a collection, in one version.
pub(crate) async fn as_version(world: &World, ns: &Namespace, lens: &Lens, version: i32) {
    for document in current(world, ns, lens).await {
        make_older(world, ns, lens, &document, version).await;
    }
}

/// Without those whose whole documents somebody copies: on the way down and up, fields come to stand elsewhere.
fn free(world: &World) -> Vec<(Namespace, Arc<Lens>)> {
    let rules = world.layer.rules();
    let is_copied = |ns: &Namespace| {
        let mut fields = rules.all().iter().filter_map(|kept| kept.rule.kept_field());
        fields.any(|field| {
            field.link().is_some_and(|link| link.source == *ns) && matches!(field.reads().source, Capture::Everything)
        })
    };
    lenses(world).into_iter().filter(|(ns, _)| !is_copied(ns)).collect()
}

/// What is stored in the newest version.
async fn current(world: &World, ns: &Namespace, lens: &Lens) -> Vec<Document> {
    let op = ReadOp::Find(testing::find(ns.clone(), doc! { &*lens.field: lens.newest() }));
    testing::rows(&*world.opened.backend, &mut Session::default(), op).await.unwrap()
}

/// Unless something would be lost by it.
async fn make_older(world: &World, ns: &Namespace, lens: &Lens, stored: &Document, version: i32) {
    let (env, newest) = (Env::fixed(), Doc::from(stored.clone()));
    let Some(older) = lens.down(&newest, version, &env).unwrap() else { return };
    let again = lens.up(&older, &env).unwrap().unwrap();
    let older = Document::try_from(&older).unwrap();
    if normal(&Document::try_from(&again).unwrap().into()) == normal(&stored.clone().into()) {
        let same = doc! { "_id": stored.get("_id").unwrap().clone(), &*lens.field: lens.newest() };
        world.behind(testing::update(ns.clone(), same, older, &[])).await;
    }
}

/// As text, in no order of fields.
pub(crate) fn normal(value: &Bson) -> String {
    match value {
        Bson::Document(document) => {
            let fields: BTreeMap<&String, String> =
                document.iter().map(|(name, value)| (name, normal(value))).collect();
            format!("{fields:?}")
        }
        Bson::Array(items) => format!("{:?}", items.iter().map(normal).collect::<Vec<_>>()),
        other => format!("{other:?}"),
    }
}
