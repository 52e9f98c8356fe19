//! The one loop that makes a field right in some hosts: what each host wants, one query for what all of them want, and each host
//! with what was read. Writes, seeding, audit, repair and the outbox go through it. They differ in how the rows are read and fenced,
//! and in what is known of the hosts before ([`Basis`]).

use crate::rule::{Field, Rows, Wanted};
use document::value::order;
use document::{Doc, Env, Result, Value};

/// A host: as it was, and as it becomes.
pub(crate) struct Host {
    pub(crate) before: Option<Doc<'static>>,
    pub(crate) after: Doc<'static>,
}

impl Host {
    /// A host that no client writes.
    pub(crate) fn stored(doc: &Doc<'static>) -> Host {
        Host { before: Some(doc.clone()), after: doc.clone() }
    }
}

/// What is known of hosts before anything is read for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A client writes them: the value stays where nothing that it depends on changes. A host without room for it is an error.
    Written,
    /// The same, and no source of theirs is counted yet: they get the value of a host without sources.
    Uncounted,
    /// They are stored, and the value is made anew. A host whose link the field cannot follow is left alone.
    Stored,
    /// The same, and the state beside the value is right.
    State,
}

impl Basis {
    fn is_written(self) -> bool {
        matches!(self, Basis::Written | Basis::Uncounted)
    }
}

/// A field of some hosts, before what they want is read.
pub(crate) struct Evaluation<'f> {
    field: &'f dyn Field,
    basis: Basis,
    /// The places of the hosts that are not right yet.
    open: Vec<usize>,
    /// Whose rows they want: each key once, in order.
    keys: Vec<Value<'static>>,
}

impl<'f> Evaluation<'f> {
    /// Looks at what the hosts want. A value that was only taken away is put back at once.
    pub(crate) fn begin(field: &'f dyn Field, basis: Basis, hosts: &mut [Host]) -> Result<Evaluation<'f>> {
        let (mut open, mut keys) = (Vec::new(), Vec::new());
        for (number, host) in hosts.iter_mut().enumerate() {
            let before = host.before.as_ref().filter(|_| basis.is_written());
            let wanted = match field.wanted(&host.after, before) {
                // An array where the rule links single values.
                Err(_) if !basis.is_written() => continue,
                wanted => wanted?,
            };
            match wanted {
                Wanted::Nothing => continue,
                Wanted::Restored(restored) => {
                    check_room(field, &host.after)?;
                    host.after = restored;
                    continue;
                }
                Wanted::Rows(of) if matches!(basis, Basis::Written | Basis::Stored) => keys.extend(of),
                Wanted::Rows(_) | Wanted::Here => {}
            }
            open.push(number);
        }
        Ok(Evaluation { field, basis, open, keys: distinct(keys) })
    }

    /// Puts what was read into the hosts.
    pub(crate) fn finish(self, hosts: &mut [Host], rows: &Rows, env: &Env) -> Result<()> {
        for number in self.open {
            let Some(host) = hosts.get_mut(number) else { continue };
            if self.basis.is_written() {
                check_room(self.field, &host.after)?;
            }
            let by_state = match self.basis {
                Basis::State => self.field.shown_by_state(&host.after)?,
                Basis::Written | Basis::Uncounted | Basis::Stored => None,
            };
            host.after = match by_state {
                Some(right) => right,
                None => self.field.place(&host.after, host.before.as_ref(), rows, env)?,
            };
        }
        Ok(())
    }
}

/// Makes the field right in the hosts. `read` gives the rows of some keys; it is not called if there are none.
pub(crate) async fn evaluate<F: Future<Output = Result<Rows>>>(
    field: &dyn Field,
    basis: Basis,
    hosts: &mut [Host],
    env: &Env,
    read: impl FnOnce(Vec<Value<'static>>) -> F,
) -> Result<()> {
    let mut evaluation = Evaluation::begin(field, basis, hosts)?;
    let keys = std::mem::take(&mut evaluation.keys);
    let rows = if keys.is_empty() { Rows::default() } else { read(keys).await? };
    evaluation.finish(hosts, &rows, env)
}

fn check_room(field: &dyn Field, host: &Doc<'_>) -> Result<()> {
    field.obstacle(host).map_or(Ok(()), |obstacle| Err(obstacle.error(field)))
}

/// Each key once, in order.
pub(crate) fn distinct(mut keys: Vec<Value<'static>>) -> Vec<Value<'static>> {
    keys.sort_by(order::compare);
    keys.dedup_by(|a, b| order::equal(a, b));
    keys
}
