//! The verbs about rules: what they take.

use clap::{ArgGroup, Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

/// Where the data is. Every verb that touches data takes it the same way.
#[derive(Clone, Debug, ClapArgs)]
#[command(group = ArgGroup::new("target").args(["server", "server_file", "data", "upstream", "upstream_file"]).multiple(false))]
#[command(next_help_heading = "Target")]
pub(crate) struct Target {
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

#[derive(Debug, ClapArgs)]
pub(crate) struct Plan {
    /// The declaration; several files of one database are one declaration
    #[arg(long, value_name = "FILE", default_value = "pleach.yaml", env = "PLEACH_DECLARE")]
    pub(crate) declare: Vec<PathBuf>,

    /// Show every step as a plain MongoDB command
    #[arg(long)]
    pub(crate) full: bool,

    /// Show what `apply --remove` would do
    #[arg(long)]
    pub(crate) remove: bool,

    /// With --remove: as if their fields were to go too
    #[arg(long, requires = "remove")]
    pub(crate) with_data: bool,

    /// Print the code that a team would write by hand instead: it needs the file only
    #[arg(long = "as", value_name = "LANGUAGE", value_enum)]
    pub(crate) language: Option<Language>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Language {
    Mongosh,
    Node,
    Python,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// The database that the command is for, if no declaration says it
    #[arg(long, value_name = "NAME", required_unless_present = "declare")]
    pub(crate) db: Option<String>,

    /// The declaration: its database is meant
    #[arg(long, value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) declare: Option<PathBuf>,

    /// The command as Extended JSON, such as '{ "insert": "reviews", "documents": [{ "productId": 1 }] }'
    pub(crate) command: String,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Apply {
    /// The declaration; several files of one database are one declaration
    #[arg(long, value_name = "FILE", default_value = "pleach.yaml", env = "PLEACH_DECLARE")]
    pub(crate) declare: Vec<PathBuf>,

    /// Go on where existing values would be removed, or more than half of them changed
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// Go on where a collection or a field does not exist and one with a near name does
    #[arg(long)]
    pub(crate) create_missing: bool,

    /// Remove the rules that the declaration no longer has; their fields stay as ordinary ones
    #[arg(long)]
    pub(crate) remove: bool,

    /// With --remove: take their fields away too
    #[arg(long, requires = "remove")]
    pub(crate) with_data: bool,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Status {
    /// The declaration: only the rules of its database
    #[arg(long, value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) declare: Option<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) target: Target,
}

/// What `audit` and `repair` take.
#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    /// The declaration; without it the rules that are applied there. May be repeated
    #[arg(long, value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) declare: Vec<PathBuf>,

    /// Only this rule
    #[arg(long, value_name = "RULE")]
    pub(crate) rule: Option<String>,

    /// Only the rules of this database; a declaration names its own
    #[arg(long, value_name = "NAME", conflicts_with = "declare")]
    pub(crate) db: Option<String>,

    /// How many documents to name at most; the counts are always whole
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) examples: u32,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Repair {
    #[command(flatten)]
    pub(crate) audit: Audit,

    /// Of rules that are declared and not applied: make their values right now; nothing keeps them so afterwards
    #[arg(long, requires = "declare")]
    pub(crate) once: bool,

    /// With --once: go on where existing values would be removed, or more than half of them changed; no copy is kept
    #[arg(long, requires = "once")]
    pub(crate) overwrite: bool,

    /// With --once: go on where a collection does not exist, or a field and one with a near name does
    #[arg(long, requires = "once")]
    pub(crate) create_missing: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Drop {
    /// The rule, such as products.avgRating
    pub(crate) rule: String,

    /// Take its field away from every document; otherwise it stays as an ordinary one
    #[arg(long)]
    pub(crate) with_data: bool,

    /// Of a bucket rule: the buckets stay, and the view over them; otherwise they become plain documents again
    #[arg(long, conflicts_with = "with_data")]
    pub(crate) keep_buckets: bool,

    /// Give every document back what it had before the rule; what the rule filled is removed
    #[arg(long, conflicts_with_all = ["with_data", "keep_buckets"])]
    pub(crate) restore: bool,

    /// The declaration: its database is meant
    #[arg(long, value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) declare: Option<PathBuf>,

    /// The rule's database, where several have one of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) db: Option<String>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Forget {
    /// The rule, such as products.avgRating; it may be gone already
    pub(crate) rule: String,

    /// The declaration: its database is meant
    #[arg(long, value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) declare: Option<PathBuf>,

    /// The rule's database, where several have one of that name
    #[arg(long, value_name = "NAME")]
    pub(crate) db: Option<String>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) target: Target,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Uninstall {
    /// A database to take Pleach out of; may be repeated. Without it: all that have something of Pleach's
    #[arg(long, value_name = "NAME")]
    pub(crate) db: Vec<String>,

    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,

    /// Also remove the values that are kept because rules have replaced them
    #[arg(long)]
    pub(crate) forget: bool,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) target: Target,
}

pub(crate) const UNINSTALL_EXAMPLES: &str = "\
Fields stay as ordinary ones, readings become plain documents again. It can be stopped at any moment: the next run goes on.
Exit code: 0 if nothing of Pleach is left, 1 if something stays, 2 if it failed.

Examples:
  pleach uninstall --upstream mongodb://db.example.com/ --db shop     asks first
  pleach uninstall --server mongodb://127.0.0.1:27017 --yes           all databases of a running Pleach";

pub(crate) const PLAN_EXAMPLES: &str = "\
Nothing is changed. Exit code: 1 if there is something to do, 0 if not.

Examples:
  pleach plan --data ~/shop
      what `apply` would do there, a line per rule
  pleach plan --data ~/shop --full
      every step as a MongoDB command
  pleach plan --server mongodb://127.0.0.1:27017
      the same, of a running Pleach
  pleach plan --as node
      the code you would write by hand";

pub(crate) const EXPLAIN_EXAMPLES: &str = "\
Nothing is run. Example:
  pleach explain --data ~/shop --db shop \\
      '{ \"insert\": \"reviews\", \"documents\": [{ \"productId\": 1, \"rating\": 5 }] }'";

pub(crate) const APPLY_EXAMPLES: &str = "\
It can be stopped at any moment: the next run goes on where it was. What would
remove existing values, change more than half of them, or looks like a misspelt
name is refused, with the flag that goes on: look at `pleach plan` first.

Examples:
  pleach apply --data ~/shop
      make the rules there what pleach.yaml says
  pleach apply --data ~/shop --remove
      also remove those that it no longer has";

pub(crate) const AUDIT_EXAMPLES: &str = "\
Nothing is written; the right to read is enough. Exit code:
  0  everything was checked and is right, or there are no documents
  1  something drifted, or not all could be checked yet (seeding, outbox)
  2  it could not be checked: a database or collection that does not exist,
     no rules, no answer

Examples:
  pleach audit --data ~/shop
      the rules that are applied there
  pleach audit --declare pleach.yaml --upstream-file mongodb.uri
      a MongoDB as it is: needs only the right to read";

pub(crate) const REPAIR_EXAMPLES: &str = "\
Exit code: as of `pleach audit`, after the repair. With --once it keeps no copy
of what it overwrites, so it refuses what `pleach apply` refuses: values that
would go, more than half of them changed, names that do not exist.

Examples:
  pleach repair --data ~/shop
      the rules that are applied there
  pleach repair --once --declare pleach.yaml \\
      --upstream mongodb://db.example.com/
      a MongoDB whose rules are not applied: right now, not kept so";

pub(crate) const DROP_EXAMPLES: &str = "\
Examples:
  pleach drop products.avgRating --data ~/shop
      the field stays, as an ordinary one
  pleach drop products.avgRating --data ~/shop --with-data
      the field is removed
  pleach drop products.avgRating --data ~/shop --restore
      every document gets back what it had
  pleach drop sensor_data.bucket --data ~/shop
      every reading is a document of its own again
  pleach drop sensor_data.bucket --data ~/shop --keep-buckets
      only the rule is removed: a view over buckets stays";

pub(crate) const FORGET_EXAMPLES: &str = "\
`apply` keeps the values that it changes; `pleach status` shows how much.
After this they cannot be restored.

Examples:
  pleach forget products.avgRating --data ~/shop";
