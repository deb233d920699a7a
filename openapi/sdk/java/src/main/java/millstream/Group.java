package millstream;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import millstream.core.model.GroupLag;

/** A consumer group, whether it exists or not. */
public final class Group {
  private final Millstream client;
  private final String name;

  Group(Millstream client, String name) {
    this.client = client;
    this.name = name;
  }

  /** The name of the group. */
  public String name() {
    return name;
  }

  Millstream client() {
    return client;
  }

  List<String> path(String... words) {
    List<String> path = new ArrayList<>(List.of("groups", name));
    path.addAll(List.of(words));
    return path;
  }

  /**
   * Create the group of a stream. If it exists with these settings, it is returned with {@code created} false.
   *
   * @throws MillstreamException.AlreadyExists if settings differ
   */
  public Stored create(String stream, Map<String, ?> settings) {
    Map<String, Object> all = new HashMap<>(settings);
    all.put("stream", stream);
    return client.create(path(), all);
  }

  /** Create the group of a stream with the default settings. */
  public Stored create(String stream) {
    return create(stream, Map.of());
  }

  /** Return the lag in records and in time. */
  public GroupLag lag() {
    return Json.MAPPER.convertValue(client.get(path("lag"), Map.of()), GroupLag.class);
  }

  /** Delete the group, its offsets and its bookmarks. */
  public void delete() {
    client.send("DELETE", path(), Map.of(), Map.of(), null);
  }

  /** Return a member with a unique name. */
  public Member member() {
    return member("member-" + Effects.randomKey().substring(0, 12));
  }

  /** Return a member; members with the same name are one member. */
  public Member member(String memberName) {
    return new Member(this, memberName);
  }
}
