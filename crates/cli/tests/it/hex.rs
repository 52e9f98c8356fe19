//! `as: hex` takes either case everywhere and gives lower case back: buckets answer as a plain collection does that holds the
//! keys in lower case and is asked in lower case.

use crate::doors::{At, Door, at_each_door};
use bson::{Bson, DateTime, Document, Regex, doc};

at_each_door!(keys_of_either_case_mean_the_same, keys_of_either_case_mean_the_same_inside_stages,);

const KEYS: &[&str] = &["AB01", "ab01", "Ab01", "FF", "ff", "0c", "0C"];

fn at(minutes: i64) -> DateTime {
    DateTime::from_millis(1_704_067_200_000 + minutes * 60_000)
}

/// What the plain collection is asked: the keys of a question in lower case.
fn lower(value: &Bson) -> Bson {
    match value {
        Bson::String(text) if text == "readings" => "plain".into(),
        Bson::String(text) if KEYS.contains(&text.as_str()) || ["AB", "DD", "Ff", "^AB0"].contains(&text.as_str()) => {
            text.to_lowercase().into()
        }
        Bson::Document(doc) => lower_all(doc).into(),
        Bson::Array(items) => items.iter().map(lower).collect::<Vec<_>>().into(),
        Bson::RegularExpression(regex) => {
            let pattern = regex.pattern.as_str().to_lowercase().try_into().unwrap();
            Bson::RegularExpression(Regex { pattern, options: regex.options.clone() })
        }
        other => other.clone(),
    }
}

fn lower_all(doc: &Document) -> Document {
    doc.iter().map(|(name, value)| (name.clone(), lower(value))).collect()
}

/// The logical collection and a plain one that the same is done to.
struct Pair {
    door: Door,
    /// Whether the buckets make the `_id` of series and time.
    derived: bool,
}

impl Pair {
    /// The command on both; what they answer, without what only one of them can say.
    fn same(&self, command: Document) -> Document {
        let (mut logical, mut plain) = (command.clone(), lower_all(&command));
        let verb = command.keys().next().unwrap().clone();
        logical.insert(verb.clone(), "readings");
        plain.insert(verb, "plain");
        let (found, expected) = (told(&self.door.ask(logical)), told(&self.door.ask(plain)));
        assert_eq!(found, expected, "{command}");
        found
    }

    /// The same for a command that names its collections itself.
    fn same_as_sent(&self, command: Document) {
        let found = told(&self.door.ask(command.clone()));
        assert_eq!(found, told(&self.door.ask(lower_all(&command))), "{command}");
        assert!(found.contains_key("rows"), "{command}: {found}");
    }

    fn same_documents(&self, after: &str) {
        assert_eq!(self.door.all("readings"), self.door.all("plain"), "{after}");
    }

    fn insert(&self, mut reading: Document) {
        self.door.must(doc! { "insert": "readings", "documents": [reading.clone()] });
        if self.derived {
            let key = lower(&reading["key"]);
            let mut whole = doc! { "_id": { "key": key.clone(), "at": reading["at"].clone() }, "key": key };
            reading.remove("_id");
            reading.remove("key");
            whole.extend(reading);
            reading = whole;
        }
        self.door.must(doc! { "insert": "plain", "documents": [lower_all(&reading)] });
    }
}

fn told(reply: &Document) -> Document {
    let wanted = ["ok", "n", "nModified", "upserted", "writeErrors", "value", "values", "code"];
    let mut told: Document =
        reply.iter().filter(|(name, _)| wanted.contains(&name.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect();
    if let Ok(cursor) = reply.get_document("cursor") {
        told.insert("rows", cursor["firstBatch"].clone());
    }
    told
}

fn questions() -> Vec<Document> {
    let regex = |pattern: &str| Regex { pattern: pattern.try_into().unwrap(), options: "".try_into().unwrap() };
    let mut all = Vec::new();
    for key in KEYS {
        all.extend([
            doc! { "key": *key },
            doc! { "key": { "$eq": *key } },
            doc! { "key": { "$ne": *key } },
            doc! { "key": { "$in": [*key, "0C"] } },
            doc! { "key": { "$nin": [*key, "0C"] } },
            doc! { "key": { "$gt": *key } },
            doc! { "key": { "$lte": *key } },
            doc! { "key": { "$not": { "$gte": *key } } },
            doc! { "$or": [{ "key": *key }, { "v": { "$lt": 2 } }] },
            doc! { "$nor": [{ "key": *key }] },
            doc! { "$expr": { "$eq": ["$key", *key] } },
            doc! { "$expr": { "$in": ["$key", [*key, "0C"]] } },
            doc! { "$expr": { "$and": [{ "$ne": [{ "$literal": *key }, "$key"] }, { "$gt": ["$v", 1] }] } },
        ]);
    }
    all.extend([
        doc! { "key": regex("^AB") },
        doc! { "key": { "$not": regex("F$") } },
        doc! { "key": { "$regex": "^AB0" } },
        doc! { "key": "xyz" },
        doc! { "key": "ABC" },
        doc! { "key": 5 },
        doc! { "key": null },
    ]);
    all
}

fn reads(pair: &Pair) {
    let sort = doc! { "key": 1, "at": 1, "v": 1 };
    for filter in questions() {
        // The regular expressions of the plain side are lower case already.
        pair.same(doc! { "find": 1, "filter": &filter, "sort": &sort });
        pair.same(doc! { "count": 1, "query": &filter });
        let stages = vec![doc! { "$match": &filter }, doc! { "$sort": &sort }];
        pair.same(doc! { "aggregate": 1, "pipeline": stages, "cursor": {} });
    }
    for key in KEYS {
        for stages in [
            vec![doc! { "$group": { "_id": "$key", "n": { "$sum": 1 } } }, doc! { "$match": { "_id": *key } }],
            vec![
                doc! { "$set": { "k": "$key" } },
                doc! { "$match": { "k": { "$ne": *key } } },
                doc! { "$sort": &sort },
            ],
            vec![doc! { "$project": { "is": { "$eq": ["$key", *key] }, "v": 1 } }, doc! { "$sort": { "v": 1 } }],
            vec![doc! { "$sort": &sort }, doc! { "$limit": 4 }, doc! { "$match": { "key": *key } }],
            vec![
                doc! { "$sort": &sort },
                doc! { "$project": { "v": 1, "is": { "$let": { "vars": { "q": *key, "k": "$key" }, "in": { "$and": [{ "$eq": ["$key", "$$q"] }, { "$eq": ["$$k", *key] }] } } } } },
            ],
            vec![
                doc! { "$sort": &sort },
                doc! { "$project": { "v": 1, "a": { "$setIsSubset": [["$key"], [*key, "0C"]] }, "b": { "$setIntersection": [["$key"], [*key]] }, "c": { "$indexOfArray": [[*key, "0C"], "$key"] } } },
            ],
            vec![
                doc! { "$sort": &sort },
                doc! { "$project": { "v": 1, "a": { "$switch": { "branches": [{ "case": { "$eq": ["$$ROOT.key", *key] }, "then": 1 }], "default": 2 } }, "b": { "$cond": [{ "$in": ["$key", [*key]] }, 1, 2] } } },
            ],
            vec![
                doc! { "$bucket": { "groupBy": "$key", "boundaries": ["0C", "AB", "FF"], "default": "other", "output": { "n": { "$sum": 1 } } } },
                doc! { "$sort": { "_id": 1 } },
            ],
            vec![doc! { "$sortByCount": "$key" }, doc! { "$match": { "_id": *key } }],
            vec![doc! { "$facet": { "a": [{ "$match": { "key": *key } }, { "$count": "n" }] } }],
        ] {
            pair.same(doc! { "aggregate": 1, "pipeline": stages, "cursor": {} });
        }
    }
    pair.same(doc! { "distinct": 1, "key": "v", "query": { "key": "FF" } });
    let asked = doc! { "find": 1, "filter": { "$expr": { "$eq": ["$key", "$$wanted"] } }, "let": { "wanted": "ff" }, "sort": &sort };
    pair.same(asked);
    for key in KEYS {
        let expr = doc! { "$expr": { "$or": [{ "$eq": ["$key", "$$wanted"] }, { "$in": ["$key", "$$all"] }] } };
        let variables = doc! { "wanted": *key, "all": ["0C"] };
        pair.same(doc! { "find": 1, "filter": &expr, "let": &variables, "sort": &sort });
        pair.same(doc! { "find": 1, "projection": { "v": 1, "is": { "$eq": ["$key", *key] } }, "sort": &sort });
        // A part that is brought to lower case beside one that is not.
        let both = doc! { "$or": [{ "key": "FF" }, { "$expr": { "$eq": ["$v", "$$wanted"] } }] };
        pair.same(doc! { "find": 1, "filter": both, "let": { "wanted": 3 }, "sort": &sort });
        let stages = vec![doc! { "$match": expr }, doc! { "$sort": &sort }];
        pair.same(doc! { "aggregate": 1, "pipeline": stages, "let": variables, "cursor": {} });
    }
}

fn writes(pair: &Pair) {
    let update = |q: Document, u: Document, more: Document| {
        let mut statement = doc! { "q": q, "u": u };
        statement.extend(more);
        doc! { "update": 1, "updates": [statement] }
    };
    for (key, other) in [("AB01", "ff"), ("FF", "AB01"), ("0C", "FF"), ("Ab01", "0C")] {
        pair.same(update(doc! { "key": key }, doc! { "$inc": { "w": 1 } }, doc! { "multi": true }));
        pair.same_documents(key);
        pair.same(update(doc! { "key": key, "at": at(3) }, doc! { "$set": { "w": 9 } }, doc! {}));
        pair.same_documents(key);
        let modify = doc! { "findAndModify": 1, "query": { "key": other }, "sort": { "at": 1, "v": 1 }, "update": { "$set": { "seen": true } }, "new": true };
        pair.same(modify);
        pair.same_documents(other);
        // The same key in another case is no change.
        pair.same(update(doc! { "key": key }, doc! { "$set": { "key": key } }, doc! { "multi": true }));
        pair.same_documents(key);
    }
    for key in ["FF", "ab01"] {
        let flag = |with: Document| doc! { "q": {}, "u": [{ "$set": { "flag": with } }], "multi": true };
        pair.same(doc! { "update": 1, "updates": [flag(doc! { "$eq": ["$key", key] })] });
        pair.same_documents("a pipeline");
        pair.same(doc! { "update": 1, "updates": [flag(doc! { "$cond": [{ "$in": ["$key", ["$$wanted"]] }, 1, 2] })], "let": { "wanted": key } });
        pair.same_documents("a pipeline with let");
        let mut constant = flag(doc! { "$ne": ["$key", "$$wanted"] });
        constant.insert("c", doc! { "wanted": key });
        pair.same(doc! { "update": 1, "updates": [constant] });
        pair.same_documents("a pipeline with a constant");
        let q = doc! { "$expr": { "$eq": ["$key", "$$wanted"] } };
        pair.same(doc! { "update": 1, "updates": [{ "q": &q, "u": { "$inc": { "w": 1 } }, "multi": true }], "let": { "wanted": key } });
        pair.same_documents("an update with let");
        let found = doc! { "$expr": { "$and": [{ "$eq": ["$key", "$$wanted"] }, { "$gt": ["$v", 15] }] } };
        pair.same(doc! { "delete": 1, "deletes": [{ "q": found, "limit": 0 }], "let": { "wanted": key } });
        pair.same_documents("a delete with let");
    }
    let upsert = update(
        doc! { "key": "DD", "at": at(900) },
        doc! { "$set": { "v": 77 }, "$setOnInsert": { "_id": 900 } },
        doc! { "upsert": true },
    );
    if !pair.derived {
        pair.same(upsert.clone());
        pair.same(upsert);
        pair.same_documents("upsert");
        // To another series, in the other case.
        pair.same(update(doc! { "key": "DD" }, doc! { "$set": { "key": "AB" } }, doc! {}));
        pair.same_documents("moved");
    } else {
        let id = doc! { "key": "FF", "at": at(1) };
        pair.same(doc! { "find": 1, "filter": { "_id": &id } });
        pair.same(update(doc! { "_id": &id }, doc! { "$set": { "w": 5 } }, doc! {}));
        pair.same(doc! { "find": 1, "filter": { "_id": { "$in": [&id] } } });
        pair.same(doc! { "find": 1, "filter": { "_id.key": "FF" }, "sort": { "at": 1 } });
        pair.same_documents("by _id");
    }
    let bad = doc! { "update": "readings", "updates": [{ "q": { "key": "FF" }, "u": { "$set": { "key": "xyz" } } }] };
    let reply = pair.door.ask(bad);
    let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
    assert_eq!(error.get_i32("code").unwrap(), 2, "{error}");
    assert!(error.get_str("errmsg").unwrap().contains("an even number of hex digits"), "{error}");
    pair.same(doc! { "delete": 1, "deletes": [{ "q": { "key": "FF", "at": at(1) }, "limit": 1 }] });
    pair.same_documents("one deleted");
    pair.same(doc! { "delete": 1, "deletes": [{ "q": { "key": { "$in": ["AB01", "0C"] } }, "limit": 0 }] });
    pair.same_documents("deleted");
}

fn keys_of_either_case_mean_the_same(place: At) {
    for (name, derived, extra) in [
        ("hexstored", false, doc! {}),
        ("hextime", true, doc! { "reading_id": "time" }),
        ("hexday", false, doc! { "every": "day" }),
    ] {
        let door = place.door(name);
        let mut bucket = doc! { "time": "at", "by": [{ "field": "key", "as": "hex" }], "every": "hour", "at_most": 3 };
        bucket.extend(extra.clone());
        door.apply(doc! { "readings": { "bucket": bucket } });
        let pair = Pair { door, derived };
        for (number, key) in (0..21).zip(KEYS.iter().cycle()) {
            pair.insert(doc! { "_id": number, "key": *key, "at": at(i64::from(number) * 7 % 100), "v": number });
        }
        pair.same_documents("inserts");
        reads(&pair);
        writes(&pair);
        pair.door.finish();
    }
}

/// Pipelines that read the buckets from inside a stage; with the name of the collection that they are run on.
fn joining(key: &str) -> Vec<(&'static str, Vec<Document>)> {
    let by_value = doc! { "$sort": { "v": 1 } };
    let found = |filter: Document| vec![doc! { "$match": filter }, by_value.clone(), doc! { "$project": { "v": 1 } }];
    let lookup = |stages: Vec<Document>| doc! { "$lookup": { "from": "readings", "pipeline": stages, "as": "of" } };
    let own = doc! { "$sort": { "_id": 1 } };
    let limited = doc! { "$limit": 2 };
    let mut all = Vec::new();
    for outer in ["devices", "readings"] {
        all.extend([
            (outer, vec![own.clone(), limited.clone(), lookup(found(doc! { "key": key }))]),
            (outer, vec![own.clone(), limited.clone(), lookup(found(doc! { "key": { "$in": [key, "0C"] } }))]),
            (outer, vec![own.clone(), limited.clone(), lookup(found(doc! { "$expr": { "$ne": ["$key", key] } }))]),
            (
                outer,
                vec![
                    own.clone(),
                    limited.clone(),
                    doc! { "$lookup": { "from": "readings", "let": { "wanted": key, "v": "$v" }, "pipeline": found(doc! { "$expr": { "$and": [{ "$eq": ["$key", "$$wanted"] }, { "$gte": ["$v", "$$v"] }] } }), "as": "of" } },
                ],
            ),
            (outer, vec![own.clone(), limited.clone(), lookup(vec![lookup(found(doc! { "key": key })), by_value.clone(), doc! { "$limit": 1 }])]),
            (
                outer,
                vec![
                    doc! { "$match": { "v": { "$gte": 0 } } },
                    own.clone(),
                    limited.clone(),
                    lookup(vec![by_value.clone()]),
                    doc! { "$unwind": "$of" },
                    doc! { "$match": { "of.key": key } },
                    doc! { "$group": { "_id": "$of.key", "n": { "$sum": 1 } } },
                ],
            ),
            (outer, vec![own.clone(), limited.clone(), doc! { "$unionWith": { "coll": "readings", "pipeline": found(doc! { "key": key }) } }]),
            (
                outer,
                vec![doc! { "$facet": { "a": [lookup(found(doc! { "key": key })), own.clone(), limited.clone()], "b": [{ "$unionWith": { "coll": "readings", "pipeline": found(doc! { "key": { "$gte": key } }) } }, { "$count": "n" }] } }],
            ),
            (
                outer,
                vec![
                    own.clone(),
                    limited.clone(),
                    doc! { "$graphLookup": { "from": "readings", "startWith": "$v", "connectFromField": "v", "connectToField": "v", "as": "of", "restrictSearchWithMatch": { "key": { "$ne": key } } } },
                    doc! { "$project": { "of.v": 1 } },
                ],
            ),
            (
                outer,
                vec![
                    own.clone(),
                    limited.clone(),
                    doc! { "$graphLookup": { "from": "readings", "startWith": key, "connectFromField": "none", "connectToField": "key", "as": "of" } },
                    doc! { "$project": { "of": { "$size": "$of" } } },
                ],
            ),
        ]);
    }
    all.extend([
        // Where both sides of a union are the buckets, what follows is about them too.
        ("readings", vec![doc! { "$unionWith": "readings" }, doc! { "$match": { "key": key } }, doc! { "$count": "n" }]),
        // A variable of the buckets, compared inside another collection.
        (
            "readings",
            vec![
                own.clone(),
                limited.clone(),
                doc! { "$lookup": { "from": "devices", "let": { "k": "$key" }, "pipeline": [{ "$match": { "$expr": { "$eq": ["$$k", key] } } }, { "$sort": { "_id": 1 } }], "as": "of" } },
            ],
        ),
    ]);
    all
}

/// Stages over other collections, also where only the inner collection is in buckets.
fn keys_of_either_case_mean_the_same_inside_stages(place: At) {
    let door = place.door("hexinside");
    let bucket = doc! { "time": "at", "by": [{ "field": "key", "as": "hex" }], "every": "hour", "at_most": 3 };
    door.must(doc! { "insert": "devices", "documents": [{ "_id": 1, "v": 3, "key": "AB01" }, { "_id": 2, "v": 9, "key": "ff" }] });
    door.apply(doc! { "readings": { "bucket": bucket } });
    let pair = Pair { door, derived: false };
    for (number, key) in (0..12).zip(KEYS.iter().cycle()) {
        pair.insert(doc! { "_id": number, "key": *key, "at": at(i64::from(number) * 7 % 100), "v": number });
    }
    for key in ["AB01", "ab01", "Ff", "0C"] {
        for (outer, stages) in joining(key) {
            let command = doc! { "aggregate": outer, "pipeline": stages, "cursor": {} };
            pair.same_as_sent(command.clone());
            pair.door.must(doc! { "explain": command, "verbosity": "queryPlanner" });
        }
        let filter = doc! { "$expr": { "$eq": ["$key", "$$wanted"] } };
        let inner =
            doc! { "from": "readings", "pipeline": [{ "$match": filter }, { "$sort": { "v": 1 } }], "as": "of" };
        let stages = vec![doc! { "$sort": { "_id": 1 } }, doc! { "$lookup": inner }];
        pair.same_as_sent(doc! { "aggregate": "devices", "pipeline": stages, "let": { "wanted": key }, "cursor": {} });
    }
    // What such a pipeline writes.
    for (outer, sink) in [("devices", "$merge"), ("readings", "$out")] {
        let joined = doc! { "$lookup": { "from": "readings", "pipeline": [{ "$match": { "key": "FF" } }, { "$count": "n" }], "as": "of" } };
        let stages = vec![doc! { "$limit": 1 }, joined, doc! { sink: "made" }];
        pair.door.must(doc! { "aggregate": outer, "pipeline": stages, "cursor": {} });
        let made = pair.door.rows(doc! { "find": "made", "filter": { "of.n": 4 } });
        assert_eq!(made.len(), 1, "{outer}");
    }
    if pair.door.is_real() {
        // What only MongoDB itself can answer.
        let collation = doc! { "locale": "simple" };
        let found = pair.door.rows(doc! { "find": "readings", "filter": { "key": "FF" }, "collation": &collation });
        assert_eq!(found.len(), 4);
        let counted = pair.door.must(doc! { "count": "readings", "query": { "key": "FF" }, "collation": collation });
        assert_eq!(counted.get_i32("n").ok(), Some(4), "{counted}");
    }
    // What is no stage is refused as ever.
    let two = doc! { "$match": { "key": "FF" }, "$limit": 1 };
    for outer in ["devices", "readings"] {
        let reply = pair.door.ask(doc! { "aggregate": outer, "pipeline": [&two], "cursor": {} });
        assert_eq!(reply.get_i32("code").ok(), Some(40323), "{reply}");
    }
    // What is not about buckets stays as it was sent.
    let own =
        doc! { "aggregate": "devices", "pipeline": [{ "$match": { "key": "AB01" } }, { "$count": "n" }], "cursor": {} };
    assert_eq!(pair.door.rows(own)[0].get_i32("n").ok(), Some(1));
    pair.door.finish();
}
