//! `Memory`: the smallest backend that has documents, retries and transactions. Some collection names misbehave on purpose.

use document::backend::{
    Answer, Backend, Batch, BatchLimit, Cursor, Facts, FenceKey, Mode, Pipelining, Remote, Session, Transaction,
};
use document::filter::{Details, Filter};
use document::op::{AdminOp, Capture, Context, Explained, Namespace, ReadOp, Verbosity, WriteError, WriteOp, Written};
use document::update::Applied;
use document::value::order;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Collections = BTreeMap<String, Vec<Doc<'static>>>;

#[derive(Default)]
pub(crate) struct Memory(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    collections: Collections,
    version: u64,
    retried: BTreeSet<([u8; 16], i64, i32)>,
}

struct Snapshot {
    shared: Arc<Mutex<State>>,
    collections: Collections,
    since: u64,
}

struct Rows(std::vec::IntoIter<Doc<'static>>);

impl Cursor for Rows {
    fn next<'a>(&'a mut self, _: &'a mut Session, _: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        let (mut documents, mut bytes) = (Vec::new(), 0);
        while documents.len() < limit.documents {
            let Some(doc) = self.0.as_slice().first() else {
                return Box::pin(async { Ok(Batch { documents, exhausted: true }) });
            };
            bytes += doc.as_bytes().len();
            if bytes > limit.bytes && !documents.is_empty() {
                break;
            }
            documents.extend(self.0.next());
        }
        Box::pin(async { Ok(Batch { documents, exhausted: false }) })
    }
}

impl Transaction for Snapshot {
    fn commit<'a>(self: Box<Self>, _: &'a Context) -> Answer<'a, ()> {
        let mut state = self.shared.lock().unwrap();
        let result = if state.version == self.since {
            state.collections = self.collections;
            state.version += 1;
            Ok(())
        } else {
            Err(conflict())
        };
        drop(state);
        Box::pin(async { result })
    }

    fn abort(self: Box<Self>) {}

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

fn conflict() -> Error {
    Error::new(Code::WriteConflict, "WriteConflict error: this operation conflicted with another operation.")
}

impl Memory {
    fn with<R>(&self, session: &mut Session, work: impl FnOnce(&mut Collections) -> R) -> R {
        if let Some(transaction) = session.transaction.as_mut() {
            let snapshot = transaction.as_any_mut().downcast_mut::<Snapshot>().unwrap();
            return work(&mut snapshot.collections);
        }
        work(&mut self.0.lock().unwrap().collections)
    }

    fn change<R>(&self, session: &mut Session, work: impl FnOnce(&mut Collections) -> R) -> R {
        if session.transaction.is_none() {
            self.0.lock().unwrap().version += 1;
        }
        self.with(session, work)
    }

    fn matching(
        &self,
        session: &mut Session,
        context: &Context,
        ns: &Namespace,
        filter: &Filter,
    ) -> Result<Vec<Doc<'static>>> {
        let all = self.with(session, |collections| collections.get(&ns.to_string()).cloned().unwrap_or_default());
        let mut found = Vec::new();
        for doc in all {
            if filter.matches(&doc, &context.env)? {
                found.push(doc);
            }
        }
        Ok(found)
    }
}

fn id(doc: &Doc<'static>) -> Value<'static> {
    doc.get("_id").unwrap_or(Value::Missing)
}

fn insert(documents: &mut Vec<Doc<'static>>, doc: &Doc<'static>) -> Result<()> {
    if documents.iter().any(|other| order::equal(&id(other), &id(doc))) {
        return Err(Error::new(Code::DuplicateKey, "E11000 duplicate key error"));
    }
    documents.push(doc.clone());
    Ok(())
}

impl Backend for Memory {
    fn facts(&self) -> Facts {
        Facts::EMBEDDED
    }

    fn begin<'a>(&'a self, session: &'a mut Session, _: &'a Context) -> Answer<'a, ()> {
        let state = self.0.lock().unwrap();
        let snapshot =
            Snapshot { shared: self.0.clone(), collections: state.collections.clone(), since: state.version };
        session.transaction = Some(Box::new(snapshot));
        Box::pin(async { Ok(()) })
    }

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        Box::pin(async move {
            let (ns, filter) = match &op {
                ReadOp::Find(find) => (&find.ns, &find.filter),
                ReadOp::Count(count) => (&count.ns, &count.filter),
                _ => return Err(Error::not_implemented("this read")),
            };
            match &*ns.collection {
                "panics" => panic!("asked for"),
                "never_ends" => loop {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    (context.env.interrupt)()?;
                },
                _ => {}
            }
            let found = self.matching(session, context, ns, filter)?;
            let rows = match op {
                ReadOp::Count(_) => {
                    let mut count = DocWriter::new();
                    count.append("n", &Value::Int64(found.len().try_into().unwrap()));
                    vec![count.finish()]
                }
                _ => found,
            };
            Ok(Box::new(Rows(rows.into_iter())) as Box<dyn Cursor>)
        })
    }

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        _: &'a Capture,
    ) -> Answer<'a, Written> {
        Box::pin(async move {
            let mut written = Written::default();
            match op {
                WriteOp::Insert(op) => {
                    if &*op.ns.collection == "conflicts" {
                        return Err(conflict());
                    }
                    for (index, doc) in op.documents.iter().enumerate() {
                        let statement = op.statement_ids.get(index).copied().unwrap_or(index.try_into().unwrap());
                        if let (Some(id), Some(number)) = (session.id, session.retry)
                            && !self.0.lock().unwrap().retried.insert((id, number, statement))
                        {
                            written.retried.push(statement);
                            written.n += 1;
                            continue;
                        }
                        let result = self.change(session, |all| insert(all.entry(op.ns.to_string()).or_default(), doc));
                        match result {
                            Ok(()) => written.n += 1,
                            Err(error) => {
                                written.errors.push(WriteError { index, error });
                                if op.ordered {
                                    break;
                                }
                            }
                        }
                    }
                }
                WriteOp::Update(op) => {
                    for statement in &op.statements {
                        for doc in self.matching(session, context, &op.ns, &statement.filter)? {
                            written.n += 1;
                            if let Applied::Changed(after) =
                                statement.update.apply(&doc, &Details::default(), &context.env)?
                            {
                                written.modified += 1;
                                self.change(session, |all| {
                                    for place in all.entry(op.ns.to_string()).or_default() {
                                        if order::equal(&id(place), &id(&doc)) {
                                            *place = after.clone();
                                        }
                                    }
                                });
                            }
                        }
                    }
                }
                WriteOp::Delete(op) => {
                    for statement in &op.statements {
                        for doc in self.matching(session, context, &op.ns, &statement.filter)? {
                            written.n += 1;
                            self.change(session, |all| {
                                all.entry(op.ns.to_string()).or_default().retain(|kept| kept != &doc);
                            });
                        }
                    }
                }
                WriteOp::FindAndModify(_) => return Err(Error::not_implemented("findAndModify")),
            }
            Ok(written)
        })
    }

    fn fences<'a>(&'a self, _: &'a mut Session, _: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn recall<'a>(&'a self, _: &'a mut Session, _: &'a Context, _: &'a str, _: &'a [i32]) -> Answer<'a, Written> {
        Box::pin(async { Ok(Written::default()) })
    }

    fn remember<'a>(
        &'a self,
        _: &'a mut Session,
        _: &'a Context,
        _: &'a str,
        _: &'a [i32],
        _: &'a Written,
    ) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn committed(&self, _: &[u8; 16], _: i64) -> bool {
        false
    }

    fn pipelining(&self) -> Option<&dyn Pipelining> {
        None
    }

    fn remote(&self) -> Option<&dyn Remote> {
        None
    }

    fn explain<'a>(
        &'a self,
        _: &'a mut Session,
        _: &'a Context,
        _: Explained,
        _: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        Box::pin(async { Ok(Doc::empty()) })
    }

    fn admin<'a>(&'a self, session: &'a mut Session, _: &'a Context, op: AdminOp) -> Answer<'a, Vec<Doc<'static>>> {
        Box::pin(async move {
            match op {
                AdminOp::ListCollections { .. } => Ok(self.with(session, |all| {
                    let named = |name: &String| {
                        let mut writer = DocWriter::new();
                        writer.append("name", &Value::from(name.split_once('.').unwrap().1));
                        writer.finish()
                    };
                    all.keys().map(named).collect()
                })),
                _ => Ok(vec![Doc::empty()]),
            }
        })
    }

    fn cluster_time(&self) -> u64 {
        (1 << 32) + self.0.lock().unwrap().version
    }
}
