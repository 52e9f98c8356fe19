//! Copies filled one by one, spread by one statement and defined by `expected` are the same.

use crate::fields::HostUpdate;
use crate::fields::copy::CopyField;
use crate::fields::copy::spread::Spread;
use crate::fields::testing;
use crate::fields::testing::{Memory, apply, key};
use crate::rule::{Delta, Effect, Effects, Fetch, Field, KeyPath, Link, LinkKey, Rows, WhenChanged, WhenDeleted};
use bson::{Bson, bson, doc};
use document::op::ReadOp;
use document::value::order;
use document::{Doc, Env, Value};
use proptest::prelude::*;
use std::sync::Arc;

fn program(field: &str, by: KeyPath, change: impl FnOnce(&mut Link)) -> CopyField {
    testing::copy(field, by, &[("name", "name"), ("city", "address.city")], change)
}

fn plain() -> CopyField {
    program("author", key("authorId", false), |_| {})
}

/// What a change of a source means.
fn effects(program: &CopyField, before: Option<&Doc<'static>>, after: Option<&Doc<'static>>) -> Effects {
    let mut effects = Effects::new();
    program.react(&testing::change(before.cloned(), after.cloned()), &Env::fixed(), &mut effects).unwrap();
    effects
}

fn copies(program: &CopyField, users: &[Doc<'static>]) -> Rows {
    let all = Memory::default().with("users", users.to_vec());
    let mut copies = Rows::default();
    let keys: Vec<Value<'static>> = users.iter().filter_map(|user| user.get("_id")).collect();
    let ReadOp::Aggregate(query) = program.query(&keys, Fetch::Rows).unwrap() else { panic!() };
    copies.add(program, Fetch::Rows, &all.run("users", &query.pipeline));
    // Taken from the sources themselves they are the same.
    for fetch in [Fetch::Documents, Fetch::Shortest] {
        let ReadOp::Find(find) = program.query(&keys, fetch).unwrap() else { panic!() };
        let found = |user: &&Doc<'static>| find.filter.matches(user, &Env::fixed()).unwrap();
        let found: Vec<Doc<'static>> = users.iter().filter(found).cloned().collect();
        let mut taken = Rows::default();
        taken.add(program, fetch, &found);
        assert_eq!(taken, copies);
    }
    copies
}

fn users() -> Vec<Doc<'static>> {
    [
        doc! { "_id": 1, "name": "Ann", "address": { "city": "Oslo" }, "x": 1 },
        doc! { "_id": 2 },
        doc! { "_id": 3, "name": "Cid" },
    ]
    .into_iter()
    .map(Doc::from)
    .collect()
}

/// Fills a host and checks it against its definition.
fn filled(
    program: &CopyField,
    host: &Doc<'static>,
    before: Option<&Doc<'static>>,
    users: &[Doc<'static>],
) -> Doc<'static> {
    let right = program.place(host, before, &copies(program, users), &Env::fixed()).unwrap();
    let updated = match program.is_right(host, &right) {
        true => host.clone(),
        false => apply(&program.correction(host, &right).unwrap(), host).unwrap(),
    };
    assert!(order::equal(&Value::Document(right.clone()), &Value::Document(updated.clone())), "{right:?} {updated:?}");
    check_expected(program, &right, users);
    right
}

#[track_caller]
fn check_expected(program: &CopyField, host: &Doc<'static>, users: &[Doc<'static>]) {
    let all = Memory::default().with("posts", vec![host.clone()]).with("users", users.to_vec());
    let differing = all.aggregate("posts", &program.expected(true));
    assert!(differing.is_empty(), "{host:?} {differing:?}");
}

#[track_caller]
fn check(program: &CopyField, host: bson::Document, expected: bson::Document) {
    assert_eq!(filled(program, &Doc::from(host), None, &users()), Doc::from(expected));
}

#[test]
fn a_copy_exists_while_its_source_does() {
    let program = plain();
    check(
        &program,
        doc! { "_id": 9, "authorId": 1 },
        doc! { "_id": 9, "authorId": 1, "author": { "name": "Ann", "city": "Oslo" } },
    );
    check(
        &program,
        doc! { "_id": 9, "authorId": 1.0 },
        doc! { "_id": 9, "authorId": 1.0, "author": { "name": "Ann", "city": "Oslo" } },
    );
    check(&program, doc! { "_id": 9, "authorId": 2 }, doc! { "_id": 9, "authorId": 2, "author": {} });
    check(&program, doc! { "_id": 9, "authorId": 7 }, doc! { "_id": 9, "authorId": 7 });
    check(&program, doc! { "_id": 9, "authorId": null, "author": 5 }, doc! { "_id": 9, "authorId": null });
    check(&program, doc! { "_id": 9, "author": { "name": "mine" }, "z": 1 }, doc! { "_id": 9, "z": 1 });
    check(
        &program,
        doc! { "_id": 9, "author": { "name": "mine" }, "authorId": 3, "z": 1 },
        doc! { "_id": 9, "author": { "name": "Cid" }, "authorId": 3, "z": 1 },
    );
    let error = program.references(&Doc::from(doc! { "authorId": [1] })).unwrap_err();
    assert_eq!(error.code(), document::Code::BadValue);
    assert!(program.fill(&Doc::from(doc! { "authorId": [1] }), None, &Rows::default()).is_err());
}

#[test]
fn arrays_that_both_paths_share_hold_one_copy_per_element() {
    let program = program("items.who", key("items.userId", false), |_| {});
    check(
        &program,
        doc! { "_id": 9, "items": [{ "userId": 3, "n": 1 }, { "userId": 7 }, 5, { "who": 1 }, { "userId": 2, "who": 1 }] },
        doc! { "_id": 9, "items": [{ "userId": 3, "n": 1, "who": { "name": "Cid" } }, { "userId": 7 }, 5, {}, { "userId": 2, "who": {} }] },
    );
    check(
        &program,
        doc! { "_id": 9, "items": { "userId": 3 } },
        doc! { "_id": 9, "items": { "userId": 3, "who": { "name": "Cid" } } },
    );
    check(&program, doc! { "_id": 9, "items": 5 }, doc! { "_id": 9, "items": 5 });
    let deep = self::program("a.b.who", key("a.b.ref.id", false), |_| {});
    check(
        &deep,
        doc! { "_id": 9, "a": [{ "b": [{ "ref": { "id": 3 } }] }, { "b": { "ref": { "id": 2 } } }] },
        doc! { "_id": 9, "a": [{ "b": [{ "ref": { "id": 3 }, "who": { "name": "Cid" } }] }, { "b": { "ref": { "id": 2 }, "who": {} } }] },
    );
}

#[test]
fn an_array_of_ids_gives_an_array_of_copies() {
    let program = program("authors", key("authorIds", true), |_| {});
    check(
        &program,
        doc! { "_id": 9, "authorIds": [3, 7, null, 2, 3] },
        doc! { "_id": 9, "authorIds": [3, 7, null, 2, 3], "authors": [{ "name": "Cid" }, null, null, {}, { "name": "Cid" }] },
    );
    check(&program, doc! { "_id": 9, "authorIds": [] }, doc! { "_id": 9, "authorIds": [], "authors": [] });
    check(&program, doc! { "_id": 9, "authorIds": 3 }, doc! { "_id": 9, "authorIds": 3, "authors": { "name": "Cid" } });
    assert_eq!(program.references(&Doc::from(doc! { "authorIds": [3, 3.0, null, 1] })).unwrap().len(), 2);
}

#[test]
fn changes_of_a_source_are_told_apart() {
    let program = plain();
    let change = |before: Option<bson::Document>, after: Option<bson::Document>| {
        let (before, after) = (before.map(Doc::from), after.map(Doc::from));
        let shown = |(key, effect): (Value<'static>, Effect)| match effect {
            Effect::Update(Delta::Set { appeared: true, .. }) => format!("appeared {key:?}"),
            Effect::Update(Delta::Set { .. }) => format!("changed {key:?}"),
            _ => format!("vanished {key:?}"),
        };
        effects(&program, before.as_ref(), after.as_ref()).into_iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    let user = |name: &str| Some(doc! { "_id": 1, "name": name });
    assert_eq!(change(None, user("a")), "appeared Int32(1)");
    assert_eq!(change(user("a"), None), "vanished Int32(1)");
    assert_eq!(change(user("a"), user("b")), "changed Int32(1)");
    assert_eq!(change(user("a"), user("a")), "");
    assert_eq!(change(Some(doc! { "_id": 1, "name": 1 }), Some(doc! { "_id": 1, "name": 1.0 })), "changed Int32(1)");
    let frozen = self::program("author", key("authorId", false), |link| link.when_changed = WhenChanged::Keep);
    let (old, new) = (Doc::from(doc! { "_id": 1, "name": 1 }), Doc::from(doc! { "_id": 1, "name": 2 }));
    assert!(effects(&frozen, Some(&old), Some(&new)).is_empty());
    let by_mail = self::program("author", key("mail", false), |link| link.foreign = LinkKey::Path(key("mail", false)));
    let (old, new) = (Doc::from(doc! { "_id": 1, "mail": "a" }), Doc::from(doc! { "_id": 1, "mail": "b" }));
    let changes = effects(&by_mail, Some(&old), Some(&new));
    assert!(matches!(
        changes.as_slice(),
        [(_, Effect::Nothing), (_, Effect::Update(Delta::Set { appeared: true, .. }))]
    ));
}

#[test]
fn a_frozen_copy_is_taken_from_before() {
    let program = program("items.who", key("items.userId", false), |link| link.when_changed = WhenChanged::Keep);
    let before = Doc::from(doc! { "_id": 9, "items": [
        { "userId": 3, "who": { "name": "old" } }, { "userId": 3, "who": { "name": "older" } }, { "userId": 1, "who": { "name": "x" } },
    ] });
    let check = |items: Bson, expected: Bson| {
        let after = Doc::from(doc! { "_id": 9, "items": items });
        let right = filled(&program, &after, Some(&before), &users());
        assert_eq!(right, Doc::from(doc! { "_id": 9, "items": expected }));
    };
    // The first element was pulled: the others keep what they have.
    let rest = bson!([{ "userId": 3, "who": { "name": "older" } }, { "userId": 1, "who": { "name": "x" } }]);
    check(rest.clone(), rest);
    // A replacement without copies keeps them.
    check(
        bson!([{ "userId": 3 }, { "userId": 3 }]),
        bson!([{ "userId": 3, "who": { "name": "old" } }, { "userId": 3, "who": { "name": "older" } }]),
    );
    // A client's own value does not count, a new reference is filled.
    check(
        bson!([{ "userId": 3, "who": { "name": "mine" } }, { "userId": 2 }]),
        bson!([{ "userId": 3, "who": { "name": "old" } }, { "userId": 2, "who": {} }]),
    );
}

#[test]
fn a_copy_without_source_stays_or_goes_as_declared() {
    let host = Doc::from(doc! { "_id": 9, "authorId": 7, "author": { "name": "gone" } });
    assert_eq!(filled(&plain(), &host, Some(&host), &users()), host);
    let unset = program("author", key("authorId", false), |link| link.when_deleted = WhenDeleted::Unset);
    assert_eq!(filled(&unset, &host, Some(&host), &users()), Doc::from(doc! { "_id": 9, "authorId": 7 }));
}

#[test]
fn hosts_that_differ_are_found_by_pairs_too() {
    let nested = program("by.author", key("ref.id", false), |link| link.when_deleted = WhenDeleted::Unset);
    for program in [plain(), nested] {
        let nested = &*program.target().rule == "posts.by.author";
        let host = |(number, (id, copy)): (usize, (Bson, Bson))| {
            let mut host = doc! { "_id": i32::try_from(number).unwrap(), "other": number as f64 };
            let (at, by) = if nested { ("ref", "by") } else { ("authorId", "author") };
            let put = |host: &mut bson::Document, name: &str, below: &str, value: Bson| {
                if value != Bson::MinKey {
                    host.insert(name, if nested { bson!({ below: value }) } else { value });
                }
            };
            put(&mut host, at, "id", id);
            put(&mut host, by, "author", copy);
            Doc::from(host)
        };
        let ann = bson!({ "name": "Ann", "city": "Oslo" });
        let hosts: Vec<Doc<'static>> = [
            (bson!(1), ann.clone()),
            (bson!(1.0), ann.clone()),
            (bson!(1), bson!({ "city": "Oslo", "name": "Ann" })),
            (bson!(1), bson!({ "name": "Anne", "city": "Oslo" })),
            (bson!(1), bson!({ "name": "Anne", "city": "Oslo" })),
            (bson!(1), Bson::MinKey),
            (bson!(2), bson!({})),
            (bson!(2), ann.clone()),
            (bson!(7), ann.clone()),
            (bson!(7), Bson::MinKey),
            (bson!(null), ann.clone()),
            (Bson::MinKey, ann.clone()),
            (Bson::MinKey, Bson::MinKey),
            (bson!([1]), ann),
        ]
        .into_iter()
        .enumerate()
        .map(host)
        .collect();
        let all = Memory::default().with("posts", hosts).with("users", users());
        let ids = |stages: Vec<Value<'static>>| {
            let found = all.aggregate("posts", &stages.into_iter().collect());
            let mut ids: Vec<String> = found.iter().map(|row| format!("{:?}", row.get("_id"))).collect();
            ids.sort();
            ids
        };
        let (before, behind) = program.by_pairs().unwrap();
        let expected: Vec<Value<'static>> = program.expected(true).iter().collect();
        let by_pairs = ids(before.into_iter().chain(expected.clone()).chain(behind).collect());
        assert_eq!(by_pairs, ids(expected));
        assert!(by_pairs.len() > 5, "{by_pairs:?}");
    }
    assert!(program("author", key("_id", false), |_| {}).by_pairs().is_none());
    assert!(program("authors", key("authorIds", true), |_| {}).by_pairs().is_none());
}

#[test]
fn a_plain_copy_is_spread_as_a_person_would_write_it() {
    let program = plain();
    let user = Doc::from(doc! { "name": "Ann" });
    let statement = program.spread(&Value::Int32(1), Spread::Fill(&user)).unwrap();
    assert_eq!(statement.filter.source, Doc::from(doc! { "authorId": { "$eq": 1 } }));
    assert_eq!(statement.update.source, Value::from(bson!({ "$set": { "author": { "name": "Ann" } } })));
    let statement = program.spread(&Value::Int32(1), Spread::Unset).unwrap();
    assert_eq!(statement.update.source, Value::from(bson!({ "$unset": { "author": 1 } })));
}

fn id() -> impl Strategy<Value = Bson> {
    prop_oneof![
        4 => (1..5).prop_map(Bson::from),
        1 => (1..5).prop_map(|n| Bson::from(f64::from(n))),
        1 => Just(bson!(null)),
    ]
}

fn item() -> impl Strategy<Value = bson::Document> {
    (id(), any::<bool>()).prop_map(|(id, has)| {
        if has {
            doc! { "userId": id }
        } else {
            doc! { "n": 1 }
        }
    })
}

/// A host in any of the shapes, its copies right for the first users.
fn host() -> impl Strategy<Value = bson::Document> {
    let items = prop_oneof![
        3 => prop::collection::vec(item(), 0..4).prop_map(|items| bson!(items)),
        1 => item().prop_map(|item| bson!(item)),
        1 => Just(bson!("none")),
    ];
    (id(), prop::collection::vec(id(), 0..4), items)
        .prop_map(|(id, ids, items)| doc! { "_id": 9, "authorId": id, "authorIds": ids, "items": items })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// A source appears, changes and vanishes: spreading it gives what filling every host again gives.
    #[test]
    fn spreading_equals_filling(host in host(), frozen in any::<bool>(), unset in any::<bool>(), which in 1..5_i32) {
        let change = |link: &mut Link| {
            link.when_changed = if frozen { WhenChanged::Keep } else { WhenChanged::Refresh };
            link.when_deleted = if unset { WhenDeleted::Unset } else { WhenDeleted::Keep };
        };
        for program in [
            program("author", key("authorId", false), change),
            program("authors", key("authorIds", true), change),
            program("items.who", key("items.userId", false), change),
            program("items.in.who", key("items.userId", false), change),
            program("items.whos", key("items.userId", true), change),
        ] {
            let mut users = users();
            users.retain(|user| !order::equal(&user.get("_id").unwrap(), &Value::Int32(which)));
            let mut host = filled(&program, &Doc::from(host.clone()), None, &users);
            let versions = [Some(doc! { "_id": which, "name": "new" }), Some(doc! { "_id": which, "name": "newer" }), None];
            let mut before: Option<Doc<'static>> = None;
            for after in versions {
                let after = after.map(Doc::from);
                users.retain(|user| !order::equal(&user.get("_id").unwrap(), &Value::Int32(which)));
                users.extend(after.clone());
                let again = filled(&program, &host, Some(&host), &users);
                for (key, effect) in effects(&program, before.as_ref(), after.as_ref()) {
                    let Effect::Update(delta) = effect else { continue };
                    let statement = program.own_statement(&key, &delta).unwrap().unwrap();
                    if statement.filter.matches(&host, &Env::fixed()).unwrap() {
                        host = apply(&statement.update, &host).unwrap();
                    }
                }
                check_expected(&program, &host, &users);
                prop_assert_eq!(&host, &again, "{}", program.target().rule);
                before = after;
            }
        }
    }
}

/// Whatever is on the way: what is no document and not null stays.
#[test]
fn merged_copies_are_what_their_own_statements_make() {
    let unset = |link: &mut Link| link.when_deleted = WhenDeleted::Unset;
    let copy = |path: &str| Arc::new(program(path, key("authorId", false), unset));
    let fields = [copy("info.author"), copy("info.editor.of"), copy("writer")];
    let set = Delta::Set { value: bson!({ "name": "Ann", "city": null }).into(), appeared: false, children: 0 };
    for info in [
        None,
        Some(bson!(null)),
        Some(bson!({})),
        Some(bson!({ "author": 1, "x": 2 })),
        Some(bson!({ "editor": null })),
        Some(bson!({ "editor": 7, "author": { "name": "old" } })),
        Some(bson!({ "editor": { "of": { "name": "old" }, "y": 1 } })),
        Some(bson!({ "editor": [{ "of": 1 }] })),
        Some(bson!(5)),
        Some(bson!([{ "author": 1 }, 2])),
    ] {
        let mut host = doc! { "_id": 1, "authorId": 1 };
        host.extend(info.map(|info| ("info".to_owned(), info)));
        for delta in [&set, &Delta::Unset] {
            let (mut own, mut update) = (Doc::from(&host), HostUpdate::new());
            for field in &fields {
                assert!(field.merges());
                let statement = field.own_statement(&Value::Int32(1), delta).unwrap().unwrap();
                own = apply(&statement.update, &own).unwrap();
                update.add(&(field.clone() as Arc<dyn Field>), delta.clone()).unwrap();
            }
            let merged = apply(&update.into_update().unwrap().unwrap(), &Doc::from(&host)).unwrap();
            let readable = |doc: &Doc<'static>| bson::Document::try_from(doc).unwrap();
            assert_eq!(readable(&merged), readable(&own), "{host} {delta:?}");
        }
    }
}
