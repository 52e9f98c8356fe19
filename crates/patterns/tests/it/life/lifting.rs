//! `lift`: the items of an array become documents, online, resumable wherever it is stopped, and back.

use super::dying::Dying;
use super::village::{Village, declared};
use crate::harness::{context, delete, insert, run, update};
use bson::{Bson, Document, doc};
use document::backend::{Backend, Session};
use document::op::{AdminOp, Capture, CollectionOptions, Namespace};
use document::{Code, Doc};
use pleach_patterns::life::apply::Consent;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use testing::Data;

/// The window beside the array, and in its place.
const BESIDE: &str = "{ products: { subset: { recent: { from: reviews, by: productId, sort: { n: -1 }, keep: 2, fields: [n, text], lift: reviews } } } }";
const WITHIN: &str = "{ products: { subset: { reviews: { from: reviews, by: productId, sort: { n: -1 }, keep: 2, fields: [n, text], lift: reviews } } } }";

fn name(rules: &str) -> &'static str {
    if rules.contains("recent") { "products.recent" } else { "products.reviews" }
}

fn window(rules: &str) -> &'static str {
    if rules.contains("recent") { "recent" } else { "reviews" }
}

/// Products with arrays of all kinds: ids of their own, none, the key inside, nothing.
fn products() -> Vec<Document> {
    let own = |id: i32, n: i32| doc! { "_id": id, "n": n, "text": format!("own {id}") };
    let bare = |n: i32| doc! { "n": n, "text": format!("bare {n}") };
    vec![
        doc! { "_id": 0, "name": "none" },
        doc! { "_id": 1, "reviews": [], "name": "empty" },
        doc! { "_id": 2, "reviews": null, "name": "null" },
        doc! { "_id": 3, "a": 1, "reviews": [own(31, 5), own(32, 9), own(33, 7)], "z": 1 },
        doc! { "_id": 4, "reviews": (0..5).map(|n| Bson::Document(bare(n))).collect::<Vec<_>>(), "z": 1 },
        doc! { "_id": 5, "reviews": [own(51, 1), bare(2), { "_id": 53, "productId": 5, "n": 3 }, bare(2)], "z": { "y": 1 } },
        doc! { "_id": 6, "reviews": (0..40).map(|n| Bson::Document(bare(n))).collect::<Vec<_>>() },
    ]
}

async fn filled(village: &Village) {
    village.behind(insert("products", products())).await;
}

async fn all(village: &Village, collection: &str) -> Vec<Document> {
    village.find(collection, doc! {}).await
}

/// What becomes of the products, but for the order of children: items by product, without what they were given.
async fn assert_lifted(village: &Village, rules: &str) {
    let children = all(village, "reviews").await;
    assert_eq!(children.len(), 3 + 5 + 4 + 40, "{children:?}");
    for product in products() {
        let id = product.get_i32("_id").unwrap();
        let mut items: Vec<Document> = match product.get("reviews") {
            Some(Bson::Array(items)) => items.iter().map(|item| item.as_document().unwrap().clone()).collect(),
            _ => Vec::new(),
        };
        let mut mine: Vec<Document> =
            children.iter().filter(|child| child.get_i32("productId").ok() == Some(id)).cloned().collect();
        assert_eq!(mine.len(), items.len(), "{id}");
        for item in &mut items {
            item.insert("productId", id);
            let is_it = |child: &Document| item.iter().all(|(name, value)| child.get(name) == Some(value));
            let at = mine.iter().position(is_it).unwrap_or_else(|| panic!("{item} of {mine:?}"));
            mine.remove(at);
        }
        let now = village.one("products", id).await;
        items.sort_by_key(|item| -item.get_i32("n").unwrap());
        let shown: Vec<i32> = items.iter().take(2).map(|item| item.get_i32("n").unwrap()).collect();
        let window = now.get_array(window(rules)).unwrap_or_else(|_| panic!("{now}"));
        let window: Vec<i32> = window.iter().map(|item| item.as_document().unwrap().get_i32("n").unwrap()).collect();
        assert_eq!(window, shown, "{now}");
        if rules == BESIDE && id != 2 {
            assert!(!now.contains_key("reviews"), "{now}");
        }
    }
    village.assert_clean().await;
}

/// Everything is as it was, byte for byte, and nothing is kept.
async fn assert_restored(village: &Village) {
    for (now, before) in all(village, "products").await.iter().zip(products()) {
        assert_eq!(now.to_string(), before.to_string());
    }
    for collection in ["reviews", "pleach.replaced", "pleach.catalog"] {
        assert_eq!(all(village, collection).await, Vec::<Document>::new(), "{collection}");
    }
}

#[test]
fn items_become_documents_and_items_again() {
    run(async {
        for (rules, part) in [(BESIDE, 500), (BESIDE, 3), (WITHIN, 500), (WITHIN, 3)] {
            let village = Village::new().await;
            filled(&village).await;
            village.life.limit_hosts(part);
            let answer = village.apply(rules).await.unwrap();
            assert_lifted(&village, rules).await;
            let status = village.ask("status", doc! {}).await.unwrap();
            let seeded =
                status.get_array("rules").unwrap()[0].as_document().unwrap().get_document("seeded").unwrap().clone();
            assert_eq!(seeded.get_i64("lifted").ok(), Some(52), "{status} {answer}");
            let village = village.reopen().await;
            let dropped = village.ask("drop", doc! { "rule": name(rules), "restore": true }).await.unwrap();
            assert!(!dropped.contains_key("left") && !dropped.contains_key("kept"), "{dropped}");
            assert_restored(&village).await;
            village.close().await;
        }
    });
}

#[test]
fn wherever_it_is_cut_off_no_item_is_lost_or_doubled() {
    run(async {
        for (rules, restores) in [(BESIDE, false), (WITHIN, false), (BESIDE, true), (WITHIN, true)] {
            let mut tried = 0;
            for after in (1..).step_by(5) {
                let village = Village::new().await;
                filled(&village).await;
                if restores {
                    village.apply(rules).await.unwrap();
                }
                let left = Arc::new(AtomicI64::new(i64::MAX));
                let killer = left.clone();
                let around = |inner| -> Arc<dyn Backend> { Arc::new(Dying { inner, left: killer, shared: false }) };
                let village = Village::open(village.close().await, around).await.unwrap();
                village.life.limit_hosts(4);
                left.store(after, Ordering::Relaxed);
                let restore = || village.ask("drop", doc! { "rule": name(rules), "restore": true });
                let finished = if restores { restore().await.is_ok() } else { village.apply(rules).await.is_ok() };
                left.store(0, Ordering::Relaxed);
                let village = Village::open(village.close().await, |backend| backend).await.unwrap();
                village.life.settle("shop").await.unwrap();
                if restores {
                    if !village.states().await.is_empty() {
                        village.ask("drop", doc! { "rule": name(rules), "restore": true }).await.unwrap();
                    }
                    assert_restored(&village).await;
                } else {
                    village.apply(rules).await.unwrap();
                    assert_lifted(&village, rules).await;
                }
                village.close().await;
                tried += 1;
                if finished {
                    break;
                }
            }
            assert!(tried > 8, "{tried}");
        }
    });
}

/// A store that is cut off in the middle of the largest array: some of its items are documents, and all are in it.
async fn cut_off_half_way(rules: &str) -> Data {
    for after in (20..).step_by(3) {
        let village = Village::new().await;
        filled(&village).await;
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let killer = left.clone();
        let around = |inner| -> Arc<dyn Backend> { Arc::new(Dying { inner, left: killer, shared: false }) };
        let village = Village::open(village.close().await, around).await.unwrap();
        village.life.limit_hosts(4);
        left.store(after, Ordering::Relaxed);
        assert!(village.apply(rules).await.is_err(), "too late");
        left.store(0, Ordering::Relaxed);
        let data = village.close().await;
        let world = testing::World::on(data.open().await, "shop");
        let rows = world.all("pleach.catalog").await;
        let lifted =
            rows.iter().find_map(|row| row.get_document("replaced").ok()?.get_document("lifted").ok().cloned());
        let is_half = lifted.is_some_and(|lifted| lifted.get_i64("items").is_ok_and(|items| items > 0));
        drop(world.layer);
        world.opened.close();
        if is_half {
            return data;
        }
    }
    unreachable!()
}

#[test]
fn a_rule_that_is_dropped_half_way_leaves_no_item_twice() {
    run(async {
        for (rules, leaving) in [
            (BESIDE, doc! {}),
            (WITHIN, doc! {}),
            (BESIDE, doc! { "with_data": true }),
            (WITHIN, doc! { "with_data": true }),
            (BESIDE, doc! { "restore": true }),
            (WITHIN, doc! { "restore": true }),
        ] {
            let data = cut_off_half_way(rules).await;
            let village = Village::open(data, |backend| backend).await.unwrap();
            let mut asked = doc! { "rule": name(rules) };
            asked.extend(leaving.clone());
            // It may have got on meanwhile.
            village.ask("drop", asked).await.unwrap();
            if leaving.contains_key("restore") {
                assert_restored(&village).await;
                village.close().await;
                continue;
            }
            let children = all(&village, "reviews").await;
            for product in products() {
                let id = product.get_i32("_id").unwrap();
                let items = product.get_array("reviews").map_or(0, Vec::len);
                let documents = children.iter().filter(|child| child.get_i32("productId").ok() == Some(id)).count();
                let now = village.one("products", id).await;
                let left = now.get_array("reviews").map_or(0, Vec::len);
                match documents {
                    0 => assert_eq!(left, items, "{now}"),
                    _ => assert!(documents == items && left <= 2, "{documents} {now}"),
                }
            }
            village.close().await;
        }
    });
}

#[test]
fn clients_read_and_write_meanwhile() {
    run(async {
        for rules in [BESIDE, WITHIN] {
            let village = Village::new().await;
            let items = |product: i32| {
                (0..30).map(|n| Bson::Document(doc! { "_id": product * 100 + n, "n": n })).collect::<Vec<_>>()
            };
            let product = |id: i32| doc! { "_id": id, "views": 0, "reviews": items(id) };
            village.behind(insert("products", (0..60).map(product).collect())).await;
            village.life.limit_hosts(7);
            let counted =
                rules.replace("subset:", "computed: { reviewCount: { count: reviews, by: productId } }, subset:");
            village.ask("apply", doc! { "declaration": declared(&counted), "wait": false }).await.unwrap();
            let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
            let client = |number: i32| {
                let (front, stop, sent) = (village.front.clone(), stop.clone(), sent.clone());
                tokio::spawn(async move {
                    let mut made = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let (id, product) = (100_000 * number + made, rand::random_range(0..60));
                        let op = match made % 4 {
                            0 | 1 => insert("reviews", vec![doc! { "_id": id, "productId": product, "n": made }]),
                            2 => update("products", doc! { "_id": product }, doc! { "$inc": { "views": 1 } }, &[]),
                            _ => insert("products", vec![doc! { "_id": id, "reviews": [] }]),
                        };
                        let written =
                            front.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
                        assert!(written.errors.is_empty(), "{:?}", written.errors);
                        sent.fetch_add(i64::from(made % 4 < 2), Ordering::Relaxed);
                        made += 1;
                    }
                })
            };
            let clients: Vec<_> = (1..4).map(client).collect();
            village.life.settle("shop").await.unwrap();
            stop.store(true, Ordering::Relaxed);
            for client in clients {
                client.await.unwrap();
            }
            let number = i64::try_from(all(&village, "reviews").await.len()).unwrap();
            assert_eq!(number, 60 * 30 + sent.load(Ordering::Relaxed));
            village.assert_clean().await;
            village.ask("drop", doc! { "rule": "products.reviewCount" }).await.unwrap();
            village.ask("drop", doc! { "rule": name(rules), "restore": true }).await.unwrap();
            let back = village.one("products", 7).await;
            let first: Vec<Bson> = back.get_array("reviews").unwrap().iter().take(30).cloned().collect();
            assert_eq!(first, items(7));
            village.close().await;
        }
    });
}

#[test]
fn the_array_belongs_to_the_rule() {
    run(async {
        let refused = |error: &(i32, String)| {
            assert_eq!(error.0, Code::ImmutableField.number(), "{}", error.1);
            assert!(
                error.1.contains("'reviews' is kept by rule") && error.1.ends_with("write to reviews instead"),
                "{}",
                error.1
            );
        };
        for rules in [BESIDE, WITHIN] {
            let village = Village::new().await;
            filled(&village).await;
            let before = village.one("products", 3).await;
            village.apply(rules).await.unwrap();
            for change in [
                doc! { "$push": { "reviews": { "n": 1 } } },
                doc! { "$set": { "reviews.0.n": 1 } },
                doc! { "$unset": { "reviews": 1 } },
                doc! { "$setOnInsert": { "reviews": [] } },
            ] {
                refused(&village.refused(update("products", doc! { "_id": 3 }, change, &[])).await);
            }
            refused(&village.refused(insert("products", vec![doc! { "_id": 90, "reviews": [{ "n": 1 }] }])).await);
            refused(&village.refused(update("products", doc! { "_id": 3 }, before, &[])).await);
            // What was read now is accepted, and so is a document without the array.
            village.did(insert("products", vec![doc! { "_id": 91, "reviews": [] }])).await;
            let mut now = village.one("products", 3).await;
            now.insert("name", "new");
            village.did(update("products", doc! { "_id": 3 }, now.clone(), &[])).await;
            assert_eq!(village.one("products", 3).await, now);
            village.did(update("products", doc! { "_id": 4 }, doc! { "name": "bare" }, &[])).await;
            assert_eq!(village.one("products", 4).await.get_array(window(rules)).unwrap().len(), 2);
            village.assert_clean().await;
            village.close().await;
        }
    });
}

#[test]
fn what_cannot_become_a_document_is_counted_and_nothing_is_changed() {
    run(async {
        for (product, stored, expected) in [
            (
                doc! { "_id": 1, "reviews": [1, { "n": 1 }, "x"] },
                None,
                "2 items are not documents, such as in the document with _id 1",
            ),
            (doc! { "_id": 1, "reviews": { "n": 1 } }, None, "1 documents have something else than an array there"),
            (doc! { "_id": 1, "reviews": [{ "_id": [1] }] }, None, "1 items have an `_id` that no document can have"),
            (
                doc! { "_id": 1, "reviews": [{ "productId": 2 }] },
                None,
                "1 items have a `productId` of another document",
            ),
            (
                doc! { "_id": 1, "reviews": [{ "_id": 7 }, { "_id": 7.0 }] },
                None,
                "1 values of `_id` are used by several items, such as _id 7",
            ),
            (
                doc! { "_id": 1, "reviews": [{ "_id": 7, "n": 1 }] },
                Some(doc! { "_id": 7, "n": 2 }),
                "1 items have the `_id` of a document of `reviews` with other content",
            ),
        ] {
            let village = Village::new().await;
            village.behind(insert("products", vec![product.clone(), doc! { "_id": 2, "reviews": [{ "n": 5 }] }])).await;
            if let Some(stored) = &stored {
                village.behind(insert("reviews", vec![stored.clone()])).await;
            }
            let children = all(&village, "reviews").await;
            let error = village.overwrite(BESIDE).await.unwrap_err().to_string();
            assert!(error.contains("nothing was applied") && error.contains(expected), "{error}");
            let plan = village.ask("plan", doc! { "declaration": declared(BESIDE) }).await.unwrap();
            assert!(plan.to_string().contains("refused"), "{plan}");
            assert_eq!(village.one("products", 1).await, product);
            assert_eq!(all(&village, "reviews").await, children);
            assert_eq!(village.states().await, []);
            village.close().await;
        }
    });
}

/// Makes the child collection.
async fn validated(village: &Village, validator: Document, action: &str) {
    let options = CollectionOptions {
        validator: Some(Doc::from(validator)),
        validation_action: Some(action.to_owned()),
        ..CollectionOptions::default()
    };
    let create = AdminOp::Create { ns: Namespace::new("shop", "reviews"), options };
    village.define(create).await;
}

#[test]
fn items_that_the_child_collection_would_refuse_are_counted_and_nothing_is_moved() {
    run(async {
        let text =
            doc! { "$jsonSchema": { "required": ["n", "text"], "properties": { "text": { "bsonType": "string" } } } };
        let products = || {
            vec![
                doc! { "_id": 1, "reviews": [{ "n": 1, "text": "good" }, { "n": 2 }] },
                doc! { "_id": 2, "reviews": [{ "n": 3, "text": 5 }, { "n": 4, "text": "bad" }] },
            ]
        };
        let with = |more: &str| BESIDE.replacen("{ products", &format!("{{ {more}, products"), 1);
        let kinds = with("reviews: { polymorphic: { discriminator: n, kinds: { '1': { required: [text] } } } }");
        // What a rule gives the children may be what is asked for.
        let copied =
            with("reviews: { extended_reference: { product: { from: products, by: productId, fields: [name] } } }");
        for (validator, action, rules, expected) in [
            (
                text.clone(),
                "error",
                BESIDE.to_owned(),
                Some(
                    "2 items would be refused by `reviews`, such as in the document with _id 1: the validator of reviews refuses it",
                ),
            ),
            (text.clone(), "warn", BESIDE.to_owned(), None),
            (doc! { "productId": { "$gt": 1 } }, "error", BESIDE.to_owned(), Some("2 items would be refused")),
            (doc! { "product": { "$exists": true } }, "error", copied, None),
            (doc! {}, "error", kinds, Some("rule reviews.polymorphic refuses it: `n`")),
        ] {
            let village = Village::new().await;
            village.behind(insert("products", products())).await;
            validated(&village, validator.clone(), action).await;
            let applied = village.overwrite(&rules).await;
            let Some(expected) = expected else {
                applied.unwrap();
                assert_eq!(all(&village, "reviews").await.len(), 4, "{validator}");
                village.assert_clean().await;
                village.close().await;
                continue;
            };
            let error = applied.unwrap_err().to_string();
            assert!(error.contains("nothing was applied") && error.contains(expected), "{error}");
            let plan = village.ask("plan", doc! { "declaration": declared(&rules) }).await.unwrap();
            assert!(plan.to_string().contains(expected), "{plan}");
            assert_eq!(all(&village, "products").await, products());
            assert_eq!(all(&village, "reviews").await, Vec::<Document>::new());
            assert_eq!(village.states().await, []);
            village.close().await;
        }
    });
}

#[test]
fn a_plan_shows_what_would_be_moved() {
    run(async {
        let village = Village::new().await;
        filled(&village).await;
        let plan = village.ask("plan", doc! { "declaration": declared(WITHIN) }).await.unwrap();
        let rule = plan.get_array("rules").unwrap()[0].as_document().unwrap().clone();
        assert_eq!(rule.get_str("work").unwrap(), "lift");
        let lift = doc! { "array": "reviews", "into": "reviews", "documents": 4_i64, "items": 52_i64 };
        assert_eq!(rule.get_document("lift").unwrap(), &lift);
        assert!(!rule.contains_key("refused"), "{rule}");
        let kinds: Vec<&str> = plan
            .get_array("steps")
            .unwrap()
            .iter()
            .map(|step| step.as_document().unwrap().get_str("kind").unwrap())
            .collect();
        assert_eq!(kinds, ["index", "lift", "lift", "seed"]);
        // A server that is started with a declaration adds rules by itself, and moves nothing.
        let additions = Consent { additions_only: true, ..Consent::default() };
        let applied = village.life.apply(&testing::declared("shop", WITHIN), additions).await.unwrap();
        assert!(applied.left[0].contains("moves the items of an array into documents of their own"), "{applied:?}");
        assert_eq!(village.states().await, []);
        // A window that somebody keeps by hand needs a word.
        village.behind(update("products", doc! { "_id": 3 }, doc! { "$set": { "recent": [1] } }, &[])).await;
        let error = village.apply(BESIDE).await.unwrap_err().to_string();
        assert!(error.contains("1 document has a `recent`"), "{error}");
        village.overwrite(BESIDE).await.unwrap();
        assert_lifted(&village, BESIDE).await;
        village.ask("drop", doc! { "rule": "products.recent", "restore": true }).await.unwrap();
        assert_eq!(village.one("products", 3).await.get_array("recent").unwrap(), &vec![Bson::Int32(1)]);
        village.close().await;
    });
}

#[test]
fn children_are_restored_as_they_are_now() {
    run(async {
        for rules in [BESIDE, WITHIN] {
            let village = Village::new().await;
            let product = doc! { "_id": 1, "reviews": [{ "_id": 1, "n": 1 }, { "_id": 2, "n": 2 }, { "_id": 3, "n": 3 }], "z": 1 };
            village.behind(insert("products", vec![product, doc! { "_id": 2 }])).await;
            let there = [doc! { "_id": 8, "productId": 2, "n": 8 }, doc! { "_id": 9, "productId": 1, "n": 9 }];
            village.behind(insert("reviews", there.to_vec())).await;
            village.apply(rules).await.unwrap();
            village.write(update("reviews", doc! { "_id": 2 }, doc! { "$set": { "n": 20 } }, &[])).await;
            village.write(delete("reviews", doc! { "_id": 1 }, false)).await;
            let more = vec![
                doc! { "_id": 12, "productId": 1, "n": 12 },
                doc! { "_id": 11, "productId": 1 },
                doc! { "_id": 13, "productId": 2 },
            ];
            village.write(insert("reviews", more)).await;
            village.ask("drop", doc! { "rule": name(rules), "restore": true }).await.unwrap();
            let items: Vec<Bson> = [
                doc! { "_id": 2, "n": 20 },
                doc! { "_id": 3, "n": 3 },
                doc! { "_id": 11 },
                doc! { "_id": 12, "n": 12 },
            ]
            .map(Bson::Document)
            .into();
            assert_eq!(village.one("products", 1).await, doc! { "_id": 1, "reviews": items, "z": 1 });
            assert_eq!(village.one("products", 2).await, doc! { "_id": 2, "reviews": [{ "_id": 13 }] });
            // What was there before the arrays were lifted stays there, also of a product without one.
            assert_eq!(all(&village, "reviews").await, there);
            village.close().await;
        }
    });
}

#[test]
fn a_document_that_was_empty_before_its_window_is_empty_again() {
    run(async {
        let rules = WITHIN.replace("reviews:", "info.reviews:").replace("lift: reviews", "lift: info.reviews");
        let village = Village::new().await;
        let products = [
            doc! { "_id": 1, "info": {}, "z": 1 },
            doc! { "_id": 2, "z": 1 },
            doc! { "_id": 3, "info": { "a": 1 } },
            doc! { "_id": 4, "info": {} },
            doc! { "_id": 5, "info": {} },
        ];
        village.behind(insert("products", products.to_vec())).await;
        village.apply(&rules).await.unwrap();
        village.write(insert("reviews", vec![doc! { "_id": 7, "productId": 4, "n": 7 }])).await;
        village.write(update("products", doc! { "_id": 5 }, doc! { "$set": { "info.a": 2 } }, &[])).await;
        village.ask("drop", doc! { "rule": "products.info.reviews", "restore": true }).await.unwrap();
        let mut expected = products;
        expected[3] = doc! { "_id": 4, "info": { "reviews": [{ "_id": 7, "n": 7 }] } };
        expected[4] = doc! { "_id": 5, "info": { "a": 2 } };
        assert_eq!(all(&village, "products").await, expected);
        assert_eq!(all(&village, "pleach.replaced").await, Vec::<Document>::new());
        village.close().await;
    });
}

#[test]
fn hosts_whose_array_no_longer_fits_are_named_and_left() {
    run(async {
        let village = Village::new().await;
        village
            .behind(insert(
                "products",
                vec![doc! { "_id": 1, "reviews": [{ "_id": 1 }] }, doc! { "_id": 2, "reviews": [{ "_id": 2 }] }],
            ))
            .await;
        village.apply(BESIDE).await.unwrap();
        let text = "x".repeat(6 << 20);
        for id in 10..13 {
            village.write(insert("reviews", vec![doc! { "_id": id, "productId": 1, "text2": &text }])).await;
        }
        let answer = village.ask("drop", doc! { "rule": "products.recent", "restore": true }).await.unwrap();
        let left = answer.get_document("left").unwrap();
        assert_eq!(left.get_i64("documents").ok(), Some(1), "{answer}");
        assert!(left.to_string().contains("its 4 items no longer fit into one document"), "{left}");
        assert_eq!(all(&village, "reviews").await.len(), 4);
        assert_eq!(village.one("products", 2).await, doc! { "_id": 2, "reviews": [{ "_id": 2 }] });
        village.close().await;
    });
}

#[test]
fn an_array_as_large_as_a_document_is_lifted_and_restored_in_parts() {
    run(async {
        let village = Village::new().await;
        let text = "x".repeat(500);
        let items: Vec<Bson> = (0..28_000).map(|n| Bson::Document(doc! { "n": n, "text": &text })).collect();
        let product = doc! { "_id": 1, "reviews": items, "z": 1 };
        village.behind(insert("products", vec![product.clone()])).await;
        let count = "{ products: { computed: { reviewCount: { count: reviews, by: productId } } } }";
        let rules = WITHIN.replace("subset:", "computed: { reviewCount: { count: reviews, by: productId } }, subset:");
        village.apply(count).await.unwrap();
        village.apply(&rules).await.unwrap();
        assert_eq!(village.field("products", 1, "reviewCount").await, Some(Bson::Int32(28_000)));
        assert_eq!(village.one("products", 1).await.get_array("reviews").unwrap().len(), 2);
        village.ask("drop", doc! { "rule": "products.reviews", "restore": true }).await.unwrap();
        let mut now = village.one("products", 1).await;
        assert_eq!(now.remove("reviewCount"), Some(Bson::Int32(0)));
        assert!(now == product);
        village.close().await;
    });
}

#[test]
fn a_changed_declaration_lifts_once() {
    run(async {
        let village = Village::new().await;
        filled(&village).await;
        let plain = BESIDE.replace(", lift: reviews", "");
        village.apply(&plain).await.unwrap();
        // Added: the items become documents; changed: they are not lifted again; removed: the array is the client's again.
        village.apply(BESIDE).await.unwrap();
        assert_lifted(&village, BESIDE).await;
        village.apply(&BESIDE.replace("keep: 2", "keep: 3")).await.unwrap();
        village.apply(BESIDE).await.unwrap();
        assert_lifted(&village, BESIDE).await;
        for other in ["by: productId", "from: reviews", "lift: reviews"] {
            let other = BESIDE.replace(other, &format!("{}x", other));
            let error = village.overwrite(&other).await.unwrap_err().to_string();
            assert!(error.contains("are lifted into `reviews` by `productId`"), "{error}");
        }
        village.apply(&plain).await.unwrap();
        village.write(update("products", doc! { "_id": 0 }, doc! { "$set": { "reviews": [{ "n": 1 }] } }, &[])).await;
        let answer = village.ask("drop", doc! { "rule": "products.recent", "restore": true }).await.unwrap();
        assert!(!answer.contains_key("left"), "{answer}");
        assert_eq!(village.one("products", 3).await.to_string(), products()[3].to_string());
        village.close().await;

        let village = Village::new().await;
        filled(&village).await;
        village.apply(WITHIN).await.unwrap();
        village.apply(&WITHIN.replace("keep: 2", "keep: 1")).await.unwrap();
        village.apply(WITHIN).await.unwrap();
        assert_lifted(&village, WITHIN).await;
        village.ask("drop", doc! { "rule": "products.reviews" }).await.unwrap();
        let error = village.overwrite(WITHIN).await.unwrap_err().to_string();
        assert!(error.contains("`reviews` was lifted before, and holds the window that was left of it"), "{error}");
        // Of a rule that is gone, too.
        village.ask("drop", doc! { "rule": "products.reviews", "restore": true }).await.unwrap();
        assert_restored(&village).await;
        village.overwrite(&WITHIN.replace(", lift: reviews", "")).await.unwrap();
        let error = village.overwrite(WITHIN).await.unwrap_err().to_string();
        assert!(error.contains("is the window that the rule keeps"), "{error}");
        village.close().await;
    });
}

#[test]
fn what_is_forgotten_is_not_restored() {
    run(async {
        let village = Village::new().await;
        filled(&village).await;
        village.apply(WITHIN).await.unwrap();
        village.ask("forget", doc! { "rule": "products.reviews" }).await.unwrap();
        assert_eq!(all(&village, "pleach.replaced").await, Vec::<Document>::new());
        let error = village.ask("drop", doc! { "rule": "products.reviews", "restore": true }).await.unwrap_err();
        assert!(error.to_string().contains("it was freed by `forget`"), "{error}");
        village.ask("drop", doc! { "rule": "products.reviews", "with_data": true }).await.unwrap();
        assert_eq!(all(&village, "reviews").await.len(), 52);
        assert!(all(&village, "products").await.iter().all(|product| !product.contains_key("reviews")));
        village.close().await;
    });
}

#[test]
fn children_have_rules_of_their_own() {
    const RULES: &str = "{
        products: { subset: { recent: { from: reviews, by: sku, match: sku, sort: { n: -1 }, keep: 1, lift: reviews } } },
        reviews: { extended_reference: { author: { from: users, by: authorId, fields: [name] } } } }";
    run(async {
        let village = Village::new().await;
        village.behind(insert("users", vec![doc! { "_id": 1, "name": "Ann" }])).await;
        village
            .behind(insert(
                "products",
                vec![doc! { "_id": 1, "sku": "a", "reviews": [{ "_id": 1, "n": 1, "authorId": 1 }] }],
            ))
            .await;
        village.apply(RULES).await.unwrap();
        let child = doc! { "_id": 1, "n": 1, "authorId": 1, "sku": "a", "author": { "name": "Ann" } };
        assert_eq!(all(&village, "reviews").await, std::slice::from_ref(&child));
        assert_eq!(village.one("products", 1).await, doc! { "_id": 1, "sku": "a", "recent": [child] });
        village.assert_clean().await;
        village.close().await;
    });
}

#[test]
fn items_become_readings_of_buckets() {
    const RULES: &str = "{
        sensors: { subset: { last: { from: readings, by: sensorId, sort: { ts: -1 }, keep: 2, lift: log } } },
        readings: { bucket: { time: ts, by: [sensorId], every: hour, at_most: 10 } } }";
    run(async {
        let village = Village::new().await;
        let at = |minute: i64| bson::DateTime::from_millis(1_700_000_000_000 + minute * 60_000);
        let log: Vec<Bson> =
            (0..25).map(|n| Bson::Document(doc! { "_id": n, "ts": at(i64::from(n)), "temp": n })).collect();
        let sensor = doc! { "_id": 1, "log": log, "z": 1 };
        village.behind(insert("sensors", vec![sensor.clone()])).await;
        village.apply(RULES).await.unwrap();
        assert_eq!(all(&village, "readings").await.len(), 25);
        let last = village.one("sensors", 1).await;
        assert_eq!(last.get_array("last").unwrap()[0].as_document().unwrap().get_i32("temp").unwrap(), 24, "{last}");
        village.assert_clean().await;
        village.ask("drop", doc! { "rule": "sensors.last", "restore": true }).await.unwrap();
        assert_eq!(village.one("sensors", 1).await, sensor);
        assert_eq!(all(&village, "readings").await, Vec::<Document>::new());
        // A reading without a time has no place in a bucket.
        village.write(update("sensors", doc! { "_id": 1 }, doc! { "$push": { "log": { "temp": 1 } } }, &[])).await;
        let error = village.apply(RULES).await.unwrap_err().to_string();
        assert!(error.contains("1 items cannot be stored in `readings`"), "{error}");
        village.close().await;
    });
}
