//! All integration tests, in one binary: a line of comment a file. Those of the last group start a real Hadoop.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests watch real processes: they read clocks, wait, and say what they saw"
)]

// -- Helpers
// When a lab is at rest: the right workers, and nothing begun that has not ended.
mod at_rest;
// A web server that answers as told and remembers each request whole.
mod dataproc_server;
// A large cluster's answers, shared with the benchmarks.
#[path = "../../benches/support/big_cluster.rs"]
mod big_cluster;
// The text of one case, as the situation that `decide` gets.
mod case_reader;
// A stand-in for Compute Engine that answers by a function and writes down every request.
mod compute_script;
// The daemon as a process.
mod daemon;
// The controller's ports over the little world.
mod fake_ports;
// A stand-in for Google's services, over one simulated cloud.
mod fake_google;
// What the stand-in for Google's services does and refuses.
mod fake_google_rules;
// Google's own clients drive the stand-in.
mod official_clients;
// A web server that misbehaves as told.
mod fake_http;
// A stand-in for a ResourceManager's web port.
mod fake_yarn;
// A web service that reads bodies, keeps connections and answers as told.
mod fake_service;
// An admin port of ours that misbehaves as told.
mod fake_rpc;
// A scene as it was played, and where two plays differ.
mod side_by_side;
// What somebody would look at, and do, beside the daemon on a real cluster.
mod onlooker;
// The instants and the policy from which tests start.
mod fixtures;
// A real YARN, for whoever needs one.
mod lab;
// Outcomes of runs: by hand, and a little cluster played through.
mod outcomes;
// What stands before a real ResourceManager and misbehaves for a while.
mod proxy;
// Ticks to show and log, written out once.
mod ticks;
// A little deterministic world: a cluster, a provider, a store, a clock.
mod world;

// -- The house
// The rules of the house that a machine can check.
mod tidy;

// -- The policy file
// What a policy file means: Dataproc's corpus, defaults, durations, weights, schema.
mod policy;
// `validate` and `schema` as processes: output, exit codes.
mod policy_cli;
// What is said about bad and doubtful policy files, in full.
mod policy_diagnostics;
// When a changed policy file is noticed, and how often it is reported.
mod policy_file;
// Round trips, and texts at random.
mod policy_properties;

// -- Google Cloud
// Requests: what refusals mean, and answers that are late, broken, huge or none.
mod google_api;
// Tokens: each kind of credentials against stand-ins, renewal, failures, and that none is shown.
mod google_identity;
// Where we are, and whether this node acts.
mod google_whereabouts;
// `run` and `plan` on a Dataproc cluster, as processes: refusals, crashes, stock-outs, masters that change.
mod google_daemon;
// The daemon on a managed instance group, as a process.
mod instance_group_daemon;

// -- The simulator's inputs
// Jobs drawn at random: rates, bursts, sizes, and the very jobs of a seed.
mod generator;
// Chance: draws against closed forms, and the very numbers.
mod random;
// What a scenario file means: defaults, shapes, schema.
mod scenario;
// What is said about bad and doubtful scenario files, in full.
mod scenario_diagnostics;
// Texts at random, as scenarios and as traces.
mod scenario_properties;
// Traces: what a row becomes, what is said of bad ones, when a file is refused.
mod traces;

// -- Decision and loop
// Crashes, lost answers and changes of mind through the real loop, in the little world.
mod controller;
// The table of decisions in `tests/cases/`: observation in, decision and reasons out.
mod decide_cases;
// What holds for every situation, whatever it is.
mod decide_props;
// What the window of samples keeps, confirms and covers.
mod history;

// -- Adapters
// The provider `command`, against small scripts: good, garbage, crashing, hanging, flooding.
mod command_provider;
// The autoscaler log: which ticks leave an entry, and that scripts made for Dataproc's own read it.
mod autoscaler_log;
// Policies from Dataproc: their text, their names, when they are looked at.
mod dataproc_policy;
// The provider `dataproc` over the stand-in for Google's services: orders from beginning to end.
mod dataproc_life;
// The provider `dataproc` against canned answers: what it describes, what it sends, what it refuses.
mod dataproc_provider;
// What is written and what not, rotation, torn lines; `explain` over it.
mod decision_log;
// The exclude file, plain and XML: foreign entries survive everything.
mod exclude_file;
// The provider `instance-group`: what is asked of Compute Engine, what is made of its answers, what is withdrawn.
mod instance_group_provider;
// What every provider promises: the command, the simulator, Dataproc, instance groups.
mod provider_contract;
// The live display: what it shows, and how it redraws.
mod live;
// The policy in an object: when a change is noticed, and how often it is reported.
mod object_policy;
// The state in an object: one holder among many, leases, lost answers, take-overs.
mod object_state;
// Objects in a folder and in a bucket: whole or not there, one winner.
mod objects;
// What goes over the wire for each call of objects, and for another account's token.
mod object_wire;
// `publish`: what is uploaded and what not, the manifest, interruptions, words and exit codes.
mod publish;
// A plan's text: columns, long lists, much that is nothing.
mod plan_text;
// One holder, compare-and-swap, crashes, foreign documents.
mod state_file;
// The adapter as a whole: what its orders do to the file and to YARN.
mod yarn_adapter;
// `run` as a process without a cluster: what it refuses and with which code, what it tells systemd, how it ends.
mod run_cli;
// The loop over ports that hand out the same look again.
mod same_look;
// Looks that a simulator need not make.
mod foresight;
// Ticks after which nothing changes until something new is seen.
mod settled;
// The REST client against a web server that misbehaves.
mod yarn_rest;
// Hadoop's RPC to the byte, and against a server that misbehaves.
mod yarn_rpc;
// `record`: looks that were recorded, through a fake ResourceManager, to the file.
mod record;
// How looks at applications become rows, where no recording has the case.
mod record_rules;
// Recorded answers of real ResourceManagers, and answers as other versions would give them.
mod yarn_wire;

// -- Report
// Figures against values worked out by hand, the table, CSV and JSON, expectations.
mod report;
// The page in a real browser: nothing missing, nothing beyond the edge, no script error, readable in light and dark.
mod report_page;
// What holds for every run: the bounds against every plan, distributions.
mod report_props;

// The scene that a real YARN played, too: kept plays of it against the simulator.
mod sim_side_by_side;

// -- On a real Hadoop
// The daemon killed between any two steps, signalled, doubled: nothing is forgotten, nothing done twice.
mod fault_crash;
// YARN killed in parts, or answering nonsense: the daemon holds, goes on, and tells what was lost.
mod fault_yarn;
// The lab itself: up, killed in parts, down, nothing left.
mod lab_smoke;
// Drains: their time-out, demand that returns meanwhile, work that arrives at that very moment, who goes first.
mod real_drain;
// A provider that hangs, crashes, talks nonsense, refuses: beside real demand.
mod real_provider;
// Both Hadoop lines, both ways of giving orders, both forms of the exclude file, a failover.
mod real_reads;
// The scene on a Dataproc cluster of NodeManagers: grown by PATCH, shrunk by repair.
mod real_dataproc;
// The daemon on Dataproc killed between order and answer, its state in a bucket: nothing doubled, no work lost.
mod real_google;
// The example that the README names first, to its end and interrupted.
mod real_demo;
// From pending to the order sent: measured.
mod real_latency;
// One scene on a real YARN and in the simulator, side by side.
mod real_side_by_side;
// `record`: gangs followed, and told from totals afterwards.
mod real_record;
// `plan`: its text, its JSON, its exit codes, and that it changes nothing.
mod real_plan;

// -- The simulator
// Scenarios, jobs and policies for its tests.
mod sim_build;
// The conference scene.
mod sim_scene;
// Queueing theory, a reference, bounds, seeds, skipping: why the figures may be believed.
mod sim_trust;
// Orders and operations, quotas, stock-outs, bills, and a list that lags behind.
mod sim_world_cloud;
// Who is served when and where; how TonY, Spark and MapReduce ask, work and end.
mod sim_world_jobs;
// Drains, cordons, restarts, losses, refusals, as they were measured on a real YARN.
mod sim_world_nodes;
// Random clusters, jobs, faults and orders: the books are right after every event.
mod sim_world_props;

// The shipped scenarios and the commands `simulate` and `demo`, by the binary.
mod scenario_runs;
// Trials at random, with faults of every kind, under the eyes of the checker; two controllers.
mod sim_faults;
// Each promise of the checker, broken on purpose.
mod sim_checker;
