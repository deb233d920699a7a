"""Programs for one stream, to be copied and run as they are; for queues see `snippets`."""

from api.admin.queue_snippets import ServiceAccess, Snippet, snippets


def stream_snippets(endpoint: ServiceAccess, stream: str) -> tuple[Snippet, ...]:
    """Return a program that appends and reads, in each language."""
    return snippets("Kinesis", (_curl, _python, _typescript, _boto3), endpoint, stream)


def _curl(endpoint: ServiceAccess, stream: str) -> str:
    json = " -H 'content-type: application/json'"
    return f"""# Append; records of one key keep their order
curl{endpoint.curl_options}{json} -d '{{"key": "ann", "data": {{"page": "/"}}}}' {endpoint.base}/v1/streams/{stream}/records

# Read from the oldest record on
curl{endpoint.curl_options} '{endpoint.base}/v1/streams/{stream}/records?limit=10'

# See what comes, as it comes
curl{endpoint.curl_options} -N -H 'accept: application/jsonl' '{endpoint.base}/v1/streams/{stream}/events?from=latest&follow=true'
"""


def _python(endpoint: ServiceAccess, stream: str) -> str:
    return f"""{endpoint.python_client}
stream = client.stream("{stream}")

stream.put({{"page": "/"}}, key="ann")

for record in stream.read():  # from the oldest on; "latest", follow=True waits for what comes
    print(record.shard, record.offset, record.key, record.text)
"""


def _typescript(endpoint: ServiceAccess, stream: str) -> str:
    return f"""{endpoint.typescript_client}
const stream = client.stream('{stream}');

await stream.append({{ page: '/' }}, {{ key: 'ann' }});

for await (const record of stream.read()) {{  // from the oldest on; stream.follow() waits for what comes
  console.log(record.shard, record.offset, record.key, record.text);
}}
"""


def _boto3(endpoint: ServiceAccess, stream: str) -> str:
    return f"""{endpoint.boto3_client("kinesis")}

kinesis.put_record(StreamName="{stream}", PartitionKey="ann", Data=b'{{"page": "/"}}')

for shard in kinesis.list_shards(StreamName="{stream}")["Shards"]:
    iterator = kinesis.get_shard_iterator(
        StreamName="{stream}", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    for record in kinesis.get_records(ShardIterator=iterator, Limit=10)["Records"]:
        print(shard["ShardId"], record["SequenceNumber"], record["PartitionKey"], record["Data"])
"""
