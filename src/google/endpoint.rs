//! Where Google's services answer: at their own names, or where the operator says (Private Service Connect, tests).

use std::net::IpAddr;

use reqwest::Url;

/// Where each service answers. Paths begin with the version (`v1/…`), so that a prefix works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Dataproc: `https://dataproc.googleapis.com/`.
    pub dataproc: Url,
    /// Compute Engine: `https://compute.googleapis.com/`.
    pub compute: Url,
    /// Cloud Storage: `https://storage.googleapis.com/`.
    pub storage: Url,
    /// IAM Service Account Credentials: `https://iamcredentials.googleapis.com/`.
    pub iam_credentials: Url,
}

impl Endpoints {
    /// Google's own names.
    ///
    /// # Errors
    /// None: the addresses are constants.
    pub fn public() -> Result<Self, String> {
        Ok(Self {
            dataproc: endpoint("https://dataproc.googleapis.com/")?,
            compute: endpoint("https://compute.googleapis.com/")?,
            storage: endpoint("https://storage.googleapis.com/")?,
            iam_credentials: endpoint("https://iamcredentials.googleapis.com/")?,
        })
    }
}

/// An address of a service, with a slash at its end. A token is sent there: so it is https, or http on this machine
/// alone.
///
/// # Errors
/// A sentence that says what would be right.
pub fn endpoint(text: &str) -> Result<Url, String> {
    let mut url: Url = text.parse().map_err(|error| format!("`{text}` is no address: {error}"))?;
    let is_right = url.has_host() && url.query().is_none() && url.fragment().is_none();
    let is_right = is_right && url.username().is_empty() && url.password().is_none();
    match url.scheme() {
        "https" if is_right => {}
        "http" if is_right && is_loopback(&url) => {}
        "http" if is_right => return Err(format!("`{text}` is not this machine: a token is sent to https only")),
        _ => return Err(format!("`{text}` is no https://host[:port][/prefix]/")),
    }
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

/// Whether this address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_to_https_or_to_this_machine() {
        for (text, right) in [
            ("https://dataproc.googleapis.com", Some("https://dataproc.googleapis.com/")),
            ("https://dataproc-psc.p.googleapis.com/prefix", Some("https://dataproc-psc.p.googleapis.com/prefix/")),
            ("http://127.0.0.1:8080", Some("http://127.0.0.1:8080/")),
            ("http://localhost:1/", Some("http://localhost:1/")),
            ("http://[::1]:1/", Some("http://[::1]:1/")),
            ("http://dataproc.googleapis.com/", None),
            ("http://127.0.0.1.example.com/", None),
            ("ftp://localhost/", None),
            ("https://user@host/", None),
            ("https://:secret@host/", None),
            ("https://host/?x=1", None),
            ("dataproc.googleapis.com", None),
        ] {
            assert_eq!(endpoint(text).ok().map(|url| url.to_string()).as_deref(), right, "{text}");
        }
    }
}
