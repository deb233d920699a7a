"""The client's side of `millstream.v1` for publishes, requests and replies, without I/O.

Frames carry idempotency keys: those without an answer are sent again over the next connection, and take effect once.
"""

from itertools import count
from typing import Any

from millstream_client import frames
from millstream_client.conversing import Refusal, Said
from millstream_client.errors import MillstreamError, refusal

Answer = frames.Ok | frames.Reply | MillstreamError


class Publisher:
    """Frames that wait for their answers, by id. `answers` holds those that arrived."""

    def __init__(self, client: str = "python") -> None:
        self._client = client
        self._ids = count(1)
        self._unanswered: dict[str, Said] = {}
        self.answers: dict[str, Answer] = {}
        self.is_on = False
        self.bye: frames.Bye | None = None
        self._frame_bytes_max = 0

    def connected(self) -> list[Said]:
        """Return the first frame for a new connection."""
        self.bye = None
        self.is_on = False
        return [{"type": "hello", "client": self._client}]

    def hear(self, payload: bytes) -> list[Said]:
        """Process a message of the service; return the immediate reply. Raises Refusal."""
        return [said for frame in frames.decode_frames(payload) for said in self._hear(frame)]

    def _hear(self, frame: frames.ServerFrame) -> list[Said]:
        match frame:
            case frames.Welcome():
                self.is_on = True
                self._frame_bytes_max = frame.limits["frame_bytes_max"]
                return list(self._unanswered.values())
            case frames.Ping():
                return [{"type": "pong"}]
            case frames.Ok() | frames.Reply():
                self._answered(frame.id, frame)
            case frames.Error():
                error = refusal(int(frame.problem.get("status", 500)), frame.problem)
                if not frame.id:
                    raise Refusal(error)
                self._answered(frame.id, error)
            case frames.Bye():
                self.bye = frame
            case _:  # nothing is subscribed
                pass
        return []

    def send(self, frame: Said) -> tuple[str, list[Said]]:
        """Return the id of a frame's answer, and the frames to send.

        Raises ValueError for a frame that is too large, with which the service would close the connection.
        """
        id_ = f"p{next(self._ids)}"
        said = {**frame, "id": id_}
        if len(frames.encode_frame(said)) > self._frame_bytes_max:
            size = f"{self._frame_bytes_max // 2**20} MiB"
            raise ValueError(
                f"A WebSocket frame has at most {size}: send larger messages over HTTP."
            )
        self._unanswered[id_] = said
        return id_, [said] if self.is_on else []

    def drop(self, id_: str) -> None:
        """Drop a frame whose answer nothing waits for any more."""
        self._unanswered.pop(id_, None)
        self.answers.pop(id_, None)

    def _answered(self, id_: str, answer: Answer) -> None:
        if self._unanswered.pop(id_, None) is not None:
            self.answers[id_] = answer

    def take_answers(self) -> dict[str, Answer]:
        """Return the answers that arrived since the last call, by id."""
        answers, self.answers = self.answers, {}
        return answers


def request_frame(to: str, message: Any, key: str) -> Said:
    """Return a frame that sends a request to a queue or a topic."""
    return {"type": "request", "to": to, "message": message, "idempotency_key": key}


def reply_frame(request: str, reply: dict[str, Any], key: str) -> Said:
    """Return a frame that replies to a request."""
    return {"type": "reply", "reply": {"request": request, **reply}, "idempotency_key": key}
