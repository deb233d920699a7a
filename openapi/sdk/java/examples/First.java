import java.time.Duration;
import java.util.Map;
import millstream.Millstream;
import millstream.Queue;
import millstream.RejectException;
import millstream.RetryException;
import millstream.Stream;
import millstream.StreamRecord;
import millstream.Worker;

/** Sends an order to a worker and reads a stream. */
public class First {
  record Order(int order, double total) {}

  public static void main(String[] arguments) {
    try (Millstream client = Millstream.create()) { // MILLSTREAM_URL, MILLSTREAM_API_KEY
      Queue orders = client.queue("java-orders");
      orders.create(Map.of("attempts_max", 3));
      orders.send(new Order(7, 12.5));
      ship(orders);
      readClicks(client.stream("java-clicks"));
    }
  }

  private static void ship(Queue orders) {
    Worker[] worker = new Worker[1]; // which stops after the first order here; else on SIGTERM
    worker[0] =
        orders.worker(
                message -> {
                  Order order = message.json(Order.class);
                  if (order.total() < 0) throw new RejectException("a negative total"); // a dead letter
                  if (order.total() > 1_000) throw new RetryException(Duration.ofMinutes(1), "wait for approval");
                  System.out.println("shipped " + order.order());
                  worker[0].stop();
                })
            .concurrency(8);
    worker[0].run();
  }

  private static void readClicks(Stream clicks) {
    clicks.create(Map.of());
    clicks.append("ann", Map.of("page", "/"));
    for (StreamRecord click : clicks.read(Stream.Position.EARLIEST)) {
      System.out.println(click.offset() + " " + click.key() + " " + click.text());
    }
  }
}
