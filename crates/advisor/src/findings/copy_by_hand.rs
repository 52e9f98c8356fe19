//! Fields that equal fields of the document that is referred to: a copy kept by hand, and perhaps wrong in some.

use super::Symptom;
use crate::declare;
use crate::kept::copies::{Compared, Copy, Times, are_frozen, is_wrong};
use crate::kept::references::{self, Reference, pairs, references, sources};
use crate::kept::row::{PathId, Paths, Row};
use crate::kept::verdict::{Verdict, id_of, read_again};
use crate::relation::{Relation, Source};
use crate::report::{Against, Finding};
use crate::survey::{Collection, Survey};
use crate::values::{count, figures, hash, list, measure};
use document::{Doc, Result, Value};
use hashbrown::HashMap;
use std::collections::BTreeMap;

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "copy_by_hand",
    pattern: "extended_reference",
    help: "Fields of a referenced document are copied by hand.",
    looks_at: "Fields, nested, flat or in the elements of arrays, that equal fields of the referenced document in over half of the sampled pairs; how many are wrong, and whether these look frozen on purpose.",
    reasons_against: "None; copies that look frozen on purpose are a note, and the rule keeps them as they are.",
    find: |survey| Box::pin(find(survey)),
};

/// What differs is looked at again so often, and so many documents of it.
const ATTEMPTS: usize = 3;
const MOST_AGAIN: usize = 1_000;

async fn find<'a>(survey: &'a Survey<'a>) -> Result<Vec<Finding>> {
    let mut found: Vec<Finding> = Vec::new();
    for relation in &survey.relations {
        let (Some(child), Some(parent)) = (survey.collection(&relation.from), survey.collection(&relation.to)) else {
            continue;
        };
        if survey.reader.cancel.is_set() {
            break;
        }
        for finding in (Looking { survey, relation, child, parent }).look().await? {
            let place = found.iter().position(|it| it.collection == finding.collection && it.field == finding.field);
            match place.and_then(|place| found.get_mut(place)) {
                Some(known) if known.confidence < finding.confidence => *known = finding,
                Some(_) => {}
                None => found.push(finding),
            }
        }
    }
    Ok(found)
}

struct Looking<'l> {
    survey: &'l Survey<'l>,
    relation: &'l Relation,
    child: &'l Collection,
    parent: &'l Collection,
}

impl Looking<'_> {
    async fn look(&self) -> Result<Vec<Finding>> {
        let most = usize::try_from(self.survey.options.sample()).unwrap_or(usize::MAX);
        let references = references(&self.child.sample, self.relation, most);
        let source = Source::of(self.parent);
        let found = sources(self.survey.reader, &source, &self.relation.key, &references, true).await?;
        let (mut host_paths, mut source_paths) = (Paths::default(), Paths::default());
        let (pairs, rows, keys) = pairs(&references, &found, &mut host_paths, &mut source_paths);
        let (above, below) = self.split();
        let ids = self.ids(above, below, &host_paths);
        let compared =
            Compared { pairs: &pairs, sources: &rows, host_paths: &host_paths, source_paths: &source_paths, ids: &ids };
        let copies = compared.copies();
        let mut all = Vec::new();
        for copy in &copies {
            let mut wrong: BTreeMap<usize, u64> = BTreeMap::new();
            for pair in copy.wrong.iter().filter_map(|place| pairs.get(*place)) {
                *wrong.entry(pair.document).or_insert(0) += 1;
            }
            let wrong =
                wrong.into_iter().filter_map(|(place, pairs)| Some((self.child.sample.get(place)?.clone(), pairs)));
            let judged = self.still_wrong(copy, wrong.collect(), &host_paths, &source_paths).await?;
            let documents: Vec<(usize, usize)> = pairs.iter().map(|pair| (pair.document, pair.source)).collect();
            let times = self.times(&documents, &keys, &found);
            let is_frozen = judged.wrong > 0 && frozen(&times, &copy.wrong);
            all.push(self.finding(copy, &copies, &judged, is_frozen, (above, below), &source_paths));
        }
        Ok(all)
    }

    /// Array and path in its elements.
    fn split(&self) -> (&str, &str) {
        if self.relation.arrays == 0 || self.relation.ends_in_array {
            return ("", &self.relation.path);
        }
        let splits = self.child.sample.iter().map(|doc| references::split(doc, &self.relation.path));
        splits.max_by_key(|(above, _)| above.len()).unwrap_or(("", &self.relation.path))
    }

    /// Paths beside the reference that are references themselves.
    fn ids(&self, above: &str, below: &str, paths: &Paths) -> Vec<PathId> {
        let own = self.survey.relations.iter().filter(|it| it.from == self.relation.from && it.confidence > 0.6);
        // What is only contained in some text of another collection may be a copy of both.
        let is_key = |it: &&Relation| {
            it.key == "_id" || self.survey.collection(&it.to).is_some_and(|to| to.statistics.is_unique(&it.key))
        };
        let own = own.filter(is_key);
        let beside = own.filter_map(|it| match above {
            "" => Some(it.path.as_str()),
            above => it.path.strip_prefix(above)?.strip_prefix('.'),
        });
        beside.chain(["_id", below]).filter_map(|name| paths.number(name)).collect()
    }

    /// What is still wrong when source and host are read again. The documents come with how many of their pairs differ.
    async fn still_wrong(
        &self,
        copy: &Copy,
        documents: Vec<(Doc<'static>, u64)>,
        host_paths: &Paths,
        source_paths: &Paths,
    ) -> Result<Judged> {
        let mut judged = Judged::default();
        // So many are wrong that a few more or less do not matter: the others are taken as they are.
        for (doc, pairs) in documents.iter().skip(MOST_AGAIN) {
            judged.wrong += pairs;
            judged.documents.push(doc.clone());
        }
        let mut again: Vec<Doc<'static>> = documents.into_iter().take(MOST_AGAIN).map(|(doc, _)| doc).collect();
        let (reader, source, key) = (self.survey.reader, Source::of(self.parent), &self.relation.key);
        let (mut host_paths, mut source_paths) = (host_paths.clone(), source_paths.clone());
        for _ in 0..ATTEMPTS {
            if again.is_empty() {
                break;
            }
            let before = references(&again, self.relation, usize::MAX);
            let found = sources(reader, &source, key, &before, false).await?;
            let now = read_again(reader, &self.child.ns, &again).await?;
            let rows: HashMap<u64, Row> =
                found.iter().map(|(key, doc)| (*key, Row::of(doc, &mut source_paths))).collect();
            let mut differs = |reference: &Reference| {
                let host = Row::of(&reference.host, &mut host_paths);
                let source = rows.get(&hash(&reference.value))?;
                Some(has_copy(copy, &host, &host_paths) && is_wrong(&copy.fields, &host, source))
            };
            let mut changed = Vec::new();
            for (place, doc) in again.iter().enumerate() {
                let Some(now) = now.get(&id_of(doc)) else { continue };
                let of_now = references(std::slice::from_ref(now), self.relation, usize::MAX);
                let of_before = before.iter().filter(|it| it.document == place);
                let (old, new): (Vec<_>, Vec<_>) =
                    (of_before.map(&mut differs).collect(), of_now.iter().map(&mut differs).collect());
                // The same answer by what was seen before the source and by what is there after it: nothing changed in between.
                if old != new {
                    changed.push(now.clone());
                    continue;
                }
                let pairs = new.iter().filter(|differs| **differs == Some(true)).count() as u64;
                if pairs > 0 {
                    judged.wrong += pairs;
                    judged.documents.push(doc.clone());
                }
            }
            again = changed;
        }
        judged.unknown = again.len() as u64;
        Ok(judged)
    }

    /// For each pair when its host was written and when its source last changed, by each of their dates.
    fn times(
        &self,
        documents: &[(usize, usize)],
        keys: &[u64],
        sources: &HashMap<u64, Doc<'static>>,
    ) -> Vec<Vec<Times>> {
        let hosts: Vec<HashMap<String, i64>> = self.child.sample.iter().map(dates).collect();
        let sources: Vec<HashMap<String, i64>> =
            keys.iter().map(|key| sources.get(key).map(dates).unwrap_or_default()).collect();
        let names = |all: &[HashMap<String, i64>]| {
            let mut names: Vec<String> = all.iter().flat_map(HashMap::keys).cloned().collect();
            names.sort();
            names.dedup();
            names
        };
        let mut all = Vec::new();
        // A source's `_id` says when it was made, not when it changed.
        for changed in names(&sources).into_iter().filter(|name| name != "_id") {
            for written in names(&hosts) {
                let times = documents.iter().map(|(document, source)| {
                    let host = hosts.get(*document).and_then(|dates| dates.get(&written));
                    (host.copied(), sources.get(*source).and_then(|dates| dates.get(&changed)).copied())
                });
                all.push(times.collect());
            }
        }
        all
    }

    fn finding(
        &self,
        copy: &Copy,
        copies: &[Copy],
        judged: &Judged,
        is_frozen: bool,
        (above, below): (&str, &str),
        source_paths: &Paths,
    ) -> Finding {
        let Relation { to, path: by, .. } = self.relation;
        let field = join(above, &copy.field);
        let sources: Vec<&str> = copy.fields.iter().map(|it| source_paths.name(it.source)).collect();
        let verdict = Verdict {
            wrong: judged.wrong,
            is_frozen,
            ..Verdict::of(copy.checked.saturating_sub(judged.unknown), &judged.documents)
        };
        let mut finding = Finding::new(&SYMPTOM, &self.child.ns, &field);
        finding.severity = verdict.severity();
        finding.confidence = verdict.confidence(self.relation.confidence);
        let frozen = if is_frozen { "; they look frozen on purpose: the rule keeps them" } else { "" };
        finding.verdict = format!(
            "`{field}` is a copy of {} of {to}, kept by hand: {}{frozen}",
            declare::words(sources.iter().copied()),
            verdict.words()
        );
        finding.shown = vec![
            format!("equal in {:.1} % of the references by `{by}`", 100.0 * copy.pairing.share()),
            format!("paired at random it would be in {:.1} %", 100.0 * copy.pairing.random_share()),
            verdict.words(),
        ];
        let mut evidence = verdict.figures(self.child);
        evidence.push(("by_chance", measure(copy.pairing.random_share())));
        evidence.push(("from", Value::string(to.clone())));
        evidence.push(("by", Value::string(by.clone())));
        evidence.push(("fields", list(sources.iter().map(|name| Value::string(*name)))));
        evidence.push(("absent", count(copy.absent)));
        finding.evidence = figures(evidence);
        finding.declaration = self.declaration(copy, copies, is_frozen, (above, below), source_paths);
        finding.gain = figures([("wrong_values_now", count(verdict.wrong)), ("wrong_values_then", count(0))]);
        let mut against = self.against(copy, &field, below);
        against.extend(self.changes_often(&sources).filter(|_| !is_frozen).map(|(changes, reads)| {
            let figures = figures([("changes", count(changes)), ("reads", count(reads))]);
            Against::new("its source changes more than once per 10 reads: the rule keeps it with `lag`", figures)
        }));
        finding.weighed(against)
    }

    /// Changes of these fields of the source and reads of the host, if traffic shows many changes.
    fn changes_often(&self, sources: &[&str]) -> Option<(u64, u64)> {
        const READS: u64 = 10;
        let fields: Vec<String> = sources.iter().map(|name| (*name).to_owned()).collect();
        let (survey, host) = (self.survey, self.child.name());
        survey.traffic.changes_too_often(survey.database, (self.parent.name(), &fields), host, READS)
    }

    fn against(&self, copy: &Copy, field: &str, below: &str) -> Vec<Against> {
        let mut all = Vec::new();
        let others = copy.others.iter().map(|name| Value::string(name.clone()));
        if self.needs_another_name(copy, below) && !copy.is_flat {
            let reason = format!("`{field}` also holds what is no copy: the rule keeps its copy beside it");
            all.push(Against::new(reason, figures([("others", list(others))])));
        }
        if copy.is_flat {
            let reason = "a rule keeps a copy in a document of its own: readers take the value from there";
            all.push(Against::new(reason, figures([])));
        }
        all
    }

    /// The rule would own all of the field: what is no copy would be lost, and so would the reference.
    fn needs_another_name(&self, copy: &Copy, below: &str) -> bool {
        copy.is_flat
            || !copy.others.is_empty()
            || below.strip_prefix(&*copy.field).is_some_and(|rest| rest.starts_with('.'))
    }

    fn declaration(
        &self,
        copy: &Copy,
        copies: &[Copy],
        is_frozen: bool,
        (above, below): (&str, &str),
        source_paths: &Paths,
    ) -> Option<String> {
        let name = match self.needs_another_name(copy, below) {
            true => self.free_name(copy, above, below),
            false => copy.field.clone(),
        };
        // All flat copies by one reference are one rule.
        let of_rule: Vec<&Copy> =
            if copy.is_flat { copies.iter().filter(|it| it.is_flat).collect() } else { vec![copy] };
        let fields: Vec<(&str, &str)> = of_rule
            .iter()
            .flat_map(|it| &it.fields)
            .map(|it| (it.name.as_str(), source_paths.name(it.source)))
            .collect();
        let shown = match fields.iter().all(|(name, path)| name == path) {
            true => declare::words(fields.iter().map(|(name, _)| *name)),
            false => {
                let parts: Vec<String> = fields
                    .iter()
                    .map(|(name, path)| format!("{}: {}", declare::word(name), declare::word(path)))
                    .collect();
                format!("{{ {} }}", parts.join(", "))
            }
        };
        let mut body = vec![("from", declare::word(&self.relation.to)), ("by", declare::word(&self.relation.path))];
        if self.relation.key != "_id" {
            body.push(("match", declare::word(&self.relation.key)));
        }
        body.push(("fields", shown));
        if self.relation.ends_in_array {
            body.push(("each", "true".to_owned()));
        }
        if is_frozen {
            body.push(("when_changed", "keep".to_owned()));
        } else if self.changes_often(&fields.iter().map(|(_, path)| *path).collect::<Vec<_>>()).is_some() {
            body.push(("lag", "5s".to_owned()));
        }
        let field = join(above, &name);
        declare::field_rule(self.survey.database, self.child.name(), "extended_reference", &field, &declare::map(&body))
    }

    /// A name beside the reference that nothing has.
    fn free_name(&self, copy: &Copy, above: &str, below: &str) -> String {
        let (inside, last) = below.rsplit_once('.').unwrap_or(("", below));
        let stem = ["_id", "Id", "ID", "_ref", "Ref"].iter().find_map(|end| last.strip_suffix(end)).unwrap_or_default();
        let stem = if stem.is_empty() { if copy.is_flat { "source" } else { &*copy.field } } else { stem };
        let stem = stem.rsplit('.').next().unwrap_or(stem);
        // In an array, copy and reference have the same parent.
        let inside = if above.is_empty() { "" } else { inside };
        let is_free = |name: &String| self.child.shape.path(&join(above, name)).is_none();
        let names = ["", "Copy", "Copy2", "Copy3"].iter().map(|end| join(inside, &format!("{stem}{end}")));
        names.into_iter().find(is_free).unwrap_or_else(|| join(inside, "pleachCopy"))
    }
}

/// What is wrong when it was looked at again.
#[derive(Default)]
struct Judged {
    /// Pairs, and the documents that they are in.
    wrong: u64,
    documents: Vec<Doc<'static>>,
    /// Documents that change each time they are looked at.
    unknown: u64,
}

fn has_copy(copy: &Copy, host: &Row, paths: &Paths) -> bool {
    paths.number(&copy.field).is_some_and(|field| host.cell(field).is_some())
        || copy.fields.iter().any(|copied| host.cell(copied.host).is_some())
}

fn frozen(times: &[Vec<Times>], wrong: &[usize]) -> bool {
    times.iter().any(|of_dates| are_frozen(of_dates, wrong, times.len()))
}

/// The dates of a document, and when its ObjectId was made.
fn dates(doc: &Doc<'static>) -> HashMap<String, i64> {
    doc.iter()
        .filter_map(|(name, value)| match value {
            Value::DateTime(millis) => Some((name.as_str().to_owned(), millis)),
            Value::ObjectId([a, b, c, d, ..]) if name.as_str() == "_id" => {
                Some(("_id".to_owned(), i64::from(u32::from_be_bytes([a, b, c, d])) * 1_000))
            }
            _ => None,
        })
        .collect()
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}
