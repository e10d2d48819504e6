//! Words that turn the class of goods which are otherwise alike, and words that do not.
//!
//! `training learn-turns` finds them in pairs of rows of the corpus that differ in few words: "Leder" and "Kunstleder" turn,
//! "blau" and "rot" do not. A word that is not in the list says nothing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::segment::Known;

/// The file as it is made: hash of the word in hexadecimal digits, how much it turns, a word that gives the hash.
const SHIPPED: &str = include_str!("../../models/memory/turns.tsv");

/// How much words turn, as log-odds, by their hashes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turns(HashMap<u32, f32>);

static TURNS: LazyLock<Arc<Turns>> = LazyLock::new(|| Arc::new(Turns::read(SHIPPED).unwrap_or_default()));

impl Turns {
    /// Those of the program.
    pub fn shipped() -> Arc<Turns> {
        TURNS.clone()
    }

    /// Reads lines of hash in hexadecimal digits, log-odds and a word that gives the hash; none when a line is not understood.
    pub fn read(text: &str) -> Option<Turns> {
        let of_line = |line: &str| {
            let mut fields = line.split('\t');
            let hash = u32::from_str_radix(fields.next()?, 16).ok()?;
            Some((hash, fields.next()?.parse().ok()?))
        };
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(of_line)
            .collect::<Option<HashMap<u32, f32>>>()
            .map(Turns)
    }

    /// How much a word turns: above 0 it does, below it does not, and of 0 nothing is known.
    pub fn of(&self, word: u32) -> f32 {
        self.0.get(&word).copied().unwrap_or(0.0)
    }
}

/// How the words of two texts differ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Difference {
    /// How much the words turn that stand in one of the texts alone, together: log-odds of another class.
    pub(super) turns: f32,
    /// The most that one of them turns.
    pub(super) worst: f32,
    /// The weight of the heaviest word that the first text has alone.
    pub(super) own: f32,
    /// The weight of the heaviest word that the second has alone.
    pub(super) other: f32,
}

impl Difference {
    /// Compares a text with a decision.
    pub(super) fn of(turns: &Turns, own: &[(u32, f32)], known: &Known<'_>) -> Difference {
        let mut difference = Difference::default();
        for (word, weight) in own.iter().filter(|(word, _)| !known.has(*word)) {
            difference.own = difference.own.max(*weight);
            difference.add(turns.of(*word));
        }
        for (word, weight) in known.words().filter(|word| !own.iter().any(|(own, _)| *own == word.0)) {
            difference.other = difference.other.max(weight);
            difference.add(turns.of(word));
        }
        difference
    }

    fn add(&mut self, turn: f32) {
        self.turns += turn;
        self.worst = self.worst.max(turn);
    }
}
