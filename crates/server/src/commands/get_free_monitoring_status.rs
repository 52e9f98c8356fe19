//! `getFreeMonitoringStatus`.

use super::Command;
use crate::dispatch::Call;
use document::Result;

pub(crate) const COMMAND: Command = Command {
    names: &["getFreeMonitoringStatus"],
    help: "Tells that nothing is sent to a monitoring service.",
    structure: "getFreeMonitoringStatus",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    call.reply.append_text("state", "disabled");
    Ok(())
}
