//! Copies that were read lately are taken again without reading (SEMANTICS R1), and are right whoever changes their source
//! meanwhile: another process between the reading and the insert, or while the insert is about to leave.

use bson::{Bson, Document, doc};
use document::backend::Answer;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use patterns::gate::{Gate, Point};
use patterns::plan::Action;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testing::{Act, Opened, World, shop};

const NOTES: &str = "notes:\n  extended_reference:\n    customer: { from: customers, by: customerId, fields: [name], when_deleted: cascade }";

/// Counts what is read, and does something in the last moment before a plan leaves.
#[derive(Default)]
struct Watch {
    reads: AtomicUsize,
    at_commit: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Gate for Watch {
    fn pass<'a>(&'a self, point: Point<'a>) -> Answer<'a, ()> {
        if matches!(point, Point::Step { action: Action::Read(_), .. }) {
            self.reads.fetch_add(1, Ordering::Relaxed);
        }
        let last = if matches!(point, Point::Commit) { self.at_commit.lock().take() } else { None };
        Box::pin(async move {
            if let Some(last) = last {
                last.await;
            }
            Ok(())
        })
    }
}

/// Two processes in front of one MongoDB.
struct Two {
    watch: Arc<Watch>,
    ours: World,
    others: Arc<World>,
    next: i32,
}

fn rename(name: &str) -> Act {
    Act::Update("customers", doc! { "_id": 1 }, Bson::from(doc! { "$set": { "name": name } }), false, false)
}

impl Two {
    async fn new(first: Opened, second: Opened) -> Two {
        let watch = Arc::new(Watch::default());
        let ours = shop::empty(&first, watch.clone()).await.declaring(NOTES);
        let others = World::on(second, &ours.db).declaring(NOTES);
        ours.act(&Act::Insert("customers", vec![doc! { "_id": 1, "name": "Ann" }])).await.unwrap();
        Two { watch, ours, others: Arc::new(others), next: 0 }
    }

    /// The copy that a new note gets, and how often something was read for it.
    async fn note(&mut self) -> (Option<String>, usize) {
        self.next += 1;
        let before = self.watch.reads.load(Ordering::Relaxed);
        let note = doc! { "_id": self.next, "customerId": 1 };
        self.ours.act(&Act::Insert("notes", vec![note])).await.unwrap();
        let reads = self.watch.reads.load(Ordering::Relaxed) - before;
        let stored: Vec<Document> = self.ours.all("notes").await;
        let note = stored.iter().find(|note| note.get_i32("_id").unwrap() == self.next).unwrap();
        let copy = note.get_document("customer").ok().map(|copy| copy.get_str("name").unwrap().to_owned());
        (copy, reads)
    }

    /// Inserts until the copy is taken without reading, and says what it is.
    async fn warm(&mut self) -> String {
        for _ in 0..20 {
            if let (Some(copy), 0) = self.note().await {
                return copy;
            }
        }
        panic!("every insert reads its source");
    }

    async fn other(&self, act: Act) {
        self.others.act(&act).await.unwrap();
    }

    async fn check(&self, when: &str) {
        assert_eq!(self.ours.drift().await, Vec::<String>::new(), "{when}");
    }
}

pub(crate) async fn check(first: Opened, second: Opened) {
    let mut two = Two::new(first, second).await;
    assert_eq!(two.warm().await, "Ann");

    two.other(rename("Bea")).await;
    assert_eq!(two.note().await.0.as_deref(), Some("Bea"));
    two.check("changed by another process").await;

    assert_eq!(two.warm().await, "Bea");
    let others = two.others.clone();
    *two.watch.at_commit.lock() = Some(Box::pin(async move { drop(others.act(&rename("Cid")).await.unwrap()) }));
    assert_eq!(two.note().await.0.as_deref(), Some("Cid"));
    two.check("changed when the insert was about to leave").await;

    assert_eq!(two.warm().await, "Cid");
    let mut session = two.others.begin().await;
    two.others.act_at(&mut session, &rename("Dan")).await.unwrap();
    let others = two.others.clone();
    let commit = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        others.commit(&mut session).await.unwrap();
    };
    let ((copy, _), ()) = tokio::join!(two.note(), commit);
    assert_eq!(copy.as_deref(), Some("Dan"));
    two.check("changed by a transaction that was open").await;

    assert_eq!(two.warm().await, "Dan");
    two.other(Act::Delete("customers", doc! { "_id": 1 }, false)).await;
    assert_eq!(two.note().await.0, None);
    two.other(Act::Insert("customers", vec![doc! { "_id": 1, "name": "Eve" }])).await;
    assert_eq!(two.note().await.0.as_deref(), Some("Eve"));
    two.check("deleted and inserted again").await;

    // Behind the back of both: no fence tells of it, so it is seen a moment later.
    assert_eq!(two.warm().await, "Eve");
    two.ours.behind(rename("Fay").op(&two.ours)).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(two.note().await.0.as_deref(), Some("Fay"));
    two.other(rename("Gus")).await;
    two.check("after a change behind the back").await;
    under_load(&two).await;
}

/// Both processes insert and rename at the same time.
async fn under_load(two: &Two) {
    for n in 2..=4 {
        two.other(Act::Insert("customers", vec![doc! { "_id": n, "name": "new" }])).await;
    }
    let inserts = |world: &'_ World, first: i32| {
        let acts: Vec<Act> = (0..60)
            .map(|n| Act::Insert("notes", vec![doc! { "_id": first + n, "customerId": 1 + (n * 7 + first) % 4 }]))
            .collect();
        let world = world.another().declaring(NOTES);
        async move {
            for act in acts {
                world.act(&act).await.unwrap();
            }
        }
    };
    let renames = async {
        for n in 0..40 {
            let change = Bson::from(doc! { "$set": { "name": format!("name {n}") } });
            two.other(Act::Update("customers", doc! { "_id": 1 + n % 4 }, change, false, false)).await;
        }
    };
    tokio::join!(inserts(&two.ours, 1_000), inserts(&two.ours, 2_000), inserts(&two.others, 3_000), renames);
    two.check("under load").await;
    assert_eq!(two.ours.all("notes").await.iter().filter(|note| note.get_i32("_id").unwrap() >= 1_000).count(), 180);
}
