//! Values on the way to a dotted field: nothing that is there is lost, and no later write fails because of it.

use super::Door;
use crate::doors::{At, at_each_door};
use bson::{Bson, Document, bson, doc};

at_each_door!(
    a_value_on_the_way_is_found_and_nothing_is_changed,
    clients_cannot_put_a_value_on_the_way_and_null_is_none,
    null_where_only_a_copy_will_be_is_no_obstacle,
);

const DEEP: [(&str, &str); 4] = [
    (
        "info.customer",
        "{ hosts: { extended_reference: { info.customer: { from: sources, by: cid, fields: [name] } } } }",
    ),
    ("info.n", "{ hosts: { computed: { info.n: { count: sources, by: hid } } } }"),
    ("info.sum", "{ hosts: { computed: { info.sum: { sum: v, from: sources, by: hid } } } }"),
    ("info.twice", "{ hosts: { computed: { info.twice: { expr: { $multiply: [$cid, 2] } } } } }"),
];

fn a_value_on_the_way_is_found_and_nothing_is_changed(at: At) {
    let door = Door::new(at, "on-the-way");
    for (number, (field, rules)) in DEEP.iter().enumerate() {
        let arrays_obstruct = *field != "info.twice";
        for info in [bson!("precious"), bson!(5), bson!([]), bson!([{ "a": 1 }])] {
            if matches!(info, Bson::Array(_)) && !arrays_obstruct {
                continue;
            }
            door.must(doc! { "dropDatabase": 1 });
            door.insert("sources", vec![doc! { "_id": 1, "hid": 1, "name": "Ada", "v": 2 }]);
            let fine = [doc! { "_id": 1, "cid": 1 }, doc! { "_id": 2, "cid": 1, "info": { "a": 1 } }];
            let odd = doc! { "_id": 3, "cid": 1, "info": info.clone() };
            door.insert("hosts", fine.into_iter().chain([odd]).collect());
            door.declare(rules);
            let name = format!("rule hosts.{field}: `info` is not a document in 1 document");
            for flags in [&["apply"][..], &["apply", "--overwrite", "--create-missing"]] {
                door.refused(flags, &[&name, "change these documents first"]);
            }
            assert!(door.told(&["plan"]).1.contains("`info` is not a document"), "{number}");
        }
        door.must(doc! { "update": "hosts", "updates": [{ "q": { "_id": 3 }, "u": { "$set": { "info": null } } }] });
        let (code, _, said) = door.told(&["apply"]);
        assert_eq!(code, Some(0), "{field}: {said}");
        assert_eq!(door.json(&["audit", "--declare", "pleach.yaml"]).0, Some(0));
        let (code, _, said) = door.told(&["drop", &format!("hosts.{field}"), "--restore", "--db", &door.db]);
        assert_eq!(code, Some(0), "{field}: {said}");
        assert_eq!(door.all("hosts")[2], bson!({ "_id": 3, "cid": 1, "info": null }));
    }
}

fn clients_cannot_put_a_value_on_the_way_and_null_is_none(at: At) {
    let door = at.door("client_on_the_way");
    door.apply(doc! { "hosts": {
            "extended_reference": { "info.customer": { "from": "sources", "by": "cid", "fields": ["name"] } },
            "computed": { "info.n": { "count": "sources", "by": "hid" }, "stats.twice": { "expr": { "$multiply": ["$cid", 2] } } },
        } });
    let refused = |command: Document| {
        let reply = door.ask(command);
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap();
        assert_eq!(error.get_i32("code").unwrap(), 28, "{reply}");
        let message = error.get_str("errmsg").unwrap();
        assert!(message.starts_with("Cannot create field '") && message.contains("rule hosts."), "{message}");
    };
    for odd in [doc! { "info": 5 }, doc! { "info": [] }, doc! { "stats": "x" }] {
        let mut host = doc! { "_id": 9, "cid": 1 };
        host.extend(odd);
        refused(doc! { "insert": "hosts", "documents": [host] });
    }
    door.must(doc! { "insert": "hosts", "documents": [{ "_id": 1, "cid": 7, "info": null }, { "_id": 2, "info": { "a": 1 } }] });
    for odd in [doc! { "info": 5 }, doc! { "info": [1] }, doc! { "stats": true }] {
        refused(doc! { "update": "hosts", "updates": [{ "q": { "_id": 1 }, "u": { "$set": odd } }] });
    }
    // The source comes after its hosts, and is changed, also where null was.
    door.must(
        doc! { "update": "hosts", "updates": [{ "q": { "_id": 2 }, "u": { "$set": { "cid": 7, "info": null } } }] },
    );
    door.must(doc! { "insert": "sources", "documents": [{ "_id": 7, "hid": 1, "name": "Ada" }] });
    door.must(doc! { "update": "sources", "updates": [{ "q": { "_id": 7 }, "u": { "$set": { "name": "Bea" } } }] });
    let expected = |id: i32, n: i32| {
        let bea = doc! { "name": "Bea" };
        (id, bea, n, 14)
    };
    let found: Vec<(i32, Document, i32, i32)> = door
        .all("hosts")
        .iter()
        .map(|host| {
            let (info, stats) = (host.get_document("info").unwrap(), host.get_document("stats").unwrap());
            let copy = info.get_document("customer").unwrap().clone();
            (host.get_i32("_id").unwrap(), copy, info.get_i32("n").unwrap(), stats.get_i32("twice").unwrap())
        })
        .collect();
    assert_eq!(found, [expected(1, 1), expected(2, 0)]);
    door.must(doc! { "dropDatabase": 1 });
}

fn null_where_only_a_copy_will_be_is_no_obstacle(at: At) {
    let door = at.door("null_on_the_way");
    door.apply(doc! { "hosts": { "extended_reference": {
        "info.deep.customer": { "from": "sources", "by": "cid", "fields": ["name"] },
    } } });
    // Nothing is written on the way as long as there is no source.
    let hosts = vec![
        doc! { "_id": 1, "cid": 7, "info": null },
        doc! { "_id": 2, "cid": 7, "info": { "deep": null, "z": 1 } },
        doc! { "_id": 3, "cid": 7 },
    ];
    door.must(doc! { "insert": "hosts", "documents": hosts });
    door.must(doc! { "insert": "sources", "documents": [{ "_id": 7, "name": "Ada" }] });
    let ada = || doc! { "customer": { "name": "Ada" } };
    assert_eq!(
        door.all("hosts"),
        [
            doc! { "_id": 1, "cid": 7, "info": { "deep": ada() } },
            doc! { "_id": 2, "cid": 7, "info": { "deep": ada(), "z": 1 } },
            doc! { "_id": 3, "cid": 7, "info": { "deep": ada() } },
        ]
    );
    door.must(doc! { "dropDatabase": 1 });
}
