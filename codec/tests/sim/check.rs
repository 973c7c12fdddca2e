//! One script, very many ways to run it, one trace.

use super::conversation::Conversation;
use super::relay::{Relay, Show, Style};
use super::script::Script;
use super::trace::{End, Trace};
use klamp_codec::Direction;
use klamp_codec::session::Policy;
use std::sync::Arc;

/// Scripts up to this many bytes are cut in two at every byte; longer ones near the ends of their
/// events, where headers and trailers are, and at random.
const EVERY_BYTE: usize = 1500;

/// Bytes that the cuts in two of one script may move in all.
const WORK: usize = 2_000_000;

/// Scripts beyond this many bytes go byte by byte in a few styles only.
const LONG: usize = 20_000;

/// Random cuts of each script.
const RANDOM_CUTS: u64 = 24;

/// The trace of a script whose bytes come as the script has them, all shown.
pub fn trace_of(policy: &Arc<Policy>, script: &Script) -> Trace {
    run(policy, script, Style::default())
}

/// Runs a script whole, cut in two at every byte, byte by byte and at random; with all bytes shown, with
/// those that a `Pass` owes hidden, and with windows between; polled in vain or not, either lane first.
/// All must give the same trace, which it answers.
pub fn same_under_any_cut(policy: &Arc<Policy>, script: &Script) -> Trace {
    let wanted = trace_of(policy, script);
    let same = |script: &Script, style: Style, how: &dyn Fn() -> String| {
        run_again(policy, &wanted, script, style, how);
    };
    let joined = script.joined();
    let bytewise = script.cut(|_, len| (1..len).collect());
    for (n, style) in styles().into_iter().enumerate() {
        same(script, style.clone(), &|| "as scripted".to_owned());
        same(&joined, style.clone(), &|| "joined".to_owned());
        if script.len() <= LONG || n % 7 == 0 {
            same(&bytewise, style, &|| "byte by byte".to_owned());
        }
    }
    for at in places(&joined) {
        let cut = joined.cut(|offset, len| {
            at.checked_sub(offset)
                .filter(|at| (1..len).contains(at))
                .into_iter()
                .collect()
        });
        for style in [
            Style::default(),
            Style {
                show: Show::Asked,
                ..Style::default()
            },
        ] {
            same(&cut, style, &|| {
                format!("cut in two at byte {at} of the script")
            });
        }
    }
    for seed in 0..RANDOM_CUTS {
        let mut rng = fastrand::Rng::with_seed(seed);
        let cut = joined.cut(|_, len| random_cuts(&mut rng, len));
        same(&cut, random_style(&mut rng), &|| {
            format!("cut by seed {seed}")
        });
    }
    wanted
}

/// Like [`same_under_any_cut`] with a few of the ways only, for scripts that come by the thousand.
pub fn same_under_some_cuts(policy: &Arc<Policy>, script: &Script) -> Trace {
    let wanted = trace_of(policy, script);
    let bytewise = script.cut(|_, len| (1..len).collect());
    let asked = Style {
        show: Show::Asked,
        ..Style::default()
    };
    for style in [Style::default(), asked] {
        run_again(policy, &wanted, &bytewise, style, &|| {
            "byte by byte".to_owned()
        });
    }
    let mut rng = fastrand::Rng::with_seed(script.len() as u64);
    for _ in 0..2 {
        let cut = script.joined().cut(|_, len| random_cuts(&mut rng, len));
        run_again(policy, &wanted, &cut, random_style(&mut rng), &|| {
            format!("cut by seed {}", script.len())
        });
    }
    wanted
}

/// Like [`same_under_any_cut`], over the ways in which both sides' bytes may mingle: every answer after
/// its request, every request after every answer, and at random where causality allows.
pub fn same_under_any_interleaving(policy: &Arc<Policy>, conversation: &Conversation) -> Trace {
    let wanted = same_under_any_cut(policy, &conversation.one_by_one());
    let pipelined = same_under_any_cut(policy, &conversation.pipelined());
    assert_same(&wanted, &pipelined, &|| "pipelined".to_owned());
    for seed in 0..RANDOM_CUTS {
        let mut rng = fastrand::Rng::with_seed(seed);
        let script = conversation.mingled(&mut rng);
        run_again(policy, &wanted, &script, random_style(&mut rng), &|| {
            format!("mingled by seed {seed}")
        });
    }
    wanted
}

/// One more run of a script, cut and shown by chance, which must give the trace that is wanted.
pub fn same_again(
    policy: &Arc<Policy>,
    wanted: &Trace,
    script: &Script,
    rng: &mut fastrand::Rng,
    what: &str,
) {
    let cut = script.cut(|_, len| random_cuts(rng, len));
    run_again(policy, wanted, &cut, random_style(rng), &|| what.to_owned());
}

/// Like [`same_again`] for scripts that break causality. Where the session closes, an answer that came
/// before its request may have been judged earlier or later among the requests: then one run's trace may
/// go on where the other's has ended.
pub fn compatible_again(
    policy: &Arc<Policy>,
    wanted: &Trace,
    script: &Script,
    rng: &mut fastrand::Rng,
    what: &str,
) {
    if !matches!(wanted.end, End::Closed(_)) {
        return same_again(policy, wanted, script, rng, what);
    }
    let cut = script.cut(|_, len| random_cuts(rng, len));
    let style = random_style(rng);
    let how = || format!("{what}, {style:?}");
    let found = run_telling(policy, &cut, style.clone(), &how);
    assert_eq!(wanted.end, found.end, "{}: the end", how());
    for direction in [Direction::Request, Direction::Response] {
        let (one, two) = (wanted.side(direction), found.side(direction));
        let seen = one.seen.iter().zip(&two.seen).all(|(a, b)| a == b);
        let output = one.output.iter().zip(&two.output).all(|(a, b)| a == b);
        assert!(seen && output, "{}: {direction:?} differs", how());
    }
}

/// One more run of a script, cut and shown by chance, which must keep the contract, whatever comes of it.
pub fn harmless_again(policy: &Arc<Policy>, script: &Script, rng: &mut fastrand::Rng, what: &str) {
    let cut = script.cut(|_, len| random_cuts(rng, len));
    run_telling(policy, &cut, random_style(rng), &|| what.to_owned());
}

/// Any style, from a seed.
pub fn random_style(rng: &mut fastrand::Rng) -> Style {
    Style {
        show: match rng.u8(0..4) {
            0 => Show::All,
            1 => Show::Asked,
            2 => Show::Window(rng.usize(1..600)),
            _ => Show::Random(rng.fork()),
        },
        restless: rng.bool(),
        first: if rng.bool() {
            Direction::Request
        } else {
            Direction::Response
        },
        greedy: rng.bool(),
    }
}

/// Cuts of `len` bytes: few or many, from a seed.
pub fn random_cuts(rng: &mut fastrand::Rng, len: usize) -> Vec<usize> {
    let stride = 1 << rng.u32(1..16);
    let mut cuts = Vec::new();
    let mut at = rng.usize(1..=stride);
    while at < len {
        cuts.push(at);
        at += rng.usize(1..=stride);
    }
    cuts
}

/// Fails where two traces differ, and tells only where.
pub fn assert_same(wanted: &Trace, found: &Trace, how: &dyn Fn() -> String) {
    if wanted == found {
        return;
    }
    for direction in [Direction::Request, Direction::Response] {
        let (one, two) = (wanted.side(direction), found.side(direction));
        if let Some(n) = first_difference(&one.seen, &two.seen) {
            panic!(
                "{}: {direction:?}: observation {n} differs\n  first run: {:?}\n  this run:  {:?}",
                how(),
                one.seen.get(n),
                two.seen.get(n)
            );
        }
        if let Some(n) = first_difference(&one.edits, &two.edits) {
            panic!(
                "{}: {direction:?}: edit {n} differs\n  first run: {:?}\n  this run:  {:?}",
                how(),
                one.edits.get(n),
                two.edits.get(n)
            );
        }
        if let Some(n) = first_difference(&one.output, &two.output) {
            panic!(
                "{}: {direction:?}: output differs at byte {n} ({} bytes, and {})",
                how(),
                one.output.len(),
                two.output.len()
            );
        }
        assert_eq!(
            one.finished,
            two.finished,
            "{}: {direction:?}: shut down or not",
            how()
        );
    }
    assert_eq!(wanted.end, found.end, "{}: the end", how());
    assert_eq!(
        wanted.in_flight,
        found.in_flight,
        "{}: requests in flight",
        how()
    );
    unreachable!("some part differs");
}

fn first_difference<T: PartialEq>(one: &[T], two: &[T]) -> Option<usize> {
    let common = one.iter().zip(two).take_while(|(a, b)| a == b).count();
    (common < one.len().max(two.len())).then_some(common)
}

fn run(policy: &Arc<Policy>, script: &Script, style: Style) -> Trace {
    let mut relay = Relay::new(Arc::clone(policy), style);
    relay.play(script);
    relay.trace()
}

/// One more run of a script, which must give the trace that is wanted.
fn run_again(
    policy: &Arc<Policy>,
    wanted: &Trace,
    script: &Script,
    style: Style,
    how: &dyn Fn() -> String,
) {
    let how = || format!("{}, {style:?}", how());
    let found = run_telling(policy, script, style.clone(), &how);
    if style.greedy && matches!(wanted.end, End::Closed(_)) {
        assert_eq!(wanted.end, found.end, "{}: the end", how());
    } else {
        assert_same(wanted, &found, &how);
    }
}

/// A run that tells how it was made if the relay finds a breach of contract half way.
fn run_telling(
    policy: &Arc<Policy>,
    script: &Script,
    style: Style,
    how: &dyn Fn() -> String,
) -> Trace {
    struct Tell<'a>(&'a dyn Fn() -> String);
    impl Drop for Tell<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("the run that failed: {}", (self.0)());
            }
        }
    }
    let _tell = Tell(how);
    run(policy, script, style)
}

fn styles() -> Vec<Style> {
    let mut styles = Vec::new();
    for show in [Show::All, Show::Asked, Show::Window(16), Show::Window(512)] {
        let plain = Style {
            show,
            ..Style::default()
        };
        styles.push(plain.clone());
        styles.push(Style {
            restless: true,
            ..plain.clone()
        });
        styles.push(Style {
            first: Direction::Response,
            ..plain.clone()
        });
        styles.push(Style {
            greedy: true,
            ..plain
        });
    }
    styles
}

/// Where to cut a script in two: at every byte, or as many as the work allows.
fn places(script: &Script) -> Vec<usize> {
    let total = script.len();
    if total <= EVERY_BYTE {
        return (1..total).collect();
    }
    let mut places = Vec::new();
    let _ = script.cut(|offset, len| {
        places.extend(offset..offset + len.min(160));
        places.extend(offset + len.saturating_sub(40)..offset + len);
        Vec::new()
    });
    let mut rng = fastrand::Rng::with_seed(total as u64);
    places.extend((0..100).map(|_| rng.usize(0..total)));
    places.sort_unstable();
    places.dedup();
    rng.shuffle(&mut places);
    places.truncate((WORK / total).max(60));
    places
}
