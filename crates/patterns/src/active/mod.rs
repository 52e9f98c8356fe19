//! The rules in force: an immutable snapshot that every write looks at once.
//!
//! Per namespace it says which rules it hosts, which it is the source of, what a change must show ([`Capture`]) and which
//! paths are owned. Rules stand in the order of their fields' dependencies (SEMANTICS R29): level by level, a rule after
//! all rules whose fields it reads.

pub(crate) mod alias;
pub(crate) mod copy_cache;
pub(crate) mod known_views;
pub(crate) mod lease;
pub(crate) mod route;
mod rule_in_state;
pub(crate) mod seen_old;
pub(crate) mod side_writes;

pub use rule_in_state::RuleInState;

use crate::active::copy_cache::CopyCache;
use crate::active::known_views::KnownViews;
use crate::active::seen_old::SeenOld;
use crate::rule::State;
use crate::rule::order::Levels;
use crate::rule::shape::{Place, Shape};
use crate::rule::{Field, Lens, Outlier, Rule, Stack, order};
use crate::shapes::outlier::items;
use document::op::{Capture, Namespace, NamespaceRef};
use document::update::Update;
use document::value::Path;
use document::{Array, Result, Value};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A rule with what it is kept by.
#[derive(Debug)]
pub struct ActiveRule {
    pub rule: Arc<Rule>,
    /// The field that it keeps; `None` for a shape.
    pub field: Option<Arc<dyn Field>>,
    pub state: State,
    /// Whether its hosts are getting back what they had, so that clients may not write the field yet.
    pub(crate) restoring: bool,
    /// Whether the items of its array have not all become documents yet.
    pub(crate) lifting: bool,
    /// Which change of the catalog it is from; 0 if from none.
    pub(crate) epoch: i64,
    pub is_read_by_others: bool,
    /// How often a client's value differed from ours and was overridden (SEMANTICS R11).
    overridden: Arc<AtomicU64>,
    /// What was read for it lately under these rules.
    pub(crate) recent: CopyCache,
}

impl ActiveRule {
    pub fn overridden(&self) -> u64 {
        self.overridden.load(Ordering::Relaxed)
    }

    pub(crate) fn count_overridden(&self) {
        self.overridden.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether hosts come and go with their sources (SEMANTICS R35).
    pub(crate) fn makes_hosts(&self) -> bool {
        self.rule.link().is_some_and(|link| link.create)
    }

    /// Whether deltas find hosts by their `_id`: then there is at most one, and the key says whether seeding has reached it.
    pub(crate) fn is_by_id(&self) -> bool {
        self.rule.link().is_some_and(|link| link.is_by_id())
    }
}

/// What the rules mean for one namespace.
#[derive(Debug, Default)]
pub struct CollectionRules {
    /// The rules that keep a field here, in order.
    pub hosted: Vec<Arc<ActiveRule>>,
    /// The rules that read this namespace for another, in order.
    pub sourced: Vec<Arc<ActiveRule>>,
    /// All that rules keep here, with the rule.
    pub owned: Vec<(Path, Arc<ActiveRule>)>,
    /// Arrays of its documents that may overflow, with the limits that hold now.
    pub outliers: Vec<Arc<Outlier>>,
    /// Whether fields are kept from the items of one of them.
    pub(crate) items_are_source: bool,
    /// What a change must show.
    pub capture: Capture,
    /// All rules that name the namespace, those that are no longer kept included.
    pub named_by: Vec<Arc<ActiveRule>>,
}

impl CollectionRules {
    /// Whether an update can change something that a rule watches or owns.
    pub(crate) fn concerns(&self, update: &Update) -> bool {
        match (&self.capture, &update.source) {
            (Capture::Nothing, _) => false,
            (Capture::Paths(paths), Value::Document(spec)) if !update.is_replacement() => named(spec)
                .any(|name| paths.iter().any(|path| name.split('.').next().is_some_and(|first| first == path.first()))),
            _ => true,
        }
    }

    /// Whether nothing is done with a write: what rules ask of documents, the database itself enforces.
    pub(crate) fn is_only_constrained(&self) -> bool {
        let runs = |kept: &Arc<ActiveRule>| {
            let rule = &kept.rule;
            kept.field.is_some() || rule.shape().is_some() || rule.outlier().is_some() || rule.lens().is_some()
        };
        !self.named_by.iter().any(runs)
    }

    /// The rule of an array, for people.
    pub(crate) fn rule_of(&self, outlier: &Outlier) -> Vec<Arc<ActiveRule>> {
        let is_its = |kept: &&Arc<ActiveRule>| kept.rule.outlier().is_some_and(|other| other.field == outlier.field);
        self.named_by.iter().filter(is_its).cloned().collect()
    }

    /// Whether a deleted document means something: others come from it, items of it are elsewhere, or a roll-up counts its
    /// children in it.
    pub(crate) fn watches_deletes(&self) -> bool {
        !self.sourced.is_empty() || !self.outliers.is_empty() || self.hosted.iter().any(|kept| kept.makes_hosts())
    }

    pub(crate) fn is_kept(&self) -> bool {
        !self.hosted.is_empty() || !self.sourced.is_empty() || !self.owned.is_empty()
    }
}

/// The paths that operators name, targets of `$rename` included.
pub(crate) fn named<'u>(spec: &'u document::Doc<'static>) -> impl Iterator<Item = String> + 'u {
    spec.iter().flat_map(|(operator, fields)| {
        let renames = operator.as_str() == "$rename";
        let Value::Document(fields) = fields else { return Vec::new() };
        let mut names = Vec::new();
        for (name, argument) in fields.iter() {
            names.push(name.to_string());
            names.extend(argument.as_str().filter(|_| renames).map(str::to_owned));
        }
        names
    })
}

/// The collections whose documents have several versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lenses {
    of: HashMap<Namespace, Arc<Lens>>,
    /// Old documents that clients have read.
    pub(crate) seen: Arc<SeenOld>,
    pub(crate) views: Arc<KnownViews>,
}

impl Lenses {
    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(crate) fn of(&self, ns: &Namespace) -> Option<&Arc<Lens>> {
        if self.of.is_empty() { None } else { self.of.get(ns) }
    }

    /// Those of a database, by the collection's name.
    pub(crate) fn in_database<'l>(&'l self, db: &'l str) -> impl Iterator<Item = (&'l str, &'l Arc<Lens>)> {
        self.of.iter().filter(move |(ns, _)| &*ns.db == db).map(|(ns, lens)| (&*ns.collection, lens))
    }

    pub(crate) fn named(&self, ns: NamespaceRef<'_>) -> Option<&Arc<Lens>> {
        if self.of.is_empty() { None } else { self.of.get(&ns) }
    }
}

/// The rules in force.
#[derive(Debug, Default)]
pub struct Rules {
    levels: Vec<Vec<Arc<ActiveRule>>>,
    all: Vec<Arc<ActiveRule>>,
    namespaces: HashMap<Namespace, Arc<CollectionRules>>,
    /// By what clients call them.
    shaped: HashMap<Namespace, Arc<Stack>>,
    /// By where their documents are stored, if clients do not call it so.
    stored: HashMap<Namespace, Arc<Stack>>,
    /// Whose collections are being renamed.
    switching: HashSet<Namespace>,
    lenses: Lenses,
}

impl Rules {
    /// Compiles rules; what `before` has already compiled, and its counters, are taken over.
    pub fn new(rules: Vec<RuleInState>, before: Option<&Rules>) -> Result<Rules> {
        let Levels { levels, is_read } =
            Levels::of(&rules.iter().map(|rule_in_state| &*rule_in_state.rule).collect::<Vec<_>>());
        let kept = rules.iter().filter(|rule_in_state| rule_in_state.state.is_kept());
        let sources: HashSet<Namespace> =
            kept.filter_map(|rule_in_state| Some(rule_in_state.rule.link()?.source.clone())).collect();
        let mut all = Vec::with_capacity(rules.len());
        let mut made = Rules::default();
        if let Some(before) = before {
            made.lenses.seen = before.lenses.seen.clone();
            made.lenses.views = before.lenses.views.clone();
        }
        for level in &levels {
            let mut kept_here = Vec::new();
            for at in level {
                let Some(rule_in_state @ RuleInState { rule, state, .. }) = rules.get(*at) else { continue };
                let known = before.and_then(|before| before.find(&rule.host.db, &rule.name));
                let kept = Arc::new(ActiveRule {
                    rule: rule.clone(),
                    field: rule.kept_field().cloned(),
                    state: state.clone(),
                    restoring: rule_in_state.restoring,
                    lifting: rule_in_state.lifting,
                    epoch: rule_in_state.epoch,
                    is_read_by_others: is_read.get(*at).copied().unwrap_or_default(),
                    overridden: known.map(|known| known.overridden.clone()).unwrap_or_default(),
                    recent: CopyCache::default(),
                });
                if let Some(lens) = rule.lens().filter(|_| state.is_kept()) {
                    made.lenses.of.insert(rule.host.clone(), lens.clone());
                }
                if let Some(shape) = rule.shape() {
                    made.add_shaped(rule_in_state, &**shape, before, sources.contains(&rule.host));
                }
                if let Some(outlier) = rule.outlier() {
                    let lens = rules.iter().filter(|other| other.rule.host == rule.host && other.state.is_kept());
                    let lens = lens.filter_map(|other| other.rule.lens()).next();
                    let places = items::places(outlier, lens);
                    made.add_items(rule, outlier, places, sources.contains(&outlier.items()));
                }
                all.push(kept.clone());
                if kept.state.is_kept() && kept.field.is_some() {
                    kept_here.push(kept);
                }
            }
            made.levels.push(kept_here);
        }
        let mut namespaces: HashMap<Namespace, CollectionRules> = HashMap::new();
        for kept in &all {
            match (kept.rule.shape(), kept.rule.outlier()) {
                (Some(shape), _) => made.name_shaped(kept, &**shape, &mut namespaces),
                (None, Some(outlier)) => {
                    let is_source = sources.contains(&outlier.items());
                    add_outlier(kept, outlier, is_source, &mut namespaces);
                }
                (None, None) => add(kept, &mut namespaces),
            }
        }
        made.namespaces = namespaces.into_iter().map(|(ns, local)| (ns, Arc::new(local))).collect();
        made.all = all;
        Ok(made)
    }

    /// In the order of dependencies.
    pub fn all(&self) -> &[Arc<ActiveRule>] {
        &self.all
    }

    pub fn find(&self, db: &str, name: &str) -> Option<&Arc<ActiveRule>> {
        self.all.iter().find(|kept| &*kept.rule.host.db == db && &*kept.rule.name == name)
    }

    fn add_shaped(&mut self, rule_in_state: &RuleInState, shape: &dyn Shape, before: Option<&Rules>, is_source: bool) {
        let RuleInState { rule, places, .. } = rule_in_state;
        let known = before.and_then(|before| before.shaped.get(&rule.host)).filter(|known| known.places == *places);
        let since = known.map_or_else(Instant::now, |known| known.since);
        let (rule, logical) = (rule.clone(), rule.host.clone());
        let shaped = Arc::new(Stack { rule: rule.clone(), logical, places: places.clone(), since, is_source });
        let mut stored: Vec<&Namespace> = places.iter().map(|place| &place.stored).collect();
        // What is about to become the stored collection is not the clients' any more.
        stored.extend(shape.declared_place());
        for ns in &stored {
            self.stored.insert((*ns).clone(), shaped.clone());
        }
        if rule_in_state.switching {
            self.switching.extend(stored.into_iter().chain([&rule.host]).cloned());
        }
        if !places.is_empty() {
            self.shaped.insert(rule.host.clone(), shaped);
        }
    }

    /// All items of an outlier array are a collection to read; the overflow is not the clients' to write.
    fn add_items(&mut self, rule: &Arc<Rule>, outlier: &Outlier, places: Vec<Place>, is_source: bool) {
        let logical = outlier.items();
        let stack =
            Arc::new(Stack { rule: rule.clone(), logical: logical.clone(), places, since: Instant::now(), is_source });
        self.stored.insert(outlier.overflow.clone(), stack.clone());
        self.shaped.insert(logical, stack);
    }

    /// Clients may not rename or drop what a shape is made of.
    fn name_shaped(
        &self,
        kept: &Arc<ActiveRule>,
        shape: &dyn Shape,
        namespaces: &mut HashMap<Namespace, CollectionRules>,
    ) {
        let host = &kept.rule.host;
        let places = self.shaped.get(host).map(|shaped| &*shaped.places).unwrap_or_default();
        let mut named: Vec<&Namespace> = std::iter::once(host).chain(shape.declared_place()).collect();
        for place in places {
            if !named.contains(&&place.stored) {
                named.push(&place.stored);
            }
        }
        for ns in named {
            namespaces.entry(ns.clone()).or_default().named_by.push(kept.clone());
        }
    }

    /// Whether the collection is being renamed, so that commands on it have to wait.
    pub fn is_switching(&self, ns: &Namespace) -> bool {
        self.switching.contains(ns)
    }

    /// Whether some collection is.
    pub fn any_switching(&self) -> bool {
        !self.switching.is_empty()
    }

    /// The collection that clients call so, if it is stored in another form.
    pub fn shaped(&self, logical: &Namespace) -> Option<&Arc<Stack>> {
        self.shaped.get(logical)
    }

    /// All collections that are stored in another form.
    pub(crate) fn all_shaped(&self) -> impl Iterator<Item = &Arc<Stack>> {
        self.shaped.values()
    }

    /// Whether stages name the items of an array, in pipelines of their own too.
    pub(crate) fn names_items(&self, db: &str, stages: &Array<'_>) -> bool {
        stages.iter().any(|stage| self.holds_items(db, &stage))
    }

    fn holds_items(&self, db: &str, value: &Value<'_>) -> bool {
        match value {
            Value::Document(fields) => fields.iter().any(|(name, value)| match (name.as_str(), value.as_str()) {
                ("from" | "coll" | "$unionWith", Some(name)) => {
                    self.shaped(&Namespace::new(db, name)).is_some_and(|stack| stack.is_virtual())
                }
                _ => self.holds_items(db, &value),
            }),
            Value::Array(values) => values.iter().any(|value| self.holds_items(db, &value)),
            _ => false,
        }
    }

    /// The collection whose documents are stored there in another form.
    pub fn stored(&self, stored: &Namespace) -> Option<&Arc<Stack>> {
        self.stored.get(stored)
    }

    /// The collections whose documents have several versions.
    pub(crate) fn lenses(&self) -> &Lenses {
        &self.lenses
    }

    /// What rules there are about a namespace.
    pub fn of(&self, ns: &Namespace) -> Option<&Arc<CollectionRules>> {
        self.namespaces.get(ns)
    }

    /// The other kept rules that read what this one keeps.
    pub(crate) fn readers(&self, kept: &ActiveRule) -> impl Iterator<Item = &Arc<ActiveRule>> {
        let reads = |other: &&Arc<ActiveRule>| {
            other.state.is_kept()
                && other.rule.name != kept.rule.name
                && order::reads(&other.rule).iter().any(|read| read.touches(&kept.rule))
        };
        self.all.iter().filter(move |_| kept.is_read_by_others).filter(reads)
    }

    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.namespaces.keys()
    }

    /// The kept rules, level by level.
    pub(crate) fn levels(&self) -> &[Vec<Arc<ActiveRule>>] {
        &self.levels
    }
}

fn add(kept: &Arc<ActiveRule>, namespaces: &mut HashMap<Namespace, CollectionRules>) {
    let rule = &kept.rule;
    let host = namespaces.entry(rule.host.clone()).or_default();
    host.named_by.push(kept.clone());
    let Some(field) = &kept.field else { return };
    if kept.state.is_kept() {
        host.owned.extend(rule.owned().into_iter().map(|path| (path, kept.clone())));
        watch(&mut host.capture, &Capture::Paths(field.reads().host.clone()));
        watch(&mut host.capture, &Capture::Paths(rule.owned()));
        host.hosted.push(kept.clone());
    } else if kept.restoring {
        host.owned.extend(rule.owned().into_iter().map(|path| (path, kept.clone())));
        watch(&mut host.capture, &Capture::Paths(rule.owned()));
    }
    if let Some(link) = field.link() {
        let source = namespaces.entry(link.source.clone()).or_default();
        if link.source != rule.host {
            source.named_by.push(kept.clone());
        }
        if kept.state.is_kept() {
            watch(&mut source.capture, &field.reads().source);
            source.sourced.push(kept.clone());
        }
    }
}

/// While a rule goes, its array is kept in two parts until all items are back.
fn add_outlier(
    kept: &Arc<ActiveRule>,
    outlier: &Arc<Outlier>,
    is_source: bool,
    namespaces: &mut HashMap<Namespace, CollectionRules>,
) {
    let host = namespaces.entry(kept.rule.host.clone()).or_default();
    host.named_by.push(kept.clone());
    host.items_are_source |= is_source;
    if kept.state != State::Restoring {
        host.owned.extend(outlier.owned().into_iter().map(|path| (path, kept.clone())));
        watch(&mut host.capture, &Capture::Paths(outlier.watched()));
        host.outliers.push(match kept.state {
            State::Retiring => Arc::new(outlier.without_limit()),
            _ => outlier.clone(),
        });
    }
    for ns in [&outlier.overflow, &outlier.items()] {
        namespaces.entry(ns.clone()).or_default().named_by.push(kept.clone());
    }
}

/// Adds what is to be watched; the same first field is watched once.
fn watch(capture: &mut Capture, more: &Capture) {
    match (&mut *capture, more) {
        (_, Capture::Nothing) | (Capture::Everything, _) => {}
        (_, Capture::Everything) => *capture = Capture::Everything,
        (Capture::Nothing, more) => *capture = more.clone(),
        (Capture::Paths(paths), Capture::Paths(more)) => {
            for path in more {
                if !paths.contains(path) {
                    paths.push(path.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::active::Rules;
    use crate::rule::State;
    use std::sync::Arc;

    /// The names of the kept rules, level by level.
    fn levels(collections: &str) -> Vec<Vec<String>> {
        let text = format!("database: shop\ncollections:\n{collections}");
        let declared = crate::declare::from_yaml("pleach.yaml", &text).into_result().unwrap();
        let rules = declared.rules.into_iter().map(|rule| (Arc::new(rule), State::On).into()).collect();
        let rules = Rules::new(rules, None).unwrap();
        let names =
            |level: &Vec<Arc<crate::active::ActiveRule>>| level.iter().map(|kept| kept.rule.name.to_string()).collect();
        rules.levels().iter().map(names).collect()
    }

    #[test]
    fn a_rule_stands_behind_those_whose_fields_it_reads() {
        let collections = "
  orders:
    extended_reference:
      customer: { from: customers, by: customerId, fields: [region] }
    computed:
      doubled: { expr: { $multiply: [$total, 2] } }
      total: { sum: amount, from: lines, by: orderId }
  customers:
    extended_reference:
      region: { from: regions, by: regionId, fields: [name] }
";
        let expected = [vec!["customers.region", "orders.total"], vec!["orders.customer", "orders.doubled"]];
        let mut found = levels(collections);
        found.iter_mut().for_each(|level| level.sort());
        assert_eq!(found, expected);
    }
}
