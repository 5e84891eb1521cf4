//! The JSON Schema of a policy file, and what else can be read from it: which fields there are, and where.

use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use serde_json::Value;

use super::{
    spans::{Path, Seg},
    spec::PolicySpec,
};

/// The JSON Schema (draft 7, which every YAML editor knows) of a policy file. An editor that follows it writes a file
/// that is at least well-formed; what hangs together across fields only `validate` sees.
pub fn schema() -> Schema {
    schema_of::<PolicySpec>("yarn-autoscaler policy")
}

/// The JSON Schema of a kind of file.
pub fn schema_of<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    schema
}

/// A schema and, where it allows one of several shapes, each of these.
fn shapes(schema: &Value) -> Vec<&Value> {
    let among = ["anyOf", "oneOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
    [schema].into_iter().chain(among).collect()
}

/// The schemas of the value at this path.
fn schemas_at<'a>(schema: &'a Schema, path: &Path) -> Vec<&'a Value> {
    path.segments().iter().fold(shapes(schema.as_value()), |schemas, seg| {
        let inner = schemas.into_iter().filter_map(|schema| match seg {
            Seg::Key(key) => schema.get("properties")?.get(&**key),
            Seg::Index(_) => schema.get("items"),
        });
        inner.flat_map(shapes).collect()
    })
}

/// The fields of the mapping at this path, in alphabetical order; `None` where the schema has no such mapping.
pub fn fields_at(schema: &Schema, path: &Path) -> Option<Vec<String>> {
    let mappings = schemas_at(schema, path);
    let mut mappings = mappings.into_iter().filter_map(|schema| schema.get("properties")?.as_object()).peekable();
    mappings.peek()?;
    let mut fields: Vec<_> = mappings.flat_map(serde_json::Map::keys).cloned().collect();
    fields.sort();
    fields.dedup();
    Some(fields)
}

/// Every mapping of the schema that has a field of this name; in a list, its first item.
pub fn homes_of(schema: &Schema, field: &str) -> Vec<Path> {
    let mut homes = Vec::new();
    let mut open = vec![Path::default()];
    while let Some(path) = open.pop() {
        for name in fields_at(schema, &path).unwrap_or_default() {
            if name == field {
                homes.push(path.clone());
            }
            let field = path.key(&name);
            if schemas_at(schema, &field).iter().any(|schema| schema.get("items").is_some()) {
                open.push(field.index(0));
            }
            open.push(field);
        }
    }
    homes.sort();
    homes
}
