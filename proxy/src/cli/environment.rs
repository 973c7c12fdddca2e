//! Which flags were given in the environment, so that an error names what has to be mended: whoever set
//! KLAMP_LISTEN in a manifest does not look for a `--listen`.

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, Error};
use std::ffi::OsString;

/// Flags (`--listen`) that came from the environment, each with its variable (`KLAMP_LISTEN`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FromEnvironment(Vec<(String, String)>);

impl FromEnvironment {
    /// Of a subcommand and what was found for it.
    pub(super) fn of(command: &Command, found: &ArgMatches) -> Self {
        let is_from_there = |id: &str| found.value_source(id) == Some(ValueSource::EnvVariable);
        let args = command.get_arguments();
        let given = args.filter(|arg| is_from_there(arg.get_id().as_str()));
        Self(given.filter_map(flag_and_variable).collect())
    }

    /// A flag as an error is to name it.
    pub(crate) fn named(&self, flag: &str) -> String {
        match self.0.iter().find(|(known, _)| known == flag) {
            Some((_, variable)) => format!("{flag}, from {variable}"),
            None => flag.to_owned(),
        }
    }

    /// Which of these flags came from the environment, to stand behind an error; else nothing.
    pub(crate) fn note(&self, flags: &[&str]) -> String {
        let given = self
            .0
            .iter()
            .filter(|(flag, _)| flags.contains(&flag.as_str()));
        let given: Vec<_> = given
            .map(|(flag, variable)| format!("{flag} is from {variable}"))
            .collect();
        match given.is_empty() {
            true => String::new(),
            false => format!(" ({})", given.join(", ")),
        }
    }
}

fn flag_and_variable(arg: &clap::Arg) -> Option<(String, String)> {
    let variable = arg.get_env()?.to_str()?;
    Some((format!("--{}", arg.get_long()?), variable.to_owned()))
}

/// The error with the variable beside the flag that it is about, where `args` do not have that flag.
pub(super) fn name_variable(mut error: Error, command: &Command, args: &[OsString]) -> Error {
    let Some(ContextValue::String(about)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let is_given = |flag: &str| {
        args.iter().filter_map(|arg| arg.to_str()).any(|arg| {
            arg.strip_prefix(flag)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    };
    let known = command.get_subcommands().flat_map(Command::get_arguments);
    let mut known = known.filter_map(flag_and_variable);
    // (behind it stands what its values are called)
    let flag = about.split(' ').next().unwrap_or_default();
    if let Some((_, variable)) = known.find(|(known, _)| known == flag)
        && !is_given(flag)
    {
        let about = format!("{about} (from {variable})");
        error.insert(ContextKind::InvalidArg, ContextValue::String(about));
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn a_flag_is_named_with_its_variable_where_it_came_from_there() {
        let from = FromEnvironment(vec![("--debug".to_owned(), "KLAMP_DEBUG".to_owned())]);
        assert_eq!(from.named("--debug"), "--debug, from KLAMP_DEBUG");
        assert_eq!(from.named("--admin"), "--admin");
        assert_eq!(from.note(&["--debug-token"]), "");
        let note = from.note(&["--admin", "--debug"]);
        assert_eq!(note, " (--debug is from KLAMP_DEBUG)");
    }

    #[test]
    fn what_the_arguments_have_is_not_blamed_on_the_environment() {
        let told = |args: &[&str]| {
            let args: Vec<_> = ["klamp", "run"]
                .iter()
                .chain(args)
                .map(OsString::from)
                .collect();
            let error = Cli::command().try_get_matches_from(&args).unwrap_err();
            name_variable(error, &Cli::command(), &args).to_string()
        };
        for given in [&["--threads=0"][..], &["--threads", "0"]] {
            assert!(!told(given).contains("KLAMP_THREADS"), "{}", told(given));
        }
    }
}
