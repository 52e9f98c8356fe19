//! Deltas, applied one after the other, give what `expected` gives from scratch.

use crate::fields::host_update::HostUpdate;
use crate::fields::tally::{Tally, TallyField};
use crate::fields::testing;
use crate::fields::testing::{Memory, apply, filter, get};
use crate::rule::{Delta, Effect, Effects, Fetch, Field, LinkKey, Rows};
use bson::{Bson, bson, doc};
use document::op::ReadOp;
use document::value::{Path, order};
use document::{Array, Doc, Env, Value};
use proptest::prelude::*;
use std::sync::Arc;

fn program(field: &str, kind: Tally) -> Arc<TallyField> {
    testing::tally(field, kind, |_| {})
}

/// What a change of a child means.
fn deltas(
    program: &TallyField,
    before: Option<&Doc<'static>>,
    after: Option<&Doc<'static>>,
) -> document::Result<Vec<(Value<'static>, Delta)>> {
    let mut effects = Effects::new();
    program.react(&testing::change(before.cloned(), after.cloned()), &Env::fixed(), &mut effects)?;
    let delta = |(key, effect)| match effect {
        Effect::Update(delta) => (key, delta),
        other => panic!("{other:?}"),
    };
    Ok(effects.into_iter().map(delta).collect())
}

fn add(updates: &mut HostUpdate, program: &Arc<TallyField>, delta: Delta) {
    let field: Arc<dyn Field> = program.clone();
    updates.add(&field, delta).unwrap();
}

fn stages(stages: Vec<Value<'static>>) -> Array<'static> {
    stages.into_iter().collect()
}

fn sum() -> Arc<TallyField> {
    program("total", Tally::Sum(Path::new("amount")))
}

fn avg() -> Arc<TallyField> {
    program("mean", Tally::Avg(Path::new("amount")))
}

fn number() -> Arc<TallyField> {
    program("count", Tally::Count)
}

fn decimal(text: &str) -> Bson {
    Bson::Decimal128(text.parse().unwrap())
}

/// The host's only document, kept by deltas of all programs at once, with its children.
struct Kept {
    host: Doc<'static>,
    children: Vec<Doc<'static>>,
    programs: Vec<Arc<TallyField>>,
}

impl Kept {
    fn new(programs: Vec<Arc<TallyField>>) -> Kept {
        let mut host = Doc::from(doc! { "_id": 1, "name": "x" });
        for program in &programs {
            host = program.place(&host, None, &Rows::default(), &Env::fixed()).unwrap();
        }
        Kept { host, children: Vec::new(), programs }
    }

    /// Changes a child; false if the change was refused, which changes nothing.
    fn change(&mut self, before: Option<usize>, after: Option<Doc<'static>>) -> bool {
        let mut updates = HostUpdate::new();
        for program in &self.programs {
            let before = before.map(|at| &self.children[at]);
            for (key, delta) in deltas(program, before, after.as_ref()).unwrap() {
                if order::equal(&key, &Value::Int32(1)) {
                    add(&mut updates, program, delta);
                }
            }
        }
        if let Some(update) = updates.into_update().unwrap() {
            match apply(&update, &self.host) {
                Ok(host) => self.host = host,
                Err(_) => return false,
            }
        }
        match (before, after) {
            (Some(at), Some(after)) => self.children[at] = after,
            (Some(at), None) => {
                self.children.swap_remove(at);
            }
            (None, Some(after)) => self.children.push(after),
            (None, None) => {}
        }
        true
    }

    #[track_caller]
    fn check(&self) {
        let all = Memory::default().with("products", vec![self.host.clone()]).with("reviews", self.children.clone());
        for program in &self.programs {
            let differing = all.aggregate("products", &program.expected(true));
            assert!(differing.is_empty(), "{program:?}: {:?} {:?} {differing:?}", self.host, self.children);
            let at_once = all.aggregate("products", &stages(program.differing_without_index()));
            assert!(at_once.is_empty(), "{at_once:?}");
            for fetch in [Fetch::Rows, Fetch::Documents] {
                let ReadOp::Aggregate(query) = program.query(&[Value::Double(1.0)], fetch).unwrap() else { panic!() };
                let documents = all.run("reviews", &query.pipeline);
                assert!(documents.len() <= 1, "{documents:?}");
                let mut rows = Rows::default();
                rows.add(&**program, fetch, &documents);
                let right = program.place(&self.host, Some(&self.host), &rows, &Env::fixed()).unwrap();
                assert!(program.is_right(&self.host, &right), "{documents:?} {:?}", self.host);
                // Doubles are the same to the bit; decimals may differ in trailing zeros.
                let (stored, grouped) = (program.stored(&self.host), program.stored(&right));
                if !matches!(stored.value, Value::Decimal(_)) {
                    assert_eq!(stored.value, grouped.value, "{:?}", self.children);
                }
                let written = apply(&program.correction(&self.host, &right).unwrap(), &self.host).unwrap();
                assert!(program.is_right(&self.host, &written));
            }
        }
    }
}

#[track_caller]
fn check(amounts: Vec<Bson>, total: Bson, mean: Bson) {
    let mut kept = Kept::new(vec![sum(), avg(), number()]);
    let count = i32::try_from(amounts.len()).unwrap();
    for (at, amount) in amounts.iter().enumerate() {
        let at = i32::try_from(at).unwrap();
        assert!(kept.change(None, Some(Doc::from(doc! { "_id": at, "productId": 1, "amount": amount.clone() }))));
        kept.check();
    }
    assert_eq!(get(&kept.host, "total"), Value::from(total), "sum of {amounts:?}");
    assert_eq!(get(&kept.host, "mean"), Value::from(mean), "avg of {amounts:?}");
    assert_eq!(get(&kept.host, "count"), Value::Int32(count));
    while !kept.children.is_empty() {
        assert!(kept.change(Some(0), None));
        kept.check();
    }
    let fields = |path| get(&kept.host, path);
    assert_eq!((fields("total"), fields("mean"), fields("count")), (Value::Int32(0), Value::Null, Value::Int32(0)));
}

#[test]
fn values_and_types_are_those_of_the_accumulators() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    check(vec![], bson!(0), bson!(null));
    check(vec![bson!(1), bson!(2)], bson!(3), bson!(1.5));
    check(vec![bson!(i32::MAX), bson!(1)], bson!(2_147_483_648_i64), bson!(1_073_741_824.0));
    check(vec![bson!(1), bson!(2_i64)], bson!(3_i64), bson!(1.5));
    check(
        vec![bson!(i64::MAX), bson!(i64::MAX)],
        bson!(18_446_744_073_709_551_614.0),
        bson!(9_223_372_036_854_775_807.0),
    );
    check(vec![bson!(0.1), bson!(0.2)], bson!(0.3), bson!(0.15));
    check(vec![bson!(1), bson!(0.5)], bson!(1.5), bson!(0.75));
    check(vec![bson!(0.1); 10], bson!(1.0), bson!(0.1));
    check(vec![decimal("1.10"), decimal("2.20")], decimal("3.30"), decimal("1.65"));
    check(vec![decimal("10"), bson!(1)], decimal("11"), decimal("5.5"));
    check(vec![bson!("5"), bson!(null), bson!([5]), bson!({ "a": 1 }), bson!(true)], bson!(0), bson!(null));
    check(vec![bson!(5), bson!("x")], bson!(5), bson!(5.0));
    check(vec![bson!(nan), bson!(1)], bson!(nan), bson!(nan));
    check(vec![bson!(inf), bson!(1)], bson!(inf), bson!(inf));
    check(vec![bson!(-inf), bson!(1)], bson!(-inf), bson!(-inf));
    check(vec![bson!(-inf), bson!(inf)], bson!(nan), bson!(nan));
    check(vec![decimal("NaN"), bson!(1)], decimal("NaN"), decimal("NaN"));
    check(vec![bson!(inf), decimal("1")], decimal("Infinity"), decimal("Infinity"));
    check(vec![bson!(-0.0)], bson!(0.0), bson!(0.0));
    check(vec![bson!(1e308)], bson!(1e308), bson!(1e308));
    check(vec![bson!(1e308), bson!(1e308)], bson!(inf), bson!(inf));
    check(vec![bson!(5e-324)], bson!(0.0), bson!(0.0));
}

#[test]
fn a_sum_that_leaves_34_digits_is_refused_and_changes_nothing() {
    let mut kept = Kept::new(vec![sum()]);
    let child = |id: i32, amount: Bson| Some(Doc::from(doc! { "_id": id, "productId": 1, "amount": amount }));
    assert!(kept.change(None, child(1, bson!(1e308))));
    let before = kept.host.clone();
    assert!(!kept.change(None, child(2, bson!(1))));
    assert_eq!(kept.host, before);
    assert!(kept.change(Some(0), None));
    assert!(kept.change(None, child(2, bson!(1))));
    kept.check();
    assert!(!kept.change(None, child(3, decimal("1E-34"))));
    assert!(kept.change(None, child(3, decimal("1E-33"))));
    kept.check();
}

#[test]
fn a_parent_change_moves_the_contribution() {
    let program = sum();
    let deltas = |before: Option<bson::Document>, after: Option<bson::Document>| {
        let (before, after) = (before.map(Doc::from), after.map(Doc::from));
        let deltas = deltas(&program, before.as_ref(), after.as_ref()).unwrap();
        let shown = |(key, delta): (Value<'static>, Delta)| match delta {
            Delta::Numbers(numbers) => format!("{key:?}: {} {}", numbers.n, numbers.sum),
            other => format!("{key:?}: {other:?}"),
        };
        deltas.into_iter().map(shown).collect::<Vec<_>>().join(", ")
    };
    let child = |parent: Bson, amount: Bson| Some(doc! { "productId": parent, "amount": amount });
    assert_eq!(deltas(None, child(bson!(1), bson!(5))), "Int32(1): 1 5");
    assert_eq!(deltas(child(bson!(1), bson!(5)), None), "Int32(1): -1 -5");
    assert_eq!(deltas(child(bson!(1), bson!(5)), child(bson!(2), bson!(6))), "Int32(2): 1 6, Int32(1): -1 -5");
    assert_eq!(deltas(child(bson!(1), bson!(5)), child(bson!(1.0), bson!(7))), "Double(1.0): 0 2");
    assert_eq!(deltas(child(bson!(1), bson!(5)), child(bson!(1), bson!(5))), "");
    assert_eq!(deltas(child(bson!(null), bson!(5)), Some(doc! { "amount": 5 })), "");
    assert_eq!(deltas(child(bson!([1]), bson!(5)), None), "");
    assert_eq!(deltas(child(bson!(1), bson!("x")), child(bson!(1), bson!(2))), "Int32(1): 1 2");
}

#[test]
fn an_array_is_refused_or_links_per_element() {
    let child = Doc::from(doc! { "productId": [1, 1, 2, null] });
    let error = deltas(&number(), None, Some(&child)).unwrap_err();
    assert_eq!(
        error.message(),
        "'productId' is an array, but rule products.count (count of reviews by productId) links by single values"
    );
    let program =
        testing::tally("count", Tally::Count, |link| link.foreign = LinkKey::Path(testing::key("productId", true)));
    assert_eq!(deltas(&program, None, Some(&child)).unwrap().len(), 2);
    let mut kept = Kept::new(vec![program]);
    assert!(kept.change(None, Some(child)));
    kept.check();
    assert_eq!(get(&kept.host, "count"), Value::Int32(1));
}

#[test]
fn a_condition_decides_what_counts() {
    let sum = Tally::Sum(Path::new("amount"));
    let paid = testing::tally("paid", sum, |link| link.filter = filter(doc! { "status": "paid" }));
    let mut kept = Kept::new(vec![paid, number()]);
    let child = |status: &str| Some(Doc::from(doc! { "_id": 1, "productId": 1, "amount": 5, "status": status }));
    kept.change(None, child("open"));
    kept.check();
    assert_eq!(get(&kept.host, "paid"), Value::Int32(0));
    kept.change(Some(0), child("paid"));
    kept.check();
    assert_eq!((get(&kept.host, "paid"), get(&kept.host, "count")), (Value::Int32(5), Value::Int32(1)));
    kept.change(Some(0), child("open"));
    kept.check();
    assert_eq!(get(&kept.host, "paid"), Value::Int32(0));
}

#[test]
fn counts_are_a_plain_increment_and_sums_one_pipeline() {
    let update = |deltas: &[(&Arc<TallyField>, Delta)]| {
        let mut all = HostUpdate::new();
        for (program, delta) in deltas {
            add(&mut all, program, delta.clone());
        }
        all.into_update().unwrap().map(|update| update.source)
    };
    let (count, other) = (number(), program("stats.likes", Tally::Count));
    assert_eq!(update(&[(&count, Delta::Count(1))]), Some(Value::from(bson!({ "$inc": { "count": 1 } }))));
    assert_eq!(update(&[(&count, Delta::Count(1)), (&count, Delta::Count(-1))]), None);
    let both = bson!({ "$inc": { "count": -1, "stats.likes": 3 } });
    assert_eq!(update(&[(&count, Delta::Count(-1)), (&other, Delta::Count(3))]), Some(Value::from(both)));
}

#[test]
fn a_host_that_is_not_seeded_takes_an_amount_whatever_it_holds() {
    let (counted, deep) = (number(), program("stats.likes", Tally::Count));
    for (host, expected) in [
        (doc! { "count": "x" }, doc! { "count": 1, "stats": { "likes": 2 } }),
        (doc! { "count": null, "stats": null }, doc! { "count": 1, "stats": { "likes": 2 } }),
        (doc! { "count": [1] }, doc! { "count": 1, "stats": { "likes": 2 } }),
        (doc! { "count": 4.0, "stats": { "likes": 5_i64 } }, doc! { "count": 5.0, "stats": { "likes": 7_i64 } }),
    ] {
        let mut all = HostUpdate::new();
        add(&mut all, &counted, Delta::Count(1));
        add(&mut all, &deep, Delta::Count(2));
        let update = all.into_update_while_seeding().unwrap();
        assert_eq!(apply(&update, &Doc::from(host)).unwrap(), Doc::from(expected));
    }
}

#[test]
fn state_comes_at_the_end_of_a_host_and_shows_no_zeros() {
    let mut kept = Kept::new(vec![sum(), avg()]);
    kept.host = Doc::from(doc! { "_id": 1 });
    kept.programs = vec![sum()];
    kept.change(None, Some(Doc::from(doc! { "_id": 1, "productId": 1, "amount": 2.5 })));
    let sum = decimal("2.50000000000000");
    let expected = doc! { "_id": 1, "total": 2.5, "_pleach": { "total": { "n": 1, "sum": sum, "double": 1 } } };
    assert_eq!(kept.host, Doc::from(expected));
}

fn amount() -> impl Strategy<Value = Bson> {
    prop_oneof![
        8 => (-5_i32..5).prop_map(Bson::from),
        2 => any::<i32>().prop_map(Bson::from),
        2 => (-1_i64 << 40..1_i64 << 40).prop_map(Bson::from),
        6 => (-1000_i32..1000).prop_map(|n| Bson::from(f64::from(n) / 100.0)),
        2 => (-1e6_f64..1e6).prop_map(Bson::from),
        2 => (-10_000_i32..10_000).prop_map(|n| decimal(&format!("{}.{:02}", n / 100, (n % 100).abs()))),
        1 => Just(Bson::from(f64::NAN)),
        1 => Just(Bson::from(f64::INFINITY)),
        1 => Just(Bson::from(f64::NEG_INFINITY)),
        1 => Just(Bson::from(-0.0)),
        1 => Just(decimal("NaN")),
        1 => Just(decimal("-Infinity")),
        1 => Just(bson!("text")),
        1 => Just(bson!(null)),
        1 => Just(bson!([1, 2])),
    ]
}

#[derive(Clone, Debug)]
enum Change {
    Insert(i32, Bson),
    Update(usize, i32, Bson),
    Delete(usize),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (1..3, amount()).prop_map(|(parent, amount)| Change::Insert(parent, amount)),
        3 => (0..20_usize, 1..3, amount()).prop_map(|(at, parent, amount)| Change::Update(at, parent, amount)),
        2 => (0..20_usize).prop_map(Change::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn deltas_equal_expected(changes in prop::collection::vec(change(), 1..40)) {
        let mut kept = Kept::new(vec![sum(), avg(), number()]);
        for (at, change) in changes.into_iter().enumerate() {
            let at = i32::try_from(at).unwrap();
            let child = |parent: i32, amount| Doc::from(doc! { "_id": at, "productId": parent, "amount": amount });
            match change {
                Change::Insert(parent, amount) => prop_assert!(kept.change(None, Some(child(parent, amount)))),
                Change::Update(which, parent, amount) if which < kept.children.len() => {
                    prop_assert!(kept.change(Some(which), Some(child(parent, amount))));
                }
                Change::Delete(which) if which < kept.children.len() => prop_assert!(kept.change(Some(which), None)),
                _ => {}
            }
            if at % 5 == 0 {
                kept.check();
            }
        }
        kept.check();
    }
}

#[test]
fn what_differs_is_found_without_an_index() {
    let children =
        vec![doc! { "productId": 1, "amount": 2 }, doc! { "productId": 1.0, "amount": 3 }, doc! { "amount": 9 }];
    let hosts = vec![
        doc! { "_id": 1, "count": 2, "total": 6 },
        doc! { "_id": 2, "count": 1, "total": 0 },
        doc! { "_id": 3 },
        doc! { "_id": 4, "count": 0, "total": 0 },
    ];
    let owned = |docs: Vec<bson::Document>| docs.into_iter().map(Doc::from).collect();
    let memory = Memory::default().with("products", owned(hosts)).with("reviews", owned(children));
    let ids = |program: &TallyField| {
        let rows = memory.aggregate("products", &stages(program.differing_without_index()));
        let mut ids: Vec<i32> =
            rows.iter().map(|row| bson::Document::try_from(row).unwrap().get_i32("_id").unwrap()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids(&number()), [2, 3]);
    assert_eq!(ids(&sum()), [1, 3]);
}
