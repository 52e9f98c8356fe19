//! The labels that tell a driver what it may do again, as MongoDB gives them.
//!
//! This is no second classification beside [`Error::scope`]: the scope says how far a failure reaches, by which this process decides
//! whether it goes on or tries again itself. A label is part of the reply. Which codes carry one is MongoDB's own list and depends on the
//! role of the command: a write conflict is labelled in a transaction and not outside, and codes that this process takes for those of one
//! statement (9001, 13436) are labelled because drivers rely on it.

use crate::session::Role;
use document::error::label::{RETRYABLE, TRANSIENT};
use document::{Code, Error};

/// The labels of an error that a command in this role failed with; those that the error brings itself included.
pub(crate) fn of(error: &Error, role: Role, ends_transaction: bool) -> Vec<&'static str> {
    let mut labels = error.labels().to_vec();
    let mut add = |label| {
        if !labels.contains(&label) {
            labels.push(label);
        }
    };
    match role {
        Role::Plain => labels.retain(|label| *label != TRANSIENT && *label != RETRYABLE),
        Role::Retryable { .. } => {
            if has_retryable_label(error.code()) {
                add(RETRYABLE);
            }
            labels.retain(|label| *label != TRANSIENT);
        }
        Role::InTransaction { .. } => {
            if has_transient_label(error.code(), ends_transaction) {
                add(TRANSIENT);
            }
            if ends_transaction && has_retryable_label(error.code()) {
                add(RETRYABLE);
            }
        }
    }
    labels
}

/// Whether MongoDB labels the code, inside a transaction: the whole transaction may be run again.
fn has_transient_label(code: Code, ends_transaction: bool) -> bool {
    match code {
        Code::NoSuchTransaction | Code::SnapshotUnavailable | Code::StaleConfig => true,
        Code::WriteConflict | Code::LockTimeout | Code::PreparedTransactionInProgress => !ends_transaction,
        other => !ends_transaction && has_retryable_label(other),
    }
}

/// Whether MongoDB labels the code of a retryable write: the server is going away or was not reached, so that the statement may be sent
/// again.
fn has_retryable_label(code: Code) -> bool {
    matches!(
        code,
        Code::InterruptedAtShutdown
            | Code::InterruptedDueToReplStateChange
            | Code::NotWritablePrimary
            | Code::ShutdownInProgress
            | Code::HostUnreachable
            | Code::HostNotFound
            | Code::Location(89 | 189 | 262 | 9001 | 13435 | 13436)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_depend_on_code_and_role() {
        let statement = Role::InTransaction { number: 1, first: false };
        let retryable = Role::Retryable { number: 1 };
        let rows: &[(Code, Role, bool, &[&str])] = &[
            (Code::WriteConflict, statement, false, &[TRANSIENT]),
            (Code::WriteConflict, statement, true, &[]),
            (Code::WriteConflict, Role::Plain, false, &[]),
            (Code::WriteConflict, retryable, false, &[]),
            (Code::NoSuchTransaction, statement, true, &[TRANSIENT]),
            (Code::DuplicateKey, statement, false, &[]),
            (Code::InterruptedAtShutdown, retryable, false, &[RETRYABLE]),
            (Code::InterruptedAtShutdown, statement, false, &[TRANSIENT]),
            (Code::InterruptedAtShutdown, statement, true, &[RETRYABLE]),
            (Code::InterruptedAtShutdown, Role::Plain, false, &[]),
        ];
        for (code, role, ends, expected) in rows {
            assert_eq!(of(&Error::new(*code, ""), *role, *ends), *expected, "{code:?} {role:?} {ends}");
        }
    }
}
