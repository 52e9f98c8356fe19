//! A restore is ended by the client that restores, and by nobody else who calls itself the same.

use crate::doors::{At, Door, at_each_door};
use crate::upstream::session;
use bson::{Document, doc};
use judge::client::Client;
use std::time::{Duration, Instant};

at_each_door!(a_restore_is_ended_by_who_restores,);

fn named(door: &Door) -> Client {
    let mut client = door.client();
    let driver = doc! { "name": "t", "version": "1" };
    let about = doc! { "application": { "name": "mongorestore" }, "driver": driver, "os": { "type": "t" } };
    client.must(&doc! { "hello": 1, "client": about, "$db": "admin" }).unwrap();
    client
}

fn end(client: &mut Client, lsid: Document) {
    client.must(&doc! { "endSessions": [lsid], "$db": "admin" }).unwrap();
}

fn state(door: &Door, client: &mut Client) -> String {
    let status = door.run(client, doc! { "pleach": "status" });
    status.get_array("rules").unwrap()[0].as_document().unwrap().get_str("state").unwrap().to_owned()
}

fn a_restore_is_ended_by_who_restores(at: At) {
    let door = at.door("restorers");
    let mut client = door.client();
    let counted = doc! { "computed": { "n": { "count": "reviews", "by": "productId" } } };
    assert_eq!(door.applied(&mut client, doc! { "products": counted }).get_f64("ok").ok(), Some(1.0));
    door.insert(&mut client, "products", vec![doc! { "_id": 1 }]);
    let mut restorer = named(&door);
    door.run(&mut restorer, doc! { "drop": "products", "lsid": session(1) });
    assert_eq!(state(&door, &mut client), "restoring", "{}", door.at.name());
    for _ in 0..3 {
        let mut other = named(&door);
        end(&mut other, session(2));
        drop(other);
        assert_eq!(state(&door, &mut client), "restoring", "{}", door.at.name());
    }
    door.run(&mut restorer, doc! { "insert": "products", "documents": [{ "_id": 1 }], "lsid": session(1) });
    end(&mut restorer, session(1));
    assert_eq!(state(&door, &mut client), "on", "{}", door.at.name());
    // One that ends no session has ended when it is gone; who is only connected stops nothing.
    let idle = named(&door);
    door.run(&mut restorer, doc! { "drop": "products" });
    assert_eq!(state(&door, &mut client), "restoring", "{}", door.at.name());
    drop(restorer);
    // The server notices a closed connection by itself.
    let end = Instant::now() + Duration::from_secs(10);
    while state(&door, &mut client) != "on" && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(state(&door, &mut client), "on", "{}", door.at.name());
    drop(idle);
    door.finish();
}
