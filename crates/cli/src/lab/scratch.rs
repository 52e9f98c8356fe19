//! Scratch stores: a temporary folder for each candidate, or a database of its own in a MongoDB that is named for it. They are
//! taken away at the end, after a failure and after an interrupt too; nothing else is ever touched.

use super::Loopback;
use crate::compose::{self, DataFolder, Patterns};
use crate::report::{self, Code, Failure};
use bson::doc;
use document::backend::Unruled;
use lab::line;
use lab::meter::Meter;
use lab::store::Store;
use std::sync::Arc;
use std::time::Duration;
use upstream::Upstream;

/// What databases are called that a run makes in a MongoDB.
const PREFIX: &str = "pleach_lab_";

/// How much memory each embedded store may take.
const MEMORY: u64 = 256 << 20;

/// Nothing expires, in the data neither: a run changes nothing there.
pub(super) fn options() -> engine::Options {
    engine::Options {
        memory_bytes: MEMORY,
        ttl_period: Duration::from_secs(100 * 365 * 24 * 60 * 60),
        ..engine::Options::default()
    }
}

/// One store, and what must be taken away.
pub(super) struct Scratch {
    patterns: Patterns,
    loopbacks: Vec<Loopback>,
    place: Place,
}

enum Place {
    /// Removed when it is dropped.
    Folder {
        _folder: DataFolder,
    },
    Database {
        upstream: Arc<Upstream>,
        name: String,
    },
}

impl Scratch {
    /// In a temporary folder.
    pub(super) async fn embedded(db: &str, scratches: &mut Vec<Scratch>) -> Result<Store, Failure> {
        let folder = DataFolder::of(None)?;
        let engine = engine::Engine::open(&folder.path, options())?;
        let meter = Arc::new(Meter::default());
        let stored = Loopback::serve(Arc::new(Unruled(Arc::new(engine.clone()))), None).await?;
        let patterns = Patterns::metered(engine, meter.clone());
        patterns.life.load().await?;
        patterns.life.start().await?;
        let front = Loopback::serve(patterns.front.clone(), None).await?;
        let store = Store { db: db.to_owned(), front: front.line(), stored: stored.line(), meter, is_mongodb: false };
        let place = Place::Folder { _folder: folder };
        scratches.push(Scratch { patterns, loopbacks: vec![front, stored], place });
        Ok(store)
    }

    /// In a new database of a MongoDB.
    pub(super) async fn mongodb(uri: &str, scratches: &mut Vec<Scratch>) -> Result<Store, Failure> {
        let upstream = connected(uri).await?;
        let credentials = upstream.uri().credentials.clone();
        let name = unused_name(&upstream).await?;
        let meter = Arc::new(Meter::default());
        let patterns = Patterns::metered_upstream(upstream.clone(), meter.clone());
        // Rules of other databases there are nothing of ours.
        patterns.life.limit_database(&name);
        let place = Place::Database { upstream: upstream.clone(), name: name.clone() };
        scratches.push(Scratch { patterns, loopbacks: Vec::new(), place });
        let Some(scratch) = scratches.last_mut() else { return Err(Failure::new("no scratch store was made")) };
        let front = scratch.begin(credentials).await?;
        Ok(Store { db: name, front, stored: upstream.line(), meter, is_mongodb: true })
    }

    async fn begin(&mut self, credentials: Option<upstream::Credentials>) -> Result<line::Line, Failure> {
        self.patterns.life.load().await?;
        self.patterns.life.start().await?;
        let front = Loopback::serve(self.patterns.front.clone(), credentials).await?;
        let line = front.line();
        self.loopbacks.push(front);
        Ok(line)
    }

    /// Ends what works on it, and removes it.
    pub(super) async fn take_away(self) -> Result<(), Failure> {
        for loopback in self.loopbacks {
            loopback.end().await;
        }
        self.patterns.close().await;
        match self.place {
            Place::Folder { .. } => Ok(()),
            Place::Database { upstream, name } => {
                let dropped = line::run(&upstream.line(), &name, doc! { "dropDatabase": 1 }).await;
                dropped.map(drop).map_err(|error| {
                    Failure::from(error).hint(format!("drop the database {name} there by hand: it holds only a sample"))
                })
            }
        }
    }
}

async fn connected(uri: &str) -> Result<Arc<Upstream>, Failure> {
    let upstream = Arc::new(compose::connect(compose::connection_string(uri)?).await?);
    match upstream.is_pleach() {
        true => Err(Failure::of(Code::Word("target"), format!("{} is a Pleach, not a MongoDB", upstream.uri()))
            .hint("--scratch takes a MongoDB; without it candidates are built in temporary folders")),
        false => Ok(upstream),
    }
}

/// A run that was killed leaves its databases. Another run may be going, so that they are only named.
pub(super) async fn tell_of_leftovers(uri: &str) -> Result<(), Failure> {
    let upstream = connected(uri).await?;
    let filter = doc! { "name": { "$regex": format!("^{PREFIX}") } };
    let command = doc! { "listDatabases": 1, "nameOnly": true, "filter": filter };
    // Whoever may not list databases cannot be told.
    let Ok(reply) = line::run(&upstream.line(), "admin", command).await else { return Ok(()) };
    let databases = reply.get_array("databases").into_iter().flatten().filter_map(bson::Bson::as_document);
    let names: Vec<&str> = databases.filter_map(|database| database.get_str("name").ok()).collect();
    if !names.is_empty() {
        report::note(&format!(
            "note: there are scratch databases of runs that go on, or that were killed: {}. If no run goes on, drop them: they hold only samples",
            names.join(", ")
        ));
    }
    Ok(())
}

/// A name that no database there has.
async fn unused_name(upstream: &Upstream) -> Result<String, Failure> {
    let line = upstream.line();
    loop {
        let drawn: String = server::identity::object_id().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{PREFIX}{drawn}");
        let there = line::all(&line, &name, doc! { "listCollections": 1, "nameOnly": true }).await?;
        if there.is_empty() {
            return Ok(name);
        }
    }
}
