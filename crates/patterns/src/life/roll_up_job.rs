//! A late change of a roll-up (SEMANTICS R13, R35): its job makes the document of a key true, makes it if it is missing and has
//! children, and removes it if it has none and holds nothing that is not of rules.
//!
//! What the job evaluates replaces value and state together. So while the source is still being counted, which adds to states, jobs
//! wait ([`is_too_early`]); writers need no fence against that walk, since each of their changes has a job.

use crate::execute::access::{Access, find};
use crate::execute::evaluate::Evaluator;
use crate::execute::gate::Point;
use crate::execute::roll_up;
use crate::fields::set_paths::{Entry, put};
use crate::life::replaced::{Keeping, Replaced};
use crate::life::transaction::OwnTransaction;
use crate::life::{CatalogRule, Life, replaced, write_differences};
use crate::mql;
use crate::rule::owned::STATE;
use crate::rule::state::State;
use document::error::label;
use document::filter::Filter;
use document::op::Change;
use document::pipeline::expr::field_of_document;
use document::value::Path;
use document::{Code, Doc, Error, Result, Value};

/// Whether the walk over the source is not through.
pub(super) fn is_too_early(entry: &CatalogRule) -> bool {
    let makes = entry.rule.link().is_some_and(|link| link.create);
    makes && matches!(entry.row.state, State::Maintaining | State::Gathering { .. })
}

/// Makes the document of a key true, in a transaction that has passed the key's fence.
pub(super) async fn make_true(
    life: &Life,
    began: &mut OwnTransaction<'_>,
    evaluator: &Evaluator,
    entry: &CatalogRule,
    key: &Value<'static>,
) -> Result<()> {
    let (rule, context) = (evaluator.rule(), began.context);
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
    let hosts = at.find(find(&rule.host, evaluator.hosts(key))).await?;
    life.pass(Point::Life("evaluate")).await?;
    let rows = evaluator.rows(&mut at, std::slice::from_ref(key)).await?;
    let bare = mql::document([("_id", key.borrow())]);
    let right = evaluator.field().place(hosts.first().unwrap_or(&bare), None, &rows, &context.env)?;
    let has_children = roll_up::children(rule, &right) > 0;
    let differences = evaluator.differences_by(&at, &hosts, &rows)?;
    let makes = hosts.is_empty() && has_children;
    if entry.row.state != State::On && (makes || !differences.is_empty()) {
        let keeping = Keeping::unfinished(&mut at, &[(rule.clone(), entry.row.epoch)]).await?;
        let host = Replaced { id: key.clone(), before: hosts.first() };
        replaced::keep_some(&mut at, &keeping, &[host]).await?;
    }
    life.pass(Point::Life("write")).await?;
    if makes {
        return insert(life, began, evaluator, key, &bare, &right).await;
    }
    write_differences::write(life, began, rule, &differences).await?;
    if has_children || hosts.is_empty() {
        return Ok(());
    }
    let rules = life.patterned.rules();
    let Some(local) = rules.of(&rule.host) else { return Ok(()) };
    let empty = Filter::equality("_id", key).and(roll_up::is_empty(local)?);
    write_differences::delete(life, began, rule, empty).await
}

/// Makes the document, with what the host's other roll-ups hold without children: those that have some would have made it, or their
/// job is still to come.
async fn insert(
    life: &Life,
    began: &mut OwnTransaction<'_>,
    evaluator: &Evaluator,
    key: &Value<'static>,
    bare: &Doc<'static>,
    right: &Doc<'static>,
) -> Result<()> {
    let rule = evaluator.rule();
    let rules = life.patterned.rules();
    let own: Vec<_> = rules.find(&rule.host.db, &rule.name).cloned().into_iter().collect();
    let mut values: Vec<(Path, Value<'static>)> = rule
        .owned()
        .into_iter()
        .map(|path| (path.clone(), field_of_document(right, &path.parts).into_owned()))
        .collect();
    values.extend(rules.of(&rule.host).map(|local| roll_up::empty_values(local, &own)).unwrap_or_default());
    // The state comes at the end of the document.
    values.sort_by_key(|(path, _)| path.first() == STATE);
    let entries: Vec<Entry<'_>> = values.iter().map(|(path, value)| (&path.parts[..], value.borrow())).collect();
    let whole = put(bare, &entries);
    let mut at = Access { backend: &*life.backend, session: &mut began.session, context: began.context };
    match at.insert(&rule.host, vec![whole.clone()]).await {
        Err(error) if error.code() == Code::DuplicateKey => {
            let meanwhile = Error::new(Code::WriteConflict, "the document was made meanwhile");
            return Err(meanwhile.with_label(label::TRANSIENT));
        }
        other => other?,
    }
    let made = Change { id: key.clone(), before: None, after: Some(whole) };
    life.patterned.follow(&mut began.session, began.context, rule, vec![made]).await
}
