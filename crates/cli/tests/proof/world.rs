//! Rules on a backend of either kind, and short words for what clients do.

use bson::{Bson, Document, doc};
use document::backend::{Backend, BatchLimit, Session};
use document::filter::Filter;
use document::op::{
    Aggregate, Capture, Context, Delete, DeleteStatement, Durability, FindAndModify, Insert, Modify, Namespace,
    ReadConcern, ReadOp, Sent, UpdateOp, UpdateStatement, WriteOp, Written,
};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Code, Doc, Env, Error, Result, Value};
use patterns::Patterned;
use patterns::gate::Gate;
use patterns::life::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The rules of all proofs: every fold and policy that there is.
const DECLARATION: &str = "
collections:
  products:
    computed:
      reviewCount: { count: reviews, by: productId }
      avgRating: { avg: rating, from: reviews, by: productId }
      paid: { sum: amount, from: sales, by: productId, where: { status: paid } }
      margin: { expr: { $subtract: [$price, $cost] } }
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
        let world = World::without_rules(inner, folder, gate).await;
        world.declare();
        world
    }

    /// Puts the rules in force.
    fn declare(&self) {
        let declared = patterns::declare::from_yaml("pleach.yaml", &format!("database: {}{DECLARATION}", self.db));
        let rules = declared.into_result().unwrap_or_else(|error| panic!("{error}")).rules;
        self.layer.set_rules(rules.into_iter().map(|rule| (Arc::new(rule), State::On)).collect()).unwrap();
    }

    /// The same collections, nothing declared.
    pub(crate) async fn without_rules(
        inner: Arc<dyn Backend>,
        folder: Option<tempfile::TempDir>,
        gate: Arc<dyn Gate>,
    ) -> World {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let db = format!("proof_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let layer = Patterned::with_gate(inner.clone(), gate);
        inner.prepare(&mut Session::default(), &db).await.unwrap();
        let world = World { layer, db, _folder: folder };
        for name in COLLECTIONS {
            let op = document::op::AdminOp::Create { ns: world.ns(name), options: Default::default() };
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
            let op = document::op::AdminOp::CreateIndexes { ns: world.ns(name), indexes };
            inner.admin(&mut Session::default(), &context(), op).await.unwrap();
        }
        world
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
        let (mut session, context) = (Session::default(), context());
        let mut cursor = self.layer.read(&mut session, &context, op).await.unwrap();
        let mut all = Vec::new();
        loop {
            let limit = BatchLimit { documents: 10_000, bytes: 16 << 20 };
            let batch = cursor.next(&mut session, &context, limit).await.unwrap();
            all.extend(batch.documents.iter().map(|doc| Document::try_from(doc).unwrap()));
            if batch.exhausted {
                return all;
            }
        }
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
            let Some(program) = &kept.program else { continue };
            let pipeline = Pipeline::parse(&program.expected(true), &mut Names::new()).unwrap();
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
        let filter = |query: &Document| Filter::parse(&Doc::from(query), &mut Names::new()).unwrap();
        let update = |change: Bson| Update::parse(&Value::from(change), &[], &mut Names::new()).unwrap();
        match self {
            Act::Insert(collection, documents) => WriteOp::Insert(Insert {
                ns: world.ns(collection),
                documents: documents.iter().map(Doc::from).collect(),
                ordered: true,
                bypass_validation: false,
                statement_ids: Vec::new(),
            }),
            Act::Update(collection, query, change, multi, upsert) => WriteOp::Update(UpdateOp {
                ns: world.ns(collection),
                statements: vec![UpdateStatement {
                    filter: filter(query),
                    update: update(change.clone()),
                    multi: *multi,
                    upsert: *upsert,
                    hint: None,
                }],
                ordered: true,
                bypass_validation: false,
                statement_ids: Vec::new(),
            }),
            Act::Delete(collection, query, multi) => WriteOp::Delete(Delete {
                ns: world.ns(collection),
                statements: vec![DeleteStatement { filter: filter(query), multi: *multi, hint: None }],
                ordered: true,
                statement_ids: Vec::new(),
            }),
            Act::Modify(collection, query, change) => WriteOp::FindAndModify(Box::new(FindAndModify {
                ns: world.ns(collection),
                filter: filter(query),
                sort: None,
                action: match change {
                    Some(change) => Modify::Update {
                        update: update(Bson::Document(change.clone())),
                        upsert: false,
                        return_new: true,
                    },
                    None => Modify::Remove,
                },
                projection: None,
                hint: None,
                bypass_validation: false,
                statement_id: 0,
            })),
        }
    }
}

pub(crate) fn context() -> Context {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let new_id = || {
        let mut id = [0; 12];
        id[..4].copy_from_slice(&std::process::id().to_be_bytes());
        id[4..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        id
    };
    Context {
        env: Env { new_id, ..Env::fixed() },
        read_concern: ReadConcern::Local,
        durability: Durability::Relaxed,
        deadline: None,
        sent: Sent::default(),
    }
}

pub(crate) fn is_transient(error: &Error) -> bool {
    error.code() == Code::WriteConflict || error.labels().contains(&"TransientTransactionError")
}
