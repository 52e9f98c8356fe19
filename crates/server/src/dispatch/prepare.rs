//! What can be refused before a command runs or its session is looked at, and what it is to know of its concerns.

use crate::commands::{Command, InTransaction};
use crate::concern::{Reading, WriteConcern, time_limit};
use crate::dispatch::Call;
use crate::namespace;
use crate::params::Param;
use crate::request::Request;
use crate::session::Role;
use document::backend::Class;
use document::op::ReadConcern;
use document::{Code, Error, Result, Text, Value};
use std::time::Instant;

/// Everything that can be refused before the command runs or its session is looked at.
pub(super) fn prepare(call: &mut Call<'_>) -> Result<()> {
    let (request, command) = (call.request, call.command);
    let generic = &request.generic;
    let name = command.names.first().copied().unwrap_or_default();
    namespace::check_database(request.db.as_str())?;
    check_api(call)?;
    call.role = Role::of(generic, command)?;
    if command.admin_only && request.db.as_str() != "admin" {
        return Err(Error::new(
            Code::Unauthorized,
            format!("{} may only be run against the admin database.", request.name),
        ));
    }
    if let Role::InTransaction { first, .. } = call.role {
        check_in_transaction(command, name, first)?;
        if !command.ends_transaction {
            check_place_in_transaction(request)?;
        }
    }
    if command.class == Class::Aggregate
        && let Some(value) = &generic.max_time_ms
        && value.is_number()
    {
        Param::new(command.structure, Text::borrowed("maxTimeMS"), value.clone()).count()?;
    }
    if let Some(limit) = time_limit(generic.max_time_ms.as_ref())? {
        let deadline = Instant::now() + limit;
        call.context.deadline = Some(deadline);
        call.client.operation.set_deadline(deadline);
    }
    // The server behind has its own clock, and gets what the client asks for.
    let now = call.client.relay.is_none().then_some(call.context.env.cluster_time);
    let reading = Reading::parse(generic.read_concern.as_ref(), now)?;
    check_read_concern(call.role, command, reading)?;
    call.context.read_concern = reading.level.unwrap_or_default();
    if generic.write_concern.is_some() {
        if matches!(call.role, Role::InTransaction { .. }) && !command.ends_transaction {
            return Err(Error::new(
                Code::InvalidOptions,
                "writeConcern is not allowed within a multi-statement transaction",
            ));
        }
        if !command.takes_write_concern {
            return Err(Error::new(Code::InvalidOptions, "Command does not support writeConcern"));
        }
        call.concern = WriteConcern::parse(generic.write_concern.as_ref())?;
        if call.client.relay.is_some() {
            // How many nodes there are is known behind.
            call.concern.error = None;
        }
        call.context.durability = call.concern.durability;
    }
    request.check_duplicates(command.structure)?;
    if !command.takes_sequences {
        request.check_sequences(command.structure, None)?;
    }
    Ok(())
}

fn check_in_transaction(command: &Command, name: &str, first: bool) -> Result<()> {
    let refused = |message: String| Err(Error::new(Code::OperationNotSupportedInTransaction, message));
    match command.in_transaction {
        InTransaction::Allowed => Ok(()),
        InTransaction::NotFirst if !first => Ok(()),
        InTransaction::NotFirst => {
            refused(format!("Cannot run {name} as the first operation in a multi-document transaction."))
        }
        InTransaction::Outside => refused("This command is not supported in transactions".into()),
        InTransaction::Refused("") => refused(format!("Cannot run '{name}' in a multi-document transaction.")),
        InTransaction::Refused(more) => refused(format!("Cannot run '{name}' in a multi-document transaction. {more}")),
    }
}

/// Databases and collections that no transaction may touch.
fn check_place_in_transaction(request: &Request<'_>) -> Result<()> {
    let db = request.db.as_str();
    let where_ = match (db, request.target.as_str()) {
        ("config", _) => "config database".to_owned(),
        ("local", _) => "'local' database".to_owned(),
        (_, Some("system.profile")) => format!("'{db}.system.profile' collection"),
        _ => return Ok(()),
    };
    Err(Error::new(
        Code::OperationNotSupportedInTransaction,
        format!("Cannot run command against the {where_} in a transaction."),
    ))
}

fn check_read_concern(role: Role, command: &Command, reading: Reading) -> Result<()> {
    let invalid = |message: String| Err(Error::new(Code::InvalidOptions, message));
    match role {
        Role::InTransaction { first: false, .. } if reading.given => {
            invalid("Only the first command in a transaction may specify a readConcern".into())
        }
        Role::InTransaction { .. } => match reading.level {
            Some(ReadConcern::Linearizable | ReadConcern::Available) => invalid(
                "The readConcern level must be either 'local' (default), 'majority' or 'snapshot' in order to run in a transaction"
                    .into(),
            ),
            _ => Ok(()),
        },
        _ => match reading.level {
            None | Some(ReadConcern::Local) => Ok(()),
            Some(_) if command.takes_read_concern => Ok(()),
            Some(level) => invalid(format!(
                "Command {} does not support {{ readConcern: {{ level: \"{}\", provenance: \"clientSupplied\" }} }} :: caused by :: read concern not supported",
                command.names.first().copied().unwrap_or_default(),
                format!("{level:?}").to_lowercase()
            )),
        },
    }
}

fn check_api(call: &Call<'_>) -> Result<()> {
    let generic = &call.request.generic;
    let Some(version) = &generic.api_version else {
        return match generic.api_strict || generic.api_deprecation_errors {
            true => Err(Error::new(
                Code::Location(4_886_600),
                "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
            )),
            false => Ok(()),
        };
    };
    match version {
        Value::String(text) if text.as_str() == "1" => {}
        Value::String(text) => {
            return Err(Error::new(Code::APIVersionError, format!("Cannot accept API version {text}")));
        }
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'APIParametersFromClient.apiVersion' is the wrong type '{}', expected type 'string'",
                other.type_name()
            )));
        }
    }
    if generic.api_strict && !call.command.in_api_version_1 {
        return Err(Error::new(
            Code::APIStrictError,
            format!(
                "Provided apiStrict:true, but the command {} is not in API Version 1. Information on supported commands and migrations in API Version 1 can be found at https://dochub.mongodb.org/core/manual-versioned-api",
                call.request.name
            ),
        ));
    }
    Ok(())
}
