//! Further proxies, each by a command line in a file: see `tests/bench/rivals.example`.
//!
//! The trap: a misspelt placeholder would reach the proxy as it stands. So one that is not known is
//! an error, unless a dollar sign before it makes it the shell's.

use crate::contender::{Contender, Running};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const PLACEHOLDERS: [&str; 6] = [
    "listen_host",
    "listen_port",
    "upstream_host",
    "upstream_port",
    "threads",
    "dir",
];

/// A proxy that a user has named.
#[derive(Debug)]
struct Named {
    name: String,
    command: String,
}

/// Reads a file with one proxy per line.
///
/// # Errors
/// If it cannot be read, or a line of it is wrong: then with the line's number.
pub fn read(path: &Path) -> io::Result<Vec<Box<dyn Contender>>> {
    let within = |what: String| io::Error::other(format!("{}: {what}", path.display()));
    let text = fs::read_to_string(path).map_err(|e| within(e.to_string()))?;
    let taken: Vec<String> = super::all()
        .iter()
        .map(|rival| rival.name().to_owned())
        .collect();
    let named = parse(&text, &taken).map_err(within)?;
    let boxed = named
        .into_iter()
        .map(|named| Box::new(named) as Box<dyn Contender>);
    Ok(boxed.collect())
}

fn parse(text: &str, taken: &[String]) -> Result<Vec<Named>, String> {
    let mut all: Vec<Named> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| format!("line {number}: {what}");
        let (name, command) = line
            .split_once(':')
            .ok_or_else(|| wrong("a line is `name: command`"))?;
        let (name, command) = (name.trim(), command.trim());
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(fits) {
            return Err(wrong("a name has letters, digits, -, _ and . only"));
        }
        if taken.iter().any(|taken| taken == name) || all.iter().any(|named| named.name == name) {
            return Err(wrong(&format!("{name} is there already")));
        }
        if !command.contains("{listen_port}") || !command.contains("{upstream_port}") {
            return Err(wrong(
                "a command has to be told {listen_port} and {upstream_port}",
            ));
        }
        fill(command, |_| String::new()).map_err(|what| wrong(&what))?;
        all.push(Named {
            name: name.to_owned(),
            command: command.to_owned(),
        });
    }
    Ok(all)
}

/// The command with each placeholder replaced by what `value` has for it.
fn fill(command: &str, value: impl Fn(&str) -> String) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = command;
    while let Some(start) = rest.find('{') {
        let (before, from) = rest.split_at(start);
        filled.push_str(before);
        let word = from[1..].split('}').next().unwrap_or_default();
        if before.ends_with('$')
            || word.len() + 2 > from.len()
            || word.contains(char::is_whitespace)
        {
            filled.push('{');
            rest = &from[1..];
            continue;
        }
        if !PLACEHOLDERS.contains(&word) {
            let known = PLACEHOLDERS.join("}, {");
            return Err(format!("no {{{word}}} here, but {{{known}}}"));
        }
        filled.push_str(&value(word));
        rest = &from[word.len() + 2..];
    }
    filled.push_str(rest);
    Ok(filled)
}

impl Contender for Named {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(
        &self,
        listen: SocketAddr,
        upstream: SocketAddr,
        threads: usize,
        dir: &Path,
    ) -> io::Result<Running> {
        let filled = fill(&self.command, |placeholder| match placeholder {
            "listen_host" => listen.ip().to_string(),
            "listen_port" => listen.port().to_string(),
            "upstream_host" => upstream.ip().to_string(),
            "upstream_port" => upstream.port().to_string(),
            "threads" => threads.to_string(),
            _ => dir.display().to_string(),
        });
        let mut command = Command::new("sh");
        command.arg("-c").arg(filled.map_err(io::Error::other)?);
        Running::spawn(&self.name, command, listen, dir)
    }
}

#[cfg(test)]
mod tests {
    use super::{fill, parse};

    #[test]
    fn a_file_names_a_proxy_per_line_between_comments() {
        let text = "# proxies\n\n  one: p --on {listen_host}:{listen_port} --to {upstream_port}\n\
                    two-2: q {listen_port} {upstream_host}:{upstream_port} # not a comment\n";
        let named = parse(text, &[]).expect("it is right");
        let names: Vec<&str> = named.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(names, ["one", "two-2"]);
        assert_eq!(
            named[0].command,
            "p --on {listen_host}:{listen_port} --to {upstream_port}"
        );
    }

    #[test]
    fn a_wrong_line_is_named_by_its_number() {
        let ports = "{listen_port} {upstream_port}";
        for (text, what) in [
            (format!("\np {ports}"), "line 2: a line is"),
            (format!("a b: p {ports}"), "line 1: a name has"),
            (format!("haproxy: p {ports}"), "line 1: haproxy is there"),
            (format!("a: p {ports}\na: q {ports}"), "line 2: a is there"),
            ("a: p {listen_port}".to_owned(), "line 1: a command has to"),
            (
                format!("a: p {ports} {{thread}}"),
                "line 1: no {thread} here",
            ),
        ] {
            let error = parse(&text, &["haproxy".to_owned()]).expect_err("it is wrong");
            assert!(error.starts_with(what), "{error}");
        }
    }

    #[test]
    fn placeholders_are_filled_and_what_is_the_shells_is_left() {
        let filled = fill("{dir}/p ${HOME} -t {threads} { a; }", |word| {
            format!("<{word}>")
        });
        assert_eq!(filled.as_deref(), Ok("<dir>/p ${HOME} -t <threads> { a; }"));
    }
}
