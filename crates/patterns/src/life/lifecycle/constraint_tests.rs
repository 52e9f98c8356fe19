//! Constraints on a store: what they ask for is there beside what the user asks for, and goes with them.

use crate::declare::from_yaml;
use crate::execute::access::Access;
use crate::front::ClientFront;
use crate::layer::Patterned;
use crate::life::audit::{AuditedRule, Figures, Report};
use crate::life::catalog::Row;
use crate::life::relocate::drop::Leaving;
use crate::life::relocate::stored::look_up;
use crate::life::replaced::Progress;
use crate::life::{CatalogRule, Life, catalog, expiry, lifecycle};
use crate::rule::state::State;
use crate::rule::{ClientWrites, Constraint, IndexNeed, Kind, Needs, Rule, Violation};
use bson::{Bson, doc};
use document::backend::{Backend, Class, Head, Route, Session};
use document::op::{AdminOp, Capture, CollectionOptions, Namespace};
use document::value::Path;
use document::{Code, Doc, Env, Result, Value};
use engine::{Engine, Options};
use std::sync::Arc;

struct Store {
    life: Arc<Life>,
    front: ClientFront,
    backend: Arc<dyn Backend>,
    engine: Engine,
    _folder: tempfile::TempDir,
}

fn things() -> Namespace {
    Namespace::new("shop", "things")
}

/// Asks for what it is told to.
#[derive(Debug)]
struct Asking {
    validator: Doc<'static>,
    indexes: Vec<IndexNeed>,
}

impl Constraint for Asking {
    fn describe(&self) -> String {
        "what is asked for".to_owned()
    }

    fn needs(&self) -> Needs {
        Needs { indexes: self.indexes.clone(), ..Needs::default() }
    }

    fn validator(&self, _: &[Path]) -> Doc<'static> {
        self.validator.clone()
    }

    fn violations(&self, _: &Doc<'_>, _: &[Path], _: &Env) -> Result<Vec<Violation>> {
        let (field, problem) = ("kind".to_owned(), "is no kind".to_owned());
        Ok(vec![Violation { kind: Value::Missing, field, problem }])
    }
}

fn rule(name: &str, validator: bson::Document, indexes: Vec<IndexNeed>) -> Rule {
    let asking = Asking { validator: Doc::from(validator), indexes };
    Rule {
        name: name.into(),
        pattern: "polymorphic",
        host: things(),
        field: Path::new("kind"),
        lift: None,
        kind: Kind::Constraint(Arc::new(asking)),
        client_writes: ClientWrites::default(),
        declaration: Doc::empty(),
    }
}

/// One slug per kind, and the newest of a kind: as the catalog can make it again.
fn declared() -> Rule {
    let text = "database: shop
collections:
  things:
    polymorphic:
      discriminator: kind
      indexes: [{ key: { kind: 1, at: -1 } }]
      kinds: { book: { indexes: [{ key: { slug: 1 }, unique: true }] }, film: {} }";
    from_yaml("pleach.yaml", text).declaration.unwrap().rules.remove(0)
}

impl Store {
    fn new() -> Store {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::open(folder.path(), Options { memory_bytes: 64 << 20, ..Options::default() }).unwrap();
        let backend: Arc<dyn Backend> = Arc::new(engine.clone());
        let layer = Patterned::new(backend.clone());
        let life = Life::new(&layer, Arc::new(testing::context));
        Store { front: ClientFront::new(life.clone()), life, backend, engine, _folder: folder }
    }

    /// As `apply` leaves it in the catalog.
    async fn begin(&self, rule: Rule) -> CatalogRule {
        let row = Row {
            rule: rule.name.to_string(),
            kind: rule.pattern.to_owned(),
            declaration: rule.declaration.clone(),
            state: State::Maintaining,
            epoch: 1,
            done: 0,
            total: 0,
            with_data: false,
            tidy: false,
            by: String::new(),
            shape: None,
            replaced: Progress::default(),
            taken_back: None,
        };
        let (mut session, context) = (Session::default(), testing::context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        catalog::save(&mut at, "shop", &row).await.unwrap();
        let entry = CatalogRule::new("shop", row, Arc::new(rule)).unwrap();
        self.life.put_entry(entry.clone());
        self.life.put_in_force().unwrap();
        lifecycle::of(&entry.rule).advance(&self.life, &entry).await.unwrap();
        let on = self.life.current(&entry).unwrap();
        assert_eq!(on.row.state, State::On);
        on
    }

    async fn drop(&self, entry: &CatalogRule) {
        let (mut session, context) = (Session::default(), testing::context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        let lifecycle = lifecycle::of(&entry.rule);
        lifecycle.drop(&self.life, &mut at, entry, Leaving::default()).await.unwrap();
        let retiring = self.life.entries().into_iter().find(|other| other.rule.name == entry.rule.name).unwrap();
        lifecycle.advance(&self.life, &retiring).await.unwrap();
        assert!(self.life.row_of(entry).is_none());
    }

    async fn define(&self, op: AdminOp) {
        self.front.admin(&mut Session::default(), &testing::context(), op).await.unwrap();
    }

    async fn options(&self) -> bson::Document {
        let (mut session, context) = (Session::default(), testing::context());
        let mut at = Access { backend: &*self.backend, session: &mut session, context: &context };
        bson::Document::try_from(&look_up(&mut at, &things()).await.unwrap().unwrap().options).unwrap()
    }

    async fn validator(&self) -> Option<Bson> {
        self.options().await.get("validator").cloned()
    }

    async fn insert(&self, document: bson::Document) -> Option<Code> {
        let op = testing::insert(things(), vec![document]);
        let written = self.front.write(&mut Session::default(), &testing::context(), &op, &Capture::Nothing).await;
        written.unwrap().errors.first().map(|failed| failed.error.code())
    }
}

fn kinds() -> bson::Document {
    doc! { "kind": { "$in": ["book", "film"] } }
}

fn titled() -> bson::Document {
    doc! { "title": { "$type": "string" } }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_validator_is_kept_changed_and_given_back() {
    let store = Store::new();
    let options = CollectionOptions { validator: Some(Doc::from(titled())), ..CollectionOptions::default() };
    store.define(AdminOp::Create { ns: things(), options }).await;
    let first = store.begin(rule("things.kinds", kinds(), Vec::new())).await;
    assert_eq!(store.validator().await, Some(doc! { "$and": [titled(), kinds()] }.into()));
    assert_eq!(store.insert(doc! { "title": 5, "kind": "book" }).await, Some(Code::DocumentValidationFailure));
    assert_eq!(store.insert(doc! { "title": "x", "kind": "car" }).await, Some(Code::DocumentValidationFailure));
    assert_eq!(store.insert(doc! { "title": "x", "kind": "book" }).await, None);
    let years = doc! { "year": { "$type": "int" } };
    let second = store.begin(rule("things.years", years.clone(), Vec::new())).await;
    assert_eq!(store.validator().await, Some(doc! { "$and": [titled(), kinds(), years.clone()] }.into()));
    // A client changes its own part.
    let change = Doc::from(doc! { "validator": { "a": 1 }, "validationLevel": "moderate" });
    store.define(AdminOp::CollMod { ns: things(), change }).await;
    let options = store.options().await;
    assert_eq!(options.get_document("validator").unwrap(), &doc! { "$and": [{ "a": 1 }, kinds(), years.clone()] });
    assert_eq!(options.get_str("validationLevel").ok(), Some("moderate"));
    store.drop(&first).await;
    assert_eq!(store.validator().await, Some(doc! { "$and": [{ "a": 1 }, years] }.into()));
    store.drop(&second).await;
    let options = store.options().await;
    assert_eq!(options.get_document("validator").unwrap(), &doc! { "a": 1 });
    assert_eq!(options.get_str("validationLevel").ok(), Some("moderate"));
    store.engine.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_without_a_validator_has_none_afterwards_and_one_that_is_dropped_is_constrained_again() {
    let store = Store::new();
    let constraint = store.begin(declared()).await;
    let specs = || async {
        let (mut session, context) = (Session::default(), testing::context());
        let mut at = Access { backend: &*store.backend, session: &mut session, context: &context };
        let indexes = expiry::indexes(&mut at, &things()).await.unwrap();
        let name = |index: &Doc<'static>| index.get("name").and_then(|name| name.as_str().map(str::to_owned));
        indexes.iter().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(specs().await, ["_id_", "kind_1_at_-1", "slug_1"]);
    assert_eq!(store.insert(doc! { "kind": "book", "slug": "a" }).await, None);
    assert_eq!(store.insert(doc! { "kind": "book", "slug": "a" }).await, Some(Code::DuplicateKey));
    assert_eq!(store.insert(doc! { "kind": "film", "slug": "a" }).await, None);
    store.define(AdminOp::Drop { ns: things() }).await;
    assert_eq!(store.insert(doc! { "kind": "car" }).await, Some(Code::DocumentValidationFailure));
    assert_eq!(specs().await.len(), 3);
    store.drop(&constraint).await;
    assert!(store.validator().await.is_none_or(|validator| validator == doc! {}.into()));
    assert_eq!(specs().await, ["_id_"]);
    store.engine.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_are_forwarded_and_what_changes_the_collection_is_not() {
    let store = Store::new();
    let _on = store.begin(rule("things.kinds", kinds(), Vec::new())).await;
    let body = Doc::empty();
    let route = |class: Class, target: &'static str| {
        store.front.route_of(&Head { name: "", class, db: "shop", target: Some(target), user: None, body: &body })
    };
    for (class, expected) in [
        (Class::Insert, Route::Forward),
        (Class::Update, Route::Forward),
        (Class::CollMod, Route::Planned),
        (Class::Create, Route::Planned),
        (Class::Drop, Route::Planned),
        (Class::DropIndexes, Route::Planned),
    ] {
        assert_eq!((route(class, "things"), route(class, "others")), (expected, Route::Forward), "{class:?}");
    }
    store.engine.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_names_documents_that_were_there_before() {
    let store = Store::new();
    for kind in ["book", "car", "film"] {
        assert_eq!(store.insert(doc! { "_id": kind, "kind": kind }).await, None);
    }
    let entry = store.begin(rule("things.kinds", kinds(), Vec::new())).await;
    let asked =
        AuditedRule { rule: entry.rule.clone(), state: Some(State::On), differs: None, places: Vec::new(), raw: false };
    let (mut figures, mut report) = (Figures::new(&asked), Report::of_audit(5));
    lifecycle::of(&entry.rule).audit(&store.life, &asked, &mut figures, &mut report).await.unwrap();
    assert_eq!((figures.checked, figures.drifted), (3, 1));
    assert_eq!(report.examples.first().map(|drift| drift.id.clone()), Some(Value::from("car")));
    store.engine.close();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_problem_that_was_cleared_does_not_come_back_with_an_entry_read_before() {
    let store = Store::new();
    let on = store.begin(declared()).await;
    store.life.note_problem(&on, Some("a broken document".to_owned()), 0);
    let before = store.life.current(&on).unwrap();
    assert!(before.problem.is_some());
    store.life.put_entry(before.clone());
    assert_eq!(store.life.current(&on).unwrap().problem, before.problem, "it is not mended");
    store.life.try_again("shop");
    store.life.put_entry(before);
    assert_eq!(store.life.current(&on).unwrap().problem, None);
    store.engine.close();
}
