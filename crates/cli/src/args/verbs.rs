//! The verbs about rules: what they take.

use clap::{ArgGroup, Args as ClapArgs, ValueEnum};
use std::path::PathBuf;

/// Where the data is. Every verb that touches data takes it the same way.
#[derive(Clone, Debug, ClapArgs)]
#[command(group = ArgGroup::new("target").args(["server", "data", "upstream"]).multiple(false))]
#[command(next_help_heading = "Target")]
pub(crate) struct Target {
    /// A running Pleach, such as mongodb://127.0.0.1:27017
    #[arg(long, value_name = "URI", env = "PLEACH_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,

    /// The folder of an embedded store; a server that runs on it is found and asked
    #[arg(long, value_name = "DIR", env = "PLEACH_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// A real MongoDB
    #[arg(long, value_name = "URI", env = "PLEACH_UPSTREAM", hide_env_values = true)]
    pub(crate) upstream: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Plan {
    /// The declaration
    #[arg(long, value_name = "FILE", default_value = "pleach.yaml", env = "PLEACH_DECLARE")]
    pub(crate) declare: PathBuf,

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
    /// The declaration
    #[arg(long, value_name = "FILE", default_value = "pleach.yaml", env = "PLEACH_DECLARE")]
    pub(crate) declare: PathBuf,

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
    /// The declaration; without it the rules that are kept there
    #[arg(long, value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) declare: Option<PathBuf>,

    /// Only this rule
    #[arg(long, value_name = "RULE")]
    pub(crate) rule: Option<String>,

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
pub(crate) struct Drop {
    /// The rule, such as products.avgRating
    pub(crate) rule: String,

    /// Take its field away from every document; otherwise it stays as an ordinary one
    #[arg(long)]
    pub(crate) with_data: bool,

    /// Of a bucket rule: the buckets stay, and the view over them; otherwise they become plain documents again
    #[arg(long, conflicts_with = "with_data")]
    pub(crate) keep_buckets: bool,

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

pub(crate) const PLAN_EXAMPLES: &str = "\
Exit code: 1 if there is something to do, 0 if not.

Examples:
  pleach plan --data ~/shop                          what `apply` would do there
  pleach plan --server mongodb://127.0.0.1:27017     the same, of a running Pleach
  pleach plan --as node                              the code you would write by hand";

pub(crate) const EXPLAIN_EXAMPLES: &str = "\
Nothing is run. Examples:
  pleach explain --data ~/shop --db shop '{ \"insert\": \"reviews\", \"documents\": [{ \"productId\": 1, \"rating\": 5 }] }'";

pub(crate) const APPLY_EXAMPLES: &str = "\
It can be stopped at any moment: the next run goes on where it was.

Examples:
  pleach apply --data ~/shop                 make the rules there what pleach.yaml says
  pleach apply --data ~/shop --remove        also remove those that it no longer has";

pub(crate) const AUDIT_EXAMPLES: &str = "\
Nothing is written. Exit code: 1 if something drifted, 0 if not.

Examples:
  pleach audit --data ~/shop                                                    the rules that are kept there
  pleach audit --upstream mongodb://db.example.com/ --declare pleach.yaml       a MongoDB as it is: needs only the right to read";

pub(crate) const DROP_EXAMPLES: &str = "\
Examples:
  pleach drop products.avgRating --data ~/shop                the field stays, as an ordinary one
  pleach drop products.avgRating --data ~/shop --with-data    the field goes
  pleach drop sensor_data.bucket --data ~/shop                every reading is a document of its own again
  pleach drop sensor_data.bucket --data ~/shop --keep-buckets only the rule goes: a view over buckets stays";
