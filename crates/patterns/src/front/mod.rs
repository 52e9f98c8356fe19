//! What clients meet: [`ClientFront`] is the layer that keeps rules true and the life of these rules, behind one door.
//!
//! It decides about whole commands before they are parsed ([`Front`]), answers what the rules' life knows ([`admin`]), and sees to
//! it that whatever is answered without MongoDB is answered by the client's own rights ([`rights`], SEMANTICS R37). Documents
//! are read and written by the layer beneath.

mod admin;
mod behind;
mod client_version;
mod explain;
mod listing;
mod restore;
mod rights;
mod timeseries;
mod ttl_indexes;
mod unique_indexes;
mod validators;
mod views;

use crate::active::route::Circumstances;
use crate::active::{route, side_writes};
use crate::execute::executor::Executor;
use crate::execute::{digits, read};
use crate::layer::Patterned;
use crate::life::Life;
use document::Doc;
use document::backend::{
    Answer, Backend, Cursor, Facts, FenceKey, Front, Head, InFlight, Mode, Pipelining, Relay, Remote, Restorer,
    Restoring, Route, Session,
};
use document::op::{AdminOp, Capture, Context, Explained, Namespace, ReadOp, Verbosity, WriteOp, Written};
use std::any::Any;
use std::sync::Arc;

/// The layer and the life of its rules, as the server has them. Cheap to clone.
#[derive(Clone)]
pub struct ClientFront {
    layer: Patterned,
    life: Arc<Life>,
}

impl ClientFront {
    /// Around the layer whose rules have this life.
    pub fn new(life: Arc<Life>) -> ClientFront {
        ClientFront { layer: life.patterned.clone(), life }
    }

    fn executor(&self) -> &Arc<Executor> {
        &self.layer.executor
    }

    /// Who answers a command if there is a server behind.
    pub fn route_of(&self, command: &Head<'_>) -> Route {
        let (executor, life) = (self.executor(), &self.life);
        let rules = executor.current();
        if rules.alias(command.db).is_some() {
            return client_version::route(command);
        }
        let at = Circumstances {
            rules: &rules,
            lease: &executor.lease,
            is_restoring: &|db| life.is_pending(db),
            expires: &|ns| life.expiries().iter().any(|row| row.ns.by_ref() == ns),
        };
        let lenses = at.rules.lenses();
        if command.class.is_read() && lenses.in_database(command.db).next().is_some() && lenses.views.is_due(command.db)
        {
            list_views(executor, life.context(), command.db);
        }
        route::of(&at, command)
    }
}

/// Lists the views of a database in the background: which names are views must be known when a command comes.
fn list_views(executor: &Arc<Executor>, context: Context, db: &str) {
    let (executor, db) = (executor.clone(), db.to_owned());
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    runtime.spawn(async move {
        let rules = executor.rules();
        read::versioned_views::list(&*executor.inner, rules.lenses(), &context, &db).await
    });
}

impl Backend for ClientFront {
    fn facts(&self) -> Facts {
        self.layer.facts()
    }

    fn begin<'a>(&'a self, session: &'a mut Session, context: &'a Context) -> Answer<'a, ()> {
        self.layer.begin(session, context)
    }

    fn read<'a>(&'a self, session: &'a mut Session, context: &'a Context, op: ReadOp) -> Answer<'a, Box<dyn Cursor>> {
        let rules = self.executor().current();
        if let Some(alias) = rules.alias(&op.ns().db) {
            return Box::pin(async move { client_version::read(self, &alias, session, context, op).await });
        }
        if let ReadOp::Aggregate(aggregate) = &op
            && let Err((target, error)) = self.life.check_sink(&rules, aggregate)
        {
            let line = session.relay.clone();
            return Box::pin(
                async move { Err(rights::refuse_sink(self.executor(), line, op.ns(), &target, error).await) },
            );
        }
        if read::stack_of(&rules, &op).is_none() {
            return self.layer.read(session, context, op);
        }
        Box::pin(async move {
            let op = timeseries::hinted(&self.life, context, op).await?;
            self.layer.read(session, context, op).await
        })
    }

    fn write<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: &'a WriteOp,
        capture: &'a Capture,
    ) -> Answer<'a, Written> {
        let alias = self.executor().current().alias(&op.ns().db);
        Box::pin(async move {
            if let Some(alias) = alias {
                return client_version::write(self, &alias, session, context, op, capture).await;
            }
            let line = session.relay.clone();
            let outcome = match restore::write(self, session, context, op).await {
                Ok(None) => self.layer.write(session, context, op, capture).await,
                Ok(Some(written)) => Ok(written),
                Err(error) => Err(error),
            };
            rights::of_write(self.executor(), line, op, outcome).await
        })
    }

    fn recall<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
    ) -> Answer<'a, Written> {
        self.layer.recall(session, context, db, statements)
    }

    fn remember<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        db: &'a str,
        statements: &'a [i32],
        written: &'a Written,
    ) -> Answer<'a, ()> {
        self.layer.remember(session, context, db, statements, written)
    }

    fn fences<'a>(&'a self, session: &'a mut Session, keys: &'a [(FenceKey, Mode)]) -> Answer<'a, ()> {
        self.layer.fences(session, keys)
    }

    fn explain<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: Explained,
        verbosity: Verbosity,
    ) -> Answer<'a, Doc<'static>> {
        let ns = match &op {
            Explained::Read(op) => op.ns(),
            Explained::Write(op) => op.ns(),
        };
        match self.executor().current().alias(&ns.db) {
            Some(alias) => {
                Box::pin(async move { client_version::explain(self, &alias, session, context, op, verbosity).await })
            }
            None => Box::pin(explain::explain(self.executor(), session, context, op, verbosity)),
        }
    }

    fn admin<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        op: AdminOp,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        Box::pin(async move {
            let rules = self.executor().rules();
            let op = match client_version::database(&op).and_then(|db| rules.alias(db)) {
                Some(alias) => client_version::admin(&rules, &alias, op)?,
                None => op,
            };
            drop(rules);
            let rights = rights::before_admin(self.executor(), session.relay.clone(), &op).await?;
            let target = rights::target(&op);
            let outcome = admin::run(self, session, context, op).await;
            rights::of_admin(self.executor(), rights.as_ref(), target.as_ref(), outcome)
        })
    }

    fn committed(&self, session: &[u8; 16], number: i64) -> bool {
        self.layer.committed(session, number)
    }

    fn cluster_time(&self) -> u64 {
        self.layer.cluster_time()
    }

    fn pipelining(&self) -> Option<&dyn Pipelining> {
        self.layer.pipelining()
    }

    fn remote(&self) -> Option<&dyn Remote> {
        self.layer.remote()
    }
}

impl Front for ClientFront {
    fn connect(&self) -> Option<Arc<dyn Relay>> {
        self.remote().map(Remote::connect)
    }

    fn route(&self, command: &Head<'_>) -> Route {
        match self.route_of(command) {
            Route::Forward if self.remote().is_none() => Route::Plain,
            route => route,
        }
    }

    fn refuse<'a>(&'a self, command: &'a Head<'a>, line: Option<&'a Arc<dyn Relay>>) -> Answer<'a, ()> {
        let executor = self.executor();
        if let Some(alias) = executor.current().alias(command.db) {
            return Box::pin(std::future::ready(client_version::refuse_stream(&alias, command)));
        }
        let Some(refused) = views::stream(&executor.current(), command) else {
            return match side_writes::merged_into(command) {
                Some(target) => Box::pin(async move { rights::before_sink(executor, command, line, &target).await }),
                None => Box::pin(behind::refuse(executor, command, line)),
            };
        };
        let refused = timeseries::refused(&self.life, command).unwrap_or(refused);
        Box::pin(rights::refuse_stream(executor, command, line, refused))
    }

    fn takes_writes(&self, view: &Namespace) -> bool {
        let rules = self.executor().current();
        match rules.alias(&view.db) {
            Some(alias) => rules.shaped(&alias.namespace(view)).is_some(),
            None => rules.shaped(view).is_some(),
        }
    }

    fn database(&self, name: &str) -> Option<String> {
        self.executor().current().alias(name).map(|alias| alias.db.to_string())
    }

    fn in_flight(&self, command: &Head<'_>) -> Option<Box<dyn InFlight>> {
        Some(self.layer.in_flight(command))
    }

    fn cursor_open(&self, namespace: &str) -> Option<Box<dyn Any + Send + Sync>> {
        let alias = namespace.split_once('.').and_then(|(db, _)| self.executor().current().alias(db));
        let of_database = alias.zip(namespace.split_once('.')).map(|(alias, (_, rest))| format!("{}.{rest}", alias.db));
        Some(Box::new(self.life.readers.add(of_database.as_deref().unwrap_or(namespace))))
    }

    fn restoring(&self, step: Restoring) -> Option<Restorer> {
        Some(match step {
            Restoring::Connects => Arc::new(self.life.restorer()),
            Restoring::Asks => Arc::new(self.life.restorer_asks()),
        })
    }

    fn restored<'a>(&'a self, sessions: &'a [[u8; 16]]) -> Answer<'a, ()> {
        Box::pin(self.life.end_restore(sessions))
    }

    fn rewritten(&self, command: &Head<'_>) -> Option<Doc<'static>> {
        if let Some(alias) = self.executor().current().alias(command.db) {
            return client_version::rewritten(&alias, command);
        }
        listing::rewritten(command).or_else(|| digits::command(&self.executor().current(), command))
    }
}
