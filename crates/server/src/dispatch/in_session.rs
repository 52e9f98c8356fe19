//! A command in its session: as a plain one, as a retryable write, or as a part of a transaction that is kept or ended.

use crate::commands::Access;
use crate::dispatch::{Call, run};
use crate::session::Role;
use crate::state::Server;
use document::Result;
use document::backend::{Class, Joined};
use std::time::Instant;

/// Runs the command as a plain one, as a retryable write, or as a part of a transaction.
pub(super) async fn run_in_session(call: &mut Call<'_>) -> Result<()> {
    if let Some(relay) = &call.client.relay
        && call.command.access != Access::Server
    {
        // What is remembered for a client serves only its user (SEMANTICS R37).
        relay.identify().await?;
    }
    let Some(session) = call.session.id else { return run(call).await };
    match call.role {
        Role::Plain => run(call).await,
        Role::Retryable { number } => {
            let mut visit = call.server.sessions.visit(&session, call.owner().user).await?;
            let ended = visit.retryable(&session, number)?;
            forget_transaction(call.server, &session, ended);
            call.session.retry = Some(number);
            // Kept until the end: an attempt and its retry do not overlap.
            call.visit = Some(visit);
            run(call).await
        }
        Role::InTransaction { number, first } if call.client.relay.is_some() => run_joined(call, number, first).await,
        Role::InTransaction { number, first } => run_in_transaction(call, session, number, first).await,
    }
}

async fn run_in_transaction(call: &mut Call<'_>, session: [u8; 16], number: i64, first: bool) -> Result<()> {
    let server = call.server;
    let mut visit = server.sessions.visit(&session, None).await?;
    if !first && visit.is_fresh() && server.backend.committed(&session, number) {
        visit.recall_commit(number);
    }
    if first {
        let ends = Instant::now() + server.options.transaction_lifetime;
        let ended = visit.start(&session, number, ends)?;
        forget_transaction(server, &session, ended);
        server.counters.transactions_started.add(1);
        call.client.operation.set_transaction_end(ends);
        call.session.number = Some(number);
        if let Err(error) = server.backend.begin(&mut call.session, &call.context).await {
            visit.abort();
            return Err(error);
        }
    } else if !(call.command.ends_transaction && visit.is_committed(number)) {
        let ends = visit.resume(&session, number, &mut call.session)?;
        call.client.operation.set_transaction_end(ends);
    } else if call.command.class == Class::AbortTransaction {
        visit.resume(&session, number, &mut call.session)?;
    }
    call.visit = Some(visit);
    let result = run(call).await;
    let Some(visit) = call.visit.as_mut() else { return result };
    if call.command.ends_transaction {
        server.cursors.end_of_transaction(&session, number);
    } else if result.is_ok() && !call.statement_failed {
        visit.keep(&mut call.session);
    } else {
        if let Some(transaction) = call.session.transaction.take() {
            transaction.abort();
        }
        visit.abort();
        forget_transaction(server, &session, Some(number));
    }
    result
}

/// A statement of a transaction that lives in the server behind: what is done here is done in it, under its number.
async fn run_joined(call: &mut Call<'_>, number: i64, first: bool) -> Result<()> {
    call.session.joined = Some(Joined { number, first });
    call.server.backend.begin(&mut call.session, &call.context).await?;
    let result = run(call).await;
    if let Some(transaction) = call.session.transaction.take()
        && (result.is_err() || call.statement_failed)
    {
        transaction.abort();
    }
    result
}

/// After a transaction was ended from outside.
fn forget_transaction(server: &Server, session: &[u8; 16], number: Option<i64>) {
    if let Some(number) = number {
        server.counters.transactions_aborted.add(1);
        server.cursors.end_of_transaction(session, number);
    }
}
