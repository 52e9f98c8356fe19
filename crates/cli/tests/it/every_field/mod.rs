//! Every listed field, over the wire and at both doors, on the write paths that random histories (`proof`) do not take: bulks of
//! which statements fail, `$merge`, `dropDatabase`, clients that write what a rule keeps; and an audit by whoever may only read.

mod audited;
mod bulks;
mod merged;
mod owned;

use crate::doors::{At, Door, at_each_door};
use bson::{Document, doc};
use std::time::{Duration, Instant};
use testing::registry::{field_blocks, merged};
use testing::shop::{self, Client};
use testing::{Act, declaration};

at_each_door!(a_dropped_database_is_filled_anew);

/// The shop with every listed field on it, and what its clients left there.
pub(super) struct Listed {
    pub(super) door: Door,
    client: Client,
    acts: i32,
}

/// The blocks of all fields as one.
pub(super) fn everything() -> String {
    merged(&field_blocks().collect::<Vec<_>>())
}

impl Listed {
    /// With so many acts of a client.
    pub(super) fn new(at: At, name: &str, collections: &str, acts: i32) -> Listed {
        let mut listed = Listed { door: at.door(name), client: Client::new(5), acts: 0 };
        let text = declaration(&listed.door.db, collections);
        listed.door.must(doc! { "pleach": "apply", "declaration": text, "wait": false });
        listed.wait();
        listed.play(acts);
        listed
    }

    pub(super) fn play(&mut self, acts: i32) {
        for _ in 0..acts {
            self.acts += 1;
            // Some are refused, such as deletes of what is referred to.
            let _refused = self.door.ask(self.client.act(self.acts).command());
        }
        let first =
            (0..5).map(|id| Act::Update("products", doc! { "_id": id }, shop::set(doc! { "price": id }), false, true));
        for act in first {
            self.door.must(act.command());
        }
    }

    /// Until every rule is on and nothing waits.
    fn wait(&self) {
        let end = Instant::now() + Duration::from_secs(180);
        loop {
            let status = self.door.must(doc! { "pleach": "status" });
            let rules = status.get_array("rules").unwrap();
            let is_on = |rule: &bson::Bson| rule.as_document().unwrap().get_str("state").unwrap() == "on";
            let outbox = status.get_document("outbox").unwrap();
            if rules.iter().all(is_on) && outbox.get_i64("pending").unwrap() == 0 {
                return;
            }
            assert!(Instant::now() < end, "{status}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Every value is what its definition says.
    pub(super) fn assert_right(&self, story: &str) {
        self.wait();
        let audit = self.door.must(doc! { "pleach": "audit" });
        assert_eq!(audit.get_i64("drifted").ok(), Some(0), "{story}: {audit}");
        assert!(audit.get_i64("checked").unwrap() > 0, "{story}: {audit}");
    }
}

/// The code of a command that failed, or of each statement that did, with its place.
pub(super) fn errors(reply: &Document) -> Vec<(i32, i32)> {
    if let Ok(code) = reply.get_i32("code") {
        return vec![(-1, code)];
    }
    let errors = reply.get_array("writeErrors").cloned().unwrap_or_default();
    let errors = errors.iter().map(|error| error.as_document().unwrap());
    errors.map(|error| (error.get_i32("index").unwrap(), error.get_i32("code").unwrap())).collect()
}

fn a_dropped_database_is_filled_anew(at: At) {
    let mut listed = Listed::new(at, "emptied_fields", &everything(), 25);
    listed.assert_right("before");
    let hosts = listed.door.all("products").len();
    listed.door.must(doc! { "dropDatabase": 1 });
    for name in shop::COLLECTIONS {
        assert_eq!(listed.door.all(name), Vec::<Document>::new(), "{name}");
    }
    listed.play(25);
    listed.assert_right("filled anew");
    assert!(hosts > 3 && listed.door.all("products").len() > 3 && !listed.door.all("reviews").is_empty());
    listed.door.finish();
}
