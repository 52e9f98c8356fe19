//! `pleach serve`: opens the store, listens, serves until it is told to stop.

use crate::args::Serve;
use crate::compose::{DataFolder, listen};
use crate::report::{self, Failure};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn run(serve: &Serve) -> Result<(), Failure> {
    report::start_logging(serve.log);
    // The port first: a taken port is the commoner mistake, and costs nothing to find.
    let listener = listen(serve.bind, serve.port)?;
    let address =
        listener.local_addr().map_err(|error| Failure::new(format!("the listener has no address: {error}")))?;
    let folder = DataFolder::of(serve)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(async {
        let engine = engine::Engine::open(
            &folder.path,
            engine::Options {
                memory_bytes: serve.memory.0,
                address: Some(address.to_string()),
                ttl_period: Duration::from_secs(serve.ttl_seconds),
                ..engine::Options::default()
            },
        )?;
        let engine = Arc::new(engine);
        let patterned = crate::compose::patterned(&engine);
        let options = server::Options {
            version: serve.report_version.clone(),
            arguments: std::env::args().collect(),
            ..server::Options::default()
        };
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|error| Failure::new(format!("cannot listen: {error}")))?;
        report::listening(&format!("mongodb://{address}"), &folder.path, folder.temporary);
        let served = server::run(listener, patterned, options, stop_signal()).await;
        engine.close();
        served.map_err(|error| Failure::new(format!("the server stopped: {error}")))
    });
    // Long reads that were still running do not hold up the end.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result?;
    report::stopped();
    Ok(())
}

/// Ctrl-C or SIGTERM.
async fn stop_signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = interrupt => {}
                    _ = terminate.recv() => {}
                }
            }
            Err(_) => {
                let _ = interrupt.await;
            }
        }
    }
    #[cfg(not(unix))]
    {
        let _ = interrupt.await;
    }
}
