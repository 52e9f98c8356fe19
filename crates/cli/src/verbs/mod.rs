//! The verbs of the command line: one file per verb, with the options it takes, its help and what it does, listed in [`VERBS`].

mod adopt;
mod advise;
mod apply;
mod audit;
mod bench;
mod check;
mod compared;
mod drop;
mod explain;
mod forget;
mod lab;
mod patterns;
mod plan;
mod repair;
mod serve;
mod status;
mod uninstall;
mod versions;

use crate::report::{Code, Failure, Verdict};
use clap::{ArgMatches, Command, FromArgMatches};

/// One verb of the command line.
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    /// Its options, its sentence of help and its examples. [`command_line`] gives it its name.
    pub(crate) command: fn() -> Command,
    /// Does it, with the arguments that clap has accepted for `command`.
    pub(crate) run: fn(&ArgMatches) -> Result<Verdict, Failure>,
}

/// All verbs, sorted by name.
pub(crate) const VERBS: &[&Verb] = &[
    &adopt::VERB,
    &advise::VERB,
    &apply::VERB,
    &audit::VERB,
    &bench::VERB,
    &check::VERB,
    &drop::VERB,
    &explain::VERB,
    &forget::VERB,
    &lab::VERB,
    &patterns::VERB,
    &plan::VERB,
    &repair::VERB,
    &serve::VERB,
    &status::VERB,
    &uninstall::VERB,
    &versions::VERB,
];

/// The whole command line. Parsing does no I/O.
pub(crate) fn command_line() -> Command {
    Command::new("pleach")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Data-modeling patterns for MongoDB, kept true")
        .long_about(
            "Data-modeling patterns for MongoDB, kept true.\n\n\
             Pleach speaks the MongoDB wire protocol: mongosh and every driver connect to it as to MongoDB.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(80)
        .subcommands(VERBS.iter().map(|verb| (verb.command)().name(verb.name)))
}

/// Runs the verb that the arguments name.
pub(crate) fn run(arguments: &ArgMatches) -> Result<Verdict, Failure> {
    let named = arguments.subcommand().and_then(|(name, arguments)| {
        let verb = VERBS.iter().find(|verb| verb.name == name)?;
        Some((verb, arguments))
    });
    match named {
        Some((verb, arguments)) => (verb.run)(arguments),
        // clap requires one, and knows no others.
        None => Err(Failure::of(Code::Word("usage"), "no verb is named").hint("`pleach --help` lists them")),
    }
}

/// The arguments of a verb as its options. clap has checked them already: an error is a mistake in `Verb::command`.
fn parsed<O: FromArgMatches>(arguments: &ArgMatches) -> Result<O, Failure> {
    O::from_arg_matches(arguments).map_err(|error| Failure::of(Code::Word("usage"), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The commands, from this one inward, and the options that have no help.
    fn undocumented(command: &Command) -> Vec<String> {
        let is_sentence = |help: &str| help.len() > 10 && help.starts_with(char::is_uppercase) && !help.ends_with('.');
        let mut bare = Vec::new();
        if !command.get_about().is_some_and(|about| is_sentence(&about.to_string())) {
            bare.push(command.get_name().to_owned());
        }
        let options = command.get_arguments().filter(|option| option.get_help().is_none());
        bare.extend(options.map(|option| format!("{} --{}", command.get_name(), option.get_id())));
        bare.extend(command.get_subcommands().flat_map(undocumented));
        bare
    }

    #[test]
    fn the_registry_is_sorted_unique_and_documented() {
        assert!(VERBS.is_sorted_by(|first, second| first.name < second.name), "sorted, no name twice");
        for verb in VERBS {
            assert_eq!(undocumented(&(verb.command)().name(verb.name)), [""; 0]);
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        command_line().debug_assert();
    }
}
