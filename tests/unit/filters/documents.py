"""Documents of tests: nested JSON, without the streams and queues that messages come from."""

from storage.domain.log.json_body import NOTHING


class JsonDocument:
    def __init__(self, content: dict[str, object]) -> None:
        self._content = content

    def value(self, path: tuple[str, ...]) -> object:
        value: object = self._content
        for word in path:
            if not isinstance(value, dict) or word not in value:
                return NOTHING
            value = value[word]
        return value


def with_headers(**headers: object) -> JsonDocument:
    return JsonDocument({"headers": headers})
