//! A world whose rules have a life: applied, seeded, spread by the outbox, audited, repaired, dropped.

use crate::world::{World, declaration, declared};
use bson::{Document, doc};
use document::backend::Session;
use document::{Doc, Result};
use patterns::ClientFront;
use patterns::life::Life;
use patterns::life::apply::Consent;
use std::ops::Deref;
use std::sync::Arc;

pub struct Living {
    pub world: World,
    pub life: Arc<Life>,
}

impl Deref for Living {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

/// Rules that are not declared go with their data, and values may be overwritten.
pub const ALL_OF_IT: Consent =
    Consent { remove: true, with_data: true, overwrite: true, create_missing: true, additions_only: false };

impl Living {
    /// Nothing is loaded, and no background work runs.
    pub fn of(world: World) -> Living {
        let life = Life::new(&world.layer, world.contexts.clone());
        Living { world: World { front: ClientFront::new(life.clone()), ..world }, life }
    }

    /// Makes the rules these; nothing is waited for.
    pub async fn set_rules(&self, collections: &str) {
        let applied = self.life.apply(&declared(&self.db, collections), ALL_OF_IT).await;
        applied.unwrap_or_else(|error| panic!("{error:?}\n{collections}"));
    }

    /// `{ pleach: verb, … }` on the database.
    pub async fn ask(&self, verb: &str, fields: Document) -> Result<Document> {
        let mut body = doc! { "pleach": verb };
        body.extend(fields);
        let answer = self.life.command(&mut Session::default(), &self.context(), &self.db, &Doc::from(body)).await?;
        Ok(Document::try_from(&answer).unwrap())
    }

    pub async fn apply(&self, collections: &str) -> Result<Document> {
        self.ask("apply", doc! { "declaration": declaration(&self.db, collections) }).await
    }

    /// The same, whatever becomes of the values that are there.
    pub async fn overwrite(&self, collections: &str) -> Result<Document> {
        self.overwriting(collections, true).await
    }

    pub async fn overwriting(&self, collections: &str, wait: bool) -> Result<Document> {
        let declaration = declaration(&self.db, collections);
        self.ask("apply", doc! { "declaration": declaration, "wait": wait, "overwrite": true }).await
    }

    /// The names of all rules, with their states.
    pub async fn states(&self) -> Vec<(String, String)> {
        let status = self.ask("status", doc! {}).await.unwrap();
        let rules = status.get_array("rules").unwrap();
        let text = |rule: &bson::Bson, name: &str| rule.as_document().unwrap().get_str(name).unwrap().to_owned();
        rules.iter().map(|rule| (text(rule, "rule"), text(rule, "state"))).collect()
    }

    /// Works until every rule is on and the outbox is empty.
    pub async fn rest(&self) {
        self.life.bring_on().await.unwrap();
        for _ in 0..100 {
            self.life.work_off().await.unwrap();
            if self.all("pleach.outbox").await.is_empty() {
                return;
            }
        }
        panic!("the outbox does not empty");
    }

    /// What an audit finds.
    pub async fn audit(&self) -> Vec<Document> {
        let report = self.ask("audit", doc! {}).await.unwrap();
        let drift = report.get_array("drift").unwrap();
        assert_eq!(report.get_i64("drifted").unwrap() as usize, drift.len());
        drift.iter().map(|entry| entry.as_document().unwrap().clone()).collect()
    }

    /// Every derived value is right; says how many were looked at.
    pub async fn assert_clean(&self) -> i64 {
        let report = self.ask("audit", doc! {}).await.unwrap();
        assert_eq!(report.get_i64("drifted").ok(), Some(0), "{report}");
        report.get_i64("checked").unwrap()
    }
}
