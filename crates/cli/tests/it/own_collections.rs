//! `listCollections` shows of Pleach's own collections only the catalog, unless the filter names another.

use crate::doors::{At, at_each_door};
use bson::doc;

at_each_door!(clients_see_only_the_catalog_of_ours,);

fn clients_see_only_the_catalog_of_ours(at: At) {
    let door = at.door("listing");
    let mut client = door.client();
    let applied =
        door.applied(&mut client, doc! { "a": { "computed": { "n": { "count": "b", "by": "aId", "lag": "1s" } } } });
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{applied}");
    door.insert(&mut client, "a", vec![doc! { "_id": 1 }]);
    door.insert(&mut client, "b", vec![doc! { "_id": 1, "aId": 1 }]);
    assert_eq!(door.listed(&mut client, doc! {}), ["a", "b", "pleach.catalog"], "{}", door.at.name());
    assert_eq!(door.listed(&mut client, doc! { "name": { "$ne": "a" } }), ["b", "pleach.catalog"]);
    assert_eq!(door.listed(&mut client, doc! { "name": "a" }), ["a"]);
    let named = door.listed(&mut client, doc! { "name": { "$regex": "^pleach\\." } });
    assert!(named.contains(&"pleach.outbox".to_owned()), "{named:?}");
    assert_eq!(door.listed(&mut client, doc! { "name": "pleach.outbox" }), ["pleach.outbox"]);
    // In parts, as drivers ask for it.
    let first = door.run(&mut client, doc! { "listCollections": 1, "cursor": { "batchSize": 1 } });
    let cursor = first.get_document("cursor").unwrap();
    let (id, ns) = (cursor.get_i64("id").unwrap(), cursor.get_str("ns").unwrap());
    assert!(id != 0 && cursor.get_array("firstBatch").unwrap().len() == 1, "{first}");
    let rest = door.run(&mut client, doc! { "getMore": id, "collection": ns.split_once('.').unwrap().1 });
    assert_eq!(crate::upstream::rows(&rest, "nextBatch").len(), 2, "{rest}");
    let wrong = client.command(&doc! { "listCollections": 1, "filter": 5, "$db": &door.db }).unwrap().document;
    assert_eq!(wrong.get_i32("code").ok(), Some(14), "{wrong}");
    door.finish();
}
