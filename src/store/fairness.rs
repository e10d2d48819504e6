//! Every account is served in turn, however much another one has put into a queue.

use std::collections::HashMap;

use sqlx::{Postgres, QueryBuilder};

use crate::store::{StoreError, Tx};

/// Accounts that are served at once. Where more have work, each claim begins at another of them.
const ACCOUNTS_AT_ONCE: i64 = 64;
/// Rounds in which the room that small accounts leave is given to larger ones.
const MAX_ROUNDS: usize = 4;

/// A queue whose key begins with the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FairQueue {
    Auto,
    Search,
}

impl FairQueue {
    fn table(self) -> &'static str {
        match self {
            FairQueue::Auto => "auto_queue",
            FairQueue::Search => "search_outbox",
        }
    }

    /// The accounts that have rows in the queue, from a random one on; one step of an index for each.
    fn accounts(self) -> QueryBuilder<Postgres> {
        let mut query =
            QueryBuilder::new("with recursive bounds as (select floor(random() * (1 + (select max(account_id) from ");
        query.push(self.table()).push(")))::bigint as start)");
        for (name, first, further) in [
            ("behind", "account_id >= (select start from bounds)", ""),
            ("before", "account_id < (select start from bounds)", " and queue.account_id < (select start from bounds)"),
        ] {
            query.push(", ").push(name).push(" as ((select account_id, 1 as place from ").push(self.table());
            query
                .push(" where ")
                .push(first)
                .push(" order by account_id limit 1) union all select next.account_id, place + 1 from ");
            query.push(name).push(" as last cross join lateral (select account_id from ").push(self.table());
            query.push(" as queue where queue.account_id > last.account_id").push(further);
            query.push(" order by account_id limit 1) as next where place < ").push_bind(ACCOUNTS_AT_ONCE).push(")");
        }
        query.push(
            " select account_id from (select 0 as half, * from behind union all select 1, * from before) as found",
        );
        query.push(" order by half, place limit ").push_bind(ACCOUNTS_AT_ONCE);
        query
    }

    /// The oldest free rows of each account behind the one named for it, locked, at most `share` of each.
    fn rows(self, accounts: &[i64], last: &[i64], share: i64) -> QueryBuilder<Postgres> {
        let (id, free) = match self {
            FairQueue::Auto => ("queue_id", ""),
            FairQueue::Search => ("outbox_id", " and (leased_until is null or leased_until < now())"),
        };
        let mut query = QueryBuilder::new("select row.* from unnest(");
        query.push_bind(accounts.to_vec()).push("::bigint[], ").push_bind(last.to_vec());
        query.push("::bigint[]) as served (account, last) cross join lateral (select account_id, ").push(id);
        query.push(" from ").push(self.table()).push(" where account_id = account and ").push(id).push(" > last");
        query.push(free).push(" order by ").push(id).push(" limit ").push_bind(share);
        query.push(" for update skip locked) as row");
        query
    }
}

/// Locks at most `limit` rows that nobody holds: the same number for each account as far as it has them, the oldest
/// first. Answers them as account and id, in turns: the first of each account before the second of any.
pub(super) async fn lock_rows(tx: &mut Tx, queue: FairQueue, limit: usize) -> Result<Vec<(i64, i64)>, StoreError> {
    let mut hungry: Vec<i64> = queue.accounts().build_query_scalar().fetch_all(&mut **tx).await?;
    let mut turns: HashMap<i64, Vec<i64>> = HashMap::new();
    let (order, mut room) = (hungry.clone(), limit);
    for _ in 0..MAX_ROUNDS {
        if hungry.is_empty() || room == 0 {
            break;
        }
        hungry.truncate(room);
        let share = room / hungry.len();
        let last: Vec<i64> = hungry
            .iter()
            .map(|account| turns.get(account).and_then(|ids| ids.last()).copied().unwrap_or(i64::MIN))
            .collect();
        let rows: Vec<(i64, i64)> =
            queue.rows(&hungry, &last, share as i64).build_query_as().fetch_all(&mut **tx).await?;
        room -= rows.len().min(room);
        let mut counts: HashMap<i64, usize> = HashMap::new();
        for (account, id) in rows {
            *counts.entry(account).or_default() += 1;
            turns.entry(account).or_default().push(id);
        }
        hungry.retain(|account| counts.get(account) == Some(&share));
    }
    Ok(in_turns(&order, &turns))
}

/// The first of each account, then the second, and so on.
fn in_turns(order: &[i64], turns: &HashMap<i64, Vec<i64>>) -> Vec<(i64, i64)> {
    let longest = turns.values().map(Vec::len).max().unwrap_or_default();
    let turn = |turn: usize| order.iter().filter_map(move |account| Some((*account, *turns.get(account)?.get(turn)?)));
    (0..longest).flat_map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_turns() {
        let turns = HashMap::from([(7, vec![1, 2, 3]), (5, vec![4]), (6, vec![8, 9])]);
        assert_eq!(in_turns(&[5, 6, 7, 8], &turns), [(5, 4), (6, 8), (7, 1), (6, 9), (7, 2), (7, 3)]);
        assert_eq!(in_turns(&[], &HashMap::new()), []);
    }
}
