//! All that klamp tells: its pages, captures and their files, its log, and what `klamp decode` prints.

use klamp_tests::klamp::{self, Klamp};
use klamp_tests::needle::{Forms, Needle};
use klamp_tests::scrape;
use std::path::Path;

/// All that a run of klamp told, by where it did.
#[derive(Default)]
pub(super) struct Told(Vec<(String, Vec<u8>)>);

impl Told {
    pub(super) fn add(&mut self, place: String, bytes: impl Into<Vec<u8>>) {
        self.0.push((place, bytes.into()));
    }

    /// What `klamp decode` prints of a file, whether or not it can read all of it.
    pub(super) fn add_decoded(&mut self, name: &str, file: &Path, arguments: &[&str]) {
        let file = file.to_str().expect("cargo's folders are UTF-8");
        for mode in [&[][..], &["-v"], &["--json"]] {
            let (_, out, err) = klamp::run(&[&["decode", file], mode, arguments].concat());
            assert!(out.len() > 100, "{name} {mode:?}: {out} {err}");
            self.add(format!("decode {mode:?} of {name}"), out + &err);
        }
    }

    pub(super) fn add_pages(&mut self, klamp: &Klamp) {
        let captures = klamp.captures();
        let mut pages = vec![
            "/captures".to_owned(),
            "/connections".into(),
            "/clients".into(),
        ];
        pages.extend(captures.iter().map(|it| format!("/captures/{}", it["id"])));
        for page in pages {
            for form in ["text", "json"] {
                let page = format!("{page}?format={form}");
                let (status, body) = scrape::ask(klamp.debug(), "GET", &page);
                assert_eq!(status, 200, "{page}");
                self.add(page, body);
            }
        }
        self.add("/metrics".to_owned(), klamp.scrape().text);
        for capture in captures {
            let file = klamp.download(&capture);
            let name = format!("capture {} ({})", capture["id"], capture["reason"]);
            let bytes = std::fs::read(&file).expect("it has just been written");
            self.add(name.clone(), bytes);
            self.add_decoded(&name, &file, &[]);
        }
    }

    pub(super) fn add_files(&mut self, directory: &Path) {
        for entry in std::fs::read_dir(directory).expect("klamp wrote there") {
            let path = entry.expect("it is there").path();
            let bytes = std::fs::read(&path).expect("it is there");
            self.add(path.display().to_string(), bytes);
        }
    }

    /// How much was told.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// In how many places of that kind the word stands as it is.
    pub(super) fn count(&self, needle: &Needle, places: &str) -> usize {
        let of = self.0.iter().filter(|(place, _)| place.starts_with(places));
        of.filter(|(_, bytes)| needle.count(bytes) > 0).count()
    }

    #[track_caller]
    pub(super) fn assert_without(&self, forms: &Forms) {
        let found = self.0.iter().filter_map(|(place, bytes)| {
            let found = forms.find(bytes)?;
            Some(format!("{place}: {found}"))
        });
        let found: Vec<_> = found.collect();
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
