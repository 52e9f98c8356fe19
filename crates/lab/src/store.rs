//! A scratch store in which one candidate is built: by the very rules and verbs that `apply` runs.

use crate::line::{self, Line};
use crate::meter::Meter;
use bson::{Bson, Document, doc};
use document::{Doc, DocWriter, Error, Result, Value};
use patterns::declare::Declaration;
use patterns::rule::Rule;
use std::sync::Arc;
use std::time::Duration;

/// Where a candidate is built. Whoever made it takes it away, whatever happens meanwhile.
pub struct Store {
    pub db: String,
    /// As clients see it.
    pub front: Line,
    /// As it is stored.
    pub stored: Line,
    /// Counts what is written beneath the rules.
    pub meter: Arc<Meter>,
    /// Whether it is a real MongoDB.
    pub is_mongodb: bool,
}

/// One layout that is measured.
#[derive(Clone)]
pub struct Candidate {
    pub name: String,
    /// Its rules; none of what is as it is.
    pub rules: Vec<Arc<Rule>>,
}

impl Candidate {
    pub fn of(name: &str, declaration: Option<Declaration>) -> Candidate {
        let rules = declaration.into_iter().flat_map(|declaration| declaration.rules).map(Arc::new);
        Candidate { name: name.to_owned(), rules: rules.collect() }
    }

    /// Its rules, to tell candidates apart.
    pub fn canonical(&self, db: &str) -> serde_json::Value {
        self.declaration(db)
            .map_or(serde_json::Value::Null, |declaration| Bson::Document(declaration).into_relaxed_extjson())
    }

    /// All its rules as one declaration for a database. A migration of versions does not wait for its hours: it is measured done.
    fn declaration(&self, db: &str) -> Result<Document> {
        let mut all = Document::new();
        for rule in &self.rules {
            merge(&mut all, Document::try_from(&rule.declaration)?);
        }
        all.insert("database", db);
        let collections = all.get_document_mut("collections").ok();
        for (_, block) in collections.into_iter().flat_map(|collections| collections.iter_mut()) {
            let versions = block.as_document_mut().and_then(|block| block.get_document_mut("versions").ok());
            if let Some(migrate) = versions.and_then(|versions| versions.get_document_mut("migrate").ok()) {
                migrate.remove("hours");
                migrate.remove("rate");
                migrate.insert("background", true);
            }
        }
        Ok(all)
    }
}

fn merge(into: &mut Document, from: Document) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            (Some(Bson::Document(old)), Bson::Document(new)) => merge(old, new),
            (_, value) => drop(into.insert(name, value)),
        }
    }
}

impl Store {
    /// Inserts documents as they are, before there are rules. What is there already is left.
    pub async fn insert(&self, collection: &str, documents: &[Doc<'static>]) -> Result<()> {
        let mut command = DocWriter::new();
        command.append("insert", &Value::from(collection));
        command.append("ordered", &Value::Bool(false));
        let list = documents.iter().map(|doc| Value::Document(doc.borrow())).collect();
        command.append("documents", &Value::Array(list));
        let mut concern = DocWriter::new();
        concern.append("w", &Value::Int32(1));
        command.append("writeConcern", &Value::Document(concern.finish()));
        let reply = self.stored.command(&self.db, command.finish()).await?;
        let Some(Value::Array(errors)) = reply.get("writeErrors") else { return Ok(()) };
        for error in errors.iter() {
            let Value::Document(error) = error else { continue };
            let error = Document::try_from(&error)?;
            // A document that two units need.
            if line::number(&error, "code") != 11_000.0 {
                let said = error.get_str("errmsg").unwrap_or("no reason is given");
                return Err(Error::bad_value(format!(
                    "a document of {collection} cannot be stored in the scratch store: {said}"
                )));
            }
        }
        Ok(())
    }

    /// Makes the indexes that the data has today; gives the names of those that this store cannot have.
    pub async fn make_indexes(&self, collection: &str, indexes: &[Document]) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for index in indexes {
            let name = index.get_str("name").unwrap_or_default().to_owned();
            if name == "_id_" {
                continue;
            }
            let mut spec = index.clone();
            for own in ["v", "ns", "background"] {
                spec.remove(own);
            }
            let command = doc! { "createIndexes": collection, "indexes": [spec] };
            if line::run(&self.stored, &self.db, command).await.is_err() {
                left.push(format!("{collection}.{name}"));
            }
        }
        Ok(left)
    }

    /// Makes the candidate's rules of it, and waits until nothing is under way any more.
    pub async fn apply(&self, candidate: &Candidate) -> Result<()> {
        if candidate.rules.is_empty() {
            return Ok(());
        }
        let declaration = candidate.declaration(&self.db)?;
        let question = doc! { "pleach": "apply", "declaration": declaration, "overwrite": true, "create_missing": true, "wait": true };
        line::run(&self.front, &self.db, question).await?;
        self.settled().await
    }

    /// Waits until every rule is on, no document is being migrated, and the outbox is empty.
    pub async fn settled(&self) -> Result<()> {
        loop {
            let status = line::run(&self.front, &self.db, doc! { "pleach": "status" }).await?;
            let rules: Vec<&Document> =
                status.get_array("rules").into_iter().flatten().filter_map(Bson::as_document).collect();
            for rule in &rules {
                if let Ok(problem) = rule.get_str("problem") {
                    let name = rule.get_str("rule").unwrap_or_default();
                    return Err(Error::bad_value(format!("{name} cannot be built in the scratch store: {problem}"))
                        .with_hint("`pleach check --infer` and `pleach plan` on the data itself say more; nothing was changed there"));
                }
            }
            let is_on = |rule: &&Document| {
                let health = rule.get_document("health").ok();
                rule.get_str("state").is_ok_and(|state| state == "on")
                    && !health.is_some_and(|health| health.contains_key("migrating"))
            };
            let waits = line::run(&self.stored, &self.db, doc! { "count": "pleach.outbox" }).await?;
            let is_idle = !status.get_bool("tidying").unwrap_or_default() && line::number(&waits, "n") == 0.0;
            if is_idle && rules.iter().all(is_on) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}
