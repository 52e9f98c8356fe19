//! `pleach serve`: opens the store or connects to a real MongoDB, listens, serves until it is told to stop.

use crate::args::Serve;
use crate::compose::{DataFolder, Patterns, connection_string, listen};
use crate::declaration::File;
use crate::report::{self, Failure};
use patterns::life::apply::Extent;
use std::time::Duration;

pub(crate) fn run(serve: &Serve) -> Result<(), Failure> {
    report::start_logging(serve.log);
    let declared = serve.declare.as_deref().map(File::read).transpose()?;
    // The port first: a taken port is the commoner mistake, and costs nothing to find.
    let listener = listen(serve.bind, serve.port)?;
    let address =
        listener.local_addr().map_err(|error| Failure::new(format!("the listener has no address: {error}")))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(async {
        let (patterns, place) = match &serve.upstream {
            Some(uri) => (Patterns::upstream(uri, false).await?, Place::Upstream(Box::new(connection_string(uri)?))),
            None => embedded(serve, address)?,
        };
        begin(&patterns, serve, declared).await?;
        let options = server::Options {
            version: serve.report_version.clone(),
            arguments: std::env::args().map(without_password).collect(),
            ..server::Options::default()
        };
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|error| Failure::new(format!("cannot listen: {error}")))?;
        let stop = stop_signal();
        report::listening(&format!("mongodb://{address}"), &place.describe());
        let served = server::run(listener, patterns.backend.clone(), options, stop).await;
        patterns.close().await;
        served.map_err(|error| Failure::new(format!("the server stopped: {error}")))
    });
    // Long reads that were still running do not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result?;
    report::stopped();
    Ok(())
}

/// Where the data is.
enum Place {
    /// A temporary folder goes with it.
    Folder(DataFolder),
    Upstream(Box<upstream::Uri>),
}

impl Place {
    fn describe(&self) -> String {
        match self {
            Place::Folder(folder) if folder.temporary => {
                format!("Its data is in {} and goes when it stops; keep it with --data DIR.", folder.path.display())
            }
            Place::Folder(folder) => format!("Its data is in {}.", folder.path.display()),
            Place::Upstream(uri) => format!("Its data is in {uri}: what no rule concerns passes through untouched."),
        }
    }
}

fn embedded(serve: &Serve, address: std::net::SocketAddr) -> Result<(Patterns, Place), Failure> {
    let folder = DataFolder::of(serve)?;
    let options = engine::Options {
        memory_bytes: serve.memory.0,
        address: Some(address.to_string()),
        ttl_period: Duration::from_secs(serve.ttl_seconds),
        ..engine::Options::default()
    };
    let engine = engine::Engine::open(&folder.path, options)?;
    Ok((Patterns::embedded(engine), Place::Folder(folder)))
}

/// An argument as clients may see it (`getCmdLineOpts`).
fn without_password(argument: String) -> String {
    match argument.find("mongodb://").and_then(|at| Some((at + 10, argument.rfind('@')?))) {
        Some((from, to)) if from < to => {
            format!("{}***{}", argument.get(..from).unwrap_or_default(), argument.get(to..).unwrap_or_default())
        }
        _ => argument,
    }
}

/// Puts the rules in force that the catalog has, and applies what a declaration adds in the background.
async fn begin(patterns: &Patterns, serve: &Serve, declared: Option<File>) -> Result<(), Failure> {
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
    let Some(file) = declared else { return Ok(()) };
    let additions = Extent { additions_only: true, ..Extent::default() };
    tokio::spawn(async move {
        match life.apply(&file.declaration, additions).await {
            Ok(left) => {
                for what in left {
                    tracing::warn!("rule {what}: the rule that is kept stays in force until `pleach apply`");
                }
            }
            Err(error) => tracing::error!(%error, "the declaration could not be applied"),
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
