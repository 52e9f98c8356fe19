//! How many documents are stored in each version, which of them are migrated or brought back, and what is lost by that.

use crate::execute::access::Access;
use crate::life::preview::refusal::{Need, Refusal};
use crate::life::preview::removal::Removal;
use crate::life::preview::{RulePreview, documents, grouped, long};
use crate::life::versions::change::{VersionsChange, taking_back};
use crate::life::versions::figures::VersionCounts;
use crate::life::{Life, expiry};
use crate::rule::lens::unique_key;
use crate::rule::{Lens, Rule};
use document::backend::Session;
use document::op::Context;
use document::value::Path;
use document::{Doc, DocWriter, Result, Value};

/// What becomes of documents of several versions.
#[derive(Clone, Debug)]
pub(crate) struct VersionsPreview {
    counts: VersionCounts,
    /// The version that documents are brought to.
    newest: i32,
    migrated: u64,
    taken_back: u64,
}

/// Counts documents, and refuses what would make stored documents mean something else.
pub(super) async fn look(life: &Life, context: &Context, rule_preview: &mut RulePreview) -> Result<()> {
    let rule = rule_preview.rule.clone();
    let Some(declared) = rule.lens() else { return Ok(()) };
    let backend = &**life.patterned.inner();
    let kept = life.kept(&rule);
    let kept = kept.as_ref().and_then(|kept| kept.lens());
    let change = kept.map(|kept| VersionsChange::of(kept, declared));
    let seen = match (kept, &change) {
        (Some(kept), Some(VersionsChange::TakenBack { .. })) => &taking_back(kept, declared)?,
        (Some(kept), Some(VersionsChange::OtherField)) => kept,
        _ => &**declared,
    };
    let counts = VersionCounts::look(backend, context, &rule.host, seen).await?;
    let mut migrated = counts.but(declared.newest());
    let mut taken_back = 0;
    match change {
        Some(VersionsChange::OtherField) => {
            let kept = kept.map_or("", |kept| &kept.field);
            rule_preview.refusals.push(other_field(&rule, kept, &declared.field));
        }
        Some(VersionsChange::TakenBack { to }) => {
            let is_behind = |(version, _): &&(i32, u64)| *version > to;
            taken_back = counts.known.iter().filter(is_behind).map(|(_, number)| number).sum();
            // They are stored in `to` when what is declared behind it comes.
            migrated = if declared.newest() > to { counts.but(i32::MAX) } else { migrated - taken_back };
            rule_preview.refusals.extend(brought_back(&rule, seen, to, taken_back));
        }
        Some(VersionsChange::Added | VersionsChange::Policy) | None => {}
    }
    let since = match &change {
        Some(VersionsChange::Policy) => None,
        Some(VersionsChange::Added | VersionsChange::OtherField) => kept.map(|kept| kept.newest()),
        Some(VersionsChange::TakenBack { to }) => Some(*to),
        None => Some(1),
    };
    if let Some(since) = since.filter(|_| migrated + taken_back > 0) {
        let is_changed = |path: &Path| {
            let is_given_up = kept.is_some_and(|kept| since <= kept.newest() && kept.changes_since(since, path));
            is_given_up || declared.changes_since(since, path)
        };
        let mut session = Session::default();
        let mut at = Access { backend, session: &mut session, context };
        let indexes = expiry::indexes(&mut at, &rule.host).await?;
        rule_preview.refusals.extend(indexes.iter().filter_map(|index| unique_index(&rule, index, is_changed)));
    }
    if !declared.migrate.background && migrated > 0 {
        let stay = documents(migrated);
        rule_preview.notes.push(format!(
            "`background: false`: {stay} stay as they are stored until they are written{}",
            if declared.migrate.on_read { " or read" } else { "" }
        ));
    }
    if let Some(hours) = declared.migrate.hours_text().filter(|_| migrated > 0) {
        rule_preview.notes.push(format!("documents are migrated from {} UTC", hours.replace('-', " to ")));
    }
    rule_preview.versions = Some(VersionsPreview { counts, newest: declared.newest(), migrated, taken_back });
    Ok(())
}

/// Of documents of two versions a unique index sees one: it would stop the migration, or let values be there twice.
fn unique_index(rule: &Rule, index: &Doc<'_>, is_changed: impl Fn(&Path) -> bool) -> Option<Refusal> {
    let path = unique_key(index, is_changed)?;
    let name = index.get("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
    let reason = format!(
        "rule {}: index {name} is unique on `{path}`, which a step changes: while documents are stored in an older version it would not \
         see them all",
        rule.name
    );
    let hint = format!(
        "drop it with db.{}.dropIndex({name:?}), and make one in the words of the newest version when all documents are migrated",
        rule.host.collection
    );
    Some(Refusal { need: Need::OtherData(hint), reason })
}

fn other_field(rule: &Rule, kept: &str, declared: &str) -> Refusal {
    let name = &rule.name;
    let reason =
        format!("rule {name}: documents have their version in `{kept}`, and would have version 1 by `{declared}`");
    let hint = format!(
        "leave `field: {kept}`; or `pleach drop {name}`, rename the field with \
         db.{}.updateMany({{}}, {{ $rename: {{ {kept}: \"{declared}\" }} }}), and apply again",
        rule.host.collection
    );
    Refusal { need: Need::OtherData(hint), reason }
}

/// Documents are brought back by `down`: somebody must say so.
fn brought_back(rule: &Rule, back: &Lens, to: i32, number: u64) -> Option<Refusal> {
    if number == 0 {
        return None;
    }
    let losses: Vec<String> = back.taken_back().iter().flatten().flat_map(|step| step.losses()).collect();
    let losses = match losses.is_empty() {
        true => String::new(),
        false => format!("; what comes back is not all: {}", losses.join("; ")),
    };
    let is = if number == 1 { "1 document is".to_owned() } else { format!("{} documents are", grouped(number)) };
    let reason = format!(
        "rule {}: {is} stored in a version that is no longer declared so, and would be brought back to version {to} by `down`{losses}",
        rule.name
    );
    Some(Refusal { need: Need::Overwrite, reason })
}

/// What is removed with the rule: nothing, but some documents may be stored in older versions.
pub(super) async fn removal(life: &Life, context: &Context, rule: &Rule) -> Result<Removal> {
    let Some(lens) = rule.lens() else { return Ok(Removal::default()) };
    let counts = VersionCounts::look(&**life.patterned.inner(), context, &rule.host, lens).await?;
    Ok(Removal::of_versions(counts.but(lens.newest())))
}

impl VersionsPreview {
    pub(super) fn show(&self, doc: &mut DocWriter) {
        doc.append("versions", &Value::Document(self.counts.show())).append("newest", &Value::Int32(self.newest));
        doc.append("migrated", &long(self.migrated)).append("taken_back", &long(self.taken_back));
    }
}
