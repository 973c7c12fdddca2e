//! Text in aligned columns, for people. What peers chose to call themselves is escaped by whoever
//! fills a cell; this only lines cells up.

/// Rows under a header, each column as wide as its widest cell, two spaces between them.
#[derive(Debug)]
pub(crate) struct Columns<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Columns<N> {
    pub(crate) fn new(header: [&str; N]) -> Self {
        Self {
            rows: vec![header.map(str::to_owned)],
        }
    }

    pub(crate) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// One line for each row, the header first, without spaces at line ends.
    pub(crate) fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &self.rows {
            let start = text.len();
            for (cell, width) in row.iter().zip(widths) {
                text.push_str(cell);
                let padding = width - cell.chars().count() + 2;
                text.extend(std::iter::repeat_n(' ', padding));
            }
            text.truncate(start + text[start..].trim_end().len());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_line_up_under_their_header() {
        let mut columns = Columns::new(["api key", "broker", "why"]);
        columns.row(["Produce".into(), "0..=13".into(), String::new()]);
        columns.row(["é".into(), "1".into(), "no schema".into()]);
        let expected = "api key  broker  why\nProduce  0..=13\né        1       no schema\n";
        assert_eq!(columns.text(), expected);
    }
}
