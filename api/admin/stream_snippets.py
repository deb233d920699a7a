"""Programs for one stream, to be copied and run as they are; for queues see `snippets`."""

from api.admin.queue_snippets import Reached, Snippet


def stream_snippets(at: Reached, stream: str) -> tuple[Snippet, ...]:
    """Append and read: once in each language."""
    return (
        Snippet("curl", "curl", _curl(at, stream)),
        Snippet("python", "Python", _python(at, stream)),
        Snippet("typescript", "TypeScript", _typescript(at, stream)),
        Snippet("boto3", "boto3 (Kinesis)", _boto3(at, stream)),
    )


def _curl(at: Reached, stream: str) -> str:
    json = " -H 'content-type: application/json'"
    return f"""# Append; records of one key keep their order
curl{at.curl_options}{json} -d '{{"key": "ann", "data": {{"page": "/"}}}}' {at.base}/v1/streams/{stream}/records

# Read from the oldest record on
curl{at.curl_options} '{at.base}/v1/streams/{stream}/records?limit=10'

# See what comes, as it comes
curl{at.curl_options} -N -H 'accept: application/jsonl' '{at.base}/v1/streams/{stream}/events?from=latest&follow=true'
"""


def _python(at: Reached, stream: str) -> str:
    return f"""{at.python_client}
stream = client.stream("{stream}")

stream.put({{"page": "/"}}, key="ann")

for record in stream.read():  # from the oldest on; "latest", follow=True waits for what comes
    print(record.shard, record.offset, record.key, record.text)
"""


def _typescript(at: Reached, stream: str) -> str:
    return f"""import {{ appendRecords, connect, subscribeToStream }} from 'millstream-client';

const millstream = {at.typescript_client};
const {{ client }} = millstream;

await appendRecords({{
  client,
  throwOnError: true,
  path: {{ stream: '{stream}' }},
  body: {{ records: [{{ key: 'ann', data: {{ page: '/' }} }}] }},
}});

for await (const record of subscribeToStream(millstream, '{stream}')) console.log(record);
"""


def _boto3(at: Reached, stream: str) -> str:
    return f"""{at.boto3_client("kinesis")}

kinesis.put_record(StreamName="{stream}", PartitionKey="ann", Data=b'{{"page": "/"}}')

for shard in kinesis.list_shards(StreamName="{stream}")["Shards"]:
    iterator = kinesis.get_shard_iterator(
        StreamName="{stream}", ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    for record in kinesis.get_records(ShardIterator=iterator, Limit=10)["Records"]:
        print(shard["ShardId"], record["SequenceNumber"], record["PartitionKey"], record["Data"])
"""
