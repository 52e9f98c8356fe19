//! Hosts that are looked at before it is decided what changed children mean for them: those of all fields of a level, in one read
//! per collection.

use crate::active::ActiveRule;
use crate::execute::attempt::Attempt;
use crate::execute::host_queue;
use crate::execute::host_updates::HostUpdates;
use crate::execute::inquire::Inquiries;
use crate::mql;
use crate::rule::{Delta, Effect, Fetch, Field, key};
use document::filter::{Filter, Node};
use document::op::{Find, Namespace, ReadOp};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::Path;
use document::{Code, Doc, Error, Result, Value};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;

/// By the hosts' collection.
#[derive(Default)]
pub(super) struct Looks {
    hosts: Vec<(Namespace, Vec<FieldLooks>)>,
}

/// What changed for some keys of a field, each once.
struct FieldLooks {
    kept: Arc<ActiveRule>,
    field: Arc<dyn Field>,
    keys: Vec<(Value<'static>, Delta)>,
}

impl Looks {
    pub(super) fn add(&mut self, kept: &Arc<ActiveRule>, field: &Arc<dyn Field>, key: Value<'static>, delta: Delta) {
        let host = &kept.rule.host;
        let at = self.hosts.iter().position(|(ns, _)| ns == host).unwrap_or_else(|| {
            self.hosts.push((host.clone(), Vec::new()));
            self.hosts.len() - 1
        });
        let Some((_, fields)) = self.hosts.get_mut(at) else { return };
        match fields.iter_mut().find(|other| Arc::ptr_eq(&other.kept, kept)) {
            Some(known) => known.keys.push((key, delta)),
            None => fields.push(FieldLooks { kept: kept.clone(), field: field.clone(), keys: vec![(key, delta)] }),
        }
    }

    /// Reads the hosts, and adds what each delta means for them.
    pub(super) async fn decide(
        self,
        attempt: &mut Attempt<'_>,
        updates: &mut HostUpdates,
        inquiries: &mut Inquiries,
    ) -> Result<()> {
        for (ns, fields) in self.hosts {
            let hosts = read(attempt, &ns, &fields).await?;
            for FieldLooks { kept, field, keys } in fields {
                let known = by_key(&kept, &*field, &hosts);
                for (key, delta) in keys {
                    let hosts = known.get(&key::bytes(&key)).map_or(&[][..], |hosts| hosts);
                    let effect = decided(&kept, &*field, &key, hosts, &delta)?;
                    if field.stages_decide(&delta) && attempt.executor.flights() {
                        let host = host_queue::hash(&kept.rule.host, &key::bytes(&key));
                        match &effect {
                            Effect::Ask(_) => attempt.executor.undecided_hosts.add(host),
                            _ => attempt.executor.undecided_hosts.remove(&[host]),
                        }
                    }
                    match effect {
                        Effect::Update(delta) if !delta.is_zero() => updates.add(&kept, &field, key, delta)?,
                        Effect::Ask(inquiry) => inquiries.add(&kept, &field, key, inquiry)?,
                        _ => {
                            attempt.unwritten(&kept, key.clone());
                            if delta.children() != 0 {
                                updates.add(&kept, &field, key, Delta::of_children(delta.children()))?;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// What a delta means for the hosts of a key. Where several have it, all are right or yet to be seeded: what is more than nothing
/// goes for all.
fn decided(
    kept: &ActiveRule,
    field: &dyn Field,
    key: &Value<'static>,
    hosts: &[&Doc<'static>],
    delta: &Delta,
) -> Result<Effect> {
    if hosts.is_empty() && kept.makes_hosts() {
        return checked(kept, field.decide(&mql::document([("_id", key.borrow())]), delta.clone())?);
    }
    let mut all = Effect::Nothing;
    for host in hosts {
        all = match (all, checked(kept, field.decide(host, delta.clone())?)?) {
            (_, ask @ Effect::Ask(_)) | (ask @ Effect::Ask(_), _) => ask,
            (update @ Effect::Update(_), _) => update,
            (_, other) => other,
        };
    }
    Ok(all)
}

/// A look ends with something to write, something to ask, or nothing.
fn checked(kept: &ActiveRule, effect: Effect) -> Result<Effect> {
    match effect {
        Effect::Nothing | Effect::Update(_) | Effect::Ask(_) => Ok(effect),
        Effect::Look(_) | Effect::Delete | Effect::Refuse => {
            let message = format!("rule {} cannot decide by what its host holds", kept.rule.name);
            Err(Error::new(Code::InternalError, message))
        }
    }
}

/// The hosts of each key; of hosts that are found by another field than `_id`, those that seeding has reached (SEMANTICS R2).
fn by_key<'h>(
    kept: &ActiveRule,
    field: &dyn Field,
    hosts: &'h [Doc<'static>],
) -> HashMap<Vec<u8>, SmallVec<[&'h Doc<'static>; 1]>> {
    let mut known: HashMap<Vec<u8>, SmallVec<[&'h Doc<'static>; 1]>> = HashMap::with_capacity(hosts.len());
    for host in hosts {
        if !kept.is_by_id() && !host.get("_id").is_some_and(|id| kept.state.reached(&id)) {
            continue;
        }
        for value in field.keys(host) {
            known.entry(key::bytes(&value)).or_default().push(host);
        }
    }
    known
}

/// The hosts of all fields' keys.
async fn read(attempt: &mut Attempt<'_>, ns: &Namespace, fields: &[FieldLooks]) -> Result<Vec<Doc<'static>>> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut paths: Vec<(String, Vec<Value<'static>>)> = Vec::new();
    for looks in fields {
        let Some(link) = looks.field.link() else { continue };
        let path = link.local.path.dotted();
        for (key, _) in &looks.keys {
            // Among values a regex would be a pattern.
            if matches!(key, Value::Regex { .. }) {
                nodes.push(Node::equality(&path, key));
                continue;
            }
            match paths.iter_mut().find(|(other, _)| *other == path) {
                Some((_, keys)) => keys.push(key.clone()),
                None => paths.push((path.clone(), vec![key.clone()])),
            }
        }
    }
    nodes.extend(paths.into_iter().map(|(path, keys)| match &keys[..] {
        [key] => Node::equality(&path, key),
        _ => Filter::among(&path, keys).root,
    }));
    let root = if nodes.len() == 1 { nodes.remove(0) } else { Node::Or(nodes) };
    let filter = Filter::from_node(root);
    let projection = match attempt.fetch() {
        Fetch::Documents => None,
        Fetch::Rows | Fetch::Shortest | Fetch::Shaped => Some(Arc::new(looked_at(fields, &filter)?)),
    };
    let rules: Vec<Arc<ActiveRule>> = fields.iter().map(|looks| looks.kept.clone()).collect();
    let find = Find { projection, ..Find::matching(ns.clone(), filter) };
    attempt.read(&rules, ReadOp::Find(find)).await
}

/// The fields of the first level that decisions depend on: what is sent over a network is small.
fn looked_at(fields: &[FieldLooks], filter: &Filter) -> Result<Projection> {
    let mut names: BTreeSet<&str> = BTreeSet::from(["_id"]);
    for FieldLooks { field, .. } in fields {
        names.insert(field.target().path.first());
        names.extend(field.link().map(|link| link.local.path.first()));
        names.extend(field.state().map(Path::first));
        names.extend(field.reads().host.iter().map(Path::first));
    }
    let shown = mql::document(names.into_iter().map(|name| (name, Value::Int32(1))));
    Projection::parse_find(&shown, filter, &mut Names::new())
}
