//! A world whose rules have a life: applied, seeded, spread by the outbox, audited, repaired, dropped.

use crate::world::{World, context};
use bson::{Document, doc};
use document::Doc;
use document::backend::{Backend, Session};
use document::op::{AdminOp, Capture};
use patterns::declare::Declaration;
use patterns::gate::Gate;
use patterns::life::Life;
use patterns::life::apply::Consent;
use std::sync::Arc;

pub(crate) struct Living {
    pub(crate) world: World,
    pub(crate) life: Arc<Life>,
}

impl Living {
    /// Collections, and nothing declared; no background work runs.
    pub(crate) async fn new(inner: Arc<dyn Backend>, folder: Option<tempfile::TempDir>, gate: Arc<dyn Gate>) -> Living {
        let world = World::without_rules(inner, folder, gate).await;
        let life = Life::new(&world.layer, Arc::new(context));
        Living { world, life }
    }

    pub(crate) fn declared(&self, collections: &str) -> Declaration {
        declared(&self.world.db, collections)
    }

    /// Makes the rules these, those that are not named go with their data; nothing is waited for.
    pub(crate) async fn apply(&self, collections: &str) {
        let extent =
            Consent { remove: true, with_data: true, overwrite: true, create_missing: true, additions_only: false };
        self.life.apply(&self.declared(collections), extent).await.unwrap();
    }

    /// `{ pleach: verb }` on the database.
    pub(crate) async fn ask(&self, verb: &str) -> Document {
        let answer = self
            .life
            .command(&mut Session::default(), &context(), &self.world.db, &Doc::from(doc! { "pleach": verb }))
            .await;
        Document::try_from(&answer.unwrap_or_else(|error| panic!("{verb}: {error:?}"))).unwrap()
    }

    /// Works until every rule is on and the outbox is empty.
    pub(crate) async fn rest(&self) {
        self.life.bring_on().await.unwrap();
        for _ in 0..100 {
            self.life.work_off().await.unwrap();
            if self.world.all("pleach.outbox").await.is_empty() {
                return;
            }
        }
        panic!("the outbox does not empty");
    }

    /// What an audit finds.
    pub(crate) async fn drift(&self) -> Vec<Document> {
        let report = self.ask("audit").await;
        let drift = report.get_array("drift").unwrap();
        assert_eq!(report.get_i64("drifted").unwrap() as usize, drift.len());
        drift.iter().map(|entry| entry.as_document().unwrap().clone()).collect()
    }

    /// Writes that no rule sees.
    pub(crate) async fn behind(&self, act: &crate::world::Act) {
        let op = act.op(&self.world);
        let inner = self.world.layer.inner();
        let written = inner.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
        assert!(written.errors.is_empty(), "{:?}", written.errors);
    }

    pub(crate) async fn end(&self) {
        drop_database(&**self.world.layer.inner(), &self.world.db).await;
    }
}

pub(crate) fn declared(db: &str, collections: &str) -> Declaration {
    let text = format!("database: {db}\ncollections: {collections}");
    patterns::declare::from_yaml("pleach.yaml", &text).into_result().unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) async fn drop_database(inner: &dyn Backend, db: &str) {
    let op = AdminOp::DropDatabase { db: db.to_owned() };
    inner.admin(&mut Session::default(), &context(), op).await.unwrap();
}
