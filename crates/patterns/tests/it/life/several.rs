//! Several processes that serve one MongoDB (SEMANTICS R3): a change of rules reaches all of them before a rule is seeded, a
//! process without a lease writes nothing, and one goes on with what another has left. The store is the embedded one; it says of
//! itself that it is shared, as a real MongoDB is.

use super::dying::Dying;
use super::village::{COUNT, SUM, Village, declared, told};
use crate::harness::{context, insert, run};
use bson::{Bson, doc};
use document::backend::{Backend, Session};
use document::op::{Capture, Namespace, ReadOp};
use pleach_patterns::Patterned;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use testing::Opened;

/// One that is not waited for, and one that ends soon.
pub(crate) const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(800);

/// A process, and what cuts it off.
pub(crate) struct Process {
    pub(crate) village: Village,
    left: Arc<AtomicI64>,
}

impl Process {
    pub(crate) async fn start(store: &Opened, lease: Duration) -> Process {
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let remote = Dying { inner: store.backend.clone(), left: left.clone(), shared: true };
        let village = Village::on(store.clone(), Patterned::new(Arc::new(remote)));
        village.life.limit_lease(lease);
        village.life.load().await.unwrap();
        village.life.start().await.unwrap();
        Process { village, left }
    }
}

async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    for _ in 0..1_000 {
        if done().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited too long: {what}");
}

async fn review(process: &Process) -> document::Result<document::op::Written> {
    let op = insert("reviews", vec![doc! { "productId": 1, "n": 1, "kind": "good" }]);
    process.village.front.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await
}

async fn counted(process: &Process, field: &str) -> Option<Bson> {
    process.village.find("products", doc! { "_id": 1 }).await.remove(0).remove(field)
}

#[test]
fn a_process_that_knew_no_rule_keeps_the_first_one() {
    run(async {
        let engine = Opened::engine();
        let (first, second) = (Process::start(&engine, LONG).await, Process::start(&engine, LONG).await);
        first.village.fill(6, 20).await;
        // Both have clients while the rule comes, is changed and goes.
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = first.village.clients(0..2, 6, &stop);
        clients.extend(second.village.clients(2..4, 6, &stop));
        first.village.apply(COUNT).await.unwrap();
        second.village.assert_clean().await;
        second.village.apply(&COUNT.replace("by: productId", "by: productId, where: { kind: good }")).await.unwrap();
        first.village.assert_clean().await;
        let change = doc! { "declaration": declared(SUM), "remove": true, "with_data": true };
        first.village.ask("apply", change).await.unwrap();
        second.village.assert_clean().await;
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.await.unwrap() > 5);
        }
        for process in [&first, &second] {
            until("both know", async || process.village.states().await == [("products.total".into(), "on".into())])
                .await;
            process.village.assert_clean().await;
        }
        for product in first.village.find("products", doc! {}).await {
            assert!(!product.contains_key("reviewCount"), "{product}");
        }
        // Dropped by the other.
        second.village.ask("drop", doc! { "rule": "products.total", "with_data": true }).await.unwrap();
        review(&first).await.unwrap();
        assert_eq!(counted(&first, "total").await, None);
        first.village.life.close().await;
        second.village.life.close().await;
        assert!(leases(&engine).await.is_empty());
        engine.close();
    });
}

async fn leases(store: &Opened) -> Vec<String> {
    let ns = Namespace::new("admin", "pleach.processes");
    let op = ReadOp::Find(testing::find(ns, doc! { "until": { "$exists": true } }));
    let rows = testing::rows(&*store.backend, &mut Session::default(), op).await.unwrap();
    rows.iter().map(|row| row.get_str("who").unwrap().to_owned()).collect()
}

#[test]
fn a_process_that_is_cut_off_writes_nothing_until_it_has_a_lease_again() {
    run(async {
        let engine = Opened::engine();
        let (first, second) = (Process::start(&engine, SHORT).await, Process::start(&engine, SHORT).await);
        first.village.fill(6, 20).await;
        second.left.store(0, Ordering::Relaxed);
        // What it still may write as far as it knows is lost on the way; then it refuses by itself.
        until("the lease has run out", async || {
            review(&second).await.is_err_and(|error| told(&error).starts_with("10107: this Pleach holds no lease"))
        })
        .await;
        // Others wait for that, and not for longer.
        first.village.apply(COUNT).await.unwrap();
        assert_eq!(counted(&first, "reviewCount").await, Some(Bson::Int32(4)));
        let refused = review(&second).await.unwrap_err();
        assert!(told(&refused).starts_with("10107"), "{refused}");
        second.left.store(i64::MAX, Ordering::Relaxed);
        until("it has a lease again", async || review(&second).await.is_ok()).await;
        assert_eq!(counted(&first, "reviewCount").await, Some(Bson::Int32(5)));
        first.village.assert_clean().await;
        first.village.life.close().await;
        second.village.life.close().await;
        engine.close();
    });
}

#[test]
fn another_goes_on_with_what_a_process_has_left() {
    run(async {
        let engine = Opened::engine();
        let (first, second) = (Process::start(&engine, SHORT).await, Process::start(&engine, SHORT).await);
        first.village.fill(60, 200).await;
        first.village.life.limit_hosts(1);
        let apply = doc! { "declaration": declared(COUNT), "wait": false };
        first.village.ask("apply", apply).await.unwrap();
        // Gone without a word, in the middle or before it began.
        first.left.store(rand::random_range(5..60), Ordering::Relaxed);
        until("the other brings it on", async || {
            // On a busy machine a lease so short may lapse for a moment.
            let _refused = review(&second).await;
            second.village.states().await == [("products.reviewCount".to_owned(), "on".to_owned())]
        })
        .await;
        second.village.assert_clean().await;
        let of_second: Vec<String> = leases(&engine).await;
        assert!(of_second.len() <= 2, "{of_second:?}");
        // One that returns learns what it is now.
        first.left.store(i64::MAX, Ordering::Relaxed);
        until("it has a lease again", async || review(&first).await.is_ok()).await;
        first.village.assert_clean().await;
        first.village.life.close().await;
        second.village.life.close().await;
        engine.close();
    });
}

/// How many users are stored in the newest version.
async fn migrated(store: &Opened) -> usize {
    let op = ReadOp::Find(testing::find(crate::harness::ns("users"), doc! { "v": 2 }));
    testing::rows(&*store.backend, &mut Session::default(), op).await.unwrap().len()
}

#[test]
fn a_migration_has_one_process_and_goes_on_in_another() {
    run(async {
        let engine = Opened::engine();
        let (first, second) = (Process::start(&engine, SHORT).await, Process::start(&engine, SHORT).await);
        let old = |id: i32| doc! { "_id": id, "mail": format!("m{id}") };
        first.village.behind(insert("users", (0..1_500).map(old).collect())).await;
        let steps = "field: v, steps: [ { rename: { mail: email } } ], migrate: { rate: 700/s }";
        let rules = format!("{{ users: {{ versions: {{ {steps} }} }} }}");
        let apply = doc! { "declaration": declared(&rules), "wait": false };
        first.village.ask("apply", apply).await.unwrap();
        until("it has begun", async || migrated(&engine).await > 0).await;
        let status = second.village.ask("status", doc! {}).await.unwrap().to_string();
        assert!(!status.contains("per_second"), "the second brings nothing up: {status}");
        first.left.store(0, Ordering::Relaxed);
        let left_at = migrated(&engine).await;
        assert!(left_at < 1_500, "gone in the middle");
        // Writers beside Pleach go on meanwhile.
        second.village.behind(insert("users", (2_000..2_100).map(old).collect())).await;
        for _ in 0..6 {
            if migrated(&engine).await == 1_600 {
                break;
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(migrated(&engine).await, 1_600);
        let one = second.village.find("users", doc! { "_id": 2_099 }).await.remove(0);
        assert_eq!(one, doc! { "_id": 2_099, "email": "m2099", "v": 2 });
        first.left.store(i64::MAX, Ordering::Relaxed);
        first.village.life.close().await;
        second.village.life.close().await;
        engine.close();
    });
}

#[test]
fn what_was_there_is_kept_whichever_process_changes_it_first() {
    run(async {
        let engine = Opened::engine();
        let (first, second) = (Process::start(&engine, LONG).await, Process::start(&engine, LONG).await);
        let product = |id: i32| match id % 3 {
            0 => doc! { "_id": id },
            _ => doc! { "_id": id, "total": 1_000 + id },
        };
        first.village.behind(insert("products", (0..150).map(product).collect())).await;
        first.village.life.limit_hosts(1);
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = first.village.clients(0..1, 150, &stop);
        clients.extend(second.village.clients(2..5, 150, &stop));
        first.village.overwriting(SUM, true).await.unwrap();
        second.village.ask("drop", doc! { "rule": "products.total", "restore": true }).await.unwrap();
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            assert!(client.await.unwrap() > 5);
        }
        for found in first.village.find("products", doc! {}).await {
            let id = found.get_i32("_id").unwrap();
            let had = if id < 150 {
                product(id)
            } else {
                doc! { "_id": id }
            };
            assert_eq!(found, had);
        }
        first.village.life.close().await;
        second.village.life.close().await;
        engine.close();
    });
}

#[test]
fn a_change_that_a_dead_process_has_begun_is_waited_for_and_replaced() {
    run(async {
        let engine = Opened::engine();
        let first = Process::start(&engine, SHORT).await;
        first.village.fill(6, 20).await;
        // Killed in the middle of a change of rules: its lease lasts a little longer than one of ours.
        let until = bson::DateTime::from_millis(bson::DateTime::now().timestamp_millis() + 1_200);
        let rows = vec![
            doc! { "_id": "dead", "who": "process 1 on nowhere", "until": until, "seen": i64::MAX, "trace": {} },
            doc! { "_id": "changing", "process": "dead", "change": 7_i64 },
        ];
        first.village.behind(testing::insert(Namespace::new("admin", "pleach.processes"), rows)).await;
        first.village.apply(COUNT).await.unwrap();
        first.village.assert_clean().await;
        assert_eq!(leases(&engine).await.len(), 1);
        first.village.life.close().await;
        engine.close();
    });
}

#[test]
fn what_was_made_for_a_rule_goes_although_another_process_changes_rules() {
    run(async {
        let engine = Opened::engine();
        let process = Process::start(&engine, LONG).await;
        let village = &process.village;
        village.fill(6, 20).await;
        village.apply(COUNT).await.unwrap();
        let made = async || {
            let op = document::op::AdminOp::ListIndexes { ns: crate::harness::ns("reviews") };
            engine.backend.admin(&mut Session::default(), &context(), op).await.unwrap().len() == 2
        };
        assert!(made().await);
        // Another process that does not know of the change yet: the rule cannot go before it does.
        let registry = || Namespace::new("admin", "pleach.processes");
        let until_then = Bson::DateTime(bson::DateTime::MAX);
        let other = doc! { "_id": "other", "who": "other", "until": until_then, "seen": 0_i64 };
        village.behind(testing::insert(registry(), vec![other])).await;
        let dropped = village.ask("drop", doc! { "rule": "products.reviewCount" });
        let meanwhile = async {
            until("it goes", async || village.states().await[0].1 == "retiring").await;
            let changing = doc! { "_id": "changing", "process": "other", "change": 1_i64 };
            village.behind(testing::insert(registry(), vec![changing])).await;
            let known = doc! { "$set": { "seen": i64::MAX } };
            village.behind(testing::update(registry(), doc! { "_id": "other" }, known, &[])).await;
            until("it is gone", async || village.states().await.is_empty()).await;
            // The other may be about to use it.
            assert!(made().await);
            village.behind(testing::delete(registry(), doc! { "_id": "changing" }, false)).await;
        };
        let (dropped, ()) = tokio::join!(dropped, meanwhile);
        dropped.unwrap();
        assert!(!made().await);
        process.village.life.close().await;
        engine.close();
    });
}
