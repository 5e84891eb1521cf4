//! `publish`: puts files where clusters fetch them: init actions, policies, this program.

use std::{
    env,
    fmt::Write as _,
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{connect::Failure, exit, google, terminal, wall_clock::WallClock};
use crate::{
    google::TIME_LIMIT_DEFAULT,
    ports::{Clock, ErrorKind, PortError},
    store::{
        objects::{AnyObjects, BucketObjects, Destination, FolderObjects, Objects, Sent},
        publish::{Collected, Fate, LocalFile, Outcome, Target, Watcher, collect},
    },
};

/// Put files where clusters fetch them: init actions, policies, this program.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to: gs://BUCKET[/PREFIX], file:///FOLDER, or a folder that exists
    #[arg(value_name = "DESTINATION")]
    pub destination: Destination,
    /// Files, and folders with all that is in them (names that begin with a dot are left out); the manifest names these
    /// and no others
    #[arg(value_name = "PATH", required_unless_present = "binary")]
    pub paths: Vec<PathBuf>,
    /// This very program, too
    #[arg(long)]
    pub binary: bool,
    /// Say what would be uploaded, and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Who asks, and where Cloud Storage answers.
    #[command(flatten)]
    pub google: google::Args,
}

/// Publishes.
pub fn run(args: &Args) -> ExitCode {
    exit::of(publish(args))
}

fn publish(args: &Args) -> Result<(), Failure> {
    let mut paths = args.paths.clone();
    if args.binary {
        paths.push(env::current_exe().map_err(|error| anyhow!("cannot find this program's own file: {error}"))?);
    }
    let collected = collect(&paths).map_err(|text| anyhow!(text))?;
    if collected.files.is_empty() {
        return Err(anyhow!("there is no file in what was named").into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(upload(args, &collected));
    // A name that is being looked up sits on a thread of its own and must not hold up the end.
    runtime.shutdown_background();
    terminal::tell(&summary(args, &collected, &outcome?))?;
    Ok(())
}

async fn upload(args: &Args, collected: &Collected) -> Result<(String, Outcome), Failure> {
    let (objects, prefix) = objects(args).await?;
    let target = Target { objects: &objects, prefix: &prefix, dry_run: args.dry_run };
    let bars = Bars::new(collected);
    let outcome = target.publish(&collected.files, WallClock::default().now(), &bars).await.map_err(failed)?;
    bars.bar.finish_and_clear();
    Ok((objects.address(&outcome.manifest_object), outcome))
}

/// The destination behind its adapter, and how names begin there.
async fn objects(args: &Args) -> Result<(AnyObjects, String), Failure> {
    match &args.destination {
        Destination::Folder(folder) => Ok((AnyObjects::Folder(FolderObjects::open(folder)?), String::new())),
        Destination::Bucket { bucket, path } => {
            let (endpoint, tokens) = (args.google.endpoints()?.storage, args.google.tokens()?);
            let objects = BucketObjects::new(bucket, &endpoint, tokens, TIME_LIMIT_DEFAULT).await?;
            Ok((AnyObjects::Bucket(objects), path.clone()))
        }
    }
}

/// What may pass by itself is told from what must be set right first.
fn failed(error: PortError) -> Failure {
    let code = match error.kind {
        ErrorKind::Transient | ErrorKind::Throttled { .. } | ErrorKind::Conflict | ErrorKind::Quota => {
            exit::UNREACHABLE
        }
        ErrorKind::StockOut | ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Permanent => exit::USAGE,
    };
    Failure::new(code, error)
}

/// How far it is, on a terminal: all bytes in one bar, which names the file.
struct Bars {
    bar: ProgressBar,
    /// Bytes of the files that are done.
    done: Arc<Mutex<u64>>,
}

impl Bars {
    fn new(collected: &Collected) -> Self {
        let total = collected.files.iter().map(|file| file.size).sum();
        let target = if terminal::can_redraw(&std::io::stderr()) {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("{bytes:>10} of {total_bytes} {bar:30} {wide_msg}");
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, done: Arc::default() }
    }
}

impl Watcher for Bars {
    fn uploading(&self, file: &LocalFile) -> Option<Sent> {
        self.bar.set_message(file.path.clone());
        let before = *self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = self.bar.clone();
        Some(Arc::new(move |sent| bar.set_position(before + sent)))
    }

    fn done(&self, file: &LocalFile, _fate: Fate) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += file.size;
        self.bar.set_position(*done);
    }
}

/// What was done, and what to do with it.
fn summary(args: &Args, collected: &Collected, (manifest, outcome): &(String, Outcome)) -> String {
    let mut text = String::new();
    for (path, fate) in &outcome.fates {
        let word = match fate {
            Fate::Uploaded => "uploaded",
            Fate::Unchanged => "unchanged",
            Fate::Missing => "to upload",
        };
        let published = &outcome.manifest.files[path];
        let _ = writeln!(text, "{word:9}  {:>10}  {path}", published.size);
    }
    for path in &collected.hidden {
        let _ = writeln!(text, "left out               {}: its name begins with a dot", path.display());
    }
    let word = match (outcome.is_new, args.dry_run) {
        (true, true) => "to write",
        (true, false) => "written",
        (false, _) => "unchanged",
    };
    let _ = writeln!(text, "{word:9}              {manifest}");
    text.push_str(&addresses(outcome));
    text
}

/// Where everything is: for `--initialization-actions`, for Terraform, for `--policy`.
fn addresses(outcome: &Outcome) -> String {
    let files = &outcome.manifest.files;
    let mut text = "\nWhere it is, by what it was called:\n".to_owned();
    for (path, published) in files {
        let _ = writeln!(text, "  {path}\n    {}", published.uri);
    }
    let scripts: Vec<_> =
        files.values().map(|file| &*file.uri).filter(|uri| uri.starts_with("gs://") && uri.ends_with(".sh")).collect();
    if !scripts.is_empty() {
        let _ = writeln!(text, "\nFor gcloud dataproc clusters create (keep those that are meant, in their order):");
        let _ = writeln!(text, "  --initialization-actions={}", scripts.join(","));
        let _ = writeln!(text, "\nFor Terraform, in cluster_config of google_dataproc_cluster, a block each:");
        for script in scripts {
            // Terraform's own default of 300 s is less than a driver takes.
            let _ = writeln!(
                text,
                "  initialization_action {{\n    script      = \"{script}\"\n    timeout_sec = 600\n  }}"
            );
        }
    }
    text
}
