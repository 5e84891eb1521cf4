//! The JSON Schema of a policy file, and what else can be read from it: which fields there are, and where.

use schemars::{Schema, generate::SchemaSettings};

use super::{
    spans::{Path, Seg},
    spec::PolicySpec,
};

/// The JSON Schema (draft 7, which every YAML editor knows) of a policy file. An editor that follows it writes a file
/// that is at least well-formed; what hangs together across fields only `validate` sees.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<PolicySpec>();
    schema.insert("title".into(), "yarn-autoscaler policy".into());
    schema
}

/// The fields of the mapping at this path, in alphabetical order; `None` where the schema has no such mapping.
pub fn fields_at(schema: &Schema, path: &Path) -> Option<Vec<String>> {
    let mut pointer = String::new();
    for seg in path.segments() {
        match seg {
            Seg::Key(key) if key.contains(['/', '~']) => return None,
            Seg::Key(key) => pointer += &format!("/properties/{key}"),
            Seg::Index(_) => pointer += "/items",
        }
    }
    let properties = schema.pointer(&format!("{pointer}/properties"))?.as_object()?;
    Some(properties.keys().cloned().collect())
}

/// Every mapping of the schema that has a field of this name.
pub fn homes_of(schema: &Schema, field: &str) -> Vec<Path> {
    let mut homes = Vec::new();
    let mut open = vec![Path::default()];
    while let Some(path) = open.pop() {
        for name in fields_at(schema, &path).unwrap_or_default() {
            if name == field {
                homes.push(path.clone());
            }
            open.push(path.key(&name));
        }
    }
    homes.sort();
    homes
}
