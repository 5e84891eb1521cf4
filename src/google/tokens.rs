//! Who asks: tokens for Google's services.

use reqwest::header::HeaderValue;

use crate::ports::PortError;

/// Where tokens come from.
#[derive(Debug)]
pub struct Tokens {}

impl Tokens {
    /// None is sent: for emulators.
    pub fn anonymous() -> Self {
        Self {}
    }

    /// The value of the `Authorization` header, marked as a secret; `None` where none is to be sent.
    ///
    /// # Errors
    /// No token is to be had; the kind says whether it is worth while to try again.
    pub async fn header(&self) -> Result<Option<HeaderValue>, PortError> {
        Ok(None)
    }
}
