//! The executor's part for tests of folds: changes of children in memory, effects merged as it merges them, one update per host.

use crate::fields::host_update::HostUpdate;
use crate::fields::testing::{self, Memory, apply, get};
use crate::rule::field::Search;
use crate::rule::{Delta, Effect, Effects, Fetch, Field, Inquiry, KeyExpression, Link, LinkKey, Question, Rows, key};
use bson::{Bson, bson, doc};
use document::backend::Mode;
use document::op::{Change, ReadOp};
use document::value::order;
use document::{Array, Doc, Env, Value};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Products with their reviews, kept by effects of all fields at once.
pub(crate) struct Kept {
    pub(crate) fields: Vec<Arc<dyn Field>>,
    /// By the bytes of the key.
    pub(crate) hosts: BTreeMap<Vec<u8>, Doc<'static>>,
    pub(crate) children: Vec<Doc<'static>>,
    /// How often children were read again.
    pub(crate) asked: usize,
    creates: bool,
}

/// What the effects of a part mean for one field, key and part of its value.
struct Merged {
    field: usize,
    key: Value<'static>,
    about: Value<'static>,
    effect: Effect,
}

impl Kept {
    /// With hosts of these keys; none if children make them.
    pub(crate) fn new(fields: Vec<Arc<dyn Field>>, keys: impl IntoIterator<Item = i32>) -> Kept {
        let creates = fields.iter().any(|field| field.link().is_some_and(|link| link.create));
        let mut kept = Kept { fields, hosts: BTreeMap::new(), children: Vec::new(), asked: 0, creates };
        for id in keys.into_iter().filter(|_| !creates) {
            let mut host = Doc::from(doc! { "_id": id });
            for field in &kept.fields {
                host = field.place(&host, None, &Rows::default(), &Env::fixed()).unwrap();
            }
            kept.hosts.insert(key::bytes(&Value::Int32(id)), host);
        }
        kept
    }

    pub(crate) fn host(&self, id: i32) -> &Doc<'static> {
        &self.hosts[&key::bytes(&Value::Int32(id))]
    }

    /// One part: children are replaced by these, inserted (`None` before) or deleted (`None` after).
    pub(crate) fn change(&mut self, changes: Vec<(Option<Doc<'static>>, Option<Doc<'static>>)>) {
        let mut merged: Vec<Merged> = Vec::new();
        for (before, after) in changes {
            if let Some(before) = &before {
                let at = self.children.iter().position(|child| child == before).expect("a child that is there");
                self.children.remove(at);
            }
            self.children.extend(after.clone());
            let id = before.as_ref().or(after.as_ref()).and_then(|child| child.get("_id")).map(Value::into_owned);
            let change = Change { id: id.unwrap(), before, after };
            for at in 0..self.fields.len() {
                self.merge(at, &change, &mut merged);
            }
        }
        let mut updates: BTreeMap<Vec<u8>, (Value<'static>, HostUpdate)> = BTreeMap::new();
        let mut questions: Vec<Vec<Question>> = vec![Vec::new(); self.fields.len()];
        for Merged { field, key, about, effect } in merged {
            let host = self.hosts.get(&key::bytes(&key));
            let decided = match (effect, host) {
                (Effect::Look(delta), Some(host)) => self.fields[field].decide(host, delta).unwrap(),
                (Effect::Look(_), None) => continue,
                (other, _) => other,
            };
            match decided {
                Effect::Nothing => {}
                Effect::Update(delta) => self.add(&mut updates, field, key, delta),
                Effect::Ask(Inquiry { delta, .. }) => questions[field].push(Question { key, about, delta }),
                other => panic!("{other:?}"),
            }
        }
        for (field, questions) in questions.into_iter().enumerate().filter(|(_, questions)| !questions.is_empty()) {
            self.asked += questions.len();
            for (key, delta) in self.answers(field, &questions) {
                self.add(&mut updates, field, key, delta);
            }
        }
        self.write(updates);
    }

    /// Effects about the same are one: the strongest, with all deltas.
    fn merge(&self, at: usize, change: &Change, merged: &mut Vec<Merged>) {
        let field = &self.fields[at];
        let mut effects = Effects::new();
        field.react(change, &Env::fixed(), &mut effects).unwrap();
        for (key, effect) in effects {
            let about = match &effect {
                Effect::Ask(inquiry) => inquiry.about.clone(),
                _ => Value::Missing,
            };
            let same = |other: &&mut Merged| {
                other.field == at && order::equal(&other.key, &key) && order::equal(&other.about, &about)
            };
            match merged.iter_mut().find(same) {
                None => merged.push(Merged { field: at, key, about, effect }),
                Some(place) => {
                    let (first, second) = (strength(&place.effect), strength(&effect));
                    let delta = field.combine(first.1, &second.1).unwrap();
                    place.effect = match first.0.max(second.0) {
                        0 => Effect::Update(delta),
                        1 => Effect::Look(delta),
                        _ => Effect::Ask(Inquiry { about, delta, mode: Mode::Exclusive }),
                    };
                }
            }
        }
    }

    fn add(
        &self,
        updates: &mut BTreeMap<Vec<u8>, (Value<'static>, HostUpdate)>,
        field: usize,
        key: Value<'static>,
        delta: Delta,
    ) {
        let place = updates.entry(key::bytes(&key)).or_insert_with(|| (key, HostUpdate::new()));
        place.1.add(&self.fields[field], delta).unwrap();
    }

    fn answers(&self, field: usize, questions: &[Question]) -> Vec<(Value<'static>, Delta)> {
        let field = &self.fields[field];
        let ReadOp::Aggregate(query) = field.ask(questions, Fetch::Rows).unwrap() else { panic!() };
        let documents = self.memory().run("reviews", &query.pipeline);
        let rows: Vec<_> = documents.iter().filter_map(|row| field.answer_row(row, Fetch::Rows)).collect();
        let mut deltas = Vec::new();
        for question in questions {
            let is_about = |(key, about, _): &&(Value<'static>, Value<'static>, Doc<'static>)| {
                order::equal(key, &question.key) && order::equal(about, &question.about)
            };
            assert!(rows.iter().filter(is_about).count() <= 1, "{rows:?}");
            let row = rows.iter().find(is_about).map(|(_, _, row)| row);
            deltas.extend(field.answer(question, row).unwrap().map(|delta| (question.key.clone(), delta)));
        }
        deltas
    }

    fn write(&mut self, updates: BTreeMap<Vec<u8>, (Value<'static>, HostUpdate)>) {
        for (bytes, (key, mut update)) in updates {
            let (comes, leaves) = update.comings();
            if comes {
                let defaults =
                    self.fields.iter().filter(|field| !update.fields().any(|other| Arc::ptr_eq(other, field)));
                let defaults = defaults.flat_map(|field| field.empty_values()).collect();
                update.may_make(defaults);
            }
            let stored = self.hosts.get(&bytes).cloned();
            let host = stored.or_else(|| comes.then(|| crate::mql::document([("_id", key)])));
            let (Some(host), Some(update)) = (host, update.into_update().unwrap()) else { continue };
            let host = apply(&update, &host).unwrap();
            let is_empty = |field: &Arc<dyn Field>| {
                let state = field.state().expect("a roll-up keeps the number of its children");
                get(&host, &format!("{}.children", state.dotted())) == Value::Int32(0)
            };
            match leaves && self.fields.iter().all(is_empty) {
                true => self.hosts.remove(&bytes),
                false => self.hosts.insert(bytes, host),
            };
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        Memory::default()
            .with("products", self.hosts.values().cloned().collect())
            .with("reviews", self.children.clone())
    }

    /// Every host has what the definition says, by each of its forms, and what differs is found.
    #[track_caller]
    pub(crate) fn check(&self) {
        let all = self.memory();
        let hosts = || self.hosts.values();
        for field in &self.fields {
            let wrong = all.aggregate("products", &field.expected(true));
            assert!(wrong.is_empty(), "{} {wrong:?} {:?}", field.describe(), self.children);
            let search = Search { in_force: false, is_indexed: false, few_sources: false };
            let wrong = all.aggregate("products", &field.suspects(search).unwrap().into_iter().collect::<Array<'_>>());
            assert!(wrong.is_empty(), "{} {wrong:?} {:?}", field.describe(), self.children);
            if self.creates {
                let absent = all.aggregate("reviews", &field.without_host().unwrap());
                assert!(absent.is_empty(), "{absent:?}");
            }
            let own: Vec<Value<'static>> = hosts().flat_map(|host| field.keys(host)).collect();
            // Few keys, and more than are looked up one by one.
            for (more, fetch) in [(0, Fetch::Rows), (300, Fetch::Rows), (300, Fetch::Documents)] {
                let keys: Vec<_> = own.iter().cloned().chain((0..more).map(|n| Value::Int32(1_000 + n))).collect();
                if keys.is_empty() {
                    continue;
                }
                let ReadOp::Aggregate(query) = field.query(&keys, fetch).unwrap() else { panic!() };
                let mut rows = Rows::default();
                rows.add(&**field, fetch, &all.run("reviews", &query.pipeline));
                for host in hosts() {
                    let right = field.place(host, Some(host), &rows, &Env::fixed()).unwrap();
                    let name = field.describe();
                    assert!(field.is_right(host, &right), "{name} {host:?} {right:?} {:?}", self.children);
                    let mended = apply(&field.correction(host, &right).unwrap(), host).unwrap();
                    assert!(field.is_right(host, &mended), "{mended:?}");
                }
            }
        }
    }

    /// A part of one change.
    pub(crate) fn change_one(&mut self, before: Option<Doc<'static>>, after: Option<Doc<'static>>) {
        self.change(vec![(before, after)]);
    }

    /// Each change by itself.
    pub(crate) fn play(&mut self, parts: Vec<RandomPart>) {
        for part in parts {
            for change in self.chosen(&part) {
                self.change(vec![change]);
            }
            self.check();
        }
    }

    /// All changes of a part at once.
    pub(crate) fn play_together(&mut self, parts: Vec<RandomPart>) {
        for part in parts {
            let changes = self.chosen(&part);
            self.change(changes);
            self.check();
        }
    }

    pub(crate) fn delete_all(&mut self) {
        self.change(self.children.clone().into_iter().map(|child| (Some(child), None)).collect());
    }

    /// What becomes of which child: one that is there, also by a change before, or a new one.
    fn chosen(&self, part: &RandomPart) -> Vec<(Option<Doc<'static>>, Option<Doc<'static>>)> {
        let mut now = self.children.clone();
        let ids = now.iter().filter_map(|child| child.get("_id").and_then(|id| id.as_i64_exact()));
        let mut next = ids.max().unwrap_or(0);
        let mut changes = Vec::new();
        for (at, after) in part {
            let before = (!now.is_empty() && at.index(3) > 0).then(|| now.swap_remove(at.index(now.len())));
            next += 1;
            let id = before.as_ref().and_then(|before| before.get("_id")?.as_i64_exact()).unwrap_or(next);
            let after = after.as_ref().map(|after| {
                let mut whole = doc! { "_id": id };
                whole.extend(after.clone());
                Doc::from(whole)
            });
            now.extend(after.clone());
            if before.is_some() || after.is_some() {
                changes.push((before, after));
            }
        }
        changes
    }
}

/// Changes: of which child, and what it becomes.
pub(crate) type RandomPart = Vec<(prop::sample::Index, Option<bson::Document>)>;

pub(crate) fn parts(child: impl Strategy<Value = bson::Document>) -> impl Strategy<Value = Vec<RandomPart>> {
    let change = (any::<prop::sample::Index>(), prop::option::weighted(0.7, child));
    prop::collection::vec(prop::collection::vec(change, 1..4), 1..14)
}

/// A child of one of two products with a value at `v` and one at `w.v`, which is sometimes inside an array.
pub(crate) fn child<S: Strategy<Value = Option<Bson>>>(value: impl Fn() -> S) -> impl Strategy<Value = bson::Document> {
    let all = (1..3_i32, value(), value(), prop::bool::weighted(0.3), any::<bool>());
    all.prop_map(|(product, v, w, in_array, open)| {
        let mut child = doc! { "productId": product, "open": open };
        child.extend(v.map(|v| ("v".to_owned(), v)));
        let w: bson::Document = w.map(|w| ("v".to_owned(), w)).into_iter().collect();
        child.insert("w", if in_array { bson!([w, { "v": 2 }, 5]) } else { bson!(w) });
        child
    })
}

/// The key is computed, and hosts come and go with their children.
pub(crate) fn rolled_up(link: &mut Link) {
    let by = KeyExpression::new(Value::from(bson!({ "p": "$productId" }))).unwrap();
    link.foreign = LinkKey::Expression(Arc::new(by));
    link.create = true;
}

/// Plays on hosts that their children make; in the end there is none.
pub(crate) fn made_and_removed<F: Field + 'static>(fields: Vec<Arc<F>>, play: impl FnOnce(&mut Kept)) {
    let fields = fields.into_iter().map(|field| field as Arc<dyn Field>);
    let mut kept = Kept::new(fields.collect(), []);
    play(&mut kept);
    kept.delete_all();
    assert!(kept.hosts.is_empty(), "{:?}", kept.hosts);
}

/// How strong an effect is, and its delta.
fn strength(effect: &Effect) -> (u8, Delta) {
    match effect {
        Effect::Update(delta) => (0, delta.clone()),
        Effect::Look(delta) => (1, delta.clone()),
        Effect::Ask(inquiry) => (2, inquiry.delta.clone()),
        other => panic!("{other:?}"),
    }
}

/// What a changed child means.
pub(crate) fn effects(field: &dyn Field, before: Option<bson::Document>, after: Option<bson::Document>) -> Effects {
    let mut effects = Effects::new();
    let change = testing::change(before.map(Doc::from), after.map(Doc::from));
    field.react(&change, &Env::fixed(), &mut effects).unwrap();
    effects
}
