//! Derived values that are written outside a client's write: by seeding, repair and the outbox. They are changes for the next
//! rules as any other (SEMANTICS R29).

use crate::execute::access::{update_one, update_op};
use crate::execute::evaluate::HostDifference;
use crate::life::Life;
use crate::life::transaction::OwnTransaction;
use crate::rule::Rule;
use document::backend::Backend;
use document::filter::Filter;
use document::op::{Capture, Delete, DeleteStatement, UpdateOp, UpdateStatement, WriteOp};
use document::{DocWriter, Result, Value};
use hashbrown::HashMap;

/// Makes the differences right, and what follows from them.
pub(crate) async fn write(
    life: &Life,
    began: &mut OwnTransaction<'_>,
    rule: &Rule,
    differences: &[HostDifference],
) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    check_way(rule, differences)?;
    run(life, began, rule, &update_op(&rule.host, statements(life, differences))).await
}

/// The same for a rule that is not applied: as a client would write it, so that the collection's validator is asked.
pub(crate) async fn write_once(
    life: &Life,
    began: &mut OwnTransaction<'_>,
    rule: &Rule,
    differences: &[HostDifference],
) -> Result<()> {
    check_way(rule, differences)?;
    let op = match update_op(&rule.host, statements(life, differences)) {
        WriteOp::Update(op) => WriteOp::Update(UpdateOp { bypass_validation: false, ..op }),
        other => other,
    };
    run(life, began, rule, &op).await
}

/// What is on the way to a field would be lost: it came past Pleach, and stays.
fn check_way(rule: &Rule, differences: &[HostDifference]) -> Result<()> {
    let obstacle = differences.iter().find_map(|difference| difference.obstacle.as_ref());
    match (obstacle, rule.kept_field()) {
        (Some(obstacle), Some(field)) => Err(obstacle.error(&**field)),
        _ => Ok(()),
    }
}

fn statements(life: &Life, differences: &[HostDifference]) -> Vec<UpdateStatement> {
    match life.backend.facts().runs_our_code {
        true => differences.iter().map(one).collect(),
        false => grouped(differences),
    }
}

fn one(difference: &HostDifference) -> UpdateStatement {
    update_one(Filter::equality("_id", &difference.id), difference.update.clone())
}

/// So many documents share a statement.
const TOGETHER: usize = 1_000;

/// One statement for all documents that become right by the same words: a statement costs a server more than a document in it.
/// That the documents are as they were looked at is the transaction's business.
fn grouped(differences: &[HostDifference]) -> Vec<UpdateStatement> {
    let mut groups: Vec<Vec<&HostDifference>> = Vec::new();
    let mut open: HashMap<Vec<u8>, usize> = HashMap::new();
    for difference in differences {
        let mut words = DocWriter::new();
        words.append("u", &difference.update.source);
        if let Some(constants) = &difference.update.constants {
            words.append("c", &Value::Document(constants.borrow()));
        }
        let at = open.entry(words.finish().as_bytes().to_vec()).or_insert(groups.len());
        match groups.get_mut(*at).filter(|group| group.len() < TOGETHER) {
            Some(group) => group.push(difference),
            None => {
                *at = groups.len();
                groups.push(vec![difference]);
            }
        }
    }
    groups.iter().flat_map(|group| together(group)).collect()
}

fn together(group: &[&HostDifference]) -> Option<UpdateStatement> {
    let (first, more) = group.split_first()?;
    if more.is_empty() {
        return Some(one(first));
    }
    let ids = group.iter().map(|difference| difference.id.clone()).collect();
    let among = Filter::among("_id", ids);
    Some(UpdateStatement { multi: true, ..update_one(among, first.update.clone()) })
}

/// Deletes hosts whose source is gone (`when_deleted: cascade`), through the layer: they may be what others come from.
pub(crate) async fn delete(life: &Life, began: &mut OwnTransaction<'_>, rule: &Rule, filter: Filter) -> Result<()> {
    let statements = vec![DeleteStatement::all(filter)];
    let op = Delete::of(rule.host.clone(), statements);
    let (session, context) = (&mut began.session, began.context);
    let mut written = life.patterned.write(session, context, &WriteOp::Delete(op), &Capture::Nothing).await?;
    written.errors.pop().map_or(Ok(()), |failed| Err(failed.error))
}

/// Runs statements on the hosts of a rule, and what follows from them.
pub(crate) async fn run(life: &Life, began: &mut OwnTransaction<'_>, rule: &Rule, op: &WriteOp) -> Result<()> {
    let capture = life.patterned.watched(rule);
    let (session, context) = (&mut began.session, began.context);
    let mut written = life.backend.write(session, context, op, &capture).await?;
    if let Some(failed) = written.errors.pop() {
        return Err(failed.error);
    }
    match written.changes.is_empty() {
        true => Ok(()),
        false => life.patterned.follow(session, context, rule, written.changes).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Fate;
    use bson::{Bson, bson, doc};
    use document::Doc;
    use document::pipeline::expr::Names;
    use document::update::Update;

    fn difference(id: i32, update: Bson) -> HostDifference {
        HostDifference {
            id: Value::Int32(id),
            keys: Default::default(),
            stored: Value::Missing,
            expected: Value::Missing,
            fate: Fate::Filled,
            obstacle: None,
            update: Update::parse(&Value::from(update), &[], &mut Names::new()).unwrap(),
        }
    }

    #[test]
    fn documents_that_need_the_same_words_share_a_statement() {
        let ann = || bson!({ "$set": { "author": { "name": "Ann" } } });
        let bob = || bson!({ "$set": { "author": { "name": "Bob" } } });
        let mut all = vec![difference(1, ann()), difference(2, bob()), difference(3, ann())];
        let statements = grouped(&all);
        let words = |statement: &UpdateStatement| (statement.filter.source.clone(), statement.multi);
        assert_eq!(
            statements.iter().map(words).collect::<Vec<_>>(),
            [(Doc::from(doc! { "_id": { "$in": [1, 3] } }), true), (Doc::from(doc! { "_id": { "$eq": 2 } }), false),]
        );
        assert_eq!(statements[0].update.source, Value::from(ann()));
        all.extend((10..10 + i32::try_from(2 * TOGETHER).unwrap()).map(|id| difference(id, ann())));
        assert_eq!(grouped(&all).len(), 4);
    }
}
