//! Inserts of children of one hot host that are sent again, as after a failover: they share transactions with other inserts, and each
//! has one effect and no error.

use crate::doors::{At, at_each_door};
use crate::upstream::session;
use bson::{Bson, doc};
use std::thread;

at_each_door!(inserts_that_are_sent_again_share_transactions,);

const WRITERS: u8 = 6;
const ROUNDS: i32 = 12;

fn inserts_that_are_sent_again_share_transactions(at: At) {
    let door = at.door("repeated");
    let mut client = door.client();
    let colours = doc! { "distinct": "colour", "from": "reviews", "by": "productId" };
    let rules = doc! { "products": { "computed": { "reviews": { "count": "reviews", "by": "productId" }, "colours": colours } } };
    assert_eq!(door.applied(&mut client, rules).get_f64("ok").ok(), Some(1.0));
    door.insert(&mut client, "products", vec![doc! { "_id": 1 }]);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let door = &door;
            scope.spawn(move || {
                let mut client = door.client();
                for round in 0..ROUNDS {
                    let id = i32::from(writer) * 1_000 + round;
                    let review = doc! { "_id": id, "productId": 1, "colour": id % 7 };
                    let insert = doc! { "insert": "reviews", "documents": [review], "lsid": session(100 + writer), "txnNumber": i64::from(round) };
                    for _ in 0..3 {
                        let reply = door.run(&mut client, insert.clone());
                        assert_eq!(reply.get_i32("n").ok(), Some(1), "{reply}");
                    }
                }
            });
        }
    });
    let product = door.all("products").remove(0);
    assert_eq!(product.get("reviews"), Some(&Bson::Int32(i32::from(WRITERS) * ROUNDS)));
    assert_eq!(product.get("colours"), Some(&Bson::Int32(7)));
    door.finish();
}
