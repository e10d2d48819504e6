//! Marks of words that do not tell a good by themselves.

/// Words and phrases that name no good, by where they name none.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    /// Those that are no evidence anywhere.
    pub(crate) vague: Vec<String>,
    /// Words that are none alone.
    pub(crate) want_a_good: Vec<String>,
    /// Words that are none alone in a description.
    pub(crate) describe: Vec<String>,
}

impl Marks {
    /// Reads the list: one phrase a line, or several parted by `|`; `#` begins a comment, and `[alone]` or `[alone in a
    /// description]` the words of that kind.
    pub(crate) fn read(text: &str) -> Marks {
        let mut marks = Marks::default();
        let mut kind = &mut marks.vague;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.trim() {
                "[alone]" => kind = &mut marks.want_a_good,
                "[alone in a description]" => kind = &mut marks.describe,
                line => {
                    let phrases = line.split('|').map(str::trim).filter(|phrase| !phrase.is_empty());
                    kind.extend(phrases.map(str::to_owned));
                }
            }
        }
        marks
    }
}
