//! The clients' own views in databases where documents have versions. MongoDB would run a view over documents as they are stored, so
//! to read one is to know what it says. What was listed a moment ago is believed: a view that is made beside Pleach is seen by then.

use document::Array;
use document::op::NamespaceRef;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a list is believed.
const FRESH: Duration = Duration::from_secs(1);

/// What a view says.
#[derive(Clone, Debug)]
pub(crate) struct ClientView {
    pub(crate) on: String,
    pub(crate) stages: Array<'static>,
}

/// The views of a database, by name.
pub(crate) type ClientViews = HashMap<String, ClientView>;

#[derive(Debug, Default)]
pub(crate) struct KnownViews(Mutex<HashMap<String, Known>>);

#[derive(Debug, Default)]
struct Known {
    listed: Option<Instant>,
    views: Arc<ClientViews>,
    /// Somebody is making them just now.
    coming: HashSet<String>,
}

impl KnownViews {
    /// The views of the database; `None` if they are to be listed again.
    pub(crate) fn of(&self, db: &str) -> Option<Arc<ClientViews>> {
        let known = self.0.lock();
        let known = known.get(db)?;
        let is_fresh = known.coming.is_empty() && known.listed.is_some_and(|at| at.elapsed() < FRESH);
        is_fresh.then(|| known.views.clone())
    }

    pub(crate) fn listed(&self, db: &str, views: ClientViews) -> Arc<ClientViews> {
        let views = Arc::new(views);
        let known = Known { listed: Some(Instant::now()), views: views.clone(), coming: HashSet::new() };
        self.0.lock().insert(db.to_owned(), known);
        views
    }

    /// Somebody makes or changes a view of that name.
    pub(crate) fn is_coming(&self, view: NamespaceRef<'_>) {
        self.0.lock().entry(view.db.to_owned()).or_default().coming.insert(view.collection.to_owned());
    }

    /// Whether the name may be that of a view.
    pub(crate) fn knows(&self, name: NamespaceRef<'_>) -> bool {
        let known = self.0.lock();
        let Some(known) = known.get(name.db) else { return false };
        known.views.contains_key(name.collection) || known.coming.contains(name.collection)
    }

    /// Whether a list is due.
    pub(crate) fn is_due(&self, db: &str) -> bool {
        self.of(db).is_none()
    }
}
