//! Arrays that overflow, versions and kinds, each by itself and all on one collection with fields: what clients see is what a plain
//! collection in the newest shape shows after the same operations, while documents become older ones behind the back, and statements
//! fail or are never finished at any step and are sent again (SEMANTICS R18, R19, R34, R36).

use crate::failing::{Failing, Fault};
use crate::older;
use bson::{Bson, Document, doc};
use document::backend::Session;
use document::op::{AdminOp, Aggregate, Count, Find, ReadOp, WriteError, Written};
use document::pipeline::expr::Names;
use document::pipeline::{Pipeline, sort_spec};
use document::project::Projection;
use document::{Code, Doc, Value};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use testing::registry::merged;
use testing::{Act, Living, Opened, shop};

/// What clients call it, and the plain one.
const USERS: &str = "users";
const PLAIN: &str = "people";

const OUTLIER: &str = "users:
  outlier:
    followers: { keep: 2, overflow: follower_overflow, owner: userId, item: followerId, flag: hasOverflow, count: followerCount }";

const VERSIONS: &str = r#"users:
  versions:
    field: v
    steps:
      - { nest: { phone: { into: phone.number, with: { phone.countryCode: "+1" } } } }
      - [{ rename: { mail: email } }, { convert: { age: { from: string, to: int } } }, { wrap: [nick] }]
      - [{ rename: { fans: followers } }, { rename: { sort: kind } }]
    migrate: { background: false }"#;

/// What is asked of documents is the same for both. An index that tells kinds apart cannot be unique where another version calls their
/// field otherwise (SEMANTICS R19).
const KINDS: &str = "users:
  polymorphic:
    discriminator: kind
    kinds:
      person: { required: [name], schema: { properties: { age: { bsonType: int } } } }
      shop: { required: [name, email], indexes: [{ key: { name: 1 } }] }
people:
  polymorphic:
    discriminator: kind
    kinds:
      person: { required: [name], schema: { properties: { age: { bsonType: int } } } }
      shop: { required: [name, email], indexes: [{ key: { name: 1 } }] }";

const FIELDS: &str = r#"users:
  computed:
    orderCount: { count: orders, by: userId }
    spent: { sum: n, from: orders, by: userId }
    label: { expr: { $concat: [$phone.number, "-", $email] } }
  subset:
    recent: { from: orders, by: userId, sort: { n: -1 }, keep: 2, fields: [n] }
  extended_reference:
    city: { from: customers, by: cityId, fields: [name] }
orders:
  extended_reference:
    user: { from: users, by: userId, fields: { nr: phone.number, mail: email } }
wanted:
  computed:
    people: { count: users, by: name }
    eldest: { max: age, from: users, by: name }"#;

/// What the patterns add to documents.
const ADDED: &[&str] =
    &["hasOverflow", "followerCount", "v", "_pleach", "orderCount", "spent", "label", "recent", "city", "followers"];

/// Each by itself, two, and all.
fn stacks() -> Vec<(&'static str, String)> {
    vec![
        ("versions", VERSIONS.to_owned()),
        ("kinds", KINDS.replace("{ name: 1 } }", "{ name: 1 }, unique: true }")),
        ("an array and versions", merged(&[OUTLIER, VERSIONS])),
        ("versions and kinds", merged(&[VERSIONS, KINDS])),
        ("all", merged(&[OUTLIER, VERSIONS, KINDS, FIELDS])),
    ]
}

pub(crate) async fn check(opened: &Opened, seed: u64, acts: usize) {
    let (mut refused, mut tried) = (0, 0);
    for (at, (name, rules)) in stacks().into_iter().enumerate().filter(|(_, (_, rules))| crate::is_asked(rules)) {
        let mut stack = Stack::new(opened, &rules, seed + at as u64).await;
        // More of what has most to it.
        let acts = if name == "all" { 2 * acts } else { acts };
        for number in 0..acts {
            if stack.random.random_bool(0.12) {
                stack.several(number).await;
            } else {
                stack.step(number).await;
            }
            if number % 12 == 11 || number + 1 == acts {
                stack.look().await;
            }
        }
        (refused, tried) = (refused + stack.refused, tried + 1);
        stack.living.drop_database().await;
    }
    assert!(tried == 0 || refused > 3, "hardly anything was refused: {refused}");
}

struct Stack {
    living: Arc<Living>,
    gate: Arc<Failing>,
    random: StdRng,
    session: [u8; 16],
    done: Vec<String>,
    refused: usize,
    has_array: bool,
}

impl Stack {
    async fn new(opened: &Opened, rules: &str, seed: u64) -> Stack {
        let gate = Arc::new(Failing::default());
        let living = shop::open(opened, gate.clone(), "").await;
        for name in [USERS, PLAIN, "follower_overflow"] {
            let op = AdminOp::Create { ns: living.ns(name), options: Default::default() };
            living.inner().admin(&mut Session::default(), &living.context(), op).await.unwrap();
        }
        living.set_rules(rules).await;
        living.rest().await;
        for act in [
            Act::Insert("customers", (0..3).map(|id| shop::customer(id, "Oslo", 1)).collect()),
            Act::Insert("wanted", (0..4).map(|n| doc! { "_id": format!("n{n}") }).collect()),
        ] {
            living.act(&act).await.unwrap();
        }
        Stack {
            living: Arc::new(living),
            gate,
            random: StdRng::seed_from_u64(seed),
            // Not by the seed: a real server remembers the retryable writes of earlier runs by their session.
            session: rand::random(),
            done: vec![format!("seed {seed} of\n{rules}")],
            refused: 0,
            has_array: rules.contains("outlier:"),
        }
    }

    fn story(&self) -> String {
        self.done.join("\n")
    }

    async fn step(&mut self, number: usize) {
        older::one_each(&self.living, &mut self.random).await;
        let at = i32::try_from(number).unwrap();
        let choice: u64 = self.random.random();
        let [act, plain] = [USERS, PLAIN].map(|of| some_act(&mut StdRng::seed_from_u64(choice), of, at));
        let fault = self.random.random_bool(0.5).then(|| {
            let kind = if self.random.random_bool(0.5) { Fault::Error } else { Fault::Gone };
            (self.random.random_range(0..8), kind)
        });
        let stored = ReadOp::Find(testing::find(self.living.ns(USERS), doc! { "_id": act.id() }));
        let stored = testing::rows(&*self.living.opened.backend, &mut Session::default(), stored).await.unwrap();
        self.done.push(format!("{number}: {act:?}, {fault:?} of {stored:?}"));
        let told = self.sent_until_done(&act, i64::from(at) + 1, fault).await;
        if act.collection() == USERS {
            let expected = as_statement(self.living.act_at(&mut Session::default(), &plain).await);
            self.refused += expected.errors.len();
            assert_eq!(outcome(&told), outcome(&expected), "{}", self.story());
        } else {
            assert!(told.errors.is_empty(), "{:?}\n{}", told.errors, self.story());
        }
        assert_eq!(self.logical(USERS).await, self.logical(PLAIN).await, "{}", self.story());
    }

    /// Some statements in one command, those that are refused among them.
    async fn several(&mut self, number: usize) {
        older::one_each(&self.living, &mut self.random).await;
        let (choice, at, ordered): (u64, _, bool) =
            (self.random.random(), i32::try_from(number).unwrap(), self.random.random());
        let mut outcomes = Vec::new();
        for collection in [USERS, PLAIN] {
            let mut random = StdRng::seed_from_u64(choice);
            let mut statements = Vec::new();
            while statements.len() < 4 {
                if let Act::Update(of, query, change, false, upsert) = some_act(&mut random, collection, at)
                    && of == collection
                {
                    let how: &[&str] = if upsert { &["upsert"] } else { &[] };
                    statements.push(testing::statement(query, change, how));
                }
            }
            if collection == USERS {
                self.done.push(format!("{number}: ordered {ordered}, {statements:?}"));
            }
            let op = testing::updates(self.living.ns(collection), statements, ordered);
            let written = as_statement(self.living.write(op).await);
            let places: Vec<usize> = written.errors.iter().map(|failed| failed.index).collect();
            outcomes.push(format!("{} {places:?}", outcome(&written)));
            self.refused += places.len();
        }
        assert_eq!(outcomes[0], outcomes[1], "{}", self.story());
        assert_eq!(self.logical(USERS).await, self.logical(PLAIN).await, "{}", self.story());
    }

    /// As a driver: the same number again after a failure. What is done to many documents has none, and is sent without a fault.
    async fn sent_until_done(&self, act: &Act, number: i64, fault: Option<(usize, Fault)>) -> Written {
        let (many, id) = (act.is_multi(), self.session);
        let session = move || match many {
            true => Session::default(),
            false => Session { id: Some(id), retry: Some(number), ..Session::default() },
        };
        if let (Some((after, fault)), false) = (fault, many) {
            self.gate.arm(after, fault);
            let (living, act) = (self.living.clone(), act.clone());
            let task = tokio::spawn(async move { living.act_at(&mut session(), &act).await });
            let abort = task.abort_handle();
            tokio::select! {
                done = task => {
                    let done = as_statement(done.unwrap());
                    if self.gate.disarm() {
                        return done;
                    }
                    let on_purpose = |failed: &WriteError| failed.error.code() == Code::InternalError;
                    assert!(done.errors.iter().all(|failed| on_purpose(failed) || testing::is_transient(&failed.error)), "{:?}\n{}", done.errors, self.story());
                }
                () = self.gate.stuck.notified() => abort.abort(),
            }
            self.gate.disarm();
        }
        as_statement(self.living.act_at(&mut session(), act).await)
    }

    /// All documents with whole arrays, without what the patterns add.
    async fn logical(&self, collection: &str) -> Vec<String> {
        let mut overflow = self.living.sorted("follower_overflow").await;
        overflow.sort_by_key(|item| item.get_i32("index").unwrap());
        let whole = |mut document: Document| {
            let followers = document.get_array("followers").ok().cloned();
            let followers = followers.map(|mut followers| {
                let of_it =
                    overflow.iter().filter(|item| collection == USERS && item.get("userId") == document.get("_id"));
                followers.extend(of_it.filter_map(|item| item.get("followerId").cloned()));
                followers
            });
            ADDED.iter().for_each(|name| drop(document.remove(*name)));
            document.extend(followers.map(|followers| ("followers".to_owned(), Bson::from(followers))));
            older::normal(&document.into())
        };
        self.living.sorted(collection).await.into_iter().map(whole).collect()
    }

    async fn rows(&self, op: ReadOp) -> Vec<Document> {
        let rows = self.living.read(&mut Session::default(), op).await;
        rows.unwrap_or_else(|error| panic!("{error:?}\n{}", self.story()))
    }

    /// Whatever is asked, both answer alike; and every field is right.
    async fn look(&mut self) {
        self.living.rest().await;
        assert_eq!(self.living.drift().await, Vec::<String>::new(), "{}", self.story());
        assert_eq!(self.living.audit().await, Vec::<Document>::new(), "{}", self.story());
        if self.has_array {
            assert_eq!(self.items(USERS).await, self.items(PLAIN).await, "{}", self.story());
        }
        for _ in 0..8 {
            let filter = some_filter(&mut self.random);
            let mut answers = Vec::new();
            for collection in [USERS, PLAIN] {
                answers.push(self.answers(collection, &filter).await);
            }
            assert_eq!(answers[0], answers[1], "{filter}\n{}", self.story());
        }
    }

    /// All items of all arrays, by the collection of their own.
    async fn items(&self, collection: &str) -> Vec<String> {
        let row = |owner: Option<&Bson>, item: &Bson| format!("{owner:?} {item:?}");
        let mut rows: Vec<String> = if collection == USERS {
            let found = self.living.find("users.followers", doc! {}).await;
            found.iter().map(|found| row(found.get("userId"), found.get("followerId").unwrap())).collect()
        } else {
            let found = self.living.all(collection).await;
            let of = |one: &Document| -> Vec<String> {
                let items = one.get_array("followers").ok().into_iter().flatten();
                items.map(|item| row(one.get("_id"), item)).collect()
            };
            found.iter().flat_map(of).collect()
        };
        rows.sort();
        rows
    }

    /// What several ways of reading give for a filter, without the array: a read shows its first items.
    async fn answers(&self, collection: &str, filter: &Document) -> Vec<Vec<String>> {
        let ns = || self.living.ns(collection);
        let parsed = testing::filter(filter.clone());
        let shown = |rows: Vec<Document>| -> Vec<String> {
            let without = |mut row: Document| {
                ADDED.iter().for_each(|name| drop(row.remove(*name)));
                older::normal(&row.into())
            };
            rows.into_iter().map(without).collect()
        };
        let mut found = shown(self.rows(ReadOp::Find(testing::find(ns(), filter.clone()))).await);
        found.sort();
        let count = Count { ns: ns(), filter: parsed.clone(), skip: 0, limit: None, hint: None };
        let projected = doc! { "email": 1, "phone.number": 1, "age": 1 };
        let projected = Projection::parse_find(&Doc::from(projected), &parsed, &mut Names::new()).unwrap();
        let sorted = Find {
            sort: Some(sort_spec::parse(&Doc::from(doc! { "age": -1, "email": 1, "_id": 1 })).unwrap()),
            skip: 1,
            limit: Some(3),
            projection: Some(Arc::new(projected)),
            ..Find::matching(ns(), parsed)
        };
        let group = doc! { "$group": { "_id": "$email", "n": { "$sum": 1 }, "age": { "$sum": "$age" } } };
        let stages = Value::from(Bson::from(vec![doc! { "$match": filter.clone() }, group]));
        let Value::Array(stages) = stages else { panic!("an array is an array") };
        let grouped = Aggregate {
            ns: ns(),
            collectionless: false,
            pipeline: Pipeline::parse(&stages, &mut Names::new()).unwrap(),
            hint: None,
            allow_disk_use: true,
            collation: None,
        };
        let mut grouped = shown(self.rows(ReadOp::Aggregate(grouped)).await);
        grouped.sort();
        // Of any type: the server answers with the shortest.
        let counted = self.rows(ReadOp::Count(count)).await.remove(0);
        let counted = counted.get_i64("n").or_else(|_| counted.get_i32("n").map(i64::from)).unwrap();
        vec![found, vec![counted.to_string()], shown(self.rows(ReadOp::Find(sorted)).await), grouped]
    }
}

fn as_statement(outcome: document::Result<Written>) -> Written {
    let failed = |error| Written { errors: vec![WriteError { index: 0, error }], ..Written::default() };
    outcome.unwrap_or_else(failed)
}

/// What a client is told, without what the patterns add.
fn outcome(written: &Written) -> String {
    written.errors.iter().for_each(says_why);
    let errors: Vec<i32> = written.errors.iter().map(|failed| failed.error.code().number()).collect();
    let shown = written.document.as_ref().map(|document| {
        let mut document = Document::try_from(document).unwrap();
        ADDED.iter().for_each(|name| drop(document.remove(*name)));
        older::normal(&document.into())
    });
    // A findAndModify does not say whether it changed something.
    let modified = if written.document.is_some() { 0 } else { written.modified };
    format!("{} {modified} {:?} {errors:?} {shown:?}", written.n, written.upserted)
}

/// What is refused for its kind is told with the kind, or that there is none such, and with the field (SEMANTICS R36).
fn says_why(failed: &WriteError) {
    if failed.error.code() != Code::DocumentValidationFailure {
        return;
    }
    let info = failed.error.info().map(|info| Document::try_from(info).unwrap().to_string()).unwrap_or_default();
    let names = |names: &[&str]| names.iter().any(|name| info.contains(name));
    assert!(names(&["person", "shop"]) && names(&["\"kind\"", "\"name\"", "\"email\"", "\"age\""]), "{info}");
}

fn item(random: &mut StdRng) -> i32 {
    random.random_range(0..8)
}

fn items(random: &mut StdRng) -> Vec<i32> {
    (0..random.random_range(0..6)).map(|_| item(random)).collect()
}

fn kind(random: &mut StdRng) -> &'static str {
    ["person", "person", "shop", "shop", "ghost"][random.random_range(0..5)]
}

fn phone(random: &mut StdRng) -> Document {
    doc! { "countryCode": "+1", "number": format!("55{}", random.random_range(0..4)) }
}

/// As a client writes it, in the newest shape; some are none of their kind.
fn document(random: &mut StdRng) -> Document {
    let mut document = doc! { "kind": kind(random), "name": format!("n{}", random.random_range(0..4)), "age": random.random_range(1..60) };
    if random.random_bool(0.8) {
        document.insert("email", format!("m{}", random.random_range(0..4)));
    }
    if random.random_bool(0.8) {
        document.insert("phone", phone(random));
    }
    if random.random_bool(0.8) {
        document.insert("followers", items(random));
    }
    document.extend(doc! { "nick": ["x"], "cityId": random.random_range(0..4) });
    document
}

fn some_act(random: &mut StdRng, collection: &'static str, at: i32) -> Act {
    let id = random.random_range(0..6);
    let one = doc! { "_id": id };
    let update = |query: Document, change: Document| Act::Update(collection, query, change.into(), false, false);
    let upsert = |change: Document| Act::Update(collection, doc! { "_id": id }, change.into(), false, true);
    let many = |query: Document, change: Document| Act::Update(collection, query, change.into(), true, false);
    let modify = |query: Document, change: Document| Act::Modify(collection, query, Some(change));
    let (mail, number) = (format!("m{}", random.random_range(0..4)), format!("55{}", random.random_range(0..4)));
    match random.random_range(0..36) {
        0..=3 => {
            let mut new = document(random);
            new.insert("_id", id);
            Act::Insert(collection, vec![new])
        }
        4 | 5 => upsert(document(random)),
        6 => update(one, document(random)),
        7 => upsert(doc! { "$set": document(random) }),
        8 | 9 => update(one, doc! { "$push": { "followers": item(random) } }),
        10 => update(one, doc! { "$push": { "followers": { "$each": items(random) } }, "$inc": { "age": 1 } }),
        11 => update(one, doc! { "$addToSet": { "followers": item(random) } }),
        12 => update(one, doc! { "$pull": { "followers": item(random) } }),
        13 => update(one, doc! { "$pop": { "followers": -1 } }),
        14 => update(one, doc! { "$set": { "followers": items(random), "phone.number": number } }),
        15 => many(doc! { "phone.number": number }, doc! { "$addToSet": { "followers": item(random) } }),
        16 => update(doc! { "_id": id, "followers": { "$ne": 3 } }, doc! { "$push": { "followers": 3 } }),
        17 => update(doc! { "_id": id, "phone.number": number }, doc! { "$set": { "phone.number": "557" } }),
        18 => update(one, doc! { "$set": { "email": mail } }),
        // A shop without one is refused.
        19 => update(one, doc! { "$unset": { "email": "" } }),
        20 => update(one, doc! { "$set": { "kind": kind(random) } }),
        21 => update(
            one,
            doc! { "$set": { "kind": "shop", "email": mail, "name": format!("n{}", random.random_range(0..4)) } },
        ),
        22 => update(one, doc! { "$set": { "kind": "person" }, "$inc": { "age": 1 } }),
        23 => many(doc! { "email": mail }, doc! { "$inc": { "age": 1 } }),
        24 => many(doc! { "age": { "$gt": 20 } }, doc! { "$set": { "x": at } }),
        25 => {
            let stages = vec![doc! { "$set": { "age": { "$add": ["$age", 1] }, "was": "$email" } }];
            Act::Update(collection, one, Bson::from(stages), false, false)
        }
        26 => update(one, doc! { "$set": { "age": "none" } }),
        27 => modify(doc! { "_id": id }, doc! { "$inc": { "age": 1 }, "$set": { "email": mail } }),
        28 => modify(doc! { "_id": id, "email": mail }, doc! { "$push": { "followers": item(random) } }),
        29 => Act::Modify(collection, doc! { "_id": id, "kind": "shop" }, None),
        30 => Act::Delete(collection, doc! { "_id": id, "phone.number": number }, false),
        31 => Act::Delete(collection, doc! { "email": mail, "age": { "$lt": 10 } }, true),
        32 => upsert(doc! { "$set": { "phone": phone(random) }, "$setOnInsert": { "kind": "person", "name": "new" } }),
        33 => Act::Insert("orders", vec![doc! { "_id": at, "userId": id, "n": at }]),
        34 => Act::Delete("orders", doc! { "userId": id }, false),
        _ => Act::Update("customers", doc! { "_id": id }, shop::set(doc! { "name": number }), false, false),
    }
}

fn some_filter(random: &mut StdRng) -> Document {
    let (mail, number) = (format!("m{}", random.random_range(0..4)), format!("55{}", random.random_range(0..4)));
    let item = item(random);
    match random.random_range(0..14) {
        0 => doc! {},
        1 => doc! { "email": mail },
        2 => doc! { "email": { "$in": [mail, null] }, "kind": "person" },
        3 => doc! { "phone.number": { "$gte": number } },
        4 => doc! { "phone.countryCode": { "$exists": false } },
        5 => doc! { "age": { "$gte": 20, "$lt": 50 } },
        6 => doc! { "nick": "x", "kind": { "$ne": "shop" } },
        7 => doc! { "followers": item },
        8 => doc! { "followers": { "$ne": item }, "email": { "$gt": "m0" } },
        9 => doc! { "followers": { "$size": item } },
        10 => doc! { "$or": [{ "email": mail }, { "followers": { "$in": [item, 3] } }] },
        11 => doc! { "followers": { "$all": [item, 3] } },
        12 => doc! { "$nor": [{ "phone.number": number }, { "age": { "$lt": 10 } }] },
        _ => doc! { "_id": { "$lt": 4 }, "phone.number": number },
    }
}
