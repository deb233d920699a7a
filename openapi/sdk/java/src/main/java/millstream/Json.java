package millstream;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import millstream.core.ApiClient;

/**
 * Bodies and their form in JSON.
 *
 * <pre>
 * value            stored as       content type
 * byte[]           as it is        none, unless specified
 * String           UTF-8           none, unless specified
 * anything else    compact JSON    application/json
 * </pre>
 */
final class Json {
  static final String TYPE = "application/json";
  static final int ITEMS_MAX = 1_000;
  static final int BYTES_MAX = 4 << 20; // of bodies in one call
  static final ObjectMapper MAPPER =
      ApiClient.createDefaultObjectMapper()
          .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
          .setNodeFactory(JsonNodeFactory.withExactBigDecimals(true));

  private Json() {}

  static JsonNode treeOrNothing(byte[] body) {
    try {
      JsonNode tree = MAPPER.readTree(body);
      return tree == null ? MissingNode.getInstance() : tree;
    } catch (IOException error) {
      return MissingNode.getInstance();
    }
  }

  static byte[] encode(Object value) {
    try {
      return MAPPER.writeValueAsBytes(value);
    } catch (JsonProcessingException error) {
      throw new IllegalArgumentException("The value has no JSON form", error);
    }
  }

  /** Put a body and its content type into an item; return the size of the body. */
  static int putBody(ObjectNode item, String name, Object body, String contentType) {
    boolean isJson = !(body instanceof byte[] || body instanceof String);
    byte[] bytes = body instanceof byte[] raw ? raw : body instanceof String text ? utf8(text) : encode(body);
    item.put(name + "_base64", Base64.getEncoder().encodeToString(bytes));
    String kind = contentType.isEmpty() && isJson ? TYPE : contentType;
    if (!kind.isEmpty()) item.put("content_type", kind);
    return bytes.length;
  }

  /** Return the bytes of a body that arrived as text, as a JSON value or in base64. */
  static byte[] bodyOf(JsonNode item, String name) {
    JsonNode value = item.get(name);
    if (value == null) return Base64.getDecoder().decode(item.path(name + "_base64").asText());
    boolean isJson = item.path("content_type").asText().equals(TYPE) || !value.isTextual();
    return isJson ? encode(value) : utf8(value.textValue());
  }

  static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static <T> T read(byte[] body, Class<T> type) {
    try {
      return MAPPER.readValue(body, type);
    } catch (IOException error) {
      throw new IllegalArgumentException("The body is not JSON of a " + type.getSimpleName(), error);
    }
  }
}
