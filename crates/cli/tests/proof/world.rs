//! Rules on a backend of either kind, and short words for what clients do.

use bson::{Bson, Document, doc};
use document::backend::{Backend, Session};
use document::op::{AdminOp, Aggregate, Capture, Modify, Namespace, ReadOp, UpdateStatement, WriteOp, Written};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Doc, Result, Value};
use patterns::Patterned;
use patterns::gate::Gate;
use patterns::life::State;
use patterns::rule::Rule;
use patterns::shapes::bucket::Dialect;
use std::sync::Arc;
pub(crate) use testing::{context, is_transient};

/// The rules of all proofs: every fold and policy that there is.
const DECLARATION: &str = "
collections:
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      avgRating: { avg: rating, from: reviews, by: productId }
      paid: { sum: amount, from: sales, by: productId, where: { status: paid } }
      margin: { expr: { $subtract: [$price, $cost] } }
      tickCount: { count: ticks, by: productId }
      tickTotal: { sum: amount, from: ticks, by: productId, where: { amount: { $gt: 0 } } }
  ticks:
    bucket: { into: tick_days, time: at, by: [productId], every: day, at_most: 3 }
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name, tier] }
  invoices:
    extended_reference:
      order: { from: orders, by: orderId, fields: { who: customer.name }, when_deleted: unset }
  notes:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name], when_deleted: cascade }
  contracts:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [name], when_deleted: reject }
";

pub(crate) const COLLECTIONS: &[&str] =
    &["products", "reviews", "sales", "orders", "customers", "invoices", "notes", "contracts"];

pub(crate) struct World {
    pub(crate) layer: Patterned,
    pub(crate) db: String,
    _folder: Option<tempfile::TempDir>,
}

impl World {
    /// With all rules on.
    pub(crate) async fn new(inner: Arc<dyn Backend>, folder: Option<tempfile::TempDir>, gate: Arc<dyn Gate>) -> World {
        let world = World::without_rules(inner.clone(), folder, gate).await;
        world.make_views(&*inner).await;
        world.declare();
        world
    }

    /// Puts the rules in force.
    pub(crate) fn declare(&self) {
        self.layer.set_rules(self.rules().into_iter().map(|rule| (Arc::new(rule), State::On)).collect()).unwrap();
    }

    /// The same collections, nothing declared.
    pub(crate) async fn without_rules(
        inner: Arc<dyn Backend>,
        folder: Option<tempfile::TempDir>,
        gate: Arc<dyn Gate>,
    ) -> World {
        let db = format!("proof_{}_{}", std::process::id(), testing::next());
        let layer = Patterned::with_gate(inner.clone(), gate);
        testing::prepare(&*inner, &db).await;
        let world = World { layer, db, _folder: folder };
        for name in COLLECTIONS {
            let op = AdminOp::Create { ns: world.ns(name), options: Default::default() };
            inner.admin(&mut Session::default(), &context(), op).await.unwrap();
        }
        for (name, key) in [
            ("reviews", "productId"),
            ("sales", "productId"),
            ("orders", "customerId"),
            ("invoices", "orderId"),
            ("notes", "customerId"),
            ("contracts", "customerId"),
        ] {
            let indexes = vec![Doc::from(doc! { "key": { key: 1 }, "name": key })];
            let op = AdminOp::CreateIndexes { ns: world.ns(name), indexes };
            inner.admin(&mut Session::default(), &context(), op).await.unwrap();
        }
        world
    }

    fn rules(&self) -> Vec<Rule> {
        let declared = patterns::declare::from_yaml("pleach.yaml", &format!("database: {}{DECLARATION}", self.db));
        declared.into_result().unwrap_or_else(|error| panic!("{error}")).rules
    }

    /// The views over buckets, as `apply` makes them.
    async fn make_views(&self, inner: &dyn Backend) {
        let dialect = if inner.facts().runs_our_code { Dialect::Embedded } else { Dialect::MongoDb };
        for rule in self.rules() {
            let Some(bucket) = rule.bucket() else { continue };
            let options = Default::default();
            let create = AdminOp::Create { ns: bucket.into.clone(), options };
            inner.admin(&mut Session::default(), &context(), create).await.unwrap();
            let (ns, on) = (rule.host.clone(), bucket.into.collection.to_string());
            let view = AdminOp::CreateView { ns, on, pipeline: bucket.view(dialect) };
            inner.admin(&mut Session::default(), &context(), view).await.unwrap();
        }
    }

    /// What is there already, without its rules.
    pub(crate) fn found(inner: Arc<dyn Backend>, db: &str) -> World {
        World { layer: Patterned::new(inner), db: db.to_owned(), _folder: None }
    }

    pub(crate) fn ns(&self, collection: &str) -> Namespace {
        Namespace::new(&self.db, collection)
    }

    pub(crate) async fn write(&self, act: &Act) -> Result<Written> {
        self.write_at(&mut Session::default(), act).await
    }

    pub(crate) async fn begin(&self, session: &mut Session) -> Result<()> {
        self.layer.begin(session, &context()).await
    }

    pub(crate) async fn write_at(&self, session: &mut Session, act: &Act) -> Result<Written> {
        self.layer.write(session, &context(), &act.op(self), &Capture::Nothing).await
    }

    pub(crate) async fn aggregate(&self, ns: Namespace, pipeline: Pipeline) -> Vec<Document> {
        let op = ReadOp::Aggregate(Aggregate { ns, collectionless: false, pipeline, hint: None, allow_disk_use: true });
        testing::rows(&self.layer, &mut Session::default(), op).await.unwrap()
    }

    pub(crate) async fn all(&self, collection: &str) -> Vec<Document> {
        let Value::Array(stages) = Value::from(Bson::Array(vec![Bson::Document(doc! { "$sort": { "_id": 1 } })]))
        else {
            panic!("an array is an array")
        };
        let pipeline = Pipeline::parse(&stages, &mut Names::new()).unwrap();
        self.aggregate(self.ns(collection), pipeline).await
    }

    /// Every derived value that is not what its definition says.
    pub(crate) async fn drift(&self) -> Vec<String> {
        let mut found = Vec::new();
        for kept in self.layer.rules().all() {
            let Some(field) = &kept.field else { continue };
            let pipeline = Pipeline::parse(&field.expected(true), &mut Names::new()).unwrap();
            for row in self.aggregate(kept.rule.host.clone(), pipeline).await {
                found.push(format!("{}: {row}", kept.rule.name));
            }
        }
        found
    }
}

/// What a client does, as data.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Insert(&'static str, Vec<Document>),
    /// Filter, update (operators, a replacement or a pipeline), many, upsert.
    Update(&'static str, Document, Bson, bool, bool),
    Delete(&'static str, Document, bool),
    /// findAndModify: an update with `new: true`, or nothing for a removal.
    Modify(&'static str, Document, Option<Document>),
}

impl Act {
    pub(crate) fn op(&self, world: &World) -> WriteOp {
        match self {
            Act::Insert(collection, documents) => testing::insert(world.ns(collection), documents.clone()),
            Act::Update(collection, query, change, multi, upsert) => {
                let statement = testing::statement(query.clone(), change.clone(), &[]);
                let statement = UpdateStatement { multi: *multi, upsert: *upsert, ..statement };
                testing::updates(world.ns(collection), vec![statement], true)
            }
            Act::Delete(collection, query, multi) => testing::delete(world.ns(collection), query.clone(), *multi),
            Act::Modify(collection, query, change) => {
                let update = |change: &Document| {
                    let update = testing::change(change.clone());
                    Modify::Update { update, upsert: false, return_new: true }
                };
                let action = change.as_ref().map_or(Modify::Remove, update);
                WriteOp::FindAndModify(Box::new(testing::find_and_modify(world.ns(collection), query.clone(), action)))
            }
        }
    }
}
