//! Who is who: the metadata server, the OAuth token endpoint, and tokens for other service accounts.

use serde_json::{Value, json};

use super::{
    cloud::{Cloud, unrouted},
    http::{Answer, Request, refusal},
};

/// How long a token lasts, in seconds.
const TOKEN_LASTS: u32 = 3599;

/// The account that the machine's tokens are for.
pub const ACCOUNT: &str = "scaler@p.iam.gserviceaccount.com";

impl Cloud {
    /// A token that is known from now on.
    pub fn new_token(&mut self) -> String {
        let token = format!("ya29.fake-{}", self.random.uuid());
        self.tokens.insert(token.clone());
        token
    }
}

/// What is under `computeMetadata/v1/`, and the root, which clients ask to find out where they are.
pub fn metadata(cloud: &mut Cloud, request: &Request) -> Answer {
    if request.header("metadata-flavor") != Some("Google") {
        return Answer { status: 403, ..Answer::text("Missing Metadata-Flavor:Google header.") };
    }
    let path = request.path.trim_start_matches('/').trim_start_matches("computeMetadata").trim_matches('/');
    let path = path.trim_start_matches("v1").trim_matches('/').to_owned();
    let answer = match path.as_str() {
        "" => Answer::text("computeMetadata/\n"),
        "instance/service-accounts/default/token" => token_json(cloud),
        "instance/service-accounts/default/email" => Answer::text(ACCOUNT),
        "instance/service-accounts/default" => Answer::json(&json!({
            "aliases": ["default"], "email": ACCOUNT, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]
        })),
        _ => match plain(cloud, &path) {
            Some(text) => Answer::text(&text),
            None => Answer { status: 404, ..Answer::text("Not found") },
        },
    };
    answer.with("metadata-flavor", "Google").with("server", "Metadata Server for VM")
}

/// Values that are text.
fn plain(cloud: &Cloud, path: &str) -> Option<String> {
    let options = &cloud.options;
    let cluster = options.metadata_cluster.as_ref().and_then(|name| cloud.clusters.get(name));
    let host = cluster.map_or_else(|| "machine".into(), |cluster| format!("{}-m", cluster.name));
    match path {
        "project/project-id" => return Some(options.project.clone()),
        "project/numeric-project-id" => return Some("123456789".into()),
        "universe/universe-domain" | "universe/universe_domain" => return Some("googleapis.com".into()),
        "instance/zone" => return Some(format!("projects/123456789/zones/{}", options.zone)),
        "instance/name" => return Some(host),
        "instance/hostname" => return Some(format!("{host}.{}.c.{}.internal", options.zone, options.project)),
        _ => {}
    }
    let cluster = cluster?;
    Some(match path.strip_prefix("instance/attributes/")? {
        "dataproc-cluster-name" => cluster.name.clone(),
        "dataproc-cluster-uuid" => cluster.uuid.clone(),
        "dataproc-region" => options.region.clone(),
        "dataproc-role" => "Master".into(),
        "dataproc-master" => format!("{}-m", cluster.name),
        "dataproc-master-additional" if !options.other_masters.is_empty() => options.other_masters.clone(),
        "dataproc-bucket" => "dataproc-staging-x".into(),
        "dataproc-worker-count" => cluster.primaries.len().to_string(),
        _ => return None,
    })
}

fn token_json(cloud: &mut Cloud) -> Answer {
    let body = json!({"access_token": cloud.new_token(), "expires_in": TOKEN_LASTS, "token_type": "Bearer"});
    Answer::json(&body)
}

/// `POST token`: the grants of service account keys and of people.
pub fn token(cloud: &mut Cloud, request: &Request) -> Answer {
    if request.method != "POST" {
        return unrouted(request);
    }
    let form = request.form();
    let has = |field: &str| form.get(field).is_some_and(|value| !value.is_empty());
    let is_right = match form.get("grant_type").map(String::as_str) {
        // Who signed it is not looked at; its form is.
        Some("urn:ietf:params:oauth:grant-type:jwt-bearer") => form
            .get("assertion")
            .is_some_and(|assertion| assertion.split('.').filter(|part| !part.is_empty()).count() == 3),
        Some("refresh_token") => has("refresh_token") && has("client_id") && has("client_secret"),
        _ => false,
    };
    if is_right {
        return token_json(cloud);
    }
    let body = json!({"error": "invalid_grant", "error_description": "Invalid JWT, refresh token or grant type."});
    Answer { status: 400, ..Answer::json(&body) }
}

/// `POST v1/projects/-/serviceAccounts/ACCOUNT:generateAccessToken`.
pub fn impersonated(cloud: &mut Cloud, request: &Request, call: &str) -> Answer {
    let Some(account) = call.strip_suffix(":generateAccessToken").filter(|_| request.method == "POST") else {
        return unrouted(request);
    };
    let body = request.json().unwrap_or(Value::Null);
    if body["scope"].as_array().is_none_or(Vec::is_empty) {
        return refusal(400, "INVALID_ARGUMENT", "badRequest", "Scope must be specified.");
    }
    if !account.contains('@') {
        let text = "Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).";
        return refusal(403, "PERMISSION_DENIED", "forbidden", text);
    }
    let expires = (chrono::Utc::now() + chrono::TimeDelta::seconds(TOKEN_LASTS.into())).format("%Y-%m-%dT%H:%M:%SZ");
    Answer::json(&json!({"accessToken": cloud.new_token(), "expireTime": expires.to_string()}))
}
