//! `pleach serve`: opens the store or connects to a real MongoDB, listens, serves until a signal stops it.

use super::{Verb, parsed};
use crate::compose::{DataFolder, Patterns, connection_string, listen};
use crate::declaration::File;
use crate::input;
use crate::options::OptionalDeclarationFiles;
use crate::report::{self, Failure, LogLevel, Verdict};
use crate::size::Size;
use clap::{CommandFactory, Parser};
use patterns::life::apply::Consent;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Plans nest, and a statement of a client may lead through many of them. Memory is taken only as it is used.
const STACK: usize = 8 << 20;

pub(super) const VERB: Verb =
    Verb { name: "serve", command: Serve::command, run: |arguments| run(&parsed(arguments)?) };

/// Serve MongoDB clients: an embedded store, or a real MongoDB behind it
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("declare", |files| files.help(FILES_HELP)))]
struct Serve {
    /// The folder that holds the data; made if it is not there. Without it: a temporary one, removed at the end
    #[arg(long, value_name = "DIR", env = "PLEACH_DATA")]
    data: Option<PathBuf>,

    #[command(flatten)]
    declared: OptionalDeclarationFiles,

    /// Switch all rules off for this run: derived values drift, and the next run says that an audit is due
    #[arg(long, conflicts_with = "declare")]
    raw: bool,

    /// Serve in front of this MongoDB (a replica set or a sharded cluster) instead of an embedded store. What no rule concerns
    /// passes through untouched; clients authenticate themselves as before
    #[arg(long, value_name = "URI", env = "PLEACH_UPSTREAM", conflicts_with = "data", hide_env_values = true)]
    upstream: Option<String>,

    /// As --upstream, with the connection string in a file: a password on the command line is in the process list
    #[arg(long, value_name = "FILE", env = "PLEACH_UPSTREAM_FILE", conflicts_with_all = ["data", "upstream"])]
    upstream_file: Option<PathBuf>,

    /// The port to listen on; 0 takes any free one
    #[arg(long, default_value_t = 27017, env = "PLEACH_PORT")]
    port: u16,

    /// The address to listen on, or localhost; loopback only, until there is authentication
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    bind: IpAddr,

    /// How much memory the store may use for its caches and buffers, such as 512MB or 2GB
    #[arg(long, value_name = "SIZE", default_value = "1GB", env = "PLEACH_MEMORY")]
    memory: Size,

    /// The MongoDB version that clients are told; some tools insist on one
    #[arg(long, value_name = "VERSION", default_value = "6.0.5")]
    report_version: String,

    /// How often expired documents of TTL indexes are deleted, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    ttl_seconds: u64,

    /// Count no commands by shape and profile nothing: only to measure what that costs
    #[arg(long, hide = true)]
    no_workload: bool,

    /// What to log on stderr
    #[arg(long, value_enum, default_value_t = LogLevel::Info, env = "PLEACH_LOG")]
    log: LogLevel,
}

const EXAMPLES: &str = "\
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

const FILES_HELP: &str = "A declaration: what is new in it is applied in the background; what changes or removes rules or values \
needs `pleach apply`. May be repeated";

/// An address, or the one name that means the same everywhere.
fn address(text: &str) -> Result<IpAddr, String> {
    match text.parse() {
        Ok(address) => Ok(address),
        Err(_) if text.eq_ignore_ascii_case("localhost") => Ok(IpAddr::from([127, 0, 0, 1])),
        Err(_) => Err("write an address such as 127.0.0.1 or ::1, or localhost".to_owned()),
    }
}

fn run(serve: &Serve) -> Result<Verdict, Failure> {
    report::start_logging(serve.log);
    let declared = File::read_all(&serve.declared.files)?;
    // The port first: a taken port is the commoner mistake, and costs nothing to find.
    let listener = listen(serve.bind, serve.port)?;
    let address =
        listener.local_addr().map_err(|error| Failure::new(format!("the listener has no address: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(serve_on(serve, &listener, address, &declared));
    // Long reads that were still running do not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result?;
    report::stopped();
    Ok(Verdict::Fine)
}

/// How long after a store could not be opened anew it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Serves until a signal stops it. A store that had to stop because its disk was full is opened anew when there is room: clients
/// connect again, as they would after a restart.
async fn serve_on(
    serve: &Serve,
    listener: &std::net::TcpListener,
    address: std::net::SocketAddr,
    declared: &[File],
) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| Failure::new(format!("cannot listen: {error}"));
    let place = Place::of(serve)?;
    let mut stop = None;
    loop {
        let patterns = match &place {
            Place::Upstream(uri) => Patterns::upstream((**uri).clone(), false).await?,
            Place::Folder(folder) => match (embedded(serve, folder, address), &mut stop) {
                (Err(failure), Some(stop)) => {
                    tracing::error!(error = failure.message, "the store cannot be opened anew yet");
                    tokio::select! {
                        () = stop => return Ok(()),
                        () = tokio::time::sleep(TRY_AGAIN) => continue,
                    }
                }
                (opened, _) => opened?,
            },
        };
        begin(&patterns, serve, declared).await?;
        let options = server::Options {
            version: serve.report_version.clone(),
            arguments: std::env::args().map(without_password).collect(),
            counts_workload: !serve.no_workload,
            ..server::Options::default()
        };
        let incoming = tokio::net::TcpListener::from_std(listener.try_clone().map_err(cannot)?).map_err(cannot)?;
        // Signals are handled before the address is printed.
        let is_first = stop.is_none();
        let stop = stop.get_or_insert_with(|| Box::pin(stop_signal()));
        if is_first {
            report::listening(&format!("mongodb://{address}"), &place.describe(), place.is_upstream());
        }
        let mut told = false;
        let until = async {
            tokio::select! {
                () = &mut *stop => told = true,
                () = patterns.wants_reopening() => {}
            }
        };
        let served = server::run(incoming, patterns.front.clone(), options, until).await;
        if told || served.is_err() {
            patterns.close().await;
            return served.map_err(|error| Failure::new(format!("the server stopped: {error}")));
        }
        tracing::warn!("the disk has room again: the store is opened anew, and clients connect again");
        patterns.release().await?;
    }
}

/// Where the data is.
enum Place {
    /// A temporary folder goes with it.
    Folder(DataFolder),
    Upstream(Box<upstream::Uri>),
}

impl Place {
    fn of(serve: &Serve) -> Result<Place, Failure> {
        let upstream = match &serve.upstream_file {
            Some(file) => Some(input::connection_string(file)?),
            None => serve.upstream.clone(),
        };
        match upstream {
            Some(text) => Ok(Place::Upstream(Box::new(connection_string(&text)?))),
            None => Ok(Place::Folder(DataFolder::of(serve.data.as_deref())?)),
        }
    }

    fn is_upstream(&self) -> bool {
        matches!(self, Place::Upstream(_))
    }

    fn describe(&self) -> String {
        match self {
            Place::Folder(folder) if folder.is_temporary() => {
                format!("Its data is in {} and goes when it stops; keep it with --data DIR.", folder.path.display())
            }
            Place::Folder(folder) => format!("Its data is in {}.", folder.path.display()),
            Place::Upstream(uri) => format!("Its data is in {uri}: what no rule concerns passes through untouched."),
        }
    }
}

fn embedded(serve: &Serve, folder: &DataFolder, address: std::net::SocketAddr) -> Result<Patterns, Failure> {
    let options = engine::Options {
        memory_bytes: serve.memory.0,
        address: Some(address.to_string()),
        ttl_period: Duration::from_secs(serve.ttl_seconds),
        ..engine::Options::default()
    };
    Ok(Patterns::embedded(engine::Engine::open(&folder.path, options)?))
}

/// An argument as clients may see it (`getCmdLineOpts`): of a connection string only what is no secret.
fn without_password(argument: String) -> String {
    let Some(at) = argument.find("mongodb") else { return argument };
    let (before, text) = argument.split_at(at);
    match upstream::Uri::parse(text) {
        Ok(uri) => format!("{before}{uri}"),
        Err(_) if text.contains("://") => format!("{before}mongodb://***"),
        Err(_) => argument,
    }
}

/// Puts the rules in force that the catalog has, and applies what a declaration adds in the background.
async fn begin(patterns: &Patterns, serve: &Serve, declared: &[File]) -> Result<(), Failure> {
    let life = patterns.life.clone();
    if serve.raw {
        let rules = patterns.patiently(async || life.switch_off().await).await?;
        if rules > 0 {
            tracing::warn!(
                rules,
                "all rules are switched off for this run (--raw): derived values drift as data is written"
            );
        }
        return Ok(());
    }
    patterns.patiently(async || life.load().await).await?;
    for db in patterns.patiently(async || life.audits_due().await).await? {
        tracing::warn!(database = db, "its rules were switched off by an earlier run (--raw): run `pleach audit`");
    }
    patterns.patiently(async || life.start().await).await?;
    let additions = Consent { additions_only: true, ..Consent::default() };
    let declared: Vec<_> = declared.iter().map(|file| file.declaration.clone()).collect();
    tokio::spawn(async move {
        for declaration in declared {
            match life.apply(&declaration, additions).await {
                Ok(applied) => applied.left.iter().for_each(|what| tracing::warn!("{what}")),
                Err(error) => tracing::error!(%error, "the declaration could not be applied"),
            }
        }
    });
    Ok(())
}

/// Ctrl-C or SIGTERM, from the moment this is called.
fn stop_signal() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    async move {
        let interrupt = tokio::signal::ctrl_c();
        #[cfg(unix)]
        if let Ok(mut terminate) = terminate {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
            return;
        }
        let _ = interrupt.await;
    }
}
