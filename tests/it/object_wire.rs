//! What goes to Cloud Storage and to IAM for each call of ours: method, path and query, with what the body must say.

use std::{sync::Arc, time::Duration};

use yarn_autoscaler::{
    google::{Credentials, METADATA_TIME_LIMIT, Metadata, Timing, Tokens},
    store::objects::{BucketObjects, Objects, Precondition, Upload},
};

use crate::{
    fake_google::{FakeGoogle, FakeOptions, Recorded},
    objects::wait,
};

/// A line a request.
fn line(request: &Recorded) -> String {
    let mut query: Vec<_> = request.query.split('&').filter(|part| !part.is_empty()).collect();
    query.sort_unstable();
    let once = if request.headers.contains_key("x-goog-gcs-idempotency-token") { " (idempotency token)" } else { "" };
    format!("{} {}?{}{once}", request.method, request.path, query.join("&"))
}

#[test]
fn each_call_of_objects_goes_over_the_wire_as_written_here() {
    let google = FakeGoogle::start(FakeOptions::default());
    let metadata = Metadata::new(&google.host(), METADATA_TIME_LIMIT).unwrap();
    let tokens = Tokens::new(Credentials::Metadata(metadata), Timing::default());
    let iam = google.url().parse().unwrap();
    let tokens = Arc::new(tokens.impersonating("scaler@p.iam.gserviceaccount.com", iam).unwrap());
    let (first, second) = wait(async {
        let url = google.url().parse().unwrap();
        let bucket = BucketObjects::new("b", &url, tokens, Duration::from_secs(10)).await.unwrap();
        let document = || Upload::json("{}");
        let first = bucket.put("a/state x.json", document(), Precondition::Absent).await.unwrap();
        bucket.put("a/state x.json", document(), Precondition::Generation(first)).await.unwrap();
        let object = bucket.get("a/state x.json", 100).await.unwrap().unwrap();
        bucket.list("a/").await.unwrap();
        bucket.delete("a/state x.json", Precondition::Generation(object.generation)).await.unwrap();
        (first.0.to_string(), object.generation.0.to_string())
    });
    let requests = google.requests();
    let lines: Vec<_> = requests.iter().map(line).collect();
    // The stand-in's generations are its own.
    insta::assert_snapshot!(lines.join("\n").replace(&second, "SECOND").replace(&first, "FIRST"));
    let granted = requests.iter().find(|request| request.path.ends_with(":generateAccessToken")).unwrap();
    insta::assert_snapshot!("body_of_generate_access_token", serde_json::to_string_pretty(&granted.body).unwrap());
}
