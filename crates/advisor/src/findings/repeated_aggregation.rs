//! The same number is computed of a parent's children again and again: the parent can hold it.

mod runs;

use super::Symptom;
use crate::declare;
use crate::report::{Against, Finding, Severity, grouped};
use crate::survey::{Collection, Survey};
use crate::thresholds::{AGGREGATION_RETURNED, AGGREGATION_RUNS};
use crate::values::{count, figures, list, measure, share};
use document::{Result, Value};
use runs::{Computed, Runs, Seen};

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "repeated_aggregation",
    pattern: "computed",
    help: "The same number is computed of a parent's children again and again.",
    looks_at: "Runs of `count`, `countDocuments`, `$count` and `$group` by a key of a parent, and `$lookup` of children of which only a number is taken: over 100 runs that return under 1 % of what they examine.",
    reasons_against: "The children are written more often than the number is read: then with `lag`, or not at all.",
    find: |survey| Box::pin(async move { find(survey) }),
};

/// How late the number may be if children are written often.
const LAG: &str = "5s";
/// Runs that return less than this are named even if they are no symptom.
const WORTH_A_NOTE: f64 = 0.1;

fn find(survey: &Survey<'_>) -> Result<Vec<Finding>> {
    Ok(runs::all(survey).iter().filter_map(|runs| of_runs(survey, runs)).collect())
}

/// The source that shows it most clearly.
struct Clearest {
    source: usize,
    seen: Seen,
    severity: Severity,
}

impl Clearest {
    fn of(runs: &Runs<'_>) -> Option<Clearest> {
        let each = runs.by_source.iter().map(|(source, seen)| {
            #[expect(clippy::cast_precision_loss, reason = "counts of commands")]
            let by_runs = if seen.count > AGGREGATION_RUNS {
                Severity::by(seen.count as f64, AGGREGATION_RUNS as f64)
            } else {
                Severity::Note
            };
            let returned = returned(seen);
            let by_rows = if returned < AGGREGATION_RETURNED {
                Severity::by(AGGREGATION_RETURNED / returned.max(f64::MIN_POSITIVE), 1.0)
            } else {
                Severity::Note
            };
            Clearest { source: *source, seen: *seen, severity: by_runs.min(by_rows) }
        });
        each.max_by(|one, other| one.severity.cmp(&other.severity).then(one.seen.count.cmp(&other.seen.count)))
    }
}

/// The share of the rows that are returned of those examined.
fn returned(seen: &Seen) -> f64 {
    if seen.examined == 0 { 1.0 } else { share(seen.returned, seen.examined) }
}

fn of_runs(survey: &Survey<'_>, runs: &Runs<'_>) -> Option<Finding> {
    let Clearest { source, seen, severity } = Clearest::of(runs)?;
    if severity == Severity::Note && (seen.count <= AGGREGATION_RUNS || returned(&seen) >= WORTH_A_NOTE) {
        return None;
    }
    let (parent, children, key) = (runs.parent, runs.children, &runs.relation.path);
    // What a rule keeps already is asked for by clients that do not use it yet.
    let computed: Vec<&Computed> = runs.computed.iter().filter(|one| !is_kept(survey, runs, one)).collect();
    if computed.is_empty() && !runs.computed.is_empty() {
        return None;
    }
    let writes = writes(survey, runs, source);
    let mut finding = Finding::new(&SYMPTOM, &parent.ns, &format!("{}.{key}", children.name()));
    finding.severity = severity;
    finding.confidence = 0.95 * runs.relation.confidence.min(1.0) * if seen.is_estimated { 0.9 } else { 1.0 };
    let what = words(&computed);
    finding.verdict = match severity {
        Severity::Note => format!("{what} of the {} of each of {} is computed often", children.name(), parent.name()),
        _ => format!(
            "{what} of the {} of each of {} is computed again and again: keep it in {}",
            children.name(),
            parent.name(),
            parent.name()
        ),
    };
    let each = seen.examined.checked_div(seen.count.max(1)).unwrap_or_default();
    let name = survey.traffic.sources.get(source).map(|source| &*source.name).unwrap_or_default();
    let about = if seen.is_estimated { "about " } else { "" };
    finding.shown = vec![
        format!("{} runs, seen by {name}", grouped(seen.count)),
        format!(
            "each looks at {about}{} of {} and returns {:.2} % of that",
            grouped(each),
            children.name(),
            100.0 * returned(&seen)
        ),
        format!("{} was {} meanwhile", children.name(), written(writes)),
    ];
    let mut evidence = vec![
        ("runs", count(seen.count)),
        ("examined", count(seen.examined)),
        ("examined_is_estimated", Value::Bool(seen.is_estimated)),
        ("returned", count(seen.returned)),
        ("returned_share", measure(returned(&seen))),
        ("milliseconds", measure(seen.milliseconds)),
        ("writes", count(writes)),
        ("source", Value::string(name.to_owned())),
        ("from", Value::string(children.name().to_owned())),
        ("by", Value::string(key.clone())),
        ("computes", list(computed.iter().map(|one| Value::string(one.words())))),
    ];
    if let Some(hour) = survey.traffic.an_hour(source, seen.count) {
        evidence.push(("an_hour", measure(hour)));
    }
    evidence.push(("examples", list(parent.sample.iter().take(3).filter_map(|doc| doc.get("_id")))));
    finding.evidence = figures(evidence);
    let is_written_often = writes > seen.count;
    finding.declaration = declaration(survey, runs, &computed, is_written_often.then_some(LAG));
    finding.gain = figures([("examined_now", count(each)), ("examined_then", count(1))]);
    Some(finding.weighed(against(survey, runs, &seen, writes, computed.is_empty())))
}

/// How many commands changed what the numbers are made of. Loads of many documents at once are one.
fn writes(survey: &Survey<'_>, runs: &Runs<'_>, source: usize) -> u64 {
    let mut paths: Vec<String> = runs.computed.iter().filter_map(|one| one.of.clone()).collect();
    paths.extend(runs.computed.iter().flat_map(|one| one.only.iter().map(|(path, _)| path.clone())));
    paths.push(runs.relation.path.clone());
    let of_children = survey.traffic.of(survey.database, runs.children.name()).filter(|shape| shape.source == source);
    let changing = of_children
        .filter(|shape| matches!(&*shape.kind, "insert" | "delete") || shape.removes || shape.changes_any(&paths));
    changing.map(|shape| shape.writes()).sum()
}

fn against(survey: &Survey<'_>, runs: &Runs<'_>, seen: &Seen, writes: u64, has_no_rule: bool) -> Vec<Against> {
    let mut all = Vec::new();
    let name = runs.children.name();
    if writes > seen.count {
        let figures = figures([("writes", count(writes)), ("reads", count(seen.count))]);
        let reason = format!("{name} is written more often than the number is read; if at all, keep it with `lag`");
        all.push(Against::new(reason, figures).outweighing());
    } else if let Some((reads, all_writes)) = survey.traffic.reads_and_writes(survey.database, name)
        && all_writes > reads.max(seen.count)
    {
        let figures = figures([("writes", count(all_writes)), ("reads", count(reads))]);
        all.push(Against::new(format!("since its server started {name} was written more often than read"), figures));
    }
    if runs.has_hidden_condition || has_no_rule {
        let reason = match runs.has_hidden_condition {
            true => "some runs have a condition whose value this traffic does not show: the rule needs it as `where`",
            false => "the numbers are made of several fields: the rule is left to you",
        };
        all.push(Against::new(reason, figures([])));
    }
    all
}

fn is_kept(survey: &Survey<'_>, runs: &Runs<'_>, computed: &Computed) -> bool {
    survey.rules.iter().any(|rule| {
        rule.kept_of(runs.parent.name()).is_some()
            && rule.names(&[runs.children.name(), &runs.relation.path])
            && computed.of.as_deref().is_none_or(|path| rule.names(&[path]))
            && computed.only.iter().all(|(_, value)| value.as_str().is_none_or(|value| rule.names(&[value])))
    })
}

impl Computed {
    fn words(&self) -> String {
        let of = self.of.as_ref().map_or_else(String::new, |path| format!(" of {path}"));
        let only: Vec<String> =
            self.only.iter().map(|(path, value)| format!(" with {path} {}", declare::flow(value))).collect();
        let word = match self.word {
            "avg" => "average",
            "min" => "least",
            "max" => "greatest",
            other => other,
        };
        format!("{word}{of}{}", only.join(""))
    }

    /// What the field is called, if the clients' own word says nothing.
    fn own_name(&self, children: &str) -> String {
        const NOTHING: [&str; 10] = ["n", "count", "total", "sum", "avg", "average", "min", "max", "value", "result"];
        if !NOTHING.contains(&&*self.name) && !self.name.is_empty() && self.only.is_empty() {
            return self.name.clone();
        }
        let mut name = match &self.of {
            None => format!("{}Count", declare::singular(children)),
            Some(path) => format!("{}{}", self.word, capital(path.rsplit('.').next().unwrap_or(path))),
        };
        for (_, value) in &self.only {
            let word: String = value.as_str().unwrap_or_default().chars().filter(char::is_ascii_alphanumeric).collect();
            name.push_str(&capital(&word));
        }
        name
    }
}

fn words(computed: &[&Computed]) -> String {
    match computed {
        [] => "a number".to_owned(),
        all => {
            let each: Vec<String> = all.iter().take(4).map(|one| format!("the {}", one.words())).collect();
            each.join(", ")
        }
    }
}

fn written(times: u64) -> String {
    match times {
        0 => "not written".to_owned(),
        1 => "written once".to_owned(),
        many => format!("written {} times", grouped(many)),
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn declaration(survey: &Survey<'_>, runs: &Runs<'_>, computed: &[&Computed], lag: Option<&str>) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    let mut rules = Vec::new();
    for one in computed {
        let name = free_name(runs.parent, &one.own_name(runs.children.name()), &names);
        let from = declare::word(runs.children.name());
        let mut body = match &one.of {
            None => vec![(one.word, from)],
            Some(path) => vec![(one.word, declare::word(path)), ("from", from)],
        };
        body.push(("by", declare::word(&runs.relation.path)));
        if runs.relation.key != "_id" {
            body.push(("match", declare::word(&runs.relation.key)));
        }
        if runs.relation.arrays > 0 {
            body.push(("each", "true".to_owned()));
        }
        if !one.only.is_empty() {
            let parts: Vec<(String, String)> =
                one.only.iter().map(|(path, value)| (declare::word(path), declare::flow(value))).collect();
            let parts: Vec<(&str, String)> = parts.iter().map(|(path, value)| (&**path, value.clone())).collect();
            body.push(("where", declare::map(&parts)));
        }
        if let Some(lag) = lag {
            body.push(("lag", lag.to_owned()));
        }
        rules.push(format!("{}: {}", declare::word(&name), declare::map(&body)));
        names.push(name);
    }
    (!rules.is_empty())
        .then(|| declare::collection_rule(survey.database, runs.parent.name(), "computed", &rules))
        .flatten()
}

/// A name that the parents do not have.
fn free_name(parent: &Collection, name: &str, taken: &[String]) -> String {
    let numbered = (2..).map(|number| format!("{name}{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let is_free = |name: &String| parent.shape.path(name).is_none() && !taken.contains(name);
    names.find(is_free).unwrap_or_default()
}
