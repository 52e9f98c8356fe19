//! The commands: one file each, all listed in [`COMMANDS`].
//!
//! A command's file holds a constant [`Command`] and the function that runs it. What MongoDB has and this server has not is
//! in `refused`, so that the answer says so.

use crate::dispatch::Call;
use document::backend::Class;
use document::{Code, Error, Result};
use hashbrown::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::OnceLock;

mod abort_transaction;
pub(crate) mod aggregate;
pub(crate) mod build_info;
mod coll_mod;
mod coll_stats;
mod commit_transaction;
mod compact;
mod connection_status;
pub(crate) mod count;
mod create;
mod create_indexes;
pub(crate) mod current_op;
mod data_size;
mod db_stats;
pub(crate) mod delete;
pub(crate) mod distinct;
mod drop;
mod drop_database;
mod drop_indexes;
mod end_sessions;
pub(crate) mod explain;
mod features;
pub(crate) mod find;
pub(crate) mod find_and_modify;
mod fsync;
mod get_cmd_line_opts;
mod get_free_monitoring_status;
mod get_last_error;
mod get_log;
mod get_more;
mod get_parameter;
mod hello;
mod host_info;
pub(crate) mod insert;
mod kill_cursors;
mod kill_op;
mod kill_sessions;
mod list_collections;
mod list_commands;
mod list_databases;
mod list_indexes;
mod lock_info;
mod logout;
mod ping;
mod pleach;
mod profile;
mod refresh_sessions;
mod refused;
mod rename_collection;
mod repl_set_get_status;
mod roles_info;
mod sasl_start;
mod server_status;
mod set_parameter;
mod start_session;
pub(crate) mod timeseries;
mod top;
pub(crate) mod update;
mod users_info;
mod validate;
mod whatsmyuri;

pub(crate) type Running<'c> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'c>>;
pub(crate) type Run = for<'c> fn(&'c mut Call<'_>) -> Running<'c>;

/// One entry of the registry.
pub struct Command {
    /// The name and its aliases.
    pub names: &'static [&'static str],
    /// What it does, in one sentence.
    pub help: &'static str,
    pub access: Access,
    /// What decides who answers it.
    pub class: Class,
    /// What error messages call its parameters' structure; most often the name.
    pub(crate) structure: &'static str,
    pub(crate) admin_only: bool,
    pub(crate) in_transaction: InTransaction,
    pub(crate) ends_transaction: bool,
    pub(crate) retryable: bool,
    pub(crate) takes_read_concern: bool,
    pub(crate) takes_write_concern: bool,
    pub(crate) takes_sequences: bool,
    /// Old clients may send it by OP_QUERY, before they know what the server is.
    pub(crate) by_query: bool,
    /// Part of MongoDB's Stable API, version 1.
    pub(crate) in_api_version_1: bool,
    pub(crate) run: Run,
}

/// What a command touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing but the server's own state.
    Server,
    Read,
    Write,
    /// Collections and indexes.
    Catalog,
    /// Known to MongoDB, refused here.
    Refused,
}

/// Whether a command may be part of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InTransaction {
    Allowed,
    NotFirst,
    /// No, and what the message adds.
    Refused(&'static str),
    /// No: it does not even look at the session.
    Outside,
}

impl Command {
    /// What most commands about the server itself are; their constants change what differs.
    pub(crate) const SERVER: Command = Command {
        names: &[],
        help: "",
        access: Access::Server,
        class: Class::Other,
        structure: "",
        admin_only: false,
        in_transaction: InTransaction::Outside,
        ends_transaction: false,
        retryable: false,
        takes_read_concern: false,
        takes_write_concern: false,
        takes_sequences: false,
        by_query: false,
        in_api_version_1: false,
        run: |_| Box::pin(std::future::ready(Ok(()))),
    };

    pub(crate) const READ: Command = Command {
        access: Access::Read,
        in_transaction: InTransaction::Allowed,
        takes_read_concern: true,
        in_api_version_1: true,
        ..Command::SERVER
    };

    pub(crate) const WRITE: Command = Command {
        access: Access::Write,
        in_transaction: InTransaction::Allowed,
        retryable: true,
        takes_write_concern: true,
        in_api_version_1: true,
        ..Command::SERVER
    };

    pub(crate) const CATALOG: Command = Command {
        access: Access::Catalog,
        in_transaction: InTransaction::Refused(""),
        takes_write_concern: true,
        in_api_version_1: true,
        ..Command::SERVER
    };
}

/// All commands, sorted by name.
pub const COMMANDS: &[&Command] = &[
    &abort_transaction::COMMAND,
    &aggregate::COMMAND,
    &refused::APPLY_OPS,
    &build_info::COMMAND,
    &refused::CLONE_AS_CAPPED,
    &coll_mod::COMMAND,
    &coll_stats::COMMAND,
    &commit_transaction::COMMAND,
    &compact::COMMAND,
    &connection_status::COMMAND,
    &refused::CONVERT_TO_CAPPED,
    &count::COMMAND,
    &create::COMMAND,
    &create_indexes::COMMAND,
    &refused::COMMAND,
    &current_op::COMMAND,
    &data_size::COMMAND,
    &db_stats::COMMAND,
    &delete::COMMAND,
    &distinct::COMMAND,
    &drop::COMMAND,
    &drop_database::COMMAND,
    &drop_indexes::COMMAND,
    &end_sessions::COMMAND,
    &explain::COMMAND,
    &features::COMMAND,
    &find::COMMAND,
    &find_and_modify::COMMAND,
    &fsync::COMMAND,
    &get_cmd_line_opts::COMMAND,
    &get_free_monitoring_status::COMMAND,
    &get_last_error::COMMAND,
    &get_log::COMMAND,
    &get_more::COMMAND,
    &get_parameter::COMMAND,
    &hello::COMMAND,
    &host_info::COMMAND,
    &insert::COMMAND,
    &hello::IS_MASTER,
    &kill_sessions::ALL,
    &kill_sessions::BY_PATTERN,
    &kill_cursors::COMMAND,
    &kill_op::COMMAND,
    &kill_sessions::COMMAND,
    &list_collections::COMMAND,
    &list_commands::COMMAND,
    &list_databases::COMMAND,
    &list_indexes::COMMAND,
    &lock_info::COMMAND,
    &logout::COMMAND,
    &refused::MAP_REDUCE,
    &ping::COMMAND,
    &pleach::COMMAND,
    &profile::COMMAND,
    &refresh_sessions::COMMAND,
    &rename_collection::COMMAND,
    &repl_set_get_status::COMMAND,
    &roles_info::COMMAND,
    &sasl_start::CONTINUE,
    &sasl_start::COMMAND,
    &server_status::COMMAND,
    &set_parameter::COMMAND,
    &start_session::COMMAND,
    &top::COMMAND,
    &update::COMMAND,
    &users_info::COMMAND,
    &validate::COMMAND,
    &whatsmyuri::COMMAND,
];

/// Commands that only a MongoDB behind answers, and that rules must know about.
const ANSWERED_BEHIND: &[(&str, Class)] =
    &[("bulkWrite", Class::BulkWrite), ("coordinateCommitTransaction", Class::CommitTransaction)];

/// What decides who answers the command of that name, known here or not.
pub(crate) fn class(name: &str) -> Class {
    let behind = || ANSWERED_BEHIND.iter().find(|(other, _)| *other == name).map_or(Class::Other, |(_, class)| *class);
    find(name).map_or_else(behind, |command| command.class)
}

/// The command of that name or alias.
pub(crate) fn find(name: &str) -> Option<&'static Command> {
    static BY_NAME: OnceLock<HashMap<&str, &Command>> = OnceLock::new();
    let by_name = || {
        let names = |command: &&'static Command| {
            let command = *command;
            command.names.iter().map(move |name| (*name, command))
        };
        COMMANDS.iter().flat_map(names).collect()
    };
    BY_NAME.get_or_init(by_name).get(name).copied()
}

pub(crate) fn unknown(name: &str) -> Error {
    Error::new(Code::CommandNotFound, format!("no such command: '{name}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_is_sorted_unique_and_documented() {
        let first: Vec<&str> = COMMANDS.iter().map(|command| command.names[0]).collect();
        assert!(first.is_sorted(), "{:?}", first.windows(2).find(|pair| pair[0] > pair[1]));
        let mut all: Vec<&str> = COMMANDS.iter().flat_map(|command| command.names).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "a name is there twice");
        for command in COMMANDS {
            assert!(command.help.ends_with('.'), "{} has no sentence of help", command.names[0]);
            assert!(!command.structure.is_empty(), "{} has no structure", command.names[0]);
            assert_eq!(find(command.names[0]).map(|found| found.names), Some(command.names));
        }
        assert!(find("nope").is_none());
    }
    #[test]
    fn commands_that_rules_must_know_about_have_a_class_wherever_they_are_answered() {
        for (name, expected) in [
            ("find", Class::Find),
            ("applyOps", Class::ApplyOps),
            ("cloneCollectionAsCapped", Class::CloneAsCapped),
            ("convertToCapped", Class::ConvertToCapped),
            ("mapReduce", Class::MapReduce),
            ("mapreduce", Class::MapReduce),
            ("bulkWrite", Class::BulkWrite),
            ("coordinateCommitTransaction", Class::CommitTransaction),
            ("createUser", Class::Other),
            ("nope", Class::Other),
        ] {
            assert_eq!(class(name), expected, "{name}");
        }
        assert!(ANSWERED_BEHIND.iter().all(|(name, _)| find(name).is_none()), "a command here has its class there");
    }
}
