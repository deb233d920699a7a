package millstream;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Worker of a queue, which passes messages to a handler until it is stopped.
 *
 * <pre>
 * receive as many as there is capacity for -> handler -> returns:         ack
 *                                                        RetryException:  nack, after its delay
 *                                                        RejectException: dead letter
 *                                                        other exception: nack, with the queue's backoff
 * </pre>
 *
 * Every third of the lease all messages in progress are extended, in one call. It can run once.
 */
public final class Worker implements AutoCloseable {
  private static final System.Logger LOG = System.getLogger("millstream");
  private static final Duration WAIT = Duration.ofSeconds(20);
  private static final Duration PAUSE = Duration.ofSeconds(1); // after a receive that failed, with all its retries
  private static final long LAST_RECEIVE_MS = 500; // a receive that is to end may still return messages

  /** Works on one message. */
  @FunctionalInterface
  public interface Handler {
    void handle(Message message) throws Exception;
  }

  private final Queue queue;
  private final Handler handler;
  private final Set<Message> inProgress = ConcurrentHashMap.newKeySet();
  private final CountDownLatch ended = new CountDownLatch(1);
  private int concurrency = 1;
  private Duration lease = Duration.ofSeconds(30);
  private Duration grace = Duration.ofSeconds(25);
  private Semaphore capacity;
  private volatile boolean isStopping;
  private volatile boolean isGraceOver;
  private volatile Thread receiver;

  Worker(Queue queue, Handler handler) {
    this.queue = queue;
    this.handler = handler;
  }

  /** Set the maximum number of messages in progress; the default is 1. */
  public Worker concurrency(int messages) {
    concurrency = messages;
    return this;
  }

  /** Set how long a message stays hidden without an extension; the default is 30 seconds. */
  public Worker lease(Duration value) {
    lease = value;
    return this;
  }

  /** Set how long messages in progress may take once the worker is stopped; the default is 25 seconds. */
  public Worker grace(Duration value) {
    grace = value;
    return this;
  }

  /** Run in a thread of its own. */
  public Worker start() {
    Thread thread = new Thread(this::run, "millstream-worker-" + queue.name());
    thread.start();
    return this;
  }

  /**
   * Work until {@link #stop}, an interrupt, or the end of the JVM, as by SIGTERM: then finish the messages in progress
   * within the grace period. Throws MillstreamException if the queue was deleted or cannot be read.
   */
  public void run() {
    receiver = Thread.currentThread();
    capacity = new Semaphore(concurrency);
    ExecutorService handlers = Executors.newFixedThreadPool(concurrency);
    ScheduledExecutorService extender = Executors.newSingleThreadScheduledExecutor();
    long periodMs = Math.max(lease.toMillis() / 3, 1);
    extender.scheduleAtFixedRate(this::extendLeases, periodMs, periodMs, TimeUnit.MILLISECONDS);
    Thread hook = new Thread(this::close, "millstream-worker-shutdown");
    Runtime.getRuntime().addShutdownHook(hook);
    try {
      receiveUntilStopped(handlers);
    } finally {
      receiver = null;
      Thread.interrupted(); // the interrupt has been obeyed
      finish(handlers);
      extender.shutdownNow();
      ended.countDown();
      remove(hook);
    }
  }

  private static void remove(Thread hook) {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException isShuttingDown) {
      // the hook is what runs
    }
  }

  /** Receive no more, finish the messages in progress, and end. Returns at once. */
  public void stop() {
    isStopping = true;
    Thread thread = receiver;
    if (thread == null) return;
    queue.client().executor().execute(() -> interruptSoon(thread));
  }

  private void interruptSoon(Thread thread) {
    try {
      Thread.sleep(LAST_RECEIVE_MS);
    } catch (InterruptedException error) {
      return; // the client is closed
    }
    if (receiver == thread) thread.interrupt();
  }

  /** Stop, and wait for the end. */
  @Override
  public void close() {
    stop();
    try {
      ended.await(grace.toMillis() + 5_000, TimeUnit.MILLISECONDS);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  // ── Receiving ──

  private void receiveUntilStopped(ExecutorService handlers) {
    try {
      while (!isStopping) {
        capacity.acquire();
        int room = 1 + capacity.drainPermits();
        List<Message> messages = isStopping ? List.of() : receive(Math.min(room, Json.ITEMS_MAX));
        capacity.release(room - messages.size());
        messages.forEach(message -> begin(handlers, message));
      }
    } catch (InterruptedException | MillstreamException.Interrupted error) {
      isStopping = true;
    }
  }

  private List<Message> receive(int room) throws InterruptedException {
    try {
      return queue.receive(room, WAIT, lease);
    } catch (MillstreamException.Interrupted error) {
      throw error;
    } catch (MillstreamException error) {
      if (!error.isRetryable()) throw error;
      LOG.log(System.Logger.Level.WARNING, "receiving from {0} failed: {1}", queue.name(), error.getMessage());
      Thread.sleep(PAUSE.toMillis());
      return List.of();
    }
  }

  private void begin(ExecutorService handlers, Message message) {
    inProgress.add(message);
    handlers.execute(
        () -> {
          try {
            work(message);
          } finally {
            inProgress.remove(message);
            capacity.release();
          }
        });
  }

  // ── Working ──

  private void work(Message message) {
    Settlement verdict = verdict(message);
    Thread.interrupted(); // of the grace period: the settlement is sent nevertheless
    if (message.isSettled()) return;
    try {
      message.settle(verdict);
    } catch (MillstreamException error) {
      String text = "{0} on a message of {1} failed: {2}";
      LOG.log(System.Logger.Level.WARNING, text, verdict.action(), queue.name(), error.getMessage());
    }
  }

  private Settlement verdict(Message message) {
    try {
      handler.handle(message);
      return Settlement.of(message, "ack");
    } catch (RetryException retry) {
      return Settlement.of(message, "nack").delay(retry.delay()).reason(retry.getMessage(), stackOf(retry.getCause()));
    } catch (RejectException reject) {
      return Settlement.of(message, "reject").reason(reject.getMessage(), stackOf(reject.getCause()));
    } catch (Exception | Error error) {
      if (isGraceOver) return Settlement.of(message, "release");
      LOG.log(System.Logger.Level.ERROR, "message " + message.id() + " of " + queue.name() + " failed", error);
      return Settlement.of(message, "nack").reason(error.toString(), stackOf(error));
    }
  }

  private static String stackOf(Throwable cause) {
    if (cause == null) return "";
    StringWriter text = new StringWriter();
    cause.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  /** Keep the messages in progress hidden. */
  private void extendLeases() {
    List<Settlement> extensions = new ArrayList<>();
    inProgress.forEach(message -> extensions.add(Settlement.extension(message, lease)));
    try {
      for (int start = 0; start < extensions.size(); start += Json.ITEMS_MAX) {
        queue.settle(extensions.subList(start, Math.min(start + Json.ITEMS_MAX, extensions.size())));
      }
    } catch (RuntimeException error) {
      LOG.log(System.Logger.Level.WARNING, "extending leases of {0} failed: {1}", queue.name(), error.getMessage());
    }
  }

  /** Wait for messages in progress; after the grace period their handlers are interrupted, and they are released. */
  private void finish(ExecutorService handlers) {
    handlers.shutdown();
    try {
      if (handlers.awaitTermination(grace.toMillis(), TimeUnit.MILLISECONDS)) return;
      isGraceOver = true;
      handlers.shutdownNow();
      handlers.awaitTermination(1, TimeUnit.SECONDS);
    } catch (InterruptedException error) {
      handlers.shutdownNow();
      Thread.currentThread().interrupt();
    }
  }
}
