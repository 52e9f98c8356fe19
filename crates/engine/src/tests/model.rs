//! The engine against a plain map, under random statements, transactions and restarts; and under threads.

use super::harness::*;
use bson::doc;
use document::backend::Session;
use document::op::AdminOp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
enum Step {
    Insert(i32, i32),
    Set(i32, i32),
    IncAll(i32),
    Upsert(i32, i32),
    Delete(i32),
    DeleteAll(i32),
    Begin,
    Commit,
    Abort,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let (id, value) = (0..12i32, 0..4i32);
    prop_oneof![
        4 => (id.clone(), value.clone()).prop_map(|(id, value)| Step::Insert(id, value)),
        4 => (id.clone(), value.clone()).prop_map(|(id, value)| Step::Set(id, value)),
        1 => value.clone().prop_map(Step::IncAll),
        2 => (id.clone(), value.clone()).prop_map(|(id, value)| Step::Upsert(id, value)),
        2 => id.prop_map(Step::Delete),
        1 => value.prop_map(Step::DeleteAll),
        2 => Just(Step::Begin),
        2 => Just(Step::Commit),
        1 => Just(Step::Abort),
        1 => Just(Step::Reopen),
    ]
}

/// Documents by id; `a` is indexed, `u` unique and equal to `_id`.
type Model = BTreeMap<i32, i32>;

fn apply(model: &mut Model, step: &Step) {
    match step {
        Step::Insert(id, value) => {
            model.entry(*id).or_insert(*value);
        }
        Step::Set(id, value) => {
            if let Some(place) = model.get_mut(id) {
                *place = *value;
            }
        }
        Step::IncAll(value) => model.values_mut().filter(|place| *place == value).for_each(|place| *place += 1),
        Step::Upsert(id, value) => {
            model.insert(*id, *value);
        }
        Step::Delete(id) => {
            model.remove(id);
        }
        Step::DeleteAll(value) => model.retain(|_, place| place != value),
        Step::Begin | Step::Commit | Step::Abort | Step::Reopen => {}
    }
}

async fn write(bench: &Bench, session: &mut Session, step: &Step) {
    let op = match step {
        Step::Insert(id, value) => insert(vec![doc! {"_id": id, "a": [value, 100], "u": id}]),
        Step::Set(id, value) => update_op(doc! {"u": id}, doc! {"$set": {"a.0": value}}, false, false),
        Step::IncAll(value) => update_op(doc! {"a.0": value}, doc! {"$inc": {"a.0": 1}}, true, false),
        Step::Upsert(id, value) => {
            update_op(doc! {"_id": id}, doc! {"$set": {"a": [value, 100], "u": id}}, false, true)
        }
        Step::Delete(id) => delete_op(doc! {"_id": id}, false),
        Step::DeleteAll(value) => delete_op(doc! {"a.0": value}, true),
        Step::Begin | Step::Commit | Step::Abort | Step::Reopen => return,
    };
    bench.write_at(session, &op).await.unwrap();
}

async fn check(bench: &Bench, session: &mut Session, model: &Model) {
    let found = bench.find_at(session, doc! {}).await.unwrap();
    let expected: Vec<bson::Document> =
        model.iter().map(|(id, value)| doc! {"_id": id, "a": [value, 100], "u": id}).collect();
    assert_eq!(found, expected);
    let by_index: Vec<i32> = bench
        .find_at(session, doc! {"a": 2})
        .await
        .unwrap()
        .iter()
        .map(|found| found.get_i32("_id").unwrap())
        .collect();
    let mut by_index_sorted = by_index.clone();
    by_index_sorted.sort_unstable();
    let expected: Vec<i32> = model.iter().filter(|(_, value)| **value == 2).map(|(id, _)| *id).collect();
    assert_eq!(by_index_sorted, expected);
}

async fn make_indexes(bench: &Bench) {
    let indexes = vec![
        document::Doc::from(doc! {"key": {"a": 1}, "name": "a_1"}),
        document::Doc::from(doc! {"key": {"u": 1}, "name": "u_1", "unique": true}),
        document::Doc::from(doc! {"key": {"a": -1, "u": 1}, "name": "p", "partialFilterExpression": {"u": {"$gt": 5}}}),
    ];
    bench.admin(AdminOp::CreateIndexes { ns: ns(), indexes }).await.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_engine_does_what_a_map_does(steps in proptest::collection::vec(step(), 1..40)) {
        let mut bench = Bench::new();
        run(make_indexes(&bench));
        let mut model = Model::new();
        let mut open: Option<(Session, Model)> = None;
        for step in &steps {
            match step {
                Step::Begin if open.is_none() => open = Some((run(bench.begin()), model.clone())),
                Step::Commit => {
                    if let Some((mut session, inside)) = open.take() {
                        run(bench.commit(&mut session)).unwrap();
                        model = inside;
                    }
                }
                Step::Abort => open = None,
                Step::Reopen => {
                    open = None;
                    bench = bench.reopen();
                }
                step => match &mut open {
                    Some((session, inside)) => {
                        // A duplicate key ends a transaction: the model does not have it either.
                        if matches!(step, Step::Insert(id, _) if inside.contains_key(id)) {
                            continue;
                        }
                        run(write(&bench, session, step));
                        apply(inside, step);
                    }
                    None => {
                        run(write(&bench, &mut Session::default(), step));
                        apply(&mut model, step);
                    }
                },
            }
            run(check(&bench, &mut Session::default(), &model));
            if let Some((session, inside)) = &mut open {
                run(check(&bench, session, inside));
            }
        }
        let checked = run(bench.admin(AdminOp::Validate { ns: ns(), full: true })).unwrap();
        prop_assert!(checked[0].get_bool("valid").unwrap(), "{:?}", checked);
        let collection = bench.engine.catalog().get(&ns()).unwrap().clone();
        prop_assert_eq!(collection.count(), model.len() as u64);
    }
}

#[test]
fn threads_lose_no_increment_and_make_no_duplicate() {
    let bench = Arc::new(Bench::new());
    run(async {
        make_indexes(&bench).await;
        bench.did(insert(vec![doc! {"_id": 0, "u": 0, "n": 0}])).await;
        let mut tasks = Vec::new();
        for task in 0..8 {
            let bench = bench.clone();
            tasks.push(tokio::spawn(async move {
                let mut won = 0;
                for round in 0..25 {
                    bench.did(update_op(doc! {"_id": 0}, doc! {"$inc": {"n": 1}}, false, false)).await;
                    let unique = insert(vec![doc! {"_id": format!("{task} {round}"), "u": 1_000 + round}]);
                    won += bench.write(unique).await.unwrap().n;
                    let upsert = doc! {"$inc": {"hits": 1}};
                    bench.did(update_op(doc! {"u": 5_000 + round}, upsert, false, true)).await;
                }
                won
            }));
        }
        let mut won = 0;
        for task in tasks {
            won += task.await.unwrap();
        }
        assert_eq!(won, 25);
        assert_eq!(bench.find(doc! {"_id": 0}).await[0].get_i32("n").unwrap(), 200);
        let upserted = bench.find(doc! {"u": {"$gte": 5_000}}).await;
        assert_eq!(upserted.len(), 25);
        assert!(upserted.iter().all(|found| found.get_i32("hits").unwrap() == 8));
        let checked = bench.admin(AdminOp::Validate { ns: ns(), full: true }).await.unwrap();
        assert!(checked[0].get_bool("valid").unwrap(), "{checked:?}");
        assert_eq!(bench.engine.inner.core.locks.len(), 0);
    });
}
