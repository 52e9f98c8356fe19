//! A command as it came: its name and target, the parameters that are its own, and those that every command may carry.
//!
//! The body is walked once; values point into the message.

use crate::params::{self, Param};
use bytes::Bytes;
use document::{Code, Doc, Error, Result, Text, Value};
use wire::Sequence;

pub(crate) struct Request<'a> {
    /// The name that the client used, which may be an alias.
    pub(crate) name: Text<'a>,
    /// The value of the first field: most often the collection's name.
    pub(crate) target: Value<'a>,
    pub(crate) db: Text<'a>,
    pub(crate) body: Doc<'a>,
    pub(crate) generic: Generic<'a>,
    /// Whether the backend compares text as a collation says.
    pub(crate) collates: bool,
    fields: Vec<(Text<'a>, Value<'a>)>,
    sequences: &'a [Sequence<'a>],
    frame: &'a Bytes,
}

/// The parameters that every command may carry.
#[derive(Default)]
pub(crate) struct Generic<'a> {
    pub(crate) session: Option<[u8; 16]>,
    pub(crate) txn_number: Option<i64>,
    pub(crate) autocommit: Option<bool>,
    pub(crate) start_transaction: Option<bool>,
    pub(crate) read_concern: Option<Value<'a>>,
    pub(crate) write_concern: Option<Value<'a>>,
    pub(crate) max_time_ms: Option<Value<'a>>,
    pub(crate) api_version: Option<Value<'a>>,
    pub(crate) api_strict: bool,
    pub(crate) api_deprecation_errors: bool,
    pub(crate) comment: Option<Value<'a>>,
}

impl<'a> Request<'a> {
    /// `body` and the sequences' documents have been validated; `frame` holds the bytes of both.
    pub(crate) fn parse(body: Doc<'a>, sequences: &'a [Sequence<'a>], frame: &'a Bytes) -> Result<Request<'a>> {
        let mut db = None;
        let request = Self::walk(body, sequences, frame, &mut db)?;
        match db {
            Some(Value::String(db)) => Ok(Request { db, ..request }),
            Some(other) => Err(Error::new(
                Code::Location(13111),
                format!("wrong type for field ($db) {} != string", other.type_name()),
            )),
            None => Err(Error::new(Code::Location(40571), "OP_MSG requests require a $db argument")),
        }
    }

    /// For a backend that compares text as a collation says, or does not.
    pub(crate) fn collating(self, collates: bool) -> Request<'a> {
        Request { collates, ..self }
    }

    /// A command inside another (`explain`) or in a legacy message: its database comes from outside.
    pub(crate) fn parse_in(db: Text<'a>, body: Doc<'a>, frame: &'a Bytes) -> Result<Request<'a>> {
        let request = Self::walk(body, &[], frame, &mut None)?;
        Ok(Request { db, ..request })
    }

    fn walk(
        body: Doc<'a>,
        sequences: &'a [Sequence<'a>],
        frame: &'a Bytes,
        db: &mut Option<Value<'a>>,
    ) -> Result<Request<'a>> {
        let mut all = body.iter();
        let (name, target) = all.next().unwrap_or((Text::borrowed(""), Value::Missing));
        if name.as_str() == "$db" {
            *db = Some(target.clone());
        }
        let mut generic = Generic::default();
        let mut fields = Vec::with_capacity(8);
        for (field, value) in all {
            if !generic.take(field.as_str(), &value, db)? {
                fields.push((field, value));
            }
        }
        Ok(Request { name, target, db: Text::borrowed(""), body, generic, collates: false, fields, sequences, frame })
    }

    /// The command's own parameters, in order. `structure` is what messages call the command.
    pub(crate) fn params(&self, structure: &'a str) -> impl Iterator<Item = Param<'a>> {
        let given = move |(name, value): &&(Text<'a>, Value<'a>)| {
            !matches!(value, Value::Null | Value::Undefined) || params::means_null(structure, name.as_str())
        };
        let param = move |(name, value): &(Text<'a>, Value<'a>)| Param::new(structure, name.clone(), value.clone());
        self.fields.iter().filter(given).map(param)
    }

    /// Refuses a parameter that is there twice. `structure` is what messages call the command.
    pub(crate) fn check_duplicates(&self, structure: &str) -> Result<()> {
        for (index, (name, _)) in self.fields.iter().enumerate() {
            let before = self.fields.get(..index).unwrap_or_default();
            if before.iter().any(|(other, _)| other.as_bytes() == name.as_bytes()) {
                return Err(params::duplicate(structure, name.as_str()));
            }
        }
        Ok(())
    }

    /// Refuses document sequences other than `known`.
    pub(crate) fn check_sequences(&self, structure: &str, known: Option<&str>) -> Result<()> {
        match self.sequences.iter().find(|sequence| Some(sequence.name) != known) {
            Some(sequence) => Err(params::unknown(structure, sequence.name)),
            None => Ok(()),
        }
    }

    /// The statements of a write command: the array `name` of the body, or a document sequence of that name. They share
    /// the message's bytes.
    pub(crate) fn statements(&self, structure: &'static str, name: &'static str) -> Result<Vec<Doc<'static>>> {
        self.check_sequences(structure, Some(name))?;
        let in_body = self.params(structure).find(|param| param.name() == name);
        let documents = match (in_body, self.sequences.first()) {
            (Some(_), Some(_)) => {
                return Err(Error::new(
                    Code::Location(40433),
                    format!("Duplicate field between body and document sequence {name}"),
                ));
            }
            (Some(param), None) => param.documents()?.iter().map(|doc| self.share(doc.as_bytes())).collect(),
            (None, Some(sequence)) => sequence.iter().map(|bytes| self.share(bytes)).collect(),
            (None, None) => return params::required(None, structure, name),
        };
        Ok(documents)
    }

    /// A part of the message as a document that outlives it, without a copy.
    fn share(&self, bytes: &[u8]) -> Doc<'static> {
        let offset = bytes.as_ptr().addr().checked_sub(self.frame.as_ptr().addr());
        let range = offset.and_then(|start| Some(start..start.checked_add(bytes.len())?));
        match range.filter(|range| range.end <= self.frame.len()) {
            Some(range) => Doc::trusted_bytes(self.frame.slice(range)),
            None => Doc::trusted_bytes(Bytes::copy_from_slice(bytes)),
        }
    }

    /// As [`Request::share`], for commands inside this one.
    pub(crate) fn frame(&self) -> &'a Bytes {
        self.frame
    }
}

impl<'a> Generic<'a> {
    /// Keeps the parameter if it is one that every command may carry.
    fn take(&mut self, name: &str, value: &Value<'a>, db: &mut Option<Value<'a>>) -> Result<bool> {
        match name {
            "$db" => *db = Some(value.clone()),
            "lsid" => self.session = Some(session_id("OperationSessionInfo.lsid", value)?),
            "txnNumber" => match value {
                Value::Int64(number) => self.txn_number = Some(*number),
                other => return Err(wrong_type("OperationSessionInfo.txnNumber", other, "long")),
            },
            "autocommit" => self.autocommit = Some(session_flag("autocommit", value)?),
            "startTransaction" => self.start_transaction = Some(session_flag("startTransaction", value)?),
            "readConcern" => self.read_concern = Some(value.clone()),
            "writeConcern" => self.write_concern = Some(value.clone()),
            "maxTimeMS" => self.max_time_ms = Some(value.clone()),
            "apiVersion" => self.api_version = Some(value.clone()),
            "apiStrict" => self.api_strict = value.is_truthy(),
            "apiDeprecationErrors" => self.api_deprecation_errors = value.is_truthy(),
            "comment" => self.comment = Some(value.clone()),
            "$readPreference" => check_read_preference(value)?,
            // What drivers and routers add for others.
            "$clusterTime"
            | "$audit"
            | "$client"
            | "$configServerState"
            | "$configTime"
            | "$topologyTime"
            | "$oplogQueryData"
            | "$queryOptions"
            | "$replData"
            | "$tenant"
            | "databaseVersion"
            | "shardVersion"
            | "clientOperationKey"
            | "maxTimeMSOpOnly"
            | "mayBypassWriteBlocking"
            | "coordinator"
            | "allowImplicitCollectionCreation"
            | "txnRetryCounter"
            | "help" => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A session's id, `{ id: UUID }`. Messages call it `path`.
pub(crate) fn session_id(path: &str, value: &Value<'_>) -> Result<[u8; 16]> {
    let Value::Document(lsid) = value else {
        return Err(wrong_type(path, value, "object"));
    };
    let mut id = None;
    for (name, value) in lsid.iter() {
        match name.as_str() {
            "id" => id = Some(value),
            "uid" | "txnNumber" | "txnUUID" => {}
            other => return Err(params::unknown(path, other)),
        }
    }
    match params::required(id, path, "id")? {
        Value::Binary { subtype: 4, bytes } => bytes
            .as_slice()
            .try_into()
            .map_err(|_| Error::new(Code::InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype")),
        Value::Binary { subtype, .. } => Err(Error::type_mismatch(format!(
            "BSON field '{path}.id' is the wrong binData type '{}', expected type 'UUID'",
            subtype_name(subtype)
        ))),
        other => Err(wrong_type(&format!("{path}.id"), &other, "binData")),
    }
}

fn subtype_name(subtype: u8) -> &'static str {
    match subtype {
        0 => "general",
        1 => "function",
        2 => "binary",
        3 => "UUID (old)",
        5 => "MD5",
        6 => "encrypt",
        7 => "column",
        _ => "invalid",
    }
}

fn session_flag(name: &str, value: &Value<'_>) -> Result<bool> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        other => Err(wrong_type(&format!("OperationSessionInfo.{name}"), other, "bool")),
    }
}

fn wrong_type(path: &str, value: &Value<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{path}' is the wrong type '{}', expected type '{expected}'",
        value.type_name()
    ))
}

/// There is one node and it is the primary, so every preference is satisfied; but it must be one.
fn check_read_preference(value: &Value<'_>) -> Result<()> {
    let Value::Document(preference) = value else {
        return Err(Error::type_mismatch(format!(
            "\"$readPreference\" had the wrong type. Expected object, found {}",
            value.type_name()
        )));
    };
    let mode = preference.get("mode");
    match mode.as_ref().and_then(Value::as_str) {
        Some("primary" | "primaryPreferred" | "secondary" | "secondaryPreferred" | "nearest") => Ok(()),
        Some(other) => Err(not_a_mode(other)),
        None => Err(not_a_mode("")),
    }
}

fn not_a_mode(mode: &str) -> Error {
    params::not_a_choice("$readPreference", "mode", mode)
}
