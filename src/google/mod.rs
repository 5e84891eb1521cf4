//! What all of Google's services share: where they answer, who asks, and how a request is made. Knows nothing of
//! clusters, machines or objects; `cloud` and `store` do.

mod api;
mod endpoint;
mod error;
mod tokens;

pub use api::{Api, TIME_LIMIT_DEFAULT};
pub use endpoint::{Endpoints, endpoint};
pub use error::ApiError;
pub use tokens::Tokens;
