//! Everything about a value that does not fit a type, told at once. serde stops at the first misfit; here each one is
//! taken out, and the rest is read again.

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use super::{Integers, NO_NULL, join, misfit, words};
use crate::domain::Fault;

/// Most misfits of one value that are told.
pub(super) const MAX_MISFITS: usize = 20;

/// A step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Item(usize),
}

/// The misfits of a value, of which there is known to be one; `nulls` says whether null has a meaning in it.
pub(super) fn misfits<T: DeserializeOwned>(mut value: Value, place: &str, nulls: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    // Items that were taken out of lists, by their original steps: those behind them have moved up.
    let mut gone: Vec<Vec<Step>> = Vec::new();
    while faults.len() < MAX_MISFITS {
        let found = match first_null(&value).filter(|_| !nulls) {
            Some(steps) => Some((steps, NO_NULL.to_owned())),
            None => first_misfit::<T>(&value),
        };
        let Some((steps, message)) = found else { break };
        let original = original(&steps, &gone);
        let fault = misfit(join(place, &written(&original)), message);
        // A field that was taken out is missing now.
        if faults.iter().all(|told: &Fault| told.field != fault.field) {
            faults.push(fault);
        }
        if !take_out(&mut value, &steps) {
            break;
        }
        if let Some(Step::Item(_)) = original.last() {
            gone.push(original);
        }
    }
    faults
}

fn first_misfit<T: DeserializeOwned>(value: &Value) -> Option<(Vec<Step>, String)> {
    let error = serde_path_to_error::deserialize::<_, T>(Integers(value)).err()?;
    let steps = error.path().iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(Step::Item(*index)),
        Segment::Map { key } => Some(Step::Key(key.clone())),
        Segment::Enum { .. } | Segment::Unknown => None,
    });
    Some((steps.collect(), words(error.inner())))
}

fn first_null(value: &Value) -> Option<Vec<Step>> {
    fn find(value: &Value, steps: &mut Vec<Step>) -> bool {
        let mut inside = |step: Step, value: &Value| {
            steps.push(step);
            let found = find(value, steps);
            if !found {
                steps.pop();
            }
            found
        };
        match value {
            Value::Null => true,
            Value::Array(items) => items.iter().enumerate().any(|(index, item)| inside(Step::Item(index), item)),
            Value::Object(fields) => fields.iter().any(|(name, field)| inside(Step::Key(name.clone()), field)),
            _ => false,
        }
    }
    let mut steps = Vec::new();
    find(value, &mut steps).then_some(steps)
}

/// Takes a part out of a value; false where it is the whole, or not there.
fn take_out(value: &mut Value, steps: &[Step]) -> bool {
    let Some((last, before)) = steps.split_last() else { return false };
    let parent = before.iter().try_fold(value, |value, step| match step {
        Step::Key(name) => value.get_mut(name),
        Step::Item(index) => value.get_mut(index),
    });
    match (parent, last) {
        (Some(Value::Object(fields)), Step::Key(name)) => fields.remove(name).is_some(),
        (Some(Value::Array(items)), Step::Item(index)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        _ => false,
    }
}

/// The steps to a part as they were before items were taken out.
fn original(steps: &[Step], gone: &[Vec<Step>]) -> Vec<Step> {
    let mut original: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        let step = match step {
            Step::Key(name) => Step::Key(name.clone()),
            Step::Item(index) => {
                let siblings = gone.iter().filter_map(|gone| match gone.split_last() {
                    Some((Step::Item(index), list)) if list == original.as_slice() => Some(*index),
                    _ => None,
                });
                let mut siblings: Vec<usize> = siblings.collect();
                siblings.sort_unstable();
                Step::Item(siblings.into_iter().fold(*index, |at, gone| if gone <= at { at + 1 } else { at }))
            }
        };
        original.push(step);
    }
    original
}

fn written(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Item(index) => path.push_str(&format!("[{index}]")),
            Step::Key(name) if path.is_empty() => path.push_str(name),
            Step::Key(name) => path.push_str(&format!(".{name}")),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read only")]
    struct Outer {
        list: Option<Vec<i64>>,
        name: Option<String>,
        inner: Option<Inner>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read only")]
    struct Inner {
        flag: bool,
    }

    fn places(value: Value, nulls: bool) -> Vec<String> {
        misfits::<Outer>(value, "", nulls).into_iter().filter_map(|fault| fault.field).collect()
    }

    #[test]
    fn every_misfit_is_named_by_where_it_was() {
        let value = json!({"list": [1, "a", 2, "b", null, "c"], "name": 1, "other": 1, "inner": {"flag": 1}});
        let mut found = places(value, false);
        found.sort_unstable();
        assert_eq!(found, ["inner.flag", "list[1]", "list[3]", "list[4]", "list[5]", "name", "other"]);
        assert_eq!(places(json!({"inner": {}}), false), ["inner.flag"]);
        assert_eq!(places(json!({"name": null, "list": null}), true), Vec::<String>::new());
        assert_eq!(places(json!([]), false), [""]);
        assert_eq!(places(json!({"list": vec!["x"; 100]}), false).len(), MAX_MISFITS);
        assert_eq!(places(json!({"list": vec!["x"; 100]}), false)[19], "list[19]");
    }
}
