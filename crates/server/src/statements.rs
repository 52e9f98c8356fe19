//! The statements of a write command: how many there may be, those that cannot be compiled, and what came of each.
//!
//! A statement that cannot be compiled fails alone, at its place: the ones before it are run (and, unordered, those after it).

use crate::dispatch::Call;
use crate::params::Param;
use document::backend::Backend;
use document::op::{Capture, Hint, WriteError, WriteOp, Written};
use document::value::show;
use document::{Array, Code, Doc, DocWriter, Error, Result, Value};
use wire::limits::MAX_BATCH;

/// The parameters that all write commands share.
pub(crate) struct Common {
    pub(crate) ordered: bool,
    pub(crate) bypass_validation: bool,
    first_statement: Option<i32>,
    statement_ids: Option<Vec<i32>>,
}

impl Default for Common {
    fn default() -> Self {
        Common { ordered: true, bypass_validation: false, first_statement: None, statement_ids: None }
    }
}

impl Common {
    /// Takes the parameter if it is one of these.
    pub(crate) fn take(&mut self, param: &Param<'_>) -> Result<bool> {
        match param.name() {
            "ordered" => self.ordered = param.bool()?,
            "bypassDocumentValidation" => self.bypass_validation = param.loose_bool()?,
            "stmtId" => self.first_statement = Some(i32::try_from(param.integer()?).unwrap_or(i32::MAX)),
            "stmtIds" => {
                let id = |value: Value<'_>| value.as_number().and_then(|number| number.to_i32_truncated());
                self.statement_ids = Some(param.clone().array()?.iter().filter_map(id).collect());
            }
            // For encrypted and time-series collections, sent by drivers with their defaults.
            "encryptionInformation" | "isTimeseriesNamespace" | "collectionUUID" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checks how many statements there are, and that each has its retry number.
    pub(crate) fn check(&self, count: usize) -> Result<()> {
        if !(1..=MAX_BATCH).contains(&count) {
            return Err(Error::new(
                Code::InvalidLength,
                format!("Write batch sizes must be between 1 and {MAX_BATCH}. Got {count} operations."),
            ));
        }
        match &self.statement_ids {
            Some(ids) if ids.len() != count => Err(Error::new(
                Code::InvalidLength,
                format!(
                    "Number of statement ids must match the number of batch entries. Got {} statement ids but {count} operations.",
                    ids.len()
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// What was compiled, and what could not be.
pub(crate) struct Compiled<T> {
    pub(crate) statements: Vec<T>,
    /// The place of each compiled statement in the command; empty if nothing was left out.
    places: Vec<usize>,
    errors: Vec<WriteError>,
}

impl<T> Compiled<T> {
    /// Compiles statements one by one; an ordered command stops at the first that cannot be.
    pub(crate) fn from(all: impl ExactSizeIterator<Item = Result<T>>, ordered: bool) -> Compiled<T> {
        let mut compiled =
            Compiled { statements: Vec::with_capacity(all.len()), places: Vec::new(), errors: Vec::new() };
        for (index, statement) in all.enumerate() {
            match statement {
                Ok(statement) => {
                    if !compiled.errors.is_empty() {
                        compiled.places.push(index);
                    }
                    compiled.statements.push(statement);
                }
                Err(error) => {
                    if compiled.errors.is_empty() {
                        compiled.places = (0..index).collect();
                    }
                    compiled.errors.push(WriteError { index, error });
                    if ordered {
                        break;
                    }
                }
            }
        }
        compiled
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Takes the statements out, with the retry number of each: no numbers if they count from 0.
    pub(crate) fn take(&mut self, common: &Common) -> (Vec<T>, Vec<i32>) {
        let count = self.statements.len();
        let statements = std::mem::take(&mut self.statements);
        if self.places.is_empty() && common.first_statement.is_none() && common.statement_ids.is_none() {
            return (statements, Vec::new());
        }
        let place = |at: usize| self.places.get(at).copied().unwrap_or(at);
        let id = |at: usize| match &common.statement_ids {
            Some(ids) => ids.get(place(at)).copied().unwrap_or_default(),
            None => {
                common.first_statement.unwrap_or_default().saturating_add(i32::try_from(place(at)).unwrap_or_default())
            }
        };
        (statements, (0..count).map(id).collect())
    }

    /// Puts the outcome of the compiled statements back to their places and adds the others' errors.
    pub(crate) fn merge(self, mut written: Written, ordered: bool) -> Written {
        let place = |at: usize| self.places.get(at).copied().unwrap_or(at);
        for error in &mut written.errors {
            error.index = place(error.index);
        }
        for (index, _) in &mut written.upserted {
            *index = place(*index);
        }
        if !ordered || written.errors.is_empty() {
            written.errors.extend(self.errors);
            written.errors.sort_by_key(|error| error.index);
        }
        written
    }
}

impl<T> Compiled<T> {
    /// The one statement that `explain` takes: `op` holds what was compiled of `count`.
    pub(crate) fn explained(self, op: Option<WriteOp>, count: usize) -> Result<WriteOp> {
        if count != 1 {
            return Err(Error::new(Code::InvalidLength, "explained write batches must be of size 1"));
        }
        match (op, self.errors.into_iter().next()) {
            (Some(op), None) => Ok(op),
            (_, Some(failed)) => Err(failed.error),
            (None, None) => Err(Error::bad_value("there is no statement to explain")),
        }
    }
}

/// Runs a write.
pub(crate) async fn write(call: &mut Call<'_>, op: &WriteOp) -> Result<Written> {
    let backend: &dyn Backend = &*call.server.backend;
    backend.write(&mut call.session, &call.context, op, &Capture::Nothing).await
}

/// Writes `n`, `writeErrors`, `retriedStmtIds`; update adds its own fields behind.
pub(crate) fn report(call: &mut Call<'_>, written: &Written) {
    call.statement_failed = !written.errors.is_empty();
    call.reply.append("n", count(written.n));
    call.reply.append_write_errors(&written.errors);
    if !written.retried.is_empty() {
        let ids: Array<'static> = written.retried.iter().map(|id| Value::Int32(*id)).collect();
        call.reply.append("retriedStmtIds", ids);
    }
}

/// A count as the wire has it: an int, or a long if it must be.
pub(crate) fn count(number: u64) -> Value<'static> {
    i32::try_from(number).map_or_else(|_| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)), Value::Int32)
}

/// An index by its name or by its key pattern.
pub(crate) fn hint(value: &Value<'_>) -> Result<Option<Hint>> {
    match value {
        Value::String(name) if name.as_bytes().is_empty() => Ok(None),
        Value::String(name) => Ok(Some(Hint::Name(name.to_string()))),
        Value::Document(keys) if keys.is_empty() => Ok(None),
        Value::Document(keys) => match keys.get("$natural") {
            Some(direction) => match direction.as_number().map(|number| number.to_i64_saturated()) {
                Some(1 | -1) if keys.iter().count() == 1 => {
                    Ok(Some(Hint::Natural { descending: direction.as_i64_exact() == Some(-1) }))
                }
                Some(1 | -1) => Err(Error::bad_value(format!(
                    "$natural hint cannot be combined with other keys: {}",
                    show::document(keys)
                ))),
                _ => Err(Error::bad_value("$natural must be 1 or -1")),
            },
            None => Ok(Some(Hint::Keys(keys.clone().into_owned()))),
        },
        _ => Err(Error::failed_to_parse("Hint must be a string or an object")),
    }
}

/// `{ name: value }`.
pub(crate) fn single(name: &str, value: &Value<'_>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    writer.append(name, value);
    writer.finish()
}
