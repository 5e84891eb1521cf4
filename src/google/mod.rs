//! What all of Google's services share: where they answer, who asks, where this machine is, and how a request is made.
//! Knows nothing of clusters, machines or objects; `cloud` and `store` do.

mod api;
mod credentials;
mod endpoint;
mod error;
mod exchange;
mod gcloud;
mod key_file;
mod metadata;
mod object_credentials;
mod placement;
mod tokens;

pub use api::{Api, TIME_LIMIT_DEFAULT, path_part};
pub use credentials::{Credentials, Defaults};
pub use endpoint::{Endpoints, endpoint, is_loopback};
pub use error::{ApiError, printable};
pub use metadata::{METADATA_HOST, METADATA_TIME_LIMIT, Metadata, MetadataError};
pub use object_credentials::credentials;
pub use placement::{ClusterPlacement, Placement};
pub use tokens::{Timing, Tokens};
