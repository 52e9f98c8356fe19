//! The options that several verbs take. Each is written once and flattened into the verbs that take it; a verb that means
//! something narrower by one gives it a help text of its own with `mut_arg`.

use crate::declaration;
use crate::report::Failure;
use clap::{ArgGroup, Args};
use std::path::{Path, PathBuf};

/// `--declare` of a verb that cannot do without a declaration.
#[derive(Debug, Args)]
pub(crate) struct DeclarationFiles {
    /// The declaration; several files of one database are one declaration
    #[arg(
        id = "declare",
        long = "declare",
        value_name = "FILE",
        default_value = "pleach.yaml",
        env = "PLEACH_DECLARE"
    )]
    pub(crate) files: Vec<PathBuf>,
}

/// `--declare` of a verb that works by the applied rules otherwise.
#[derive(Debug, Args)]
pub(crate) struct OptionalDeclarationFiles {
    /// The declaration; without it the rules that are applied there. May be repeated
    #[arg(id = "declare", long = "declare", value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) files: Vec<PathBuf>,
}

/// `--declare` of a verb that needs only to know which database is meant.
#[derive(Debug, Args)]
pub(crate) struct DeclaredDatabase {
    /// The declaration: its database is meant
    #[arg(id = "declare", long = "declare", value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) file: Option<PathBuf>,
}

/// `--declare` and `--db` of a verb that is about one rule.
#[derive(Debug, Args)]
pub(crate) struct RuleDatabase {
    #[command(flatten)]
    declared: DeclaredDatabase,

    /// The rule's database, where several have one of that name
    #[arg(long, value_name = "NAME")]
    db: Option<String>,
}

impl RuleDatabase {
    /// Its name, if one of the two says it.
    pub(crate) fn name(&self) -> Result<Option<String>, Failure> {
        declaration::database(self.db.as_deref(), self.declared.file.as_deref())
    }
}

/// In which form a verb prints its answer.
#[derive(Debug, Args)]
pub(crate) struct OutputFormat {
    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where the data is. Every verb that touches data takes it the same way.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new("target").args(["server", "server_file", "data", "upstream", "upstream_file"]).multiple(false))]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetOptions {
    /// A running Pleach, such as mongodb://127.0.0.1:27017
    #[arg(long, value_name = "URI", env = "PLEACH_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,

    /// As --server, with the connection string in a file: a password on the command line is in the process list
    #[arg(long, value_name = "FILE", env = "PLEACH_SERVER_FILE")]
    pub(crate) server_file: Option<PathBuf>,

    /// The folder of an embedded store; a server that runs on it is found and asked
    #[arg(long, value_name = "DIR", env = "PLEACH_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// A real MongoDB
    #[arg(long, value_name = "URI", env = "PLEACH_UPSTREAM", hide_env_values = true)]
    pub(crate) upstream: Option<String>,

    /// As --upstream, with the connection string in a file
    #[arg(long, value_name = "FILE", env = "PLEACH_UPSTREAM_FILE")]
    pub(crate) upstream_file: Option<PathBuf>,
}

impl TargetOptions {
    /// The embedded store in a folder.
    pub(crate) fn of_folder(folder: &Path) -> TargetOptions {
        let (server, server_file, upstream, upstream_file) = (None, None, None, None);
        TargetOptions { server, server_file, data: Some(folder.to_owned()), upstream, upstream_file }
    }
}
