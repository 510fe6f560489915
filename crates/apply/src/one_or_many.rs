//! A list that is written as its only value if it has one. An earlier version reads such a field as a single value.

use ringwise_knob::Setting;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(list: &[Setting], to: S) -> Result<S::Ok, S::Error> {
    match list {
        [one] => one.serialize(to),
        many => many.serialize(to),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Setting>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        Many(Vec<Setting>),
        One(Box<Setting>),
    }
    Ok(match Option::<OneOrMany>::deserialize(from)? {
        Some(OneOrMany::Many(list)) => list,
        Some(OneOrMany::One(one)) => vec![*one],
        None => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Bases {
        #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::one_or_many")]
        base: Vec<Setting>,
    }

    #[test]
    fn one_value_is_written_as_before() {
        let table = |queues: &[u32]| Setting::RssTable { dev: "eth0".into(), table: queues.to_vec() };
        let text = |base: &[Setting]| serde_json::to_value(Bases { base: base.to_vec() }).unwrap();
        let (a, b) = (table(&[0, 1]), table(&[1, 0]));
        assert_eq!(text(std::slice::from_ref(&a)), serde_json::json!({ "base": a }));
        assert_eq!(text(&[]), serde_json::json!({}));
        for base in [vec![], vec![a.clone()], vec![a, b]] {
            assert_eq!(serde_json::from_value::<Bases>(text(&base)).unwrap().base, base);
        }
    }
}
