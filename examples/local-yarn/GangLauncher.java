import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.yarn.api.ApplicationConstants;
import org.apache.hadoop.yarn.api.protocolrecords.AllocateResponse;
import org.apache.hadoop.yarn.api.records.ApplicationId;
import org.apache.hadoop.yarn.api.records.ApplicationSubmissionContext;
import org.apache.hadoop.yarn.api.records.Container;
import org.apache.hadoop.yarn.api.records.ContainerId;
import org.apache.hadoop.yarn.api.records.ContainerLaunchContext;
import org.apache.hadoop.yarn.api.records.ContainerStatus;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.client.api.AMRMClient.ContainerRequest;
import org.apache.hadoop.yarn.client.api.NMClient;
import org.apache.hadoop.yarn.client.api.YarnClient;
import org.apache.hadoop.yarn.client.api.YarnClientApplication;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.exceptions.YarnException;

/**
 * Gang jobs for a lab, in the manner of TonY: an application master that asks for all members of a
 * distributed training at once and lets them work only when all have come.
 *
 * <pre>
 * GangLauncher submit key=value…    submit gangs, print their ids
 * GangLauncher master key=value…    what YARN runs for each of them
 * </pre>
 *
 * What it has in common with TonY, because autoscalers stumble over it: one YARN priority per job
 * type; members that have come are started at once, so that their machine knows of them, and wait
 * for the others; a lost member is never asked for again; losing a worker other than the first
 * still ends in SUCCEEDED; progress stays 0 until workers finish.
 */
public final class GangLauncher {
  private static final int HEARTBEAT_MS = 500;
  private static final int MASTER_HEAP_MB = 64;

  private GangLauncher() {}

  public static void main(String[] words) throws Exception {
    Options options = new Options(words);
    if (words[0].equals("submit")) {
      submit(options);
    } else {
      new Master(options).run();
    }
  }

  /** The key=value words of the command line, handed on from client to master. */
  private static final class Options {
    private final Map<String, String> values = new HashMap<>();

    Options(String[] words) {
      for (int i = 1; i < words.length; i++) {
        String[] pair = words[i].split("=", 2);
        values.put(pair[0], pair[1]);
      }
    }

    String text(String key) {
      return values.get(key);
    }

    int number(String key) {
      return Integer.parseInt(values.get(key));
    }

    String asWords() {
      StringBuilder words = new StringBuilder();
      values.forEach((key, value) -> words.append(" '").append(key).append('=').append(value).append('\''));
      return words.toString();
    }
  }

  // The client.

  private static void submit(Options options) throws IOException, YarnException {
    try (YarnClient client = YarnClient.createYarnClient()) {
      client.init(new YarnConfiguration());
      client.start();
      int gangs = options.number("gangs");
      for (int i = 1; i <= gangs; i++) {
        String name = gangs == 1 ? options.text("name") : options.text("name") + "-" + i;
        System.out.println(submitOne(client, options, name));
      }
    }
  }

  private static ApplicationId submitOne(YarnClient client, Options options, String name)
      throws IOException, YarnException {
    YarnClientApplication application = client.createApplication();
    ApplicationSubmissionContext context = application.getApplicationSubmissionContext();
    context.setApplicationName(name);
    context.setApplicationType("TONY");
    context.setApplicationTags(Collections.singleton(options.text("kind")));
    context.setResource(Resource.newInstance(options.number("am-memory-mb"), 1));
    context.setMaxAppAttempts(1);
    String log = options.text("logs") + "/" + context.getApplicationId() + ".log";
    context.setAMContainerSpec(launch(masterCommand(options, log)));
    return client.submitApplication(context);
  }

  /** Where this program finds the names of workers, its masters find them, too. */
  private static String hostsFile() {
    String file = System.getProperty("jdk.net.hosts.file");
    return file == null ? "" : " '-Djdk.net.hosts.file=" + file + "'";
  }

  private static String masterCommand(Options options, String log) {
    return "exec '" + System.getProperty("java.home") + "/bin/java'"
        + " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xmx" + MASTER_HEAP_MB + "m"
        + " '-Dlab.dir=" + System.getProperty("lab.dir") + "'"
        + " '-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir") + "'"
        + hostsFile()
        + " -cp '" + System.getProperty("java.class.path") + "'"
        + " GangLauncher master" + options.asWords() + " >'" + log + "' 2>&1";
  }

  /** A shell command as YARN wants it, marked so that the lab finds its process. */
  private static ContainerLaunchContext launch(String command) {
    Map<String, String> environment = new HashMap<>();
    for (String name : List.of("YARN_LAB_DIR", "HADOOP_USER_NAME")) {
      environment.put(name, System.getenv(name));
    }
    return ContainerLaunchContext.newInstance(
        null, environment, Collections.singletonList(command), null, null, null);
  }

  /** One member of the gang; the first worker is the chief. */
  private static final class Member {
    final String type;
    final int index;
    final Container container;

    Member(String type, int index, Container container) {
      this.type = type;
      this.index = index;
      this.container = container;
    }

    boolean isWorker() {
      return type.equals("worker");
    }

    boolean isChief() {
      return isWorker() && index == 0;
    }

    @Override
    public String toString() {
      return type + " " + index;
    }
  }

  /** A kind of member: its open asks, and how many have come. */
  private static final class JobType {
    final String name;
    final Priority priority;
    final Deque<ContainerRequest> asks = new ArrayDeque<>();
    int come;

    JobType(String name, int priority) {
      this.name = name;
      this.priority = Priority.newInstance(priority);
    }
  }

  /** The application master. */
  private static final class Master {
    private final Options options;
    private final String application = applicationId();
    private final AMRMClient<ContainerRequest> manager = AMRMClient.createAMRMClient();
    private final NMClient nodes = NMClient.createNMClient();
    private final List<JobType> types = new ArrayList<>();
    private final Map<ContainerId, Member> members = new HashMap<>();
    private final List<Member> lost = new ArrayList<>();
    private final Path records;
    private final Path go;
    private boolean working;
    private int finished;

    Master(Options options) {
      this.options = options;
      this.records = Path.of(options.text("records"), application + ".jsonl");
      this.go = Path.of(options.text("records"), application + ".go");
    }

    private static String applicationId() {
      String container = System.getenv(ApplicationConstants.Environment.CONTAINER_ID.name());
      return ContainerId.fromString(container).getApplicationAttemptId().getApplicationId().toString();
    }

    void run() throws Exception {
      YarnConfiguration configuration = new YarnConfiguration();
      manager.init(configuration);
      nodes.init(configuration);
      manager.start();
      nodes.start();
      manager.registerApplicationMaster("", -1, "");
      askForAll();
      while (!over()) {
        Thread.sleep(HEARTBEAT_MS);
        heartbeat();
      }
      end();
    }

    /** Every member at once: a training works with all of them or not at all. */
    private void askForAll() {
      ask("ps", options.number("ps"), options.number("ps-memory-mb"), 0);
      ask("worker", options.number("workers"), options.number("worker-memory-mb"), options.number("worker-gpus"));
      record("asked", "\"members\":" + types.stream().mapToInt(type -> type.asks.size()).sum());
    }

    private void ask(String name, int count, int memory, int gpus) {
      if (count == 0) {
        return;
      }
      JobType type = new JobType(name, types.size());
      types.add(type);
      Resource resource = Resource.newInstance(memory, 1);
      if (gpus > 0) {
        resource.setResourceValue("yarn.io/gpu", gpus);
      }
      for (int i = 0; i < count; i++) {
        ContainerRequest request = new ContainerRequest(resource, null, null, type.priority);
        type.asks.add(request);
        manager.addContainerRequest(request);
      }
    }

    private void heartbeat() throws IOException, YarnException {
      AllocateResponse response = manager.allocate(progress());
      response.getAllocatedContainers().forEach(this::take);
      response.getCompletedContainersStatuses().forEach(this::completed);
      if (!working && allHaveCome()) {
        Files.write(go, new byte[0]);
        working = true;
        record("working", "\"members\":" + members.size());
      }
    }

    private float progress() {
      return (float) finished / Math.max(1, options.number("workers"));
    }

    private boolean allHaveCome() {
      return lost.isEmpty() && types.stream().allMatch(type -> type.asks.isEmpty());
    }

    /** YARN may hand out one container more than was asked for: that one goes back. */
    private void take(Container container) {
      JobType type = types.stream()
          .filter(one -> one.priority.equals(container.getPriority()) && !one.asks.isEmpty())
          .findFirst()
          .orElse(null);
      if (type == null) {
        manager.releaseAssignedContainer(container.getId());
        record("surplus", "\"container\":" + quoted(container.getId().toString()));
        return;
      }
      manager.removeContainerRequest(type.asks.remove());
      start(new Member(type.name, type.come++, container));
    }

    private void start(Member member) {
      members.put(member.container.getId(), member);
      try {
        nodes.startContainer(member.container, launch(command(member)));
      } catch (YarnException | IOException error) {
        lose(member, -1, String.valueOf(error.getMessage()));
      }
    }

    /** Waits for the word that all have come; a parameter server serves until it is stopped. */
    private String command(Member member) {
      String work = member.isWorker() ? options.text("duration") : "infinity";
      return "until [ -e '" + go + "' ]; do sleep 1; done; exec sleep " + work;
    }

    private void completed(ContainerStatus status) {
      Member member = members.get(status.getContainerId());
      if (member == null || lost.contains(member)) {
        return;
      }
      if (status.getExitStatus() != 0) {
        lose(member, status.getExitStatus(), status.getDiagnostics());
      } else if (member.isWorker()) {
        finished++;
      }
    }

    private void lose(Member member, int exitStatus, String diagnostics) {
      lost.add(member);
      record("lost", "\"member\":" + quoted(member.toString())
          + ",\"container\":" + quoted(member.container.getId().toString())
          + ",\"node\":" + quoted(member.container.getNodeId().getHost())
          + ",\"exitStatus\":" + exitStatus
          + ",\"diagnostics\":" + quoted(diagnostics));
    }

    /** Over when no worker is left to wait for, or when the gang can never be complete. */
    private boolean over() {
      long lostWorkers = lost.stream().filter(Member::isWorker).count();
      boolean neverComplete = !working && !lost.isEmpty();
      return neverComplete || finished + lostWorkers == options.number("workers");
    }

    private void end() throws IOException, YarnException {
      boolean failed = !working || lost.stream().anyMatch(Member::isChief);
      FinalApplicationStatus status = failed ? FinalApplicationStatus.FAILED : FinalApplicationStatus.SUCCEEDED;
      String diagnostics = lost.isEmpty() ? "" : "lost: " + lost;
      record("ended", "\"status\":" + quoted(status.toString()) + ",\"diagnostics\":" + quoted(diagnostics));
      stopServers();
      manager.unregisterApplicationMaster(status, diagnostics, "");
      manager.stop();
      nodes.stop();
      Files.deleteIfExists(go);
    }

    private void stopServers() {
      for (Member member : members.values()) {
        if (!member.isWorker() && !lost.contains(member)) {
          manager.releaseAssignedContainer(member.container.getId());
        }
      }
    }

    /** A line of what happened, for whoever counts afterwards. */
    private void record(String event, String more) {
      String line = "{\"event\":" + quoted(event) + ",\"application\":" + quoted(application)
          + ",\"at\":" + System.currentTimeMillis() + "," + more + "}\n";
      try (Writer out = Files.newBufferedWriter(
          records, StandardCharsets.UTF_8, StandardOpenOption.CREATE, StandardOpenOption.APPEND)) {
        out.write(line);
      } catch (IOException error) {
        System.err.println("cannot record " + line + error);
      }
    }
  }

  private static String quoted(String text) {
    StringBuilder out = new StringBuilder("\"");
    for (char c : String.valueOf(text).toCharArray()) {
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (c < ' ') {
        out.append(String.format("\\u%04x", (int) c));
      } else {
        out.append(c);
      }
    }
    return out.append('"').toString();
  }
}
