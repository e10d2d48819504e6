//! Accounts' plans, tokens' levels, and the written form of an access token.

use sha2::{Digest, Sha256};

/// What a token's holder may do; each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Every GET, and what else stores nothing: POST /classifications and searches.
    Read,
    /// Also products, pictures and assignments.
    Edit,
    /// Also definitions of attributes and labels.
    Admin,
}

impl Level {
    /// The name in commands and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Read => "READ",
            Level::Edit => "EDIT",
            Level::Admin => "ADMIN",
        }
    }

    /// The level of that name.
    pub fn from_name(name: &str) -> Option<Level> {
        [Level::Read, Level::Edit, Level::Admin].into_iter().find(|level| level.name() == name)
    }
}

/// Checks a month that the plan FREE_TRIAL allows, from the interface specification.
pub const FREE_TRIAL_CHECKS_PER_MONTH: i64 = 100;

/// How much an account may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// No limit.
    Unlimited,
    /// [`FREE_TRIAL_CHECKS_PER_MONTH`].
    FreeTrial,
}

impl Plan {
    /// The name in commands, answers and the database.
    pub const fn name(self) -> &'static str {
        match self {
            Plan::Unlimited => "UNLIMITED",
            Plan::FreeTrial => "FREE_TRIAL",
        }
    }

    /// The plan of that name.
    pub fn from_name(name: &str) -> Option<Plan> {
        [Plan::Unlimited, Plan::FreeTrial].into_iter().find(|plan| plan.name() == name)
    }

    /// Checks allowed in a calendar month, where there is a limit.
    pub const fn monthly_checks(self) -> Option<i64> {
        match self {
            Plan::Unlimited => None,
            Plan::FreeTrial => Some(FREE_TRIAL_CHECKS_PER_MONTH),
        }
    }
}

/// Tells our tokens from other secrets, for people and for scanners of leaked ones.
const TOKEN_PREFIX: &str = "vatc_";
/// Random bytes of a token: 256 bits.
pub const TOKEN_RANDOM_BYTES: usize = 32;
/// Bytes of the checksum behind them, which lets a mistyped token be refused without a look into the database.
const TOKEN_CHECKSUM_BYTES: usize = 4;

/// What is stored of a token: its SHA-256.
pub type TokenHash = [u8; 32];

/// Writes a token: prefix, then random bytes and checksum in hexadecimal.
pub fn write_token(random: &[u8; TOKEN_RANDOM_BYTES]) -> String {
    let mut bytes = random.to_vec();
    bytes.extend_from_slice(&Sha256::digest(random)[..TOKEN_CHECKSUM_BYTES]);
    format!("{TOKEN_PREFIX}{}", data_encoding::HEXLOWER.encode(&bytes))
}

/// The hash under which a well-formed token is stored; none when it is malformed or its checksum is wrong.
pub fn hash_token(token: &str) -> Option<TokenHash> {
    let bytes = data_encoding::HEXLOWER.decode(token.strip_prefix(TOKEN_PREFIX)?.as_bytes()).ok()?;
    let (random, checksum) = bytes.split_at_checked(TOKEN_RANDOM_BYTES)?;
    (checksum == &Sha256::digest(random)[..TOKEN_CHECKSUM_BYTES]).then(|| Sha256::digest(token.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_and_a_mistyped_one_is_not() {
        let token = write_token(&[7; TOKEN_RANDOM_BYTES]);
        assert!(hash_token(&token).is_some());
        assert_ne!(hash_token(&token), hash_token(&write_token(&[8; TOKEN_RANDOM_BYTES])));
        let mistyped = token.replace("07", "17");
        for bad in ["", "vatc_", "Bearer", &token[1..], &token[..token.len() - 2], &mistyped, &token.to_uppercase()] {
            assert_eq!(hash_token(bad), None, "{bad}");
        }
    }

    #[test]
    fn each_level_includes_the_ones_before_it() {
        assert!(Level::Read < Level::Edit && Level::Edit < Level::Admin);
    }
}
