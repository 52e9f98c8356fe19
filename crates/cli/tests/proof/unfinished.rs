//! An audit counts as checked only what it compared: rules that are being seeded or removed, and what waits in the outbox, are
//! said to be not checked.

use crate::failing::Failing;
use bson::{Bson, Document, doc};
use patterns::life::relocate::drop::Leaving;
use std::sync::Arc;
use testing::{Act, Living, Opened, shop};

const RULES: &str =
    "{ orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name], lag: 1h } } } }";

const HOSTS: i64 = 20;

fn set(collection: &'static str, query: Document, change: Document) -> Act {
    Act::Update(collection, query, Bson::Document(doc! { "$set": change }), true, false)
}

/// Checked, not checked, drifted, the outcome and what the notes are about.
fn seen(report: &Document) -> (i64, i64, i64, String, Vec<String>) {
    let number = |name: &str| report.get_i64(name).unwrap();
    let rule = report.get_array("rules").unwrap()[0].as_document().unwrap();
    assert_eq!(rule.get_i64("checked").unwrap(), number("checked"));
    assert_eq!(rule.get_i64("unchecked").unwrap(), number("unchecked"));
    let notes = rule.get_array("notes").cloned().unwrap_or_default();
    let about = notes.iter().map(|note| note.as_document().unwrap().get_str("about").unwrap().to_owned()).collect();
    let outcome = report.get_str("outcome").unwrap().to_owned();
    (number("checked"), number("unchecked"), number("drifted"), outcome, about)
}

fn wanted(checked: i64, unchecked: i64, outcome: &str, about: &[&str]) -> (i64, i64, i64, String, Vec<String>) {
    (checked, unchecked, 0, outcome.to_owned(), about.iter().map(|about| (*about).to_owned()).collect())
}

pub(crate) async fn check(opened: &Opened) {
    let living = shop::open(opened, Arc::new(Failing::default()), "").await;
    let orders = (0..i32::try_from(HOSTS).unwrap()).map(|n| doc! { "_id": n, "customerId": 1 + n % 2 });
    for act in [
        Act::Insert("customers", vec![doc! { "_id": 1, "name": "Ada" }, doc! { "_id": 2, "name": "Bob" }]),
        Act::Insert("orders", orders.collect()),
    ] {
        living.behind(act.op(&living)).await;
    }
    // Applied, and no document has the field yet.
    living.set_rules(RULES).await;
    assert_eq!(seen(&living.ask("audit", doc! {}).await.unwrap()), wanted(0, HOSTS, "incomplete", &["seeding"]));
    assert_eq!(seen(&living.ask("repair", doc! {}).await.unwrap()), wanted(0, HOSTS, "incomplete", &["seeding"]));
    half_seeded(&living).await;
    living.rest().await;
    assert_eq!(seen(&living.ask("audit", doc! {}).await.unwrap()), wanted(HOSTS, 0, "right", &[]));
    // A job for half of the documents waits.
    let renamed = living.act(&set("customers", doc! { "_id": 1 }, doc! { "name": "Eve" })).await.unwrap();
    assert_eq!(renamed.n, 1);
    assert_eq!(
        seen(&living.ask("audit", doc! {}).await.unwrap()),
        wanted(HOSTS / 2, HOSTS / 2, "incomplete", &["outbox"])
    );
    // The collection is there and has no documents; then its rule is being removed.
    living.behind(Act::Delete("orders", doc! {}, true).op(&living)).await;
    assert_eq!(seen(&living.ask("audit", doc! {}).await.unwrap()), wanted(0, 0, "right", &["empty"]));
    let leaving = Leaving { with_data: true, ..Leaving::default() };
    living.life.drop_rule(Some(&living.db), "orders.customer", leaving).await.unwrap();
    assert_eq!(seen(&living.ask("audit", doc! {}).await.unwrap()), wanted(0, 0, "incomplete", &["retiring"]));
    living.life.bring_on().await.unwrap();
    let nothing = living.ask("audit", doc! {}).await.unwrap();
    assert_eq!(
        (nothing.get_str("outcome").unwrap(), nothing.get_i64("checked").unwrap()),
        ("impossible", 0),
        "{nothing}"
    );
    living.drop_database().await;
}

/// As a process finds it that starts while another has seeded the first seven documents.
async fn half_seeded(living: &Living) {
    let name = doc! { "_id": "orders.customer" };
    let was = living.all("pleach.catalog").await;
    let was = was.into_iter().find(|row| row.get_str("_id").is_ok_and(|id| id == "orders.customer")).unwrap();
    living.behind(set("pleach.catalog", name.clone(), doc! { "state": "seeding", "position": 7 }).op(living)).await;
    for (ids, customer) in [(doc! { "$in": [0, 2, 4, 6] }, "Ada"), (doc! { "$in": [1, 3, 5] }, "Bob")] {
        living.behind(set("orders", doc! { "_id": ids }, doc! { "customer": { "name": customer } }).op(living)).await;
    }
    let other = Living::of(living.another());
    other.life.load().await.unwrap();
    let report = other.ask("audit", doc! {}).await.unwrap();
    assert_eq!(seen(&report), wanted(7, HOSTS - 7, "incomplete", &["seeding"]));
    living.behind(Act::Update("pleach.catalog", name, Bson::Document(was), false, false).op(living)).await;
}
