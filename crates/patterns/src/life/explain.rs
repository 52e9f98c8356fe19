//! `pleach explain`: what a command would do, rules included, as plain MQL. The plan is run and given up again: nothing is kept.

mod known;
pub(crate) mod notes;
mod read;
mod sink;
mod write;

use crate::active::Rules;
use crate::execute::outlier::{explained, reads};
use crate::execute::plan::{Action, Plan, Step};
use crate::execute::read::planned;
use crate::execute::rights::discreet::discreet;
use crate::execute::rights::{Rights, namespaces};
use crate::layer::explain;
use crate::layer::refused::may_drop;
use crate::life::Life;
use crate::life::verbs::{EXPLAIN, Resource};
use crate::mql;
use document::backend::{Backend, BatchLimit, Session};
use document::filter::Filter;
use document::op::{AdminOp, Context, Count, Hint, Namespace, ReadOp};
use document::pipeline::expr::{self, Names, Scope};
use document::{Array, Code, Doc, Error, Result, Text, Value};

/// A command that is to be explained.
struct ExplainedCommand<'c> {
    name: Text<'c>,
    target: Value<'c>,
    db: &'c str,
    command: &'c Doc<'c>,
    /// The variables of its `let`.
    names: Names,
    /// Whether the store compares text as a collation says.
    collates: bool,
}

impl Life {
    /// `{ rules, steps: [ { rule, kind, namespace, command } ], fences, deferred, cost, notes }`.
    /// The client needs the right to the command itself; its steps are rehearsed on the client's own line.
    pub(crate) async fn explain(
        &self,
        client: &mut Session,
        context: &Context,
        db: &str,
        command: &Doc<'_>,
        rights: &Rights,
    ) -> Result<Doc<'static>> {
        let explained = ExplainedCommand::of(db, command, context, self.patterned.facts().collates)?;
        let context = &explained.context(context);
        let Some(op) = write::write_op(&explained)? else {
            let (steps, notes) = match read::read_op(&explained)? {
                Some(read) => {
                    let rights = &rights.clone().naming([read.ns().clone()]);
                    let steps = self.explain_read(client, context, &explained, &read, rights).await?;
                    (steps, notes::of_read(&self.patterned.rules(), &read))
                }
                None => (self.explain_drop(client, context, &explained, rights).await?, Vec::new()),
            };
            return Ok(notes::with(&steps.unwrap_or_else(|| forwarded_step(&explained)), &notes));
        };
        let rights = &rights.clone().naming([op.ns().clone()]);
        let rules = self.patterned.rules();
        rights.need_to_write(&op, rules.shaped(op.ns()).map(|shaped| &**shaped))?;
        drop(rules);
        let plan = explain::plan(&self.patterned.executor, client, context, &op).await;
        let plan = checked(rights, &self.patterned.rules(), op.ns(), plan)?;
        let notes = notes::of_write(&self.patterned.rules(), &op);
        let shown = match plan.steps.is_empty() {
            true => Plan::of(vec![Step::from(Action::Write(op))]).with_errors(plan.errors).to_mql(),
            false => plan.to_mql(),
        };
        Ok(notes::with(&shown, &notes))
    }

    async fn explain_read(
        &self,
        client: &mut Session,
        context: &Context,
        asked: &ExplainedCommand<'_>,
        read: &ReadOp,
        rights: &Rights,
    ) -> Result<Option<Doc<'static>>> {
        rights.need("find", read.ns())?;
        if let Some(shaped) = self.patterned.rules().shaped(read.ns()) {
            shaped.places.iter().try_for_each(|place| rights.need("find", &place.stored))?;
        }
        match read {
            ReadOp::Aggregate(op) if op.pipeline.sink.is_some() => {
                self.explain_sink(client, context, asked, op, rights).await
            }
            read => {
                let executor = &self.patterned.executor;
                let rules = executor.rules();
                if let Some(local) = reads::concerned(&rules, read) {
                    let overflows = explained::overflows(local, read, context)?;
                    overflows.iter().try_for_each(|overflow| rights.need("find", overflow))?;
                    return Ok(Some(explained::plan(local, read, context)?.to_mql()));
                }
                planned(&*executor.inner, &rules, context, read)
            }
        }
    }

    /// `drop` and `dropDatabase`, with how many documents go; `None` for all else.
    async fn explain_drop(
        &self,
        client: &mut Session,
        context: &Context,
        explained: &ExplainedCommand<'_>,
        rights: &Rights,
    ) -> Result<Option<Doc<'static>>> {
        let (filter, namespace) = match explained.name.as_str() {
            "drop" => {
                let ns = explained.collection()?;
                rights.need("dropCollection", &ns)?;
                if !self.is_timeseries(&ns) {
                    may_drop(&self.patterned.executor, context, &self.patterned.rules(), &ns).await?;
                }
                (Filter::equality("name", &Value::from(&*ns.collection)), ns.to_string())
            }
            "dropDatabase" => {
                rights.need_on_database("dropDatabase", explained.db)?;
                (Filter::all(), explained.db.to_owned())
            }
            _ => return Ok(None),
        };
        let mut session = client.sibling();
        let list = AdminOp::ListCollections { db: explained.db.to_owned(), filter, name_only: true };
        let mut gone = 0;
        for row in self.patterned.admin(&mut session, context, list).await? {
            let text = |name: &str| row.get(name).and_then(|value| value.as_str().map(str::to_owned));
            let Some(name) = text("name").filter(|_| text("type").as_deref() == Some("collection")) else { continue };
            let ns = Namespace::new(explained.db, &name);
            if crate::rule::names::is_bookkeeping(&ns) || name.starts_with("system.") {
                continue;
            }
            let all = ReadOp::Count(Count { ns, filter: Filter::all(), skip: 0, limit: None, hint: None });
            let one = BatchLimit { documents: 1, bytes: 1 << 20 };
            let mut cursor = self.patterned.inner().read(&mut session, context, all).await?;
            for counted in cursor.next(&mut session, context, one).await?.documents {
                gone += counted.get("n").and_then(|n| n.as_i64_exact()).map_or(0, i64::unsigned_abs);
            }
        }
        Ok(Some(command_step("command", &namespace, explained.command, Some(gone))))
    }
}

impl<'c> ExplainedCommand<'c> {
    fn of(db: &'c str, command: &'c Doc<'c>, context: &Context, collates: bool) -> Result<ExplainedCommand<'c>> {
        let Some((name, target)) = command.iter().next() else {
            return Err(Error::failed_to_parse("pleach explain needs a command"));
        };
        if !known::is_command(name.as_str()) {
            let message = format!("Explain failed due to unknown command: {name}");
            return Err(Error::new(Code::CommandNotFound, message));
        }
        let mut names = Names::new();
        let variables = match command.get("let") {
            Some(Value::Document(variables)) => Some(variables),
            _ => None,
        };
        for (name, value) in variables.iter().flat_map(Doc::iter) {
            let value = expr::parse(&value, &mut names)?;
            let value = value.eval(&mut Scope::new(Doc::empty(), &context.env))?.into_owned();
            names.bind_constant(name.as_str(), value);
        }
        Ok(ExplainedCommand { name, target, db, command, names, collates })
    }

    /// The collection that it names first.
    fn collection(&self) -> Result<Namespace> {
        match self.target.as_str() {
            Some(collection) => Ok(Namespace::new(self.db, collection)),
            None => {
                let kind = self.target.type_name();
                Err(Error::type_mismatch(format!("collection name has invalid type {kind}")))
            }
        }
    }

    /// The context of the command, with its `let`.
    fn context(&self, asked: &Context) -> Context {
        let mut context = asked.clone();
        context.sent.variables = match self.command.get("let") {
            Some(Value::Document(variables)) => Some(variables.into_owned()),
            _ => None,
        };
        context
    }

    /// The collation of the command or of one of its statements; the embedded store has the simple one only.
    fn collation(&self, of: &Doc<'_>) -> Result<Option<Doc<'static>>> {
        let Some(Value::Document(collation)) = of.get("collation") else { return Ok(None) };
        let locale = collation.get("locale");
        match locale.as_ref().and_then(Value::as_str) {
            _ if collation.is_empty() => Ok(None),
            _ if self.collates => Ok(Some(collation.into_owned())),
            Some("simple") => Ok(None),
            _ => Err(Error::not_implemented("a collation other than { locale: \"simple\" }")),
        }
    }
}

/// A plan is shown only to a client that may read every collection in it. A rehearsal that was refused says no more.
pub(crate) fn checked(rights: &Rights, rules: &Rules, asked: &Namespace, plan: Result<Plan>) -> Result<Plan> {
    let mut plan = plan.map_err(|error| discreet(rights, rules, asked, error))?;
    for failed in &mut plan.errors {
        failed.error = discreet(rights, rules, asked, failed.error.clone());
    }
    let of_rules = plan.steps.iter().flat_map(|step| &step.rules).flat_map(|rule| namespaces(rule));
    let mut all = plan.steps.iter().filter_map(|step| step.namespace().cloned()).chain(of_rules);
    all.try_for_each(|ns| EXPLAIN.need(rights, Resource::RuleCollections, &ns))
        .map_err(|error| discreet(rights, rules, asked, error))?;
    Ok(plan)
}

/// What no rule concerns is one step: itself.
fn forwarded_step(explained: &ExplainedCommand<'_>) -> Doc<'static> {
    let namespace = match explained.target.as_str() {
        Some(collection) => format!("{}.{collection}", explained.db),
        None => explained.db.to_owned(),
    };
    let kind = match explained.name.as_str() {
        "find" | "aggregate" | "count" | "distinct" | "getMore" => "read",
        _ => "command",
    };
    command_step(kind, &namespace, explained.command, None)
}

/// The command as the only step, with how many documents it writes if that is known.
fn command_step(kind: &'static str, namespace: &str, command: &Doc<'_>, written: Option<u64>) -> Doc<'static> {
    let count = written.map(|written| i64::try_from(written).unwrap_or(i64::MAX));
    let step = mql::object([
        ("rule", Value::Null),
        ("kind", Value::from(kind)),
        ("namespace", Value::from(namespace)),
        ("command", Value::Document(command.borrow())),
        ("documents", count.map_or(Value::Missing, Value::Int64)),
    ]);
    let none = || Value::Array(Array::empty());
    let (read, bytes) = (i64::from(kind == "read"), i64::try_from(command.as_bytes().len()).unwrap_or(i64::MAX));
    let numbers = [("read", read), ("written", count.unwrap_or_default()), ("deferred", 0), ("bytes", bytes)];
    let cost = mql::object(numbers.map(|(name, number)| (name, Value::Int64(number))));
    mql::document([
        ("rules", none()),
        ("steps", mql::list([step])),
        ("fences", none()),
        ("deferred", none()),
        ("cost", cost),
    ])
}

fn filter(doc: &Doc<'_>, name: &str, names: &mut Names) -> Result<Filter> {
    match doc.get(name) {
        Some(Value::Document(query)) => Filter::parse(&query, names),
        None => Ok(Filter::all()),
        Some(other) => Err(Error::type_mismatch(format!("'{name}' must be a document, not {}", other.type_name()))),
    }
}

fn hint(doc: &Doc<'_>) -> Result<Option<Hint>> {
    match doc.get("hint") {
        None => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.to_string()).filter(|name| !name.is_empty()).map(Hint::Name)),
        Some(Value::Document(keys)) => match keys.get("$natural") {
            Some(direction) => Ok(Some(Hint::Natural { descending: direction.as_i64_exact() == Some(-1) })),
            None if keys.is_empty() => Ok(None),
            None => Ok(Some(Hint::Keys(keys.into_owned()))),
        },
        Some(_) => Err(Error::failed_to_parse("Hint must be a string or an object")),
    }
}

fn is_set(doc: &Doc<'_>, name: &str) -> bool {
    doc.get(name).is_some_and(|value| value.is_truthy())
}

/// What drivers add to every command.
const GENERIC: &[&str] = &[
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "collectionUUID",
    "comment",
    "encryptionInformation",
    "isTimeseriesNamespace",
    "legacyRuntimeConstants",
    "lsid",
    "maxTimeMS",
    "readConcern",
    "runtimeConstants",
    "startTransaction",
    "txnNumber",
    "writeConcern",
];

/// Refuses a field that a server does not know: it may be misspelt.
fn only(structure: &str, doc: &Doc<'_>, known: &[&str]) -> Result<()> {
    let is_known = |name: &str| known.contains(&name) || GENERIC.contains(&name) || name.starts_with('$');
    match doc.iter().find(|(name, _)| !is_known(name.as_str())) {
        Some((name, _)) => {
            let message = format!("BSON field '{structure}.{name}' is an unknown field.");
            Err(Error::new(Code::Location(40415), message))
        }
        None => Ok(()),
    }
}
