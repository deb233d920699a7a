package millstream;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import millstream.MillstreamException.Interrupted;
import millstream.MillstreamException.ItemError;
import millstream.MillstreamException.ItemsRejected;

/** Batcher of settlements: those that are submitted during a call leave together in the next. */
final class Settler {
  private record Submitted(Settlement settlement, CompletableFuture<Void> result) {}

  private final Queue queue;
  private List<Submitted> pending = new ArrayList<>();
  private boolean isBusy;

  Settler(Queue queue) {
    this.queue = queue;
  }

  /** Send a settlement. Throws ItemsRejected if the service rejects it. */
  void settle(Settlement settlement) {
    CompletableFuture<Void> result = new CompletableFuture<>();
    synchronized (this) {
      pending.add(new Submitted(settlement, result));
      if (!isBusy) {
        isBusy = true;
        queue.client().executor().execute(this::run);
      }
    }
    try {
      result.get();
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new Interrupted(error);
    } catch (ExecutionException error) {
      throw error.getCause() instanceof RuntimeException failure ? failure : new CompletionException(error);
    }
  }

  private void run() {
    for (List<Submitted> batch = next(); !batch.isEmpty(); batch = next()) {
      send(batch);
    }
  }

  private synchronized List<Submitted> next() {
    int count = Math.min(pending.size(), Json.ITEMS_MAX);
    List<Submitted> batch = new ArrayList<>(pending.subList(0, count));
    pending = new ArrayList<>(pending.subList(count, pending.size()));
    isBusy = !batch.isEmpty();
    return batch;
  }

  private void send(List<Submitted> batch) {
    try {
      List<ItemError> errors = queue.settle(batch.stream().map(Submitted::settlement).toList());
      for (int at = 0; at < batch.size(); at++) {
        complete(batch.get(at).result(), errors.get(at));
      }
    } catch (RuntimeException failure) {
      batch.forEach(submitted -> submitted.result().completeExceptionally(failure));
    }
  }

  private static void complete(CompletableFuture<Void> result, ItemError error) {
    if (error == null) result.complete(null);
    else result.completeExceptionally(new ItemsRejected(List.of(error)));
  }
}
