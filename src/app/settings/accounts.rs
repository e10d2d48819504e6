//! What `account`, `token` and `queue` are asked for.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DatabaseSettings;
use super::values::{level, name, plan, precision, queue};
use crate::domain::Precision;
use crate::domain::access::{Level, Plan};
use crate::store::parked::Queue;

/// Seconds after which every request has ended that was under way: it may take 60.
const REQUESTS_END_S: u64 = 65;

#[derive(Debug, Subcommand)]
pub(in crate::app) enum AccountCommand {
    /// Makes an account and prints its name.
    Create {
        /// 1 to 100 characters.
        #[arg(value_parser = name)]
        name: String,
        /// UNLIMITED or FREE_TRIAL.
        #[arg(long, default_value = "UNLIMITED", value_parser = plan)]
        plan: Plan,
        /// Share of the decisions by text that are meant to be right: 0.90, 0.95 or 0.98.
        #[arg(long, default_value = "0.95", value_parser = precision)]
        precision: Precision,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Sets which share of an account's decisions by text is meant to be right.
    Precision {
        /// The account.
        #[arg(value_parser = name)]
        name: String,
        /// 0.90, 0.95 or 0.98; the lower, the more is decided.
        #[arg(value_parser = precision)]
        precision: Precision,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Prints the accounts: name, plan, precision, active, disabled or moving, and when made, separated by tabs.
    List {
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Refuses the tokens of an account from now on.
    Disable(NamedAccount),
    /// Takes the tokens of a disabled account again.
    Enable(NamedAccount),
    /// Sets how much an account may use.
    Plan {
        /// The account.
        #[arg(value_parser = name)]
        name: String,
        /// UNLIMITED or FREE_TRIAL.
        #[arg(value_parser = plan)]
        plan: Plan,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Deletes an account with its tokens, products, assignments, pictures and history, for good, and prints how many
    /// products that were.
    Delete(NamedAccount),
    /// Moves an account with all that it has to another database, while services run on both. Requests for it are answered
    /// 503 meanwhile. Pictures stay in their store, which has to be that of the services there, too. After a failure the
    /// account stays where it is; run again, the command goes on or begins again.
    Move {
        #[command(flatten)]
        account: NamedAccount,
        /// The other database, brought up to this program's schema, such as postgres://user:password@host/database.
        #[arg(long, env = "MOVE_TO_DATABASE_URL", hide_env_values = true)]
        to: String,
        /// Seconds that requests which are under way get to end, and as long again actions on many products; 0 when no
        /// service runs here.
        #[arg(long, default_value_t = REQUESTS_END_S, value_parser = clap::value_parser!(u64).range(0..=86_400))]
        wait_s: u64,
    },
    /// What is remembered of the decisions of an account's people.
    Memory {
        #[command(subcommand)]
        command: MemoryCommand,
    },
}

#[derive(Debug, Subcommand)]
pub(in crate::app) enum MemoryCommand {
    /// Prints how many decisions are remembered: taxonomy, classes said to be right, classes said to be wrong.
    Show(NamedAccount),
    /// Forgets them and prints how many they were. Assignments stay as they are.
    Clear(NamedAccount),
    /// Writes them to a file, one a line in JSON with the texts of the products, and prints how many they were.
    Export(MemoryFile),
    /// Makes the account remember what such a file holds, so that a second account of the same merchant starts with what
    /// the first one knows; prints how many decisions were new. All lines are checked before any is taken.
    Import(MemoryFile),
}

/// An account and a file of remembered decisions.
#[derive(Clone, Debug, Args)]
pub(in crate::app) struct MemoryFile {
    #[command(flatten)]
    pub account: NamedAccount,
    /// The file.
    pub file: PathBuf,
}

/// An account by its name.
#[derive(Clone, Debug, Args)]
pub(in crate::app) struct NamedAccount {
    /// The account.
    #[arg(value_parser = name)]
    pub name: String,
    #[command(flatten)]
    pub database: DatabaseSettings,
}

#[derive(Debug, Subcommand)]
pub(in crate::app) enum QueueCommand {
    /// Prints parked work: queue, account, productId, shopId, when and why, separated by tabs.
    Parked(ParkedSettings),
    /// Sends parked work again and prints how many products that are.
    Retry(ParkedSettings),
}

/// Which parked work is meant.
#[derive(Clone, Debug, Args)]
pub(in crate::app) struct ParkedSettings {
    /// auto-assignment or search; both without it.
    #[arg(long, value_parser = queue)]
    pub queue: Option<Queue>,
    /// The account; all without it.
    #[arg(long)]
    pub account: Option<String>,
    #[command(flatten)]
    pub database: DatabaseSettings,
}

#[derive(Debug, Subcommand)]
pub(in crate::app) enum TokenCommand {
    /// Makes a token and prints it; it is not shown again.
    Create {
        /// The account.
        #[arg(long)]
        account: String,
        /// The name that histories show; 1 to 100 characters.
        #[arg(long, value_parser = name)]
        user: String,
        /// READ, EDIT or ADMIN.
        #[arg(long, value_parser = level)]
        level: Level,
        /// Days until it expires, 1 to 36500; without it, never.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_days: Option<u32>,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Prints tokens, ended ones too: id, account, user, level, when made, until when good, last used (to the hour) and
    /// when ended, separated by tabs; a dash where there is nothing.
    List {
        /// The account; all without it.
        #[arg(long)]
        account: Option<String>,
        #[command(flatten)]
        database: DatabaseSettings,
    },
    /// Ends a token, or all those of a user.
    Revoke {
        /// The token.
        #[arg(required_unless_present_any = ["id", "account"], conflicts_with_all = ["id", "account", "user"])]
        token: Option<String>,
        /// The token's id, as token list prints it.
        #[arg(long, conflicts_with_all = ["account", "user"])]
        id: Option<String>,
        /// The account of the user.
        #[arg(long, requires = "user")]
        account: Option<String>,
        /// The user whose tokens end.
        #[arg(long, requires = "account")]
        user: Option<String>,
        #[command(flatten)]
        database: DatabaseSettings,
    },
}
