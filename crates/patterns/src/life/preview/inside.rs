//! The counts of a field inside a real MongoDB: its definition runs there, and only numbers come back.

use crate::fields::{CopyProgram, Program, TallyProgram};
use crate::life::access::{Access, aggregate};
use crate::life::preview::counts::Counts;
use crate::life::{catalog, indexes};
use crate::mql::{call, call_with, cond, field, list, literal, object, with};
use crate::rule::{Fate, Rule, Upkeep};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Result, Value};
use std::sync::Arc;

/// The counts; `None` if the hosts must be walked instead.
pub(super) async fn counts(at: &mut Access<'_>, rule: &Arc<Rule>) -> Result<Option<Counts>> {
    let pipelines = match (Program::new(rule)?, &rule.upkeep) {
        (Some(Program::Tally(program)), _) => tallies(&program)?,
        (Some(Program::Copy(program)), Upkeep::Link(link)) => {
            let is_indexed = match link.foreign.path.dotted().as_str() {
                "_id" => true,
                _ => !indexes::missing(at, rule).await?.iter().any(|needed| needed.ns == link.source),
            };
            // Without an index each `$lookup` reads the whole source.
            match program.is_plain() && is_indexed {
                true => vec![copies(&program, link.local.path.dotted(), rule.field.dotted())],
                false => return Ok(None),
            }
        }
        (None, Upkeep::Expression(expression)) => {
            // As the value of a variable: a plain number in `$project` would not be a value.
            let expected = with([("own", Value::Null)], expression.source.borrow());
            let shown = [("stored", field(&rule.field.dotted())), ("expected", expected)];
            vec![vec![call("$project", object(shown)), grouping(Value::Int32(1))]]
        }
        _ => return Ok(None),
    };
    let mut counts = Counts::default();
    for stages in pipelines {
        let stages: Array<'static> = stages.into_iter().collect();
        let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
        for row in at.all(aggregate(&rule.host, pipeline)).await? {
            let fate = match row.get("_id").as_ref().and_then(|fate| fate.as_str()) {
                Some("right") => Fate::Right,
                Some("sourceless") => Fate::Sourceless,
                Some("retyped") => Fate::Retyped,
                Some("filled") => Fate::Filled,
                Some("corrected") => Fate::Corrected,
                Some("removed") => Fate::Removed,
                _ => Fate::Absent,
            };
            counts.add(fate, u64::try_from(catalog::long(row.get("n"))).unwrap_or(0));
        }
    }
    Ok(Some(counts))
}

/// `{ $group: { _id: <fate>, n: { $sum: … } } }` over documents with `stored`, `expected` and, of copies, `sourceless`. Other types
/// inside a copy are not seen: MongoDB compares documents by value.
fn grouping(amount: Value<'static>) -> Value<'static> {
    let is_missing = |path: &str| call_with("$eq", [call("$type", field(path)), Value::from("missing")]);
    let equal = call_with("$eq", [field("stored"), field("expected")]);
    let without = cond(is_missing("expected"), Value::from("absent"), Value::from("filled"));
    let same_type = call_with("$eq", [call("$type", field("stored")), call("$type", field("expected"))]);
    let kept = cond(field("sourceless"), Value::from("sourceless"), Value::from("right"));
    let present = cond(equal, cond(same_type, kept, Value::from("retyped")), Value::from("corrected"));
    let stored = cond(is_missing("expected"), Value::from("removed"), present);
    let fate = cond(is_missing("stored"), without, stored);
    call("$group", object([("_id", fate), ("n", call("$sum", amount))]))
}

/// Each pair of reference and copy is looked at once, however many hosts have it.
fn copies(program: &CopyProgram, local: String, place: String) -> Vec<Value<'static>> {
    let mut stages = Vec::new();
    let pairs = local != "_id";
    if pairs {
        let pair = object([("ref", field(&local)), ("copy", field(&place))]);
        stages.push(call("$group", object([("_id", pair), ("n", call("$sum", Value::Int32(1)))])));
        // The number stays in `_id`: the definition keeps nothing else.
        let id =
            [("ref", "$_id.ref"), ("copy", "$_id.copy"), ("n", "$n")].map(|(name, path)| (name, Value::from(path)));
        let as_host = [("_id", object(id)), (&*local, Value::from("$_id.ref")), (&*place, Value::from("$_id.copy"))];
        stages.push(call("$project", object(as_host)));
    }
    stages.extend(program.outlook());
    stages.push(grouping(if pairs { field("_id.n") } else { Value::Int32(1) }));
    stages
}

/// Hosts that link meet their children in one pass, which needs no index; the others have no children.
fn tallies(program: &TallyProgram) -> Result<Vec<Vec<Value<'static>>>> {
    let rule = program.rule();
    let Upkeep::Link(link) = &rule.upkeep else { return Ok(Vec::new()) };
    let unlinked = list(["missing", "null", "undefined", "array"].map(Value::from));
    let is_unlinked = call_with("$in", [call("$type", field(&link.local.path.dotted())), unlinked]);
    let only = |condition: Value<'static>| call("$match", object([("$expr", condition)]));
    let mut linked = vec![only(call_with("$not", [is_unlinked.clone()]))];
    linked.extend(program.meeting()?.iter().map(Value::into_owned));
    linked.push(grouping(Value::Int32(1)));
    let empty = literal(program.evaluated(None)?.value);
    let shown =
        object([("stored", field(&rule.field.dotted())), ("expected", call_with("$ifNull", [empty, Value::Null]))]);
    let others = vec![only(is_unlinked), call("$project", shown), grouping(Value::Int32(1))];
    Ok(vec![linked, others])
}
