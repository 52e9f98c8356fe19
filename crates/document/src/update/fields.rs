//! `$set`, `$setOnInsert`, `$unset`, `$currentDate`, and the definition of `$rename`.

use super::operation::{Blocked, Change, Operation, Site};
use super::{Argument, Form, UpdateDef};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::value::Value;
use std::sync::Arc;

pub(super) const SET: UpdateDef = UpdateDef {
    name: "$set",
    help: "Sets a field to a value, creating it and the documents around it.",
    form: Form::Operation(|argument, _| Ok(Arc::new(Set { value: argument.value, only_on_insert: false }))),
};

pub(super) const SET_ON_INSERT: UpdateDef = UpdateDef {
    name: "$setOnInsert",
    help: "Sets a field if the update inserts a document, and does nothing otherwise.",
    form: Form::Operation(|argument, _| Ok(Arc::new(Set { value: argument.value, only_on_insert: true }))),
};

pub(super) const UNSET: UpdateDef = UpdateDef {
    name: "$unset",
    help: "Removes a field; an array element becomes null.",
    form: Form::Operation(|_, _| Ok(Arc::new(Unset))),
};

pub(super) const CURRENT_DATE: UpdateDef = UpdateDef {
    name: "$currentDate",
    help: "Sets a field to the current time, as a date or a timestamp.",
    form: Form::Operation(current_date),
};

pub(super) const RENAME: UpdateDef =
    UpdateDef { name: "$rename", help: "Moves a field to another name.", form: Form::Rename };

#[derive(Debug)]
struct Set {
    value: Value<'static>,
    only_on_insert: bool,
}

impl Operation for Set {
    fn update<'v>(&'v self, _current: &Value<'v>, _site: &Site<'_>) -> Result<Change<'v>> {
        Ok(Change::Set(self.value.borrow()))
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(Some(self.value.borrow()))
    }

    fn only_on_insert(&self) -> bool {
        self.only_on_insert
    }
}

#[derive(Debug)]
struct Unset;

impl Operation for Unset {
    fn update<'v>(&'v self, _current: &Value<'v>, _site: &Site<'_>) -> Result<Change<'v>> {
        Ok(Change::Remove)
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(None)
    }

    fn when_blocked(&self) -> Blocked {
        Blocked::Ignored
    }
}

#[derive(Debug)]
enum CurrentDate {
    Date,
    Timestamp,
}

fn current_date(argument: Argument<'_>, _: &mut crate::pipeline::expr::Names) -> Result<Arc<dyn Operation>> {
    let options = match &argument.value {
        Value::Bool(_) => return Ok(Arc::new(CurrentDate::Date)),
        Value::Document(options) => options,
        other => {
            return Err(Error::bad_value(format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: 'timestamp/date'}}).",
                other.type_name()
            )));
        }
    };
    if let Some((name, _)) = options.iter().find(|(name, _)| name.as_str() != "$type") {
        return Err(Error::bad_value(format!("Unrecognized $currentDate option: {name}")));
    }
    match options.get("$type").as_ref().and_then(|kind| kind.as_str()) {
        Some("date") => Ok(Arc::new(CurrentDate::Date)),
        Some("timestamp") => Ok(Arc::new(CurrentDate::Timestamp)),
        _ => Err(Error::bad_value(
            "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
        )),
    }
}

impl CurrentDate {
    fn value(&self, env: &Env) -> Value<'static> {
        match self {
            CurrentDate::Date => Value::DateTime(env.now),
            CurrentDate::Timestamp => Value::Timestamp(current_timestamp(env)),
        }
    }
}

impl Operation for CurrentDate {
    fn update<'v>(&'v self, _current: &Value<'v>, site: &Site<'_>) -> Result<Change<'v>> {
        Ok(Change::Rewrite(self.value(site.env)))
    }

    fn create(&self, site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(Some(self.value(site.env)))
    }
}

/// The cluster time; where there is none, the first timestamp of the current second.
pub(super) fn current_timestamp(env: &Env) -> u64 {
    match env.cluster_time {
        0 => u64::try_from(env.now / 1000).unwrap_or_default() << 32 | 1,
        time => time,
    }
}
