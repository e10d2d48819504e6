//! The life of an assignment: one pure function from state and action to the next state.

use crate::domain::ProductClass;

/// Fewest digits of the class of an assignment: a chapter is none.
pub const MIN_CLASS_DIGITS: usize = 4;

/// Where an assignment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// No product class.
    Unassigned,
    /// A class sufficient for the VAT rates of all supported countries, not yet seen by a person.
    Assigned,
    /// As assigned, and seen by a person.
    Approved,
    /// An insufficient class, or one that needs work after a person saw it.
    Rejected,
    /// Not to be processed, for reasons of compliance.
    Denied,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 5] =
        [Status::Unassigned, Status::Assigned, Status::Approved, Status::Rejected, Status::Denied];

    /// The name in queries, answers and the database.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Unassigned => "UNASSIGNED",
            Status::Assigned => "ASSIGNED",
            Status::Approved => "APPROVED",
            Status::Rejected => "REJECTED",
            Status::Denied => "DENIED",
        }
    }

    /// The status of that name, in any case.
    pub fn from_name(name: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.name().eq_ignore_ascii_case(name))
    }

    /// The status that auto-assignment gives, by whether it found a class and whether that one is sufficient.
    /// A person's status, APPROVED, is never among them.
    pub const fn from_auto_assignment(found: bool, sufficient: bool) -> Status {
        match (found, sufficient) {
            (false, _) => Status::Unassigned,
            (true, false) => Status::Rejected,
            (true, true) => Status::Assigned,
        }
    }
}

/// How the class in force was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// From the product's texts.
    Description,
    /// From its customs codes.
    CustomsCode,
    /// By a person.
    Manual,
}

impl Strategy {
    /// Every strategy.
    pub const ALL: [Strategy; 3] = [Strategy::Description, Strategy::CustomsCode, Strategy::Manual];

    /// The strategy of that name.
    pub fn from_name(name: &str) -> Option<Strategy> {
        Strategy::ALL.into_iter().find(|strategy| strategy.name() == name)
    }

    /// The name in answers and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Strategy::Description => "DESCRIPTION",
            Strategy::CustomsCode => "CUSTOMS-CODE",
            Strategy::Manual => "MANUAL",
        }
    }
}

/// What a person does with an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Gives it a product class.
    Assign,
    /// Confirms the class that auto-assignment found.
    Approve,
    /// Marks it as in need of work.
    Reject,
    /// Takes it out of processing for compliance.
    Deny,
    /// Takes a denial back.
    Reconfirm,
    /// Takes the class away.
    Unassign,
}

impl Action {
    /// Every action.
    pub const ALL: [Action; 6] =
        [Action::Assign, Action::Approve, Action::Reject, Action::Deny, Action::Reconfirm, Action::Unassign];

    /// The name in queries and in the history.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Assign => "ASSIGN",
            Action::Approve => "APPROVE",
            Action::Reject => "REJECT",
            Action::Deny => "DENY",
            Action::Reconfirm => "RECONFIRM",
            Action::Unassign => "UNASSIGN",
        }
    }

    /// The action of that name, in any case.
    pub fn from_name(name: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|action| action.name().eq_ignore_ascii_case(name))
    }

    /// Whose the class is after it: a person's, or nobody's once it was taken away, so that the product's next change
    /// queues it again.
    pub const fn strategy(self) -> Option<Strategy> {
        match self {
            Action::Unassign => None,
            _ => Some(Strategy::Manual),
        }
    }
}

/// What becomes of the product class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassChange {
    /// It stays as it is, or absent.
    Keep,
    /// The class given with the action takes its place.
    Set,
    /// It is removed.
    Clear,
}

/// A class that a person gives, and whether every country's rate follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JudgedClass {
    /// The class, in its canonical form.
    pub class: ProductClass,
    /// Whether it is sufficient.
    pub sufficient: bool,
}

/// The action is not allowed in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is not allowed while the assignment is {}{}", action.name(), status.name(), self.remedy())]
pub struct NotAllowed {
    /// The state.
    pub status: Status,
    /// The action.
    pub action: Action,
}

impl NotAllowed {
    const fn remedy(self) -> &'static str {
        match (self.status, self.action) {
            (Status::Denied, _) => "; RECONFIRM takes the denial back",
            (_, Action::Approve) => {
                "; ASSIGN gives it a class, and APPROVE confirms one that is ASSIGNED or in need of review"
            }
            _ => "",
        }
    }
}

/// The state after an action; `sufficient` speaks of the class given with ASSIGN and of nothing else.
///
/// What is APPROVED and whose product has changed since (`review_needed`) may be approved once more. DENIED stands for
/// compliance: only RECONFIRM, and DENY once more, leave from it.
///
/// # Errors
/// When the action is not allowed in that state.
pub fn transition(
    status: Status,
    review_needed: bool,
    action: Action,
    sufficient: bool,
) -> Result<(Status, ClassChange), NotAllowed> {
    let allowed = match action {
        Action::Approve => status == Status::Assigned || status == Status::Approved && review_needed,
        Action::Reconfirm => status == Status::Denied,
        Action::Deny => true,
        Action::Assign | Action::Reject | Action::Unassign => status != Status::Denied,
    };
    if !allowed {
        return Err(NotAllowed { status, action });
    }
    Ok(match action {
        Action::Assign if sufficient => (Status::Approved, ClassChange::Set),
        Action::Assign => (Status::Rejected, ClassChange::Set),
        Action::Approve => (Status::Approved, ClassChange::Keep),
        Action::Reject | Action::Reconfirm => (Status::Rejected, ClassChange::Keep),
        Action::Deny => (Status::Denied, ClassChange::Keep),
        Action::Unassign => (Status::Unassigned, ClassChange::Clear),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: action; then for each status in the order of `Status::ALL` the status after it, `-` where it is refused,
    /// `!` where it is refused unless review is needed, and `sufficient/insufficient` where they differ.
    const TABLE: &str = "
        ASSIGN    APPROVED/REJECTED APPROVED/REJECTED APPROVED/REJECTED APPROVED/REJECTED -
        APPROVE   -                 APPROVED          !                 -                 -
        REJECT    REJECTED          REJECTED          REJECTED          REJECTED          -
        DENY      DENIED            DENIED            DENIED            DENIED            DENIED
        RECONFIRM -                 -                 -                 -                 REJECTED
        UNASSIGN  UNASSIGNED        UNASSIGNED        UNASSIGNED        UNASSIGNED        -
    ";

    #[test]
    fn every_state_action_and_sufficiency_is_in_the_table() {
        let mut seen = 0;
        for row in TABLE.trim().lines() {
            let mut cells = row.split_whitespace();
            let action = cells.next().and_then(Action::from_name).expect("an action");
            for status in Status::ALL {
                let cell = cells.next().expect("a cell for every status");
                for (review_needed, sufficient) in [(false, true), (false, false), (true, true), (true, false)] {
                    let cell = if review_needed && cell == "!" { "APPROVED" } else { cell };
                    let wanted = match cell.split_once('/') {
                        Some((yes, no)) => {
                            if sufficient {
                                yes
                            } else {
                                no
                            }
                        }
                        None => cell,
                    };
                    let class = match action {
                        Action::Assign => ClassChange::Set,
                        Action::Unassign => ClassChange::Clear,
                        _ => ClassChange::Keep,
                    };
                    let expected = match Status::from_name(wanted) {
                        Some(next) => Ok((next, class)),
                        None => Err(NotAllowed { status, action }),
                    };
                    let after = transition(status, review_needed, action, sufficient);
                    assert_eq!(after, expected, "{status:?} {review_needed} {action:?} {sufficient}");
                    seen += 1;
                }
            }
        }
        assert_eq!(seen, Action::ALL.len() * Status::ALL.len() * 4);
    }

    #[test]
    fn only_what_was_unassigned_is_nobodys() {
        for action in Action::ALL {
            let nobody = action == Action::Unassign;
            assert_eq!(action.strategy(), (!nobody).then_some(Strategy::Manual), "{action:?}");
        }
    }

    #[test]
    fn a_refusal_tells_the_way_out() {
        let refused = |status, action| transition(status, false, action, true).expect_err("a refusal").to_string();
        assert!(refused(Status::Denied, Action::Assign).contains("RECONFIRM"));
        assert!(refused(Status::Rejected, Action::Approve).contains("ASSIGN gives it a class"));
    }

    #[test]
    fn auto_assignment_never_approves() {
        assert_eq!(Status::from_auto_assignment(false, true), Status::Unassigned);
        assert_eq!(Status::from_auto_assignment(false, false), Status::Unassigned);
        assert_eq!(Status::from_auto_assignment(true, false), Status::Rejected);
        assert_eq!(Status::from_auto_assignment(true, true), Status::Assigned);
    }
}
