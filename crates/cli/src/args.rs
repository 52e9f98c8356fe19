//! The command line as types. Parsing does no I/O.

pub(crate) mod bench;
pub(crate) mod verbs;

use crate::size::Size;
use clap::{Args as ClapArgs, Parser, Subcommand};
use std::net::IpAddr;
use std::path::PathBuf;

/// Data-modeling patterns for MongoDB, kept true.
///
/// Pleach speaks the MongoDB wire protocol: mongosh and every driver connect to it as to MongoDB.
#[derive(Debug, Parser)]
#[command(name = "pleach", version, arg_required_else_help = true, max_term_width = 80)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make the rules what a declaration says: indexes, seeding, removal
    #[command(after_help = verbs::APPLY_EXAMPLES)]
    Apply(verbs::Apply),

    /// Compare every derived value with what it should be; changes nothing
    #[command(after_help = verbs::AUDIT_EXAMPLES)]
    Audit(verbs::Audit),

    /// Measure on this machine, in one run
    Bench(bench::Bench),

    /// Check a declaration: is it valid, and what will it keep?
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),

    /// Remove a rule and, if asked, the field it kept; or give every document back what it had
    #[command(after_help = verbs::DROP_EXAMPLES)]
    Drop(verbs::Drop),

    /// Show what a command would do, rules included; runs nothing
    #[command(after_help = verbs::EXPLAIN_EXAMPLES)]
    Explain(verbs::Explain),

    /// Free what is kept of the values that a rule replaced
    #[command(after_help = verbs::FORGET_EXAMPLES)]
    Forget(verbs::Forget),

    /// Show the catalogue of patterns: problem, mechanism, symptom
    #[command(after_help = PATTERNS_EXAMPLES)]
    Patterns(Patterns),

    /// Show what `apply` would do to the data, a line per rule; --full: as plain MongoDB commands
    #[command(after_help = verbs::PLAN_EXAMPLES)]
    Plan(verbs::Plan),

    /// Make every derived value right that is not, while clients write
    #[command(after_help = verbs::REPAIR_EXAMPLES)]
    Repair(verbs::Repair),

    /// Serve MongoDB clients: an embedded store, or a real MongoDB behind it
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Serve),

    /// Show where each rule is and what waits
    Status(verbs::Status),

    /// Take Pleach out of databases: the rules go, the data stays
    #[command(after_help = verbs::UNINSTALL_EXAMPLES)]
    Uninstall(verbs::Uninstall),
}

const SERVE_EXAMPLES: &str = "\
Examples:
  pleach serve
      a server to try things on; its data is removed when it stops
  pleach serve --data ~/shop
      keep the data in a folder
  pleach serve --data ~/shop --declare pleach.yaml
      keep the rules of a declaration true
  pleach serve --port 0
      any free port; the connection string is printed
  pleach serve --upstream 'mongodb://db1,db2/?replicaSet=rs'
      in front of a real MongoDB: clients connect here instead
  pleach serve --upstream-file mongodb.uri
      the same, with the password out of the process list
  mongosh mongodb://127.0.0.1:27017
      talk to it";

const CHECK_EXAMPLES: &str = "\
A declaration says, in one file, which fields Pleach keeps true:

  database: shop
  collections:
    orders:
      extended_reference:
        customer: { from: customers, by: customerId, fields: [name, email] }
    products:
      computed:
        reviewCount: { count: reviews, by: productId }

Every finding names its line and column and the way out.
Exit code: 0 fine, 1 warnings only, 2 errors.

Examples:
  pleach check
      pleach.yaml in this folder
  pleach check --declare shop.yaml --json
      for a program: { \"findings\": [ … ] }";

const PATTERNS_EXAMPLES: &str = "\
Examples:
  pleach patterns             all of them, a line each
  pleach patterns computed    one of them, with its keys and an example";

#[derive(Debug, ClapArgs)]
pub(crate) struct Check {
    /// The declaration to check; several files of one database are checked together
    #[arg(long, value_name = "FILE", default_value = "pleach.yaml", env = "PLEACH_DECLARE")]
    pub(crate) declare: Vec<PathBuf>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Patterns {
    /// The pattern to show in full
    pub(crate) name: Option<String>,

    /// Print one JSON document instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Serve {
    /// The folder that holds the data; made if it is not there. Without it: a temporary one, removed at the end
    #[arg(long, value_name = "DIR", env = "PLEACH_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// A declaration: what is new in it is applied in the background; what changes or removes rules or values needs
    /// `pleach apply`. May be repeated
    #[arg(long, value_name = "FILE", env = "PLEACH_DECLARE")]
    pub(crate) declare: Vec<PathBuf>,

    /// Switch all rules off for this run: derived values drift, and the next run says that an audit is due
    #[arg(long, conflicts_with = "declare")]
    pub(crate) raw: bool,

    /// Serve in front of this MongoDB (a replica set or a sharded cluster) instead of an embedded store. What no rule concerns
    /// passes through untouched; clients authenticate themselves as before
    #[arg(long, value_name = "URI", env = "PLEACH_UPSTREAM", conflicts_with = "data", hide_env_values = true)]
    pub(crate) upstream: Option<String>,

    /// As --upstream, with the connection string in a file: a password on the command line is in the process list
    #[arg(long, value_name = "FILE", env = "PLEACH_UPSTREAM_FILE", conflicts_with_all = ["data", "upstream"])]
    pub(crate) upstream_file: Option<PathBuf>,

    /// The port to listen on; 0 takes any free one
    #[arg(long, default_value_t = 27017, env = "PLEACH_PORT")]
    pub(crate) port: u16,

    /// The address to listen on, or localhost; loopback only, until there is authentication
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    pub(crate) bind: IpAddr,

    /// How much memory the store may use for its caches and buffers, such as 512MB or 2GB
    #[arg(long, value_name = "SIZE", default_value = "1GB", env = "PLEACH_MEMORY")]
    pub(crate) memory: Size,

    /// The MongoDB version that clients are told; some tools insist on one
    #[arg(long, value_name = "VERSION", default_value = "6.0.5")]
    pub(crate) report_version: String,

    /// How often expired documents of TTL indexes are deleted, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) ttl_seconds: u64,

    /// What to log on stderr
    #[arg(long, value_enum, default_value_t = LogLevel::Info, env = "PLEACH_LOG")]
    pub(crate) log: LogLevel,
}

/// An address, or the one name that means the same everywhere.
fn address(text: &str) -> Result<IpAddr, String> {
    match text.parse() {
        Ok(address) => Ok(address),
        Err(_) if text.eq_ignore_ascii_case("localhost") => Ok(IpAddr::from([127, 0, 0, 1])),
        Err(_) => Err("write an address such as 127.0.0.1 or ::1, or localhost".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}
