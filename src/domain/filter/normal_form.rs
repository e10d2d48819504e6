//! Criteria as one boolean expression over single occurrences: the form that search engines lower.

use crate::domain::filter::element::{Criteria, Element, Operation};
use crate::domain::filter::value::{Value, ValueExpression};

/// Most changes between AND and OR in a chain that nest one in another. Elasticsearch refuses queries nested deeper
/// than 30; a chain with more changes is written in a form of logarithmic depth, at the price of repeated elements.
const MAX_NESTED_CHANGES: usize = 12;

/// A boolean expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// All hold; so none always holds.
    All(Vec<Expr>),
    /// One holds; so none never holds.
    Any(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// Something occurs.
    Leaf(Leaf),
}

/// Something that occurs in a product, or does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Leaf {
    /// A value in a text.
    Text {
        /// Which text.
        field: Field,
        /// Of which language.
        language: String,
        /// What is looked for.
        value: Value,
    },
    /// A substring of the product's id, normalised.
    ProductId(String),
    /// The country of origin.
    Country(String),
}

/// Texts of a product in one language; a value occurs in a field when it occurs in one of its texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// `productName` and `productDescription`.
    Keywords,
    /// `productName`.
    Name,
    /// Each of `productTags`.
    Tags,
}

impl Field {
    /// Every field.
    pub const ALL: [Field; 3] = [Field::Keywords, Field::Name, Field::Tags];
}

impl Criteria {
    /// The criteria as one expression, nested less than 20 deep.
    pub fn expression(&self) -> Expr {
        let mut links: Vec<(Operation, Expr)> = Vec::new();
        let mut operation = Operation::And;
        for element in &self.elements {
            links.push((operation, element_expression(element)));
            operation = element.operation;
        }
        let changes = links.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        if changes <= MAX_NESTED_CHANGES {
            links.into_iter().fold(Expr::All(Vec::new()), |so_far, (operation, next)| join(operation, so_far, next))
        } else {
            let step = compose(&links);
            any(vec![step.all, step.any])
        }
    }
}

fn join(operation: Operation, so_far: Expr, next: Expr) -> Expr {
    match operation {
        Operation::And => all(vec![so_far, next]),
        Operation::Or => any(vec![so_far, next]),
    }
}

/// Part of a chain, as a function of what comes before it: `(before and all) or any`.
struct Step {
    all: Expr,
    any: Expr,
}

/// Composes a chain of at least one link, halving it, so that the depth is logarithmic.
fn compose(links: &[(Operation, Expr)]) -> Step {
    match links {
        [(Operation::And, expression)] => Step { all: expression.clone(), any: Expr::Any(Vec::new()) },
        [(Operation::Or, expression)] => Step { all: Expr::All(Vec::new()), any: expression.clone() },
        _ => {
            let (first, second) = links.split_at(links.len() / 2);
            let (first, second) = (compose(first), compose(second));
            let any_first = all(vec![first.any, second.all.clone()]);
            Step { all: all(vec![first.all, second.all]), any: any(vec![any_first, second.any]) }
        }
    }
}

fn all(items: Vec<Expr>) -> Expr {
    let mut flat = Vec::new();
    for item in items {
        match item {
            Expr::All(items) => flat.extend(items),
            Expr::Any(items) if items.is_empty() => return Expr::Any(items),
            item => flat.push(item),
        }
    }
    one_of(flat, Expr::All)
}

fn any(items: Vec<Expr>) -> Expr {
    let mut flat = Vec::new();
    for item in items {
        match item {
            Expr::Any(items) => flat.extend(items),
            Expr::All(items) if items.is_empty() => return Expr::All(items),
            item => flat.push(item),
        }
    }
    one_of(flat, Expr::Any)
}

fn one_of(mut items: Vec<Expr>, wrap: fn(Vec<Expr>) -> Expr) -> Expr {
    match items.pop() {
        Some(only) if items.is_empty() => only,
        Some(last) => {
            items.push(last);
            wrap(items)
        }
        None => wrap(items),
    }
}

fn element_expression(element: &Element) -> Expr {
    let mut properties = Vec::new();
    let texts = [
        (&element.keywords, Field::Keywords),
        (&element.product_name, Field::Name),
        (&element.product_tag, Field::Tags),
    ];
    for (expression, field) in texts {
        if let Some(expression) = expression {
            properties.push(value_expression(expression, field, &element.language));
        }
    }
    if let Some(part) = &element.product_id {
        properties.push(Expr::Leaf(Leaf::ProductId(part.clone())));
    }
    if let Some(code) = &element.country_of_origin {
        properties.push(Expr::Leaf(Leaf::Country(code.clone())));
    }
    all(properties)
}

fn value_expression(expression: &ValueExpression, field: Field, language: &str) -> Expr {
    let groups = expression.groups.iter().map(|group| {
        let terms = group.iter().map(|term| {
            let occurs = Expr::Leaf(Leaf::Text { field, language: language.to_owned(), value: term.value.clone() });
            if term.negated { Expr::Not(Box::new(occurs)) } else { occurs }
        });
        all(terms.collect())
    });
    any(groups.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use serde_json::json;

    use super::*;

    fn depth(expression: &Expr) -> usize {
        match expression {
            Expr::All(items) | Expr::Any(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Expr::Not(item) => 1 + depth(item),
            Expr::Leaf(_) => 1,
        }
    }

    fn leaves(expression: &Expr) -> usize {
        match expression {
            Expr::All(items) | Expr::Any(items) => items.iter().map(leaves).sum(),
            Expr::Not(item) => leaves(item),
            Expr::Leaf(_) => 1,
        }
    }

    fn holds(expression: &Expr, facts: &dyn Fn(&Leaf) -> bool) -> bool {
        match expression {
            Expr::All(items) => items.iter().all(|item| holds(item, facts)),
            Expr::Any(items) => items.iter().any(|item| holds(item, facts)),
            Expr::Not(item) => !holds(item, facts),
            Expr::Leaf(leaf) => facts(leaf),
        }
    }

    fn chain(operations: &[bool]) -> Criteria {
        let elements = operations.iter().enumerate().map(|(i, or)| Element {
            product_id: Some(i.to_string()),
            operation: if *or { Operation::Or } else { Operation::And },
            ..Element::default()
        });
        Criteria { elements: elements.collect() }
    }

    #[test]
    fn nothing_to_match_always_holds() {
        assert_eq!(Criteria::default().expression(), Expr::All(vec![]));
    }

    #[test]
    fn groups_and_properties_become_any_and_all() {
        let criteria = json!([{"keywords": "-a b or c", "countryOfOrigin": "DE"}]).to_string();
        let expression = Criteria::parse(&criteria).expect("criteria").expression();
        let text = |value: &str| {
            let (field, language) = (Field::Keywords, "en".to_owned());
            Expr::Leaf(Leaf::Text { field, language, value: Value::Plain(value.to_owned()) })
        };
        let groups = vec![Expr::All(vec![Expr::Not(Box::new(text("a"))), text("b")]), text("c")];
        let country = Expr::Leaf(Leaf::Country("DE".to_owned()));
        assert_eq!(expression, Expr::All(vec![Expr::Any(groups), country]));
    }

    proptest! {
        #[test]
        fn a_chain_keeps_its_meaning_and_stays_shallow(
            operations in proptest::collection::vec(proptest::bool::ANY, 1..=32),
            alternate in proptest::bool::ANY,
            bits in proptest::num::u32::ANY,
        ) {
            let operations: Vec<bool> =
                if alternate { (0..operations.len()).map(|i| i % 2 == 0).collect() } else { operations };
            let expression = chain(&operations).expression();
            let fact = |i: usize| bits & (1 << i) != 0;
            let mut expected = fact(0);
            for i in 1..operations.len() {
                expected = if operations[i - 1] { expected || fact(i) } else { expected && fact(i) };
            }
            let facts = |leaf: &Leaf| match leaf {
                Leaf::ProductId(number) => fact(number.parse().expect("a number")),
                _ => false,
            };
            prop_assert_eq!(holds(&expression, &facts), expected);
            prop_assert!(depth(&expression) <= 16);
            prop_assert!(leaves(&expression) <= 6 * operations.len());
        }
    }
}
