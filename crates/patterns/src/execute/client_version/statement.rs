//! One statement of a client of an older version, in a transaction: what it means for newest documents is written as an ordinary
//! statement on them.

use crate::execute::client_version::ClientVersion;
use crate::execute::client_version::found::{self, Found, Search};
use crate::execute::read::client_version::projected;
use crate::rule::lens::{Change, SeenDocument, with_own_names};
use crate::shapes::with_id;
use document::backend::{BatchLimit, Session};
use document::filter::Filter;
use document::op::{
    Capture, Delete, DeleteStatement, Find, FindAndModify, Insert, Modify, Namespace, ReadOp, UpdateOp,
    UpdateStatement, WriteOp, Written,
};
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::{Doc, Result, Value};

/// What a client asks.
pub(super) enum Work<'w> {
    Update { statement: &'w UpdateStatement, bypass: bool },
    Delete { statement: &'w DeleteStatement },
    Modify(&'w FindAndModify),
}

impl Work<'_> {
    /// Whether it makes a document where it finds none.
    pub(super) fn upserts(&self) -> bool {
        found::upserts(self)
    }
}

/// Where it is run.
pub(super) struct Place<'p> {
    pub(super) client: &'p ClientVersion<'p>,
    pub(super) ns: &'p Namespace,
    pub(super) session: &'p mut Session,
}

/// Runs it on the first match, or on those among `only` that match.
pub(super) async fn run(place: &mut Place<'_>, work: &Work<'_>, only: Option<&[Value<'static>]>) -> Result<Written> {
    let search = Search::of(work);
    let all = match only {
        Some(ids) => search.among(place, ids).await?,
        None => search.first(place).await?.into_iter().collect(),
    };
    match work {
        Work::Update { statement, bypass } => match (all.is_empty(), statement.upsert && only.is_none()) {
            (true, true) => upserted(place, &statement.filter, &statement.update, *bypass).await,
            _ => updated(place, &all, &statement.filter, &statement.update, *bypass).await,
        },
        Work::Delete { .. } => deleted(place, &all).await,
        Work::Modify(op) => modified(place, op, all.into_iter().next()).await,
    }
}

async fn updated(
    place: &mut Place<'_>,
    all: &[Found],
    filter: &Filter,
    update: &Update,
    bypass_validation: bool,
) -> Result<Written> {
    let client = place.client;
    let asked = client.lens.seen_filter(filter, client.version).asked;
    let mut statements = Vec::new();
    for found in all {
        let Some(sent) = client.update_of(found, update)? else { continue };
        let update = place.unspilt(found, update, sent)?;
        // The condition stays beside it: positions in arrays depend on it.
        let filter = Filter::equality("_id", &found.id()).and(asked.clone());
        statements.push(UpdateStatement { filter, update, multi: false, upsert: false, hint: None });
    }
    let n = u64::try_from(all.len()).unwrap_or(u64::MAX);
    if statements.is_empty() {
        return Ok(Written { n, ..Written::default() });
    }
    let op = WriteOp::Update(UpdateOp { bypass_validation, ..UpdateOp::of(place.ns.clone(), statements) });
    let written = place.write(&op).await?;
    Ok(Written { n, modified: written.modified, errors: written.errors, ..Written::default() })
}

async fn deleted(place: &mut Place<'_>, all: &[Found]) -> Result<Written> {
    if all.is_empty() {
        return Ok(Written::default());
    }
    let one =
        |found: &Found| DeleteStatement { filter: Filter::equality("_id", &found.id()), multi: false, hint: None };
    let op = WriteOp::Delete(Delete::of(place.ns.clone(), all.iter().map(one).collect()));
    let written = place.write(&op).await?;
    Ok(Written { n: written.n, errors: written.errors, ..Written::default() })
}

/// Inserts what the filter and the update say, in the newest version.
async fn upserted(place: &mut Place<'_>, filter: &Filter, update: &Update, bypass_validation: bool) -> Result<Written> {
    let client = place.client;
    let env = &client.context.env;
    let seen = with_id(&update.upsert(filter, env)?, env);
    let newest = client.lens.brought(&seen, client.version, env)?;
    let id = newest.get("_id").unwrap_or(Value::Missing);
    let op = WriteOp::Insert(Insert { bypass_validation, ..Insert::of(place.ns.clone(), vec![newest]) });
    let written = place.write(&op).await?;
    if !written.errors.is_empty() {
        return Ok(Written { errors: written.errors, ..Written::default() });
    }
    Ok(Written { n: 1, upserted: vec![(0, id)], ..Written::default() })
}

async fn modified(place: &mut Place<'_>, op: &FindAndModify, found: Option<Found>) -> Result<Written> {
    let client = place.client;
    let mut shown = None;
    let mut written = match (&op.action, &found) {
        (Modify::Remove, Some(found)) => {
            shown = Some(found.seen.clone());
            deleted(place, std::slice::from_ref(found)).await?
        }
        (Modify::Update { update, return_new, .. }, Some(found)) => {
            let one = std::slice::from_ref(found);
            let written = updated(place, one, &op.filter, update, op.bypass_validation).await?;
            shown = match *return_new && written.errors.is_empty() {
                true => place.seen(&found.id()).await?,
                false => Some(found.seen.clone()),
            };
            written
        }
        (Modify::Update { update, upsert: true, return_new }, None) => {
            let written = upserted(place, &op.filter, update, op.bypass_validation).await?;
            if let (true, [(_, id)]) = (*return_new && written.errors.is_empty(), written.upserted.as_slice()) {
                shown = place.seen(id).await?;
            }
            written
        }
        (Modify::Remove | Modify::Update { .. }, None) => Written::default(),
    };
    if let Some(shown) = shown {
        written.document = Some(projected(op.projection.as_ref(), &op.filter, &shown, &client.context.env)?);
    }
    Ok(written)
}

/// The whole value that operators give a field.
fn set_by(spec: &Doc<'static>, field: &str) -> Option<Value<'static>> {
    match spec.get("$set")? {
        Value::Document(fields) => fields.get(field).map(Value::into_owned),
        _ => None,
    }
}

impl ClientVersion<'_> {
    /// The update of the newest document; `None` if it changes nothing. Arrays that overflow are written by their own operators.
    fn update_of(&self, found: &Found, update: &Update) -> Result<Option<Update>> {
        let (version, env) = (self.version, &self.context.env);
        let of = SeenDocument { newest: &found.newest, seen: &found.seen, details: &found.details };
        let (Some((lens, names)), Value::Document(spec)) = (&self.renamed, &update.source) else {
            return self.lens.seen_update(update, of, version, env);
        };
        if update.is_replacement() {
            return self.lens.seen_update(update, of, version, env);
        }
        let named = Value::Document(with_own_names(spec, names));
        let named = Update::parse(&named, &update.array_filters, &mut Names::new())?;
        let seen = lens.seen(&found.newest, version, env)?;
        lens.seen_update(&named, SeenDocument { seen: &seen, ..of }, version, env)
    }
}

impl Place<'_> {
    async fn write(&mut self, op: &WriteOp) -> Result<Written> {
        self.client.backend.write(self.session, self.client.context, op, &Capture::Nothing).await
    }

    /// The document as the client sees it now.
    async fn seen(&mut self, id: &Value<'static>) -> Result<Option<Doc<'static>>> {
        let client = self.client;
        let find = Find { limit: Some(1), ..Find::matching(self.ns.clone(), Filter::equality("_id", id)) };
        let mut cursor = client.backend.read(self.session, client.context, ReadOp::Find(find)).await?;
        let batch = cursor.next(self.session, client.context, BatchLimit { documents: 1, bytes: 16 << 20 }).await?;
        match batch.documents.first() {
            Some(newest) => client.lens.seen(newest, client.version, &client.context.env).map(Some),
            None => Ok(None),
        }
    }

    /// The update, as a whole document if it would set an array of which a part overflows and the client did not: what that saw was an
    /// excerpt, and whoever keeps the array decides (SEMANTICS R18).
    fn unspilt(&self, found: &Found, asked: &Update, update: Update) -> Result<Update> {
        let client = self.client;
        let rules = client.executor.rules();
        let Some(local) = rules.of(self.ns).filter(|local| !local.outliers.is_empty()) else { return Ok(update) };
        let Value::Document(spec) = &update.source else { return Ok(update) };
        let is_taken = |field: &str| {
            let set = set_by(spec, field);
            let name = client.renamed.iter().flat_map(|(_, names)| names).find(|name| name.newest == field);
            let wanted = match &asked.source {
                Value::Document(asked) => set_by(asked, name.map_or(field, |name| &name.older)),
                _ => None,
            };
            set.is_some() && set != wanted
        };
        let own = local.outliers.iter().any(|outlier| is_taken(&outlier.field) && found.newest.contains(&outlier.flag));
        if !own || update.is_replacement() {
            return Ok(update);
        }
        let details = &found.details;
        match update.apply(&found.newest, details, &client.context.env)? {
            Applied::Changed(whole) => Change::Whole(whole).update(),
            Applied::Unchanged => Ok(update),
        }
    }
}
