//! Insert, update, delete, findAndModify.

use super::harness::*;
use bson::doc;

#[test]
fn inserted_documents_are_found_and_survive_reopening() {
    let bench = Bench::new();
    run(async {
        let written = bench.did(insert(vec![doc! {"_id": 1, "a": "x"}, doc! {"a": 2, "_id": 2}])).await;
        assert_eq!(written.n, 2);
        assert_eq!(bench.find(doc! {"_id": 2}).await, [doc! {"_id": 2, "a": 2}]);
        assert_eq!(bench.find(doc! {"a": "x"}).await, [doc! {"_id": 1, "a": "x"}]);
        assert_eq!(bench.engine.catalog().get(&ns()).unwrap().count(), 2);
    });
    let bench = bench.reopen();
    run(async {
        assert_eq!(bench.find(doc! {}).await.len(), 2);
        assert_eq!(bench.engine.catalog().get(&ns()).unwrap().count(), 2);
    });
}

#[test]
fn a_duplicate_id_is_refused_in_mongodbs_words() {
    let bench = Bench::new();
    run(async {
        bench.did(insert(vec![doc! {"_id": 1}])).await;
        let written = bench.write(insert(vec![doc! {"_id": 0}, doc! {"_id": 1.0}, doc! {"_id": 2}])).await.unwrap();
        assert_eq!(written.n, 1);
        let message = "E11000 duplicate key error collection: db.c index: _id_ dup key: { _id: 1.0 }";
        assert_eq!(only_error(&written), (11000, message.to_owned()));
        let info = written.errors[0].error.info().unwrap();
        assert_eq!(*info, document::Doc::from(doc! {"keyPattern": {"_id": 1}, "keyValue": {"_id": 1.0}}));
        let twice = bench.write(insert(vec![doc! {"_id": 7}, doc! {"_id": 7}])).await.unwrap();
        assert_eq!((twice.n, only_error(&twice).0), (1, 11000));
        assert_eq!(bench.find(doc! {}).await.len(), 3);
    });
}
