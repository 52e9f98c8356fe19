//! Hosts that are made with their first child, by computed keys: deltas, applied one after the other, give what the definition gives.

use crate::fields::host_update::HostUpdate;
use crate::fields::tally::{Tally, TallyField};
use crate::fields::testing::{self, Memory, apply, get};
use crate::rule::{Delta, Effect, Effects, Field, KeyExpression, LinkKey, key};
use bson::{Bson, bson, doc};
use document::value::Path;
use document::{Doc, Env, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn rolled_up(field: &str, tally: Tally, by: Bson) -> Arc<TallyField> {
    let key = LinkKey::Expression(Arc::new(KeyExpression::new(Value::from(by)).unwrap()));
    testing::tally(field, tally, |link| {
        link.foreign = key;
        link.create = true;
    })
}

/// The hosts by their key's bytes, kept by deltas.
struct Kept {
    fields: Vec<Arc<TallyField>>,
    hosts: BTreeMap<Vec<u8>, Doc<'static>>,
    children: Vec<Doc<'static>>,
}

impl Kept {
    fn new(by: fn() -> Bson) -> Kept {
        let fields = vec![
            rolled_up("n", Tally::Count, by()),
            rolled_up("stats.total", Tally::Sum(Path::new("amount")), by()),
            rolled_up("mean", Tally::Avg(Path::new("amount")), by()),
        ];
        Kept { fields, hosts: BTreeMap::new(), children: Vec::new() }
    }

    /// What a change means, as the executor has it: one update per key, which makes the host if a child comes.
    fn change(&mut self, before: Option<Doc<'static>>, after: Option<Doc<'static>>) {
        let mut updates: BTreeMap<Vec<u8>, (Value<'static>, HostUpdate)> = BTreeMap::new();
        let change = testing::change(before, after);
        for field in &self.fields {
            let mut effects = Effects::new();
            field.react(&change, &Env::fixed(), &mut effects).unwrap();
            for (key, effect) in effects {
                let Effect::Update(delta) = effect else { panic!("{effect:?}") };
                let dynamic: Arc<dyn Field> = field.clone();
                let place = updates.entry(key::bytes(&key)).or_insert_with(|| (key, HostUpdate::new()));
                place.1.add(&dynamic, delta).unwrap();
            }
        }
        for (bytes, (key, mut update)) in updates {
            let (comes, leaves) = update.comings();
            if comes {
                update.may_make(Vec::new());
            }
            let stored = self.hosts.get(&bytes).cloned();
            let host = stored.or_else(|| comes.then(|| crate::mql::document([("_id", key)])));
            let (Some(host), Some(update)) = (host, update.into_update().unwrap()) else { continue };
            let host = apply(&update, &host).unwrap();
            match leaves && get(&host, "_pleach.n.children") == Value::Int32(0) {
                true => self.hosts.remove(&bytes),
                false => self.hosts.insert(bytes, host),
            };
        }
    }

    fn check(&self) {
        let hosts: Vec<Doc<'static>> = self.hosts.values().cloned().collect();
        let all = Memory::default().with("products", hosts.clone()).with("reviews", self.children.clone());
        for field in &self.fields {
            let wrong = all.aggregate("products", &field.expected(true));
            assert!(wrong.is_empty(), "{wrong:?} {hosts:?} {:?}", self.children);
            let absent = all.aggregate("reviews", &Field::without_host(&**field).unwrap());
            assert!(absent.is_empty(), "{absent:?}");
            for host in &hosts {
                let by_state = field.shown_by_state(host).unwrap().unwrap();
                assert!(field.is_right(host, &by_state), "{host:?} {by_state:?}");
            }
        }
    }
}

fn child() -> impl Strategy<Value = Doc<'static>> {
    let word = prop_oneof![4 => "[abAB]".prop_map(Bson::from), 1 => Just(bson!([1])), 1 => Just(Bson::Null), 1 => Just(bson!(5))];
    let amount = prop_oneof![3 => (-5_i32..5).prop_map(Bson::from), 1 => Just(bson!(0.1)), 1 => Just(bson!("x"))];
    (word, amount).prop_map(|(word, amount)| Doc::from(doc! { "word": word, "amount": amount }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn deltas_make_keep_and_remove_hosts(
        steps in prop::collection::vec((any::<prop::sample::Index>(), prop::option::weighted(0.7, child())), 1..30),
        in_document: bool,
    ) {
        let by: fn() -> Bson = match in_document {
            true => || bson!({ "word": { "$toLower": "$word" }, "raw": "$amount" }),
            false => || bson!({ "$concat": ["$word", "!"] }),
        };
        let mut kept = Kept::new(by);
        for (at, after) in steps {
            let replaces = !kept.children.is_empty() && at.index(3) > 0;
            let before = replaces.then(|| kept.children.swap_remove(at.index(kept.children.len())));
            kept.children.extend(after.clone());
            kept.change(before, after);
            kept.check();
        }
        for child in std::mem::take(&mut kept.children) {
            kept.change(Some(child), None);
        }
        prop_assert!(kept.hosts.is_empty(), "{:?}", kept.hosts);
    }
}

#[test]
fn a_new_host_holds_the_first_values_of_its_other_fields_and_its_state_at_the_end() {
    let by = || bson!({ "$toLower": "$word" });
    let (count, total) =
        (rolled_up("n", Tally::Count, by()), rolled_up("total", Tally::Sum(Path::new("amount")), by()));
    let mut effects = Effects::new();
    let child = Doc::from(doc! { "word": "A", "amount": 2 });
    count.react(&testing::change(None, Some(child)), &Env::fixed(), &mut effects).unwrap();
    let Some((key, Effect::Update(delta))) = effects.pop() else { panic!() };
    assert_eq!(key, Value::from("a"));
    let field: Arc<dyn Field> = count.clone();
    let made = |delta: Delta| {
        let mut update = HostUpdate::new();
        update.add(&field, delta).unwrap();
        update.may_make(total.empty_values());
        update.into_update().unwrap().unwrap()
    };
    let new = apply(&made(delta.clone()), &Doc::from(doc! { "_id": "a" })).unwrap();
    let zero = Bson::Decimal128("0".parse().unwrap());
    let states = doc! { "n": { "children": 1 }, "total": { "children": 0, "n": 0, "sum": zero } };
    assert_eq!(new, Doc::from(doc! { "_id": "a", "n": 1, "total": 0, "_pleach": states }));
    // Nothing of it is shown of a rule that is being seeded.
    let hidden = apply(&made(delta.clone().hidden()), &Doc::from(doc! { "_id": "a" })).unwrap();
    assert_eq!(get(&hidden, "n"), Value::Missing);
    assert_eq!(get(&hidden, "_pleach.n.children"), Value::Int32(1));
    // One that is there keeps what it has.
    let more = apply(&made(delta), &new).unwrap();
    assert_eq!((get(&more, "n"), get(&more, "total")), (Value::Int32(2), Value::Int32(0)));
}
