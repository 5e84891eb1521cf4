//! The JSON of the provider `command`: requests written, replies read and checked field by field. Knows no process:
//! bytes in, vocabulary out. The protocol's table is in `command`.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, de, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    model::{Capabilities, Capacity, Group, GroupName, Instance, InstanceState, Readiness, Resources, WorkerTemplate},
    policy::duration,
    ports::{ErrorKind, OperationState, PortError},
};

/// The protocol's version, in every request.
const VERSION: u32 = 1;

/// Longest name or operation id: RFC 1035 has 253 for a host, and whole resource paths must fit.
const NAME_MAX: usize = 512;

/// Most of a resource that one worker may declare: far above any machine, and small enough that sums cannot overflow.
const RESOURCE_MAX: u64 = 1 << 32;

/// How much of a reply that is not understood is shown.
const EXCERPT_MAX: usize = 200;

/// Longest duration that is believed.
const DURATION_MAX: Duration = Duration::from_secs(7 * 86_400);

/// One request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request<'a> {
    version: u32,
    /// `describe`, `create`, `delete` or `poll`.
    pub(super) method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<GroupName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instances: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<&'a str>,
}

impl<'a> Request<'a> {
    pub(super) fn describe() -> Self {
        Self {
            version: VERSION,
            method: "describe",
            request_id: None,
            group: None,
            count: None,
            instances: None,
            operation_id: None,
        }
    }

    pub(super) fn create(request_id: &'a str, group: GroupName, count: u32) -> Self {
        let order = Self { request_id: Some(request_id), group: Some(group), ..Self::describe() };
        Self { method: "create", count: Some(count), ..order }
    }

    pub(super) fn delete(request_id: &'a str, group: GroupName, instances: &'a [String]) -> Self {
        let order = Self { request_id: Some(request_id), group: Some(group), ..Self::describe() };
        Self { method: "delete", instances: Some(instances), ..order }
    }

    pub(super) fn poll(operation_id: &'a str) -> Self {
        Self { method: "poll", operation_id: Some(operation_id), ..Self::describe() }
    }

    /// The request as the command reads it: one line.
    pub(super) fn to_line(&self) -> Result<String, PortError> {
        let line = serde_json::to_string(self);
        line.map(|line| line + "\n").map_err(|error| PortError::new(ErrorKind::Permanent, format!("{error}")))
    }
}

/// The reply to `describe`.
pub(super) fn capacity(reply: &[u8]) -> Result<Capacity, PortError> {
    let WireCapacity { capabilities, groups } = read(reply)?;
    let (mut names, mut hosts) = (BTreeMap::new(), BTreeMap::new());
    for (group, WireGroup { instances, .. }) in &groups {
        for (index, instance) in instances.iter().enumerate() {
            let field = format!("groups.{group}.instances[{index}]");
            check_name(&instance.name).map_err(|why| garbage(&format!("{field}.name {why}")))?;
            check_host(instance.host()).map_err(|why| garbage(&format!("{field}.host {why}")))?;
            check_twice(&mut names, &field, "name", &instance.name)?;
            check_twice(&mut hosts, &field, "host", instance.host())?;
        }
    }
    let meant = |(name, group): (String, WireGroup)| Ok((group_name(&name)?, group_as_meant(&name, group)?));
    let groups = groups.into_iter().map(meant).collect::<Result<_, String>>().map_err(|why| garbage(&why))?;
    let WireCapabilities { deletes_named, overlaps } = capabilities;
    let capabilities = Capabilities { deletes_named, overlaps, resizes: false };
    Ok(Capacity { capabilities, groups, identity: None, readiness: Readiness::Ready })
}

/// The reply to `create` and `delete`.
pub(super) fn operation_id(reply: &[u8]) -> Result<String, PortError> {
    let WireOperation { operation_id } = read(reply)?;
    check_name(&operation_id).map_err(|why| garbage(&format!("operationId {why}")))?;
    Ok(operation_id)
}

/// The reply to `poll`.
pub(super) fn operation_state(reply: &[u8]) -> Result<OperationState, PortError> {
    let WirePoll { state, instances: _, error } = read(reply)?;
    Ok(match state {
        WireOperationState::Running => OperationState::Running,
        WireOperationState::Done => OperationState::Done,
        WireOperationState::Failed => OperationState::Failed(match error {
            Some(error) => error.into_port_error(),
            None => PortError::transient("the operation failed; the command does not say why"),
        }),
    })
}

/// Text of somebody else's, for logs and terminals: control characters become blanks.
pub(super) fn printable(text: &str) -> String {
    text.chars().filter(|c| *c != '\u{1b}').map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Reads a reply of one shape, or the error that the command reports instead.
fn read<T: DeserializeOwned>(reply: &[u8]) -> Result<T, PortError> {
    if reply.trim_ascii().is_empty() {
        return Err(garbage("its reply is empty"));
    }
    let value: Value = serde_json::from_slice(reply)
        .map_err(|error| garbage(&format!("its reply is not JSON ({error}): {}", excerpt(reply))))?;
    let Value::Object(fields) = &value else {
        return Err(garbage(&format!("its reply is not a JSON object: {}", excerpt(reply))));
    };
    if fields.contains_key("error") && !fields.contains_key("state") {
        return Err(typed::<WireFailure>(&value)?.error.into_port_error());
    }
    typed(&value)
}

fn typed<'a, T: Deserialize<'a>>(value: &'a Value) -> Result<T, PortError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { format!("{path}: ") };
        garbage(&format!("its reply is not understood: {field}{}", error.inner()))
    })
}

/// Nonsense may pass by itself (a half-written reply, a script being replaced), so it is tried again.
fn garbage(what: &str) -> PortError {
    PortError::transient(printable(what))
}

fn excerpt(reply: &[u8]) -> String {
    let text = printable(&String::from_utf8_lossy(&reply[..reply.len().min(4 * EXCERPT_MAX)]));
    let short: String = text.trim().chars().take(EXCERPT_MAX).collect();
    if short.len() < reply.trim_ascii().len() { format!("`{short}…`") } else { format!("`{short}`") }
}

/// Names end up in logs and in lists, so blanks and control characters are refused here.
fn check_name(name: &str) -> Result<(), String> {
    match name {
        "" => Err("is empty".into()),
        long if long.len() > NAME_MAX => Err(format!("is longer than {NAME_MAX} bytes")),
        odd if !odd.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(format!("`{}` has a blank or another character that no name has", printable(odd)))
        }
        _ => Ok(()),
    }
}

/// Hosts end up in YARN's exclude file, plain or XML, where more characters than blanks would do harm.
fn check_host(host: &str) -> Result<(), String> {
    check_name(host)?;
    match host.chars().find(|c| !c.is_ascii_alphanumeric() && !".-_:".contains(*c)) {
        Some(odd) => Err(format!("`{host}` has a `{odd}`, which no host name or address has")),
        None => Ok(()),
    }
}

fn check_twice<'a>(
    seen: &mut BTreeMap<&'a str, String>,
    field: &str,
    what: &str,
    word: &'a str,
) -> Result<(), PortError> {
    match seen.insert(word, field.to_owned()) {
        None => Ok(()),
        Some(first) => Err(garbage(&format!("{first} and {field} have the same {what} `{word}`"))),
    }
}

fn group_name(name: &str) -> Result<GroupName, String> {
    GroupName::ALL
        .into_iter()
        .find(|known| known.to_string() == name)
        .ok_or_else(|| format!("groups has `{}`; a group is `primary` or `secondary`", printable(name)))
}

fn group_as_meant(name: &str, WireGroup { template, instances }: WireGroup) -> Result<Group, String> {
    let template = match template {
        Some(template) => Some(template.as_meant().map_err(|why| format!("groups.{name}.template.{why}"))?),
        None => None,
    };
    Ok(Group { template, instances: instances.into_iter().map(WireInstance::into_instance).collect() })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireCapacity {
    #[serde(default)]
    capabilities: WireCapabilities,
    groups: BTreeMap<String, WireGroup>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct WireCapabilities {
    deletes_named: bool,
    overlaps: bool,
}

impl Default for WireCapabilities {
    /// What the plainest script can do: its `delete` names workers, and it knows nothing of a second order.
    fn default() -> Self {
        Self { deletes_named: true, overlaps: false }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireGroup {
    template: Option<WireTemplate>,
    instances: Vec<WireInstance>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireTemplate {
    memory_mb: u64,
    vcores: u64,
    #[serde(default)]
    gpus: u64,
    boot_time: Option<WireDuration>,
}

impl WireTemplate {
    fn as_meant(&self) -> Result<WorkerTemplate, String> {
        let amounts = [("memoryMb", self.memory_mb, 1), ("vcores", self.vcores, 1), ("gpus", self.gpus, 0)];
        for (field, amount, least) in amounts {
            if !(least..=RESOURCE_MAX).contains(&amount) {
                return Err(format!("{field} is {amount}; {least} to {RESOURCE_MAX} are possible"));
            }
        }
        let resources = Resources::new(self.memory_mb, self.vcores, self.gpus);
        Ok(WorkerTemplate { resources, boot_time: self.boot_time.map(|WireDuration(duration)| duration) })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireInstance {
    name: String,
    host: Option<String>,
    state: InstanceState,
}

impl WireInstance {
    fn host(&self) -> &str {
        self.host.as_deref().unwrap_or(&self.name)
    }

    fn into_instance(self) -> Instance {
        Instance { host: self.host().to_owned(), name: self.name, state: self.state }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireOperation {
    operation_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WirePoll {
    state: WireOperationState,
    #[serde(default)]
    #[expect(dead_code, reason = "allowed for people who read the traffic; what is there is taken from `describe`")]
    instances: de::IgnoredAny,
    error: Option<WireError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum WireOperationState {
    Running,
    Done,
    Failed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireFailure {
    error: WireError,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireError {
    kind: String,
    #[serde(default)]
    message: String,
    retry_after: Option<WireDuration>,
}

impl WireError {
    fn into_port_error(self) -> PortError {
        let retry_after = self.retry_after.map(|WireDuration(duration)| duration);
        let message = if self.message.is_empty() { "no message".into() } else { printable(&self.message) };
        let kind = match self.kind.as_str() {
            "STOCK_OUT" => ErrorKind::StockOut,
            "QUOTA" => ErrorKind::Quota,
            "THROTTLED" => ErrorKind::Throttled { retry_after },
            "NOT_FOUND" => ErrorKind::NotFound,
            "DENIED" => ErrorKind::Denied,
            "CONFLICT" => ErrorKind::Conflict,
            "TRANSIENT" => ErrorKind::Transient,
            "PERMANENT" => ErrorKind::Permanent,
            // The command meant to say something that we do not know: safer to wait for a person than to try again.
            other => {
                let text = format!("{message} (error kind `{}` is not known)", printable(other));
                return PortError::new(ErrorKind::Permanent, text);
            }
        };
        PortError::new(kind, format!("{}: {message}", self.kind))
    }
}

/// Seconds as a number, or a text as in policy files.
#[derive(Clone, Copy)]
struct WireDuration(Duration);

impl<'de> Deserialize<'de> for WireDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }
}

struct DurationVisitor;

impl de::Visitor<'_> for DurationVisitor {
    type Value = WireDuration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("seconds as a number, or a duration such as \"90s\", \"2m\" or \"1h\", up to 7 days")
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<WireDuration, E> {
        #[expect(clippy::cast_precision_loss, reason = "a number that loses precision is far above the bound")]
        self.visit_f64(seconds as f64)
    }

    fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<WireDuration, E> {
        let believed = Duration::try_from_secs_f64(seconds).ok().filter(|duration| *duration <= DURATION_MAX);
        believed.map(WireDuration).ok_or_else(|| E::invalid_value(de::Unexpected::Float(seconds), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<WireDuration, E> {
        let believed = duration::parse(text).ok().filter(|duration| *duration <= DURATION_MAX);
        believed.map(WireDuration).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = r#"{"groups":{"primary":{"template":{"memoryMb":1,"vcores":1,"bootTime":"1s"},"instances":[{"name":"a","state":"RUNNING"}]}}}"#;

    fn is_for_people(error: &PortError) -> bool {
        !error.text.is_empty() && !error.text.contains(char::is_control)
    }

    proptest! {
        #[test]
        fn no_reply_is_too_odd(reply in any::<Vec<u8>>(), text in "\\PC*") {
            for reply in [reply.as_slice(), text.as_bytes()] {
                prop_assert!(is_for_people(&capacity(reply).unwrap_err()));
                prop_assert!(is_for_people(&operation_id(reply).unwrap_err()));
                prop_assert!(is_for_people(&operation_state(reply).unwrap_err()));
            }
        }

        #[test]
        fn no_damage_to_a_good_reply_does_harm(at in 0..GOOD.len(), byte in any::<u8>()) {
            let mut reply = GOOD.as_bytes().to_vec();
            reply[at] = byte;
            prop_assert!(capacity(&reply).err().is_none_or(|error| is_for_people(&error)));
            prop_assert!(capacity(&reply[..at]).is_err());
        }
    }
}
