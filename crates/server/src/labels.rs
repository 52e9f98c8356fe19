//! The labels that tell a driver what it may do again.

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
            if is_retryable(error.code()) {
                add(RETRYABLE);
            }
            labels.retain(|label| *label != TRANSIENT);
        }
        Role::InTransaction { .. } => {
            if is_transient(error.code(), ends_transaction) {
                add(TRANSIENT);
            }
            if ends_transaction && is_retryable(error.code()) {
                add(RETRYABLE);
            }
        }
    }
    labels
}

/// The whole transaction may be run again.
fn is_transient(code: Code, ends_transaction: bool) -> bool {
    match code {
        Code::NoSuchTransaction | Code::SnapshotUnavailable | Code::StaleConfig => true,
        Code::WriteConflict | Code::LockTimeout | Code::PreparedTransactionInProgress => !ends_transaction,
        other => !ends_transaction && is_retryable(other),
    }
}

/// The statement may be sent again: the server is going away or was not reached.
fn is_retryable(code: Code) -> bool {
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
