//! The options of a server.

use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Options {
    /// The MongoDB version that clients see.
    pub version: String,
    /// How the process was started, for `getCmdLineOpts`.
    pub arguments: Vec<String>,
    /// Warnings about the way it runs, for `getLog: "startupWarnings"`.
    pub warnings: Vec<String>,
    pub max_connections: usize,
    /// How many bytes of messages may be held while they are read, over all connections.
    pub message_memory: usize,
    /// How long a connection may take over its first message, stop in the middle of one, or not take its reply.
    pub stall_timeout: Duration,
    pub cursor_timeout: Duration,
    pub transaction_lifetime: Duration,
    pub session_timeout: Duration,
    /// How long a stop waits for commands that are running.
    pub stop_timeout: Duration,
    /// How many bytes a blocking stage of a query may hold that cannot go on on disk. `$sort` and `$group` do so at 100 MB; the
    /// others stay in memory, so that the limit is wider.
    pub stage_memory: usize,
    /// Whether commands are counted by shape. Off only to measure what that costs; then nothing is profiled either.
    pub counts_workload: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            version: "6.0.5".into(),
            arguments: Vec::new(),
            warnings: Vec::new(),
            max_connections: 65_536,
            message_memory: 512 << 20,
            stall_timeout: Duration::from_secs(60),
            cursor_timeout: Duration::from_secs(600),
            transaction_lifetime: Duration::from_secs(60),
            session_timeout: Duration::from_secs(30 * 60),
            stop_timeout: Duration::from_secs(10),
            stage_memory: 1 << 30,
            counts_workload: true,
        }
    }
}
