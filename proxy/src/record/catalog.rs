//! The names that the metrics' labels are made of, as the codec knows them.

use klamp_codec::{ApiKey, ErrorCode, layout};
use klamp_metrics::{Catalog, KnownKey};

/// The Kafka release that `kafka-protocol` 0.18 is generated from, as its documentation tells.
const KAFKA_SCHEMA: &str = "4.1.0";

/// What the labels of the metrics are made of.
pub(crate) fn catalog() -> Catalog {
    let known_key = |api_key: ApiKey| {
        Some(KnownKey {
            code: api_key.0,
            name: api_key.name()?,
            max_version: layout::versions(api_key)?.max(),
        })
    };
    Catalog {
        version: env!("CARGO_PKG_VERSION"),
        kafka_schema: KAFKA_SCHEMA,
        api_keys: ApiKey::named().filter_map(known_key).collect(),
        error_codes: ErrorCode::named()
            .filter_map(|code| Some((code.0, code.name()?)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_code_that_has_a_name_is_in_it() {
        let catalog = catalog();
        assert_eq!(catalog.api_keys.len(), ApiKey::named().count());
        assert_eq!(catalog.error_codes.len(), ErrorCode::named().count());
        assert!(catalog.error_codes.contains(&(0, "NONE")));
        assert!(
            catalog
                .api_keys
                .iter()
                .any(|key| key.name == "Fetch" && key.max_version >= 17)
        );
    }
}
