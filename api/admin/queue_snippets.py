"""Code snippets for a queue, to be copied and run as they are.

They never contain a key: they read it from the environment. `stream_snippets` has those for streams.
"""

from collections.abc import Callable, Iterable
from json import dumps
from typing import Any, NamedTuple


class Snippet(NamedTuple):
    """Program, with its language as the key."""

    key: str
    label: str
    text: str


class ServiceAccess(NamedTuple):
    """Connection parameters of the caller.

    The base URL, the namespace where it has to be named, and whether the service requires a key.
    """

    base: str
    namespace: str | None
    guarded: bool

    @property
    def curl_options(self) -> str:
        """Options of curl that name the caller and the namespace."""
        key = ' -H "Authorization: Bearer $MILLSTREAM_API_KEY"' if self.guarded else ""
        place = f" -H 'Millstream-Namespace: {self.namespace}'" if self.namespace else ""
        return key + place

    def curl(self, path: str, method: str = "", *, json: object = None, text: str = "") -> str:
        """Return a command that calls the API, with a body of JSON or of text."""
        words = ["curl", f"-X {method}" if method else "", self.curl_options.strip()]
        if json is not None:
            words.append(f"-H 'content-type: application/json' -d '{_encoded(json)}'")
        elif text:
            words.append(f"-d '{text}'")
        url = f"{self.base}{path}"
        words.append(f"'{url}'" if "?" in url else url)
        return " ".join(filter(None, words))

    @property
    def python_client(self) -> str:
        """The lines that make a Python client; a key is read from MILLSTREAM_API_KEY."""
        return f'from millstream_client import Millstream\n\nclient = Millstream("{self.base}")'

    @property
    def typescript_client(self) -> str:
        """Lines that create a client of the SDK."""
        place = f", namespace: '{self.namespace}'" if self.namespace else ""
        options = f"{{ url: '{self.base}'{place} }}"
        return f"import {{ Millstream }} from 'millstream-client';\n\nconst client = new Millstream({options});"

    def boto3_client(self, service: str) -> str:
        """Return the lines that create an AWS client.

        boto3 reads an access key pair from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
        """
        pair = "" if self.guarded else ', aws_access_key_id="any", aws_secret_access_key="any"'
        return (
            f'import boto3\n\n{service} = boto3.client("{service}", endpoint_url="{self.base}", '
            f'region_name="us-east-1"{pair})'
        )


def _encoded(json: object) -> str:
    return dumps(json, ensure_ascii=False)


def snippets(
    aws_service: str, programs: Iterable[Callable[..., str]], *parameters: Any
) -> tuple[Snippet, ...]:
    """Return programs for curl, Python, TypeScript and boto3, made with the parameters."""
    labels = {
        "curl": "curl",
        "python": "Python",
        "typescript": "TypeScript",
        "boto3": f"boto3 ({aws_service})",
    }
    pairs = zip(labels.items(), programs, strict=True)
    return tuple(Snippet(key, label, program(*parameters)) for (key, label), program in pairs)


def queue_snippets(endpoint: ServiceAccess, queue: str, *, fifo: bool) -> tuple[Snippet, ...]:
    """Return a program that sends, receives and acknowledges, in each language."""
    return snippets("SQS", (_curl, _python, _typescript, _boto3), endpoint, queue, fifo)


def _curl(endpoint: ServiceAccess, queue: str, fifo: bool) -> str:
    group = ', "group": "customer-7"' if fifo else ""
    json = " -H 'content-type: application/json'"
    return f"""# Send
curl{endpoint.curl_options}{json} -d '{{"body": {{"order": 1}}{group}}}' {endpoint.base}/v1/queues/{queue}/messages

# Receive up to ten, and wait for the first
curl{endpoint.curl_options}{json} -d '{{"messages_max": 10, "wait_seconds": 20}}' {endpoint.base}/v1/queues/{queue}/receive

# Acknowledge what is done
curl{endpoint.curl_options}{json} -d '{{"settlements": [{{"receipt_handle": "…", "action": "ack"}}]}}' {endpoint.base}/v1/queues/{queue}/settle
"""


def _python(endpoint: ServiceAccess, queue: str, fifo: bool) -> str:
    group = ', group="customer-7"' if fifo else ""
    return f"""{endpoint.python_client}
queue = client.queue("{queue}")

queue.send({{"order": 1}}{group})

for message in queue.receive(messages_max=10, wait_seconds=20):
    print(message.json())
    message.ack()
"""


def _typescript(endpoint: ServiceAccess, queue: str, fifo: bool) -> str:
    group = ", { group: 'customer-7' }" if fifo else ""
    return f"""{endpoint.typescript_client}
const queue = client.queue('{queue}');

await queue.send({{ order: 1 }}{group});

await queue.work((message) => console.log(message.json()));  // what returns is acknowledged, what throws comes again
"""


def _boto3(endpoint: ServiceAccess, queue: str, fifo: bool) -> str:
    group = ', MessageGroupId="customer-7", MessageDeduplicationId="order-1"' if fifo else ""
    return f"""{endpoint.boto3_client("sqs")}
url = sqs.get_queue_url(QueueName="{queue}")["QueueUrl"]

sqs.send_message(QueueUrl=url, MessageBody='{{"order": 1}}'{group})

for message in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=20).get("Messages", []):
    print(message["Body"])
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
"""
